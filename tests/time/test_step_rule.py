"""The rule for the time step, which Python and kernels state once each: the same to the last bit."""

import math
from itertools import product
from shutil import copytree

import numpy as np
import pytest
from kernels_alone import BACKENDS, program

from hiresx import Simulation, kernels, load
from hiresx.device import Configuration
from hiresx.estimate import estimate
from hiresx.time.step_clock import DeviceClock
from hiresx.time.step_rule import largest_step, radii_are_finite, step_towards, steps_towards, time_advances

KERNEL = """#include "step_rule.h"
KERNEL(rule, int i, int j, int k, const double *given, double *found) {
    const double *of = given + 7 * i;
    found[4 * i] = largest_step(of[0], of[1], of[2], of[3]);
    found[4 * i + 1] = goes_on(of[4], of[5], of[6]);
    found[4 * i + 2] = survived(of[2], of[3]);
    found[4 * i + 3] = step_towards(of[6], of[5]);
}
"""
ODD = (0.0, 1e-300, 0.3, 7.1, 1e300, math.inf, math.nan)


def rows() -> np.ndarray:
    """cfl, viscous_cfl, radii, and time, step and what is left: odd numbers, and 500 drawn ones, half of them with what
    one or two steps leave hardly any of."""
    radii = [(0.5, 0.25, *radii, 0.0, 1.0, 2.0) for radii in product(ODD, ODD)]
    ends = [(0.5, 0.25, 1.0, 1.0, *end) for end in product((0.0, 3.0, 1e16), (0.0, 1e-9, 0.7, math.nan), ODD)]
    drawn = np.random.default_rng(5).uniform(0.1, 3.0, (500, 7))
    drawn[:250, 5] *= 1e-16
    drawn[250:, 6] = drawn[250:, 5] * np.tile((1.0, 1.001, 1.002, 2.0, 2.002), 50)
    return np.concatenate([radii, ends, drawn])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_rule_is_the_same_in_python_and_in_kernels(backend, tmp_path):
    root = tmp_path / "kernels"
    copytree(kernels.ROOT, root)
    for header in (root / "boundary").glob("*.h"):
        header.unlink()
    (root / "solver.h").write_text(KERNEL)
    given = rows()
    found = np.zeros((len(given), 4))
    BACKENDS[backend](root).compile(Configuration(positivity="none")).launch(
        "rule", (len(given), 1, 1), given=given, found=found
    )
    wanted = [
        (largest_step(*g[:4]), time_advances(*g[4:]), radii_are_finite(*g[2:4]), step_towards(g[6], g[5]))
        for g in given.tolist()
    ]
    assert np.array_equal(found, np.array(wanted, float), equal_nan=True)
    assert {*np.unique(found[:, 1]), *np.unique(found[:, 2])} == {0.0, 1.0}


@pytest.mark.parametrize(
    ("left", "steps"),
    [
        (0.3, [0.3]), (1.0, [1.0]), (1.0009, [1.0009]), (1.5, [0.75, 0.75]), (2.0018, [1.0009, 1.0009]),
        (2.1, [1.0, 0.55, 0.55]), (4.0001, [1.0, 1.0, 1.00005, 1.00005]),
    ],
)  # fmt: skip
def test_the_last_steps_before_a_time_are_even(left, steps):
    """At most a thousandth longer than the flow allows, and none is a small one."""
    found, time = [], 0.0
    while time < left:
        found.append(step_towards(left - time, 1.0))
        time += found[-1]
    assert found == pytest.approx(steps, rel=1e-12) and steps_towards(left, 1.0) == len(steps)


@pytest.mark.parametrize(("size", "steps"), [(None, 20), ("time.dt=0.01", 30)], ids=["by CFL number", "fixed"])
@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_samples_just_beyond_a_step_take_no_small_ones(device, size, steps):
    """Two steps lead to each of ten samples, not three, where the step is not fixed; `check` knows."""
    given = ["grid.n=[20,1,1]", "parameters.amplitude=0.0", *([] if size is None else [size])]
    end = 10 * 2.00016 * Simulation(load("density-wave", overrides=given), "cpu").solver.choose_dt()
    given += [f"time.end={end!r}", f'probe=[{{name="a",x=0.5,every_time={end / 10!r}}}]']
    simulation = Simulation(load("density-wave", overrides=given), device)
    simulation.run(progress=False)
    (probe,) = [a for a in simulation.attachments if a.name == "history.a"]
    assert simulation.step_count == steps == estimate(simulation.case)["steps"]
    assert simulation.time == end and probe.history.samples == 11


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
    assert dt[0] == (wanted if time_advances(0.0, wanted) else -1.0)
