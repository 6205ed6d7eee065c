"""What watches a run: its tables, extremes, residuals, the user's own; none of it must be noticed."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from watched_runs import SLIP, P, cut, pulse, ran, tables, watched

from hiresx import Case, HiresxError, Simulation, load
from hiresx.decomposition import decompose, domain
from hiresx.device import backend as device
from hiresx.grid import build
from hiresx.output.saved.distributed_arrays import read_from_memory
from hiresx.output.watch import history, monitors
from hiresx.output.watch.monitors import extrema
from hiresx.output.watch.monitors.user import UserMonitor
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import random_parts

EVERYTHING = {
    "probe": [
        {"name": "middle", "x": 1.0, "y": 0.5, "every": 3},
        {"name": "row", "line": {"start": [0.1, 0.5, 0.0], "end": [1.9, 0.5, 0.0], "n": 4}, "every_time": 0.1},
    ],
    "force": [{"name": "walls", "every": 4}],
    "extrema": {"every": 5},
    "conservation": {"every": 5},
    "kinetic_energy": {"every": 7},
    "average": {"every": 2},
}


# --- the tables


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"probe": [{"name": "a"}]}, "takes exactly one of x, y, z or points or line or arc"),
        ({"probe": [{"name": "a", "x": 1.0, "points": [[0.0, 0.0, 0.0]]}]}, "takes exactly one of x, y, z or points"),
        ({"probe": [{"name": "a", "y": 1.0}]}, "no x"),
        ({"probe": [{"name": "residual", "x": 1.0}]}, "probe.0.name = .residual.: every run has a history"),
        ({"extrema": {}, "force": [{"name": "extrema"}]}, r"\[extrema\] has a history of that name"),
        ({"probe": [{"name": "a", "x": 1.0}], "force": [{"name": "a"}]}, "probe.0.name has a history of that name"),
        ({"probe": [{"name": "a", "x": 1.0, "every": 2, "every_time": 0.1}]}, "either every or every_time"),
        ({"extrema": {"evry": 2}}, "evry"),
        ({"average": {"reynolds": False, "favre": False}}, "reynolds or favre"),
        ({"average": {"every_time": 1.0}, "time": {"steps": 2, "cfl": 0.5, "local": True}}, "no common time"),
        ({"force": [{"name": "a", "faces": ["imin"], "range": {"i": [0, 2]}}]}, "does not lie along the face"),
    ],
)
def test_faults_of_the_tables_are_named(change, fault):
    with pytest.raises(HiresxError, match=fault):
        Case.from_dict(tables(**change))


@pytest.mark.parametrize(
    ("change", "fault", "hint"),
    [
        ({"probe": [{"name": "a", "x": 5.0}]}, r'probe.0 "a".*outside the grid, 3 from its nearest node', "inside"),
        ({"probe": [{"name": "a", "x": 1.0, "variables": ["rhoo"]}]}, "rhoo", "rho"),
        ({"probe": [{"name": "a", "x": 1.0, "variables": ["vorticity"]}]}, "needs gradients", "mach"),
        ({"extrema": {"variables": ["pressure"]}}, "pressure", "variables: rho"),
        ({"force": [{"name": "a", "block": "boxx"}]}, r'force.0 "a".*no block .boxx.*did you mean .box.', "box"),
        ({"force": [{"name": "a", "range": "wall"}]}, "no region 'wall'", ""),
        ({"force": [{"name": "a", "faces": ["imin"]}]}, "no wall", "faces"),
    ],
)
def test_what_the_grid_does_not_have_is_refused_before_anything_runs(change, fault, hint, tmp_path):
    boundary = [{"faces": ["imin"], "type": "supersonic-outflow"}, {"faces": ["imax", "jmin", "jmax"], **SLIP}]
    case = Case.from_dict(tables(boundary=boundary, **change))
    with pytest.raises(HiresxError, match=fault) as error:
        Simulation(case, backend="cpu", out=tmp_path / "out")
    assert hint in error.value.hint
    with pytest.raises(HiresxError, match=fault):
        monitors.check(case, decompose(case, build(case.grid, None)))


def test_a_clock_given_on_the_command_line_takes_the_other_s_place(tmp_path):
    text = tables(average={"every": 2})
    (tmp_path / "case.toml").write_text(Case.from_dict(text).to_toml())
    case = load(tmp_path, overrides=["average.every_time=0.5"])
    assert case.average.every is None and case.average.every_time == 0.5
    assert Case.from_dict(case.model_dump(mode="json")).model_dump() == case.model_dump()


# --- extremes, residuals, functions of the user


def test_extremes_are_found_with_their_places():
    for backend in ("cpu", "emulated"):
        case = Case.from_dict(tables((25, 13, 1), amplitude=0.04, extrema={}))
        grid = cut(build(case.grid, None).blocks[0], 12, False)
        simulation, found = watched(case, grid=grid, initial=pulse, backend=backend)
        for _ in range(3):
            simulation.step()
        values = found["extrema"].measure(simulation.solver)
        for name in case.extrema.variables:
            states = [block.state(name) for block in simulation.blocks]
            for end, best in (("min", np.min), ("max", np.max)):
                value, place = values[f"{name}_{end}"], [values[f"{name}_{end}_{part}"] for part in "xyzijk"]
                assert value == pytest.approx(best([best(s) for s in states]), rel=1e-13)
                b = simulation.blocks[int(values[f"{name}_{end}_block"])]
                i, j, k = (int(n) for n in place[3:])
                assert b.state(name)[k, j, i] == pytest.approx(value, rel=1e-13)
                assert place[:3] == [c[k, j, i] for c in (b.x, b.y, b.z)]


def at_rest(x, y, z):
    return 1.0, 0.0, 0.0, 0.0, P


def symmetric(x, y, z):
    p = P * (1 + 0.2 * np.exp(-20 * ((x - 1) ** 2 + (y - 0.5) ** 2)))
    return (1.4 * p) ** P, 0.0, 0.0, 0.0, p


@pytest.mark.parametrize("initial", [at_rest, symmetric])
@pytest.mark.parametrize("precision", ["fp64", pytest.param("fp32", marks=pytest.mark.slow)])
def test_places_of_extremes_that_tie_do_not_depend_on_the_cut(initial, precision):
    """Everywhere in a flow at rest (on a wavy grid: but for round-off), at mirror images in a symmetric one."""
    amplitude = 0.03 if initial is at_rest else 0.0
    case = Case.from_dict(tables((25, 13, 9), (2.0, 1.0, 1.0), amplitude, extrema={}, scheme={"precision": precision}))
    wholes = []
    for parts in (1, 2, 3, 6):
        chance = np.random.default_rng(parts)
        cut = domain(case, parts=lambda whole, n=parts, chance=chance: random_parts(whole, n, chance))
        solver = Solver(case, device("cpu"), domain=cut)
        solver.initialize(initial)
        for _ in range(4):
            solver.step()
        (monitor,) = extrema.build(case, SimpleNamespace(solver=solver, out=None))
        wholes.append(monitor.measure(solver))
    for name in case.extrema.variables:
        for end in ("min", "max"):
            places = [tuple(found[f"{name}_{end}_{part}"] for part in ("block", "k", "j", "i")) for found in wholes]
            assert len(set(places)) == 1, (name, end, places)
            if initial is at_rest:
                assert places[0] == (0, 0, 0, 0), (name, end)
    if initial is symmetric:
        # the least of the mirror images in k, then in j, then in i
        assert wholes[0]["p_max_k"] == 0 and wholes[0]["u_max_j"] <= 6 and wholes[0]["v_max_i"] <= 12


def test_a_nan_is_an_extreme_wherever_it_is():
    case = Case.from_dict(tables((25, 13, 1), extrema={"variables": ["rho"]}))
    simulation, found = watched(case, initial=pulse)
    (state,) = simulation.solver.states
    state.interior(state.q)[0][0, 5, 7] = np.nan
    values = found["extrema"].measure(simulation.solver)
    for end in ("min", "max"):
        assert math.isnan(values[f"rho_{end}"])
        assert [values[f"rho_{end}_{part}"] for part in "ijk"] == [7, 5, 0]


def test_residuals_are_kept_without_being_asked_for(tmp_path):
    simulation, found = ran(Case.from_dict(tables(monitor={"every": 8})), initial=pulse, out=tmp_path)
    assert found["residual"]["step"].tolist() == [0, 8, 16, 24, 32, 40]
    by_step = {entry["step"]: entry for entry in simulation.history}
    for name in ("dt", "rho", "e", "least_p"):
        np.testing.assert_array_equal(found["residual"][name], [by_step[step][name] for step in range(0, 41, 8)])


OWN = """
def mass(simulation, *, factor):
    return {"mass": factor * simulation.blocks[0].state("rho").sum(), "steps": simulation.step_count}

