"""Fields written in the background: the thread, the clocks, restarts, and what a full disk does."""

import errno
import os
import threading
import time
from contextlib import nullcontext

import netCDF4
import numpy as np
import pytest
from file_limits import largest_file
from rank_fields import KINDS, Held, grid
from written_runs import Run, periodic

from hiresx import HiresxError
from hiresx.decomposition import Part
from hiresx.grid import Block
from hiresx.grid.blocks import whole_box
from hiresx.mpi.background import Writer
from hiresx.mpi.communicator import single_process
from hiresx.output.fields import derived
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.field_output import FieldOutput
from hiresx.output.fields.formats import netcdf, vtk
from hiresx.output.saved import file_layout, files, places
from hiresx.output.saved.files import JointFile

# The thread -----------------------------------------------------------------------------------------------------------


def test_jobs_are_done_in_order_and_the_third_waits_for_the_first():
    writer, gate, done = Writer(), threading.Event(), []
    writer.submit(lambda: (gate.wait(60), done.append(1)))
    writer.submit(lambda: done.append(2))
    assert not done, "nobody waits for two"
    threading.Timer(0.2, gate.set).start()
    writer.submit(lambda: done.append(3))
    assert done[0] == 1 and writer.seconds_waited > 0.1
    writer.drain()
    assert done == [1, 2, 3]
    assert not any(thread.name == "output" and thread.is_alive() for thread in threading.enumerate()) or writer.busy


def test_a_failure_is_raised_once_and_ends_the_writing():
    writer, done = Writer(), []

    def fail():
        raise HiresxError("cannot write it")

    writer.submit(fail)
    writer.drain()
    assert writer.has_failed
    with pytest.raises(HiresxError, match="cannot write it"):
        writer.check()
    writer.check()
    writer.submit(lambda: done.append(1))
    writer.drain()
    assert not done


def test_what_waits_behind_a_failure_is_not_done():
    writer, gate, done = Writer(), threading.Event(), []

    def fail():
        gate.wait(10)
        raise OSError("gone")

    writer.submit(fail)
    writer.submit(lambda: done.append(1))
    gate.set()
    with pytest.raises(OSError, match="gone"):
        writer.submit(lambda: done.append(2))
    writer.drain()
    assert not done


# Clocks and content ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cpu", "emulated"])
def test_fields_come_at_the_start_by_the_clock_and_at_the_end(tmp_path, name):
    run = Run(periodic("output.every_steps=3"), tmp_path, name).steps(7).finish()
    assert list(fields.frames(tmp_path)) == [0, 3, 6, 7]
    last = fields.read(fields.last(tmp_path))
    assert (last.time, last.step) == (run.solver.time, 7)
    for variable, values in run.solver.primitives(0).items():
        np.testing.assert_array_equal(last.blocks[0].state[variable], values)
    assert sorted(os.listdir(tmp_path)) == [*(f"fields_{n:06d}.nc" for n in (0, 3, 6, 7)), "fields_grid.nc"]
    assert run.output.summary["files"] == 4


def test_times_are_met_exactly_and_each_output_has_its_own(tmp_path):
    subset = '[{name="mid", plane={z=0.3}, every_time=0.07}]'
    case = periodic("output.every_time=0.1", f"output.subset={subset}", "time.end=0.25")
    run = Run(case, tmp_path)
    while run.solver.time < 0.25 - 1e-12:
        run.steps(1)
    run.finish()
    times = [fields.describe(path)["time"] for path in fields.frames(tmp_path).values()]
    assert times == pytest.approx([0, 0.1, 0.2, 0.25], abs=1e-14)
    times = [fields.describe(path)["time"] for path in fields.frames(tmp_path, "mid").values()]
    assert times == pytest.approx([0, 0.07, 0.14, 0.21, 0.25], abs=1e-14)


