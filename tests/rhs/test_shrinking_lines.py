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


def far(mach: float) -> dict:
    return {"type": "far-field", "state": FAR["state"] | {"u": mach}}


def reservoir(mach: float) -> dict:
    heat = 1 + 0.2 * mach**2
    return RESERVOIR | {"total_pressure": P * heat**3.5, "total_temperature": heat}


def rates(x: np.ndarray, inflow: dict, outflow: dict, weights: str = "linear", mach: float = 0.1, **tables):
    """The right-hand side of flow along a line as a function of the conserved variables (5 n,), its argument of
    uniform flow, and the largest time step at `time.cfl` and `time.viscous_cfl` of 1."""
    line = Grid((Block("line", x[None, None], *np.zeros((2, 1, 1, len(x)))),))
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [len(x), 1, 1], "lower": [0.0] * 3, "upper": [1.0, 0.0, 0.0]},
        "time": {"steps": 1, "cfl": 0.5},
        "scheme": {"weights": weights},
        "initial": {"state": FAR["state"] | {"u": mach}},
        "boundary": [{"faces": ["imin"], **inflow}, {"faces": ["imax"], **outflow}],
    } | tables)  # fmt: skip
    solver = Simulation(case, "cpu", grid=line).solver
    system, step = solver.system, 1 / solver.step_size.radii().max()
    state, found = system.vector(), system.vector()
    system.state(state)
    start = system.gather(state)

    def change(q: np.ndarray) -> np.ndarray:
        system.scatter(q.reshape(start.shape), state)
        system.rates(state, 0.0, found)
        return system.gather(found).ravel()

    return change, start.ravel().copy(), step


def eigenvalues(x: np.ndarray, inflow: dict, outflow: dict, mach: float = 0.1, **tables) -> tuple[np.ndarray, float]:
    """The eigenvalues of the linearised right-hand side, and the largest step of `rates`."""
    change, q, step = rates(x, inflow, outflow, mach=mach, **tables)
    n = len(x)
    kept = np.concatenate([np.arange(n), n + np.arange(n), 4 * n + np.arange(n)])  # there is no flow across the line
    columns = []
    for place in kept:
        shift = np.zeros_like(q)
        shift[place] = 1e-6
        columns.append((change(q + shift) - change(q - shift))[kept] / 2e-6)
    return np.linalg.eigvals(np.array(columns).T), step


def growth(x: np.ndarray, inflow: dict, outflow: dict, mach: float = 0.1) -> float:
    """The largest real part of an eigenvalue of the linearised right-hand side, times the smallest spacing."""
    return eigenvalues(x, inflow, outflow, mach)[0].real.max() * np.diff(x).min()


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


@pytest.mark.parametrize("outflow", [PRESSURE, SILENT], ids=["pressure", "characteristic"])
def test_no_entropy_grows_that_enters_an_outflow(outflow):
    """Gas enters at Mach 0.1. Where the entropy at the node followed the nodes inwards it grew by 0.002 at a ratio of
    2.7 and by 0.01 at 5."""
    for ratio in RATIOS:
        assert growth(shrinking(ratio), far(-0.1), outflow, -0.1) < 1e-8, ratio


def steep_end(ratio: float, cells: int, towards_end: bool) -> np.ndarray:
    """16 places, of which the last `cells` spacings shrink by `ratio` each."""
    x = np.cumsum([0.0, *np.ones(15 - cells), *ratio ** -np.arange(1.0, cells + 1)]) / (15 - cells)
    return x if towards_end else x[-1] - x[::-1]


VISCOUS = [
    # inflow, outflow, Mach number, Re_c, ratio, cells, towards the end
    (far, PRESSURE, 0.1, 1000.0, 5.0, 2, True),
    (far, SILENT, 0.1, 300.0, 4.0, 2, True),
    (far, PRESSURE, 0.1, 100.0, 6.0, 2, True),
    (reservoir, far, 0.1, 1000.0, 5.0, 2, True),
    (far, PRESSURE, 0.4, 30.0, 2.0, 6, False),
    (far, PRESSURE, 0.4, 100.0, 4.0, 3, False),
    (reservoir, far, 0.8, 30.0, 3.0, 2, False),
    (reservoir, far, 0.8, 30.0, 2.0, 4, False),
]  # fmt: skip


@pytest.mark.parametrize(("inflow", "outflow", "mach", "reynolds", "ratio", "cells", "end"), VISCOUS)
def test_no_mode_grows_in_viscous_flow(inflow, outflow, mach, reynolds, ratio, cells, end):
    """With the viscous flux on the cubic through neighbouring nodes, and leaving fields at inflows on quartics, modes
    grew by 1e-4 to 0.02 in a step at the default numbers, whatever the step was: they are those of the right-hand side
    itself. No eigenvalue is larger over that step than 2.5, the limit of Runge-Kutta schemes of third order."""
    x = steep_end(ratio, cells, end)
    outflow = outflow(mach) if callable(outflow) else outflow
    found, step = eigenvalues(x, inflow(mach), outflow, mach, gas={"reynolds": reynolds})
    assert found.real.max() * step / 2 < 1e-8
    assert abs(found).max() * step / 2 < 2.5


@pytest.mark.parametrize(
    ("inflow", "outflow", "ratio"),
    [(far, SILENT, 5.0), (reservoir, PRESSURE, 4.0), pytest.param(reservoir, PRESSURE, 6.0, marks=pytest.mark.slow)],
    ids=["silent", "reservoir", "steepest"],
)
def test_noise_in_viscous_flow_between_steep_lines_does_not_grow(inflow, outflow, ratio):
    """In two dimensions, on lines that are steep at all faces. Uniform flow stays uniform to round-off."""
    x = steep_end(ratio, 2, True)[6:]
    x = np.concatenate([2 * x[0] - x[:0:-1], x])
    y, x = np.meshgrid(x, x, indexing="ij")
    grid = Grid((Block("square", x[None], y[None], np.zeros((1, *x.shape))),))
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [*x.shape, 1], "lower": [0.0] * 3, "upper": [1.0, 1.0, 0.0]},
        "gas": {"reynolds": 1000.0},
        "time": {"steps": 600, "cfl": 0.5},
        "scheme": {"weights": "linear"},
        "initial": {"state": FAR["state"]},
        "boundary": [
            {"faces": ["imin"], **inflow(0.1)},
            {"faces": ["imax"], **outflow},
            {"faces": ["jmin", "jmax"], **FAR},
        ],
    })  # fmt: skip
    chance = np.random.default_rng(1)

    def start(x, y, z):
        rho, u, v, p = (1e-4 * chance.uniform(-1, 1, x.shape) for _ in range(4))
        return 1 + rho, 0.1 + u, v, 0 * x, P * (1 + p)

    for initial, most in ((None, 1e-12), (start, 5e-4)):
        run = Simulation(case, "cpu", grid=grid, initial=initial)
        run.run(progress=False)
        for name, value in {**FAR["state"], "v": 0.0}.items():
            assert abs(run.blocks[0].state(name) - value).max() < most, (name, most)


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
