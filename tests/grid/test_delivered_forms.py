"""Every container, byte order, precision, thin direction and handedness in which public grids come, made by generators
of ours: read as delivered, joined as the parts of the block that was cut, a uniform flow kept.
"""

from itertools import product

import numpy as np
import pytest
from adf_files import from_hdf5
from arrangements import FAR, decomposed, free_stream_residual, shaken
from multiblock import Arrangement
from plot3d_files import write
from test_cgns import written
from test_grid_delivered import PLANES, as_delivered

from hiresx.case.grid_file import GridFile
from hiresx.decomposition import extended_coordinates
from hiresx.grid import build, check_jacobian
from hiresx.grid.from_file import describe_form

PLANE = Arrangement(shaken((27, 24, 1)).blocks[0], 3, 5, True)
SOLID = Arrangement(shaken((16, 15, 15)).blocks[0], 2, 2, True)
NUMBERS = {"f4": "single", "f8": "double"}
BYTES = {"<": "little-endian", ">": "big-endian"}


def usable(path, arrangement: Arrangement) -> None:
    grid = build(GridFile(file=str(path)))
    assert len(grid.connections) == 2 * len(arrangement.tables)
    assert sum(block.points for block in grid.blocks) == sum(block.points for block in arrangement.blocks)
    check_jacobian(grid)
    for extended in extended_coordinates(decomposed(grid, FAR)):
        assert free_stream_residual(extended) < 1e-14


def left_handed(blocks: list, which: int) -> list:
    """The arrays of one block from last to first along the first direction that is not thin."""
    axis = next(a for a in (2, 1, 0) if blocks[which][0].shape[a] > 2)
    turned = list(blocks)
    turned[which] = [np.flip(c, axis) for c in blocks[which]]
    return turned


@pytest.mark.parametrize("form", ["text", "records", "stream"])
@pytest.mark.parametrize("thin", [0, 1, 2, None], ids=["thin i", "thin j", "thin k", "3-D"])
@pytest.mark.slow
def test_plot3d(tmp_path, form, thin):
    path = tmp_path / "grid"
    for real, order, left in product(NUMBERS, BYTES, (False, True)):
        if form == "text" and order == ">":
            continue
        arrangement = SOLID if thin is None else PLANE
        if thin is None:
            blocks = [[b.x, b.y, b.z] for b in arrangement.blocks]
        else:
            plane = list(PLANES)[(thin + len(order + real) + left) % 3]
            blocks = as_delivered(arrangement.blocks, thin, plane)
        write(path, left_handed(blocks, 1) if left else blocks, form, real, order)
        told = {"records": "Fortran records", "stream": "C stream"}.get(form)
        assert describe_form(path) == (f"{told}, {BYTES[order]}, {NUMBERS[real]} precision" if told else "text")
        usable(path, arrangement)


@pytest.mark.parametrize("form", ["HDF5", "ADF, version A", "ADF, version B"])
@pytest.mark.parametrize("arrangement", [PLANE, SOLID], ids=["2-D", "3-D"])
def test_cgns(tmp_path, form, arrangement):
    for real, order in product(NUMBERS, BYTES):
        path = written(tmp_path / "g.cgns", arrangement, real)
        told = f"{form}, {NUMBERS[real]} precision"
        if form != "HDF5":
            from_hdf5(path, tmp_path / "g.adf", form[-1], order)
            path, told = tmp_path / "g.adf", f"{form}, {BYTES[order]}, {NUMBERS[real]} precision"
        elif order == ">":
            continue
        assert describe_form(path) == told
        usable(path, arrangement)
