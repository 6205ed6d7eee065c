"""Which GPU a rank takes: by bytes and links, near its cores, what CUDA and the scheduler offer.
Stood in for: a fake driver, and descriptions of machines that are elsewhere."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from described_machines import described, pairs
from topology_recordings import UNEVEN, level_matrix

from hiresx.device import cuda
from hiresx.errors import HiresxError
from hiresx.placement import facts, gpus
from hiresx.placement.facts import PlacementFacts
from hiresx.topology.machine import NIC, Machine

# ---- GPUs


# Two switches of two on the first socket, one of three on the second.
SEVEN = described(UNEVEN, ["0-3"] * 4 + ["4-7"] * 3)


def offered(machine, which=None, **more) -> PlacementFacts:
    addresses = tuple(gpu.bus_id for gpu in machine.gpus if which is None or gpu.index in which)
    return PlacementFacts(
        "host", more.pop("cpus", frozenset(range(8))), gpus=addresses, names=("H200",) * len(addresses), **more
    )


def choose(machine, ranks, bytes_, known=None, off_host=None):
    known = known or {rank: offered(machine) for rank in ranks}
    off_host = np.zeros(len(bytes_)) if off_host is None else np.array(off_host, float)
    return gpus.choose({fact.gpus: machine for fact in known.values()}, known, np.array(bytes_, float), off_host)


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
    assert "placement of 5 ranks on 2 GPUs" in found[0].why[0]
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
    assert placement._discover_host() is SEVEN and placement._discover_host() is SEVEN and not seen


def test_a_gpu_that_the_scheduler_gave_is_taken():
    known = {rank: offered(SEVEN, [6 - rank]) for rank in range(3)}
    found = choose(SEVEN, range(3), pairs(3, (0, 1, 1e6)), known)
    assert [found[rank].gpu.index for rank in range(3)] == [6, 5, 4]


def test_masks_of_one_gpu_each_are_told_with_the_mask_that_hides_none():
    known = {0: offered(SEVEN, [6]), 1: offered(SEVEN, [2])}
    found = choose(SEVEN, range(2), pairs(2, (0, 1, 1e6)), known)
    assert [found[rank].gpu.index for rank in range(2)] == [6, 2]
    # Numbers are those of the whole host, which no cgroup hides here; a rank's own GPU stays its first.
    assert "the GPUs of rank 1 are hidden from it" in found[0].why[-1] and "CUDA IPC" in found[0].why[-1]
    assert "CUDA_VISIBLE_DEVICES=6,2 shows" in found[0].why[-1]
    assert "CUDA_VISIBLE_DEVICES=2,6 shows" in found[1].why[-1]
    # A cgroup shows each rank a machine of one GPU: without it CUDA would count the two.
    one = Machine("NVML", levels=(("X",),), pcie=(("X",),), peer=(("X",),), nic_levels=((),))
    alone = {rank: replace(one, gpus=(replace(SEVEN.gpus[n], index=0),)) for rank, n in ((0, 6), (1, 2))}
    bytes_ = np.zeros((2, 2))
    found = gpus.choose({known[rank].gpus: alone[rank] for rank in range(2)}, known, bytes_, bytes_[0])
    assert "CUDA_VISIBLE_DEVICES=1,0 shows" in found[0].why[-1] and "=0,1 shows" in found[1].why[-1]
    # All see all: nothing to say.
    assert not any("hidden" in line for c in choose(SEVEN, range(2), bytes_).values() for line in c.why)


def test_the_order_of_a_mask_is_no_choice():
    """Each rank is shown all GPUs, its own first: they are still placed together, not each by itself on the first."""
    addresses = tuple(gpu.bus_id for gpu in SEVEN.gpus)
    turned = {rank: replace(offered(SEVEN), gpus=addresses[rank:] + addresses[:rank]) for rank in range(4)}
    found = choose(SEVEN, range(4), pairs(4, (0, 3, 8e6), (1, 2, 8e6)), turned)
    used = [found[rank].gpu.index for rank in range(4)]
    assert len(set(used)) == 4 and used == [
        c.gpu.index for c in choose(SEVEN, range(4), pairs(4, (0, 3, 8e6), (1, 2, 8e6))).values()
    ]
    assert not any("hidden" in line for chosen in found.values() for line in chosen.why)


def test_ranks_that_see_some_gpus_in_common_take_different_ones():
    known = {0: offered(SEVEN, [0, 1]), 1: offered(SEVEN, [0]), 2: offered(SEVEN, [1, 0, 2])}
    found = choose(SEVEN, range(3), np.zeros((3, 3)), known)
    assert [found[rank].gpu.index for rank in range(3)] == [1, 0, 2]


def test_slices_of_one_card_are_two_gpus():
    """CUDA shows each process one slice; both have the card's PCI address."""
    parts = ("MIG-a", "MIG-b")
    card = SEVEN.gpus[0].bus_id
    sliced = tuple(replace(SEVEN.gpus[0], index=n, mig=True, mig_uuid=part) for n, part in enumerate(parts))
    square = (("X", "PSB"), ("PSB", "X"))
    peer = (("X", "NS"), ("NS", "X"))
    machine = Machine("NVML", gpus=sliced, levels=square, pcie=square, peer=peer, nic_levels=((), ()))
    known = {rank: PlacementFacts("host", frozenset([0]), gpus=(f"{card}/{part}",), names=("H200 MIG",))
             for rank, part in enumerate(parts)}  # fmt: skip
    for seen in (machine, Machine("sysfs", gpus=SEVEN.gpus[:1], levels=(("X",),)), Machine("nothing")):
        found = choose(seen, range(2), pairs(2, (0, 1, 1e6)), known)
        assert [found[rank].gpu.address for rank in range(2)] == [f"{card}/MIG-a", f"{card}/MIG-b"], seen.source
        assert not any("shared" in line for chosen in found.values() for line in chosen.why)
        assert "MIG: the slices of rank 1 are not shown to it" in found[0].why[-1]
    assert gpus.idle(machine, known[1]) == (1,)
    # Both on one slice, as CUDA shows it where nothing names another.
    found = choose(machine, range(2), np.zeros((2, 2)), dict.fromkeys(range(2), known[0]))
    assert "shared with rank 1" in found[0].why and found[1].gpu.mig_uuid == "MIG-a"
    assert "with CUDA_VISIBLE_DEVICES=MIG-... of its own" in found[0].why[-1]


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


