"""The immutable description of a machine, the same for all sources, and its JSON snapshot."""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from hiresx.base.plural import plural
from hiresx.base.whole_files import replacing
from hiresx.errors import HiresxError
from hiresx.topology import connection_levels
from hiresx.topology.cpus import format_list, parse_list

FORMAT = "hiresx-topology"
VERSION = 1
# A node has at most 20 GPUs today; a file with more than this is not valid.
MOST_GPUS = 64
MOST_NICS = 256
LARGEST_FILE = 64 * 2**20
MOST_ENTRIES, LONGEST_TEXT = 65536, 4096
# Keys of a snapshot besides those of `Machine`. Those that `hiresx topo --json` adds follow from the others.
DERIVED = frozenset({"format", "version", "live", "nvlink_bandwidth", "groups", "tree"})

Matrix = tuple[tuple[str, ...], ...]
Cpus = frozenset[int]


@dataclass(frozen=True)
class GPU:
    """A GPU. Values that are None or "" are not known.

    - `index`: its index. `bus_id`: its PCI address. `model`: its model. `uuid`: its UUID.
    - `memory`, `memory_used`: in bytes. `utilisation`: in per cent.
    - `mig`: whether MIG is enabled. `mig_uuid`: the UUID of a MIG slice, whose `bus_id` and `uuid` are those of the
      card.
    - `numa`: its NUMA node. `nodes`: the NUMA nodes near it, if the source lists several. `cpus`: the CPUs near it.
    - `pcie`: bandwidth of its PCIe link in GB/s, in one direction. `path`: the PCI bridges above it, beginning with the
      host bridge.
    - `links`: number of active NVLinks. `domain`: the NVLink domain, which may include several hosts, as "cluster
      UUID/clique".
    """

    index: int
    bus_id: str = ""
    model: str = ""
    uuid: str = ""
    memory: int | None = None
    memory_used: int | None = None
    utilisation: int | None = None
    mig: bool | None = None
    numa: int | None = None
    nodes: Cpus | None = None
    cpus: Cpus | None = None
    pcie: float | None = None
    links: int | None = None
    path: tuple[str, ...] = ()
    mig_uuid: str = ""
    domain: str = ""

    @property
    def address(self) -> str:
        """Unique identifier of the GPU on its host: its PCI address, for a MIG slice followed by its UUID."""
        return address(self.bus_id, self.mig_uuid)


