"""`hiresx post wall`: coefficients of pressure and friction, heat flux and y+ along walls."""

import json

import numpy as np
import pytest

from hiresx import Case, HiresxError, Simulation
from hiresx import open as open_run
from hiresx.cli import execute
from hiresx.grid import Block, Grid, write_plot3d
from hiresx.output.watch.monitors.force import ForceMonitor
from hiresx.post.wall import COLUMNS, wall

P, REYNOLDS, SHEAR = 1 / 1.4, 50.0, 0.2
STREAM = {"velocity": [0.3, 0.0, 0.4], "rho": 2.0}
OPEN = {"faces": "all", "type": "characteristic-outflow", "pressure": P}
FORCES = [{"name": "low", "faces": ["jmin"], "coefficients": STREAM},
          {"name": "high", "faces": ["jmax"], "coefficients": STREAM}]  # fmt: skip


def sheared(x, y, z):
    """A flow along x that grows with y from 0 at the wall, of the temperature 1 and a pressure that grows along x."""
    p = P + 0.01 * x
    return 1.4 * p, SHEAR * y, 0 * x, 0 * x, p


def made(folder, **changes):
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 8, 7], "lower": [0, 0, 0], "upper": [2, 1, 0.6]},
        "gas": {"reynolds": REYNOLDS, "viscosity": {"law": "constant"}}, "time": {"steps": 1, "dt": 1e-9},
        "initial": {"state": {"rho": 1.0, "p": P}}, "force": FORCES,
        "boundary": [{"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0},
                     {"faces": ["jmax"], "type": "slip-wall"},
                     OPEN],
    } | changes)  # fmt: skip
    Simulation(case, "cpu", out=folder, initial=sheared).run(progress=False)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made(tmp_path_factory.mktemp("wall") / "run")


def test_a_sheared_flow_has_the_friction_and_wall_units_of_its_shear(run):
    before = sorted(path.name for path in run.rglob("*"))
    data = wall(run, "low").data
    assert sorted(path.name for path in run.rglob("*")) == before
    assert data.sizes["node"] == 9 * 7 and not data["y"].values.any()
    stress, dynamic = SHEAR / REYNOLDS, 0.5 * 2.0 * 0.25
    np.testing.assert_allclose(data["friction"], stress, rtol=1e-6)
    # the stream is along (.6, 0, .8), the stress along x
    np.testing.assert_allclose(data["cf"], 0.6 * stress / dynamic, rtol=1e-6)
    np.testing.assert_allclose(data["cp"], 0.01 * data["x"] / dynamic, atol=1e-6)
    np.testing.assert_allclose(data["y_plus"], np.sqrt(stress * data["p"] * 1.4) / 7 * REYNOLDS, rtol=1e-6)
    assert data["block"].values.tolist() == ["box"] * 63 and data["j"].values.tolist() == [0] * 63
    assert np.abs(wall(run, "high").data["friction"].values).max() < 1e-12
    assert wall(run, "low", pressure=P + 0.02).data["cp"].values.max() == pytest.approx(0.0, abs=1e-6)


def test_a_plane_cuts_the_lines_of_a_wall_linearly(run):
    found = wall(run, "low", at="x=1.3")
    assert found.summary["nodes"] == 7 and found.data["x"].values == pytest.approx(1.3)
    assert found.data["z"].values == pytest.approx(np.linspace(0, 0.6, 7))
    assert found.data["cp"].values == pytest.approx(0.013 / 0.25, abs=1e-6)
    assert wall(run, "low", at="z = 0.25").data.sizes["node"] == 9
    assert wall(run, "low", at="z=0").data["z"].values.tolist() == [0.0] * 9


def test_a_plane_cuts_the_walls_of_turned_blocks(tmp_path):
    """z runs along k in one block and along i in the other."""
    z, y, x = np.meshgrid(np.linspace(0, 0.6, 7), np.linspace(0, 1, 8), np.linspace(0, 2, 17), indexing="ij")
    nodes = np.stack([x, y, z])
    blocks = (Block("first", *nodes[..., :9]), Block("second", *nodes[..., 8:].transpose(0, 2, 3, 1)))
    write_plot3d(tmp_path / "grid.xyz", Grid(blocks))
    walls = [("block-1", "jmin"), ("block-2", "kmin")]
    boundary = [{"block": block, "faces": [face], "type": "no-slip-wall"} for block, face in walls]
    made(tmp_path / "run", grid={"file": str(tmp_path / "grid.xyz")}, boundary=[*boundary, OPEN], force=[])
    found = wall(tmp_path / "run", at="z=0.25").data
    assert np.sort(found["x"].values) == pytest.approx(np.sort([*np.linspace(0, 2, 17), 1.0]))
    assert found["z"].values == pytest.approx(0.25)


