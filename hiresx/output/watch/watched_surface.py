"""The flow at nodes on faces of blocks: fluxes of mass, momentum and energy, pressure, friction and heat. The device
computes them (kernels/face_flow.h)."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hiresx.decomposition import Decomposition, quadrature
from hiresx.device.interface import Call, Calls
from hiresx.equations.stencil import CENTRAL_DIFFERENCE, DIFFERENCE_NODES, DIFFERENCE_REACH, ONE_SIDED_DIFFERENCES
from hiresx.grid.blocks import FACES, Range, direction, directions_along, face_range, in_face, intersection, side
from hiresx.output.watch.columns import circumference, off_poles
from hiresx.rhs.face_condition import FaceCondition
from hiresx.rhs.modelled_wall import ModelledWall
from hiresx.rhs.no_slip import NoSlip
from hiresx.solver import Solver

_Wall = TypeVar("_Wall", bound=FaceCondition)

# One-sided derivative at the face from the node on it and the four nodes behind, of fourth order.
_INWARD = np.array([-25.0, 48.0, -36.0, 16.0, -3.0]) / 12
# Sixth-order derivatives from seven nodes: at the middle one, and at the first ones, for the end of a line.
_CENTRAL = np.array(CENTRAL_DIFFERENCE)
_ONE_SIDED = np.array(ONE_SIDED_DIFFERENCES) / 60
# Numbers of a node in kernels/face_flow.h, and the positions of friction and heat among them.
_FLOW_ROWS, _FRICTION, _HEAT = 10, slice(5, 8), 8
# Number of nodes whose fluxes are summed together on the device.
_CHUNK = 64


@dataclass(frozen=True)
class FaceNodes:
    """Nodes on a face of a whole block that belong to `group`, with their quadrature weights: [k, j, i] without the
    direction of the face, 0 for other nodes. `mirror`: whether the face is a slip wall or plane of symmetry. `areas`
    (3, ...): outward area vectors of the nodes. For nodes whose value is nan, and for all nodes if it is None, the area
    vectors follow from the metrics of the grid. `key`: identifies nodes and weights as long as tiles of refinement
    change, for nodes at which no gradients are needed; None if they are evaluated again after each change."""

    block: int
    face: str
    weights: np.ndarray
    group: int
    mirror: bool = False
    areas: np.ndarray | None = None
    key: Hashable = None


@dataclass(frozen=True)
class FaceFlow:
    """The flow at the nodes of a face, n of them, in the scales of the case.

    - `p` (n,): the pressure.
    - `temperature` (n,): the temperature of the gas; at a modelled wall, where the velocity of the nodes is not zero,
      that of the wall.
    - `mach` (n,): the Mach number of the velocity component out of the face.
    - `push` (3, n): the outward normal times the node's area; times the pressure it is the pressure force.
    - `friction` (3, n): the friction force on the wall, for the node's area.
    - `heat` (n,): the heat flow into the wall, for the node's area.
    """

    p: np.ndarray
    temperature: np.ndarray
    mach: np.ndarray
    push: np.ndarray
    friction: np.ndarray
    heat: np.ndarray


class NodeContributions(NamedTuple):
    """Contributions of single nodes of this rank to results that are sums over nodes. `states` (n,): for each node the
    index in `solver.states` of the box that contains it. `places` (n,): its flat index in the arrays of this box with
    ghosts. `values`: for each result by name, the contributions (n,)."""

    states: np.ndarray
    places: np.ndarray
    values: dict[str, np.ndarray]


class WatchedSurface:
    """The nodes in `faces` that this rank computes, and the flow at them. Where a block is divided between ranks the
    gradients use ghost nodes, so that each rank needs only the values that it has. If `viscous` is false, friction and
    heat flux are left out. `groups`: the number of groups of faces, for which sums are computed separately. The
    attribute `chunks` is the number of sets of up to 64 nodes over which the device computes sums."""

    def __init__(self, solver: Solver, faces: list[FaceNodes], groups: int, viscous: bool = True):
        self._solver = solver
        self._case = solver.case
        self._viscous = viscous and solver.configuration.viscous
        blocks = solver.decomposition.blocks
        pieces = []
        for n, state in enumerate(solver.states):
            for nodes in (nodes for nodes in faces if nodes.block == state.part.whole):
                if box := intersection(state.part.box, face_range(nodes.face, blocks[nodes.block].size)):
                    make = partial(_Piece, solver, n, nodes, box, self._viscous)
                    piece = make() if nodes.key is None else solver.kept(("piece", nodes.key, box), (state,), make)
                    piece.state = n
                    pieces += [piece] if piece.n else []
        # the nodes of each part are consecutive for its kernel, and among these the nodes of each group for their sums
        pieces.sort(key=lambda piece: (piece.state, piece.group))
        self.groups = groups
        self.n, self.chunks = sum(piece.n for piece in pieces), 0
        # for each node, the part and the position in its padded arrays
        self.states = self.places = np.empty(0, np.int64)
        # the positions of the next nodes inside, if gradients are needed
        self.inner = np.empty(0, np.int64)
        # for each node the outward normal times its share of the face, and whether neither shear nor heat passes
        # through it
        self.push, self.mirror = np.empty((3, 0)), np.empty(0, bool)
        # for each node the area of its share, negative for a share that is subtracted, and y
        self.sizes = self.radii = np.empty(0)
        if not self.n:
            return
        of = (solver.states[piece.state] for piece in pieces)
        keys = [piece.key for piece in pieces]
        join = partial(_Nodes, solver, pieces)
        # While tiles change, nodes of blocks that stay are joined once.
        joined = join() if None in keys else solver.kept(("joined", *keys), tuple(dict.fromkeys(of)), join)
        counts = [piece.n for piece in pieces]
        group = np.repeat([piece.group for piece in pieces], counts)
        self.states = np.repeat([piece.state for piece in pieces], counts)
        self._first = np.flatnonzero(np.diff(group, prepend=-1) | np.diff(self.states, prepend=-1))
        self._group = group[self._first]
        self.push, self.radii, self.mirror, self.sizes = joined.push, joined.radii, joined.mirror, joined.sizes
        self.places = joined.places[0].copy()
        face = np.repeat([FACES.index(piece.face) for piece in pieces], counts)
        self._modelled = list(_of_walls(ModelledWall, solver, self.states, self.places, face))
        self._no_slip = list(_of_walls(NoSlip, solver, self.states, self.places, face))
        if self._viscous:
            self.inner = joined.places[1].copy()
        self._prepare(joined, pieces)

    def _prepare(self, joined: "_Nodes", pieces: list["_Piece"]) -> None:
        """Prepare the launches that compute the flow at all nodes, and that sum up the fluxes."""
        solver, put, n = self._solver, self._solver.backend.to_device, self.n
        self._flow = solver.backend.zeros((_FLOW_ROWS, n), solver.configuration.storage.wide)
        reynolds = self._case.gas.reynolds
        common: dict[str, Any] = {
            **joined.on_device, "count": n, "flow": self._flow, "one_sided": put(_INWARD),
            "viscous": int(self._viscous), "tangents": 0, "factors": None, "slopes": None,
            "inverse_reynolds": 0.0 if reynolds is None else 1 / reynolds,
        }  # fmt: skip
        if self._viscous:
            for name in ("factors", "slopes"):
                common[name] = put(np.concatenate([getattr(piece, name) for piece in pieces], axis=-1))
            common["tangents"] = len(common["factors"])
        calls: list[Call] = []
        for p in sorted({piece.state for piece in pieces}):
            state, (first, end) = solver.states[p], np.searchsorted(self.states, (p, p + 1))
            own = {"q": state.q, "sv": state.variable_stride, "start": int(first), **state.eddy_arguments}
            calls.append(solver.program.call("face_flow", (int(end - first), 1, 1), **common, **own))
        self.flow_calls: list[Call | list[Call]] = [calls, *self._wall_calls(common)]
        self._compute = solver.program.prepare(self.flow_calls)
        ends = [*self._first[1:], n]
        begin = [at for first, end in zip(self._first, ends, strict=True) for at in range(first, end, _CHUNK)]
        self.chunks = len(begin)
        self._group_of_chunk = self._group[np.searchsorted(self._first, begin, side="right") - 1]
        self._summed = {
            "begin": put(np.array([*begin, n], np.int32)), "chunks": len(begin), "count": n,
            "area": joined.on_device["area"], "flow": self._flow,
        }  # fmt: skip

    def _wall_calls(self, common: dict[str, Any]) -> list[Call]:
        """The launches that put in the velocity, the friction and the heat that walls know. `common`: arguments of
        `face_flow`."""
        calls: list[Call] = []
        put, sizes = self._solver.backend.to_device, self._solver.backend.to_device(self.sizes)
        rest = all(wall.rests for wall in self._solver.conditions if isinstance(wall, NoSlip))
        for one, nodes, mine in () if rest else self._no_slip:
            if (met := one.meets[nodes]).any():
                which = {"mine": put(mine[met].astype(np.int32)), "of_wall": put(nodes[met].astype(np.int32))}
                given = one.own_velocity | {key: common[key] for key in ("count", "places", "flow")}
                calls.append(self._solver.program.call("face_velocity", (int(met.sum()), 1, 1), **given, **which))
        # at walls without a given temperature the scheme sets the heat in the viscous flux, and computes no derivative
        # of temperature
        heated = [found for found in self._no_slip if not found[0].holds]
        for wall, nodes, mine in (*self._modelled, *heated) if self._viscous else ():
            own: dict[str, Any] = {"modelled": None, "heat": None} | dict.fromkeys("uvw", 0.0)
            if isinstance(wall, ModelledWall):
                calls += wall.calls("model_flow")
                own |= {"modelled": wall.modelled, **dict(zip("uvw", map(float, wall.velocity), strict=True))}
            elif isinstance(wall, NoSlip):
                own["heat"] = wall.heat
            calls.append(
                self._solver.program.call(
                    "face_of_wall", (len(mine), 1, 1), count=common["count"], own=len(wall.places()), sizes=sizes,
                    flow=common["flow"], mine=put(mine.astype(np.int32)), of_wall=put(nodes.astype(np.int32)), **own,
                )
            )  # fmt: skip
        return calls

    def sum_calls(self, kernel: str, numbers: Any, **own: Any) -> Calls:
        """Return the kernel launches that compute the flow at all nodes and the sums of quantities over chunks, that
        is, over up to 64 successive nodes of one group. `kernel`: name of the kernel that computes the sums. `numbers`
        (rows * chunks,): the device array for the sums, where `rows` is the number of quantities that the kernel sums
        and `chunks` is the attribute of this surface. The sums of a quantity are consecutive. `own`: further arguments
        of the kernel."""
        if not self.n:
            return []
        sums = self._solver.program.call(kernel, (self.chunks, 1, 1), **self._summed, **own, partial=numbers)
        return [*self.flow_calls, sums]

    def by_group(self, numbers: np.ndarray, rows: int) -> np.ndarray:
        """Return the sums of `rows` quantities over the nodes of this rank in each group of faces, an array (groups,
        rows). `numbers` (rows * chunks,): a host copy of the sums over chunks of nodes that the launches of `sum_calls`
        have computed."""
        found = np.zeros((self.groups, rows))
        if self.n:
            np.add.at(found, self._group_of_chunk, numbers.reshape(rows, self.chunks).T)
        return found

    @property
    def ghosts(self) -> bool:
        """True if the computation of the flow at the nodes needs the halos of the state, for gradients."""
        return self._viscous

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of m quantities over the nodes of this rank in each group of faces, an array (groups, m).
        `values` (m, n): the quantities at the n nodes."""
        found = np.zeros((self.groups, len(values)))
        if self.n:
            np.add.at(found, self._group, np.add.reduceat(values, self._first, axis=1).T)
        return found

    def areas(self) -> np.ndarray:
        """Return the area of this rank's nodes in each group of faces, an array (groups,) in units of L^2 with the
        length scale L. In plane flow it is per unit length, and in one dimension per unit area."""
        return self.sums(self.sizes[None])[:, 0]

    def nodes(self, places: np.ndarray) -> np.ndarray:
        """Return the block and the indexes i, j, k of nodes on or near the surface, such as the neighbours of its
        nodes, an array (4, n). `places` (n,): for each node its flat index in the arrays with ghosts of the box of
        nodes that contains the surface node with the same number. n is the number of surface nodes of this rank."""
        found = np.empty((4, self.n), np.int64)
        for n, state in enumerate(self._solver.states):
            here = self.states == n
            ghosts = np.unravel_index(state.origin, state.shape)
            own = np.stack(np.unravel_index(places[here], state.shape)) - np.reshape(ghosts, (3, 1))
            found[0, here], found[1:, here] = state.part.whole, own[::-1] + np.reshape(state.first, (3, 1))
        return found

    def coordinates(self, places: np.ndarray) -> np.ndarray:
        """Return the coordinates x, y, z (3, n), in units of the length scale L, of the nodes on or near the surface
        that the method `nodes` returns for the same `places` (n,)."""
        found, nodes = np.empty((3, self.n)), self.nodes(places)
        for b in np.unique(nodes[0]):
            here, block = nodes[0] == b, self._solver.decomposition.blocks[b]
            found[:, here] = block.node(*nodes[1:, here])
        return found

    def measure(self) -> FaceFlow:
        """Compute the flow at this rank's nodes of the surface for the current state, and return it. In viscous flow it
        first waits for the halo exchange."""
        if self.n:
            if self._viscous:
                self._solver.settle()
            self._compute()
        return self.last()

    def last(self) -> FaceFlow:
        """Return the flow at this rank's nodes of the surface that `measure` or a sample has computed last."""
        if not self.n:
            return FaceFlow(*(np.empty(shape) for shape in ((0,), (0,), (0,), (3, 0), (3, 0), (0,))))
        flow = self._solver.backend.to_host(self._flow)
        rho, velocity, p = flow[0], flow[1:4], flow[4]
        temperature = self._case.gas.gamma * p / rho
        area, square = self.push, (self.push * self.push).sum(axis=0)
        # a node on the axis has no area, so that all fluxes are zero
        mach = (area * velocity).sum(axis=0) / np.sqrt(np.where(square > 0, square, 1.0) * temperature)
        for wall, _, mine in self._modelled:
            temperature[mine] = wall.temperature(temperature[mine], velocity[:, mine])
        return FaceFlow(p, temperature, mach, area, flow[_FRICTION], flow[_HEAT])


