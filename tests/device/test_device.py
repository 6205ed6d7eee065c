"""The device room: generated text, the compile cache, launches with their checks, and what a user is told."""

import ctypes
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from hiresx import kernels
from hiresx.device import Configuration, backend, interface, source
from hiresx.device import compiler as host_compiler
from hiresx.device.configuration import FOLDERS
from hiresx.device.cpu import Backend as CpuBackend
from hiresx.device.emulated import Backend as EmulatedBackend
from hiresx.device.wrappers import BLOCK, BLOCK_THREADS, PIECE, generate, launch_shape
from hiresx.errors import HiresxError

ARITHMETIC = """
#pragma once
#ifdef HX_FP32
typedef float real;
#else
typedef double real;
#endif
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HD __device__ __forceinline__
#elif defined(HX_EMULATED)
#define HD inline
#else
#define HX_CPU
#define HD inline
#include <experimental/simd>
typedef std::experimental::native_simd<real> pack;
template <class T> HD T load(const real *p) { return T(p, std::experimental::element_aligned); }
template <> HD real load<real>(const real *p) { return *p; }
HD void store(real *p, pack a) { a.copy_to(p, std::experimental::element_aligned); }
#endif
#ifndef HX_CPU
template <class T> HD T load(const real *p) { return *p; }
#endif
HD void store(real *p, real a) { *p = a; }
#define KERNEL(name, ...) template <class T = real> HD void name##_point(__VA_ARGS__)
#define VECTOR_KERNEL(name, ...) template <class T = real> HD void name##_point(__VA_ARGS__)
#define CPU_KERNEL(name, ...) extern "C" void name(__VA_ARGS__)
"""

SOLVER = """
#include "arithmetic.h"
#include "deep/update.h"
// KERNEL(in_a_comment, int i, int j, int k) {}
/* and
KERNEL(in_another, int i, int j, int k) {}
*/
KERNEL(every_type, int i, int j, int k, int a, long long b, real c, double d, const int *e, int *f, const double *g,
       double *h) {
    f[i] = a + int(b >> 32) + e[i];  // a brace { in a comment
    h[i] = c + d + g[i];
}
VECTOR_KERNEL(twice, int i, int j, int k, int sj, int sk, const real *a, real *b) {
    const long long p = i + (long long)j * sj + (long long)k * sk;
    store(b + p, real(2) * load<T>(a + p));
}
KERNEL(set, int i, int j, int k, int sj, int sk, real *a) { a[i + j * sj + k * sk] = 1; }
#ifndef HX_LIMITER
KERNEL(unlimited_only, int i, int j, int k, real *a) { a[i] = 1; }
#endif
#ifdef HX_CPU
CPU_KERNEL(total, const real *a, long long n, real *sum) {
    *sum = 0;
    for (long long i = 0; i < n; ++i) *sum += a[i];
}
static hx_shape squares_parts(const real *a, int n, real *b) { return {n, 1000}; }
CPU_KERNEL(squares, long long begin, long long end, const real *a, int n, real *b) {
    for (long long i = begin; i < end; ++i) b[i] += a[i] * a[i];
}
#endif
"""

UPDATE = """
#include "../arithmetic.h"
#include "constant.h"
KERNEL(update, int i, int j, int k, int o, int sj, int sk,
       const real *__restrict__ q0, real *q, real a) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    if (true) {
        q[p] = CONSTANT * q0[p] + a * q[p];
    }
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A kernels folder in which every choice of the default configuration is an empty header."""
    folder = tmp_path_factory.mktemp("kernels")
    for name in FOLDERS:
        (folder / name).mkdir()
        (folder / name / f"{getattr(Configuration(), name)}.h").write_text("")
    (folder / "positivity/fallback.h").write_text("")
    (folder / "deep").mkdir()
    (folder / "deep/update.h").write_text(UPDATE)
    (folder / "deep/constant.h").write_text("#define CONSTANT real(1)\n")
    (folder / "arithmetic.h").write_text(ARITHMETIC)
    (folder / "gas.h").write_text("")
    (folder / "solver.h").write_text(SOLVER)
    (folder / "shim.h").write_text((kernels.ROOT / "shim.h").read_text())
    return folder


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def environment(monkeypatch, shared_cache):
    """Compiled toys stay out of the user's cache."""
    monkeypatch.setenv("HIRESX_CACHE", str(shared_cache))
    monkeypatch.delenv("CXX", raising=False)


