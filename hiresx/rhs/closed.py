"""Detection of steady flows whose mass is not determined by any boundary condition."""

from collections.abc import Iterator

from hiresx.case import Case
from hiresx.case.implicit_table import NAME as IMPLICIT
from hiresx.decomposition import Decomposition

# Conditions through which no gas flows, by their kernel; conditions without a kernel are periodic.
_CLOSED = (None, "reflect", "axis", "pole", "patched", "no_slip")


def notes(case: Case, decomposition: Decomposition) -> Iterator[str]:
    """Yield a warning if `case` computes steady flow by the implicit integrator and no gas can enter or leave, so that
    the mass is not determined."""
    if case.time.integrator != IMPLICIT or case.sponge or (case.source is not None and case.source.rho is not None):
        return
    for patch in decomposition.patches:
        condition = patch.condition
        if condition.kernel not in _CLOSED:
            return
        if any(getattr(condition, key, None) is not None for key in ("normal_velocity", "mass_flux")):
            return
    yield (
        f'time.integrator = "{IMPLICIT}": nothing enters or leaves, so that the steady equations do not determine the '
        "mass: it drifts during the iteration, the more the larger the first CFL number is; look at it with "
        "[conservation], and take time.cfl = 2 or an explicit integrator where it matters"
    )