class _Piece:
    """The n nodes of `nodes` in the `box` of one part. `state`: the number of the part. `places` (rows, n): the indexes
    into the padded array. Two further arrays are for gradients. `factors` (tangents, nodes, n): the weights of the
    derivatives along the face. `slopes` (1 + tangents, 3, n): the factors of the derivatives inwards and along the face
    in the derivatives with respect to x, y, z."""

    state: int

    def __init__(self, solver: Solver, n: int, nodes: FaceNodes, box: Range, viscous: bool):
        self.key = None if nodes.key is None else (nodes.key, box)
        self.face, self.group, self.mirror = nodes.face, nodes.group, nodes.mirror
        state, block = solver.states[n], solver.decomposition.blocks[nodes.block]
        d = direction(nodes.face)
        across = [e for e in (2, 1, 0) if e != d]
        here = tuple(slice(*box[e]) for e in across)
        weights = nodes.weights[here]
        chosen = np.argwhere(weights != 0)
        self.n = len(chosen)
        if not self.n:
            return
        # in the whole block, then in the part
        index = np.empty((3, self.n), dtype=np.int64)
        index[d] = box[d][0]
        for e, found in zip(across, chosen.T, strict=True):
            index[e] = box[e][0] + found
        own = index - np.reshape(state.first, (3, 1))
        strides = state.strides
        first = state.origin + np.array(strides) @ own
        i, j, k = own
        around = (slice(None), *(slice(int(m.min()), int(m.max()) + 1) for m in (k, j, i)))
        within = (slice(None), *(m - m.min() for m in (k, j, i)))

        def at(array: Any) -> np.ndarray:
            """Values (variables, n) of a device array at the nodes; only their box is copied."""
            return solver.backend.to_host(state.interior(array)[around]).astype(np.float64)[within]

        outward = side(nodes.face)
        radius = self.radius = block.y[k + state.first[2], j + state.first[1], i + state.first[0]]
        shares = weights[tuple(chosen.T)] * circumference(solver.case, radius) * off_poles(solver, state)[k, j, i]
        # A GPU copies the areas of all pieces before the host waits for the first.
        self._copied = solver.backend.fetch(state.interior(state.areas[d])[around])
        self._within, self._shares = within, outward * shares
        self._given = None if nodes.areas is None else nodes.areas[:, *here][:, *chosen.T] * shares
        self.signs = np.sign(shares)
        # 1/y of axisymmetric flow; zero on the axis, where there is no area
        curved = np.where(radius > 0, radius, np.inf) if solver.case.axisymmetric else np.full(self.n, np.inf)
        self.curvature = 1 / curved
        places = [first]
        if viscous:
            metrics = at(state.metrics) * at(state.jacobian[None])
            places += [first - outward * row * strides[d] for row in range(1, len(_INWARD))]
            slopes, factors = [-outward * metrics[3 * d : 3 * d + 3]], []
            for e in across:
                if block.size[e] > 1:
                    start, found = _stencils(solver.decomposition, nodes.block, index, e)
                    places += [first + (start + row) * strides[e] for row in range(DIFFERENCE_NODES)]
                    slopes.append(metrics[3 * e : 3 * e + 3])
                    factors.append(found)
            self.slopes = np.stack(slopes)
            self.factors = np.stack(factors) if factors else np.zeros((0, DIFFERENCE_NODES, self.n))
        self.places = np.stack(places)

    @cached_property
    def area(self) -> np.ndarray:
        """The outward area vectors (3, n)."""
        area = self._copied().astype(np.float64)[self._within] * self._shares
        del self._copied  # frees the memory of the host
        return area if self._given is None else np.where(np.isfinite(self._given), self._given, area)


