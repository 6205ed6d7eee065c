"""Blocks that a script sets: on its rank alone, whatever the others do, until the next call of all ranks."""

from collections.abc import Callable

import numpy as np
import pytest
from ranks import run_ranks

from hiresx import Case, Simulation
from hiresx.decomposition import Decomposition, Part
from hiresx.output.fields import field_file

P = 1 / 1.4
N = (24, 16, 1)
SAME = 1e-13


def case(**tables) -> Case:
    """Viscous gas between walls."""
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": N, "lower": [0, 0, 0], "upper": [1, 1, 0]},
            "gas": {"reynolds": 100.0},
            "time": {"steps": 4, "dt": 0.002},
            "monitor": {"every": 2},
            "initial": {"state": {"rho": 1.0, "u": 0.0, "p": P}},
            "boundary": [
                {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0},
                {"faces": ["imin", "imax"], "type": "periodic"},
            ],
            **tables,
        }
    )


def columns(ranks: int = 1) -> Callable[[Decomposition], list[Part]]:
    """Cut into three parts: two of them for rank 0."""
    rows = (0, N[1]), (0, 1)
    return lambda _: [Part(0, ((8 * n, 8 * n + 8), *rows), min(n // 2, ranks - 1)) for n in range(3)]


def set_all(simulation, size=0.1) -> None:
    for b in simulation.blocks:
        wave = np.sin(2 * np.pi * b.x + b.y)
        b.set_state(1 + size * wave, 0.1 * np.cos(3 * b.y), 0.1, 0.0, P)


def second(simulation) -> None:
    """A monitor that sets the state in the midst of a run: of the last block of the grid only."""
    for b in simulation.blocks:
        if simulation.step_count == 2 and b.x.max() == 1.0:
            b.set_state(1.1, 0.0, 0.2, 0.0, P)


def density(simulation) -> np.ndarray:
    found = np.zeros((N[1], N[0]))
    for b in simulation.blocks:
        i = b.first[0]
        found[:, i : i + b.x.shape[2]] = b.state("rho")[0]
    return simulation.comm.sum(found.ravel()).reshape(found.shape)


def flows(comm=None, out=None) -> list[np.ndarray]:
    parts = columns(1 if comm is None else comm.size)
    simulation = Simulation(case(), "cpu", comm=comm, parts=parts, rebalance="never", monitors=[second], out=out)
    set_all(simulation)
    simulation.step()
    found = [density(simulation)]
    set_all(simulation, 0.05)
    simulation.run(steps=3, progress=False)
    found.append(density(simulation))
    set_all(simulation, 0.02)
    simulation.rebuild(parts=parts)
    return [*found, density(simulation)]


def by_rank(comm, out) -> list[np.ndarray]:
    return flows(comm, out)


@pytest.mark.slow
def test_ranks_with_other_numbers_of_blocks_set_them_one_by_one(tmp_path):
    one = flows()
    for found in run_ranks(2, by_rank, tmp_path):
        for own, wanted in zip(found, one, strict=True):
            np.testing.assert_allclose(own, wanted, rtol=0, atol=SAME)


def test_a_step_begins_from_the_complete_state():
    one, other = (Simulation(case(), "cpu", parts=columns()) for _ in range(2))
    set_all(one)
    set_all(other)
    other.solver.complete_state()
    one.step()
    other.step()
    assert np.array_equal(density(one), density(other))


@pytest.mark.parametrize("then", ["run", "rebuild"])
def test_the_state_is_completed_before_it_is_used(then, tmp_path):
    """Nodes of walls have the temperature and the velocity of the wall."""
    simulation = Simulation(case(), "cpu", parts=columns(), rebalance="never", out=tmp_path)
    for n, b in enumerate(simulation.blocks):
        b.set_state(1.0 + 0.1 * n, 0.3, 0.0, 0.0, P)
    assert (simulation.blocks[0].state("u") == 0.3).all()  # as given, until all ranks meet
    if then == "run":
        simulation.run(steps=0, progress=False)
    else:
        simulation.rebuild(parts=columns())
    for b in simulation.blocks:
        assert np.abs(b.state("u")[0, [0, -1]]).max() == 0
        np.testing.assert_allclose(b.state("T")[0, [0, -1]], 1.0, atol=SAME)
    if then == "run":
        # The fields of the start, which are written before anything else is done.
        stored = field_file.read(field_file.last(tmp_path)).blocks[0].state["u"]
        assert np.abs(stored[0, [0, -1]]).max() == 0


def test_a_monitor_may_set_the_state():
    def cool(simulation):
        if simulation.step_count == 2:
            simulation.blocks[0].set_state(1.0, 0.3, 0.0, 0.0, P)

    simulation = Simulation(case(), "cpu", monitors=[cool])
    simulation.run(steps=2, progress=False)
    assert np.abs(simulation.blocks[0].state("u")[0, [0, -1]]).max() == 0


def test_levels_follow_a_state_that_is_complete():
    simulation = Simulation(case(refine={"tile": 8, "criterion": "vorticity", "refine": 1.0}), "cpu")
    assert not simulation.adapt()
    for b in simulation.blocks:
        b.set_state(1.0, 0.3, 0.0, 0.0, P)  # along a wall that rests
    assert simulation.adapt()
