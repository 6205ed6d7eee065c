"""Rows and header of a matrix of levels in pasted text. Words that run together are separated. The X that each row has
in its own column tells where the columns begin."""

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from hiresx.topology import connection_levels
from hiresx.topology.cpus import parse_list

_WORD = r"(?:X|PIX|PXB|PHB|PSB|NODE|SYS|SOC|NV(?:[12][0-9]|3[0-6]|[1-9]))"
_GLUED = re.compile(rf"{_WORD}{{2,}}")
_BEFORE_LIST = re.compile(rf"({_WORD}*(?:X|PIX|PXB|PHB|PSB|NODE|SYS|SOC))([0-9][0-9,\-]*|N/A)")
_LABEL_GLUED = re.compile(rf"((?:GPU|NIC)\d{{1,4}})({_WORD}+)")
_LABEL = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|mlx\w+")
GPU = re.compile(r"GPU(\d{1,4})")
_AFFINITY = re.compile(r"[0-9][0-9,\-]*|N/?A|-")
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]")
# Characters that people and tools put before a row: a comment sign, a prompt, a quote, a list mark, the edge of a
# table.
_PREFIX = re.compile(r"[\s#>$%|*`'\"\\+:\-]*")
# Around cells of tables and quoted text.
_MARKS = str.maketrans({"|": "\t", "*": " ", "`": " ", '"': " ", "'": " "})
# Columns of a header; the name of a device ends where the next known label begins, even without a blank.
_HEADING = re.compile(
    r"(?P<memory>GPU *NUMA *ID)|(?P<cpu>CPUs?(?: *Affinity)?)|(?P<numa>NUMA(?: *(?:Affinity|Nodes?))?(?:\(s\))?)"
    r"|(?P<gpu>GPU\d{1,4})|(?P<nic>NIC\d{1,4}|mlx\d_\d{1,3})"
    r"|(?P<other>[A-Za-z][\w.\-]*?(?=GPU\d|NIC\d|mlx\d_\d|CPU\s?Aff|NUMA\s?Aff|GPU\s?NUMA|[^\w.\-]|$))"
)
_CELL = re.compile(r"[A-Z0-9?!/#\-][A-Z0-9?!/#,\-]*")
MOST_BEFORE = 8  # words without the first level: affinities, or unreadable cells
CPU, NUMA, MEMORY = "cpu", "numa", "memory"
# Largest number of unused words that are named.
MOST_TOLD = 6
# By GPU: the words behind the matrix, and the same separated by tabs.
After: TypeAlias = dict[int, tuple[list[str], list[str]]]


def clean(line: str) -> str:
    """Return a line of pasted terminal output without escape sequences and without characters before the row, such as
    quotation marks. Cells remain separated by tabs."""
    line = _ESCAPE.sub("", line)
    prefix = _PREFIX.match(line)
    return line[prefix.end() if prefix else 0 :].translate(_MARKS)


def is_affinity(word: str) -> bool:
    """Return whether a word of the output of `nvidia-smi topo -m` looks like a list of CPUs or NUMA nodes, such as
    "0-31" or "N/A"."""
    return _AFFINITY.fullmatch(word) is not None


def is_device(label: str) -> bool:
    """Return whether a label in the output of `nvidia-smi topo -m` can be the name of a device, such as "mlx5_0"."""
    return re.fullmatch(r"[A-Za-z][\w.\-]{1,63}", label) is not None and connection_levels.word(label) is None


@dataclass
class RowHeader:
    """The header of a matrix of levels. `devices`: the labels of the columns of the matrix. `before`, `after`: the
    labels of the affinity columns on either side."""

    devices: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def gpus(self) -> list[int]:
        """Numbers of the GPUs among the column labels, in the order of the columns."""
        return [int(match[1]) for label in self.devices if (match := GPU.fullmatch(label))]


def header(body: str) -> RowHeader | None:
    """Return the column labels in a header line of `nvidia-smi topo -m`; None if the line is not such a header or names
    no GPU. `body`: the line."""
    found = RowHeader()
    for match in _HEADING.finditer(body):
        kind = match.lastgroup
        if kind in (CPU, NUMA, MEMORY):
            (found.after if found.devices else found.before).append(kind)
        elif kind == "other" and (not found.devices or found.after):
            continue  # a title before the columns, or a word behind them
        elif kind == "nic" and not found.devices and not re.search(r"GPU\d", body[match.end() :]):
            return None
        else:
            found.devices.append(f"GPU{int(match.group()[3:])}" if kind == "gpu" else match.group())
    return found if found.gpus else None


