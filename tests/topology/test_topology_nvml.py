"""What NVML tells of GPUs, their links, MIG slices and NVLink domains, on the tree that hwloc found: a fake NVML."""

import ctypes
import json
import sys
import types
from dataclasses import replace

import pytest
from topology_recordings import hwloc_xml

from hiresx.errors import HiresxError
from hiresx.topology import nvml, sysfs
from hiresx.topology.cost import Model, traffic
from hiresx.topology.discover import discover, merge
from hiresx.topology.load import parse
from hiresx.topology.machine import from_json, to_json
from hiresx.topology.place import free_gpus
from hiresx.topology.problems import problems


@pytest.mark.parametrize(
    ("status", "said"), [(0, "OK"), (1, "CNS"), (2, "GNS"), (3, "TNS"), (4, "DR"), (5, "NS"), (9, "U")]
)
def test_why_a_peer_has_no_access_is_said_as_nvidia_smi_does(status, said):
    ways = {nvml.P2P_READ: 0, nvml.P2P_WRITE: status}
    asked = types.SimpleNamespace(nvmlDeviceGetP2PStatus=lambda first, second, way: ways[way], NVMLError=OSError)
    assert nvml._peer(asked, 0, 1) == said


class FakeNvml:
    """NVML of three GPUs on the tree of `hwloc_xml`: GPUs 0 and 1 have two NVLinks, GPU 2 has no peer access."""

    class NVMLError(Exception):
        pass

    buses = ("00000000:03:00.0", "00000000:04:00.0", "00000000:81:00.0")

    def __init__(self):
        self.links = {(0, 0): 1, (0, 1): 1, (1, 0): 0, (1, 1): 0}

    def nvmlInit(self): ...
    def nvmlShutdown(self): ...
    def nvmlSystemGetDriverVersion(self):
        return b"550.1"

    def nvmlDeviceGetCount(self):
        return 3

    def nvmlDeviceGetHandleByIndex(self, n):
        return n

    def nvmlDeviceGetPciInfo(self, handle):
        return types.SimpleNamespace(busId=self.buses[handle].encode())

    def nvmlDeviceGetMemoryInfo(self, handle):
        return types.SimpleNamespace(total=16 * 2**30, used=2**28)

    def nvmlDeviceGetUtilizationRates(self, handle):
        return types.SimpleNamespace(gpu=50 * (handle == 2))

    def nvmlDeviceGetMigMode(self, handle):
        raise self.NVMLError("not supported")

    def nvmlDeviceGetCpuAffinity(self, handle, words):
        return [0xF if handle < 2 else 0xF0] + [0] * (words - 1)

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle):
        return 4

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle):
        return 16

    def nvmlDeviceGetName(self, handle):
        return "NVIDIA A100-PCIE-40GB"

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{handle}"

    def nvmlDeviceGetTopologyCommonAncestor(self, a, b):
        return 10 if {a, b} == {0, 1} else 50

    def nvmlDeviceGetP2PStatus(self, a, b, way):
        return 0 if {a, b} == {0, 1} else 1

    def nvmlDeviceGetNvLinkState(self, handle, link):
        if (handle, link) not in self.links:
            raise self.NVMLError("no such link")
        return 1

    def nvmlDeviceGetNvLinkRemotePciInfo_v2(self, handle, link):
        return types.SimpleNamespace(busId=self.buses[self.links[handle, link]])


def test_nvml_on_the_tree():
    devices = nvml.discover(FakeNvml())
    assert devices.source == "NVML (driver 550.1)" and devices.live
    machine = merge(replace(parse(hwloc_xml(), "example"), source="hwloc", live=True), devices)
    assert machine.levels == (("X", "NV2", "SYS"), ("NV2", "X", "SYS"), ("SYS", "SYS", "X")) and not machine.problems
    assert machine.pcie[0][1] == "PIX" and machine.peer[0] == ("X", "OK", "CNS") and machine.nic_levels[2] == ("PHB",)
    gpu = machine.gpus[2]
    assert (gpu.model, gpu.uuid, gpu.numa, gpu.links) == ("NVIDIA A100-PCIE-40GB", "GPU-2", 1, None)
    assert (
        gpu.utilisation == 50 and gpu.memory == 16 * 2**30 and gpu.mig is None and gpu.pcie == pytest.approx(31.5, 0.01)
    )
    assert machine.gpus[0].links == 2 and any("no peer access (CNS)" in line for line in problems(machine))


def test_contradictions_between_sources_are_told():
    fake = FakeNvml()
    fake.nvmlDeviceGetTopologyCommonAncestor = lambda a, b: 30
    fake.nvmlDeviceGetCpuAffinity = lambda handle, words: [0xF0]
    fake.links = {(0, 0): 1, (0, 1): 1, (1, 0): 0}
    fake.buses = (*FakeNvml.buses[:2], "00000000:99:00.0")
    found = merge(replace(parse(hwloc_xml(), "example"), source="hwloc"), nvml.discover(fake)).problems
    told = "\n".join(found)
    for expected in (
        "GPU 0 to GPU 1 is PHB by NVML, PIX by hwloc",
        "GPU 0: nearest CPUs are 4-7 by NVML, 0-3 by hwloc",
        "GPU 0 has 2 NVLinks to GPU 1, which has 1 back",
        "GPU 2 (0000:99:00.0) is known to NVML, but not in the PCI tree of hwloc",
        "GPUs in the PCI tree that NVML does not show: 0000:81:00.0",
    ):
        assert expected in told


