"""Threads that share the work of a CPU: what may run side by side, who does what, and that they wait without harm.

Nothing here looks at the clock: what is counted are parts, levels and meetings of threads.
"""

import ctypes
import hashlib
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest
from launch_times import TimingBackend
from vortices import taylor_green

from hiresx.base import threads as parallel
from hiresx.case import load
from hiresx.device import backend, thread_pool
from hiresx.device.call import Call
from hiresx.device.dependency_graph import levels
from hiresx.kernels import Signature
from hiresx.solver import Solver

# ---- what depends on what


def signature(**kinds) -> Signature:
    """A kernel by the types of its arguments."""
    return Signature("", tuple((kind, name) for name, kind in kinds.items()), "", "KERNEL")


SIGNATURES = {
    "set": signature(target="real *"),
    "copy": signature(source="const real *", target="real *", n="int"),
    "add": signature(a="const real *", b="const real *", target="real *"),
}


def call(name, *values):
    """A launch that nobody makes."""
    named = {called: value for (_, called), value in zip(SIGNATURES[name].arguments, values, strict=True)}
    return Call(SIGNATURES[name], (1, 1, 1), named, None)


def test_what_does_not_depend_on_each_other_shares_a_level():
    a, b, c = (np.zeros(4) for _ in range(3))
    assert levels([]) == []
    assert levels([call("set", a), call("set", b)]) == [0, 0]
    assert levels([call("copy", a, b, 1), call("copy", a, c, 1)]) == [0, 0], "both only read a"
    assert levels([call("set", a), call("copy", a, b, 1), call("set", c)]) == [0, 1, 0]
    assert levels([call("copy", a, b, 1), call("set", a)]) == [0, 1], "written after it was read"
    assert levels([call("set", a), call("set", a)]) == [0, 1], "the later one stays"


def test_views_of_one_array_depend_where_they_overlap():
    whole = np.zeros((8, 5))
    assert levels([call("set", whole[:4]), call("set", whole[4:])]) == [0, 0]
    assert levels([call("set", whole[:4]), call("set", whole[3:])]) == [0, 1]
    assert levels([call("set", whole[1]), call("set", whole), call("set", whole[2])]) == [0, 1, 2]
    assert levels([call("set", whole[:0]), call("set", whole)]) == [0, 0]


def test_a_list_shares_a_level_and_what_follows_waits_for_all_of_it():
    a, b, c = (np.zeros(4) for _ in range(3))
    calls = [call("set", a), [call("copy", a, b, 1), call("copy", b, c, 1)], call("set", c), call("set", b)]
    assert levels(calls) == [0, 1, 1, 2, 2]


@pytest.mark.parametrize("seed", range(20))
def test_levels_in_any_order_do_as_the_list_does(seed):
    dice = random.Random(seed)

    def some() -> slice:
        low = dice.randrange(30)
        return slice(low, low + dice.randint(1, 6))

    def perform(calls, memory):
        for name, number, *views in calls:
            *sources, target = (memory[view] for view in views)
            target[:] = number if name == "set" else number * target + sum(float(s.sum()) for s in sources) % 97

    kinds = {"set": 1, "copy": 2, "add": 3}
    calls = [
        (name, n + 2, *(some() for _ in range(kinds[name]))) for n, name in enumerate(dice.choices([*kinds], k=40))
    ]
    inorder, shuffled, arrays = np.arange(36.0), np.arange(36.0), np.arange(36.0)
    perform(calls, inorder)
    noted = [call(name, *(arrays[v] for v in views), *([1] * (name == "copy"))) for name, _, *views in calls]
    # Of two calls that write in part what they read, the sum above is taken first: as one kernel would.
    found = levels(noted)
    assert max(found) < len(calls) - 1
    order = sorted(range(len(calls)), key=lambda n: (found[n], dice.random()))
    perform([calls[n] for n in order], shuffled)
    assert np.array_equal(inorder, shuffled)


# ---- the thread pool: levels of Python functions in place of kernels

# The longest for which a pool rests that earlier tests kept waiting.
REST = 0.7

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong)


