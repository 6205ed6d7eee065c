"""Blocks on GPUs, for which the derivatives of each face are computed once (kernels/implicit/block_tiles.h)."""

import numpy as np
import pytest
from matrix_free import off, swept

# More than a tile of the places of a plane, and more than a chunk of planes
NODES = (15, 14, 8)
CHOICES = [
    ("fp32", "steger_warming", {"precision": "fp32"}),
    ("fp32", "steger_warming", {"model": "spalart_allmaras"}),
    pytest.param("int8", "hllc", {"precision": "fp32", "viscous": False, "space": False}, marks=pytest.mark.slow),
    pytest.param("fp16", "roe", {"precision": "fp32", "scalar": True}, marks=pytest.mark.slow),
    pytest.param("none", "steger_warming", {"precision": "fp32", "lines": "j"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("storage", "flux", "choices"), CHOICES)
def test_sweeps_with_them_are_those_of_a_cpu(storage, flux, choices):
    """To the rounding of their numbers, and of differences over 1e-7 of a variable by which conditions are derived."""
    one, other = (swept(where, storage, flux, nodes=NODES, **choices) for where in ("cpu", "emulated"))
    assert np.abs(one).max() > 1e-2
    assert off(other, one) < (1e-5 if choices.get("precision") == "fp32" else 1e-9)


def test_a_cut_changes_sweeps_by_round_off_alone():
    """A face on the cut has the step of another node."""
    one, two = (swept("emulated", "fp32", "steger_warming", parts, nodes=NODES, precision="fp32") for parts in (1, 2))
    assert off(two, one) < 1e-15
