"""The machine from Linux's /sys alone, used if libhwloc is missing."""

import os
import platform
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hiresx.topology import connection_levels, pci
from hiresx.topology.cpus import parse_list
from hiresx.topology.machine import GPU, NIC, Cache, Machine, NumaNode, OtherDevice, Package, bus_id, device_matrices

# Patterns of paths below a device whose last part is its name in the system.
_NAMES = ("nvme/*/nvme*n*", "block/*", "ata*/host*/target*/*/block/*", "host*/target*/*/block/*", "virtio*/block/*")
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def discover(root: Path = Path("/")) -> Machine:
    """Return a description of this machine, read from /sys and /proc of Linux. `root`: a folder that replaces the root
    folder /, for tests."""
    devices = root / "sys/bus/pci/devices"
    found = sorted(devices.iterdir(), key=lambda path: bus_id(path.name)) if devices.is_dir() else []
    numa = tuple(_numa_nodes(root))
    gpus: list[GPU] = []
    nics: list[NIC] = []
    others: list[OtherDevice] = []
    for path in found:
        kind, vendor, device = (_hex(path / name) for name in ("class", "vendor", "device"))
        kind >>= 8  # class and subclass; the last byte is the programming interface
        if pci.is_gpu(kind, vendor, device, _speed(path)):
            gpus.append(_gpu(len(gpus), path))
        elif (path / "physfn").exists():
            continue  # a virtual function of a device of this machine; in a virtual machine the link is missing
        elif kind >> 8 == 0x02:
            nics.append(_nic(path))
        elif kind == pci.BRIDGE and vendor == pci.NVIDIA:
            others.append(OtherDevice("NVSwitch", bus_id(path.name), f"PCI {vendor:04x}:{device:04x}", _node(path)))
        elif kind != pci.BRIDGE and (known := pci.kind_name(kind)):
            names = sorted(entry.name for pattern in _NAMES for entry in path.glob(pattern))
            named = ", ".join(names) or f"PCI {vendor:04x}:{device:04x}"
            others.append(OtherDevice(known, bus_id(path.name), named, _node(path)))
    packages, cores = _processors(root)
    return Machine(
        source="sysfs",
        **device_matrices(gpus, nics, level_by_bridges),
        caches=_caches(root),
        devices=tuple(others),
        packages=packages,
        numa=numa,
        cores=cores,
        host=platform.node(),
        product=_read(root / "sys/class/dmi/id/product_name"),
        live=root == Path("/"),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _hex(path: Path) -> int:
    text = _read(path)
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text) else 0


def _node(path: Path) -> int | None:
    """Return the device's NUMA node. (The kernel writes -1 if the firmware does not give it.)"""
    text = _read(path / "numa_node")
    return int(text) if text.isdigit() else None


