"""Output room: differences, derived variables, field files, run record, progress and its remaining time."""

import io
import json
import math
import os
import random
import resource
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
from rich.console import Console

from hiresx.case import load
from hiresx.case.toml import dumps
from hiresx.errors import HiresxError
from hiresx.grid import build, write_plot3d
from hiresx.grid.connectivity import write_connectivity
from hiresx.output.fields import derived
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.differences import Metrics, derivative
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.saved import files, machine, record
from hiresx.output.show.estimate import Estimator
from hiresx.output.show.progress import Progress, duration

CASE = {
    "title": "a test",
    "gas": {"gamma": 1.4},
    "output": {"variables": ["rho", "u", "v", "w", "p"]},
    "time": {"end": 1.0, "dt": None},
}


def wavy(nk, nj, ni):
    """Strongly wavy node coordinates (nk, nj, ni) on a unit box; a singleton direction stays flat."""
    k, j, i = (np.linspace(0, 1, n) if n > 1 else np.zeros(1) for n in (nk, nj, ni))
    z, y, x = np.meshgrid(k, j, i, indexing="ij")
    wave = 0.04 * np.sin(2 * np.pi * x) * (np.sin(2 * np.pi * y + 1) if nj > 1 else 1)
    wave = wave * (np.cos(2 * np.pi * z) if nk > 1 else 1)
    return x + wave, y + (wave if nj > 1 else 0), z + (wave if nk > 1 else 0)


def state(shape, dtype=np.float64, **values):
    uniform = {"rho": 1.0, "u": 0.0, "v": 0.0, "w": 0.0, "p": 1 / 1.4} | values
    return {name: np.array(np.broadcast_to(value, shape), dtype=dtype) for name, value in uniform.items()}


def flow(coordinates, **values):
    return derived.Flow(*coordinates, state(coordinates[0].shape, **values), gamma=1.4)


