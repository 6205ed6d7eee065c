"""Binary Plot3D files: Fortran unformatted (records between markers) and the plain stream that C programs write.

Unformatted, the number of blocks, the sizes and each block are one record: its length in bytes as a 4-byte integer
before and after it. Records beyond 2 GiB are cut into subrecords, marked by a negative leading length where more
follows and a negative trailing one where something precedes, as gfortran and ifort do. A stream holds the same numbers
with nothing between them; it is one when the file is exactly as long as its sizes say.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import product
from pathlib import Path

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.grid import stored_coordinates
from hiresx.grid.blocks import format_size
from hiresx.grid.plot3d_layout import CUT_SHORT, EXPORT, block_arrays, check_blanking, check_size, points
from hiresx.grid.plot3d_others import binary_kind, no_grid
from hiresx.grid.stored_coordinates import Bytes, Nodes, StoredCoordinates

# More blocks than any grid has.
MOST_BLOCKS = 1_000_000


@dataclass(frozen=True)
class RecordLayout:
    """The layout of a binary Plot3D file. `form`: the kind of records, "Fortran records" or "C stream". `order`: the
    byte order, "<" or ">". `real`: the type of reals, "f4" or "f8". `blanked`: number of bytes of blanking per node.
    `blocks`: for each block its size, and the ranges (first byte, number of bytes) of the file that hold its
    numbers."""

    form: str
    order: str
    real: str
    blanked: int
    blocks: list[tuple[list[int], list[tuple[int, int]]]]

    @property
    def describe(self) -> str:
        """Description of the layout for the user, such as "C stream, little-endian, double precision"."""
        return (
            f"{self.form}, {'big' if self.order == '>' else 'little'}-endian, "
            f"{'double' if self.real == 'f8' else 'single'} precision{', blanking' if self.blanked else ''}"
        )


def read_binary(path: Path, file: BufferedReader, size: int) -> list[list[Nodes]]:
    """Read the coordinates x, y, z of the blocks of a binary Plot3D file, each (nk, nj, ni). The coordinates of a large
    file are not read until they are needed. `file`: the open file `path`. `size`: its length in bytes. Raises
    HiresxError for a file that holds no grid."""
    layout = find_layout(path, file, size)
    keep = points([block for block, _ in layout.blocks]) >= stored_coordinates.LARGE
    arrays: list[list[Nodes]] = []
    for n, (block, parts) in enumerate(layout.blocks, 1):
        kind = np.dtype(layout.order + layout.real)
        if keep:
            arrays.append(_keep_parts(path, n, block, parts, layout, kind))
        else:
            arrays.append([*_block(path, n, block, memoryview(_bytes(file, parts)), layout.order, layout.real,
                                 layout.blanked)])  # fmt: skip
    return arrays


def _keep_parts(
    path: Path,
    n: int,
    block: list[int],
    parts: Sequence[tuple[int, int]],
    layout: RecordLayout,
    kind: np.dtype[np.floating],
) -> list[Nodes]:
    """Return coordinates that stay in the file; their blanking is read."""
    shape, bytes_ = triple([*block, 1][:3][::-1]), math.prod(block) * kind.itemsize
    if layout.blanked:
        blanking = StoredCoordinates.of(Bytes(path, layout.order + "i4", shape, tuple(parts), len(block) * bytes_))
        for slab in blanking.slabs():
            if not (slab > 0).all():
                check_blanking(path, n, block, np.asarray(blanking).ravel())
    return [StoredCoordinates.of(Bytes(path, kind.str, shape, tuple(parts), c * bytes_)) for c in range(len(block))]


def find_layout(path: Path, file: BufferedReader, size: int) -> RecordLayout:
    """Return the layout of a binary Plot3D file: kind of records, byte order, precision, blanking, and the positions of
    the blocks. `file`: the open file `path`. `size`: its length in bytes. Raises HiresxError for a file that holds no
    grid."""
    try:
        return _find_layout(path, file, size)
    except HiresxError:
        kind = binary_kind(file, size)
        if kind is None:
            raise
        raise no_grid(path, kind) from None


def _find_layout(path: Path, file: BufferedReader, size: int) -> RecordLayout:
    order = _record_order(file, size)
    if order is None:
        return _stream_layout(path, file, size)
    try:
        return _record_layout(path, file, size, order)
    except HiresxError:
        # A stream whose first integers look like a record marker.
        if not _streams(file, size):
            raise
    return _stream_layout(path, file, size)


def begins_like_plot3d(path: Path) -> bool:
    """Return whether a binary file may be Plot3D according to its first bytes: a record of 1, 2 or 3 integers, a C
    stream, or a solution or function file."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if _record_order(file, size) is not None or _streams(file, size):
            return True
        return binary_kind(file, size) is not None


