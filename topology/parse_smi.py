"""The text of `nvidia-smi topo -m`, as people paste it: in reports, as Markdown, with escapes, with half a header.

A row is found by its label and by the X in its own column. The header, where it is whole, says which columns there are,
in which order; rows say so otherwise. Every cell is used, or `problems` says which was not.
"""

import re
from typing import TypeAlias

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.topology import infer, levels, smi_affinities, smi_report, smi_rows
from hiresx.topology.machine import GPU, MOST_GPUS, MOST_NICS, NIC, Machine, Matrix, NumaNode, Package, printable
from hiresx.topology.smi_affinities import Nodes, Sets
from hiresx.topology.smi_rows import MOST_TOLD, After, Row, RowHeader

# Rows of a `topo -p2p` by GPU; cells of the matrix by GPU.
_Peers: TypeAlias = dict[int, list[list[str]]]
_Cells: TypeAlias = dict[int, list[str]]

MEND = "record it again with: nvidia-smi topo -m > machine.txt"
# Longest row of a machine: 64 GPUs and 256 NICs, each with a word and some blanks.
LONGEST_LINE = 16384

_LEGEND = re.compile(r"(NIC\d{1,4})\s*[:=]\s*([A-Za-z][\w.\-]{0,63})")


def parse_smi(text: str, name: str = "nvidia-smi topo -m") -> Machine:
    """The machine of such a text: levels of GPU pairs, NICs, affinities, and what a report around it says.

    Levels that are not there, as PCIe behind NVLink, are inferred from those that are (`infer`). Raises HiresxError
    naming the line for a text that holds no such matrix, or one that is cut off, not symmetric or contradicts itself,
    and for `topo -p2p` and `rocm-smi`.
    """
    gpus, others, header, peers = _rows(text, name)
    _refuse_others(text, name, gpus, peers)
    count = max(gpus) + 1
    # Of one GPU both matrices have the same row; only the legends differ.
    if count == 1 and len(gpus[0].words) == 1 and re.search(r"\bCNS\s*=", text) and "PIX" not in text:
        _refuse_p2p(name)
    _complete(gpus, count, header, name)
    problems: list[str] = []
    columns = _columns(header, gpus, problems)
    cells, after = _cells(gpus, count, columns, name, problems)
    adapters = _adapters(gpus, others, columns, cells, count, text, name, problems)
    order = [f"GPU{n}" for n in range(count)] + [label for label, _ in adapters]
    words = _square(gpus, others, order, columns, cells, count, name, problems)
    _tree(words, count, name)
    cpus, numa, nodes = smi_affinities.read(gpus, after, header if columns else None, count, problems)
    around = smi_report.facts(text)
    numa = smi_affinities.by_nodes(numa, nodes, around.nodes)
    matrix, pcie, nic_levels, nic_pairs = _levels(words, count, numa, cpus, name, problems)
    links = [levels.link_count([levels.nvlinks(entry) for entry in row], around.models.get(n, ""))
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
        peer=_peers(peers, count),
        # Adapters listed there are those that GPUDirect can use.
        nics=tuple(NIC(shown, rdma=True) for _, shown in adapters),
        nic_levels=nic_levels,
        nic_pairs=nic_pairs,
        packages=(Package(0, around.cpu, whole),) if around.cpu else (),
        numa=tuple(NumaNode(node, None, known[node]) for node in sorted(known)),
        problems=tuple(problems),
    )


def _rows(text: str, name: str) -> tuple[dict[int, Row], list[Row], RowHeader | None, _Peers]:
    """(rows of GPUs by number, other rows, the header, rows of a `topo -p2p` in the same report)."""
    peers: _Peers = {}
    gpus: dict[int, Row] = {}
    others: list[Row] = []
    header: RowHeader | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        if len(raw) > LONGEST_LINE:
            if "GPU" in raw:
                raise HiresxError(f"{name}, line {number}: {len(raw)} characters are no row of a topology", MEND)
            continue
        body = smi_rows.clean(raw)
        plain = body.split()
        match = smi_rows.GPU.fullmatch(plain[0]) if plain else None
        first = set(plain[1:3])
        if match and first & levels.P2P_WORDS and first <= levels.P2P_WORDS | {levels.SELF}:
            peers.setdefault(int(match[1]), []).append(plain[1:])
            continue
        row = smi_rows.row(number, body)
        if row and (match := smi_rows.GPU.fullmatch(row.label)):
            n = int(match[1])
            if n >= MOST_GPUS:
                raise HiresxError(f"{name}, line {number}: GPU{n}: no machine has that many", MEND)
            if n in gpus and gpus[n].words != row.words:
                raise HiresxError(
                    f"{name}, lines {gpus[n].line} and {number}: two rows of GPU{n} that differ",
                    "keep one machine in the file",
                )
            gpus.setdefault(n, row)
        elif row and smi_rows.is_device(row.label) and sum(map(bool, map(levels.word, row.words))) >= 2:
            others.append(row)
        elif not row and not gpus and "GPU" in body and (found := smi_rows.header(body)):
            header = found
    return gpus, others, header, peers


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
    raise HiresxError(f"{name}: no row of `nvidia-smi topo -m` in it", MEND)