def test_nodes_that_the_firmware_does_not_tell(monkeypatch):
    """The kernel writes -1, and all CPUs look near; NVML knows better."""
    tree = parse(hwloc_xml(), "example")
    every = frozenset(range(8))
    tree = replace(tree, source="hwloc", gpus=tuple(replace(gpu, numa=None, cpus=every) for gpu in tree.gpus))
    monkeypatch.setattr(sysfs, "allowed_cpus", lambda: every)
    found = merge(tree, nvml.discover(FakeNvml()))
    assert [gpu.numa for gpu in found.gpus] == [0, 0, 1] and found.gpus[2].cpus == {4, 5, 6, 7}
    # What NVML says may just be what the job has.
    monkeypatch.setattr(sysfs, "allowed_cpus", lambda: frozenset(range(4)))
    found = merge(tree, nvml.discover(FakeNvml()))
    assert [gpu.numa for gpu in found.gpus] == [None, None, 1] and found.gpus[0].cpus == every


def test_every_word_of_the_affinity_is_of_64_cpus():
    fake = FakeNvml()
    fake.nvmlDeviceGetCpuAffinity = lambda handle, words: [1, 0b101, 1 << 63]
    assert nvml.discover(fake).gpus[0].cpus == {0, 64, 66, 191}


def test_a_gpu_that_the_tree_lacks_hides_no_other():
    devices, tree = nvml.discover(FakeNvml()), replace(parse(hwloc_xml(), "example"), source="hwloc")
    for lacking in range(3):
        machine = merge(replace(tree, gpus=tuple(g for n, g in enumerate(tree.gpus) if n != lacking)), devices)
        assert [gpu.bus_id for gpu in machine.gpus] == [gpu.bus_id for gpu in devices.gpus]
        assert sum("not in the PCI tree" in line for line in machine.problems) == 1


def test_links_behind_a_switch():
    fake = FakeNvml()
    fake.links = {(gpu, link): 0 for gpu in range(3) for link in range(6)}
    fake.nvmlDeviceGetNvLinkRemotePciInfo_v2 = lambda handle, link: types.SimpleNamespace(busId="00000000:C1:00.0")
    fake.nvmlDeviceGetNvLinkRemoteDeviceType = lambda handle, link: nvml.SWITCH_REMOTE
    assert nvml.discover(fake).levels[0] == ("X", "NV6", "NV6")


class FakeSlices(FakeNvml):
    """The first card is divided in two slices, the last has MIG on and none; the second is in an NVLink domain."""

    class c_nvmlGpuFabricInfoV_t(ctypes.Structure):
        _fields_ = (("clusterUuid", ctypes.c_ubyte * 16), ("status", ctypes.c_uint), ("cliqueId", ctypes.c_uint),
                    ("state", ctypes.c_ubyte))  # fmt: skip

    state, status = nvml.FABRIC_COMPLETED, 0

    def nvmlDeviceGetGpuFabricInfoV(self, handle, info):
        if handle != 1:
            raise self.NVMLError("not supported")
        info._obj.clusterUuid[:] = range(16)
        info._obj.state, info._obj.status, info._obj.cliqueId = self.state, self.status, 7
        return 0

    def nvmlDeviceGetMigMode(self, handle):
        return [int(handle != 1), int(handle != 1)]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, n):
        if handle == 2 or n not in (0, 3):
            raise self.NVMLError("not found")
        return f"slice {n}"

    def nvmlDeviceGetUtilizationRates(self, handle):
        raise self.NVMLError("not supported for slices")

    def nvmlDeviceGetMemoryInfo(self, handle):
        return types.SimpleNamespace(total=2**33 if isinstance(handle, str) else 2**34, used=0)

    def nvmlDeviceGetUUID(self, handle):
        return f"MIG-{handle[-1]}" if isinstance(handle, str) else f"GPU-{handle}"


def test_slices_are_gpus_and_domains_are_known():
    devices = nvml.discover(FakeSlices())
    machine = merge(replace(parse(hwloc_xml(), "example"), source="hwloc", live=True), devices)
    assert [gpu.mig_uuid for gpu in machine.gpus] == ["MIG-0", "MIG-3", "", ""] and not machine.problems
    assert machine.gpus[0].uuid == machine.gpus[1].uuid == "GPU-0" and machine.gpus[1].memory == 2**33
    assert machine.gpus[1].address == "0000:03:00.0/MIG-3" and [gpu.numa for gpu in machine.gpus] == [0, 0, 0, 1]
    # No slice reaches another GPU but through host memory, also that on its own card, with which it shares the link.
    assert machine.levels[0] == ("X", "PSB", "PIX", "SYS") and machine.peer[1] == ("NS", "X", "NS", "NS")
    model = Model(machine)
    demand = traffic([[0, 1e9], [1e9, 0]])
    both = model.estimate(demand, (0, 1))
    assert both.loads["GPU 0 PCIe out"] == 2e9 and both.cost > 1.1 * model.estimate(demand, (0, 2)).cost
    chosen, left_out = free_gpus(machine)
    assert chosen == (0, 1, 2) and "MIG is on" in left_out[3]
    cluster = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert [gpu.domain for gpu in machine.gpus] == ["", "", f"{cluster}/7", ""]
    assert from_json(json.dumps(to_json(machine))) == replace(machine, live=False)


def test_links_to_a_divided_card_join_no_others():
    fake = FakeSlices()
    fake.links = {(1, 0): 0, (1, 1): 0, (2, 0): 0}
    found = nvml.discover(fake)
    assert found.levels[2][3] == "SYS" and not any(word.startswith("NV") for row in found.levels for word in row)


@pytest.mark.parametrize("fault", [{"state": 2}, {"status": 3}])
def test_a_gpu_that_has_not_joined_is_in_no_domain(fault):
    fake = FakeSlices()
    vars(fake).update(fault)
    assert not any(gpu.domain for gpu in nvml.discover(fake).gpus)


def test_without_nvml(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(HiresxError, match="nvidia-ml-py"):
        nvml.library()
    assert discover().live
