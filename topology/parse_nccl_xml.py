"""The topology files of NVIDIA's NCCL: what NCCL_TOPO_DUMP_FILE writes, and what clouds publish for NCCL_TOPO_FILE.

<system> holds <cpu> (a NUMA node), <pci> in each other (a switch is one element, its ports are left out), and at
their ends <gpu> with its <nvlink>, and <nic> with its <net>. Published files often have only the <pci>, by class.
Host bridges are not recorded: what meets at a <cpu> is PHB, as NCCL calls it.
"""

import re
from itertools import pairwise

from hiresx.errors import HiresxError
from hiresx.topology import connection_levels, pci, xml_tree
from hiresx.topology.cpus import format_list, parse_list, parse_mask
from hiresx.topology.machine import (
    GPU,
    MOST_GPUS,
    MOST_NICS,
    NIC,
    Machine,
    NumaNode,
    Package,
    agreed_links,
    bus_id,
    device_matrices,
)
from hiresx.topology.parse_hwloc_xml import RDMA_NAME, level
from hiresx.topology.xml_tree import Element

HINT = "record it again with: NCCL_TOPO_DUMP_FILE=machine.xml"
# PCI classes of the far ends of NVLinks, as NCCL distinguishes them (src/graph/topo.h).
SWITCH, CPU = "0x0680", "0x068001"
# Names by family and model of the CPU, so that `connection_levels.interconnect_speed` knows its interconnect.
_INTEL = {
    63: "Haswell", 79: "Broadwell", 85: "Skylake", 106: "Ice Lake", 108: "Ice Lake", 143: "Sapphire Rapids",
    207: "Emerald Rapids", 173: "Granite Rapids",
}  # fmt: skip


