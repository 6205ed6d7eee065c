"""Launches of several blocks as one: which go together, and that they do what they do one by one."""

import itertools
import random
import tracemalloc

import numpy as np
import pytest
from batching_emulator import BatchingBackend
from vortices import taylor_green

from hiresx.decomposition import Part, domain
from hiresx.device import batches, graphs
from hiresx.device.batch_wrappers import Form
from hiresx.device.batches import BatchedLaunch, arrange_batches
from hiresx.device.call import Call
from hiresx.device.dependency_graph import dependencies
from hiresx.device.emulated import EmulatedBackend
from hiresx.device.wrappers import launch_shape
from hiresx.kernels import Signature
from hiresx.solver import Solver
from hiresx.solver.initial_flow import initial_flow

ARGUMENTS = (("const real *", "x"), ("real *", "y")), "const real *x, real *y", "KERNEL"
NAMED = {name: Signature(name, *ARGUMENTS) for name in "abm"}


def call(name, x, y):
    return Call(NAMED[name], (4, 1, 1), {"x": x, "y": y}, None)


def some_calls(seed: int, count: int = 60) -> list:
    """Launches on parts of one array, some in lists; "m" are messages."""
    dice = random.Random(seed)
    memory = np.zeros(40)
    found = []
    for _ in range(count):
        some = []
        for _ in range(dice.choice([1, 1, 1, 3])):
            low, high = dice.randrange(36), dice.randrange(36)
            name = dice.choice("aaabbm")
            some.append(call(name, memory[low : low + dice.randint(1, 4)], memory[high : high + dice.randint(1, 4)]))
        found.append(some[0] if len(some) == 1 else some)
    return found


def behind(waits: list[list[int]]) -> list[set[int]]:
    """All that is done before each."""
    found: list[set[int]] = []
    for of_one in waits:
        found.append(set(of_one).union(*(found[n] for n in of_one)))
    return found


def ends(array) -> tuple[int, int]:
    start = array.ctypes.data
    return start, start + array.nbytes


def is_message(one: Call) -> bool:
    return one.name == "m"


@pytest.mark.parametrize("seed", range(20))
def test_dependencies_are_those_of_every_pair(seed):
    calls = some_calls(seed)
    entries = [some if isinstance(some, list) else [some] for some in calls]
    single = [(n, one) for n, some in enumerate(entries) for one in some]
    pairs: list[list[int]] = []
    for number, (entry, one) in enumerate(single):
        pairs.append([])
        for earlier, (other_entry, other) in enumerate(single[:number]):
            (x, y), (u, v) = one.arguments.values(), other.arguments.values()
            shared = any(np.shares_memory(*two) for two in ((y, u), (y, v), (x, v)))
            if other_entry < entry and (shared or (is_message(one) and is_message(other))):
                pairs[-1].append(earlier)
    assert behind(dependencies(calls, ends, is_message)) == behind(pairs)


@pytest.mark.parametrize("branches", [2, 64])
@pytest.mark.parametrize("seed", range(10))
def test_streams_wait_for_what_is_needed_and_for_nothing_twice(seed, branches, monkeypatch):
    monkeypatch.setattr(graphs, "BRANCHES", branches)
    waits = dependencies(some_calls(seed), ends)
    dice = random.Random(seed)
    urgent = [dice.random() < 0.1 for _ in waits]
    on, awaited = graphs.choose_streams(urgent, waits)
    last: dict[int, int] = {}
    chained = []
    for n, branch in enumerate(on):
        chained.append([*awaited[n], *([last[branch]] if branch in last else [])])
        last[branch] = n
    before = behind(chained)
    assert all(done.issuperset(of_one) for done, of_one in zip(before, waits, strict=True))
    for of_one, others in zip(awaited, chained, strict=True):
        assert not any(n in before[m] for n in of_one for m in others)
    assert len(set(on)) <= branches + 1 and not {on[n] for n in last.values() if urgent[n]} & {0}


@pytest.mark.slow
def test_dependencies_take_memory_by_the_number_of_calls():
    """A bit for every pair would be 600 bytes a call besides."""
    arrays = list(np.zeros((201, 4)))
    calls = [call("a", *arrays[n % 200 : n % 200 + 2]) for n in range(10000)]
    tracemalloc.start()
    dependencies(calls, ends)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 900 * len(calls)


