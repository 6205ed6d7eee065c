"""Formats of field files: a module for each, by the name that the key `output.formats` of a case gives.

A format has three members. `frame(directory, step, name)` returns the path of the file with the fields of a step.
`clear(directory, name, after)` removes the files of later steps than `after`. The class `Format` writes; it is a
`FormatFrame`, or a `FormatSeries` if something is determined once for all times of an output, or if rank 0 needs data
of all ranks."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from hiresx.mpi.communicator import Communicator
from hiresx.output.fields.selection import Piece
from hiresx.output.saved.places import LocalRegion

if TYPE_CHECKING:
    from hiresx.decomposition.levels import Levels


class FormatFrame(AbstractContextManager[Any], Protocol):
    """Interface of the writer of the files of one time, which all ranks write together. It is a context, and is entered
    again for values that arrive later. All ranks construct it from a `WrittenSeries`, the directory of the run (Path),
    the time and the step."""

    def put(self, n: int, regions: Sequence[LocalRegion]) -> None:
        """Write the values that this rank has in the output block number `n`. `regions`: the points of the block, with
        coordinates and variables. Rank 0 calls this method for every block, even without regions."""

    def publish(self) -> None:
        """Give the files of this time their final names. Called after all ranks have left the context."""

    def discard(self) -> None:
        """Remove all files of this time. Called instead of `publish`, or after `publish` failed."""


@dataclass(frozen=True, eq=False)
class WrittenSeries:
    """The data of an output that do not change with time.

    - `name`: the name of the output, with which its files begin.
    - `pieces`: the blocks of its files, which are blocks of the `grid`, ranges of their nodes, planes or lines.
    - `variables`: the variables, which are written with the `precision` fp64 or fp32.
    - `case`: the case with defaults filled in.
    - `part`: the description of the subset of the fields that is written, "" for whole fields.
    - `comm`: the communicator of the ranks that write.
    - `tag`: a number that is part of the names of all temporary files.
    - `joined_by`: the connections of the blocks, as `hiresx.output.fields.block_neighbours.encode_connections` encodes
      them.
    - `levels`: the levels of refinement, if the blocks of the files are whole blocks."""

    name: str
    pieces: Sequence[Piece]
    grid: Sequence[Any]
    variables: Sequence[str]
    precision: str
    case: Any
    part: str
    comm: Communicator
    tag: int
    joined_by: str = ""
    levels: "Levels | None" = None


class FormatSeries(ABC):
    """Base class of the writers of one output in one format, for all times. All ranks construct it. `about`: the data
    of the output that do not change with time."""

    @abstractmethod
    def __init__(self, about: WrittenSeries): ...

    @abstractmethod
    def frame(self, directory: Path, time: float, step: int) -> FormatFrame:
        """Return the writer of the files of one time. `directory`: the run directory. `time`: in units of L / c_ref
        (length scale over sound speed). `step`: number of time steps before this time. Collective; called in the main
        thread of all ranks."""


class Format(Protocol):
    """Interface of the modules in this folder, each of which writes fields in one file format."""

    @property
    def Format(self) -> Any:
        """The class that writes fields in this format, a `FormatFrame` or a `FormatSeries`."""

    def frame(self, directory: str | Path, step: int, name: str = "fields") -> Path:
        """Return the path of the file with the fields of one step. `directory`: the run directory. `name`: name of a
        subset of the fields, by default the whole fields."""

    def clear(self, directory: str | Path, name: str = "fields", after: int = -1) -> None:
        """Remove the files of the output `name` in the run directory `directory` for all steps later than `after`; by
        default for all steps."""


def names() -> list[str]:
    """Return the names of all output formats, such as "netcdf", in alphabetical order."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def format_of(name: str) -> Format:
    """Return the module that writes the output format `name`, such as "netcdf"."""
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))
