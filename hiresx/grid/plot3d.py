"""Plot3D grid files: ASCII and Fortran-unformatted, one block or many, 2-D or 3-D, single or double precision.

Layout: [number of blocks], the sizes ni nj (nk) of all blocks, then per block all x, all y, (all z), i fastest.
Unformatted, each of these is one Fortran record: its length in bytes as a 4-byte integer before and after it. Records
beyond 2 GiB are cut into subrecords, marked by a negative leading length where more follows and a negative trailing
one where something precedes, as gfortran and ifort do. A file with blanking (iblank) is refused.
"""

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block
from hiresx.grid.connections import Grid
from hiresx.grid.writing import written

# Longest subrecord that gfortran and ifort write.
SUBRECORD = 2**31 - 9
# Characters; a repeat count and a quadruple-precision number take fewer.
LONGEST_NUMBER = 64
EXPORT = "export the grid again as Plot3D, ASCII or Fortran unformatted, without blanking"


def read_plot3d(path: str | os.PathLike) -> list[Block]:
    """Blocks "block-1", "block-2", ... of a file, coordinates float64 as they stand in it; z = 0 in a 2-D file.

    Form, byte order, precision, number of blocks and dimensions are found out from the file. Nothing is allocated
    before the sizes have been checked against the file's length.
    Raises HiresxError naming the line (ASCII) or byte (unformatted) for whatever is not such a file.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                raise HiresxError(f"{path}: the file is empty", EXPORT)
            start = file.read(64)
            file.seek(0)
            # The first record marker of an unformatted file is 4, 8 or 12: three of its bytes are zero.
            arrays = _read_unformatted(path, file, size) if b"\0" in start else _read_ascii(path, file.read())
    except OSError as error:
        raise HiresxError(f"{path}: cannot be read: {error.strerror or error}", "check grid.file") from error
    return [
        Block(f"block-{n}", *nodes, *[np.zeros_like(nodes[0])] * (3 - len(nodes))) for n, nodes in enumerate(arrays, 1)
    ]


def write_plot3d(
    path: str | os.PathLike,
    grid: Grid,
    *,
    ascii: bool = False,
    precision: str = "fp64",
    big_endian: bool = False,
    planar: bool = False,
    single: bool = False,
) -> None:
    """Write the blocks of a grid; the file appears whole or not at all.

    `ascii`: text instead of unformatted; `precision`: "fp64" or "fp32"; `planar`: the 2-D layout, without z and nk, for
    grids with nk = 1 everywhere; `single`: the layout without a number of blocks, for a grid of one block.
    Raises HiresxError when the layout does not fit the grid or the file cannot be written.
    """
    path = Path(path)
    if planar and any(block.size[2] > 1 for block in grid.blocks):
        raise HiresxError(f"{path}: a grid with nk > 1 has no 2-D layout", "write it without `planar`")
    if single and len(grid.blocks) != 1:
        raise HiresxError(f"{path}: {len(grid.blocks)} blocks have no single-block layout", "write without `single`")
    dimensions = 2 if planar else 3
    sizes = [block.size[:dimensions] for block in grid.blocks]
    real = np.dtype({"fp64": "f8", "fp32": "f4"}[precision])
    put = _put_ascii if ascii else _put_record
    order = ">" if big_endian else "<"
    with written(path) as file:
        if not single:
            put(file, np.array([len(sizes)], order + "i4"))
        put(file, np.array(sizes, order + "i4").ravel())
        for block in grid.blocks:
            nodes = np.stack([block.x, block.y, block.z][:dimensions]).ravel()
            put(file, nodes.astype(real.newbyteorder(order)))


def _put_ascii(file: BinaryIO, values: np.ndarray) -> None:
    if values.dtype.kind == "i":
        file.write((" ".join(map(str, values)) + "\n").encode())
        return
    # Shortest text that reads back as the same number in the array's precision.
    for n in range(0, len(values), 6):
        file.write((" ".join(map(str, values[n : n + 6])) + "\n").encode())


def _put_record(file: BinaryIO, values: np.ndarray) -> None:
    data = values.view("u1")
    marker = np.dtype("i4") if values.dtype.isnative else np.dtype("i4").newbyteorder("S")
    for n in range(0, len(data), SUBRECORD):
        part = data[n : n + SUBRECORD]
        more, less = n + SUBRECORD < len(data), n > 0
        file.write(np.array(-len(part) if more else len(part), marker).tobytes())
        file.write(part)
        file.write(np.array(-len(part) if less else len(part), marker).tobytes())


def _read_unformatted(path: Path, file: BinaryIO, size: int) -> list[list[np.ndarray]]:
    marker = file.read(4)
    file.seek(0)
    for order in "<>":
        first = int(np.frombuffer(marker, order + "i4")[0]) if len(marker) == 4 else 0
        if first in (4, 8, 12):
            break
    else:
        raise HiresxError(
            f"{path}, byte 0: neither text nor a Fortran record of 1, 2 or 3 integers",
            EXPORT + " (with record markers)",
        )
    records = _records(path, file, size, order)

    def integers(parts: list[tuple[int, int]]) -> list[int]:
        return [int(n) for n in np.frombuffer(_bytes(file, parts), order + "i4")]

    where, parts, length = _next(path, records, "the block sizes")
    if length == 4:
        (count,) = integers(parts)
        where, parts, length = _next(path, records, "the block sizes")
        if count < 1 or length not in (8 * count, 12 * count):
            raise HiresxError(
                f"{path}, byte {where}: a record of {length} bytes cannot hold the sizes of {count} blocks", EXPORT
            )
        dimensions = length // (4 * count)
        numbers = integers(parts)
        sizes = [numbers[n : n + dimensions] for n in range(0, len(numbers), dimensions)]
    else:
        sizes = [integers(parts)]
        dimensions = len(sizes[0])
    arrays = []
    for n, block in enumerate(sizes, 1):
        _check_size(path, f"byte {where}", n, block)
        points = math.prod(block)
        at, parts, length = _next(path, records, f"block {n}")
        real = {4 * points * dimensions: "f4", 8 * points * dimensions: "f8"}.get(length)
        if real is None:
            blanked = length in (4 * points * (dimensions + 1), 4 * points * (2 * dimensions + 1))
            raise HiresxError(
                f"{path}, byte {at}: block {n} of {' x '.join(map(str, block))} nodes in a record of {length} bytes "
                + ("has blanking" if blanked else "is neither single nor double precision"),
                EXPORT,
            )
        values = np.frombuffer(_bytes(file, parts), order + real)
        arrays.append(_shaped(values, block))
    for at, _, _ in records:
        raise HiresxError(f"{path}, byte {at}: {size - at} bytes follow the last block", EXPORT)
    return arrays


def _records(path: Path, file: BinaryIO, size: int, order: str) -> Iterator[tuple[int, list[tuple[int, int]], int]]:
    """(byte of the marker, [(byte, length) of its parts], total length) of each record, lengths checked."""

    def marker(at: int) -> int:
        if at + 4 > size:
            raise HiresxError(f"{path}, byte {at}: the file ends within a record marker", EXPORT)
        file.seek(at)
        return int(np.frombuffer(file.read(4), order + "i4")[0])

    at = 0
    while at < size:
        start, parts, more = at, [], True
        while more:
            lead = marker(at)
            length, more = abs(lead), lead < 0
            if at + 8 + length > size:
                raise HiresxError(
                    f"{path}, byte {at}: the record of {length} bytes reaches beyond the file's end at {size}",
                    EXPORT,
                )
            trail = marker(at + 4 + length)
            if trail != (-length if parts else length) or (more and length == 0):
                raise HiresxError(
                    f"{path}, byte {at}: the record's leading length {lead} and trailing length {trail} differ", EXPORT
                )
            parts.append((at + 4, length))
            at += 8 + length
        yield start, parts, sum(length for _, length in parts)


def _next(path: Path, records: Iterator, what: str) -> tuple[int, list[tuple[int, int]], int]:
    for record in records:
        return record
    raise HiresxError(f"{path}: the file ends before {what}", EXPORT)


def _bytes(file: BinaryIO, parts: list[tuple[int, int]]) -> bytes | bytearray:
    data = bytearray(sum(length for _, length in parts))
    view, filled = memoryview(data), 0
    for at, length in parts:
        file.seek(at)
        filled += file.readinto(view[filled : filled + length])
    return data


def _shaped(values: np.ndarray, size: list[int]) -> list[np.ndarray]:
    """The coordinates of one block as float64 (nk, nj, ni)."""
    ni, nj, nk = [*size, 1][:3]
    with np.errstate(invalid="ignore"):  # a block refuses a nan, naming its node; the cast need not warn
        return [c.reshape(nk, nj, ni).astype(np.float64) for c in values.reshape(len(size), -1)]


def _check_size(path: Path, where: str, n: int, size: list[int]) -> None:
    if min(size) < 1:
        raise HiresxError(f"{path}, {where}: block {n} has the size {' x '.join(map(str, size))}", EXPORT)


def _read_ascii(path: Path, text: bytes) -> list[list[np.ndarray]]:
    values, counts, total = _numbers(path, text)
    candidates = []
    heads = _expanded(values, counts)
    # Sizes of less than a byte each would only come from a repeat count that means harm.
    header = min(total, len(text))
    first = next(iter(text.split(b"\n", 1)), b"").replace(b",", b" ").split()
    for dimensions in (3, 2):
        for many in (True, False):
            sizes, used = _sizes(heads, dimensions, many, header)
            if sizes and used + dimensions * sum(map(math.prod, sizes)) == total:
                by_line = len(first) == (1 if many else dimensions)
                candidates.append((not by_line, len(candidates), sizes, used))
    if not candidates:
        _refuse_ascii(path, heads, first, header, total)
    _, _, sizes, used = min(candidates)
    if sum(map(math.prod, sizes)) > len(text):
        # Two neighbouring nodes differ in a coordinate, so even with repeat counts a node takes a byte or more.
        raise HiresxError(f"{path}, line 1: {len(text)} bytes cannot describe that many nodes", EXPORT)
    numbers = values if counts is None else np.repeat(values, counts)
    arrays = []
    for size in sizes:
        length = len(size) * math.prod(size)
        arrays.append(_shaped(numbers[used : used + length], size))
        used += length
    return arrays


_REPEATED = re.compile(rb"([0-9]+)\*([^*]+)")


def _numbers(path: Path, text: bytes) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Numbers of a text, their repeat counts (Fortran's 3*0.5; None when there are none) and their total count."""
    plain = text.replace(b",", b" ").replace(b"D", b"E").replace(b"d", b"e")
    tokens = plain.split()
    # The array of tokens below is as wide as the longest one.
    if max(map(len, tokens), default=0) > LONGEST_NUMBER:
        n = next(n for n, token in enumerate(tokens) if len(token) > LONGEST_NUMBER)
        _refuse_token(path, plain, n, tokens[n])
    counts = None
    if b"*" in plain:
        counts = np.ones(len(tokens), dtype=np.int64)
        for n, token in enumerate(tokens):
            if b"*" in token:
                match = _REPEATED.fullmatch(token)
                # Ten digits would be more nodes than one record holds; cumulative counts must not overflow.
                if not match or len(match[1]) > 9:
                    _refuse_token(path, plain, n, token)
                counts[n], tokens[n] = int(match[1]), match[2]
    try:
        values = np.array(tokens, dtype="S").astype(np.float64) if tokens else np.zeros(0)
    except ValueError:
        values = None
    if values is None:
        for n, token in enumerate(tokens):
            try:
                np.array(token, dtype="S").astype(np.float64)
            except ValueError:
                _refuse_token(path, plain, n, token)
    return values, counts, len(tokens) if counts is None else sum(map(int, counts))


