"""Steps of several ranks of which no host is part: halos, steps and outflows by signals alone."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from ranks import run_ranks
from vortices import taylor_green
from wholes import whole

from hiresx import Simulation
from hiresx.case import load
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.exchange.buffer_layout import BufferLayout
from hiresx.exchange.signalled_memory import FLAG, SignalledMemory, extra_bytes
from hiresx.mpi.communicator import Communicator
from hiresx.simulation import simulation
from hiresx.solver import Solver


def steps(comm: Communicator, name: str, preset: str | None, changes: tuple[str, ...], transport: str, counts):
    """After so many steps, each time with halos looked at in between: the answer, the time and what there is to say."""
    case = load(name, preset, changes)
    ground = domain(case, comm, parts=lambda cut: partition(cut, comm.size))
    solver = Solver(case, backend("emulated"), domain=ground, transport=transport)
    solver.initialize()
    sizes = []
    for count in counts:
        left = count
        while left > 0:
            left -= solver.advance(left)
        sizes.append(solver.dt)
        # What is exchanged once, by a channel of its own, leaves the others as they are.
        solver.settle()
        solver.halo.start_field("jacobian")
        solver.halo.finish_field("jacobian")
    answer = whole(solver)
    solver.rewind()
    before = whole(solver)
    solver.halo.close()
    return answer, before, solver.time, sizes, solver.device_resident_steps.possible


def launches(comm: Communicator, name: str, count: int) -> tuple[int, int]:
    """How often the host looked during so many steps, by messages and by signals."""
    found = []
    for transport in ("window", "signals"):
        case = load(name, None, ("grid.n=[16,16,16]",))
        ground = domain(case, comm, parts=lambda cut: partition(cut, comm.size))
        solver = Solver(case, backend("emulated"), domain=ground, transport=transport)
        solver.initialize()
        solver.advance(1)
        device, looks = solver.backend, [0]
        to_host = device.to_host

        def looked(array, looks=looks, to_host=to_host):
            looks[0] += 1
            return to_host(array)

        device.to_host = looked
        left = count
        while left > 0:
            left -= solver.advance(left)
        found.append(looks[0])
        solver.halo.close()
    return found[0], found[1]


def _same(first, second, close: float) -> None:
    for block, values in zip(first, second, strict=True):
        np.testing.assert_allclose(values, block, rtol=0, atol=close)


@pytest.mark.parametrize(
    ("ranks", "name", "preset", "changes", "close"),
    [
        pytest.param(2, "taylor-green", None, ("grid.n=[16,16,16]",), 0.0, marks=pytest.mark.slow),
        pytest.param(3, "taylor-green", None, ("grid.n=[20,20,20]", "time.dt=1e-3"), 0.0, marks=pytest.mark.slow),
        pytest.param(3, "planar-jet", "quick", (), 1e-12, marks=pytest.mark.slow),
    ],
    ids=["taylor-green", "fixed step", "jet with outflows on several ranks"],
)
def test_steps_without_a_host_give_the_answer_of_messages(ranks, name, preset, changes, close):
    counts = (5, 1, 6)
    by_messages = run_ranks(ranks, steps, name, preset, changes, "window", counts, timeout=240)[0]
    by_signals = run_ranks(ranks, steps, name, preset, changes, "signals", counts, timeout=240)[0]
    assert by_signals[-1] and not by_messages[-1]
    assert by_signals[2:4] == by_messages[2:4]
    _same(by_messages[0], by_signals[0], close)
    _same(by_messages[1], by_signals[1], close)


@pytest.mark.slow
def test_the_host_looks_once_for_many_steps():
    for by_messages, by_signals in run_ranks(2, launches, "taylor-green", 8, timeout=120):
        assert by_messages >= 8 and by_signals == 1


def in_turns(comm: Communicator, *transports: str) -> list[tuple]:
    """By each transport steps of two records: with work beside the exchange, and without."""
    return [_in_turns(comm, transport) for transport in transports]


def _in_turns(comm: Communicator, transport: str) -> tuple:
    case = load("taylor-green", None, ("grid.n=[16,16,16]",))
    ground = domain(case, comm, parts=lambda cut: partition(cut, comm.size))
    solver = Solver(case, backend("emulated"), domain=ground, transport=transport)
    solver.initialize()
    for n in range(4):
        solver.overlap = n % 2 == 0
        left = 2
        while left > 0:
            left -= solver.advance(left)
    answer = whole(solver)
    solver.halo.close()
    return solver.time, answer, solver.device_resident_steps.possible


def test_steps_with_and_without_overlap_follow_each_other():
    by_messages, by_signals = run_ranks(2, in_turns, "window", "signals", timeout=120)[0]
    assert by_signals[0] == by_messages[0]
    assert by_signals[2] and not by_messages[2]
    _same(by_messages[1], by_signals[1], 0.0)


def uneven(comm: Communicator, count: int) -> tuple[float, int]:
    """A run on ranks of which one thinks that steps are slow: the time it comes to."""
    simulation.HEARING = 1e-9 if comm.rank else 1e9
    case = taylor_green("grid.n=[16,16,16]")
    run = Simulation(case, "emulated", comm=comm, transport="signals")
    run.run(steps=count, progress=False)
    return run.time, run.step_count


def test_ranks_launch_as_many_steps_as_each_other():
    found = run_ranks(2, uneven, 9, timeout=120)
    assert found[0] == found[1] and found[0][1] == 9


def test_all_that_a_memory_holds_has_a_place_of_its_own():
    """Buffers, the flags of every quantity and offer, and what is offered; a rank raises flags where others look."""
    buffer_layout, points = BufferLayout("float64", (5, 4)), [10, 7, 0]
    memory = {n: np.zeros(buffer_layout.size(p) + extra_bytes(3, 2), np.uint8) for n, p in enumerate(points)}
    numpy = SimpleNamespace(zeros=np.zeros, to_device=np.array)
    made = {
        n: SignalledMemory(numpy, None, n, own, {m: memory[m] for m in memory if m != n}, buffer_layout, points)
        for n, own in memory.items()
    }
    flags, kept = {}, {}
    for n, one in made.items():
        signals = [one._signals(quantity, [m for m in memory if m != n]) for quantity in range(2)]
        offers = [one.offer(size) for size in (6, 100, 2, 1)]
        assert one.offer(1) is None, "there is room for four"
        flags[n] = [*signals, *(offer.signals for offer in offers)]
        buffers = [both for both, _ in buffer_layout.both_turns(memory[n], points[n])]
        kept[n] = [*buffers, *(one.flags for one in flags[n]), *(offer.own for offer in offers)]
    for n, arrays in kept.items():
        spans = sorted((array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays if array.size)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
        start = memory[n].ctypes.data
        assert spans[0][0] >= start and spans[-1][1] <= start + memory[n].nbytes
    for n, own in flags.items():
        for number, signals in enumerate(own):
            there = [flags[m][number].flags.ctypes.data + n * FLAG for m in signals.ranks]
            assert signals.addresses.tolist() == there
