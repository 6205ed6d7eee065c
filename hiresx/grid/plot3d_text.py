"""Plot3D files of text."""

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid.blocks import format_size
from hiresx.grid.plot3d_layout import CUT_SHORT, EXPORT, block_arrays, check_blanking, points
from hiresx.grid.plot3d_others import kind_of, no_grid

# Largest number of characters of a token; a repeat count and a quadruple-precision number have fewer.
LONGEST_NUMBER = 64
# Number of tokens that are searched for the sizes of the blocks.
MOST_SIZES = 10_000
# Number of characters that are read at a time.
PIECE = 200_000


def read_ascii(path: Path, text: bytes) -> list[list[np.ndarray]]:
    """Return the coordinates in the text of a Plot3D file: for each block x, y and, in three dimensions, z, as arrays
    [k, j, i]. All variants are recognised: one or several blocks, 2-D or 3-D, with or without blanking. `path`: the
    name of the file in error messages. Raises HiresxError for text that is no such grid, and for blanked nodes."""
    values, counts, total = _numbers(path, text)
    candidates: list[tuple[bool, int, list[list[int]], int, int]] = []
    heads = _expand_repeats(values, counts)
    # Less than a byte per node is only possible with a repeat count that is meant to exhaust the memory.
    header = min(total, len(text))
    first = next(iter(text.split(b"\n", 1)), b"").replace(b",", b" ").split()
    for dimensions in (3, 2):
        for many in (True, False):
            sizes, used = _sizes(heads, dimensions, many, header)
            for blanked in (0, 1):
                if sizes and used + (dimensions + blanked) * points(sizes) == total:
                    by_line = len(first) == (1 if many else dimensions)
                    candidates.append((not by_line, len(candidates), sizes, used, blanked))
    if not candidates:
        _refuse_decimal_commas(path, text)
        with np.errstate(invalid="ignore"):
            begin = np.array([heads(n) for n in range(min(total, MOST_SIZES))])
            kind = kind_of(np.where(np.abs(begin) < 2**31, np.trunc(begin), 0), lambda n: [total - n])
        if kind is not None:
            raise no_grid(path, kind)
        _refuse_ascii(path, heads, first, header, total)
    _, _, sizes, used, blanked = min(candidates)
    if points(sizes) > len(text):
        # Two neighbouring nodes differ in a coordinate, so that a node takes at least a byte, even with repeat counts.
        raise HiresxError(f"{path}, line 1: {len(text)} bytes cannot describe that many nodes", EXPORT)
    numbers = values if counts is None else np.repeat(values, counts)
    arrays = []
    for n, size in enumerate(sizes, 1):
        nodes = math.prod(size)
        length = len(size) * nodes
        arrays.append(block_arrays(numbers[used : used + length], size))
        used += length
        if blanked:
            check_blanking(path, n, size, numbers[used : used + nodes])
            used += nodes
    return arrays


_BETWEEN = re.compile(rb"[\s,]")
_REPEATED = re.compile(rb"([0-9]+)\*([^*]+)")
_DECIMAL_COMMA = re.compile(rb"(?:^|\s)([+-]?[0-9]+,[0-9]+(?:[EeDd][+-]?[0-9]+)?)[,;]?(?=\s)")