@pytest.fixture(params=[CpuBackend, EmulatedBackend], ids=["cpu", "emulated"])
def native(request, root):
    return request.param(root)


# ---- text


def test_choices_lists_headers(root):
    assert kernels.choices("positivity", root) == ["fallback", "limiter"]
    assert kernels.choices("nowhere", root) == []


def test_flatten_includes_once_and_keeps_places(root):
    text = kernels.flatten('first\n#include "solver.h"\nlast\n#include "arithmetic.h"\n', root)
    assert text.count("typedef double real") == 1
    assert '#include "' not in text and "#include <experimental/simd>" in text
    assert "#pragma once" not in text
    lines = text.splitlines()
    assert lines[lines.index("last") - 1] == '#line 3 "generated"'
    assert '#line 1 "kernels/deep/constant.h"' in lines


def test_flatten_names_the_place_of_a_missing_header(root):
    with pytest.raises(FileNotFoundError, match=r'generated:2: no kernel header "absent.h"'):
        kernels.flatten('\n#include "absent.h"\n', root)


def test_signatures(root):
    found = kernels.signatures(kernels.flatten('#include "solver.h"\n', root))
    assert set(found) == {"update", "every_type", "twice", "set", "unlimited_only", "total", "squares"}
    assert found["update"].arguments == (
        ("int", "o"),
        ("int", "sj"),
        ("int", "sk"),
        ("const real *", "q0"),
        ("real *", "q"),
        ("real", "a"),
    )
    assert "const real *__restrict__ q0" in found["update"].parameters
    assert [found[name].kind for name in ("update", "twice", "total")] == ["KERNEL", "VECTOR_KERNEL", "CPU_KERNEL"]
    assert found["total"].arguments[1] == ("long long", "n")
    assert found["squares"].shared and not found["total"].shared and found["squares"].arguments[1] == ("int", "n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("KERNEL(a, int i, int j) {}", "must take int i, int j, int k first"),
        ("KERNEL(a, int i, int j, int k, float x) {}", 'cannot take "float x"'),
        ("KERNEL(a, int i, int j, int k, const real **x) {}", 'cannot take "const real \\*\\*x"'),
        ("KERNEL(a, int i, int j, int k) {", "braces do not balance"),
        ("KERNEL(a, int i, int j, int k) {}\nCPU_KERNEL(a, int n) {}", "declared twice"),
    ],
)
def test_signatures_refuse(text, message):
    with pytest.raises(ValueError, match=message):
        kernels.signatures(text)


def test_source_defines_what_is_chosen():
    text = source(Configuration(precision="fp32", positivity="limiter", interpolation="original"), "cpu")
    for line in ("HX_FP32", "HX_LIMITER", "HX_INTERPOLATION_ORIGINAL", "HX_GAMMA (1.4)", "HX_EPSILON (1e-06)"):
        assert f"#define {line}\n" in text
    order = re.findall(r'#include "(.*)"', text)
    boundaries = [f"boundary/{name}.h" for name in kernels.choices("boundary")]
    last = order.index("solver.h")
    assert order[:2] == ["arithmetic.h", "gas.h"] and order[last + 1 :] == boundaries
    assert "flux/steger_warming.h" in order
    assert "HX_FP32" not in source(Configuration(), "cpu")
    assert re.findall(r'#include "(.*)"', source(Configuration(), "emulated"))[0] == "shim.h"


