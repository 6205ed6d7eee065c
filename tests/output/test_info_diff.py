"""`hiresx info` and `hiresx diff`: every kind of file we write or read, and two runs side by side."""

import json
from shutil import copytree
from types import SimpleNamespace

import netCDF4
import numpy as np
import pytest
import reported
from vortices import PRANDTL

from hiresx import HiresxError, Simulation, __version__, cli, load
from hiresx.grid.blocks import slices
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.formats import netcdf, vtk
from hiresx.output.saved import checkpoint, container, distributed_arrays
from hiresx.output.show import compare_checkpoints
from hiresx.output.show.compare import _pair, compare
from hiresx.output.show.describe import describe

SETTINGS = (
    "grid.n=[9, 8, 7]",
    "time.steps=4",
    "time.dt=0.05",
    "output.every_steps=2",
    'output.formats=["netcdf", "vtk"]',
    'output.subset=[{name="mid", plane={z=0.3}, precision="fp32"}]',
    'probe=[{name="centre", x=0.0, every=1}]',
    "monitor.every=2",
)


def run(directory, *changes, case="taylor-green"):
    Simulation(load(case, overrides=[*SETTINGS, PRANDTL, *changes]), backend="cpu", out=directory).run(progress=False)
    return directory


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return run(tmp_path_factory.mktemp("runs") / "one", "average={start=0.0, every=1}")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return run(tmp_path_factory.mktemp("runs") / "other", "average={start=0.0, every=1}", "gas.reynolds=1500.0")


# info -----------------------------------------------------------------------------------------------------------------


def test_a_run(one):
    found = describe(one)
    assert (found["kind"], found["status"], found["steps"]) == ("run", "finished", 4)
    holds = {entry["what"]: entry for entry in found["holds"]}
    assert holds["fields"] == {
        "what": "fields",
        "files": "fields_*.nc",
        "count": 3,
        "steps": [0, 4],
        "times": [0.0, pytest.approx(0.2)],
        "variables": ["rho", "u", "v", "w", "p"],
    }
    assert holds["subset mid"]["count"] == holds["subset mid for ParaView and VisIt"]["count"] == 3
    assert holds["fields for ParaView and VisIt"]["files"] == "fields.pvd"
    assert holds["history centre"]["count"] == 5 and "p" in holds["history centre"]["variables"]
    assert {"averages", "history residual"} <= holds.keys()
    kept = [int(path.stem.rpartition("_")[2]) for path in checkpoint.list_checkpoints(one)]
    assert (holds["checkpoints"]["count"], holds["checkpoints"]["steps"]) == (len(kept), [min(kept), max(kept)])
    assert describe(one / "run.json") == found
    json.dumps(found, allow_nan=False)


def test_fields_and_parts_of_them(one):
    found = describe(netcdf.frame(one, 4))
    data = fields.read(netcdf.frame(one, 4)).blocks[0]
    assert (found["kind"], found["step"], found["time"]) == ("fields", 4, pytest.approx(0.2))
    (block,) = found["blocks"]
    assert (block["ni"], block["nj"], block["nk"]) == (9, 8, 7)
    assert block["x"] == [data.x.min(), data.x.max()]
    p = next(variable for variable in found["variables"] if variable["name"] == "p")
    assert (p["is"], p["units"], p["type"]) == ("pressure", "rho_ref c_ref^2", "float64")
    assert (p["least"], p["greatest"]) == (data.state["p"].min(), data.state["p"].max())
    found = describe(netcdf.frame(one, 2, "mid"))
    assert found["kind"] == "fields (plane z = 0.3)" and found["variables"][0]["type"] == "float32"


def test_the_other_files_of_a_run(one):
    assert describe(one / "averages.nc")["averaged_over"].endswith("L / c_ref")
    found = describe(one / "history" / "centre.nc")
    assert found["kind"] == "history of centre (probe)" and found["samples"] == 5 and found["steps"] == [0, 4]
    assert found["places"] == [[0.0, 0.0, 0.0]]
    found = describe(checkpoint.list_checkpoints(one)[0])
    assert (found["kind"], found["step"], found["blocks"][0]["ni"]) == ("checkpoint, whole", 4, 9)
    found = describe(one / "case" / "case.toml")
    assert found["kind"] == "case" and found["time"]["steps"] == 4
    assert describe(one / "case") == found


