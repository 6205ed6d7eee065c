"""The text of `nvidia-smi topo -m`, as people paste it: in reports, as Markdown, with escapes, with half a header.

Only the rows are believed. A row begins with GPUn; its level words are read until the first word that is none. The
header may be glued together or missing, so it never says how many GPUs there are; it only names NICs.
"""

import re

from hiresx.errors import HiresxError
from hiresx.topology import levels
from hiresx.topology.cpus import parse_list
from hiresx.topology.machine import GPU, MOST_GPUS, NIC, Machine, NumaNode

MEND = "record it again with: nvidia-smi topo -m > machine.txt"
# Longest row of a machine: 64 GPUs and as many NICs, each with a word and some blanks.
LONGEST_LINE = 16384

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]")
_GPU = re.compile(r"GPU(\d{1,4})")
# What people and tools put before a row: a comment sign, a prompt, a quote, a list mark, the edge of a table.
_PREFIX = re.compile(r"[\s#>$%|*`'\"\\+:\-]*")
_AFFINITY = re.compile(r"[0-9][0-9,\-]*|N/?A|-")
_LEGEND = re.compile(r"(NIC\d{1,4})\s*[:=]\s*([A-Za-z][\w.\-]{0,63})")
# Around cells of tables and quoted text.
_MARKS = str.maketrans({"|": "\t", "*": " ", "`": " ", '"': " ", "'": " "})


class _Row:
    """One row: `words`, its levels; `before`, `after`: what stands around them."""

    def __init__(self, line: int, words: list[str], after: list[str], before: list[str], gap: int):
        self.line, self.words, self.after, self.before, self.gap = line, words, after, before, gap


def parse_smi(text: str, name: str = "nvidia-smi topo -m") -> Machine:
    """The machine of such a text: levels of GPU pairs, NICs, affinities.

    Levels behind NVLink are inferred from what is known of both GPUs towards a third device (a PCIe tree allows no
    other): they are no worse than what is said. Raises HiresxError naming the line for a text that holds no such
    matrix, or one that is cut off, not symmetric or contradicts itself, and for `topo -p2p`.
    """
    gpus, nics, header, peers = _rows(text, name)
    if not gpus and peers:
        _refuse_p2p(name)
    if not gpus:
        raise HiresxError(f"{name}: no row of `nvidia-smi topo -m` in it", MEND)
    count = max(gpus) + 1
    # Of one GPU both matrices have the same row; only the legends differ.
    if count == 1 and gpus.get(0) and not gpus[0].after and re.search(r"\bCNS\s*=", text) and "PIX" not in text:
        _refuse_p2p(name)
    _complete(gpus, count, header, name)
    width = _widths(gpus, count, name)
    matrix = _square({n: gpus[n].words[:count] for n in range(count)}, count, gpus, name)
    _tree(matrix, name)

    if width - count > MOST_GPUS:
        raise HiresxError(f"{name}: {width - count} network adapters: no machine has that many", MEND)
    names = _nic_names(header, nics, width - count, text, name)
    nic_levels = tuple(tuple(gpus[n].words[count:width]) for n in range(count))
    for n, row in enumerate(nic_levels):
        if any(entry not in levels.RANK for entry in row):
            raise HiresxError(f"{name}, line {gpus[n].line}: NVLink beyond the GPUs' columns: rows cut off?", MEND)
    between = _between_nics(nics, names, nic_levels, count, name)
    cpus, numa, problems = _affinities(gpus, header, count)
    pcie = _inferred(matrix, nic_levels, between, numa, cpus)
    links = [levels.link_count([levels.nvlinks(entry) for entry in row]) for row in matrix]
    devices = tuple(GPU(index=n, cpus=cpus[n], numa=numa[n], links=links[n] or None) for n in range(count))
    nodes = tuple(
        NumaNode(node, None, next((cpus[n] for n in range(count) if numa[n] == node and cpus[n]), frozenset()))
        for node in sorted({node for node in numa if node is not None})
    )
    return Machine(
        source=f"recording of nvidia-smi topo -m: {name}",
        gpus=devices,
        levels=matrix,
        pcie=pcie,
        peer=_peers(peers, count),
        # Adapters listed there are those that GPUDirect can use.
        nics=tuple(NIC(name, rdma=True) for name in names),
        nic_levels=nic_levels if names else tuple(() for _ in range(count)),
        numa=nodes,
        problems=tuple(problems),
    )


