"""How two devices are connected: the words of `nvidia-smi topo -m`, best first, and the speeds that go with them.

| word | the way between two devices |
|------|-----------------------------|
| NV#  | # bonded NVLinks |
| PSB  | one PCIe switch on the board both sit on |
| PIX  | at most one PCIe bridge or switch |
| PXB  | several PCIe switches, but no host bridge |
| PHB  | a PCIe host bridge (the CPU) |
| NODE | several host bridges of one NUMA node |
| SYS  | the interconnect between NUMA nodes or sockets; SOC is its old word |

Bandwidths are GB/s in one direction and latencies seconds, as NCCL assumes them (src/graph/topo.h, src/graph/tuning.cc,
ring with the simple protocol), so that a plan made without measuring agrees with what NCCL would choose.
"""

import re

SELF = "X"
PCIE = ("PSB", "PIX", "PXB", "PHB", "NODE", "SYS")
OLD = {"SOC": "SYS"}
RANK = {word: n for n, word in enumerate(PCIE)}

# Words of `nvidia-smi topo -p2p`, which is another matrix: may two GPUs reach each other's memory at all?
P2P_WORDS = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})

# No device has more than 36 links (2 x 18); a larger number is no level.
_NVLINK = re.compile(r"NV([1-9]|[12][0-9]|3[0-6])")

LOCAL = 5000.0
PCIE_X16_GEN3 = 12.0
# What a link carries of its raw rate: NCCL's 12 of the 15.75 GB/s of 16 lanes of generation 3.
PCIE_SHARE = PCIE_X16_GEN3 / 15.753846
NETWORK = 12.0  # 100 Gbit/s
# An Intel CPU cuts peer traffic into 64-byte packets, which costs a fifth more.
INTEL_PEER = 6 / 5

# GB/s of one NVLink, effective and raw, by generation of GPU.
NVLINK = {"pascal": 18.0, "volta": 20.0, "ampere": 20.0, "hopper": 20.6, "blackwell": 40.1}
NVLINK_RAW = {"pascal": 20.0, "volta": 25.0, "ampere": 25.0, "hopper": 25.0, "blackwell": 50.0}
MOST_NVLINKS = {"pascal": 4, "volta": 6, "ampere": 12, "hopper": 18, "blackwell": 18}

# Between two NUMA nodes, by what the CPU's model says; the first that is found counts.
BETWEEN_NODES = (
    (r"POWER9", 32.0),
    (r"POWER", 32.0),
    (r"EPYC|AMD", 16.0),
    (r"Grace|Neoverse|ARM", 6.0),
    (r"Platinum 85|Gold 65|Gold 55|XEON.*85\d\d", 40.0),
    (r"Platinum 84|Gold 64|Gold 54|w9-3", 22.0),
    (r"Platinum|Gold|Silver|Bronze|Xeon.*W-", 10.0),
    (r"E5-|E7-", 6.0),
)
UNKNOWN_CPU = 10.0

LATENCY = {"NV": 3.4e-6, "PCI": 5.7e-6, "NET": 14.0e-6}
# What each level of PCIe adds: a switch holds a packet for some 0.15 us (PLX PEX 8700 series, product brief).
HOP = 0.15e-6


def word(text: str) -> str | None:
    """The level that `text` names, SYS for SOC; None when it names none."""
    text = OLD.get(text, text)
    return text if text == SELF or text in RANK or _NVLINK.fullmatch(text) else None


def nvlinks(level: str) -> int:
    """Number of bonded NVLinks of a level, 0 for the others."""
    match = _NVLINK.fullmatch(level)
    return int(match[1]) if match else 0


def link_count(links: list[int], model: str = "") -> int:
    """NVLinks of a GPU by those of its pairs; more than it can have are the same ones, behind a switch."""
    most = MOST_NVLINKS.get(generation(model) or "", max(MOST_NVLINKS.values()))
    return sum(links) if sum(links) <= most else max(links)


def generation(model: str) -> str | None:
    """The GPU's generation by its model; None when unknown or without NVLink worth the name."""
    for name, pattern in (
        ("blackwell", r"\bG?B[1-3]0[0-9]\b|\bGB\d"),
        ("hopper", r"\bG?H[12]00|\bH800|\bH20\b|GH100"),
        ("ampere", r"\bA(100|800|30|40)\b|\bRTX A|GA10"),
        ("volta", r"V100|GV100|\bV\d00"),
        ("pascal", r"P100|GP100"),
    ):
        if re.search(pattern, model):
            return name
    return None


def between_nodes(cpu: str) -> float:
    """GB/s between two NUMA nodes of a CPU model; that of Skylake when the model is unknown."""
    return next((speed for pattern, speed in BETWEEN_NODES if re.search(pattern, cpu, re.IGNORECASE)), UNKNOWN_CPU)


def closest(first: tuple[str, ...], second: tuple[str, ...]) -> str | None:
    """PIX, PXB or PHB by the bridges above two PCI devices, host bridge first; None when they share none.

    At most one bridge below the common one on each side is one switch: its upstream port and two downstream ports.
    """
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    if shared == 0:
        return None
    if shared == 1:
        return "PHB"
    return "PIX" if max(len(first), len(second)) - shared <= 1 else "PXB"
