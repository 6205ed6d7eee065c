"""Checkpoints and restarts: the same bits, the right refusals, nothing damaged taken for good.

HIRESX_EXAMPLES: how many forged and damaged files of each kind are tried (200).
"""

import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiresx import Case, HiresxError, Simulation, load
from hiresx.grid import Block, Grid
from hiresx.output.fields import field_file as fields
from hiresx.output.saved import checkpoint, container, identity
from hiresx.output.saved.container import Damaged

EXAMPLES = int(os.environ.get("HIRESX_EXAMPLES", "200"))
# A jet of 2000 points that has everything of the real one: four blocks, walls, a nozzle profile, sponges; and averages.
JET = (
    "grid.points_per_height=10", "grid.boundary_layer_points=1", "grid.exit_spacing=0.08", "grid.length=4.0",
    "grid.half_height=2.0", "grid.upstream=1.2", "grid.sponge_length=2.0", "grid.sponge_height=1.5",
    "grid.stretching=[1.1, 1.2]", "grid.sponge_stretching=1.2", "sponge.0.start=4.0", "sponge.0.end=6.0",
    "sponge.1.end=-1.2", "sponge.2.start=2.0", "sponge.2.end=3.5", "sponge.3.start=-2.0", "sponge.3.end=-3.5",
    "monitor.every=2", "average.every=1",
)  # fmt: skip
CHANNEL = {
    "grid": {"generator": "box", "n": [16, 9, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
    "time": {"steps": 6, "cfl": 0.5},
    "monitor": {"every": 2},
    "initial": {"state": {"rho": 1.0, "u": 1.5, "p": 1 / 1.4}},
    "boundary": [
        {"faces": ["imin"], "type": "profile-inflow", "function": "gust", "steady": False},
        {"faces": ["imax"], "type": "supersonic-outflow"},
        {"faces": ["jmin", "jmax"], "type": "slip-wall"},
    ],
}


def gust(x, y, z, t):
    return 1.0, 1.5 + 0.1 * np.sin(20 * t) * y, 0.0, 0.0, 1 / 1.4


def channel(**changes) -> Case:
    return Case.from_dict(CHANNEL | changes)


def vortex(**changes) -> Case:
    overrides = ["grid.n=[16,16,1]", "monitor.every=3"]
    return load("isentropic-vortex", overrides=overrides + [f"{k.replace('__', '.')}={v}" for k, v in changes.items()])


CASES = {
    "vortex": lambda: (vortex(), {}),
    "jet": lambda: (load("planar-jet", "quick", JET), {}),
    "local": lambda: (channel(time={"steps": 6, "cfl": 0.5, "local": True}), {"profiles": {"gust": gust}}),
    "unsteady": lambda: (channel(), {"profiles": {"gust": gust}}),
    "three-d": lambda: (load("taylor-green", overrides=["grid.n=[12, 10, 8]", "monitor.every=2"]), {}),
    "viscous-fp32": lambda: (load("couette", overrides=["scheme.precision='fp32'", "monitor.every=2"]), {}),
}
STEPS = {"jet": 4}


def bits(simulation: Simulation) -> list[bytes]:
    solver = simulation.solver
    states = [np.asarray(piece.array).tobytes() for piece in solver.pieces()]
    for averages in (a.capture() for a in simulation.attachments if a.name == "averages"):
        values, arrays, spread = checkpoint.parted("averages", averages)
        states += [repr(values).encode(), *(array.tobytes() for array in arrays.values())]
        states += [np.asarray(piece.array).tobytes() for found in spread.values() for piece in found]
    return [*states, repr((solver.time, solver.steps, solver.dt, simulation.history)).encode()]


def every_step(case: Case, **changes) -> Case:
    """The case with a checkpoint after each step."""
    tables = case.model_dump()
    tables["checkpoint"] |= {"every_steps": 1, "keep": 1000}
    for table, entries in changes.items():
        tables[table] |= entries
    changed = Case.from_dict(tables, directory=case.directory)
    return changed


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("name", CASES)
def test_a_restart_after_any_step_gives_the_same_bits(name, backend, tmp_path):
    case, given = CASES[name]()
    steps = STEPS.get(name, 6)
    whole = Simulation(every_step(case), backend=backend, out=tmp_path / "run", **given)
    whole.run(steps=steps, progress=False)
    written = checkpoint.listed(tmp_path / "run")
    assert len(written) == steps + 1
    plain = Simulation(case, backend=backend, **given)
    plain.run(steps=steps, progress=False)
    assert bits(plain) == bits(whole), "checkpoints change nothing"
    for path in written[1:]:
        copy = shutil.copy(path, tmp_path / "copy.hxc")
        again = Simulation(case, backend=backend, restart=copy, **given)
        assert again.out is None
        again.run(steps=steps - again.step_count, progress=False)
        assert bits(again) == bits(whole), path.name


def test_a_run_goes_on_in_its_directory_with_its_case(tmp_path):
    reference = Simulation(vortex(), backend="cpu", out=tmp_path / "whole")
    reference.run(progress=False)
    for steps in (5, 7, None):
        restart = None if steps == 5 else tmp_path / "parts"
        case = vortex() if steps == 5 else None
        simulation = Simulation(case, backend="cpu", out=None if restart else tmp_path / "parts", restart=restart)
        record = simulation.run(steps=steps, progress=False)
    assert bits(simulation) == bits(reference)
    assert [entry["step"] for entry in record["restarts"]] == [5, 12]
    assert record["restarts"][1]["before"]["status"] == "finished" and record["restarts"][1]["changed"] == {}
    assert record["history"] == json.loads((tmp_path / "whole/run.json").read_text())["history"]
    last = [fields.read(fields.last(tmp_path / name)).blocks[0].state["rho"] for name in ("whole", "parts")]
    assert np.array_equal(*last)


def test_running_on_in_one_process_is_the_same(tmp_path):
    whole = Simulation(vortex(), backend="cpu")
    whole.run(steps=9, progress=False)
    parts = Simulation(vortex(), backend="cpu", out=tmp_path)
    for _ in range(3):
        parts.run(steps=3, progress=False)
    assert bits(parts) == bits(whole)


def test_a_branch_into_another_directory(tmp_path):
    first = Simulation(vortex(), backend="cpu", out=tmp_path / "a")
    first.run(steps=4, progress=False)
    branch = Simulation(backend="cpu", restart=tmp_path / "a", out=tmp_path / "b")
    branch.run(steps=2, progress=False)
    steps = [int(re.search(r"step_(\d+)", path.name)[1]) for path in checkpoint.listed(tmp_path / "b")]
    assert steps == [6, 4] and (tmp_path / "b/case/case.toml").is_file()
    assert len(checkpoint.listed(tmp_path / "a")) == 2


# --- when, and how many


def test_the_last_ones_are_kept(tmp_path):
    case = vortex(checkpoint__every_steps=2, checkpoint__keep=3)
    Simulation(case, backend="cpu", out=tmp_path).run(steps=9, progress=False)
    names = [path.name for path in checkpoint.listed(tmp_path)]
    assert names == [f"checkpoint_{n:06d}_step_{step:06d}.hxc" for n, step in ((6, 9), (5, 8), (4, 6))]


def test_a_new_run_in_a_directory_drops_the_checkpoints_of_the_old_one(tmp_path):
    for steps in (9, 5):
        Simulation(vortex(), backend="cpu", out=tmp_path).run(steps=steps, progress=False)
    assert [path.stem[-6:] for path in checkpoint.listed(tmp_path)] == ["000005", "000000"]


def test_none_is_written_if_none_is_kept(tmp_path):
    Simulation(vortex(checkpoint__keep=0), backend="cpu", out=tmp_path).run(steps=2, progress=False)
    assert not (tmp_path / "checkpoints").exists()
    with pytest.raises(HiresxError, match="no checkpoint"):
        checkpoint.find(tmp_path)


def test_an_interval_of_time_moves_no_step(tmp_path):
    plain = Simulation(vortex(), backend="cpu")
    plain.run(steps=12, progress=False)
    timed = Simulation(vortex(checkpoint__every_time=0.13, checkpoint__keep=99), backend="cpu", out=tmp_path)
    timed.run(steps=12, progress=False)
    assert bits(timed) == bits(plain)
    times = sorted(checkpoint.describe(path)["time"] for path in checkpoint.listed(tmp_path))
    passed = [np.floor(time / 0.13) for time in times[:-1]]
    assert passed == list(range(len(passed))) and len(passed) > 2


class Steps:
    """What a checkpoint asks of a solver, without one."""

    time, steps = 0.0, 0


def stepping(tmp_path, spec, steps: int, step: float, cost: float) -> list[tuple[int, float, float]]:
    """Of every checkpoint of a run by a clock of its own: its step, and when it was begun and written. A step takes
    `step` seconds, a checkpoint `cost` (a function of the time)."""
    now, found = [100.0], []
    solver = Steps()

    def contents():
        found.append((solver.steps, now[0] - 100.0, now[0] + cost(now[0]) - 100.0))
        now[0] += cost(now[0])
        return {}, ()

    writer = checkpoint.Checkpoints(tmp_path, spec, contents, lambda: None, clock=lambda: now[0])
    writer.start(solver, None, new=True)
    solver.steps = 0
    for _ in range(steps):
        struck = writer.struck()
        now[0] += step
        solver.steps += 1
        writer.after_step(solver, struck)
    assert [n for n, _, _ in found][-9:] == sorted(int(path.stem[-6:]) for path in checkpoint.listed(tmp_path))[-9:]
    return found


def test_an_interval_of_the_wall_clock(tmp_path):
    spec = vortex(checkpoint__every_wall=10.0, checkpoint__keep=9).checkpoint
    found = stepping(tmp_path, spec, 35, 1.0, lambda now: 0.0)
    assert [n for n, _, _ in found] == [0, 10, 20, 30]


@pytest.mark.parametrize(
    ("step", "cost"), [(0.01, 0.1), (1.0, 2.9), (70.0, 1.0), (400.0, 0.5)], ids=["quick", "dear", "slow", "very slow"]
)
def test_five_minutes_are_lost_at_most_where_that_costs_a_hundredth(tmp_path, step, cost):
    spec = vortex(checkpoint__keep=9).checkpoint
    assert spec.every_wall is None
    found = stepping(tmp_path, spec, int(4000 / step), step, lambda now: cost)
    lost = [after[2] - before[1] for before, after in itertools.pairwise(found)]
    # Beyond that only one step, where a step takes as long.
    # How long a step takes shows when the first is done.
    assert len(lost) >= 4 and max(lost[1:]) <= max(300.0, 2 * cost + step) + 1e-6
    assert min(lost) > 280 - 2 * step or step > 100, "no oftener than that"
    assert cost * len(found[1:]) <= 0.01 * found[-1][2]


def test_a_dear_checkpoint_is_written_less_often(tmp_path):
    spec = vortex(checkpoint__keep=9).checkpoint
    found = stepping(tmp_path, spec, 40000, 1.0, lambda now: 20.0)
    every = [after[1] - before[1] for before, after in itertools.pairwise(found)]
    assert len(every) > 10 and all(1970 <= seconds <= 2010 for seconds in every), every


def test_a_file_system_that_is_slow_once_puts_no_checkpoint_off(tmp_path):
    spec = vortex(checkpoint__keep=9).checkpoint
    found = stepping(tmp_path, spec, 4000, 1.0, lambda now: 60.0 if 800 < now < 1100 else 0.5)
    every = [after[1] - before[1] for before, after in itertools.pairwise(found)]
    assert len(every) > 9 and max(every) <= 301


def test_the_clock_changes_no_result(tmp_path):
    """Whatever it says, the run takes the same steps."""
    now = [0.0]

    def passes(simulation):
        now[0] += 400.0

    simulation = Simulation(vortex(checkpoint__keep=99), "cpu", out=tmp_path / "out", monitors=[passes])
    simulation._checkpoints._clock = lambda: now[0]
    simulation.run(steps=12, progress=False)
    plain = Simulation(vortex(), "cpu")
    plain.run(steps=12, progress=False)
    assert bits(simulation) == bits(plain) and len(checkpoint.listed(tmp_path / "out")) > 4


def test_a_clock_that_goes_backwards_is_harmless(tmp_path, monkeypatch):
    now = [2e9]

    def backwards() -> float:
        now[0] -= 3600
        return now[0]

    monkeypatch.setattr("time.time", backwards)
    case = vortex(checkpoint__every_steps=2, checkpoint__keep=9, time__wall_limit=1000)
    record = Simulation(case, backend="cpu", out=tmp_path).run(steps=6, progress=False)
    assert record["status"] == "finished"
    for n, path in enumerate(checkpoint.listed(tmp_path)):
        os.utime(path, (1e9 + n, 1e9 + n))  # the newest seems to be the oldest
    assert checkpoint.find(tmp_path).container.values["solver"]["steps"] == 6
    assert Simulation(backend="cpu", restart=tmp_path).step_count == 6


def test_the_wall_clock_limit_stops_in_order(tmp_path):
    case = vortex(time__wall_limit=1e-3)
    record = Simulation(case, backend="cpu", out=tmp_path).run(progress=False)
    assert record["status"] == "stopped" and "time.wall_limit = 0.001 s" in record["error"]
    assert record["steps"] == 1 == checkpoint.find(tmp_path).container.values["solver"]["steps"]
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "stopped"


# --- what is refused


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run of the vortex with checkpoints at steps 2, 4 and 6."""
    directory = tmp_path_factory.mktemp("finished") / "run"
    case = vortex(checkpoint__every_steps=2, checkpoint__keep=3)
    Simulation(case, backend="cpu", out=directory).run(steps=6, progress=False)
    return directory


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
    with pytest.raises(HiresxError, match='the case names its function "gust"'):
        Simulation(backend="cpu", restart=tmp_path)
    Simulation(backend="cpu", restart=tmp_path, profiles={"gust": gust}).run(steps=1, progress=False)


def test_another_format_is_refused(run):
    path = checkpoint.listed(run)[0]
    found = container.Container(path)
    arrays = [(name, found.array(name)) for name in found.names]
    container.write(path, found.values | {"format": 7, "hiresx": "9.9"}, arrays)
    with pytest.raises(HiresxError, match=r"of format 7, written by hiresx 9\.9; this one reads format 2"):
        Simulation(backend="cpu", restart=run)


def test_a_hundred_flipped_bits_are_refused(run):
    path = checkpoint.listed(run)[0]
    content = path.read_bytes()
    random.seed(3)
    places = [random.randrange(8 * len(content)) for _ in range(84)]
    tail = range(8 * (len(content) - 48), 8 * len(content), 24)  # checksum, length and magic
    for place in [*places, *tail]:
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(Damaged, match="is not a whole checkpoint"):
            checkpoint.find(path)
    assert checkpoint.find(run).container.values["solver"]["steps"] == 4, "the one before is taken"


def test_a_truncated_one_is_refused(run):
    path = checkpoint.listed(run)[0]
    content = path.read_bytes()
    for size in (0, 1, 8, 55, 56, len(content) // 3, len(content) // 2, len(content) - 9, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(Damaged):
            checkpoint.find(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(Damaged):
        checkpoint.find(path)


def test_the_newest_whole_one_is_taken_and_the_others_named(run):
    newest, second, _ = checkpoint.listed(run)
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
    for path in checkpoint.listed(run):
        path.write_bytes(b"")
    with pytest.raises(HiresxError, match=r"no checkpoint in .* is whole"):
        checkpoint.find(run)


def test_what_no_run_can_have_written_is_refused(run):
    path = checkpoint.listed(run)[0]
    found = container.Container(path)
    values = {key: value for key, value in found.values.items() if key != "solver"}
    container.write(path, values, [])
    with pytest.raises(Damaged, match="does not hold what a checkpoint must"):
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
        with pytest.raises(Damaged, match="array a was changed"):
            way()
    assert np.array_equal(found.array("b"), a + 1)
    for share in (0, 1):
        with pytest.raises(Damaged) if share == 0 else contextlib.nullcontext():
            found.verify(share, 2)


def test_a_container_refuses_what_it_could_not_give_back(tmp_path):
    with pytest.raises(TypeError, match="one name"):
        container.write(tmp_path / "c", {}, [("a", np.zeros(2)), ("a", np.zeros(3))])
    with pytest.raises(TypeError, match="object"):
        container.write(tmp_path / "c", {}, [("a", np.array([None]))])
    with pytest.raises(TypeError, match="neither"):
        container.write(tmp_path / "c", {"a": {1, 2}}, [])
    with pytest.raises(TypeError, match="attachment probe wants to keep where"):
        checkpoint.parted("probe", {"where": [1, 2]})
    assert not list(tmp_path.iterdir())


def test_differences_of_cases():
    old, new = vortex().model_dump(mode="json"), vortex(time__end=3.0, scheme__flux="'roe'").model_dump(mode="json")
    assert identity.differences(old, new) == [("scheme.flux", "steger_warming", "roe"), ("time.end", 2.0, 3.0)]
    assert identity.differences({"a": [{"b": 1}]}, {"a": [{"b": 1}, {"b": 2}]}) == [("a.1.b", None, 2)]


# --- hostile files

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()) -> list[tuple]:
    """Path of every entry of nested JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in places(item, (*path, key)))]


