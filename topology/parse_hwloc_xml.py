"""A reader of hwloc's XML exports, versions 1.x, 2.x and 3.0, in Python, so that a recording needs no library of its
version.

The same reader serves the live machine, because only the XML exports have a layout that stayed the same from version to
version of the library."""

import re
from collections.abc import Iterator

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.topology import connection_levels, pci, xml_tree
from hiresx.topology.cpus import parse_mask
from hiresx.topology.machine import (
    GPU,
    MOST_GPUS,
    MOST_NICS,
    NIC,
    Cache,
    Machine,
    NumaNode,
    OtherDevice,
    Package,
    agreed_links,
    bus_id,
    device_matrices,
)  # fmt: skip
from hiresx.topology.xml_tree import Element

HINT = "record the machine again with: lstopo --of xml machine.xml"
MOST_PORTS = 512

_PCI_TYPE = re.compile(r"([0-9a-fA-F]{4}) \[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\]")
RDMA_NAME = re.compile(r"(mlx\d|hfi\d|bnxt_re|irdma|qedr|efa|cxi|ib|opa|usnic|hns)_?\d*")
# osdev_type of devices that CUDA, OpenCL or RSMI has found: the number 5; since 3.0 it is bit 3.
_CO_PROCESSOR, _CO_PROCESSOR_BIT = 5, 8
_CACHE = re.compile(r"L([1-5])(i?)Cache")


class _Objects:
    """The elements `object` of an export, with their data."""

    def __init__(self, root: Element):
        self.all = list(root.walk("object"))
        self.devices = sorted(
            (node for node in self.all if _type(node) == "PCIDev"), key=lambda node: bus_id(node.get("pci_busid"))
        )

    def of(self, *types: str) -> list[Element]:
        return [node for node in self.all if _type(node) in types]


def _type(node: Element) -> str:
    return node.get("type")


def _infos(node: Element) -> dict[str, str]:
    return {info.get("name"): info.get("value") for info in node.inside("info")}


NO_PCI = "no PCI device in the recording: it was made without I/O (lstopo --whole-io keeps it)"


def parse_hwloc_xml(text: str, name: str = "hwloc XML") -> Machine:
    """Return the machine that an XML export of hwloc describes. GPUs are in the order of their PCI bus ids, as in NVML.
    `name`: the name of the text in error messages. Raises HiresxError for other XML, for a truncated file, and for a
    file that describes no machine."""
    top = xml_tree.read(text, name, HINT)
    if top.tag != "topology":
        raise HiresxError(f"{name}: the XML of <{top.tag[:40]}>, not hwloc's <topology>", HINT)
    roots = top.inside("object")
    if not roots:
        raise HiresxError(f"{name}: XML of hwloc without any object", HINT)
    if len(roots) > 1:
        raise HiresxError(f"{name}: two root objects", HINT)
    return _machine(top, roots[0], name)


