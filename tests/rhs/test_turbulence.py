"""Flows with an eddy viscosity: energy, walls, plans, ranks, restarts."""

import numpy as np
import pytest
from ranks import run_ranks
from wholes import off_on_ranks

from hiresx import Case, HiresxError, Simulation, load
from hiresx.output.watch import history

MODEL = 'turbulence.model="smagorinsky"'


def vortex(*overrides: str, steps: int = 6) -> Case:
    """A Taylor-Green vortex that is not resolved."""
    return load("taylor-green", overrides=["grid.n=[16, 16, 16]", f"time.steps={steps}", "time.end=20.0", *overrides])


def tilted(x, y, z):
    """Without the symmetries of the vortex."""
    rho = 1 + 0.1 * np.sin(x + 2 * y)
    u, v, w = 0.3 * np.sin(x) * np.cos(y + z), 0.2 * np.cos(2 * x - z), 0.3 * np.sin(y) * np.cos(x) + 0.1
    return rho, u, v, w, (1 + 0.05 * np.cos(z + x)) / 1.4


def table(folder, name: str) -> dict[str, np.ndarray]:
    """The history `name` of a run."""
    return history.read(history.histories(folder)[name]).data


def rates_of_kinetic_energy(case: Case, out) -> tuple[Simulation, float]:
    """The mean of u . d(rho u)/dt - |u|^2/2 d rho/dt."""
    run = Simulation(case, "cpu", initial=tilted, out=out)
    run.solver.choose_dt()
    run.solver.right_hand_side()
    (state,) = run.solver.states
    r = state.interior(run.backend.to_host(state.r)) * run.solver.field(0, "jacobian")
    u = np.stack([run.blocks[0].state(name) for name in "uvw"])
    return run, float(np.mean(np.sum(u * r[1:4], axis=0) - 0.5 * np.sum(u * u, axis=0) * r[0]))


@pytest.mark.slow
def test_the_model_takes_the_energy_that_it_says(tmp_path):
    """What the model changes of the rate of the kinetic energy is what [kinetic_energy] calls its dissipation, to
    round-off: central differences sum by parts in a periodic box."""
    rates, tables = {}, {}
    for name, model in (("with", (MODEL,)), ("without", ())):
        run, rates[name] = rates_of_kinetic_energy(vortex(*model, "kinetic_energy.every=1"), tmp_path / name)
        run.run(progress=False)
        tables[name] = table(tmp_path / name, "kinetic_energy")
    found = tables["with"]
    assert found["dissipation_model"].min() > found["dissipation"].max() > 0
    assert rates["with"] - rates["without"] == pytest.approx(-found["dissipation_model"][0], rel=1e-11)
    assert "dissipation_model" not in tables["without"]
    assert np.all(found["kinetic_energy"][1:] < tables["without"]["kinetic_energy"][1:])


