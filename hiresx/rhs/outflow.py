"""Non-reflecting outflow: the rate of change of the incoming sound wave at all nodes on `characteristic-outflow` faces.

The rates are set after the inviscid terms, when all ghosts are filled, since they need the neighbours along the face. A
node that belongs to several such faces satisfies the conditions of all of them at once, so the order of faces does not
matter.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, cast

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.boundaries import CharacteristicOutflow, PressureOutflow
from hiresx.decomposition import Decomposition, Patch
from hiresx.decomposition.oblique_walls import mirroring_planes, nearness, normal_of, planes_of_symmetry
from hiresx.decomposition.quadrature import face_weights
from hiresx.device.interface import Backend, Call, Program
from hiresx.device.state import BlockState
from hiresx.grid import Block, Grid
from hiresx.grid.blocks import direction, in_face, intersection, side, slices
from hiresx.grid.connections import Connection
from hiresx.grid.motions import Motion
from hiresx.grid.shared_nodes import coincident_nodes, of_blocks
from hiresx.grid.stored_coordinates import slabs
from hiresx.mpi.communicator import Communicator

# Per patch: what the case gives, then means over its face, then what is held; sums for the means
# (kernels/boundary/outflow.h).
GIVEN, MEANS, SUMS = 3, 11, 19
# Sums that a device takes side by side, per patch, at most, and what is left of them for the means.
THREADS, LANES = 4096, 64
# Of the last of these numbers, where it is not a characteristic outflow.
OF_PRESSURE, OF_MASS_FLUX = 1, 2
# Poinsot & Lele's sigma where a case gives no relaxation, and how much larger it is at a `pressure-outflow`.
SIGMA, STRONGER = 0.05, 10
# A direction that is not normal to the translation of a period, along which the ends of periods are compared.
UPWARDS = np.sqrt([1.0, 2.0, 3.0])


def radius(blocks: Sequence[Block], connections: Sequence[Connection], planes: Sequence[Motion] = ()) -> float:
    """Return the largest distance, in units of the length scale L, of a node of `blocks` from the mean position of all
    nodes. `connections`: those between the blocks, including periodic ones; connections to other blocks are ignored.
    `planes`: the reflections about the planes of symmetry and the rotations of periods. The images of the nodes by
    these motions count, too.

    Of nodes that coincide, also across a periodic connection, only one counts. At periodic connections it is always the
    one at the lower end of the period, or always the one at the upper end, whichever gives the larger distance. The
    result therefore depends neither on index directions nor on the division into blocks."""
    between = [c for c in connections if max(c.block, c.donor) < len(blocks)]
    nodes, first, starts = coincident_nodes([b.size for b in blocks], between)
    height = np.empty(len(nodes))
    for block, lo, hi in zip(blocks, starts, starts[1:], strict=False):
        own = (nodes >= lo) & (nodes < hi)
        k, j, i = np.unravel_index(nodes[own] - lo, block.size[::-1])
        height[own] = UPWARDS @ block.node(i, j, k)
    unused = []
    for order in (np.lexsort((height, first)), np.lexsort((-height, first))):
        unused.append(np.sort(nodes[order[np.diff(first[order], prepend=-1) == 0]]))
    some = unused[:1] if np.array_equal(unused[0], unused[1]) else unused
    return max(_radius(blocks, planes, of_blocks(numbers, starts)) for numbers in some)


def _radius(blocks: Sequence[Block], planes: Sequence[Motion], unused: Sequence[np.ndarray]) -> float:
    """Return `radius` without the nodes `unused`, for each block sorted indexes into its flattened arrays."""

    def nodes_once() -> Iterator[np.ndarray]:
        for block, without in zip(blocks, unused, strict=True):
            first = 0
            for nodes in _nodes_of(block):
                last = first + nodes.shape[1]
                yield np.delete(nodes, without[(without >= first) & (without < last)] - first, axis=1)
                first = last

    total, count = np.zeros(3), 0.0
    near = [2 * nearness(block) for block in blocks]
    for nodes in nodes_once():
        # A node in a plane is its own image.
        share = np.ones(nodes.shape[1])
        for plane in planes:
            share[np.abs(plane(nodes) - nodes).max(axis=0) <= max(near)] /= 2
        total, count = total + (nodes * share).sum(axis=1), count + share.sum()
    centre = total / count
    if planes:  # no such motion moves the centre of the grid with its images
        turned = np.concatenate([np.eye(3) - np.array(plane.rotation) for plane in planes])
        centre += np.linalg.pinv(turned) @ (np.concatenate([plane.translation for plane in planes]) - turned @ centre)
    return max(float(np.linalg.norm(nodes - centre[:, None], axis=0).max(initial=0.0)) for nodes in nodes_once())


def _nodes_of(block: Block) -> Iterator[np.ndarray]:
    """x, y, z of the nodes, (3, n), of a block that is left in its file slab by slab."""
    for nodes in slabs(block.x, block.y, block.z):
        yield np.stack(nodes).reshape(3, -1)


class Outflow:
    """The correction of the rates `r` at the nodes of all outflow patches of this rank. A call of the object makes the
    correction. Before it, `convection()` must compute the means over the faces. Sums stay on the device, also over
    ranks if launches can add them (`sums_of_ranks`, a function like `SignalledMemory.sums`). `join_ranks()` determines
    whether a face lies on several ranks. Both methods are collective.

    `nodes`: for each block with such nodes its state, the nodes and their faces. `given`: the prescribed values of the
    patches, on the device (kernels/outflow_given.h). `any`: whether any rank has such patches. `on_host`: whether a
    face lies on several ranks whose sums are added on the host. `grid`: the grid. `whole`, `cut`: its blocks before and
    after their division among ranks. `states`: the blocks of this rank."""

    def __init__(
        self,
        backend: Backend,
        program: Program,
        comm: Communicator,
        grid: Grid,
        whole: Decomposition,
        cut: Decomposition,
        states: Sequence[BlockState],
        sums_of_ranks: Callable[[Any, np.ndarray, Any], list[Call] | None] | None = None,
    ):
        self._backend, self._comm, self._program, self._sums_of_ranks = backend, comm, program, sums_of_ranks
        places = [n for n, patch in enumerate(whole.patches) if patch.condition.kernel == "outflow"]
        self.any, self.on_host = bool(places), False
        self.nodes: list[tuple[BlockState, np.ndarray, np.ndarray]] = []
        self._between: Callable[[], None] | None = None
        if not places:
            return
        number = {place: n for n, place in enumerate(places)}
        self._faces = np.array(_first_of_face(whole, places), np.int32)
        along = _along_symmetry(whole, places, self._faces)
        even = mirroring_planes(whole)
        # Both are the same however the grid is turned and refined.
        images = planes_of_symmetry(whole) + [c.motion for c in whole.connections if _is_turned(c)]
        firmness = 1 / radius(grid.blocks[: len(whole.grid_blocks)], whole.connections, images)
        default = SIGMA * firmness / 2
        given = np.zeros((len(places), GIVEN + MEANS + 1), states[0].real if states else float)
        for n, place in enumerate(places):
            spec = cast(CharacteristicOutflow | PressureOutflow, whole.patches[place].condition)
            held, usual = spec.pressure, default
            if isinstance(spec, PressureOutflow):
                usual *= STRONGER
                given[n, -1] = OF_PRESSURE
                if held is None:
                    held, given[n, -1] = spec.mass_flux, OF_MASS_FLUX
            given[n, :GIVEN] = held, usual if spec.relaxation is None else spec.relaxation, firmness
        self.given = backend.to_device(given)
        owned = [(state, [p for p in cut.patches if p.block == state.index and p.place in number]) for state in states]
        owned = [(state, patches) for state, patches in owned if patches]
        # The face of every row of sums: of patches, block by block.
        self._rows = self._faces[[number[p.place] for _, patches in owned for p in patches]]
        real, rows = str(given.dtype), len(self._rows)
        threads = _threads(owned)
        partial = backend.zeros((max(rows, 1), SUMS, threads), real)
        self._totals = backend.zeros((max(rows, 1), SUMS, LANES), real)
        rates, sums, row = [], [], 0
        for state, patches in owned:
            fields = state.derivative_strides | {
                "sv": state.variable_stride, "q": state.q, "m": state.metrics, "jacobian": state.jacobian
            }  # fmt: skip
            nodes, faces = _faces_of_nodes(state, [(number[p.place], p) for p in patches])
            self.nodes.append((state, nodes, faces))
            rates.append(
                program.call(
                    "outflow_rates", (len(nodes), 1, 1), n1=len(nodes), nodes=backend.to_device(nodes),
                    faces=backend.to_device(faces), given=self.given, **fields, r=state.r,
                )
            )  # fmt: skip
            own = [_nodes(state, p) for p in patches]
            lists = {
                "ends": np.cumsum([0, *map(len, own)]),
                "sides": [_code(p) for p in patches],
                "nodes": np.concatenate(own),
            }
            on_device = {name: backend.to_device(np.asarray(values, np.int32)) for name, values in lists.items()}
            shares = np.concatenate([_shares(state, p, whole, even) for p in patches])
            of_patches = {"shares": shares, "along": along[[number[p.place] for p in patches]]}
            on_device |= {name: backend.to_device(values.astype(given.dtype)) for name, values in of_patches.items()}
            to, extent = partial[row : row + len(patches)], (threads, len(patches), 1)
            sums.append(program.call("outflow_sums", extent, threads=threads, **on_device, **fields, partial=to))
            row += len(patches)
        self._rates = program.prepare(rates)
        if rows:
            sums.append(
                program.call(
                    "reduce", (LANES, rows * SUMS, 1), count=threads, threads=LANES, how=0, values=partial,
                    result=self._totals,
                )
            )  # fmt: skip
        self._sums = program.prepare(sums)
        self._means = self._mean(program, self._totals, self._rows, LANES)
        # What a face has on other ranks is added on the host.
        self._of_faces = backend.zeros((len(places), SUMS, 1), real)
        self._shared_means = self._mean(program, self._of_faces, np.arange(len(places)), 1)

    def _mean(self, program: Program, sums: Any, faces: np.ndarray, lanes: int) -> Callable[[], None]:
        """The launch that takes the means from `sums` (rows, SUMS, lanes), rows of the given faces."""
        of_rows, of_patches = (self._backend.to_device(np.asarray(f, np.int32)) for f in (faces, self._faces))
        extent = (MEANS, len(self._faces), 1)
        call = program.call(
            "outflow_means", extent, rows=len(faces), threads=lanes, face_of_row=of_rows, face_of_patch=of_patches,
            sums=sums, given=self.given,
        )  # fmt: skip
        return program.prepare([call])

    def join_ranks(self) -> None:
        """Determine whether several ranks share an outflow face, and prepare the sums over these ranks, on the device
        if possible. All ranks must call this."""
        if self.any and self._comm.size > 1:
            mine = np.isin(np.arange(len(self._faces)), self._rows).astype(int)
            self.on_host = shared = bool(self._comm.sum(mine).max() > 1)
            if shared and self._sums_of_ranks is not None:
                calls = self._sums_of_ranks(self._totals, self._rows, self._of_faces)
                if calls is not None:
                    self._between, self.on_host = self._program.prepare(calls), False

    def convection(self) -> None:
        """Compute the means of the flow over every outflow face from the present state, which a later call of this
        object uses. All ranks must call this if ranks share a face."""
        self._sums()
        if self._between is not None:
            self._between()
            self._shared_means()
            return
        if not self.on_host:
            self._means()
            return
        total = np.zeros((len(self._faces), SUMS))
        if len(self._rows):
            np.add.at(total, self._rows, self._backend.to_host(self._totals).astype(float).sum(axis=2))
        total = self._comm.sum(total)[..., None].astype(self._of_faces.dtype)
        self._backend.copy(self._of_faces, self._backend.to_device(total))
        self._shared_means()

    def __call__(self) -> None:
        self._rates()


def _threads(owned: Sequence[tuple[BlockState, Sequence[Patch]]]) -> int:
    """Sums taken side by side: one per node of the largest patch, in whole multiples of `LANES`. More, up to `THREADS`,
    would add zeros and leave every sum as it is."""
    largest = max((math.prod(hi - lo for lo, hi in p.range) for _, patches in owned for p in patches), default=1)
    return min(THREADS, -(-largest // LANES) * LANES)


def _first_of_face(whole: Decomposition, places: Sequence[int]) -> list[int]:
    """Per outflow patch the number of the first one of its face: where a face goes on from block to block, through a
    connection that it crosses, it is one, so that nothing depends on how a grid is cut into blocks."""
    first = list(range(len(places)))
    patches = [whole.patches[place] for place in places]
    for c in whole.connections:
        d = direction(c.face)
        for a, own in enumerate(patches):
            rim = intersection(own.range, c.range) if own.block == c.block and direction(own.face) != d else None
            if rim is None:
                continue
            corners = np.array([[lo, hi - 1] for lo, hi in rim])
            corners[d] += side(c.face)  # the first ghosts
            there = c.donors(corners)
            for b, other in enumerate(patches):
                if other.block == c.donor and all(
                    min(ends) >= lo and max(ends) < hi for ends, (lo, hi) in zip(there, other.range, strict=True)
                ):
                    low, high = sorted((first[a], first[b]))
                    first = [low if n == high else n for n in first]
    return first


def _along_symmetry(whole: Decomposition, places: Sequence[int], faces: np.ndarray) -> np.ndarray:
    """Return for each outflow patch the matrix (3, 3) that removes from a velocity its components normal to the planes
    of symmetry that the face of the patch meets, and to the axes of its rotational periods. The mean over the face and
    its images has no such components. `faces`: the result of `_first_of_face`."""
    normals: list[list[np.ndarray]] = [[np.zeros(3)] for _ in places]
    mirrors = [patch for patch in whole.patches if patch.condition.type == "symmetry"]
    for place, first in zip(places, faces, strict=True):
        patch = whole.patches[place]
        for other in mirrors:
            if other.block == patch.block and intersection(other.range, patch.range) is not None:
                normal = normal_of(whole.blocks[other.block], other)
                normals[first] += [] if normal is None else [np.pad(normal, (0, 3 - len(normal)))]
        for c in whole.connections:
            if _is_turned(c) and c.block == patch.block and intersection(c.range, patch.range) is not None:
                normals[first] += [*(np.eye(3) - np.array(c.rotation))]
    return np.array([np.eye(3) - np.linalg.pinv(normals[first]) @ normals[first] for first in faces])


def _is_turned(connection: Connection) -> bool:
    """Whether a connection is a rotational period."""
    return connection.rotation is not None and not connection.over_a_pole


def _code(patch: Patch) -> int:
    """2 d + (0: first, 1: last node) of the face, as the kernels take it."""
    return 2 * direction(patch.face) + (side(patch.face) > 0)


def _nodes(state: BlockState, patch: Patch) -> np.ndarray:
    """Indexes of the patch's nodes in the padded arrays."""
    i, j, k = (np.arange(lo, hi) * stride for (lo, hi), stride in zip(patch.range, state.strides, strict=True))
    found: np.ndarray = (state.origin + k[:, None, None] + j[:, None] + i).ravel().astype(np.int32)
    return found


