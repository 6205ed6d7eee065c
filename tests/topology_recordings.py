"""Recordings written for the tests: `nvidia-smi topo -m` as people paste it, hwloc XML of its three layouts, and where
other people's recordings are when this checkout lies beside them."""

import pytest
from paths import SHARED

RECORDINGS = SHARED / "topologies"
needs_shared = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f"no recordings of real machines in {RECORDINGS}")


def smi(levels, affinity=None, numa=None, nics=(), nic_levels=None, separator="\t", header=True) -> str:
    """Text of `nvidia-smi topo -m` for a square of level words."""
    count = len(levels)
    columns = [f"GPU{n}" for n in range(count)] + list(nics)
    columns += ["CPU Affinity"] * (affinity is not None) + ["NUMA Affinity"] * (numa is not None)
    lines = [separator + separator.join(columns)] if header else []
    for n, row in enumerate(levels):
        cells = [f"GPU{n}", *(" X " if word == "X" else word for word in row), *(nic_levels[n] if nics else ())]
        cells += [affinity[n]] if affinity is not None else []
        cells += [str(numa[n])] if numa is not None else []
        lines.append(separator.join(cells))
    for m, nic in enumerate(nics):
        lines.append(
            separator.join(
                [nic, *(row[m] for row in nic_levels), *("X" if k == m else "SYS" for k in range(len(nics)))]
            )
        )
    return (
        "\n".join(lines) + "\n\nLegend:\n\n  X    = Self\n  PIX  = Connection traversing at most a single PCIe bridge\n"
    )


def level_matrix(count: int, *partitions) -> list[list[str]]:
    """Levels where GPUs of one part of (level, parts), the finest first, are that level apart; SYS beyond."""
    found = [["SYS"] * count for _ in range(count)]
    for level, parts in reversed(partitions):
        for part in parts:
            for a in part:
                for b in part:
                    found[a][b] = level
    for n in range(count):
        found[n][n] = "X"
    return found


# Two sockets; the first has two switches of two GPUs, the second one switch of three.
UNEVEN = level_matrix(7, ("PIX", [(0, 1), (2, 3), (4, 5, 6)]), ("NODE", [(0, 1, 2, 3)]))
# Four GPUs in a ring of NVLinks, two on each socket.
RING = [
    ["X", "NV2", "NV1", "SYS"],
    ["NV2", "X", "SYS", "NV1"],
    ["NV1", "SYS", "X", "NV2"],
    ["SYS", "NV1", "NV2", "X"],
]

# Eight GPUs, four on each socket: two switches of two below one of each socket.
BOX = level_matrix(
    8, ("PIX", [(n, n + 1) for n in range(0, 8, 2)]), ("PXB", [(0, 1, 2, 3), (4, 5, 6, 7)]), ("NODE", [range(8)])
)
# Eight GPUs, four on each socket, six NVLinks each: two with both neighbours of a ring through all eight, one with the
# GPU across in the half, one with the GPU two further on the other half.
MESH = level_matrix(8)
for _a, _b, _n in (
    (0, 1, 2), (1, 2, 2), (2, 3, 1), (3, 0, 1), (0, 2, 1), (1, 3, 1), (4, 5, 2), (5, 6, 2), (6, 7, 1), (7, 4, 1),
    (4, 6, 1), (5, 7, 1), (0, 4, 2), (3, 7, 2), (2, 6, 2), (1, 5, 1), (3, 6, 1), (2, 7, 1),
):  # fmt: skip
    MESH[_a][_b] = MESH[_b][_a] = f"NV{_n}"


def hwloc_xml(version: str = "2.0") -> str:
    """Two packages with one NUMA node each: a switch with two GPUs, and a GPU and an adapter behind one host bridge."""
    first = {"1": "", "2.0": ' version="2.0"', "3.0": ' version="3.0"'}[version]
    package, node = ("Socket", 'type="NUMANode" os_index="{n}" cpuset="{c}" nodeset="{s}" local_memory="8589934592"')
    package = "Socket" if version == "1" else "Package"
    halves = []
    for n, cpuset, nodeset in ((0, "0x0000000f", "0x00000001"), (1, "0x000000f0", "0x00000002")):
        cores = "".join(
            f'<object type="Core" os_index="{k}" cpuset="{hex(3 << k)}"><object type="PU" os_index="{k}" '
            f'cpuset="{hex(1 << k)}"/><object type="PU" os_index="{k + 1}" cpuset="{hex(2 << k)}"/></object>'
            for k in range(4 * n, 4 * n + 4, 2)
        )
        attributes = node.format(n=n, c=cpuset, s=nodeset)
        body = _devices(n) + cores
        inside = f"<object {attributes}>{body}</object>" if version == "1" else f"<object {attributes}/>{body}"
        halves.append(
            f'<object type="{package}" os_index="{n}" cpuset="{cpuset}" nodeset="{nodeset}">'
            f'<info name="CPUModel" value="Example CPU"/>{inside}</object>'
        )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc{version[0]}.dtd">\n<topology{first}>'
        f'<object type="Machine" os_index="0" cpuset="0x000000ff" nodeset="0x00000003">'
        f'<info name="HostName" value="example"/>{"".join(halves)}</object></topology>\n'
    )


