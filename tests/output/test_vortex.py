"""The vortex in the far field of lifting airfoils."""

import numpy as np
import pytest
from same_everywhere import same_everywhere
from wholes import whole

from hiresx import Case, HiresxError, Simulation, load
from hiresx.case.far_field_vortex import Vortex
from hiresx.case.model import State
from hiresx.decomposition import decompose
from hiresx.gradients import gradient
from hiresx.grid import build
from hiresx.output.watch import monitors
from hiresx.rhs.boundary import Characteristic

GAMMA = 1.4
STREAM = State(rho=1.1, u=0.5, v=0.2, p=0.8)
VORTEX = Vortex(force="airfoil", centre=(0.3, -0.1, 0.0))


def around(radius: float, n: int = 400) -> tuple[np.ndarray, ...]:
    """Places on a circle about the vortex, and the angles."""
    angle = 2 * np.pi * np.arange(n) / n
    return VORTEX.centre[0] + radius * np.cos(angle), VORTEX.centre[1] + radius * np.sin(angle), angle


def test_the_circulation_is_what_was_asked_for_at_any_radius():
    for radius in (3.0, 30.0):
        x, y, angle = around(radius)
        _, u, v, _ = VORTEX.flow(STREAM, GAMMA, 0.3, x, y)
        assert np.mean(v * np.cos(angle) - u * np.sin(angle)) * 2 * np.pi * radius == pytest.approx(-0.3, rel=1e-12)


def test_entropy_and_total_enthalpy_are_those_of_the_stream():
    x, y, _ = around(2.0)
    rho, u, v, p = VORTEX.flow(STREAM, GAMMA, 0.7, x, y)
    np.testing.assert_allclose(p / rho**GAMMA, STREAM.p / STREAM.rho**GAMMA, rtol=1e-13)
    total = GAMMA / (GAMMA - 1) * STREAM.p / STREAM.rho + 0.5 * (STREAM.u**2 + STREAM.v**2)
    np.testing.assert_allclose(GAMMA / (GAMMA - 1) * p / rho + 0.5 * (u**2 + v**2), total, rtol=1e-13)


def test_it_satisfies_the_linearised_equations():
    """No rotation, and no divergence of the mass flux to first order in the circulation."""
    x, y, _ = around(2.0)
    small, h = 1e-4, 1e-3

    def fluxes(x, y):
        rho, u, v, _ = VORTEX.flow(STREAM, GAMMA, small, x, y)
        return rho * u, rho * v, u, v

    mx, _, _, vx = (np.subtract(*pair) / (2 * h) for pair in zip(fluxes(x + h, y), fluxes(x - h, y), strict=True))
    _, my, uy, _ = (np.subtract(*pair) / (2 * h) for pair in zip(fluxes(x, y + h), fluxes(x, y - h), strict=True))
    assert np.abs(mx + my).max() < 1e-3 * np.abs(mx).max()
    assert np.abs(vx - uy).max() < 1e-5 * np.abs(vx).max()


def ring(n: int, circulation: float) -> Simulation:
    """The flow of a vortex about a cylinder's grid, whose inner face is not looked at."""
    far = {"rho": STREAM.rho, "u": STREAM.u, "v": STREAM.v, "p": STREAM.p}
    nodes = {"n_around": 4 * n + 1, "n_normal": n + 1}
    case = Case.from_dict({
        "grid": {"generator": "cylinder-o", **nodes, "radius": 2.0, "outer_radius": 6.0},
        "scheme": {"weights": "linear"},
        "time": {"steps": 1, "local": True, "cfl": 0.5},
        "initial": {"state": far},
        "force": [{"name": "airfoil", "faces": ["jmin"]}],
        "boundary": [
            {"faces": ["jmin"], "type": "slip-wall"},
            {"faces": ["jmax"], "type": "far-field", "state": far, "vortex": VORTEX.model_dump()},
        ],
    })  # fmt: skip

    def flow(x, y, z):
        rho, u, v, p = VORTEX.flow(STREAM, GAMMA, circulation, x, y)
        return rho, u, v, 0 * x, p

    return Simulation(case, backend="cpu", initial=flow)


