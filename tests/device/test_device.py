"""The device room: launches with their checks, arrays, threads, events, and the choice of a backend."""

import importlib.util
import inspect
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from exchange_arrangements import block

from hiresx.decomposition import Decomposition, Part
from hiresx.decomposition.halo_copies import ROW
from hiresx.device import Configuration, backend, fields, interface
from hiresx.device import native as native_programs
from hiresx.device import state as device_state
from hiresx.device.cpu import CpuBackend
from hiresx.device.cuda import CudaEvent
from hiresx.device.emulated import EmulatedBackend
from hiresx.device.fields import Layout
from hiresx.device.state import BlockState
from hiresx.device.wrappers import PIECE
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError
from hiresx.grid.blocks import whole_box

pytestmark = pytest.mark.usefixtures("environment")


# ---- launches


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.slow
def test_launch_on_part_of_an_array(native, precision):
    configuration = Configuration(precision=precision)
    program = native.compile(configuration)
    rng = np.random.default_rng(1)
    q0, q = rng.random((2, 9, 10, 70)).astype(configuration.real)
    expected = q.copy()
    expected[1:7, 2:9, 3:65] = q0[1:7, 2:9, 3:65] + q.dtype.type(0.5) * q[1:7, 2:9, 3:65]
    on_device = native.to_device(q)
    nodes, q0_there = {"o": 700 + 2 * 70 + 3, "sj": 70, "sk": 700}, native.to_device(q0)
    program.launch("update", (62, 7, 6), **nodes, q0=q0_there, q=on_device, a=0.5)
    np.testing.assert_array_max_ulp(native.to_host(on_device), expected, 1)  # one fused multiply-add
    outside = np.ones(q.shape, bool)
    outside[1:7, 2:9, 3:65] = False
    assert np.array_equal(native.to_host(on_device)[outside], q[outside])


@pytest.mark.parametrize(
    "extent", [(2 * PIECE + 5, 1, 1), (3, 41, 67), (PIECE, 1, 2), (1, 1, 1), (0, 3, 3), (3, -1, 1)]
)
def test_every_point_once(native, extent):
    program = native.compile(Configuration())
    ni, nj, nk = (max(n, 0) for n in extent)
    a = native.zeros((nk + 2, nj + 2, ni + 2))
    _, sj, sk = (stride // 8 for stride in a.strides[::-1])
    program.launch("set", extent, sj=sj, sk=sk, a=a[1:, 1:, 1:])
    expected = np.zeros(a.shape)
    if min(extent) > 0:
        expected[1:-1, 1:-1, 1:-1] = 1
    assert np.array_equal(a, expected)
    source = native.to_device(np.random.default_rng(2).random(a.shape))
    target = native.zeros(a.shape)
    program.launch("twice", extent, sj=sj, sk=sk, a=source[1:, 1:, 1:], b=target[1:, 1:, 1:])
    assert np.array_equal(target, 2 * source * expected)


def test_every_argument_type(native):
    program = native.compile(Configuration(precision="fp32"))
    e, f = native.to_device(np.arange(4, dtype=np.int32)), native.zeros(4, "int32")
    g, h = native.to_device(np.arange(4.0)), native.zeros(4)
    program.launch("every_type", (4, 1, 1), a=-7, b=5 << 32, c=0.25, d=1e-3, e=e, f=f, g=g, h=h)
    assert np.array_equal(f, np.arange(4) - 2)
    assert np.array_equal(h, 0.25 + 1e-3 + np.arange(4.0))
    # numpy scalars and plain arrays go in as well
    f = np.zeros(4, np.int32)
    numbers = {"a": np.int64(1), "b": np.int64(0), "c": np.float64(0), "d": np.float32(0)}
    program.launch("every_type", (4, 1, 1), **numbers, e=e, f=f, g=g, h=h)
    assert np.array_equal(f, np.arange(4) + 1)


READ_ONLY = np.zeros(4)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a", 1.5, "argument a .int.: 'float' object cannot be interpreted as an integer"),
        ("a", 2**31, "argument a .int.: 2147483648 does not fit int32"),
        ("a", -(2**31) - 1, "does not fit int32"),
        ("b", 2**63, "argument b .long long.: .* does not fit int64"),
        ("c", "1", "argument c .real.: needs a number, got str"),
        ("c", 1, "argument c .real.: needs a number with a fraction, got the int 1"),
        ("d", np.int64(0), "argument d .double.: needs a number with a fraction, got the int64 0"),
        ("d", None, "argument d .double.: needs a number, got NoneType"),
        ("e", np.zeros(4), "argument e .const int .*: needs an array of int32, got one of float64"),
        ("e", np.zeros(8, np.int32)[::2], "argument e .*side by side along the last axis"),
        ("e", [1, 2], "argument e .*needs a numpy.ndarray of int32, got list"),
        ("g", np.zeros(4, np.float32), "argument g .const double .*: needs an array of float64, got one of float32"),
        ("h", READ_ONLY, "argument h .double .*: the kernel writes it, but the array is read-only"),
        ("h", 0, "argument h .double .*: needs a numpy.ndarray"),
    ],
)
def test_wrong_argument_is_named(native, name, value, message):
    program = native.compile(Configuration())
    numbers, arrays = {"a": 0, "b": 0, "c": 0.0, "d": 0.0}, {n: native.zeros(4, "int32") for n in "ef"}
    arguments = numbers | arrays | {n: native.zeros(4) for n in "gh"}
    program.launch("every_type", (4, 1, 1), **arguments)
    arguments[name] = value
    for build in (program.launch, program.call):
        with pytest.raises(TypeError, match=f"kernel every_type, {message}" if "argument" in message else message):
            build("every_type", (4, 1, 1), **arguments)