class FakeDriver:  # UUIDs that it leaves alone are zeros, those of cards and slices alike
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
    monkeypatch.setattr("hiresx.topology.libcuda.ctypes.CDLL", lambda name: driver)
    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    assert cuda.devices() == [
        cuda.CudaDevice(0, "GPU number 0", "0000:3B:00.0", False),
        cuda.CudaDevice(1, "GPU number 1", "0000:1A:00.0", True),
    ]
    assert not [name for name in driver.called if "Ctx" in name or "Mem" in name]
    known = facts.gather(True, {"OMP_NUM_THREADS": "3,2"})
    assert (known.gpus, known.used, known.threads) == (("0000:3b:00.0", "0000:1a:00.0"), 1, 3)
    assert known.fault is None and facts.gather(False, {}).gpus == ()


def test_a_slice_that_cuda_shows(monkeypatch):
    driver = FakeDriver()
    driver.cuDeviceGetUuid_v2 = lambda uuid, device: uuid._obj.__setitem__(15, device.value) or 0
    monkeypatch.setattr("hiresx.topology.libcuda.ctypes.CDLL", lambda name: driver)
    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    whole, part = cuda.devices()
    assert (whole.address, part.mig_uuid) == ("0000:3b:00.0", "MIG-00000000-0000-0000-0000-000000000001")
    assert part.address == f"0000:1a:00.0/{part.mig_uuid}" == cuda.device(1).address
    assert facts.gather(True, {}).gpus == (whole.address, part.address)
    # A driver before CUDA 11.4 has no such call.
    monkeypatch.setattr(FakeDriver, "__getattr__", lambda self, name: object.__getattribute__(self, name))
    driver.cuInit = lambda flags: 0
    del driver.cuDeviceGetUuid_v2
    assert cuda.device(1).mig_uuid == ""


def test_a_gpu_without_a_cupy_that_works_is_not_taken(monkeypatch, tmp_path):
    from hiresx.device import backend

    (tmp_path / "cupy.py").write_text('raise OSError("libcublas.so.13 is not there")\n')
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("hiresx.topology.libcuda.ctypes.CDLL", lambda name: FakeDriver())
    assert backend("auto").name == "cpu" and cuda.devices() == []
    with pytest.raises(HiresxError, match=r"CuPy, which is installed but broken \(OSError: libcublas.so.13"):
        backend("cuda")
    assert "installed but broken" in facts.gather(True, {}).fault[0]


def test_the_backend_takes_the_number(monkeypatch):
    from hiresx.device import backend

    monkeypatch.setattr(cuda, "CudaBackend", lambda device: ("made", device))
    assert backend("cuda", 3) == ("made", 3) and backend("cuda") == ("made", 0)