def _rows(text: str, name: str):
    """(rows of GPUs by number, rows of NICs, words of the header, rows of a `topo -p2p` in the same report)."""
    peers: dict[int, list[list[str]]] = {}
    gpus: dict[int, _Row] = {}
    nics: list[tuple[str, _Row]] = []
    header: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        if len(raw) > LONGEST_LINE:
            if "GPU" in raw:
                raise HiresxError(f"{name}, line {number}: {len(raw)} characters are no row of a topology", MEND)
            continue
        line = _ESCAPE.sub("", raw)
        body = line[_PREFIX.match(line).end() :].translate(_MARKS)
        words = body.split()
        first = _label_place(words)
        label, words = words[first] if words else "", words[first + 1 :]
        row = _row(number, body, words)
        match = _GPU.fullmatch(label)
        if match and words[:2] and levels.P2P_WORDS & {*words[:2]} and {*words[:2]} <= levels.P2P_WORDS | {levels.SELF}:
            peers.setdefault(int(match[1]), []).append(words)
            continue
        if match and row:
            n = int(match[1])
            if n >= MOST_GPUS:
                raise HiresxError(f"{name}, line {number}: GPU{n}: no machine has that many", MEND)
            if n in gpus and gpus[n].words != row.words:
                raise HiresxError(
                    f"{name}, lines {gpus[n].line} and {number}: two rows of GPU{n} that differ",
                    "keep one machine in the file",
                )
            gpus.setdefault(n, row)
        elif row and gpus and not match and len(row.words) >= 2 and _device_name(label):
            nics.append((label, row))
        elif not row and not gpus and "GPU0" in body:
            header = body.split()
    return gpus, nics, header, peers


def _label_place(words: list[str]) -> int:
    """Which word names the row: the first, or a GPU behind what a log writes before each line."""
    for n, entry in enumerate(words[:5]):
        if _GPU.fullmatch(entry) and n + 1 < len(words) and levels.word(words[n + 1]):
            return n
    return 0


def _device_name(label: str) -> bool:
    return re.fullmatch(r"[A-Za-z][\w.\-]{1,63}", label) is not None and levels.word(label) is None


def _row(number: int, body: str, words: list[str]) -> _Row | None:
    """The row in these words; None when no level word stands where one should. Affinities may come first."""
    start = 0
    while start < min(len(words), 4) and levels.word(words[start]) is None:
        if not _AFFINITY.fullmatch(words[start]):
            return None
        start += 1
    found = []
    for entry in words[start:]:
        level = levels.word(entry)
        if level is None:
            break
        found.append(level)
    if not found:
        return None
    after = words[start + len(found) :]
    # Blanks between the last level and what follows: an empty column shows in nothing else.
    spans = list(re.finditer(r"\S+", body))
    gap = body[spans[-len(after) - 1].end() : spans[-len(after)].start()] if after else ""
    return _Row(number, found, after, words[:start], 2 if "\t\t" in gap else 1)


def _refuse_p2p(name: str) -> None:
    raise HiresxError(
        f"{name}: this is `nvidia-smi topo -p2p`, which says what may reach what, not how",
        "record the machine with: nvidia-smi topo -m > machine.txt",
    )


def _peers(rows: dict[int, list[list[str]]], count: int):
    """Peer access by the rows of `topo -p2p` (of reading and of writing): OK where all are, "" where none is whole."""

    def status(a: int, b: int) -> str:
        words = [row[b] for row in rows.get(a, []) if len(row) >= count and row[a] == levels.SELF]
        words = [word for word in words if word in levels.P2P_WORDS]
        return next((word for word in words if word != "OK"), words[0] if words else "")

    return tuple(tuple(levels.SELF if a == b else status(a, b) for b in range(count)) for a in range(count))


