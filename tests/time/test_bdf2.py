"""Implicit steps of unsteady flow: order in time, conservation, cuts, backends, restarts, and stalls."""

import json

import numpy as np
import pytest
from ranks import run_ranks
from sweep_blocks import diagonal_blocks
from unsteady_flows import BLOWN, SCALARS, WALLS, after, blob, layer, line, parted, periodic, wave
from wholes import whole

from hiresx import Case, Simulation
from hiresx.cli import execute
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.estimate import estimate
from hiresx.output.watch.monitors.implicit_convergence import stalled_stages
from hiresx.simulation.blow_up_error import BlowUp
from hiresx.solver import Solver
from hiresx.time.integrators.bdf2 import extrapolation_weights


@pytest.mark.parametrize(
    ("boundary", "stretch", "flow", "uneven", "dt", "longer"),
    [
        (WALLS, 25.0, layer, False, 0.04, 100.0),
        (WALLS, 25.0, layer, True, 0.02, 50.0),
        (BLOWN, 1.0, wave, False, 0.01, 1.0),
    ],
    ids=["thin cells", "uneven steps", "wall that blows"],
)
def test_order_two_in_time(boundary, stretch, flow, uneven, dt, longer):
    """Against the explicit run, whose steps are `longer` times shorter."""
    given = dict(boundary=boundary, stretch=stretch, n=33, end=0.4)
    cfl = 0.9 if longer > 2 else 0.3
    explicit = after(line("ssp_rk3", time={"cfl": cfl, "viscous_cfl": 0.9}, **given), flow)
    (exact,) = whole(explicit)
    assert dt > longer * 0.4 / explicit.steps
    errors = []
    for share in (1, 2):
        case = line("bdf2", time={"dt": dt / share}, **given)
        errors.append(np.abs(whole(after(case, flow, uneven))[0] - exact).max())
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] > 2**1.8


def test_mass_momentum_and_energy_are_kept():
    """As far as the equations of a step are solved."""
    kept = []
    for drop in (1e3, 1e8):
        solver = Solver(periodic(implicit={"newton_drop": drop}), backend("cpu"))
        solver.initialize(blob)
        (begin,) = whole(solver)
        for _ in range(4):
            solver.step()
        (end,) = whole(solver)
        kept.append(np.abs((end - begin).mean(axis=(1, 2, 3))).max() / np.abs(end - begin).max())
    assert kept[0] < 1e-4 and kept[1] < 1e-9


def test_a_step_is_solved_as_far_as_its_error_in_time_needs():
    """What is left of the equations is little beside that error, and GMRES is not asked for more than a step needs."""
    solver = after(periodic("ssp_rk3", time={"cfl": 0.5, "dt": None, "steps": None, "end": 0.4}), blob)
    (exact,) = whole(solver)
    found = {}
    for drop in (None, 1e8):
        given = {} if drop is None else {"newton_drop": drop}
        solver = Solver(periodic(time={"dt": 0.05, "steps": None, "end": 0.4}, implicit=given), backend("cpu"))
        solver.initialize(blob)
        reports = []
        while solver.time < 0.4 * (1 - 1e-12):
            solver.step(0.4 - solver.time)
            reports.append(solver.integrator.report)
        found[drop] = whole(solver)[0], sum(report["products"] for report in reports), reports
    flow, products, reports = found[None]
    solved, more, _ = found[1e8]
    assert np.abs(flow - solved).max() < 0.1 * np.abs(solved - exact).max()
    assert 3 * products < more
    assert reports[0]["assemblies"] == 1  # both of its stages have the same blocks
    assert max(report["linear_drop"] for report in reports) > 0.02  # more than implicit.linear_drop


@pytest.mark.parametrize("sizes", [[], [0.3], [0.3, 0.1]])
def test_the_guess_continues_a_polynomial(sizes):
    times = -np.cumsum([0.0, *sizes])
    for power in range(len(sizes) + 1):
        found = sum(
            factor * (1 + t) ** power for factor, t in zip(extrapolation_weights(0.2, sizes), times, strict=True)
        )
        assert found == pytest.approx(1.2**power)


def off_on_ranks(comm) -> float:
    return float(np.abs(parted("cpu", comm.size, comm) - parted("cpu", 1)).max())