def test_looking_changes_nothing(tmp_path):
    """With and without a directory the same steps lead to the same state, to the last bit."""
    settings = ("output.every_time=0.1", 'output.variables=["vorticity", "q_criterion"]', 'output.formats=["vtk"]')
    written = Run(periodic(*settings), tmp_path).steps(12).finish().state
    silent = Run(periodic(*settings), None).steps(12).finish().state
    assert written[:2] == silent[:2]
    np.testing.assert_array_equal(written[2][0], silent[2][0])
    assert len(vtk.frames(tmp_path)) > 2 and not fields.frames(tmp_path)


def test_the_run_goes_on_while_two_outputs_are_written(tmp_path, monkeypatch):
    gate = threading.Event()
    put = netcdf.FieldFrame.put
    monkeypatch.setattr(netcdf.FieldFrame, "put", lambda *a: (gate.wait(10), put(*a)))
    run = Run(periodic("output.every_steps=5"), tmp_path).steps(9)
    assert run.output.summary["waited_s"] < 1 and not fields.frames(tmp_path)
    # What is written is the state of then, not of now.
    expected = periodic_state(5)
    gate.set()
    run.finish()
    np.testing.assert_array_equal(fields.read(netcdf.frame(tmp_path, 5)).blocks[0].state["p"], expected["p"])


def periodic_state(steps):
    return Run(periodic(), None).steps(steps).solver.primitives(0)


@pytest.mark.parametrize(
    ("scheme", "asked", "expected"), [("fp64", "fp32", "f4"), ("fp32", None, "f4"), ("fp64", None, "f8")]
)
def test_precision(tmp_path, scheme, asked, expected):
    overrides = [f"scheme.precision={scheme}", *([f"output.precision={asked}"] if asked else [])]
    Run(periodic(*overrides), tmp_path).finish()
    block = fields.read(fields.last(tmp_path)).blocks[0]
    assert block.state["p"].dtype == expected and block.x.dtype == "f8"
    assert fields.describe(fields.last(tmp_path))["precision"] == {"f4": "fp32", "f8": "fp64"}[expected]


def test_a_new_run_clears_what_an_earlier_one_left(tmp_path):
    settings = (
        "output.every_steps=2",
        'output.formats=["netcdf", "vtk"]',
        'output.subset=[{name="part", range={i=[0, 3]}}]',
    )
    Run(periodic(*settings), tmp_path).steps(6).finish()
    (tmp_path / "fields_mean.nc").touch()
    Run(periodic(*settings), tmp_path).steps(1).finish()
    for name in ("fields", "part"):
        assert list(fields.frames(tmp_path, name)) == list(vtk.frames(tmp_path, name)) == [0, 1]
    assert len(list((tmp_path / "vtk").iterdir())) == 8
    assert (tmp_path / "fields.pvd").read_text().count("<DataSet") == 2
    assert (tmp_path / "fields_mean.nc").exists()


def test_no_last_fields_of_a_state_that_may_be_bad(tmp_path):
    run = Run(periodic(), tmp_path).steps(2)
    try:
        raise HiresxError("blew up")
    except HiresxError:
        run.finish()
    assert list(fields.frames(tmp_path)) == [0]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (['output.variables=["machh"]'], 'output.variables: there is no variable "machh"'),
        (['output.subset=[{name="a", range={}, variables=["pp"]}]'], "output.subset.0.variables"),
        (['output.variables=["p", "u", "p"]'], '"p" is there twice'),
        (["time.local=true", "time.steps=5", "output.every_time=0.1"], "no common time"),
    ],
)
def test_requests_that_no_grid_can_meet(overrides, message):
    with pytest.raises(HiresxError, match=message):
        FieldOutput(periodic(*overrides), None)


def test_a_run_whose_blocks_cannot_name_files(tmp_path):
    left, right = grid(KINDS["sheet"][1])
    blocks = Block("a/b", left.x, left.y, left.z), right
    solver = Held(single_process(), blocks, [Part(n, whole_box(block.size), 0) for n, block in enumerate(blocks)])
    case = periodic('output.formats=["vtk"]')
    FieldOutput(case, None).begin(solver, False)  # nothing is written
    with pytest.raises(HiresxError, match='block name "a/b"'):
        FieldOutput(case, tmp_path).begin(solver, False)
    assert not list(tmp_path.iterdir())