class Work:
    """Levels of calls, each (function(first, last), parts, weight of a part)."""

    def __init__(self, *groups):
        self._kept, rows = [], []
        for group in groups:
            calls = (thread_pool.PoolCall * len(group))()
            before = 0
            for call, (function, parts, weight) in zip(calls, group, strict=True):
                made = FUNCTION(lambda words, first, last, function=function: function(first, last))
                self._kept.append(made)
                call.function = ctypes.cast(made, ctypes.c_void_p).value
                call.first, call.parts, call.weight = before, parts, weight
                before += parts
            rows.append((ctypes.addressof(calls), len(group), before, sum(p * w for _, p, w in group)))
            self._kept.append(calls)
        self._table = (thread_pool.Level * len(rows))(*rows)

    def run(self, threads: int, patience: int = thread_pool.SPIN) -> None:
        thread_pool.library().hx_run(ctypes.addressof(self._table), len(self._table), threads, patience)


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 2])
@pytest.mark.parametrize("patience", [0, thread_pool.SPIN])
def test_every_part_once_and_level_after_level(threads, patience):
    dice = random.Random(threads)
    for _ in range(20):
        shape = [[(dice.choice([0, 1, 3, 50]), dice.choice([1, 300, 5000])) for _ in range(4)] for _ in range(5)]
        done = [Counter() for _ in shape]
        early = []

        def work(level, call, first, last, done=done, shape=shape, early=early):
            if level and done[level - 1].total() < sum(parts for parts, _ in shape[level - 1]):
                early.append((level, call))
            done[level].update((call, part) for part in range(first, last))

        groups = [
            [(lambda a, b, at=(n, c): work(*at, a, b), parts, weight) for c, (parts, weight) in enumerate(calls)]
            for n, calls in enumerate(shape)
        ]
        Work(*groups).run(threads, patience)
        assert not early
        assert done == [Counter((c, p) for c, (parts, _) in enumerate(calls) for p in range(parts)) for calls in shape]


def test_others_take_part():
    time.sleep(REST)
    meeting, names = threading.Barrier(3, timeout=20), set()

    def part(first, last):
        if (name := threading.get_ident()) not in names:
            names.add(name)
            meeting.wait()  # until three have come: the parts of one are not done by another

    Work([(part, 60, 1000)]).run(3)
    assert len(names) == 3 and threading.get_ident() in names


def test_small_work_wakes_nobody():
    before = thread_pool.counts()
    for _ in range(10):
        Work([(lambda a, b: None, 10, 10)], [(lambda a, b: None, 3, 100)]).run(4)
    assert thread_pool.counts() == before


def test_a_second_thread_of_the_program_works_for_itself():
    own = []

    def inner(first, last):
        own.extend([threading.get_ident()] * (last - first))

    def outer(first, last):
        for _ in range(first, last):  # one call may take several parts
            Work([(inner, 8, 1000)]).run(2)

    Work([(outer, 4, 10000)]).run(2)
    assert sum(Counter(own).values()) == 4 * 8  # and it came to an end


