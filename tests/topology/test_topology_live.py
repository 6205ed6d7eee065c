"""This machine, for real: what is bound and allocated is read back from the kernel; libraries are taken away in turn.
What needs a GPU is stood in for: a fake NVML, a fake CUDA driver, a fake /sys."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from topology_recordings import RECORDINGS, hwloc_xml, needs_shared

from hiresx.errors import HiresxError
from hiresx.topology import hwloc_library, libcuda, link_speeds, sysfs
from hiresx.topology.cpus import parse_list
from hiresx.topology.discover import discover, with_devices
from hiresx.topology.link_speeds import measure
from hiresx.topology.load import load, parse

linux = pytest.mark.skipif(sys.platform != "linux", reason="binding is read back from Linux's /proc")


def has_hwloc() -> bool:
    try:
        hwloc_library.library()
    except HiresxError:
        return False
    return True


needs_hwloc = pytest.mark.skipif(not has_hwloc(), reason="libhwloc is not installed: apt install libhwloc15")


def alone(code: str, cpus: str | None = None, **environment: str) -> str:
    """What `code` prints in a Python of its own, on `cpus` only."""
    command = [sys.executable, "-c", code]
    if cpus is not None:
        command = ["taskset", "-c", cpus, *command]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


BIND = """
from hiresx.topology import binding
before = sorted(binding.bound_cpus())
made = binding.bind(frozenset([before[-1]]))
status = open("/proc/self/status").read().split("Cpus_allowed_list:")[1].split()[0]
print(made.by.split()[0], status, before[-1], made.is_ == made.asked, len(made.warnings))
"""


@linux
def test_binding_is_what_the_kernel_says():
    by, status, asked, as_asked, warnings = alone(BIND).split()
    assert (status, as_asked, warnings) == (asked, "True", "0") and by == "sched_setaffinity"


@linux
@pytest.mark.parametrize("without", [False, True])
def test_one_core_is_all_the_scheduler_gave(without):
    """Within taskset on one core, nothing is bound outside it, and a share that is elsewhere is a warning."""
    first = min(os.sched_getaffinity(0))
    code = """
from hiresx.placement import cores
from hiresx.placement.facts import PlacementFacts
from hiresx.topology import binding
from hiresx.topology.discover import discover
from hiresx.topology.machine import GPU, Machine
allowed = binding.bound_cpus()
machine = discover()
gpus = GPU(0, cpus=allowed | {9999}), GPU(1, cpus=frozenset([9999]))
inside, outside = (cores.cut(Machine("m"), {0: PlacementFacts("host", allowed)}, {0: gpu})[0] for gpu in gpus)
made = binding.bind(inside.cpus)
print(sorted(allowed), sorted(machine.allowed), sorted(made.is_), inside.why, len(outside.why), sorted(outside.cpus))
"""
    environment = {"HIRESX_HWLOC": ""} if without else {}
    assert alone(code, str(first), **environment) == " ".join([f"[{first}]"] * 3 + ["() 1", f"[{first}]"])


@linux
def test_refusal_is_a_warning():
    code = """
from hiresx.topology import binding
made = binding.bind(frozenset([8191]))
print(made.is_ == made.asked, made.warnings[0])
"""
    assert alone(code).startswith("False binding to CPUs 8191 was refused")


@linux
def test_memory_is_where_it_is_preferred():
    node = discover().numa[0].index
    code = f"""
