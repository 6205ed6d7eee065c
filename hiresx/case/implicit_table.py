"""The `[implicit]` table, and errors for cases that the implicit integrators do not support."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx.case.model import Points, Table, case_error, integrators_that
from hiresx.equations import DIRECTIONS
from hiresx.equations.storage import MATRIX_FREE, BlockStorage, SweepPrecision

if TYPE_CHECKING:
    from hiresx.case.schema import Case

NAME = "implicit"
# Integrators of unsteady flow that solve the same equations; their files declare this.
UNSTEADY = integrators_that("UNSTEADY = True")
# Default CFL numbers, if the case has neither a CFL number nor a time step.
UNSTEADY_CFL, EXPLICIT_CFL = 10.0, 0.5
# A viscous CFL number that sets no limit.
UNBOUND = 1e6
# Keys for steady flow, and keys for unsteady flow.
_OF_STEADY = ("drop", "largest_cfl", "sequence", "krylov_residual")
_OF_UNSTEADY = ("newton_drop", "newton_steps", "tolerance")
# Values of a case that does not set these keys.
STEPS, FIRST_CFL = 500, 2.0
# Number of sweeps of a case that does not set it: the largest one in steady flow, and that in unsteady flow.
MOST_SWEEPS, UNSTEADY_SWEEPS = 10, 5
# Default damping of viscous terms and default scheme.epsilon for steady flow.
STEADY_DAMPING, STEADY_EPSILON = 0.25, 1e-2


def more_solved(sweeps: int | None) -> str:
    """Return words for a hint: the keys of a case whose change solves the linear equations of the implicit integrator
    for steady flow more accurately. `sweeps`: the key implicit.sweeps; None if every step chooses the number of sweeps,
    because more sweeps would diverge."""
    return "more implicit.krylov" + ("" if sweeps is None else ", implicit.sweeps left out or raised")


class Implicit(Table):
    """Newton's method. With `time.integrator = "implicit"` it computes steady flow, by pseudo-time steps of each node.
    With `"bdf2"`, `"esdirk3"` or `"esdirk4"` it computes unsteady flow, and solves each stage of a time step. The
    linear equations are solved by GMRES, preconditioned by sweeps over grid lines or nodes in two colours, or by these
    sweeps alone (docs/implicit.md).

    In steady flow the CFL number begins at `time.cfl` (default 2) and grows as the residual falls. There are at most
    `time.steps` steps (default 500). The run ends when the residual has fallen by the factor `drop`. Output may have
    the `residual` of each node after the last step."""

    drop: Annotated[float, Field(gt=1)] = Field(
        1e10,
        description="in steady flow: the run ends when the residual has fallen by this factor since its first step",
    )
    largest_cfl: Annotated[float, Field(gt=0)] = Field(
        1e4, description="in steady flow: the upper limit of the CFL number"
    )
    krylov: Annotated[int, Field(ge=0, le=200)] = Field(
        40,
        description="largest number of search directions of GMRES, which is the number of products with the "
        "Jacobian in a Newton step. 0, in steady flow: GMRES is not used, and the sweeps alone "
        "compute the update (defect correction)",
    )
    krylov_residual: Literal["plain", "preconditioned"] = Field(
        "plain",
        description="in steady flow: the residual that GMRES minimises. plain: that of the equations. "
        "preconditioned: that of the equations multiplied by the preconditioner; it needs half as "
        "many vectors, and also measures errors of the update where cells and steps are large",
    )
    linear_drop: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.01,
        description="GMRES ends when the residual of the linear equations is this fraction of its initial value; in "
        "unsteady flow earlier, if the step is solved before",
    )
    lines: Literal["auto", "none", "i", "j", "k"] = Field(
        "auto",
        description="index direction of the grid lines whose nodes are solved for together. auto: in every block "
        "all directions in which at least a tenth of its cells are thin, one after the other",
    )
    sweeps: Points | None = Field(
        None,
        description="number of sweeps over both colours in one preconditioning. Absent: 5 in unsteady flow; in steady "
        "flow each Newton step chooses a number of at most 10, such that the corrections of the update do not grow "
        "much from sweep to sweep",
    )
    storage: BlockStorage = Field(
        "fp32",
        description="format in which the preconditioner stores the matrix blocks of the neighbours of a node. "
        "fp16 and int8 take less memory, with a power of two as the scale of every row of a matrix "
        "block; the steady flow is the same, but the iteration differs. int8 is too coarse for very"
        " thin cells. none: products with these blocks are computed in each sweep, except along "
        "lines; lines cannot be auto. none with sweep_precision = fp32 takes the least memory",
    )
    sweep_precision: SweepPrecision = Field(
        "fp64",
        description="format of the inverses of diagonal blocks and of the update in the preconditioner. With fp32 a "
        "sweep over nodes moves 14 to 27 % fewer bytes with stored blocks and half as many with storage = none; its "
        "result depends on the decomposition by the round-off of FP32. fp16, for storage = none and lines = none: the "
        "areas of faces in FP16, with the fluxes steger_warming and hllc also velocities, all other numbers in FP32",
    )
    viscous_damping: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="strength of a damping of oscillations from node to node, which the central differences of "
        "the viscous terms do not damp, as a fraction of a compact second difference. 0: no "
        "damping; absent: 0.25, in unsteady flow 0",
    )
    damping_at_walls: bool = Field(
        False,
        description="whether viscous_damping also acts along grid lines that end at a no-slip wall. Newton's "
        "method then needs fewer products and steps, but the friction of coarsely resolved layers "
        "is less accurate",
    )
    sequence: Annotated[int, Field(ge=0, le=6)] = Field(
        0,
        description="in steady flow: number of coarser grids that are solved first, each with every second node of the "
        "next one. The flow on each is the initial flow on the next one. 0: none",
    )
    newton_drop: Annotated[float, Field(gt=1)] | None = Field(
        None,
        description="in unsteady flow: a stage is solved when its residual has fallen by this factor since the start "
        "of the step. Absent: esdirk3 1e4, esdirk4 1e5, otherwise as far as the error in time requires, at most 1e4",
    )
    newton_steps: Points = Field(
        8, description="in unsteady flow: largest number of Newton steps in a stage of a time step"
    )
    tolerance: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="in unsteady flow: the largest estimated error of a time step, divided by the norm of the state. "
        "The step size is chosen for it; time.dt or time.cfl sets the first step. Absent: these set all steps",
    )

    @property
    def directions(self) -> int:
        """Largest number of index directions along whose grid lines the nodes of one block are solved for together: 0,
        1 or 3."""
        return {"none": 0, "auto": 3}.get(self.lines, 1)

    @property
    def direction(self) -> int:
        """Number of the index direction of the grid lines whose nodes are solved for together: 0, 1, 2 for i, j, k. It
        is -1 if nodes are solved for one by one, and if `lines` is "auto"."""
        return "ijk".find(self.lines)

    @property
    def stored_directions(self) -> int:
        """Number of index directions for which the preconditioner stores the matrix blocks of a node's neighbours."""
        return self.directions if self.storage == MATRIX_FREE else DIRECTIONS


