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
    """Return the launch of the kernel called `kernel`, which updates the state at the end of a stage, over the points
    `extent` with the named `arguments`. If the block stores the rounding errors of its state, return the launch of the
    kernel with compensated summation instead, which also gets the arguments `carry` and `beside`."""
    if state.carry is None:
        return program.call(kernel, extent, **arguments)
    return program.call(f"carried_{kernel}", extent, **arguments, carry=state.carry, **(beside or {}))


def rounding_shares(factors: Sequence[float]) -> list[float]:
    """Return, for each stage of a Runge-Kutta step, the fraction of its rounding error that remains at the end of the
    step: the product of the weights of the previous state in all later stages. `factors`: these weights."""
    shares = [1.0]
    for factor in reversed(factors[1:]):
        shares.insert(0, shares[0] * factor)
    return shares
