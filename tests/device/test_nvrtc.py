"""CUDA without a GPU: the kernels through NVRTC, and the cuda backend's launches with CuPy's own arrays."""

import ctypes
import math
import os
import re
import struct
import sys
from functools import partial
from types import SimpleNamespace

import kernel_registers
import numpy as np
import pytest
from batching_emulator import BatchingBackend

from hiresx.device import Configuration, cuda, graphs, nvrtc
from hiresx.device.batch_wrappers import Entry, Form, generate_batched
from hiresx.device.batches import arrange_batches
from hiresx.device.configuration import parts
from hiresx.device.emulated import EmulatedBackend
from hiresx.device.wrappers import generate, generate_part
from hiresx.errors import HiresxError

cupy = pytest.importorskip("cupy", reason="pip install '.[cuda13]'")

KERNEL = """
extern "C" __global__ void halve(int n, float *a) { if (threadIdx.x < n) a[threadIdx.x] *= 0.5f; }
extern "C" __global__ void table(int n, double *a) {
    double b[32];
    for (int i = 0; i < 32; ++i) b[i] = a[i];
    a[0] = b[n & 31];
}
"""


def test_functions_for_several_launches_compile():
    configuration = Configuration(viscosity="constant")
    kinds = ("sweep_along", "sweep_across", "viscous_flux", "copy_halo", "update")  # in rows, lines, slabs and points
    entries = [Entry(kernel, form) for kernel in kinds for form in Form]
    image = nvrtc.compile(generate_batched(configuration, "cuda", entries), "sm_80").image
    assert all(nvrtc.has_kernel(image, entry.name) for entry in entries) and not nvrtc.has_kernel(image, "update")


def test_resources_of_functions_for_several_launches(root):
    (entry,) = kernel_registers.report([Configuration()], ["sm_80"], root, batched=True)
    found = {kernel["kernel"] for kernel in entry["kernels"]}
    assert {"update_alike", "update_mixed"} <= found and all(name.endswith(tuple(Form)) for name in found)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", kernel_registers.ARCHITECTURES)
def test_every_kernel_compiles(architecture):
    """Also the figures of the report: every kernel is in it, and the hot ones do not spill. The hybrid scheme has all
    kernels; of the scheme without a sensor, only the part is compiled that is not the same text."""
    plain = Configuration(viscosity="sutherland")
    hybrid = Configuration(viscosity="sutherland", inviscid="hybrid", sensor="jump")
    _, found = generate(hybrid, "cuda")
    (entry,) = kernel_registers.report([hybrid], [architecture])
    assert entry["configuration"] == {"viscosity": "sutherland", "inviscid": "hybrid", "sensor": "jump"}
    others = "scalar|entropic|transported|^(source|face_formula|strain_rate|germano|dynamic_coefficient|h_correction)$"
    left_out = {name for name in found if re.search(others, name)}
    of_hybrid = {
        "list_segments",
        "shock_sensor",
        "split_face_mass",
        "split_march",
        "split_numerical_flux",
        "sweep_segments",
    }
    compiled = sorted(found.keys() - left_out)
    assert [kernel["kernel"] for kernel in entry["kernels"]] == compiled and left_out
    made = [[generate_part(chosen, "cuda", part) for part in parts(chosen)] for chosen in (plain, hybrid)]
    of_plain, unlike = [], set()
    for (text, declared), (other, _) in zip(*made, strict=True):
        if text != other:
            unlike |= declared.keys()
            of_plain += [
                kernel._asdict() for kernel in kernel_registers.resources(nvrtc.compile(text, architecture).log)
            ]
    assert {kernel["kernel"] for kernel in of_plain} == (unlike & {*compiled}) - of_hybrid and "sweep_along" in unlike
    for kernel in entry["kernels"] + of_plain:
        assert 0 < kernel["registers"] <= 255 and kernel["architecture"] == architecture
        # metrics, no_slip_start and wall_distance run once, split_face_mass on faces, face_flow in samples
        later = {"sm_90": ["face_flow"], "sm_100": ["face_flow", "split_face_mass", "wall_distance"]}
        if kernel["kernel"] not in {"metrics", "no_slip_start", *later.get(architecture, [])}:
            assert kernel["spill_stores"] == kernel["spill_loads"] == 0, kernel


