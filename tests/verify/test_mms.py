"""Manufactured solutions: their sources, and the orders that they show."""

import sys
from typing import get_args

import numpy as np
import pytest
import verification_tables

from hiresx import HiresxError, kernels
from hiresx.case import boundaries
from hiresx.case.regularised import Regularised
from hiresx.case.schema import Gas
from hiresx.case.scheme import Scheme
from hiresx.device import backend
from hiresx.equations.stencil import suited_weights
from hiresx.solver import Solver
from hiresx.verify import manufactured
from hiresx.verify.checks import Workbench
from hiresx.verify.groups import mms
from hiresx.verify.manufactured_schemes import SCHEMES

pytest.importorskip("sympy", reason="pip install '.[mms]'")
BY_NAME = {check.name: check for check in mms.CHECKS}
X, Y, Z = np.random.default_rng(0).uniform(0, 1, (3, 5, 4, 3))

# At T = 1, u = y: the heat of friction leaves to both walls.
HEATED = "(1 + 0.72*0.4/2*y*(1 - y))"
# T^2 is linear where mu goes with T.
CONDUCTING = "sqrt(1 + 3*y)"


@pytest.mark.parametrize(
    ("formulas", "gas"),
    [
        # a density wave is carried along
        (("1 + 0.1*sin(2*pi*(x + y - 0.7*t))", "0.5", "0.2", "-0.3", "0.7"), {}),
        # Couette flow of constant viscosity; heat through gas at rest whose viscosity is a power of T
        ((f"1.4*0.7/{HEATED}", "y", "0", "0", "0.7"), {"reynolds": 30.0}),
        (
            (f"1.4*0.7/{CONDUCTING}", "0", "0", "0", "0.7"),
            {"reynolds": 30.0, "viscosity": {"law": "power", "exponent": 1.0}},
        ),
    ],
    ids=["euler", "friction", "power law"],
)
def test_an_exact_solution_needs_no_source(formulas, gas):
    flow = manufactured.ManufacturedSolution(formulas, Gas(**gas))
    assert abs(flow.source(X, Y, Z, 0.3)).max() < 1e-14
    if gas:  # and others do
        other = {**gas, "prandtl": 0.9} if "viscosity" not in gas else {**gas, "viscosity": {"law": "constant"}}
        assert abs(manufactured.ManufacturedSolution(formulas, Gas(**other)).source(X, Y, Z, 0.3)).max() > 1e-4


def test_a_scalar_that_is_carried_and_decays_needs_no_source():
    """Its diffusivity is 1/(Re_c Sc)."""
    decays, carried = "exp(-4*t/21)", "sin(2*x - t)"
    flow, gas = ("1.0", "0.5", "0", "0", "1/1.4"), Gas(reynolds=30.0)
    scalars = [(f"{decays}*{carried}", 0.7), ("0.2", 2.0)]
    found = manufactured.ManufacturedSolution(flow, gas, scalars=scalars)
    assert abs(found.source(X, Y, Z, 0.3)).max() < 1e-14
    np.testing.assert_allclose(found.scalars(X, Y, Z, 0.3)[0], np.exp(-0.4 / 7) * np.sin(2 * X - 0.3))
    faster = manufactured.ManufacturedSolution(flow, gas, scalars=[(scalars[0][0], 0.6)])
    assert abs(faster.source(X, Y, Z, 0.3)[5]).max() > 1e-3


