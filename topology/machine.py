"""One immutable description of a machine, however it was learnt, and its JSON snapshot."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.topology import levels
from hiresx.topology.cpus import format_list, parse_list

FORMAT = "hiresx-topology"
VERSION = 1
# A node has at most 20 GPUs today; what claims more than this is no machine.
MOST_GPUS = 64
MOST_NICS = 256
LARGEST_FILE = 64 * 2**20

Matrix = tuple[tuple[str, ...], ...]
Cpus = frozenset[int]
_Entry = TypeVar("_Entry")
# An object of JSON.
_Object = dict[str, Any]


@dataclass(frozen=True)
class GPU:
    """`memory`, `memory_used`: bytes. `utilisation`: per cent. `pcie`: GB/s of its link as the bus counts, `links`:
    active NVLinks. `numa`: its NUMA node; `nodes`: those near it, where a source lists several. `path`: bridges above
    it, host bridge first. `mig_uuid`: of a MIG slice, whose `bus_id` and `uuid` are its card's. `domain`: the NVLink
    domain, which may reach over hosts, as "cluster UUID/clique". None or "": not known."""

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
        """What tells it from others of its host."""
        return address(self.bus_id, self.mig_uuid)


@dataclass(frozen=True)
class NIC:
    """A network adapter. `rdma`: GPUs may send through it without the CPU. `speed`: GB/s."""

    name: str
    bus_id: str = ""
    numa: int | None = None
    rdma: bool = False
    speed: float | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class NumaNode:
    """`memory`: bytes; 0 for a node that has none, None when not known."""

    index: int
    memory: int | None = None
    cpus: Cpus = frozenset()


@dataclass(frozen=True)
class Package:
    index: int
    model: str = ""
    cpus: Cpus = frozenset()


@dataclass(frozen=True)
class Cache:
    """`kind`: "", "data" or "instruction". `size`: bytes. `cpus`: those that share it."""

    level: int
    kind: str = ""
    size: int | None = None
    cpus: Cpus = frozenset()


@dataclass(frozen=True)
class OtherDevice:
    """Another PCI device worth a line: `kind`, what it is; `name`: by the system, else by its maker."""

    kind: str
    bus_id: str = ""
    name: str = ""
    numa: int | None = None


@dataclass(frozen=True)
class Measured:
    """What was measured there. `device`: GB/s from GPU to GPU, `latency`: seconds of a small copy, both (n, n) with
    None where it was not measured; `to_device`, `to_host`: GB/s of pinned copies, (n,)."""

    device: tuple[tuple[float | None, ...], ...]
    latency: tuple[tuple[float | None, ...], ...]
    to_device: tuple[float | None, ...] = ()
    to_host: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Machine:
    """A machine, or a recording of one.

    `levels` (n, n): words of `hiresx.topology.levels` between GPUs. `pcie` (n, n): the same without NVLink, "" where it
    is hidden behind it; where it was inferred, no worse than this. `peer` (n, n): "OK", the reason why there is no
    peer access, or "". `nic_levels` (n, number of NICs), `nic_pairs` (number of NICs, squared): levels of adapters, ""
    where they are not known. `caches`, `devices`: what else there is. `allowed`: CPUs this process may use, of a live
    machine. `live`: this is the machine that the process runs on; never true of a recording. `problems`: what the
    sources disagree on and what will make a run slow.
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
    measured: Measured | None = None
    problems: tuple[str, ...] = ()
    live: bool = field(default=False, compare=False)

    @property
    def cpu(self) -> str:
        return next((package.model for package in self.packages if package.model), "")

    def with_problems(self, *more: str) -> "Machine":
        return replace(self, problems=tuple(dict.fromkeys((*self.problems, *more))))