@pytest.mark.parametrize("folder", FOLDERS)
def test_unknown_choice_names_the_nearest(folder):
    known = kernels.choices(folder)[0]
    with pytest.raises(HiresxError, match=f'no {folder} .*"{known}x"') as caught:
        source(Configuration(**{folder: known + "x"}), "cpu")
    assert f'did you mean "{known}"' in caught.value.mend


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        (Configuration(viscosity="sutherlan"), 'no viscosity is called "sutherlan"'),
        (Configuration(viscosity="power", viscosity_parameters=(("exponnet", 1.0),)), '"exponnet"'),
    ],
)
def test_an_unknown_viscosity_law_or_parameter_is_an_error(configuration, expected):
    with pytest.raises(HiresxError, match=expected) as caught:
        source(configuration, "cpu")
    assert "did you mean" in caught.value.mend


def test_cuda_and_emulated_text_differ_by_shim_and_launchers(root):
    emulated, _ = generate(Configuration(), "emulated", root)
    cuda, found = generate(Configuration(), "cuda", root)
    without = re.sub(r' extern "C" hx_shape \w+_shape\(.*', "", emulated)
    # behind the first real header the texts are the same, but for which header follows which line of the main text
    mark = '#line 1 "kernels/arithmetic.h"'
    strip = re.compile(r'#line \d+ "generated"')
    assert strip.sub("", without.split(mark)[1]) == strip.sub("", cuda.split(mark)[1])
    assert "total" not in found and "blockIdx" not in cuda.split(mark)[0]


@pytest.mark.parametrize(
    "extent", [(1, 1, 1), (5000, 1, 1), (3, 70, 70), (1, 3, 900), (64, 64, 64), (100, 1, 7), (2, 2, 2), (1, 1000, 1)]
)
def test_launch_shape_covers_the_range(extent):
    for wanted in (BLOCK, (128, 1, 1), (16, 4, 4)):
        grid, block = launch_shape(*extent, wanted)
        assert np.prod(block) <= np.prod(wanted) <= BLOCK_THREADS and block[2] <= 64
        for n, g, b in zip(extent, grid, block, strict=True):
            assert (g - 1) * b < n <= g * b
    assert launch_shape(300, 300, 300, wanted)[1] == wanted


def test_launch_shape_of_nothing():
    assert launch_shape(4, 0, 3)[0] == (0, 0, 0)
    assert launch_shape(-1, -1, 3)[0] == (0, 0, 0)


# ---- launches


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_launch_on_part_of_an_array(native, precision):
    configuration = Configuration(precision=precision)
    program = native.compile(configuration)
    rng = np.random.default_rng(1)
    q0, q = rng.random((2, 9, 10, 70)).astype(configuration.real)
    expected = q.copy()
    expected[1:7, 2:9, 3:65] = q0[1:7, 2:9, 3:65] + q.dtype.type(0.5) * q[1:7, 2:9, 3:65]
    on_device = native.to_device(q)
    program.launch("update", (62, 7, 6), 700 + 2 * 70 + 3, 70, 700, native.to_device(q0), on_device, 0.5)
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
    program.launch("set", extent, sj, sk, a[1:, 1:, 1:])
    expected = np.zeros(a.shape)
    if min(extent) > 0:
        expected[1:-1, 1:-1, 1:-1] = 1
    assert np.array_equal(a, expected)
    source = native.to_device(np.random.default_rng(2).random(a.shape))
    target = native.zeros(a.shape)
    program.launch("twice", extent, sj, sk, source[1:, 1:, 1:], target[1:, 1:, 1:])
    assert np.array_equal(target, 2 * source * expected)


