"""Parsing of the text of `nvidia-smi topo -m`, also from reports, with Markdown, escape sequences or an incomplete
header.

A row is recognised by its label and by the X in its own column. A complete header gives the columns and their order;
otherwise the rows do. `problems` lists every cell that is not used.
"""

import re
from typing import TypeAlias

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.topology import connection_levels, infer, smi_affinities, smi_report, smi_rows
from hiresx.topology.machine import (
    GPU,
    MOST_GPUS,
    MOST_NICS,
    NIC,
    Machine,
    Matrix,
    NumaNode,
    Package,
    printable,
)
from hiresx.topology.smi_affinities import Nodes, Sets
from hiresx.topology.smi_rows import MOST_TOLD, After, Row, RowHeader

# Rows of a `topo -p2p` by GPU; cells of the matrix by GPU.
_Peers: TypeAlias = dict[int, list[list[str]]]
_Cells: TypeAlias = dict[int, list[str]]

HINT = "record it again with: nvidia-smi topo -m > machine.txt"
# Length of the longest possible row: 64 GPUs and 256 NICs, each with a word and some blanks.
LONGEST_LINE = 16384

_LEGEND = re.compile(r"(NIC\d{1,4})\s*[:=]\s*([A-Za-z][\w.\-]{0,63})")


def parse_smi(text: str, name: str = "nvidia-smi topo -m") -> Machine:
    """Return the machine that the text of `nvidia-smi topo -m` describes. The text may be part of a longer report,
    whose GPU models, PCI addresses and CPUs are then used too. `name`: the name of the text in error messages.

    Levels of connection that the text does not contain, such as the PCIe level of two GPUs connected by NVLink, are
    inferred from the other levels. Raises HiresxError, with the line, for a text without the matrix of `topo -m`, for a
    matrix that is truncated, not symmetric or contradictory, and for the output of `topo -p2p` and `rocm-smi`."""
    table = _Table(text, name)
    count, gpus, problems = table.count, table.gpus, table.problems
    adapters = table.adapters()
    words = table.square([f"GPU{n}" for n in range(count)] + [label for label, _ in adapters])
    _tree(words, count, name)
    header = table.header if table.columns else None
    cpus, numa, nodes = smi_affinities.read(gpus, table.after, header, count, problems)
    around = smi_report.facts(text)
    numa = smi_affinities.choose_nodes(numa, nodes, around.nodes)
    matrix, pcie, nic_levels, nic_pairs = _levels(words, count, numa, cpus, name, problems)
    links = [connection_levels.link_count([connection_levels.nvlinks(entry) for entry in row], around.models.get(n, ""))
             for n, row in enumerate(matrix)]  # fmt: skip
    devices = tuple(
        GPU(
            index=n,
            bus_id=around.buses.get(n, ""),
            model=around.models.get(n, ""),
            uuid=around.uuids.get(n, ""),
            cpus=cpus[n],
            numa=numa[n],
            nodes=nodes[n],
            links=links[n] or None,
            pcie=around.pcie.get(n),
        )
        for n in range(count)
    )
    known = {
        node: next((own for n, own in enumerate(cpus) if numa[n] == node and own), frozenset[int]())
        for node in numa
        if node is not None
    } | around.nodes
    whole = frozenset().union(*around.nodes.values())
    return Machine(
        source=f"recording of nvidia-smi topo -m: {name}",
        gpus=devices,
        levels=matrix,
        pcie=pcie,
        peer=_peers(table.peers, count),
        # Adapters listed there are those that GPUDirect can use.
        nics=tuple(NIC(shown, rdma=True) for _, shown in adapters),
        nic_levels=nic_levels,
        nic_pairs=nic_pairs,
        packages=(Package(0, around.cpu, whole),) if around.cpu else (),
        numa=tuple(NumaNode(node, None, known[node]) for node in sorted(known)),
        problems=tuple(problems),
    )


