"""Sweeps of the implicit integrator without stored blocks of neighbours."""

from functools import cache

import numpy as np
import pytest

from hiresx import Case, kernels
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.estimate.resources import layout
from hiresx.solver import Solver

STATE = {"rho": 1.0, "u": 0.4, "v": 0.1, "w": 0.05, "p": 1 / 1.4}
SPACE = [
    {"faces": ["jmin"], "type": "no-slip-wall"},
    {"faces": ["kmin"], "type": "slip-wall"},
    {"faces": ["kmax"], "type": "symmetry"},
    {"faces": ["imax"], "type": "pressure-outflow", "pressure": 1 / 1.4},
    {"faces": "all", "type": "far-field", "state": STATE},
]
PLANE = [boundary for boundary in SPACE if boundary["faces"] not in (["kmin"], ["kmax"])]


def case_of(
    storage: str, flux: str, precision: str = "fp64", viscous: bool = True, space: bool = True, **implicit
) -> Case:
    """On a stretched, sheared grid, in space or in a plane."""
    boundaries = SPACE if space else PLANE
    wall = {} if viscous else {"type": "slip-wall"}
    return Case.from_dict(
        {
            "gas": {"reynolds": 50.0} if viscous else {},
            "grid": {
                "generator": "wavy", "n": [9, 10, 8 if space else 1], "amplitude": [0.03, 0.03, 0.03 if space else 0.0],
                "lower": [0.0, 0.0, 0.0], "upper": [1.0, 0.7, 0.8 if space else 0.0],
            },
            "scheme": {"flux": flux},
            "initial": {"state": STATE},
            "time": {"integrator": "implicit", "steps": 1},
            "implicit": {"lines": "none", "sweeps": 3, "storage": storage, "sweep_precision": precision, **implicit},
            "boundary": [one | (wall if one["faces"] == ["jmin"] else {}) for one in boundaries],
        }
    )  # fmt: skip


@cache
def swept(where: str, *choices) -> np.ndarray:
    """What three sweeps make of a right-hand side, about a flow that is not uniform."""
    solver = Solver(case_of(*choices), backend(where))
    solver.initialize(
        lambda x, y, z: (
            1 + 0.1 * np.sin(4 * x + z), 0.5 + 0.3 * y, 0.2 * np.cos(3 * x), 0.1 * np.sin(5 * z + x),
            (1 + 0.1 * x * y) / 1.4,
        )
    )  # fmt: skip
    system, linear = solver.system, solver.integrator.linearised
    x, right, found = (system.vector() for _ in range(3))
    system.state(x)
    linear.unsteady(0.0, 20.0, system.vector())  # with the coefficient of the new state in its rate
    linear.begin()
    linear.assemble(x, 0.01)
    linear.change(x, right)
    linear.precondition(right, found)
    return system.gather(found)


FLOWS = [("steger_warming", True, True), ("steger_warming", False, False)]
FLOWS += [
    pytest.param(flux, True, True, marks=pytest.mark.slow) for flux in kernels.choices("flux") if "steger" not in flux
]
FLOWS += [pytest.param(flux, False, True, marks=pytest.mark.slow) for flux in ("van_leer", "hllc_lm")]


@pytest.mark.parametrize(("flux", "viscous", "space"), FLOWS)
def test_products_are_those_with_stored_blocks(flux, viscous, space):
    """To the rounding of the blocks to FP32; in FP32 to the rounding of the sums."""
    wanted = swept("cpu", "fp32", flux, "fp64", viscous, space)
    assert np.abs(wanted).max() > 1e-2
    for precision, error in (("fp64", 1e-7), ("fp32", 1e-5)):
        found = swept("cpu", "none", flux, precision, viscous, space)
        off = np.abs(found - wanted).max(axis=tuple(range(1, wanted.ndim))) / np.abs(wanted).max()
        assert 0.0 < off.max() < error


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_products_do_not_depend_on_the_backend(precision):
    one, other = (swept(where, "none", "steger_warming", precision) for where in ("cpu", "emulated"))
    error = {"fp64": 1e-9, "fp32": 1e-5}[precision]  # blocks at conditions are differences over 1e-7 of a variable
    assert np.abs(one - other).max() < error * np.abs(one).max()


def test_less_memory():
    """Reals for each node: 25 of the diagonal block and of its inverse, 16 of a record, the right-hand side and the
    update in the numbers of the sweeps."""
    numbers = {
        (storage, precision): layout(case_of(storage, "roe", precision), "fused").numbers_per_point
        for storage in ("fp32", "none") for precision in ("fp64", "fp32")
    }  # fmt: skip
    assert numbers["fp32", "fp64"] - numbers["none", "fp64"] == 78 - 25 - 16
    assert numbers["fp32", "fp32"] - numbers["none", "fp32"] == 78 - 13 - 8 + 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"implicit": {"storage": "none"}}, '"none" is for sweeps over nodes, and implicit.lines is "auto"'),
        ({"turbulence": {"model": "spalart_allmaras"}}, 'turbulence is not for implicit.storage = "none"'),
    ],
)  # fmt: skip
def test_what_it_does_not_have_is_refused(more, said):
    given = case_of("none", "roe").model_dump(exclude_unset=True) | more
    with pytest.raises(HiresxError, match=said):
        Case.from_dict(given)
