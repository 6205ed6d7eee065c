"""Given vectors that a rotational period turns are refused."""

import numpy as np
import pytest

from hiresx import HiresxError, Simulation
from hiresx.case import Case
from hiresx.decomposition import decompose
from hiresx.decomposition.prescribed_vectors import check_turned_functions
from hiresx.grid import Block, Grid
from hiresx.grid.motions import motion, rotation_about

P = 1 / 1.4


def sector(*conditions, shared=True, axis="z", **tables):
    """A case and its grid, a quarter of a ring around `axis`. `shared`: the last nodes around are the first ones of the
    next quarter."""
    angles = np.pi / 2 * (np.arange(9) / 8 if shared else np.arange(8) / 8)
    angle, r, along = np.meshgrid(angles, np.linspace(1, 2, 8), np.linspace(0, 1, 7))
    ring = [np.transpose(c, (2, 1, 0)) for c in (r * np.cos(angle), r * np.sin(angle), along)]
    turn = {"z": 0, "x": 1}[axis]
    x, y, z = (ring[(d - turn) % 3] for d in range(3))
    period = motion(rotation_about(tuple(np.roll([0.0, 0.0, 1.0], turn)), 90.0))
    grid = Grid((Block("sector", x, y, z),), period=({"j": period},))
    boundary = [*conditions, {"faces": ["jmin", "jmax"], "type": "periodic"}, {"faces": "all", "type": "slip-wall"}]
    state = {"rho": 1.0, "p": P}
    case = {"grid": {"file": "none"}, "time": {"steps": 1}, "initial": {"state": state}, "boundary": boundary}
    return Case.from_dict(case | tables), grid


def decomposed(*conditions, **how):
    return decompose(*sector(*conditions, **how))


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
        decomposed(hole | {"range": {"k": [2, 5]}})


def test_a_vortex_that_a_period_turns_is_refused():
    stream = {"rho": 1.0, "u": 0.3, "p": P}
    far = {"faces": ["imax"], "type": "far-field", "state": stream, "vortex": {"force": "lift"}}
    tables = {"time": {"steps": 1, "local": True}, "force": [{"name": "lift", "block": "sector", "faces": ["imin"]}]}
    with pytest.raises(HiresxError, match="vortex of far-field on face imax has another direction behind face j"):
        decomposed(far, axis="x", **tables)


SHARED = pytest.mark.parametrize("shared", [True, False], ids=["shared", "offset"])


def flows(x, y, z):
    """Velocities by name: those of which a quarter of a turn makes others, and those that turn with it."""
    r = np.hypot(x, y)
    turned = [(0.1, 0.0, 0.3), (0.1 * r, 0.2 + 0.1 * z, 0.3)]
    whole = [(0.0, 0.0, 0.3), (-0.2 * y, 0.2 * x, 0.1 * z), (0.0 * x, 0.0 * x, 0.0 * x)]
    return turned, whole


def test_an_initial_flow_that_a_period_turns_is_refused():
    case, grid = sector(initial={"state": {"rho": 1.0, "u": 0.1, "p": P}})
    with pytest.raises(HiresxError, match=r"velocity of initial\.state.* another direction behind face j.* by 90 degr"):
        Simulation(case, "cpu", grid=grid)
    with pytest.raises(HiresxError, match=r"velocity of initial.* another direction behind face j"):
        Simulation(case, "cpu", grid=grid, initial=lambda x, y, z: (1.0, *flows(x, y, z)[0][1], P))
    # a function in place of initial.state
    Simulation(case, "cpu", grid=grid, initial=lambda x, y, z: (1.0, *flows(x, y, z)[1][1], P))


@SHARED
@pytest.mark.parametrize("steady", [True, False])
def test_a_function_with_a_velocity_that_a_period_turns_is_refused(shared, steady):
    inflow = {"faces": ["kmin"], "type": "profile-inflow", "function": "stream", "steady": steady}
    sponge = {"axis": "z", "start": 0.5, "end": 1.0, "strength": 1.0, "function": "rest"}
    case, grid = sector(inflow, shared=shared, sponge=[sponge])
    whole = decompose(case, grid)

    def given(velocities):
        return lambda x, y, z, *t: (1.0, *velocities(x, y, z), P)

    turns = given(lambda x, y, z: flows(x, y, z)[1][1])
    check_turned_functions(whole, case, {"stream": turns, "rest": turns})
    for n in range(2):
        stays = given(lambda x, y, z, n=n: flows(x, y, z)[0][n])
        with pytest.raises(HiresxError, match='"stream" of profile-inflow on face kmin has another direction'):
            check_turned_functions(whole, case, {"stream": stays, "rest": turns})
        with pytest.raises(HiresxError, match=r"sponge\.0\.function has another direction"):
            check_turned_functions(whole, case, {"stream": turns, "rest": stays})
