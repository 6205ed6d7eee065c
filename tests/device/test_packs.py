"""Packs of numbers on a CPU (kernels/packs.h): every function of them is that of their numbers, bit for bit."""

import ctypes
import shutil

import numpy as np
import pytest

from hiresx import kernels
from hiresx.device.compiler import build
from hiresx.device.cpu import CpuBackend

FUNCTIONS = [
    *(f"{name}(a)" for name in ("square_root", "reciprocal", "reciprocal_root", "positive_root", "absolute")),
    *(f"{name}(a)" for name in ("exponential", "logarithm", "arc_cosine", "cosine", "sine")),
    *("larger(a, b)", "smaller(a, b)", "power(a, real(1.5))", "-a", "real(2) * a - b / real(3)"),
    *(f"a {sign} b" for sign in "+-*/"),
    *(f"select(a {sign} b, a + b, T(real(1)))" for sign in ("<", "<=", ">", ">=", "==", "!=")),
    *(f"select({name}(a < b, b < T(real(0))), a, T(real(3)))" for name in ("both", "either")),
]
TEXT = """
#include "arithmetic.h"
#include "storage.h"
template <class T> HD void apply(const real *x, const real *y, real *to, int width) {{
    const T a = load<T>(x), b = load<T>(y);
    int row = 0;
    {stores}
}}
extern "C" void by_pack(const real *x, const real *y, real *to, int width) {{
    for (int i = 0; i < width; i += pack::size()) apply<pack>(x + i, y + i, to + i, width);
}}
extern "C" void by_number(const real *x, const real *y, real *to, int width) {{
    for (int i = 0; i < width; ++i) apply<real>(x + i, y + i, to + i, width);
}}
extern "C" int any_above(const real *x, real limit) {{ return anywhere(load<pack>(x) > pack(limit)); }}
extern "C" int pack_size() {{ return pack::size(); }}
"""
WIDTH = 64  # numbers of a row: whole packs of any processor


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("narrow", [False, True], ids=["own registers", "any processor's"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_pack_is_its_numbers(dtype, narrow):
    flags = tuple(flag for flag in CpuBackend.flags if not (narrow and flag == "-march=native"))
    stores = " ".join(f"store(to + width * row++, {one});" for one in FUNCTIONS)
    single = "#define HX_FP32\n" * (dtype == "float32")
    # Without contraction, which may fuse another product in the one form than in the other.
    text = kernels.flatten(single + TEXT.format(stores=stores), kernels.ROOT)
    library = ctypes.CDLL(str(build(text, (*flags, "-ffp-contract=off"), "packs")))
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5]
    drawn = np.random.default_rng(3).uniform(-2, 2, (2, WIDTH))
    x, y = np.array(drawn, dtype)
    x[:16], y[:16] = 2 * special, special + special[::-1]
    found = np.zeros((2, len(FUNCTIONS), WIDTH), dtype)
    for n, function in enumerate((library.by_pack, library.by_number)):
        function(x.ctypes, y.ctypes, found[n].ctypes, WIDTH)
    for name, packs, numbers in zip(FUNCTIONS, *found, strict=True):
        same = (packs == numbers) & (np.signbit(packs) == np.signbit(numbers)) | (np.isnan(packs) & np.isnan(numbers))
        # |-0| is -0 for a number alone.
        assert (same | ((name == "absolute(a)") & (packs == 0))).all(), (name, x[~same], packs[~same], numbers[~same])


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_anywhere_asks_every_lane():
    text = kernels.flatten(TEXT.format(stores=""), kernels.ROOT)
    library = ctypes.CDLL(str(build(text, CpuBackend.flags, "packs")))
    library.any_above.argtypes = ctypes.c_void_p, ctypes.c_double
    size = library.pack_size()
    for lane in range(size):
        x = np.eye(size)[lane].copy()
        assert library.any_above(x.ctypes.data, 0.5) and not library.any_above(x.ctypes.data, 1.0), lane