def test_at_an_edge_the_areas_of_both_sides_are_added(tmp_path):
    """A ridge of the slope 1/2, of gas whose temperature rises above it: the gradient at the ridge is vertical."""
    j, i = np.meshgrid(np.linspace(0, 1, 11), np.linspace(-1, 1, 17), indexing="ij")
    grid = Grid((Block("ridge", i[None], (j - 0.5 * abs(i))[None], 0 * i[None]),))
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "gas": {"reynolds": REYNOLDS, "prandtl": 0.7, "viscosity": {"law": "constant"}},
        "time": {"steps": 1, "dt": 1e-9}, "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [{"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0}, OPEN],
        "force": [{"name": "low", "faces": ["jmin"]}],
    })  # fmt: skip

    def warm(x, y, z):
        return 1 / (1 + 0.1 * (y + 0.5 * abs(x))), 0 * x, 0 * x, 0 * x, P + 0 * x

    run = Simulation(case, "cpu", initial=warm, grid=grid)
    (monitor,) = (a for a in run.attachments if isinstance(a, ForceMonitor))
    heat = monitor.nodes.measure()["heat"]
    conducted = 0.1 / (REYNOLDS * 0.7 * 0.4)
    assert heat[8] == pytest.approx(conducted / np.sqrt(1.25), rel=1e-3)
    assert heat[4] == pytest.approx(conducted * np.sqrt(1.25), rel=1e-3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "2 forces"),
        (("lower",), 'no force "lower"'),
        (("low", "z=nine"), 'plane "z=nine" is not understood'),
        (("low", "z=0.1,x=0.2"), '"z=0.1,x=0.2" is no plane'),
        (("low", "y=0.5"), "y=0.5 cuts none"),
        (("low", None, None, None, "cp,mach"), 'no "mach"'),
    ],
)
def test_what_cannot_be_shown_is_refused(run, given, said):
    with pytest.raises(HiresxError, match=said):
        wall(run, *given)


