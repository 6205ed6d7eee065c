"""Headers of many field files, read by h5py. This takes a quarter of the time of netCDF's library, which also opens the
linked file of coordinates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hiresx.output.fields import field_file, hdf5_header


@dataclass(frozen=True)
class FieldHeader:
    """`time` in L / c_ref and `step` of a field file, and its `blocks`: name -> (nk, nj, ni), in their order."""

    time: float
    step: int
    blocks: Mapping[str, tuple[int, ...]]


def read_header(path: Path) -> FieldHeader:
    """Time, step and blocks of a field file. Raises HiresxError as `field_file.describe` does."""
    with hdf5_header.root(path) as file:
        if file is not None:
            try:
                blocks = hdf5_header.sizes(hdf5_header.groups(file))
                return FieldHeader(float(file["time"][()]), int(file["step"][()]), blocks)
            except hdf5_header.FAULTS:
                pass  # the other library says what is wrong with it
    about = field_file.describe(path)
    return FieldHeader(about["time"], about["step"], about["blocks"])


def read_stored(path: Path, blocks: Sequence[str], name: str) -> list[np.ndarray] | None:
    """The variable `name` of each of the `blocks`, (nk, nj, ni), as it is stored; None where it is not."""
    with hdf5_header.root(path) as file:
        if file is None:
            return None
        try:
            return [np.asarray(file[f"{block}/{name}"]) for block in blocks]
        except hdf5_header.FAULTS:
            return None
