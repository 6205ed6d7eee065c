"""hwloc's XML exports, versions 1.x, 2.x and 3.0, read in Python, so that a recording needs no library of its version.

The same reader serves the live machine: the library exports what it discovered, and only its exports have a layout
that stayed the same from version to version.
"""

import re
from dataclasses import replace
from xml.parsers import expat

from hiresx.errors import HiresxError
from hiresx.topology import levels
from hiresx.topology.cpus import parse_mask
from hiresx.topology.machine import GPU, MOST_GPUS, MOST_NICS, NIC, Machine, NumaNode, Package, bus_id

MEND = "record the machine again with: lstopo --of xml machine.xml"
# A node of 1024 CPUs has some 10,000 objects with some 100,000 attributes.
MOST_ELEMENTS = 1_000_000
DEEPEST = 128
NVIDIA, AMD = 0x10DE, 0x1002
# A display controller with a slower link is the console of the board, not a GPU to compute on.
COMPUTE_LINK = 3.0
MOST_PORTS = 512

_PCI_TYPE = re.compile(r"([0-9a-fA-F]{4}) \[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\]")
_RDMA_NAME = re.compile(r"(mlx\d|hfi\d|bnxt_re|irdma|qedr|efa|cxi|ib|opa|usnic|hns)_?\d*")


class Node:
    """One element `object`: its attributes, its infos, and those inside it."""

    __slots__ = ("attributes", "children", "infos", "parent")

    def __init__(self, attributes: dict[str, str], parent: "Node | None"):
        self.attributes, self.parent = attributes, parent
        self.infos: dict[str, str] = {}
        self.children: list[Node] = []

    @property
    def type(self) -> str:
        return self.attributes.get("type", "")

    def get(self, key: str) -> str:
        return self.attributes.get(key, "")

    def ancestors(self):
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def walk(self):
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


class _Distances:
    def __init__(self, attributes: dict[str, str]):
        self.name = attributes.get("name", "")
        self.type = attributes.get("type", "")
        self.indexes: list[str] = []
        self.values: list[str] = []


class _Reader:
    """Takes expat's events. Entities, internal subsets, depth and number of elements are bounded: an export needs
    none of what makes XML dangerous."""

    def __init__(self, name: str):
        self.name, self.root, self.current = name, None, None
        self.version = ""
        self.distances: list[_Distances] = []
        self.elements = self.depth = 0
        self.taken: list[str] | None = None
        self.parser = expat.ParserCreate("utf-8")  # as the text was read, whatever it names itself
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.refuse
        self.parser.UnparsedEntityDeclHandler = self.refuse
        self.parser.ExternalEntityRefHandler = self.refuse

    def refuse(self, *_):
        raise HiresxError(f"{self.name}: XML that declares entities is refused: hwloc writes none", MEND)

    def doctype(self, _name, _system, _public, internal):
        if internal:
            self.refuse()

    def start(self, tag: str, attributes: dict[str, str]):
        self.elements += 1
        self.depth += 1
        if self.elements > MOST_ELEMENTS or self.depth > DEEPEST:
            raise HiresxError(f"{self.name}: more elements, or deeper, than the XML of a machine", MEND)
        if self.depth == 1:
            if tag != "topology":
                raise HiresxError(f"{self.name}: the XML of <{tag[:40]}>, not hwloc's <topology>", MEND)
            self.version = attributes.get("version", "1")
        elif tag == "object":
            node = Node(attributes, self.current)
            if self.current is None:
                if self.root is not None:
                    raise HiresxError(f"{self.name}: two root objects", MEND)
                self.root = node
            else:
                self.current.children.append(node)
            self.current = node
        elif tag == "info" and self.current is not None:
            self.current.infos[attributes.get("name", "")] = attributes.get("value", "")
        elif tag in ("distances2", "distances2hetero"):
            self.distances.append(_Distances(attributes))
        elif self.distances and tag in ("indexes", "u64values"):
            self.taken = self.distances[-1].indexes if tag == "indexes" else self.distances[-1].values

    def end(self, tag: str):
        self.depth -= 1
        if tag == "object" and self.current is not None:
            self.current = self.current.parent
        if tag in ("indexes", "u64values"):
            self.taken = None

    def text(self, data: str):
        if self.taken is not None:
            self.taken.append(data)


