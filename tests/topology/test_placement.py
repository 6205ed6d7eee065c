"""Where ranks compute: GPUs by bytes and links, cores in shares, backends by name; on this machine read back from the
kernel. GPUs are stood in for: a fake driver, and descriptions of machines that are elsewhere."""

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from ranks import run_ranks
from topology_recordings import UNEVEN, level_matrix, smi

from hiresx.device import cuda
from hiresx.errors import HiresxError
from hiresx.placement import Seat, cores, facts, gpus, place, wishes
from hiresx.placement.facts import Facts
from hiresx.placement.record import Placement
from hiresx.team import alone
from hiresx.topology import memory, sysfs
from hiresx.topology.machine import GPU, NIC, Machine, NumaNode
from hiresx.topology.parse_smi import parse_smi

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
    assert wishes.by_rank(text, hosts) == expected


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
        wishes.by_rank(text, hosts)
    assert "cuda:2,cpu:2" in caught.value.mend


# ---- cores

# Two sockets of four cores with two threads each, numbered to and fro as some firmware does.
EVEN_ODD = Machine(
    "example",
    numa=(NumaNode(0, 2**34, frozenset(range(0, 16, 2))), NumaNode(1, 2**34, frozenset(range(1, 16, 2)))),
    cores=tuple(frozenset([n, n + 8]) for n in range(8)),
)
ALL = frozenset(range(16))


def cut(ranks, machine=EVEN_ODD, with_gpu=None, allowed=ALL, launcher=""):
    known = {rank: Facts("host", allowed, launcher=launcher) for rank in ranks}
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
    known = {n: Facts("host", frozenset([n, n + 8]), launcher="Open MPI") for n in range(4)}
    found = cores.cut(EVEN_ODD, known, {})
    assert {n: found[n].cpus for n in range(4)} == {n: known[n].cpus for n in range(4)}
    assert found[0].kept and found[0].cores == 1
    assert "4 of 8 cores are used; mpirun --bind-to none" in found[0].why[0]
    # A scheduler had its reasons, and where all cores are used there is nothing to gain.
    by_slurm = {n: replace(fact, launcher="Slurm") for n, fact in known.items()}
    assert cores.cut(EVEN_ODD, by_slurm, {})[0].why == ("the launcher has bound the ranks: kept",)
    # Bound to sockets: those of one share it.
    sockets = {n: Facts("host", EVEN_ODD.numa[n % 2].cpus) for n in range(4)}
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


# ---- GPUs


def described(levels, cpus=None, **more) -> Machine:
    """A machine of these levels whose GPUs have PCI addresses."""
    machine = parse_smi(smi(levels, cpus))
    named = tuple(replace(gpu, bus_id=f"0000:{16 + gpu.index:02x}:00.0", model="H200") for gpu in machine.gpus)
    return replace(machine, gpus=named, live=True, **more)


# Two switches of two on the first socket, one of three on the second.
SEVEN = described(UNEVEN, ["0-3"] * 4 + ["4-7"] * 3)


def offered(machine, which=None, **more) -> Facts:
    addresses = tuple(gpu.bus_id for gpu in machine.gpus if which is None or gpu.index in which)
    return Facts(
        "host", more.pop("cpus", frozenset(range(8))), gpus=addresses, names=("H200",) * len(addresses), **more
    )


def choose(machine, ranks, bytes_, known=None, off_host=None):
    known = known or {rank: offered(machine) for rank in ranks}
    off_host = np.zeros(len(bytes_)) if off_host is None else np.array(off_host, float)
    return gpus.choose({fact.gpus: machine for fact in known.values()}, known, np.array(bytes_, float), off_host)


def pairs(size, *joined) -> np.ndarray:
    matrix = np.zeros((size, size))
    for a, b, weight in joined:
        matrix[a, b] = matrix[b, a] = weight
    return matrix