def _machine(top: Element, root: Element, name: str) -> Machine:
    objects = _Objects(root)
    numa = _numa_nodes(objects)
    root_infos = _infos(root)
    packages = tuple(
        Package(_number(node.get("os_index")), _infos(node).get("CPUModel", ""), _cpus(node))
        for node in objects.of("Package", "Socket")
    )
    if packages and not any(package.model for package in packages):
        # hwloc before 2.0 may store the model in the machine object.
        packages = tuple(Package(p.index, root_infos.get("CPUModel", ""), p.cpus) for p in packages)
    devices = [node for node in objects.devices if _is_gpu(node)]
    adapters = _adapters(objects)
    if len(devices) > MOST_GPUS or len(adapters) > MOST_NICS:
        raise HiresxError(
            f"{name}: {plural(len(devices), 'GPU')} and {len(adapters)} network adapters: too many for a machine", HINT
        )
    gpus = tuple(_gpu(n, node, numa) for n, node in enumerate(devices))
    nics = tuple(_nic(node, numa) for node in adapters)
    problems: list[str] = []
    parts = [sum(child.get("subtype") == "RSMI" for child in _os_devices(node)) for node in devices]
    if max(parts, default=0) > 1:
        shown = ", ".join(f"{count} of GPU {n}" for n, count in enumerate(parts) if count > 1)
        problems.append(f"partitions (the modes TPX and CPX of an MI300) are recorded, {shown}: each GPU counts as one")
    links, unclear = _nvlinks(top, objects, devices, gpus)
    problems += unclear
    if len(gpus) > 1 and not any(map(any, links)) and any("SXM" in gpu.model for gpu in gpus):
        problems.append("GPUs of a board with NVLink, but the recording has no NVLink: PCIe is all that is known")
    if not objects.devices:
        problems.append(NO_PCI)
    return Machine(
        source=f"recording of hwloc XML {top.attributes.get('version', '1')}: {name}",
        **device_matrices(gpus, nics, level, links),
        packages=packages,
        numa=numa,
        cores=tuple(_cpus(node) for node in objects.of("Core")),
        caches=_caches(objects),
        devices=tuple(_others(objects, {id(node) for node in (*devices, *adapters)}, numa)),
        host=root_infos.get("HostName", ""),
        product=" ".join(
            part for part in (root_infos.get("DMIProductName", ""), root_infos.get("PlatformModel", "")) if part.strip()
        ),
        problems=tuple(problems),
    )


def _number(text: str, default: int = 0) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else default


def _real(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value < 1e6 else 0.0


def _cpus(node: Element) -> frozenset[int]:
    return parse_mask(node.get("cpuset")) or frozenset()


def _pci(node: Element) -> tuple[int, int, int]:
    """Return (class, vendor, device) of a PCI device."""
    match = _PCI_TYPE.search(node.get("pci_type"))
    return (int(match[1], 16), int(match[2], 16), int(match[3], 16)) if match else (0, 0, 0)


def _is_gpu(node: Element) -> bool:
    kind, vendor, device = _pci(node)
    computes = any(
        number == _CO_PROCESSOR
        or number & _CO_PROCESSOR_BIT
        or child.get("subtype") in ("CUDA", "OpenCL", "RSMI", "NVML")
        for child in _os_devices(node)
        for number in [_number(child.get("osdev_type"))]
    )
    return pci.is_gpu(kind, vendor, device, _real(node.get("pci_link_speed")), computes)


def _adapters(objects: _Objects) -> list[Element]:
    """Return the network adapters. Virtual functions are included only without a physical adapter of their
    manufacturer, as in a virtual machine."""
    found = [node for node in objects.devices if _pci(node)[0] >> 8 == 0x02]

    def virtual(node: Element) -> bool:
        return pci.is_virtual(*_pci(node)[1:], _infos(node).get("PCIDevice", "") + node.get("name"))

    physical = {(_pci(node)[1], id(node.parent)) for node in found if not virtual(node)}
    makers = {_pci(node)[1] for node in found if not virtual(node)}
    return [
        node
        for node in found
        if not virtual(node) or ((_pci(node)[1], id(node.parent)) not in physical and _pci(node)[1] not in makers)
    ]


def _others(objects: _Objects, taken: set[int], numa: tuple[NumaNode, ...]) -> Iterator[OtherDevice]:
    """Return the PCI devices that are neither GPU nor adapter, nor a virtual function."""
    for node in objects.devices:
        kind, vendor, device = _pci(node)
        infos = _infos(node)
        known = pci.kind_name(kind)
        if id(node) in taken or not known or pci.is_virtual(vendor, device, infos.get("PCIDevice", "")):
            continue
        if kind == pci.BRIDGE:
            if not _is_switch(node):
                continue
            known = "NVSwitch"
        names = [child.get("name") for child in _os_devices(node)]
        maker = " ".join(infos[key] for key in ("PCIVendor", "PCIDevice") if infos.get(key))
        yield OtherDevice(
            known,
            bus_id(node.get("pci_busid")),
            ", ".join(names) or maker or f"PCI {vendor:04x}:{device:04x}",
            _node_of(_local(node), numa),
        )


def _caches(objects: _Objects) -> tuple[Cache, ...]:
    kinds = {"1": "data", "2": "instruction"}
    found = []
    for node in objects.all:
        match = _CACHE.fullmatch(_type(node))
        if match or _type(node) == "Cache":  # before 2.0 all had the type "Cache"
            depth = _number(match[1] if match else node.get("depth"), 1)
            kind = "instruction" if match and match[2] else kinds.get(node.get("cache_type"), "")
            found.append(Cache(depth, kind, _number(node.get("cache_size")) or None, _cpus(node)))
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.kind, sorted(cache.cpus)[:1])))


