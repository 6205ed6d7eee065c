"""Slip walls, symmetry planes and axes whose ghosts are not mirror images of nodes: they do not meet grid lines at
right angles, are curved, or a body force pushes the gas against them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hiresx.case.boundaries import Condition, Place
from hiresx.decomposition.wall_edges import ends_in_edge, is_bent, is_edged
from hiresx.decomposition.wall_seams import same_face
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.blocks import FACES, Range, direction, intersection, side, slices
from hiresx.grid.connections import TOLERANCE
from hiresx.grid.motions import Motion, reflection
from hiresx.grid.patched import HIGHEST, degree_of

if TYPE_CHECKING:
    from hiresx.decomposition.patches import Decomposition, Patch

# Nodes farther off a plane than this share of the extent are on no plane: nodes of a plane that were stored in single
# precision lie on it to about 1e-7.
FLAT = 1e-6
# Sine of the angle to the normal below which grid lines are normal to a plane.
NORMAL = 1e-4
# The kernel of walls with friction, before which layers are thin.
FRICTION = "no_slip"


@dataclass(frozen=True, eq=False)
class Wall:
    """A wall patch of the whole blocks behind which ghosts mirror the flow. Patches with equal conditions that continue
    each other, in one block or across connections, have all values but `place` and `angle` in common. Results therefore
    depend neither on how the grid is divided into blocks nor on whether the condition is given once or for each block.

    - `place`: number of the patch.
    - `normal`, `point`: unit normal and a point of the plane of the wall; both None for a wall that is not plane, and
      for a `curved` one.
    - `angle`: the largest angle between a grid line at the wall and the normal, in degrees.
    - `curved`: whether the pressure may have a gradient along the normal, since the flow along the wall is curved or a
      body force acts.
    - `smooth`: whether polynomials of the highest degree continue the grid lines beyond the wall.
    - `edged`: whether the wall has an edge, where the normal is not unique. It is also true for a plane of symmetry
      that a no-slip wall meets at an angle, since the no-slip wall and its mirror image have an edge there. Behind such
      a plane the grid is mirrored, too.
    - `mirrors_places`: whether a ghost takes its values at the mirror image of its own position, and not at a node.
      Ghosts beside an edge take them at nodes, and so do all ghosts of a wall that consists of planes with edges
      between them (`hiresx.decomposition.wall_edges`).
    """

    place: int
    normal: np.ndarray | None
    point: np.ndarray | None
    angle: float
    curved: bool
    smooth: bool
    edged: bool = False
    mirrors_places: bool = False


def walls(whole: "Decomposition") -> list[Wall]:
    """Find all walls of the whole blocks behind which ghosts mirror the flow: slip walls, planes of symmetry and axes.
    Planes through poles are left out. Returns a dictionary from the number of each patch to its `Wall`."""
    found = []
    through_poles, of_edges = _planes_through_poles(whole), _planes_of_edges(whole)
    for n, patch in enumerate(whole.patches):
        block = whole.blocks[patch.block]
        mirror = patch.condition.kernel in ("reflect", "axis")
        if mirror and len(block.active) > 1 and not _planes_of(whole, patch, through_poles):
            found.append(_wall(block, n, patch, whole))
    made: list[Wall] = []
    of_place = {wall.place: wall for wall in found}
    for places in groups(whole, list(of_place)):
        members = [of_place[place] for place in places]
        group = [_as_beside(whole, wall, members) for wall in members]
        flat = _on_one_plane(whole, group)
        patches = [whole.patches[wall.place] for wall in group]
        curved = any(wall.curved or (not flat and _reflects(whole, whole.patches[wall.place])) for wall in group)
        broad = [patch for patch in patches if is_broad(whole.blocks[patch.block], patch)]
        edged = not flat and any(is_edged(whole, patch) for patch in broad)
        # If all pieces between edges are straight, the pressure has no slope normal to the wall, and all ghosts mirror
        # nodes.
        pieces = edged and not any(is_bent(whole, patch) for patch in broad)
        smooth = all(wall.smooth for wall in group)
        oblique = any(wall.angle > np.degrees(NORMAL) for wall in group) or not flat
        for wall in group:
            normal, point = (None, None) if curved else (wall.normal, wall.point)
            at_edge = bool(_planes_of(whole, whole.patches[wall.place], of_edges))
            mirrored = (oblique or curved) and not pieces and not at_edge
            made.append(Wall(wall.place, normal, point, wall.angle, curved, smooth, edged or at_edge, mirrored))
    return sorted(made, key=lambda wall: wall.place)


def _on_one_plane(whole: "Decomposition", group: Sequence[Wall]) -> bool:
    """True if all patches of a group lie on planes, and those that are broad on parallel ones: over a periodic
    connection a wall goes on elsewhere."""
    patches = [whole.patches[wall.place] for wall in group]
    broad = [w.normal for w, p in zip(group, patches, strict=True) if is_broad(whole.blocks[p.block], p)]
    return all(wall.normal is not None for wall in group) and are_parallel(broad)


def are_parallel(normals: Sequence[np.ndarray | None]) -> bool:
    """True if all `normals`, unit vectors (3,), exist and are parallel, in the same or in opposite directions."""
    known = [n for n in normals if n is not None]
    return len(known) == len(normals) and all(
        float(np.linalg.norm(n - (n @ known[0]) * known[0])) <= FLAT for n in known
    )


def _reflects(whole: "Decomposition", patch: "Patch") -> bool:
    return is_broad(whole.blocks[patch.block], patch) and patch.condition.kernel == "reflect"


def _as_beside(whole: "Decomposition", wall: Wall, members: Sequence[Wall]) -> Wall:
    """Return `wall`, a patch that is one node wide and lies on many planes, with the plane of those of `members` that
    continue it."""
    patch = whole.patches[wall.place]
    block = whole.blocks[patch.block]
    if wall.normal is not None or is_broad(block, patch):
        return wall
    nodes = inward_rows(block, patch.face, patch.range, 1)[0].reshape(3, -1)
    for other in members:
        if other.normal is not None and other.point is not None:
            off = other.normal @ (nodes[: len(other.normal)] - other.point[:, None])
            if np.abs(off).max() <= FLAT * max(block.extents):
                return replace(wall, normal=other.normal, point=other.point)
    return wall


def is_broad(block: Block, patch: "Patch") -> bool:
    """True if a patch has more than one node along each direction of its face."""
    d = direction(patch.face)
    return all(patch.range[e][1] - patch.range[e][0] > 1 for e in block.active if e != d)


def groups(whole: "Decomposition", places: Sequence[int]) -> list[list[int]]:
    """Group the patches with the numbers `places`. Two patches are in one group if they continue each other and their
    conditions are equal. Conditions that differ only in the faces or blocks that they name count as equal, since one
    condition may be given for each block separately. `whole`: the whole blocks."""
    found = {place: [place] for place in places}
    held = {place: _what_holds(whole.patches[place].condition) for place in places}
    for place in places:
        patch = whole.patches[place]
        beyond = list(_beyond(whole, patch))
        for other in places:
            near = whole.patches[other]
            own = found[place]
            if held[other] != held[place] or found[other] is own:
                continue
            low, high = np.array(near.range).T[:, :, None]
            if any(
                (b, face) == (near.block, near.face) and ((at >= low) & (at < high)).all(axis=0).any()
                for b, face, at in beyond
            ):
                own += found[other]
                found.update((member, own) for member in own)
    return list({id(group): group for group in found.values()}.values())


def _what_holds(condition: Condition) -> tuple[str, str]:
    """A condition without the places where it holds."""
    return type(condition).__name__, condition.model_dump_json(exclude={*Place.model_fields})


def _beyond(whole: "Decomposition", patch: "Patch") -> Iterator[tuple[int, str, np.ndarray]]:
    """The nodes beside those of a patch, along its face: (block, the face there, index triples (3, n))."""
    d, size = direction(patch.face), whole.blocks[patch.block].size
    for e in range(3):
        if e == d or size[e] == 1:
            continue
        for first, step in ((patch.range[e][0], -1), (patch.range[e][1] - 1, 1)):
            box = [np.arange(*r) for r in patch.range]
            box[e] = np.array([first + step])
            at = np.stack(np.meshgrid(*box, indexing="ij")).reshape(3, -1)
            if 0 <= first + step < size[e]:
                yield patch.block, patch.face, at
                continue
            for c in whole.connections:
                if c.block == patch.block and c.face == FACES[2 * e + (step > 0)]:
                    low, high = np.array(c.range).T[:, :, None]
                    inside = np.delete((at >= low) & (at < high), e, axis=0).all(axis=0)
                    if inside.any():
                        yield c.donor, same_face(patch.face, c, at[:, inside]), c.donors(at[:, inside])


def mirrored_places(whole: "Decomposition") -> dict[int, Wall]:
    """Return a dictionary from the number of the patch to the wall, of those walls whose ghosts take their values at
    the mirror images of their own positions."""
    return {wall.place: wall for wall in walls(whole) if wall.mirrors_places}


def unrefinable_places(whole: "Decomposition") -> list[int]:
    """Return the numbers of the patches on which no tile of a finer level may lie: walls whose ghosts take their values
    at the mirror images of their own positions, and walls with edges. On a wall with edges, tiles may lie only on the
    oblique pieces."""
    return [wall.place for wall in walls(whole) if wall.mirrors_places or wall.edged]


def mirrors(whole: "Decomposition", patch: "Patch") -> list[Motion]:
    """Return the reflections by which the coordinates are continued behind a plane of symmetry that ends half rings
    around a pole, or that meets a no-slip wall at an edge. The list is empty for other patches."""
    return _planes_of(whole, patch, [*_planes_through_poles(whole), *_planes_of_edges(whole)])


def _planes_of(whole: "Decomposition", patch: "Patch", planes: Iterable[Motion]) -> list[Motion]:
    """Those of `planes` in which the nodes of a patch lie."""
    return [plane for plane in planes if _stays(whole.blocks[patch.block], patch.range, plane)]


def _planes_through_poles(whole: "Decomposition") -> set[Motion]:
    return {c.motion for c in whole.connections if c.over_a_pole and c.rotation is not None}


def _planes_of_edges(whole: "Decomposition") -> list[Motion]:
    """The reflections about planes of symmetry at which a wall with friction and its mirror image make an edge, as at
    the root of a swept wing. Grid lines that went on straight behind the plane would lead into the image of the body,
    or out of the layers before it."""
    found: list[Motion] = []
    for patch in whole.patches:
        block = whole.blocks[patch.block]
        if patch.condition.type != "symmetry" or _planes_of(whole, patch, found):
            continue
        dimensions = len(block.active)
        normal, point = plane_of(inward_rows(block, patch.face, patch.range, 1)[0, :dimensions].reshape(dimensions, -1))
        if normal is None or point is None:
            continue
        rows = [inward_rows(block, patch.face, common, 3) for common in met_by_friction(whole, patch)]
        if any(ends_in_edge(r[:, :dimensions].reshape(3, dimensions, -1).transpose(1, 2, 0), normal) for r in rows):
            found.append(reflection(np.pad(normal, (0, 3 - dimensions)), float(point @ normal)))
    return found


def met_by_friction(whole: "Decomposition", patch: "Patch") -> list[Range]:
    """Return the ranges of nodes of a patch at which no-slip walls on other faces of its block meet it."""
    d, beside = direction(patch.face), [p for p in whole.patches if p.block == patch.block]
    walls = [p for p in beside if p.condition.kernel == FRICTION and direction(p.face) != d]
    return [common for wall in walls if (common := intersection(patch.range, wall.range)) is not None]


def _stays(block: Block, range_: Range, plane: Motion) -> bool:
    """True if the nodes of a part of a face lie in the plane of a reflection."""
    nodes = np.stack([c[slices(range_)] for c in (block.x, block.y, block.z)])
    return bool(np.abs(plane(nodes) - nodes).max() <= 2 * TOLERANCE * max(block.extents))


def inward_rows(block: Block, face: str, range_: Range, count: int) -> np.ndarray:
    """Return the coordinates of the nodes `range_` of a face and of the layers of nodes behind them in the block,
    `count` layers in all: (count, 3, nk, nj, ni), with one node in the direction normal to the face."""
    d, inwards = direction(face), -side(face)
    rows = []
    for step in range(count):
        box = [slice(lo, hi) for lo, hi in range_]
        box[d] = slice(range_[d][0] + inwards * step, range_[d][0] + inwards * step + 1)
        rows.append(np.stack([c[box[2], box[1], box[0]] for c in (block.x, block.y, block.z)]))
    return np.stack(rows)


def check_pushed_planes(whole: "Decomposition") -> None:
    """Raises HiresxError for a plane of symmetry if a body force has a component normal to it, because the force would
    have the opposite direction behind it. This includes the planes that end half rings around a pole."""
    for patch in whole.patches:
        symmetric = patch.condition.type == "symmetry"
        if patch.condition.kernel != "reflect" or not is_pushed(whole, patch, whole.pushes):
            continue
        if symmetric or mirrors(whole, patch):
            raise HiresxError(
                f"body_force acts across face {patch.face} of block '{whole.blocks[patch.block].name}' "
                f"({patch.condition.type}), behind which the flow is the mirror image",
                'give this face the type "slip-wall"' if symmetric else "take a whole ring around the pole",
            )


def is_pushed(whole: "Decomposition", patch: "Patch", pushes: Sequence[ArrayLike]) -> bool:
    """True if one of the vectors `pushes` has a component normal to the patch. False for a patch with only one node
    along a direction of its face. `whole`: the whole blocks."""
    block, d = whole.blocks[patch.block], direction(patch.face)
    if not pushes or not is_broad(block, patch):
        return False
    dimensions = len(block.active)
    face = inward_rows(block, patch.face, patch.range, 1)[0, :dimensions]
    normals = local_normals(face, d, [e for e in block.active if e != d])
    along = np.tensordot(np.asarray(pushes)[:, :dimensions], normals, axes=1)
    return bool(np.abs(along).max() > NORMAL)


def _wall(block: Block, place: int, patch: "Patch", whole: "Decomposition") -> Wall:
    dimensions, halo = len(block.active), whole.stencil.halo
    rows = inward_rows(block, patch.face, patch.range, halo + 1)[:, :dimensions]
    d = direction(patch.face)
    tangents = [e for e in block.active if e != d]
    lines = rows[1:] - rows[0]
    length = np.sqrt((lines**2).sum(axis=1))
    normal, point = plane_of(rows[0].reshape(dimensions, -1))
    if normal is not None and point is not None:
        if np.tensordot(normal, rows[1] - rows[0], axes=1).mean() < 0:
            normal = -normal
        along = np.tensordot(lines, normal, axes=(1, 0))
    else:
        along = np.abs(np.sum(lines * local_normals(rows[0], d, tangents), axis=1))
    across = np.sqrt(np.maximum(length**2 - along**2, 0) if normal is None else _across(lines, along, normal))
    known = normal is not None or is_broad(block, patch)
    angle = float(np.degrees(np.arctan2(across, np.abs(along)).max())) if known else 0.0
    # walls of revolution are bent, too, except for planes normal to the axis
    bent = normal is None or (whole.axisymmetric and abs(normal[1]) > NORMAL)
    curved = _reflects(whole, patch) and (bent or is_pushed(whole, patch, whole.pushes))
    smooth = degree_of(inward_rows(block, patch.face, patch.range, HIGHEST + 1), halo) == HIGHEST
    return Wall(place, normal, point, angle, curved, smooth)


def _across(lines: np.ndarray, along: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Squares of the distances along a plane: without the round-off of squares that nearly cancel."""
    tangential = lines - along[:, None] * normal.reshape(-1, 1, 1, 1)
    return np.asarray((tangential**2).sum(axis=1))


