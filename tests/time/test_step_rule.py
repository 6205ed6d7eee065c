"""The rule for the time step, which Python and kernels state once each: the same to the last bit."""

import math
from itertools import product
from shutil import copytree

import numpy as np
import pytest
from kernels_alone import BACKENDS, program

from hiresx import kernels
from hiresx.device import Configuration
from hiresx.time.step_clock import DeviceClock
from hiresx.time.step_rule import goes_on, largest_step, survived

KERNEL = """#include "step_rule.h"
KERNEL(rule, int i, int j, int k, const double *given, double *found) {
    const double *of = given + 7 * i;
    found[3 * i] = largest_step(of[0], of[1], of[2], of[3]);
    found[3 * i + 1] = goes_on(of[4], of[5], of[6]);
    found[3 * i + 2] = survived(of[2], of[3]);
}
"""
ODD = (0.0, 1e-300, 0.3, 7.1, 1e300, math.inf, math.nan)


def rows() -> np.ndarray:
    """cfl, viscous_cfl, radii, and time, step and what is left: odd numbers, and 500 drawn ones."""
    radii = [(0.5, 0.25, *radii, 0.0, 1.0, 2.0) for radii in product(ODD, ODD)]
    ends = [(0.5, 0.25, 1.0, 1.0, *end) for end in product((0.0, 3.0, 1e16), (0.0, 1e-9, 0.7, math.nan), ODD)]
    drawn = np.random.default_rng(5).uniform(0.1, 3.0, (500, 7))
    drawn[:250, 5] *= 1e-16
    return np.concatenate([radii, ends, drawn])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_rule_is_the_same_in_python_and_in_kernels(backend, tmp_path):
    root = tmp_path / "kernels"
    copytree(kernels.ROOT, root)
    for header in (root / "boundary").glob("*.h"):
        header.unlink()
    (root / "solver.h").write_text(KERNEL)
    given = rows()
    found = np.zeros((len(given), 3))
    BACKENDS[backend](root).compile(Configuration(positivity="none")).launch(
        "rule", (len(given), 1, 1), given=given, found=found
    )
    wanted = [(largest_step(*g[:4]), goes_on(*g[4:]), survived(*g[2:4])) for g in given.tolist()]
    assert np.array_equal(found, np.array(wanted, float), equal_nan=True)
    assert {*np.unique(found[:, 1]), *np.unique(found[:, 2])} == {0.0, 1.0}


@pytest.mark.parametrize(("inviscid", "viscous"), [(3.7, 0.0), (3.7, 1.9), (3.7, 191.3), (math.nan, 2.0)])
def test_the_device_chooses_the_step_by_it(inviscid, viscous):
    """And says that a flow with radii that are no numbers allows none."""
    clock, dt = np.zeros(len(DeviceClock)), np.zeros(1)
    clock[[DeviceClock.UNTIL, DeviceClock.CFL, DeviceClock.VISCOUS_CFL]] = 1e9, 0.9, 0.4
    radii = np.array([inviscid, viscous])
    program("emulated", ("clock.h",)).launch(
        "choose_step", (1, 1, 1), blocks=1, few=np.ones(1, np.int32), radii=np.pad(radii, (0, 62)), last=0,
        clock=clock, dt=dt,
    )  # fmt: skip
    wanted = largest_step(0.9, 0.4, inviscid, viscous)
    assert dt[0] == (wanted if goes_on(0.0, wanted) else -1.0)
