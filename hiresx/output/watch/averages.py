"""averages.nc: a field file whose blocks have the means, which `hiresx plot` takes, and in each of them the groups
"reynolds" and "favre" with everything."""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.background import Work
from hiresx.communicator import Communicator
from hiresx.device.averaging import means, names
from hiresx.equations import equations
from hiresx.output.fields import derived, joined
from hiresx.output.saved import by_library, file_layout, files
from hiresx.output.saved.files import FileLayout, JointFile, Key
from hiresx.output.saved.places import IndexBox

# Of the whole file: (name, type, what it is).
_NUMBERS = (
    ("time", "f8", "time"),
    ("step", "i8", "time steps taken"),
    ("averaged_over", "f8", "what is in the averages"),
)


@dataclass(frozen=True, eq=False)
class AveragedBox:
    """The nodes `box` of the whole block named `block`: coordinates and `found`, {"reynolds": {name: array}, "favre":
    ...}, all of the shape of the box."""

    block: str
    box: IndexBox
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    found: Mapping[str, Mapping[str, np.ndarray]]


class Averages:
    """The file `path`, which the ranks of `comm` write together, each time anew, with the averages `kinds` of the whole
    `blocks`. `case`: the resolved case; averaging began at `start`, which is counted in `unit`.
    `joined_by`: what connects the blocks (`hiresx.output.fields.joined.told`)."""

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
    ):
        self.path, self.comm, self._kinds = path, comm, tuple(kinds)
        self._blocks = [(block.name, block.x.shape) for block in blocks]
        self._case, self._start, self._unit, self._joined_by = case, start, unit, joined_by
        self._scalars = equations(case).scalars
        self._tag = comm.bcast(os.getpid())
        self._layout: FileLayout | None = None

    def moment(self, portions: Sequence[AveragedBox], numbers: Mapping[str, float]) -> Work:
        """What writes the file, of which this rank has `portions`; `numbers`: time, step, averaged_over. Collective;
        raises HiresxError when nothing can be written."""
        if self._layout is None:
            self._layout = files.once(self.comm, self._learn)
        file = JointFile(self.path, self._layout, self._tag, self.comm.root)
        return _Together(file, portions, {("", name): value for name, value in numbers.items()})

    def _learn(self) -> FileLayout:
        with by_library.replacing(self.path, self._size, keep=False) as temporary:
            return file_layout.learn(temporary, self.define)

    @property
    def _size(self) -> int:
        """Bytes of the arrays."""
        of_kinds = sum(len(names(kind, self._scalars)) + (kind == "favre") for kind in self._kinds)
        arrays = 3 + len(means("reynolds", self._scalars)) + of_kinds
        return 8 * arrays * sum(math.prod(shape) for _, shape in self._blocks)

    def define(self, file: Any) -> dict[Key, Any]:
        """Everything but values. Returns the variables by (block, name), those of the file having the block ""."""
        from importlib.metadata import version

        file.set_fill_off()
        file.title = f"time averages: {self._case.get('title', '')}"
        file.source, file.case = f"hiresx {version('hiresx')}", json.dumps(self._case)
        file.average_start = self._start
        if self._joined_by:
            file.setncattr(joined.ATTRIBUTE, self._joined_by)
        made: dict[Key, Any] = {}
        for (name, kind, long_name), units in zip(_NUMBERS, ("L / c_ref", "1", self._unit), strict=True):
            made["", name] = _variable(file, name, long_name, units, kind, ())
        for index, (block, shape) in enumerate(self._blocks):
            group = file.createGroup(block)
            group.index = index
            for dimension, size in zip("kji", shape, strict=True):
                group.createDimension(dimension, size)
            for axis in "xyz":
                made[block, axis] = _variable(group, axis, f"{axis} coordinate of the nodes", "L")
            for name in means("reynolds", self._scalars):
                about = derived.about(name)
                made[block, name] = _variable(group, name, f"mean {about.long_name} ({self._kinds[0]})", about.scale)
            for kind in self._kinds:
                part = group.createGroup(kind)
                for name in (*names(kind, self._scalars), *(("p",) if kind == "favre" else ())):
                    made[block, f"{kind}/{name}"] = _variable(part, name, *_about(name, kind))
        return made


def _about(name: str, kind: str) -> tuple[str, str]:
    """What an average is, and its scale."""
    factors = [derived.about(factor) for factor in name.split("_")]
    if len(factors) == 1:
        return f"mean {factors[0].long_name} ({kind})", factors[0].scale
    what = f"covariance of {factors[0].long_name} and {factors[1].long_name}"
    return f"{what} ({kind})", " ".join(f"({factor.scale})" for factor in factors)


def _variable(
    holder: Any,
    name: str,
    long_name: str,
    units: str,
    kind: str = "f8",
    dimensions: tuple[str, ...] = ("k", "j", "i"),
) -> Any:
    made = holder.createVariable(name, kind, dimensions)
    made.set_auto_maskandscale(False)
    made.long_name, made.units = long_name, units
    return made


def entries(portion: AveragedBox) -> Iterator[tuple[Key, np.ndarray]]:
    """Values by the keys of `Averages.define`."""
    for axis in "xyz":
        yield (portion.block, axis), getattr(portion, axis)
    first = next(iter(portion.found.values()))
    for name in (name for name in first if "_" not in name):
        yield (portion.block, name), first[name]
    for kind, arrays in portion.found.items():
        for name, array in arrays.items():
            yield (portion.block, f"{kind}/{name}"), array


class _Together(Work):
    """Each rank writes its portions to their places."""

    def __init__(self, file: JointFile, portions: Sequence[AveragedBox], numbers: Mapping[Key, float]):
        self._file, self._portions, self._numbers = file, portions, numbers

    def write(self) -> None:
        with self._file as file:
            file.frame(self._numbers)
            for portion in self._portions:
                for key, array in entries(portion):
                    file.put(key, portion.box, [array])
        self._portions = ()

    def publish(self) -> None:
        self._file.publish()

    def discard(self) -> None:
        self._file.discard()