@dataclass
class Row:
    """One row of a matrix of levels in a text that may have been copied from a terminal. `line`: its number. `label`:
    the device of the row. `words`: the words after the label. `before`: affinities left of the label. `text`: the line.
    """

    line: int
    label: str
    words: list[str]
    before: list[str]
    text: str

    def place(self, column: int) -> int | None:
        """Return the index, in the words of this row, of the first cell of the matrix of levels. Every row has an X on
        the diagonal, in the column of its own device, which has the number `column`. Returns None if the row has no X,
        or more than one."""
        marks = [n for n, word in enumerate(self.words) if word == connection_levels.SELF]
        start = marks[0] - column if len(marks) == 1 else -1
        return start if start >= 0 and not any(map(connection_levels.word, self.words[:start])) else None

    def first(self) -> int:
        """Return the index of the first word of this row that names a level of connection (PIX, NODE, NV4, ...). The
        matrix begins there if the row has no X on the diagonal."""
        return next((n for n, word in enumerate(self.words) if connection_levels.word(word)), len(self.words))

    def run(self, start: int, width: int | None = None) -> list[str]:
        """Return the cells of the matrix of levels in this row, which begin at the word with the index `start`. The
        result has `width` cells, fewer if the row is too short; without `width` it ends with the last level before the
        affinities."""
        end = start
        for n in range(start, len(self.words)):
            word = self.words[n]
            if connection_levels.word(word):
                end = n + 1
            elif is_affinity(word) and parse_list(word) is not None:
                break
        if width is None:
            return self.words[start:end]
        cells = self.words[start : start + width]
        # In a row that is too short the next words are affinities, which do not look like cells.
        while cells and start + len(cells) > end and is_affinity(cells[-1]):
            cells.pop()
        return cells

    def rest(self, start: int, width: int) -> tuple[list[str], list[str]]:
        """Return what follows the matrix of levels in this row, twice: as words, and as cells separated by tabs, which
        include empty cells. `start`: the index of the word at which the matrix begins. `width`: the number of its
        columns."""
        after = self.words[start + width :]
        if not after:
            return [], []
        spans = list(re.finditer(r"\S+", self.text))
        tail = self.text[spans[-len(after) - 1].end() :] if len(spans) > len(after) else ""
        return after, [cell.strip() for cell in tail.split("\t")[1:]]


def row(number: int, body: str) -> Row | None:
    """Return the row of a matrix of `nvidia-smi topo -m` that a line contains; None if the line does not begin with a
    device label followed by levels of connection. `number`: the number of the line in the text. `body`: the line."""
    words = body.split()
    at = _label(words)
    if at is None:
        return None
    label = words[at]
    found: list[str] = []
    for n, word in enumerate(words[at:]):
        glued = _LABEL_GLUED.fullmatch(word) if n == 0 else None
        if glued:
            label = glued[1]
            found += re.findall(_WORD, glued[2])
        elif n:
            found += apart(word)
    found = [connection_levels.word(word) or word for word in found]
    start = next((n for n, word in enumerate(found) if connection_levels.word(word)), None)
    # A sentence that names a GPU is not a row. In a row, the words before the first level look like cells.
    if start is None or start > MOST_BEFORE or not all(_CELL.fullmatch(word) for word in found[:start]):
        return None
    before: list[str] = []
    for word in reversed(words[:at]):
        if not is_affinity(word) or (word[0].isdigit() and parse_list(word.rstrip(",")) is None):
            break
        before.insert(0, word)
    return Row(number, label, found, before, body)


def apart(word: str) -> list[str]:
    """Return the cells in a word of pasted text in which blanks were lost: several levels of connection in one word
    ("SYSNODE"), or a level and a list of CPUs ("SYS0-31"). For any other word the result is [word]."""
    if connection_levels.word(word):
        return [word]
    if _GLUED.fullmatch(word):
        return re.findall(_WORD, word)
    split = _BEFORE_LIST.fullmatch(word)
    return [*re.findall(_WORD, split[1]), split[2]] if split else [word]


def _label(words: list[str]) -> int | None:
    """Return the index of the word that names the row: a GPU or an adapter before levels, after the prefix of a log or
    an affinity; or else the first word."""
    for n, word in enumerate(words[:8]):
        following = [part for after in words[n + 1 : n + 2 + MOST_BEFORE] for part in apart(after)]
        named = _LABEL.fullmatch(word) and any(connection_levels.word(part) for part in following)
        if named or _LABEL_GLUED.fullmatch(word):
            return n
    return 0 if len(words) > 1 else None