def test_resources_are_read():
    found = {entry.kernel: entry for entry in kernel_registers.resources(nvrtc.compile(KERNEL, "sm_90").log)}
    assert found["table"].stack == 256 and found["halve"].stack == 0
    assert 8 <= found["halve"].registers <= 40


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_what_the_driver_keeps_is_not_taken(monkeypatch, known):
    """It has no log, from which resources are read. An NVRTC without that option compiles as it can."""
    real, asked = nvrtc.bindings(), []

    class Bindings:
        def __getattr__(self, name):
            return getattr(real, name)

        @staticmethod
        def compileProgram(program, options):
            asked.append(nvrtc.NO_CACHE in options)
            # of an option that it does not know, its log says the name
            strange = () if known else tuple(o.replace("--no-cache", "--strange--no-cache") for o in options)
            real.compileProgram(program, strange or options)

    monkeypatch.setattr(nvrtc, "bindings", Bindings)
    assert {entry.kernel for entry in kernel_registers.resources(nvrtc.compile(KERNEL, "sm_90").log)} == {
        "halve",
        "table",
    }
    assert asked == ([True] if known else [True, False])


def test_subnormal_numbers_are_kept():
    ptx = nvrtc.compile(KERNEL, "compute_90").image.decode()
    assert "mul.f32" in ptx and "mul.ftz" not in ptx


def test_image_holds_its_kernels():
    for architecture in ("sm_80", "compute_80"):
        image = nvrtc.compile(KERNEL, architecture).image
        assert nvrtc.has_kernel(image, "halve") and nvrtc.has_kernel(image, "table")
        assert not nvrtc.has_kernel(image, "hal") and not nvrtc.has_kernel(image, "alve")


def test_failed_compile_names_the_place():
    text = '#line 7 "kernels/update.h"\nextern "C" __global__ void f(double *a) { a[0] = undeclared; }\n'
    with pytest.raises(HiresxError, match=r'for sm_90:\n  kernels/update.h\(7\): error: .*"undeclared"'):
        nvrtc.compile(text, "sm_90")


def test_unknown_architecture_lists_the_known():
    with pytest.raises(HiresxError, match="sm_70") as caught:
        nvrtc.compile(KERNEL, "sm_70")
    assert "knows sm_75, sm_80" in caught.value.hint


def test_target():
    assert nvrtc.target(90) == "sm_90"
    assert nvrtc.target(9999) == f"compute_{max(nvrtc.bindings().getSupportedArchs())}"


def test_build_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    path = nvrtc.build(KERNEL, "sm_80")
    assert path.suffix == ".cubin" and path.read_bytes()[:4] == b"\x7fELF"
    os.truncate(path, 100)
    assert nvrtc.build(KERNEL, "sm_80") == path and path.stat().st_size > 100
    monkeypatch.setattr(nvrtc, "compile", None)
    assert nvrtc.build(KERNEL, "sm_80") == path
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [path.name, f"{path.name}.sha256"]


@pytest.mark.parametrize("error", [ImportError("cupy_backends"), RuntimeError("libnvrtc.so.13 not found")])
def test_missing_library(monkeypatch, error):
    from cupy_backends.cuda.libs import nvrtc as library

    def fail():
        raise error

    monkeypatch.setattr(library, "getVersion", fail)
    with pytest.raises(HiresxError, match="CUDA kernels need") as caught:
        nvrtc.compile(KERNEL, "sm_90")
    assert "pip install '.[cuda13]'" in caught.value.hint


class Stub:
    """What cuda.Backend asks of CuPy, on a GPU of compute capability 9.0."""

    ndarray = cupy.ndarray

    def __init__(self, load):
        self.cuda = self.Device = self
        self.compute_capability = "90"
        self.loaded = []
        self._load = load

    def __getattr__(self, name):  # Device(n), .use(), Stream()
        return lambda *arguments: self

    def __call__(self, *arguments):
        return self

    def RawModule(self, path):
        self.loaded.append(path)
        return self

    def compile(self):
        self._load()


def refuse():
    raise RuntimeError("CUDA_ERROR_NO_BINARY_FOR_GPU")


def test_backend_compiles_and_loads(monkeypatch, root):
    stub = Stub(lambda: None)
    monkeypatch.setattr(cuda, "obstacle", lambda: None)
    monkeypatch.setitem(sys.modules, "cupy", stub)
    found = cuda.CudaBackend(root).compile(Configuration()).signatures
    assert "update" in found and "unlimited_only" not in found
    (path,) = stub.loaded
    assert "sm_90" in path and path.endswith(".cubin")
    stub = Stub(refuse)
    monkeypatch.setitem(sys.modules, "cupy", stub)
    with pytest.raises(HiresxError, match=r"driver does not load kernels of NVRTC .*NO_BINARY_FOR_GPU") as caught:
        cuda.CudaBackend(root).compile(Configuration())
    assert "newer driver" in caught.value.hint


