"""What is said of grids that cannot be turned about the x axis."""

import numpy as np
import pytest

from hiresx import HiresxError
from hiresx.case import Case
from hiresx.decomposition import decompose
from hiresx.grid import Block, Grid


def test_an_axis_along_y_is_told():
    state = {"rho": 1.0, "v": 0.5, "p": 0.7142857142857143}
    z, y, x = np.meshgrid([0.0], np.linspace(0.5, 1.5, 9), np.linspace(0, 1, 9), indexing="ij")
    boundary = [{"faces": ["imin"], "type": "axis"}, {"faces": "all", "type": "far-field", "state": state}]
    tables = {"axisymmetric": True, "grid": {"file": "none"}, "time": {"steps": 1}, "initial": {"state": state}}
    case = Case.from_dict(tables | {"boundary": boundary})
    with pytest.raises(HiresxError, match="where no node lies on y = 0") as error:
        decompose(case, Grid((Block("plane", x, y, z),)))
    assert "rotate" in error.value.hint
