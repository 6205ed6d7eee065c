"""Batches: launches of one kernel that do not depend on each other, run as one launch."""

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hiresx.device.arguments import is_pointer
from hiresx.device.batch_wrappers import AHEAD, Entry, Form
from hiresx.device.call import Call, Calls
from hiresx.device.dependency_graph import dependencies, flatten_calls
from hiresx.device.wrappers import Shape, shape_by_block
from hiresx.kernels import Signature

# The largest number of CUDA blocks of a grid along z.
_ALONG_Z = 65535


class Batches(NamedTuple):
    """Launches that were combined to batches. `members`: the numbers of the launches of each batch. `waits`: the
    earlier batches that each batch waits for."""

    members: list[list[int]]
    waits: list[list[int]]


def batches(kinds: Sequence[Hashable | None], waits: Sequence[Sequence[int]], messages: Sequence[bool] = ()) -> Batches:
    """Combine kernel launches into batches, each of which is made as one launch. The launches of a batch are of one
    kind and do not wait for each other, directly or indirectly. `kinds`: the kind of each launch; a launch of kind None
    is not combined. `waits`: for each launch, the numbers of the earlier launches that it waits for. `messages`:
    whether each launch is a message between ranks; launches that wait for different messages are in different
    batches."""
    members: list[list[int]] = []
    place: list[int] = []  # the batch of each call
    message: list[int] = []  # the last message that each call waits for
    alike: dict[Hashable, list[int]] = {}  # batches by kind, in order
    for n, (kind, of_call) in enumerate(zip(kinds, waits, strict=True)):
        behind = max((place[w] for w in of_call), default=-1)
        message.append(n if messages and messages[n] else max((message[w] for w in of_call), default=-1))
        there = alike.setdefault((kind, message[-1]), []) if kind is not None else []
        # Everything a call waits for is in earlier batches, so that batches can be launched in order.
        at = bisect_right(there, behind)
        if at == len(there):
            there.append(len(members))
            members.append([])
        place.append(there[at])
        members[there[at]].append(n)
    found = [sorted({place[w] for n in numbers for w in waits[n]}) for numbers in members]
    return Batches(members, found)


def arrange_batches(
    calls: Calls,
    shape: Callable[[Call], Shape],
    address: Callable[[Any], int],
    extent: Callable[[Any], tuple[int, int]] | None = None,
    is_message: Callable[[Call], bool] = lambda call: False,
    least: int = 1,
) -> "tuple[list[Call | BatchedLaunch], list[list[int]]]":
    """Return the launches `calls`, combined into batches where possible, in a valid order, and for each launch or batch
    the numbers of the earlier ones that it waits for. `shape`: returns the numbers of thread blocks and threads of a
    CUDA launch. `address`: returns the address of the first item of an array. `extent`: returns the addresses of the
    first byte of an array and of the byte after its last. `is_message`: tells whether a launch is a message between
    ranks; messages are not combined and keep their order. Nothing is combined if this would save fewer than `least`
    launches."""
    single, waits = flatten_calls(calls), dependencies(calls, extent, is_message)
    messages = list(map(is_message, single))
    shapes: list[Shape | None] = [
        None if message else shape(call) for call, message in zip(single, messages, strict=True)
    ]
    kinds = [None if of is None else _kind(call, of) for call, of in zip(single, shapes, strict=True)]
    share_blocks(single, shapes, kinds)
    found = batches(kinds, waits, messages)
    if len(single) - len(found.members) < least:
        return list(single), waits
    made: list[Call | BatchedLaunch] = []
    known: dict[Hashable, BatchedLaunch] = {}  # the stages of a step make the same launches
    for numbers in found.members:
        if len(numbers) == 1:
            made.append(single[numbers[0]])
            continue
        key = tuple(id(single[n]) for n in numbers)
        if key not in known:
            known[key] = batch_calls([single[n] for n in numbers], [of for n in numbers if (of := shapes[n])], address)
        made.append(known[key])
    return made, found.waits


# A launch over more nodes than LARGE fills a GPU and gains nothing from a batch. VISITED: nodes per thread, roughly, of
# kernels whose threads visit more than one and do not state their number as `chunk`. On an H200, a planar jet of 4.5
# million nodes in 4 blocks takes 1, 1.2 and 2.2 % longer than with single launches for limits of 2^17, 2^18 and 2^20
# nodes; a jet of 50,000 nodes takes 4 to 7 % less time.
LARGE = 1 << 17
VISITED = {"LINE_KERNEL": 64, "ROW_KERNEL": 8, "TILE_KERNEL": 64}


def _kind(call: Call, shape: Shape) -> Hashable | None:
    """Return the key that is common to the launches of one batch; None for a launch that is faster alone."""
    grid, block = shape
    nodes = math.prod(grid) * math.prod(block) * VISITED.get(call.signature.kind, 1)
    if "chunk" in call.arguments:
        nodes = math.prod(call.extent or ()) * call.arguments["chunk"]
    return (call.name, block) if 0 < nodes <= LARGE else None