def _numa_nodes(objects: _Objects) -> tuple[NumaNode, ...]:
    found = []
    for node in objects.of("NUMANode"):
        cpus = _cpus(node)
        if not cpus and "cpuset" not in node.attributes and node.parent is not None:
            cpus = _cpus(node.parent)
        # hwloc leaves the memory of a node out if there is none.
        found.append(NumaNode(_number(node.get("os_index")), _number(node.get("local_memory")), cpus))
    return tuple(sorted(found, key=lambda node: node.index))


def _local(node: Element) -> Element | None:
    """Return the nearest ancestor with CPUs, to which the device is attached."""
    return next((above for above in node.ancestors() if _cpus(above)), None)


def _node_of(local: Element | None, numa: tuple[NumaNode, ...]) -> int | None:
    """Return the NUMA node near an object; None if several are near it."""
    if local is None:
        return None
    mask = parse_mask(local.get("nodeset"))
    if mask:
        return next(iter(mask)) if len(mask) == 1 else None
    cpus = _cpus(local)
    near = [node.index for node in numa if cpus and cpus <= node.cpus]
    return near[0] if len(near) == 1 else None


def _path(node: Element) -> tuple[str, ...]:
    """Return the bridges above a device, host bridge first. A host bridge is identified by the buses behind it and its
    position."""
    bridges = []
    for above in node.ancestors():
        if _type(above) != "Bridge":
            break
        host = above.get("bridge_type").startswith("0")
        name = above.get("bridge_pci") if host else bus_id(above.get("pci_busid"))
        bridges.append(f"host {name}" if host else name)
    return tuple(reversed(bridges))


def _os_devices(node: Element) -> list[Element]:
    return [child for child in node.walk("object") if _type(child) == "OSDev"]


def _gpu(index: int, node: Element, numa: tuple[NumaNode, ...]) -> GPU:
    infos = _infos(node)
    for child in _os_devices(node):
        infos |= {key: value for key, value in _infos(child).items() if value}
    local = _local(node)
    kilobytes = _number(infos.get("CUDAGlobalMemorySize", "")) or _number(infos.get("OpenCLGlobalMemorySize", ""))
    _, vendor, device = _pci(node)
    return GPU(
        index=index,
        bus_id=bus_id(node.get("pci_busid")),
        model=infos.get("GPUModel") or infos.get("PCIDevice") or f"PCI {vendor:04x}:{device:04x}",
        uuid=infos.get("NVIDIAUUID", ""),
        memory=kilobytes * 1024 or None,
        numa=_node_of(local, numa),
        cpus=_cpus(local) if local is not None else None,
        pcie=_real(node.get("pci_link_speed")) or None,
        path=_path(node),
    )


