"""A flow has one answer: by every backend, number of ranks and plan, and through a restart."""

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from ranks import run_ranks
from wholes import whole

from hiresx import Simulation


def same_everywhere(
    make: Callable[..., Simulation],
    directory: Path,
    before_restart: int,
    plans: Sequence[str] = (),
    on_ranks: Callable[..., list[np.ndarray]] | None = None,
) -> list[np.ndarray]:
    """The states of `make()` at its end, which those of `make(where="emulated")`, of two ranks and of `make(plan=...)`
    equal to round-off, and those of a run that stops and goes on after so many steps, `make(out=directory)`, bit for
    bit. On ranks the run is `make(comm=comm)`, where `make` is a function of a module, or `on_ranks(comm)`, such a
    function too, gives the states."""
    alone = _finished(make())
    ranks = run_ranks(2, on_ranks) if on_ranks else run_ranks(2, _of_rank, inspect.getfile(make), make.__name__)
    for others in (_finished(make(where="emulated")), *ranks):
        np.testing.assert_allclose(others, alone, rtol=0, atol=1e-13)
    for plan in plans:
        np.testing.assert_allclose(_finished(make(plan=plan)), alone, rtol=0, atol=1e-12)
    make(out=directory).run(steps=before_restart, progress=False)
    rest = _finished(Simulation(restart=directory, backend="cpu"))
    assert all(np.array_equal(a, b) for a, b in zip(alone, rest, strict=True))
    return alone


def _finished(run: Simulation) -> list[np.ndarray]:
    run.run(progress=False)
    return whole(run.solver)


def _of_rank(comm, file: str, name: str) -> list[np.ndarray]:
    """The states of the function `name` of a test file, on one of several ranks."""
    sys.path.insert(0, str(Path(file).parent))
    return _finished(getattr(importlib.import_module(Path(file).stem), name)(comm=comm))
