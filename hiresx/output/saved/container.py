"""A file of numbers, texts and arrays with checksums, so that every change of a bit is detected.

Layout: 8 bytes magic; the arrays, one after the other; the index (JSON: values, and for every array its name, type,
shape, place and SHA-256); the SHA-256 of magic and index; the index's length (8 bytes, little-endian); the magic again.
The index comes last, so that arrays can be written as they are fetched from a device, one at a time, and by many
processes at once."""

import hashlib
import heapq
import json
import math
import os
import re
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator, single_process
from hiresx.output.saved import directories, files

MAGIC = b"HIRESX\r\n"
_HASH = hashlib.sha256().digest_size
_TAIL = _HASH + 8 + len(MAGIC)
# Kinds of NumPy types whose values consist of their bytes alone, and the form of the names of such types.
_KINDS = "biufcU"
_DTYPE = rf"[<>|][{_KINDS}][0-9]{{1,9}}"
# Number of bytes that are read or written at a time.
_CHUNK = 1 << 24


class DamagedCheckpoint(HiresxError):
    """The error for a checkpoint file that is incomplete, was changed, or is not a checkpoint."""

    placed = True  # on whichever rank it was found


class RemovedCheckpoint(HiresxError):
    """The error for a checkpoint file that was removed after it was found, for example by a run in progress."""

    placed = True


def write(
    path: str | Path, values: Mapping[str, Any], arrays: Iterable[tuple[str, Any]], comm: Communicator | None = None
) -> None:
    """Write `values` and `arrays` to the file `path`, with checksums. The file is replaced only when everything is
    written and flushed to the disk; after an error an earlier file is unchanged. `values`: nested dictionaries with
    strings as keys, of numbers, strings, booleans, None and lists. `arrays`: pairs (name, array), where an array is a
    NumPy array or an object with `shape` and `dtype` that np.asarray converts to an array. It is converted right before
    it is written, and released afterwards. Raises HiresxError, with the path, if the file cannot be written. Raises
    TypeError for a value that cannot be stored, and for an array whose shape or type differs from the stated one.

    With a communicator `comm` all ranks must call this function, and an error on one rank is raised on all. Each rank
    passes the arrays that it has; the `values` of rank 0 are written. The ranks write disjoint byte ranges of one file
    at the same time. Rank 0 writes the index when all ranks have flushed their arrays. The file has its full size from
    the beginning: on some network file systems the last page would otherwise be overwritten with zeros."""
    comm, path = comm or single_process(), Path(path)
    with comm.together():
        mine = list(arrays)
        entries = [_entry(name, array) for name, array in mine]
    by_rank = comm.allgather((str(path), entries))
    with comm.together():
        laid, end = _lay_out(by_rank)
    with ExitStack() as undone:
        with comm.together(), files.naming_errors(path):
            temporary = undone.enter_context(files.replacing(path)) if comm.root else None
            if temporary is not None:
                os.truncate(temporary, end)
        temporary = comm.bcast(temporary)
        with comm.together(), files.naming_errors(path):
            hashes = _write_arrays(temporary, mine, laid[comm.rank])
        del mine
        hashes = comm.allgather(hashes)
        with comm.together(), files.naming_errors(path):
            if comm.root:
                index = _index(values, laid, hashes)
                with _writable(temporary) as handle:
                    _pwrite(handle, MAGIC, 0)
                    _pwrite(handle, index, end)
            undone.close()


def _entry(name: str, array: Any) -> dict[str, Any]:
    """Return name, type and shape of an array. Raises TypeError for one that cannot be stored."""
    if array.dtype.kind not in _KINDS:
        raise TypeError(f"{name}: an array of {array.dtype} cannot be kept")
    return {"name": name, "dtype": array.dtype.str, "shape": list(array.shape)}


def _lay_out(by_rank: Sequence[tuple[str, list[dict[str, Any]]]]) -> tuple[list[list[dict[str, Any]]], int]:
    """Return the entries of all ranks with the positions of their arrays, and the end of the last one."""
    if len({path for path, _ in by_rank}) > 1:
        raise ValueError(f"the ranks write to several files: {sorted({path for path, _ in by_rank})}")
    place, names = len(MAGIC), Counter[str]()
    laid: list[list[dict[str, Any]]] = []
    for _, entries in by_rank:
        laid.append([])
        for entry in entries:
            laid[-1].append(entry | {"place": place})
            place += _bytes(entry["dtype"], entry["shape"])
            names[entry["name"]] += 1
    if len(names) < names.total():
        raise TypeError(f"two arrays have one name: {sorted(name for name, count in names.items() if count > 1)}")
    return laid, place