def _complete(gpus: dict[int, _Row], count: int, header: list[str], name: str) -> None:
    missing = [n for n in range(count) if n not in gpus]
    named = max((int(n) for entry in header for n in _GPU.findall(entry)), default=0)
    if count <= named < MOST_GPUS and not missing:
        raise HiresxError(f"{name}: the header names GPU{named}, but the rows end at GPU{count - 1}: cut off?", MEND)
    if missing:
        raise HiresxError(f"{name}: rows of {count - len(missing)} GPUs, but none of GPU{missing[0]}: cut off?", MEND)


def _widths(gpus: dict[int, _Row], count: int, name: str) -> int:
    """Levels in a row, NICs included; a row that is short, or has its X elsewhere, is refused."""
    for n in range(count):
        row = gpus[n]
        if len(row.words) < count:
            raise HiresxError(
                f"{name}, line {row.line}: GPU{n} has {len(row.words)} levels for {count} GPUs: cut off?", MEND
            )
        places = [place for place, word in enumerate(row.words) if word == levels.SELF]
        if places != [n]:
            beyond = places == [] or places[0] >= count or len(places) > 1
            raise HiresxError(
                f"{name}, line {row.line}: GPU{n} has its X in column "
                f"{', '.join(str(place + 1) for place in places) or 'none'}, not {n + 1}"
                + ("" if beyond else ": rows are missing or in another order"),
                MEND,
            )
    widths = {n: len(gpus[n].words) for n in range(count)}
    if len(set(widths.values())) > 1:
        short = min(widths, key=widths.get)
        raise HiresxError(
            f"{name}, line {gpus[short].line}: GPU{short} has {widths[short]} levels, others {max(widths.values())}: "
            "cut off, or GPU rows are missing?",
            MEND,
        )
    return widths[0]


def _square(words: dict[int, list[str]], count: int, gpus: dict[int, _Row], name: str):
    for a in range(count):
        for b in range(a):
            if words[a][b] != words[b][a]:
                raise HiresxError(
                    f"{name}, lines {gpus[b].line} and {gpus[a].line}: GPU{b} to GPU{a} is {words[b][a]}, "
                    f"but GPU{a} to GPU{b} is {words[a][b]}",
                    MEND,
                )
    return tuple(tuple(words[n]) for n in range(count))


def _tree(matrix, name: str) -> None:
    """Two GPUs on one switch with a third are on one switch with each other; what says otherwise is no machine."""
    count = len(matrix)
    switch = levels.RANK["PXB"]
    for b in range(count):
        near = [a for a in range(count) if a != b and levels.RANK.get(matrix[a][b], 99) <= switch]
        for n, a in enumerate(near):
            for c in near[:n]:
                if levels.RANK.get(matrix[a][c], 0) > switch:
                    raise HiresxError(
                        f"{name}: GPU{c}-GPU{b} is {matrix[c][b]} and GPU{b}-GPU{a} is {matrix[b][a]}, all behind one "
                        f"PCIe switch, but GPU{c}-GPU{a} is {matrix[c][a]}: a contradiction",
                        MEND,
                    )


def _nic_names(header: list[str], nics: list[tuple[str, _Row]], count: int, text: str, name: str) -> list[str]:
    """Names of the NIC columns: as the header has them if it fits, else as the rows, else numbered."""
    if count <= 0:
        return []
    legend = dict(_LEGEND.findall(text))
    heading = []
    start = next((n for n, entry in enumerate(header) if entry.startswith("GPU0")), 0)
    for entry in header[start:]:
        if _GPU.fullmatch(entry):
            continue
        if entry in ("CPU", "NUMA", "GPU", "Affinity"):
            break
        heading.append(entry)
    rows = list(dict.fromkeys(label for label, _ in nics))
    if not rows and len(heading) != count and not any(part in entry for entry in header for part in ("mlx", "NIC")):
        raise HiresxError(f"{name}: {count} columns beyond the GPUs that nothing names: rows cut off?", MEND)
    names = heading if len(heading) == count else rows if len(rows) == count else [f"NIC{n}" for n in range(count)]
    names = [legend.get(entry, entry) for entry in names]
    return names if len(set(names)) == count else [f"NIC{n}" for n in range(count)]


