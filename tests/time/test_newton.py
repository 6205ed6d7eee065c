"""One step of Newton's method: how it is shortened, and when it is none."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.time.newton import newton_step

START = 3.0


def step(accepts, admissible=1.0, solve=None):
    """Of arctan x = 0 from x = 3, where the whole step leads farther away. Returns what is found, the trial and whether
    blocks were checked."""
    checked = []

    def exactly(product, precondition, right, drop, direction):
        direction[:] = right * (1 + START**2)
        return drop / 10, 2

    def axpy(factor, x, y):
        y += factor * x

    x, f = np.array([START]), np.array([-math.atan(START)])
    direction, trial = np.zeros(1), np.zeros(1)
    found = newton_step(
        SimpleNamespace(copy=lambda one, other: np.copyto(other, one), axpy=axpy),
        SimpleNamespace(
            precondition=None, check_blocks=lambda: checked.append(True), admissible_share=lambda x, d: admissible,
        ),
        solve or exactly, None, x, f, direction, trial, lambda: abs(math.atan(trial[0])), accepts, 0.1,
    )  # fmt: skip
    assert x[0] == START
    return found, trial[0], bool(checked)


def test_a_step_is_halved_until_it_is_accepted():
    before = math.atan(START)
    whole = -math.atan(START) * (1 + START**2)
    found, trial, _ = step(lambda after: after < before)
    assert abs(math.atan(START + whole)) > before  # not the whole one
    assert found == (0.25, abs(math.atan(START + 0.25 * whole)), pytest.approx(0.01), 2)
    assert trial == START + 0.25 * whole
    assert step(lambda after: after < 1.2 * before)[0][0] == 1.0


def test_a_step_is_no_longer_than_is_admissible():
    assert step(lambda after: True, admissible=0.125)[0][0] == 0.125
    assert step(lambda after: True, admissible=0.0)[0] is None


def test_no_share_that_is_accepted_is_no_step():
    tried = []
    assert step(lambda after: bool(tried.append(after)))[0] is None
    assert len(tried) == 5 and len(set(tried)) == 5


def test_equations_without_a_solution_are_no_step():
    def fails(*given):
        raise FloatingPointError

    found, _, checked = step(lambda after: True, solve=fails)
    assert found is None and checked