# ---- the cuda backend's launches. CuPy's arrays can stand on host memory, so only the GPU itself is replaced: its
# kernels are those of the emulated backend, given each argument as CUDA would be, by its address and width.


class Module:
    """cupy.RawModule over emulated kernels; `library` gives that of a kernel."""

    def __init__(self, library):
        self._library = library

    def get_function(self, name):
        def kernel(grid, block, arguments, shared_mem=0, stream=None):
            words = struct.pack("6q", *grid, *block)
            guard, *arguments = arguments
            assert guard == 0  # launched alone, a kernel asks nobody whether it may
            for value in arguments:
                if isinstance(value, cupy.ndarray):
                    words += struct.pack("P", value.data.ptr)
                else:
                    assert isinstance(value, np.generic)
                    words += struct.pack("q" if value.dtype.kind == "i" else "d", value.item())
            blocks = ctypes.c_longlong(math.prod(grid))
            self._library(name)[f"{name}_launch"](words, ctypes.c_longlong(0), blocks)

        return kernel


def on_host(array: np.ndarray):
    """A cupy.ndarray of the memory of `array`."""
    memory = cupy.cuda.UnownedMemory(array.ctypes.data, array.nbytes, array, device_id=0)
    return cupy.ndarray(array.shape, array.dtype, memptr=cupy.cuda.MemoryPointer(memory, 0))


@pytest.fixture(params=["fp64", "fp32"])
def program(request):
    """A cuda program whose kernels run on the CPU, and the same program of the emulated backend."""
    configuration = Configuration(precision=request.param, viscosity="constant")  # as other tests have it
    backend = BatchingBackend(batches=False)
    emulated = backend.compile(configuration)
    module = Module(emulated.library)
    host = SimpleNamespace(ndarray=cupy.ndarray, asarray=on_host)
    signatures = {name: emulated.signatures[name] for name in ("copy_halo", "pack_halo", "update")}
    launched = cuda.CudaProgram(
        module, host, None, signatures, configuration.real,
        lambda entries: Module(partial(lambda batch, _: batch, backend.compile_batches(emulated, entries))),
    )  # fmt: skip
    return launched, emulated, configuration.real


SHAPE, STRIDE = (5, 9, 9, 40), 9 * 9 * 40
PLACE = {"o": 3 * (1 + 40 + 9 * 40), "sj": 40, "sk": 9 * 40, "sv": STRIDE}
FIELDS = ("q0", "q", "r", "jacobian", "dt")


def test_launch_passes_what_the_kernel_takes(program):
    launched, emulated, real = program
    rng = np.random.default_rng(3)
    q0, q, r = (rng.random(SHAPE).astype(real) for _ in range(3))
    jacobian, dt = np.ones(SHAPE[1:], real), np.full(1, 0.1, real)
    host = dict(zip(FIELDS, (q0.copy(), q.copy(), r, jacobian, dt), strict=True))
    device = dict(zip(FIELDS, map(on_host, (q0, q, r, jacobian, dt)), strict=True))
    tail = {"dt_stride": 0, "a": 0.75, "b": np.float64(0.25), "first": np.int64(0)}
    emulated.launch("update", (34, 3, 3), **PLACE, **host, **tail)
    launched.launch("update", (34, 3, 3), **PLACE, **device, **tail)
    assert np.array_equal(q, host["q"]) and not np.array_equal(q, q0)


def test_launch_takes_views_and_int32(program):
    launched, _, real = program
    places = np.array([3, 1, 2], np.int32)
    a, b = np.arange(10, dtype=real), np.zeros(10, real)
    lists = {"to": on_host(places), "giving": on_host(places), "source_sv": 0, "variables": 1}
    launched.launch("pack_halo", (3, 1, 1), **lists, source=on_host(a)[2:], buffer=on_host(b)[1:], sign=-1.0)
    assert np.flatnonzero(b).tolist() == [2, 3, 4] and np.array_equal(b[2:5], -a[3:6])
    launched.launch("pack_halo", (0, 1, 1), **lists, source=on_host(b), buffer=on_host(a), sign=1.0)
    assert np.array_equal(a, np.arange(10))


