"""The sources of `[source]` (kernels/terms/source.h), evaluated at the time of each stage."""

from collections.abc import Iterator, Sequence
from typing import Any

from hiresx.case import Case
from hiresx.device.interface import Calls, Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import Term


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term of the right-hand side that adds the sources of the table [source] of `case` at every node of the
    blocks `states`; nothing without this table. `program`: the compiled kernels."""
    if case.source is None:
        return

    def at(clock: Any, share: float) -> Calls:
        return [
            program.call(
                "source", s.size, **s.place, sv=s.variable_stride, q=s.q, jacobian=s.jacobian,
                coordinates=s.array("coordinates"), clock=clock, share=share, r=s.r,
            )
            for s in states
        ]  # fmt: skip

    yield Term("source", (), at=at)