class _Table:
    """The matrix in a text. `gpus`: rows of GPUs by number, `others`: other rows, `header`: that in front of them,
    `peers`: rows of a `topo -p2p` in the same report. `columns`: labels of the matrix's columns as the header has them,
    none where it does not name each GPU once. `cells` of each GPU, and what stands `after` them. `problems`: what was
    not used."""

    def __init__(self, text: str, name: str):
        self.text, self.name = text, name
        self.problems: list[str] = []
        self.gpus: dict[int, Row] = {}
        self.others: list[Row] = []
        self.header: RowHeader | None = None
        self.peers: _Peers = {}
        for number, line in enumerate(text.splitlines(), 1):
            self._take(number, line)
        _refuse_others(text, name, self.gpus, self.peers)
        self.count = max(self.gpus) + 1
        # With one GPU, both matrices have the same row, and only the legends differ.
        if self.count == 1 and len(self.gpus[0].words) == 1 and re.search(r"\bCNS\s*=", text) and "PIX" not in text:
            _refuse_p2p(name)
        self._check_complete()
        self.columns = self._columns()
        self.cells: _Cells = {}
        self.after: After = {}
        self._read_cells()

    def error(self, what: str, hint: str = HINT) -> HiresxError:
        return HiresxError(f"{self.name}{what}", hint)

    def _take(self, number: int, line: str) -> None:
        """Classify a line, and store its content."""
        if len(line) > LONGEST_LINE:
            if "GPU" in line:
                raise self.error(f", line {number}: {len(line)} characters are no row of a topology")
            return
        body = smi_rows.clean(line)
        plain = body.split()
        match = smi_rows.GPU.fullmatch(plain[0]) if plain else None
        first = set(plain[1:3])
        if (
            match
            and first & connection_levels.P2P_WORDS
            and first <= connection_levels.P2P_WORDS | {connection_levels.SELF}
        ):
            self.peers.setdefault(int(match[1]), []).append(plain[1:])
            return
        row = smi_rows.row(number, body)
        if row and (match := smi_rows.GPU.fullmatch(row.label)):
            n = int(match[1])
            if n >= MOST_GPUS:
                raise self.error(f", line {number}: GPU{n}: no machine has that many")
            if n in self.gpus and self.gpus[n].words != row.words:
                lines = f"{self.gpus[n].line} and {number}"
                raise self.error(f", lines {lines}: two rows of GPU{n} that differ", "keep one machine in the file")
            self.gpus.setdefault(n, row)
        elif row and smi_rows.is_device(row.label) and sum(map(bool, map(connection_levels.word, row.words))) >= 2:
            self.others.append(row)
        elif not row and not self.gpus and "GPU" in body and (found := smi_rows.header(body)):
            self.header = found

    def _check_complete(self) -> None:
        missing = [n for n in range(self.count) if n not in self.gpus]
        named = max(self.header.gpus, default=0) if self.header else 0
        if missing:
            there = plural(self.count - len(missing), "GPU")
            raise self.error(f": rows of {there}, but none of GPU{missing[0]}: cut off?")
        if self.count <= named < MOST_GPUS:
            raise self.error(f": the header names GPU{named}, but the rows end at GPU{self.count - 1}: cut off?")

    def _columns(self) -> list[str]:
        header = self.header
        if header is None:
            return []
        if sorted(header.gpus) != sorted(self.gpus) or len(set(header.devices)) != len(header.devices):
            if len(header.gpus) > 1:
                self.problems.append("the header names other GPUs than the rows: columns are counted by the rows")
            return []
        # The header has names without blanks between them, or lacks its adapters: all rows have more cells than it, the
        # same number each.
        held = {len(row.run(row.first())) for row in self.gpus.values()}
        if len(held) == 1 and min(held) > len(header.devices) and header.gpus == sorted(header.gpus):
            named = plural(len(header.devices), "column")
            self.problems.append(f"the header names {named}, the rows hold {min(held)}: counted by the rows")
            return []
        return header.devices

    def _read_cells(self) -> None:
        """Return the cells of each GPU and the words after them. Raises an error for a row that is too short, or has
        its X elsewhere."""
        count, columns, of_count = self.count, self.columns, plural(self.count, "GPU")
        starts: dict[int, int] = {}
        for n in range(count):
            row, own = self.gpus[n], columns.index(f"GPU{n}") if columns else n
            start = row.place(own)
            found = row.run(row.first() if start is None else start, len(columns) or None)
            if start is None or own >= len(found):
                held = row.run(row.first())
                if sum(1 for word in held if connection_levels.word(word)) < count:
                    raise self.error(f", line {row.line}: GPU{n} has {len(held)} levels for {of_count}: cut off?")
                places = (
                    ", ".join(str(at + 1) for at, word in enumerate(held) if word == connection_levels.SELF) or "none"
                )
                raise self.error(
                    f", line {row.line}: GPU{n} has its X in column {places}, not {own + 1}: are rows missing or in "
                    "another order?"
                )
            self.cells[n], starts[n] = found, start
        short, width = min(((n, len(entry)) for n, entry in self.cells.items()), key=lambda entry: entry[1])
        most = max(map(len, self.cells.values()))
        if width < max(count, most):
            raise self.error(
                f", line {self.gpus[short].line}: GPU{short} has {width} levels for {of_count}, others {most}: cut "
                "off, or GPU rows are missing?"
            )
        if columns and width < len(columns):
            lost = columns[width:]
            self.problems.append(
                f"the header names {plural(len(columns), 'column')}, the rows hold {width}: nothing is known of "
                f"{', '.join(lost[:4])}" + (f" and {len(lost) - 4} more" if len(lost) > 4 else "")
            )
        for n, row in self.gpus.items():
            self.after[n] = row.rest(starts[n], width)
            row.before += row.words[: starts[n]]
        more = [(n, words) for n in range(count) if (words := list(filter(connection_levels.word, self.after[n][0])))]
        if more:
            n, words = more[0]
            self.problems.append(
                f"line {self.gpus[n].line}: {len(words)} more levels than the header has columns: not used "
                f"({' '.join(words[:4])}{' ...' if len(words) > 4 else ''})"
            )

    def adapters(self) -> list[tuple[str, str]]:
        """Columns beyond the GPUs: (label, name to show) from the header, else from the rows, else numbered."""
        width = len(self.cells[0])
        number = width - self.count
        if number > MOST_NICS:
            raise self.error(f": {number} network adapters: no machine has that many")
        rows = list(dict.fromkeys(row.label for row in self.others))
        if self.columns:
            labels = []
            for column, label in enumerate(self.columns[:width]):
                if smi_rows.GPU.fullmatch(label):
                    continue
                if label in rows or any(connection_levels.word(row[column]) for row in self.cells.values()):
                    labels.append(label)
                else:
                    self.problems.append(f"the column {printable(label)} holds no level: not used")
        elif len(rows) == number:
            labels = rows
        else:
            labels = [f"NIC{n}" for n in range(number)]
            if number and not rows and not re.search(r"\bNIC\d|mlx", self.text):
                raise self.error(f": {plural(number, 'column')} beyond the GPUs that nothing names: rows cut off?")
        for row in self.others:
            if row.label not in labels and re.fullmatch(r"NIC\d+|mlx\w+", row.label):
                self.problems.append(
                    f"line {row.line}: the row of {printable(row.label)} belongs to no column: not used"
                )
        legend = dict(_LEGEND.findall(self.text))
        shown = [legend.get(label, label) for label in labels]
        shown = shown if len(set(shown)) == len(labels) else [f"NIC{n}" for n in range(len(labels))]
        return list(zip(labels, shown, strict=True))

    def square(self, order: list[str]) -> dict[tuple[int, int], str]:
        """Level of each pair of the devices `order`, GPUs and adapters, that some row has; where two rows have it they
        say the same."""
        place = {label: n for n, label in enumerate(order)}
        width = len(self.cells[0])
        at = [place.get(label) for label in self.columns[:width]] if self.columns else list(range(width))
        found: dict[tuple[int, int], str] = {}
        lines = {n: row.line for n, row in self.gpus.items()}
        rows = [(n, self.cells[n]) for n in range(self.count)]
        for row in self.others:
            own = place.get(row.label)
            if own is None or own in lines:
                continue
            start = row.place(at.index(own))
            start = row.first() if start is None else start
            lines[own] = row.line
            rows.append((own, row.run(start, len(at))))
            extra = row.words[start + len(rows[-1][1]) :]
            if any(map(connection_levels.word, extra)):
                self.problems.append(f"line {row.line}: {len(extra)} words behind the columns: not used")
        odd: list[tuple[int, int, str]] = []
        for own, words in rows:
            for other, word in zip(at, words, strict=False):
                if other is None or other == own:
                    continue
                level = connection_levels.word(word)
                if level is None or level == connection_levels.SELF:
                    odd.append((own, other, word))
                    continue
                before = found.get((other, own))
                if before is not None and before != level:
                    raise HiresxError(_differ(order, lines, other, own, before, level, self.name), HINT)
                found[own, other] = level
        for own, other, _ in odd:
            found.setdefault((own, other), found.get((other, own), ""))
        for (a, b), word in list(found.items()):
            found.setdefault((b, a), word)
        for own, other, word in odd[:MOST_TOLD]:
            known = found[own, other]
            self.problems.append(
                f"line {lines[own]}: '{printable(word[:20])}' between {order[own]} and {order[other]} is no level: "
                + (f"{known} by the other row" if known else "inferred from the others where they tell")
            )
        if len(odd) > MOST_TOLD:
            self.problems.append(f"{len(odd) - MOST_TOLD} more cells are no levels")
        pairs = [(n, m) for n in range(self.count) for m in range(n)]
        if pairs and not any(found.get(pair) for pair in pairs):
            raise self.error(": no level between any two GPUs can be read: cut off?")
        return found


