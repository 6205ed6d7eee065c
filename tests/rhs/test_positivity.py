"""What keeps density and pressure positive: it lives through everything, and leaves even and smooth flow alone."""

import json
import re
import shlex

import numpy as np
import pytest
import robustness_runs

from hiresx import Simulation, kernels, load
from hiresx.case import Case
from hiresx.case.named_scheme import LOW_DISSIPATION
from hiresx.cli import execute
from hiresx.decomposition import Part
from hiresx.grid import Block, Grid
from hiresx.output.fields import field_file
from hiresx.simulation.blow_up_error import BlowUp, write_neighbourhood
from hiresx.verify.checks import CompletedRun
from hiresx.verify.groups import robustness

SIX_OVER = 1 / 1.4


def uniform(mach: float) -> dict:
    direction = np.array([0.8, 0.4, np.sqrt(0.2)])
    u, v, w = (float(c) for c in mach * direction)
    return {"rho": 1.0, "u": u, "v": v, "w": w, "p": SIX_OVER}


def lines(n, ratio: float = 1.0) -> list[np.ndarray]:
    """Nodes on (0, 1] of a box; along y they stretch by `ratio` from the first spacing to the last."""
    x = [np.arange(m) / m for m in n]
    if ratio != 1:
        steps = np.geomspace(1.0, ratio, n[1] - 1)
        x[1] = np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum()
    return np.meshgrid(*x[::-1], indexing="ij")[::-1]


def wavy(n) -> Grid:
    x, y, z = lines(n)
    wave = np.sin(2.6 * np.pi * x + 0.3) * np.sin(3.4 * np.pi * y)
    return Grid((Block("wavy", x + 0.06 * wave, y + 0.05 * wave, z + 0.07 * wave * (n[2] > 1)),))


def stretched(n) -> Grid:
    return Grid((Block("stretched", *lines(n, 1000.0)),))


def random_modes(n) -> Grid:
    """A periodic box displaced by ten waves of random direction, phase and amplitude."""
    rng = np.random.default_rng(5)
    x = np.array(lines(n))
    moved = x.copy()
    for _ in range(10):
        k = rng.integers(-2, 3, 3) * (np.array(n) > 1)
        wave = np.sin(2 * np.pi * (np.tensordot(k, x, 1) + rng.uniform()))
        moved += rng.uniform(-0.008, 0.008, 3)[:, None, None, None] * (np.array(n) > 1)[:, None, None, None] * wave
    periods = {axis: tuple(float(d == e) for e in range(3)) for d, axis in enumerate("ijk") if n[d] > 1}
    return Grid((Block("random", *moved),), period=(periods,))


# Each flux and each kind of weights has kernels of its own, which take longer to compile than the flows to run.
OFTEN = ("steger_warming", "hllc")
RARELY = (pytest.mark.slow, pytest.mark.long)
FLUXES = [pytest.param(flux, marks=() if flux in OFTEN else RARELY) for flux in kernels.choices("flux")]
GRIDS = {"wavy": wavy, "stretched 1:1000": stretched, "random modes": random_modes}


@pytest.mark.parametrize("n", [(20, 16, 1), (12, 10, 9)], ids=["2d", "3d"])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("flux", FLUXES)
def test_the_limiter_leaves_a_free_stream_alone(flux, grid, n):
    built = GRIDS[grid](n)
    for mach in (0.3, 1.0, 2.0, 6.0):
        state = uniform(mach)
        faces = [f for f in ("imin", "imax", "jmin", "jmax", "kmin", "kmax") if n["ijk".index(f[0])] > 1]
        kind = {"type": "periodic"} if grid == "random modes" else {"type": "far-field", "state": state}
        case = Case.from_dict(
            {
                "grid": {"file": "none"},
                "scheme": {"flux": flux, "positivity": "limiter"},
                "time": {"steps": 12, "cfl": 0.5},
                "initial": {"state": state},
                "boundary": [{"faces": faces} | kind],
            }
        )
        simulation = Simulation(case, "cpu", grid=built)
        simulation.run(progress=False)
        (found,) = (simulation.solver.primitives(0),)
        # at Mach 6 too: of p = (gamma - 1)(e - rho |u|^2 / 2), where round-off of e counts 26 times, it is 1e-14
        worst = max(abs(found[name] - state[name]).max() for name in found)
        assert worst <= 1e-13, (mach, worst)


@pytest.mark.slow
def test_the_limiter_leaves_a_density_wave_on_an_uneven_grid_alone():
    """Mach 1 along the short spacing, 64 times shorter than the other: the share of a direction in the step is no share
    of anything the limiter asks for."""
    errors = {}
    for positivity in ("fallback", "limiter"):
        sets = (
            "grid.n=[40,8,1]",
            "grid.upper=[1.0,12.8,0.0]",
            'grid.periodic=["x","y"]',
            'boundary=[{faces=["imin","imax","jmin","jmax"],type="periodic"}]',
            "time.end=0.3",
            f'scheme.positivity="{positivity}"',
        )
        run = Simulation(load("density-wave", None, sets), "cpu", initial=wave)
        run.run(progress=False)
        x, y, z = (getattr(run.blocks[0], c) for c in "xyz")
        exact = wave(x - run.time, y, z)[0]
        errors[positivity] = abs(run.blocks[0].state("rho") - exact).mean()
    assert errors["limiter"] == pytest.approx(errors["fallback"], rel=5e-4) and errors["limiter"] < 1e-4