def test_read_only_input_is_fine(native):
    program = native.compile(Configuration())
    i, a = native.zeros(4, "int32"), native.zeros(4)
    program.launch("every_type", (4, 1, 1), a=0, b=0, c=0.0, d=0.0, e=i, f=i, g=READ_ONLY, h=a)


def test_an_optional_array_may_be_none(native):
    """The kernel then gets a null pointer; what is given is looked at as any other array."""
    program, a, by = native.compile(Configuration()), native.zeros((2, 3)), native.to_device(np.full((2, 3), 2.0))
    nodes = {"o": 0, "sj": 3, "sk": 6}
    for _ in range(2):
        program.launch("shift", (3, 2, 1), **nodes, by=None, a=a)
        program.run(program.call("shift", (3, 2, 1), **nodes, by=by, a=a))
    program.prepare([program.call("shift", (3, 1, 1), **nodes, by=None, a=a)])()
    assert np.array_equal(a, [[7, 7, 7], [6, 6, 6]])
    for build in (program.launch, program.call):
        with pytest.raises(TypeError, match=r"^kernel shift, argument by .*needs 1 variables of nodes up to number 5"):
            build("shift", (3, 2, 1), **nodes, by=by[0], a=a)
        with pytest.raises(
            TypeError, match=r"^kernel shift, argument by .*needs an array of float64, got one of int32"
        ):
            build("shift", (3, 2, 1), **nodes, by=native.zeros((2, 3), "int32"), a=a)
        with pytest.raises(TypeError, match=r"^kernel shift, argument a .*needs a numpy.ndarray of float64, got None"):
            build("shift", (3, 2, 1), **nodes, by=by, a=None)
        with pytest.raises(TypeError, match=r"^kernel shift, argument a .*: needs 1 variables"):
            build("shift", (3, 2, 1), **nodes, by=None, a=a[0])
        with pytest.raises(TypeError, match=r"^kernel shift: missing argument by "):
            build("shift", (3, 2, 1), **nodes, a=a)


def test_wrong_names_of_arguments(native):
    program, a = native.compile(Configuration()), native.zeros(1)
    for build in (program.launch, program.call):
        with pytest.raises(TypeError, match=r"^kernel set: missing argument sk \(int\), a \(real \*\)$"):
            build("set", (1, 1, 1), sj=1)
        with pytest.raises(TypeError, match=r"^kernel set takes no argument stride; it takes sj, sk, a$"):
            build("set", (1, 1, 1), sj=1, sk=1, stride=1, a=a)
        with pytest.raises(TypeError):
            build("set", (1, 1, 1), 1, 1, a)


def test_extent_of_other_numbers(native):
    program = native.compile(Configuration())
    a = native.zeros((2, 3))
    program.launch("set", np.array([3, 2, 1]), sj=3, sk=6, a=a)
    assert a.all()
    for extent in ((1.0, 1, 1), (2**31, 1, 1), ("1", 1, 1)):
        with pytest.raises(TypeError):
            program.launch("set", extent, sj=3, sk=6, a=a)


def test_unknown_kernel(native):
    program = native.compile(Configuration())
    with pytest.raises(KeyError, match="no kernel sett in this configuration; known: every_type, set"):
        program.launch("sett", (1, 1, 1))