def _refuse_others(text: str, name: str, gpus: dict[int, Row], peers: _Peers) -> None:
    if gpus:
        return
    if peers:
        _refuse_p2p(name)
    if re.search(r"rocm-smi|ROCm System Management|amd-smi|\bXGMI\b", text):
        raise HiresxError(
            f"{name}: the text of rocm-smi or amd-smi, which is not read",
            "record the machine with: lstopo --whole-io --of xml machine.xml",
        )
    raise HiresxError(f"{name}: no row of `nvidia-smi topo -m` in it", HINT)


def _refuse_p2p(name: str) -> None:
    raise HiresxError(
        f"{name}: this is `nvidia-smi topo -p2p`, which says which GPUs reach each other, not how they are connected",
        "record the machine with: nvidia-smi topo -m > machine.txt",
    )


def _peers(rows: _Peers, count: int) -> Matrix:
    """Return the peer access by the rows of `topo -p2p` (of reading and of writing): "OK" if all are, "" if no row is
    complete."""

    def status(a: int, b: int) -> str:
        words = [row[b] for row in rows.get(a, []) if len(row) >= count and row[a] == connection_levels.SELF]
        words = [word for word in words if word in connection_levels.P2P_WORDS]
        return next((word for word in words if word != "OK"), words[0] if words else "")

    return connection_levels.square(count, status)


