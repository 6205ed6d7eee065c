"""A flow has one answer: by every backend, number of ranks and plan, and through a restart."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from ranks import run_ranks
from wholes import whole

from hiresx import Simulation


def same_everywhere(
    make: Callable[..., Simulation],
    on_ranks: Callable[..., list[np.ndarray]],
    directory: Path,
    before_restart: int,
    plans: Sequence[str] = (),
) -> list[np.ndarray]:
    """The states of `make()` at its end, which those of `make(where="emulated")`, of two ranks by `on_ranks(comm)` (a
    function of a module) and of `make(plan=...)` equal to round-off, and those of a run that stops and goes on after
    so many steps, `make(out=directory)`, bit for bit."""

    def finished(run: Simulation) -> list[np.ndarray]:
        run.run(progress=False)
        return whole(run.solver)

    alone = finished(make())
    for others in (finished(make(where="emulated")), *run_ranks(2, on_ranks)):
        np.testing.assert_allclose(others, alone, rtol=0, atol=1e-13)
    for plan in plans:
        np.testing.assert_allclose(finished(make(plan=plan)), alone, rtol=0, atol=1e-12)
    make(out=directory).run(steps=before_restart, progress=False)
    rest = finished(Simulation(restart=directory, backend="cpu"))
    assert all(np.array_equal(a, b) for a, b in zip(alone, rest, strict=True))
    return alone
