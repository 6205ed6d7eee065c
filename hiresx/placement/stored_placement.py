"""The placement of every rank, as a table and as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hiresx.base.plural import plural
from hiresx.device import Backend
from hiresx.topology.cpus import format_list

# With more ranks than this, each host is one line of the table.
MOST_LINES = 32


@dataclass(frozen=True)
class Seat:
    """The GPU and the CPUs of one rank. `host`: the name of its host. `backend`: the name of its backend. `gpu`: the
    number of its GPU on the host, in the order of PCI addresses; None without one. `gpu_name`, `gpu_uuid` and
    `gpu_pci`: the model, the UUID and the PCI address of this GPU. `numa`: the NUMA node of the rank; None if there are
    several or it is unknown. `cpus`: the CPUs on which it runs, as "0-3,8". `cores`: the number of physical cores among
    them. `threads`: threads of a kernel; None on a GPU. `bound`: which program bound the rank to its CPUs; "" if none
    did. `why`: remarks."""

    rank: int
    host: str
    backend: str
    gpu: int | None
    gpu_name: str
    gpu_uuid: str
    gpu_pci: str
    cpus: str
    cores: int
    numa: int | None
    threads: int | None
    bound: str
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placement:
    """The placement of all ranks. `seats`: the GPU and the CPUs of each rank, by rank. `backend`: the backend of this
    rank. `remarks`: missing programs and libraries on the hosts."""

    seats: tuple[Seat, ...]
    backend: Backend
    remarks: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the placement of all ranks (host, GPU, CPUs, backend) as dictionaries and lists for JSON, as the run
        record (run.json) contains it."""
        return {"ranks": [asdict(seat) | {"why": list(seat.why)} for seat in self.seats], "remarks": list(self.remarks)}

    def lines(self, more: Mapping[str, Sequence[Any]] | None = None) -> list[str]:
        """Return the placement as lines of text for the user: a table of the ranks, and remarks below it. For many
        ranks the table has a line for each host. `more`: further columns, each with a value for every rank."""
        more = more or {}
        head = ["rank", "host", "backend", "GPU", "CPUs", "NUMA", "threads", *more]
        rows = [[*_cells(seat), *(str(values[n]) for values in more.values())] for n, seat in enumerate(self.seats)]
        if len(rows) > MOST_LINES:
            rows = _by_host(self.seats)
            head = head[:7]
        columns = [n for n in range(len(head)) if n < 3 or any(row[n] not in ("", "-") for row in rows)]
        widths = {n: max(len(line[n]) for line in (head, *rows)) for n in columns}
        found = ["  ".join(f"{line[n]:<{widths[n]}}" for n in columns).rstrip() for line in (head, *rows)]
        by_reason: dict[str, list[int]] = {}
        for seat in self.seats:
            for reason in seat.why:
                by_reason.setdefault(reason, []).append(seat.rank)
        for reason, ranks in by_reason.items():
            who = "" if len(ranks) == len(self.seats) else f"rank{'s' * (len(ranks) > 1)} {format_list(ranks)}: "
            found.append(f"  {who}{reason}")
        return found + [f"  {remark}" for remark in self.remarks]


def _cells(seat: Seat) -> list[str]:
    gpu = "-" if seat.gpu is None else f"{seat.gpu} {seat.gpu_name} {seat.gpu_pci}".strip()
    return [
        str(seat.rank),
        seat.host,
        seat.backend,
        gpu,
        seat.cpus + ("" if seat.bound else " (free)"),
        "-" if seat.numa is None else str(seat.numa),
        "-" if seat.threads is None else str(seat.threads),
    ]


def _by_host(seats: Sequence[Seat]) -> list[list[str]]:
    """Return one row for the ranks of a host that have one backend."""
    groups: dict[tuple[str, str], list[Seat]] = {}
    for seat in seats:
        groups.setdefault((seat.host, seat.backend), []).append(seat)
    rows = []
    for (host, name), some in groups.items():
        gpus = {seat.gpu for seat in some if seat.gpu is not None}
        threads = sorted({str(seat.threads) for seat in some if seat.threads is not None})
        nodes = sorted({seat.numa for seat in some if seat.numa is not None})
        rows.append(
            [
                format_list([seat.rank for seat in some]),
                host,
                name,
                f"{len(gpus)} x {some[0].gpu_name}" if gpus else "-",
                f"{plural(sum(seat.cores for seat in some), 'core')}",
                format_list(nodes) or "-",
                " or ".join(threads) or "-",
            ]
        )
    return rows
