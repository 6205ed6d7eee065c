"""Redistribution of arrays over the nodes of whole blocks from one partition to another, in the memory of the host or
of a device."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from hiresx.decomposition import Part
from hiresx.decomposition.held_arrays import Piece, sizes
from hiresx.grid.blocks import Range, common_boxes, slices
from hiresx.grid.cutting import within
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import distributed_arrays
from hiresx.output.saved.distributed_arrays import Reader

# Number of bytes that a rank sends, and receives, at a time, besides the arrays themselves.
BUFFER = 16 << 20
_TAG = 7100


class Memory(Protocol):
    """Interface of the memory that contains arrays. A `hiresx.device.interface.Backend` has these methods."""

    def copy(self, destination: Any, source: Any) -> None:
        """Copy the array `source` into `destination`, both in this memory."""

    def to_host(self, array: Any) -> np.ndarray:
        """Return `array` as a NumPy array in the memory of the host."""

    def to_device(self, array: np.ndarray) -> Any:
        """Return an array of this memory with the values of `array`."""


class _HostMemory:
    copy = staticmethod(np.copyto)
    to_host = to_device = staticmethod(np.asarray)


@dataclass(frozen=True)
class _Transfer:
    """The nodes `box` of the piece number `piece` of rank `source`, for the part number `part`, of rank `to`."""

    source: int
    piece: int
    to: int
    part: int
    box: Range
    bytes: int


def redistribute(pieces: Iterable[Piece], parts: Sequence[Part], comm: Communicator) -> Reader:
    """Redistribute arrays over the nodes of blocks among the ranks of `comm`, and return a function that reads them at
    the nodes that this rank has by the new division `parts`. `pieces`: the arrays of this rank, each with the name
    <array>.<number of the block in the grid>. Besides one array and the result, a rank needs memory for two buffers (of
    `BUFFER` bytes). All ranks must call this with the same `parts`. Reading nodes that no rank had raises LookupError.
    """
    arrays: dict[str, list[Piece]] = {}
    for piece in pieces:
        arrays.setdefault(piece.name, []).append(piece)
    held_by_rank = comm.allgather([(name, [*map(_description, some)]) for name, some in arrays.items()])
    found: list[Piece] = []
    for name in dict.fromkeys(name for theirs in held_by_rank for name, _ in theirs):
        found += _array(
            name, [dict(theirs).get(name, []) for theirs in held_by_rank], arrays.pop(name, []), parts, comm
        )
    return distributed_arrays.read_from_memory(found)


def _description(piece: Piece) -> tuple[Range, tuple[int, ...], str]:
    """Return box, shape of the value of a node, and type."""
    return piece.box, tuple(piece.array.shape[:-3]), np.dtype(piece.array.dtype).str


def _array(
    name: str,
    held_by_rank: Sequence[Sequence[tuple[Range, tuple[int, ...], str]]],
    pieces: list[Piece],
    parts: Sequence[Part],
    comm: Communicator,
) -> list[Piece]:
    """Redistribute one array. `held_by_rank`: its boxes by rank."""
    block = int(name.rpartition(".")[2])
    _, leading, dtype = next(description for theirs in held_by_rank for description in theirs)
    into = {
        n: np.empty((*leading, *sizes(part.box)), dtype)
        for n, part in enumerate(parts)
        if part.rank == comm.rank and part.whole == block
    }
    with comm.together():
        held = [Piece(piece.name, piece.box, np.asarray(piece.array)) for piece in pieces]
    boxes = [[box for box, _, _ in theirs] for theirs in held_by_rank]
    _transfer(block, boxes, prod(leading) * np.dtype(dtype).itemsize, held, parts, into, comm, _HostMemory())
    return [Piece(name, parts[n].box, array) for n, array in into.items()]


def fill(
    pieces: Sequence[Piece], parts: Sequence[Part], into: Mapping[int, Any], comm: Communicator, memory: Memory
) -> None:
    """Fill arrays in `memory` with the values that arrays of this or other ranks have at the same nodes. `pieces`: the
    arrays of this rank to read, named <array>.<number of the block in the grid>. `parts`: the boxes of nodes of all
    ranks. `into[n]`: the array to fill for `parts[n]`, (..., nk, nj, ni). If `into` omits a part of this rank, no other
    rank may have nodes of it in `pieces`. Nodes that no array has are not changed. Data of other ranks pass through the
    memory of the host. All ranks must call this with the same `parts`."""
    held_by_rank = comm.allgather([(_number(piece), *_description(piece)) for piece in pieces])
    for block in sorted({number for theirs in held_by_rank for number, *_ in theirs}):
        leading, dtype = next((shape, kind) for theirs in held_by_rank for number, _, shape, kind in theirs)
        boxes = [[box for number, box, *_ in theirs if number == block] for theirs in held_by_rank]
        held = [piece for piece in pieces if _number(piece) == block]
        _transfer(block, boxes, prod(leading) * np.dtype(dtype).itemsize, held, parts, into, comm, memory)


def _number(piece: Piece) -> int:
    return int(piece.name.rpartition(".")[2])


def _transfer(
    block: int,
    held_by_rank: Sequence[Sequence[Range]],
    of_node: int,
    pieces: Sequence[Piece],
    parts: Sequence[Part],
    into: Mapping[int, Any],
    comm: Communicator,
    memory: Memory,
) -> None:
    """Fill `into` with the array of the whole block number `block`. `held_by_rank`: the boxes of all pieces of it, by
    rank. `pieces`: those of this rank. `of_node`: bytes of a node."""
    places = [n for n, part in enumerate(parts) if part.whole == block]
    boxes = [parts[n].box for n in places]
    transfers = (
        _Transfer(source, m, parts[places[n]].rank, places[n], slab, of_node * prod(sizes(slab)))
        for source, theirs in enumerate(held_by_rank)
        for m, n, common in common_boxes(theirs, boxes)
        for slab in _slabs(common, of_node)
    )
    for some in _rounds(transfers):
        _move(some, pieces, into, parts, comm, memory)


def _slabs(box: Range, of_node: int) -> Iterator[Range]:
    """Yield slabs of constant k of the box, of at most `BUFFER` bytes, or of one plane."""
    i, j, (first, last) = box
    planes = max(1, BUFFER // (of_node * (i[1] - i[0]) * (j[1] - j[0])))
    for k in range(first, last, planes):
        yield i, j, (k, min(k + planes, last))


def _rounds(transfers: Iterable[_Transfer]) -> Iterator[list[_Transfer]]:
    """Yield groups of transfers that are made together. In a group no rank sends or receives more than `BUFFER` bytes,
    or one slab. All ranks have the same groups."""
    some: list[_Transfer] = []
    sent: dict[int, int] = {}
    received: dict[int, int] = {}
    for t in transfers:
        if t.source != t.to:
            sent[t.source] = sent.get(t.source, 0) + t.bytes
            received[t.to] = received.get(t.to, 0) + t.bytes
            if some and max(sent[t.source], received[t.to]) > BUFFER:
                yield some
                some, sent, received = [], {t.source: t.bytes}, {t.to: t.bytes}
        some.append(t)
    if some:
        yield some


def _move(
    transfers: Sequence[_Transfer],
    pieces: Sequence[Piece],
    into: Mapping[int, Any],
    parts: Sequence[Part],
    comm: Communicator,
    memory: Memory,
) -> None:
    requests: list[Any] = []
    arriving: list[tuple[_Transfer, np.ndarray]] = []
    for t in transfers:
        if t.to == comm.rank != t.source:
            buffer = np.empty(t.bytes, np.uint8)
            requests.append(comm.mpi_comm.Recv_init(buffer, t.source, _TAG))
            requests[-1].Start()
            arriving.append((t, buffer))
    for t in transfers:
        if t.source != comm.rank or (t.to == comm.rank and t.part not in into):
            continue
        nodes: Any = pieces[t.piece].array
        nodes = nodes[_within(t.box, pieces[t.piece].box)]
        if t.to == comm.rank:
            memory.copy(into[t.part][_within(t.box, parts[t.part].box)], nodes)
        else:
            buffer = np.ascontiguousarray(memory.to_host(nodes)).reshape(-1).view(np.uint8)
            requests.append(comm.mpi_comm.Send_init(buffer, t.to, _TAG))
            requests[-1].Start()
    for request in requests:
        request.Wait()
        request.Free()
    for t, buffer in arriving:
        place = into[t.part][_within(t.box, parts[t.part].box)]
        memory.copy(place, memory.to_device(buffer.view(place.dtype).reshape(place.shape)))


def _within(box: Range, whole: Range) -> tuple[Any, ...]:
    """Return the index of `box` in an array over `whole`."""
    return (..., *slices(within(whole, box)))