def wave(x, y, z, **parameters):
    return 1 + 0.2 * np.sin(2 * np.pi * x), 1.0, 0.0, 0.0, SIX_OVER


def test_the_limiter_is_conservative_and_knows_no_side():
    """Noh's flow towards a plane, and its mirror image: the same, and mass is what came in."""
    found = []
    for turned in (False, True):
        case = load("noh", "planar", ("grid.n=[60,1,1]", "gas.gamma=1.4", "time.end=0.2"))

        def initial(x, y, z, turned=turned, **parameters):
            u = np.where(x < 0.1, 1.0, -1.0)
            return 1.0, -u[..., ::-1] if turned else u, 0.0, 0.0, 1e-6

        run = Simulation(case, "cpu", initial=initial)
        run.run(steps=30, progress=False)
        rho = run.blocks[0].state("rho")
        found.append(rho[..., ::-1] if turned else rho)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


FIVE = [(flux, "js") for flux in kernels.choices("flux")] + [
    ("steger_warming", name) for name in ("z", LOW_DISSIPATION)
]


def hard(flow, flux, weights):
    """One of the flows by one of the fluxes. CI computes all flows by the usual fluxes, and one flow by the others."""
    marks = pytest.mark.slow if flow.title == "cylindrical blast" else RARELY
    usual = flux in OFTEN and weights == "js"
    return pytest.param(flow, flux, weights, id=f"{flow.title}-{flux}-{weights}", marks=() if usual else marks)


@pytest.mark.parametrize(("flow", "flux", "weights"), [hard(flow, *five) for flow in robustness.FLOWS for five in FIVE])
def test_the_default_lives(flow, flux, weights):
    run = flow.run(flux, weights, "limiter", small=True)
    assert run.loaded_case.scheme.positivity == load("sod").scheme.positivity
    finished = CompletedRun(run, "cpu")
    assert finished.time == pytest.approx(run.loaded_case.time.end) and robustness.least(finished) > 1e-12


HARD = {
    # the steady Mach 20 cylinder lives since its ghosts know the wall's curvature
    "fallback": ("Noh, planar", "vacuum", "Mach 20 cylinder, all round"),
    "none": tuple(flow.title for flow in robustness.FLOWS),
}


@pytest.mark.slow
@pytest.mark.parametrize("positivity", HARD)
def test_the_flows_are_hard(positivity):
    """Otherwise the list would prove nothing."""
    for flow in robustness.FLOWS:
        if flow.title in HARD[positivity]:
            cell = robustness_runs.outcome(flow, "steger_warming", "js", positivity, "cpu", True)
            assert "blew up" in cell.get("stopped", ""), flow.title


@pytest.mark.slow
def test_single_precision_lives():
    for title in ("Sedov's blast", "123 problem", "cylindrical blast"):
        flow = next(flow for flow in robustness.FLOWS if flow.title == title)
        run = flow.run("steger_warming", "js", "limiter", small=True)
        single = CompletedRun(type(run)(run.case, run.preset, (*run.sets, 'scheme.precision="fp32"')), "cpu")
        assert robustness.least(single) > 1e-12, title


def test_a_step_that_fails_is_taken_again():
    """At a CFL number of 0.9 the first steps of two gases that part are too long, and no others."""
    simulation = Simulation(load("vacuum", None, ("grid.n=[100,1,1]", "time.cfl=0.9", 'scheme.flux="hllc"')), "cpu")
    simulation.run(progress=False)
    assert 0 < simulation.solver.retaken < 0.7 * simulation.step_count
    assert simulation.time == pytest.approx(0.05)
    # a step is never shortened where none fails
    calm = Simulation(load("sod", None, ("time.cfl=0.9",)), "cpu")
    calm.run(progress=False)
    assert calm.solver.retaken == 0


def cavity(x, y, z):
    """At rest but for a patch that is torn apart around x = 1, far from the first index."""
    torn = np.exp(-3 * ((x - 1) ** 2 + (y + 2) ** 2)) > 0.3
    return 1 + 0 * x, 6.0 * np.sign(x - 1.01) * torn, 0.0, 0.0, 0.05


CAVITY = ("grid.n=[64,64,1]", "time.end=4.0", 'scheme.positivity="none"')


def inside(x, y) -> bool:
    return abs(x - 1) < 1.2 and abs(y + 2) < 1.2


