"""Averages over homogeneous index directions, computed on the device. Each sample is averaged over these directions
first, and then added to the time average.

A thread averages over some nodes of a grid line (`average_lines`); these nodes are called a lane. The averages of the
lanes of a line are merged with the earlier ones (`merge_averages`). If lines are divided between boxes of nodes, each
box stores the averages of the whole line. For all boxes the contributions are merged in the same order, so that the
results are identical to the last bit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.base.arrays import Size, triple
from hiresx.decomposition.homogeneous import collapse_box, homogeneous
from hiresx.device.averaging import BITS, lanes, quantities
from hiresx.device.state import BlockState
from hiresx.equations import equations
from hiresx.grid.blocks import AXES, Range, intersection, slices
from hiresx.grid.cutting import within
from hiresx.output.watch.velocities import Velocities
from hiresx.solver import Solver


@dataclass
class _Lines:
    """The lines of a part. `box`: half-open range (i, j, k) of their averages in the averages of the whole block.
    `ends`: for each direction the number of nodes of the part that are averaged. `total`: the number of nodes of a
    whole line. `nodes`: the number of its nodes in this part. `lanes` (quantities, lk, lj, li): the averages of a
    sample over each lane. `weights` (lk, lj, li): the number of nodes of each lane. `sample`: the averages over all
    lanes, if lines are cut; otherwise None."""

    state: BlockState
    box: Range
    ends: Size
    total: int
    nodes: int
    lanes: Any
    weights: Any
    sample: Any = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape (nk, nj, ni) of the averages."""
        return triple(hi - lo for lo, hi in reversed(self.box))


