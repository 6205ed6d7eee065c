"""A flow knows neither the unit of length nor which index runs where nor how the axes lie.

A stretched block with every kind of boundary, viscous, three components of velocity: the same block in another unit of
length, with its indices turned, or turned in space as a whole, must give the same flow. Areas, volumes and spacings
enter all of it, and none is 1.
"""

import numpy as np
import pytest
from kernels_alone import turn

from hiresx import Case, Simulation
from hiresx.grid import Block, Grid

N = (12, 11, 10)
STEPS = 8
# A face and its condition; a velocity or a state is turned with the block.
STATE = {"rho": 1.1, "u": 0.3, "v": -0.1, "w": 0.2, "p": 0.75}
CONDITIONS = {
    "imin": {"type": "characteristic-inflow", "state": STATE},
    "imax": {"type": "characteristic-outflow", "pressure": 0.7, "relaxation": 0.3},
    "jmin": {"type": "no-slip-wall", "velocity": [0.3, -0.1, 0.2], "temperature": 1.1},
    "jmax": {"type": "no-slip-wall", "velocity": [0.1, 0.2, -0.1]},
    "kmin": {"type": "slip-wall"},
    "kmax": {"type": "far-field", "state": STATE},
}


def nodes() -> np.ndarray:
    """x, y, z (3, nk, nj, ni) of a block stretched along i and j, sheared and a little wavy."""
    k, j, i = np.meshgrid(*(np.linspace(0, 1, n) for n in reversed(N)), indexing="ij")
    x = 2 * (np.exp(i) - 1)
    y = 1.3 * np.tanh(1.5 * j) + 0.2 * x
    z = 0.8 * k + 0.05 * np.sin(3 * x) + 0.1 * y
    return np.stack([x, y, z])


def flow(x: np.ndarray) -> np.ndarray:
    """rho, u, v, w, p at the places of `nodes`."""
    a, b, c = x
    wave = np.sin(1.3 * a + 2 * b - 1.7 * c)
    return np.stack([
        1 + 0.1 * wave, 0.3 + 0.1 * np.cos(2 * b + c), -0.1 + 0.1 * np.sin(a - c), 0.2 - 0.1 * wave,
        0.72 + 0.05 * np.cos(a * c),
    ])  # fmt: skip


def ran(order=(0, 1, 2), length: float = 1.0, rotation=None, **scheme: str) -> np.ndarray:
    """rho, u, v, w, p (5, nk, nj, ni) and the time of the flow after some steps, turned back: new index d is index
    order[d] of the block as it was, lengths are measured in another unit, space is rotated."""
    rotation = np.eye(3) if rotation is None else rotation
    axes = [3 - order[d] for d in (2, 1, 0)]  # of (component, k, j, i)

    def turned(state: dict) -> dict:
        return state | dict(zip("uvw", (rotation @ [state[c] for c in "uvw"]).tolist(), strict=True))

    boundary = []
    for d in range(3):
        for end in ("min", "max"):
            given = dict(CONDITIONS["ijk"[order[d]] + end])
            if "state" in given:
                given["state"] = turned(given["state"])
            if "velocity" in given:
                given["velocity"] = (rotation @ given["velocity"]).tolist()
            if "relaxation" in given:
                given["relaxation"] /= length
            boundary.append({"faces": ["ijk"[d] + end]} | given)
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [7, 7, 7], "lower": [0, 0, 0], "upper": [1, 1, 1]},  # replaced
        "gas": {"reynolds": 50.0 / length, "viscosity": {"law": "sutherland"}},
        "scheme": scheme,
        "initial": {"state": STATE},
        "time": {"steps": STEPS, "cfl": 0.4},
        "boundary": boundary,
    })  # fmt: skip
    x = nodes()
    s = flow(x)
    s[1:4] = np.einsum("ab,b...->a...", rotation, s[1:4])
    x = length * np.einsum("ab,b...->a...", rotation, x)
    block = Block("block", *(np.ascontiguousarray(c) for c in np.transpose(x, (0, *axes))))
    start = np.transpose(s, (0, *axes))
    simulation = Simulation(case, backend="emulated", grid=Grid((block,)), initial=lambda x, y, z: tuple(start))
    for _ in range(STEPS):
        simulation.solver.step()
    found = np.stack([simulation.blocks[0].state(name) for name in ("rho", "u", "v", "w", "p")])
    found = np.transpose(found, (0, *(axes.index(a) + 1 for a in (1, 2, 3))))
    found[1:4] = np.einsum("ba,b...->a...", rotation, found[1:4])
    return np.concatenate([found.ravel(), [simulation.time / length]])


@pytest.fixture(scope="module")
def plain():
    return ran()


def test_something_happens(plain):
    assert abs(plain[:-1] - flow(nodes()).ravel()).max() > 0.05


@pytest.mark.parametrize("length", [7.3, 1e-9])
def test_the_unit_of_length(plain, length):
    np.testing.assert_allclose(ran(length=length), plain, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("flux", ["hllc", "hllc_lm", "roe", "rotated_rhll", "van_leer", "local_lax_friedrichs"])
def test_the_unit_of_length_with_other_fluxes(flux):
    np.testing.assert_allclose(ran(length=1e-9, flux=flux), ran(flux=flux), rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", [(1, 2, 0), (2, 0, 1)], ids=["jki", "kij"])
def test_the_order_of_the_indices(plain, order):
    np.testing.assert_allclose(ran(order), plain, rtol=0, atol=1e-11)


@pytest.mark.slow
def test_the_axes_of_space():
    """With ideal weights: the tangents along which shear is interpolated are those of the axes."""
    np.testing.assert_allclose(ran(rotation=turn(8), weights="linear"), ran(weights="linear"), rtol=0, atol=1e-11)