def parse_nccl_xml(text: str, name: str = "NCCL XML") -> Machine:
    """Return the machine that a topology file of NVIDIA's NCCL describes. GPUs are in the order of their attribute
    `dev` or, without it, of their PCI bus ids. `name`: the name of the text in error messages. Raises HiresxError for
    other XML, for a truncated file, and for a file with neither a GPU nor a network adapter."""
    top = xml_tree.read(text, name, HINT)
    if top.tag != "system":
        raise HiresxError(f"{name}: the XML of <{top.tag[:40]}>, not NCCL's <system>", HINT)
    problems: list[str] = []
    hosts = list(dict.fromkeys(cpu.get("host_hash") for cpu in top.inside("cpu")))
    if len(hosts) > 1:
        problems.append(f"{len(hosts)} hosts in one file: the first is read, the others are not used")
    nodes = [cpu for cpu in top.inside("cpu") if cpu.get("host_hash") == hosts[0]] or [top]
    gpus = [element for node in nodes for element in node.walk() if _is_gpu(element)]
    adapters = [element for node in nodes for element in node.walk() if _is_adapter(element)]
    if not gpus and not adapters:
        raise HiresxError(f"{name}: no GPU and no network adapter in it", HINT)
    order = {n: element for element in gpus if (n := _number(_gpu_of(element).get("dev"))) is not None}
    if len(order) == len(gpus):
        gpus = [order[n] for n in sorted(order)]
    else:
        gpus.sort(key=lambda element: bus_id(element.get("busid")))
    nets: list[tuple[Element, Element | None]] = []
    for element in adapters:
        found = list(element.walk("net"))
        nets += [(element, net) for net in found] or [(element, None)]
    if len(gpus) > MOST_GPUS or len(nets) > MOST_NICS:
        raise HiresxError(f"{name}: {len(gpus)} GPUs and {len(nets)} network adapters: too many for a machine", HINT)
    numa, packages = _cpus(nodes)
    near = {node.index: node.cpus for node in numa}
    devices = tuple(_gpu(n, element, near) for n, element in enumerate(gpus))
    nics = tuple(_nic(element, net) for element, net in nets)
    links = _nvlinks(gpus, problems)
    has_nvlink = [element for element in gpus if not _is_amd(element)]
    if len(has_nvlink) > 1 and not any(map(any, links)) and not any(top.walk("nvlink")):
        problems.append("no NVLink in the file: where the GPUs have any, PCIe is all that is known here")
    _report_unused(nodes, problems)
    return Machine(
        source=f"recording of NCCL's topology: {name}",
        **device_matrices(devices, nics, level, links),
        packages=packages,
        numa=numa,
        problems=tuple(problems),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _class(element: Element) -> int:
    """Return class and subclass; 0 if there are none."""
    match = re.match(r"(?:0x)?([0-9a-fA-F]{4})", element.get("class"))
    return int(match[1], 16) if match else 0


def _hex(text: str, default: int) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return default


def _gpu_of(element: Element) -> Element:
    return next(iter(element.inside("gpu")), element)


def _is_amd(element: Element) -> bool:
    """True if the file was written by RCCL, the NCCL of AMD: it has `gcn`, and `sm` is the number of compute units."""
    return bool(_gpu_of(element).get("gcn")) or _hex(element.get("vendor"), pci.NVIDIA) == pci.AMD


def _link(element: Element) -> float | None:
    return connection_levels.pcie_speed_of_rate(element.get("link_speed"), element.get("link_width"))


def _is_gpu(element: Element) -> bool:
    if element.tag == "gpu":  # written by hand, without its <pci>
        return element.parent is None or element.parent.tag != "pci"
    if element.tag != "pci":
        return False
    vendor, device = _hex(element.get("vendor"), pci.NVIDIA), _hex(element.get("device"), 0xFFFF)
    return pci.is_gpu(_class(element) or 0x0302, vendor, device, _link(element), True) if element.inside("gpu") else (
        pci.is_gpu(_class(element), vendor, device, _link(element))
    )  # fmt: skip


def _is_adapter(element: Element) -> bool:
    """True for a <pci> that is an adapter, and for a <nic> or <net> outside of any <pci>, such as a merged one."""
    holders = [above.tag for above in element.ancestors()]
    if element.tag == "pci":
        has = any(child.tag in ("nic", "net") for child in element.children)
        return (has or _class(element) >> 8 == 0x02) and not element.inside("pci")
    inside = element.parent
    return element.tag in ("nic", "net") and "nic" not in holders and (inside is None or inside.tag != "pci")


def _node(element: Element) -> int | None:
    cpu = next((above for above in element.ancestors() if above.tag == "cpu"), None)
    return _number(cpu.get("numaid")) if cpu is not None else None


def _path(element: Element) -> tuple[str, ...]:
    """Return the bridges above a device in the form of `connection_levels.closest`: for each switch the port towards
    the CPU and the port towards the device."""
    chain = [above for above in element.ancestors() if above.tag == "pci"][::-1]
    cpu = next((above for above in element.ancestors() if above.tag == "cpu"), None)
    found = [f"host of NUMA {cpu.get('numaid')}" if cpu is not None else "host"]
    # A device directly below the <cpu>, as in virtual machines, is connected to the host bridge itself.
    for above, below in pairwise([*chain, element]):
        found += [bus_id(above.get("busid")), f"{bus_id(above.get('busid'))} to {below.get('busid') or id(below)}"]
    return tuple(found)


def _cpus(nodes: list[Element]) -> tuple[tuple[NumaNode, ...], tuple[Package, ...]]:
    numa: dict[int, NumaNode] = {}
    packages = []
    for n, cpu in enumerate(node for node in nodes if node.tag == "cpu"):
        index = _number(cpu.get("numaid"))
        cpus = _affinity(cpu.get("affinity"))
        if index is not None:
            numa.setdefault(index, NumaNode(index, None, cpus))
        packages.append(Package(n if index is None else index, _model(cpu), cpus))
    return tuple(sorted(numa.values(), key=lambda node: node.index)), tuple(packages)


def _affinity(text: str) -> frozenset[int]:
    """Return the CPUs of hexadecimal words with eight digits each, except the first; a file written by hand may have a
    list."""
    words = text.split(",")
    listed = "-" in text or (len(words) > 1 and all(len(word) < 8 for word in words[1:]))
    return (parse_list(text) if listed else parse_mask(text)) or frozenset()


def _model(cpu: Element) -> str:
    vendor, family, number = cpu.get("vendor"), cpu.get("familyid"), _number(cpu.get("modelid"))
    name = {"GenuineIntel": "Intel Xeon", "AuthenticAMD": "AMD EPYC"}.get(vendor, vendor)
    if vendor == "GenuineIntel" and number in _INTEL:
        name = f"Intel Xeon, {_INTEL[number]}"
    elif cpu.get("arch") == "arm64":
        name = f"ARM {vendor}".strip()
    elif cpu.get("arch") == "ppc64":
        name = "POWER"
    return f"{name} (family {family}, model {number})" if name and number is not None else name


def _gpu(index: int, element: Element, near: dict[int, frozenset[int]]) -> GPU:
    inner, numa = _gpu_of(element), _node(element)
    sm = None if _is_amd(element) else _number(inner.get("sm"))
    gcn = inner.get("gcn")
    vendor, device = _hex(element.get("vendor"), 0), _hex(element.get("device"), 0)
    parts = [
        f"sm_{sm}" if sm else "",
        f"gfx{gcn.removeprefix('gfx')}" if gcn else "",
        f"PCI {vendor:04x}:{device:04x}" if vendor else "",
    ]
    return GPU(
        index=index,
        bus_id=bus_id(element.get("busid")) if element.get("busid") else "",
        model=" ".join(part for part in ("GPU", *parts) if part),
        numa=numa,
        cpus=None if numa is None else near.get(numa) or None,
        pcie=_link(element),
        path=_path(element),
    )


def _nic(element: Element, net: Element | None) -> NIC:
    bus = bus_id(element.get("busid")) if element.get("busid") else ""
    name = net.get("name") if net is not None else ""
    speed = _number(net.get("speed")) if net is not None else None  # Mbit/s
    fast = _class(element) == 0x0207 or RDMA_NAME.match(name) is not None or (net is not None and net.get("gdr") == "1")
    return NIC(
        name=name or f"PCI {bus}",
        bus_id=bus,
        numa=_node(element),
        rdma=fast,
        speed=speed / 8000 if speed and speed < 10**7 else None,
        path=_path(element),
    )


def _nvlinks(gpus: list[Element], problems: list[str]) -> list[list[int]]:
    """Return the NVLinks of each pair: those that end at each other; behind switches the smaller of the numbers of the
    two GPUs."""
    count = len(gpus)
    place = {bus_id(element.get("busid")): n for n, element in enumerate(gpus) if element.get("busid")}
    links = [[0] * count for _ in range(count)]
    switched = [0] * count
    nowhere: list[int] = []
    to_cpu: list[int] = []
    for a, element in enumerate(gpus):
        for link in element.walk("nvlink"):
            number = min(_number(link.get("count")) or 1, 36)
            b = place.get(bus_id(link.get("target")))
            if b is not None and b != a:
                links[a][b] += number
            elif link.get("tclass").startswith(CPU):
                to_cpu.append(a)
            elif b is None and (link.get("tclass").startswith(SWITCH) or not link.get("tclass")):
                switched[a] += number
            else:
                nowhere.append(a)
    if to_cpu:
        problems.append(f"NVLinks between GPU {format_list(to_cpu)} and the CPU are in the file, but not used")
    if nowhere:
        problems.append(
            f"NVLinks of GPU {format_list(nowhere)} lead to the GPU itself or to none of the file, as virtual machines "
            "write it: which GPUs they join is not known"
        )
    return agreed_links(links, switched, problems)


def _report_unused(nodes: list[Element], problems: list[str]) -> None:
    for tag, what in (("xgmi", "XGMI links"), ("c2c", "links between GPU and CPU (C2C)")):
        found = [element for node in nodes for element in node.walk(tag)]
        if found:
            problems.append(f"{len(found)} {what} are in the file, but not used: PCIe is planned with instead")
