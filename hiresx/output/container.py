"""A file of numbers, texts and arrays in which no bit can change unnoticed.

Layout: 8 bytes magic; the arrays, one after the other; the index (JSON: values, and for every array its name, type,
shape, place and SHA-256); the SHA-256 of magic and index; the index's length (8 bytes, little-endian); the magic again.
The index comes last, so that arrays can be written as they are fetched from a device, one at a time.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output import files

MAGIC = b"HIRESX\r\n"
_HASH = hashlib.sha256().digest_size
_TAIL = _HASH + 8 + len(MAGIC)
# Kinds of NumPy types that are nothing but their bytes, and what NumPy calls such types.
_KINDS = "biufcU"
_DTYPE = rf"[<>|][{_KINDS}][0-9]{{1,9}}"
# Bytes that are hashed at a time when a file is only checked.
_CHUNK = 1 << 24


class Damaged(HiresxError):
    """The file is not whole, or was never one of these."""


def write(path: str | Path, values: Mapping[str, Any], arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write `values` (nested dictionaries with texts as keys; numbers, texts, truth values, None, lists) and `arrays`
    (name, array) to `path`, which appears whole and synced to disk, or stays as it was.

    `arrays` may be a generator: each array is let go before the next is asked for. Raises HiresxError naming the path
    when it cannot be written, TypeError for a value that cannot be kept.
    """
    path = Path(path)
    try:
        with files.replacing(path) as temporary, temporary.open("wb") as file:
            file.write(MAGIC)
            entries = [_put(file, name, array) for name, array in arrays]
            names = [entry["name"] for entry in entries]
            if len(set(names)) < len(names):
                raise TypeError(f"two arrays have one name: {sorted(n for n in names if names.count(n) > 1)}")
            index = json.dumps({"values": values, "arrays": entries}, default=_number).encode()
            file.write(index + hashlib.sha256(MAGIC + index).digest() + len(index).to_bytes(8, "little") + MAGIC)
    except OSError as error:
        raise files.fault(path, error) from None


def _put(file: BinaryIO, name: str, array: np.ndarray) -> dict[str, Any]:
    array = np.asarray(array)
    if array.dtype.kind not in _KINDS:
        raise TypeError(f"{name}: an array of {array.dtype} cannot be kept")
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.nbytes else b""
    place = file.tell()
    file.write(content)
    return {
        "name": name,
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "place": place,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _number(value: Any) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    raise TypeError(f"{value!r} is neither a number nor a text")


class Container:
    """A file that `write` made, opened: `values`, and `names` of the arrays.

    Its index is checked on opening, an array when it is read, everything by `verify`. Nothing is allocated that the
    file does not hold. Raises Damaged for a file that is not whole, HiresxError when it cannot be read.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        with self._opened() as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(MAGIC) + _TAIL or file.read(len(MAGIC)) != MAGIC:
                raise self._damaged("it does not begin like one")
            file.seek(size - _TAIL)
            tail = file.read(_TAIL)
            length = int.from_bytes(tail[_HASH : _HASH + 8], "little")
            first = size - _TAIL - length
            if tail[_HASH + 8 :] != MAGIC or first < len(MAGIC):
                raise self._damaged("it does not end like one: it was cut off, or changed there")
            file.seek(first)
            index = file.read(length)
        if hashlib.sha256(MAGIC + index).digest() != tail[:_HASH]:
            raise self._damaged("its index was changed")
        try:
            content = json.loads(index)
            self.values: dict[str, Any] = dict(content["values"])
            self._entries = {entry["name"]: _Entry(**entry) for entry in content["arrays"]}
            ends = [len(MAGIC)]
            for entry in self._entries.values():
                if entry.place != ends[-1]:
                    raise ValueError(f"array {entry.name} does not follow the one before")
                ends.append(entry.place + entry.bytes)
            if ends[-1] != first:
                raise ValueError("the arrays do not fill the file")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
            raise self._damaged(f"its index makes no sense: {error}") from None

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of the array `name`; KeyError when there is none."""
        return self._entries[name].shape

    def array(self, name: str) -> np.ndarray:
        """The array `name`; KeyError when there is none, Damaged when it was changed."""
        entry = self._entries[name]
        array = np.empty(entry.shape, entry.type)
        if array.nbytes:
            with self._opened() as file:
                file.seek(entry.place)
                buffer = array.reshape(-1).view(np.uint8).data
                if file.readinto(buffer) != entry.bytes or hashlib.sha256(buffer).hexdigest() != entry.sha256:
                    raise self._damaged(f"array {name} was changed")
        return array

    def verify(self) -> None:
        """Read everything once; Damaged names the first array that was changed."""
        with self._opened() as file:
            for entry in self._entries.values():
                digest, left = hashlib.sha256(), entry.bytes
                file.seek(entry.place)
                while left and (chunk := file.read(min(left, _CHUNK))):
                    digest.update(chunk)
                    left -= len(chunk)
                if digest.hexdigest() != entry.sha256:
                    raise self._damaged(f"array {entry.name} was changed")

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as error:
            raise files.fault(self.path, error, "read") from None

    def _damaged(self, reason: str) -> Damaged:
        return Damaged(f"{self.path} is not a whole checkpoint: {reason}", "take another one")


class _Entry:
    """Where an array lies; TypeError or ValueError for an entry that no `write` made."""

    def __init__(self, name: str, dtype: str, shape: list[int], place: int, sha256: str):
        if not (isinstance(name, str) and isinstance(place, int) and re.fullmatch(_DTYPE, dtype)):
            raise ValueError("an entry that is none of an array")
        self.name, self.place, self.sha256 = name, place, sha256
        self.type = np.dtype(dtype)
        self.shape = tuple(shape)
        if not all(isinstance(n, int) and n >= 0 for n in self.shape):
            raise ValueError(f"array {name} has the shape {shape}")
        self.bytes = self.type.itemsize
        for n in self.shape:
            self.bytes *= n
        if not self.bytes:
            np.empty(self.shape, self.type)  # a ValueError where one of the other sizes is beyond reason