def changed_at(value, path, new):
    """A copy of nested JSON with `new` at `path`."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed_at(value[path[0]], path[1:], new)
    return copy


def forged(content: bytes, index) -> bytes:
    """The file with another index, all checksums right."""
    length = int.from_bytes(content[-16:-8], "little")
    text = json.dumps(index).encode()
    magic = container.MAGIC
    tail = hashlib.sha256(magic + text).digest() + len(text).to_bytes(8, "little") + magic
    return content[: len(content) - 48 - length] + text + tail


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_forged_index_is_refused_or_understood(finished, data):
    path = checkpoint.listed(finished)[0]
    content = path.read_bytes()
    index = json.loads(content[-48 - int.from_bytes(content[-16:-8], "little") : -48])
    place = data.draw(st.sampled_from(places(index)))
    forgery = finished.parent / "forged.hxc"
    forgery.write_bytes(forged(content, changed_at(index, place, data.draw(JSON))))
    with contextlib.suppress(HiresxError):
        checkpoint.describe(forgery)
        found = checkpoint.find(forgery)
        for name in found.container.names:
            assert found.container.array(name).nbytes <= len(content)


def forgery(finished: Path) -> tuple[bytes, dict, Path]:
    """The newest checkpoint, its index, and where a forged one goes."""
    content = checkpoint.listed(finished)[0].read_bytes()
    index = json.loads(content[-48 - int.from_bytes(content[-16:-8], "little") : -48])
    return content, index, finished.parent / "forged.hxc"


def goes_on_from(path: Path, values: dict, finished: Path) -> bool:
    """Whether a run takes a step from the forged checkpoint `path`, which holds `values`: the one that is right."""
    simulation = Simulation(vortex(), backend="cpu", restart=path)
    simulation.run(steps=1, progress=False)
    told = values["solver"]
    step, time = int(told["steps"]), float(told["time"])
    went_on = time < simulation.case.time.end
    assert simulation.step_count == step + went_on and 0 <= time <= simulation.time < np.inf
    # the flow itself was not forged
    right = Simulation(vortex(), backend="cpu", restart=checkpoint.listed(finished)[0]).solver
    if went_on:
        assert simulation.time == time + simulation.solver.dt
        right.step_factor = float(told["step_factor"])
        right.step(simulation.case.time.end - time)
    found = simulation.solver.primitives(0)
    for name, values in right.primitives(0).items():
        assert found[name].tobytes() == values.tobytes(), name
    return went_on


@settings(max_examples=EXAMPLES // 10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_run_refuses_a_forged_checkpoint_or_goes_on(finished, data):
    content, index, path = forgery(finished)
    values = [place for place in places(index["values"]) if place[:1] != ("grid",)]
    place = data.draw(st.sampled_from(values))
    values = changed_at(index["values"], place, data.draw(JSON))
    path.write_bytes(forged(content, index | {"values": values}))
    with contextlib.suppress(HiresxError):
        goes_on_from(path, values, finished)


@pytest.mark.parametrize(
    ("place", "new"),
    [
        ("written", "long ago"),
        ("solver.time", 0.0),
        ("solver.steps", 40),
        ("solver.step_factor", 0.25),
        ("solver.dt", 9.0),
    ],
)
def test_a_run_goes_on_from_another_time_with_the_flow_that_is_there(finished, place, new):
    content, index, path = forgery(finished)
    values = changed_at(index["values"], tuple(place.split(".")), new)
    path.write_bytes(forged(content, index | {"values": values}))
    assert goes_on_from(path, values, finished)


@pytest.mark.parametrize(
    ("place", "new"),
    [("solver.time", -1.0), ("solver.time", float("nan")), ("solver.steps", -1), ("solver.steps", "many"),
     ("solver.step_factor", 0.0), ("solver.step_factor", 2.0), ("solver", None), ("format", 3)],
)  # fmt: skip
def test_a_run_refuses_what_no_run_can_have_written(finished, place, new):
    content, index, path = forgery(finished)
    values = changed_at(index["values"], tuple(place.split(".")), new)
    path.write_bytes(forged(content, index | {"values": values}))
    with pytest.raises(HiresxError):
        Simulation(vortex(), backend="cpu", restart=path)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_bytes_changed_cut_or_added_are_refused(finished, data):
    path = checkpoint.listed(finished)[0]
    content = path.read_bytes()
    first = data.draw(st.integers(0, len(content)))
    last = data.draw(st.integers(first, min(first + 64, len(content))))
    new = content[:first] + data.draw(st.binary(max_size=64)) + content[last:]
    changed = finished.parent / "changed.hxc"
    changed.write_bytes(new)
    if new == content:
        checkpoint.find(changed)
    else:
        with pytest.raises(Damaged):
            checkpoint.find(changed)
