"""What no run goes on from: another case or grid, damaged files; and the container that notices."""

import contextlib
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from checkpoint_cases import CHANNEL, bits, gust, swell, vortex
from pydantic import create_model

from hiresx import Case, HiresxError, Simulation, Waves, cli, load
from hiresx.case.implicit_table import Implicit
from hiresx.case.schema import Time
from hiresx.grid import Block, Grid
from hiresx.output.saved import checkpoint, container, identity
from hiresx.output.saved.container import DamagedCheckpoint

# --- what is refused


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("scheme.flux='roe'", 'scheme.flux is "roe", in the checkpoint "steger_warming"'),
        ("gas.gamma=1.3", "gas.gamma is 1.3, in the checkpoint 1.4"),
        ("scheme.precision='fp32'", "scheme.precision"),
        ("parameters.strength=4.0", "parameters.strength is 4.0"),
        ("grid.n=[16,17,1]", "grid.n is [16, 17, 1], in the checkpoint [16, 16, 1]"),
        ("boundary=[]", "boundary"),
    ],
)
def test_another_case_is_refused(run, override, said):
    case = load("isentropic-vortex", overrides=["grid.n=[16,16,1]", override])
    with pytest.raises(HiresxError, match=re.escape(said)) as error:
        Simulation(case, backend="cpu", restart=run)
    assert "of another case" in error.value.message and str(run) in error.value.message


def test_no_run_goes_on_in_the_folder_of_another(run, tmp_path, capsys):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/run.json").write_text("{}")
    command = ["run", "--restart", str(run), "--backend", "cpu", "--set", "time.steps=1"]
    assert cli.execute([*command, "--out", str(tmp_path / "other")]) == 2
    assert "other holds a run already" in capsys.readouterr().err
    assert (tmp_path / "other/run.json").read_text() == "{}"


def test_a_checkpoint_without_its_run_needs_a_case_and_a_folder(run, tmp_path, capsys, monkeypatch):
    newest = checkpoint.list_checkpoints(run)[0]
    monkeypatch.chdir(tmp_path)
    shutil.copy(newest, "copy.hxc")
    command = ["run", "--restart", "copy.hxc", "--backend", "cpu"]
    for name, more in (("CASE", []), ("CASE", ["--out", "new"]), ("isentropic-vortex", [])):
        given = [] if name == "CASE" else [name]
        assert cli.execute([*command, *given, *more]) == 2
        err = capsys.readouterr().err
        assert f"hiresx run {name} --restart copy.hxc --out {'new' if more else 'DIR'}" in err
    assert cli.execute(["run", "copy.hxc"]) == 2
    assert "go on from it by --restart copy.hxc" in capsys.readouterr().err


def test_a_checkpoint_is_found_from_its_own_folder(run, monkeypatch):
    newest = checkpoint.list_checkpoints(run)[0]
    monkeypatch.chdir(newest.parent)
    for name in (newest.name, "."):
        found = checkpoint.find(name)
        assert found.directory.absolute() == run and found.container.values["solver"]["steps"] == 6


def test_a_table_that_nobody_allows_to_change_is_refused(run):
    case = load("isentropic-vortex", overrides=["grid.n=[16,16,1]"])
    extended = create_model("Extended", __base__=Case, magnetism=(dict[str, float] | None, None))
    with_table = extended.from_dict(case.model_dump() | {"magnetism": {"strength": 2.0}})
    with pytest.raises(HiresxError, match=re.escape("magnetism.strength is 2.0, in the checkpoint absent")) as error:
        Simulation(with_table, backend="cpu", restart=run)
    assert "leave these keys as they were" in error.value.hint


def test_every_key_of_the_case_may_change_or_is_held():
    held = {"parameters", "gas", "grid", "axisymmetric", "scheme", "boundary", "sponge", "scalar"}
    held |= {"turbulence", "body_force", "source", "filter", "refine"}
    keys = [*(name for name in Case.model_fields if name != "time"), *(f"time.{name}" for name in Time.model_fields)]
    assert {key for key in keys if not identity.may_change(key)} == {*held, "time.local"}
    tables = {key.partition(".")[0] for key in identity.MAY_DIFFER}
    assert tables <= Case.model_fields.keys(), "what is listed is there"