def fails(simulation):
    return {"a": 1 / (simulation.step_count - 10)}

def odd(simulation):
    return {"a" if simulation.step_count < 15 else "b": 1.0}

def text(simulation):
    return {"a": "one"}

def silent(simulation):
    return None
"""


def own(tmp_path, *names) -> Case:
    case = Case.from_dict(tables(monitors=list(names), parameters={"factor": 2.0} if "mass" in names else {}))
    (tmp_path / "case.toml").write_text(case.to_toml())
    (tmp_path / "case.py").write_text(OWN)
    return load(tmp_path)


def test_functions_of_the_case_have_histories_of_their_own(tmp_path):
    def peak(simulation):
        return {"peak": float(simulation.blocks[0].state("p").max())}

    simulation, found = ran(own(tmp_path, "mass", "silent"), monitors=[peak], out=tmp_path / "out", initial=pulse)
    assert found["mass"]["step"].tolist() == found["peak"]["step"].tolist() == [0, 10, 20, 30, 40]
    assert found["mass"]["mass"][0] == pytest.approx(2 * 288, rel=0.05) and found["mass"]["steps"][-1] == 40
    assert {"mass", "peak", "residual"} == set(history.histories(tmp_path / "out"))
    assert simulation.history[-1]["mass"] == found["mass"]["mass"][-1]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("fails", r'case.py, line 6: monitor "fails" failed: ZeroDivisionError'),
        ("odd", 'returned "b", which it did not at first'),
        ("text", "returned a = 'one'"),
    ],
)
def test_a_fault_of_the_user_s_function_is_named(tmp_path, name, fault):
    with pytest.raises(HiresxError, match=fault):
        ran(own(tmp_path, name))


def test_a_misspelt_function_and_two_of_one_name_are_refused(tmp_path):
    (tmp_path / "case.py").write_text(OWN)
    with pytest.raises(HiresxError, match="mas") as error:
        own(tmp_path, "mas")
    assert "mass" in error.value.hint

    def silent(simulation):
        return None

    with pytest.raises(HiresxError, match='two monitors are called "silent"'):
        Simulation(own(tmp_path, "silent"), backend="cpu", monitors=[silent])
    silent.__name__ = "residual"
    with pytest.raises(HiresxError, match='two monitors are called "residual"'):
        Simulation(own(tmp_path), backend="cpu", monitors=[silent])


# --- being watched, stopped, and gone on


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_looking_changes_nothing(backend):
    changes = {"gas": {"reynolds": 100.0}, "time": {"steps": 20, "cfl": 0.5}}
    seen = {name: table for name, table in EVERYTHING.items() if name != "probe"}
    seen["probe"] = [EVERYTHING["probe"][0]]  # one with a clock of its own shortens steps
    states = []
    for lists in ({}, seen):
        case = Case.from_dict(tables((16, 12, 1), amplitude=0.03, **changes, **lists))
        solver = ran(case, initial=pulse, backend=backend)[0].solver
        states.append((solver.time, [solver.backend.to_host(s.interior(s.q)).tobytes() for s in solver.states]))
    assert states[0] == states[1]


def test_times_of_samples_are_met_exactly():
    case = Case.from_dict(tables(time={"end": 0.55, "cfl": 0.5}, probe=[EVERYTHING["probe"][1]]))
    np.testing.assert_allclose(ran(case, initial=pulse)[1]["row"]["time"], np.arange(6) * 0.1, atol=1e-14)


@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.slow), 6, pytest.param(17, marks=pytest.mark.slow), 30]
)
def test_a_run_that_was_interrupted_leaves_the_histories_and_averages_of_one_that_was_not(tmp_path, step):
    case = Case.from_dict(tables(gas={"reynolds": 200.0}, **EVERYTHING))
    ran(case, initial=pulse, out=tmp_path / "whole")

    simulation = Simulation(case, backend="cpu", initial=pulse, out=tmp_path / "parts")
    simulation.run(steps=step, progress=False)
    # on for a while, and dead without a word: what it sampled since the checkpoint must not appear twice
    lost = Simulation(restart=tmp_path / "parts", backend="cpu")
    for attachment in lost.attachments:
        if attachment.name in lost._continuation.captured:
            attachment.restore(lost._continuation.captured[attachment.name])
        if attachment.name != "fields":
            attachment.begin(lost.solver, True)
    for _ in range(7):
        lost._step(min(a.next_time for a in lost.attachments))
        for attachment in lost.attachments:
            if attachment.name != "fields":
                attachment.after_step(lost.solver)
    del lost, attachment
    Simulation(restart=tmp_path / "parts", backend="cpu").run(progress=False)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert len(history.histories(whole)) == 7
    for name, path in history.histories(whole).items():
        assert (parts / "history" / path.name).read_bytes() == path.read_bytes(), name
    from netCDF4 import Dataset

    with Dataset(whole / "averages.nc") as a, Dataset(parts / "averages.nc") as b:
        assert a["averaged_over"][...] == b["averaged_over"][...]
        for kind in ("reynolds", "favre"):
            for name, variable in a[f"box/{kind}"].variables.items():
                assert variable[...].tobytes() == b[f"box/{kind}/{name}"][...].tobytes(), name


def understood(captured: dict) -> dict:
    """What `capture` gave, as `restore` takes it."""
    return {key: read_from_memory(value) if isinstance(value, list) else value for key, value in captured.items()}


def test_attachments_continue_from_what_they_captured_without_a_directory():
    case = Case.from_dict(tables(gas={"reynolds": 200.0}, **EVERYTHING))
    whole = ran(case, initial=pulse)[1]
    first = Simulation(case, backend="cpu", initial=pulse)
    first.run(steps=17, progress=False)
    captured = {a.name: a.capture() for a in first.attachments}
    second = Simulation(case, backend="cpu", initial=pulse)
    second.solver.restore(first.solver.values(), read_from_memory(first.solver.pieces()))
    for attachment in second.attachments:
        attachment.restore(understood(captured[attachment.name]))
        attachment.begin(second.solver, True)
    while second.step_count < 40:
        second._step(min(a.next_time for a in second.attachments))
        for attachment in second.attachments:
            attachment.after_step(second.solver)
    for attachment in second.attachments:
        attachment.finish(second.solver)
    for name in ("middle", "row", "walls", "extrema", "conservation", "kinetic_energy"):
        table = next(a for a in second.attachments if a.name == f"history.{name}").history.table().flat()
        for column, values in whole[name].items():
            assert values.tobytes() == table[column].tobytes(), (name, column)


def test_a_monitor_that_is_new_at_a_restart_begins_there(tmp_path):
    case = Case.from_dict(tables(time={"steps": 20, "cfl": 0.5}))
    Simulation(case, backend="cpu", initial=pulse, out=tmp_path).run(progress=False)
    more = Case.from_dict(tables(probe=[{"name": "late", "x": 0.5, "every": 10}], average={}))
    Simulation(more, backend="cpu", restart=tmp_path).run(progress=False)
    found = history.histories(tmp_path)
    assert history.read(found["late"]).data["step"].tolist() == [20, 30, 40]
    assert history.read(found["residual"]).data["step"].tolist() == [0, 10, 20, 30, 40]


def test_all_kinds_are_listed_from_the_folder():
    folder = Path(monitors.__file__).parent
    kinds = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert kinds == {
        "average", "body_force_values", "conservation", "extrema", "force", "implicit_convergence", "kinetic_energy",
        "outflow_check", "user", "probe", "residual", "surface", "vortex",
    }  # fmt: skip


def test_histories_of_an_earlier_run_do_not_stay_beside_those_of_a_new_one(tmp_path):
    first = Case.from_dict(tables(probe=[{"name": "old", "x": 1.0}]))
    Simulation(first, backend="cpu", out=tmp_path).run(progress=False)
    Simulation(Case.from_dict(tables(average={})), backend="cpu", out=tmp_path).run(progress=False)
    assert list(history.histories(tmp_path)) == ["residual"]


def test_what_a_function_of_ones_own_gives_is_the_same_on_all_ranks():
    """A number that is none on every rank is the same; round-off and what is lost on one rank only are told apart."""
    watch = object.__new__(UserMonitor)
    watch.history = SimpleNamespace(name="mine")
    for same in ([math.nan, math.nan], [2.0, 2.0 + 1e-13]):
        assert watch._difference([{"a": value} for value in same]) is None
    for other in (math.nan, 2.001):
        error = watch._difference([{"a": 2.0}, {"a": other}])
        assert f"a = 2 on rank 0 and {other:.9g} on rank 1" in error.message


def test_energy_without_a_model_has_no_dissipation_by_one():
    simulation, found = watched(Case.from_dict(tables(kinetic_energy={"every": 1})))
    columns = {column.name for column in found["kinetic_energy"].history.columns}
    assert "dissipation_model" not in columns and columns == set(found["kinetic_energy"].measure(simulation.solver)) | {
        "rate",
        "dissipation_numerical",
    }