# Restarts -------------------------------------------------------------------------------------------------------------


CLOCKS = ("output.every_steps=4", 'output.subset=[{name="mid", plane={z=0.3}, every_time=0.11}]')


def listing(directory):
    return {
        path.name: (fields.describe(path)["time"], fields.read(path).blocks[0].state["p"].tobytes())
        for path in sorted(directory.iterdir())
        if path.suffix == ".nc" and not path.stem.endswith("_grid")
    }


@pytest.mark.parametrize("stop", [0, 3, 4, 6])
def test_a_run_that_is_continued_writes_what_one_without_a_stop_writes(tmp_path, stop):
    """Also when it went on beyond the checkpoint before it died, and when the fields of that moment were lost."""
    Run(periodic(*CLOCKS), tmp_path / "a").steps(10).finish()
    first = Run(periodic(*CLOCKS), tmp_path / "b").steps(stop)
    captured, state = first.output.capture(), first.state
    first.steps(3)
    first.output.capture()
    if stop:
        netcdf.frame(tmp_path / "b", stop).unlink(missing_ok=True)
    Run(periodic(*CLOCKS), tmp_path / "b", state=state, captured=captured).steps(10 - stop).finish()
    assert listing(tmp_path / "a") == listing(tmp_path / "b")


def test_a_capture_is_flat_and_waits_for_what_is_being_written(tmp_path, monkeypatch):
    put = netcdf.FieldFrame.put
    monkeypatch.setattr(netcdf.FieldFrame, "put", lambda *a: (time.sleep(0.1), put(*a)))
    run = Run(periodic(*CLOCKS), tmp_path).steps(4)
    captured = run.output.capture()
    assert list(fields.frames(tmp_path)) == [0, 4]
    assert all(isinstance(value, int | float) for value in captured.values())
    run.finish()