def times_of(time: Mapping[str, Any]) -> dict[str, Any]:
    """Return those defaults of the table [time] that depend on the time integrator, by key. `time`: the table as the
    case gives it; values in it take precedence over these defaults."""
    if time.get("integrator") in UNSTEADY:
        return {"viscous_cfl": UNBOUND}
    if time.get("integrator") != NAME:
        return {}
    return {"local": True} if time.get("end") is not None else {"local": True, "steps": STEPS}


def first_cfl(time: Mapping[str, Any]) -> float:
    """Return the CFL number that the time integrator named in the table [time] uses if this table has neither a CFL
    number nor a time step."""
    name = time.get("integrator")
    return FIRST_CFL if name == NAME else UNSTEADY_CFL if name in UNSTEADY else EXPLICIT_CFL


def viscous_damping(case: "Case") -> float:
    """Return the strength of the damping of oscillations from node to node that the viscous terms contain in a run of
    `case`, as a fraction of a compact second difference. It is 0 if there is no damping."""
    if case.gas.reynolds is None or case.time.integrator not in (NAME, *UNSTEADY):
        return 0.0
    given = case.implicit.viscous_damping
    return given if given is not None else STEADY_DAMPING if case.time.integrator == NAME else 0.0


def implicit_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield an error for each setting of `case` that its time integrator does not support or does not use, as far as
    implicit integrators or the table [implicit] are concerned."""
    name = case.time.integrator
    if name != NAME and name not in UNSTEADY:
        if case.implicit != Implicit():
            yield case_error(
                f'implicit: says how time.integrator = "{NAME}" and {_quote(UNSTEADY)} iterate; "{name}" does not: '
                "leave the table out, or take one of these"
            )
        return
    for key in _OF_UNSTEADY if name == NAME else _OF_STEADY:
        if getattr(case.implicit, key) != Implicit.model_fields[key].default:
            yield case_error(f'implicit.{key} is not for time.integrator = "{name}"; leave it out')
    if case.implicit.viscous_damping is not None and case.gas.reynolds is None:
        yield case_error(
            "implicit.viscous_damping has no effect without gas.reynolds; leave it out, or give a Reynolds number"
        )
    if case.implicit.krylov == 0:
        yield from _without_gmres_errors(case)
    if case.implicit.damping_at_walls and not viscous_damping(case):
        yield case_error(
            "implicit.damping_at_walls has no effect without implicit.viscous_damping; leave it out, or give both"
        )
    yield from _beside_errors(case)
    if name == NAME:
        yield from _steady_errors(case)


def _without_gmres_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield the errors of keys that are not supported if the equations are solved by sweeps alone."""
    if case.time.integrator != NAME:
        yield case_error(
            f'implicit.krylov = 0 is for time.integrator = "{NAME}": the stages of "{case.time.integrator}" are solved '
            "by GMRES; give 1 or more, or leave it out"
        )
    for key in ("krylov_residual", "linear_drop"):
        if getattr(case.implicit, key) != Implicit.model_fields[key].default:
            yield case_error(
                f"implicit.{key} has no effect without GMRES, which implicit.krylov = 0 leaves out: leave one "
                "of them out"
            )