@pytest.mark.slow
def test_walls_feel_the_eddy_viscosity(tmp_path):
    """A linear profile between walls: the stress and the heat flux are those of mu + mu_t and mu/Pr + mu_t/Pr_t. The
    first step and the first sample know them."""
    u, warm, reynolds, n = 0.4, 0.1, 50.0, (9, 17, 9)
    walls = {"type": "no-slip-wall"}
    case = Case.from_dict(
        {
            "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": [1, 1, 1], "periodic": ["x", "z"]},
            "gas": {"reynolds": reynolds},
            "turbulence": {"model": "smagorinsky", "constant": 0.5, "prandtl": 0.4},
            "time": {"steps": 1, "viscous_cfl": 0.2, "cfl": 10.0},
            "boundary": [
                {"faces": ["jmin"], "temperature": 1.0, **walls},
                {"faces": ["jmax"], "temperature": 1.0 + warm, "velocity": [u, 0.0, 0.0], **walls},
                {"faces": ["imin", "imax", "kmin", "kmax"], "type": "periodic"},
            ],
            "force": [{"name": "lower", "faces": ["jmin"], "every": 1}],
        }
    )
    run = Simulation(
        case,
        "cpu",
        out=tmp_path / "run",
        initial=lambda x, y, z: (1 / (1 + warm * y), u * y, 0 * y, 0 * y, 1 / 1.4 + 0 * y),
    )
    spacing = np.array([1 / 9, 1 / 16, 1 / 9])
    eddies = (0.5**2) * np.prod(spacing) ** (2 / 3) * u / (1 + warm * run.blocks[0].y) * reynolds
    np.testing.assert_allclose(run.solver.field(0, "eddy_viscosity")[0], eddies, rtol=1e-10)
    diffusivity = (1.4 / 0.72 + 1.4 / 0.4 * eddies) * (1 + warm * run.blocks[0].y) / reynolds
    run.run(progress=False)
    assert run.solver.dt == pytest.approx(0.2 / (diffusivity.max() * np.sum(spacing**-2)), rel=1e-10)
    found, mu = table(tmp_path / "run", "lower"), 1 / reynolds
    assert found["friction_x"][0] == pytest.approx(mu * (1 + eddies[0, 0, 0]) * u, rel=1e-9)
    assert found["heat"][0] == pytest.approx(mu * (1 / 0.72 + eddies[0, 0, 0] / 0.4) / 0.4 * warm, rel=1e-9)


def on_two_ranks(comm) -> float:
    return off_on_ranks(comm, vortex(MODEL), 6)


@pytest.mark.slow
def test_plans_and_ranks():
    """The same by every plan, and on two ranks."""
    states = {}
    for backend, plan in (("cpu", "pencils"), ("cpu", "decomposed"), ("cpu", "compact"), ("emulated", "fused")):
        run = Simulation(vortex(MODEL, f'plan="{plan}"'), backend, initial=tilted)
        run.run(progress=False)
        fields = [run.blocks[0].state(name) for name in ("rho", "u", "v", "w", "p")]
        states[plan] = np.stack([*fields, run.solver.field(0, "eddy_viscosity")[0] / 50])
        assert states[plan][5].max() > 0.1
    for found in states.values():
        np.testing.assert_allclose(found, states["pencils"], rtol=0, atol=1e-13)
    assert max(run_ranks(2, on_two_ranks)) < 1e-13


@pytest.mark.slow
def test_restart_with_steps_by_the_viscous_limit(tmp_path):
    """A restart goes on to the last bit: it knows the eddy viscosity by which the next step is chosen."""
    case = vortex(MODEL, "gas.reynolds=20.0", "time.viscous_cfl=0.1", "time.cfl=1.0")
    through = Simulation(case, "cpu", initial=tilted)
    through.run(progress=False)
    first = Simulation(case, "cpu", initial=tilted, out=tmp_path / "run")
    first.run(steps=3, progress=False)
    rest = Simulation(restart=tmp_path / "run", backend="cpu")
    rest.run(progress=False)
    assert rest.solver.time == through.solver.time
    for name in ("rho", "u", "p"):
        assert np.array_equal(rest.blocks[0].state(name), through.blocks[0].state(name))
    inviscid = Simulation(vortex(MODEL, "gas.reynolds=20.0", "time.cfl=1.0", "time.viscous_cfl=1e3"), "cpu")
    inviscid.solver.choose_dt()
    assert through.solver.dt < 0.7 * inviscid.solver.dt


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ([MODEL, "gas.reynolds=inf"], "needs the viscous terms"),
        (["turbulence.constant=0.1"], "no effect without turbulence.model"),
        (['turbulence.model="smagorinski"'], 'did you mean "smagorinsky"'),
    ],
)
def test_what_cannot_be_is_refused(overrides, said):
    with pytest.raises(HiresxError) as error:
        load("taylor-green", overrides=overrides)
    assert said in str(error.value)


def test_axisymmetric_flow_is_refused():
    with pytest.raises(HiresxError, match="not supported in axisymmetric flow"):
        load("cone", overrides=[MODEL, "gas.reynolds=100.0"])