def _refuse_token(path: Path, text: bytes, n: int, token: bytes) -> None:
    """Raise for the n-th token, naming its line."""
    for line, content in enumerate(text.split(b"\n"), 1):
        n -= len(content.split())
        if n < 0:
            raise HiresxError(
                f"{path}, line {line}: '{token[:40].decode(errors='backslashreplace')}' is not a number", EXPORT
            )


def _expanded(values: np.ndarray, counts: np.ndarray | None):
    """Access to number n of the file, repeat counts expanded."""
    if counts is None:
        return values.__getitem__
    ends = np.cumsum(counts)
    return lambda n: values[np.searchsorted(ends, n, side="right")]


def _sizes(head, dimensions: int, many: bool, total: int) -> tuple[list[list[int]], int]:
    """Block sizes under one reading of the first numbers, and how many numbers they are; ([], 0) if none is possible.

    `total`: how many numbers there are to read them from.
    """

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


def _refuse_ascii(path: Path, head, first: list[bytes], header: int, total: int) -> None:
    """No reading of the sizes fits the file: say so for the one that the first line suggests."""
    dimensions = len(first) if len(first) in (2, 3) else 3
    sizes, used = _sizes(head, dimensions, len(first) == 1, header)
    if not sizes:
        raise HiresxError(f"{path}, line 1: the file does not begin with the sizes of its blocks", EXPORT)
    needed = used + dimensions * sum(map(math.prod, sizes))
    raise HiresxError(
        f"{path}, line 1: blocks of {', '.join(' x '.join(map(str, s)) for s in sizes[:4])} nodes"
        f"{' ...' if len(sizes) > 4 else ''} take {needed} numbers, the file holds {total}",
        EXPORT,
    )
