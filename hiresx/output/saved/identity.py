"""Comparison of a checkpoint with the run that continues from it: case, grid, functions of the user."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hiresx.case.implicit_table import NAME as IMPLICIT
from hiresx.case.schema import monitor_keys
from hiresx.errors import HiresxError
from hiresx.grid import Grid
from hiresx.grid.blocks import AXES
from hiresx.grid.stored_coordinates import slabs

# Keys that may differ between a run and its continuation: duration, time step, iteration and plan, monitors and output,
# title, and the initial flow, which no longer matters. Tables of monitors may differ, too (see `may_change`); all other
# keys must be equal.
MAY_DIFFER = (
    "title", "description", "length_symbol", "alternatives", "plan", "initial",
    "time.integrator", "time.end", "time.steps", "time.dt", "time.cfl", "time.viscous_cfl", "time.wall_limit",
    "time.retries", "time.retry_factor",
    "implicit", "output", "checkpoint", "monitor", "monitors", "probe", "force", "surface", "refine.most_nodes",
)  # fmt: skip
# Keys of the tables above that a restart must not change, because they change the solution of steady flows.
HELD = ("implicit.viscous_damping", "implicit.damping_at_walls")
# A key with another default for steady flow. It affects the flow that is found, not the flow from which the iteration
# starts.
_INITIAL_ONLY = "scheme.epsilon"
# The content of grid files is compared, not their path.
GRID_FILES = ("grid.file", "grid.connectivity")
# The names of files with planes of precursors are not compared, since the files may have been moved.
_PLANES = re.compile(r"boundary\.\d+\.file")
# Coordinates that agree to this fraction of the block's extent come from one generator on two machines, whose sines and
# powers differ in the last bit. Means over planes of nodes are compared.
ROUND_OFF = 1e-13
# Largest number of differences that an error message names.
NAMED = 5


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the differences between two cases as (dotted key, old value, new value), in the order of the keys. `old`,
    `new`: the cases as nested dictionaries, with their default values filled in. A missing value is None."""
    a, b = dict(_flat(old)), dict(_flat(new))
    for flat in (a, b):  # for a case from before these keys existed
        flat.setdefault("axisymmetric", False)
        flat.setdefault("scalar", [])
        flat.setdefault("implicit.damping_at_walls", False)
    return [(key, a.get(key), b.get(key)) for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        parts = enumerate(value)
    else:
        yield key, list(value) if isinstance(value, tuple) else value
    for name, item in parts:
        yield from _flat(item, f"{key}.{name}" if key else str(name))


def check_case(old: Mapping[str, Any], new: Mapping[str, Any], place: str) -> list[tuple[str, Any, Any]]:
    """Return the differences between the case of a checkpoint, `old`, and the case of the run that continues from it,
    `new`, as (dotted key, old value, new value). Raises HiresxError for keys that a restart must not change. `place`:
    the beginning of the error message."""
    found = [entry for entry in differences(old, new) if not _names_a_file(entry[0])]
    # Steady flow that is computed from the flow of another integrator: that flow is only its initial flow.
    begins_steady = any(key == "time.integrator" and new == IMPLICIT for key, _, new in found)
    free = (_INITIAL_ONLY,) if begins_steady else ()
    others = [entry for entry in found if not may_change(entry[0]) and entry[0] not in free]
    if others:
        raise HiresxError(
            f"{place} is of another case: {'; '.join(format_difference(entry) for entry in others[:NAMED])}"
            + (f"; and {len(others) - NAMED} keys more" if len(others) > NAMED else ""),
            "a restart may change how long a run lasts, its time step, and what it writes, but not what it computes: "
            "leave these keys as they were, or begin a new run",
        )
    return found


def _names_a_file(key: str) -> bool:
    return key in GRID_FILES or _PLANES.fullmatch(key) is not None


def may_change(key: str) -> bool:
    """Return whether a restart may change the dotted key `key` of the case, such as "time.end"."""
    return key not in HELD and any(key == name or key.startswith(f"{name}.") for name in (*MAY_DIFFER, *monitor_keys()))


def format_difference(difference: tuple[str, Any, Any]) -> str:
    """Return a text for a message that describes a difference between two cases. `difference`: the dotted key, the
    first value and the second value."""
    key, old, new = difference
    return f"{key} is {_format_value(new)}, in the checkpoint {_format_value(old)}"


def _format_value(value: Any) -> str:
    return "absent" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


def fingerprint(grid: Grid) -> list[dict[str, Any]]:
    """Return data that identify a grid, a dictionary for each block: its name, size (ni, nj, nk), the SHA-256 digests
    of its coordinates and of the connections of its faces, and the means of x, y, z over every plane of nodes: {"x":
    {"i": [...], ...}, ...}. The means serve to compare grids that differ in the last bits."""
    found = []
    for b, block in enumerate(grid.blocks):
        digest, planes = hashlib.sha256(), {}
        for axis in "xyz":
            sums: list[list[np.ndarray]] = [[], [], []]
            for (slab,) in slabs(getattr(block, axis)):
                c = np.ascontiguousarray(slab, dtype="<f8")
                digest.update(c.data)
                for n, found_so_far in enumerate(sums):
                    found_so_far.append(c.sum(axis=_others(2 - n)))
            sums[:2] = ([np.asarray(sum(parts))] for parts in sums[:2])
            planes[axis] = {
                d: (np.concatenate(parts) * n / block.points).tolist()
                for d, parts, n in zip(AXES, sums, block.size, strict=True)
            }
        # Only nodes are compared: a motion may differ in its last bit.
        joined = sorted((c.face, c.range, c.donor, c.matrix, c.offset) for c in grid.connections if c.block == b)
        found.append(
            {
                "name": block.name,
                "size": list(block.size),
                "sha256": digest.hexdigest(),
                "connections": hashlib.sha256(json.dumps(joined, default=int).encode()).hexdigest(),
                "planes": planes,
            }
        )
    return found


def _others(axis: int) -> tuple[int, ...]:
    return tuple(a for a in range(3) if a != axis)


def grid_hash(prints: Sequence[Mapping[str, Any]]) -> str:
    """Return one SHA-256 digest of all block names, sizes and coordinates of a grid. `prints`: the result of
    `fingerprint`."""
    text = "\n".join(f"{p['name']} {list(p['size'])} {p['sha256']}" for p in prints)
    return hashlib.sha256(text.encode()).hexdigest()


def check_grid(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], place: str) -> bool:
    """Return whether the grid of a checkpoint and the grid of the run that continues from it are equal to the last bit;
    False if they differ by round-off only. `old`, `new`: the two grids, as `fingerprint` describes them. `place`: the
    path of the checkpoint, for error messages. Raises HiresxError for any other difference, and names the first one:
    the blocks, their sizes, their connections, or a plane of nodes that lies elsewhere."""

    def grid_error(what: str) -> HiresxError:
        return HiresxError(f"{place} is of another grid: {what}", "restart with the grid it was written with")

    names, there = [b["name"] for b in new], [b["name"] for b in old]
    if names != there:
        raise grid_error(f"the blocks are {', '.join(names)}, in the checkpoint {', '.join(there)}")
    for a, b in zip(old, new, strict=True):
        if list(a["size"]) != list(b["size"]):
            sizes = (" x ".join(map(str, size)) for size in (b["size"], a["size"]))
            raise grid_error("block '{}' has {} nodes, in the checkpoint {}".format(b["name"], *sizes))
        if a.get("connections") not in (None, b["connections"]):  # earlier versions did not store connections
            raise grid_error(f"block '{b['name']}' is connected otherwise")
    for a, b in zip(old, new, strict=True):
        if a["sha256"] == b["sha256"]:
            continue
        values = np.concatenate([b["planes"][axis][d] for axis in "xyz" for d in AXES])
        allowed = ROUND_OFF * max(np.abs(values).max(), np.finfo(float).tiny)
        for axis in "xyz":
            for d in AXES:
                before, now = (np.array(p["planes"][axis][d]) for p in (a, b))
                worst = int(np.argmax(np.abs(now - before)))
                if not abs(now[worst] - before[worst]) <= allowed:
                    raise grid_error(
                        f"in block '{b['name']}' the nodes {d} = {worst} have the mean {axis} = {now[worst]:.15g}, "
                        f"in the checkpoint {before[worst]:.15g}"
                    )
    return all(a["sha256"] == b["sha256"] for a, b in zip(old, new, strict=True))


def check_functions(
    old: Mapping[str, Sequence[float]], new: Mapping[str, Sequence[float]], real: str, place: str
) -> None:
    """Raise HiresxError if functions of the user, for profiles and sponges, have changed between a checkpoint and the
    run that continues from it. `old`, `new`: by the name of each function the mean and the root mean square of its
    values (`Solver.profile_statistics`), in the checkpoint and in the new run. Differences by the round-off of `real`,
    the name of a floating-point type of NumPy, are allowed. `place`: the path of the checkpoint, for error messages."""
    allowed = 1000 * np.finfo(real).eps
    for name in old.keys() | new.keys():
        a, b = old.get(name), new.get(name)
        if a is None or b is None or not np.allclose(a, b, rtol=allowed, atol=allowed):
            raise HiresxError(
                f"{place} was written with another function for the {name}: the values it gives differ",
                "restart with the functions of case.py, or those given to Simulation, as they were",
            )