def test_every_argument_type(native):
    program = native.compile(Configuration(precision="fp32"))
    e, f = native.to_device(np.arange(4, dtype=np.int32)), native.zeros(4, "int32")
    g, h = native.to_device(np.arange(4.0)), native.zeros(4)
    program.launch("every_type", (4, 1, 1), -7, 5 << 32, 0.25, 1e-3, e, f, g, h)
    assert np.array_equal(f, np.arange(4) - 2)
    assert np.array_equal(h, 0.25 + 1e-3 + np.arange(4.0))
    # numpy scalars and plain arrays go in as well
    f = np.zeros(4, np.int32)
    program.launch("every_type", (4, 1, 1), np.int64(1), np.int64(0), np.float64(0), np.float32(0), e, f, g, h)
    assert np.array_equal(f, np.arange(4) + 1)


READ_ONLY = np.zeros(4)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 1.5, "argument a .int.: 'float' object cannot be interpreted as an integer"),
        (0, 2**31, "argument a .int.: 2147483648 does not fit int32"),
        (0, -(2**31) - 1, "does not fit int32"),
        (1, 2**63, "argument b .long long.: .* does not fit int64"),
        (2, "1", "argument c .real.: wants a number, got str"),
        (3, None, "argument d .double.: wants a number, got NoneType"),
        (4, np.zeros(4), "argument e .const int .*: wants an array of int32, got one of float64"),
        (4, np.zeros(8, np.int32)[::2], "argument e .*side by side along the last axis"),
        (4, [1, 2], "argument e .*wants a numpy.ndarray of int32, got list"),
        (6, np.zeros(4, np.float32), "argument g .const double .*: wants an array of float64, got one of float32"),
        (7, READ_ONLY, "argument h .double .*: wants to write, got a read-only array"),
        (7, 0, "argument h .double .*: wants a numpy.ndarray"),
    ],
)
def test_wrong_argument_is_named(native, place, value, message):
    program = native.compile(Configuration())
    arguments = [0, 0, 0.0, 0.0, native.zeros(4, "int32"), native.zeros(4, "int32"), native.zeros(4), native.zeros(4)]
    program.launch("every_type", (4, 1, 1), *arguments)
    arguments[place] = value
    with pytest.raises(TypeError, match=f"kernel every_type, {message}" if "argument" in message else message):
        program.launch("every_type", (4, 1, 1), *arguments)


def test_read_only_input_is_fine(native):
    program = native.compile(Configuration())
    i, a = native.zeros(4, "int32"), native.zeros(4)
    program.launch("every_type", (4, 1, 1), 0, 0, 0.0, 0.0, i, i, READ_ONLY, a)


def test_wrong_number_of_arguments(native):
    program = native.compile(Configuration())
    with pytest.raises(TypeError, match=r"set.*missing 1"):
        program.launch("set", (1, 1, 1), 1, 1)
    with pytest.raises(TypeError, match="set"):
        program.launch("set", (1, 1, 1), 1, 1, native.zeros(1), 1)


def test_extent_of_other_numbers(native):
    program = native.compile(Configuration())
    a = native.zeros((2, 3))
    program.launch("set", np.array([3, 2, 1]), 3, 6, a)
    assert a.all()
    for extent in ((1.0, 1, 1), (2**31, 1, 1), ("1", 1, 1)):
        with pytest.raises(TypeError):
            program.launch("set", extent, 3, 6, a)


def test_unknown_kernel(native):
    program = native.compile(Configuration())
    with pytest.raises(KeyError, match="no kernel sett in this configuration; known: every_type, set"):
        program.launch("sett", (1, 1, 1))


def test_kernel_behind_an_if(native):
    assert "unlimited_only" not in native.compile(Configuration()).signatures
    program = native.compile(Configuration(positivity="fallback"))
    a = native.zeros(3)
    program.launch("unlimited_only", (3, 1, 1), a)
    assert np.array_equal(a, np.ones(3))


def test_cpu_kernel(root):
    program = CpuBackend(root).compile(Configuration())
    result = np.zeros(1)
    program.run("total", np.arange(10.0), 10, result)
    assert result[0] == 45
    with pytest.raises(TypeError, match="argument n"):
        program.run("total", np.arange(10.0), 1.5, result)
    a, b = np.arange(500.0), np.zeros(500)
    program.run("squares", a, 500, b)
    assert np.array_equal(b, a * a), "every part once"
    assert "total" not in EmulatedBackend(root).compile(Configuration()).signatures