def test_files_for_paraview(one):
    found = describe(vtk.series(one))
    assert [entry["file"] for entry in found["files"]] == [f"vtk/fields_{n:06d}.vtm" for n in (0, 2, 4)]
    found = describe(vtk.frame(one, 4))
    assert found["files"] == [{"name": "box", "file": "fields_000004_box.vts"}] and found["time"] == pytest.approx(0.2)
    found = describe(one / "vtk" / "fields_000004_box.vts")
    assert found["size"] == [9, 8, 7]
    assert [(v["name"], v["components"]) for v in found["variables"]] == [("rho", 1), ("velocity", 3), ("p", 1)]


def test_grids_and_files_of_another_origin(tmp_path):
    from hiresx.grid import write_plot3d
    from hiresx.grid.blocks import Block
    from hiresx.grid.connections import Grid

    x, y = np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 2, 9))
    write_plot3d(tmp_path / "g.xyz", Grid((Block("a", x[None], y[None], np.zeros((1, 9, 8))),), (), ({},)))
    found = describe(tmp_path / "g.xyz")
    assert found["kind"] == "grid (Plot3D)" and found["points"] == 72 and found["blocks"][0]["y"] == [0, 2]
    with netCDF4.Dataset(tmp_path / "o.nc", "w") as file:
        file.title = "theirs"
        file.createDimension("n", 3)
        file.createGroup("g").createVariable("v", "f8", ("n",)).units = "m"
    found = describe(tmp_path / "o.nc")
    assert found["attributes"] == {"title": "theirs"}
    assert found["variables"] == [{"name": "g/v", "is": "", "units": "m", "shape": [3]}]


def test_what_cannot_be_told(tmp_path, one):
    with pytest.raises(HiresxError, match="cannot read"):
        describe(tmp_path / "nowhere")
    with pytest.raises(HiresxError, match="neither a run nor a case"):
        describe(tmp_path)
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(HiresxError, match="does not know this type of file"):
        describe(tmp_path / "a.txt")
    whole = netcdf.frame(one, 4).read_bytes()
    for content in (whole[: len(whole) // 2], whole[:9], b""):
        (tmp_path / "cut.nc").write_bytes(content)
        with pytest.raises(HiresxError, match=r"cut\.nc"):
            describe(tmp_path / "cut.nc")
    damaged = bytearray(checkpoint.list_checkpoints(one)[0].read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "c.hxc").write_bytes(damaged)
    with pytest.raises(HiresxError, match="not a whole checkpoint"):
        describe(tmp_path / "c.hxc")
    (tmp_path / "v.vtm").write_text('<?xml version="1.0"?><VTKFile type="x"><a></VTKFile>')
    with pytest.raises(HiresxError, match="not a whole VTK file"):
        describe(tmp_path / "v.vtm")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("run.json", ["is a record of a run, and holds no fields", "hiresx plot {run}"]),
        ("history/centre.nc", ["is a history, and holds no fields", "hiresx plot {run} --history centre"]),
        ("fields_grid.nc", ["is a file of coordinates, and holds no fields", "hiresx plot {run}"]),
        ("checkpoints/*.hxc", ["is a checkpoint, and holds no fields", "hiresx info", "hiresx run --restart"]),
        ("case/case.toml", ["is a case, and holds no fields", "hiresx run {run}/case/case.toml", "--grid"]),
        ("case", ["is the folder of a case, and holds no fields", "hiresx run {run}/case/case.toml"]),
        ("fields.vtm", ["is a VTK file, and holds no fields", "ParaView"]),
        ("a.csv", ["is no field file", "hiresx info says what a file is"]),
        ("sweep", ["is the folder of a sweep of 1 run", "hiresx plot {run}/sweep/one", "hiresx sweep --table"]),
    ],
)
def test_plot_says_what_else_a_path_is(tmp_path, one, capsys, path, words):
    run = tmp_path / "run"
    copytree(one, run)
    (run / "a.csv").write_text("x,rho\n0,1\n")
    (run / "fields.vtm").write_text('<?xml version="1.0"?><VTKFile type="x"></VTKFile>')
    (run / "sweep" / "one").mkdir(parents=True)
    for file in ("sweep.json", "one/run.json"):
        (run / "sweep" / file).write_text("{}")
    asked = next(run.glob(path))
    assert cli.execute(["plot", str(asked)]) == 2
    said = capsys.readouterr().err
    assert all(word.format(run=run) in said for word in words), said
    if path == "sweep":
        assert cli.execute(["info", str(asked)]) == 2
        assert f"hiresx info {asked}/one" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "fields_000004.nc", "history/centre.nc", "case", "fields.pvd"])
