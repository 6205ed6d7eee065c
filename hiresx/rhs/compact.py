"""The viscous right-hand side in the compact plan: one direction after the other, with memory for the flux of one
direction.

The other plans store 12 reals per point for the viscous fluxes along three directions, this one stores 4. It computes
gradients from the conserved state (kernels/compact.h), three times instead of once.
"""

from hiresx.case import Case
from hiresx.decomposition import Decomposition
from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.errors import HiresxError
from hiresx.grid.blocks import FACES, direction

NAME = "compact"


def obstacle(case: Case, cut: Decomposition | None = None) -> str | None:
    """Return the reason, as text, why the plan "compact" (the order of computation with the least memory) does not
    support viscous flow in `case`; None if it does, or if the flow is inviscid. `cut`: the blocks after their division
    among ranks; None to examine the case alone."""
    if case.gas.reynolds is None:
        return None  # there is no memory to save
    if case.axisymmetric:
        return "the flow is axisymmetric"
    if case.turbulence.transported:
        return f'it has not the sources of turbulence.model = "{case.turbulence.model}"'
    if cut is None:
        return None
    if any(patch.condition.kernel == "patched" for patch in cut.patches):
        return "there are patched faces"
    for c in cut.connections:
        if c.donor_direction != direction(c.face):
            block, donor = cut.blocks[c.block].name, cut.blocks[c.donor].name
            lines = FACES[2 * direction(c.face)][0], FACES[2 * c.donor_direction][0]
            return f"lines {lines[0]} of block '{block}' go on as lines {lines[1]} of block '{donor}'"
    return None


class UnsuitedPlan(HiresxError):
    """The error for a plan that does not support a property of the case."""


def check(case: Case, plan: str | None, cut: Decomposition) -> None:
    """Raise UnsuitedPlan if `plan` is "compact" and this plan does not support a property of `case` or of its grid.
    `plan`: the name of the requested plan, or None for the default. `cut`: the blocks after their division among
    ranks."""
    why = obstacle(case, cut) if plan == NAME else None
    if why is not None:
        raise UnsuitedPlan(f'the plan "compact" does not suit this case: {why}', 'leave it out, or plan = "auto"')


class CompactViscous:
    """The launches of the viscous terms of one block, by direction. `flux`: computes the fluxes into the array `along`.
    `difference`: computes their difference, after the ghosts of `along` have been filled. The ghosts of the state must
    be those of the viscous terms (`FaceCondition.viscous_state`). `reynolds`: the Reynolds number."""

    def __init__(self, program: Program, state: BlockState, reynolds: float):
        s, sv = state, state.variable_stride
        self.along = along = s.work[: len(s.equations.gradients)]
        self.flux: dict[int, Call] = {}
        self.difference: dict[int, Call] = {}
        for d in s.active:
            self.flux[d] = program.call(
                "viscous_flux_along", s.size, **s.place, **s.derivative_strides, sv=sv, q=s.q, m=s.metrics,
                through=s.areas[d], jacobian=s.jacobian, inverse_reynolds=1.0 / reynolds,
                **s.eddy_model, flux=along,
            )  # fmt: skip
            self.difference[d] = program.call(
                "viscous_difference_along", s.size, **s.place, sd=s.strides[d], sv=sv, flux=along, r=s.r
            )  # fmt: skip