def _shares(state: BlockState, patch: Patch, whole: Decomposition, even: Collection[int]) -> np.ndarray:
    """Quadrature weights of `_nodes` in integrals over the face, times the radius in axisymmetric flow. `even`: the
    patches in planes of symmetry behind which the grid is the mirror image."""
    d, first = direction(patch.face), state.part.first
    range_ = triple((lo + m, hi + m) for (lo, hi), m in zip(patch.range, first, strict=True))
    weights = face_weights(whole, state.part.whole, patch.face, kept=True, even=even)[in_face(patch.face, range_)]
    shares: np.ndarray = np.expand_dims(weights, 2 - d)
    if whole.axisymmetric:
        shares = shares * np.abs(whole.blocks[state.part.whole].y[slices(range_)])
    return shares.ravel()


def _faces_of_nodes(state: BlockState, patches: Sequence[tuple[int, Patch]]) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of all patches once each, (n,), and 8 x number + face of up to three patches each lies on, (3, n),
    -1 for none. `patches`: (number, patch)."""
    own = [_nodes(state, p) for _, p in patches]
    nodes = np.unique(np.concatenate(own))
    faces = np.full((3, len(nodes)), -1, np.int32)
    for (number, patch), mine in zip(patches, own, strict=True):
        at = np.searchsorted(nodes, mine)
        free = (faces[:, at] < 0).argmax(axis=0)
        faces[free, at] = 8 * number + _code(patch)
    return nodes, faces
