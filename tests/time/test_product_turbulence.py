"""Sweeps of the implicit integrator without stored blocks of neighbours, with models of turbulence and scalars."""

import numpy as np
import pytest
from matrix_free import case_of, off, swept

from hiresx import Simulation, load
from hiresx.estimate.resources import layout

FLUX = "van_leer"
FLOWS = {"spalart_allmaras": {"model": "spalart_allmaras"}, "sst": {"model": "sst"},
         "smagorinsky with a scalar": {"model": "smagorinsky", "scalar": True}}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "precision"), [("none", "fp64"), ("none", "fp32"), ("j", "fp64")])
@pytest.mark.parametrize("flow", FLOWS)
def test_products_are_those_with_stored_blocks(flow, lines, precision):
    """To the rounding of the blocks to FP32; in FP32 to the rounding of the sums."""
    wanted = swept("cpu", "fp32", FLUX, lines=lines, **FLOWS[flow])
    found = swept("cpu", "none", FLUX, lines=lines, precision=precision, **FLOWS[flow])
    assert np.abs(wanted).max() > 1e-2
    assert 0.0 < off(found, wanted) < {"fp64": 1e-7, "fp32": 1e-5}[precision]


@pytest.mark.slow
def test_products_do_not_depend_on_the_cut_or_the_backend():
    flow = {"model": "sst", "nodes": (9, 15, 8)}
    one = swept("cpu", "none", FLUX, **flow)
    assert off(swept("cpu", "none", FLUX, parts=2, **flow), one) < 1e-12
    assert off(swept("emulated", "none", FLUX, **flow), one) < 1e-9


@pytest.mark.parametrize(
    ("model", "variables", "words", "terms"), [("spalart_allmaras", 6, 18, 4), ("sst", 7, 25, 3 + 16)]
)
def test_less_memory(model, variables, words, terms):
    """Reals for each node: the blocks of six neighbours, against a record and the inverse of the diagonal block."""
    numbers = {
        storage: layout(case_of(storage, "roe", model=model), "fused").numbers_per_point for storage in ("fp32", "none")
    }
    assert numbers["fp32"] - numbers["none"] == 6 * words - (variables + 11 + terms) - variables**2


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "lines"), [("quick", "none"), ("quick", "j"), ("sst", "j")])
def test_plates_are_those_of_stored_blocks(preset, lines):
    """In as many steps, but for 5 %."""
    runs = {}
    for storage in ("fp32", "none"):
        keys = [f"implicit.lines={lines}", f"implicit.storage={storage}", "implicit.drop=1e8", "grid.n=[35,25,1]"]
        runs[storage] = Simulation(load("flat-plate-sa", preset, overrides=keys), "cpu")
        runs[storage].run(progress=False)
    first, second = runs["fp32"], runs["none"]
    assert first.step_count > 10 and abs(second.step_count - first.step_count) <= 0.05 * first.step_count
    for variable in ("rho", "u", "v", "p"):
        np.testing.assert_allclose(second.blocks[0].state(variable), first.blocks[0].state(variable), rtol=0, atol=1e-8)
