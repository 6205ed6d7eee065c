"""Runs from Python: what a user hands in, what is left behind, what is promised beforehand."""

import json
import re

import numpy as np
import pytest
from paths import ROOT
from vortices import PRANDTL, taylor_green
from watched_runs import tables

from hiresx import Case, HiresxError, Simulation, load
from hiresx.estimate import estimate, resources
from hiresx.grid import build
from hiresx.output.fields import field_file as fields

SURFACE = (
    "status", "case", "backend", "points", "steps", "time", "wall_s", "ns_per_point_rhs", "point_steps_per_s",
    "bytes_per_point", "stages", "versions", "hardware",
)  # fmt: skip


def channel(**changes) -> Case:
    """Sound in a short channel: inflow, outflow, walls."""
    tables = {
        "grid": {"generator": "box", "n": [24, 12, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
        "time": {"steps": 5, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}},
        "boundary": [
            {"faces": ["imin"], "type": "characteristic-inflow", "state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}},
            {"faces": ["imax"], "type": "characteristic-outflow", "pressure": 1 / 1.4},
            {"faces": ["jmin", "jmax"], "type": "slip-wall"},
        ],
    }
    return Case.from_dict(tables | changes)


def pulse(x, y, z):
    p = 1 / 1.4 + 1e-3 * np.exp(-20 * ((x - 1) ** 2 + (y - 0.5) ** 2))
    return (1.4 * p) ** (1 / 1.4), 0.2, 0.0, 0.0, p


def test_a_finished_run_leaves_the_whole_record(tmp_path):
    record = Simulation(channel(), backend="cpu", out=tmp_path, initial=pulse).run(progress=False)
    written = json.loads((tmp_path / "run.json").read_text())
    assert written["status"] == record["status"] == "finished"
    assert set(SURFACE) <= written.keys()
    assert written["steps"] == 5 and written["points"] == 288 and written["backend"] == "cpu"
    assert written["case"]["scheme"]["flux"] == "steger_warming", "defaults are written out"
    assert {"inviscid", "update", "boundary", "exchange", "time step"} <= written["stages"].keys()
    assert written["ns_per_point_rhs"] > 0 and written["point_steps_per_s"] > 0
    assert list(fields.frames(tmp_path)) == [0, 5]


def test_fields_come_at_the_asked_times_exactly(tmp_path):
    case = channel(time={"end": 0.5, "cfl": 0.5}, output={"every_time": 0.2})
    Simulation(case, out=tmp_path, backend="cpu", initial=pulse).run(progress=False)
    times = [fields.read(path).time for path in fields.frames(tmp_path).values()]
    assert times == pytest.approx([0.0, 0.2, 0.4, 0.5], abs=1e-12)


def test_a_second_run_in_a_directory_leaves_no_frame_of_the_first(tmp_path):
    Simulation(channel(time={"steps": 9}), backend="cpu", out=tmp_path, initial=pulse).run(progress=False)
    Simulation(channel(), backend="cpu", out=tmp_path, initial=pulse).run(progress=False)
    assert list(fields.frames(tmp_path)) == [0, 5]


def test_own_initial_state_monitor_and_access_to_fields():
    def mass(simulation):
        return {"mass": float(simulation.blocks[0].state("rho").sum())}

    simulation = Simulation(channel(monitor={"every": 2}), backend="cpu", initial=pulse, monitors=[mass])
    assert simulation.blocks[0].state("p").shape == (1, 12, 24)
    assert simulation.blocks[0].state("p").max() > 1 / 1.4 + 8e-4
    simulation.run(progress=False)
    assert [entry["step"] for entry in simulation.history] == [0, 2, 4, 5]
    assert all(entry["mass"] > 0 for entry in simulation.history)
    assert simulation.blocks[0].state("mach").mean() == pytest.approx(0.2, rel=0.05)


def test_set_state_then_step():
    simulation = Simulation(channel(), backend="cpu")
    block = simulation.blocks[0]
    block.set_state(1.0, 0.2, 0.0, 0.0, 1 / 1.4)
    before = block.state("p")
    dt = simulation.step()
    assert dt > 0 and simulation.time == dt and simulation.step_count == 1
    np.testing.assert_allclose(block.state("p"), before, rtol=1e-13)


def test_own_boundary_profile_is_used():
    boundary = [
        {"faces": ["imin"], "type": "profile-inflow", "function": "ours"},
        {"faces": ["imax"], "type": "supersonic-outflow"},
        {"faces": ["jmin", "jmax"], "type": "slip-wall"},
    ]

    def ours(x, y, z, t):
        return 1.0, 2.0 + 0.1 * np.cos(np.pi * y), 0.0, 0.0, 1 / 1.4

    case = channel(boundary=boundary, time={"steps": 300}, initial={"state": {"rho": 1.0, "u": 2.0, "p": 1 / 1.4}})
    simulation = Simulation(case, backend="cpu", profiles={"ours": ours})
    simulation.run(progress=False)
    y, u = simulation.blocks[0].y[0], simulation.blocks[0].state("u")[0]
    np.testing.assert_allclose(u[:, 0], 2.0 + 0.1 * np.cos(np.pi * y[:, 0]), atol=1e-12)
    np.testing.assert_allclose(u[:, -1], u[:, 0], atol=2e-3)


def test_own_grid_replaces_the_case_s():
    from hiresx.grid import Block, Grid

    x, y = np.meshgrid(np.linspace(0, 2, 15), np.linspace(0, 1, 9))
    grid = Grid((Block("mine", x[None], y[None], np.zeros((1, *x.shape))),), (), ({},))
    simulation = Simulation(channel(), backend="cpu", grid=grid)
    assert simulation.blocks[0].name == "mine" and simulation.solver.points == 135


def test_a_blow_up_names_the_place_and_is_recorded(tmp_path):
    case = channel(time={"dt": 5.0, "steps": 50}, monitor={"every": 1})
    with pytest.raises(HiresxError, match=r"block 'main'|block '.*' at node \(i, j, k\) = .*step \d+, time") as error:
        Simulation(case, backend="cpu", out=tmp_path, initial=pulse).run(progress=False)
    assert "time.dt" in error.value.hint
    written = json.loads((tmp_path / "run.json").read_text())
    assert written["status"] == "failed" and "blew up" in written["error"]


def test_a_misspelt_output_variable_is_refused_before_anything_runs():
    with pytest.raises(HiresxError, match="machh"):
        Simulation(channel(output={"variables": ["machh"]}), backend="cpu")


def test_an_interrupt_is_recorded_and_goes_up(tmp_path):
    def stop(simulation):
        if simulation.step_count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Simulation(channel(monitor={"every": 2}), backend="cpu", out=tmp_path, monitors=[stop]).run(progress=False)
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "interrupted"


@pytest.mark.parametrize("name", ["sod", "taylor-green", pytest.param("planar-jet", marks=pytest.mark.slow), "couette"])
@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_the_plan_states_the_memory_that_is_then_taken(name, backend):
    preset = "quick" if name == "planar-jet" else None
    overrides = ["grid.n=[16, 16, 16]", PRANDTL] if name == "taylor-green" else []
    case = load(name, preset=preset, overrides=overrides)
    planned = estimate(case, backend)
    simulation = Simulation(case, backend=backend)
    held = simulation.solver
    averages = sum(attachment.bytes for attachment in simulation.attachments if attachment.name == "averages")
    # a common time step is one number
    assert planned["memory_bytes"] == held.bytes + averages - sum(state.dt.nbytes for state in held.states)
    assert planned["reals_per_padded_point"] <= 49, "the paper's memory per point"
    assert planned["points"] == held.points


@pytest.mark.parametrize("kinds", ["", ", favre=false", ", reynolds=false"], ids=["both", "reynolds", "favre"])
def test_the_plan_counts_the_averages(kinds):
    """Which are in double precision whatever the run's is."""
    sets = ["grid.n=[16,8,8]", 'scheme.precision="fp32"']
    case = taylor_green(*sets)
    averaged = taylor_green(*sets, f"average={{every=1{kinds}}}")
    simulation = Simulation(averaged, backend="emulated")
    (held,) = (attachment.bytes for attachment in simulation.attachments if attachment.name == "averages")
    assert estimate(averaged, "emulated")["memory_bytes"] - estimate(case, "emulated")["memory_bytes"] == held > 0


@pytest.mark.parametrize("name", ["sod", "isentropic-vortex", "planar-jet", "cylinder-bow-shock", "couette"])
def test_the_planned_step_is_near_the_first_one(name):
    case = load(name, preset="quick" if name == "planar-jet" else None)
    simulation = Simulation(case, backend="cpu")
    assert estimate(case)["dt"] == pytest.approx(simulation.solver.choose_dt(), rel=0.25)


@pytest.mark.parametrize("n", [(4096, 1, 1), (64, 64, 1), (16, 16, 16)])
def test_an_estimate_looks_at_as_many_nodes_in_any_number_of_dimensions(monkeypatch, n):
    monkeypatch.setattr(resources, "SAMPLES", 512)
    case = Case.from_dict(tables(n, [float(m > 1) for m in n]))
    (block,) = build(case.grid, None).blocks
    assert resources._radii(case, block)[0].size == pytest.approx(512, rel=0.1)


def test_the_python_of_the_readme_runs(capsys, monkeypatch):
    text = (ROOT / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    code = code.replace('[32, 32, 32]"', f'[16, 16, 16]", "{PRANDTL}"').replace("steps=100", "steps=10")
    exec(compile(code, "README.md", "exec"), {})
    time, energy = map(float, capsys.readouterr().out.split()[-2:])
    assert time > 0 and 0 < energy < 0.01
