"""A run whose time step collapses while density and pressure stay positive and finite ends in words; runs whose steps
become small for other reasons go on."""

import math

import numpy as np
import pytest
from command_line import command
from ranks import run_ranks

from hiresx import BlowUp, Case, Simulation
from hiresx.case.toml import dumps

# Heating in proportion to p c, most at x = 0.75: the sound speed grows by a constant factor with each step.
HEATING = {"e": "50 * p * sqrt(T) * (1 - 0.1 * cos(2 * 3.14159265358979 * (x - 0.25)))"}
P = 1 / 1.4


def box(**tables) -> Case:
    return Case.from_dict({
        "grid": {"generator": "box", "n": [16, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x", "y"]},
        "time": {"steps": 400, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [{"faces": "all", "type": "periodic"}],
        "output": {"every_steps": 1000},
    } | tables)  # fmt: skip


def found(comm=None, backend: str = "cpu"):
    run = Simulation(box(source=HEATING), backend, comm=comm)
    try:
        run.run(progress=False)
    except BlowUp as error:
        return error.message, error.hint, error.block, error.node, run.step_count, run.solver.norms()[2]
    return None


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_a_collapse_of_the_step_is_a_blow_up_with_its_place(backend):
    message, hint, block, node, steps, least = found(backend=backend)
    assert "the time step fell from" in message and "block 'box' at node (i, j, k) = (12, " in message
    assert "(x, y, z) = (0.75, " in message and f"step {steps}" in message and "|u| + c = " in message
    assert block == 0 and node[0] == 12 and steps < 400 and math.isfinite(least) and least > 0
    assert "lower time.cfl" in hint and "grid and the conditions near that place" in hint


@pytest.mark.slow
def test_ranks_find_the_same():
    alone, (first, second) = found(), run_ranks(2, found)
    assert first == second and first[:4] == alone[:4]


def test_the_command_ends_with_status_3(tmp_path):
    spec = box(source=HEATING).model_dump(mode="json", exclude_unset=True)
    (tmp_path / "case.toml").write_text(dumps(spec))
    status, _, err = command("run", tmp_path, "--out", tmp_path / "run")
    assert status == 3 and "the time step fell from" in err, err
    assert (tmp_path / "run" / "blow-up.nc").exists()


def hot_spot(x, y, z):
    """Gas that is 1e14 times as hot in one place as elsewhere."""
    p = np.where((abs(x - 0.5) < 0.1) & (abs(y - 0.5) < 0.1), 1e2, 1e-12)
    return 1 + 0 * x, 0 * x, 0 * x, 0 * x, p


def test_steps_shortened_by_outputs_are_none():
    """Times that are a billionth apart."""
    case = box(time={"end": 0.2, "cfl": 0.5})
    run, sizes = Simulation(case, "cpu"), []
    for until in (0.1, 0.1 + 1e-9, 0.2):
        while run.time < until:
            sizes.append(run._step(until))
    assert min(sizes) < 1e-6 * max(sizes)


@pytest.mark.parametrize(
    "time",
    [{"steps": 3, "dt": 1e-9}, {"steps": 3, "cfl": 0.5}],
    ids=["fixed", "cfl"],
)
def test_a_hot_spot_in_cold_gas_is_none(time):
    case = box(time=time, scheme={"positivity": "limiter"})
    Simulation(case, "cpu", initial=hot_spot).run(progress=False)


def test_another_cfl_number_is_none():
    """A script that starts with a CFL number of a millionth, or ends with it."""
    for first, second in ((0.5, 1e-7), (1e-7, 0.5)):
        run = Simulation(box(time={"steps": 20, "cfl": 0.5}), "cpu")
        for factor in (first, second):
            run.solver.step_factor = factor
            for _ in range(3):
                run.step()


def test_a_state_that_a_script_sets_is_none():
    """By a script between steps, and by a monitor of a run."""
    run = Simulation(box(time={"steps": 20, "cfl": 0.5}), "cpu")
    for _ in range(3):
        run.step()
    run.blocks[0].set_state(1.0, 0.0, 0.0, 0.0, 1e15)
    run.step()

    def heat(simulation):
        if simulation.step_count == 3:
            simulation.blocks[0].set_state(1.0, 0.0, 0.0, 0.0, 1e15)
        return {"one": 1.0}

    run = Simulation(box(time={"steps": 6, "cfl": 0.5}, monitor={"every": 1}), "cpu", monitors=[heat])
    run.run(progress=False)
    assert run.blocks[0].state("p").min() > 1e14
