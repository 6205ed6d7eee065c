"""The field of the residual of steady runs: its values, in files, behind a restart and on ranks."""

from functools import cache

import numpy as np
import pytest
from ranks import run_ranks

from hiresx import Simulation, load
from hiresx.errors import HiresxError
from hiresx.output import fields

WRITTEN = 'output.variables=["rho", "residual"]'


@cache
def bump(*overrides: str):
    small = ["grid.cells=[4, 8, 4]", "grid.n_normal=13", "grid.first_spacing=0.1", "time.cfl=2.0"]
    return load("bump", preset="subsonic", overrides=['time.integrator="implicit"', *small, *overrides])


def test_it_is_the_rate_of_change_with_the_conditions():
    """C(q + e R) - q over e of the state that the last step left, by NumPy from the rates of the right-hand side."""
    simulation = Simulation(bump(), "cpu")
    largest = simulation.run(steps=4, progress=False)["implicit"]["largest"]
    shown = simulation.blocks[0].state("residual")
    solver, (state,) = simulation.solver, simulation.solver.states
    changed = solver.system.vector()
    step = state.interior(state.dt)
    before = state.interior(state.q).copy()
    solver.right_hand_side()
    state.interior(changed.arrays[0])[...] = before + step * state.interior(state.jacobian) * state.interior(state.r)
    solver.system.impose(changed, 0.0)
    rates = np.abs(state.interior(changed.arrays[0]) - before) / step
    np.testing.assert_allclose(shown, rates.max(axis=0), rtol=1e-9, atol=1e-9 * rates.max())
    i, j, k = largest["node"]
    assert shown[k, j, i] == shown.max() == largest["value"] > 0.0


def test_a_restart_writes_the_same(tmp_path):
    through, parts = tmp_path / "through", tmp_path / "parts"
    case = bump(WRITTEN)
    Simulation(case, "cpu", out=through).run(steps=5, progress=False)
    Simulation(case, "cpu", out=parts).run(steps=3, progress=False)
    Simulation(case, "cpu", out=parts, restart=parts).run(steps=2, progress=False)
    first, found, wanted = (
        fields.read(folder / name, ["residual"]).blocks[0].state["residual"]
        for folder, name in ((through, "fields_000000.nc"), (parts, "fields_000005.nc"), (through, "fields_000005.nc"))
    )
    assert not first.any() and wanted.min() > 0.0
    np.testing.assert_array_equal(found, wanted)


def on_ranks(comm, case):
    simulation = Simulation(case, "cpu", comm=comm)
    simulation.run(steps=4, progress=False)
    return [(block.first, block.state("residual")) for block in simulation.blocks]


@pytest.mark.slow
def test_ranks_have_the_same():
    case = bump("implicit.lines=none")
    ((_, wanted),) = run_ranks(1, on_ranks, case)[0]
    parts = [part for theirs in run_ranks(2, on_ranks, case) for part in theirs]
    assert len(parts) == 2
    for (i, j, k), found in parts:
        nk, nj, ni = found.shape
        there = wanted[k : k + nk, j : j + nj, i : i + ni]
        np.testing.assert_allclose(found, there, rtol=1e-6, atol=1e-6 * wanted.max())


@pytest.mark.parametrize("integrator", ["ssp_rk3", "bdf2"])
def test_other_runs_have_none(integrator, tmp_path):
    other = ["time.cfl=0.5", f'time.integrator="{integrator}"', "time.steps=1", WRITTEN]
    with pytest.raises(HiresxError, match='this run has no field "residual"'):
        Simulation(load("bump", preset="subsonic", overrides=other), "cpu", out=tmp_path)