def test_after_fork_there_is_a_new_thread_pool():
    Work([(lambda a, b: None, 64, 1000)]).run(2)
    done = []
    child = os.fork()
    if child == 0:
        Work([(lambda a, b: done.append((a, b)), 64, 1000)]).run(2)
        os._exit(0 if sum(b - a for a, b in done) == 64 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_who_holds_the_others_up_is_left_out():
    """A thread that other programs keep from its core for most of the time: the caller soon works alone."""
    me = threading.get_ident()

    def part(first, last):
        time.sleep(0.0001 if threading.get_ident() == me else 0.03)

    time.sleep(REST)
    work = Work([(part, 8, 5000)])
    before = thread_pool.counts().runs
    for _ in range(100):
        work.run(2)
    assert 0 < thread_pool.counts().runs - before < 50


def test_who_helps_is_kept():
    def part(first, last):
        time.sleep(0.0002)

    work = Work([(part, 64, 5000)])

    def helped() -> int:
        before = thread_pool.counts().runs
        time.sleep(REST)
        for _ in range(30):
            work.run(2)
        return thread_pool.counts().runs - before

    assert any(helped() > 20 for _ in range(3)), "others may have the cores for some time, not always"


def test_waiting_takes_no_processor_time():
    Work([(lambda a, b: None, 64, 1000)]).run(5)
    time.sleep(0.01)
    began = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - began < 0.05


def test_patience():
    cores = len(os.sched_getaffinity(0))
    assert thread_pool.spin_time(cores, {}) == thread_pool.SPIN <= 100_000, "far below what a core is given away for"
    assert thread_pool.spin_time(cores + 1, {}) == 0, "no core is left to wait on"
    assert thread_pool.spin_time(1, {"OMP_WAIT_POLICY": "PASSIVE"}) == 0
    assert thread_pool.spin_time(cores + 1, {"OMP_WAIT_POLICY": " active"}) > 100 * thread_pool.SPIN
    assert parallel.requested_threads({"OMP_NUM_THREADS": "4,2"}) == 4 and parallel.requested_threads({}) is None


# ---- a time step

JET = ["grid.points_per_height=12", "grid.boundary_layer_points=3", "time.steps=3"]
FLOWS = {
    "jet": lambda: load("planar-jet", "quick", JET),
    "vortex": lambda: taylor_green("grid.n=[18, 14, 16]"),
    "local": lambda: taylor_green("grid.n=[18, 14, 16]", "time.local=true", "time.steps=3", "output.every_steps=3"),
}


def digest(solver: Solver) -> str:
    held = b"".join(np.ascontiguousarray(s.interior(solver.backend.to_host(s.q))).tobytes() for s in solver.states)
    return hashlib.sha256(held).hexdigest()


@pytest.mark.parametrize("flow", FLOWS)
def test_results_do_not_depend_on_threads(flow):
    case, found = FLOWS[flow](), {}
    for threads in (1, 2, 3, 7):
        device = backend("cpu")
        device.threads = threads
        solver = Solver(case, device)
        solver.initialize()
        for _ in range(3):
            solver.step()
        found[threads] = digest(solver), repr(solver.dt), repr(solver.norms())
    assert len(set(found.values())) == 1


def test_a_stage_does_what_its_launches_do_one_by_one():
    case, found = FLOWS["jet"](), []
    device = backend("cpu")
    device.threads = 3
    for where in (device, TimingBackend(device)):  # which makes every launch by itself
        solver = Solver(case, where)
        solver.initialize()
        for _ in range(2):
            solver.step()
        found.append(digest(solver))
    assert found[0] == found[1]


def test_threads_meet_once_for_a_task_of_all_blocks():
    """The jet's four blocks made nearly a hundred launches in each stage, each with threads of its own."""
    device = backend("cpu")
    timed = TimingBackend(device)
    launches = Solver(FLOWS["jet"](), timed)
    launches.initialize()
    timed.launches = []
    launches.step()
    device.threads = 2
    solver = Solver(FLOWS["jet"](), device)
    solver.initialize()
    solver.step()  # launches are arranged from the second run on
    time.sleep(REST)
    before = thread_pool.counts().runs
    solver.system.step(solver.time, solver.dt)
    met = thread_pool.counts().runs - before
    assert len(timed.launches) > 250
    assert 0 < met <= len(solver.tasks) * solver.integrator.stages + 1 < len(timed.launches) / 5


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_the_largest_part_leaves_no_thread_idle(threads):
    """Whoever takes the last part keeps the others waiting for no longer than it takes."""
    device = backend("cpu")
    solver = Solver(load("planar-jet", "quick"), device)
    calls = [call for block in solver.terms.inviscid for call in block.early]
    for level in range(2):
        parts = [solver.program.kernel(call.name).cut(call.packed) for call in calls]
        some = [p for p, n in zip(parts, levels(calls), strict=True) if n == level]
        whole = sum(p.parts * p.weight for p in some)
        assert max(p.weight for p in some) < 0.1 * whole / threads + 0.05 * whole


def test_the_environment_is_obeyed():
    code = "from hiresx.device import backend; print(*backend('cpu').thread_settings)"
    environment = os.environ | {"OMP_NUM_THREADS": "3", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "0"]