@pytest.mark.parametrize(("where", "parts"), [("cpu", 2), ("emulated", 1)])
def test_cuts_and_backends_agree(where, parts):
    np.testing.assert_allclose(parted(where, parts), parted("cpu", 1), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_ranks_agree():
    assert max(run_ranks(2, off_on_ranks)) < 1e-12


def test_a_run_goes_on_to_the_last_bit(tmp_path):
    """From a checkpoint that has the state before; its history says how each step was solved."""
    case = periodic(steps=5)
    through = Simulation(case, "cpu", initial=blob, out=tmp_path / "through")
    report = through.run(progress=False)["implicit"]
    Simulation(case, "cpu", initial=blob, out=tmp_path / "parts").run(steps=2, progress=False)
    rest = Simulation(restart=tmp_path / "parts", backend="cpu")
    assert rest.run(progress=False)["implicit"] == report
    assert rest.step_count == 5 and rest.time == through.time
    for name in ("rho", "u", "p"):
        np.testing.assert_array_equal(rest.blocks[0].state(name), through.blocks[0].state(name))
    stored = json.loads((tmp_path / "through" / "run.json").read_text())
    assert stored["implicit"]["newton"] >= 1 and stored["implicit"]["drop"] > 30


def test_memory_is_told_and_blocks_are_good_enough_for_few_products():
    case = periodic()
    solver = Solver(case, backend("cpu"))
    solver.initialize(blob)
    solver.step(0.002)  # so short that the term of time is most of a block
    assert solver.integrator.report["products"] <= 6
    assert 0 <= solver.bytes - estimate(case)["memory_bytes"] <= 8


def test_what_check_says(capsys, tmp_path):
    assert execute(["check", "couette", "--set", "time.integrator=bdf2", "--set", "time.dt=0.5"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "bdf2: order 2, implicit" in said and "no limit of the step" in said


def hard(steps: int, **implicit) -> Case:
    """A step of 100 flights of sound."""
    return line(
        "bdf2", WALLS, 1.0, 20, 100.0 * steps, time={"dt": 100.0, "steps": steps},
        implicit={"sweeps": 1, "newton_steps": 1, **implicit},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "asked"), [({"newton_drop": 1e4}, "implicit.newton_drop = 1e+04"), ({}, "the error in time needs")]
)
def test_steps_that_are_hardly_solved_are_told(given, asked, capsys):
    found = Simulation(hard(2, krylov=4, **given), "cpu", initial=wave).run()["implicit"]
    assert found["stalled"] >= 1 and found["least_drop"] > 10
    said = " ".join(capsys.readouterr().err.split())
    assert f"fell by less than {asked}" in said and "of block 'box'" in said


def test_a_step_without_a_solution_names_its_place():
    with pytest.raises(BlowUp, match=r"equations were not solved.* in the equation of .* of block 'box', and GMRES"):
        Simulation(hard(2, krylov=1), "cpu", initial=wave).run(progress=False)


def test_a_shorter_step_is_taken_where_one_has_no_solution():
    """A stage of the first step fails as often as it is told to."""
    solver = Solver(periodic(), backend("cpu"))
    solver.initialize(blob)
    scheme, left = solver.integrator, [1]
    advance = scheme.advance

    def failing(system):
        if left.pop() if left else 0:
            raise FloatingPointError("for the test")
        return advance(system)

    scheme.advance = failing
    assert solver.step() == 0.025 and solver.retaken == 1


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"implicit": {"drop": 1e5}}, "implicit.drop is not for time.integrator = .bdf2"),
        ({"scheme": {"precision": "fp32"}}, "scheme.precision = .fp32.: time.integrator = .bdf2"),
        ({"filter": {"order": 8}}, "filter: is not for"),
    ],
)
def test_what_does_not_go_with_it_is_refused(overrides, named):
    with pytest.raises(HiresxError, match=named):
        periodic(**overrides)


def test_viscosity_sets_no_limit_to_the_step_by_cfl():
    assert line("bdf2", WALLS, 25.0, 33, 1.0).time.cfl == 10.0
    thin = line("bdf2", WALLS, 100.0, 65, 1.0, time={"cfl": 50.0})
    found, inviscid = (Solver(case, backend("cpu")) for case in (thin, thin.model_copy(update={"gas": replaced(thin)})))
    for solver in (found, inviscid):
        solver.initialize(layer)
    assert found.choose_dt() == pytest.approx(inviscid.choose_dt())


def replaced(case: Case):
    return case.gas.model_copy(update={"reynolds": None})


BESIDE = {
    "scalars": {"scalar": SCALARS},
    "large eddies": {"turbulence": {"model": "smagorinsky", "constant": 0.5}, "gas": {"reynolds": 1e3}},
    "dynamic model": {"turbulence": {"model": "dynamic_smagorinsky"}, "gas": {"reynolds": 1e4}},
}