def _quote(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _steady_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield the errors of features that are not possible with pseudo-time steps, since these are not times of one
    flow."""
    why = f'time.integrator = "{NAME}" is for steady flow'
    if case.time.retries:
        yield case_error(f"time.retries: {why}, whose steps are shortened by themselves; leave it out")
    if case.average is not None:
        yield case_error(
            f'average is not for time.integrator = "{NAME}", whose steps are not times of one flow; leave it out'
        )
    numbered = [n for n, condition in enumerate(case.boundary) if condition.range and isinstance(condition.range, dict)]
    if case.implicit.sequence and numbered:
        yield case_error(
            f"boundary.{numbered[0]}.range gives nodes by number, which are others on the coarser grids of "
            "implicit.sequence: name a region, or leave implicit.sequence out"
        )
    if case.implicit.sequence and case.refine is not None:
        yield case_error("implicit.sequence is not supported with [refine]: leave one of them out")
    if case.time.cfl is not None and case.time.cfl > case.implicit.largest_cfl:
        yield case_error(
            f"time.cfl = {case.time.cfl:g} is above implicit.largest_cfl = {case.implicit.largest_cfl:g}, beyond which "
            "it does not grow: lower the one or raise the other"
        )


def _matrix_free_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield the errors of keys that sweeps without stored blocks do not support."""
    if case.implicit.lines == "auto":
        default = "" if "lines" in case.implicit.model_fields_set else ", the default"
        yield case_error(
            f'implicit.storage = "{MATRIX_FREE}" is not for implicit.lines = "auto"{default}, whose directions may '
            'be others in each step: give implicit.lines = "none", "i", "j" or "k", or take another storage'
        )


def _beside_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield the errors of features that the linearised equations do not contain."""
    name = case.time.integrator
    if case.scheme.precision != "fp64":
        yield case_error(
            f'scheme.precision = "{case.scheme.precision}": time.integrator = "{name}" computes products with the '
            'Jacobian from differences of right-hand sides; take "fp64"'
        )
    if case.scheme.inviscid == "regularised":
        yield case_error(
            f'scheme.inviscid = "regularised" is not supported with time.integrator = "{name}"; take "afweno"'
        )
    if case.implicit.storage == MATRIX_FREE:
        yield from _matrix_free_errors(case)
    if case.implicit.sweep_precision == "fp16" and (case.implicit.storage != MATRIX_FREE or case.implicit.directions):
        yield case_error(
            f'implicit.sweep_precision = "fp16" is only for implicit.storage = "{MATRIX_FREE}" and implicit.lines = '
            '"none": take these, or sweep_precision = "fp32"'
        )
    without = f'is not for time.integrator = "{name}"'
    if case.filter is not None:
        yield case_error(f"filter: {without}; leave it out")
    if case.scalar and name == NAME:
        yield case_error(
            f"scalar: passive scalars are not for {name}; leave them out, or take an explicit integrator, or one of "
            f"{_quote(UNSTEADY)}"
        )
    if case.axisymmetric:
        yield case_error(f"axisymmetric {without}; take an explicit integrator")
    if case.turbulence.model != "none" and not case.turbulence.transported and name == NAME:
        yield case_error(
            f'turbulence.model = "{case.turbulence.model}" {without}, as large eddies are not steady; take '
            f'"spalart_allmaras", "none", an explicit integrator, or one of {_quote(UNSTEADY)}'
        )
    if case.turbulence.spacings and name == NAME:
        yield case_error(
            f'turbulence.detached_eddies = "{case.turbulence.detached_eddies}" {without}, as resolved eddies are not '
            f'steady; take "none", an explicit integrator, or one of {_quote(UNSTEADY)}'
        )
