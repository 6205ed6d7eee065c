"""Physics that no verification check looks at: viscosity laws, boundaries, sponges, local steps, single precision,
conservation, and that no direction is special."""

import numpy as np
import pytest

from hiresx import Simulation, Waves
from hiresx.case import Case, load

GAMMA = 1.4
SUTHERLAND = 110.4 / 288.15  # of air, as the case file has it by itself
OUT = {"type": "supersonic-outflow"}
REST = {"rho": 1.0, "p": 1 / GAMMA}


def line(boundaries, n=200, length=10.0, end=1.0, **tables):
    """A case on n nodes of 0 <= x <= length; `boundaries`: conditions at imin and imax."""
    conditions = [{"faces": [face]} | given for face, given in zip(("imin", "imax"), boundaries, strict=True)]
    grid = {"generator": "box", "n": [n, 1, 1], "lower": [0, 0, 0], "upper": [length, 0, 0]}
    case = {"grid": grid, "time": {"end": end, "cfl": 0.5}, "initial": {"state": REST}, "boundary": conditions}
    return Case.from_dict(case | tables)


def pulse(centre, u0=0.0, direction=1, amplitude=1e-3, width=0.5):
    """A sound pulse that runs to the right (direction 1) or left (-1) in a uniform flow u0."""

    def initial(x, y, z):
        wave = amplitude * np.exp(-(((x - centre) / width) ** 2))
        return 1 + wave, u0 + direction * wave, 0.0, 0.0, 1 / GAMMA + wave

    return initial


def finished(case, initial=None, backend="cpu", **options):
    simulation = Simulation(case, backend, initial=initial, **options)
    simulation.run(progress=False)
    return simulation


def pressure_wave(simulation):
    return simulation.blocks[0].state("p")[0, 0] - 1 / GAMMA


@pytest.mark.parametrize(
    ("law", "viscosity_at_2"),
    [
        pytest.param('{law="constant"}', 1.0, marks=pytest.mark.slow),
        pytest.param('{law="power", exponent=0.6}', 2**0.6, marks=pytest.mark.slow),
        # Its temperature is the default one: other tests have these kernels too.
        ('{law="sutherland"}', 2**1.5 * (1 + SUTHERLAND) / (2 + SUTHERLAND)),
    ],
    ids=["constant", "power", "sutherland"],
)
def test_viscosity_law_at_twice_the_temperature(law, viscosity_at_2):
    """A shear wave decays at mu(T) k^2 / (rho Re_c). On the backend whose kernels are compiled three times as fast."""
    sets = [f"gas.viscosity={law}", 'scheme.flux="steger_warming"']
    sets += ["grid.n=[32,1,1]", "time.viscous_cfl=0.1", "time.end=0.2"]
    case = load("shear-wave", overrides=sets)

    def warm(x, y, z):
        return 1.0, 0.0, 1e-4 * np.sin(2 * np.pi * x), 0.0, 2.0 / GAMMA

    simulation = finished(case, warm, backend="emulated")
    decayed = np.log(1e-4 / abs(simulation.blocks[0].state("v")).max())
    assert decayed == pytest.approx(viscosity_at_2 * (2 * np.pi) ** 2 / case.gas.reynolds * 0.2, rel=2e-5)


@pytest.mark.parametrize(
    ("left", "right", "u0", "direction"),
    [
        (OUT, {"type": "characteristic-outflow", "pressure": 1 / GAMMA, "relaxation": 0.0}, 0.3, 1),
        (OUT, {"type": "far-field", "state": REST | {"u": 0.3}}, 0.3, 1),
        (OUT, {"type": "far-field", "state": REST | {"u": -0.3}}, -0.3, 1),
        ({"type": "characteristic-inflow", "state": REST | {"u": 0.3}}, OUT, 0.3, -1),
    ],
    ids=["outflow", "far-field-out", "far-field-in", "inflow"],
)
def test_a_sound_pulse_leaves(left, right, u0, direction):
    """Less than 1 % of it comes back."""
    centre = 8.0 if direction > 0 else 2.0
    travel = 5.0 / abs(u0 + direction)  # well through the boundary, and back if it were reflected
    case = line((left, right), end=travel, initial={"state": REST | {"u": u0}})
    simulation = finished(case, pulse(centre, u0, direction))
    assert abs(pressure_wave(simulation)).max() < 1e-2 * 1e-3


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_a_profile_of_waves_that_lets_sound_out(backend):
    """What a function gives to a `characteristic-inflow` is carried in, computed by the device, and sound leaves."""
    u, frequency = 0.3, 0.2

    def profile(x, y, z, t):
        phase = 2 * np.pi * frequency * x / u  # at the ghosts' own places
        return 1.0, u, Waves(0.0, [frequency], [-1e-3 * np.sin(phase)], [1e-3 * np.cos(phase)]), 0.0, 1 / GAMMA

    inflow = {"type": "characteristic-inflow", "function": "profile", "steady": False}
    case = line((inflow, OUT), end=8.0, n=100, initial={"state": REST | {"u": u}})
    simulation = finished(case, pulse(2.0, u, -1), backend, profiles={"profile": profile})
    found = simulation.blocks[0]
    inside = found.x[0, 0] < u * 8 - 0.6  # the wave has come as far as 2.4
    carried = 1e-3 * np.sin(2 * np.pi * frequency * (8 - found.x[0, 0] / u))
    np.testing.assert_allclose(found.state("v")[0, 0][inside], carried[inside], rtol=0, atol=2e-5)
    assert abs(pressure_wave(simulation)).max() < 1e-2 * 1e-3


