"""Viscous fluxes that a kernel for GPUs computes from the state, without stored primitives."""

import numpy as np
import pytest
from vortices import taylor_green

from hiresx.case import load
from hiresx.decomposition import domain
from hiresx.decomposition.partition import Part
from hiresx.device import backend
from hiresx.rhs import viscous_plan
from hiresx.solver import Solver

# Columns of two and a half tiles each way, in chunks that do not divide them.
SIZES = "grid.n=[37,29,23]"
EIGHTH_ORDER = ('scheme.interpolation="modified7"', 'scheme.weights="z"', "scheme.viscous_order=8")


def names(solver: Solver) -> list[str]:
    return [call.name for block in solver.terms.viscous for call in (*block.primitives.inner, *block.flux.inner)]


@pytest.mark.parametrize(
    ("precision", "keys"),
    [("fp64", ()), ("fp32", ()), ("fp64", ("scalar=[{name='dye'}]",)), ("fp32", EIGHTH_ORDER)],
    ids=["fp64", "fp32", "scalar", "eighth order"],
)
def test_it_finds_the_bits_of_stored_primitives(monkeypatch, precision, keys):
    monkeypatch.setattr(viscous_plan, "march_chunk", lambda *_: 9)
    solver = Solver(taylor_green(SIZES, f'scheme.precision="{precision}"', *keys), backend("emulated"), plan="fused")
    solver.initialize()
    (state,), (block,) = solver.states, solver.terms.viscous
    assert names(solver) == ["viscous_march"]
    stored = viscous_plan.Viscous(
        solver.program, state, solver.case.gas.reynolds, solver.case.stencil.difference_reach, ahead=True
    )
    found = []
    for launches in (block, stored):
        block.all_fluxes[...] = np.nan
        for call in (*launches.primitives.inner, *launches.flux.inner):
            solver.program.run(call)
        solver.backend.synchronize()
        found.append(np.array(state.interior(block.all_fluxes)))
    assert np.isfinite(found[1]).all() and np.ptp(found[1]) > 0
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        # walls give the primitives other ghosts than the state
        ("channel", ["grid.n=[9,17,9]", 'turbulence.model="none"']),
        ("taylor-green", [SIZES, 'turbulence.model="wale"']),
        ("taylor-green", [SIZES, 'scheme.precision="mixed"']),
        ("taylor-green", [SIZES, *EIGHTH_ORDER]),  # more shared memory than some GPUs have
        ("shear-wave", []),  # two dimensions
    ],
)
def test_other_flows_store_the_primitives(name, keys):
    solver = Solver(load(name, overrides=keys), backend("emulated"), plan="fused")
    assert {"viscous_primitives", "viscous_flux"} <= set(names(solver))


def test_blocks_beside_each_other_have_the_bits_of_one():
    case = taylor_green(SIZES)
    whole = Solver(case, backend("emulated"), plan="fused")
    boxes = [((0, 20), (0, 29), (0, 23)), ((20, 37), (0, 29), (0, 23))]
    parts = domain(case, parts=lambda whole: [Part(0, box) for box in boxes])
    cut = Solver(case, backend("emulated"), plan="fused", domain=parts)
    for solver in (whole, cut):
        solver.initialize()
        solver.advance(1)
        assert set(names(solver)) == {"viscous_march"}
    left, right = (np.array(state.interior(state.q)) for state in cut.states)
    (state,) = whole.states
    assert np.allclose(np.concatenate([left, right], axis=-1), state.interior(state.q), rtol=1e-13, atol=1e-13)