def test_a_slice_has_its_own_address(native):
    program = native.compile(Configuration())
    a = native.zeros(10)
    program.launch("set", (1, 1, 1), 1, 1, a)
    program.launch("set", (1, 1, 1), 1, 1, a[5:])
    program.launch("set", (1, 1, 1), 1, 1, a.reshape(2, 5)[1, 2:])
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
    with pytest.raises(TypeError):
        native.copy(device, native.zeros((3, 2), "float32"))


def test_array_that_does_not_fit(native):
    with pytest.raises(HiresxError, match="no memory for an array of") as caught:
        native.empty(2**55)
    assert "coarser" in caught.value.mend


def test_events(native):
    start, end = native.event(), native.event()
    start.record()
    native.synchronize()
    end.record()
    assert 0 <= end.elapsed(start) < 1


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
        from hiresx.device.cpu import Backend
        backend = Backend(Path({str(root)!r}))
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
    made = inspect.get_annotations(room.Backend.compile, eval_str=True)["return"]
    for protocol, kind in ((interface.Backend, room.Backend), (interface.Program, made)):
        for name, method in inspect.getmembers(protocol, inspect.isfunction):
            if not name.startswith("_"):
                wanted, got = inspect.signature(method), inspect.signature(getattr(kind, name))
                assert list(wanted.parameters) == list(got.parameters), name
    assert room.Backend.name == module


# ---- compiler and cache


def test_second_compile_comes_from_the_cache(native, monkeypatch):
    native.compile(Configuration())
    real = subprocess.run

    def run(command, **keywords):
        assert command[-1] == "--version", "compiled again"
        return real(command, **keywords)

    monkeypatch.setattr(host_compiler.subprocess, "run", run)
    native.compile(Configuration())


def test_key_sees_text_flags_compiler_and_processor(tmp_path, monkeypatch):
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    compiled = []

    def run(command, **keywords):
        if command[-1] != "--version":
            (command[command.index("-o") + 1]).write_text("library")
            compiled.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=version, stderr="")

    monkeypatch.setattr(host_compiler.subprocess, "run", run)
    version = "g++ 1"
    paths = [host_compiler.build("text", ("-O1",), "label")]
    paths.append(host_compiler.build("other", ("-O1",), "label"))
    paths.append(host_compiler.build("text", ("-O2",), "label"))
    version = "g++ 2"
    paths.append(host_compiler.build("text", ("-O1",), "label"))
    monkeypatch.setattr(host_compiler, "processor", lambda: "another")
    paths.append(host_compiler.build("text", ("-O1",), "label"))
    assert len(set(paths)) == 5 == len(compiled)
    assert host_compiler.build("text", ("-O1",), "label") == paths[-1] and len(compiled) == 5


def test_simultaneous_processes(tmp_path, root):
    code = textwrap.dedent(f"""
        from pathlib import Path
        from hiresx.device import Configuration
        from hiresx.device.emulated import Backend
        program = Backend(Path({str(root)!r})).compile(Configuration())
        print(len(program.signatures))
    """)
    environment = {**os.environ, "HIRESX_CACHE": str(tmp_path / "new/cache")}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in running] == [b"4"] * 3
    # The kernels, and the team of threads.
    suffixes = sorted(path.suffix for path in (tmp_path / "new/cache").iterdir())
    assert suffixes == [".cpp", ".cpp", ".sha256", ".sha256", ".so", ".so"]
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in (tmp_path / "new", tmp_path / "new/cache"))


def test_no_compiler(native, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HiresxError, match=r"no C\+\+ compiler: g\+\+ is not found") as caught:
        native.compile(Configuration())
    assert "apt install g++" in caught.value.mend


def test_compiler_that_does_not_run(native, monkeypatch):
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(HiresxError, match="false --version fails with status 1"):
        native.compile(Configuration())