def test_a_profile_of_one_state_has_the_bits_of_that_state():
    u, results = 0.3, []

    def profile(x, y, z, t):
        return 1.0, u, 0.0, 0.0, 1 / GAMMA

    for given in ({"state": REST | {"u": u}}, {"function": "profile"}):
        case = line(({"type": "characteristic-inflow"} | given, OUT), end=1.0, initial={"state": REST | {"u": u}})
        profiles = {"profile": profile} if "function" in given else {}
        run = finished(case, pulse(1.0, u, -1), profiles=profiles)
        results.append(run.solver.backend.to_host(run.solver.states[0].q))
    np.testing.assert_array_equal(*results)


def test_the_relaxation_of_an_outflow_reflects_long_waves():
    """Pulling the pressure back at the rate K per length returns up to K/2 times the integral of the wave: with a
    quarter over a domain of 10 that is 1.1 % of this pulse."""
    outflow = {"type": "characteristic-outflow", "pressure": 1 / GAMMA, "relaxation": 0.025}
    case = line((OUT, outflow), end=4.0, initial={"state": REST | {"u": 0.3}})
    reflected = abs(pressure_wave(finished(case, pulse(8.0, 0.3)))).max() / 1e-3
    assert 0.5e-2 < reflected < 0.025 / 2 * 0.5 * np.sqrt(np.pi) * 1.2


def test_an_oblique_sound_pulse_leaves():
    """A round pulse meets far-field boundaries at all angles. One-dimensional characteristics return the share
    (1 - cos a) / (1 + cos a) of a wave that comes in at the angle a: 17 % in the corners, where a is 45 degrees."""
    far = {"faces": ["imin", "imax", "jmin", "jmax"], "type": "far-field", "state": REST}
    n, half = 41, 3.0

    def case(cells, half):
        grid = {"generator": "box", "n": [cells, cells, 1], "lower": [-half, -half, 0], "upper": [half, half, 0]}
        return Case.from_dict({"grid": grid, "time": {"end": 4.0}, "initial": {"state": REST}, "boundary": [far]})

    def initial(x, y, z):
        wave = 1e-3 * np.exp(-(x * x + y * y))
        return 1 + wave, 0.0, 0.0, 0.0, 1 / GAMMA + wave

    small = finished(case(n, half), initial).blocks[0].state("p")[0]
    wide = finished(case(3 * n - 2, 3 * half), initial).blocks[0].state("p")[0]
    undisturbed = wide[n - 1 : 2 * n - 1, n - 1 : 2 * n - 1]
    height = 1.8e-4  # of the pulse when it reaches the boundary
    assert abs(small - undisturbed).max() < 0.17 * height


def test_a_slip_wall_reflects_a_pulse_whole():
    case = line(({"type": "slip-wall"}, OUT), end=6.0)
    simulation = finished(case, pulse(3.0, direction=-1))
    x = simulation.blocks[0].x[0, 0]
    expected = 1e-3 * np.exp(-(((x - 3.0) / 0.5) ** 2))
    assert abs(pressure_wave(simulation) - expected).max() < 2e-5
    assert simulation.blocks[0].state("u").max() > 0.97e-3


def test_a_sponge_damps_by_its_integral():
    """exp(-integral of sigma over the time spent in it), sigma = strength s^2."""
    sponge = {"axis": "x", "start": 3.0, "end": 7.0, "strength": 0.5, "state": REST}
    ends = (OUT, {"type": "far-field", "state": REST})
    case = line(ends, n=401, end=4.0, sponge=[sponge])
    simulation = finished(case, pulse(2.0))  # now at 6, three quarters in
    expected = np.exp(-0.5 * 4 * 0.75**3 / 3)
    assert pressure_wave(simulation).max() / 1e-3 == pytest.approx(expected, rel=0.03)
    # Gaussian pulse and growing sigma: its front is damped more than its back, so the middle is compared too
    middle = np.interp(6.0, simulation.blocks[0].x[0, 0], pressure_wave(simulation))
    assert middle / 1e-3 == pytest.approx(expected, rel=0.01)


def test_a_profile_that_changes_with_time_flows_in():
    """Waves of density enter at Mach 2 and are carried along unchanged."""

    def wave(x, y, z, t):
        return 1 + 0.1 * np.sin(3.0 * (t - x / 2.0)), 2.0, 0.0, 0.0, 1 / GAMMA

    inflow = {"type": "profile-inflow", "function": "wave", "steady": False}
    case = line((inflow, OUT), n=201, end=7.0, initial={"state": REST | {"u": 2.0}})
    simulation = finished(case, profiles={"wave": wave})
    x = simulation.blocks[0].x
    error = abs(simulation.blocks[0].state("rho") - wave(x, 0, 0, simulation.time)[0])
    assert error.max() < 1e-4