class _Nodes:
    """The nodes of `pieces`, one piece after the other. `places` (rows, n): the node, the four behind it, then seven
    along each tangent. `on_device`: the arguments of the kernels that do not depend on the solver."""

    def __init__(self, solver: Solver, pieces: Sequence[_Piece]):
        put = solver.backend.to_device
        self.push = np.concatenate([piece.area for piece in pieces], axis=1)
        self.radii = np.concatenate([piece.radius for piece in pieces])
        self.mirror = np.concatenate([np.full(piece.n, piece.mirror) for piece in pieces])
        signs = np.concatenate([piece.signs for piece in pieces])
        self.sizes = signs * np.sqrt(np.einsum("dn,dn->n", self.push, self.push))
        self.places = np.concatenate([piece.places for piece in pieces], axis=1)
        self.on_device = {
            "places": put(self.places.astype(np.int32)), "area": put(self.push),
            "mirror": put(self.mirror.astype(np.int32)),
            "curvature": put(np.concatenate([piece.curvature for piece in pieces])),
        }  # fmt: skip


def _of_walls(
    kind: type[_Wall], solver: Solver, states: np.ndarray, places: np.ndarray, faces: np.ndarray
) -> Iterator[tuple[_Wall, np.ndarray, np.ndarray]]:
    """The conditions of this kind on the faces, numbers in `FACES` (n,), of nodes at `places` (n,) of the padded arrays
    of `states`: which of their nodes are among these, and where."""
    for condition in solver.conditions:
        if not isinstance(condition, kind):
            continue
        (part,) = (n for n, state in enumerate(solver.states) if state is condition.state)
        here = np.flatnonzero((states == part) & (faces == FACES.index(condition.patch.face)))
        own = condition.places()
        order = np.argsort(own)
        nodes = order[np.minimum(np.searchsorted(own, places[here], sorter=order), len(own) - 1)]
        found = own[nodes] == places[here]  # a node with several entries in the quadrature occurs as many times
        if found.any():
            yield condition, nodes[found], here[found]


