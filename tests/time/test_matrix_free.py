"""Sweeps of the implicit integrator without stored blocks of neighbours."""

import numpy as np
import pytest
from matrix_free import case_of, swept

from hiresx import Case, kernels
from hiresx.errors import HiresxError
from hiresx.estimate.resources import layout

# Steger-Warming and HLLC have a split Jacobian (test_split_sweeps.py) in place of the derivative of their fluxes.
FLOWS = [("van_leer", True, True), ("van_leer", False, False)]
FLOWS += [
    pytest.param(flux, True, True, marks=pytest.mark.slow)
    for flux in kernels.choices("flux") if flux not in ("steger_warming", "hllc", "van_leer")
]  # fmt: skip
FLOWS += [pytest.param("hllc_lm", False, True, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("flux", "viscous", "space"), FLOWS)
def test_products_are_those_with_stored_blocks(flux, viscous, space):
    """To the rounding of the blocks to FP32; in FP32 to the rounding of the sums, and for the rotated flux to that of
    the direction of a small difference of velocities."""
    flow = {"viscous": viscous, "space": space}
    wanted = swept("cpu", "fp32", flux, **flow)
    assert np.abs(wanted).max() > 1e-2
    for precision, error in (("fp64", 1e-7), ("fp32", 3e-3 if flux == "rotated_rhll" else 1e-5)):
        found = swept("cpu", "none", flux, precision=precision, **flow)
        assert 0.0 < np.abs(found - wanted).max() < error * np.abs(wanted).max()


def test_derivatives_along_a_change_are_those_of_dual_numbers():
    """Beside lines, where viscosity changes and eigenvalues are smoothed. Stored blocks are made by dual numbers."""
    flow = {"law": "sutherland", "smoothing": 0.3, "lines": "k"}
    wanted, found = (swept("cpu", storage, "steger_warming", **flow) for storage in ("fp32", "none"))
    assert 0.0 < np.abs(found - wanted).max() < 1e-7 * np.abs(wanted).max()


@pytest.mark.parametrize("precision", ["fp64", "fp32", "fp16"])
def test_products_do_not_depend_on_the_backend(precision):
    """In FP16 a few numbers may be rounded to the other side."""
    error = {"fp64": 1e-9, "fp32": 1e-5, "fp16": 1e-4}[precision]  # blocks at conditions are differences over 1e-7
    for flux in ("steger_warming", "van_leer"):
        one, other = (swept(where, "none", flux, precision=precision) for where in ("cpu", "emulated"))
        assert np.abs(one - other).max() < error * np.abs(one).max()


def test_halves_change_the_update_by_their_rounding():
    wanted, found = (swept("cpu", "none", "steger_warming", precision=precision) for precision in ("fp32", "fp16"))
    assert 3e-5 < np.abs(found - wanted).max() / np.abs(wanted).max() < 1e-3


@pytest.mark.parametrize(("storage", "lines"), [("fp32", "none"), ("none", "j")])
def test_halves_with_stored_blocks_are_refused(storage, lines):
    given = case_of("none", "roe").model_dump(exclude_unset=True)
    given["implicit"] = {"storage": storage, "lines": lines, "sweep_precision": "fp16"}
    with pytest.raises(HiresxError, match=r'sweep_precision = "fp16" is only for implicit\.storage = "none"'):
        Case.from_dict(given)


def test_less_memory():
    """Reals for each node: 25 of the diagonal block and of its inverse, 19 of a record, the right-hand side and the
    update in the numbers of the sweeps."""
    numbers = {
        (storage, precision): layout(case_of(storage, "roe", precision), "fused").numbers_per_point
        for storage in ("fp32", "none") for precision in ("fp64", "fp32")
    }  # fmt: skip
    assert numbers["fp32", "fp64"] - numbers["none", "fp64"] == 78 - 25 - 19
    assert numbers["fp32", "fp32"] - numbers["none", "fp32"] == 78 - 13 - 10 + 2


def test_lines_whose_directions_are_not_given_are_refused():
    given = case_of("none", "roe").model_dump(exclude_unset=True) | {"implicit": {"storage": "none"}}
    with pytest.raises(HiresxError, match=r'"none" is not for implicit\.lines = "auto"'):
        Case.from_dict(given)