def _bytes(dtype: str, shape: Iterable[int]) -> int:
    return math.prod(shape, start=np.dtype(dtype).itemsize)


def _write_arrays(path: Path, arrays: list[tuple[str, Any]], entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the arrays at their positions and flush them to the disk. Returns their SHA-256 digests. The list is
    emptied meanwhile."""
    hashes = []
    with _writable(path) as handle:
        for entry in entries:
            array = np.asarray(arrays.pop(0)[1])
            if array.dtype.str != entry["dtype"] or list(array.shape) != entry["shape"]:
                raise TypeError(f"{entry['name']} is {array.dtype.str} {list(array.shape)}, not what was said: {entry}")
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.nbytes else b""
            hashes.append(_pwrite(handle, content, entry["place"]))
            del array, content
        os.fsync(handle)
    return hashes


def _pwrite(handle: int, content: Any, place: int) -> str:
    """Write bytes at `place`. Returns their SHA-256 digest."""
    digest, content = hashlib.sha256(), memoryview(content)
    for first in range(0, len(content), _CHUNK):
        chunk = content[first : first + _CHUNK]
        digest.update(chunk)
        files.write_at(handle, chunk, place + first)
    return digest.hexdigest()


def _index(
    values: Mapping[str, Any], laid: Iterable[Sequence[dict[str, Any]]], hashes: Iterable[Sequence[str]]
) -> bytes:
    """Return the bytes after the arrays: index, digest, length, magic number."""
    entries = [
        entry | {"sha256": sha256}
        for each, theirs in zip(laid, hashes, strict=True)
        for entry, sha256 in zip(each, theirs, strict=True)
    ]
    index = json.dumps({"values": values, "arrays": entries}, default=_json_number).encode()
    return index + hashlib.sha256(MAGIC + index).digest() + len(index).to_bytes(8, "little") + MAGIC


@contextmanager
def _writable(path: Path) -> Iterator[int]:
    directories.wait_for(path)
    # The file is opened for writing only: a file system that reads a page to change a part of it could write back old
    # content.
    handle = os.open(path, os.O_WRONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def _json_number(value: Any) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    raise TypeError(f"{value!r} is neither a number nor a text")


class Container:
    """Reader of a file that `write` has made. `path`: the path of the file. `values`: the stored values.

    The index of the file is checked when it is opened, and the checksum of an array when the array is read; `verify`
    checks all arrays. The file may be removed while it is open, for instance by a run in progress. No more memory is
    allocated than the file has bytes. Raises DamagedCheckpoint for a damaged file, RemovedCheckpoint if it does not
    exist, and HiresxError if it cannot be read."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        with files.naming_errors(self.path, "read"):
            try:
                self._handle = os.open(self.path, os.O_RDONLY)
            except FileNotFoundError:
                raise RemovedCheckpoint(
                    f"cannot read {self.path}: it is no longer there",
                    "a run that goes on removes its older ones (checkpoint.keep): wait for its end, or try again",
                ) from None
        weakref.finalize(self, os.close, self._handle)
        with self._open_file() as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                raise self.damage_error("it is empty")
            if size < len(MAGIC) + _TAIL or file.read(len(MAGIC)) != MAGIC:
                raise self.damage_error("it does not begin with the bytes of a checkpoint")
            file.seek(size - _TAIL)
            tail = file.read(_TAIL)
            length = int.from_bytes(tail[_HASH : _HASH + 8], "little")
            first = size - _TAIL - length
            if tail[_HASH + 8 :] != MAGIC or first < len(MAGIC):
                raise self.damage_error("it was cut off, or its end was changed")
            file.seek(first)
            index = file.read(length)
        # The checksum of the index, which contains those of the arrays.
        self.sha256 = tail[:_HASH].hex()
        if hashlib.sha256(MAGIC + index).digest() != tail[:_HASH]:
            raise self.damage_error("its index was changed")
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
            raise self.damage_error(f"its index is not valid: {error}") from None

    @property
    def names(self) -> list[str]:
        """Names of the arrays in the file."""
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the array `name` in the file. Raises KeyError if there is no such array."""
        return self._entries[name].shape

    def dtype(self, name: str) -> np.dtype:
        """Return the NumPy type of the array `name` in the file. Raises KeyError if there is no such array."""
        return self._entries[name].type

    def array(self, name: str) -> np.ndarray:
        """Read the array `name` from the file and return it, with the type and shape with which it was written. Raises
        KeyError if there is no such array, and DamagedCheckpoint if its checksum is wrong."""
        entry = self._entries[name]
        array = np.empty(entry.shape, entry.type)
        if array.nbytes:
            with self._open_file() as file:
                file.seek(entry.place)
                buffer = array.reshape(-1).view(np.uint8).data
                if file.readinto(buffer) != entry.bytes or hashlib.sha256(buffer).hexdigest() != entry.sha256:
                    raise self.damage_error(f"array {name} was changed")
        return array

    def planes(self, name: str) -> Iterator[tuple[int, np.ndarray]]:
        """Read the array `name` in groups of planes, to save memory: yield pairs of the number of the first plane and a
        group of planes (n, nj, ni), which the next step of the iteration overwrites. The array must have two or more
        dimensions, of which the last two form a plane, and must not be empty; planes are numbered over all leading
        dimensions together. Raises KeyError if there is no such array. Raises DamagedCheckpoint, after the last group,
        if the checksum is wrong."""
        entry = self._entries[name]
        plane = math.prod(entry.shape[-2:], start=entry.type.itemsize)
        number = entry.bytes // plane
        buffer = np.empty((min(number, max(_CHUNK // plane, 1)), *entry.shape[-2:]), entry.type)
        digest = hashlib.sha256()
        with self._open_file() as file:
            file.seek(entry.place)
            for first in range(0, number, len(buffer)):
                planes = buffer[: number - first]
                content = planes.reshape(-1).view(np.uint8).data
                if file.readinto(content) != planes.nbytes:
                    break
                digest.update(content)
                yield first, planes
        if digest.hexdigest() != entry.sha256:
            raise self.damage_error(f"array {name} was changed")

    def verify(self, share: int = 0, of: int = 1) -> None:
        """Verify the checksums of the arrays in the file. With `of` > 1 the arrays are divided into `of` shares of
        similar size, and only those of share number `share` (from 0) are verified, so that ranks divide the work.
        Raises DamagedCheckpoint for a wrong checksum."""
        with self._open_file() as file:
            for entry in self._shares(of)[share]:
                digest, left = hashlib.sha256(), entry.bytes
                file.seek(entry.place)
                while left and (chunk := file.read(min(left, _CHUNK))):
                    digest.update(chunk)
                    left -= len(chunk)
                if digest.hexdigest() != entry.sha256:
                    raise self.damage_error(f"array {entry.name} was changed")

    def _shares(self, number: int) -> list[list["_Entry"]]:
        """Return the arrays divided into shares of similar size. The largest arrays are assigned first, each to the
        smallest share; within a share the order is that of the file."""
        shares: list[list[Any]] = [[] for _ in range(number)]
        loads = [(0, n) for n in range(number)]
        for entry in sorted(self._entries.values(), key=lambda entry: -entry.bytes):
            load, n = heapq.heappop(loads)
            shares[n].append(entry)
            heapq.heappush(loads, (load + entry.bytes, n))
        return [sorted(share, key=lambda entry: entry.place) for share in shares]

    @contextmanager
    def _open_file(self) -> Iterator[BufferedReader]:
        # The file is reopened by its handle, since the path may be gone; the new file object has its own position.
        with files.naming_errors(self.path, "read"), Path(f"/proc/self/fd/{self._handle}").open("rb") as file:
            yield file

    def damage_error(self, reason: str) -> DamagedCheckpoint:
        """Return, without raising it, the error that this checkpoint file is damaged, with its path. `reason`: the
        damage that was found."""
        return DamagedCheckpoint(f"{self.path} is not a whole checkpoint: {reason}", "take another one")


class _Entry:
    """Entry of the index for an array. Raises TypeError or ValueError for an entry that no `write` made."""

    def __init__(self, name: str, dtype: str, shape: list[int], place: int, sha256: str):
        if not (isinstance(name, str) and isinstance(place, int) and re.fullmatch(_DTYPE, dtype)):
            raise ValueError("an entry is not that of an array")
        self.name, self.place, self.sha256 = name, place, sha256
        self.type = np.dtype(dtype)
        self.shape = tuple(shape)
        if not all(isinstance(n, int) and n >= 0 for n in self.shape):
            raise ValueError(f"array {name} has the shape {shape}")
        self.bytes = math.prod(self.shape, start=self.type.itemsize)
        if not self.bytes:
            np.empty(self.shape, self.type)  # a ValueError is raised if another size is impossible