def test_the_far_field_of_the_vortex_is_at_rest_in_its_own_flow():
    """Rates of change beside the far field fall with the grid, as the ghosts have the vortex at their own places; with
    that at the face they did not."""
    circulation, found = 1e-5, []
    for n in (12, 24, 48):
        simulation = ring(n, circulation)
        solver = simulation.solver
        (far,) = (c for c in solver.conditions if isinstance(c, Characteristic))
        far.circulate(circulation)
        solver.right_hand_side()
        (state,) = solver.states
        rates = state.interior(state.r * state.jacobian)[:4]
        found.append(np.abs(rates[:, :, -3:]).max() / circulation)
    assert np.log2(np.divide(found[:-1], found[1:])).min() > 1.8, found


SMALL = (
    "grid.n_airfoil=33", "grid.n_wake=14", "grid.n_normal=19", "grid.first_spacing=2.4e-2", "output.subset=[]",
    "grid.trailing_edge_spacing=4e-2", 'boundary.1.vortex={force="airfoil"}', "implicit.drop=1e6",
)  # fmt: skip


def lifting(*overrides: str) -> Case:
    return load("naca0012", "lifting", overrides=[*SMALL, "grid.far_field=8.0", "grid.wake=8.0", *overrides])


def lift(case: Case, comm=None) -> tuple[float, Simulation]:
    simulation = Simulation(case, "cpu", comm=comm)
    simulation.run(progress=False)
    (vortex,) = (a for a in simulation.attachments if a.name == "history.vortex")
    return float(vortex.history.table().flat()["lift"][-1]), simulation


@pytest.mark.slow
def test_the_lift_hardly_depends_on_how_far_away_the_far_field_is():
    """Without the vortex it is less at 8 chords than at 32 by 3.6 %."""
    grid = ["grid.n_airfoil=65", "grid.first_spacing=1.2e-2", "grid.trailing_edge_spacing=2e-2"]
    near, _ = lift(lifting(*grid, "grid.n_wake=20", "grid.n_normal=25"))
    far, _ = lift(lifting(*grid, "grid.n_wake=27", "grid.n_normal=31", "grid.far_field=32.0", "grid.wake=32.0"))
    assert near == pytest.approx(far, rel=1.5e-3)


def test_newton_s_method_comes_on_with_the_vortex():
    """The residual with the last circulation falls as far as was asked for, in as many steps as without it."""
    _, simulation = lift(lifting())
    integrator = simulation.solver.integrator
    assert integrator.converged and simulation.step_count <= 18
    before = dict(integrator.memory)
    integrator.look_again(simulation.solver.system)
    assert integrator.memory["residual"] == pytest.approx(before["residual"], rel=1e-6)
    assert 1e6 * before["residual"] <= before["first_residual"]


EXPLICIT = ("time.integrator=ssp_rk3", "time.steps=24", "time.cfl=0.8", "monitor.every=12")


def explicit(where="cpu", comm=None, **arguments) -> Simulation:
    case = load("naca0012", overrides=[*SMALL[:-1], "grid.far_field=8.0", "grid.wake=8.0", *EXPLICIT])
    return Simulation(case, where, comm=comm, **arguments)


def explicit_on_ranks(comm):
    simulation = explicit(comm=comm)
    simulation.run(progress=False)
    return whole(simulation.solver)


@pytest.mark.slow
def test_the_flow_is_the_same_everywhere_and_after_a_restart(tmp_path):
    """The circulation changes at the steps 0, 10 and 20; the restart is at 13."""
    same_everywhere(explicit, tmp_path, 13, on_ranks=explicit_on_ranks)


