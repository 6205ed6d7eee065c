"""Where the hybrid scheme's sensor `teno` sees something: not in smooth flow, but at shocks and contacts."""

import numpy as np
import pytest

from hiresx import Case, Simulation, load

pytestmark = pytest.mark.slow  # kernels of their own are compiled; tests/device/test_split_numpy.py has quick ones

TENO = ('scheme.inviscid="hybrid"', 'scheme.hybrid.sensor="teno"')


def line(n: int, start, **scheme) -> Simulation:
    """A periodic line of n nodes, x from -1 to 1."""
    grid = {"generator": "box", "n": [n, 1, 1], "lower": [-1.0, 0, 0], "upper": [1.0, 0, 0], "periodic": ["x"]}
    case = {
        "grid": grid,
        "boundary": [{"faces": "all", "type": "periodic"}],
        "time": {"steps": 1, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "u": 0.5, "p": 1 / 1.4}},
        "scheme": {"inviscid": "hybrid", "hybrid": {"sensor": "teno"}} | scheme,
    }
    return Simulation(Case.from_dict(case), "cpu", initial=start)


def seen(run: Simulation) -> np.ndarray:
    """The share of AFWENO at the nodes."""
    run.solver.choose_dt()
    run.solver.right_hand_side()
    return run.solver.field(0, "shock_sensor").ravel()


def wave(x, y, z):
    """Every variable with two critical points, at one of which the second derivative is small too."""
    s = np.sin(np.pi * x - np.sin(np.pi * x) / np.pi)
    return 1 + 0.2 * s, 0.5 + 0.1 * s, 0.0, 0.0, (1 + 0.3 * s) / 1.4


@pytest.mark.parametrize("n", [16, 32, 64])
def test_smooth_flow_is_left_alone(n):
    assert seen(line(n, wave)).max() == 0.0


def test_the_cutoff_is_that_of_the_weights():
    """A part of the stencil that has less than a tenth of gamma is left out on the coarse grid."""
    assert seen(line(16, wave, cutoff=0.1)).max() > 0.5


def test_seven_nodes():
    """The sensor reads five nodes also where the interpolation reads seven."""
    assert seen(line(64, wave, interpolation="modified7", weights="z")).max() == 0.0


@pytest.mark.parametrize("sensor", ["teno", "jump"])
@pytest.mark.parametrize("jump", ["rho", "u", "p"])
def test_a_jump_of_one_variable(jump, sensor):
    """Of the density alone it is a contact, of the velocity or the pressure alone an impulsive start. The sensor `jump`
    sees them, too."""

    def start(x, y, z):
        state = {"rho": 1.0, "u": 0.0, "v": 0.0, "w": 0.0, "p": 1 / 1.4}
        return tuple(value + 0.7 * (abs(x) < 0.5) * (name == jump) for name, value in state.items())

    share = seen(line(64, start, hybrid={"sensor": sensor}))
    x = -1 + 2 * np.arange(64) / 64
    away = np.abs(np.abs(x) - 0.5) > 0.1
    assert share[away].max() == 0.0 and share[~away].max() == 1.0


def test_the_shock_and_the_contact_of_a_tube():
    """In Sod's tube at the time 0.2 the fan lies between 0.263 and 0.486, the contact at 0.685, the shock at 0.850."""
    run = Simulation(load("sod", overrides=TENO), "cpu")
    run.run(progress=False)
    share, x = seen(run), run.blocks[0].x.ravel()
    assert share[abs(x - 0.850) < 0.025].max() == 1.0
    assert share[abs(x - 0.685) < 0.025].max() > 0.2  # a contact spreads with time
    for smooth in ((x < 0.2) | (x > 0.9), (x > 0.3) & (x < 0.44), (x > 0.73) & (x < 0.81)):
        assert share[smooth].max() == 0.0
