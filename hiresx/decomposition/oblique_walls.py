"""Slip walls, symmetry planes and axes whose ghosts are not mirror images of nodes: they do not meet grid lines at
right angles, are curved, or a body force pushes the gas against them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hiresx.case.boundaries import Condition, Place
from hiresx.decomposition.wall_edges import Image, ends_in_edge, is_bent, is_edged
from hiresx.decomposition.wall_seams import same_face
from hiresx.grid import Block
from hiresx.grid.blocks import FACES, Range, direction, intersection, side, slices
from hiresx.grid.connections import TOLERANCE
from hiresx.grid.motions import Motion, reflection
from hiresx.grid.patched import HIGHEST, degree_of

if TYPE_CHECKING:
    from hiresx.decomposition.patches import Decomposition, Patch

# Nodes lie on a plane if their distance from it is below this fraction of the extent: nodes that were stored in single
# precision lie on their plane to about 1e-7. Far from the origin their rounding errors are larger: the distance may
# then be this multiple of the rounding error.
FLAT, ROUNDED = 1e-6, 4.0
# Grid lines count as normal to a plane if the sine of their angle to the normal is below this value.
NORMAL = 1e-4
# Number of nodes behind a plane from which the slope of a grid line at the plane is estimated.
LINES = 5
# The kernel of walls with friction, beside which cells are thin.
FRICTION = "no_slip"
MODELLED = "modelled-wall"


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
    - `imaged`: whether bent grid lines meet a plane of symmetry at right angles and are smooth with their mirror
      images. The grid behind the plane is then the mirror image, and all ghosts take their values at nodes.
    - `images`: for a wall with a wall model, the reflections at planes of symmetry that continue it, as pairs (face on
      the plane, reflection).
    """

    place: int
    normal: np.ndarray | None
    point: np.ndarray | None
    angle: float
    curved: bool
    smooth: bool
    edged: bool = False
    mirrors_places: bool = False
    imaged: bool = False
    images: Sequence[Image] = ()


def find_walls(whole: "Decomposition") -> tuple[Wall, ...]:
    """Return all wall patches behind which ghosts mirror the flow (slip walls, planes of symmetry and axes), with their
    geometry, sorted by the number of the patch. Planes of symmetry in which a pole lies (a line to which a block face
    has collapsed) are left out. `whole`: the blocks, not divided among ranks, with their patches."""
    found = []
    through_poles, of_edges, of_images = _planes_through_poles(whole), _planes_of_edges(whole), _planes_of_images(whole)
    for n, patch in enumerate(whole.patches):
        block = whole.blocks[patch.block]
        mirror = patch.condition.kernel in ("reflect", "axis")
        if mirror and len(block.active) > 1 and not planes_through(whole, patch, through_poles):
            found.append(_wall(block, n, patch, whole))
    made: list[Wall] = []
    of_place = {wall.place: wall for wall in found}
    for places in groups(whole, list(of_place)):
        members = [of_place[place] for place in places]
        group = [_as_beside(whole, wall, members) for wall in members]
        patches = [whole.patches[wall.place] for wall in group]
        images = [images_of_wall(whole, patch, of_edges) for patch in patches]
        flat = not any(images) and _on_one_plane(whole, group)
        curved = any(wall.curved or (not flat and _reflects(whole, whole.patches[wall.place])) for wall in group)
        broad = [(p, image) for p, image in zip(patches, images, strict=True) if is_broad(whole.blocks[p.block], p)]
        edged = not flat and any(is_edged(whole, *one) for one in broad)
        # If all pieces between edges are straight, the pressure has no slope normal to the wall, and all ghosts mirror
        # nodes.
        pieces = edged and not any(is_bent(whole, *one) for one in broad)
        smooth = all(wall.smooth for wall in group)
        oblique = any(wall.angle > np.degrees(NORMAL) for wall in group) or not flat
        for wall, of_wall in zip(group, images, strict=True):
            normal, point = (None, None) if curved else (wall.normal, wall.point)
            at_edge, imaged = (
                bool(planes_through(whole, whole.patches[wall.place], those)) for those in (of_edges, of_images)
            )
            mirrored = (oblique or curved) and not pieces and not at_edge and not imaged
            made.append(
                Wall(wall.place, normal, point, wall.angle, curved, smooth, edged or at_edge, mirrored, imaged, of_wall)
            )
    return tuple(sorted(made, key=lambda wall: wall.place))


