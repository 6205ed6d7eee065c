"""Viscous flow that leaves at supersonic speed: noise leaves with it whatever the viscosity, and so do scalars."""

from functools import partial

import numpy as np
import pytest
from same_everywhere import same_everywhere
from scalar_cases import CARRIED, NAMES, SCHMIDT

from hiresx import Case, Simulation

STATE = {"rho": 1.0, "u": 2.0, "p": 1 / 1.4}
PERIODIC = {"faces": ["jmin", "jmax"], "type": "periodic"}


def through(reynolds, end, plan="auto", **tables):
    inflow = {"faces": ["imin"], "type": "supersonic-inflow", "state": STATE}
    grid = {"generator": "wavy", "n": [25, 9, 1], "lower": [0.0] * 3, "upper": [1.0, 0.5, 0.0], "periodic": ["y"]}
    case = {
        "grid": grid | {"amplitude": [0.02, 0.02, 0.0]},
        "gas": {"reynolds": reynolds},
        "time": {"end": end, "cfl": 0.5, "viscous_cfl": 0.4},
        "initial": {"state": STATE},
        "boundary": [inflow, {"faces": ["imax"], "type": "supersonic-outflow"}, PERIODIC],
        "plan": plan,
    }
    return Case.from_dict(case | tables)


def noise(x, y, z, strength=1e-2):
    chance = np.random.default_rng(1)
    rho, u, v, p = (strength * chance.standard_normal(x.shape) for _ in range(4))
    return 1 + rho, 2 + u, v, 0 * x, (1 + p) / 1.4


@pytest.mark.parametrize(
    ("reynolds", "end", "left"),
    [(100.0, 3.0, 1e-7), pytest.param(8.0, 3.0, 1e-4, marks=pytest.mark.slow), (1.0, 0.6, 1e-2)],
)
def test_noise_leaves(reynolds, end, left):
    """Cells' Reynolds numbers (u - c) d/nu of 4, 0.3 and 0.04: cubics of the viscous flux alone would blow up with the
    last."""
    run = Simulation(through(reynolds, end), "cpu", initial=noise)
    run.run(progress=False)
    for name, value in {**STATE, "v": 0.0}.items():
        assert abs(run.blocks[0].state(name) - value).max() < left, name


@pytest.mark.parametrize("reynolds", [30.0, 64.0])
def test_strong_noise_leaves_no_flow_of_its_own_at_the_face(reynolds):
    """Cells' Reynolds numbers of 1.2 and 2.6: with all of the cubic the last node stayed in an expansion for good."""
    run = Simulation(through(reynolds, 4.0), "cpu", initial=partial(noise, strength=0.07))
    run.run(progress=False)
    assert abs(run.blocks[0].state("rho") - 1.0).max() < 1e-6


def layers(x, y, z):
    wave = 0.1 * np.sin(4 * np.pi * y) * np.exp(-4 * x)
    return 1 + wave, 2 + wave, 0.5 * wave, 0 * x, (1 - wave) / 1.4


def coloured(where="cpu", comm=None, plan="auto", **arguments):
    inflow = {"faces": ["imin"], "type": "supersonic-inflow", "state": STATE, **CARRIED}
    boundary = [inflow, {"faces": ["imax"], "type": "supersonic-outflow"}, PERIODIC]
    scalar = [{"name": name, "schmidt": SCHMIDT[name], "initial": 1.0} for name in NAMES]
    spec = through(
        100.0, 10.0, plan, boundary=boundary, scalar=scalar, time={"steps": 12, "cfl": 0.5},
        checkpoint={"every_steps": 5},
    )  # fmt: skip
    return Simulation(spec, where, initial=layers, comm=comm, **arguments)


def test_ranks_plans_and_a_restart_have_the_same(tmp_path):
    same_everywhere(coloured, tmp_path / "run", 5, ("decomposed", "compact"))