def test_keys_of_the_iteration_may_change_but_for_those_that_change_the_steady_flow():
    keys = {f"implicit.{name}" for name in Implicit.model_fields}
    held = {"implicit.viscous_damping", "implicit.damping_at_walls"}
    assert {key for key in keys if not identity.may_change(key)} == held == {*identity.HELD}


def test_a_steady_flow_begins_from_one_of_another_epsilon_but_not_the_other_way_round():
    explicit, steady = (
        load("couette", overrides=[f"time.integrator={name}", "time.local=true", "time.steps=9"]).model_dump(
            mode="json"
        )
        for name in ("ssp_rk3", "implicit")
    )
    changed = {key for key, _, _ in identity.check_case(explicit, steady, "here")}
    assert {"time.integrator", "scheme.epsilon"} <= changed
    with pytest.raises(HiresxError, match=r"scheme\.epsilon is 1e-06, in the checkpoint 0\.01"):
        identity.check_case(steady, explicit, "here")
    with pytest.raises(HiresxError, match=r"scheme\.epsilon is 0\.001, in the checkpoint 0\.01"):
        identity.check_case(steady, steady | {"scheme": steady["scheme"] | {"epsilon": 1e-3}}, "here")


def test_of_many_differences_five_are_named_and_the_others_counted():
    old, new = ({"parameters": dict.fromkeys("abcdefgh", value)} for value in (1, 2))
    with pytest.raises(HiresxError, match=r"parameters\.e.*; and 3 keys more\n") as refused:
        identity.check_case(old, new, "here")
    assert "parameters.f" not in refused.value.message


def test_how_long_and_what_is_written_may_change(run):
    case = load(
        "isentropic-vortex",
        overrides=["grid.n=[16,16,1]", "time.end=0.5", "time.cfl=0.3", "output.every_steps=1", "monitor.every=1"],
    )
    simulation = Simulation(case, backend="cpu", restart=run)
    assert any("time.end is 0.5, in the checkpoint 2.0" in line for line in simulation.restarted)
    record = simulation.run(progress=False)
    assert record["time"] == pytest.approx(0.5) and record["restarts"][0]["changed"]["time.cfl"] == [0.5, 0.3]
    kept = load(run / "case")
    assert kept.time.end == 0.5, "the case that is kept is that of the run as it goes on"


def moved(grid: Grid, distance: float) -> Grid:
    block = grid.blocks[0]
    x = block.x.copy()
    x[0, 5, 7] += distance
    return Grid((Block(block.name, x, block.y, block.z),), grid.connections, grid.period)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda g: moved(g, 1e-6), r"in block 'box' the nodes . = \d+ have the mean x = "),
        (
            lambda g: Grid((Block("box", *(c[:, :9, :] for c in (g.blocks[0].x, g.blocks[0].y, g.blocks[0].z))),)),
            "block 'box' has 16 x 9 x 1 nodes, in the checkpoint 16 x 16 x 1",
        ),
        (
            lambda g: Grid((Block("mine", g.blocks[0].x, g.blocks[0].y, g.blocks[0].z),), (), g.period),
            "the blocks are mine, in the checkpoint box",
        ),
    ],
    ids=["a-node-moved", "another-size", "another-name"],
)
def test_another_grid_is_refused(run, change, said):
    from hiresx.grid import build

    case = vortex()
    with pytest.raises(HiresxError, match=said) as error:
        Simulation(case, backend="cpu", restart=run, grid=change(build(case.grid)))
    assert "of another grid" in error.value.message


def test_a_grid_that_is_the_same_to_round_off_goes_on(run):
    from hiresx.grid import build

    case = vortex()
    simulation = Simulation(case, backend="cpu", restart=run, grid=moved(build(case.grid), 4e-16))
    assert any("round-off" in line for line in simulation.restarted)
    simulation.run(steps=1, progress=False)


