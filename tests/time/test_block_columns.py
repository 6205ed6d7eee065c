"""Blocks that GPUs make for sweeps in FP32 (kernels/implicit/block_columns.h)."""

import numpy as np
import pytest
from matrix_free import off, swept

CHOICES = [
    ("fp32", "steger_warming", {}),
    pytest.param("int8", "hllc", {"viscous": False, "space": False}, marks=pytest.mark.slow),
    pytest.param("fp16", "roe", {"model": "sst"}, marks=pytest.mark.slow),
    pytest.param("none", "steger_warming", {"lines": "j", "model": "spalart_allmaras"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("storage", "flux", "choices"), CHOICES)
def test_sweeps_with_them_are_those_of_a_cpu(storage, flux, choices):
    """To the rounding of FP32."""
    one, other = (swept(where, storage, flux, precision="fp32", **choices) for where in ("cpu", "emulated"))
    assert np.abs(one).max() > 1e-2
    assert off(other, one) < 2e-5
