"""The file averages.nc with time averages of the flow: a field file whose variables are the means, so that `hiresx
plot` can draw it. Each block has the groups "reynolds" and "favre" with all means and second moments, and "budget" or
"stress_budgets" if the case asks for budgets."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.decomposition.homogeneous import Homogeneous
from hiresx.device.averaging import BUDGETS, means, names
from hiresx.equations import equations
from hiresx.mpi.background import Work
from hiresx.mpi.communicator import Communicator
from hiresx.output.fields import derived, selection
from hiresx.output.fields.field_file import Series
from hiresx.output.fields.formats.netcdf import FieldFrame
from hiresx.output.saved import files
from hiresx.output.saved.files import FileLayout, JointFile
from hiresx.output.saved.places import IndexBox, LocalRegion

# Attribute for directions that were averaged over: JSON, {block: {"i": {"step": [x, y, z], "nodes": n}}}.
OVER = "averaged_directions"


class AverageSeries(Series):
    """The layout of the file of time averages: names, types, attributes and shapes of its arrays. `blocks`: the whole
    blocks. `kinds`: the kinds of averages. `case`: the case with defaults filled in. `start`: the time or step at which
    averaging began, in `unit`. `joined_by`: the encoded connections of the blocks. `lines`: for each block the index
    directions over which nodes are averaged, or None."""

    def __init__(
        self,
        blocks: Sequence[Any],
        kinds: Sequence[str],
        case: Any,
        start: float,
        unit: str,
        joined_by: str,
        lines: Sequence[Mapping[str, Homogeneous]] | None,
    ):
        self._kinds, self._start, self._scalars = tuple(kinds), start, equations(case).scalars
        self._lines = {} if lines is None else dict(zip((block.name for block in blocks), lines, strict=True))
        self._numbers = (*Series._numbers, ("averaged_over", "f8", "what is in the averages", unit))
        super().__init__(
            selection.whole(blocks), case, means("reynolds", self._scalars), "fp64", joined_by=joined_by
        )  # fmt: skip

    def _describe(self, file: Any) -> None:
        super()._describe(file)
        file.title, file.average_start = f"time averages: {file.title}", self._start
        if self._lines:
            of_blocks = {name: {d: asdict(one) for d, one in found.items()} for name, found in self._lines.items()}
            file.setncattr(OVER, json.dumps(of_blocks))

    def _arrays(self) -> Iterator[tuple[str, np.dtype, dict[str, str]]]:
        for name, dtype, about in super()._arrays():
            mean = name in self._names
            yield name, dtype, about | {"long_name": f"mean {about['long_name']} ({self._kinds[0]})"} if mean else about
        for kind in self._kinds:
            for name in (*names(kind, self._scalars), *(("p",) if kind == "favre" else ())):
                long_name, units = _about(name, kind)
                yield f"{kind}/{name}", np.dtype("f8"), {"long_name": long_name, "units": units}


def _about(name: str, kind: str) -> tuple[str, str]:
    """Description and scale of an average."""
    if kind in BUDGETS:
        return BUDGETS[kind][name]
    factors = [derived.about(factor) for factor in name.split("_")]
    if len(factors) == 1:
        return f"mean {factors[0].long_name} ({kind})", factors[0].scale
    what = f"covariance of {factors[0].long_name} and {factors[1].long_name}"
    return f"{what} ({kind})", " ".join(f"({factor.scale})" for factor in factors)


class Averages:
    """Writer of the file `path` with time averages of the whole `blocks`. The ranks of `comm` write it together, each
    time as a new file. `kinds`: the kinds of averages, of "reynolds", "favre", "budget" and "stress_budgets". `case`:
    the case with defaults filled in. `start`: the time or step at which averaging began, in `unit`. `joined_by`: the
    connections of the blocks as a JSON text (`block_neighbours.encode_connections`). `lines`: for each block the index
    directions over which its nodes are also averaged; along these, the arrays have one node."""

    def __init__(
        self,
        path: Path,
        comm: Communicator,
        blocks: Sequence[Any],
        kinds: Sequence[str],
        case: Mapping[str, Any],
        start: float,
        unit: str,
        joined_by: str = "",
        lines: Sequence[Mapping[str, Homogeneous]] | None = None,
    ):
        self._path, self._comm, self._tag = path, comm, comm.bcast(os.getpid())
        self._blocks = [block.name for block in blocks]
        self._means = means("reynolds", equations(case).scalars)
        self._series = AverageSeries(blocks, kinds, case, start, unit, joined_by, lines)
        self._layout: FileLayout | None = None

    def region(self, block: Any, box: IndexBox, found: Mapping[str, Mapping[str, np.ndarray]]) -> LocalRegion:
        """Return averages at the nodes `box` of a block in the form that file writers take. `block`: an object with the
        coordinates x, y, z of these nodes. `found`: the averages by kind and name, {"reynolds": {name: array}, "favre":
        ...}, arrays of the shape of the box."""
        first = next(iter(found.values()))
        values = {name: first[name] for name in self._means}
        values |= {f"{kind}/{name}": array for kind, arrays in found.items() for name, array in arrays.items()}
        return LocalRegion(box, block.x, block.y, block.z, values)

    def moment(self, regions: Mapping[int, Sequence[LocalRegion]], numbers: Mapping[str, float]) -> Work:
        """Return a job (`Work`) that writes the file of averages in the background. `regions`: the averages that this
        rank has, by the number of the block. `numbers`: the values of time, step and averaged_over (the averaged time
        or number of steps). All ranks must call this method. Raises HiresxError if the file cannot be written."""
        if self._layout is None:
            self._layout = files.on_root(self._comm, lambda: self._series.measure_layout(self._path))
        file = JointFile(self._path, self._layout, self._tag, self._comm.root)
        frame = FieldFrame([file], self._blocks, {("", name): value for name, value in numbers.items()})
        return _AveragesWork(frame, regions)


class _AveragesWork(Work):
    """The averages at one time: each rank writes its regions to their places."""

    def __init__(self, frame: FieldFrame, regions: Mapping[int, Sequence[LocalRegion]]):
        self._frame, self._portions = frame, regions

    def write(self) -> None:
        with self._frame:
            for n, regions in self._portions.items():
                self._frame.put(n, regions)
        self._portions = {}

    def publish(self) -> None:
        self._frame.publish()

    def discard(self) -> None:
        self._frame.discard()
