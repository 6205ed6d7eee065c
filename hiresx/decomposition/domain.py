"""All of a case's geometry as every rank sees it: one copy of the coordinates on each host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hiresx.communicator import Communicator, alone
from hiresx.decomposition.coordinates import extended_coordinates
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition, decompose
from hiresx.decomposition.shell import Shell, filled
from hiresx.decomposition.split import split
from hiresx.equations import GHOSTS
from hiresx.grid import Block, Grid, build
from hiresx.grid.stored import give_back

HALO = GHOSTS
Coordinates = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Domain:
    """`grid`, its `whole` blocks with what surrounds them, `cut`: the same for the parts of all ranks, and `extended`:
    coordinates of the whole blocks with 3 ghost layers (see `extended_coordinates`); of blocks that are left in their
    file only what is beside their faces, and `own`: what this rank has read of those."""

    comm: Communicator
    grid: Grid
    whole: Decomposition
    cut: Decomposition
    extended: list[Coordinates | Shell]
    own: dict[Part, Coordinates] = field(default_factory=dict)

    @property
    def mine(self) -> list[int]:
        """Indexes in `cut` of the parts of this rank."""
        return [n for n, part in enumerate(self.cut.parts) if part.rank == self.comm.rank]

    def coordinates(self, part: Part) -> Coordinates:
        """x, y, z of a part with 3 ghost layers on all sides, (nk + 6, nj + 6, ni + 6): those of its whole block."""
        if part in self.own:
            return self.own[part]
        if isinstance(self.extended[part.whole], Shell):
            return filled(self.whole.blocks[part.whole], self.extended[part.whole], HALO, _box(part))
        return tuple(np.ascontiguousarray(c[_box(part)]) for c in self.extended[part.whole])


def domain(
    case,
    comm: Communicator | None = None,
    grid: Grid | None = None,
    parts: Callable[[Decomposition], Sequence[Part]] | None = None,
) -> Domain:
    """The domain of a case. `grid` replaces the grid of the case; `parts` cuts the whole blocks (None: not at all, all
    on rank 0). Collective; raises on all ranks what `build`, `decompose` and `split` raise on one."""
    comm = comm or alone()
    whole = extended = made = None
    with comm.together():
        if comm.local.root:
            grid = build(case.grid, case.directory) if grid is None else grid
            whole = decompose(case, grid)
            grid = grid if whole.blocks is grid.blocks else replace(grid, blocks=whole.blocks)
            # the nodes beside the faces are needed no more
            extended = [
                made.emptied(block, HALO) if isinstance(made, Shell) else made
                for block, made in zip(whole.blocks, extended_coordinates(whole), strict=True)
            ]
            for block in whole.blocks:
                block.forget()
            if any(block.stored for block in whole.blocks):
                give_back()
    if comm.local.size > 1:
        grid, extended = _one_copy(comm, grid, extended)
    with comm.together():
        if comm.local.size > 1:
            whole = decompose(case, grid)
        if parts is not None and comm.root:
            made = parts(whole)
    # That of rank 0 for all: a library that partitions may be on some hosts only.
    made = comm.bcast(made)
    with comm.together():
        cut = whole if made is None else split(whole, made)
    with comm.together():
        own = _read(comm, whole, cut, extended)
        if own:
            # What is computed on are views of what was read, the nodes without their ghosts.
            blocks = (_inner(b, own[p]) if p in own else b for b, p in zip(cut.blocks, cut.parts, strict=True))
            cut = replace(cut, blocks=tuple(blocks))
    return Domain(comm, grid, whole, cut, extended, own)


def _one_copy(
    comm: Communicator, grid: Grid | None, extended: list[Coordinates] | None
) -> tuple[Grid, list[Coordinates]]:
    """The grid that the first rank of this host gives, on memory that all its ranks see, or in its file."""
    leads = comm.local.root
    shape = [(b.name, b.size, b.regions, b if b.stored else None) for b in grid.blocks] if leads else None
    rest = (grid.connections, grid.period, grid.touching) if leads else None
    shape, rest = comm.local.bcast((shape, rest) if leads else None)
    views = comm.shared([c for block in extended for c in _arrays(block)] if leads else None)
    extended = [tuple(views[3 * b : 3 * b + 3]) for b in range(len(shape))]
    blocks = []
    for b, (name, size, regions, left) in enumerate(shape):
        if left is not None:
            blocks.append(left)
            extended[b] = Shell.over(left, HALO, extended[b], inside=0)
            continue
        inside = tuple(slice(HALO, HALO + n) for n in reversed(size))
        blocks.append(Block(name, *(c[inside] for c in extended[b]), regions))
    return Grid(tuple(blocks), *rest), extended


def _arrays(extended: Coordinates | Shell) -> Sequence[np.ndarray]:
    return extended.layers if isinstance(extended, Shell) else extended


def _read(comm: Communicator, whole: Decomposition, cut: Decomposition, extended) -> dict[Part, Coordinates]:
    """The coordinates with ghosts of this rank's parts of blocks that are left in their file."""
    for block in (*whole.blocks, *cut.blocks):
        block.forget()
    return {
        part: filled(whole.blocks[part.whole], extended[part.whole], HALO, _box(part))
        for part in cut.parts
        if part.rank == comm.rank and whole.blocks[part.whole].stored
    }


def _box(part: Part) -> tuple[slice, slice, slice]:
    return tuple(slice(s.start, s.stop + 2 * HALO) for s in part.slices)


def _inner(block: Block, extended: Coordinates) -> Block:
    inside = tuple(slice(HALO, HALO + n) for n in reversed(block.size))
    return Block(block.name, *(c[inside] for c in extended), block.regions)
