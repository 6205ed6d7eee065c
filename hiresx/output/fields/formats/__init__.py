"""What fields are written as beside netCDF: a file per format, whose name is what `output.formats` of a case says.

It has `frame(directory, step, name)`, the file that stands for the fields of a step; `clear(directory, name, after)`,
which removes those of the steps beyond `after`; and the class `Format`, a `FormatFrame`.
"""

import importlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from hiresx.output.saved.places import IndexPortion


class FormatFrame(AbstractContextManager[Any], Protocol):
    """The files of one time, which ranks write together; entered again for what comes later. Made by all ranks, with
    the run's `directory`, `blocks` (`name`, `shape` (nk, nj, ni) and whether they are `incomplete`), `time` and `step`,
    the variables `names` of type `dtype`, a `tag` that the ranks' temporary files have in common, whether this is the
    `root`, and the `name` of the output."""

    def put(self, n: int, portions: Sequence[IndexPortion]) -> None:
        """What this process has of block number `n`; on rank 0 also if that is nothing."""

    def publish(self) -> None:
        """Give the files their names, once all ranks have left."""

    def discard(self) -> None:
        """Instead of `publish`, or when that failed: leave nothing of this time."""


class Format(Protocol):
    """A file of this folder."""

    @property
    def Format(self) -> Any: ...
    def frame(self, directory: str | Path, step: int, name: str = "fields") -> Path: ...
    def clear(self, directory: str | Path, name: str = "fields", after: int = -1) -> None: ...


def names() -> list[str]:
    """All formats of this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def format_of(name: str) -> Format:
    """The file of a format."""
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))


def frames(
    formats: Sequence[str], directory: Path, blocks: Sequence[Any], time: float, step: int, variables: Sequence[str],
    dtype: np.dtype, tag: int, root: bool, name: str,
) -> list[FormatFrame]:  # fmt: skip
    """What is to be written of a moment in those of `formats` that are in this folder."""
    about = directory, blocks, time, step, variables, dtype, tag, root, name
    return [format_of(kind).Format(*about) for kind in formats if kind in names()]
