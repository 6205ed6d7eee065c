"""`hiresx.open`: what a run left behind is what was written, read when used and no more than is used."""

import sys

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

import hiresx
from hiresx import Case, HiresxError, Simulation
from hiresx.output.fields import field_file, field_reader
from hiresx.output.fields.derived import VARIABLES
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.fields.formats import netcdf
from hiresx.results import stored

AMBIENT = {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}
CASE = {
    "title": "Sound in a channel",
    "grid": {"generator": "box", "n": [24, 12, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
    "time": {"steps": 8, "cfl": 0.5},
    "initial": {"state": AMBIENT},
    "boundary": [
        {"faces": ["imin"], "type": "characteristic-inflow", "state": AMBIENT},
        {"faces": ["imax"], "type": "characteristic-outflow", "pressure": 1 / 1.4},
        {"faces": ["jmin", "jmax"], "type": "slip-wall"},
    ],
    "output": {"every_steps": 4, "subset": [{"name": "wall", "line": {"y": 0.25}, "every_steps": 4}]},
    "probe": [{"name": "two", "points": [[0.5, 0.5, 0.0], [1.5, 0.5, 0.0]], "variables": ["p", "u"], "every": 1}],
    "average": {"every": 1},
}


def pulse(x, y, z):
    p = 1 / 1.4 + 0.05 * np.exp(-20 * ((x - 1) ** 2 + (y - 0.5) ** 2))
    return (1.4 * p) ** (1 / 1.4), 0.2, 0.0, 0.0, p


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    Simulation(Case.from_dict(CASE), backend="cpu", out=folder, initial=pulse).run(progress=False)
    return hiresx.open(folder)


def two_blocks(folder, times=(0.0, 0.5, 2.0)):
    """Fields of two blocks in space at `times`, with random state."""
    random = np.random.default_rng(1)
    case = {"title": "Made", "gas": {"gamma": 1.4}, "output": {"variables": ["rho", "u", "v", "w", "p"]}}
    for n, time in enumerate(times):
        blocks = []
        for number, name in enumerate(("left", "right")):
            k, j, i = 7, 8 + number, 9
            axes = (np.linspace(0, 1, m) + (number if axis == 2 else 0) for axis, m in enumerate((k, j, i)))
            z, y, x = np.meshgrid(*axes, indexing="ij")
            state = {v: 1 + 0.1 * random.standard_normal((k, j, i)) for v in ("rho", "u", "v", "w", "p")}
            blocks.append(FieldBlock(name, x, y, z, state))
        field_file.write(netcdf.frame(folder, 10 * n), blocks, time, 10 * n, case)
    return hiresx.open(folder)


@pytest.mark.parametrize("name", list(VARIABLES))
def test_every_variable_is_what_the_file_gives(tmp_path, name):
    run = two_blocks(tmp_path)
    expected = field_file.read(run.file(), [name])
    for block in expected.blocks:
        found = run.fields(-1, [name])[block.name][name]
        np.testing.assert_array_equal(found.values, block.state[name])
        np.testing.assert_array_equal(found[2, 1:4, [0, 3]].values, block.state[name][2, 1:4][:, [0, 3]])
        np.testing.assert_array_equal(found.x.values, block.x)
        assert found.attrs["units"] == VARIABLES[name].scale and found.attrs["long_name"]


def test_a_series_has_time_first_and_coordinates_once(tmp_path):
    run = two_blocks(tmp_path)
    tree = run.series(["p", "mach", "vorticity_x"])
    right = tree["right"]
    assert right["p"].dims == ("time", "k", "j", "i") and right["x"].dims == ("k", "j", "i")
    assert list(right["time"].values) == [0.0, 0.5, 2.0] and list(right["step"].values) == [0, 10, 20]
    for n, path in enumerate(field_file.frames(run.path).values()):
        block = field_file.read(path, ["p", "mach", "vorticity_x"]).blocks[1]
        for name in block.state:
            np.testing.assert_array_equal(right[name].isel(time=n, k=3).values, block.state[name][3])
    np.testing.assert_array_equal(right["p"].sel(time=0.5).values, right["p"].values[1])
    assert run.series(start=0.1, end=1.0)["left"].sizes["time"] == 1
    assert run.series(every=2)["left"]["time"].values.tolist() == [0.0, 2.0]


def test_only_what_is_used_is_read(tmp_path, monkeypatch):
    run = two_blocks(tmp_path)
    read = []
    before = stored.StoredVariable._of
    monkeypatch.setattr(
        stored.StoredVariable, "_of", lambda self, path, key: read.append(path.name) or before(self, path, key)
    )
    tree = run.series(["p"])
    assert read == [], "opening reads nothing"
    assert tree["left"]["p"].isel(time=1, k=0).values.shape == (8, 9)
    assert read == ["fields_000010.nc"]


def test_fields_by_step_by_number_and_by_time(run):
    steps = list(field_file.frames(run.path))
    assert steps == run.steps == [0, 4, 8]
    assert int(run.fields(4).coords["step"]) == 4 and int(run.fields(-2).coords["step"]) == 4
    time = field_file.read_time(run.file(4))
    assert int(run.fields(1.01 * time).coords["step"]) == 4, "the nearest time"
    with pytest.raises(HiresxError, match="no fields of step 5"):
        run.fields(5)
    with pytest.raises(HiresxError, match='no output "walls"'):
        run.fields(subset="walls")
    with pytest.raises(HiresxError, match='no variable "presure"') as caught:
        run.fields(variables=["presure"])
    assert "did you mean" in caught.value.hint
    for which in ("p", ["p"], None, True):
        with pytest.raises(HiresxError, match="is neither a step nor a time") as caught:
            run.fields(which)
        assert 'variables=["p"]' in caught.value.hint
    assert run.subsets == ["wall"]
    with pytest.raises(HiresxError, match="needs gradients"):
        run.fields(variables=["vorticity"], subset="wall")


def test_a_time_outside_those_that_are_kept_is_refused(run):
    last = float(run.fields(-1).coords["time"])
    assert run.fields(last / 2).coords["time"] <= last and run.fields(float(f"{last:.6g}")).coords["time"] == last
    for time in (99.0, -5.0, np.inf, -np.inf):
        with pytest.raises(HiresxError, match=f"has no fields at time {time:g}") as caught:
            run.fields(time)
        assert caught.value.hint == f"there are some from 0 to {last:g}"


def test_histories_have_time_places_and_units(run):
    found = run.history("two")
    assert found["p"].dims == ("time", "place") and found.sizes == {"time": 9, "place": 2}
    assert found["x"].values.tolist() == [0.5, 1.5] and found["p"].attrs["units"] == "rho_ref c_ref^2"
    assert found["p"].sel(time=found.time[3]).values.tolist() == found["p"].values[3].tolist()
    assert run.history("residual")["rho"].dims == ("time",)
    with pytest.raises(HiresxError, match='no history "twoo"') as caught:
        run.history("twoo")
    assert "two" in caught.value.hint


def test_samples_of_local_time_steps_are_numbered_in_place_of_timed(tmp_path):
    box = {"lower": [0.4, 0.2, 0.0], "upper": [1.6, 0.8, 0.0], "spacing": 0.15}
    tables = {key: CASE[key] for key in ("title", "grid", "initial", "boundary", "probe")}
    tables |= {"time": {"steps": 2, "cfl": 0.5, "local": True}, "surface": [{"name": "around", "every": 1, "box": box}]}
    Simulation(Case.from_dict(tables), backend="cpu", out=tmp_path, initial=pulse).run(progress=False)
    run = hiresx.open(tmp_path)
    for found in (run.surface("around"), run.history("two")):
        assert found["p"].dims == ("sample", "place") and found["time"].dims == ("sample",)
        assert found["step"].values.tolist() == [0, 1, 2] and not found["time"].values.any()


def test_averages_hold_rms_and_stresses(run):
    block = run.averages["box"]
    reynolds = block["reynolds"]
    np.testing.assert_allclose(block["rms_p"].values, np.sqrt(np.maximum(reynolds["p_p"].values, 0)), rtol=1e-14)
    total = 0.5 * sum(reynolds[name].values for name in ("u_u", "v_v", "w_w"))
    np.testing.assert_allclose(block["tke"].values, total, rtol=1e-14, atol=1e-30)
    np.testing.assert_array_equal(block["u_v"].values, reynolds["u_v"].values)
    assert block["rms_p"].values.max() > 1e-3
    speed = np.sqrt(sum(block[name].values ** 2 for name in "uvw"))
    sound = np.sqrt(1.4 * block["p"].values / block["rho"].values)
    np.testing.assert_allclose(block["mach"].values, speed / sound, rtol=1e-13)
    assert "favre" in block.children and run.averages.attrs["averaged_over"] > 0


def test_a_block_that_is_not_there_is_named(run):
    for tree in (run.averages, run.fields(), run.series()):
        no_block, no_variable = 'there is no block "bxo"', 'box has no variable "rhoo"'
        for key, said in (("bxo", no_block), ("bxo/box/rho", no_block), ("box/rhoo", no_variable)):
            with pytest.raises(HiresxError, match=said) as caught:
                tree[key]
            assert caught.value.hint == f'did you mean "{"box" if said == no_block else "rho"}"?'
        assert "bxo" not in tree and tree.get("bxo") is None and isinstance(caught.value, KeyError)
    assert list(run.averages["box/reynolds"].data_vars)


def test_plots_return_figure_and_axes(run):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    for figure, axes in (
        run.plot("mach"),
        run.averages.hiresx.plot("rms_p"),
        run.fields().hiresx.plot("p", line="y=0.5"),
        run.history("residual").hiresx.plot("dt"),
        run.fields()["box"]["p"].hiresx.plot(),
    ):
        assert isinstance(figure, Figure) and isinstance(axes, Axes)
    _, axes = run.history("two").hiresx.plot()
    assert len(axes) == 2 and len(axes[0].lines) == 2
    line = run.fields().hiresx.line("y=0.5", "p")
    assert line["p"].dims == ("x",) and line.sizes["x"] == 24
    with pytest.raises(HiresxError, match="series of times"):
        run.series().hiresx.plot("p")


def test_a_run_shows_itself(run):
    page = run._repr_html_()
    assert "Sound in a channel" in page and "two" in page and "0, 4, 8" in page
    assert "status" in repr(run)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(HiresxError, match="is not the folder of a run"):
        hiresx.open(tmp_path / "nothing")
    with pytest.raises(HiresxError, match="holds no run"):
        hiresx.open(tmp_path)
    with pytest.raises(HiresxError, match="has no averages") as caught:
        _ = two_blocks(tmp_path).averages
    assert "[average]" in caught.value.hint


def test_arguments_of_another_type_are_refused_by_name(run):
    tree, history = run.fields(), run.history("two")
    for call, words in (
        (lambda: hiresx.open(3), "run: 3 is not a text or a path"),
        (lambda: run.fields(-1, 3), "variables: 3 is not a list of texts or None"),
        (lambda: run.fields(-1, ["p", 3]), r"variables: \['p', 3\] is not"),
        (lambda: run.fields(subset=None), "subset: None is not a text"),
        (lambda: run.series(start="now"), "start: 'now' is not a number"),
        (lambda: run.series(every=1.5), "every: 1.5 is not a whole number"),
        (lambda: run.series(blocks=3), "blocks: 3 is not a list of texts"),
        (lambda: run.files(every=None), "every: None is not a whole number"),
        (lambda: run.history(["two"]), "no history \"\\['two'\\]\""),
        (lambda: run.surface(np.ones(2)), "no surface"),
        (lambda: run.wall({}), "no distribution along the walls"),
        (lambda: run.plot(3), "variables: 3 is not a text"),
        (lambda: tree.hiresx.line(0.5, "p"), "where: 0.5 is not a text"),
        (lambda: tree.hiresx.line("y=0", ["p"]), r"names: \['p'\] is not a text"),
        (lambda: tree.hiresx.plot("p", line=3), "line: 3 is not a text or None"),
        (lambda: history.hiresx.plot(None), "names: None is not a text"),
    ):
        with pytest.raises(HiresxError, match=words) as caught:
            call()
        assert caught.value.hint
    assert list(run.fields(np.int64(-1), iter(["p"]))["box"].data_vars) == ["p"]


def test_a_missing_xarray_is_named_with_its_command(tmp_path, monkeypatch):
    two_blocks(tmp_path)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(HiresxError, match="xarray") as caught:
        hiresx.open(tmp_path)
    assert caught.value.hint == "pip install '.[post]' in the clone of HiresX"


def test_later_times_alone_are_those_of_their_files(tmp_path):
    run = two_blocks(tmp_path)
    paths = list(field_file.frames(run.path).values())
    (right,) = (block.state["p"] for block in field_file.read(paths[2], ["p"]).blocks if block.name == "right")
    found = run.series(["p"])["right"]["p"]
    for part in (found.isel(time=[2]), found.isel(time=slice(2, None))):
        np.testing.assert_array_equal(part.values[0], right)
    np.testing.assert_array_equal(found.isel(time=[2, 0]).values[0], right)


def test_stored_values_are_read_without_the_headers_of_other_blocks(run, monkeypatch):
    wanted = field_file.read(field_file.last(run.path)).blocks[0]
    block = run.fields()["box"]
    monkeypatch.setattr(field_reader, "_names", lambda *_: pytest.fail("the groups of all blocks are opened"))
    np.testing.assert_array_equal(block["p"][0, ::2, 3:7].values, wanted.state["p"][0, ::2, 3:7])
    np.testing.assert_array_equal(block["x"][:, 1].values, wanted.x[:, 1])
