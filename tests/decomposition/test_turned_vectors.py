"""Given vectors that a rotational period turns are refused."""

import numpy as np
import pytest

from hiresx import HiresxError
from hiresx.case import Case
from hiresx.decomposition import decompose
from hiresx.grid import Block, Grid
from hiresx.grid.motions import motion, rotation_about

P = 1 / 1.4


def decomposed(*conditions, **tables):
    """A quarter of a ring around z, the last nodes around which are the first ones of the next quarter."""
    angle, r, z = np.meshgrid(np.pi / 2 * np.arange(9) / 8, np.linspace(1, 2, 8), np.linspace(0, 1, 7))
    x, y, z = (np.transpose(c, (2, 1, 0)) for c in (r * np.cos(angle), r * np.sin(angle), z))
    period = motion(rotation_about((0.0, 0.0, 1.0), 90.0))
    grid = Grid((Block("sector", x, y, z),), period=({"j": period},))
    boundary = [*conditions, {"faces": ["jmin", "jmax"], "type": "periodic"}, {"faces": "all", "type": "slip-wall"}]
    state = {"rho": 1.0, "p": P}
    case = {"grid": {"file": "none"}, "time": {"steps": 1}, "initial": {"state": state}, "boundary": boundary}
    return decompose(Case.from_dict(case | tables), grid)


def given(key, u, w):
    """Tables with a vector, which has the components (u, 0, w)."""
    state = {"rho": 1.0, "u": u, "w": w, "p": P}
    if key == "sponge":
        return [], {"sponge": [{"axis": "z", "start": 0.5, "end": 1.0, "strength": 1.0, "state": state}]}
    of_face = {
        "far-field": {"state": state},
        "supersonic-inflow": {"state": state},
        "characteristic-inflow": {"state": state},
        "no-slip-wall": {"velocity": [u, 0.0, w]},
        "modelled-wall": {"velocity": [u, 0.0, w]},
        "total-pressure-inflow": {"total_pressure": 1.0, "direction": [u, 0.0, w]},
    }[key]
    return [{"faces": ["kmin"], "type": key} | of_face], {"gas": {"reynolds": 100.0}}


@pytest.mark.parametrize("key", [
    "sponge", "far-field", "supersonic-inflow", "characteristic-inflow", "no-slip-wall", "modelled-wall",
    "total-pressure-inflow",
])  # fmt: skip
def test_a_vector_that_a_period_turns_is_refused(key):
    conditions, tables = given(key, 0.1, 0.3)
    with pytest.raises(HiresxError, match=rf"{key}.* another direction behind face j.* by 90 degrees") as error:
        decomposed(*conditions, **tables)
    assert "along the axis" in error.value.hint
    conditions, tables = given(key, 0.0, 0.3)
    decomposed(*conditions, **tables)


def test_a_vector_on_nodes_away_from_the_period_is_the_same_in_each_sector():
    hole = {"block": "sector", "faces": ["imin"], "range": {"j": [3, 6], "k": [2, 5]}, "type": "supersonic-inflow",
            "state": {"rho": 1.0, "u": 2.0, "v": 2.0, "p": P}}  # fmt: skip
    decomposed(hole)
    with pytest.raises(HiresxError, match="state of supersonic-inflow on face imin"):
        decomposed(hole | {"range": {"j": [0, 6]}})