def _between_nics(nics, names: list[str], nic_levels, count: int, name: str) -> list[list[str]]:
    """Levels between NICs where rows tell them; a NIC row that contradicts the GPU rows is refused."""
    between = [[""] * len(names) for _ in names]
    places = {entry: n for n, entry in enumerate(names)} | {f"NIC{n}": n for n in range(len(names))}
    for label, row in nics:
        place = places.get(label)
        if place is None or len(row.words) < count + 1:
            continue
        for n in range(count):
            if row.words[n] != nic_levels[n][place]:
                raise HiresxError(
                    f"{name}, line {row.line}: {label} to GPU{n} is {row.words[n]}, but GPU{n} to {label} is "
                    f"{nic_levels[n][place]}",
                    MEND,
                )
        for other, word in enumerate(row.words[count : count + len(names)]):
            between[place][other] = between[other][place] = word
    return between


def _affinities(gpus: dict[int, _Row], header: list[str], count: int):
    """(CPUs of each GPU or None, NUMA node or None, what is odd about them)."""
    joined = " ".join(header)
    known = joined.count("Affinity") + joined.count("NUMA ID")
    has_numa = not header or "NUMA" in joined
    cpus, numa = [], []
    for n in range(count):
        row = gpus[n]
        cells = row.before + row.after if row.before else row.after
        own, node = None, None
        if (cells and has_numa and header and "CPU" not in joined) or (
            len(cells) == 1 and row.gap > 1 and has_numa and known > 1 and cells[0].isdigit()
        ):
            node = cells[0]
        elif cells and _AFFINITY.fullmatch(cells[0]):
            own = parse_list(cells[0])
            node = cells[1] if len(cells) > 1 and has_numa else None
        cpus.append(own)
        # A GPU near several nodes ("0-1") has no one node of its own.
        numa.append(int(node) if node and node.isascii() and node.isdigit() and len(node) <= 5 else None)
    problems = []
    clipped = [n for n in range(count) if cpus[n] is None]
    if clipped and len(clipped) < count:
        problems.append(
            f"no CPU affinity for GPU {', '.join(map(str, clipped))}: recorded inside a job that has no CPU near them?"
        )
    return cpus, numa, problems


def _by_affinity(node_a, node_b, cpus_a, cpus_b) -> str:
    if None not in (node_a, node_b):
        return "NODE" if node_a == node_b else "SYS"
    if cpus_a and cpus_b:
        return "NODE" if cpus_a == cpus_b else "" if cpus_a & cpus_b else "SYS"
    return ""


def _inferred(matrix, nic_levels, between, numa, cpus):
    """PCIe levels behind NVLink. In a tree, the level of two devices is at most the worse of theirs to any third."""
    count, nics = len(matrix), len(between)
    size = count + nics
    unknown = len(levels.PCIE)
    rank = [[unknown] * size for _ in range(size)]
    for a in range(size):
        for b in range(size):
            if a < count and b < count:
                entry = matrix[a][b]
            elif a < count or b < count:
                entry = nic_levels[min(a, b)][max(a, b) - count]
            else:
                entry = between[a - count][b - count]
            rank[a][b] = levels.RANK.get(entry, unknown)
            if a != b and rank[a][b] == unknown and max(a, b) < count:
                rank[a][b] = levels.RANK.get(_by_affinity(numa[a], numa[b], cpus[a], cpus[b]), unknown)
    for c in range(size):
        for a in range(size):
            if a == c or rank[a][c] == unknown:
                continue
            row, through = rank[a], rank[a][c]
            for b in range(size):
                bound = max(through, rank[c][b])
                hidden = not (a < count and b < count) or matrix[a][b] not in levels.RANK
                if b not in (a, c) and hidden and bound < row[b]:
                    row[b] = bound
    words = (*levels.PCIE, "")
    return tuple(
        tuple(levels.SELF if a == b else words[min(rank[a][b], rank[b][a])] for b in range(count)) for a in range(count)
    )
