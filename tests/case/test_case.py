"""The case room: what is read, what is refused, and what the refusal says."""

import copy
import inspect
import shutil
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiresx.case import Case, bundled_cases, copy_bundled, load, loader, presets, schema
from hiresx.case import error_messages as faults
from hiresx.case.toml import dumps
from hiresx.errors import HiresxError

BASE = {
    "title": "box",
    "grid": {"generator": "box", "n": [8, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x", "y"]},
    "time": {"end": 1.0},
    "initial": {"state": {"rho": 1, "p": 0.7}},
    "boundary": [{"faces": "all", "type": "periodic"}],
}
FUNCTIONS = """
import numpy as np

def initial(x, y, z, *, bump, gamma):
    return 1 + bump * np.sin(x), 0, 0, 0, 1 / gamma

def exact(x, y, z, t, *, bump):
    return 1 + bump * np.sin(x - t), 0, 0, 0, 1
"""


@pytest.fixture
def folder(tmp_path):
    """Writes a case folder: `folder(text of case.py, **tables over BASE)`."""

    def write(functions=None, **tables):
        (tmp_path / "case.toml").write_text(dumps(BASE | tables))
        if functions is not None:
            (tmp_path / "case.py").write_text(functions)
        return tmp_path

    return write


def refusal(call, *arguments, **keywords):
    with pytest.raises(HiresxError) as caught:
        call(*arguments, **keywords)
    return str(caught.value)


def changed(path, value):
    """BASE with the entry at the dotted `path` replaced."""
    data = holder = copy.deepcopy(BASE)
    *above, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    for key in above:
        holder = holder.setdefault(key, {}) if isinstance(holder, dict) else holder[key]
    holder[last] = value
    return data


# --- what is read


def test_defaults_are_written():
    case = Case.from_dict(BASE)
    assert case.time.cfl == 0.5 and case.time.dt is None
    dump = case.model_dump()
    assert dump["gas"]["viscosity"] == {"law": "constant"}
    assert dump["scheme"]["flux"] == "steger_warming"
    assert Case.from_dict(dump).model_dump() == dump
    written = {
        "integrator": "ssp_rk3",
        "end": 1.0,
        "cfl": 0.5,
        "viscous_cfl": 0.5,
        "local": False,
        "retries": 0,
        "retry_factor": 0.5,
    }
    assert tomllib.loads(case.to_toml())["time"] == written


def test_keywords_build_a_case():
    case = Case(grid=BASE["grid"], time=schema.Time(steps=3, dt=0.1))
    assert case.time.dt == 0.1 and case.time.cfl is None
    assert case.initial.function == "initial" and case.directory is None
    with pytest.raises(Exception, match="frozen"):
        case.title = "other"


def test_infinite_reynolds_is_inviscid():
    assert Case.from_dict(changed("gas.reynolds", float("inf"))).gas.reynolds is None
    assert Case.from_dict(changed("gas.reynolds", 100)).gas.reynolds == 100


@pytest.mark.parametrize("name", bundled_cases())
def test_bundled_cases_load_with_every_preset_and_survive_a_round_trip(name, tmp_path):
    for preset in (None, *presets(name)):
        case = load(name, preset)
        assert case.name == name and case.preset == preset
        assert case.title and "hiresx run" in case.description
        (tmp_path / "case.toml").write_text(case.to_toml())
        if (case.directory / "case.py").exists():
            shutil.copy(case.directory / "case.py", tmp_path)
        assert load(tmp_path).model_dump() == case.model_dump()


def test_presets_are_merged_in_the_order_given(tmp_path):
    """Of two that give the same key the later one wins; what only the first gives stays."""
    document = {**BASE, "presets": {"fine": {"title": "fine", "time": {"steps": 7}}, "long": {"time": {"steps": 9}}}}
    (tmp_path / "case.toml").write_text(dumps(document))
    both, turned = load(tmp_path, ["fine", "long"]), load(tmp_path, ["long", "fine"])
    assert (both.title, both.time.steps, both.preset) == ("fine", 9, "fine-long")
    assert (turned.title, turned.time.steps, turned.preset) == ("fine", 7, "long-fine")
    with pytest.raises(HiresxError, match='no preset "lang"'):
        load(tmp_path, ["fine", "lang"])


@given(
    st.recursive(
        st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_toml_round_trip(value):
    (back,) = tomllib.loads(dumps({"title": "a", "table": {"key": [value]}}))["table"]["key"]
    assert back == value and type(back) is type(value)  # 1.0 is no 1


def test_tables_of_tables_are_written_in_one_line():
    assert dumps({"a": 1, "b": {"c": {"d": 2, "e": {"f": 3}}}}) == "a = 1\n\n[b]\nc = {d = 2, e = {f = 3}}\n"


def test_whole_floats_stay_floats():
    for value in (0.0, 1.0, -3.0, 1e22):
        (back,) = tomllib.loads(dumps({"key": [value]}))["key"]
        assert back == value and type(back) is float


@pytest.mark.parametrize("overrides", [["time.dt=1e-3", "time.cfl=0.5"], {"time.cfl": 0.5, "time.dt": 1e-3}])
def test_overrides_that_exclude_each_other(overrides):
    with pytest.raises(HiresxError, match="--set time: cfl and dt exclude each other"):
        load("sod", overrides=overrides)


def test_merging_replaces_lists_alternatives_and_foreign_keys():
    base = {
        "grid": {"generator": "box", "n": [8, 8, 1], "stretch": {"x": {"cluster": "both", "ratio": 2.0}}},
        "time": {"dt": 0.1, "end": 1.0},
        "initial": {"function": "initial"},
        "boundary": [1, 2],
    }
    over = {
        "grid": {"generator": "wavy", "amplitude": [0, 0, 0]},
        "time": {"cfl": 0.4},
        "initial": {"state": {"rho": 1}},
        "boundary": [3],
    }
    assert loader.merge(base, over) == {
        "grid": {"generator": "wavy", "n": [8, 8, 1], "amplitude": [0, 0, 0]},
        "time": {"end": 1.0, "cfl": 0.4},
        "initial": {"state": {"rho": 1}},
        "boundary": [3],
    }
    assert base["time"] == {"dt": 0.1, "end": 1.0}


def test_presets_and_overrides(folder):
    path = folder(presets={"fine": {"grid": {"n": [16, 16, 1]}, "time": {"dt": 0.01}}})
    assert presets(path) == ["fine"]
    case = load(
        path, "fine", ["grid.n=[9, 9, 1]", "scheme.weights=z", "boundary.0.faces=['imin','imax']", "time.cfl=1"]
    )
    assert case.grid.n == (9, 9, 1) and case.scheme.weights == "z" and case.boundary[0].faces == ("imin", "imax")
    assert case.time.dt is None and case.time.cfl == 1
    preset = load(path, "fine")
    assert preset.grid.n == (16, 16, 1) and preset.time.dt == 0.01 and load(path).grid.n != (16, 16, 1)
    assert 'did you mean "fine"' in refusal(load, path, "fin")


@pytest.mark.parametrize(("text", "value"), [(".5", 0.5), ("1.", 1.0), ("+.25e1", 2.5), ("1.e-1", 0.1)])
def test_numbers_with_a_point_at_an_end(folder, text, value):
    assert load(folder(), None, [f"time.cfl={text}"]).time.cfl == value


# --- what is refused


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("time.edn", 2.0, ["time.edn = 2.0: unknown key", 'did you mean "end"?']),
        ("grid.flux", "roe", ["grid.flux", "did you mean scheme.flux?"]),
        ("tiem", {"end": 1}, ["tiem", 'did you mean "time"?']),
        ("output.every", 5, ["output.every = 5: unknown key", "did you mean every_time or every_steps?"]),
        ("checkpoint.every", 5, ["checkpoint.every", "did you mean every_wall or every_steps or every_time?"]),
        ("gas.gamma", "1.4", ['gas.gamma = "1.4": must be a number']),
        ("gas.gamma", 1.0, ["gas.gamma = 1.0: must be greater than 1"]),
        ("monitor.every", True, ["monitor.every = true: must be a whole number"]),
        ("monitor.every", 2.5, ["monitor.every = 2.5: must be a whole number"]),
        ("grid.n", [8, 8], ["grid.n = [8, 8]: must have at least 3 entries"]),
        ("grid.n", [8, 8, 1, 1], ["grid.n", "at most 3"]),
        ("grid.n", [8, 0, 1], ["grid.n.1 = 0: must be greater than or equal to 1"]),
        ("grid.generator", "boxx", ["grid.generator", 'did you mean "box"?']),
        ("grid.generator", "wavy", ["grid.amplitude: missing", "largest displacement"]),
        ("grid.upper", [0, 1, 0], ["grid: upper must lie above lower along x"]),
        ("grid.stretch", {"r": {"cluster": "both", "ratio": 1.0}}, ["grid.stretch.r: unknown key", "x, y, z"]),
        ("grid.stretch", {"x": {"cluster": "middle", "ratio": 1.0}}, ["grid.stretch.x.cluster", "'centre'"]),
        ("scheme.flux", "stegerwarming", ["scheme.flux", 'did you mean "steger_warming"?']),
        ("scheme.precision", "fp46", ["scheme.precision", 'did you mean "fp64"?']),
        ("time.dt", float("nan"), ["time.dt = nan: must be a finite number"]),
        ("time", {"cfl": 0.5}, ["time: time needs end, steps or both"]),
        ("time", {"end": 1, "cfl": 0.5, "dt": 0.1}, ["either dt or cfl"]),
        ("time", {"steps": 1, "dt": 0.1, "local": True}, ["time.local needs cfl"]),
        ("time", 3, ["time = 3: must be a table"]),
        ("initial", {}, ["initial: takes exactly one of state and function"]),
        ("initial.state", {"rho": 1, "p": -1}, ["initial.state.p = -1: must be greater than 0"]),
        ("initial.state", {"rho": 1, "p": 1, "u": 1e200}, ["initial.state: the kinetic energy exceeds the range of"]),
        ("initial.state", {"rho": 1e-320, "p": 1}, ["initial.state: the sound speed exceeds the range of double"]),
        ("boundary.0.steady", True, ["boundary.0.steady", 'type = "profile-inflow" or type = "characteristic-inflow"']),
        ("boundary.0.stedy", True, ["boundary.0.stedy", 'type = "profile-inflow" or type = "characteristic-inflow"']),
        ("grid.n_normal", 9, ["grid.n_normal", 'generator = "cylinder" or generator = "cylinder-o"']),
        ("boundary.0.type", "no-slip", ["boundary.0.type", 'did you mean "no-slip-wall"?']),
        ("boundary", [{"faces": "all"}], ["boundary.0.type: missing", "no-slip-wall"]),
        ("boundary.0.temperature", 1, ["boundary.0.temperature", "unknown key"]),
        ("boundary.0.faces", ["imni"], ["boundary.0.faces.0", 'did you mean "imin"?']),
        ("boundary.0.faces", "al", ["boundary.0.faces", 'did you mean "all"?']),
        ("boundary.0.range", {"i": [0, "ned"]}, ["boundary.0.range.i.1", 'did you mean "end"?']),
        (
            "boundary",
            [{"faces": ["imin"], "type": "symmetry", "range": {"i": [0, 3]}}],
            ["range.i does not lie along the face imin"],
        ),
        ("sponge", [{"axis": "x", "start": 1, "end": 1, "strength": 1, "function": "f"}], ["must differ"]),
        ("output", {"every_time": 1, "every_steps": 2}, ["not both"]),
        ("gas.viscosity", {"law": "power", "exponnet": 1}, ["gas.viscosity.exponnet", 'did you mean "exponent"?']),
        ("parameters", {"a b": 1}, ["parameters.a b: not a name"]),
    ],
)
def test_faults_name_key_value_and_what_is_wanted(path, value, expected):
    text = refusal(Case.from_dict, changed(path, value))
    assert all(part in text for part in expected), text
    assert "pydantic" not in text


def test_every_fault_is_listed_with_the_layer_that_wrote_it(folder):
    path = folder(gas={"gama": 1.4}, presets={"quick": {"time": {"stesp": 3}}})
    text = refusal(load, path, "quick", ["time.ned=3"])
    assert "3 errors" in text and str(path / "case.toml") in text
    assert "\n  gas.gama" in text and "\n  [presets.quick] time.stesp" in text and "\n  --set time.ned" in text


def test_a_fault_that_an_override_makes_names_it(folder):
    """Though the sentence begins with a key of the preset or of the file; not one that is there without overrides."""
    wanting = {"turbulence": {"model": "wale"}, "gas": {"reynolds": 1e4}}
    path = folder(presets={"les": wanting, "bad": {"turbulence": {"model": "wale"}}})
    text = refusal(load, path, "les", ["time.cfl=0.4", "gas.reynolds=inf", "title=a"])
    assert 'case.toml: with --set gas.reynolds=inf: [presets.les] turbulence.model = "wale" needs' in text
    both = refusal(load, path, None, {"turbulence.model": "wale", "turbulence.schmidt": 0.5})
    assert 'case.toml: --set turbulence.model = "wale" needs' in both
    assert "with --set" not in refusal(load, path, "bad", ["time.cfl=0.4"])


def test_keys_are_removed(folder):
    """Of the case and of its presets, ahead of overrides; in Python also by None."""
    time = {"end": 1.0, "steps": 4}
    path = folder(presets={"fine": {"scheme": {"flux": "roe"}}}, scheme={"weights": "z"}, time=time)
    for removed in ({"unset": ["scheme", "time.end"]}, {"overrides": {"scheme": None, "time.end": None}}):
        case = load(path, "fine", **removed)
        assert case.scheme == load(path, unset=["scheme"]).scheme != load(path).scheme
        assert case.time.end is None and case.time.steps == 4
    again = load(path, "fine", ["scheme.weights=za"], unset=["scheme"]).scheme
    assert again.weights == "za" and again.flux != "roe"


@pytest.mark.parametrize(
    ("unset", "words"),
    [
        (["scheme.flux"], ["--unset scheme.flux: neither the case nor a chosen preset gives scheme", "grid, time"]),
        (["time.ned"], ["neither the case nor a chosen preset gives time.ned", 'did you mean "end"?']),
        (["time"], ["--unset time: missing"]),
        (["boundary.0"], ["--unset boundary.0: an entry of a list cannot be removed", "--set 'boundary=[...]'"]),
        (["boundary.3.type"], ["gives boundary.3", "what they give there: 0"]),
        (["time=3"], ["--unset time=3: not of the form key", "--unset implicit"]),
        ("time", ["unset: 'time' is not a list of texts"]),
    ],
)
def test_keys_that_cannot_be_removed(folder, unset, words):
    text = refusal(load, folder(), unset=unset)
    assert all(word in text for word in words), text


def test_a_preset_that_was_not_asked_for_is_looked_at_too(folder):
    text = refusal(load, folder(presets={"quick": {"time": {"stesp": 3}}}))
    assert "[presets.quick] time.stesp" in text and 'did you mean "steps"?' in text
    assert "presets.quick must be a table" in refusal(load, folder(presets={"quick": 3}))


def all_keys():
    for place, table in faults._models(Case, ""):
        for key in table.model_fields:
            yield f"{place}.{key}" if place else key, table, key


@pytest.mark.parametrize(("table", "key"), sorted({(t, k) for _, t, k in all_keys()}, key=str))
def test_every_key_is_described_and_found_when_a_letter_is_doubled(table, key):
    field = table.model_fields[key]
    assert field.description or (inspect.getdoc(table) and field.default == faults._tag_of(table)[1])
    assert faults.closest(key + key[-1], list(table.model_fields)) == key


def test_overrides_that_cannot_be_read(folder):
    path = folder()
    assert "not of the form key=value" in refusal(load, path, None, ["time.end"])
    assert "the list has no entry 3" in refusal(load, path, None, ["boundary.3.type=periodic"])
    beyond = len(BASE["boundary"])
    for overrides in ([f'boundary.{beyond}.type="periodic"'], {f"boundary.{beyond}.type": "periodic"}):
        text = refusal(load, path, None, overrides)
        assert f'--set boundary.{beyond}.type="periodic": the list has no entry {beyond}' in text


def test_names_that_are_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert 'did you mean "sod"?' in refusal(load, "sodd")
    (tmp_path / "mine.toml").write_text(dumps(BASE))
    assert 'did you mean "mine.toml"?' in refusal(load, "mien.toml")
    assert load("mine.toml").name == "mine"
    (tmp_path / "empty").mkdir()
    assert "holds no case.toml" in refusal(load, "empty")
    (tmp_path / "a run" / "case").mkdir(parents=True)
    (tmp_path / "a run" / "case" / "case.toml").touch()
    assert "--restart 'a run', or name its case, 'a run/case'" in refusal(load, "a run")


def test_toml_faults_name_line_and_column(tmp_path):
    path = tmp_path / "case.toml"
    path.write_text('title = "a"\n[time\nend = 1\n')
    assert f"{path}, line 2, column" in refusal(load, path)
    path.write_bytes(b"\xef\xbb\xbf[time\nend = 1\n")
    assert f"{path}, line 1, column 6" in refusal(load, path), "a byte order mark is none of the text"
    path.write_bytes(b"title = '\xff'")
    assert "byte 9 is not UTF-8" in refusal(load, path)


# --- functions of case.py


def test_functions_get_parameters_and_gas(folder):
    case = load(folder(FUNCTIONS, initial={"function": "initial"}, parameters={"bump": 0.1}, gas={"gamma": 1.6}))
    call = case.function("initial")
    assert case.arguments(call) == {"bump": 0.1, "gamma": 1.6}
    x = np.linspace(0, 1, 8).reshape(1, 1, 8)
    rho, u, _, _, p = case.evaluate("initial", x, x, x)
    np.testing.assert_allclose(rho, 1 + 0.1 * np.sin(x))
    assert u.shape == x.shape and p[0, 0, 0] == 1 / 1.6 and not list(case.directory.glob("__pycache__"))
    np.testing.assert_allclose(case.evaluate("exact", x, x, x, 0.5)[0], 1 + 0.1 * np.sin(x - 0.5))


@pytest.mark.parametrize(
    ("functions", "tables", "expected"),
    [
        (None, {}, ["case.py does not exist", "initial.function"]),
        (FUNCTIONS, {"initial": {"function": "intial"}}, ["initial.function", 'did you mean "initial"?']),
        (FUNCTIONS, {"parameters": {"bump": 1, "bumb": 1}}, ["parameters.bumb", 'did you mean "bump"?']),
        (FUNCTIONS, {"parameters": {"bump": 1, "gamma": 1}}, ["parameters.gamma", "set gas.gamma"]),
        ("def initial(x:\n", {}, ["case.py, line 1: SyntaxError"]),
        ("\nimport nothing_of_that_name\n", {}, ["case.py, line 2: ModuleNotFoundError"]),
    ],
)
def test_function_faults_at_loading(folder, functions, tables, expected):
    text = refusal(load, folder(functions, **({"initial": {"function": "initial"}} | tables)))
    assert all(part in text for part in expected), text


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 1, 0, 0", "3 values"),
        ("return None", "something else than a state"),
        ("return 1, 0, 0, 0, x - 2", "returned p = -2 at (x, y, z) = (0, 0, 0)"),
        ("return 1, 0, 1e200 + 0 * x, 0, 1", "v = 1e+200, w = 0 at (x, y, z) = (0, 0, 0): the kinetic energy exceeds"),
        ("return 1e-320, 0, 0, 0, 1", "p = 1 at (x, y, z) = (0, 0, 0): the sound speed exceeds the range of double"),
        ("return 1 + 0j * x, 0, 0, 0, 1", "something else than a state: rho is an array of type complex128"),
        ("return 1, 0, 0 / (x - 1), 0, 1", "returned v = nan at (x, y, z) = (1, 1, 1)"),
        ("return x[:, :, 1:], 0, 0, 0, 1", "something else than a state"),
        ("return missing", 'case.py, line 2: function "initial" failed: NameError'),
    ],
)
def test_function_faults_at_evaluation(folder, body, expected):
    case = load(folder(f"def initial(x, y, z):\n    {body}\n", initial={"function": "initial"}))
    x = np.linspace(0, 1, 8).reshape(1, 1, 8)
    assert expected in refusal(case.evaluate, "initial", x, x, x)


