"""Levels of connection of two devices: the words of `nvidia-smi topo -m`, fastest first, with their speeds.

    | word | connection of the two devices |
    |------|-------------------------------|
    | NV#  | # bonded NVLinks |
    | PSB  | one PCIe switch on the board of both |
    | PIX  | at most one PCIe bridge or switch |
    | PXB  | several PCIe switches, but no host bridge |
    | PHB  | a PCIe host bridge (the CPU) |
    | NODE | several host bridges of one NUMA node |
    | SYS  | the interconnect between NUMA nodes or sockets; formerly called SOC |

Bandwidths are in GB/s per direction and latencies in seconds. They are the values that NCCL assumes (src/graph/topo.h,
src/graph/tuning.cc, ring with the simple protocol), so that a plan without measurements agrees with the choice of NCCL.
"""

import re
from collections.abc import Callable

SELF = "X"
PCIE = ("PSB", "PIX", "PXB", "PHB", "NODE", "SYS")
OLD = {"SOC": "SYS"}
RANK = {word: n for n, word in enumerate(PCIE)}
UNKNOWN = len(PCIE)  # rank of NVLink and of unknown levels, which count as farther than all of PCIe

# Words of `nvidia-smi topo -p2p`, which is another matrix: whether two GPUs can access each other's memory.
P2P_WORDS = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})

# No device has more links (2 x 18); a larger number is not a valid level.
MOST_LINKS = 36
_NVLINK = re.compile(r"NV([1-9]|[12][0-9]|3[0-6])")

LOCAL = 5000.0
PCIE_X16_GEN3 = 12.0
# The usable fraction of the raw rate of a link: NCCL uses 12 of the 15.75 GB/s of 16 lanes of generation 3.
PCIE_SHARE = PCIE_X16_GEN3 / 15.753846
NETWORK = 12.0  # 100 Gbit/s
# An Intel CPU cuts peer traffic into 64-byte packets, which costs a fifth more.
INTEL_PEER = 6 / 5

# GB/s of one NVLink, effective and raw, by generation of GPU.
NVLINK = {"pascal": 18.0, "volta": 20.0, "ampere": 20.0, "hopper": 20.6, "blackwell": 40.1}
NVLINK_RAW = {"pascal": 20.0, "volta": 25.0, "ampere": 25.0, "hopper": 25.0, "blackwell": 50.0}
MOST_NVLINKS = {"pascal": 4, "volta": 6, "ampere": 12, "hopper": 18, "blackwell": 18}

# Generation by the first digits of the compute capability (60: Pascal); 75 and 89 have no useful NVLink.
_ARCHITECTURES = {6: "pascal", 7: "volta", 8: "ampere", 9: "hopper", 10: "blackwell"}

# Bandwidth between two NUMA nodes by words in the model of the CPU; the first word found is used.
BETWEEN_NODES = (
    (r"POWER9", 32.0),
    (r"POWER", 32.0),
    (r"EPYC|AMD", 16.0),
    (r"Grace|Neoverse|ARM", 6.0),
    (r"Emerald Rapids|Granite Rapids", 40.0),
    (r"Sapphire Rapids", 22.0),
    (r"Skylake|Cascade Lake|Ice Lake", 10.0),
    (r"Broadwell|Haswell", 6.0),
    (r"Platinum 85|Gold 65|Gold 55|XEON.*85\d\d", 40.0),
    (r"Platinum 84|Gold 64|Gold 54|w9-3", 22.0),
    (r"Platinum|Gold|Silver|Bronze|Xeon.*W-", 10.0),
    (r"E5-|E7-", 6.0),
)
UNKNOWN_CPU = 10.0

# GB/s of 16 lanes by PCIe generation: generations 1 and 2 use 2 of 10 bits for the code, 3 to 5 use 2 of 130; and their
# rates.
PCIE_X16 = {1: 4.0, 2: 8.0, 3: 15.753846, 4: 31.507692, 5: 63.015385, 6: 121.0}
_RATES = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
# PCIe generation of the GPUs of each generation, used if the link of a GPU is not known.
PCIE_OF = {"pascal": 3, "volta": 3, "turing": 3, "ampere": 4, "ada": 4, "hopper": 5, "blackwell": 5}

LATENCY = {"NV": 3.4e-6, "PCI": 5.7e-6, "NET": 14.0e-6}
# Latency that each level of PCIe adds: a switch holds a packet for some 0.15 us (PLX PEX 8700 series, product brief).
HOP = 0.15e-6


def square(count: int, word: Callable[[int, int], str]) -> tuple[tuple[str, ...], ...]:
    """Return the matrix of the connection levels of `count` devices, such as "PIX", with "X" on the diagonal. `word`: a
    function that returns the level of two devices, given by their indexes."""
    return tuple(tuple(SELF if a == b else word(a, b) for b in range(count)) for a in range(count))


