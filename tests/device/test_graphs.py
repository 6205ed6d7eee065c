"""Launches recorded as a CUDA graph: what depends on each other stays in order, what does not goes side by side.
Streams that note what they are given play the GPU."""

import ctypes
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.ctypeslib import as_array

from hiresx.device import dependency_graph, graphs
from hiresx.device.batches import BatchedLaunch
from hiresx.device.call import Call
from hiresx.device.dependency_graph import RecordingProgram
from hiresx.device.graphs import FIRST, Graph
from hiresx.kernels import Signature

ARGUMENTS = (("const real *", "x"), ("real *", "y")), "const real *x, real *y", "KERNEL"
SCALE, PACK, UNPACK = (
    Signature(name, *ARGUMENTS) for name in ("scale", "pack_signalled_halo", "unpack_signalled_halo")
)


def scale(x, y, signature=SCALE):
    return Call(signature, (4, 1, 1), {"x": x, "y": y}, None)


class Event:
    def __init__(self, disable_timing):
        self.before = None

    def record(self, stream):
        self.before, self.joined = set(stream.behind), stream.joined


class Stream:
    """What it holds are numbers of launches; `behind`: all that must be done before what comes next; `joined`: whether
    it waits for the stream that is recorded."""

    capturing = None

    def __init__(self, non_blocking=False, priority=None):
        self.behind, self.priority, self.joined = set(), priority, False

    def begin_capture(self, mode):
        Stream.capturing, self.joined = [], True

    def end_capture(self):
        recorded, Stream.capturing = Stream.capturing, None
        self.recorded = recorded
        return SimpleNamespace(launch=lambda stream: [launch() for launch, _ in recorded])

    def wait_event(self, event):
        self.behind |= event.before
        self.joined |= event.joined


class Array(np.ndarray):
    """With the address where CuPy has it."""

    data = property(lambda self: SimpleNamespace(ptr=self.ctypes.data))


class Program(RecordingProgram):
    def __init__(self):
        self.made, self.order, self.loaded = 0, [], set()

    def shape(self, call):
        return (1, 1, 1), (4, 1, 1)

    def load_batches(self, launches):
        return list(launches)

    def launch_batch(self, stream, guard, one):
        """Of launches whose arrays are all that is different."""
        (table,) = one.tables
        rows = [[as_array((ctypes.c_double * 4).from_address(address)) for address in row] for row in table.tolist()]

        def launch():
            for x, y in rows:
                self.launch(guard, x, y)

        self._put(stream, one, launch)

    def launch(self, guard, x, y):
        self.made += 1
        if guard is None or guard[0] >= 0:
            y[...] = 2 * x[: len(y)]

    def launch_on(self, stream, guard, call):
        self._put(stream, call, lambda: self.launch(guard, *call.arguments.values()))

    def _put(self, stream, one, launch):
        if Stream.capturing is None:
            launch()
            return
        number = len(Stream.capturing)
        Stream.capturing.append((launch, set(stream.behind)))
        self.order.append((number, one, stream))
        stream.behind.add(number)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(graphs, "LEAST", 1000)  # launches stay single, but where a test says otherwise
    monkeypatch.setattr(graphs, "IN_ORDER", 1)
    runtime = SimpleNamespace(streamCaptureModeRelaxed=2)
    return SimpleNamespace(cuda=SimpleNamespace(Stream=Stream, Event=Event, runtime=runtime))


def arrays(count: int) -> list[Array]:
    return [np.full(4, float(n + 1)).view(Array) for n in range(count)]


def test_a_chain_stays_in_order_and_the_rest_is_side_by_side(gpu, monkeypatch):
    monkeypatch.setattr(graphs, "BRANCHES", 4)
    a = arrays(9)
    chain = [scale(a[n], a[n + 1]) for n in range(3)]
    others = [scale(a[4], a[n]) for n in range(5, 9)]
    program, stream = Program(), Stream()
    graph = Graph(gpu, program, [others[0], *chain, *others[1:]], stream)
    graph()
    assert program.made == 7 and (a[3] == 8).all() and (a[8] == 10).all()
    a[0][...] = 3
    graph()
    assert (a[3] == 24).all() and program.made == 14
    behind = [before for _, before in stream.recorded]
    # the others and the chain each for themselves, but for the last one, for which there is no branch
    assert behind == [set(), set(), {1}, {1, 2}, set(), set(), {0}]
    assert stream.behind == set(range(7)), "what comes next waits for all branches"
    graph()
    assert program.made == 21


