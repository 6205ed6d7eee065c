"""Precisions that keep fields in FP32: small increments are not lost, a restart is the same run, memory is as planned,
and what cannot be combined is refused. That their kernels agree on all backends, test_backends_agree.py shows."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.case import load
from hiresx.device import Configuration, backend
from hiresx.errors import HiresxError
from hiresx.estimate import memory_bytes
from hiresx.solver import Solver
from hiresx.solver.case_configuration import check_reference

AMPLITUDE = 1e-5


def wave(precision: str, *sets: str) -> Solver:
    """A weak plane sound wave."""
    sets = (f"parameters.amplitude={AMPLITUDE}", "grid.n=[16, 1, 1]", f'scheme.precision="{precision}"', *sets)
    solver = Solver(load("plane-wave", overrides=list(sets)), backend("cpu"))
    solver.initialize()
    return solver


def moved(precision: str) -> np.ndarray:
    """What 300 steps change of u, each of them by some hundredths of the last bit of an FP32 number of that size."""
    solver = wave(precision, "time.dt=1e-9")
    before = solver.primitives(0)["u"]
    for _ in range(300):
        solver.step()
    return solver.primitives(0)["u"] - before


BOTH = [pytest.param(name, marks=pytest.mark.slow) for name in ("mixed", "differences")]


@pytest.mark.slow
def test_increments_below_the_last_bit_add_up():
    wanted, found = moved("fp64"), moved("differences")
    assert 0 < np.abs(wanted).max() < 1e-4 * AMPLITUDE
    assert np.abs(found - wanted).max() < 0.01 * np.abs(wanted).max()


@pytest.mark.parametrize("precision", BOTH)
def test_weak_sound_is_that_of_fp64(precision):
    runs = [wave(kind) for kind in ("fp64", precision)]
    for solver in runs:
        for _ in range(100):
            solver.step()
    exact, found = (solver.primitives(0)["u"] for solver in runs)
    assert np.abs(found - exact).max() < 1e-5 * AMPLITUDE


@pytest.mark.parametrize("precision", BOTH)
def test_a_restart_is_the_same_run(precision):
    first, second = wave(precision), wave(precision)
    for _ in range(5):
        first.step()
    pieces = {piece.name: np.array(piece.array) for piece in first.pieces()}
    assert ("carry.0" in pieces) == (precision == "differences")
    second.restore(first.values(), lambda name, box: pieces[name])
    for solver in (first, second):
        for _ in range(5):
            solver.step()
    for a, b in zip(first.pieces(), second.pieces(), strict=True):
        assert np.array_equal(np.array(a.array), np.array(b.array)), a.name


@pytest.mark.parametrize("precision", BOTH)
def test_memory_is_as_planned(precision):
    solver = wave(precision)
    assert memory_bytes(solver.case, solver.grid.blocks) == solver.bytes - solver.states[0].dt.nbytes


def test_what_cannot_be_combined_is_refused():
    with pytest.raises(HiresxError, match="does not carry passive scalars"):
        load("sod", overrides=['scheme.precision="differences"', "scalar=[{name='dye'}]"])
    with pytest.raises(HiresxError, match=r'needs scheme\.precision = "differences"'):
        load("sod", overrides=["scheme.reference={rho=1.0, p=1.0}"])


def test_a_moving_reference_over_a_rotation_is_refused():
    def cut(rotation):
        return SimpleNamespace(connections=[SimpleNamespace(rotation=rotation)])

    moving = Configuration(precision="differences", reference=(1.0, 0.5, 0.0, 0.0, 2.0))
    check_reference(moving, cut(None))
    check_reference(Configuration(), cut(np.eye(3)))
    with pytest.raises(HiresxError, match="connected by a rotation"):
        check_reference(moving, cut(np.eye(3)))