def test_kernel_that_does_not_compile(tmp_path, root, monkeypatch):
    broken = tmp_path / "kernels"
    broken.mkdir()
    for path in root.iterdir():
        (broken / path.name).symlink_to(path)
    (broken / "solver.h").unlink()
    (broken / "solver.h").write_text("\nKERNEL(bad, int i, int j, int k, real *a) {\n    a[i] = undeclared;\n}\n")
    with pytest.raises(HiresxError, match=r"kernels/solver.h:3:\d+: error: .*undeclared") as caught:
        CpuBackend(broken).compile(Configuration())
    log = re.search(r"\S+\.log", caught.value.mend)[0]
    assert "undeclared" in Path(log).read_text()


def test_cache_that_cannot_be_written(native, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(HiresxError, match=r"kernel cache .*file/cache cannot be written: Not a directory") as caught:
        native.compile(Configuration())
    assert "HIRESX_CACHE" in caught.value.mend


def test_cache_directory_default(monkeypatch, tmp_path):
    from hiresx.device import cache

    monkeypatch.delenv("HIRESX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "hiresx" and cache.directory().is_dir()


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """keep(content): the path of a file in a cache of its own, and how often one was made."""
    from hiresx.device import cache

    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path / "cache"))
    made = []

    def keep(content: bytes = b"library") -> tuple[Path, int]:
        def make(private: Path) -> Path:
            (private / "file").write_bytes(content)
            made.append(content)
            return private / "file"

        return cache.made("one.so", make), len(made)

    return keep


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def test_what_is_kept_is_made_once_and_for_nobody_else_to_write(kept):
    before = os.umask(0)
    try:
        path, count = kept()
    finally:
        os.umask(before)
    assert (path.read_bytes(), count) == (b"library", 1) and kept() == (path, 1)
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["one.so", "one.so.sha256"]
    assert path.parent.stat().st_mode & 0o777 == 0o700 and not any(file.stat().st_mode & 0o022 for file in files)


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3])


def _bit(path: Path) -> None:
    path.write_bytes(b"Library")


def _without_digest(path: Path) -> None:
    path.with_name("one.so.sha256").unlink()


def _digest_of_another(path: Path) -> None:
    path.with_name("one.so.sha256").write_bytes(b"\xff" * 64)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _group(path: Path) -> None:
    path.chmod(0o775)


def _everybody(path: Path) -> None:
    path.with_name("one.so.sha256").chmod(0o666)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("change", [_half, _bit, _without_digest, _digest_of_another, _link, _group, _everybody, _pipe])
def test_what_is_not_whole_or_could_be_another_s_is_made_anew(kept, change):
    path, _ = kept()
    if os.geteuid() == 0:
        os.chown(path, -1, 12345)  # no group of the user's own
    change(path)
    assert kept() == (path, 2) and path.read_bytes() == b"library" and not path.is_symlink()
    assert kept() == (path, 2)


@needs_root
def test_a_library_of_another_user_is_made_anew(kept):
    path, _ = kept()
    os.chown(path, 12345, 12345)
    assert kept() == (path, 2) and path.stat().st_uid == 0


@needs_root
@pytest.mark.parametrize(
    ("which", "owner", "mode", "why"),
    [
        ("cache", 12345, 0o755, "it belongs to user 12345"),
        ("cache", 0, 0o777, "it can be written to by everybody"),
        ("cache", 0, 0o1777, "it can be written to by everybody"),
        ("cache", 0, 0o775, "it can be written to by the group 12345"),
        ("", 0, 0o777, "in which it lies, can be written to by everybody"),
        ("", 0, 0o775, "in which it lies, can be written to by the group 12345"),
        ("", 12345, 0o755, "in which it lies, belongs to user 12345"),
    ],
)
def test_a_folder_that_others_can_fill_or_exchange_is_refused(kept, tmp_path, which, owner, mode, why):
    kept()
    folder = tmp_path / which
    os.chown(folder, owner, 12345)
    folder.chmod(mode)
    with pytest.raises(HiresxError) as caught:
        kept()
    assert (
        f"the kernel cache {tmp_path / 'cache'} is not used: " in caught.value.message and why in caught.value.message
    )
    assert "HIRESX_CACHE" in caught.value.mend
    mends = owner == 0 and not mode & 0o1000
    assert (f"chmod go-w {folder}" in caught.value.mend) == mends
    if mends:
        folder.chmod(mode & ~0o022)
        assert kept()[1] == 1