def test_nobody_waits_for_more_than_what_it_needs(gpu):
    a = arrays(7)
    calls = [scale(a[0], a[1]), scale(a[0], a[2]), [scale(a[1], a[3]), scale(a[2], a[4])], scale(a[3], a[5])]
    calls += [[scale(a[5], a[6][:2]), scale(a[4], a[6][2:])], scale(a[6], a[0])]
    stream = Stream()
    graph = Graph(gpu, Program(), calls, stream)
    graph()
    assert (a[6][:2] == 16).all() and (a[6][2:] == 8).all()
    graph()
    behind = [before for _, before in stream.recorded]
    assert behind == [set(), set(), {0}, {1}, {0, 2}, {0, 2, 4}, {1, 3}, {0, 1, 2, 3, 4, 5, 6}]


def test_what_is_read_is_not_overwritten_before(gpu):
    x, y, z = arrays(3)
    stream = Stream()
    graph = Graph(gpu, Program(), [scale(x, y), scale(z, x)], stream)
    graph()
    graph()
    assert [before for _, before in stream.recorded] == [set(), {0}]


def test_memory_that_nobody_writes_is_left_out():
    x, y, z = arrays(3)
    calls = [scale(x, y), scale(x[1:], z[:2]), scale(z[2:], y), scale(z[1:], x[3:])]
    assert dependency_graph.dependencies(calls) == [[], [], [0], [0, 1]]
    touched, _ = dependency_graph._memory_accesses(calls[:2], dependency_graph._bytes)
    assert [[write for _, _, write in of_call] for (of_call,) in touched] == [[True], [True]]


def test_one_launch_is_no_graph(gpu):
    program, (x, y) = Program(), arrays(2)
    graph = Graph(gpu, program, [scale(x, y)], Stream())
    for _ in range(3):
        graph()
    assert program.made == 3 and Stream.capturing is None


def test_launches_that_run_a_few_times_are_not_arranged_and_guarded_ones_at_once(gpu, monkeypatch):
    monkeypatch.setattr(graphs, "IN_ORDER", 3)
    x, y, z, guard = arrays(4)
    free, guarded = (Graph(gpu, Program(), [scale(x, y), scale(x, z)], Stream(), g) for g in (None, guard))
    for times in (1, 2, 3, 4):
        free()
        guarded()
        assert (free._launches is not None) == (times > 3)
        assert (guarded._launches is not None) == (times > 1)


def test_guarded_launches_of_kernels_that_are_loaded_are_a_graph_at_once(gpu, monkeypatch):
    """As those of a step are after a change of blocks. Without a guard, or where a kernel is new, they are not."""
    monkeypatch.setattr(graphs, "LEAST", 2)
    program, guard = Program(), arrays(1)[0]
    x, y, u, v = arrays(4)
    batch, mixed = [scale(x, y), scale(u, v)], [scale(x, y), scale(u, v), scale(x, u, PACK)]
    made = []
    for calls, given in ((batch, guard), (batch, guard), (batch, None), (mixed, guard), (mixed, guard)):
        graph, before = Graph(gpu, program, calls, Stream(), given), program.made
        graph()
        made.append(graph._graph is not None)
        assert program.made - before == len(calls) and (y == 2 * x).all()
        for _ in range(3):
            graph()
    assert made == [False, True, False, False, True]


def test_nothing_is_no_graph(gpu):
    graph = Graph(gpu, Program(), [], Stream())
    graph()
    graph()


def test_a_recording_that_fails_ends(gpu):
    x, y, z = arrays(3)
    program = Program()
    graph = Graph(gpu, program, [scale(x, y), scale(y, z)], Stream())
    graph()
    program.launch_on = lambda *call: 1 / 0
    with pytest.raises(ZeroDivisionError):
        graph()
    assert Stream.capturing is None


def test_a_list_is_side_by_side_whatever_it_shares(gpu):
    x, y, z = arrays(3)
    program, stream = Program(), Stream()
    graph = Graph(gpu, program, [[scale(x, y), scale(y, z)]], stream)
    graph()
    graph()
    assert [before for _, before in stream.recorded] == [set(), set()]


def test_a_guard_keeps_all_from_being_done(gpu):
    x, y, z, guard = arrays(4)
    calls = [scale(x, y), scale(x, z)]
    graph = Graph(gpu, Program(), calls, Stream(), guard)
    for sign, wanted in ((-1.0, 2.0), (1.0, 4.0), (-1.0, 4.0)):
        guard[...] = sign
        graph()
        assert (y == wanted).all() and (z == (wanted if sign > 0 or wanted > 2 else 3)).all()
        x[...] = 2.0


def test_launches_are_noted_in_place_of_made(gpu):
    x, y, z = arrays(3)
    program = Program()
    calls = [scale(x, y), [scale(x, z)]]
    graph = Graph(gpu, program, calls, Stream())
    with program.recording() as noted:
        graph()
    assert noted == calls and program.made == 0 and program.recorded is None