def parse_hwloc_xml(text: str, name: str = "hwloc XML") -> Machine:
    """The machine of an export. GPUs are in order of their PCI bus ids, as NVML counts them.

    Raises HiresxError for what is not XML of hwloc, is cut off, or has no object that can be one machine.
    """
    reader = _Reader(name)
    try:
        reader.parser.Parse(text.encode("utf-8", errors="replace"), True)
    except expat.ExpatError as error:
        raise HiresxError(f"{name}: not XML, or cut off: {error}", MEND) from None
    if reader.root is None:
        raise HiresxError(f"{name}: XML of hwloc without any object", MEND)
    return _machine(reader, name)


def _machine(reader: _Reader, name: str) -> Machine:
    root = reader.root
    nodes = list(root.walk())
    numa = _numa_nodes(nodes)
    packages = tuple(
        Package(_number(node.get("os_index")), node.infos.get("CPUModel", ""), _cpus(node))
        for node in nodes
        if node.type in ("Package", "Socket")
    )
    if packages and not any(package.model for package in packages):
        # hwloc before 2.0 may keep the model on the machine.
        packages = tuple(Package(p.index, root.infos.get("CPUModel", ""), p.cpus) for p in packages)
    devices = sorted(
        (node for node in nodes if node.type == "PCIDev" and _is_gpu(node)),
        key=lambda node: bus_id(node.get("pci_busid")),
    )
    adapters = sorted(
        (node for node in nodes if node.type == "PCIDev" and _pci(node)[0] >> 8 == 0x02),
        key=lambda node: bus_id(node.get("pci_busid")),
    )
    if len(devices) > MOST_GPUS or len(adapters) > MOST_NICS:
        raise HiresxError(f"{name}: {len(devices)} GPUs and {len(adapters)} network adapters are no one machine", MEND)
    gpus = tuple(_gpu(n, node, numa) for n, node in enumerate(devices))
    nics = tuple(_nic(node, numa) for node in adapters)
    problems: list[str] = []
    pcie = _pcie_levels(gpus, nodes)
    links, unclear = _nvlinks(reader.distances, nodes, devices, gpus)
    problems += unclear
    if len(gpus) > 1 and not any(map(any, links)) and any("SXM" in gpu.model for gpu in gpus):
        problems.append("GPUs of a board with NVLink, but the recording has no NVLink: PCIe is all that is known")
    matrix = tuple(
        tuple(f"NV{links[a][b]}" if links[a][b] else pcie[a][b] for b in range(len(gpus))) for a in range(len(gpus))
    )
    counts = [levels.link_count(row, gpu.model) for row, gpu in zip(links, gpus, strict=True)]
    gpus = tuple(replace(gpu, links=count or None) for gpu, count in zip(gpus, counts, strict=True))
    infos = root.infos
    if not any(node.type == "PCIDev" for node in nodes):
        problems.append("no PCI device in the recording: it was made without I/O (lstopo --whole-io keeps it)")
    return Machine(
        source=f"recording of hwloc XML {reader.version}: {name}",
        gpus=gpus,
        levels=matrix,
        pcie=pcie,
        peer=tuple(tuple(levels.SELF if a == b else "" for b in range(len(gpus))) for a in range(len(gpus))),
        nics=nics,
        nic_levels=tuple(tuple(_level(gpu, nic) for nic in nics) for gpu in gpus),
        packages=packages,
        numa=numa,
        cores=tuple(_cpus(node) for node in nodes if node.type == "Core"),
        host=infos.get("HostName", ""),
        product=" ".join(
            part for part in (infos.get("DMIProductName", ""), infos.get("PlatformModel", "")) if part.strip()
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


def _cpus(node: Node) -> frozenset[int]:
    return parse_mask(node.get("cpuset")) or frozenset()


def _pci(node: Node) -> tuple[int, int, int]:
    """(class, vendor, device) of a PCI device."""
    match = _PCI_TYPE.search(node.get("pci_type"))
    return tuple(int(part, 16) for part in match.groups()) if match else (0, 0, 0)


def _is_gpu(node: Node) -> bool:
    kind, vendor, _ = _pci(node)
    if kind >> 8 not in (0x03, 0x12) or vendor not in (NVIDIA, AMD):
        return False
    return vendor == NVIDIA or bool(node.children) or _real(node.get("pci_link_speed")) >= COMPUTE_LINK


def _numa_nodes(nodes: list[Node]) -> tuple[NumaNode, ...]:
    found = []
    for node in nodes:
        if node.type == "NUMANode":
            memory = node.get("local_memory")
            cpus = _cpus(node)
            if not cpus and "cpuset" not in node.attributes and node.parent is not None:
                cpus = _cpus(node.parent)
            # hwloc leaves the memory of a node out when there is none.
            found.append(NumaNode(_number(node.get("os_index")), _number(memory), cpus))
    return tuple(sorted(found, key=lambda node: node.index))


def _local(node: Node) -> Node | None:
    """The nearest ancestor with CPUs: where the device is attached."""
    return next((above for above in node.ancestors() if _cpus(above)), None)


def _node_of(local: Node | None, numa: tuple[NumaNode, ...]) -> int | None:
    """The NUMA node near an object, None when it is near several."""
    if local is None:
        return None
    mask = parse_mask(local.get("nodeset"))
    if mask:
        return next(iter(mask)) if len(mask) == 1 else None
    cpus = _cpus(local)
    near = [node.index for node in numa if cpus and cpus <= node.cpus]
    return near[0] if len(near) == 1 else None


def _path(node: Node) -> tuple[str, ...]:
    """Bridges above a device, host bridge first; a host bridge is known by the buses behind it and where it hangs."""
    bridges = []
    for above in node.ancestors():
        if above.type != "Bridge":
            break
        host = above.get("bridge_type").startswith("0")
        name = above.get("bridge_pci") if host else bus_id(above.get("pci_busid"))
        bridges.append(f"host {name}" if host else name)
    return tuple(reversed(bridges))


def _os_devices(node: Node) -> list[Node]:
    return [child for child in node.walk() if child.type == "OSDev"]


def _gpu(index: int, node: Node, numa: tuple[NumaNode, ...]) -> GPU:
    infos: dict[str, str] = dict(node.infos)
    for device in _os_devices(node):
        infos |= {key: value for key, value in device.infos.items() if value}
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


def _nic(node: Node, numa: tuple[NumaNode, ...]) -> NIC:
    names = [device.get("name") for device in _os_devices(node)]
    fast = [
        device.get("name")
        for device in _os_devices(node)
        if "NodeGUID" in device.infos or _RDMA_NAME.fullmatch(device.get("name"))
    ]
    infiniband = _pci(node)[0] == 0x0207
    return NIC(
        name=next(iter(fast + names), f"PCI {bus_id(node.get('pci_busid'))}"),
        bus_id=bus_id(node.get("pci_busid")),
        numa=_node_of(_local(node), numa),
        rdma=bool(fast) or infiniband,
        path=_path(node),
    )


def _level(first: GPU | NIC, second: GPU | NIC) -> str:
    near = levels.closest(first.path, second.path)
    if near:
        return near
    if None in (first.numa, second.numa):
        same = isinstance(first, GPU) and isinstance(second, GPU) and first.cpus and first.cpus == second.cpus
        return "NODE" if same else "SYS"
    return "NODE" if first.numa == second.numa else "SYS"


def _pcie_levels(gpus: tuple[GPU, ...], nodes: list[Node]):
    return tuple(tuple(levels.SELF if a is b else _level(a, b) for b in gpus) for a in gpus)


def _nvlinks(distances: list[_Distances], nodes: list[Node], devices: list[Node], gpus) -> tuple[list[list[int]], list]:
    """Number of NVLinks between GPUs from the bandwidths (MB/s) that hwloc writes; ports of switches count together."""
    count = len(gpus)
    links = [[0] * count for _ in range(count)]
    problems: list[str] = []
    by_id = {f"{node.type}:{node.get('gp_index')}": node for node in nodes if node.get("gp_index")}
    for entry in distances:
        if entry.name != "NVLinkBandwidth":
            continue
        indexes = " ".join(entry.indexes).split()
        values = " ".join(entry.values).split()
        if entry.type:
            indexes = [f"{entry.type}:{index}" for index in indexes]
        if not indexes or len(indexes) > MOST_PORTS or len(values) != len(indexes) ** 2:
            problems.append("NVLink bandwidths were recorded with the wrong number of values: left out")
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
                generation = levels.generation(gpus[first].model) or "volta"
                links[first][second] = min(36, round(direct / 1000 / levels.NVLINK_RAW[generation]))
    for a in range(count):
        for b in range(a):
            if links[a][b] != links[b][a]:
                problems.append(f"NVLinks between GPU {b} and GPU {a} were recorded as {links[b][a]} and {links[a][b]}")
                links[a][b] = links[b][a] = min(links[a][b], links[b][a])
    return links, problems


def _gpu_of(node: Node | None, devices: list[Node]) -> int | None:
    while node is not None:
        if node in devices:
            return devices.index(node)
        node = node.parent
    return None


def _is_switch(node: Node | None) -> bool:
    # A switch that did not answer while it was recorded has no class, only the name.
    return node is not None and (node.get("subtype") == "NVSwitch" or _pci(node)[:2] == (0x0680, NVIDIA))