def test_other_functions_are_refused(tmp_path):
    tables = CHANNEL | {"boundary": [CHANNEL["boundary"][0] | {"steady": True}, *CHANNEL["boundary"][1:]]}
    case = Case.from_dict(tables)
    Simulation(case, backend="cpu", out=tmp_path, profiles={"gust": gust}).run(steps=2, progress=False)

    def stronger(x, y, z, t):
        return 1.0, 1.6, 0.0, 0.0, 1 / 1.4

    with pytest.raises(HiresxError, match="another function for the profile-inflow on imin of block 'box'"):
        Simulation(backend="cpu", restart=tmp_path, profiles={"gust": stronger})
    with pytest.raises(HiresxError, match='the case uses its function "gust"'):
        Simulation(backend="cpu", restart=tmp_path)
    Simulation(backend="cpu", restart=tmp_path, profiles={"gust": gust}).run(steps=1, progress=False)


def test_other_waves_are_refused(tmp_path):
    Simulation(Case.from_dict(CHANNEL), backend="cpu", out=tmp_path, profiles={"gust": swell}).run(2, progress=False)

    def changed(value, frequency=1.0, amplitude=1.0):
        if not isinstance(value, Waves):
            return value
        cos, sin = ([amplitude * a for a in part] for part in (value.cos, value.sin))
        return Waves(value.mean, [frequency * f for f in value.frequency], cos, sin)

    for change in ({"frequency": 1.02}, {"amplitude": 1.02}):
        with pytest.raises(HiresxError, match="another function for the profile-inflow on imin of block 'box'"):
            profile = lambda *at, change=change: tuple(changed(value, **change) for value in swell(*at))  # noqa: E731
            Simulation(backend="cpu", restart=tmp_path, profiles={"gust": profile})
    Simulation(backend="cpu", restart=tmp_path, profiles={"gust": swell}).run(steps=1, progress=False)


def test_another_format_is_refused(run):
    path = checkpoint.list_checkpoints(run)[0]
    found = container.Container(path)
    arrays = [(name, found.array(name)) for name in found.names]
    container.write(path, found.values | {"format": 7, "hiresx": "9.9"}, arrays)
    with pytest.raises(HiresxError, match=r"of format 7, written by hiresx 9\.9; this one reads format 2"):
        Simulation(backend="cpu", restart=run)


def test_a_hundred_flipped_bits_are_refused(run):
    path = checkpoint.list_checkpoints(run)[0]
    content = path.read_bytes()
    random.seed(3)
    places = [random.randrange(8 * len(content)) for _ in range(84)]
    tail = range(8 * (len(content) - 48), 8 * len(content), 24)  # checksum, length and magic
    for place in [*places, *tail]:
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(DamagedCheckpoint, match="is not a whole checkpoint"):
            checkpoint.find(path)
    assert checkpoint.find(run).container.values["solver"]["steps"] == 4, "the one before is taken"