def test_another_clock_after_a_restart_begins_anew(tmp_path):
    run = Run(periodic("output.every_time=0.1"), tmp_path).steps(3)
    captured, state = run.output.capture(), run.state
    run.finish()
    again = Run(periodic("output.every_time=0.25"), tmp_path, state=state, captured=captured)
    assert again.output.next_time == 0.25 * (state[0] // 0.25 + 1)


# A disk that fills ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formats", ['["netcdf"]', '["vtk"]', '["netcdf", "vtk"]'])
def test_a_full_disk_is_reported_once_and_leaves_what_was_there(tmp_path, formats):
    run = Run(periodic("output.every_steps=2", f"output.formats={formats}"), tmp_path).steps(4)
    run.output.capture()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    raised = []
    with largest_file(20_000):
        for _ in range(6):
            try:
                run.steps(1)
                run.output.capture()
            except HiresxError as error:
                raised.append(error)
        run.finish()
    assert len(raised) == 1 and run.solver.steps == 10
    assert "cannot write" in raised[0].message and str(tmp_path) in raised[0].message and raised[0].hint
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert (list(fields.frames(tmp_path)) or list(vtk.frames(tmp_path))) == [0, 2, 4]


def test_a_failure_in_the_last_output_is_raised_at_the_end(tmp_path):
    run = Run(periodic(), tmp_path).steps(1)
    run.output.capture()
    for path in tmp_path.iterdir():
        path.unlink()
    tmp_path.rmdir()
    with pytest.raises(HiresxError, match="cannot write"):
        run.finish()
    run.finish()


# Files of one layout --------------------------------------------------------------------------------------------------


def some_blocks(seed, *shapes, dtype=np.float64, gaps=()):
    chance = np.random.default_rng(seed)
    names = ("rho", "u", "v", "w", "p")
    return [
        fields.FieldBlock(
            f"block-{n}",
            *chance.random((3, *shape)),
            {name: (1 + chance.random(shape)).astype(dtype) for name in names},
            gaps,
        )
        for n, shape in enumerate(shapes)
    ]


ABOUT = {"title": "a test", "gas": {"gamma": 1.4}, "output": {"variables": ["rho", "u", "v", "w", "p", "mach"]}}


@pytest.mark.parametrize(
    ("shapes", "precision", "gaps"),
    [
        ([(7, 8, 9), (1, 20, 30)], "fp64", ()),
        ([(1, 1, 300)], "fp32", (4, 17)),
        ([(1, 1, 1), (1, 1, 2), (3, 1, 1)], "fp64", ()),
        ([(1, 40, 50)] * 12, "fp32", ()),
        ([(40, 50, 60)], "fp64", ()),
    ],
)
def test_files_of_a_series_are_what_the_library_writes(tmp_path, shapes, precision, gaps, monkeypatch):
    monkeypatch.setattr(files, "_SLAB", 1000)
    first = some_blocks(0, *shapes, gaps=gaps)
    series = fields.Series(first, ABOUT, None, precision, "a part")
    known = series.measure_layout(tmp_path / "ours.nc")
    assert not os.listdir(tmp_path), "where the arrays lie"
    for step in (1, 2, 3):
        blocks = some_blocks(step, *shapes, gaps=gaps)
        ours = by_layout(tmp_path / "ours.nc", known, blocks, step)
        theirs = by_library(tmp_path / "theirs.nc", series, blocks, step)
        alone = fields.write(tmp_path / "alone.nc", blocks, 0.1 * step, step, ABOUT, None, precision, "a part")
        assert alone.read_bytes() == theirs.read_bytes()
        assert ours.read_bytes() == theirs.read_bytes()
        a, b = fields.read(ours), fields.read(theirs)
        assert (
            (a.time, a.step, a.part, a.case) == (b.time, b.step, b.part, b.case) == (0.1 * step, step, "a part", ABOUT)
        )
        for mine, other in zip(a.blocks, b.blocks, strict=True):
            assert (mine.name, mine.gaps, list(mine.state)) == (other.name, other.gaps, list(other.state))
            for name in ("x", "y", "z"):
                np.testing.assert_array_equal(getattr(mine, name), getattr(other, name))
            for name, values in mine.state.items():
                np.testing.assert_array_equal(values, other.state[name])
                assert values.dtype == other.state[name].dtype
    assert sorted(os.listdir(tmp_path)) == ["alone.nc", "ours.nc", "theirs.nc"]


def by_library(path, series, blocks, step):
    """The file of one time as netCDF's library writes it."""
    with netCDF4.Dataset(path, "w", format="NETCDF4") as file:
        variables = series._define(file)
        variables["", "time"][...], variables["", "step"][...] = 0.1 * step, step
        for block in blocks:
            for name, values in series._values(block):
                variables[block.name, name][...] = values
    return path


def by_layout(path, known, blocks, step):
    """The file of one time, in its place."""
    frame = netcdf.FieldFrame(
        [JointFile(path, known, 7, True)], [b.name for b in blocks], {("", "time"): 0.1 * step, ("", "step"): step}
    )
    with frame:
        for n, block in enumerate(blocks):
            state = block.state
            flow = derived.FlowState(block.x, block.y, block.z, state, 1.4)
            values = {
                name: state.get(name, derived.evaluate([name], flow)[name]) for name in ABOUT["output"]["variables"]
            }
            frame.put(n, [places.LocalRegion(places.IndexBox.all(block.shape), block.x, block.y, block.z, values)])
    frame.publish()
    return path


def test_arrays_that_are_not_contiguous_are_refused(tmp_path):
    def define(file):
        file.createDimension("x", None)
        return {"p": file.createVariable("p", "f8", ("x",))}

    with pytest.raises(HiresxError, match=r"does not write /p as a contiguous array"):
        file_layout.measure_layout(tmp_path / "f.nc", define)


@pytest.mark.parametrize(("fault", "passes"), [(None, True), (errno.EINVAL, True), (errno.EIO, False)])
def test_only_a_directory_that_cannot_be_synced_is_let_be(fault, passes, tmp_path, monkeypatch):
    def fsync(handle):
        if fault is not None:
            raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(os, "fsync", fsync)
    with nullcontext() if passes else pytest.raises(OSError, match=os.strerror(errno.EIO)):
        files.sync(tmp_path)