def _bridge(kind: str, bus: str, where: str, body: str) -> str:
    place = "" if kind.startswith("0") else f' pci_busid="{where}" pci_type="0604 [10b5:8747] [0000:0000] ca"'
    return f'<object type="Bridge" bridge_type="{kind}" bridge_pci="0000:[{bus}]"{place}>{body}</object>'


def _gpu(bus: str, gp: int) -> str:
    return (
        f'<object type="PCIDev" gp_index="{gp}" pci_busid="{bus}" pci_type="0302 [10de:1db1] [10de:1212] a1" '
        f'pci_link_speed="15.753846"><object type="OSDev" gp_index="{gp + 100}" name="cuda0" osdev_type="5">'
        '<info name="GPUModel" value="Tesla V100-PCIE-16GB"/></object></object>'
    )


def _devices(n: int) -> str:
    if n == 0:
        ports = "".join(_bridge("1-1", f"0{k}-0{k}", f"0000:02:0{k}.0", _gpu(f"0000:0{k}:00.0", k)) for k in (3, 4))
        switch = _bridge("1-1", "02-04", "0000:01:00.0", ports)
        return _bridge("0-1", "00-04", "", _bridge("1-1", "01-04", "0000:00:01.0", switch))
    nic = (
        '<object type="PCIDev" gp_index="9" pci_busid="0000:82:00.0" pci_type="0207 [15b3:1017] [0000:0000] 00" '
        'pci_link_speed="15.753846"><object type="OSDev" gp_index="109" name="mlx5_0" osdev_type="3"/></object>'
    )
    first = _bridge("1-1", "81-81", "0000:80:01.0", _gpu("0000:81:00.0", 8))
    return _bridge("0-1", "80-82", "", first + _bridge("1-1", "82-82", "0000:80:02.0", nic))


def hwloc_box(gpus: bool = True, xgmi: bool = False, switches: bool = True) -> str:
    """Two packages of two cores with two threads each, caches, and on package 0 an adapter with a virtual function, a
    console by an old VGA chip and a disk. With `gpus`, on each package one PCIe switch above two, each with two GPUs
    (AMD's with `xgmi`); without `switches` they hang on root ports."""
    packages, number = [], 0
    for n in range(2):
        cores = "".join(
            f'<object type="L2Cache" cpuset="{hex(3 << k)}" cache_size="1048576" depth="2" cache_type="0">'
            f'<object type="Core" os_index="{k}" cpuset="{hex(3 << k)}"/></object>'
            for k in range(4 * n, 4 * n + 4, 2)
        )
        mask = hex(0xF << 4 * n)
        devices = ""
        if n == 0:
            devices += (
                _pci("0000:02:00.0", "0200 [15b3:101d]", '<object type="OSDev" name="eth0" osdev_type="2"/>')
                + _pci("0000:02:00.2", "0200 [15b3:101e]", '<object type="OSDev" name="eth1" osdev_type="2"/>')
                + _pci("0000:03:00.0", "0300 [1002:515e]", '<object type="OSDev" name="card0" osdev_type="1"/>', "0.0")
                + _pci("0000:04:00.0", "0108 [144d:a80a]", '<object type="OSDev" name="nvme0n1" osdev_type="0"/>')
            )
        if gpus:
            inside = ""
            for k in range(2):
                pair = ""
                for j in range(2):
                    bus = f"0000:{0x40 * (n + 1) + 8 * k + j:02x}:00.0"
                    kind = "0380 [1002:740c]" if xgmi else "0302 [10de:20b5]"
                    gpu = _pci(bus, kind, f'<object type="OSDev" gp_index="{900 + number}" name="gpu" osdev_type="5"/>',
                               "31.507692", number)  # fmt: skip
                    pair += _port(f"{n}{k}{j}1", gpu) if switches else _port(f"{n}{k}{j}0", gpu)
                    number += 1
                inside += _port(f"{n}{k}00", _port(f"{n}{k}01", pair)) if switches else pair
            devices += _port(f"{n}f00", _port(f"{n}f01", inside)) if switches else inside
        host = f'<object type="Bridge" bridge_type="0-1" bridge_pci="0000:[{0x40 * n:02x}-{0x40 * n + 0x3F:02x}]">'
        packages.append(
            f'<object type="Package" os_index="{n}" cpuset="{mask}" nodeset="{hex(1 << n)}">'
            f'<object type="NUMANode" os_index="{n}" cpuset="{mask}" nodeset="{hex(1 << n)}" local_memory="4194304"/>'
            f'<object type="L3Cache" cpuset="{mask}" cache_size="33554432" depth="3" cache_type="0">{cores}</object>'
            f"{host}{devices}</object></object>"
        )
    speeds = " ".join("0" if a == b else "50000" for a in range(number) for b in range(number))
    matrix = (
        f'<distances2 type="PCIDev" nbobjs="{number}" kind="25" name="XGMIBandwidth" indexing="gp"><indexes length="9">'
        f'{" ".join(map(str, range(number)))}</indexes><u64values length="9">{speeds}</u64values></distances2>'
    )
    return (
        '<?xml version="1.0"?><topology version="2.0"><object type="Machine" os_index="0" cpuset="0xff" nodeset="0x3">'
        f"{''.join(packages)}</object>{matrix if xgmi else ''}</topology>\n"
    )


