"""Nodes that several blocks hold: their values are made equal from time to time."""

from dataclasses import replace

import numpy as np
import pytest
from arrangements import saved
from multiblock import Arrangement
from ranks import run_ranks

from hiresx import Case, Simulation
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.grid import Block, Grid
from hiresx.solver import Solver
from hiresx.solver.shared_nodes import EVERY, _copies

CASE = {
    "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
    "time": {"steps": EVERY + 3, "cfl": 0.5}, "boundary": [{"faces": "all", "type": "slip-wall"}],
    "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
}  # fmt: skip


def wave(x, y, z):
    return 1 + 0.05 * np.sin(3 * x + y), 0.1 * np.sin(y), 0.05 * np.cos(x), 0 * x, (1 + 0.05 * np.cos(2 * x)) / 1.4


def turned(folder, count=3, seed=2) -> Grid:
    """A box in turned blocks that share nodes, at edges of more than two of them."""
    j, i = np.meshgrid(np.linspace(0, 1, 25), np.linspace(0, 1, 27), indexing="ij")
    parts = Arrangement(Block("whole", i[None] + 0.1 * j[None], j[None], 0 * i[None]), count, seed, True)
    return saved(folder, parts.blocks, {"blocks": [b.name for b in parts.blocks], "connection": parts.tables})


def solver_of(grid: Grid, where: str, parts: int = 1, comm=None) -> Solver:
    case = Case.from_dict(CASE)

    def cut(whole):
        found = partition(whole, parts)
        return found if comm else [replace(part, rank=0) for part in found]

    return Solver(case, backend(where), domain=domain(case, comm, grid=grid, parts=cut))


def after_a_step(solver: Solver, steps: int) -> np.ndarray:
    """The density by number of the node in the whole blocks, after one step behind `steps`, before which the values of
    the blocks had differed by up to 1e-3."""
    solver.initialize(wave)
    for n, state in enumerate(solver.states):
        rho, *others = (solver.primitives(n)[name] for name in ("rho", "u", "v", "w", "p"))
        solver.set_state(n, rho + 1e-3 * state.part.whole, *others)
    solver.complete_state(given=False)
    solver.steps = steps
    solver.step()
    blocks = solver.decomposition.blocks
    offsets = np.cumsum([0, *(int(np.prod(block.size)) for block in blocks)])
    found = np.zeros(offsets[-1])
    for n, state in enumerate(solver.states):
        whole = found[offsets[state.part.whole] :][: int(np.prod(blocks[state.part.whole].size))]
        whole.reshape(blocks[state.part.whole].size[::-1])[state.part.slices] = solver.primitives(n)["rho"]
    return found


@pytest.mark.parametrize(
    ("where", "parts"), [("cpu", 1), ("cpu", 5), pytest.param("emulated", 1, marks=pytest.mark.slow)]
)
def test_values_are_made_equal_every_so_many_steps(tmp_path, where, parts):
    solver = solver_of(turned(tmp_path), where, parts)
    copies, originals = _copies(solver.decomposition)
    assert len(copies) > 25 and not set(copies) & set(originals)
    found = after_a_step(solver, EVERY)
    assert np.abs(found[copies] - found[originals]).max() < 1e-13
    found = after_a_step(solver, EVERY + 1)
    assert np.abs(found[copies] - found[originals]).max() > 1e-4


def _on_ranks(comm, grid):
    solver = solver_of(grid, "cpu", comm.size, comm)
    found = comm.sum(after_a_step(solver, EVERY))
    solver.halo.close()
    copies, originals = _copies(solver.decomposition)
    return float(np.abs(found[copies] - found[originals]).max()), float(np.abs(found).max())


@pytest.mark.slow
def test_on_two_ranks(tmp_path):
    for off, largest in run_ranks(2, _on_ranks, turned(tmp_path)):
        assert off < 1e-13 and 1 < largest < 1.2


def test_a_restart_gives_the_same_bits(tmp_path):
    grid, case = turned(tmp_path), Case.from_dict(CASE | {"checkpoint": {"every_steps": EVERY}})
    through = Simulation(case, "cpu", out=tmp_path / "run", initial=wave, grid=grid)
    through.run(progress=False)
    (stored,) = (path for path in (tmp_path / "run" / "checkpoints").glob(f"*{EVERY}*"))
    again = Simulation(case, "cpu", grid=grid, restart=stored, out=tmp_path / "again")
    assert again.step_count == EVERY
    again.run(progress=False)
    for one, other in zip(through.blocks, again.blocks, strict=True):
        np.testing.assert_array_equal(one.state("rho"), other.state("rho"))


def test_blocks_without_shared_nodes_have_none():
    assert not Solver(Case.from_dict(CASE), backend("cpu"))._shared_nodes.any
