"""The launches that end a stage where the state carries along what its storage rounds away (kernels/differences.h)."""

from collections.abc import Mapping, Sequence
from typing import Any

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState


def update_call(
    program: Program, state: BlockState, kernel: str, extent: tuple[int, int, int] | None,
    beside: Mapping[str, Any] | None = None, /, **arguments: Any,
) -> Call:  # fmt: skip
    """The launch of `kernel` with these arguments; of its form that carries along, which takes those `beside` them,
    where the block does so."""
    if state.carry is None:
        return program.call(kernel, extent, **arguments)
    return program.call(f"carried_{kernel}", extent, **arguments, carry=state.carry, **(beside or {}))


def rounding_shares(factors: Sequence[float]) -> list[float]:
    """Of what the rounding of each stage takes away, what is missing at the end of the step: `factors` are what each
    stage takes of the state before it."""
    shares = [1.0]
    for factor in reversed(factors[1:]):
        shares.insert(0, shares[0] * factor)
    return shares