def _record_order(file: BufferedReader, size: int) -> str | None:
    """Return the byte order of the markers if the file begins with a record of 1, 2 or 3 integers."""
    file.seek(0)
    start = file.read(4)
    for order in "<>":
        first = int(np.frombuffer(start, order + "i4")[0]) if len(start) == 4 else 0
        if first in (4, 8, 12):
            file.seek(4 + first)
            end = file.read(4)
            if len(end) < 4 or int(np.frombuffer(end, order + "i4")[0]) == first or not _streams(file, size):
                return order
    return None


def _record_layout(path: Path, file: BufferedReader, size: int, order: str) -> RecordLayout:
    records = _records(path, file, size, order)

    def integers(parts: list[tuple[int, int]]) -> list[int]:
        return [int(n) for n in np.frombuffer(_bytes(file, parts), order + "i4")]

    where, parts, length = _next(path, records, "the block sizes")
    if length == 4:
        (count,) = integers(parts)
        where, parts, length = _next(path, records, "the block sizes")
        if count < 1 or length not in (8 * count, 12 * count):
            raise HiresxError(
                f"{path}, byte {where}: a record of {length} bytes cannot hold the sizes of {plural(count, 'block')}",
                EXPORT,
            )
        dimensions = length // (4 * count)
        numbers = integers(parts)
        sizes = [numbers[n : n + dimensions] for n in range(0, len(numbers), dimensions)]
    else:
        sizes = [integers(parts)]
        dimensions = len(sizes[0])
    held, layouts = [], set()
    for n, block in enumerate(sizes, 1):
        check_size(path, f"byte {where}", n, block)
        nodes = math.prod(block)
        at, parts, length = _next(path, records, f"block {n}")
        layout = next(
            (
                (real, blanked)
                for blanked, real in product((0, 4), ("f4", "f8"))
                if length == nodes * (dimensions * int(real[1]) + blanked)
            ),
            None,
        )
        if layout is None:
            raise HiresxError(
                f"{path}, byte {at}: block {n} of {format_size(block)} nodes in a record of {length} bytes is neither "
                "single nor double precision",
                EXPORT,
            )
        layouts.add(layout)
        if len(layouts) > 1:
            raise HiresxError(f"{path}, byte {at}: block {n} is of another precision than block 1", EXPORT)
        held.append((block, parts))
    for at, _, _ in records:
        raise HiresxError(f"{path}, byte {at}: {size - at} bytes follow the last block", EXPORT)
    return RecordLayout("Fortran records", order, *layouts.pop(), held)


def _block(
    path: Path, n: int, size: list[int], data: memoryview, order: str, real: str, blanked: int
) -> list[np.ndarray]:
    """Return the coordinates in `data`. If `blanked`, 4-byte integers after them say which nodes are blanked."""
    nodes = math.prod(size)
    end = nodes * len(size) * int(real[1])
    if blanked:
        check_blanking(path, n, size, np.frombuffer(data[end:], order + "i4"))
    return block_arrays(np.frombuffer(data[:end], order + real), size)


def _records(
    path: Path, file: BufferedReader, size: int, order: str
) -> Iterator[tuple[int, list[tuple[int, int]], int]]:
    """Return the records of a file, with checked lengths: (byte of the marker, [(byte, length) of its parts], total
    length)."""

    def marker(at: int) -> int:
        if at + 4 > size:
            raise HiresxError(f"{path}, byte {at}: the file ends within a record marker", EXPORT)
        file.seek(at)
        return int(np.frombuffer(file.read(4), order + "i4")[0])

    at = 0
    while at < size:
        start, more = at, True
        parts: list[tuple[int, int]] = []
        while more:
            lead = marker(at)
            length, more = abs(lead), lead < 0
            if at + 8 + length > size:
                raise HiresxError(
                    f"{path}, byte {at}: the record of {length} bytes reaches beyond the file's end at {size}",
                    CUT_SHORT,
                )
            trail = marker(at + 4 + length)
            if trail != (-length if parts else length) or (more and length == 0):
                raise HiresxError(
                    f"{path}, byte {at}: the record's leading length {lead} and trailing length {trail} differ", EXPORT
                )
            parts.append((at + 4, length))
            at += 8 + length
        yield start, parts, sum(length for _, length in parts)