def test_a_kernel_that_is_not_there_has_nothing_compiled():
    """All names are told, of those too that are compiled with their first use."""

    def compile(part):
        raise AssertionError(f"{part} is compiled")

    signatures = native_programs._Signatures(compile, {"reflect_ghost": "boundary/reflect"})
    signatures.there["update"] = None
    with pytest.raises(KeyError, match="no kernel sett in this configuration; known: reflect_ghost, update"):
        native_programs._Kernel(SimpleNamespace(signatures=signatures), "sett")


@pytest.mark.slow
def test_kernel_behind_an_if(native):
    assert "unlimited_only" not in native.compile(Configuration()).signatures
    program = native.compile(Configuration(positivity="fallback"))
    a = native.zeros(3)
    program.launch("unlimited_only", (3, 1, 1), a=a)
    assert np.array_equal(a, np.ones(3))


def test_cpu_kernel(root):
    program = CpuBackend(root).compile(Configuration())
    result = np.zeros(1)
    program.launch("total", None, a=np.arange(10.0), n=10, sum=result)
    assert result[0] == 45
    with pytest.raises(TypeError, match="argument n"):
        program.launch("total", None, a=np.arange(10.0), n=1.5, sum=result)
    a, b = np.arange(500.0), np.zeros(500)
    program.launch("squares", None, a=a, n=500, b=b)
    assert np.array_equal(b, a * a), "every part once"
    assert "total" not in EmulatedBackend(root).compile(Configuration()).signatures


def test_a_slice_has_its_own_address(native):
    program = native.compile(Configuration())
    a = native.zeros(10)
    for view in (a, a[5:], a.reshape(2, 5)[1, 2:]):
        program.launch("set", (1, 1, 1), sj=1, sk=1, a=view)
    assert np.flatnonzero(a).tolist() == [0, 5, 7]


# ---- arrays, threads, events


def test_arrays(native):
    for shape in (7, (3, 5), (2, 1, 4)):
        for dtype in ("float64", "float32", "int32"):
            array = native.zeros(shape, dtype)
            assert array.ctypes.data % 64 == 0 and array.dtype == dtype and not array.any()
            assert native.empty(shape, dtype).shape == array.shape
    host = np.arange(12.0).reshape(3, 4)[:, ::2]
    device = native.to_device(host)
    assert device.flags.c_contiguous and np.array_equal(device, host)
    back = native.to_host(device)
    assert type(back) is np.ndarray and not np.shares_memory(back, device)
    fetched = native.fetch(device[:, 1:])
    native.copy(device[0], device[1])
    assert np.array_equal(device[0], host[1])
    assert np.array_equal(fetched(), host[:, 1:]), "as it was then"
    few = np.array([7.0, 8.0])
    native.write(device[2], few)
    few[:] = 0.0  # the numbers of then count
    assert device[2].tolist() == [7.0, 8.0]
    with pytest.raises(TypeError):
        native.copy(device, native.zeros((3, 2), "float32"))


def test_array_that_does_not_fit(native):
    with pytest.raises(HiresxError, match="no memory for an array of") as caught:
        native.empty(2**55)
    assert "coarser" in caught.value.hint


def test_times_of_cuda_events_are_seconds():
    """CUDA says milliseconds."""
    events = SimpleNamespace(
        Event=lambda: SimpleNamespace(synchronize=lambda: None), get_elapsed_time=lambda start, end: 1500.0
    )
    start, end = (CudaEvent(SimpleNamespace(cuda=events), None) for _ in range(2))
    assert end.elapsed_time(start) == 1.5


def test_events(native):
    start, end = native.event(), native.event()
    start.record()
    native.synchronize()
    end.record()
    assert 0 <= end.elapsed_time(start) < 1


def test_threads(native):
    usual = native.threads
    try:
        native.threads = 2
        assert native.threads == 2
        native.compile(Configuration())
        assert native.threads == 2
        native.threads = 1
        assert native.threads == 1
        with pytest.raises(ValueError, match="at least 1"):
            native.threads = 0
    finally:
        native.threads = usual


def test_threads_follow_the_environment(root):
    code = textwrap.dedent(f"""
        from pathlib import Path
        from hiresx.device import Configuration
        from hiresx.device.cpu import CpuBackend
        backend = CpuBackend(Path({str(root)!r}))
        before = backend.threads
        backend.compile(Configuration())
        print(before, backend.threads)
    """)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["3", "3"]