def test_messages_go_beside_the_levels_and_are_awaited_where_they_are_needed(gpu):
    a = arrays(8)
    come, unpacked = scale(a[0], a[1], PACK), scale(a[1], a[2], UNPACK)
    work = [scale(a[4], a[5]), scale(a[5], a[6])]
    last = scale(a[2], a[6])
    program, stream = Program(), Stream()
    graph = Graph(gpu, program, [come, work[0], unpacked, work[1], last], stream)
    graph()
    graph()
    assert (a[6] == 2 * a[2]).all()
    at = {id(call): number for number, call, _ in program.order}
    behind = {id(call): stream.recorded[number][1] for number, call, _ in program.order}
    assert behind[id(unpacked)] == {at[id(come)]}, "no work is waited for"
    assert behind[id(work[1])] == {at[id(work[0])]}, "no message is waited for"
    assert behind[id(last)] == {at[id(call)] for call in (come, unpacked, *work)}
    urgent = {call.name: on.priority == FIRST for _, call, on in program.order}
    assert urgent == {"pack_signalled_halo": True, "unpack_signalled_halo": False, "scale": False}


@pytest.mark.parametrize("seed", range(20))
def test_what_depends_on_each_other_keeps_its_order_with_messages_beside(gpu, seed):
    chance = np.random.default_rng(seed)
    a = arrays(6)
    calls = []
    for _ in range(25):
        pairs = [chance.choice(6, 2, replace=False) for _ in range(1 if chance.random() < 0.8 else 2)]
        kind = (SCALE, SCALE, PACK, UNPACK)[chance.integers(4)]
        some = [scale(a[x], a[y], kind) for x, y in pairs]
        calls.append(some[0] if len(some) == 1 else some)
    program, stream = Program(), Stream()
    graph = Graph(gpu, program, calls, stream)
    graph()
    graph()
    behind = {id(call): stream.recorded[number][1] for number, call, _ in program.order}
    at = {id(call): number for number, call, _ in program.order}
    items = [some if isinstance(some, list) else [some] for some in calls]
    messages = [item for item in items if item[0].signature is UNPACK]
    for earlier, later in itertools.pairwise(messages):
        assert all(at[id(one)] in behind[id(other)] for one in earlier for other in later), "messages keep their order"
    assert len(at) == sum(map(len, items))
    for n, later in enumerate(items):
        for call in later:
            for earlier in (other for some in items[:n] for other in some):
                x, y = call.arguments.values()
                u, v = earlier.arguments.values()
                if y is u or y is v or x is v:
                    assert at[id(earlier)] in behind[id(call)]
    assert {at for on in [stream] for at in on.behind} == set(at.values()), "all is joined at the end"


def test_what_shares_one_number_alone_stays_in_order(gpu):
    """The last of what is written is the first of what is read."""
    memory = np.arange(8.0).view(Array)
    x, y = arrays(2)
    stream = Stream()
    graph = Graph(gpu, Program(), [scale(x, memory[:4]), scale(memory[3:7], y)], stream)
    graph()
    graph()
    assert [before for _, before in stream.recorded] == [set(), {0}]


def test_every_stream_is_a_part_of_the_recording(gpu):
    """A launch on a stream that waits for nothing of it would be made at once, and the recording refused by CUDA."""
    a = arrays(6)
    program, stream = Program(), Stream()
    graph = Graph(gpu, program, [scale(a[0], a[n]) for n in range(1, 6)], stream)
    graph()
    graph()
    streams = [on for _, _, on in program.order]
    assert len(set(map(id, streams))) == 5 and all(on.joined for on in streams)


def test_what_is_the_same_for_several_blocks_is_one_launch(gpu, monkeypatch):
    monkeypatch.setattr(graphs, "LEAST", 3)
    a = arrays(8)
    chains = [[scale(a[n], a[n + 4]), scale(a[n + 4], a[n])] for n in range(4)]
    program, stream = Program(), Stream()
    graph = Graph(gpu, program, [call for chain in chains for call in chain], stream)
    for times in (1, 2, 3, 4):
        graph()
        assert program.made == 8 * times
        assert all((a[n] == 4.0**times * (n + 1)).all() for n in range(4))
        assert (graph._graph is not None) == (times > 2), "what is new is made in order before it is recorded"
    assert [len(one.tables[0]) for _, one, _ in program.order] == [4, 4]
    assert all(isinstance(one, BatchedLaunch) for _, one, _ in program.order)
    assert [before for _, before in stream.recorded] == [set(), {0}]


def test_few_launches_stay_single(gpu, monkeypatch):
    monkeypatch.setattr(graphs, "LEAST", 3)
    a = arrays(4)
    program, stream = Program(), Stream()
    graph = Graph(gpu, program, [scale(a[0], a[n]) for n in range(1, 4)], stream)
    graph()
    graph()
    assert graph._graph is not None and len(stream.recorded) == 3
