"""Nodes where walls of a block meet do not depend on which index runs where, nor in which sense."""

import numpy as np
import pytest
from multiblock import turns

from hiresx import Case, Simulation
from hiresx.grid import Block, Grid

N = (9, 10, 11)
COLD = {"type": "no-slip-wall", "temperature": 0.9, "scalars": {"dye": 0.2}}
HOT = {"type": "no-slip-wall", "temperature": 1.3, "velocity": [0.1, 0.2, -0.1], "scalars": {"dye": 0.8}}
ADIABATIC = {"type": "no-slip-wall", "velocity": [0.0, 0.1, 0.2]}
HEATED = {"type": "no-slip-wall", "heat_flux": 0.003}
COOLED = {"type": "no-slip-wall", "heat_flux": -0.01, "velocity": [0.3, 0.1, -0.2]}
BLOWN = {"type": "no-slip-wall", "temperature": 1.1, "normal_velocity": 0.05}
SLIP, MIRROR = {"type": "slip-wall"}, {"type": "symmetry"}
MODELLED = {"type": "modelled-wall", "exchange_nodes": 3}


def nodes() -> np.ndarray:
    """x, y, z (3, nk, nj, ni) of a sheared and wavy block."""
    k, j, i = np.meshgrid(*(np.linspace(0, 1, n) for n in reversed(N)), indexing="ij")
    x = i + 0.3 * j + 0.04 * np.sin(3 * j)
    return np.stack([x, j + 0.2 * k + 0.05 * np.sin(2 * x), k + 0.15 * i])


def flow(x, y, z):
    wave = np.sin(1.3 * x + 2 * y - 1.7 * z)
    return (
        1 + 0.1 * wave,
        0.2 + 0.1 * np.cos(2 * y),
        -0.1 + 0.1 * np.sin(x - z),
        -0.1 * wave,
        0.72 + 0.05 * np.cos(x * z),
    )


def ran(walls, turn) -> np.ndarray:
    """Conservative variables [variable, k, j, i] as the block had its indexes before `turn` (new index from old)."""
    order = np.argmax(np.abs(turn), axis=1)  # the old index that each new one is
    sense = turn[np.arange(3), order]
    axes, flips = [3 - order[d] for d in (2, 1, 0)], [n for n in range(3) if sense[2 - n] < 0]
    placed = np.flip(np.transpose(nodes(), (0, *axes)), [1 + n for n in flips])
    boundary, dyed = [], BLOWN not in walls.values()  # what gas that is blown in carries of scalars is not there
    for face, wall in walls.items():
        d = int(np.flatnonzero(order == "ijk".index(face[0]))[0])
        end = face[1:] if sense[d] > 0 else {"min": "max", "max": "min"}[face[1:]]
        given = {key: value for key, value in wall.items() if dyed or key != "scalars"}
        boundary.append({"faces": ["ijk"[d] + end]} | given)
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [7, 7, 7], "lower": [0, 0, 0], "upper": [1, 1, 1]},  # replaced
        "gas": {"reynolds": 50.0, "viscosity": {"law": "sutherland"}},
        "initial": {"state": {"rho": 1.0, "p": 0.7}},
        "scalar": [{"name": "dye", "initial": 0.5}] * dyed,
        "time": {"steps": 3, "cfl": 0.4},
        "scheme": {"weights": "linear"},
        "boundary": boundary,
    })  # fmt: skip
    simulation = Simulation(case, "cpu", grid=Grid((Block("block", *map(np.ascontiguousarray, placed)),)), initial=flow)
    simulation.run(progress=False)
    (state,) = simulation.solver.states
    q = np.array(state.interior(simulation.solver.backend.to_host(state.q)))
    back = np.flip(q, [1 + n for n in flips])
    return np.transpose(back, (0, *(1 + axes.index(1 + n) for n in range(3))))


@pytest.mark.parametrize(
    "walls",
    [
        pytest.param((COLD, HOT, ADIABATIC, HEATED, SLIP, MIRROR), id="all-kinds"),
        pytest.param((HOT, SLIP, COLD, MIRROR, BLOWN, ADIABATIC), id="three-held-at-a-corner"),
        pytest.param((HEATED, COOLED, HEATED, COOLED, HEATED, COOLED), id="heated-and-cooled"),
        pytest.param(
            (SLIP, ADIABATIC, MIRROR, HOT, SLIP, ADIABATIC), id="three-slip-at-a-corner", marks=pytest.mark.slow
        ),
        pytest.param((MODELLED, HEATED, SLIP, ADIABATIC, COLD, COLD), id="modelled", marks=pytest.mark.slow),
    ],
)
def test_corners_of_walls_know_no_index(walls):
    """Where the last wall had its way the temperature of a node differed by 0.2 and more."""
    walls = dict(zip(("imin", "imax", "jmin", "jmax", "kmin", "kmax"), walls, strict=True))
    all_turns = turns(3)
    expected = ran(walls, np.eye(3, dtype=int))
    assert np.isfinite(expected).all()
    for turn in (all_turns[n] for n in (5, 22)):
        np.testing.assert_allclose(ran(walls, turn), expected, rtol=0, atol=1e-11)


def test_the_mean_of_what_two_walls_hold():
    walls = {"imin": COLD, "jmin": HOT, "imax": SLIP, "jmax": SLIP, "kmin": SLIP, "kmax": SLIP}
    q = ran(walls, np.eye(3, dtype=int))
    rho, momentum = q[0, 5, 0, 0], q[1:4, 5, 0, 0]
    np.testing.assert_allclose(momentum / rho, 0.5 * np.array(HOT["velocity"]), rtol=1e-12)
    inner = (q[4, 5, 0, 0] - 0.5 * momentum @ momentum / rho) / rho
    np.testing.assert_allclose(1.4 * 0.4 * inner, 1.1, rtol=1e-12)
    np.testing.assert_allclose(q[5, 5, 0, 0] / rho, 0.5, rtol=1e-12)
