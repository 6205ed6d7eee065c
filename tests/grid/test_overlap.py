"""Blocks that lie over each other, and jets whose nozzle is too short for its spacing: named as such."""

import numpy as np
import pytest
from plot3d_files import write

from hiresx.case import load
from hiresx.case.grid_file import GridFile
from hiresx.errors import HiresxError
from hiresx.grid import build
from hiresx.grid.from_file import read_grid


def rectangle(first, n=17):
    x, y = np.meshgrid(first + np.arange(n) / (n - 1), np.linspace(0.0, 1.0, n))
    return x[None], y[None], np.zeros((1, n, n))


def test_blocks_that_overlap_are_said_to(tmp_path):
    write(tmp_path / "over.xyz", [rectangle(0.0), rectangle(0.5)])
    with pytest.raises(HiresxError) as caught:
        build(GridFile(file="over.xyz"), tmp_path)
    assert "the blocks overlap" in caught.value.message and "handed" not in caught.value.message
    assert "connectivity" not in caught.value.hint
    write(tmp_path / "beside.xyz", [rectangle(0.0), rectangle(1.0)])
    assert len(build(GridFile(file="beside.xyz"), tmp_path).connections) == 2
    assert len(read_grid(tmp_path / "over.xyz").connections) == 4


@pytest.mark.parametrize("case", ["planar-jet", "round-jet"])
@pytest.mark.parametrize(("key", "value"), [("exit_spacing", 0.14), ("nozzle_length", 0.05), ("upstream", 0.05)])
def test_a_nozzle_too_short_for_its_spacing_names_its_keys(case, key, value):
    spec = load(case, overrides=[f"grid.{key}={value}"]).grid
    with pytest.raises(HiresxError, match=r"grid\.exit_spacing = .* leaves \d nodes along x in grid\.") as caught:
        build(spec)
    assert f"grid.{key} = {value}" in caught.value.message and "a smaller grid.exit_spacing" in caught.value.hint
