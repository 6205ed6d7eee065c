"""A formula means the same to NumPy and to the kernels, and holds nothing that would not."""

import ctypes

import numpy as np
import pytest

from hiresx import kernels
from hiresx.case.formula import Formula
from hiresx.case.viscosity import VISCOSITIES, ViscosityLaw
from hiresx.device.compiler import build

# Text, and a parameter's name that is a word of C++.
FORMULAS = (
    "1",
    "a",
    "T",
    "-T + double - 3",
    "T**a / 7 - 2**double",
    "1 / 3 * T",
    "T * sqrt(T) * (1 + a) / (T + a)",
    "sin(3 * T) * cos(a - T)",
    "exp(a * (T - 1)) - log(T)",
    "minimum(T, 1.5) + maximum(a, T) - minimum(a, 2)",
    "where(T < 1, 2 * T, where(T >= double, a, T))",
    "where(1 > a, T, 0)",
)
PARAMETERS = {"a": 0.6180339887, "double": 1.75}
T = np.linspace(0.1, 3.0, 61)


@pytest.fixture(scope="module")
def compiled():
    """Every formula, for a number and for a pack of them, as the CPU has it."""
    lines = ['#include "arithmetic.h"']
    for n, text in enumerate(FORMULAS):
        lines.append(Formula(text, "T", tuple(PARAMETERS)).code(f"f{n}", PARAMETERS))
        for kind, step in (("real", "1"), ("pack", "int(pack::size())")):
            lines.append(
                f'extern "C" void {kind}_{n}(int count, const real *at, real *to) {{'
                f" for (int i = 0; i + {step} <= count; i += {step}) store(to + i, f{n}(load<{kind}>(at + i))); }}"
            )
    text = kernels.flatten("\n".join(lines))
    path = build(text, ("-O1", "-std=c++17", "-march=native", "-fopenmp", "-fPIC", "-shared"), "formulas")
    return ctypes.CDLL(str(path))


@pytest.mark.parametrize("kind", ["real", "pack"])
@pytest.mark.parametrize("n", range(len(FORMULAS)), ids=FORMULAS)
def test_kernels_and_numpy_agree(compiled, kind, n):
    expected = Formula(FORMULAS[n], "T", tuple(PARAMETERS)).values(T, PARAMETERS)
    found = np.full(len(T), np.nan)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (T, found)]
    getattr(compiled, f"{kind}_{n}")(ctypes.c_int(len(T)), *pointers)
    done = ~np.isnan(found)
    assert done.sum() > len(T) - 16  # whole packs only
    assert expected.shape == T.shape
    np.testing.assert_allclose(found[done], expected[done], rtol=2e-15, atol=2e-15)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T +", "is not an expression"),
        ("b * T", "b: it may hold"),
        ("T**T", "exponent with T in it"),
        ("T if T > 1 else 1", "it may hold"),
        ("T > 1", "it may hold"),
        ("where(T, 1, 2)", "one comparison"),
        ("where(0 < T < 1, 1, 2)", "one comparison"),
        ("sqrt(T, T)", "sqrt takes 1"),
        ("__import__('os')", "it may hold"),
        ("T.real", "it may hold"),
        ("'text'", "it may hold"),
        ("True * T", "it may hold"),
        ("tan(T)", "it may hold"),
    ],
)
def test_what_a_formula_may_not_hold(text, expected):
    with pytest.raises(ValueError, match=expected):
        Formula(text, "T", ("a",))


@pytest.mark.parametrize("law", VISCOSITIES)
def test_every_law_is_one_at_the_reference_temperature(law):
    assert VISCOSITIES[law]().viscosity(np.ones((2, 3))) == pytest.approx(np.ones((2, 3)), rel=1e-15)


def test_a_law_without_a_formula_that_can_be_computed_is_refused():
    before = dict(VISCOSITIES)
    with pytest.raises(TypeError, match=r"Wrong.formula.*exponnet"):
        type("Wrong", (ViscosityLaw,), {"formula": "T**exponnet", "__module__": __name__})
    with pytest.raises(TypeError, match=r"Without.formula"):
        type("Without", (ViscosityLaw,), {"__module__": __name__})
    assert before == VISCOSITIES