def _numbers(path: Path, text: bytes) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Return the numbers of a text, their repeat counts (Fortran's 3*0.5; None if there are none) and their total
    count."""
    values, counts, begun, repeated = [np.zeros(0)], [np.zeros(0, dtype=np.int64)], 0, b"*" in text
    for piece in _pieces(text):
        tokens = piece.replace(b",", b" ").replace(b"D", b"E").replace(b"d", b"e").split()
        # The array of tokens below is as wide as the longest one.
        if max(map(len, tokens), default=0) > LONGEST_NUMBER:
            n = next(n for n, token in enumerate(tokens) if len(token) > LONGEST_NUMBER)
            _refuse_token(path, text, begun + n)
        if repeated:
            counts.append(_strip_repeats(path, text, begun, tokens))
        if tokens:
            values.append(_floats(path, text, begun, tokens))
        begun += len(tokens)
    total = begun if not repeated else sum(int(n) for part in counts for n in part)
    return np.concatenate(values), np.concatenate(counts) if repeated else None, total


def _pieces(text: bytes) -> Iterator[bytes]:
    """Yield pieces of the text, cut between numbers: lists of words need several times its memory."""
    start = 0
    while start < len(text):
        cut = _BETWEEN.search(text, start + PIECE)
        end = cut.start() if cut else len(text)
        yield text[start:end]
        start = end


def _strip_repeats(path: Path, text: bytes, begun: int, tokens: list[bytes]) -> np.ndarray:
    """Return the repeat counts of some tokens, and remove them from the tokens."""
    counts = np.ones(len(tokens), dtype=np.int64)
    for n, token in enumerate(tokens):
        if b"*" in token:
            match = _REPEATED.fullmatch(token)
            # Ten digits would be more nodes than one record can have; cumulative counts must not overflow.
            if not match or len(match[1]) > 9:
                _refuse_token(path, text, begun + n)
            counts[n], tokens[n] = int(match[1]), match[2]
    return counts


def _floats(path: Path, text: bytes, begun: int, tokens: list[bytes]) -> np.ndarray:
    try:
        return np.array(tokens, dtype="S").astype(np.float64)
    except ValueError:
        for n, token in enumerate(tokens):
            try:
                np.array(token, dtype="S").astype(np.float64)
            except ValueError:
                _refuse_token(path, text, begun + n)
        raise


def _refuse_decimal_commas(path: Path, text: bytes) -> None:
    """Raise an error if the text has no decimal points, but words such as 0,25."""
    found = None if b"." in text else _DECIMAL_COMMA.search(text)
    if found:
        line, word = 1 + text.count(b"\n", 0, found.start(1)), found[1].decode()
        hint = "export the grid again with decimal points"
        raise HiresxError(f"{path}, line {line}: '{word}' has a decimal comma", hint)


def _refuse_token(path: Path, text: bytes, n: int) -> NoReturn:
    """Raise an error for the n-th token, with its line."""
    _refuse_decimal_commas(path, text)
    for line, content in enumerate(text.split(b"\n"), 1):
        words = content.replace(b",", b" ").split()
        if n < len(words):
            word = words[n][:40].decode(errors="backslashreplace")
            raise HiresxError(f"{path}, line {line}: '{word}' is not a number", EXPORT)
        n -= len(words)
    raise AssertionError("the text has fewer numbers than were read from it")


def _expand_repeats(values: np.ndarray, counts: np.ndarray | None) -> Callable[[int], float]:
    """Return a function that returns number n of the file, with repeat counts expanded."""
    if counts is None:
        return values.__getitem__
    ends = np.cumsum(counts)
    return lambda n: values[np.searchsorted(ends, n, side="right")]


def _sizes(head: Callable[[int], float], dimensions: int, many: bool, total: int) -> tuple[list[list[int]], int]:
    """Return the block sizes in one reading of the first numbers, and how many numbers they are; ([], 0) if none is
    possible. `total`: the count of all numbers."""

    def whole(n: int) -> int:
        value = head(n) if n < total else 0.0
        return int(value) if 1 <= value < 2**31 and value == int(value) else 0

    blocks = whole(0) if many else 1
    used = int(many)
    if not 0 < blocks * dimensions + used <= total:
        return [], 0
    sizes = []
    for _ in range(blocks):
        sizes.append([whole(used + d) for d in range(dimensions)])
        used += dimensions
        if min(sizes[-1]) < 1:
            return [], 0
    return sizes, used


def _refuse_ascii(path: Path, head: Callable[[int], float], first: list[bytes], header: int, total: int) -> NoReturn:
    """Raises HiresxError for the reading of the sizes that the first line suggests; no reading fits the file."""
    dimensions = len(first) if len(first) in (2, 3) else 3
    many = len(first) == 1 or (len(first) > 3 and len(first) % dimensions == 1)  # all sizes may be in one line
    sizes, used = _sizes(head, dimensions, many, header)
    if not sizes:
        raise HiresxError(f"{path}, line 1: the file does not begin with the sizes of its blocks", EXPORT)
    needed = used + dimensions * points(sizes)
    raise HiresxError(
        f"{path}, line 1: blocks of {', '.join(format_size(s) for s in sizes[:4])} nodes"
        f"{' ...' if len(sizes) > 4 else ''} take {needed} numbers, the file holds {total}",
        CUT_SHORT if total < needed else EXPORT,
    )