def test_a_truncated_one_is_refused(run):
    path = checkpoint.list_checkpoints(run)[0]
    content = path.read_bytes()
    for size in (0, 1, 8, 55, 56, len(content) // 3, len(content) // 2, len(content) - 9, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(DamagedCheckpoint):
            checkpoint.find(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(DamagedCheckpoint):
        checkpoint.find(path)


def test_the_newest_whole_one_is_taken_and_the_others_named(run):
    newest, second, _ = checkpoint.list_checkpoints(run)
    newest.write_bytes(newest.read_bytes()[:-100])
    content = bytearray(second.read_bytes())
    content[1000] ^= 1
    second.write_bytes(content)
    simulation = Simulation(backend="cpu", restart=run)
    assert simulation.step_count == 2
    said = [line for line in simulation.restarted if line.startswith("passed over")]
    assert newest.name in said[0] and "cut off" in said[0] and second.name in said[1] and "array" in said[1]
    simulation.run(progress=False)
    assert {path.name for path in (run / "checkpoints").glob("*.damaged")} == {
        f"{path.name}.damaged" for path in (newest, second)
    }
    assert bits(simulation) == bits(_run_whole())


def _run_whole() -> Simulation:
    simulation = Simulation(vortex(), backend="cpu")
    simulation.run(progress=False)
    return simulation


def test_none_whole_is_said(run):
    for path in checkpoint.list_checkpoints(run):
        path.write_bytes(b"")
    with pytest.raises(HiresxError, match=r"no checkpoint in .* is whole"):
        checkpoint.find(run)


def test_what_no_run_can_have_written_is_refused(run):
    path = checkpoint.list_checkpoints(run)[0]
    found = container.Container(path)
    values = {key: value for key, value in found.values.items() if key != "solver"}
    container.write(path, values, [])
    with pytest.raises(DamagedCheckpoint, match="does not hold what a checkpoint must"):
        Simulation(backend="cpu", restart=path)


# --- the container


def test_a_container_gives_back_what_it_got(tmp_path):
    arrays = {
        "a": np.arange(24.0).reshape(2, 3, 4)[:, ::-1],
        "nothing": np.zeros((0, 3), np.int32),
        "number": np.array(3 + 4j),
        "texts": np.array(["a", "bcd"]),
        "truth": np.array([True, False]),
        "not a number": np.array([np.nan, np.inf]),
    }
    values = {"x": 0.1 + 0.2, "text": "ä\n", "big": 2**70, "infinite": np.inf, "none": None, "single": np.float32(0.1)}
    container.write(tmp_path / "c", values, arrays.items())
    found = container.Container(tmp_path / "c")
    found.verify()
    assert found.values == values | {"single": float(np.float32(0.1))} and found.names == list(arrays)
    for name, array in arrays.items():
        back = found.array(name)
        assert back.dtype == array.dtype and np.array_equal(back, array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize("place", [0, 4000, 7999])
def test_what_changes_after_it_was_opened_is_noticed_when_it_is_read(tmp_path, place):
    """Each way to read looks at the checksum itself: by arrays, by planes and all at once."""
    path, a = tmp_path / "c", np.arange(1000.0).reshape(10, 10, 10)
    container.write(path, {}, [("a", a), ("b", a + 1)])
    found = container.Container(path)
    ways = (lambda: found.array("a"), lambda: [None for _ in found.planes("a")], found.verify)
    for way in ways:
        way()
    content = bytearray(path.read_bytes())
    content[len(container.MAGIC) + place] ^= 1
    path.write_bytes(content)
    for way in ways:
        with pytest.raises(DamagedCheckpoint, match="array a was changed"):
            way()
    assert np.array_equal(found.array("b"), a + 1)
    for share in (0, 1):
        with pytest.raises(DamagedCheckpoint) if share == 0 else contextlib.nullcontext():
            found.verify(share, 2)


def test_a_container_refuses_what_it_could_not_give_back(tmp_path):
    with pytest.raises(TypeError, match="one name"):
        container.write(tmp_path / "c", {}, [("a", np.zeros(2)), ("a", np.zeros(3))])
    with pytest.raises(TypeError, match="object"):
        container.write(tmp_path / "c", {}, [("a", np.array([None]))])
    with pytest.raises(TypeError, match="neither"):
        container.write(tmp_path / "c", {"a": {1, 2}}, [])
    with pytest.raises(TypeError, match="attachment probe returned where"):
        checkpoint.split_captured("probe", {"where": [1, 2]})
    assert not list(tmp_path.iterdir())


def test_differences_of_cases():
    old, new = vortex().model_dump(mode="json"), vortex(time__end=3.0, scheme__flux="'roe'").model_dump(mode="json")
    assert identity.differences(old, new) == [("scheme.flux", "steger_warming", "roe"), ("time.end", 2.0, 3.0)]
    assert identity.differences({"a": [{"b": 1}]}, {"a": [{"b": 1}, {"b": 2}]}) == [("a.1.b", None, 2)]


def test_one_that_rotation_removes_while_it_is_looked_for_is_passed_over(run, monkeypatch):
    found = checkpoint.list_checkpoints(run)
    newer = found[0].with_name("checkpoint_000099_step_000004.hxc")
    listed = checkpoint._candidates

    def rotating(path):
        candidates = listed(path)
        if not newer.exists():
            shutil.copy(found[0], newer)
            for old in found:
                old.unlink()
        return candidates

    monkeypatch.setattr(checkpoint, "_candidates", rotating)
    taken = checkpoint.find(run)
    assert taken.container.path == newer and not taken.passed
    newer.unlink()
    taken.container.verify()
    with pytest.raises(HiresxError, match="it is no longer there") as caught:
        container.Container(newer)
    assert "checkpoint.keep" in caught.value.hint