@needs_root
def test_folders_that_are_safe_are_taken(kept, tmp_path, monkeypatch):
    """In a sticky folder; of root, for a user; for the group of the user alone; through a link; of nobody, where root
    has no name."""
    from hiresx.device import cache

    tmp_path.chmod(0o1777)
    path, _ = kept()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert kept() == (path, 1)
    path.parent.chmod(0o775)
    assert kept() == (path, 1), "root's own group"
    link = tmp_path / "link"
    link.symlink_to("cache")
    monkeypatch.setenv("HIRESX_CACHE", str(link))
    assert kept() == (path, 1)
    os.chown(tmp_path, cache._unmapped(), -1)
    tmp_path.chmod(0o755)
    assert kept() == (path, 1)


def test_half_a_library_is_compiled_anew(tmp_path, monkeypatch):
    """It ends the process with SIGBUS where it is loaded."""
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    library = host_compiler.build('extern "C" int answer() { return 42; }', ("-shared", "-fPIC"), "half")
    size = library.stat().st_size
    os.truncate(library, size // 2)
    again = host_compiler.build('extern "C" int answer() { return 42; }', ("-shared", "-fPIC"), "half")
    assert again == library and library.stat().st_size == size and ctypes.CDLL(str(library)).answer() == 42


def test_no_home_directory(monkeypatch):
    from hiresx.device import cache

    for name in ("HIRESX_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(HiresxError, match="no home directory"):
        cache.directory()


def test_damaged_library(native, tmp_path, monkeypatch):
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(b"\x7fELF")
    monkeypatch.setattr("hiresx.device.native.build", lambda *_: damaged)
    with pytest.raises(HiresxError, match="cannot be loaded") as caught:
        native.compile(Configuration())
    assert str(damaged) in caught.value.mend


# ---- choosing a backend


def test_backend_by_name():
    assert backend("cpu").name == "cpu"
    assert backend("emulated").name == "emulated"
    with pytest.raises(HiresxError, match='no backend "gpu"') as caught:
        backend("gpu")
    assert "auto, cpu, cuda, emulated" in caught.value.mend


def test_cuda_without_cupy(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "cupy" else find(name, *rest))
    with pytest.raises(HiresxError, match="needs CuPy, which is not installed") as caught:
        backend("cuda")
    assert "pip install 'hiresx[cuda13]'" in caught.value.mend
    assert backend("auto").name == "cpu"


class Driver:
    """libcuda.so.1 with a status and a count of GPUs."""

    def __init__(self, status, count):
        self.cuInit = lambda flags: status
        self._count = count

    def cuDeviceGetCount(self, pointer):
        pointer._obj.value = self._count
        return 0


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (None, "finds no NVIDIA driver"),
        (Driver(100, 0), "offers no GPU .status 100, 0 devices"),
        (Driver(0, 0), "offers no GPU .status 0, 0 devices"),
    ],
)
def test_cuda_without_a_gpu(monkeypatch, library, message):
    from hiresx.device import cuda

    def load(name):
        if library is None:
            raise OSError(name)
        return library

    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(cuda.ctypes, "CDLL", load)
    with pytest.raises(HiresxError, match=message):
        backend("cuda")
    assert backend("auto").name == "cpu"


def test_importing_the_room_is_light():
    code = "import sys, hiresx.device.cuda; print([name for name in ('cupy', 'pydantic') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
