"""The tree of nodes of a CGNS file in the older file format, ADF (Advanced Data Format).

The file is made of tagged pieces: a header of 186 bytes, then anywhere node headers (246 bytes, NoDe ... TaiL), tables
of children (SNTb ... snTE), tables of data pieces (DCtb ... dcTE) and data (DaTa ... dEnD). A pointer is the number of
a disk block of 4096 bytes and an offset in it: in files of version A as 8 + 4 hexadecimal digits, of version B as
integers of 8 + 4 bytes in the order that the header names. Counts are hexadecimal digits in both. (ADF User's Guide,
CGNS project; the layout of version B by its files.)"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hiresx.errors import HiresxError

# The name of the format follows four bytes: "@(#)" in old files, the same with the highest bit set in later ones.
STARTS = tuple(mark + b"ADF Database" for mark in (b"@(#)", b"\xc0\xa8\xa3\xa9"))
BLOCK = 4096
HEADER, NODE, POINTER, TAG, NAME = 186, 246, 12, 4, 32
DIMENSIONS = 12
TYPES = {"C1": "S1", "B1": "u1", "I4": "i4", "I8": "i8", "U4": "u4", "U8": "u8", "R4": "f4", "R8": "f8"}
EMPTY = ("MT", "LK")
HINT = "write the file again; `cgnscheck` of the CGNS tools says more"


@dataclass(frozen=True)
class AdfHeader:
    """The header of a node in an ADF file. `name` and `label`: the name and the CGNS label of the node. `children`: the
    number of its children. `table`: the byte at which the table of children begins. `kind`: the type of the data, such
    as "R8"; "MT" without data, "LK" for a link. `dimensions`: the shape of the data, in the order of Fortran. `pieces`:
    the number of pieces in which the data are stored. `data`: the byte at which the data begin, or, if there are
    several pieces, the table of the pieces."""

    name: str
    label: str
    children: int
    table: int
    kind: str
    dimensions: tuple[int, ...]
    pieces: int
    data: int


class File:
    """An open ADF file, as a context manager that closes it. Raises HiresxError, with the position of the byte, for a
    file that is not valid."""

    def __init__(self, path: Path):
        self.path = path
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        start = self.take(0, HEADER, "the header")
        self._binary = start[25:26] == b"B"
        form = chr(start[100])
        if form not in "LBN":
            raise self.error(
                100,
                f"this machine cannot read numbers in the format '{form}'",
                "convert it to HDF5 with the tools of CGNS, cgnsconvert -h or adf2hdf, where it was written",
            )
        self.order: Literal["<", ">"] = ">" if form == "B" else "<"
        # The separator of file and path in a link; the oldest files have a blank.
        self.separator = b" " if start[26:28] == b"01" else b">"
        self.root = self.pointer(134)
        self.form = f"ADF, version {'B' if self._binary else 'A'}, {'big' if form == 'B' else 'little'}-endian"

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *error: Any) -> None:
        self._map.close()

    def error(self, at: int, what: str, hint: str = HINT) -> HiresxError:
        """Return a HiresxError whose message names the file and the byte position `at`. `what`: the description of the
        error. `hint`: the advice to the user."""
        return HiresxError(f"{self.path}, byte {at}: {what}", hint)

    def take(self, at: int, count: int, what: str) -> bytes:
        """Return `count` bytes of the file, beginning at byte `at`. `what`: the name of these bytes in the error
        message. Raises HiresxError if the file is too short."""
        self._reach(at, count, what)
        return self._map[at : at + count]

    def _reach(self, at: int, count: int, what: str) -> None:
        if at < 0 or at + count > len(self._map):
            raise self.error(at, f"{what} of {count} bytes reaches beyond the end of the file at {len(self._map)}")

    def pointer(self, at: int) -> int:
        """Read the pointer that is stored at byte `at` of the ADF file, and return the byte position to which it
        points."""
        data = self.take(at, POINTER, "a pointer")
        if self._binary:
            block = int.from_bytes(data[:8], "big" if self.order == ">" else "little")
            offset = int.from_bytes(data[8:], "big" if self.order == ">" else "little")
        else:
            block, offset = self._hexadecimal(data[:8], at), self._hexadecimal(data[8:], at + 8)
        return block * BLOCK + offset

    def _hexadecimal(self, digits: bytes, at: int) -> int:
        try:
            return int(digits, 16)
        except ValueError:
            raise self.error(at, f"{digits!r} is no number in hexadecimal digits") from None

    def _check_tag(self, at: int, tag: bytes, what: str) -> None:
        found = self.take(at, TAG, what)
        if found != tag:
            raise self.error(at, f"{what} is marked {found!r} instead of {tag!r}")

    def node(self, at: int) -> AdfHeader:
        """Read the header of the ADF node that begins at byte `at`. Raises HiresxError if the bytes are no valid
        node."""
        data = self.take(at, NODE, "a node")
        self._check_tag(at, b"NoDe", "a node")
        self._check_tag(at + NODE - TAG, b"TaiL", "the end of a node")
        count = self._hexadecimal(data[128:130], at + 128)
        if count > DIMENSIONS:
            raise self.error(at + 128, f"a node of {count} dimensions")
        if self._binary:
            dimensions = np.frombuffer(data, f"{self.order}u8", count, 130).tolist()
        else:
            places = [130 + 8 * d for d in range(count)]
            dimensions = [self._hexadecimal(data[p : p + 8], at + p) for p in places]
        return AdfHeader(
            _text(data[4:36]),
            _text(data[36:68]),
            self._hexadecimal(data[68:76], at + 68),
            self.pointer(at + 84),
            _text(data[96:128]),
            tuple(dimensions),
            self._hexadecimal(data[226:230], at + 226),
            self.pointer(at + 230),
        )

    def children(self, header: AdfHeader) -> Iterator[tuple[str, int]]:
        """Yield (name, byte) for each child of an ADF node, in the order in which the children were created. `byte`:
        the position in the file at which the header of the child begins. `header`: the header of the parent node."""
        if not header.children:
            return
        self._check_tag(header.table, b"SNTb", "a table of children")
        at = header.table + TAG + POINTER
        self.take(at, header.children * (NAME + POINTER), "a table of children")
        for n in range(header.children):
            place = at + n * (NAME + POINTER)
            yield _text(self.take(place, NAME, "a name")), self.pointer(place + NAME)

    def data(self, header: AdfHeader) -> bytes:
        """Return the data of an ADF node as bytes; empty if the node has no data. `header`: the header of the node."""
        parts = self.stretches(header)
        return b"".join(self._map[at : at + length] for at, length in parts)

    def stretches(self, header: AdfHeader) -> list[tuple[int, int]]:
        """Return the ranges of the file that contain the data of an ADF node, each as (first byte, number of bytes).
        `header`: the header of the node. Raises HiresxError if the ranges do not fit the type and shape of the data."""
        if not header.pieces or header.kind in EMPTY[:1]:
            return []
        size = np.dtype(TYPES[header.kind]).itemsize if header.kind in TYPES else 1
        wanted = size
        for n in header.dimensions:
            wanted *= n
        if wanted > len(self._map):
            raise self.error(header.data, f"{wanted} bytes of data in a file of {len(self._map)}")
        if header.pieces == 1:
            return [self._piece(header.data, wanted)]
        self._check_tag(header.data, b"DCtb", "a table of pieces of data")
        at, parts, left = header.data + TAG + POINTER, [], wanted
        for n in range(header.pieces):
            start, end = (self.pointer(at + (2 * n + m) * POINTER) for m in (0, 1))
            length = min(end - start - TAG - POINTER, left)
            if length < 0:
                raise self.error(at + 2 * n * POINTER, "a piece of data that ends before it begins")
            parts.append(self._piece(start, length))
            left -= length
        if left:
            raise self.error(header.data, f"{wanted - left} bytes of data where there must be {wanted}")
        return parts

    def _piece(self, at: int, length: int) -> tuple[int, int]:
        self._check_tag(at, b"DaTa", "data")
        self._reach(at + TAG + POINTER, length, "data")
        return at + TAG + POINTER, length


def _text(data: bytes) -> str:
    return data.split(b"\0")[0].decode("utf-8", "replace").strip()
