"""Checks of values that Python code passes to a case: names of functions, and states of the flow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.case.error_messages import did_you_mean
from hiresx.equations import GAS_PRIMITIVE
from hiresx.errors import HiresxError

if TYPE_CHECKING:
    from hiresx.case.schema import Case


def check_arguments(case: "Case", profiles: Any, monitors: Any, grid: Any, scalars: Any) -> None:
    """Raise HiresxError for invalid arguments of `hiresx.Simulation`: `monitors` that are no list of functions, a
    `grid` that has no blocks, and `profiles` or `scalars` that are no dictionary of functions. Also raises it for a
    name in `profiles` that no boundary condition and no sponge of the case uses, since that function would be ignored,
    and for a name in `scalars` that is no scalar of the case."""
    if not isinstance(monitors, Sequence) or not all(map(callable, monitors)):
        raise HiresxError("monitors: not a list of functions", "write for instance monitors=[f]")
    if grid is not None and not hasattr(grid, "blocks"):
        raise HiresxError(f"grid: {grid!r:.60} is not a Grid", "read one: hiresx.grid.read_plot3d(path)")
    for argument, given, example in (("profiles", profiles, "inflow"), ("scalars", scalars, "dye")):
        if not isinstance(given, Mapping) or not all(map(callable, given.values())):
            raise HiresxError(
                f"{argument}: not a dictionary of functions", f'write for instance {argument}={{"{example}": f}}'
            )
    initial_scalars = {scalar.name: scalar.initial for scalar in case.all_scalars}
    for name in scalars:
        if name not in initial_scalars:
            raise HiresxError(
                f'scalars: the case has no scalar "{name}"', did_you_mean(name, list(initial_scalars), "scalars")
            )
    asked = {name for table in (*case.boundary, *case.sponge) for name in _functions(table.model_dump())}
    for name in profiles:
        if name in asked:
            continue
        if name == case.initial.function:
            raise HiresxError(f'profiles: "{name}" is the initial state', f"give it as initial={name}")
        if name in initial_scalars.values():
            scalar = next(scalar for scalar, function in initial_scalars.items() if function == name)
            raise HiresxError(
                f'profiles: "{name}" is the initial value of a scalar', f'give it as scalars={{"{scalar}": {name}}}'
            )
        if name in case.monitors:
            raise HiresxError(
                f'profiles: "{name}" is a monitor', f"give it as monitors=[{name}], and leave it out of the case"
            )
        hint = (
            did_you_mean(name, sorted(asked), "functions of the case")
            if asked
            else "the case asks for no function: leave profiles out"
        )
        raise HiresxError(f'profiles: no boundary condition and no sponge asks for "{name}"', hint)


def _functions(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of functions: values of the key `function`, and texts in place of values by name."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from (text for text in value.values() if isinstance(text, str))
        elif isinstance(value, str) and key == "function":
            yield value


def check_state(who: str, state: Mapping[str, np.ndarray], places: tuple[np.ndarray, ...]) -> None:
    """Raise HiresxError for the first node at which a variable of `state` is not finite, rho or p is not positive, or
    kinetic energy or sound speed exceed the range of double precision. `state`: arrays of one shape by the names of the
    variables. `who`: the beginning of the message, which names the origin of the state. `places`: the coordinates x, y,
    z of the nodes, arrays of the same shape."""
    for quantity, values in state.items():
        good = np.isfinite(values)
        if quantity in ("rho", "p"):
            good &= values > 0
        if not good.all():
            hint = "every value must be finite" + (", and rho and p positive" if "rho" in state else "")
            raise _fault(who, {quantity: values}, "", good, places, hint)
    if not state.keys() >= set(GAS_PRIMITIVE):
        return
    for what, found, used in derived_quantities(*(state[name] for name in GAS_PRIMITIVE)):
        if not (good := np.isfinite(found)).all():
            variables = {name: state[name] for name in used}
            raise _fault(who, variables, f": {what} exceeds the range of double precision", good, places, "correct it")


def derived_quantities(rho: Any, u: Any, v: Any, w: Any, p: Any) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Yield the kinetic energy and the sound speed, which must be in the range of double precision although they are
    not variables of the state. Each is a tuple (name, a number or array that is finite where the quantity is in range,
    names of the variables from which it follows). `rho`, `u`, `v`, `w`, `p`: numbers or arrays of one shape."""
    rho, u, v, w, p = map(np.asarray, (rho, u, v, w, p))
    with np.errstate(all="ignore"):
        yield "the kinetic energy", rho * (u * u + v * v + w * w), ("rho", "u", "v", "w")
        yield "the sound speed", p / rho, ("rho", "p")


def _fault(
    who: str, values: Mapping[str, np.ndarray], what: str, good: np.ndarray, places: tuple[np.ndarray, ...], hint: str
) -> HiresxError:
    """Return the error for the first node that is not `good`, with the values there."""
    first = np.unravel_index(int(np.argmin(good)), good.shape)
    point = ", ".join(f"{float(c[first]):.6g}" for c in places)
    shown = ", ".join(f"{name} = {array[first]:.6g}" for name, array in values.items())
    return HiresxError(f"{who} {shown} at (x, y, z) = ({point}){what}", hint)
