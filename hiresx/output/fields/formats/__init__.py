"""Formats of field files: a module for each, by the name that `output.formats` of a case gives.

It has `frame(directory, step, name)`, the file that stands for the fields of a step; `clear(directory, name, after)`,
which removes those of the steps beyond `after`; and the class `Format`: a `FormatFrame`, or a `FormatSeries` if
something is found once for all times of an output, or if rank 0 needs what all ranks have.
"""

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
    """Interface of the files of one time, which ranks write together. It is a context, and is entered again for values
    that arrive later. All ranks construct it from a `WrittenSeries`, the directory of the run (Path), the time and the
    step."""

    def put(self, n: int, regions: Sequence[LocalRegion]) -> None:
        """Write the local regions of block number `n`. Rank 0 calls it for every block, even without regions."""

    def publish(self) -> None:
        """Give the files their final names, after all ranks have left the context."""

    def discard(self) -> None:
        """Remove all files of this time, instead of `publish` or after it failed."""


@dataclass(frozen=True, eq=False)
class WrittenSeries:
    """The data of an output that are the same at all times.

    - `name`: the name of the output.
    - `pieces`: the parts of the blocks of the `grid` that become the blocks of its files.
    - `variables`: the variables, which are written with the `precision` fp64 or fp32.
    - `case`: the resolved case.
    - `part`: the name of the part of the fields that is written, "" for all.
    - `comm`: the ranks that write.
    - `tag`: a number that is part of the names of all temporary files.
    - `joined_by`: the connections of the blocks, as `hiresx.output.fields.block_neighbours.encode_connections` encodes
      them.
    - `levels`: the levels of refinement, if the blocks of the files are whole blocks.
    """

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
    """Base class of the files of all times of an output, in one format. All ranks construct it. `about`: the data that
    are the same at all times."""

    @abstractmethod
    def __init__(self, about: WrittenSeries): ...

    @abstractmethod
    def frame(self, directory: Path, time: float, step: int) -> FormatFrame:
        """Return the files of one time, ready to be written. `directory`: the run directory. `time`: in L / c_ref.
        `step`: the number of the step. Collective; called in the main thread of all ranks."""


class Format(Protocol):
    """Interface of the modules in this folder, each of which writes fields in one file format."""

    @property
    def Format(self) -> Any:
        """The class that writes fields in this format."""

    def frame(self, directory: str | Path, step: int, name: str = "fields") -> Path:
        """Return the path of the file or folder with the fields of step `step` of the output `name`, in the run
        directory `directory`."""

    def clear(self, directory: str | Path, name: str = "fields", after: int = -1) -> None:
        """Delete the files of the output `name` in `directory` for all steps later than `after`; by default for all
        steps."""


def names() -> list[str]:
    """Return the names of all formats of this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def format_of(name: str) -> Format:
    """Return the module of the format `name`."""
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))
