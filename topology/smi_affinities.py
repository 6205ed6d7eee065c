"""The affinities beside the matrix of `nvidia-smi topo -m`: nearest CPUs and NUMA nodes of each GPU, and NUMA nodes
that are memory of a GPU."""

from typing import TypeAlias

from hiresx.topology import connection_levels, smi_rows
from hiresx.topology.cpus import format_list, parse_list
from hiresx.topology.machine import printable
from hiresx.topology.smi_rows import CPU, MEMORY, MOST_TOLD, NUMA, After, Row, RowHeader

# By GPU: CPUs or NUMA nodes, or one NUMA node; None if they are not known.
Sets: TypeAlias = list[frozenset[int] | None]
Nodes: TypeAlias = list[int | None]


def read(
    gpus: dict[int, Row], after: After, header: RowHeader | None, count: int, problems: list[str]
) -> tuple[Sets, Nodes, Sets]:
    """Read the affinity columns of a matrix of `nvidia-smi topo -m`. Returns three lists with one entry for each GPU:
    its nearest CPUs or None, its NUMA node or None, and the NUMA nodes near it if there are several. `gpus`: the row of
    each GPU, by its index. `after`: for each GPU two lists of the text behind the levels of its row: its words, and its
    cells separated by tabs. `header`: the header of the matrix, if any. `count`: the number of GPUs. Sentences about
    unreadable or missing entries are appended to `problems`."""
    cpus: Sets = []
    numa: Nodes = []
    nodes: Sets = []
    unread: list[str] = []
    memories: list[int] = []  # NUMA nodes that are memory of a GPU; the system counts them behind those with CPUs
    for n in range(count):
        row, (words, tabbed) = gpus[n], after[n]
        entry: dict[str, str] = {}
        if header is None or header.before:
            _assign(row.before, [], header.before if header else [CPU, NUMA, MEMORY], entry, unread, row.line, True)
        _assign(words, tabbed, header.after if header else [CPU, NUMA, MEMORY], entry, unread, row.line, bool(header))
        cpus.append(_parse_set(entry.get(CPU, ""), unread, row.line, "CPUs"))
        nodes.append(_parse_set(entry.get(NUMA, ""), unread, row.line, "NUMA nodes"))
        memories += _parse_set(entry.get(MEMORY, ""), unread, row.line, "NUMA nodes") or ()
    for n, listed in enumerate(nodes):
        near = frozenset(node for node in listed or () if not memories or node < min(memories)) or listed
        numa.append(min(near) if near and len(near) == 1 else None)
        nodes[n] = listed if listed and len(listed) > 1 else None
    problems += unread[:MOST_TOLD]
    if len(unread) > MOST_TOLD:
        problems.append(f"{len(unread) - MOST_TOLD} more lines have words that were not used")
    missing = [n for n in range(count) if cpus[n] is None]
    if missing and len(missing) < count:
        problems.append(
            f"no CPU affinity for GPU {format_list(missing)}: recorded inside a job that has no CPU near them?"
        )
    given = {n: len(own) for n, own in enumerate(cpus) if own}
    clipped = [n for n, size in given.items() if size < max(given.values()) or size == 1]
    if clipped:
        n = clipped[0]
        problems.append(
            f"CPU affinity of GPU {format_list(clipped)} ({format_list(cpus[n] or ())}) is clipped, it seems: "
            + (f"others have {max(given.values())} CPUs" if given[n] < max(given.values()) else "one CPU only")
            + "; recorded inside a job that has few of them?"
        )
    return cpus, numa, nodes


def _assign(
    words: list[str],
    tabbed: list[str],
    kinds: list[str],
    entry: dict[str, str],
    unread: list[str],
    line: int,
    whole: bool,
) -> None:
    """Assign the words beside the matrix to its affinity columns. Remaining words are added to `unread`."""
    words = list(words)
    while len(words) > len(kinds) and (n := next((n for n, word in enumerate(words[:-1]) if _open(word)), -1)) >= 0:
        words[n : n + 2] = [words[n] + words[n + 1]]  # "0, 3-9": a list with blanks in it
    if kinds and 0 < len(words) < len(kinds) and tabbed:
        # An empty column is visible in the tabs; the last column has two tabs before it.
        last = [tabbed[-1]] if len(kinds) == 3 and len(tabbed) >= 3 else []
        columns = [*tabbed[: len(kinds) - len(last)], *last]
        if [cell for cell in columns if cell] == words:
            entry.update((kind, cell) for kind, cell in zip(kinds, columns, strict=False) if cell)
            return
    elif kinds == [CPU, NUMA] and len(words) == 1 and not tabbed and not words[0].isdigit():
        entry[CPU] = words[0]
        return
    for kind, word in zip(kinds, words, strict=False):
        if not smi_rows.is_affinity(word):
            break
        entry[kind] = word
    left = words[len(kinds) :] if whole else [word for word in words[len(kinds) :] if not connection_levels.word(word)]
    left = [word for word in words[: len(kinds)] if not smi_rows.is_affinity(word)] + left
    if left:
        shown = printable(" ".join(left))[:60]
        unread.append(f"line {line}: not used: '{shown}'")


def _open(word: str) -> bool:
    return word.endswith(",") and word[:1].isdigit()


def _parse_set(word: str, unread: list[str], line: int, what: str) -> frozenset[int] | None:
    if not word or word.upper() in ("N/A", "NA", "-"):
        return None
    found = parse_list(word)
    if found is None:
        unread.append(f"line {line}: '{printable(word[:40])}' is no list of {what}: not used")
    return found


def choose_nodes(numa: Nodes, nodes: Sets, known: dict[int, frozenset[int]]) -> Nodes:
    """Return the NUMA node of each GPU, None if it is not known. If several nodes are near a GPU, its node is the only
    one of them that has CPUs. `numa`: the known node of each GPU, or None. `nodes`: the nodes near each GPU if there
    are several, or None. `known`: the CPUs of each NUMA node."""
    found = list(numa)
    for n, listed in enumerate(nodes):
        if found[n] is None and listed:
            with_cpus = [node for node in listed if known.get(node)]
            found[n] = with_cpus[0] if len(with_cpus) == 1 else None
    return found


def level(node_a: int | None, node_b: int | None, cpus_a: frozenset[int] | None, cpus_b: frozenset[int] | None) -> str:
    """Return whether two GPUs are on one NUMA node ("NODE") or on two ("SYS"), the names of `nvidia-smi topo -m`. The
    answer follows from their NUMA nodes `node_a` and `node_b`, or from their nearest CPUs `cpus_a` and `cpus_b` if a
    node is not known. Returns "" if neither is known, and if the CPUs overlap only in part."""
    if None not in (node_a, node_b):
        return "NODE" if node_a == node_b else "SYS"
    if cpus_a and cpus_b:
        return "NODE" if cpus_a == cpus_b else "" if cpus_a & cpus_b else "SYS"
    return ""
