"""Grid lines that shrink towards faces with given nodes: no mode of the linearised flow grows."""

import numpy as np
import pytest

from hiresx import Case, Simulation
from hiresx.grid import Block, Grid

P, NODES = 1 / 1.4, 9
SOUND = 1 + 0.2 * 0.1**2
FAR = {"type": "far-field", "state": {"rho": 1.0, "u": 0.1, "p": P}}
RESERVOIR = {"type": "total-pressure-inflow", "total_pressure": P * SOUND**3.5, "total_temperature": SOUND}
PRESSURE, SILENT = ({"type": f"{kind}-outflow", "pressure": P} for kind in ("pressure", "characteristic"))


def rates(x: np.ndarray, inflow: dict, outflow: dict, weights: str = "linear", mach: float = 0.1):
    """The right-hand side of flow along a line as a function of the conserved variables (5 n,), and its argument of
    uniform flow."""
    line = Grid((Block("line", x[None, None], *np.zeros((2, 1, 1, len(x)))),))
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [len(x), 1, 1], "lower": [0.0] * 3, "upper": [1.0, 0.0, 0.0]},
        "time": {"steps": 1, "cfl": 0.5},
        "scheme": {"weights": weights},
        "initial": {"state": FAR["state"] | {"u": mach}},
        "boundary": [{"faces": ["imin"], **inflow}, {"faces": ["imax"], **outflow}],
    })  # fmt: skip
    system = Simulation(case, "cpu", grid=line).solver.system
    state, found = system.vector(), system.vector()
    system.state(state)
    start = system.gather(state)

    def change(q: np.ndarray) -> np.ndarray:
        system.scatter(q.reshape(start.shape), state)
        system.rates(state, 0.0, found)
        return system.gather(found).ravel()

    return change, start.ravel().copy()


def growth(x: np.ndarray, inflow: dict, outflow: dict, mach: float = 0.1) -> float:
    """The largest real part of an eigenvalue of the linearised right-hand side, times the smallest spacing."""
    change, q = rates(x, inflow, outflow, mach=mach)
    n = len(x)
    kept = np.concatenate([np.arange(n), n + np.arange(n), 4 * n + np.arange(n)])  # there is no flow across the line
    columns = []
    for place in kept:
        shift = np.zeros_like(q)
        shift[place] = 1e-6
        columns.append((change(q + shift) - change(q - shift))[kept] / 2e-6)
    return np.linalg.eigvals(np.array(columns).T).real.max() * np.diff(x).min()


def shrinking(ratio: float, towards_end: bool = True) -> np.ndarray:
    """NODES places, of which each spacing is `ratio` times the next one."""
    x = np.cumsum([0.0, *ratio ** -np.arange(NODES - 1.0)])
    return x if towards_end else x[-1] - x[::-1]


RATIOS = (0.2, 1.0, 1.08, 1.3, 2.0, 5.0)


@pytest.mark.parametrize("outflow", [PRESSURE, SILENT], ids=["pressure", "characteristic"])
@pytest.mark.parametrize("mach", [0.1, pytest.param(0.6, marks=pytest.mark.slow)])
def test_no_mode_grows_before_an_outflow(outflow, mach):
    """By cubics through neighbouring nodes modes grew from a ratio of 1.2 on, by 0.1 in a time of the last spacing."""
    for ratio in RATIOS:
        assert growth(shrinking(ratio), FAR, outflow, mach) < 1e-8, ratio


def test_no_mode_grows_behind_a_reservoir():
    """By quartics through neighbouring nodes modes grew from a ratio of 1.06 on."""
    for ratio in RATIOS:
        assert growth(shrinking(ratio, towards_end=False), RESERVOIR, FAR) < 1e-8, ratio


@pytest.mark.slow
def test_no_mode_grows_on_rough_lines():
    """Ratios of neighbouring spacings between 1/3 and 3, at random."""
    chance = np.random.default_rng(2)
    for _ in range(12):
        x = np.cumsum([0.0, *3 ** chance.uniform(-1, 1, NODES - 1).cumsum()])
        if (np.diff(x) / np.diff(x)[::-1]).max() < 1e4:
            assert growth(x / x[-1], FAR, PRESSURE) < 1e-8, x