@pytest.mark.parametrize("seed", range(20))
def test_what_goes_together_does_not_depend_on_each_other(seed):
    calls = some_calls(seed)
    single = [one for some in calls for one in (some if isinstance(some, list) else [some])]
    waits = dependencies(calls, ends, is_message)
    messages = list(map(is_message, single))
    kinds = [None if message else one.name for one, message in zip(single, messages, strict=True)]
    members, waiting = batches.batches(kinds, waits, messages)
    assert sorted(itertools.chain(*members)) == list(range(len(single)))
    assert len(members) < len(single)
    place = {n: at for at, numbers in enumerate(members) for n in numbers}
    before, of_batches = behind(waits), behind(waiting)
    for at, numbers in enumerate(members):
        assert len(numbers) == 1 or len({single[n].name for n in numbers}) == 1
        come = {max((m for m in before[n] if messages[m]), default=-1) for n in numbers}
        assert len(come) == 1, "none waits for a message that another one does not need"
        assert all(n < at for n in waiting[at])
        for n in numbers:
            assert not before[n].intersection(numbers)
            assert {place[m] for m in before[n]} <= of_batches[at]
    order = [place[n] for n in range(len(single)) if messages[n]]
    assert order == sorted(order) and len(set(order)) == len(order), "messages are single, and keep their order"


def test_large_launches_are_alone(monkeypatch):
    arrays = [np.zeros(4) for _ in range(4)]
    calls = [call("a", arrays[n], arrays[n + 1]) for n in (0, 2)]

    def made():
        found, _ = arrange_batches(calls, lambda one: ((2, 1, 1), (2, 1, 1)), lambda array: array.ctypes.data)
        return [isinstance(one, BatchedLaunch) for one in found]

    assert made() == [True]
    monkeypatch.setattr(batches, "LARGE", 3)
    assert made() == [False, False]
    # Four threads; those of a line kernel visit more nodes than one each.
    monkeypatch.setattr(batches, "LARGE", 4)
    assert made() == [True]
    monkeypatch.setitem(NAMED, "a", NAMED["a"]._replace(kind="LINE_KERNEL"))
    calls[:] = [call("a", arrays[n], arrays[n + 1]) for n in (0, 2)]
    assert made() == [False, False]


def test_unequal_launches_share_blocks_but_for_those_that_would_waste_them():
    """A long row of points in blocks for thin ones would have many times as many threads."""
    x = np.zeros(4)
    extents = [(97, 40, 1), (30, 128, 1), (5, 300, 1), (1 << 16, 1, 1)]
    calls = [call("a", x, x)._replace(extent=extent) for extent in extents]
    shapes = [launch_shape(*extent) for extent in extents]
    kinds = [("a", block) for _, block in shapes]
    batches.share_blocks(calls, shapes, kinds)
    assert len({block for _, block in shapes[:3]}) == 1
    assert [kind for kind in kinds] == [("a", block) for _, block in shapes]
    for (grid, block), extent in zip(shapes, extents, strict=True):
        assert all(g * b >= n for g, b, n in zip(grid, block, extent, strict=True))
    assert shapes[3] == launch_shape(*extents[3])


# ---- whole steps

CUTS = {"equal": (8, 16, 24), "unequal": (7, 16, 24)}


def steps(cut: str, device: EmulatedBackend) -> tuple[list[np.ndarray], Solver]:
    """The states of a vortex on 27 blocks after three steps."""
    case = taylor_green("grid.n=[24,24,24]")
    pieces = list(itertools.pairwise((0, *CUTS[cut])))
    ground = domain(case, parts=lambda whole: [Part(0, box) for box in itertools.product(pieces, repeat=3)])
    solver = Solver(case, device, domain=ground, flow=initial_flow(case))
    solver.advance(2)
    solver.advance(1)
    return [state.q.copy() for state in solver.states], solver


def test_launches_without_an_optional_array_go_together_with_those_that_have_it():
    memory = np.zeros(6)
    calls = [call("a", None, memory[:2]), call("a", memory[2:4], memory[4:]), call("a", memory[4:], memory[:2])]
    assert dependencies(calls) == [[], [], [0, 1]]
    (one, last), _ = arrange_batches(calls, lambda call: launch_shape(4, 1, 1), lambda array: int(array.ctypes.data))
    assert isinstance(one, BatchedLaunch) and last is calls[2]
    (table,) = one.tables
    assert table[:, 0].tolist() == [0, memory[2:].ctypes.data]


@pytest.mark.parametrize("cut", [pytest.param("equal", marks=pytest.mark.slow), "unequal"])
def test_steps_in_batches_are_the_same_to_the_last_bit(cut, monkeypatch):
    made = []

    def noted(*arguments):
        found = arrange_batches(*arguments)
        made.append(found[0])
        return found

    monkeypatch.setattr("batching_emulator.arrange_batches", noted)
    usual, _ = steps(cut, EmulatedBackend())
    assert not made
    found, _ = steps(cut, BatchingBackend())
    assert all(np.array_equal(one, other) for one, other in zip(found, usual, strict=True))
    launches = max(made, key=len)  # of a step
    forms = {one.entry.form for one in launches if isinstance(one, BatchedLaunch)}
    assert forms == {Form.MIXED} if cut == "unequal" else Form.ALIKE in forms
    assert len(launches) < 30, "27 blocks have more than 1,500"