import numpy as np
from hiresx.topology import memory
fault = memory.prefer({node})
array = np.ones((300, 1000))
place = memory.where(array)
print(fault or set(place.pages) == {{{node}}}, place.pages == memory._by_move_pages(array),
      sum(place.pages.values()) >= array.nbytes // memory.PAGE, len(place.warnings))
"""
    assert alone(code) == "True True True 0"


@linux
def test_without_cffi_everything_still_works():
    code = """
import sys
sys.modules["cffi"] = None
from hiresx.topology import binding
from hiresx.topology.discover import discover
machine = discover()
before = binding.bound_cpus()
print(machine.source, "pip install cffi" in machine.problems[0], binding.bind(before).is_ == before)
"""
    assert alone(code) == f"{sysfs.discover().source} True True"


@linux
def test_live_machine_by_hwloc_and_by_sysfs():
    found = discover()
    assert found.live and found.allowed == frozenset(os.sched_getaffinity(0))
    plain = sysfs.discover()
    assert plain.live and {c for n in plain.numa for c in n.cpus} >= plain.cores[0]
    if has_hwloc():
        tree = with_devices(hwloc_library.discover(), plain)
        assert {node.index: node.cpus & found.allowed for node in tree.numa} == {
            node.index: node.cpus & found.allowed for node in plain.numa
        }
        assert [gpu.bus_id for gpu in tree.gpus] == [gpu.bus_id for gpu in plain.gpus]


@needs_hwloc
def test_a_recording_in_the_environment_does_not_replace_the_machine(tmp_path):
    path = tmp_path / "other.xml"
    path.write_text(hwloc_xml())
    code = """
from hiresx.topology import hwloc_library
found = hwloc_library.discover()
print(found.live, found.host == "example", found.problems[-1][:23])
"""
    assert alone(code, HWLOC_XMLFILE=str(path)) == "True False HWLOC_XMLFILE is set: i"


@needs_hwloc
@needs_shared
@pytest.mark.parametrize(
    "name", ["hwloc-nvidiaDGX2", "mpibind-coral-lassen", "mpibind-epyc-corona", "mpibind-g4dnmetal"]
)
def test_what_the_library_makes_of_a_recording_is_what_we_do(name):
    path = RECORDINGS / f"hwloc/{name}.xml"
    code = """
from hiresx.topology import hwloc_library
with hwloc_library.Topology(hwloc_library.library()) as topology:
    assert not topology.live
    print(topology.xml())
"""
    through = parse(alone(code, HWLOC_XMLFILE=str(path)), "through hwloc")
    ours = load(path)
    assert through.gpus == ours.gpus and through.nics == ours.nics and through.numa == ours.numa
    assert through.levels == ours.levels and through.nic_levels == ours.nic_levels and through.cores == ours.cores


def test_a_recording_is_not_measured():
    with pytest.raises(HiresxError, match="a recording cannot be measured"):
        measure(parse(hwloc_xml(), "example"))


# --- a machine that is not there


class FakeCuda(libcuda.Cuda):
    """Copies take a time that depends on the pair; CUDA numbers the GPUs the other way round."""

    def __init__(self):
        self.living, self.contexts = set(), []

    def ordinal(self, bus_id):
        return {"0000:03:00.0": 2, "0000:04:00.0": 1, "0000:81:00.0": 0}[bus_id]

    def allocate(self, device, size):
        self.living.add((device, size))
        return 1000 + device

    def free(self, device, pointer):
        assert pointer == 1000 + device

    def register(self, address, size):
        raise HiresxError("not permitted")

    def enable_peer(self, device, other):
        return True

    def close(self):
        self.contexts.append("closed")

    def copy_time(self, kind, to, source, size, repeats, device, other=-1):
        return 2e-6 + size / (10e9 if kind != "peer" else 40e9 if {device, other} == {1, 2} else 5e9)


def test_measuring_fills_the_snapshot():
    machine = replace(parse(hwloc_xml(), "example"), live=True)
    fake, lines = FakeCuda(), []
    found = measure(machine, fake, lines.append).measured
    assert found.device[0][1] == pytest.approx(40, rel=0.01) and found.device[0][2] == pytest.approx(5, rel=0.01)
    assert found.device[0][0] is None and found.latency[1][0] == pytest.approx(2e-6, rel=0.01)
    assert found.to_host[2] == pytest.approx(10, rel=0.01) and fake.contexts == ["closed"]
    assert len(lines) == 9 and "not pinned" in lines[0]


class FakeDriver:
    """libcuda as ctypes sees it: remembers calls, answers 0 or what it is told to."""

    def __init__(self, **faults):
        self.calls, self.faults = [], faults

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == "cuDeviceCanAccessPeer":
                arguments[0]._obj.value = 1
            if name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = {75: 8, 76: 6}[arguments[1].value]
            if name == "cuEventElapsedTime":
                arguments[0]._obj.value = 5.0
            if name == "cuGetErrorString":
                arguments[1]._obj.value = b"out of memory"
            return self.faults.get(name, 0)

        return call


def test_calls_of_the_driver():
    driver = FakeDriver()
    device = libcuda.Cuda(driver)
    assert device.capability(0) == 86
    assert "cuDevicePrimaryCtxRetain" not in driver.calls  # no context before the choice
    pointer = device.allocate(0, 8)
    assert device.enable_peer(0, 1) and device.copy_time("peer", pointer, pointer, 8, 5, 0, 1) == pytest.approx(1e-3)
    assert driver.calls.count("cuMemcpyPeerAsync") == 6
    device.free(0, pointer)
    device.close()
    assert driver.calls.count("cuDevicePrimaryCtxRelease_v2") == driver.calls.count("cuDevicePrimaryCtxRetain") == 2
    with pytest.raises(HiresxError, match=r"cuMemAlloc_v2: out of memory \(2\)"):
        libcuda.Cuda(FakeDriver(cuMemAlloc_v2=2)).allocate(0, 8)


@pytest.mark.parametrize("status", [0, 1])
def test_host_memory_is_pinned_where_the_driver_allows(status):
    driver = FakeDriver(cuMemHostRegister_v2=status)
    *_, pinned = link_speeds.host_speeds(libcuda.Cuda(driver), 0, 1000, None)
    assert pinned == (status == 0) and driver.calls.count("cuMemHostUnregister") == pinned


def fake_sys(root: Path) -> None:
    """Two GPUs on one switch, whose downstream ports redirect by ACS, and an adapter on the other node."""
    config = bytearray(512)
    config[0x100:0x104] = (0x0001 | 1 << 16 | 0x140 << 20).to_bytes(4, "little")
    config[0x140:0x144] = (0x000D | 1 << 16).to_bytes(4, "little")
    config[0x146:0x148] = (0b11101).to_bytes(2, "little")
    switch = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
    places = {
        "0000:03:00.0": (f"{switch}/0000:02:00.0", "0x030200", "0x10de", "0"),
        "0000:04:00.0": (f"{switch}/0000:02:01.0", "0x030200", "0x10de", "0"),
        "0000:82:00.0": ("sys/devices/pci0000:80/0000:80:01.0", "0x020700", "0x15b3", "1"),
        "0000:01:00.0": ("sys/devices/pci0000:00/0000:00:01.0", "0x060400", "0x10b5", "0"),
        "0000:02:00.0": (switch, "0x060400", "0x10b5", "0"),
        "0000:83:00.0": ("sys/devices/pci0000:80", "0x030000", "0x1a03", "-1"),
    }
    (root / "sys/bus/pci/devices").mkdir(parents=True)
    for bus, (above, kind, vendor, node) in places.items():
        home = root / above / bus
        home.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("class", kind), ("vendor", vendor), ("device", "0x20b0"), ("numa_node", node), ("local_cpulist", "0-1"),
            ("max_link_speed", "16.0 GT/s PCIe"), ("max_link_width", "16"),
        ):  # fmt: skip
            (home / name).write_text(text + "\n")
        if bus == "0000:02:00.0":
            (home / "config").write_bytes(config)
        if vendor == "0x15b3":
            (home / "infiniband/mlx5_0/ports/1").mkdir(parents=True)
            (home / "infiniband/mlx5_0/ports/1/rate").write_text("200 Gb/sec (4X HDR)\n")
        (root / "sys/bus/pci/devices" / bus).symlink_to(home)
    for node, cpus, memory_kb in ((0, "0-1", 1024), (1, "2-3", 0)):
        folder = root / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cpus)
        (folder / "meminfo").write_text(f"Node {node} MemTotal:       {memory_kb} kB\n")


def test_sysfs_of_another_machine(tmp_path):
    fake_sys(tmp_path)
    machine = sysfs.discover(tmp_path)
    assert [gpu.bus_id for gpu in machine.gpus] == ["0000:03:00.0", "0000:04:00.0"] and not machine.live
    assert machine.levels[0][1] == "PIX" and machine.nic_levels == (("SYS",), ("SYS",)) and machine.nics[0].rdma
    assert machine.nics[0].speed == 25.0  # GB/s
    assert machine.gpus[0].pcie == pytest.approx(31.5, 0.01) and machine.gpus[0].cpus == parse_list("0-1")
    assert machine.numa[0].memory == 2**20 and machine.numa[1].memory == 0
    bridges = [bridge for gpu in machine.gpus for bridge in gpu.path]
    assert sysfs.redirecting_bridges(bridges, tmp_path) == ["0000:02:00.0"]