@dataclass(frozen=True)
class NIC:
    """A network adapter. `name`: its name in the operating system. `bus_id`: its PCI address. `numa`: its NUMA node.
    `rdma`: whether it supports RDMA, so that GPUs can send through it without the CPU. `speed`: its bandwidth in GB/s.
    `path`: the PCI bridges above it, beginning with the host bridge. None or "" means not known."""

    name: str
    bus_id: str = ""
    numa: int | None = None
    rdma: bool = False
    speed: float | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node. `index`: its number. `memory`: its memory in bytes; 0 for a node without memory, None if not known.
    `cpus`: its CPUs."""

    index: int
    memory: int | None = None
    cpus: Cpus = frozenset()


@dataclass(frozen=True)
class Package:
    """A processor package (socket). `index`: its number. `model`: its model. `cpus`: its CPUs."""

    index: int
    model: str = ""
    cpus: Cpus = frozenset()


@dataclass(frozen=True)
class Cache:
    """A cache of a CPU. `level`: 1 for L1, 2 for L2, and so on. `kind`: "", "data" or "instruction". `size`: in bytes.
    `cpus`: the CPUs that share it."""

    level: int
    kind: str = ""
    size: int | None = None
    cpus: Cpus = frozenset()


@dataclass(frozen=True)
class OtherDevice:
    """A PCI device that is listed and is not a GPU, a network adapter or a bridge. `kind`: its class. `bus_id`: its PCI
    address. `name`: its name in the operating system or, without one, the name that its manufacturer gave it. `numa`:
    its NUMA node."""

    kind: str
    bus_id: str = ""
    name: str = ""
    numa: int | None = None


@dataclass(frozen=True)
class MeasuredSpeeds:
    """Measured speeds of a machine with n GPUs. `device`: GB/s from GPU to GPU, and `latency`: seconds of a small copy,
    both (n, n) with None for pairs that were not measured. `to_device`, `to_host`: GB/s of copies of page-locked
    memory, (n,)."""

    device: tuple[tuple[float | None, ...], ...]
    latency: tuple[tuple[float | None, ...], ...]
    to_device: tuple[float | None, ...] = ()
    to_host: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Machine:
    """A machine, either the one on which the process runs or a recording of another.

    - `source`: the programs or files that describe it.
    - `gpus`, `nics`, `packages`, `numa`: its GPUs, network adapters, processor packages and NUMA nodes. `cores`: the
      CPUs of each core. `caches`, `devices`: its caches and its other devices.
    - `levels` (n, n): the level (`hiresx.topology.connection_levels`) between each two of the n GPUs.
    - `pcie` (n, n): the level of the path over PCIe, without NVLink; "" if it is not known because of NVLink; an
      inferred level is an upper bound.
    - `peer` (n, n): "OK" if there is peer access, otherwise the reason why not, or "" if it is not known.
    - `nic_levels` (n, NICs), `nic_pairs` (NICs, NICs): levels between GPUs and network adapters, and between two
      adapters; "" if they are not known.
    - `allowed`: the CPUs that this process may use, if the machine is live.
    - `host`, `product`: the name of the host and of the product.
    - `measured`: its measured speeds, or None.
    - `problems`: contradictions between the sources, and reasons why a run may be slow.
    - `live`: whether this is the machine on which the process runs; always false for a recording.
    """

    source: str
    gpus: tuple[GPU, ...] = ()
    levels: Matrix = ()
    pcie: Matrix = ()
    peer: Matrix = ()
    nics: tuple[NIC, ...] = ()
    nic_levels: Matrix = ()
    packages: tuple[Package, ...] = ()
    numa: tuple[NumaNode, ...] = ()
    cores: tuple[Cpus, ...] = ()
    nic_pairs: Matrix = ()
    caches: tuple[Cache, ...] = ()
    devices: tuple[OtherDevice, ...] = ()
    allowed: Cpus | None = None
    host: str = ""
    product: str = ""
    measured: MeasuredSpeeds | None = None
    problems: tuple[str, ...] = ()
    live: bool = field(default=False, compare=False)

    @property
    def cpu(self) -> str:
        """Model name of the processor; empty if unknown."""
        return next((package.model for package in self.packages if package.model), "")

    def with_problems(self, *more: str) -> "Machine":
        """Return a copy of this machine whose list of problems also contains the sentences `more`, without
        repetitions."""
        return replace(self, problems=tuple(dict.fromkeys((*self.problems, *more))))


def device_matrices(
    gpus: Sequence[GPU],
    nics: Sequence[NIC],
    level: Callable[[GPU | NIC, GPU | NIC], str],
    links: Sequence[Sequence[int]] | None = None,
) -> dict[str, Any]:
    """Return the entries `gpus`, `nics`, `levels`, `pcie`, `peer`, `nic_levels` and `nic_pairs` of a `Machine` as a
    dictionary. `level`: a function that returns the PCIe level of two devices (PIX, PXB, PHB, NODE or SYS). `links` (n,
    n): the number of NVLinks of each pair of GPUs; without it there are none. Peer access is set to unknown."""
    pcie = connection_levels.square(len(gpus), lambda a, b: level(gpus[a], gpus[b]))
    joined = pcie
    if links is not None:
        joined = connection_levels.square(len(gpus), lambda a, b: f"NV{links[a][b]}" if links[a][b] else pcie[a][b])
        counts = [connection_levels.link_count(list(row), gpu.model) for row, gpu in zip(links, gpus, strict=True)]
        gpus = [replace(gpu, links=count or None) for gpu, count in zip(gpus, counts, strict=True)]
    return {
        "gpus": tuple(gpus), "levels": joined, "pcie": pcie,
        "peer": connection_levels.square(len(gpus), lambda a, b: ""),
        "nics": tuple(nics), "nic_levels": tuple(tuple(level(gpu, nic) for nic in nics) for gpu in gpus),
        "nic_pairs": connection_levels.square(len(nics), lambda a, b: level(nics[a], nics[b])),
    }  # fmt: skip


def agreed_links(links: list[list[int]], switched: Sequence[int], problems: list[str]) -> list[list[int]]:
    """Return the number of NVLinks (n, n) of each pair of GPUs, from the numbers that both GPUs report. `links[a][b]`:
    the number that GPU a reports for its pair with GPU b; the list is changed in place and returned. If both GPUs of a
    pair report different numbers, the result is the smaller one, and a sentence is appended to `problems`. `switched`:
    for each GPU the number of its links to NVLink switches; two GPUs behind switches have the smaller of their two
    numbers."""
    for a in range(len(links)):
        for b in range(a):
            if links[a][b] != links[b][a]:
                problems.append(f"GPU {b} has {links[b][a]} NVLinks to GPU {a}, which has {links[a][b]} back")
            both = min(links[a][b], links[b][a]) or min(switched[a], switched[b])
            links[a][b] = links[b][a] = min(both, connection_levels.MOST_LINKS)
    return links


def to_json(machine: Machine) -> dict[str, Any]:
    """Return the description of a machine as JSON data, the content of a recording. The entry `live` is left out, since
    a recording may be read on another machine, or later."""
    return {"format": FORMAT, "version": VERSION, **_plain(machine)}


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return format_list(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value) if item.compare}
    return value


def save(machine: Machine, path: Path) -> None:
    """Write the description of a machine to the file `path` as a JSON recording. Raises HiresxError if the file cannot
    be written."""
    try:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(to_json(machine), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise HiresxError(f"{path}: cannot be written: {error.strerror or error}", "name another file") from error


def from_json(text: str, name: str = "snapshot") -> Machine:
    """Return the machine that the JSON text of a recording describes. `name`: the name of the text in error messages.
    Raises HiresxError, naming the invalid key, for text that is no such recording."""
    hint = "record the machine again with: hiresx topo --save machine.json"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HiresxError(f"{name}: not JSON: {printable(str(error))[:120]}", hint) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise HiresxError(f'{name}: JSON, but not a snapshot of a machine: no "format": "{FORMAT}"', hint)
    if document.get("version") != VERSION:
        version = printable(str(document.get("version"))[:20])
        raise HiresxError(f"{name}: snapshot of version {version}, this program reads {VERSION}", hint)
    try:
        return _check(_read(Machine, {key: document[key] for key in document if key not in DERIVED}, ""))
    except _Fault as fault:
        raise HiresxError(f"{name}: {fault}", hint) from None


class _Fault(Exception):
    pass


def _read(kind: Any, value: Any, where: str) -> Any:
    """Convert `value` of JSON to the type `kind` of a field."""
    if kind == Cpus:
        cpus = frozenset() if value == "" else parse_list(value) if isinstance(value, str) else None
        if cpus is None:
            raise _Fault(f"{where} is no list of CPUs")
        return cpus
    if get_origin(kind) is UnionType:  # of a type and None
        return None if value is None else _read(get_args(kind)[0], value, where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list) or len(value) > MOST_ENTRIES:
            raise _Fault(f"{where} is no list of at most {MOST_ENTRIES} entries")
        return tuple(_read(get_args(kind)[0], entry, f"{where}[{n}]") for n, entry in enumerate(value))
    if is_dataclass(kind):
        return _read_object(kind, value, where)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    good = {
        str: isinstance(value, str) and len(value) <= LONGEST_TEXT,
        bool: isinstance(value, bool),
        int: number and isinstance(value, int) and -1 <= value < 2**63,
        float: number and math.isfinite(value) and 0 <= value < 1e9,
    }
    if not good[kind]:
        raise _Fault(f"{where} is no {'text' if kind is str else kind.__name__} in range")
    return printable(value) if kind is str else kind(value)


def _read_object(kind: Any, value: Any, where: str) -> Any:
    """Convert an object of JSON to the dataclass `kind`."""
    if not isinstance(value, dict):
        raise _Fault(f"{where} is no object")
    start = f"{where}." if where else ""
    known = {entry.name: entry for entry in fields(kind) if entry.compare}
    for key in value:
        if key not in known:
            raise _Fault(f'unknown key "{start}{printable(key[:40])}"')
    for key, entry in known.items():
        if key not in value and entry.default is MISSING:
            raise _Fault(f"{start}{key} is missing")
    return kind(**{key: _read(known[key].type, entry, f"{start}{key}") for key, entry in value.items()})


def _check(machine: Machine) -> Machine:
    """Return the machine with all matrices completed. Raises _Fault if its entries are inconsistent."""
    count, adapters = len(machine.gpus), len(machine.nics)
    if count > MOST_GPUS or adapters > MOST_NICS:
        raise _Fault(f"{plural(count, 'GPU')} and {adapters} network adapters: too many for a machine")
    for n, gpu in enumerate(machine.gpus):
        if gpu.index != n:
            raise _Fault(f"gpus[{n}].index is not {n}")
    machine = replace(machine, nic_levels=machine.nic_levels or (("",) * adapters,) * count)
    shapes: dict[str, tuple[int, int]] = dict.fromkeys(("levels", "pcie", "peer"), (count, count))
    shapes |= {"nic_levels": (count, adapters), "nic_pairs": (adapters if machine.nic_pairs else 0, adapters)}
    for key, (rows, columns) in shapes.items():
        _check_shape(key, getattr(machine, key), rows, columns)
        for row in getattr(machine, key) if key != "peer" else ():
            for word in row:
                if word and connection_levels.word(word) != word:
                    raise _Fault(f"{key}: {word[:20]} is no level")
    for key in ("levels", "pcie"):
        matrix = getattr(machine, key)
        for a in range(count):
            if matrix[a][a] != connection_levels.SELF:
                raise _Fault(f"{key}[{a}][{a}] is not X")
            for b in range(a):
                if matrix[a][b] != matrix[b][a] or matrix[a][b] == connection_levels.SELF:
                    raise _Fault(f"{key}[{a}][{b}] and {key}[{b}][{a}] are not one level")
                if key == "levels" and not matrix[a][b]:
                    raise _Fault(f"levels[{a}][{b}] is empty")
    if machine.measured is not None:
        for key, value in vars(machine.measured).items():
            matrix = value if key in ("device", "latency") else (value,) * bool(value)
            _check_shape(f"measured.{key}", matrix, count if key in ("device", "latency") else len(matrix), count)
            if any(entry == 0 for row in matrix for entry in row):
                raise _Fault(f"measured.{key} has an entry that is not positive")
    return machine


def _check_shape(key: str, matrix: Sequence[Sequence[Any]], rows: int, columns: int) -> None:
    if len(matrix) != rows or any(len(row) != columns for row in matrix):
        raise _Fault(f"{key} is no matrix of {rows} x {columns}")


def printable(text: str) -> str:
    """Return `text` with "?" for every character that is not printable."""
    return "".join(c if c.isprintable() else "?" for c in text)


_BUS_ID = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])")


def bus_id(text: str) -> str:
    """Return a PCI bus id in the uniform form 0000:3b:00.0, and any other text in lower case. (NVML writes the PCI
    domain with 8 digits, some builds of hwloc with 4.)"""
    match = _BUS_ID.fullmatch(text.strip())
    if not match:
        return text.strip().lower()
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


def address(bus: str, mig_uuid: str = "") -> str:
    """Return the address of a GPU: the PCI bus id `bus`, followed by `mig_uuid`, the UUID of a MIG slice, if it is not
    "". All slices of a card have the same bus id."""
    return f"{bus_id(bus)}/{mig_uuid}" if mig_uuid else bus_id(bus)


def read_text(path: Path) -> str:
    """Return the text of the file `path`, which holds the recording of a machine, decoded as UTF-8 or UTF-16. Raises
    HiresxError for a file that cannot be read, or is larger than 64 MiB."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise HiresxError(f"{path}: cannot be read: {error.strerror or error}", "name a file that exists") from error
    if len(data) > LARGEST_FILE:
        raise HiresxError(
            f"{path}: larger than {LARGEST_FILE >> 20} MiB: no recording of a machine",
            "give one that `hiresx topo --save` wrote",
        )
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return data.decode("utf-8", errors="replace")
