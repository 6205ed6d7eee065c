"""CGNS files in the form of ADF, written from files in the form of HDF5; nothing of the reader is used.

Version A: pointers and dimensions in hexadecimal digits; version B: as integers in the byte order of the file.
"""

import struct
from itertools import pairwise

import h5py
import numpy as np

BLOCK = 4096


class _Writer:
    def __init__(self, version: str, order: str, pieces: int):
        self.binary, self.order, self.pieces = version == "B", order, pieces
        self.data = bytearray(186 + 80)

    def pointer(self, at: int) -> bytes:
        block, offset = divmod(at, BLOCK)
        if self.binary:
            return struct.pack(f"{self.order}QI", block, offset)
        return f"{block:08X}{offset:04X}".encode()

    def add(self, data: bytes) -> int:
        at = len(self.data)
        self.data += data
        return at

    def piece(self, tag: bytes, content: bytes, end: bytes) -> int:
        return self.add(tag + self.pointer(len(self.data) + 16 + len(content)) + content + end)

    def node(self, group, name: str, label: str, kind: str, link: bytes | None) -> int:
        children = []
        if link is None:
            for child in group:
                if not child.startswith(" "):
                    children.append((child, self.of_group(group, child)))
        if kind == "LK":
            dimensions, content = (len(link),), link
        elif kind == "MT":
            dimensions, content = (), b""
        else:
            values = group[" data"][()]
            dimensions = values.shape[::-1]
            content = values.astype(values.dtype.newbyteorder(self.order)).tobytes()
        count, where = self._content(content)
        table = b"".join(n.encode().ljust(32) + self.pointer(at) for n, at in children)
        # a table has room for more children than there are
        below = self.piece(b"SNTb", table + b"unused entry".ljust(44), b"snTE") if children else 0
        header = b"NoDe" + name.encode().ljust(32) + label.encode().ljust(32)
        header += f"{len(children):08X}{len(children) + 1:08X}".encode() + self.pointer(below)
        header += kind.encode().ljust(32) + f"{len(dimensions):02X}".encode()
        padded = [*dimensions, *[0] * (12 - len(dimensions))]
        header += (
            struct.pack(f"{self.order}12Q", *padded) if self.binary else "".join(f"{n:08X}" for n in padded).encode()
        )
        header += f"{count:04X}".encode() + self.pointer(where) + b"TaiL"
        assert len(header) == 246
        return self.add(header)

    def _content(self, content: bytes) -> tuple[int, int]:
        if not content:
            return 0, 0
        if self.pieces == 1 or len(content) < 2 * self.pieces:
            return 1, self.piece(b"DaTa", content, b"dEnD")
        cuts = np.linspace(0, len(content), self.pieces + 1).astype(int)
        table = b""
        for lo, hi in pairwise(cuts):
            at = self.piece(b"DaTa", content[lo:hi], b"dEnD")
            table += self.pointer(at) + self.pointer(at + 16 + hi - lo)
        return self.pieces, self.piece(b"DCtb", table, b"dcTE")

    def of_group(self, parent, name: str) -> int:
        group = parent[name]
        label, kind = (group.attrs[key].decode().strip("\0 ") for key in ("label", "type"))
        link = None
        if kind == "LK":
            target = group.get(" link", getlink=True)
            path = target.path.encode()
            link = getattr(target, "filename", "").encode() + b">" + path
        return self.node(group, name, label, kind, link)


def from_hdf5(source, target, version="A", order="<", start=b"\xc0\xa8\xa3\xa9", pieces=1) -> None:
    """Write what the CGNS file `source` holds to `target`; `pieces`: of how many pieces data are made."""
    writer = _Writer(version, order, pieces)
    with h5py.File(source) as file:
        root = writer.node(file, "ADF MotherNode", "Root Node of ADF File", "MT", None)
    head = start + b"ADF Database Version " + version.encode() + b"02011>AdF0" + b"x" * 28 + b"AdF1" + b"x" * 28
    head += b"AdF2" + (b"L" if order == "<" else b"B") + b"BAdF3" + b"0" * 24 + b"AdF4"
    head += writer.pointer(root) + writer.pointer(len(writer.data)) + writer.pointer(186) + writer.pointer(0) + b"AdF5"
    assert len(head) == 186
    writer.data[:186] = head
    target.write_bytes(bytes(writer.data))