# Differences ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("n", [7, 8, 12])
def test_derivative_is_exact_for_polynomials_of_degree_six_up_to_the_faces(axis, n):
    s = np.arange(n) - n / 2
    shape = [2, 2, 2]
    shape[axis] = n
    f = np.broadcast_to(np.expand_dims((0.5 * s**6 - s**3 + 2 * s), [d for d in range(3) if d != axis]), shape)
    expected = np.broadcast_to(np.expand_dims(3 * s**5 - 3 * s**2 + 2, [d for d in range(3) if d != axis]), shape)
    np.testing.assert_allclose(derivative(f, axis), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_derivative_refuses_too_few_nodes():
    with pytest.raises(ValueError, match="7 nodes, there are 6"):
        derivative(np.zeros((1, 6, 9)), 1)


@pytest.mark.parametrize("shape", [(1, 1, 20), (1, 14, 20), (9, 14, 20)])
def test_gradient_of_a_linear_function_is_exact_on_a_wavy_grid(shape):
    x, y, z = wavy(*shape)
    gradient = Metrics(x, y, z).gradient(2 * x - 3 * y * (shape[1] > 1) + z * (shape[0] > 1))
    for component, expected in zip(gradient, (2, -3 * (shape[1] > 1), float(shape[0] > 1)), strict=True):
        np.testing.assert_allclose(component, expected, rtol=0, atol=1e-11)


def test_gradient_has_sixth_order_on_a_wavy_grid():
    errors = []
    for n in (40, 80):
        x, y, z = wavy(1, n + 1, n + 1)
        f_x, f_y, f_z = Metrics(x, y, z).gradient(np.sin(3 * x) * np.cos(2 * y))
        errors.append(
            np.abs(f_x - 3 * np.cos(3 * x) * np.cos(2 * y)).mean()
            + np.abs(f_y + 2 * np.sin(3 * x) * np.sin(2 * y)).mean()
        )
        assert not f_z.any()
    assert math.log2(errors[0] / errors[1]) > 5.7


# Derived variables ----------------------------------------------------------------------------------------------------


def test_ambient_gas():
    values = derived.evaluate(derived.VARIABLES, flow(wavy(7, 8, 9)))
    expected = {"rho": 1, "p": 1 / 1.4, "T": 1, "sound_speed": 1, "total_enthalpy": 2.5, "total_pressure": 1 / 1.4}
    for name, value in values.items():
        assert value.shape == (7, 8, 9)
        np.testing.assert_allclose(value, expected.get(name, 0.0), rtol=0, atol=1e-11, err_msg=name)


def test_local_variables_of_a_uniform_stream():
    rho, u, v, w, p = 2.0, 1.0, 2.0, -2.0, 3.0
    values = derived.evaluate(derived.VARIABLES, flow(wavy(1, 8, 9), rho=rho, u=u, v=v, w=w, p=p))
    temperature = 1.4 * p / rho
    mach = 3 / math.sqrt(temperature)
    expected = {
        "T": temperature,
        "speed": 3.0,
        "mach": mach,
        "sound_speed": math.sqrt(temperature),
        "entropy": math.log(1.4 * p / rho**1.4),
        "total_enthalpy": 3.5 * p / rho + 4.5,
        "total_pressure": p * (1 + 0.2 * mach**2) ** 3.5,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-13, err_msg=name)
    for name, variable in derived.VARIABLES.items():
        if not variable.local:
            np.testing.assert_allclose(values[name], 0, atol=1e-10, err_msg=name)


def test_gradients_of_a_linear_velocity_field():
    x, y, z = wavy(9, 10, 11)
    a = np.array([[0.3, -1.0, 0.2], [0.7, 0.5, -0.4], [1.1, 0.6, -0.1]])
    u, v, w = (row[0] * x + row[1] * y + row[2] * z for row in a)
    values = derived.evaluate(derived.VARIABLES, flow((x, y, z), u=u, v=v, w=w, rho=1 + 0.1 * x + 0.2 * y - 0.2 * z))
    omega = [a[2, 1] - a[1, 2], a[0, 2] - a[2, 0], a[1, 0] - a[0, 1]]
    s, r = (a + a.T) / 2, (a - a.T) / 2
    expected = {f"vorticity_{axis}": value for axis, value in zip("xyz", omega, strict=True)} | {
        "vorticity": np.linalg.norm(omega),
        "dilatation": 0.7,
        "schlieren": 0.3,
        "q_criterion": ((r * r).sum() - (s * s).sum()) / 2,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=0, atol=1e-10, err_msg=name)


def test_vorticity_has_a_sign_in_two_dimensions():
    x, y, z = wavy(1, 10, 11)
    np.testing.assert_allclose(derived.evaluate(["vorticity"], flow((x, y, z), u=y))["vorticity"], -1, atol=1e-11)


def test_inadmissible_states_give_nan_without_a_warning():
    values = derived.evaluate(["entropy", "mach"], flow(wavy(1, 1, 9), u=1.0, p=-1.0))
    assert np.isnan(values["entropy"]).all()
    assert np.isnan(values["mach"]).all()


def test_unknown_variable_gets_did_you_mean():
    with pytest.raises(HiresxError) as caught:
        derived.check(["rho", "schliren"])
    assert caught.value.message == 'output.variables: there is no variable "schliren"'
    assert 'did you mean "schlieren"?' in caught.value.mend


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
    assert fields.frame(tmp_path, 120).name == "fields_000120.nc"
    assert fields.frame(tmp_path, 12345678).name == "fields_12345678.nc"
    with pytest.raises(HiresxError, match="no fields"):
        fields.last(tmp_path)
    for step in (120, 12345678, 0):
        fields.frame(tmp_path, step).touch()
    (tmp_path / "fields_mean.nc").touch()
    assert list(fields.frames(tmp_path)) == [0, 120, 12345678]
    assert fields.last(tmp_path) == tmp_path / "fields_12345678.nc"
    assert fields.clear(tmp_path) == 3
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
    monkeypatch.setattr(fields.shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10_000))
    with pytest.raises(HiresxError) as caught:
        fields.write(path, two_blocks(), 1.0, 1, CASE)
    assert caught.value.message == f"cannot write {path}: the disk is full"
    assert "--out DIR" in caught.value.mend
    assert fields.describe(path)["step"] == 0, "the older file must survive"


