"""Where ranks compute: cores in shares, backends by name; on this machine read back from the kernel. GPUs are stood in
for by descriptions of machines that are elsewhere."""

import ctypes
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from described_machines import described, pairs
from ranks import run_ranks
from topology_recordings import level_matrix

from hiresx.device import cuda
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import single_process
from hiresx.placement import Seat, backend_selection, cores, place
from hiresx.placement.facts import PlacementFacts
from hiresx.placement.stored_placement import Placement
from hiresx.topology import memory, sysfs
from hiresx.topology.cpus import parse_list
from hiresx.topology.machine import GPU, Machine, NumaNode

CORES = len(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(CORES < 2, reason="binding ranks apart takes two cores")


# ---- --backend


@pytest.mark.parametrize(
    ("text", "hosts", "expected"),
    [
        ("auto", [0, 0, 1], ["auto"] * 3),
        ("cuda,cpu", [0, 0], ["cuda", "cpu"]),
        ("cuda:1,cpu:2", [0, 0, 0], ["cuda", "cpu", "cpu"]),
        # As long as every host has ranks, wherever they are numbered.
        ("cuda:1,cpu:1", [0, 1, 0, 1], ["cuda", "cuda", "cpu", "cpu"]),
        ("cuda, cpu", [0, 0, 1, 1], ["cuda", "cpu", "cuda", "cpu"]),
        ("emulated:1", [0], ["emulated"]),
    ],
)
def test_backends_by_rank(text, hosts, expected):
    assert backend_selection.by_rank(text, hosts) == expected


@pytest.mark.parametrize(
    ("text", "hosts", "message"),
    [
        ("gpu", [0], 'no backend "gpu"'),
        ("", [0], 'no backend ""'),
        ("cpu:0", [0], '"0" is no number of ranks'),
        ("cpu:two", [0], '"two" is no number'),
        ("cpu,cpu,cpu", [0, 0], "for 3 ranks, not 2"),
        ("cpu:1", [0, 0], "for 1 rank, not 2"),
        ("cuda,cpu", [0, 0, 1], "for 2 ranks, not 3"),  # one host has another number
    ],
)
def test_backends_that_do_not_fit(text, hosts, message):
    with pytest.raises(HiresxError, match=message) as caught:
        backend_selection.by_rank(text, hosts)
    assert "cuda:2,cpu:2" in caught.value.hint


# ---- cores


# Two sockets of four cores with two threads each, numbered to and fro as some firmware does.
EVEN_ODD = Machine(
    "example",
    numa=(NumaNode(0, 2**34, frozenset(range(0, 16, 2))), NumaNode(1, 2**34, frozenset(range(1, 16, 2)))),
    cores=tuple(frozenset([n, n + 8]) for n in range(8)),
)
ALL = frozenset(range(16))


def cut(ranks, machine=EVEN_ODD, with_gpu=None, allowed=ALL, launcher=""):
    known = {rank: PlacementFacts("host", allowed, launcher=launcher) for rank in ranks}
    return cores.cut(machine, known, with_gpu or {})


def test_ranks_without_gpus_take_whole_cores_node_by_node():
    found = cut([3, 5, 6, 9])
    assert [sorted(found[rank].cpus) for rank in (3, 5, 6, 9)] == [
        [0, 2, 8, 10], [4, 6, 12, 14], [1, 3, 9, 11], [5, 7, 13, 15]
    ]  # fmt: skip
    assert [share.node for share in found.values()] == [0, 0, 1, 1]
    assert all(share.cores == 2 and not share.kept and not share.why for share in found.values())
    three = cut([0, 1, 2])
    assert [three[n].cores for n in range(3)] == [2, 3, 3] and three[1].node is None
    assert frozenset().union(*(share.cpus for share in three.values())) == ALL
    assert sum(len(share.cpus) for share in three.values()) == len(ALL)


def test_a_cpuset_is_kept_to():
    found = cut([0, 1], allowed=frozenset([2, 10, 5]))
    assert [sorted(found[n].cpus) for n in (0, 1)] == [[2, 10], [5]]


def test_one_rank_takes_all():
    (share,) = cut([4]).values()
    assert share.cpus == ALL and share.cores == 8 and share.node is None and not share.kept


def test_more_ranks_than_cores_are_not_bound():
    found = cut(range(9))
    assert {share.cpus for share in found.values()} == {ALL} and {share.cores for share in found.values()} == {1}
    assert found[8].why == ("9 ranks take turns on 8 cores: not bound",)


def test_what_a_launcher_bound_is_kept():
    known = {n: PlacementFacts("host", frozenset([n, n + 8]), launcher="Open MPI") for n in range(4)}
    found = cores.cut(EVEN_ODD, known, {})
    assert {n: found[n].cpus for n in range(4)} == {n: known[n].cpus for n in range(4)}
    assert found[0].kept and found[0].cores == 1
    assert "4 of 8 cores are used; mpirun --bind-to none" in found[0].why[0]
    # A scheduler had its reasons, and where all cores are used there is nothing to gain.
    by_slurm = {n: replace(fact, launcher="Slurm") for n, fact in known.items()}
    assert cores.cut(EVEN_ODD, by_slurm, {})[0].why == ("the launcher has bound the ranks: kept",)
    # Bound to sockets: those of one share it.
    sockets = {n: PlacementFacts("host", EVEN_ODD.numa[n % 2].cpus) for n in range(4)}
    found = cores.cut(EVEN_ODD, sockets, {})
    assert [sorted(found[n].cpus) for n in range(4)] == [[0, 2, 8, 10], [1, 3, 9, 11], [4, 6, 12, 14], [5, 7, 13, 15]]


def test_ranks_with_gpus_stay_near_them():
    near = [GPU(n, cpus=EVEN_ODD.numa[n // 2].cpus, numa=n // 2) for n in range(4)]
    found = cut([0, 1, 2], with_gpu={0: near[2], 1: near[0], 2: near[3]})
    assert found[1].cpus == EVEN_ODD.numa[0].cpus  # alone on its node
    assert [sorted(found[n].cpus) for n in (0, 2)] == [[1, 3, 9, 11], [5, 7, 13, 15]]
    (share,) = cut([0], with_gpu={0: near[2]}).values()
    assert share.cpus == EVEN_ODD.numa[1].cpus and share.node == 1
    (far,) = cut([0], with_gpu={0: near[2]}, allowed=frozenset([0, 8])).values()
    assert far.cpus == {0, 8} and far.why == ("none of its CPUs is near its GPU",)
    # Where nobody knows what is near, any share will do.
    found = cut([0, 1], with_gpu={0: GPU(0), 1: GPU(1)})
    assert found[0].cpus | found[1].cpus == ALL and not found[0].cpus & found[1].cpus


def test_a_gpu_whose_cpus_nobody_tells_is_near_its_numa_node():
    near = [GPU(n, numa=node) for n, node in enumerate((1, 0, 1))]
    found = cut([0, 1, 2], with_gpu=dict(enumerate(near)))
    assert found[1].cpus == EVEN_ODD.numa[0].cpus and found[1].node == 0
    assert [sorted(found[n].cpus) for n in (0, 2)] == [[1, 3, 9, 11], [5, 7, 13, 15]]
    assert found[0].node == found[2].node == 1
    (share,) = cut([0], with_gpu={0: near[2]}).values()
    assert share.cpus == EVEN_ODD.numa[1].cpus
    # What is known of its CPUs counts more.
    (share,) = cut([0], with_gpu={0: GPU(0, numa=1, cpus=EVEN_ODD.numa[0].cpus)}).values()
    assert share.cpus == EVEN_ODD.numa[0].cpus


def test_with_and_without_gpus():
    near = [GPU(n, cpus=EVEN_ODD.numa[n].cpus) for n in range(2)]
    found = cut(range(5), with_gpu={0: near[1], 1: near[0]})
    assert [sorted(found[n].cpus) for n in (0, 1)] == [[1, 9], [0, 8]]
    rest = [found[n] for n in (2, 3, 4)]
    assert [share.cores for share in rest] == [2, 2, 2]
    assert sum(len(found[n].cpus) for n in range(5)) == len(ALL)


# ---- a process alone


def test_alone_nothing_changes():
    before = os.sched_getaffinity(0)
    made = place(single_process(), backends="cpu")
    assert os.sched_getaffinity(0) == before
    (seat,) = made.seats
    assert (seat.backend, seat.gpu, seat.bound, made.remarks) == ("cpu", None, "", ())
    from hiresx.device import backend

    assert made.backend.name == "cpu" and made.backend.threads == backend("cpu").threads == seat.threads
    assert made.lines()[1].split()[:3] == ["0", seat.host, "cpu"]
    assert json.loads(json.dumps(made.document()))["ranks"][0]["cpus"] == seat.cpus


def test_alone_without_a_gpu(monkeypatch):
    monkeypatch.setattr(cuda, "obstacle", lambda: HiresxError("the cuda backend finds no NVIDIA driver", "use cpu"))
    with pytest.raises(HiresxError, match=r"^the cuda backend finds no NVIDIA driver\n") as caught:
        place(single_process(), backends="cuda")
    assert caught.value.hint == "use cpu"
    assert place(single_process()).backend.name == "cpu"


def test_memory_is_preferred_on_a_node():
    code = """
import ctypes
from hiresx.topology import memory, sysfs
node = sysfs.discover().numa[0].index
said = memory.prefer(node)
mode, mask = ctypes.c_int(-1), (ctypes.c_ulong * 16)()
libc = ctypes.CDLL(None)
number = {238: 239, 237: 236, 261: 260}[memory._SET_MEMPOLICY[__import__("platform").machine()]]
libc.syscall(number, ctypes.byref(mode), mask, ctypes.c_ulong(1024), None, 0)
print(said or (mode.value, mask[0] == 1 << node), memory.prefer(1000) != "")
"""
    if not sysfs.discover().numa or not ctypes.CDLL(None):
        pytest.skip("the kernel shows no NUMA node")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, True) True" or "cannot be preferred" in done.stdout


@pytest.mark.parametrize("node", [0, 1, 63, 64, 130])
def test_the_bit_of_the_node_is_set(monkeypatch, node):
    """Whatever nodes this machine has: what the kernel would be told."""
    told = []

    class Kernel:
        def syscall(self, number, mode, words, bits):
            assert bits.value == 8 * ctypes.sizeof(words) + 1
            told.append([64 * n + bit for n, word in enumerate(words) for bit in range(64) if word >> bit & 1])
            return 0

    monkeypatch.setattr(memory.ctypes, "CDLL", lambda *_, **__: Kernel())
    monkeypatch.setattr(memory.platform, "machine", lambda: "x86_64")
    assert memory.prefer(node) == "" and told == [[node]]
    monkeypatch.setattr(memory.platform, "machine", lambda: "a processor whose number is not known")
    assert memory.prefer(node) == "" and told == [[node]]


# ---- several ranks, on this machine


def _placed(comm, backends="cpu", bytes_=None):
    from hiresx.topology.binding import bound_cpus

    made = place(comm, backends=backends, bytes_=bytes_)
    return bound_cpus(), made.backend.name, getattr(made.backend, "threads", None), made.seats


def _refused(comm, backends):
    try:
        place(comm, backends=backends)
    except HiresxError as error:
        return error.message, error.everywhere
    return None


def _placed_in_turn(comm):
    del os.environ["OMP_NUM_THREADS"]
    own = _placed(comm)
    os.environ["OMP_NUM_THREADS"] = "3"
    wanted = _placed(comm, "cpu:1,emulated:1", [[0.0]])  # the second rank has no part, and sends nothing
    return own, wanted, [_refused(comm, backends) for backends in ("cpu,cpu,cpu", "cpu,cuda", "cuda")]


@two_cores
@pytest.mark.slow
def test_two_ranks():
    found = run_ranks(2, _placed_in_turn)
    (first, second), wanted = (own for own, _, _ in found), [wanted for _, wanted, _ in found]
    assert not first[0] & second[0] and first[0] | second[0] == os.sched_getaffinity(0)
    for rank, (cpus, name, threads, seats) in enumerate((first, second)):
        seat = seats[rank]
        assert (name, seat.rank) == ("cpu", rank) and threads == seat.threads == seat.cores >= 1
        assert len(cpus) >= seat.cores and seat.bound.split()[0] in ("hwloc", "sched_setaffinity")
    assert first[3] == second[3]
    # Placed once more in the same process, out of all the cores; threads as the user says.
    assert [cpus for cpus, *_ in wanted] == [first[0], second[0]]
    assert [(name, threads) for _, name, threads, _ in wanted] == [("cpu", 3), ("emulated", 3)]
    assert wanted[0][3][0].bound != "the launcher"
    assert "OMP_NUM_THREADS=3" in wanted[0][3][0].why
    refused = [errors for _, _, errors in found]
    assert refused[0] == refused[1]
    assert refused[0][0] == ('--backend "cpu,cpu,cpu" is for 3 ranks, not 2', True)
    if cuda.obstacle():
        (one, everywhere), (both, _) = refused[0][1:]
        assert everywhere
        assert one.startswith(f"rank 1 on host {os.uname().nodename} is to compute on a GPU: ")
        assert both.startswith(f"rank 0 on host {os.uname().nodename} (and 1 other) is to compute on a GPU: ")


def _left_alone(comm):
    from hiresx.topology.binding import bound_cpus

    del os.environ["OMP_NUM_THREADS"]
    made = place(comm, backends="cpu", bind=False)
    return bound_cpus(), made.seats[comm.rank], made.backend.threads


@two_cores
@pytest.mark.slow
def test_ranks_are_left_where_they_are():
    """Nobody binds them; each still has the threads of its share."""
    every = frozenset(os.sched_getaffinity(0))
    for cpus, seat, threads in run_ranks(2, _left_alone):
        assert cpus == every == parse_list(seat.cpus) and seat.bound == "" and seat.numa is None
        assert 1 <= threads == seat.cores < CORES and "not bound, as was asked" in seat.why


def test_the_option_reaches_the_placement(monkeypatch, tmp_path, capsys):
    from hiresx import cli

    def spy(*_, bind, **__):
        raise HiresxError(f"bind is {bind}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hiresx.simulation.simulation.place", spy)
    for option, expected in ((["--no-bind"], False), ([], True)):
        assert cli.execute(["run", "sod", "--steps", "1", "--backend", "cpu", *option]) == 2
        assert f"bind is {expected}" in capsys.readouterr().err


def _free_threads(comm):
    del os.environ["OMP_NUM_THREADS"]
    return _placed(comm)


@pytest.mark.skipif(CORES > 8, reason="takes more ranks than cores")
@pytest.mark.slow
def test_many_ranks_take_turns():
    ranks = CORES + 1
    for cpus, _, threads, seats in run_ranks(ranks, _free_threads):
        assert cpus == os.sched_getaffinity(0) and threads == 1
        assert f"{ranks} ranks take turns" in seats[0].why[0]


PAIR = described(level_matrix(3, ("PIX", [(0, 1)])), ["0-999"] * 3)


def _on_fake_gpus(comm, bytes_):
    """Both ranks see three GPUs, in an order of CUDA's own; what is made on them, and when, is noted."""
    from hiresx import placement
    from hiresx.topology.binding import bound_cpus

    order = (2, 0, 1)
    devices = [cuda.CudaDevice(n, "H200", PAIR.gpus[gpu].bus_id.upper(), False) for n, gpu in enumerate(order)]
    cuda.obstacle, cuda.devices = (lambda: None), (lambda: devices)
    placement.discover = lambda: PAIR
    made = []

    def backend(name, number):
        made.append((name, number, bound_cpus()))
        return type("Backend", (), {"name": name, "threads": 1})

    placement.backend = backend
    seats = placement.place(comm, backends="cuda,auto", bytes_=bytes_).seats
    ((name, number, cpus),) = made
    again = placement.place(comm, backends="cpu")
    return order[number], name, cpus, seats, again.seats[comm.rank].cpus


@two_cores
@pytest.mark.slow
def test_the_gpu_is_chosen_and_the_rank_bound_before_anything_is_on_the_gpu():
    found = run_ranks(2, _on_fake_gpus, pairs(2, (0, 1, 1e6)))
    at = [gpu for gpu, *_ in found]
    assert sorted(at) == [0, 1]  # under one switch, by the numbers of the host
    for rank, (gpu, name, cpus, seats, again) in enumerate(found):
        assert (name, seats[rank].gpu, seats[rank].gpu_pci) == ("cuda", gpu, PAIR.gpus[gpu].bus_id)
        assert cpus < os.sched_getaffinity(0) and seats[rank].threads is None
        assert again == seats[rank].cpus  # the second case is placed out of all cores again
    assert not found[0][2] & found[1][2]


# ---- what is told


def seat(rank, **more) -> Seat:
    values = {
        "rank": rank, "host": "n1", "backend": "cpu", "gpu": None, "gpu_name": "", "gpu_uuid": "", "gpu_pci": "",
        "cpus": "0-3", "cores": 4, "numa": 0, "threads": 4, "bound": "hwloc",
    }  # fmt: skip
    return Seat(**(values | more))


def test_the_table():
    with_gpu = {"backend": "cuda", "gpu": 1, "gpu_name": "H200", "gpu_pci": "0000:3b:00.0", "threads": None}
    made = Placement((seat(0, **with_gpu, why=("x",)), seat(1), seat(2, why=("x", "y"))), None, ("NVML is missing",))
    lines = made.lines({"kB/step": [1, 22, 333]})
    assert lines[0].split() == ["rank", "host", "backend", "GPU", "CPUs", "NUMA", "threads", "kB/step"]
    assert "1 H200 0000:3b:00.0" in lines[1] and lines[3].endswith("333")
    assert lines[4:] == ["  ranks 0,2: x", "  rank 2: y", "  NVML is missing"]
    assert "GPU" not in Placement((seat(0),), None).lines()[0]
    assert made.document()["ranks"][2]["why"] == ["x", "y"]


def test_the_table_of_many_ranks_has_a_line_for_each_host():
    seats = [seat(n, host=f"n{n // 20}", cpus=str(n), cores=1, numa=n % 2) for n in range(40)]
    lines = Placement(tuple(seats), None).lines({"kB/step": range(40)})
    assert [line.split()[:2] for line in lines] == [["rank", "host"], ["0-19", "n0"], ["20-39", "n1"]]
    assert "20 cores" in lines[1]


def test_a_kernel_that_does_not_say_what_is_allowed_is_asked_for_the_affinity(monkeypatch):
    from pathlib import Path

    from hiresx.topology import binding

    monkeypatch.setattr(Path, "read_text", lambda path, encoding: "Name: python\n")
    monkeypatch.setattr(binding.os, "sched_getaffinity", lambda process: {3, 5} if process == 0 else {0})
    assert binding.bound_cpus() == {3, 5}


def test_a_thread_that_ends_during_the_binding_is_left_out(monkeypatch):
    from hiresx.topology import binding

    ended, done = threading.Thread(), threading.Event()
    waiting = threading.Thread(target=done.wait)
    for thread in (ended, waiting):
        thread.start()
    ended.join()
    monkeypatch.setattr(binding, "_threads", lambda: iter([ended.native_id, waiting.native_id]))
    cpus = frozenset([min(os.sched_getaffinity(0))])
    made = binding.bind(cpus)
    bound = os.sched_getaffinity(waiting.native_id)
    done.set()
    assert bound == cpus and made.by == "sched_setaffinity"
    assert not any("refused" in warning for warning in made.warnings)