class LineAverages:
    """Time averages of the flow of `solver` that are also averaged over all nodes of the grid lines along the index
    directions `over`, such as ("i", "k"). `kinds`: the averages to compute, of "reynolds", "favre", "budget" and
    "stress_budgets". `velocities`: the mean velocities that a budget needs; None without a budget.

    `directions`: for each whole block its homogeneous directions, each with the step and the number of nodes. The
    averages of a whole block form an array with one node along each direction in `over`. `boxes`: for each box of nodes
    that this rank computes, the half-open range (i, j, k) of this array to which it contributes. `owned`: the numbers
    of those boxes that contain the first nodes of their lines. Raises HiresxError for a block that is not homogeneous
    along one of `over`."""

    def __init__(self, solver: Solver, over: Sequence[str], kinds: Sequence[str], velocities: Velocities | None):
        self._solver, self._over, self._velocities = solver, tuple(over), velocities
        self._bits = sum(BITS[kind] for kind in kinds)
        self._quantities = quantities(kinds, equations(solver.case).scalars)
        whole = solver.decomposition
        self.directions = [homogeneous(whole, n, over) for n in range(len(whole.blocks))]
        self._lines = [self._of(state) for state in solver.states]
        self._cut = bool(solver.comm.max(any(lines.nodes != lines.total for lines in self._lines)))
        if self._cut:
            for lines in self._lines:
                lines.sample = solver.backend.zeros((self._quantities, *lines.shape))
        self.boxes = [lines.box for lines in self._lines]
        along = [AXES.index(letter) for letter in over]
        self.owned = [n for n, s in enumerate(solver.states) if not any(s.part.box[d][0] for d in along)]

    def _of(self, state: BlockState) -> _Lines:
        found, backend = self.directions[state.part.whole], self._solver.backend
        ends, counts = list(state.size), {}
        for letter, one in found.items():
            d = AXES.index(letter)
            low, high = state.part.box[d]
            ends[d] = max(min(high, one.nodes) - low, 0)
        size = lanes(state.size, self._over, backend.name)
        for d, letter in enumerate(AXES):  # nodes of each lane
            counts[letter] = len(range(ends[d])) // size[d] + (np.arange(size[d]) < ends[d] % size[d])
        weights = counts["k"][:, None, None] * counts["j"][:, None] * counts["i"].astype(float)
        return _Lines(
            state, collapse_box(state.part.box, self._over), triple(ends),
            math.prod(one.nodes for one in found.values()),
            math.prod(ends[AXES.index(letter)] for letter in found),
            backend.zeros((self._quantities, *reversed(size))), backend.to_device(weights),
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        """Device memory for the intermediate results of a sample, in bytes. The averages themselves are not
        included."""
        arrays = [array for lines in self._lines for array in (lines.lanes, lines.weights, lines.sample)]
        return sum(array.nbytes for array in arrays if array is not None)

    def zeros(self) -> list[Any]:
        """Return new arrays for the averages, before the first sample: for each box of nodes of this rank a device
        array (quantities, nk, nj, ni) of zeros."""
        return [self._solver.backend.zeros((self._quantities, *lines.shape)) for lines in self._lines]

    def sample(self, means: Sequence[Any], before: float) -> None:
        """Add the present flow as a sample to averages on the device. `means`: for each box of nodes of this rank the
        device array of averages, as `zeros` returned it; it is changed. `before`: the total weight of the earlier
        samples divided by the weight of this sample. All ranks must call this method."""
        for lines, mean in zip(self._lines, means, strict=True):
            self._average(lines)
            if self._cut:
                self._merge(lines, lines.lanes, lines.weights, 0.0, lines.sample)
            else:
                self._merge(lines, lines.lanes, lines.weights, before * lines.total, mean)
        if self._cut:
            self._exchange(means, before)

    def _average(self, lines: _Lines) -> None:
        state = lines.state
        if self._velocities is not None:
            arguments = self._velocities.arguments(state)
        else:
            arguments = {
                **state.derivative_strides, **state.eddy_arguments, "w": None, "m": state.metrics,
                "jacobian": state.jacobian, "inverse_reynolds": 0.0,
            }  # fmt: skip
        depth, height, width = lines.lanes.shape[1:]
        self._solver.program.launch(
            "average_lines", (width, height, depth), **state.place, **arguments, sv=state.variable_stride, q=state.q,
            width=width, height=height, depth=depth, end_i=lines.ends[0], end_j=lines.ends[1], end_k=lines.ends[2],
            kinds=self._bits, count=width * height * depth, mean=lines.lanes,
        )  # fmt: skip

    def _merge(self, lines: _Lines, values: Any, weights: Any, before: float, mean: Any) -> None:
        """Merge `values` (quantities, lk, lj, li), which have the `weights` (lk, lj, li), into `mean`."""
        (depth, height, width), own = values.shape[1:], triple(reversed(lines.shape))
        across = [n if letter in self._over else 1 for letter, n in zip(AXES, (width, height, depth), strict=True)]
        self._solver.program.launch(
            "merge_averages", own, width=own[0], height=own[1], lane_width=width, lane_height=height,
            across_i=across[0], across_j=across[1], across_k=across[2], kinds=self._bits, count=math.prod(own),
            lane_count=width * height * depth, before=before, weights=weights, lanes=values, mean=mean,
        )  # fmt: skip

    def _exchange(self, means: Sequence[Any], before: float) -> None:
        """Take the samples of all parts of a line into the averages of each."""
        backend = self._solver.backend
        mine = [
            (lines.state.part.whole, lines.state.part.box, lines.box, lines.nodes, backend.to_host(lines.sample))
            for lines in self._lines
            if lines.nodes
        ]
        there = sorted((one for theirs in self._solver.comm.allgather(mine) for one in theirs), key=lambda one: one[:2])
        axis = 2 - AXES.index(self._over[0])
        for lines, mean in zip(self._lines, means, strict=True):
            met = [
                (common, *one[2:])
                for one in there
                if one[0] == lines.state.part.whole and (common := intersection(one[2], lines.box)) is not None
            ]
            values = np.zeros((len(met), self._quantities, *lines.shape))
            weights = np.zeros((len(met), *lines.shape))
            for n, (common, box, nodes, sample) in enumerate(met):
                place = slices(within(lines.box, common))
                values[(n, slice(None), *place)] = sample[(slice(None), *slices(within(box, common)))]
                weights[(n, *place)] = nodes
            values, weights = (np.concatenate(list(v), axis=axis - 3) for v in (values, weights))
            self._merge(lines, backend.to_device(values), backend.to_device(weights), before * lines.total, mean)