def test_ranks_that_exchange_much_are_close():
    # 1-4 and 2-3 exchange most: each pair under one switch. Rank 0 is on another host.
    found = choose(SEVEN, [1, 2, 3, 4], pairs(5, (1, 4, 8e6), (2, 3, 8e6), (1, 2, 1e6), (0, 1, 9e9)))
    switch = {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2}
    at = {rank: switch[chosen.gpu.index] for rank, chosen in found.items()}
    assert at[1] == at[4] and at[2] == at[3] and len({chosen.gpu.index for chosen in found.values()}) == 4
    assert "4 ranks on 7 GPUs" in found[1].why[0] and "shorter than round-robin" in found[1].why[0]


def test_who_sends_to_other_hosts_is_near_an_adapter():
    # The only adapter hangs on the second socket.
    nic = NIC("mlx5_0", rdma=True, speed=50.0)
    machine = replace(SEVEN, nics=(nic,), nic_levels=tuple(("PIX" if n > 3 else "SYS",) for n in range(7)))
    found = choose(machine, [0], np.zeros((2, 2)), off_host=[1e9, 0])
    assert found[0].gpu.index > 3
    assert choose(machine, [0], np.zeros((2, 2)))[0].gpu.index == 0


def test_more_ranks_than_gpus_share_evenly():
    two = described(level_matrix(2, ("PIX", [(0, 1)])))
    found = choose(two, range(5), pairs(5, (0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 4, 1)))
    used = [found[rank].gpu.index for rank in range(5)]
    assert sorted(used.count(n) for n in (0, 1)) == [2, 3]
    alone_with = [rank for rank in range(5) if rank != 0 and used[rank] == used[0]]
    assert f"shared with rank{'s' * (len(alone_with) > 1)} {', '.join(map(str, alone_with))}" in found[0].why


def test_busy_gpus_are_left_to_others():
    used = tuple(replace(gpu, utilisation=90 if gpu.index in (0, 1) else 0) for gpu in SEVEN.gpus)
    found = choose(replace(SEVEN, gpus=used), [0, 1], pairs(2, (0, 1, 1e6)))
    assert {chosen.gpu.index for chosen in found.values()} == {2, 3}
    assert "GPU 0 left out: busy: 90 % utilisation" in found[0].why
    all_used = tuple(replace(gpu, utilisation=90) for gpu in SEVEN.gpus)
    found = choose(replace(SEVEN, gpus=all_used), [0, 1], pairs(2, (0, 1, 1e6)))
    assert len({chosen.gpu.index for chosen in found.values()}) == 2
    assert "every GPU is in use by others" in found[0].why


def test_what_has_just_ended_does_not_make_a_gpu_busy(monkeypatch):
    from hiresx import placement

    busy = replace(SEVEN, gpus=tuple(replace(gpu, utilisation=90) for gpu in SEVEN.gpus))
    seen = [busy, SEVEN, SEVEN]
    monkeypatch.setattr(placement, "discover", lambda: seen.pop(0))
    monkeypatch.setattr(placement, "SAMPLE", 0.0)
    assert placement._seen() is SEVEN and placement._seen() is SEVEN and not seen


def test_a_gpu_that_the_scheduler_gave_is_taken():
    known = {rank: offered(SEVEN, [6 - rank]) for rank in range(3)}
    found = choose(SEVEN, range(3), pairs(3, (0, 1, 1e6)), known)
    assert [found[rank].gpu.index for rank in range(3)] == [6, 5, 4]


def test_ranks_that_are_bound_take_the_gpus_near_them():
    def bound(*cpus):
        return {rank: offered(SEVEN, cpus=frozenset([cpu])) for rank, cpu in enumerate(cpus)}

    # They exchange much, and would be under one switch.
    found = choose(SEVEN, range(2), pairs(2, (0, 1, 1e9)), bound(5, 0))
    assert found[0].gpu.index > 3 and found[1].gpu.index <= 3
    # All near the four of the first socket, which are not enough.
    found = choose(SEVEN, range(5), pairs(5, (0, 1, 1e9)), bound(0, 1, 2, 3, 0))
    assert len({chosen.gpu.index for chosen in found.values()}) == 5


