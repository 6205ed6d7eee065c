"""The size of a grid in memory, and a check, before anything is allocated, that this machine can hold it."""

import os
from contextlib import suppress
from pathlib import Path

from hiresx.errors import HiresxError

# Bytes per node while a grid is made and passed on: x, y, z, the same with ghosts, and one temporary copy.
MAKING = 72
# Number of nodes per direction of the stencil that interpolates at a place.
WIDTH = 6
# Bytes of a place without its stencil, and bytes of a node of the stencil: block, i, j, k, weight and rotation (3 x 3),
# once for each place and once more for all places together.
PLACE, STENCIL = 400, 2 * 14 * 8
# Files in which the control groups of this process give their memory limit: version 2, version 1.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def host_memory() -> int:
    """Return the memory in bytes that this process can use: the memory of the machine or, if it is less, the limit of
    the container."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _LIMITS:
        with suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min(found)


def refuse(nodes: int, for_grid: float = MAKING, for_fields: float = 0.0) -> None:
    """Raise HiresxError if this machine has too little memory for a grid of `nodes` nodes. The message gives the memory
    needed. `for_grid`, `for_fields`: bytes per node of the grid and of the flow fields."""
    needed, there = nodes * (for_grid + for_fields), host_memory()
    if needed <= there:
        return
    parts = f"{in_bytes(nodes * for_grid)} for the grid"
    if for_fields:
        parts += f" and {in_bytes(nodes * for_fields)} for its fields"
    raise HiresxError(
        f"grid: {nodes:,} nodes take {parts}, this machine has {in_bytes(there)} of memory",
        "ask for fewer nodes, or take a machine that holds them",
    )


def refuse_places(key: str, places: int, dimensions: int) -> None:
    """Raise HiresxError if this machine has too little memory to interpolate the flow at `places` points (probes, for
    example) of a grid with `dimensions` dimensions. The message gives the memory needed. `key`: the table of the case
    that asks for the points."""
    needed, there = places * (PLACE + STENCIL * WIDTH**dimensions), host_memory()
    if needed > there:
        raise HiresxError(
            f"{key}: {places:,} places take {in_bytes(needed)}, this machine has {in_bytes(there)} of memory",
            "ask for fewer places",
        )


def in_bytes(count: float) -> str:
    """Return a number of bytes as text in a suitable decimal unit, such as "18.1 MB"."""
    units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"]
    while float(f"{count:.3g}") >= 1000 and len(units) > 1:
        count, units = count / 1000, units[1:]
    return f"{count:.3g} {units[0]}"
