"""The grid of an inlet: corners are nodes, regions cover the walls, kinks stay there, bad tables are named."""

import numpy as np
import pytest

from hiresx.case.grids import Inlet
from hiresx.errors import HiresxError
from hiresx.grid import build, check_jacobian

KEYS = {
    "corners": [-0.5, 0.0, 1.0, 1.5],
    "cells": [4, 8, 5],
    "lower_angles": [0.0, 20.0, 10.0],
    "upper_angles": [0.0, 0.0, 5.0],
    "height": 1.0,
    "n_normal": 11,
}


def test_an_inlet_has_its_corners_at_nodes():
    grid = build(Inlet(**KEYS))
    check_jacobian(grid)
    (block,) = grid.blocks
    x, y = block.x[0], block.y[0]
    at, rise = [0, 4, 12, 17], np.tan(np.radians([20.0, 10.0, 5.0]))
    np.testing.assert_allclose(x[0, at], KEYS["corners"])
    np.testing.assert_allclose(y[0, at], [0, 0, rise[0], rise[0] + 0.5 * rise[1]], atol=1e-15)
    np.testing.assert_allclose(y[-1, at], [1, 1, 1, 1 + 0.5 * rise[2]])
    assert block.regions["above"] == (("jmax", ((0, 12), (10, 11), (0, 1))),)
    assert block.regions["cowl"] == (("jmax", ((12, 18), (10, 11), (0, 1))),)
    # A shear would carry half of the wall's kink, rise[0] / 2, to the middle.
    bend = np.diff(y[5], 2)[3] / np.diff(x[5])[0]
    assert 0 < bend < 0.25 * rise[0]
    assert Inlet(**KEYS).nodes == block.x.size


def test_walls_that_change_places_give_the_mirrored_grid():
    angles = {"lower_angles": [0.0, 0.0, -5.0], "upper_angles": [0.0, -20.0, -10.0]}
    (block,), (mirrored,) = (build(Inlet(**given)).blocks for given in (KEYS, KEYS | angles))
    np.testing.assert_allclose(mirrored.y, 1 - block.y[:, ::-1], atol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corners": [-0.5, 0.0, 1.0, 0.5]}, "corners must rise"),
        ({"cells": [4, 8]}, "cells needs 3 values"),
        ({"upper_angles": [0.0, 0.0]}, "upper_angles needs 3 values"),
        ({"cells": [1, 2, 2]}, "6 or more in all"),
    ],
)
def test_a_table_that_makes_no_inlet_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Inlet(**KEYS | change)


def test_walls_that_meet_are_refused():
    with pytest.raises(HiresxError, match=r"meet ahead of x = 1\.5") as error:
        build(Inlet(**KEYS | {"lower_angles": [0.0, 40.0, 40.0]}))
    assert "grid.height" in error.value.hint