def plane_of(nodes: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the unit normal (dimensions,) of the plane on which all nodes (dimensions, n) lie, and a point of it. Both
    are None if there is no such plane, or more than one."""
    dimensions = len(nodes)
    centre = nodes.mean(axis=1)
    off = nodes - centre[:, None]
    # the nodes themselves are decomposed: the singular vectors of their matrix of second moments have half the digits
    _, sizes, axes = np.linalg.svd(off.T, full_matrices=False) if off.shape[1] >= dimensions else (0, [0.0], off)
    if len(sizes) < dimensions or sizes[dimensions - 2] < FLAT * sizes[0] or not sizes[0] > 0:
        return None, None
    normal = axes[-1]
    # a normal that is along an axis to round-off becomes exact
    normal = np.where(np.abs(normal) < 1e-14, 0.0, normal)
    normal = normal / np.linalg.norm(normal)
    extent = np.ptp(off, axis=1).max()
    return (normal, centre) if np.abs(normal @ off).max() <= FLAT * extent else (None, None)


def local_normals(face: np.ndarray, d: int, tangents: Sequence[int]) -> np.ndarray:
    """Return unit normals (dimensions, nk, nj, ni) at the nodes `face` of a face, by central differences. `d`:
    direction normal to the face. `tangents`: directions along it. The normals may point to either side."""
    if not tangents:  # of a line
        return np.ones_like(face)
    slopes = []
    for e in tangents:
        axis = 3 - e
        slopes.append(np.gradient(face, axis=axis) if face.shape[axis] > 1 else np.zeros_like(face))
    normal = np.cross(slopes[0], slopes[1], axis=0) if len(slopes) == 2 else np.stack([-slopes[0][1], slopes[0][0]])
    size = np.sqrt((normal**2).sum(axis=0))
    return np.asarray(normal / np.where(size > 0, size, 1))