def _bridges(path: Path) -> tuple[str, ...]:
    """Return the bridges above a device from its path in /sys: .../pci0000:3a/0000:3a:00.0/0000:3b:00.0."""
    parts = path.resolve().parts
    hosts = [n for n, part in enumerate(parts) if re.fullmatch(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", part)]
    if not hosts:
        return ()
    above = parts[hosts[-1] + 1 : -1]
    return (f"host {parts[hosts[-1]][3:]}", *(bus_id(part) for part in above if _ADDRESS.fullmatch(part)))


def _speed(path: Path) -> float | None:
    return connection_levels.pcie_speed_of_rate(_read(path / "max_link_speed"), _read(path / "max_link_width"))


def _gpu(index: int, path: Path) -> GPU:
    return GPU(
        index=index,
        bus_id=bus_id(path.name),
        model=f"PCI {_read(path / 'vendor')[2:]}:{_read(path / 'device')[2:]}",
        numa=_node(path),
        cpus=parse_list(_read(path / "local_cpulist")),
        pcie=_speed(path),
        path=_bridges(path),
    )


def _nic(path: Path) -> NIC:
    rdma = sorted(entry.name for entry in path.glob("infiniband/*"))
    net = sorted(entry.name for entry in (*path.glob("net/*"), *path.glob("virtio*/net/*")))
    return NIC(
        name=next(iter(rdma + net), f"PCI {bus_id(path.name)}"),
        bus_id=bus_id(path.name),
        numa=_node(path),
        rdma=bool(rdma),
        speed=_network_speed(path),
        path=_bridges(path),
    )


def _network_speed(path: Path) -> float | None:
    """Return the GB/s of an adapter's fastest active port, from "200 Gb/sec (4X HDR)" or Mbit/s."""
    rates = [re.match(r"(\d+(?:\.\d+)?) Gb/sec", _read(rate)) for rate in path.glob("infiniband/*/ports/*/rate")]
    found = [float(match[1]) / 8 for match in rates if match]
    for entry in (*path.glob("net/*/speed"), *path.glob("virtio*/net/*/speed")):
        text = _read(entry)
        if text.isascii() and text.isdigit() and 0 < int(text) < 10**7:
            found.append(int(text) / 8000)
    return max(found, default=None)


def _caches(root: Path) -> tuple[Cache, ...]:
    """Yield each cache once, with all CPUs that share it."""
    found: dict[tuple[int, str, frozenset[int]], Cache] = {}
    kinds = {"Data": "data", "Instruction": "instruction"}
    for path in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cache/index[0-9]*"):
        level, shared = _read(path / "level"), parse_list(_read(path / "shared_cpu_list"))
        size = re.fullmatch(r"(\d{1,9})([KMG]?)", _read(path / "size"))
        if not level.isdigit() or not shared:
            continue
        key = int(level), kinds.get(_read(path / "type"), ""), shared
        number = int(size[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[size[2]] if size else None
        found[key] = Cache(*key[:2], number, shared)
    return tuple(found[key] for key in sorted(found, key=lambda key: (*key[:2], min(key[2]))))


def level_by_bridges(first: GPU | NIC, second: GPU | NIC) -> str:
    """Return how close the devices `first` and `second` are connected by PCIe: PIX, PXB, PHB, NODE or SYS, as in
    `nvidia-smi topo -m`. The level follows from the PCI bridges above the devices or, without a common bridge, from
    their NUMA nodes. Two unknown nodes, as on most virtual machines, are treated as one node."""
    return connection_levels.closest(first.path, second.path) or ("NODE" if first.numa == second.numa else "SYS")


def _numa_nodes(root: Path) -> Iterator[NumaNode]:
    for path in sorted((root / "sys/devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        match = re.search(r"MemTotal:\s*(\d+) kB", _read(path / "meminfo"))
        cpus = parse_list(_read(path / "cpulist")) or frozenset()
        yield NumaNode(int(path.name[4:]), int(match[1]) * 1024 if match else None, cpus)


def _processors(root: Path) -> tuple[tuple[Package, ...], tuple[frozenset[int], ...]]:
    model = re.search(r"^(?:model name|cpu)\s*:\s*(.*\S)", _read(root / "proc/cpuinfo"), re.MULTILINE)
    packages: dict[int, set[int]] = {}
    cores: dict[tuple[int, str], set[int]] = {}
    for path in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/topology")):
        cpu = int(path.parent.name[3:])
        package = _read(path / "physical_package_id")
        number = int(package) if package.isdigit() else 0
        packages.setdefault(number, set()).add(cpu)
        cores.setdefault((number, _read(path / "core_id")), set()).add(cpu)
    name = model[1] if model else ""
    return (
        tuple(Package(number, name, frozenset(cpus)) for number, cpus in sorted(packages.items())),
        tuple(sorted((frozenset(cpus) for cpus in cores.values()), key=min)),
    )


def allowed_cpus() -> frozenset[int]:
    """Return the CPUs that this process may use, according to its cpuset."""
    return frozenset(os.sched_getaffinity(0))


def redirecting_bridges(bridges: Iterable[str], root: Path = Path("/")) -> list[str]:
    """Return those PCI bridges that send traffic between two devices below them up to the CPU, because their Access
    Control Services (ACS) redirect requests or completions. `bridges`: bus ids of the bridges to examine. Only the user
    root may read the extended configuration of a device; for other users the list is empty. `root`: a folder that
    replaces the root folder /, for tests."""
    found = []
    for bridge in dict.fromkeys(bridges):
        if not _ADDRESS.fullmatch(bridge):
            continue
        try:
            data = (root / "sys/bus/pci/devices" / bridge / "config").read_bytes()
        except OSError:
            continue
        # PCI Express Base Specification: extended capabilities are a list that starts at 0x100; ACS is number 0xd, its
        # control register stands 6 bytes behind, with bits 2 (request redirect) and 3 (completion redirect).
        at, seen = 0x100, 0
        while 0x100 <= at <= len(data) - 8 and seen < 64:
            head = int.from_bytes(data[at : at + 4], "little")
            if head & 0xFFFF == 0x000D and int.from_bytes(data[at + 6 : at + 8], "little") & 0b1100:
                found.append(bridge)
                break
            at, seen = head >> 20, seen + 1
    return found