def test_the_time_at_which_a_function_goes_wrong_is_named(folder):
    case = load(folder("def initial(x, y, z, t=0):\n    return 1, 0, 0, 0, 0.3 - t\n", initial={"function": "initial"}))
    x = np.zeros((1, 1, 8))
    assert 'function "initial", at t = 0.5, returned p = -0.2 at' in refusal(case.evaluate, "initial", x, x, x, 0.5)


def test_missing_argument(folder):
    case = load(folder(FUNCTIONS, initial={"function": "initial"}))
    assert 'has the argument "bump", which is not in [parameters]' in refusal(case.arguments, case.function("initial"))
    assert "the case has no case.py" in refusal(Case.from_dict(BASE).function, "initial")


# --- bundled cases


def test_copy_bundled(tmp_path):
    target = copy_bundled(bundled_cases()[0], tmp_path / "a" / "mine")
    assert load(target).name == "mine"
    assert "exists already" in refusal(copy_bundled, bundled_cases()[0], target)
    assert "cannot be written" in refusal(copy_bundled, bundled_cases()[0], target / "case.toml" / "sub")
    assert "did you mean" in refusal(copy_bundled, bundled_cases()[0] + "x", tmp_path / "b")


def test_a_source_of_a_scalar_that_is_not_there():
    case = {"source": {"scalars": {"ink": "1.0"}}, "scalar": [{"name": "dye"}]}
    grid = {"generator": "box", "n": [8, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}
    times = {"steps": 1}
    with pytest.raises(HiresxError, match=r'source.scalars: the case has no \[\[scalar\]\] "ink"'):
        Case.from_dict(case | {"grid": grid, "time": times, "initial": {"state": {"rho": 1, "p": 1}}})


@pytest.mark.parametrize(
    ("table", "keys", "instead"),
    [
        ("output", {"output.every_time": 0.1}, "output.every_steps"),
        (
            "output.subset.0",
            {"output.subset": [{"name": "a", "range": {"i": [0, 4]}, "every_time": 0.1}]},
            "every_steps",
        ),
        ("checkpoint", {"checkpoint.every_time": 0.1}, "checkpoint.every_steps"),
        ("probe.0", {"probe": [{"name": "a", "x": 0.5, "every_time": 0.1}]}, "probe.0.every"),
        ("force.0", {"force": [{"name": "a", "faces": ["imin"], "every_time": 0.1}]}, "force.0.every"),
        ("force.0.distribution", {"force": [{"name": "a", "distribution": {"every_time": 0.1}}]}, "distribution.every"),
        (
            "surface.0",
            {
                "surface": [
                    {"name": "a", "box": {"lower": [0, 0, 0], "upper": [1, 1, 1], "spacing": 0.5}, "every_time": 0.1}
                ]
            },
            "surface.0.every",
        ),
        ("average", {"average.every_time": 0.1}, "average.every"),
    ],
)
def test_local_steps_have_no_intervals_of_time(table, keys, instead):
    steps = {"time.local": True, "time.end": None, "time.steps": 5}
    with pytest.raises(HiresxError, match=rf"{table}.every_time: with time.local there is no .*{instead} instead"):
        load("sod", overrides=steps | keys)


def test_the_former_name_of_all_scalars_warns():
    case = load("sod", overrides={"scalar": [{"name": "dye"}]})
    with pytest.warns(FutureWarning, match="all_scalars now"):
        assert case.carried == case.all_scalars == case.scalar