@pytest.mark.parametrize("module", ["cpu", "emulated", "cuda"])
def test_backends_have_the_interface(module):
    room = importlib.import_module(f"hiresx.device.{module}")
    own = getattr(room, f"{module.capitalize()}Backend")
    made = inspect.get_annotations(own.compile, eval_str=True)["return"]
    for protocol, kind in ((interface.Backend, own), (interface.Program, made)):
        for name, method in inspect.getmembers(protocol, inspect.isfunction):
            if not name.startswith("_"):
                wanted, got = inspect.signature(method), inspect.signature(getattr(kind, name))
                assert list(wanted.parameters) == list(got.parameters), name
    assert own.name == module


# ---- choosing a backend


def test_backend_by_name():
    assert backend("cpu").name == "cpu"
    assert backend("emulated").name == "emulated"
    with pytest.raises(HiresxError, match='no backend "gpu"') as caught:
        backend("gpu")
    assert "auto, cpu, cuda, emulated" in caught.value.hint


def test_cuda_without_cupy(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "cupy" else find(name, *rest))
    with pytest.raises(HiresxError, match="needs CuPy, which is not installed") as caught:
        backend("cuda")
    assert "pip install '.[cuda13]'" in caught.value.hint
    assert backend("auto").name == "cpu"


class Driver:
    """libcuda.so.1 with a status and a count of GPUs."""

    def __init__(self, status, count):
        self.cuInit = lambda flags: status
        self._count = count

    def cuDeviceGetCount(self, pointer):
        pointer._obj.value = self._count
        return 0

    def cuGetErrorString(self, status, text):
        text._obj.value = b"no CUDA-capable device is detected"
        return 0


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (None, "finds no NVIDIA driver"),
        (Driver(100, 0), "offers no GPU .cuInit: no CUDA-capable device is detected .100"),
        (Driver(0, 0), "offers no GPU .it counts none"),
    ],
)
def test_cuda_without_a_gpu(monkeypatch, library, message):
    from hiresx.device import cuda

    def load(name):
        if library is None:
            raise OSError(name)
        return library

    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr("hiresx.topology.libcuda.ctypes.CDLL", load)
    with pytest.raises(HiresxError, match=message):
        backend("cuda")
    assert backend("auto").name == "cpu"


def test_importing_the_room_is_light():
    code = "import sys, hiresx.device.cuda; print([name for name in ('cupy', 'pydantic') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("size", [(9, 8, 7), (9, 8, 1), (9, 1, 1)], ids=["3d", "2d", "1d"])
def test_rows_begin_at_whole_sectors_of_their_memory(size):
    """Behind their ghosts, in every array: a GPU moves 32 bytes at a time."""
    cut = Decomposition((block("one", size),), (), (), (Part(0, whole_box(size), 0),))
    numpy = SimpleNamespace(zeros=np.zeros)
    state = BlockState(numpy, cut, 0, "one", Layout(STORAGE["fp64"], needed={"work": 4, "registers": 1, "dt": 1}))
    for array in (state.q, state.q0, state.r, state.metrics, state.jacobian, state.dt, state.work):
        first = state.interior(array).ctypes.data - array.base.ctypes.data
        assert first % (ROW * array.itemsize) == 0 and all(
            stride % (ROW * array.itemsize) == 0 for stride in array.strides[:-1]
        )
    in_chunks = {"sweep_update": 1, "sweep_records": 19, "sweep_inverses": 1}
    chunked = BlockState(CpuBackend(), cut, 0, "one", Layout(STORAGE["fp64"], needed=in_chunks))
    assert all(chunked.array(name).ctypes.data % 16 == 0 for name in in_chunks)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("precision", STORAGE)
def test_a_declared_field_is_allocated_counted_and_restarted(precision, local, monkeypatch):
    added = fields.Field("sensor", "work", lambda layout: 2, restarts=True)
    declared = (*fields.FIELDS, added)
    for module in (fields, device_state):
        monkeypatch.setattr(module, "FIELDS", declared)
    layout = Layout(STORAGE[precision], needed={"work": 12, "registers": 2, "dt": int(local), "inverse_radius": 1})
    size = (9, 8, 7)
    cut = Decomposition((block("one", size),), (), (), (Part(0, whole_box(size), 0),))
    state = BlockState(SimpleNamespace(zeros=np.zeros), cut, 0, "one", layout, reference=[0.0] * 5)
    one_step = 0 if local else state.dt.nbytes
    assert state.bytes == layout.bytes_per_point * state.variable_stride + one_step
    assert state.array("sensor").shape == (2, *state.shape) and "sensor" in state.restarting