@pytest.mark.slow
def test_couette_with_an_adiabatic_wall():
    """T = T_upper + Pr (gamma - 1) U^2 / 2 (1 - y^2): no heat through the lower wall."""
    case = load("couette", overrides=["grid.n=[8,17,1]"])
    walls = [wall.model_dump(exclude={"temperature"} if wall.faces == ("jmin",) else set()) for wall in case.boundary]
    adiabatic = Case.from_dict(case.model_dump(exclude={"parameters"}) | {"boundary": walls})
    simulation = finished(adiabatic)
    y = simulation.blocks[0].y
    exact = 1.2 + 0.5 * case.gas.prandtl * (GAMMA - 1) * (1 - y * y)
    assert abs(simulation.blocks[0].state("T") - exact).max() < 1e-4
    assert abs(simulation.blocks[0].state("u") - y).max() < 1e-5


@pytest.mark.slow
def test_local_steps_reach_the_steady_state():
    """Couette flow on nodes drawn to both walls, where the least cell keeps a global step small: 6000 local steps end
    at the exact profile but for the error of this grid, which 12,000 global steps are still far from."""
    stretch = 'grid.stretch={y={cluster="both", ratio=6.0}}'
    errors = {}
    for local, steps in (("true", 6000), ("false", 12000)):
        sets = ["grid.n=[8,25,1]", stretch, "time.cfl=1.0", f"time.local={local}", f"time.steps={steps}"]
        simulation = finished(load("couette", overrides=sets))
        y = simulation.blocks[0].y
        T = 1 + 0.2 * y + 0.5 * simulation.case.gas.prandtl * (GAMMA - 1) * y * (1 - y)
        errors[local] = [abs(simulation.blocks[0].state(n) - exact).max() for n, exact in (("u", y), ("T", T))]
    assert errors["true"][0] < 3e-4 and errors["true"][1] < 1e-4
    assert errors["false"][0] > 1e-2


def test_single_precision_follows_double():
    runs = {}
    for precision in ("fp64", "fp32"):
        sets = [f'scheme.precision="{precision}"', "gas.reynolds=1e4"]
        runs[precision] = finished(load("isentropic-vortex", overrides=sets))
    double, single = runs.values()
    for name in ("rho", "u", "v", "p"):
        assert abs(double.blocks[0].state(name) - single.blocks[0].state(name)).max() < 2e-5
    assert single.solver.bytes < 0.52 * double.solver.bytes


@pytest.mark.parametrize("interpolation", ["modified", pytest.param("original", marks=pytest.mark.slow)])
def test_mass_momentum_and_energy_are_conserved(interpolation):
    """On a periodic wavy grid, with shocks: sums of q/J."""
    sets = ["grid.n=[48,48,1]", "time.steps=40", f'scheme.interpolation="{interpolation}"']
    case = load("isentropic-vortex", "wavy", sets)

    def blast(x, y, z):
        inside = (x - 1) ** 2 + y * y < 2
        return np.where(inside, 3.0, 1.0), 0.3, -0.2, 0.1, np.where(inside, 20.0, 1.0)

    simulation = Simulation(case, "cpu", initial=blast)
    (state,) = simulation.solver.states

    def totals():
        q, jacobian = (state.interior(simulation.backend.to_host(a)) for a in (state.q, state.jacobian))
        return np.array([np.sum(v / jacobian) for v in q])

    before = totals()
    simulation.run(progress=False)
    assert simulation.step_count == 40 and abs(simulation.blocks[0].state("rho") - 3.0).max() > 0.5
    assert abs(totals() - before).max() < 1e-12 * abs(before).max()


@pytest.mark.parametrize("direction", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_no_direction_is_special(direction):
    """Sod's tube along y and z, in three dimensions, gives what it gives along x."""
    along = []
    for d in (0, direction):
        n, lower, upper = [7, 7, 7], [0.0] * 3, [0.07] * 3
        n[d], lower[d], upper[d] = 100, 0.005, 0.995
        axes = [axis for axis in "xyz" if axis != "xyz"[d]]
        grid = {"generator": "box", "n": n, "lower": lower, "upper": upper, "periodic": axes}
        ends = {"faces": [f"{'ijk'[d]}min", f"{'ijk'[d]}max"]} | OUT
        case = Case.from_dict(
            {"grid": grid, "time": {"end": 0.1}, "boundary": [ends, {"faces": "all", "type": "periodic"}]}
        )

        def sod(x, y, z, d=d):
            left = (x, y, z)[d] < 0.5
            return np.where(left, 1.0, 0.125), 0.0, 0.0, 0.0, np.where(left, 1.0, 0.1)

        block = finished(case, sod).blocks[0]
        found = [np.moveaxis(block.state(name), 2 - d, 2) for name in ("rho", "p", "uvw"[d])]
        assert max(abs(np.ptp(values, axis=(0, 1))).max() for values in found) < 1e-13
        along.append([values[0, 0] for values in found])
    for one, other in zip(*along, strict=True):
        assert abs(one - other).max() < 1e-13
