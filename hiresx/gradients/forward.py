"""Derivatives of numbers of a steady flow by keys of its case, one key after another."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.argument_types import check_types
from hiresx.case.loader import by_key
from hiresx.errors import HiresxError
from hiresx.gradients import numbers
from hiresx.gradients.adjoint import AdjointSolver
from hiresx.gradients.flow import Say, SteadyFlow
from hiresx.gradients.parameters import CaseFamily, Parameter, check_steady, parameter
from hiresx.gradients.sparse_modules import scipy
from hiresx.gradients.tangent import LARGEST, Tangent, TangentSolver, difference
from hiresx.mpi.communicator import Communicator, world
from hiresx.rhs import closed
from hiresx.time.ode_system import Vector

# A flow of the check is converged when its residual is at most so many times that of the flow itself.
AS_FAR = 10.0
# The smallest ratio of step and parameter, and of parameter and step. In the smallest step round-off of the parameter
# alone is 2e-6 of the step.
RESOLVED = 1e-10


@dataclass(frozen=True)
class Gradient:
    """The derivatives of numbers of a steady flow with respect to keys of its case. `values`: each number by its full
    name. `parameters`: the value of each key. `derivatives[number][key]`: the derivatives. `differences[number][key]`:
    the same derivatives from converged flows on both sides of the value of each key; None if they were not computed.
    `solved[key]`: the `step` of the finite differences, the remaining `residual` of the linear equations, and the
    number of `products` with the Jacobian. `flow`: the number of `steps` in which the flow converged, its `residual`
    and `drop`."""

    values: dict[str, float]
    parameters: dict[str, float]
    derivatives: dict[str, dict[str, float]]
    differences: dict[str, dict[str, float]] | None
    solved: dict[str, dict[str, float]]
    flow: dict[str, float]

    def document(self) -> dict[str, Any]:
        """Return the derivatives and how they were computed as a dictionary that JSON can represent."""
        return dict(vars(self))


@check_types
def gradient(
    case: str | Path,
    of: Sequence[str],
    by: Sequence[str],
    preset: str | Sequence[str] | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    backend: str = "auto",
    step: float | None = None,
    check: bool = False,
    comm: Communicator | None = None,
    say: Callable[[str], None] | None = None,
    adjoint: bool = False,
    extended: bool = False,
) -> Gradient:
    """Return the derivatives of results of the steady flow of `case` with respect to keys of the case
    (docs/gradients.md). All ranks of `comm` must call this; by default these are all ranks that were started together.

    - `case`: the name of a bundled case or a case file, whose time integrator must be the implicit one. `preset`: names
      of presets of the case. `overrides`: texts "KEY=VALUE", or values by dotted key.
    - `of`: the results, numbers of the case's monitors: HISTORY.QUANTITY, or the quantity alone where one history has
      it. Each force also has the coefficients `lift` and `drag`.
    - `by`: dotted keys of real numbers.
    - `backend`: the name of the backend.
    - `step`: the step of the differences in each key, by default one in which the flow changes by 3e-4.
    - `check`: whether to compute the differences of converged flows as well.
    - `say`: a function that is called with lines about the progress.
    - `adjoint`: whether to solve linear equations for each result in place of each key; for forces only.
    - `extended`: whether to compute the residual of these equations in extended precision, on the CPU.

    Raises HiresxError for a result or key that the case does not have, for a flow that does not converge, for a flow
    whose mass no boundary condition determines, for a key without influence, for linear equations that are not solved,
    and for extended precision that the machine does not have.
    """
    comm = world() if comm is None else comm
    say = say if say is not None and comm.root else _ignore
    with comm.together():
        if extended:
            _check_extended()
        if adjoint:
            scipy("sparse")
        family, parameters = _parse_request(case, of, by, preset, overrides, step)
        base = family.case()
    flow = SteadyFlow(base, backend, comm)
    try:
        with comm.together():
            _check_mass(flow)
        values = numbers.measure(flow.simulation, of)
        if adjoint:
            numbers.check_forces(flow.simulation, list(values))
        flow.converge(base.implicit.drop)
        report = flow.report
        say(f"the flow: {flow.steps} steps, residual {report['residual']:.2e}")
        solver = (
            AdjointSolver(family, flow, say, list(values), extended)
            if adjoint
            else TangentSolver(family, flow, say, extended)
        )
        values = flow.measure(solver.state, list(values))
        tangents = {}
        for one in parameters:
            tangents[one.key] = tangent = solver.solve(one, list(values), step)
            # in case that the rest fails or is interrupted
            say(f"{one.key}: " + ", ".join(f"{name} {value:.10g}" for name, value in tangent.numbers.items()))
        checks = None
        if check:
            checks = {
                one.key: _converged_differences(family, flow, solver.state, one, tangents[one.key], say)
                for one in parameters
            }
    finally:
        flow.close()
    return Gradient(
        values,
        {one.key: one.value for one in parameters},
        _by_number(values, {key: tangent.numbers for key, tangent in tangents.items()}),
        None if checks is None else _by_number(values, checks),
        {key: {"step": t.step, "residual": t.residual, "products": t.products} for key, t in tangents.items()},
        {"steps": flow.steps, "residual": report["residual"], "drop": report["drop"]},
    )


def _ignore(line: str) -> None:
    """Say nothing."""


def _check_extended() -> None:
    """Raises HiresxError where numbers of the type long double have no more digits than those of double precision."""
    if not np.finfo(np.longdouble).eps < np.finfo(float).eps:
        raise HiresxError(
            "--extended: a long double has no more digits than a double on this machine", "leave out --extended"
        )


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and 0 < float(value) < math.inf


def _parse_request(
    case: str | Path,
    of: Sequence[str],
    by: Sequence[str],
    preset: str | Sequence[str] | None,
    overrides: Sequence[str] | Mapping[str, Any],
    step: float | None,
) -> tuple[CaseFamily, list[Parameter]]:
    """Return the family of cases and the parameters. Raises HiresxError for what is asked wrongly."""
    for name, given in (("of", of), ("by", by)):
        if not given:
            raise HiresxError(f"{name}: the list is empty", f'write for instance {name}=["..."]')
        if len(set(given)) < len(given):
            raise HiresxError(f"--{name} {','.join(given)}: a name is given twice", "give each once")
    if step is not None and not _is_positive(step):
        raise HiresxError(f"--step {step}: no step has this size", "give a number above 0, or leave it out")
    if not isinstance(overrides, Mapping):
        overrides = by_key(overrides)
    chosen = [preset] if isinstance(preset, str) else list(preset or ())
    family = CaseFamily(case, chosen, overrides)
    base = family.case()
    check_steady(base)
    parameters = [parameter(base, key) for key in by]
    for one in parameters:
        scale = abs(one.value) or 1.0
        if step is not None and not RESOLVED * scale <= step <= scale / RESOLVED:
            raise HiresxError(
                f"--step {step:g}: {one.key} = {one.value:.10g} and its changes by this step are not resolved together "
                "in double precision",
                f"give a step from {RESOLVED * scale:g} to {scale / RESOLVED:g}, e.g. {LARGEST * scale:g}, or none",
            )
    return family, parameters


def _check_mass(flow: SteadyFlow) -> None:
    """Raises HiresxError for a closed flow: to each mass there is a steady one, and no derivative is determined."""
    for note in closed.notes(flow.case, flow.simulation.solver.decomposition):
        raise HiresxError(
            f"the steady flow has no derivatives: {note}", "take a case with an inflow, an outflow or a sponge"
        )


def _converged_differences(
    family: CaseFamily, flow: SteadyFlow, x: Vector, of: Parameter, tangent: Tangent, say: Say
) -> dict[str, float]:
    """Return the differences of converged flows, of the same order and step as those of the tangent. Each starts from
    the flow x itself."""

    def values(n: int) -> dict[str, float]:
        with flow.comm.together():
            case = family.with_shift(of, n * tangent.step)
        there = SteadyFlow(case, flow.backend, flow.comm)
        try:
            there.start_beside(flow, x)
            there.converge(math.inf, AS_FAR * flow.report["residual"])
            there.polish()
            say(f"{of.key} + {n * tangent.step:.3g}: {there.steps} steps")
            return there.measure(there.state(), list(tangent.numbers))
        finally:
            there.close()

    return difference(values, tangent.step)


def _by_number(values: Mapping[str, float], found: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {number: {key: theirs[number] for key, theirs in found.items()} for number in values}
