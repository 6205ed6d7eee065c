"""A case that takes a moment, and a sweep over it."""

from pathlib import Path

from case_texts import boundary, box

CASE = box(
    "[41, 1, 1]", "[1.0, 0.0, 0.0]", "steps = 40\ndt = 1e-3",
    '[initial]\nfunction = "initial"\n[monitor]\nevery = 1\n[checkpoint]\nevery_steps = 5',
    boundary("slip-wall"), "[presets.fine]\ngrid.n = [61, 1, 1]",
    head='title = "A pulse in a tube"\nmonitors = ["wait"]\n[parameters]\nstrength = 0.1',
)  # fmt: skip
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