def test_a_disk_that_fills_while_writing(tmp_path):
    # A limit on the size of files is what a test can have; the library's answer is the same as on a full disk.
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = fields.write(tmp_path / "f.nc", two_blocks(), 0.0, 0, CASE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, old[1]))
        with pytest.raises(HiresxError, match=r"cannot write .*f\.nc"):
            fields.write(path, two_blocks(), 1.0, 1, CASE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert os.listdir(tmp_path) == ["f.nc"]
    assert fields.describe(path)["step"] == 0, "the older file must survive"


def test_output_directories_that_cannot_be(tmp_path):
    assert files.directory(tmp_path / "a" / "b").is_dir()
    assert os.listdir(tmp_path / "a" / "b") == []
    (tmp_path / "file").touch()
    with pytest.raises(HiresxError, match=r"cannot write to .*file: it is a file, not a directory"):
        files.directory(tmp_path / "file")
    with pytest.raises(HiresxError, match=r"cannot write to .*file/under: a part of the path is a file"):
        files.directory(tmp_path / "file" / "under")


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a directory that nobody may write to")
def test_read_only_directories():
    with pytest.raises(HiresxError, match=r"cannot write to /sys/kernel: (permission denied|the file system is read)"):
        files.directory("/sys/kernel")
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
    entry.update(steps=5, every=30.0)
    assert record.read(tmp_path)["steps"] == 0, "seldom means seldom"
    now[0] = 31.0
    entry.update(steps=6, time=np.float32(0.5), every=30.0)
    assert (record.read(tmp_path)["steps"], record.read(tmp_path)["time"]) == (6, 0.5)
    entry.finish("failed", error="not finite", steps=np.int64(7), wall_s=float("nan"), stages={"rhs": np.float64(1.5)})
    done = record.read(tmp_path)
    assert (done["status"], done["error"], done["steps"], done["wall_s"]) == ("failed", "not finite", 7, None)
    assert done["stages"] == {"rhs": 1.5}
    assert done["ended"] >= done["started"]
    assert os.listdir(tmp_path) == ["run.json"]


def test_records_that_cannot_be_read(tmp_path):
    with pytest.raises(HiresxError, match=r"cannot read .*run\.json"):
        record.read(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(HiresxError, match="is not a run record"):
        record.read(tmp_path)


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
    hardware, versions = machine.hardware(), machine.versions()
    json.dumps([hardware, versions], allow_nan=False)
    assert hardware["cpu"]
    assert hardware["threads"] >= hardware["threads_available"] >= 1
    assert hardware["cores"] >= 1
    assert hardware["memory_bytes"] > 2**28
    assert versions["numpy"] == np.__version__
    assert versions["python"] == sys.version.split()[0]


def test_a_compiler_that_is_not_there(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert machine.versions()["compiler"] is None


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
    assert machine.hardware()["gpus"] == [{"name": "NVIDIA H200", "memory_bytes": 16 * 2**30, "uuid": "GPU-1"}] * 2
    versions = machine.versions()
    assert (versions["driver"], versions["cuda"]) == ("580.1", "13.1")


@pytest.mark.parametrize("failing", ["nvmlInit", "nvmlDeviceGetMemoryInfo", None])
def test_no_gpus_without_nvml_or_driver(monkeypatch, failing):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml([failing]) if failing else None)
    assert machine.hardware()["gpus"] == []


# Remaining time -------------------------------------------------------------------------------------------------------


def remaining_ratios(dt, cost, at, end=5.0, steps=None, pause=None, aside=None):
    """Estimated over true remaining wall time when the fractions `at` of the wall time after the first step are over.

    Synthetic run: dt(t), cost(step) in seconds; the first step takes 300 s more (compiling); `pause` = (step, seconds);
    `aside` = (every steps, seconds).
    """
    estimator = Estimator(end, steps)
    t, step, now, log = 0.0, 0, 0.0, []
    while t < end and (steps is None or step < steps):
        t = min(t + dt(t), end)
        step += 1
        now += cost(step) + (300.0 if step == 1 else 0.0)
        if pause and step == pause[0]:
            now += pause[1]
        estimator.update(now, step, t)
        if aside and step % aside[0] == 0:
            now += aside[1]
            estimator.aside(aside[1])
        log.append((now, estimator.remaining()))
    first, last = log[0][0], log[-1][0]
    assert log[0][1] is None, "the first step tells nothing"
    assert log[-1][1] == pytest.approx(0, abs=1e-9)
    ratios = []
    for fraction in at:
        now, estimate = next(entry for entry in log if entry[0] >= first + fraction * (last - first))
        ratios.append(estimate / (last - now))
    return ratios


def steady(step):
    return 0.1


@pytest.mark.parametrize(
    ("what", "dt", "options", "at", "tolerance"),
    [
        ("constant", lambda t: 1e-3, {}, (0.05, 0.5, 0.9), 0.02),
        ("a step limit before the end", lambda t: 1e-3, {"steps": 2000}, (0.05, 0.5, 0.9), 0.02),
        ("a pause", lambda t: 1e-3, {"pause": (2000, 400.0)}, (0.8, 0.95), 0.02),
        ("fields written now and then", lambda t: 1e-3, {"aside": (100, 3.0)}, (0.3, 0.5, 0.9), 0.05),
        ("dt shrinks by e", lambda t: 2e-3 * math.exp(-t / 5), {}, (0.5, 0.7, 0.9), 0.12),
        ("dt grows sixfold", lambda t: 2e-4 * (1 + t), {}, (0.5, 0.7, 0.9), 0.2),
        ("a start-up ramp of dt", lambda t: 1e-3 * min(1, 0.01 + t / 0.2), {}, (0.35, 0.5, 0.9), 0.02),
    ],
)
def test_remaining_time(what, dt, options, at, tolerance):
    for ratio in remaining_ratios(dt, steady, at, **options):
        assert abs(math.log(ratio)) < tolerance, what


def test_remaining_time_of_a_noisy_run():
    rng = random.Random(3)
    ratios = remaining_ratios(
        lambda t: 1e-3 * rng.uniform(0.5, 1.5), lambda step: 0.1 * rng.uniform(0.5, 1.5), (0.2, 0.4, 0.6, 0.8)
    )
    assert all(0.75 < ratio < 1.33 for ratio in ratios)


def test_remaining_time_follows_a_lasting_change_of_speed():
    (ratio,) = remaining_ratios(lambda t: 1e-3, lambda step: 0.1 if step < 2500 else 0.2, (0.6,))
    assert ratio == pytest.approx(1, rel=0.05)


def test_taking_drift_into_account_is_worth_it():
    def dt(t):
        return 2e-3 * math.exp(-t / 2)

    (ratio,) = remaining_ratios(dt, steady, (0.5,))
    # With the present dt kept: half of the steps n = (e^(t/2) - 1) 1000 are done at t = 2 ln(1 + n / 2000).
    total = (math.exp(2.5) - 1) * 1000
    t = 2 * math.log(1 + total / 2000)
    assert abs(math.log(ratio)) < 0.5 * abs(math.log((5 - t) / dt(t) / (total / 2)))


def test_estimator_without_an_end():
    estimator = Estimator()
    assert estimator.remaining() is None
    for step in range(1, 100):
        estimator.update(step * 0.1, step, step * 0.01)
    assert estimator.fraction is None
    assert estimator.remaining() is None
    assert estimator.seconds_per_step == pytest.approx(0.1)


# Progress -------------------------------------------------------------------------------------------------------------


def run_progress(seconds_per_step, count, terminal=False, compile_time=0.0, **ends):
    """The text that a run of equal steps shows, with a synthetic clock."""
    now = [0.0]
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100)
    with Progress(10_000, title="jet", console=console, clock=lambda: now[0], **ends) as progress:
        for step in range(1, count + 1):
            now[0] += seconds_per_step + (compile_time if step == 1 else 0)
            progress.update(step, step * 1e-2, 1e-2, residual=1e-3 if step % 10 == 0 else None)
    return text.getvalue(), progress


def test_plain_lines_come_at_a_sane_rate():
    # 2000 s: every 5 % is every 100 s, so the lines come by the clock; 10 s each until 500 s, then a fiftieth.
    lines = run_progress(0.1, 20_000, compile_time=20.0, steps=20_000)[0].splitlines()
    assert 50 + 2 < len(lines) < 150
    # 10 s: a line for every 5 % would come twice a second; not within one.
    assert 9 <= len(run_progress(0.01, 1000, steps=1000)[0].splitlines()) <= 13
    # 40 s: every 5 % is every 2 s.
    assert 20 <= len(run_progress(0.04, 1000, steps=1000)[0].splitlines()) <= 23


def test_what_plain_lines_say():
    lines = run_progress(0.1, 2000, compile_time=20.0, end=20.0)[0].splitlines()
    assert lines[0] == "step 1  t 0.01  dt 1.000e-02  0 %"
    assert lines[-1] == ("step 2000  t 20  dt 1.000e-02  residual 1.000e-03  0.1 Mpoint-steps/s  100 %  3:40 in all")
    middle = next(line for line in lines if " 50 %" in line)
    assert "1:40 left" in middle or "1:39 left" in middle or "1:38 left" in middle


def test_live_bar():
    text, progress = run_progress(0.1, 200, terminal=True, end=2.0)
    assert "jet" in text
    assert "100 %" in text
    assert "Mpoint-steps/s" in text
    assert progress.point_steps_per_s == pytest.approx(1e5)


def test_local_time_steps_and_an_open_end():
    text = io.StringIO()
    with Progress(1, console=Console(file=text)) as progress:
        progress.update(1, 0.0, None)
    assert text.getvalue().splitlines()[0] == "step 1  t 0  dt local"


def test_quiet_progress_shows_nothing_and_knows_the_rate(capfd):
    now = [0.0]
    with Progress(1000, steps=100, quiet=True, clock=lambda: now[0]) as progress:
        for step in range(1, 11):
            now[0] += 1.0
            progress.update(step, step * 0.1, 0.1)
    assert capfd.readouterr() == ("", "")
    assert progress.point_steps_per_s == pytest.approx(1000)


def test_time_aside_is_no_part_of_the_rate():
    now = [0.0]
    with Progress(1000, steps=100, console=Console(file=io.StringIO()), clock=lambda: now[0]) as progress:
        for step in range(1, 51):
            now[0] += 1.0
            progress.update(step, step * 0.1, 0.1)
            with progress.aside():
                now[0] += 1.0
    assert progress.point_steps_per_s == pytest.approx(1000)
    assert progress.remaining == pytest.approx(100, rel=0.05)


def test_an_error_passes_through_after_a_last_line():
    text = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Progress(1, steps=5, console=Console(file=text)) as progress:
        progress.update(1, 0.1, 0.1)
        progress.update(2, 0.2, 0.1)
        raise KeyboardInterrupt
    assert text.getvalue().splitlines()[-1].startswith("step 2")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.2, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01"), (180000, "2 d 2 h")]
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown


def test_nothing_heavy_is_imported_before_it_is_needed():
    modules = "fields.derived, fields.field_file, saved.files, saved.machine, saved.record, show.estimate, show.plot"
    imported = "; ".join(f"import hiresx.output.{module}" for module in [*modules.split(", "), "show.progress"])
    code = (
        f"import sys; {imported}; "
        "print([m for m in ('netCDF4', 'matplotlib', 'rich', 'pydantic', 'cupy') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