def _pci(bus: str, kind: str, inside: str = "", speed: str = "15.75", gp: int = 99) -> str:
    return (
        f'<object type="PCIDev" gp_index="{gp}" pci_busid="{bus}" pci_type="{kind} [0000:0000] 00" '
        f'pci_link_speed="{speed}">{inside}</object>'
    )


def _port(number: str, inside: str) -> str:
    """A port of a switch: `number`, four hexadecimal digits, for its address."""
    return _bridge("1-1", "00-00", f"0000:{number[:2]}:{int(number[2:], 16):02x}.0", inside)


def nccl_xml(links: str = "switch", gpu_elements: bool = True) -> str:
    """Two sockets of two GPUs, each on a switch of its own with an adapter, and these below one switch for each socket;
    `links`: "switch" for six NVLinks each to a switch, "pairs" for four between neighbours, "" for none. Without
    `gpu_elements` only PCI devices by class, as clouds publish it."""
    target = {0: "0000:15:00.0", 1: "0000:11:00.0", 2: "0000:95:00.0", 3: "0000:91:00.0"}
    halves = []
    for node in range(2):
        inside = []
        for k in range(2):
            n, bus = 2 * node + k, f"{(0x9 if node else 0x1):x}{1 + 4 * k:x}"
            ends = {
                "switch": '<nvlink target="fffffff:ffff:ff" count="6" tclass="0x068000"/>',
                "pairs": f'<nvlink target="{target[n]}" count="4" tclass="0x030200"/>',
                "": "",
            }[links]
            gpu = f'<gpu dev="{n}" sm="80" rank="{n}" gdr="1">{ends}</gpu>' if gpu_elements else ""
            net = f'<nic><net name="mlx5_{n}" dev="{n}" speed="200000" port="1" gdr="1"/></nic>' if gpu_elements else ""
            link = 'link_speed="16.0 GT/s PCIe" link_width="16"'
            inside.append(
                f'<pci busid="0000:{bus[0]}{int(bus[1], 16) - 1:x}:00.0" class="0x060400" {link}>'
                f'<pci busid="0000:{bus}:00.0" class="0x030200" {link}>{gpu}</pci>'
                f'<pci busid="0000:{bus[0]}{int(bus[1], 16) + 1:x}:00.0" class="0x020700" {link}>{net}</pci></pci>'
            )
        halves.append(
            f'<cpu numaid="{node}" affinity="{"0000ffff,00000000" if node else "00000000,0000ffff"}" arch="x86_64" '
            f'vendor="GenuineIntel" familyid="6" modelid="143">'
            f'<pci busid="0000:{"8" if node else "0"}1:00.0" class="0x060400">{"".join(inside)}</pci></cpu>'
        )
    return f'<system version="1">{"".join(halves)}</system>\n'
