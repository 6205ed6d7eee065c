"""Passive scalars in what a run leaves behind: fields, histories, averages, checkpoints, plots and comparisons."""

import numpy as np
import pytest
from scalar_cases import NAMES, OPEN, case, patches, shocks

from hiresx import HiresxError, Simulation, load
from hiresx.case import Case
from hiresx.cli import execute
from hiresx.estimate import estimate, memory_bytes
from hiresx.output.fields import field_file as fields
from hiresx.output.show import compare
from hiresx.output.watch import history

CASE_PY = """
import numpy as np

def dye(x, y, z):
    return 0.5 + 0.4 * np.sin(6 * x + 1) * np.cos(5 * y + z)

def stripes(x, y, z, t):
    return 0.5 + 0.5 * np.sin(20 * y - t)

def bad(x, y, z):
    return x / 0
"""


@pytest.fixture
def folder(tmp_path):
    """A case on disk, with its functions."""
    (tmp_path / "case.py").write_text(CASE_PY)
    inflow = {**OPEN[0], "scalars": {"dye": "stripes", "ink": 0.25}}
    spec = case(
        (24, 20, 1), [inflow, *OPEN[1:]], 100.0, initial=("dye", 0.25), periodic=(),
        time={"steps": 4, "cfl": 0.5}, output={"formats": ["netcdf", "vtk"]},
        probe=[{"name": "middle", "x": 0.5, "y": 0.5, "variables": ["rho", "dye", "ink"], "every": 1}],
        average={"every": 1},
    )  # fmt: skip
    (tmp_path / "case.toml").write_text(spec.to_toml())
    return tmp_path


@pytest.mark.slow
def test_a_case_file_runs_and_shows_its_scalars(folder, capfd):
    """Written by default; the functions of case.py give the start and what enters; plots and `diff` know the names."""
    out = folder / "out"
    simulation = Simulation(load(folder), backend="cpu", out=out)
    x, y, z = (getattr(simulation.blocks[0], axis) for axis in "xyz")
    wanted = 0.5 + 0.4 * np.sin(6 * x + 1) * np.cos(5 * y + z)
    wanted[:, :, 0] = 0.5 + 0.5 * np.sin(20 * y[:, :, 0])
    np.testing.assert_allclose(simulation.blocks[0].state("dye"), wanted, atol=1e-15)
    simulation.run()
    last = max(fields.frames(out).items())[1]
    read = fields.read(last)
    assert set(read.blocks[0].state) == {"rho", "u", "v", "w", "p", *NAMES}
    np.testing.assert_array_equal(read.blocks[0].state["dye"], simulation.blocks[0].state("dye"))
    assert "mach" in fields.read(last, ["mach", "ink"]).blocks[0].state
    assert execute(["history", str(out), "middle", "--csv"]) == 0
    assert "dye" in capfd.readouterr().out
    assert execute(["plot", str(out), "--variable", "dye"]) == 0
    assert execute(["info", str(last)]) == 0 and "dye" in capfd.readouterr().out
    assert execute(["check", str(folder)]) == 0
    said = capfd.readouterr().out
    assert "dye" in said and "fused" in said
    vtk = next(path for path in out.rglob("*") if path.suffix in (".vtkhdf", ".vtu", ".vts", ".vtm", ".vthb"))
    assert vtk.stat().st_size > 0


def test_a_restart_goes_on_to_the_last_bit(folder):
    whole = Simulation(load(folder), backend="cpu", out=folder / "whole")
    whole.run()
    half = Simulation(load(folder, overrides=["time.steps=2"]), backend="cpu", out=folder / "half")
    half.run()
    again = Simulation(load(folder), backend="cpu", out=folder / "again", restart=folder / "half")
    again.run()
    found = compare.compare(folder / "whole", folder / "again")
    results = found["results"]
    assert {entry["name"] for entry in results["variables"]} >= {"rho", *NAMES}
    assert results["same"]
    for name in (*NAMES, "rho", "p"):
        np.testing.assert_array_equal(again.blocks[0].state(name), whole.blocks[0].state(name))


def test_averages(folder):
    """Means and covariances, Reynolds and Favre, are those of the samples; steps are equal here."""
    samples = {}

    def look(simulation):
        samples[simulation.step_count] = {n: simulation.blocks[0].state(n) for n in ("rho", "u", "w", *NAMES)}

    spec = load(folder, overrides=["time.dt=0.004", "monitor.every=1"])
    simulation = Simulation(spec, backend="cpu", out=folder / "out", monitors=[look])
    simulation.run()
    del samples[0]  # it stands for no time
    assert len(samples) == 4
    samples = list(samples.values())
    (average,) = (a for a in simulation.attachments if a.name == "averages")
    found = average.fields(0)
    stack = {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}
    for kind, weight in (("reynolds", np.ones_like(stack["rho"])), ("favre", stack["rho"])):

        def mean(values, weight=weight):
            return (weight * values).sum(axis=0) / weight.sum(axis=0)

        for name in NAMES:
            np.testing.assert_allclose(found[kind][name], mean(stack[name]), rtol=0, atol=1e-13)
            for other in (name, "u", "w"):
                wanted = mean((stack[name] - mean(stack[name])) * (stack[other] - mean(stack[other])))
                np.testing.assert_allclose(found[kind][f"{other}_{name}"], wanted, rtol=0, atol=1e-13)
    written = fields.read(folder / "out" / "averages.nc", ["dye"]).blocks[0].state["dye"]
    np.testing.assert_array_equal(written, found["reynolds"]["dye"])


