"""Terms of a stage. Each declares what it reads and what it computes, and their order follows from this. The files of
this folder define additional terms.

The data that terms read and compute have names. The inviscid terms begin the `RATES`, and the terms at faces complete
them. `SOURCES` are the contributions of terms that are added afterwards. A term can also compute fields before the
inviscid terms: "flux_fields" are those that the numerical flux reads, and a term that needs ghosts of the state for
them reads `HALOS`. A file in this folder defines a term by the function

    def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]

which yields nothing if the case does not use the term. Its kernels are in a header of the same name in kernels/terms/.
"""

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from hiresx import kernels
from hiresx.case import Case
from hiresx.device.interface import Calls, Program
from hiresx.device.state import BlockState
from hiresx.errors import HiresxError

# The state with the ghosts of physical faces, and the state with all ghosts, including those from other ranks.
GHOSTS, HALOS = "ghosts", "halos"
# The field that some numerical fluxes read (hiresx.device.fields).
FLUX_FIELDS = "flux_fields"
# The same of fluxes that read a field of their own along each direction, and do not read it in others.
JUMPS_ACROSS = "jumps_across"
# The sensor by which hybrid fluxes are blended.
SHOCK_SENSOR = "shock_sensor"
# The coefficient of the eddy viscosity, for models that compute it from the flow.
EDDY_COEFFICIENT = "eddy_coefficient"
# The pressure, or the stress, that regularised fluxes add.
ENTROPIC_PRESSURE, ENTROPIC_STRESS = "entropic_pressure", "entropic_stress"
# Viscous fluxes of nodes that need no halos; all viscous fluxes, with the ghosts of physical faces; those in transit to
# other ranks.
INNER_FLUXES, FLUXES, SENT = "inner viscous fluxes", "viscous fluxes", "viscous fluxes on their way"
# States of `r`: with the terms that need no halos; with all inviscid terms; after corrections at faces; with the
# viscous terms; with all further terms.
INNER, INVISCID, RATES, VISCOUS, SOURCES = "inner rates", "inviscid rates", "rates", "viscous rates", "sources"


def with_halos(field: str) -> str:
    """Return the name that `Term.needs` and `Term.gives` contain for the field `field` after its exchange between
    blocks, when all of its ghost nodes are set."""
    return f"{field} with halos"


def in_transit(field: str) -> str:
    """Return the name that `Term.needs` and `Term.gives` contain for the field `field` during its exchange between
    blocks, when all of its ghost nodes are set except those from other ranks."""
    return f"{field} on its way"


# (name, task(stage))
Task: TypeAlias = tuple[str, Callable[[int], None]]


@dataclass(frozen=True)
class Term:
    """A term of the right-hand side, such as viscosity, in a stage (one evaluation of the right-hand side).

    - `name`: its name in time measurements.
    - `calls`: its launches on all blocks of this rank.
    - `needs`: the names of the data that it reads, such as fields. The term follows all terms that have these in
      `gives`.
    - `gives`: the names of the data that it writes.
    - `at`: replaces `calls` for a term that depends on the time. It is a function that returns the launches, from the
      device's clock and the fraction of the step at which a stage begins.
    - `then`: pairs of a field and launches. The halos of the field are exchanged, and then the launches are made.
    """

    name: str
    calls: Calls
    needs: Sequence[str] = (RATES,)
    gives: Sequence[str] = (SOURCES,)
    at: Callable[[Any, float], Calls] | None = None
    then: Sequence[tuple[str, Calls]] = ()


@dataclass(frozen=True)
class Step:
    """Part of a stage, which is one evaluation of the right-hand side and the update of the state. `tasks`: pairs
    (name, function of the number of the stage), which are executed in this order. `needs`: the fields that they read.
    `gives`: the fields that they write."""

    tasks: Sequence[Task]
    needs: Sequence[str] = ()
    gives: Sequence[str] = ()


def build_terms(case: Case, program: Program, states: Sequence[BlockState]) -> list[Term]:
    """Return the additional terms of the right-hand side that the files of this folder define and `case` needs, in the
    order of the files. `program`: the compiled kernels. `states`: the blocks. Raises HiresxError if the numerical flux
    reads a field that no term computes."""
    modules = sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name)
    found = [
        term for module in modules for term in import_module(f"{__name__}.{module.name}").terms(case, program, states)
    ]
    check_flux_fields(case.scheme.flux, found)
    return found


def check_flux_fields(flux: str, terms: Sequence[Term]) -> None:
    """Raise HiresxError if the header of the numerical flux called `flux` declares that the flux reads values at the
    nodes which none of the `terms` computes."""
    count = kernels.trait("flux", flux, FLUX_FIELDS, silent=0)
    if count and not any({FLUX_FIELDS, JUMPS_ACROSS} & {*term.gives} for term in terms):
        raise HiresxError(
            f"kernels/flux/{flux}.h reads {count} number{'s' * (count > 1)} of every node as fields(offset, n), and no "
            f"term of hiresx/rhs/terms/ gives them in this case",
            f'add hiresx/rhs/terms/<name>.py whose `terms` yields, where scheme.flux is "{flux}", a Term with '
            f'gives=("{FLUX_FIELDS}",) that fills this field of every block, or choose another scheme.flux',
        )


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Return the `steps` in an order in which each follows all steps that compute a field that it reads (`Step.gives`,
    `Step.needs`). Where this leaves a choice, the given order is kept. Raises ValueError for a field that no step
    computes, and for a circular dependency."""
    left, found = list(steps), []
    given = {what for step in steps for what in step.gives}
    for step in steps:
        if missing := set(step.needs) - given:
            raise ValueError(f"nothing gives {', '.join(sorted(missing))}")
    while left:
        open_ = {what: step for step in left for what in step.gives}
        ready = next((step for step in left if not any(what in open_ for what in step.needs)), None)
        if ready is None:
            raise ValueError(f"terms wait for each other: {', '.join(sorted(open_))}")
        left.remove(ready)
        found.append(ready)
    return found
