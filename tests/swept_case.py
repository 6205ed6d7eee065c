"""A case that takes a moment, and a sweep over it."""

from pathlib import Path

CASE = """
title = "A pulse in a tube"
monitors = ["wait"]

[parameters]
strength = 0.1

[grid]
generator = "box"
n = [41, 1, 1]
lower = [0.0, 0.0, 0.0]
upper = [1.0, 0.0, 0.0]

[time]
steps = 40
dt = 1e-3

[initial]
function = "initial"

[monitor]
every = 1

[checkpoint]
every_steps = 5

[[boundary]]
faces = "all"
type = "slip-wall"

[presets.fine]
grid.n = [61, 1, 1]
"""
FUNCTIONS = """
import os
import time

import numpy as np


def initial(x, y, z, *, strength, gamma):
    p = (1 + strength * np.exp(-100 * (x - 0.5) ** 2)) / gamma
    return (gamma * p) ** (1 / gamma), 0.0, 0.0, 0.0, p


def wait(simulation, *, strength):
    # the second run waits in the midst for the test, which is no part of the case
    while strength == 0.2 and simulation.step_count == 12 and os.path.exists(os.environ.get("HOLD", "")):
        time.sleep(0.02)
    return {"passed": simulation.step_count}
"""
SET = ("--set", "parameters.strength=0.1,0.2,0.3")
LOOK = ("--column", "residual.rho:max", "--column", "wait.passed:mean")


def written(folder: Path) -> Path:
    folder.mkdir()
    (folder / "case.toml").write_text(CASE)
    (folder / "case.py").write_text(FUNCTIONS)
    return folder