def test_gpus_that_only_cuda_knows():
    """In a container without NVML and with /sys hidden."""
    known = {rank: offered(SEVEN, [1, 4]) for rank in range(2)}
    found = choose(Machine("sysfs", live=True), range(2), pairs(2, (0, 1, 1)), known)
    assert {chosen.gpu.bus_id for chosen in found.values()} == {SEVEN.gpus[1].bus_id, SEVEN.gpus[4].bus_id}
    assert found[0].gpu.model == "H200"


def test_a_second_case_in_one_process_stays_where_the_first_was():
    found = choose(SEVEN, [0], np.zeros((1, 1)), {0: offered(SEVEN, used=3)})
    assert found[0].gpu.index == 3 and "before" in found[0].why[0]


def test_idle_gpus():
    used = tuple(replace(gpu, utilisation=90 if gpu.index == 2 else 0) for gpu in SEVEN.gpus)
    assert gpus.idle(replace(SEVEN, gpus=used), offered(SEVEN, [1, 2, 5])) == (1, 5)


# ---- the driver


class FakeDriver:
    """libcuda.so.1 with GPUs as CUDA counts them, fastest first: not in the order of their addresses."""

    addresses = ("0000:3B:00.0", "0000:1A:00.0")
    used = (False, True)

    def __init__(self):
        self.called = []

    def __getattr__(self, name):
        def function(*arguments):
            self.called.append(name)
            return 0

        return function

    def cuDeviceGetCount(self, count):
        count._obj.value = len(self.addresses)
        return 0

    def cuDeviceGet(self, device, number):
        device._obj.value = number.value
        return 0

    def cuDeviceGetName(self, name, size, device):
        name.value = f"GPU number {device.value}".encode()
        return 0

    def cuDeviceGetPCIBusId(self, text, size, device):
        text.value = self.addresses[device.value].encode()
        return 0

    def cuDevicePrimaryCtxGetState(self, device, flags, active):
        active._obj.value = self.used[device.value]
        return 0


def test_what_cuda_offers(monkeypatch):
    driver = FakeDriver()
    monkeypatch.setattr(cuda, "_driver", lambda: driver)
    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    assert cuda.devices() == [
        cuda.Device(0, "GPU number 0", "0000:3B:00.0", False),
        cuda.Device(1, "GPU number 1", "0000:1A:00.0", True),
    ]
    assert not [name for name in driver.called if "Ctx" in name or "Mem" in name]
    known = facts.gather(True, {"OMP_NUM_THREADS": "3,2"})
    assert (known.gpus, known.used, known.threads) == (("0000:3b:00.0", "0000:1a:00.0"), 1, 3)
    assert known.fault is None and facts.gather(False, {}).gpus == ()


def test_a_gpu_without_a_cupy_that_works_is_not_taken(monkeypatch, tmp_path):
    from hiresx.device import backend

    (tmp_path / "cupy.py").write_text('raise OSError("libcublas.so.13 is not there")\n')
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(cuda, "_driver", FakeDriver)
    assert backend("auto").name == "cpu" and cuda.devices() == []
    with pytest.raises(HiresxError, match=r"CuPy, which is installed but broken \(OSError: libcublas.so.13"):
        backend("cuda")
    assert "installed but broken" in facts.gather(True, {}).fault[0]


def test_the_backend_takes_the_number(monkeypatch):
    from hiresx.device import backend

    monkeypatch.setattr(cuda, "Backend", lambda device: ("made", device))
    assert backend("cuda", 3) == ("made", 3) and backend("cuda") == ("made", 0)


# ---- a process alone