def test_an_axisymmetric_flow_is_the_same_one_in_space():
    """By its formulas over the distance from the x axis, with v and w along the radius and around it."""
    flow = (
        "1 + 0.1*sin(2*x + 0.3)*cos(y)", "0.4 + 0.1*sin(x + 0.7)*cos(2*y)", "(0.2 + 0.1*cos(x))*sin(y)",
        "0.1*sin(2*x)*sin(y)", "0.7 + 0.1*cos(x + 1.1)*cos(y)",
    )  # fmt: skip
    gas = Gas(reynolds=20.0, viscosity={"law": "sutherland"})
    r, angle = "sqrt(y**2 + z**2)", 0.7
    rho, u, v, w, p = (text.replace("(y)", f"({r})").replace("2*y", f"2*{r}") for text in flow)
    turned = (rho, u, f"({v})*y/{r} - ({w})*z/{r}", f"({v})*z/{r} + ({w})*y/{r}", p)
    x, y = np.linspace(0, 1, 5), np.linspace(0.1, 1, 5)
    found = manufactured.ManufacturedSolution(flow, gas, axisymmetric=True).source(x, y, 0 * x)
    rates = manufactured.ManufacturedSolution(turned, gas).source(x, y * np.cos(angle), y * np.sin(angle))
    radial = rates[2] * np.cos(angle) + rates[3] * np.sin(angle)
    swirl = rates[3] * np.cos(angle) - rates[2] * np.sin(angle)
    np.testing.assert_allclose(found, [*rates[:2], radial, swirl, rates[4]], atol=1e-13)
    on_axis, beside = (
        manufactured.ManufacturedSolution(flow, gas, True).source(x, y, 0 * x) for y in (0 * x, 1e-3 + 0 * x)
    )
    np.testing.assert_allclose(on_axis[[0, 1, 4]], beside[[0, 1, 4]], atol=3e-6)


def test_every_condition_has_a_flow_or_is_none_of_a_given_one():
    """A condition that is added to the case file is added here, or to those that the page leaves out."""
    left_out = {"precursor-inflow", "recycling-inflow", "modelled-wall"}
    there = {entry["type"] for entries in mms.BOUNDARIES.values() for entry in entries}
    known = {condition.model_fields["type"].default for condition in boundaries.Condition.__subclasses__()}
    assert there | left_out == known and not there & left_out
    used = {name.partition(": ")[0] for name in BY_NAME}
    assert {name.removeprefix("given to ") for name in mms.BOUNDARIES} - {"periodic"} <= used
    assert all(word in mms.__doc__ for word in left_out)


def test_every_scheme_has_a_row():
    """A flux, interpolation or weights that are added to the kernels, or another inviscid form, are added here."""
    schemes = [Scheme(**keys) for _, keys in SCHEMES.values()]
    assert {f"Euler, {name}" for name in SCHEMES} <= BY_NAME.keys()
    interpolated = {(scheme.interpolation, scheme.weights) for scheme in schemes if scheme.inviscid == "afweno"}
    assert interpolated == {(name, w) for name in kernels.choices("interpolation") for w in suited_weights(name)}
    assert {scheme.flux for scheme in schemes} == set(kernels.choices("flux"))
    assert {scheme.space for scheme in schemes} == set(kernels.choices("space"))
    assert {scheme.inviscid for scheme in schemes} == set(get_args(Scheme.model_fields["inviscid"].annotation))
    stresses = get_args(Regularised.model_fields["stress"].annotation)
    assert {scheme.regularised.stress for scheme in schemes} == set(stresses)


def test_a_source_is_the_rate_and_what_leaves():
    flow = manufactured.ManufacturedSolution(mms.SPACE, Gas(reynolds=20.0, viscosity={"law": "sutherland"}))
    (rho, *_), h = flow.state(X, Y, Z, 0.2), 1e-5
    mass = (flow.state(X, Y, Z, 0.2 + h)[0] - flow.state(X, Y, Z, 0.2 - h)[0]) / (2 * h)
    for d in range(3):
        ends = []
        for side in (-h, h):
            place = [X, Y, Z]
            place[d] = place[d] + side
            s = flow.state(*place, 0.2)
            ends.append(s[0] * s[1 + d])
        mass += (ends[1] - ends[0]) / (2 * h)
    assert rho.shape == X.shape
    np.testing.assert_allclose(flow.source(X, Y, Z, 0.2)[0], mass, atol=1e-8)


@pytest.mark.parametrize(
    ("text", "fault"), [("1 +", "is not a formula"), ("1 + q", 'rho = "1 \\+ q": q is none of x, y, z and t')]
)
def test_a_formula_that_is_none_is_named(text, fault):
    with pytest.raises(ValueError, match=fault):
        manufactured.ManufacturedSolution((text, "0", "0", "0", "1"), Gas())