def _refuse_p2p(name: str) -> None:
    raise HiresxError(
        f"{name}: this is `nvidia-smi topo -p2p`, which says what may reach what, not how",
        "record the machine with: nvidia-smi topo -m > machine.txt",
    )


def _peers(rows: _Peers, count: int) -> Matrix:
    """Peer access by the rows of `topo -p2p` (of reading and of writing): OK where all are, "" where none is whole."""

    def status(a: int, b: int) -> str:
        words = [row[b] for row in rows.get(a, []) if len(row) >= count and row[a] == levels.SELF]
        words = [word for word in words if word in levels.P2P_WORDS]
        return next((word for word in words if word != "OK"), words[0] if words else "")

    return tuple(tuple(levels.SELF if a == b else status(a, b) for b in range(count)) for a in range(count))


def _complete(gpus: dict[int, Row], count: int, header: RowHeader | None, name: str) -> None:
    missing = [n for n in range(count) if n not in gpus]
    named = max(header.gpus, default=0) if header else 0
    if count <= named < MOST_GPUS and not missing:
        raise HiresxError(f"{name}: the header names GPU{named}, but the rows end at GPU{count - 1}: cut off?", MEND)
    if missing:
        raise HiresxError(
            f"{name}: rows of {plural(count - len(missing), 'GPU')}, but none of GPU{missing[0]}: cut off?", MEND
        )


def _columns(header: RowHeader | None, gpus: dict[int, Row], problems: list[str]) -> list[str]:
    """Labels of the matrix's columns as the header has them; none where it does not name each GPU once."""
    if header is None:
        return []
    if sorted(header.gpus) != sorted(gpus) or len(set(header.devices)) != len(header.devices):
        if len(header.gpus) > 1:
            problems.append("the header names other GPUs than the rows: columns are counted by the rows")
        return []
    # Names that run together, or a header without its adapters: all rows hold more, as many each.
    held = {len(row.run(row.first())) for row in gpus.values()}
    if len(held) == 1 and min(held) > len(header.devices) and header.gpus == sorted(header.gpus):
        problems.append(
            f"the header names {plural(len(header.devices), 'column')}, the rows hold {min(held)}: counted by the rows"
        )
        return []
    return header.devices