def test_alone_nothing_changes():
    before = os.sched_getaffinity(0)
    made = place(alone(), wish="cpu")
    assert os.sched_getaffinity(0) == before
    (seat,) = made.seats
    assert (seat.backend, seat.gpu, seat.bound, made.remarks) == ("cpu", None, "", ())
    from hiresx.device import backend

    assert made.backend.name == "cpu" and made.backend.threads == backend("cpu").threads == seat.threads
    assert made.lines()[1].split()[:3] == ["0", seat.host, "cpu"]
    assert json.loads(json.dumps(made.document()))["ranks"][0]["cpus"] == seat.cpus


def test_alone_without_a_gpu(monkeypatch):
    monkeypatch.setattr(cuda, "fault", lambda: HiresxError("the cuda backend finds no NVIDIA driver", "use cpu"))
    with pytest.raises(HiresxError, match=r"^the cuda backend finds no NVIDIA driver\n") as caught:
        place(alone(), wish="cuda")
    assert caught.value.mend == "use cpu"
    assert place(alone()).backend.name == "cpu"


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
    if memory.prefer(node) == "" and not told:
        pytest.skip("no number of that system call for this processor")
    assert told == [[node]]


# ---- several ranks, on this machine


def _placed(team, wish="cpu", bytes_=None):
    from hiresx.topology.binding import bound_cpus

    made = place(team, wish=wish, bytes_=bytes_)
    return bound_cpus(), made.backend.name, getattr(made.backend, "threads", None), made.seats


def _refused(team, wish):
    try:
        place(team, wish=wish)
    except HiresxError as error:
        return error.message, error.everywhere
    return None


def _placed_in_turn(team):
    del os.environ["OMP_NUM_THREADS"]
    own = _placed(team)
    os.environ["OMP_NUM_THREADS"] = "3"
    wanted = _placed(team, "cpu:1,emulated:1", [[0.0]])  # the second rank has no part, and sends nothing
    return own, wanted, [_refused(team, wish) for wish in ("cpu,cpu,cpu", "cpu,cuda", "cuda")]


@two_cores
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
    if cuda.fault():
        (one, everywhere), (both, _) = refused[0][1:]
        assert everywhere
        assert one.startswith(f"rank 1 on host {os.uname().nodename} is to compute on a GPU: the cuda backend ")
        assert both.startswith(f"rank 0 on host {os.uname().nodename} (and 1 other) is to compute on a GPU: ")


def _free_threads(team):
    del os.environ["OMP_NUM_THREADS"]
    return _placed(team)


@pytest.mark.skipif(CORES > 8, reason="takes more ranks than cores")
def test_many_ranks_take_turns():
    ranks = CORES + 1
    for cpus, _, threads, seats in run_ranks(ranks, _free_threads):
        assert cpus == os.sched_getaffinity(0) and threads == 1
        assert f"{ranks} ranks take turns" in seats[0].why[0]


PAIR = described(level_matrix(3, ("PIX", [(0, 1)])), ["0-999"] * 3)


def _on_fake_gpus(team, bytes_):
    """Both ranks see three GPUs, in an order of CUDA's own; what is made on them, and when, is noted."""
    from hiresx import placement
    from hiresx.topology.binding import bound_cpus

    order = (2, 0, 1)
    devices = [cuda.Device(n, "H200", PAIR.gpus[gpu].bus_id.upper(), False) for n, gpu in enumerate(order)]
    cuda.fault, cuda.devices = (lambda: None), (lambda: devices)
    placement.discover = lambda: PAIR
    made = []

    def backend(name, number):
        made.append((name, number, bound_cpus()))
        return type("Backend", (), {"name": name, "threads": 1})

    placement.backend = backend
    seats = placement.place(team, wish="cuda,auto", bytes_=bytes_).seats
    ((name, number, cpus),) = made
    again = placement.place(team, wish="cpu")
    return order[number], name, cpus, seats, again.seats[team.rank].cpus


@two_cores
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