@pytest.mark.parametrize("form", list(Form))
def test_several_launches_as_one(program, form):
    """By plain numbers and a table of arrays where all else is the same, else by a table of everything."""
    launched, emulated, real = program
    rng = np.random.default_rng(4)
    calls, wanted = [], []
    for n, extent in enumerate([(34, 3, 3)] * 3 if form is Form.ALIKE else [(34, 3, 3), (34, 3, 2), (34, 3, 3)]):
        fields = [rng.random(SHAPE).astype(real) for _ in range(3)]
        fields += [np.ones(SHAPE[1:], real), np.full(1, 0.1 + n, real)]
        tail = {"dt_stride": 0, "a": 0.7, "b": 0.3, "first": int(form is Form.MIXED and n == 1)}
        host = dict(zip(FIELDS, (field.copy() for field in fields), strict=True))
        emulated.launch("update", extent, **PLACE, **host, **tail)
        wanted.append((host["q0"], host["q"]))
        device = dict(zip(FIELDS, map(on_host, fields), strict=True))
        calls.append((launched.call("update", extent, **PLACE, **device, **tail), fields))
    made, waits = arrange_batches(
        [call for call, _ in calls], launched.shape, lambda array: array.data.ptr, graphs._bytes
    )
    assert [one.entry for one in made] == [Entry("update", form)] and waits == [[]]
    for _ in range(2):  # what is loaded is loaded once
        (loaded,) = launched.load_batches(made)
    launched._compile_batches = None
    launched.load_batches(made)
    launched.launch_batch(None, None, loaded)
    for (_, (q0, q, *_)), (q0_wanted, q_wanted) in zip(calls, wanted, strict=True):
        assert np.array_equal(q0, q0_wanted) and np.array_equal(q, q_wanted)


class Recorder:
    """Streams and events of a GPU that does at once what is recorded, and nothing when that is launched."""

    def __init__(self, **options):
        pass

    def begin_capture(self, mode):
        pass

    def end_capture(self):
        return self

    def launch(self, stream):
        pass

    record = wait_event = launch


def test_a_recording_of_several_blocks(program):
    """Made one by one a few times, then in batches, then in batches that are recorded."""
    launched, emulated, real = program
    host = SimpleNamespace(cuda=SimpleNamespace(Stream=Recorder, Event=Recorder, runtime=cupy.cuda.runtime))
    rng = np.random.default_rng(5)
    fields = [[rng.random(SHAPE).astype(real) for _ in range(3)] for _ in range(6)]
    one, dt = np.ones(SHAPE[1:], real), np.full(1, 0.1, real)
    tail = {"dt_stride": 0, "a": 0.7, "b": 0.3}
    calls, wanted = [], [[field.copy() for field in of_block] for of_block in fields]
    for of_block in fields:
        arrays = dict(zip(FIELDS, map(on_host, (*of_block, one, dt)), strict=True))
        calls += [launched.call("update", (34, 3, 3), **PLACE, **arrays, **tail, first=first) for first in (1, 0)]
    graph = graphs.Graph(host, launched, calls, Recorder())
    for _ in range(graphs.IN_ORDER + 2):
        graph()
        for of_block in wanted:
            arrays = dict(zip(FIELDS, (*of_block, one, dt), strict=True))
            for first in (1, 0):
                emulated.launch("update", (34, 3, 3), **PLACE, **arrays, **tail, first=first)
        for found, of_block in zip(fields, wanted, strict=True):
            assert all(map(np.array_equal, found, of_block))
    launches, waits = graph._launches
    numbers = sum("*" not in kind for kind, _ in launched.signatures["update"].arguments)
    assert [len(several.arguments) for several in launches] == [4 + numbers + 1] * 2 and waits == [[], [0]]
    assert graph._graph is not None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("to", np.zeros(3, np.int32), "argument to .const int .*: needs a cupy.ndarray of int32, got ndarray"),
        ("to", on_host(np.zeros(3)), "argument to .*needs an array of int32, got one of float64"),
        ("to", on_host(np.zeros(6, np.int32))[::2], "argument to .*side by side"),
        ("source_sv", 2**63, "argument source_sv .long long.: .*does not fit int64"),
        ("source_sv", 0.5, "argument source_sv"),
        ("sign", "1", "argument sign .real.: needs a number"),
        ("sign", 1, "argument sign .real.: needs a number with a fraction"),
    ],
)
def test_wrong_argument_is_named(program, name, value, message):
    launched, _, real = program
    arguments = copied(real) | {name: value}
    with pytest.raises(TypeError, match=f"kernel pack_halo, {message}"):
        launched.call("pack_halo", (3, 1, 1), **arguments)