def _next(
    path: Path, records: Iterator[tuple[int, list[tuple[int, int]], int]], what: str
) -> tuple[int, list[tuple[int, int]], int]:
    for record in records:
        return record
    raise HiresxError(f"{path}: the file ends before {what}", CUT_SHORT)


def _bytes(file: BufferedReader, parts: list[tuple[int, int]]) -> bytes | bytearray:
    data = bytearray(sum(length for _, length in parts))
    view, filled = memoryview(data), 0
    for at, length in parts:
        file.seek(at)
        filled += file.readinto(view[filled : filled + length])
    return data


# --- streams


def _streams(file: BufferedReader, size: int) -> list[tuple[str, list[list[int]], int, str, int]]:
    """Yield every reading of the file as a stream of exactly this length: (byte order, block sizes, byte at which nodes
    begin, type of the reals, bytes of blanking per node)."""
    found = []
    for order, many, dimensions in product("<>", (True, False), (3, 2)):
        sizes, begin = _stream_sizes(file, size, order, many, dimensions)
        for real, blanked in product(("f8", "f4"), (0, 4)):
            if sizes and begin + points(sizes) * (dimensions * int(real[1]) + blanked) == size:
                found.append((order, sizes, begin, real, blanked))
    return found


def _stream_sizes(
    file: BufferedReader, size: int, order: str, many: bool, dimensions: int
) -> tuple[list[list[int]], int]:
    """Return the sizes at the start in one reading and the byte behind them; ([], 0) if they cannot be sizes."""
    file.seek(0)
    count = 1
    if many:
        start = file.read(4)
        count = int(np.frombuffer(start, order + "i4")[0]) if len(start) == 4 else 0
        if not 1 <= count <= min(MOST_BLOCKS, size // (4 * dimensions)):
            return [], 0
    data = file.read(4 * dimensions * count)
    if len(data) < 4 * dimensions * count:
        return [], 0
    numbers = np.frombuffer(data, order + "i4").reshape(count, dimensions)
    if numbers.min() < 1 or float(np.prod(numbers.astype(float), axis=1).sum()) * dimensions * 4 > size:
        return [], 0
    return numbers.tolist(), 4 * many + len(data)


def _stream_layout(path: Path, file: BufferedReader, size: int) -> RecordLayout:
    found = _streams(file, size)
    if not found:
        raise _no_stream(path, file, size)
    if len(found) > 1:  # of several readings, the one whose numbers are those of a grid
        found.sort(key=lambda reading: -_likeness(file, reading))
    order, sizes, at, real, blanked = found[0]
    held = []
    for block in sizes:
        length = math.prod(block) * (len(block) * int(real[1]) + blanked)
        held.append((block, [(at, length)]))
        at += length
    return RecordLayout("C stream", order, real, blanked, held)


def _likeness(file: BufferedReader, reading: tuple[str, list[list[int]], int, str, int]) -> float:
    """Return the fraction of the first block's numbers that are plausible in a grid: finite, and neither tiny nor
    huge."""
    order, sizes, begin, real, _ = reading
    file.seek(begin)
    values = np.frombuffer(file.read(min(math.prod(sizes[0]), 100_000) * int(real[1])), order + real)
    with np.errstate(invalid="ignore"):
        size = np.abs(values.astype(np.float64))
        return float(np.mean((size == 0) | ((size > 1e-30) & (size < 1e30))))


def _no_stream(path: Path, file: BufferedReader, size: int) -> HiresxError:
    """Return the error for a file that no reading fits, with the length that the most likely reading would need."""
    for order, many, dimensions in product("<>", (True, False), (3, 2)):
        sizes, begin = _stream_sizes(file, size, order, many, dimensions)
        if not sizes:
            continue
        nodes = points(sizes)
        if max(max(block) for block in sizes) < 100_000:
            needed = begin + nodes * dimensions * 8
            return HiresxError(
                f"{path}: blocks of {', '.join(map(format_size, sizes[:4]))}{' ...' if len(sizes) > 4 else ''} nodes "
                f"take {needed} bytes in double precision, the file holds {size}",
                CUT_SHORT if size < needed else EXPORT,
            )
    return HiresxError(
        f"{path}, byte 0: neither text nor a Fortran record of 1, 2 or 3 integers nor the sizes of blocks as a C "
        "program writes them",
        EXPORT,
    )