def _cells(
    gpus: dict[int, Row], count: int, columns: list[str], name: str, problems: list[str]
) -> tuple[_Cells, After]:
    """({GPU: its cells}, {GPU: (words behind them, by tabs)}). A row that is short, or has its X elsewhere, is
    refused."""
    cells: dict[int, list[str]] = {}
    starts: dict[int, int] = {}
    for n in range(count):
        row = gpus[n]
        own = columns.index(f"GPU{n}") if columns else n
        start = row.place(own)
        found = row.run(row.first() if start is None else start, len(columns) or None)
        if start is None or own >= len(found):
            levels_of = row.run(row.first())
            if sum(1 for word in levels_of if levels.word(word)) < count:
                raise HiresxError(
                    f"{name}, line {row.line}: GPU{n} has {len(levels_of)} levels for {plural(count, 'GPU')}: cut off?",
                    MEND,
                )
            places = [place for place, word in enumerate(levels_of) if word == levels.SELF]
            beyond = places == [] or places[0] >= count or len(places) > 1
            raise HiresxError(
                f"{name}, line {row.line}: GPU{n} has its X in column "
                f"{', '.join(str(place + 1) for place in places) or 'none'}, not {own + 1}"
                + ("" if beyond else ": rows are missing or in another order"),
                MEND,
            )
        cells[n], starts[n] = found, start
    widths = {n: len(entry) for n, entry in cells.items()}
    if min(widths.values()) < count:
        short = min(widths, key=widths.__getitem__)
        raise HiresxError(
            f"{name}, line {gpus[short].line}: GPU{short} has {widths[short]} levels for "
            f"{plural(count, 'GPU')}: cut off?",
            MEND,
        )
    if len(set(widths.values())) > 1:
        short = min(widths, key=widths.__getitem__)
        raise HiresxError(
            f"{name}, line {gpus[short].line}: GPU{short} has {widths[short]} levels, others {max(widths.values())}: "
            "cut off, or GPU rows are missing?",
            MEND,
        )
    width = widths[0]
    if columns and width < len(columns):
        lost = columns[width:]
        problems.append(
            f"the header names {plural(len(columns), 'column')}, the rows hold {width}: nothing is known of "
            f"{', '.join(lost[:4])}" + (f" and {len(lost) - 4} more" if len(lost) > 4 else "")
        )
    after = {n: gpus[n].rest(starts[n], width) for n in range(count)}
    more = [n for n in range(count) if any(map(levels.word, after[n][0]))]
    if more:
        words = [word for word in after[more[0]][0] if levels.word(word)]
        problems.append(
            f"line {gpus[more[0]].line}: {len(words)} more levels than the header has columns: not used "
            f"({' '.join(words[:4])}{' ...' if len(words) > 4 else ''})"
        )
    for n in range(count):
        gpus[n].before += gpus[n].words[: starts[n]]
    return cells, after


def _adapters(
    gpus: dict[int, Row],
    others: list[Row],
    columns: list[str],
    cells: _Cells,
    count: int,
    text: str,
    name: str,
    problems: list[str],
) -> list[tuple[str, str]]:
    """(label, name to show) of the columns beyond the GPUs: as the header has them, else as the rows, else numbered."""
    width = len(cells[0])
    number = width - count
    if number > MOST_NICS:
        raise HiresxError(f"{name}: {number} network adapters: no machine has that many", MEND)
    heading = [label for label in columns[:width] if not smi_rows.GPU.fullmatch(label)]
    rows = list(dict.fromkeys(row.label for row in others))
    if columns:
        labels = []
        for label in heading:
            column = columns.index(label)
            if label in rows or any(levels.word(row[column]) for row in cells.values()):
                labels.append(label)
            else:
                problems.append(f"the column {printable(label)} holds no level: not used")
    elif len(rows) == number:
        labels = rows
    else:
        labels = [f"NIC{n}" for n in range(number)]
        if number and not rows and not re.search(r"\bNIC\d|mlx", text):
            raise HiresxError(
                f"{name}: {plural(number, 'column')} beyond the GPUs that nothing names: rows cut off?", MEND
            )
    for row in others:
        if row.label not in labels and re.fullmatch(r"NIC\d+|mlx\w+", row.label):
            problems.append(f"line {row.line}: the row of {printable(row.label)} belongs to no column: not used")
    legend = dict(_LEGEND.findall(text))
    shown = [legend.get(label, label) for label in labels]
    shown = shown if len(set(shown)) == len(labels) else [f"NIC{n}" for n in range(len(labels))]
    return list(zip(labels, shown, strict=True))