@pytest.mark.parametrize("reynolds", [pytest.param(None, marks=pytest.mark.slow), 100.0])
def test_the_kinetic_energy_is_that_of_the_gas(reynolds, tmp_path):
    """Its primitives come with the scalars', for which an inviscid run has no work array."""
    found = []
    for name, scalars in (("with", {}), ("without", {"scalar": []})):
        tables = {"time": {"steps": 3, "cfl": 0.5}, "kinetic_energy": {"every": 1}} | scalars
        spec = case((16, 16, 1), reynolds=reynolds, **tables)
        Simulation(spec, backend="cpu", initial=shocks, out=tmp_path / name).run(progress=False)
        found.append(history.read(history.histories(tmp_path / name)["kinetic_energy"]).data)
    assert len(found[0]["kinetic_energy"]) > 1
    for column in ("kinetic_energy", "enstrophy", "dissipation", "pressure_dilatation"):
        np.testing.assert_allclose(found[0][column], found[1][column], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("scalar", [[], [{"name": "dye"}]])
def test_gradients_at_subsonic_faces_need_no_viscosity(scalar, tmp_path):
    """The vorticity 0.2 x, from velocities that are quadratic along lines to an inflow and an outflow, is exact."""
    state, p, entering = {"rho": 1.0, "u": 0.3, "p": 1 / 1.4}, 1 / 1.4, {"scalars": {"dye": 0.5}} if scalar else {}
    spec = {
        "grid": {"generator": "box", "n": [12, 12, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0]},
        "time": {"steps": 1, "dt": 1e-3}, "initial": {"state": state}, "kinetic_energy": {"every": 1},
        "scalar": scalar, "boundary": [
            {"faces": ["imin"], "type": "characteristic-inflow", "state": state} | entering,
            {"faces": ["imax"], "type": "characteristic-outflow", "pressure": p},
            {"faces": ["jmin", "jmax"], "type": "supersonic-outflow"},
        ],
    }  # fmt: skip
    simulation = Simulation(
        Case.from_dict(spec), backend="cpu", out=tmp_path,
        initial=lambda x, y, z: (1 + 0 * x, 0.3 + 0 * x, 0.1 * x**2, 0 * x, p + 0 * x),
    )  # fmt: skip
    simulation.run(progress=False)
    found = history.read(history.histories(tmp_path)["kinetic_energy"]).data["enstrophy"][0]
    assert found == pytest.approx(0.02 / 3, rel=1e-12)


def test_a_checkpoint_of_other_scalars_is_refused(folder):
    Simulation(load(folder, overrides=["time.steps=1"]), backend="cpu", out=folder / "a").run()
    with pytest.raises(HiresxError, match=r"scalar\.1\.schmidt"):
        Simulation(load(folder, overrides=["scalar.1.schmidt=0.5"]), backend="cpu", restart=folder / "a")


def test_setting_the_gas_keeps_them():
    simulation = Simulation(case((24, 24, 1), reynolds=100.0), backend="cpu")
    block = simulation.blocks[0]
    block.set_state(*shocks(block.x, block.y, block.z), scalars=patches(block.x, block.y, block.z))
    before = block.state("ink")
    block.set_state(1.0, 0.0, 0.0, 0.0, 0.7)
    np.testing.assert_allclose(block.state("ink"), before, rtol=0, atol=1e-15)


@pytest.mark.parametrize("reynolds", [pytest.param(None, marks=pytest.mark.slow), 100.0])
@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_what_is_planned_is_what_is_held(where, reynolds):
    spec = case((24, 20, 12), reynolds=reynolds)
    simulation = Simulation(spec, backend=where)
    planned = memory_bytes(spec, simulation.solver.grid.blocks, where)
    assert planned == simulation.solver.bytes - 8  # the time step
    assert estimate(case((24, 20, 1)))["plans"] == {"cpu": "pencils", "cuda": "fused"}


def faulty(**tables):
    return lambda: case(**tables)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (faulty(scalar=[{"name": "T"}]), "name of the gas"),
        (faulty(scalar=[{"name": "dye"}, {"name": "dye"}]), "another scalar has this name"),
        (faulty(scalar=[{"name": "a b"}]), r"scalar\.0\.name"),
        (faulty(scalar=[{"name": "dye", "schmidt": 0.0}]), "schmidt"),
        (faulty(scalar=[{"name": "dye", "inital": 0.0}]), 'did you mean "initial"'),
        (faulty(boundary=[{**OPEN[0], "scalars": {"dye": 1.0}}]), 'the value of "ink" that enters'),
        (faulty(boundary=[{**OPEN[1], "scalars": {"die": 1.0}}]), 'no scalar "die"'),
        (faulty(boundary=[{"faces": "all", "type": "slip-wall", "scalars": {"dye": 1.0}}]), "scalars"),
    ],
)  # fmt: skip
def test_a_case_that_cannot_be_is_refused(make, words):
    with pytest.raises(HiresxError, match=words):
        make()


def test_what_a_function_gives_is_looked_at(folder):
    for key, words in (("scalar.0.initial=bad", "dye"), ("scalar.0.initial=dy", "did you mean")):
        with pytest.raises(HiresxError, match=words):
            Simulation(load(folder, overrides=[key]), backend="cpu")


def test_a_name_that_is_a_variable_is_refused(folder, capfd):
    text = (folder / "case.toml").read_text().replace('"ink"', '"mach"').replace("ink =", "mach =")
    (folder / "case.toml").write_text(text)
    assert execute(["check", str(folder)]) != 0
    assert "Mach number" in capfd.readouterr().err