# Largest number of threads of a launch of a point kernel with shared thread blocks: this multiple of its own number, or
# this number in all. Threads without a point end at once.
TIMES, FEW = 2, 1 << 14


def share_blocks(calls: Sequence[Call], shapes: list[Shape | None], kinds: list[Hashable | None]) -> None:
    """Give launches of the same point kernel the same shape of thread blocks, unless they would then have too many
    threads. Otherwise the shape depends on the extent of a launch, and launches on grid blocks of different sizes
    cannot be combined. `calls`: the launches. `shapes`, `kinds`: for each launch its shape, and its kind (launches of
    equal kind can be combined; a launch of kind None is not changed). Both lists are changed in place."""
    alike: dict[str, list[int]] = {}
    for n, (call, kind) in enumerate(zip(calls, kinds, strict=True)):
        if kind is not None and call.signature.kind in ("KERNEL", "VECTOR_KERNEL"):
            alike.setdefault(call.name, []).append(n)
    for name, left in alike.items():
        own = {n: shape for n in left if (shape := shapes[n]) is not None}
        candidates = list(dict.fromkeys(block for _, block in own.values()))
        while left and len(candidates) > 1:
            serving = {block: [n for n in left if _fits(name, calls[n].extent, own[n], block)] for block in candidates}
            block = max(candidates, key=lambda one: len(serving[one]))
            for n in serving[block]:
                shapes[n], kinds[n] = shape_by_block(name, calls[n].extent or (0, 0, 0), block), (name, block)
            served = set(serving[block])
            left = [n for n in left if n not in served]
            candidates.remove(block)


@lru_cache(maxsize=4096)
def _fits(name: str, extent: tuple[int, int, int] | None, own: Shape, block: tuple[int, int, int]) -> bool:
    threads = [math.prod(grid) * math.prod(of) for grid, of in (own, shape_by_block(name, extent or (0, 0, 0), block))]
    return threads[1] <= max(TIMES * threads[0], FEW)


class BatchedLaunch(NamedTuple):
    """A launch of `entry` over `grid` of blocks of `block` threads. Its arguments are `numbers`, each with its C type,
    then `tables`."""

    entry: Entry
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    numbers: list[tuple[str, int | float]]
    tables: list[np.ndarray]


def batch_calls(calls: Sequence[Call], shapes: Sequence[Shape], address: Callable[[Any], int]) -> BatchedLaunch:
    """Return one CUDA launch that has the effect of all launches `calls` of one kernel. `shapes`: the number of thread
    blocks and of threads of each launch; the thread blocks must be equal. `address`: returns the address of the first
    item of an array."""
    signature, block = calls[0].signature, shapes[0][1]
    assert all(call.name == signature.name and of[1] == block for call, of in zip(calls, shapes, strict=True))
    table = _table(calls, shapes, address)
    arrays = np.array([False] * AHEAD + [is_pointer(kind) for kind, _ in signature.arguments])
    gx, gy, gz = shapes[0][0]
    equal = bool((table[:, 1:] == table[0, 1:])[:, ~arrays[1:]].all())
    if equal and all(grid == (gx, gy, gz) for grid, _ in shapes) and gz * len(calls) <= _ALONG_Z:
        ahead: list[tuple[str, int | float]] = [("int", n) for n in (*(calls[0].extent or ()), gz)]
        numbers = ahead + _numbers(signature, calls[0])
        entry, grid = Entry(signature.name, Form.ALIKE), (gx, gy, gz * len(calls))
        return BatchedLaunch(entry, grid, block, numbers, [np.ascontiguousarray(table[:, arrays])])
    counts = [math.prod(grid) for grid, _ in shapes]
    members = np.repeat(np.arange(len(calls), dtype=np.int32), counts)
    return BatchedLaunch(Entry(signature.name, Form.MIXED), (len(members), 1, 1), block, [], [members, table])


def _table(calls: Sequence[Call], shapes: Sequence[Shape], address: Callable[[Any], int]) -> np.ndarray:
    """Return a row of words for each call, in the layout of a mixed launch."""
    arguments = calls[0].signature.arguments
    table = np.empty((len(calls), AHEAD + len(arguments)), np.int64)
    blocks = np.array([grid for grid, _ in shapes])
    table[:, 0] = np.cumsum(blocks.prod(axis=1)) - blocks.prod(axis=1)
    table[:, 1:3] = blocks[:, :2]
    table[:, 3:AHEAD] = [call.extent or () for call in calls]
    columns: list[list[int]] = []
    for kind, name in arguments:
        values = [call.arguments[name] for call in calls]
        if is_pointer(kind):
            columns.append([0 if value is None else address(value) for value in values])
        elif kind in ("int", "long long"):
            columns.append(values)
        else:
            columns.append(np.array(values, np.float64).view(np.int64).tolist())
    table[:, AHEAD:] = np.array(columns, np.int64).reshape(len(arguments), -1).T
    return table


def _numbers(signature: Signature, call: Call) -> list[tuple[str, int | float]]:
    return [(kind, call.arguments[name]) for kind, name in signature.arguments if not is_pointer(kind)]
