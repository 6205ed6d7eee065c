"""Sweeps of the implicit integrator over lines that store blocks along the lines alone."""

import numpy as np
import pytest
from matrix_free import case_of, off, swept
from ranks import run_ranks

from hiresx import Simulation, load
from hiresx.estimate.resources import layout

FLUX = "steger_warming"
# of which eight parts divide lines along each direction, and two parts those along j
CUT = {"nodes": (15, 16, 14)}


@pytest.mark.parametrize(
    ("lines", "parts", "precision"),
    [("j", 1, "fp64"), ("i", 8, "fp64"), ("j", 8, "fp64"), ("k", 8, "fp64")]
    + [pytest.param(lines, 8, "fp32", marks=pytest.mark.slow) for lines in "ijk"],
)
def test_products_beside_lines_are_those_with_stored_blocks(lines, parts, precision):
    """To the rounding of the blocks to FP32; in FP32 to the rounding of the sums."""
    wanted = swept("cpu", "fp32", FLUX, lines=lines, parts=parts, **CUT)
    found = swept("cpu", "none", FLUX, lines=lines, parts=parts, precision=precision, **CUT)
    assert np.abs(wanted).max() > 1e-2
    assert 0.0 < off(found, wanted) < {"fp64": 1e-7, "fp32": 1e-5}[precision]


def test_a_cut_that_divides_no_lines_changes_nothing():
    for lines in "ik":
        one, two = (swept("cpu", "none", FLUX, lines=lines, parts=parts, **CUT) for parts in (1, 2))
        assert off(two, one) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_sweeps_do_not_depend_on_the_backend(precision):
    error = {"fp64": 1e-9, "fp32": 1e-5}[precision]  # blocks at conditions are differences over 1e-7 of a variable
    for lines in "ij":
        one, other = (swept(where, "none", FLUX, lines=lines, precision=precision) for where in ("cpu", "emulated"))
        assert off(other, one) < error


def off_on_ranks(comm) -> float:
    alone = swept("cpu", "none", FLUX, lines="i", **CUT)
    return off(swept("cpu", "none", FLUX, lines="i", parts=comm.size, comm=comm, **CUT), alone)


@pytest.mark.slow
def test_ranks_agree():
    assert max(run_ranks(2, off_on_ranks)) < 1e-12


def test_less_memory():
    """Reals for each node: four blocks of 13 words less, and a record of 19 numbers more. Lines have the
    inverses of their pivots, of 25 words in FP64 and 13 in FP32, and two blocks of 13 words."""
    numbers = {
        storage: layout(case_of(storage, "roe", lines="k"), "fused").numbers_per_point for storage in ("fp32", "none")
    }
    assert numbers["fp32"] - numbers["none"] == 4 * 13 - 19
    halves = layout(case_of("none", "roe", "fp32", lines="k"), "fused").numbers_per_point
    assert numbers["none"] - halves == (19 - 10) + (25 - 13) + 3 * (5 - 3)


@pytest.mark.slow
def test_a_flow_is_that_of_stored_blocks():
    """In as many steps, but for 5 %."""
    runs = {}
    for storage in ("fp32", "none"):
        keys = ["time.integrator=implicit", "implicit.lines=j", f"implicit.storage={storage}"]
        runs[storage] = Simulation(load("naca0012", "subsonic", overrides=keys), "cpu")
        runs[storage].run(progress=False)
    first, second = runs["fp32"], runs["none"]
    assert first.step_count > 10 and abs(second.step_count - first.step_count) <= 0.05 * first.step_count
    for variable in ("rho", "u", "v", "p"):
        np.testing.assert_allclose(
            second.blocks[0].state(variable), first.blocks[0].state(variable), rtol=0, atol=1e-10
        )
