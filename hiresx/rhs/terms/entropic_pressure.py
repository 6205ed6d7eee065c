"""The entropic pressure, or stress, of the regularised inviscid fluxes (kernels/terms/entropic_pressure.h)."""

from collections.abc import Iterator, Sequence

from hiresx.case import Case
from hiresx.device.interface import Calls, Program
from hiresx.device.state import BlockState
from hiresx.rhs.terms import ENTROPIC_PRESSURE, ENTROPIC_STRESS, HALOS, Term

# Each sweep reads one of the two fields, with its halos, and writes the other; the last one writes the first.
_TURNS = (ENTROPIC_PRESSURE, "entropic_iterate")


def terms(case: Case, program: Program, states: Sequence[BlockState]) -> Iterator[Term]:
    """Yield the term that computes the entropic pressure or stress, by which the regularised scheme of `case` spreads
    shocks, at every node of the blocks `states`, before the inviscid fluxes; nothing for other schemes. `program`: the
    compiled kernels."""
    if case.scheme.inviscid != "regularised":
        return
    chosen = case.scheme.regularised

    def calls(kernel: str, rows: int, **fields: str | None) -> Calls:
        return [
            program.call(
                kernel, s.size, **s.place, **s.derivative_strides, sv=s.variable_stride, q=s.q[:rows],
                alpha=chosen.alpha, source=s.array("entropic_source"),
                **{name: field and s.array(field) for name, field in fields.items()},
                **({"m": s.metrics} if rows > 1 else {}),
            )
            for s in states
        ]  # fmt: skip

    first = _TURNS[chosen.sweeps % 2]
    kernel, given, stress = "entropic_source", ENTROPIC_PRESSURE, dict[str, str]()
    if chosen.stress == "compressive":
        kernel, given, stress = (
            "compressive_entropic_source",
            ENTROPIC_STRESS,
            {"stress": ENTROPIC_STRESS, "limit": "stress_limit"},
        )
    sweeps = []
    for left in range(chosen.sweeps, 0, -1):
        before, after = _TURNS[left % 2], _TURNS[(left - 1) % 2]
        last = {name: stress.get(name) if left == 1 else None for name in ("stress", "limit")}
        sweeps.append((before, calls("entropic_sweep", 1, before=before, after=after, **last)))
    source = calls(kernel, 5, before=ENTROPIC_PRESSURE, start=first, **stress)
    yield Term("entropic pressure", source, needs=(HALOS,), gives=(given,), then=sweeps)
