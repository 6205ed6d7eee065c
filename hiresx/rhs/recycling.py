"""Inflow with a given mean flow and the fluctuations of a plane downstream."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case import Case
from hiresx.case.boundaries import ModelledWall, NoSlipWall
from hiresx.case.boundaries import RecyclingInflow as Spec
from hiresx.case.functions import evaluate_profile
from hiresx.decomposition import Decomposition, Patch
from hiresx.decomposition.oblique_walls import inward_rows
from hiresx.device.interface import Backend
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED
from hiresx.equations.gas import conservative, primitive
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, FACES, direction, intersection, shift_range, side, slices
from hiresx.grid.orientation import layout_of
from hiresx.mpi.communicator import Communicator
from hiresx.rhs.face_condition import FaceCondition, GivenNodes, place_of

# Conditions of walls on which a boundary layer grows.
WALLS = (NoSlipWall, ModelledWall)
# Least number of nodes across the span for a meaningful mean.
LEAST_SPAN = 8
# Fraction of a step by which steps along the span may differ.
EVEN = 0.01
# Temperatures of the face are limited to the range between this fraction of the mean and its inverse.
LEAST_SHARE = 0.5
# Weights of the inner and the outer layer: Lund, Wu & Squires (1998), eq. (17).
_STEEP, _MIDDLE = 4.0, 0.2


class Plane:
    """The face of a recycling inflow, `patch` of a block of the grid, and the plane from which it takes fluctuations.
    `range`: the half-open index ranges (i, j, k) of the plane in the block. `length`: its distance from the face.
    `mean`: the function of the case that returns rho, u, v, w, p at places x, y, z. `whole`: the blocks of the grid,
    not divided. Arrays are (..., layer, span): `span` is the direction of the span, `layer` the other direction of the
    face, along which the boundary layer grows in thickness.

    Raises HiresxError, with the name of the face, if the span, the wall or the distance do not suit the block.
    """

    def __init__(self, whole: Decomposition, patch: Patch, mean: Callable[..., Any], gamma: float):
        spec, block = cast(Spec, patch.condition), whole.blocks[patch.block]
        self.patch, self._spec, self._gamma = patch, spec, gamma
        self._who = place_of(patch, block.name)
        d, span = direction(patch.face), AXES.index(spec.span)
        self.span, self._axis = span, d
        if span == d:
            raise HiresxError(f'{self._who}: span = "{spec.span}" is normal to the face', "name one along the face")
        layer = 3 - span - d
        lo, hi = patch.range[span]
        if (lo, hi) != (0, block.size[span]) or hi < LEAST_SPAN:
            raise HiresxError(
                f"{self._who}: it has {hi - lo} of {block.size[span]} nodes along its span, {spec.span}",
                "fluctuations are departures from the mean along the span: take all nodes of a block, "
                f"{LEAST_SPAN} or more",
            )
        low = FACES[2 * span]
        closing = [c for c in whole.connections if c.block == c.donor == patch.block and c.face == low]
        if not closing:
            raise HiresxError(
                f"{self._who}: the block is not periodic along the span, {spec.span}",
                f'join {low} and {FACES[2 * span + 1]} of the block, by type = "periodic"',
            )
        # The last node of a line is the image of the first one, if the block contains both.
        self._twice = int(layout_of(closing[0], whole.blocks) == "shared")
        inward, steps = -side(patch.face), block.size[d]
        corner = triple((first, first + 1) for first, _ in patch.range)
        first = inward_rows(block, patch.face, corner, steps).reshape(steps, 3)
        length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(first, axis=0), axis=1))])
        at = int(np.abs(length - spec.distance).argmin())
        if not 0 < at < steps - 1 or spec.distance > length[-1]:
            raise HiresxError(
                f"{self._who}: distance = {spec.distance:g} leads to no node inside the block, which is {length[-1]:g} "
                "long",
                "the plane lies in the block of the face, between its first and its last nodes",
            )
        self.length = float(length[at])  # from the face to the plane, along the first grid line
        place = patch.range[d][0] + inward * at
        self.range = triple((place, place + 1) if e == d else patch.range[e] for e in range(3))
        nodes, beyond = (inward_rows(block, patch.face, box, 1)[0] for box in (patch.range, self.range))
        values = [np.broadcast_to(np.asarray(v, float), nodes[0].shape) for v in mean(*nodes)]
        self._mean = self.arrange(np.stack(values))
        face, plane = self.arrange(nodes), self.arrange(beyond)
        turned = any(c.rotation is not None for c in closing)
        if turned or not (_even(face) and _even(plane)):
            raise HiresxError(
                f"{self._who}: grid lines along the span, {spec.span}, are not straight, or not evenly divided",
                "fluctuations are departures from the mean along the span, in x, y and z, and are shifted by nodes: "
                "take a grid that is extruded along it",
            )
        self._shift = round(spec.shift * (hi - lo - self._twice))
        # A row on a face of the block gets its values from the condition of that face, which comes later.
        self._still = [
            end
            for end, face in ((0, FACES[2 * layer]), (-1, FACES[2 * layer + 1]))
            if patch.range[layer][end] == (0, block.size[layer])[end]
            and not any(
                c.block == patch.block and c.face == face and intersection(c.range, patch.range)
                for c in whole.connections
            )
        ]
        self._rows = self._rescaling(whole, face, plane, layer)

    def arrange(self, values: np.ndarray) -> np.ndarray:
        """Return `values` at the nodes of a face as an array (..., layer, span): the last axis runs along the span, the
        axis before it across the boundary layer. The result is a view. `values` (..., nk, nj, ni) has one node in the
        direction normal to the face."""
        flat = np.moveaxis(values, -1 - self._axis, 0)[0]
        # the direction with the higher number comes first
        return flat if self.span < 3 - self.span - self._axis else np.swapaxes(flat, -1, -2)

    def _rescaling(
        self, whole: Decomposition, face: np.ndarray, plane: np.ndarray, layer: int
    ) -> "list[_WeightedRows]":
        """Return the weighted rows of the plane for the rows of the face, for the inner and for the outer part of the
        layer. The result is empty without a wall."""
        spec = self._spec
        if spec.wall is None:
            return []
        if direction(spec.wall) != layer:
            raise HiresxError(
                f'{self._who}: wall = "{spec.wall}" is not a face across {AXES[layer]}',
                f'take "{FACES[2 * layer]}" or "{FACES[2 * layer + 1]}", or another span',
            )
        if not any(
            patch.block == self.patch.block and patch.face == spec.wall and isinstance(patch.condition, WALLS)
            for patch in whole.patches
        ):
            raise HiresxError(
                f"{self._who}: {spec.wall} of the block, its wall, is no wall with friction",
                "name the face below the boundary layer, a no-slip-wall or a modelled-wall",
            )
        assert spec.thickness is not None
        wall = 0 if side(spec.wall) < 0 else -1
        here, there = (np.linalg.norm(c - c[:, [wall]], axis=0) for c in (face, plane))
        if spec.thickness > (height := here.max()):
            raise HiresxError(
                f"{self._who}: thickness = {spec.thickness:g} is more than the {height:g} that the face is high",
                "thickness is that of the boundary layer at the face, which lies in the block",
            )
        eta = here / spec.thickness
        bend = _STEEP * (eta - _MIDDLE) / ((1 - 2 * _MIDDLE) * eta + _MIDDLE)
        outer = np.minimum(0.5 * (1 + np.tanh(bend) / np.tanh(_STEEP)), 1.0)
        return [_WeightedRows(here * self.friction, there, 1 - outer), _WeightedRows(here * spec.growth, there, outer)]

    @property
    def friction(self) -> float:
        """Friction velocity at the inflow divided by the friction velocity at the recycling plane."""
        return self._spec.friction or self._spec.growth**0.125

    def target(self, q: np.ndarray) -> np.ndarray:
        """Return the conservative variables (5, layer, span) that the inflow face gets: the mean flow plus the shifted
        and rescaled fluctuations of the recycling plane. `q` (5, layer, span): the conservative variables on that
        plane."""
        found = primitive(self._gamma, q)
        rho, u, v, w, p = self._mean
        temperature = p / rho
        values = np.stack([found["u"], found["v"], found["w"], found["p"] / found["rho"]])
        once = values[..., : values.shape[-1] - self._twice]
        change = once - once.mean(axis=-1, keepdims=True)
        for row in self._still:
            change[:, row] = 0.0
        change = np.roll(self._spec.amplitude * change, self._shift, axis=-1)
        change = np.concatenate([change, change[..., : self._twice]], axis=-1)
        if self._rows:
            change = np.sum([rows(change) for rows in self._rows], axis=0)
            change[:3] *= self.friction
        warm = np.clip(temperature + change[3], LEAST_SHARE * temperature, temperature / LEAST_SHARE)
        return np.stack(conservative(self._gamma, p / warm, u + change[0], v + change[1], w + change[2], p))


def _even(places: np.ndarray) -> bool:
    """Return whether all steps along the span between `places` (3, layer, span) are equal."""
    steps = np.diff(places, axis=-1)
    one = steps.mean(axis=(1, 2), keepdims=True)
    return bool(np.linalg.norm(steps - one, axis=0).max() <= EVEN * np.linalg.norm(one))


class _WeightedRows:
    """Interpolates fluctuations (..., layer, span) of a plane whose nodes have the heights `there` over the wall to the
    heights `here`, both (layer, span), and multiplies them by `weight`. The interpolation is linear between rows;
    beyond the last row the result is 0."""

    def __init__(self, here: np.ndarray, there: np.ndarray, weight: np.ndarray):
        order = np.argsort(there, axis=0)
        ordered = np.take_along_axis(there, order, axis=0)
        last = len(there) - 1
        after = np.stack([np.searchsorted(ordered[:, n], here[:, n], "right") for n in range(here.shape[1])], axis=1)
        upper = np.clip(after, 1, last)
        low, high = (np.take_along_axis(ordered, at, axis=0) for at in (upper - 1, upper))
        share = np.clip((here - low) / (high - low), 0, 1)
        self._rows = tuple(np.take_along_axis(order, at, axis=0) for at in (upper - 1, upper))
        inside = np.where(here <= ordered[-1:], weight, 0.0)
        self._weights = inside * (1 - share), inside * share

    def __call__(self, change: np.ndarray) -> np.ndarray:
        of_rows = zip(self._rows, self._weights, strict=True)
        return np.sum([w * np.take_along_axis(change, rows[None], axis=1) for rows, w in of_rows], axis=0)


def planes(case: Case, whole: Decomposition, profile: Callable[[str], Callable[..., Any]]) -> dict[int, Plane]:
    """Return, for each inflow of type `recycling-inflow`, the plane from which it takes its fluctuations: a dictionary
    from the index of the boundary patch in `whole.patches`. `whole`: the blocks of the grid, not divided among ranks.
    `profile`: maps the name of a function of case.py to a function that returns rho, u, v, w, p at points x, y, z.
    Raises HiresxError if the span, the wall or the distance of a plane do not suit the block."""
    return {
        place: Plane(whole, patch, profile(patch.condition.function), case.gas.gamma)
        for place, patch in enumerate(whole.patches)
        if isinstance(patch.condition, Spec)
    }


def check(case: Case, whole: Decomposition) -> dict[int, Plane]:
    """Return the planes from which the inflows of type `recycling-inflow` take their fluctuations, like `planes`, with
    the functions of case.py. `whole`: the blocks of the grid, not divided among ranks. Raises HiresxError if the span,
    the wall or the distance of a plane do not suit the block."""
    return planes(case, whole, lambda function: partial(evaluate_profile, case, function))


class RecyclingInflow(GivenNodes):
    """A recycling inflow, whose state `Recycling` sets."""

    of_patch = False

    def put(self, values: np.ndarray) -> None:
        """Set the prescribed conservative variables at the nodes of the face to `values` (5, n2, n1): rho, rho u, rho
        v, rho w, e. The last two axes are those of [k, j, i] without the direction normal to the face."""
        made = np.ascontiguousarray(values.astype(self._target.dtype))
        self._backend.copy(self._target, self._backend.to_device(made))


class Recycling:
    """The update of all recycling inflows. A call of the object sets their state from the flow in the planes. `whole`:
    the blocks of the grid, not divided. `states`, `conditions`: the blocks of this rank and their boundary conditions.
    `profile`: returns, for the name of a function of case.py, a function that returns rho, u, v, w, p at points x, y,
    z. Collective, since a plane may be divided among ranks. `any`: whether any rank has such an inflow. Raises the
    errors of `Plane`."""

    def __init__(
        self,
        backend: Backend,
        comm: Communicator,
        case: Case,
        whole: Decomposition,
        states: Sequence[BlockState],
        conditions: Sequence[FaceCondition],
        profile: Callable[[str], Callable[..., Any]],
    ):
        self._backend, self._comm = backend, comm
        self._planes = planes(case, whole, profile)
        self._conditions = [c for c in conditions if isinstance(c, RecyclingInflow)]
        self._parts = [
            (place, state, shared)
            for place, plane in self._planes.items()
            for state in states
            if state.part.whole == plane.patch.block and (shared := intersection(plane.range, state.part.box))
        ]

    @property
    def any(self) -> bool:
        """Whether the case has inflows of type `recycling-inflow`."""
        return bool(self._planes)

    def __call__(self) -> None:
        for place, plane in self._planes.items():
            to_plane = triple(-lo for lo, _ in plane.range)
            shape = tuple(hi - lo for lo, hi in reversed(plane.range))
            values = np.zeros((len(GAS_CONSERVED), *shape))
            for of, state, shared in self._parts:
                if of == place:
                    here = slices(shift_range(shared, triple(-n for n in state.first)))
                    there = slices(shift_range(shared, to_plane))
                    taken = state.interior(state.q[: len(GAS_CONSERVED)])[(slice(None), *here)]
                    values[(slice(None), *there)] = state.from_storage(self._backend.to_host(taken))
            values = self._comm.sum(values.reshape(1, -1)).reshape(values.shape)
            made = np.empty_like(values)
            plane.arrange(made)[...] = plane.target(plane.arrange(values))
            d = direction(plane.patch.face)
            to_face = triple(-lo for lo, _ in plane.patch.range)
            for condition in self._conditions:
                if condition.patch.place == place:
                    box = shift_range(shift_range(condition.patch.range, condition.state.first), to_face)
                    condition.put(np.squeeze(made[(slice(None), *slices(box))], axis=3 - d))