def to_json(machine: Machine) -> dict[str, Any]:
    """The snapshot as plain data. It does not say that it is this machine: elsewhere or tomorrow it is not."""
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
    """Write the snapshot. Raises HiresxError when the file cannot be written."""
    try:
        path.write_text(json.dumps(to_json(machine), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise HiresxError(f"{path}: cannot be written: {error.strerror or error}", "name another file") from error


def from_json(text: str, name: str = "snapshot") -> Machine:
    """The machine of a snapshot. Raises HiresxError naming the key that is not as it should be."""
    mend = "record the machine again with: hiresx topo --save machine.json"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HiresxError(f"{name}: not JSON: {printable(str(error))[:120]}", mend) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise HiresxError(f'{name}: JSON, but not a snapshot of a machine: no "format": "{FORMAT}"', mend)
    if document.get("version") != VERSION:
        raise HiresxError(
            f"{name}: snapshot of version {printable(str(document.get('version'))[:20])}, this program reads {VERSION}",
            mend,
        )
    try:
        return _machine(document)
    except _Fault as fault:
        raise HiresxError(f"{name}: {fault}", mend) from None


class _Fault(Exception):
    pass


def _machine(document: _Object) -> Machine:
    # What `hiresx topo --json` adds is derived from the rest.
    known = {item.name for item in fields(Machine) if item.compare} | {
        "format",
        "version",
        "live",
        "nvlink_bandwidth",
        "groups",
        "tree",
    }
    _unknown(document, known, "")
    gpus = tuple(_gpu(item, n) for n, item in enumerate(_list(document, "gpus", MOST_GPUS)))
    nics = tuple(_nic(item, n) for n, item in enumerate(_list(document, "nics", MOST_NICS)))
    n = len(gpus)
    matrices = {
        key: _matrix(document, key, n, columns, _level if key != "peer" else _short)
        for key, columns in (("levels", n), ("pcie", n), ("peer", n), ("nic_levels", len(nics)))
    }
    matrices["nic_levels"] = matrices["nic_levels"] or (("",) * len(nics),) * n
    matrices["nic_pairs"] = _matrix(document, "nic_pairs", len(nics), len(nics), _level, optional=True)
    for key in ("levels", "pcie", "peer"):
        for a in range(n):
            if key != "peer" and matrices[key][a][a] != levels.SELF:
                raise _Fault(f"{key}[{a}][{a}] is not X")
            for b in range(a):
                if key != "peer" and (matrices[key][a][b] != matrices[key][b][a] or matrices[key][a][b] == levels.SELF):
                    raise _Fault(f"{key}[{a}][{b}] and {key}[{b}][{a}] are not one level")
                if key == "levels" and not matrices[key][a][b]:
                    raise _Fault(f"levels[{a}][{b}] is empty")
    return Machine(
        source=_text(document, "source"),
        gpus=gpus,
        levels=matrices["levels"],
        pcie=matrices["pcie"],
        peer=matrices["peer"],
        nic_levels=matrices["nic_levels"],
        nic_pairs=matrices["nic_pairs"],
        nics=nics,
        packages=tuple(
            Package(_whole(item, "index", f"packages[{m}]"), _text(item, "model"), _cpus(item, "cpus") or frozenset())
            for m, item in enumerate(_list(document, "packages", 1024))
        ),
        numa=tuple(
            NumaNode(
                _whole(item, "index", f"numa[{m}]"), _optional(item, "memory", int), _cpus(item, "cpus") or frozenset()
            )
            for m, item in enumerate(_list(document, "numa", 4096))
        ),
        caches=tuple(
            Cache(
                _whole(item, "level", f"caches[{m}]"),
                _text(item, "kind"),
                _optional(item, "size", int),
                _cpus(item, "cpus") or frozenset(),
            )
            for m, item in enumerate(_list(document, "caches", 65536))
        ),
        devices=tuple(
            OtherDevice(
                **{key: _text(item, key) for key in ("kind", "bus_id", "name")}, numa=_optional(item, "numa", int)
            )
            for item in _list(document, "devices", 4096)
        ),
        cores=tuple(_cpu_text(item, f"cores[{m}]") for m, item in enumerate(_list(document, "cores", 65536, str))),
        allowed=_cpus(document, "allowed"),
        host=_text(document, "host"),
        product=_text(document, "product"),
        measured=_measured(document.get("measured"), n),
        problems=tuple(_list(document, "problems", 10000, str)),
    )


def _gpu(item: _Object, n: int) -> GPU:
    where = f"gpus[{n}]"
    _unknown(item, {entry.name for entry in fields(GPU)}, where)
    if _whole(item, "index", where) != n:
        raise _Fault(f"{where}.index is not {n}")
    return GPU(
        index=n,
        bus_id=_text(item, "bus_id"),
        model=_text(item, "model"),
        uuid=_text(item, "uuid"),
        memory=_optional(item, "memory", int),
        memory_used=_optional(item, "memory_used", int),
        utilisation=_optional(item, "utilisation", int),
        numa=_optional(item, "numa", int),
        links=_optional(item, "links", int),
        mig=_optional(item, "mig", bool),
        nodes=_cpus(item, "nodes"),
        cpus=_cpus(item, "cpus"),
        pcie=_optional(item, "pcie", float),
        path=tuple(_list(item, "path", 64, str)),
        mig_uuid=_text(item, "mig_uuid"),
        domain=_text(item, "domain"),
    )


def _nic(item: _Object, n: int) -> NIC:
    where = f"nics[{n}]"
    _unknown(item, {entry.name for entry in fields(NIC)}, where)
    return NIC(
        name=_text(item, "name"),
        bus_id=_text(item, "bus_id"),
        numa=_optional(item, "numa", int),
        rdma=bool(_optional(item, "rdma", bool)),
        speed=_optional(item, "speed", float),
        path=tuple(_list(item, "path", 64, str)),
    )


def _measured(item: Any, n: int) -> Measured | None:
    if item is None:
        return None
    if not isinstance(item, dict):
        raise _Fault("measured is no object")
    _unknown(item, {entry.name for entry in fields(Measured)}, "measured")

    def number(value: Any, where: str) -> float | None:
        good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9
        if value is not None and not good:
            raise _Fault(f"{where} is neither a positive number nor null")
        return value if value is None else float(value)

    vectors = {}
    for key in ("to_device", "to_host"):
        values = _list(item, key, MOST_GPUS, object)
        if len(values) not in (0, n):
            raise _Fault(f"measured.{key} has {len(values)} entries for {plural(n, 'GPU')}")
        vectors[key] = tuple(number(value, f"measured.{key}") for value in values)
    return Measured(_matrix(item, "device", n, n, number), _matrix(item, "latency", n, n, number), **vectors)


def printable(text: str) -> str:
    """`text` without what a terminal would obey or an encoding refuse."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _unknown(item: _Object, known: set[str], where: str) -> None:
    for key in item:
        if key not in known:
            raise _Fault(f'unknown key "{f"{where}." if where else ""}{printable(key[:40])}"')


def _list(item: _Object, key: str, most: int, kind: type = dict) -> list[Any]:
    value = item.get(key, [])
    if not isinstance(value, list) or len(value) > most or not all(isinstance(entry, kind) for entry in value):
        raise _Fault(f"{key} is no list of at most {most} entries of type {kind.__name__}")
    return [printable(entry) for entry in value] if kind is str else value


def _matrix(
    item: _Object, key: str, rows: int, columns: int, check: Callable[[Any, str], _Entry], optional: bool = False
) -> tuple[tuple[_Entry, ...], ...]:
    value = item.get(key, [])
    missing = rows and not value and not optional and key != "nic_levels"
    if not isinstance(value, list) or len(value) not in (0, rows) or missing:
        raise _Fault(f"{key} is no matrix of {plural(rows, 'row')}")
    for row in value:
        if not isinstance(row, list) or len(row) != columns:
            raise _Fault(f"{key} has a row that is no list of {columns}")
    return tuple(tuple(check(entry, f"{key}[{a}][{b}]") for b, entry in enumerate(row)) for a, row in enumerate(value))


def _level(value: Any, where: str) -> str:
    if not isinstance(value, str) or (value != "" and levels.word(value) != value):
        raise _Fault(f"{where} is no level")
    return value


def _short(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > 40:
        raise _Fault(f"{where} is no short text")
    return printable(value)


def _text(item: _Object, key: str) -> str:
    value = item.get(key, "")
    if not isinstance(value, str) or len(value) > 4096:
        raise _Fault(f"{key} is no text")
    return printable(value)


def _whole(item: _Object, key: str, where: str) -> int:
    value = item.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value < 2**31:
        raise _Fault(f"{where}.{key} is no index")
    return value


def _optional(item: _Object, key: str, kind: type) -> Any:
    value = item.get(key)
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and number and isinstance(value, int) and -1 <= value < 2**63:
        return value
    if kind is float and number and math.isfinite(value) and 0 <= value < 1e9:
        return float(value)
    raise _Fault(f"{key} is no {kind.__name__} in range")


def _cpus(item: _Object, key: str) -> Cpus | None:
    value = item.get(key)
    return None if value is None else _cpu_text(value, key)


def _cpu_text(value: Any, where: str) -> Cpus:
    cpus = frozenset() if value == "" else parse_list(value) if isinstance(value, str) else None
    if cpus is None:
        raise _Fault(f"{where} is no list of CPUs")
    return cpus


_BUS_ID = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])")


def bus_id(text: str) -> str:
    """A PCI bus id in one form, 0000:3b:00.0: NVML writes 8 digits of domain, some builds of hwloc keep only 4."""
    match = _BUS_ID.fullmatch(text.strip())
    if not match:
        return text.strip().lower()
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


def address(bus: str, mig_uuid: str = "") -> str:
    """PCI bus id, and behind it the UUID of a MIG slice: those of one card have one bus id."""
    return f"{bus_id(bus)}/{mig_uuid}" if mig_uuid else bus_id(bus)


def read_text(path: Path) -> str:
    """A recording's text. Raises HiresxError for what cannot be read or is too large to be a recording."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise HiresxError(f"{path}: cannot be read: {error.strerror or error}", "name a file that exists") from error
    if len(data) > LARGEST_FILE:
        raise HiresxError(f"{path}: larger than {LARGEST_FILE >> 20} MiB: no recording of a machine")
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return data.decode("utf-8", errors="replace")