def _on_one_plane(whole: "Decomposition", group: Sequence[Wall]) -> bool:
    """True if all patches of a group lie on planes, and the broad ones on parallel planes: across a periodic connection
    a wall continues elsewhere."""
    patches = [whole.patches[wall.place] for wall in group]
    broad = [(p, w.normal) for w, p in zip(group, patches, strict=True) if is_broad(whole.blocks[p.block], p)]
    return all(wall.normal is not None for wall in group) and are_parallel(whole, broad)


def are_parallel(whole: "Decomposition", patches: "Sequence[tuple[Patch, np.ndarray | None]]") -> bool:
    """Return whether all patches are plane and have parallel normals, in the same or in opposite directions. `patches`:
    pairs of a patch and its unit normal (dimensions,), None if the patch is not plane. `whole`: the blocks of the
    patches."""
    known = [n for _, n in patches if n is not None]
    turn = max((float(np.linalg.norm(n - (n @ known[0]) * known[0])) for n in known), default=0.0)
    return len(known) == len(patches) and (turn <= FLAT or turn <= max(_uncertainty(whole, p) for p, _ in patches))


def _uncertainty(whole: "Decomposition", patch: "Patch") -> float:
    """Return the angle by which the rounding of coordinates may turn the normal of a patch that lies on a plane."""
    block = whole.blocks[patch.block]
    off = (nodes := face_nodes(block, patch)) - nodes.mean(axis=1, keepdims=True)
    along = np.linalg.svd(off, full_matrices=False)[0][:, : len(nodes) - 1].T @ off
    return ROUNDED * block.rounding / float(np.ptp(along, axis=1).min())


def normal_of(block: Block, patch: "Patch") -> np.ndarray | None:
    """Return the unit normal (dimensions,) of the plane on which a boundary patch of `block` lies; None if the patch is
    not plane, or so narrow that it lies on many planes."""
    return plane_of(face_nodes(block, patch), block.rounding)[0]


def face_nodes(block: Block, patch: "Patch") -> np.ndarray:
    """Return the coordinates of the nodes of a boundary patch of `block`, (dimensions, n), in units of the length scale
    L."""
    dimensions = len(block.active)
    return inward_rows(block, patch.face, patch.range, 1)[0, :dimensions].reshape(dimensions, -1)


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
            if np.abs(off).max() <= max(FLAT * max(block.extents), ROUNDED * block.rounding):
                return replace(wall, normal=other.normal, point=other.point)
    return wall


def is_broad(block: Block, patch: "Patch") -> bool:
    """Return whether a boundary patch has more than one node along each index direction of its face."""
    d = direction(patch.face)
    return all(patch.range[e][1] - patch.range[e][0] > 1 for e in block.active if e != d)


def groups(
    whole: "Decomposition", places: Sequence[int], kind: Callable[[Condition], object] | None = None
) -> list[list[int]]:
    """Group boundary patches that continue each other, within a block or across connections, and whose conditions are
    of one kind. Returns lists of patch numbers. `places`: the numbers of the patches. `kind`: a function of a
    condition; conditions with equal results are of one kind. Without it the conditions must be equal. Conditions that
    differ only in the faces or blocks that they name count as equal, since one condition may be given for each block
    separately. `whole`: the blocks, not divided among ranks."""
    found = {place: [place] for place in places}
    held = {place: (kind or _what_holds)(whole.patches[place].condition) for place in places}
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
    """Return a condition without the places at which it is applied."""
    return type(condition).__name__, condition.model_dump_json(exclude={*Place.model_fields})


def _beyond(whole: "Decomposition", patch: "Patch") -> Iterator[tuple[int, str, np.ndarray]]:
    """Yield the nodes beside those of a patch, along its face: (block, the face there, index triples (3, n))."""
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
    """Return the walls whose ghosts take interpolated values, because their mirror images behind the wall are not
    nodes, as a dictionary from the number of the patch to the wall. `whole`: the blocks, not divided among ranks."""
    return {wall.place: wall for wall in whole.walls if wall.mirrors_places}


def mirroring_planes(whole: "Decomposition") -> set[int]:
    """Return the numbers of the boundary patches of type `symmetry` whose ghosts are mirror images of nodes. `whole`:
    the blocks, not divided among ranks."""
    planes = {n for n, p in enumerate(whole.patches) if p.condition.type == "symmetry"}
    # The walls of grids without such planes are not examined, because every change of tiles makes a decomposition.
    return planes - {*mirrored_places(whole)} if planes else planes