def _nic(node: Element, numa: tuple[NumaNode, ...]) -> NIC:
    names = [device.get("name") for device in _os_devices(node)]
    fast = [
        device.get("name")
        for device in _os_devices(node)
        if "NodeGUID" in _infos(device) or RDMA_NAME.fullmatch(device.get("name"))
    ]
    infiniband = _pci(node)[0] == 0x0207
    return NIC(
        name=next(iter(fast + names), f"PCI {bus_id(node.get('pci_busid'))}"),
        bus_id=bus_id(node.get("pci_busid")),
        numa=_node_of(_local(node), numa),
        rdma=bool(fast) or infiniband,
        path=_path(node),
    )


def level(first: GPU | NIC, second: GPU | NIC) -> str:
    """Return how close the devices `first` and `second` are connected by PCIe: PIX, PXB, PHB, NODE or SYS, as in
    `nvidia-smi topo -m`. The level follows from the PCI bridges above the devices. If they have no common bridge, it
    follows from their NUMA nodes or, if these are not known, from the CPUs near two GPUs."""
    near = connection_levels.closest(first.path, second.path)
    if near:
        return near
    if None in (first.numa, second.numa):
        same = isinstance(first, GPU) and isinstance(second, GPU) and first.cpus and first.cpus == second.cpus
        return "NODE" if same else "SYS"
    return "NODE" if first.numa == second.numa else "SYS"


def _nvlinks(
    top: Element, objects: _Objects, devices: list[Element], gpus: tuple[GPU, ...]
) -> tuple[list[list[int]], list[str]]:
    """Return the number of NVLinks between GPUs from the bandwidths (MB/s) that hwloc writes; the ports of switches are
    counted together."""
    count = len(gpus)
    links = [[0] * count for _ in range(count)]
    problems: list[str] = []
    by_id = {f"{_type(node)}:{node.get('gp_index')}": node for node in objects.all if node.get("gp_index")}
    for entry in (child for child in top.walk() if child.tag in ("distances2", "distances2hetero")):
        what = entry.get("name")
        if what not in ("NVLinkBandwidth", "XGMIBandwidth"):
            continue
        indexes = " ".join(child.text for child in entry.inside("indexes")).split()
        values = " ".join(child.text for child in entry.inside("u64values")).split()
        if entry.get("type"):
            indexes = [f"{entry.get('type')}:{index}" for index in indexes]
        if not indexes or len(indexes) > MOST_PORTS or len(values) != len(indexes) ** 2:
            problems.append(f"{what[:-9]} bandwidths were recorded with the wrong number of values: left out")
            continue
        if what == "XGMIBandwidth":
            most = max((_number(value) for n, value in enumerate(values) if n % (len(indexes) + 1)), default=0)
            problems.append(
                f"XGMI bandwidths of {len(indexes)} GPUs, up to {most / 1000:g} GB/s, are in the recording, but not "
                "used: their pairs are planned by PCIe"
            )
            continue
        place = [_gpu_of(by_id.get(index), devices) for index in indexes]
        speed = [[_number(values[a * len(indexes) + b]) for b in range(len(indexes))] for a in range(len(indexes))]
        ports = [
            sum(speed[a][b] for b in range(len(indexes)) if _is_switch(by_id.get(indexes[b])))
            for a in range(len(indexes))
        ]
        for a, first in enumerate(place):
            for b, second in enumerate(place):
                if first is None or second is None or first == second:
                    continue
                direct = speed[a][b] or min(ports[a], ports[b])
                generation = connection_levels.generation(gpus[first].model) or "volta"
                links[first][second] = min(36, round(direct / 1000 / connection_levels.NVLINK_RAW[generation]))
    return agreed_links(links, [0] * count, problems), problems


def _gpu_of(node: Element | None, devices: list[Element]) -> int | None:
    while node is not None:
        if node in devices:
            return devices.index(node)
        node = node.parent
    return None


def _is_switch(node: Element | None) -> bool:
    # A switch that did not answer during the recording has no class, only a name.
    return node is not None and (node.get("subtype") == "NVSwitch" or _pci(node)[:2] == (pci.BRIDGE, pci.NVIDIA))
