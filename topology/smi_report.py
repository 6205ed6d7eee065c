"""Facts that a report gives around the matrix of `nvidia-smi topo -m`: models and PCIe links of the GPUs (`nvidia-smi
-L`, `-q`, `--query-gpu ... --format=csv`), the CPU and its NUMA nodes (`lscpu`)."""

import re
from dataclasses import dataclass, field

from hiresx.topology import connection_levels
from hiresx.topology.cpus import parse_list
from hiresx.topology.machine import MOST_GPUS, bus_id, printable

_LISTED = re.compile(
    r"^\W*GPU\s+(\d{1,3}(?:\s*,\s*\d{1,3})*)\s*:\s+([A-Z][^\n(]{2,80}?)\s*(?:\(UUID:\s*([\w\-]+)\s*\))?\s*$"
)
_BLOCK = re.compile(r"^\W*GPU\s+([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_FIELD = re.compile(r"^\s*([A-Za-z][A-Za-z ]*?)\s*(?::\s*(.*\S))?\s*$")
_MODEL = re.compile(r"^\W*(?:CPU:\s*)?Model name\s*:\s*(\S.{0,100}?)\s*$")
_NODE = re.compile(r"^\W*NUMA node\s?(\d{1,4}) CPU\(s\)\s*:\s*([0-9][0-9,\-]*)\s*$")


@dataclass
class ReportedFacts:
    """Facts that a report of `nvidia-smi` contains. The first four have one entry for each GPU, by its index. `models`:
    the models. `uuids`: the UUIDs. `buses`: the PCI addresses. `pcie`: the bandwidth of the PCIe link, in GB/s per
    direction. `cpu`: the model of the CPU. `nodes`: the CPUs of each NUMA node, by its number."""

    models: dict[int, str] = field(default_factory=dict)
    uuids: dict[int, str] = field(default_factory=dict)
    buses: dict[int, str] = field(default_factory=dict)
    pcie: dict[int, float] = field(default_factory=dict)
    cpu: str = ""
    nodes: dict[int, frozenset[int]] = field(default_factory=dict)


def facts(text: str) -> ReportedFacts:
    """Return what a text that contains output of `nvidia-smi` and `lscpu` says about a machine besides the matrix of
    `topo -m`: models, UUIDs, PCI addresses and PCIe links of GPUs, and the CPUs. Unknown lines are ignored."""
    found = ReportedFacts()
    lines = [line for line in text.splitlines() if len(line) < 400]
    for line in lines:
        if match := _LISTED.match(line):
            for number in match[1].split(","):
                if int(number) < MOST_GPUS:
                    found.models.setdefault(int(number), printable(match[2].strip()))
                    if match[3]:
                        found.uuids.setdefault(int(number), match[3])
        elif match := _MODEL.match(line):
            found.cpu = found.cpu or printable(match[1])
        elif match := _NODE.match(line):
            found.nodes.setdefault(int(match[1]), parse_list(match[2]) or frozenset())
    _read_query(lines, found)
    _table(lines, found)
    return found


def _read_query(lines: list[str], found: ReportedFacts) -> None:
    """Read `nvidia-smi -q`: a block for each GPU, in order. Generation and width of a link are the highest ones that
    both ends support."""
    number, section, generation = -1, "", None
    for line in lines:
        if match := _BLOCK.match(line):
            number, section, generation = number + 1, "", None
            found.buses.setdefault(number, bus_id(match[1]))
            continue
        match = _FIELD.match(line)
        if number < 0 or number >= MOST_GPUS or not match:
            continue
        name, value = match[1], match[2]
        if value is None:
            section = name
        elif name == "Product Name":
            found.models.setdefault(number, printable(value))
        elif name == "GPU UUID":
            found.uuids.setdefault(number, printable(value))
        elif name == "Max" and section == "PCIe Generation" and value.isdigit():
            generation = int(value)
        elif name == "Max" and section == "Link Width" and value.rstrip("x").isdigit():
            speed = connection_levels.pcie_speed(generation, int(value.rstrip("x")))
            if speed:
                found.pcie.setdefault(number, speed)


def _table(lines: list[str], found: ReportedFacts) -> None:
    """Read the CSV of --query-gpu: a line of names, then one line for each GPU."""
    names: list[str] = []
    rows = 0
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        if any(cell.startswith("pcie.link.gen") for cell in cells):
            names, rows = [cell.split(" ")[0] for cell in cells], 0
            continue
        if not names or len(cells) != len(names):
            names = names if rows == 0 else []
            continue
        entry = dict(zip(names, cells, strict=True))
        number = int(entry["index"]) if entry.get("index", "").isdigit() else rows
        rows += 1
        if number >= MOST_GPUS:
            continue

        def most(what: str, entry: dict[str, str] = entry) -> int | None:
            values = (entry.get(f"pcie.link.{what}.{kind}", "") for kind in ("max", "current"))
            return next((int(value) for value in values if value.isascii() and value.isdigit()), None)

        speed = connection_levels.pcie_speed(most("gen"), most("width"))
        if speed:
            found.pcie.setdefault(number, speed)
        if entry.get("name"):
            found.models.setdefault(number, printable(entry["name"]))
        if entry.get("pci.bus_id"):
            found.buses.setdefault(number, bus_id(entry["pci.bus_id"]))