def _differ(order: list[str], lines: dict[int, int], a: int, b: int, first: str, second: str, name: str) -> str:
    """Describe the contradiction of two rows: the row of an adapter against that of a GPU, or two of a kind."""
    where = f"lines {lines[a]} and {lines[b]}"
    if order[b].startswith("GPU") != order[a].startswith("GPU"):
        where, (a, b, first, second) = f"line {lines[b]}", (b, a, second, first)
    return f"{name}, {where}: {order[a]} to {order[b]} is {first}, but {order[b]} to {order[a]} is {second}"


def _tree(words: dict[tuple[int, int], str], count: int, name: str) -> None:
    """Raises HiresxError unless two GPUs that share a switch with a third one also share it with each other."""
    switch = connection_levels.RANK["PXB"]
    for b in range(count):
        near = [a for a in range(count) if a != b and connection_levels.rank(words.get((a, b), "")) <= switch]
        for n, a in enumerate(near):
            for c in near[:n]:
                if connection_levels.RANK.get(words.get((a, c), ""), 0) > switch:
                    raise HiresxError(
                        f"{name}: GPU{c}-GPU{b} is {words[c, b]} and GPU{b}-GPU{a} is {words[b, a]}, all behind one "
                        f"PCIe switch, but GPU{c}-GPU{a} is {words[c, a]}: a contradiction",
                        HINT,
                    )


def _levels(
    words: dict[tuple[int, int], str], count: int, numa: Nodes, cpus: Sets, name: str, problems: list[str]
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return (GPU levels, the same by PCIe, GPU to adapter, adapter to adapter), completed from the tree."""
    size = max(count, 1 + max((a for a, _ in words), default=0))
    given = [["X" if a == b else words.get((a, b), "") for b in range(size)] for a in range(size)]
    if any(
        connection_levels.nvlinks(word)
        for a, row in enumerate(given)
        for b, word in enumerate(row)
        if max(a, b) >= count
    ):
        raise HiresxError(f"{name}: NVLink beyond the GPUs' columns: rows cut off?", HINT)

    def guess(a: int, b: int) -> str:
        return smi_affinities.level(numa[a], numa[b], cpus[a], cpus[b]) if max(a, b) < count else ""

    full, wrong = infer.complete(infer.ranks(given), guess)
    for a, b, near, far in wrong[:MOST_TOLD]:
        if max(a, b) < count:
            problems.append(f"GPU {a} and GPU {b} are {near} of each other by some columns, {far} by others")
    beyond = range(count, size)
    pairs = tuple(tuple(given[a][b] or full[a][b] for b in beyond) for a in beyond)
    pcie = tuple(tuple(full[a][:count]) for a in range(count))
    nearest = connection_levels.square(count, lambda a, b: given[a][b] or full[a][b] or "SYS")
    return nearest, pcie, tuple(tuple(full[a][count:]) for a in range(count)), pairs