def test_without_sympy_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(HiresxError, match="manufactured solutions need SymPy") as error:
        manufactured.ManufacturedSolution(mms.PLANE, Gas())
    assert error.value.hint == "pip install '.[mms]' in the clone of HiresX"


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_an_unsteady_flow_stays_with_its_source(where):
    """Error by the scheme alone, of order 5; a source at the times of other stages leaves 1e-4."""
    found = []
    for points in (12, 24):
        setup = mms.Setup(mms.PLANE, (), (("weights", "linear"),), amplitude=0.02)
        flow = manufactured.ManufacturedSolution(mms.PLANE, setup.case(12).gas)
        solver = Solver(setup.case(points), backend(where))
        manufactured.start(solver, flow)
        manufactured.add_source(solver, flow)
        for _ in range(points // 6):
            assert solver.watched_step(lambda stage, task: True)
        block, values = solver.states[0].block, solver.primitives(0)
        exact = flow.state(block.x, block.y, block.z, solver.time)
        found.append(max(abs(values[n] - e).max() for n, e in zip(("rho", "u", "v", "w", "p"), exact, strict=True)))
    assert found[1] < 5e-6 and found[0] / found[1] > 2**4.2, found


# Except for three schemes, those whose kernels other tests have.
@pytest.mark.parametrize(
    "name",
    [
        "Euler, modified, linear",
        "Euler, modified, js",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "Euler, modified7, js",
                "Euler, hybrid, sharp blending",
                "Euler, regularised, isotropic",
                "Euler, 3-D",
                "Navier-Stokes, constant",
                "Navier-Stokes, sutherland",
                "slip-wall: Euler, oblique lines",
                "no-slip, T given: Navier-Stokes, oblique lines",
                "no-slip, adiabatic: Navier-Stokes, oblique lines",
                "no-slip, heat flux: Navier-Stokes, oblique lines",
                "no-slip, moving, blowing: Navier-Stokes, oblique lines",
                "total-pressure-inflow: Euler, oblique lines",
                "total-pressure-inflow: Euler, stretched lines",
                "pressure-outflow, mass flux: Euler, oblique lines",
                "axis: Navier-Stokes, oblique lines",
                "patched: Euler",
            )
        ),
    ],
)
def test_orders(name):
    check, bench = BY_NAME[name], Workbench("cpu")
    value = check.value(bench)
    assert check.limit.holds(value), (name, value, check.curve_values(bench))


@pytest.mark.parametrize(
    ("boundary", "flow", "reynolds", "least"),
    [
        ("prescribed", mms.THROUGH, 100.0, 4.5),
        ("inflow and outflow", mms.THROUGH, 500.0, 4.5),
        ("characteristic-inflow", mms.SUBSONIC, 100.0, 4.5),
        ("pressure-outflow", mms.LEAVING, 100.0, 4.5),
        ("pressure-outflow, scalar", mms.LEAVING, 100.0, 4.0),
    ],
    ids=["prescribed", "supersonic outflow", "subsonic inflow", "subsonic outflow", "scalar"],
)
def test_viscous_flow_through_faces(boundary, flow, reynolds, least):
    """It was of order 1.3 where the flow is prescribed, of .5 where it leaves faster than sound, and of none where it
    enters or leaves more slowly."""
    scalar = mms.COLOUR if "scalar" in boundary else None
    linear = (("weights", "linear"),)
    setup = mms.Setup(flow, (16, 24), linear, boundary, "y", reynolds, amplitude=0.0, scalar=scalar)
    found = mms.curves(Workbench("cpu"), setup)
    assert min(mms.orders(found)) > least, found


def test_a_table_has_errors_and_orders():
    curve = {"n": [16.0, 32.0], "L1": [3.2e-3, 1e-4], "L2": [6.4e-3, 1e-4], "Linf": [1e-2, 2.5e-3]}
    columns, rows = verification_tables.mms({"a flow": curve})
    assert columns == ["flow", "cells along each direction", "L1, order", "L2, order", "Linf, order"]
    assert rows == [["a flow", "16, 32", "0.0001, 5.00", "0.0001, 6.00", "0.0025, 2.00"]]
