"""Output room: field files, faults of the disk, the run record."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import threading
import types
from collections import namedtuple
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from file_limits import largest_file
from flow_blocks import state, wavy

import hiresx
from hiresx.case import load
from hiresx.case.toml import dumps
from hiresx.errors import HiresxError
from hiresx.grid import build, write_plot3d
from hiresx.grid.connectivity import write_connectivity
from hiresx.output.fields import derived
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.fields.formats import netcdf
from hiresx.output.saved import directories, library_files, machine_record, record

CASE = {
    "title": "a test",
    "gas": {"gamma": 1.4},
    "output": {"variables": ["rho", "u", "v", "w", "p"]},
    "time": {"end": 1.0, "dt": None},
}


# Field files ----------------------------------------------------------------------------------------------------------


def two_blocks(dtype=np.float64):
    x, y, z = wavy(7, 8, 9)
    rng = np.random.default_rng(1)
    return [
        FieldBlock(name, x + shift, y, z, state(x.shape, dtype, rho=1 + rng.random(x.shape), u=y))
        for name, shift in (("nozzle", 0.0), ("b-2", 1.0))
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fields_come_back_as_they_went(tmp_path, dtype):
    blocks = two_blocks(dtype)
    path = fields.write(tmp_path / "f.nc", blocks, 0.25, 42, CASE)
    back = fields.read(path)
    assert (back.time, back.step, back.case) == (0.25, 42, CASE)
    assert [block.name for block in back.blocks] == ["nozzle", "b-2"]
    for ours, theirs in zip(blocks, back.blocks, strict=True):
        for axis in "xyz":
            np.testing.assert_array_equal(getattr(ours, axis), getattr(theirs, axis))
        assert list(theirs.state) == CASE["output"]["variables"]
        for name, values in theirs.state.items():
            assert values.dtype == dtype
            np.testing.assert_array_equal(values, ours.state[name])
    assert os.listdir(tmp_path) == ["f.nc"]


def test_derived_variables_are_the_same_written_or_computed_on_reading(tmp_path):
    names = list(derived.VARIABLES)
    written = fields.read(fields.write(tmp_path / "all.nc", two_blocks(), 0.0, 0, CASE, names))
    computed = fields.read(fields.write(tmp_path / "five.nc", two_blocks(), 0.0, 0, CASE), names)
    for ours, theirs in zip(written.blocks, computed.blocks, strict=True):
        assert list(ours.state) == list(theirs.state) == names
        for name in names:
            np.testing.assert_array_equal(ours.state[name], theirs.state[name])


def test_field_files_explain_themselves_to_any_netcdf_reader(tmp_path):
    path = fields.write(tmp_path / "f.nc", two_blocks(), 0.25, 42, CASE, ["rho", "T", "q_criterion"])
    with netCDF4.Dataset(path) as file:
        assert file.data_model == "NETCDF4"
        assert json.loads(file.case) == CASE
        assert "rho_ref" in file.scales
        assert (float(file["time"][...]), file["time"].units, int(file["step"][...])) == (0.25, "L / c_ref", 42)
        group = file["nozzle"]
        assert group["x"].dimensions == ("k", "j", "i")
        assert group["x"].shape == (7, 8, 9)
        assert group["x"].units == "L"
        assert {name: group[name].units for name in ("rho", "T", "q_criterion")} == {
            "rho": "rho_ref",
            "T": "T_ref",
            "q_criterion": "c_ref^2 / L^2",
        }
        assert group["T"].long_name == "temperature"
        assert group["T"].coordinates == "time x y z"
    about = fields.describe(path)
    assert about["variables"] == ["rho", "T", "q_criterion"]
    assert about["blocks"] == {"nozzle": (7, 8, 9), "b-2": (7, 8, 9)}
    assert (about["time"], about["step"]) == (0.25, 42)


def test_a_variable_that_cannot_be_computed_from_what_is_stored(tmp_path):
    path = fields.write(tmp_path / "f.nc", two_blocks(), 0.0, 0, CASE, ["p", "u"])
    with pytest.raises(HiresxError, match=r"f\.nc: rho is needed but was not stored"):
        fields.read(path, ["T"])


@pytest.mark.parametrize("name", ["", "a/b", ".."])
def test_block_names_that_netcdf_cannot_hold(tmp_path, name):
    block = two_blocks()[0]
    block.name = name
    with pytest.raises(HiresxError, match="cannot be the name"):
        fields.write(tmp_path / "f.nc", [block], 0.0, 0, CASE)


def test_two_blocks_of_one_name(tmp_path):
    with pytest.raises(HiresxError, match='two blocks are called "nozzle"'):
        fields.write(tmp_path / "f.nc", [two_blocks()[0]] * 2, 0.0, 0, CASE)


def test_frames_of_a_run(tmp_path):
    assert netcdf.frame(tmp_path, 120).name == "fields_000120.nc"
    assert netcdf.frame(tmp_path, 12345678).name == "fields_12345678.nc"
    with pytest.raises(HiresxError, match="no fields"):
        fields.last(tmp_path)
    for step in (120, 12345678, 0):
        netcdf.frame(tmp_path, step).touch()
    (tmp_path / "fields_mean.nc").touch()
    assert list(fields.frames(tmp_path)) == [0, 120, 12345678]
    assert fields.last(tmp_path) == tmp_path / "fields_12345678.nc"
    assert netcdf.clear(tmp_path) == 3
    assert os.listdir(tmp_path) == ["fields_mean.nc"]


@pytest.mark.parametrize("content", [b"", b"not netCDF at all"])
def test_files_that_are_no_fields(tmp_path, content):
    path = tmp_path / "f.nc"
    path.write_bytes(content)
    with pytest.raises(HiresxError, match=r"f\.nc is not a whole field file"):
        fields.read(path)


def test_netcdf_that_is_no_field_file(tmp_path):
    with netCDF4.Dataset(tmp_path / "f.nc", "w") as file:
        file.title = "something else"
    with pytest.raises(HiresxError, match=r"f\.nc is not a whole field file"):
        fields.describe(tmp_path / "f.nc")
    with pytest.raises(HiresxError, match=r"cannot read .*g\.nc"):
        fields.read(tmp_path / "g.nc")


def test_writing_from_a_thread_while_another_reads(tmp_path):
    fields.write(tmp_path / "f.nc", two_blocks(), 0.0, 0, CASE)
    writers = [
        threading.Thread(target=fields.write, args=(tmp_path / f"{n}.nc", two_blocks(), float(n), n, CASE))
        for n in range(8)
    ]
    for writer in writers:
        writer.start()
    for _ in range(8):
        fields.read(tmp_path / "f.nc", ["schlieren"])
    for writer in writers:
        writer.join()
    assert [fields.read(tmp_path / f"{n}.nc").step for n in range(8)] == list(range(8))


# Faults of the disk ---------------------------------------------------------------------------------------------------


def test_a_full_disk_is_noticed_before_writing(tmp_path, monkeypatch):
    path = fields.write(tmp_path / "f.nc", two_blocks(), 0.0, 0, CASE)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(library_files.shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10_000))
    with pytest.raises(HiresxError) as caught:
        fields.write(path, two_blocks(), 1.0, 1, CASE)
    assert caught.value.message == f"cannot write {path}: the disk is full"
    assert "another place with --out" in caught.value.hint
    assert fields.describe(path)["step"] == 0, "the older file must survive"


def test_a_disk_that_fills_while_writing(tmp_path):
    path = fields.write(tmp_path / "f.nc", two_blocks(), 0.0, 0, CASE)
    with largest_file(20_000), pytest.raises(HiresxError, match=r"cannot write .*f\.nc"):
        fields.write(path, two_blocks(), 1.0, 1, CASE)
    assert os.listdir(tmp_path) == ["f.nc"]
    assert fields.describe(path)["step"] == 0, "the older file must survive"


def test_output_directories_that_cannot_be(tmp_path):
    assert directories.make_directory(tmp_path / "a" / "b").is_dir()
    assert os.listdir(tmp_path / "a" / "b") == []
    (tmp_path / "file").touch()
    with pytest.raises(HiresxError, match=r"cannot write to .*file: it is a file, not a directory"):
        directories.make_directory(tmp_path / "file")
    with pytest.raises(HiresxError, match=r"cannot write to .*file/under: a part of the path is a file"):
        directories.make_directory(tmp_path / "file" / "under")


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a directory that nobody may write to")
def test_read_only_directories():
    with pytest.raises(HiresxError, match=r"cannot write to /sys/kernel: (permission denied|the file system is read)"):
        directories.make_directory("/sys/kernel")
    with pytest.raises(HiresxError, match=r"cannot write /sys/kernel/f\.nc"):
        fields.write("/sys/kernel/f.nc", two_blocks(), 0.0, 0, CASE)
    with pytest.raises(HiresxError, match=r"cannot write /sys/kernel/run\.json"):
        record.Record("/sys/kernel")


# Run record -----------------------------------------------------------------------------------------------------------


def test_record_from_start_to_end(tmp_path):
    now = [0.0]
    entry = record.Record(tmp_path, clock=lambda: now[0], case=CASE, backend="cpu", points=1000, bytes_per_point=40)
    begun = record.read(tmp_path)
    stable = "status case backend points steps time wall_s ns_per_point_rhs point_steps_per_s bytes_per_point stages"
    assert set(stable.split()) | {"versions", "hardware", "started", "ended", "error", "process"} == set(begun)
    assert begun["status"] == "running"
    assert begun["case"] == CASE
    assert begun["ended"] is None
    now[0] = 10.0
    # The entries have times of the device, for which the host waits.
    entry.update(lambda: pytest.fail("entries are computed only when they are written"), every=30.0)
    assert record.read(tmp_path)["steps"] == 0, "seldom means seldom"
    now[0] = 31.0
    entry.update(lambda: {"steps": 6, "time": np.float32(0.5)}, every=30.0)
    assert (record.read(tmp_path)["steps"], record.read(tmp_path)["time"]) == (6, 0.5)
    entry.finish("failed", error="not finite", steps=np.int64(7), wall_s=float("nan"), stages={"rhs": np.float64(1.5)})
    done = record.read(tmp_path)
    assert (done["status"], done["error"], done["steps"], done["wall_s"]) == ("failed", "not finite", 7, None)
    assert done["stages"] == {"rhs": 1.5}
    assert done["ended"] >= done["started"]
    assert os.listdir(tmp_path) == ["run.json"]


def test_records_that_cannot_be_read(tmp_path):
    with pytest.raises(HiresxError, match=r"cannot read .*run\.json: it does not exist"):
        record.read(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(HiresxError, match="is not a run record") as error:
        record.read(tmp_path)
    assert "copy it again" in error.value.hint


def test_the_case_is_kept_beside_the_results(tmp_path):
    (tmp_path / "case.py").write_text("def initial(x, y, z): ...\n")
    folder = record.keep_case(tmp_path / "run", "title = 'a'\n", tmp_path / "case.py")
    assert (folder / "case.toml").read_text() == "title = 'a'\n"
    assert (folder / "case.py").read_text() == "def initial(x, y, z): ...\n"
    record.keep_case(tmp_path / "run", "title = 'b'\n", None)
    assert os.listdir(folder) == ["case.toml"]


def test_a_kept_case_finds_its_grid_files_from_anywhere(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    whole = build(load("sod", None, ("grid.n=[40,1,1]",)).grid, None)
    write_plot3d(folder / "tube.xyz", whole)
    write_connectivity(folder / "tube.toml", whole)
    table = load("sod").model_dump(mode="json")
    table["grid"] = {"file": "tube.xyz", "connectivity": "tube.toml"}
    (folder / "case.toml").write_text(dumps(table))
    shutil.copy(load("sod").directory / "case.py", folder)
    monkeypatch.chdir(tmp_path / "mine")
    case = load("case.toml")
    kept = load(str(record.keep_resolved(tmp_path / "run", case)))
    monkeypatch.chdir(tmp_path)
    again = build(kept.grid, kept.directory)
    assert [block.size for block in again.blocks] == [block.size for block in whole.blocks]
    assert (kept.directory / "case.py").is_file()


def test_hardware_and_versions_of_this_machine():
    hardware, versions = machine_record.hardware(), machine_record.versions()
    json.dumps([hardware, versions], allow_nan=False)
    assert hardware["cpu"]
    assert hardware["threads"] >= hardware["threads_available"] >= 1
    assert hardware["cores"] >= 1
    assert hardware["memory_bytes"] > 2**28
    assert versions["numpy"] == np.__version__
    assert versions["python"] == sys.version.split()[0]


def test_a_source_tree_without_package_metadata_has_a_version(tmp_path, monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    for module in (importlib.metadata, machine_record):
        monkeypatch.setattr(module, "version", version)
    with netCDF4.Dataset(fields.write(tmp_path / "f.nc", two_blocks(), 0.0, 0, CASE)) as file:
        assert file.source == f"hiresx {hiresx.__version__}"
    assert machine_record.versions()["hiresx"] == hiresx.__version__


def test_a_compiler_that_is_not_there(monkeypatch):
    for command in ("no-such-compiler", "g++ '"):
        monkeypatch.setenv("CXX", command)
        assert machine_record.versions()["compiler"] is None


def test_a_compiler_whose_command_has_quotes(monkeypatch):
    monkeypatch.setenv("CXX", "g++")
    version = machine_record.versions()["compiler"]
    monkeypatch.setenv("CXX", """bash -c 'exec g++ "$@"' g++""")
    assert machine_record.versions()["compiler"] == version is not None


def fake_nvml(failing=()):
    class NVMLError(Exception):
        pass

    def answer(name, value):
        def call(*_):
            if name in failing:
                raise NVMLError(name)
            return value

        return call

    memory = types.SimpleNamespace(total=16 * 2**30)
    answers = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetCount": 2,
        "nvmlDeviceGetHandleByIndex": object(),
        "nvmlDeviceGetName": b"NVIDIA H200",  # bytes in older versions of the package
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetUUID": "GPU-1",
        "nvmlSystemGetCudaDriverVersion_v2": 13010,
        "nvmlSystemGetDriverVersion": "580.1",
    }
    return types.SimpleNamespace(NVMLError=NVMLError, **{name: answer(name, value) for name, value in answers.items()})


def test_gpus_through_nvml(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    assert (
        machine_record.hardware()["gpus"] == [{"name": "NVIDIA H200", "memory_bytes": 16 * 2**30, "uuid": "GPU-1"}] * 2
    )
    versions = machine_record.versions()
    assert (versions["driver"], versions["cuda"]) == ("580.1", "13.1")


@pytest.mark.parametrize("failing", ["nvmlInit", "nvmlDeviceGetMemoryInfo", None])
def test_no_gpus_without_nvml_or_driver(monkeypatch, failing):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml([failing]) if failing else None)
    assert machine_record.hardware()["gpus"] == []


# Progress -------------------------------------------------------------------------------------------------------------


def test_nothing_heavy_is_imported_before_it_is_needed():
    modules = (
        "fields.derived, fields.field_file, saved.files, saved.machine_record, saved.record, "
        "show.estimate, show.run_plot"
    )
    imported = "; ".join(f"import hiresx.output.{module}" for module in [*modules.split(", "), "show.progress"])
    code = (
        f"import sys; {imported}; "
        "print([m for m in ('netCDF4', 'matplotlib', 'rich', 'pydantic', 'cupy') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