def test_the_verb(one, name, capsys):
    assert cli.execute(["info", str(one / name)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{one / name}: ") and len(shown.splitlines()) > 5
    if name:  # a run tells of the machine and the day too
        reported.check(f"info-{name.replace('/', '-')}", shown, places=False, run=one, version=__version__)
    assert cli.execute(["info", str(one / name), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"]


# diff -----------------------------------------------------------------------------------------------------------------


def test_the_same_run_twice_differs_in_nothing(one, tmp_path):
    found = compare(one, run(tmp_path / "again", "average={start=0.0, every=1}"))
    assert found["same"] and found["results"]["same"] and found["grid"]["same"] and not found["configuration"]
    assert found["functions"] is False
    assert all(entry["greatest"] == 0 for entry in found["results"]["variables"])
    assert len(set(found["grid"]["hashes"])) == 1


def test_another_gas_differs_in_configuration_and_results(one, other):
    found = compare(one, other)
    assert not found["same"] and found["grid"]["same"]
    assert found["configuration"] == [{"key": "gas.reynolds", "first": 16000.0, "second": 1500.0}]
    results = found["results"]
    assert results["steps"] == [4, 4] and results["one_time"]
    a, b = (fields.read(netcdf.frame(run, 4)).blocks[0].state["p"] for run in (one, other))
    p = next(entry for entry in results["variables"] if entry["name"] == "p")
    assert p["greatest"] == np.abs(a - b).max() > 0
    assert p["rms"] == pytest.approx(np.sqrt(((a - b) ** 2).mean()))
    assert p["rms_of_range"] == pytest.approx(p["rms"] / np.ptp(a))
    at = p["at"]
    assert at["block"] == "box" and abs(a - b)[at["k"], at["j"], at["i"]] == p["greatest"]
    json.dumps(found, allow_nan=False)


def test_the_latest_time_in_common_is_compared(one, tmp_path):
    found = compare(one, run(tmp_path / "short", "time.steps=3", "output.every_steps=1"))["results"]
    assert found["steps"] == [2, 2] and found["one_time"] and found["same"]
    found = compare(one, run(tmp_path / "finer", "time.dt=0.1", "time.steps=2", "output.every_steps=1"))["results"]
    assert found["steps"] == [4, 2] and found["one_time"] and not found["same"]
    found = compare(one, run(tmp_path / "apart", "time.dt=0.03", "time.steps=3"))["results"]
    assert found["steps"] == [4, 3] and not found["one_time"] and not found["same"]


def test_checkpoints_whose_times_differ_by_round_off_are_of_one_time(tmp_path):
    """As those of other backends and numbers of ranks are."""
    checkpoints = [
        checkpoint.list_checkpoints(run(tmp_path / f"{n}", f"time.dt={dt!r}"))[0]
        for n, dt in enumerate((0.05, 0.05 + 1e-16))
    ]
    found = compare(*checkpoints)["results"]
    assert found["times"][0] != found["times"][1] and found["one_time"] and not found["same"]
    assert max(entry["greatest"] for entry in found["variables"]) < 1e-13


def test_other_grids(one, tmp_path):
    found = compare(one, run(tmp_path / "moved", "grid.upper=[3.2, 3.15, 3.15]"))
    assert not found["grid"]["same"] and len(set(found["grid"]["hashes"])) == 2
    assert 0 < found["results"]["greatest_distance_of_nodes"] < 0.1
    found = compare(one, run(tmp_path / "larger", "grid.n=[10, 8, 7]"))
    assert not found["grid"]["same"] and "greatest_distance_of_nodes" not in found["results"]
    p = next(entry for entry in found["results"]["variables"] if entry["name"] == "p")
    assert p["first"]["least"] < p["first"]["mean"] < p["first"]["greatest"]


def test_numbers_that_are_lost_differ(one, tmp_path):
    data = fields.read(netcdf.frame(one, 4))
    paths = []
    for name, lost in (("a", 0), ("b", 0), ("c", 1)):
        data.blocks[0].state["p"][0, 0, 2] = np.nan
        if lost:
            data.blocks[0].state["p"][1, 2, 3] = np.nan
        paths.append(fields.write(tmp_path / f"{name}.nc", data.blocks, data.time, data.step, data.case))
    assert compare(*paths[:2])["same"]
    p = compare(paths[0], paths[2])["results"]["variables"][-1]
    assert p["greatest"] == np.inf and p["at"] == {"block": "box", "i": 3, "j": 2, "k": 1}


def test_functions_of_the_case_differ(one, tmp_path):
    again = run(tmp_path / "again", "average={start=0.0, every=1}")
    (again / "case" / "case.py").write_text("# other functions\n")
    found = compare(one, again)
    assert found["functions"] and not found["same"] and found["results"]["same"]


# checkpoints


def rewritten(path, other, change=lambda array: array, at=3, changed="solver/q.0", **values):
    """The checkpoint once more, everything in pieces in two of them, the cut at i = `at`."""
    found = container.Container(path)
    read, made = (
        distributed_arrays.read_from_file(found),
        [(n, found.array(n)) for n in found.names if distributed_arrays.parse_label(n) is None],
    )
    for name in read.names:
        ends, *rest = read.whole(name)
        for part in ((0, at), (at, ends[1])):
            box = (part, *rest)
            whole = change(read(name, read.whole(name)).copy()) if name == changed else read(name, read.whole(name))
            made += distributed_arrays.label_pieces(
                "", [distributed_arrays.Piece(name, box, whole[(..., *slices(box))])]
            )
    container.write(other, found.values | values, made)
    return other


def test_checkpoints_are_the_same_however_they_are_cut(one, tmp_path, capsys):
    last = checkpoint.list_checkpoints(one)[0]
    cuts = [rewritten(last, tmp_path / f"{at}.hxc", at=at) for at in (3, 5)]
    assert container.Container(cuts[0]).names != container.Container(cuts[1]).names
    for pair in ((last, cuts[0]), cuts):
        found = compare(*pair)
        assert found["same"] and found["results"]["same_grid"] and not found["configuration"] and not found["run"]
        variables = {entry["name"]: entry["greatest"] for entry in found["results"]["variables"]}
        assert set(variables.values()) == {0} and {"rho", "rho_u", "rho_v", "rho_w", "e"} < set(variables)
        assert any(name.startswith("averages/") for name in variables)
    assert cli.execute(["diff", *map(str, cuts)]) == 0
    assert "the same to the last bit (step 4 and 4" in capsys.readouterr().out
    assert describe(cuts[0])["blocks"] == describe(last)["blocks"] and cli.execute(["info", str(cuts[0])]) == 0


def test_checkpoints_that_differ(one, tmp_path, capsys):
    last, first = checkpoint.list_checkpoints(one)

    def changed(array):
        array[4, 1, 2, 6] += 0.5
        return array

    other = rewritten(last, tmp_path / "other.hxc", changed)
    found = compare(last, other)
    e = found["results"]["variables"][4]
    assert not found["same"] and (e["name"], e["greatest"]) == ("e", pytest.approx(0.5))
    assert e["at"] == {"block": "box", "i": 6, "j": 2, "k": 1}
    assert all(entry["greatest"] == 0 for entry in found["results"]["variables"] if entry is not e)
    found = compare(last, first)
    assert not found["same"] and not found["results"]["one_time"] and found["results"]["steps"] == [4, 0]
    assert {entry["key"] for entry in found["run"]} == {"steps", "time"}
    grid = [dict(container.Container(last).values["grid"][0]) | {"sha256": "0" * 64}]
    found = compare(last, rewritten(last, tmp_path / "grid.hxc", grid=grid))
    assert not found["same"] and not found["grid"]["same"]
    assert cli.execute(["diff", str(last), str(tmp_path / "grid.hxc")]) == 1
    assert "grid: nodes differ" in capsys.readouterr().out
    larger = run(tmp_path / "larger", "grid.n=[10, 8, 7]")
    rho = compare(last, checkpoint.list_checkpoints(larger)[0])["results"]["variables"][0]
    assert rho["first"]["least"] < rho["first"]["mean"] < rho["first"]["greatest"]
    assert cli.execute(["diff", str(last), str(checkpoint.list_checkpoints(larger)[0])]) == 1


def test_the_node_where_kept_averages_differ_is_named(one, tmp_path):
    """Whichever of the components of an array differs."""
    last = checkpoint.list_checkpoints(one)[0]
    read = distributed_arrays.read_from_file(container.Container(last), "attachments/")
    name = next(n for n in read.names if n.startswith("averages/") and len(read(n, read.whole(n))) > 1)

    def changed(array):
        array[1, 4, 2, 6] += 0.5
        return array

    other = rewritten(last, tmp_path / "other.hxc", changed, changed=f"attachments/{name}")
    entries = [entry for entry in compare(last, other)["results"]["variables"] if entry["greatest"] != 0]
    assert [(entry["name"], entry["at"]) for entry in entries] == [(name, {"block": "", "i": 6, "j": 2, "k": 4})]


def test_checkpoints_are_compared_with_checkpoints(one, tmp_path):
    last = checkpoint.list_checkpoints(one)[0]
    for pair in ((last, one), (netcdf.frame(one, 4), last)):
        with pytest.raises(HiresxError, match=r"is a checkpoint, .* is not"):
            compare(*pair)
    for values in ({"grid": [{"name": "box"}]}, {"grid": 1}, {"solver": {}}, {"case": 3}):
        with pytest.raises(HiresxError, match="does not hold what a checkpoint must"):
            compare(rewritten(last, tmp_path / "c.hxc", **values), last)
    (tmp_path / "c.hxc").write_bytes(last.read_bytes()[:-1])
    with pytest.raises(HiresxError, match="is not a whole checkpoint"):
        compare(last, tmp_path / "c.hxc")


def test_what_cannot_be_compared(one, tmp_path):
    with pytest.raises(HiresxError, match="does not exist"):
        compare(one, tmp_path / "nowhere")
    with pytest.raises(HiresxError, match="cannot read"):
        compare(one, tmp_path)
    run(tmp_path / "vtk", 'output.formats=["vtk"]')
    with pytest.raises(HiresxError, match="format vtk only"):
        compare(one, tmp_path / "vtk")


def test_the_verb_diff(one, other, capsys):
    assert cli.execute(["diff", str(one), str(one)]) == 0
    shown = capsys.readouterr().out
    assert "configuration: no difference" in shown and "the same to the last bit" in shown
    assert cli.execute(["diff", str(one), str(other)]) == 1
    shown = capsys.readouterr().out
    assert "gas.reynolds" in shown and "difference of" in shown
    results = shown[shown.index("Results: ") :]
    reported.check("diff-of-runs", results, places=False)
    assert cli.execute(["diff", str(one), str(other), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["same"] is False
    assert cli.execute(["diff", str(one), str(one / "nowhere")]) == 2


def test_a_state_kept_as_differences_is_compared_whole():
    """Beside one that is not: reference, difference, and what the rounding of that lost."""
    whole = np.random.default_rng(1).uniform(0.5, 2.0, (5, 2, 3, 4))
    reference = [1.1, 0.2, -0.3, 0.45, 2.5]
    q = (whole - np.reshape(reference, (5, 1, 1, 1))).astype(np.float32)
    kept = {"q.0": q, "carry.0": whole - np.reshape(reference, (5, 1, 1, 1)) - q}
    found = compare_checkpoints._conservative_values(
        lambda name, box: kept[name], 0, ((0, 4), (0, 3), (0, 2)), reference
    )
    np.testing.assert_allclose(found, whole, rtol=1e-14)
    plain = compare_checkpoints._conservative_values(lambda name, box: whole, 0, ((0, 4), (0, 3), (0, 2)), None)
    np.testing.assert_array_equal(plain, whole)


@pytest.mark.parametrize(
    ("first", "second", "pair"),
    [
        ({0: 0.0, 10: 1.0, 20: 2.0}, {0: 0.0, 15: 1.0, 30: 3.0}, (10, 15)),
        ({0: 0.0, 10: 0.0, 20: 0.0}, {0: 0.0, 10: 0.0, 30: 0.0}, (10, 10)),  # local steps: the time stands still
        ({0: 0.0, 10: 1.0}, {0: 0.0, 15: 2.0}, (10, 15)),
    ],
)
def test_fields_of_one_time_are_compared_and_with_local_steps_those_of_one_step(first, second, pair):
    assert _pair(*(SimpleNamespace(times=lambda times=times: times) for times in (first, second))) == pair