def shares(solver: Solver) -> Solver:
    """With a wave of the first scalar, where there are any."""
    solver.initialize(blob)
    if solver.states[0].q.shape[0] > 5:
        x, y = solver.states[0].block.x, solver.states[0].block.y
        values = solver.primitives(0)
        solver.set_state(
            0, *(values[name] for name in ("rho", "u", "v", "w", "p")),
            {"s": 0.5 + 0.3 * np.sin(2 * np.pi * (x + y)), "one": 1.0},
        )  # fmt: skip
        solver.complete_state()
    return solver


@pytest.mark.parametrize(
    "beside", [name if name == "scalars" else pytest.param(name, marks=pytest.mark.slow) for name in BESIDE]
)
def test_scalars_and_models_of_large_eddies_go_with_it(beside):
    """With order two, against explicit steps; a scalar that is 1 stays 1."""
    given, end, found = BESIDE[beside], 0.1, {}
    for dt in (None, 0.01, 0.005):
        times = {"steps": None, "end": end} | ({"dt": dt} if dt else {"dt": None, "cfl": 0.3})
        solver = shares(Solver(periodic("bdf2" if dt else "ssp_rk3", time=times, **given), backend("cpu")))
        while solver.time < end * (1 - 1e-12):
            solver.step(end - solver.time)
        found[dt] = whole(solver)[0]
    variables = np.abs(found[None]).max(axis=(1, 2, 3)) > 0
    errors = [np.abs(found[dt] - found[None]).max(axis=(1, 2, 3))[variables] for dt in (0.01, 0.005)]
    assert (errors[0] / errors[1] > 2**1.8).all()
    if beside == "scalars":
        np.testing.assert_allclose(found[0.005][6], found[0.005][0], atol=1e-6)
    elif beside == "large eddies":  # the model is felt
        plain = after(periodic(time={"dt": 0.005, "steps": None, "end": end}, gas=given["gas"]), blob)
        assert np.abs(whole(plain)[0] - found[0.005]).max() > 3 * errors[1].max()


def test_blocks_have_the_diffusion_of_scalars():
    """Without it GMRES needs four times more products."""
    scalars = [{"name": "s", "schmidt": 1e-3}, {"name": "one", "schmidt": 1e-3}]
    solver = shares(Solver(periodic(implicit={"sweeps": 20, "newton_drop": 1e3}, scalar=scalars), backend("cpu")))
    solver.step()
    assert solver.integrator.report["products"] <= 12


@pytest.mark.slow  # as kernels are compiled
def test_blocks_have_the_eddy_viscosity():
    """They are those of a gas that is as viscous."""
    model = {"turbulence": {"model": "smagorinsky", "prandtl": 0.72}, "gas": {"reynolds": 500.0, "prandtl": 0.72}}
    blocks = []
    for given in (model, {"gas": {"reynolds": 125.0, "prandtl": 0.72}}):
        solver = shares(Solver(periodic(implicit={"lines": "none"}, **given), backend("cpu")))
        (state,), linear, vector = solver.states, solver.integrator.linearised, solver.system.vector()
        solver.system.state(vector)
        linear.unsteady(0.0, 20.0, solver.system.vector())
        state.dt[...] = 0.01
        if state.array("eddy_viscosity") is not None:
            state.array("eddy_viscosity")[...] = 3.0
        linear.assemble(vector, 0.0)
        blocks.append(state.interior(diagonal_blocks(state.array("implicit_blocks"), 5)))
    np.testing.assert_allclose(*blocks, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_turbulence_goes_with_it():
    """The averaged equations: the same flow as by short explicit steps."""
    inner = {"model": "spalart_allmaras", "initial": 3.0}
    given = dict(boundary=WALLS, stretch=25.0, n=33, end=0.2, turbulence=inner)
    (exact,) = whole(after(line("ssp_rk3", time={"cfl": 0.5}, **given), layer))
    off = [np.abs(whole(after(line("bdf2", time={"dt": dt}, **given), layer))[0] - exact) for dt in (0.02, 0.01)]
    assert off[0].max() / off[1].max() > 2**1.8 and off[1].max() < 2e-3 * exact.max()


@pytest.mark.parametrize(
    ("last", "parts"),
    [
        ({}, ["fell by less than implicit.newton_drop = 100, by 12 at least", "take a smaller step"]),
        (
            {"unsolved": 2, "linear_drop": 0.3, "time": 1.5, "equation": "e", "node": [4, 5, 0], "block": "b"},
            ["at t = 1.5, was largest in the equation of e at node (i, j, k) = (4, 5, 0) of block 'b'", "krylov"],
        ),
    ],
)
def test_stages_that_were_not_solved_are_described_with_the_place_of_the_last(last, parts):
    text = stalled_stages({"stalled": 3.0, "least_drop": 12.0}, last, 100.0)
    assert all(part in text for part in parts) and ("take more implicit.krylov" in text) is bool(last)