def test_the_command_writes_a_table_and_a_picture(run, tmp_path, capsys):
    assert execute(["post", "wall", str(run), "low", "--at", "z=0.3", "--out", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["column"] for row in said["extremes"]] == [*COLUMNS]
    lines = (tmp_path / "wall_low.csv").read_text().splitlines()
    assert lines[0] == "p,cp,cf,friction,heat,y_plus,x,y,z,block,i,j,k" and len(lines) == 10
    assert (tmp_path / "wall_low.png").stat().st_size > 5000


def test_without_a_force_all_walls_are_taken_and_without_a_stream_no_coefficient(tmp_path, capsys):
    run = made(tmp_path / "run", force=[])
    found = wall(run)
    assert {*found.data.data_vars} == {"p", "friction", "heat", "y_plus"}
    assert found.data.sizes["node"] == 2 * 9 * 7 and "--velocity" in found.summary["warnings"][0]
    assert execute(["post", "wall", str(run), "--velocity", "0.5,0,0", "--json", "--out", str(tmp_path)]) == 0
    rows = {row["column"]: row for row in json.loads(capsys.readouterr().out)["extremes"]}
    assert rows["cf"]["greatest"] == pytest.approx(SHEAR / REYNOLDS / 0.125)
    with pytest.raises(HiresxError, match='no force "low"'):
        wall(run, "low")
    with pytest.raises(HiresxError, match="no stream"):
        wall(run, velocity=[0.0, 0.0, 0.0])
    assert execute(["post", "wall", str(run), "--velocity", "0.5"]) == 2
    assert "--velocity" in capsys.readouterr().err


# --- samples


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Samples at unequal times of a flow that settles behind a start."""
    folder = tmp_path_factory.mktemp("wall") / "sampled"
    forces = [{**force, "distribution": {"every": 2}} for force in FORCES]
    return made(folder, force=forces, time={"steps": 7, "cfl": 0.5})


def test_means_and_fluctuations_are_those_of_the_samples_in_their_time(sampled):
    kept = open_run(sampled).wall("low")
    time = kept["time"].values
    assert kept["step"].values.tolist() == [0, 2, 4, 6] and abs(np.diff(time, 2)).max() > 1e-6 * time[-1]
    dynamic = 0.5 * 2.0 * 0.25
    columns = {"p": kept["p"], "cp": (kept["p"] - P) / dynamic, "heat": kept["heat"], "y_plus": kept["y_plus"],
               "cf": (0.6 * kept["friction_x"] + 0.8 * kept["friction_z"]) / dynamic,
               "friction": sum(kept[f"friction_{axis}"] ** 2 for axis in "xyz") ** 0.5}  # fmt: skip
    for start, chosen in ((None, np.s_[:]), (time[1], np.s_[1:])):
        found = wall(sampled, "low", mean=True, start=start)
        assert found.summary["samples"] == len(time[chosen]) and found.summary["times"][1] == time[-1]
        for name, values in columns.items():
            values, of = values.values[chosen], time[chosen]
            mean = np.trapezoid(values, of, axis=0) / np.ptp(of)
            square = np.trapezoid((values - mean) ** 2, of, axis=0) / np.ptp(of)
            np.testing.assert_allclose(found.data[name], mean, rtol=1e-12, atol=1e-15, err_msg=name)
            np.testing.assert_allclose(found.data[f"rms_{name}"] ** 2, square, rtol=1e-9, atol=1e-20, err_msg=name)
    assert found.data["rms_cf"].values.max() > 1e-5 and "root mean square" in found.data["rms_cf"].attrs["long_name"]
    assert found.data["x"].values.tolist() == wall(sampled, "low").data["x"].values.tolist()


def test_a_single_sample_is_the_nearest_and_its_mean_has_no_fluctuation(sampled):
    time = open_run(sampled).wall("low")["time"].values
    one = wall(sampled, "low", time=time[2] + 0.3 * (time[3] - time[2]))
    assert (one.summary["step"], one.summary["time"], one.name) == (4, time[2], "wall_low_000004")
    mean = wall(sampled, "low", mean=True, start=time[2], end=time[2]).data
    for name in COLUMNS:
        np.testing.assert_allclose(mean[name], one.data[name], rtol=1e-14, atol=1e-18)
        assert not mean[f"rms_{name}"].values.any()
    cut = wall(sampled, "low", at="x=1.3", mean=True)
    assert cut.summary["nodes"] == 7 and cut.data["x"].values == pytest.approx(1.3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mean": True, "time": 0.0}, "--mean and --time both choose samples"),
        ({"start": 0.0}, "--from and --to choose the samples of a mean"),
        ({"mean": True, "start": 9.0}, "there is no sample in this range"),
        ({"time": 9.0}, "there is no sample at time 9"),
        ({"force": None, "time": 0.0}, "there are 2 wall distributions"),
        ({"force": "lower", "mean": True}, 'no distribution along the walls of "lower"'),
    ],
)
def test_samples_that_are_not_there_are_refused(sampled, given, said):
    with pytest.raises(HiresxError, match=said):
        wall(sampled, **{"force": "low", **given})


def test_a_run_without_samples_says_how_to_have_them(run):
    with pytest.raises(HiresxError, match="no distribution along the walls") as raised:
        wall(run, "low", mean=True)
    assert "add distribution = { every_time = ... }" in raised.value.hint


def test_the_command_gives_a_mean_and_its_picture(sampled, tmp_path, capsys):
    command = ["post", "wall", str(sampled), "low", "--mean", "--from", "0.01", "--out", str(tmp_path), "--json"]
    assert execute(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["column"] for row in said["extremes"]] == [*COLUMNS, *(f"rms_{name}" for name in COLUMNS)]
    assert said["samples"] == 3 and (tmp_path / "wall_low_mean.png").stat().st_size > 5000
    assert (tmp_path / "wall_low_mean.csv").read_text().startswith("p,cp,cf,friction,heat,y_plus,rms_p")
