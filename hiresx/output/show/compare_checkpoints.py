"""Comparison of the state and all other arrays over nodes in two checkpoints, which may be written by different numbers
of ranks."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.equations import equations
from hiresx.grid.blocks import Range
from hiresx.output.saved import distributed_arrays, identity
from hiresx.output.saved.checkpoint import reading_contents
from hiresx.output.saved.container import Container
from hiresx.output.show import common_time, measures


def record(found: Container) -> dict[str, Any]:
    """Return those entries of a run's record (run.json) that a checkpoint also contains: backend, steps, time, version,
    digest of the grid and case. `found`: the opened checkpoint. Raises DamagedCheckpoint if one of them is missing."""
    values = found.values
    with reading_contents(found.path):
        return {
            "backend": values["backend"],
            "steps": int(values["solver"]["steps"]),
            "time": float(values["solver"]["time"]),
            "versions": {"hiresx": values["hiresx"]},
            "grid_hash": identity.grid_hash(values["grid"]),
            "case": dict(values["case"]),
        }


def results(first: Container, second: Container) -> dict[str, Any]:
    """Return the differences between the arrays of two opened checkpoints as a dictionary: `steps` and `times`, pairs
    of both; `same_grid`, `same_sizes` and `one_time`, whether grid, block sizes, and step and time are equal;
    `variables`, the differences of each array; and `same`, whether nothing differs. The arrays are the conserved
    variables, and the arrays over the nodes that monitors and outputs store, such as averages, under their names in the
    files. Raises DamagedCheckpoint for a file without the content of a checkpoint."""
    a, b = record(first), record(second)
    with reading_contents(first.path):
        blocks = _blocks(first)
    with reading_contents(second.path):
        others = _blocks(second)
    found: dict[str, Any] = {
        "steps": [a["steps"], b["steps"]],
        "times": [a["time"], b["time"]],
        "same_grid": a["grid_hash"] == b["grid_hash"],
        "same_sizes": blocks == others,
        "one_time": common_time.same_time(a["time"], b["time"]) and a["steps"] == b["steps"],
    }
    with reading_contents(first.path), reading_contents(second.path):
        variables = list(_state(first, second, blocks, others))
        variables += _attachment_arrays(first, second)
    found["variables"] = variables
    unmoved = found["one_time"] and a["time"] == b["time"]
    found["same"] = bool(found["same_grid"] and unmoved and all(entry.get("greatest") == 0 for entry in variables))
    return found


def _blocks(found: Container) -> list[tuple[str, tuple[int, ...]]]:
    """Return for each block its name and size (ni, nj, nk)."""
    return [(str(block["name"]), tuple(block["size"])) for block in found.values["grid"]]


def _state(
    first: Container,
    second: Container,
    blocks: list[tuple[str, tuple[int, ...]]],
    others: list[tuple[str, tuple[int, ...]]],
) -> Iterator[dict[str, Any]]:
    states = []
    for container, sizes in ((first, blocks), (second, others)):
        read = distributed_arrays.read_from_file(container, "solver/")
        reference = container.values["solver"].get("reference")
        states.append(
            [
                _conservative_values(read, b, triple((0, n) for n in size), reference)
                for b, (_, size) in enumerate(sizes)
            ]
        )
    a, b = (equations(dict(container.values["case"])).conserved_names for container in (first, second))
    for v, (name, other) in enumerate(zip(a, b, strict=False)):
        if name != other:
            continue
        values = [[q[v] for q in state] for state in states]
        if blocks == others:
            pairs = zip((name for name, _ in blocks), *values, strict=True)
            yield {"name": name, **measures.difference(pairs)}
        else:
            yield {"name": name, "first": measures.summary(values[0]), "second": measures.summary(values[1])}


def _conservative_values(
    read: Callable[[str, Range], np.ndarray], block: int, box: Range, reference: list[float] | None
) -> np.ndarray:
    """Return the conservative variables of a block, which may be stored as differences from a reference."""
    q = read(f"q.{block}", box)
    if reference is None:
        return q
    return q + np.reshape(reference, (-1, 1, 1, 1)) + read(f"carry.{block}", box)


def _attachment_arrays(first: Container, second: Container) -> Iterator[dict[str, Any]]:
    """Return the arrays of attachments that both have with the same size."""
    reads = [distributed_arrays.read_from_file(container, "attachments/") for container in (first, second)]
    for name in reads[0].names:
        if name not in reads[1].names or reads[0].whole(name) != reads[1].whole(name):
            continue
        a, b = (read(name, read.whole(name)) for read in reads)
        if a.shape == b.shape:
            ours, theirs = (array.reshape(-1, *array.shape[-2:]) for array in (a, b))
            found = measures.difference([("", ours, theirs)])
            if found["at"] is not None:
                found["at"] |= {"k": found["at"]["k"] % a.shape[-3]}
            yield {"name": name, **found}