def unrefinable_places(whole: "Decomposition") -> list[int]:
    """Return the numbers of the boundary patches on which no box of finer grid (tile) may lie: walls whose ghosts take
    interpolated values at their mirror images (`mirrored_places`), walls with edges, at which the normal jumps, and
    planes of symmetry behind which the grid is the mirror image of bent lines. `whole`: the blocks, not divided among
    ranks."""
    return [wall.place for wall in whole.walls if wall.mirrors_places or wall.edged or wall.imaged]


def mirrors(whole: "Decomposition", patch: "Patch") -> list[Motion]:
    """Return the reflections that give the coordinates of the ghosts behind `patch`. The list is empty unless the patch
    is a plane of symmetry in which a pole lies (a line to which a block face has collapsed), which meets a no-slip wall
    at an edge, or which bent grid lines meet at right angles. `whole`: the blocks, not divided among ranks."""
    planes = [*_planes_through_poles(whole), *_planes_of_edges(whole), *_planes_of_images(whole)]
    return planes_through(whole, patch, planes)[:1]


def planes_through(whole: "Decomposition", patch: "Patch", planes: Iterable[Motion]) -> list[Motion]:
    """Return those of `planes` in which the nodes of a patch lie."""
    return [plane for plane in planes if _stays(whole.blocks[patch.block], patch.range, plane)]


def images_of_wall(whole: "Decomposition", patch: "Patch", planes: Iterable[Motion]) -> list[Image]:
    """Return the reflections that continue a wall with a wall model behind the planes of symmetry that it meets, each
    with the block face on the plane: pairs (face, reflection). For other boundary conditions the result is empty.
    `whole`: the blocks, not divided among ranks. `patch`: the wall. `planes`: the reflections at planes of symmetry to
    be considered."""
    if patch.condition.type != MODELLED:
        return []
    met = [other for other, _ in met_by(whole, patch) if other.condition.type == "symmetry"]
    return [(other.face, plane) for other in met for plane in planes_through(whole, other, planes)]


def _planes_through_poles(whole: "Decomposition") -> set[Motion]:
    return {c.motion for c in whole.connections if c.over_a_pole and c.rotation is not None}


def _planes_of_edges(whole: "Decomposition") -> list[Motion]:
    """Return the reflections about planes of symmetry at which a no-slip wall and its mirror image make an edge, as at
    the root of a swept wing. Grid lines that continued straight behind the plane would lead into the image of the body,
    or out of the layers before it."""
    found: list[Motion] = []
    for patch in whole.patches:
        block = whole.blocks[patch.block]
        if patch.condition.type != "symmetry" or planes_through(whole, patch, found):
            continue
        if (symmetry := symmetry_of(block, patch)) is None:
            continue
        normal, plane = symmetry
        dimensions = len(normal)
        rows = [
            inward_rows(block, patch.face, common, 3)
            for wall, common in met_by(whole, patch)
            if wall.condition.kernel == FRICTION or wall.condition.type == MODELLED
        ]
        if any(ends_in_edge(r[:, :dimensions].reshape(3, dimensions, -1).transpose(1, 2, 0), normal) for r in rows):
            found.append(plane)
    return found


def _planes_of_images(whole: "Decomposition") -> list[Motion]:
    """Return the reflections about planes of symmetry that grid lines meet at right angles and before which they bend.
    The lines and their mirror images are smooth together, so the flow is that of a grid on both sides of the plane.

    The offset of such a line along the plane is an even function of the number of nodes from the plane, and of the
    length of the line. The line counts as smooth if the slope of one of four polynomials vanishes: through three
    nodes or `LINES` as functions of that number, and through `LINES` nodes as a function of the length. With three
    nodes the slope of a ring of 16 nodes would be 8e-4. The length tells stretched lines best. The fourth polynomial
    has the images of nodes by an inversion, the points d/|d|^2 for the distance d from the first node. It is exact for
    arcs of circles, which become straight lines, with any spacing. Of the inverted point the component normal to the
    plane is an odd function 1/x of the length, and that along the plane is a/x + b + c x^2 + ..."""
    found = []
    for plane in planes_of_symmetry(whole):
        patches = [p for p in whole.patches if p.condition.type == "symmetry" and planes_through(whole, p, [plane])]
        turned = np.array(plane.rotation)
        smooth, bent = True, False
        for patch in patches:
            block, halo = whole.blocks[patch.block], whole.stencil.halo
            count = min(max(halo, LINES) + 1, block.size[direction(patch.face)])
            rows = inward_rows(block, patch.face, patch.range, count)
            lines = rows[1:] - rows[0]
            image = np.einsum("ab,lb...->la...", turned, lines)
            across, along = np.linalg.norm(lines - image, axis=1), lines + image
            length = np.linalg.norm(np.diff(rows, axis=0), axis=1).cumsum(axis=0)
            index = np.broadcast_to(np.arange(1.0, len(lines) + 1).reshape(-1, 1, 1, 1), length.shape)
            with np.errstate(invalid="ignore", divide="ignore"):  # lines in a pole have no length
                slopes = [_slope(along, x) for x in (index[:3], index[:LINES], (length / length[0])[:LINES])]
                inverse = (lines**2).sum(axis=1) / across
                inverse /= inverse[0]
                scale = inverse * across[0] / across
                slopes.append(_slope(along * scale[:, None], inverse[: LINES - 1]))
            slope = np.fmin.reduce(slopes)
            smooth = smooth and bool((slope <= NORMAL * across[0]).all())
            bent = bent or bool((np.linalg.norm(along, axis=1) > NORMAL * across)[:halo].any())
        found += [plane] if bent and smooth else []
    return found