def _stencils(decomposition: Decomposition, b: int, nodes: np.ndarray, e: int) -> tuple[np.ndarray, np.ndarray]:
    """First of the nodes along direction `e`, relative to each of the nodes (n,), and their factors (nodes, n):
    central where the grid goes on, else one-sided."""
    n = decomposition.blocks[b].size[e]
    index = nodes[e]
    start, factors = np.full(len(index), -DIFFERENCE_REACH), np.repeat(_CENTRAL[:, None], len(index), axis=1)
    others = tuple(nodes[a] for a in (2, 1, 0) if a != e)
    for face, distance in ((FACES[2 * e], index), (FACES[2 * e + 1], n - 1 - index)):
        closed = quadrature.ends(decomposition, b, face)[others] == quadrature.PHYSICAL
        for m in range(DIFFERENCE_REACH):
            here = closed & (distance == m)
            if side(face) < 0:
                start[here], factors[:, here] = -m, _ONE_SIDED[m][:, None]
            else:
                start[here], factors[:, here] = m + 1 - DIFFERENCE_NODES, -_ONE_SIDED[m][::-1, None]
    return start, factors


def mask(decomposition: Decomposition, b: int, face: str, range_: Range) -> np.ndarray:
    """Return a mask of the nodes on one face of a block that lie in a range, an array `[k, j, i]` without the direction
    of the face. `b`: the number of the block. `range_`: half-open ranges of i, j and k."""
    inside = np.zeros([decomposition.blocks[b].size[e] for e in directions_along(face)], dtype=bool)
    inside[in_face(face, range_)] = True
    return inside
