"""Sweeps of the implicit integrator without stored blocks of neighbours, with models of turbulence and scalars."""

import numpy as np
import pytest
from matrix_free import case_of, off, swept
from turbulent_channel import KAPPA, RE_TAU, channel_of, started_from

from hiresx import Case
from hiresx.estimate.resources import layout

FLUX = "van_leer"
FLOWS = {"spalart_allmaras": {"model": "spalart_allmaras"}, "sst": {"model": "sst"},
         "smagorinsky_and_scalar": {"model": "smagorinsky", "scalar": True}}  # fmt: skip


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
    assert numbers["fp32"] - numbers["none"] == 6 * words - (variables + 14 + terms) - variables**2


@pytest.mark.slow
def test_a_single_line_has_nothing_beside_it():
    """Of half a channel, where a direction with one node has no ghosts: the same numbers as by stored blocks."""
    flows = []
    for storage in ("fp32", "none"):
        given = channel_of("spalart_allmaras", 33, drop=1e6).model_dump(exclude_unset=True)
        given["implicit"] |= {"lines": "i", "storage": storage}
        solver = started_from(
            Case.from_dict(given), lambda x: {"nu_tilde": KAPPA * RE_TAU * x * (1 - 0.5 * x)}, "cpu", 1
        )
        for _ in range(5):
            solver.step()
        flows.append(solver.primitives(0))
    for name, values in flows[0].items():
        np.testing.assert_array_equal(flows[1][name], values)