def _slope(offsets: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the magnitude |a| (nk, nj, ni) of the derivative at x = 0 of the vector a x + b x^2 + c x^4 + d x^6 + ...
    with n coefficients through the first n nodes of each grid line. `offsets`: values (n or more, 3, nk, nj, ni) of the
    vector. `x`: positions (n, nk, nj, ni), in the unit of which the slope is given."""
    # The vector over x^2 is a/x and a polynomial of x^2, whose divided difference over all n nodes vanishes.
    gaps = x[:, None] ** 2 - x**2
    gaps[range(len(x)), range(len(x))] = 1
    weights = 1 / gaps.prod(axis=1)
    differences = np.einsum("l...,lc...->c...", weights / x**2, offsets[: len(x)])
    return np.asarray(np.linalg.norm(differences, axis=0) / np.abs((weights / x).sum(axis=0)))


def planes_of_symmetry(whole: "Decomposition") -> list[Motion]:
    """Return the reflections about the planes in which the boundary patches of type `symmetry` lie, one for each plane.
    Patches in no plane, or in more than one, are left out. `whole`: the blocks, not divided among ranks."""
    found: list[Motion] = []
    for patch in whole.patches:
        if patch.condition.type == "symmetry" and not planes_through(whole, patch, found):
            symmetry = symmetry_of(whole.blocks[patch.block], patch)
            found += [] if symmetry is None else [symmetry[1]]
    return found


def symmetry_of(block: Block, patch: "Patch") -> tuple[np.ndarray, Motion] | None:
    """Return the unit normal (dimensions,) of the plane of symmetry `patch`, a boundary patch of `block`, and the
    reflection about it; None if its nodes lie on no plane, or on more than one."""
    normal, point = plane_of(face_nodes(block, patch), block.rounding)
    if normal is None or point is None:
        return None
    return normal, reflection(np.pad(normal, (0, 3 - len(normal))), float(point @ normal))


def edges_at_no_slip_walls(whole: "Decomposition", patch: "Patch") -> list[Range]:
    """Return the half-open index ranges (i, j, k) of the nodes that a boundary patch shares with no-slip walls on other
    faces of the same block. `patch`: nodes of a block face with one boundary condition. `whole`: the decomposition that
    contains the patch. Indexes are those of the block in `whole`; its first node has the index 0."""
    return [common for wall, common in met_by(whole, patch) if wall.condition.kernel == FRICTION]


def met_by(whole: "Decomposition", patch: "Patch") -> "Iterator[tuple[Patch, Range]]":
    """Yield the boundary patches of `whole` on other faces of the same block that have common nodes with `patch`, each
    with the half-open index ranges (i, j, k) of the common nodes."""
    for other in whole.patches:
        common = intersection(patch.range, other.range) if other.block == patch.block else None
        if common is not None and direction(other.face) != direction(patch.face):
            yield other, common


def _stays(block: Block, range_: Range, plane: Motion) -> bool:
    """True if the nodes of a part of a face lie in the plane of a reflection."""
    nodes = np.stack([c[slices(range_)] for c in (block.x, block.y, block.z)])
    return bool(np.abs(plane(nodes) - nodes).max() <= 2 * nearness(block))


def nearness(block: Block) -> float:
    """Return the distance, in units of the length scale L, up to which a node of `block` lies in a plane."""
    return max(TOLERANCE * max(block.extents), ROUNDED * block.rounding)


def inward_rows(block: Block, face: str, range_: Range, count: int) -> np.ndarray:
    """Return the coordinates of face nodes and of the layers of nodes behind them in the block, an array (count, 3, nk,
    nj, ni) with one node in the direction normal to the face. `range_`: half-open index ranges of the nodes on `face`.
    `count`: number of layers, including the face."""
    d, edge = direction(face), range_[direction(face)][0]
    box = [slice(lo, hi) for lo, hi in range_]
    box[d] = slice(edge, edge + count) if side(face) < 0 else slice(edge - count + 1, edge + 1)
    nodes = block.at((box[2], box[1], box[0]))
    rows = np.expand_dims(np.moveaxis(nodes, 3 - d, 0), 4 - d)
    return rows if side(face) < 0 else rows[::-1]


def is_pushed(whole: "Decomposition", patch: "Patch", pushes: Sequence[ArrayLike]) -> bool:
    """Return whether a body force acts across a boundary patch. `pushes`: unit vectors of the force; one of them must
    have a component normal to the patch. The result is False for a patch with only one node along a direction of its
    face, whose normal is not known. `whole`: the blocks, not divided among ranks."""
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
    normal, point = plane_of(rows[0].reshape(dimensions, -1), block.rounding)
    if normal is not None and point is not None:
        if np.tensordot(normal, rows[1] - rows[0], axes=1).mean() < 0:
            normal = -normal
        along = np.tensordot(lines, normal, axes=(1, 0))
    else:
        along = np.abs(np.sum(lines * local_normals(rows[0], d, tangents), axis=1))
    across = np.sqrt(np.maximum(length**2 - along**2, 0) if normal is None else _across(lines, along, normal))
    known = normal is not None or is_broad(block, patch)
    angle = float(np.degrees(np.arctan2(across, np.abs(along)).max())) if known else 0.0
    # walls of revolution are curved, too, except for planes normal to the axis
    bent = normal is None or (whole.axisymmetric and abs(normal[1]) > NORMAL)
    curved = _reflects(whole, patch) and (bent or is_pushed(whole, patch, whole.pushes))
    smooth = degree_of(inward_rows(block, patch.face, patch.range, HIGHEST + 1), halo) == HIGHEST
    return Wall(place, normal, point, angle, curved, smooth)


def _across(lines: np.ndarray, along: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the squares of the distances along a plane, without the round-off of squares that nearly cancel."""
    tangential = lines - along[:, None] * normal.reshape(-1, 1, 1, 1)
    return np.asarray((tangential**2).sum(axis=1))


def plane_of(nodes: np.ndarray, rounding: float = 0.0) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the unit normal (dimensions,) of the plane on which all `nodes` (dimensions, n) lie, and a point of this
    plane. Both are None if the nodes lie on no plane, or on more than one. `rounding`: the rounding error of the
    coordinates, in the same unit."""
    dimensions = len(nodes)
    centre = nodes.mean(axis=1)
    off = nodes - centre[:, None]
    # The singular value decomposition is applied to the nodes themselves: that of their matrix of second moments would
    # have half the digits.
    _, sizes, axes = np.linalg.svd(off.T, full_matrices=False) if off.shape[1] >= dimensions else (0, [0.0], off)
    # a line as wide as its rounding errors lies on many planes
    least = max(FLAT * sizes[0], ROUNDED * rounding * np.sqrt(off.shape[1]))
    if len(sizes) < dimensions or sizes[dimensions - 2] < least or not sizes[0] > 0:
        return None, None
    normal = axes[-1]
    # a normal that is along an axis up to round-off is made exact
    normal = np.where(np.abs(normal) < 1e-14, 0.0, normal)
    normal = normal / np.linalg.norm(normal)
    extent = np.ptp(off, axis=1).max()
    near = max(FLAT * extent, ROUNDED * rounding)
    return (normal, centre) if np.abs(normal @ off).max() <= near else (None, None)


def local_normals(face: np.ndarray, d: int, tangents: Sequence[int]) -> np.ndarray:
    """Return unit normals (dimensions, nk, nj, ni) of a block face at its nodes, by central differences. `face`
    (dimensions, nk, nj, ni): coordinates of the face nodes. `d`: index direction normal to the face. `tangents`: index
    directions along the face. The normals may point to either side."""
    if not tangents:  # of a single grid line
        return np.ones_like(face)
    slopes = []
    for e in tangents:
        axis = 3 - e
        slopes.append(np.gradient(face, axis=axis) if face.shape[axis] > 1 else np.zeros_like(face))
    normal = np.cross(slopes[0], slopes[1], axis=0) if len(slopes) == 2 else np.stack([-slopes[0][1], slopes[0][0]])
    size = np.sqrt((normal**2).sum(axis=0))
    return np.asarray(normal / np.where(size > 0, size, 1))
