"""Compensated updates: the last launch of a stage if the rounding errors of the state are stored
(kernels/differences.h)."""

from collections.abc import Mapping, Sequence
from typing import Any

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState


def update_call(
    program: Program, state: BlockState, kernel: str, extent: tuple[int, int, int] | None,
    beside: Mapping[str, Any] | None = None, /, **arguments: Any,
) -> Call:  # fmt: skip
    """Return the launch of the kernel called `kernel`, which updates the state of the block `state` at the end of a
    stage. `extent`: the numbers of points of the launch; None for kernels that have none. `arguments`: the arguments of
    the kernel, by name. If the block stores the rounding errors of its state (`state.carry`), the launch is that of the
    kernel with compensated summation, `carried_` + `kernel`, which gets this array and the further arguments
    `beside`."""
    if state.carry is None:
        return program.call(kernel, extent, **arguments)
    return program.call(f"carried_{kernel}", extent, **arguments, carry=state.carry, **(beside or {}))


def rounding_shares(factors: Sequence[float]) -> list[float]:
    """Return, for each stage of a Runge-Kutta step, by what factor its rounding error is contained in the result of the
    step: the product of the weights that the later stages give to the state before them. `factors`: this weight for
    each stage."""
    shares = [1.0]
    for factor in reversed(factors[1:]):
        shares.insert(0, shares[0] * factor)
    return shares