def copied(real):
    """Arguments of pack_halo."""
    index, field = on_host(np.zeros(3, np.int32)), on_host(np.zeros(3, real))
    return dict(to=index, giving=index, source=field, source_sv=0, buffer=field, variables=1, sign=1.0)


def test_wrong_names_of_arguments(program):
    launched, _, real = program
    arguments = copied(real)
    with pytest.raises(TypeError, match="kernel pack_halo takes no argument scale; it takes to, giving, source, "):
        launched.call("pack_halo", (3, 1, 1), **arguments, scale=1.0)
    del arguments["giving"]
    with pytest.raises(TypeError, match=r"kernel pack_halo: missing argument giving \(const int \*\)"):
        launched.call("pack_halo", (3, 1, 1), **arguments)


def test_fields_that_do_not_hold_the_nodes(program):
    launched, _, real = program
    fields = {name: on_host(np.ones(SHAPE, real)) for name in ("q0", "q", "r")}
    fields |= {"jacobian": on_host(np.ones(SHAPE[1:], real)), "dt": on_host(np.ones(1, real))}
    tail = {"dt_stride": 0, "a": 0.75, "b": 0.25, "first": 0}
    launched.call("update", (34, 3, 3), **PLACE, **fields, **tail)
    with pytest.raises(TypeError, match=r"kernel update, argument r \(const real \*\): needs 5 variables of nodes"):
        launched.call("update", (34, 3, 3), **PLACE, **(fields | {"r": fields["jacobian"]}), **tail)


def test_extent_of_other_numbers(program):
    launched, _, real = program
    arguments = copied(real)
    launched.launch("pack_halo", np.array([1, 1, 1]), **arguments)
    for extent in ((1.0, 1, 1), (2**31, 1, 1), ("1", 1, 1)):
        with pytest.raises(TypeError):
            launched.launch("pack_halo", extent, **arguments)


def test_unknown_kernel(program):
    with pytest.raises(
        KeyError, match="no kernel inviscid_sweep in this configuration; known: copy_halo, pack_halo, update"
    ):
        program[0].launch("inviscid_sweep", (1, 1, 1))


@pytest.mark.skipif(cuda.obstacle() is not None, reason="no GPU")
def test_on_a_gpu():
    room = cuda.CudaBackend()
    configuration = Configuration()
    program = room.compile(configuration)
    rng = np.random.default_rng(3)
    host = [rng.random(SHAPE), rng.random(SHAPE), rng.random(SHAPE), np.ones(SHAPE[1:]), np.full(1, 0.1)]
    device = [room.to_device(array) for array in host]
    tail = {"dt_stride": 0, "a": 0.75, "b": 0.25, "first": 0}
    start, end = room.event(), room.event()
    start.record()
    program.launch("update", (34, 3, 3), **PLACE, **dict(zip(FIELDS, device, strict=True)), **tail)
    end.record()
    assert 0 < end.elapsed_time(start) < 10
    emulated = EmulatedBackend().compile(configuration)
    emulated.launch("update", (34, 3, 3), **PLACE, **dict(zip(FIELDS, host, strict=True)), **tail)
    np.testing.assert_allclose(room.to_host(device[1]), host[1], rtol=1e-14)
    view = room.zeros((4, 6), "float32")[1:3, 2:]
    room.copy(view, room.to_device(np.ones((2, 4), np.float32)))
    room.synchronize()
    assert room.to_host(view).sum() == 8
    fetched = room.fetch(view)
    room.copy(view, room.zeros((2, 4), "float32"))  # after it, in the order of launches
    assert type(fetched()) is np.ndarray and fetched().sum() == 8
    few = np.array([7.0, 8.0])
    written = room.zeros(2)
    room.write(written, few)
    few[:] = 0.0  # the numbers of then count
    assert room.to_host(written).tolist() == [7.0, 8.0]
    assert room.empty(3, "int32").dtype == np.int32
    with pytest.raises(HiresxError, match="no GPU memory"):
        room.empty(2**50)
    with pytest.raises(HiresxError, match="CuPy cannot use GPU 99"):
        cuda.CudaBackend(device=99)