def _square(
    gpus: dict[int, Row],
    others: list[Row],
    order: list[str],
    columns: list[str],
    cells: _Cells,
    count: int,
    name: str,
    problems: list[str],
) -> dict[tuple[int, int], str]:
    """Level of each pair of GPUs and adapters that some row has; where two rows have it they say the same."""
    place = {label: n for n, label in enumerate(order)}
    at = [place.get(label) for label in columns[: len(cells[0])]] if columns else list(range(len(cells[0])))
    found: dict[tuple[int, int], str] = {}
    lines: dict[int, int] = {n: gpus[n].line for n in range(count)}
    rows: list[tuple[int, list[str]]] = [(n, cells[n]) for n in range(count)]
    for row in others:
        own = place.get(row.label)
        if own is None or own in lines:
            continue
        column = at.index(own)
        start = row.place(column)
        start = row.first() if start is None else start
        lines[own] = row.line
        rows.append((own, row.run(start, len(at))))
        extra = row.words[start + len(rows[-1][1]) :]
        if extra and any(map(levels.word, extra)):
            problems.append(f"line {row.line}: {len(extra)} words behind the columns: not used")
    odd: list[tuple[int, int, int, str]] = []
    for own, words in rows:
        for other, word in zip(at, words, strict=False):
            if other is None or other == own:
                continue
            level = levels.word(word)
            if level is None or level == levels.SELF:
                odd.append((lines[own], own, other, word))
                continue
            before = found.get((other, own))
            if before is not None and before != level:
                raise HiresxError(_differ(order, lines, other, own, before, level, name), MEND)
            found[own, other] = level
    for _, own, other, _ in odd:
        found.setdefault((own, other), found.get((other, own), ""))
    for (a, b), word in list(found.items()):
        found.setdefault((b, a), word)
    for line, own, other, word in odd[:MOST_TOLD]:
        known = found[own, other]
        problems.append(
            f"line {line}: '{printable(word[:20])}' between {order[own]} and {order[other]} is no level: "
            + (f"{known} by the other row" if known else "inferred from the others where they tell")
        )
    if len(odd) > MOST_TOLD:
        problems.append(f"{len(odd) - MOST_TOLD} more cells are no levels")
    unknown = sum(1 for n in range(count) for m in range(n) if not found.get((n, m)))
    if unknown and not any(found.get((n, m)) for n in range(count) for m in range(n)):
        raise HiresxError(f"{name}: no level between any two GPUs can be read: cut off?", MEND)
    return found


def _differ(order: list[str], lines: dict[int, int], a: int, b: int, first: str, second: str, name: str) -> str:
    """What two rows contradict each other in: the row of an adapter against that of a GPU, or two of a kind."""
    where = f"lines {lines[a]} and {lines[b]}"
    if order[b].startswith("GPU") != order[a].startswith("GPU"):
        where, (a, b, first, second) = f"line {lines[b]}", (b, a, second, first)
    return f"{name}, {where}: {order[a]} to {order[b]} is {first}, but {order[b]} to {order[a]} is {second}"


def _tree(words: dict[tuple[int, int], str], count: int, name: str) -> None:
    """Two GPUs on one switch with a third are on one switch with each other; what says otherwise is no machine."""
    switch = levels.RANK["PXB"]
    for b in range(count):
        near = [a for a in range(count) if a != b and levels.RANK.get(words.get((a, b), ""), 99) <= switch]
        for n, a in enumerate(near):
            for c in near[:n]:
                if levels.RANK.get(words.get((a, c), ""), 0) > switch:
                    raise HiresxError(
                        f"{name}: GPU{c}-GPU{b} is {words[c, b]} and GPU{b}-GPU{a} is {words[b, a]}, all behind one "
                        f"PCIe switch, but GPU{c}-GPU{a} is {words[c, a]}: a contradiction",
                        MEND,
                    )


def _levels(
    words: dict[tuple[int, int], str],
    count: int,
    numa: Nodes,
    cpus: Sets,
    name: str,
    problems: list[str],
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """(GPU levels, the same by PCIe, GPU to adapter, adapter to adapter), with what the tree tells filled in."""
    size = 1 + max((a for a, _ in words), default=count - 1)
    size = max(size, count)
    given = [["X" if a == b else words.get((a, b), "") for b in range(size)] for a in range(size)]

    def guess(a: int, b: int) -> str:
        return smi_affinities.level(numa[a], numa[b], cpus[a], cpus[b]) if max(a, b) < count else ""

    full, wrong = infer.complete(infer.ranks(given), guess)
    for a, b, near, far in wrong[:MOST_TOLD]:
        if max(a, b) < count:
            problems.append(f"GPU {a} and GPU {b} are {near} of each other by some columns, {far} by others")
    matrix = tuple(tuple(given[a][b] or full[a][b] or "SYS" for b in range(count)) for a in range(count))
    pcie = tuple(tuple(full[a][:count]) for a in range(count))
    for a in range(count):
        for b in range(count, size):
            if levels.nvlinks(given[a][b]):
                raise HiresxError(f"{name}: NVLink beyond the GPUs' columns: rows cut off?", MEND)
    beyond = range(count, size)
    pairs = tuple(tuple(given[a][b] or full[a][b] for b in beyond) for a in beyond)
    if any(levels.nvlinks(word) for row in pairs for word in row):
        raise HiresxError(f"{name}: NVLink between network adapters: rows cut off?", MEND)
    return matrix, pcie, tuple(tuple(full[a][count:]) for a in range(count)), pairs