def test_an_implicit_run_that_goes_on_is_one_that_was_not_interrupted(tmp_path):
    case = lifting("implicit.drop=1e12", "time.steps=6")
    alone = Simulation(case, "cpu")
    alone.run(progress=False)
    Simulation(case, "cpu", out=tmp_path).run(steps=3, progress=False)
    parts = Simulation(restart=tmp_path, backend="cpu")
    parts.run(progress=False)
    for a, b in zip(whole(alone.solver), whole(parts.solver), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_that_begins_on_a_coarser_grid_has_its_vortex_there():
    simulation = Simulation(lifting("implicit.sequence=1", "time.steps=2", "grid.n_wake=15"), "cpu")
    simulation.run(progress=False)
    (vortex,) = (a for a in simulation.attachments if a.name == "history.vortex")
    circulation = vortex.history.table().flat()["circulation"]
    assert circulation[0] == pytest.approx(circulation[-1], rel=0.2)


@pytest.mark.parametrize("make", [lambda: Simulation(lifting("time.steps=4"), "cpu"), lambda: explicit()])
def test_single_steps_are_those_of_a_run(make):
    """To round-off: 4 implicit ones, each of which has another circulation, and 24 explicit ones with 3."""
    run, steps = make(), make()
    run.run(progress=False)
    for _ in range(run.step_count):
        steps.step()
    for a, b in zip(whole(run.solver), whole(steps.solver), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-15)


@pytest.mark.slow
def test_derivatives_have_the_change_of_the_vortex():
    """They agree with differences of converged flows. Without the vortex that of the lift is 5 % less here."""
    given = [
        *SMALL, "grid.n_airfoil=65", "grid.n_wake=20", "grid.n_normal=25", "grid.first_spacing=1.2e-2",
        "grid.trailing_edge_spacing=2e-2", "grid.far_field=8.0", "grid.wake=8.0",
    ]  # fmt: skip
    found = gradient("naca0012", ["lift", "drag"], ["parameters.incidence"], "lifting", given, "cpu", 1e-3, check=True)
    for number, derivatives in found.derivatives.items():
        difference = found.differences[number]["parameters.incidence"]
        assert derivatives["parameters.incidence"] == pytest.approx(difference, rel=3e-8), number


# --- what is refused


@pytest.mark.parametrize(
    "changes, fault",
    [
        (("boundary.1.vortex.force=wing",), r'boundary\.1\.vortex\.force = "wing": there is no \[\[force\]\] of that'),
        (
            ("parameters.mach=1.2",),
            "subsonic stream along x and y, and that of boundary.1.state has the Mach number 1",
        ),
        (("parameters.mach=0.0",), "has the Mach number 0:"),
        (("time.integrator=ssp_rk3", "time.local=false"), r"boundary\.1\.vortex is for steady flow"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, fault):
    with pytest.raises(HiresxError, match=fault):
        load("naca0012", overrides=[*SMALL[:-1], *changes])


def test_two_vortices_are_refused():
    far = '{faces=["%s"],type="far-field",state={rho=1.0,u=%g,p=0.7},vortex={force="airfoil"}}'
    wall = '{faces=["jmin"],range="wall",type="slip-wall"}'
    with pytest.raises(HiresxError, match="another far field has another vortex or state"):
        lifting(f"boundary=[{wall},{far % ('imin', 0.4)},{far % ('imax', 0.3)}]")


def test_a_wing_is_refused():
    case = lifting("grid.n_span=9")
    with pytest.raises(HiresxError, match="which is for plane flow, and block 'airfoil' has"):
        monitors.check(case, decompose(case, build(case.grid, None)))


def test_a_vortex_on_the_far_field_is_refused():
    with pytest.raises(HiresxError, match="of the vortex lies on the far field"):
        case = lifting()
        x, y, _ = build(case.grid, None).blocks[0].node(20, -1, 0)
        Simulation(lifting(f"boundary.1.vortex.centre=[{x},{y},0.0]"), "cpu").run(progress=False)
