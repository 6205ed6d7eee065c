"""The tiles of a level of refinement as blocks, with their connections and conditions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.case.boundaries import PatchedFace
from hiresx.case.refine import REFINABLE
from hiresx.decomposition.levels import by_block, may_end
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.errors import HiresxError
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import Range, direction, directions_along, face_range, intersection, rectangles, whole_box
from hiresx.grid.cutting import Piece, cut_connections, cuts, within


@dataclass(frozen=True, eq=False)
class LevelTiles:
    """The blocks of one level of refinement, with their connections and boundary patches. `step_edges`: the nodes of
    slip walls on edges of steps, as for `Decomposition`. `pieces`: for each block its box of nodes, as (number of the
    block of the unrefined grid, half-open index ranges on this level). `first`, `place`: the numbers of the first of
    these blocks and of the first of these patches among those of all levels."""

    pieces: list[Piece]
    first: int
    place: int
    blocks: list[Block]
    connections: list[Connection]
    patches: list[Patch]
    step_edges: list[Patch]

    @classmethod
    def of(
        cls, fine: Decomposition, pieces: list[Piece], level: int, kept: Callable[[np.ndarray], np.ndarray]
    ) -> "LevelTiles":
        """Return the blocks of a level that have the nodes `pieces`, with their connections and boundary patches,
        numbered from 0 on. Faces at which the level ends get the condition "patched", whose ghosts are interpolated.
        `fine`: the decomposition of the whole grid on this level. `pieces`: for each block (number of the block of the
        unrefined grid, half-open index ranges on this level). `level`: the number of the level. `kept`: a function that
        is called with a view of coordinates and returns the array to store. Raises HiresxError for a block on a face
        whose condition does not support refinement, and for a level that ends on a connection of blocks over which it
        must continue (`may_end`)."""
        halo, count, blocks = fine.stencil.halo, dict[int, int](), list[Block]()
        for b, box in pieces:
            count[b] = count.get(b, -1) + 1
            block = fine.blocks[b]
            blocks.append(block.part(f"{block.name}-level{level}-{count[b]}", box, kept))
        joined = [
            *cuts(fine.blocks, pieces, halo),
            *cut_connections(fine.blocks, fine.connections, pieces, halo),
        ]
        patches, step_edges = (list(_of_tiles(fine, those, pieces)) for those in (fine.patches, fine.step_edges))
        held: list[dict[str, list[Range]]] = [{} for _ in pieces]
        parts: list[Connection | Patch] = [*joined, *patches]
        for one in parts:
            held[one.block].setdefault(one.face, []).append(one.range)
        for n, (b, box) in enumerate(pieces):
            for face, range_ in _free_faces(blocks[n], held[n]):
                _check_end(fine, b, box, face)
                patches.append(Patch(n, face, range_, _patched_face(face), 0))
        return cls(pieces, 0, 0, blocks, joined, patches, step_edges).behind(0, 0)

    def behind(self, first: int, place: int) -> "LevelTiles":
        """Return these blocks, connections and patches of a level with other numbers: blocks are numbered from `first`
        on, and patches from `place` on, so that they follow those of the coarser levels."""
        more = first - self.first
        return replace(
            self,
            first=first,
            place=place,
            connections=[c.renumbered(more) for c in self.connections] if more else self.connections,
            patches=[
                Patch(patch.block + more, patch.face, patch.range, patch.condition, n)
                for n, patch in enumerate(self.patches, place)
            ],
            step_edges=[replace(edge, block=edge.block + more) for edge in self.step_edges],
        )


def with_level(made: Decomposition, tiles: LevelTiles) -> Decomposition:
    """Return the decomposition `made` with the blocks `tiles` of a further level, and their connections and patches,
    added. The numbers in `tiles` must follow those in `made`. The new blocks are not divided among ranks."""
    all_blocks = (*made.blocks, *tiles.blocks)
    return replace(
        made,
        blocks=all_blocks,
        connections=(*made.connections, *tiles.connections),
        patches=(*made.patches, *tiles.patches),
        step_edges=(*made.step_edges, *tiles.step_edges),
        parts=(*made.parts, *(Part(b, whole_box(all_blocks[b].size)) for b in range(tiles.first, len(all_blocks)))),
    )


@cache
def _patched_face(face: str) -> PatchedFace:
    """Return the condition of faces behind which there are nodes of the coarser level."""
    return PatchedFace.model_validate({"faces": (face,)})


def _of_tiles(fine: Decomposition, patches: Sequence[Patch], pieces: Sequence[Piece]) -> Iterator[Patch]:
    """Yield the `patches` of the blocks on the nodes of tiles, as patches of the tiles."""
    of_block = by_block(patches)
    for n, (b, box) in enumerate(pieces):
        for patch in of_block.get(b, ()):
            shared = intersection(box, patch.range)
            if shared is None:
                continue
            if patch.condition.type not in REFINABLE:
                raise HiresxError(
                    f"refine: a tile of block '{fine.blocks[b].name}' lies on face {patch.face} with the condition "
                    f'"{patch.condition.type}", which does not support refinement',
                    "keep the refined regions away from it: tiles of refine.tile nodes cover the regions whole",
                )
            yield replace(patch, block=n, range=within(box, shared))


def _free_faces(block: Block, held: Mapping[str, Sequence[Range]]) -> Iterator[tuple[str, Range]]:
    """Yield the faces of a tile, as ranges, behind which there are nodes of the coarser level. `held`: the ranges of
    each face behind which there is something else."""
    size = block.size
    for face in block.faces:
        for range_ in _free_ranges(face, size, tuple(held.get(face, ()))):
            yield face, range_


@lru_cache(maxsize=4096)  # the same ranges recur, also on other tiles
def _free_ranges(face: str, size: Size, taken: tuple[Range, ...]) -> list[Range]:
    """Return the ranges of a face of a block of this size that are not in one of the ranges `taken`."""
    whole = face_range(face, size)
    if not taken:
        return [whole]
    if whole in taken:
        return []
    # Between the ends of all ranges nodes are alike.
    across = directions_along(face)
    ends = [sorted({*whole[e], *(n for range_ in taken for n in range_[e])}) for e in across]
    free = np.ones([len(of) - 1 for of in ends], bool)
    for range_ in taken:
        free[tuple(slice(*map(of.index, range_[e])) for e, of in zip(across, ends, strict=True))] = False
    found = []
    for spans in rectangles(free):
        part = {e: (of[lo], of[hi]) for e, of, (lo, hi) in zip(across, ends, spans, strict=True)}
        found.append(triple(part.get(e, whole[e]) for e in range(3)))
    return found


def _check_end(fine: Decomposition, b: int, box: Range, face: str) -> None:
    """Raises HiresxError for a level that ends on a connection of blocks."""
    d, block = direction(face), fine.blocks[b]
    if box[d][0 if face.endswith("min") else 1] not in (0, block.size[d]):
        return
    if all(may_end(c, fine.blocks) for c in fine.connections if (c.block, c.face) == (b, face)):
        return
    raise HiresxError(
        f"refine: a level ends on face {face} of block '{block.name}', where that is joined to another",
        "let the region reach over the join, by a tile and more, or keep it away from there",
    )