def began(*sets) -> tuple[BlowUp, Simulation]:
    simulation = Simulation(load("isentropic-vortex", None, (*CAVITY, *sets)), "cpu", initial=cavity)
    with pytest.raises(BlowUp) as caught:
        simulation.run(progress=False)
    return caught.value, simulation


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["time.cfl=0.5", "time.dt=0.01"])
def test_a_blow_up_is_named_where_it_began(clock):
    """Nobody looks for 50 steps: by then the flow is gone everywhere, and node (0, 0, 0) is the first bad one."""
    error, simulation = began(clock, "monitor.every=50")
    i, j, k = error.node
    block = simulation.blocks[0]
    assert inside(block.x[k, j, i], block.y[k, j, i])
    assert "of stage 1 of step 1" in error.message and simulation.step_count == 0
    # what is around it is still to be seen: the rest of the flow is untouched
    assert np.isfinite(block.state("p")[:, :8]).all()


CUT = [
    Part(0, ((0, 21), (0, 64), (0, 1)), 0),
    Part(0, ((21, 64), (0, 30), (0, 1)), 0),
    Part(0, ((21, 64), (30, 64), (0, 1)), 0),
]


@pytest.mark.slow
def test_a_blow_up_is_named_the_same_however_it_is_cut():
    whole, simulation = began("time.dt=0.01", "monitor.every=50")
    case = simulation.case
    cut = Simulation(case, "cpu", initial=cavity, parts=lambda grid: CUT)
    with pytest.raises(BlowUp) as caught:
        cut.run(progress=False)
    assert caught.value.message == whole.message


@pytest.mark.slow
def test_looking_for_a_blow_up_disturbs_no_scheme():
    """Viscous flow: what the look took from the steps in between named a node in gas at rest."""
    sets = ["grid.n=[50,33,1]", "gas.reynolds=50", "time.dt=1e-4", "time.steps=6"]
    found = set()
    for form in ("afweno", "hybrid"):
        run = Simulation(load("blast-2d", overrides=[*sets, f'scheme.inviscid="{form}"']), "cpu")
        with pytest.raises(BlowUp) as caught:
            run.run(progress=False)
        found.add(caught.value.message)
    assert len(found) == 1 and "node (i, j, k) = (23, 8, 0)" in found.pop()


@pytest.mark.slow
def test_a_late_blow_up_is_named_from_what_was_last_seen_alive():
    """The flow goes wrong some steps after the last look, with a step that is given."""
    sets = ("grid.n=[100,1,1]", "time.end=0.2", 'scheme.positivity="fallback"', "time.dt=0.0006")
    by_look = {}
    for every in (1, 100):
        simulation = Simulation(load("vacuum", None, (*sets, f"monitor.every={every}")), "cpu")
        with pytest.raises(BlowUp) as caught:
            simulation.run(progress=False)
        assert 0 < simulation.step_count < 40 and f"step {simulation.step_count + 1}" in caught.value.message
        by_look[every] = caught.value.message
        assert 0 < (~(simulation.blocks[0].state("p") > 0)).sum() < 5, "named before it spread"
    assert by_look[1] == by_look[100]


@pytest.mark.slow
def test_what_is_said_of_a_blow_up_helps(tmp_path, monkeypatch, capsys):
    """The command that goes on is executed, and so is the other advice: begin anew with the limiter."""
    monkeypatch.chdir(tmp_path)
    case = ["sod", "--backend", "cpu", "--set", "grid.n=[100,1,1]", "--set", "time.end=0.1"]
    assert execute(["run", *case, "--set", "time.dt=0.011", "--set", 'scheme.positivity="fallback"']) == 3
    said = capsys.readouterr().err
    assert 'lower time.dt, or begin anew with scheme.positivity = "limiter"' in said
    command = shlex.split(re.search(r"to go on: hiresx (run --restart .*)$", said, re.M)[1])
    assert execute([*command, "--backend", "cpu"]) == 0, capsys.readouterr().err
    assert json.loads((tmp_path / "runs/sod-1/run.json").read_text())["time"] == pytest.approx(0.1)
    vacuum = ["run", "vacuum", "--backend", "cpu", "--set", "grid.n=[100,1,1]", "--set", "time.dt=0.0006", "--set"]
    assert [execute([*vacuum, f'scheme.positivity="{kind}"']) for kind in ("fallback", "limiter")] == [3, 0]


def test_the_neighbourhood_of_a_blow_up_is_that_of_its_node_in_whatever_part(tmp_path):
    case = load("isentropic-vortex", None, ["grid.n=[40,32,1]"])
    halves = [Part(0, ((0, 18), (0, 32), (0, 1)), 0), Part(0, ((18, 40), (0, 32), (0, 1)), 0)]
    solver = Simulation(case, "cpu", parts=lambda grid: halves).solver
    solver.initialize()
    error = BlowUp("it is gone", "begin anew", 0, (29, 5, 0))
    path = write_neighbourhood(tmp_path, solver, error, case.model_dump(mode="json"))
    (found,) = field_file.read(path).blocks
    assert found.name.endswith("_from_21_0_0") and found.x.shape == (1, 14, 17)
    part = solver.states[1].block
    assert np.array_equal(found.x, part.x[:, :14, 3:20]) and np.array_equal(found.y, part.y[:, :14, 3:20])
