"""A user's program that .ci/types checks by mypy: every name must have a known type. It is never run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import hiresx
from hiresx.case import Case
from hiresx.results import Run
from hiresx.simulation import BlockView, Simulation


def pulse(x: np.ndarray, y: np.ndarray, z: np.ndarray, t: float = 0.0) -> tuple[np.ndarray | float, ...]:
    return 1 + 0.1 * np.exp(-(x**2)), 0.0, 0.0, 0.0, 1.0


def density(simulation: Simulation) -> Mapping[str, float]:
    return {"rho": max(float(block.state("rho").max()) for block in simulation.blocks)}


case = hiresx.load("sod", overrides=["grid.n=[50,1,1]"])
assert_type(case, Case)
assert_type(case, hiresx.Case)
assert_type(case.gas.gamma, float)
assert_type(case.time.end, float | None)

simulation = hiresx.Simulation(case, out=Path("run"), initial=pulse, monitors=[density])
assert_type(simulation, Simulation)
assert_type(simulation.step(), float)
assert_type(simulation.step_count, int)
assert_type(simulation.time, float)
assert_type(simulation.blocks, list[BlockView])
assert_type(simulation.blocks[0].state("rho"), np.ndarray)
assert_type(simulation.blocks[0].states("rho", "p"), list[np.ndarray])
assert_type(simulation.blocks[0].name, str)
assert_type(simulation.run(steps=2), dict[str, Any])
try:
    run = hiresx.open("run")
except hiresx.HiresxError as error:
    assert_type(error, hiresx.HiresxError)
    assert_type(error.message, str)
    assert_type(error.hint, str)
else:
    assert_type(run, Run)

# Each of these is wrong, and must be told so: warn_unused_ignores is on.
hiresx.load(3)  # type: ignore[arg-type]
hiresx.Simulation(case, backnd="cpu")  # type: ignore[call-arg]
simulation.blocks[0].state(1)  # type: ignore[arg-type]
hiresx.lood  # type: ignore[attr-defined]  # noqa: B018
