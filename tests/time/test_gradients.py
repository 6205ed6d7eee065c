"""Derivatives of steady flows: against closed forms, against differences of converged flows, and what is refused."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from ranks import run_ranks
from test_system import OnArrays

from hiresx import HiresxError, Simulation, gradients, load
from hiresx.cli import execute
from hiresx.gradients import forward, gradient, numbers
from hiresx.gradients.flow import PATIENCE, SteadyFlow
from hiresx.gradients.parameters import CaseFamily, parameter
from hiresx.gradients.tangent import TangentSolver
from hiresx.mpi.communicator import world
from hiresx.time.linearised import EXPLICIT_CFL

# Uniform flow between slip walls: it is at rest with the pressure behind it, which presses on the floor.
DUCT = """
[grid]
generator = "box"
n = [9, 7, 1]
lower = [0.0, 0.0, 0.0]
upper = [2.0, 1.0, 0.0]
[scheme]
flux = "hllc"
epsilon = 1e-2
[time]
integrator = "implicit"
[parameters]
speed = 0.5
back = 0.72
[initial]
state = { rho = 1.0, u = "= parameters.speed", p = 0.7142857142857143 }
[[force]]
name = "floor"
faces = ["jmin"]
[[boundary]]
faces = ["imin"]
type = "far-field"
state = { rho = 1.0, u = "= parameters.speed", p = 0.7142857142857143 }
[[boundary]]
faces = ["imax"]
type = "pressure-outflow"
pressure = "= parameters.back"
[[boundary]]
faces = "all"
type = "slip-wall"
"""
BUMP = {
    "time.integrator": "implicit", "time.cfl": 2.0, "time.steps": 60, "grid.cells": [4, 8, 4], "grid.n_normal": 13,
    "grid.first_spacing": 0.1,
}  # fmt: skip
CLOSED = ['boundary=[{faces="all", type="slip-wall"}]', 'grid.upper=["= parameters.back", 1.0, 0.0]']
PRESSURE, LENGTH, SPEED = 0.72, 2.0, 0.5


@pytest.fixture(scope="module")
def duct(tmp_path_factory):
    path = tmp_path_factory.mktemp("duct") / "duct.toml"
    path.write_text(DUCT)
    return path


@pytest.fixture(scope="module")
def steady(duct):
    flow = SteadyFlow(CaseFamily(duct, (), {}).case(), "cpu", world())
    flow.converge(1e10)
    return flow


@pytest.fixture(scope="module")
def solver(duct, steady):
    return TangentSolver(CaseFamily(duct, (), {}), steady, forward._ignore)


LIFT = -PRESSURE * LENGTH / (0.5 * SPEED**2)


@pytest.mark.parametrize(
    ("key", "force", "lift"),
    [
        ("parameters.back", -LENGTH, -LENGTH / (0.5 * SPEED**2)),
        ("grid.upper.0", -PRESSURE, LIFT / LENGTH),
        pytest.param("parameters.speed", 0.0, -2 * LIFT / SPEED, marks=pytest.mark.slow),
        pytest.param("force.0.pressure", LENGTH, LENGTH / (0.5 * SPEED**2), marks=pytest.mark.slow),
    ],
)
def test_of_a_uniform_flow_in_closed_form(solver, key, force, lift):
    """By a condition, the grid, the free stream and a number that the monitor alone has."""
    found = solver.solve(parameter(solver.case, key), ["floor.force_y", "floor.lift"], 1e-3).numbers
    assert found["floor.force_y"] == pytest.approx(force, rel=1e-8, abs=1e-8)
    assert found["floor.lift"] == pytest.approx(lift, rel=1e-8)


def test_what_has_no_influence_is_refused(solver):
    with pytest.raises(HiresxError, match=r"--by time.cfl: neither the steady flow nor the results depend"):
        solver.solve(parameter(solver.case, "time.cfl"), ["floor.force_y"], 1e-3)


def test_a_flow_beside_a_converged_one_takes_few_steps(solver, steady, duct):
    """From `time.cfl` on it takes 31, and in a wide grid a small disturbance grew until `time.steps`."""
    beside = SteadyFlow(CaseFamily(duct, (), {"parameters.back": PRESSURE + 3e-4}).case(), "cpu", world())
    beside.start_beside(steady, solver.state)
    beside.converge(math.inf, 10 * steady.report["residual"])
    assert beside.steps <= 10
    assert beside.measure(beside.state(), ["floor.force_y"])["floor.force_y"] == pytest.approx(
        -LENGTH * (PRESSURE + 3e-4)
    )


def test_measurements_are_not_counted_as_steps(duct, monkeypatch):
    """Neither in what is reported nor in what `time.steps` allows; two were."""
    taken = []
    monkeypatch.setattr(Simulation, "step", lambda self, step=Simulation.step: taken.append(step(self)))
    found = gradient(duct, ["force_y"], ["parameters.back"], backend="cpu", step=1e-3)
    assert found.flow["steps"] == len(taken)


def test_full_names_may_stand_beside_short_ones_of_other_histories(duct):
    """The short one was looked for in the histories of the full ones alone."""
    simulation = Simulation(load(duct, overrides=["conservation.every=1"]), "cpu")
    assert list(numbers.measure(simulation, ["floor.lift", "mass"])) == ["floor.lift", "conservation.mass"]


@pytest.mark.slow
def test_of_a_bump_against_converged_flows():
    """By its shape; the step follows from the flow."""
    found = gradient("bump", ["force_x", "bump.force_y"], ["grid.thickness"], "subsonic", BUMP, "cpu", check=True)
    assert found.solved["grid.thickness"]["residual"] < 1e-9
    for number in ("bump.force_x", "bump.force_y"):
        derivative = found.derivatives[number]["grid.thickness"]
        assert abs(derivative) > 1e-3
        assert found.differences[number]["grid.thickness"] == pytest.approx(derivative, rel=2e-8)


# An airfoil at incidence, at no camber: the foot of mirrored places behind its nose is the node there. The cells at the
# nose are those of the preset, so that no ghost lies deeper behind the wall than its centre of curvature.
AIRFOIL = {
    "time.integrator": "implicit", "parameters.incidence": 2.0, "grid.n_wake": 8, "grid.n_normal": 17,
    "output.subset": [],
}  # fmt: skip


@pytest.mark.parametrize("step", [1e-4, 1e-6])
def test_rates_are_smooth_functions_of_the_camber(step):
    """Their second difference is of the second order in the step. Interpolations through six nodes, which become others
    where the foot passes the node, made it 0.037 of the first difference at the smaller step."""
    family = CaseFamily("naca0012", ["quick", "subsonic"], AIRFOIL)
    flows = [SteadyFlow(family.with_keys({"grid.camber": n * step}), "cpu", world()) for n in (-1, 0, 1)]
    system, x = flows[0].system, flows[1].state()
    below, at, above, bend, slope = (system.vector() for _ in range(5))
    for flow, into in zip(flows, (below, at, above), strict=True):
        flow.residual(x, into)
    for n, vector in ((1.0, below), (-2.0, at), (1.0, above)):
        system.axpy(n, vector, bend)
    for n, vector in ((-1.0, below), (1.0, above)):
        system.axpy(n, vector, slope)
    assert system.norm(slope) > 10 * step
    assert system.norm(bend) < 4 * step * system.norm(slope)


@pytest.mark.slow
def test_derivatives_by_the_camber_do_not_depend_on_the_step():
    """That of the drag was 0.02, 0.08 and 0.5 with these steps."""
    airfoil = {"time.integrator": "implicit", "parameters.incidence": 2.0, "grid.camber": 0.0}
    numbers = []
    for step in (1e-3, 1e-4, 1e-5):
        found = gradient("naca0012", ["lift", "drag"], ["grid.camber"], ["quick", "subsonic"], airfoil, "cpu", step)
        numbers.append([found.derivatives[f"airfoil.{name}"]["grid.camber"] for name in ("lift", "drag")])
    lift, drag = zip(*numbers, strict=True)
    assert lift[1:] == pytest.approx([lift[0]] * 2, rel=1e-6)
    assert drag[1:] == pytest.approx([drag[0]] * 2, rel=2e-5)


def _on_ranks(comm, path) -> float:
    longer = {"grid.n": [15, 7, 1]}
    found = gradient(path, ["force_y"], ["parameters.back"], None, longer, "cpu", 1e-3, comm=comm)
    return found.derivatives["floor.force_y"]["parameters.back"]


@pytest.mark.slow
def test_on_two_ranks(duct):
    assert run_ranks(2, _on_ranks, duct, timeout=300.0) == pytest.approx([-LENGTH] * 2, rel=1e-8)


@pytest.mark.parametrize(
    ("of", "by", "overrides", "named"),
    [
        (["force_y"], ["parameters.bak"], [], r'--by parameters.bak: the case has no "parameters.bak"'),
        (["force_y"], ["initial.state.rhoo"], [], 'did you mean "initial.state.rho"'),
        (["force_y"], ["boundary.7.pressure"], [], r'--by boundary.7.pressure: the case has no "boundary.7"'),
        (["force_y"], ["grid.n.0"], [], r"--by grid.n.0: its value is a whole number"),
        (["force_y"], ["gas.reynolds"], [], r"--by gas.reynolds: its value is not given"),
        (["force_y"], ["parameters.back"] * 2, [], "a name is given twice"),
        ([], ["parameters.back"], [], "of: the list is empty"),
        (["force_q"], ["parameters.back"], [], r"--of force_q: no monitor of the case has such a number"),
        (["force_y"], ["parameters.back"], ["time.integrator=ssp_rk3", "time.steps=5"], '"ssp_rk3": derivatives need'),
        (
            ["force_y"],
            ["parameters.back"],
            ["time.steps=3"],
            r"the flow is not converged: in 3 steps its resid",
        ),
        (["lift"], ["parameters.back"], ["initial.state.u=0.0"], "velocity of initial.state, and the case has none"),
        (["force_y"], ["parameters.back"], ["implicit.krylov=0"], "implicit.krylov = 0: derivatives are solved for by"),
        (["force_y"], ["parameters.back"], CLOSED, "do not determine the mass"),
    ],
)
def test_what_cannot_be_differentiated_is_refused(duct, of, by, overrides, named):
    with pytest.raises(HiresxError, match=named):
        gradient(duct, of, by, overrides=overrides, backend="cpu")


def test_a_key_without_a_value_can_be_given_one(duct):
    with pytest.raises(HiresxError, match="its value is not given") as refused:
        parameter(load(duct), "gas.reynolds")
    assert "--set gas.reynolds=" in refused.value.hint


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"of": [3]}, r"of: \[3\] is not a list of texts"),
        ({"by": [3]}, r"by: \[3\] is not a list of texts"),
        ({"step": "a"}, "step: 'a' is not a number or None"),
        ({"step": 0}, "--step 0: no step has this size"),
        ({"step": -1e-3}, "--step -0.001: no step has this size"),
        ({"step": float("nan")}, "--step nan: no step has this size"),
        (
            {"step": 1e-30},
            "--step 1e-30: parameters.back = 0.*not resolved together in double precision\n.*a step from",
        ),
        ({"step": 1e300}, "--step 1e[+]300: parameters.back"),
        ({"step": 1e-12, "by": ["initial.state.v"]}, "--step 1e-12: initial.state.v = 0 and"),
        ({"case": {}}, "case: {} is not a text or a path"),
    ],
)
def test_what_is_no_name_or_number_is_refused(duct, given, named):
    with pytest.raises(HiresxError, match=named):
        gradient(**{"case": duct, "of": ["force_y"], "by": ["parameters.back"], "backend": "cpu"} | given)


def test_values_that_a_key_cannot_have_are_named(duct):
    family = CaseFamily(duct, (), {"grid.upper": [1e-4, 1.0, 0.0]})
    with pytest.raises(HiresxError, match=r"grid.upper.0 = -0.0019, a step -0.002 from its value, is not taken"):
        family.with_shift(parameter(family.case(), "grid.upper.0"), -2e-3)


def test_the_command_prints_a_table_or_json(monkeypatch, capsys):
    asked = []
    made = gradients.Gradient(
        {"wing.lift": 0.25}, {"parameters.mach": 0.5}, {"wing.lift": {"parameters.mach": 1.5}},
        {"wing.lift": {"parameters.mach": 1.25}}, {"parameters.mach": {"step": 1e-3, "residual": 2e-11, "products": 7}},
        {"steps": 9, "residual": 1e-13, "drop": 1e11},
    )  # fmt: skip
    monkeypatch.setattr(gradients, "gradient", lambda *given: asked.append(given) or made)
    words = ["gradient", "bump", "--of", "lift, drag", "--by", "parameters.mach", "--check", "--set", "a.b=1"]
    assert execute(words) == 0
    assert asked[0][:5] == ("bump", ["lift", "drag"], ["parameters.mach"], None, {"a.b": 1})
    assert "1.5" in (said := capsys.readouterr().out) and "2.0e-01" in said and "wing.lift" in said
    assert execute([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["derivatives"] == {"wing.lift": {"parameters.mach": 1.5}}
    for of, by, said in (("lift,", "a", "write --of lift\n"), ("lift", "", "e.g. --by parameters.mach,gas.reynolds")):
        capsys.readouterr()
        assert execute(["gradient", "bump", "--of", of, "--by", by]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_key_that_adds_nodes_is_refused(solver):
    family = CaseFamily(solver._family.name, (), {"grid.n": ["= 8 + round(parameters.back + 0.78)", 7, 1]})
    flow = SteadyFlow(family.case(), "cpu", world())
    with pytest.raises(HiresxError, match=r"--by parameters.back: the grid has other numbers of nodes a step 0.001"):
        TangentSolver(family, flow, forward._ignore).solve(parameter(flow.case, "parameters.back"), ["force_y"], 1e-3)


def test_a_flow_whose_residual_rests_is_not_stepped_on(duct, monkeypatch):
    """Converged by the asked factor, and then not halved in PATIENCE steps: each further step would be for nothing."""
    flow = SteadyFlow(CaseFamily(duct, (), {}).case(), "cpu", world())
    monkeypatch.setattr(flow.simulation, "step", lambda: None)
    monkeypatch.setattr(flow, "_report", lambda: {"residual": 1e-9, "drop": 1e9, "linear_drop": 1.0})
    monkeypatch.setitem(flow.integrator.memory, "residual", 1e-9)
    flow.converge(1e8)
    flow.close()
    # the first step brings the residual down, the others do not
    assert flow.steps == 1 + PATIENCE


def test_the_preconditioner_has_the_largest_cfl_number_that_was_solved(duct, monkeypatch):
    flow = SteadyFlow(CaseFamily(duct, (), {}).case(), "cpu", world())
    reports = iter([(10.0, 0.009), (20.0, 0.01), (100.0, 0.5), (5.0, 0.002), (5.0, 0.002)])  # CFL, linear residual
    found: list[float] = []

    def report():
        cfl, left = next(reports)
        return {"residual": 1e-9, "drop": 1e9, "linear_drop": left, "cfl": cfl}

    monkeypatch.setattr(flow.simulation, "step", lambda: None)
    monkeypatch.setattr(flow, "_report", report)
    monkeypatch.setattr(flow.linear, "assemble", lambda x, over_cfl: found.append(EXPLICIT_CFL / over_cfl))
    monkeypatch.setitem(flow.integrator.memory, "residual", 1e-9)
    flow.assemble(flow.state())
    flow.converge(1e8)
    flow.assemble(flow.state())
    flow.close()
    assert found == pytest.approx([flow.case.implicit.largest_cfl, 20.0])


def _linear(rng):
    """A solver of three linear equations, their differences, and the first approximation of their solution."""
    system, matrix, right, start = OnArrays(), rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)

    class Linear:
        solution = np.linalg.solve(matrix, right)

        def residual(self, x, y, into):
            into.arrays[0][:] = right - matrix @ y.arrays[0]

        def add(self, a, update, y):
            system.axpy(a, update, y)

    tangent = TangentSolver.__new__(TangentSolver)
    tangent._system, tangent._x, tangent._kept = system, system.vector(), []
    tangent._right, tangent._before = system.of(right - matrix @ start), system.vector()
    return tangent, Linear(), system.of(start)


@pytest.mark.parametrize("share", [0.3, 1.02, -2.0])
def test_a_correction_is_the_best_multiple_and_can_be_taken_back(share):
    """Of a linear residual, along an update that is so much of the solution's distance; one within a tenth is taken as
    it is."""
    tangent, linear, y = _linear(np.random.default_rng(2))
    start, size = y.arrays[0].copy(), tangent._system.norm(tangent._right)
    tangent._update = tangent._system.of(share * (linear.solution - start))
    left = tangent._correct(linear, y)
    np.testing.assert_allclose(y.arrays[0] - tangent._update.arrays[0], start, rtol=0, atol=1e-13)
    assert left == pytest.approx(tangent._tangent_residual(linear, y), rel=1e-9, abs=1e-13)
    assert left == pytest.approx(0.02 * size if share == 1.02 else 0.0, rel=1e-9, abs=1e-12)


def test_corrections_go_along_earlier_updates_too():
    """Three updates in any directions solve three equations. A fourth one changes nothing."""
    rng = np.random.default_rng(3)
    tangent, linear, y = _linear(rng)
    for count in (1, 2, 3, 3):
        before = y.arrays[0].copy()
        tangent._update = tangent._system.of(rng.normal(size=3))
        left = tangent._correct(linear, y)
        np.testing.assert_allclose(y.arrays[0] - tangent._update.arrays[0], before, rtol=0, atol=1e-12)
        assert len(tangent._kept) == count and (left > 1e-6) == (count < 3)
    assert left < 1e-12


@pytest.mark.parametrize(("estimate", "products"), [(0.6, 13), (0.2, 1)])
def test_round_off_is_what_the_linear_solver_does_not_leave(monkeypatch, estimate, products):
    """0.6 of a small residual is left after each call. If the linear solver estimates 0.6, the equations are solved on
    to 1e-11 of the initial residual. If it estimates 0.2, the rest is round-off."""
    left = [5e-9]

    def correct(self, differences, y):
        left.append(0.6 * left[-1])
        return left[-1]

    monkeypatch.setattr(TangentSolver, "_tangent_residual", lambda *_: left[-1])
    monkeypatch.setattr(TangentSolver, "_solve", lambda _: (estimate, 1))
    monkeypatch.setattr(TangentSolver, "_correct", correct)
    tangent = TangentSolver.__new__(TangentSolver)
    tangent._say, tangent._further = forward._ignore, 1.0
    differences = SimpleNamespace(parameter=SimpleNamespace(key="gas.reynolds"))
    assert tangent._improve(differences, None, 1.0) == (left[-1], products)