def rank(level: str) -> int:
    """Return the position of a `level` of PCIe connection in the order of closeness, from 0 for "PSB" (one board) to 5
    for "SYS" (two sockets); 6 (UNKNOWN) for NVLink and other words."""
    return RANK.get(level, UNKNOWN)


def word(text: str) -> str | None:
    """Return the level that `text` names (SYS for SOC); None for any other text. A level says how two devices are
    connected: NV with a number, PIX, PXB, PHB, NODE or SYS, as in `nvidia-smi topo -m`."""
    text = OLD.get(text, text)
    return text if text == SELF or text in RANK or _NVLINK.fullmatch(text) else None


def nvlinks(level: str) -> int:
    """Return the number of bonded NVLinks that a connection level names, such as 4 for "NV4"; 0 for other levels."""
    match = _NVLINK.fullmatch(level)
    return int(match[1]) if match else 0


def link_count(links: list[int], model: str = "") -> int:
    """Return the number of NVLinks of a GPU. `links`: the number of NVLinks from it to each other GPU. The result is
    their sum, unless that exceeds the number of links of a GPU of this `model`: then the GPU is connected to a switch,
    each pair uses the same links, and the result is the largest of the numbers."""
    most = MOST_NVLINKS.get(generation(model) or "", max(MOST_NVLINKS.values()))
    return sum(links) if sum(links) <= most else max(links)


def pcie_speed(generation: int | None, width: int | None) -> float | None:
    """Return the bandwidth in GB/s, in one direction, of a PCIe link of `generation`, such as 4, with `width` lanes;
    None for an unknown generation or width."""
    return PCIE_X16[generation] * width / 16 if generation in PCIE_X16 and width and 0 < width <= 32 else None


def pcie_speed_of_rate(rate: str, width: str) -> float | None:
    """Return the bandwidth of a PCIe link in GB/s, in one direction, from its `rate` and `width` as Linux and NCCL
    write them, such as "16.0 GT/s PCIe" and "16". None for other texts and unknown rates."""
    match = re.match(r"\s*(\d{1,2}(?:\.\d+)?)\s*GT/s", rate)
    lanes = int(width) if width.isascii() and width.isdigit() and len(width) < 4 else None
    return pcie_speed(_RATES.get(float(match[1])), lanes) if match else None


def assumed_pcie_speed(model: str) -> float:
    """Return the bandwidth, in GB/s, that is assumed for the PCIe link of a GPU if the machine does not report it. It
    follows from the GPU's `model`; for an unknown model it is that of PCIe generation 3."""
    number = PCIE_OF.get(pcie_generation(model) or "")
    return PCIE_X16[number] * PCIE_SHARE if number else PCIE_X16_GEN3


def pcie_generation(model: str) -> str | None:
    """Return the architecture of a GPU model, such as "ada", to which `PCIE_OF` gives the PCIe generation; None for an
    unknown model. In contrast to `generation`, the function also knows models without NVLink."""
    if re.search(r"\bL(4|40|40S|20)\b|\bRTX.* Ada|\bRTX 40\d\d", model):
        return "ada"
    if re.search(r"\bT4\b|\bT4G\b|\bRTX [68]000\b(?!.*Ada)|\bTU1\d\d", model):
        return "turing"
    if re.search(r"\bA(2|10|10G|16)\b|\bRTX 30\d\d", model):
        return "ampere"
    return "blackwell" if re.search(r"\bRTX (PRO|50\d\d)", model) else generation(model)


def generation(model: str) -> str | None:
    """Return the architecture of a GPU model, such as "hopper"; None if the model is unknown or has no NVLink (or a
    slow one)."""
    for name, pattern in (
        ("blackwell", r"\bG?B[1-3]0[0-9]\b|\bGB\d"),
        ("hopper", r"\bG?H[12]00|\bH800|\bH20\b|GH100"),
        ("ampere", r"\bA(100|800|30|40)\b|\bRTX A|GA10"),
        ("volta", r"V100|GV100|\bV\d00"),
        ("pascal", r"P100|GP100"),
    ):
        if re.search(pattern, model):
            return name
    match = re.search(r"\bsm_(\d{2,3})\b", model)
    return _ARCHITECTURES.get(int(match[1]) // 10) if match else None


def interconnect_speed(cpu: str) -> float:
    """Return the bandwidth between two NUMA nodes of the CPU model `cpu`, in GB/s; that of Skylake for an unknown
    model."""
    return next((speed for pattern, speed in BETWEEN_NODES if re.search(pattern, cpu, re.IGNORECASE)), UNKNOWN_CPU)


def closest(first: tuple[str, ...], second: tuple[str, ...]) -> str | None:
    """Return the connection level of two PCI devices, PIX, PXB or PHB, or None if they share no bridge. `first`,
    `second`: the bridges above each, host bridge first. If each device has at most one bridge below the common one,
    both are on one switch (PIX), since a switch has an upstream port and a downstream port for each device."""
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    if shared == 0:
        return None
    if shared == 1:
        return "PHB"
    return "PIX" if max(len(first), len(second)) - shared <= 1 else "PXB"
