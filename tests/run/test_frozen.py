"""A profile that changes in time and is evaluated once: said by `check` and by a run, with its keys."""

import json

import numpy as np
import pytest
from command_line import command

from hiresx.case import load
from hiresx.case.toml import dumps
from hiresx.decomposition import decompose
from hiresx.grid import build
from hiresx.rhs import frozen

FUNCTIONS = """
import numpy as np

def enters(x, y, z, t, *, wobble, speed, other):
    return 1.0, speed + wobble * np.sin(7 * t) * np.exp(-(y / other) ** 2), 0.0, 0.0, 0.7
"""
CASE = {
    "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
    "time": {"steps": 1},
    "parameters": {"wobble": 0.02, "speed": 2.0, "other": 0.3},
    "initial": {"state": {"rho": 1.0, "u": 2.0, "p": 0.7}},
    "boundary": [
        {"faces": ["imax"], "type": "supersonic-outflow"},
        {"faces": ["imin"], "type": "profile-inflow", "function": "enters"},
        {"faces": ["jmin", "jmax"], "type": "slip-wall"},
    ],
}
SAID = 'boundary.1: "enters" changes in time (parameters.wobble = 0.02), but is evaluated once, at the start'


@pytest.fixture
def case(tmp_path):
    (tmp_path / "case.toml").write_text(dumps(CASE))
    (tmp_path / "case.py").write_text(FUNCTIONS)
    return tmp_path


def test_check_and_run_say_it(case):
    status, out, _ = command("check", case, "--json")
    (said,) = [line for line in json.loads(out)["setup"]["warnings"] if "frozen" in line]
    assert status == 0 and said.startswith(SAID) and "boundary.1.steady = false" in said
    status, out, err = command("run", case, "--backend", "cpu", "--out", case / "out")
    assert status == 0 and "".join((out + err).split()).count("".join(SAID.split())) == 1


@pytest.mark.parametrize("override", ["boundary.1.steady=false", "parameters.wobble=0.0"])
def test_what_changes_or_stands_still_is_no_matter(case, override):
    spec = load(case, overrides=[override])
    assert list(frozen.notes(spec, decompose(spec, build(spec.grid)))) == []


def test_functions_of_python(case):
    spec = load(case)
    cut = decompose(spec, build(spec.grid))
    still = {"enters": lambda x, y, z, t: (1.0, 2.0, 0.0, 0.0, 0.7)}
    assert list(frozen.notes(spec, cut, still)) == []
    (said,) = frozen.notes(spec, cut, {"enters": lambda x, y, z, t: (1.0, 2.0 + 0.1 * np.cos(t), 0.0, 0.0, 0.7)})
    assert "(parameters" not in said and "boundary.1.steady" in said
    assert list(frozen.notes(spec, cut, {"enters": lambda x, y, z, t: 1 / 0})) == []  # is told when it is used


# --- waves that are faster than the time step resolves

FAST = """
from hiresx import Waves

def enters(x, y, z, t, *, wobble, speed, other):
    # the second has no amplitude anywhere
    return 1.0, Waves(speed, [other, 1e6], sin=[wobble, 0.0]), 0.0, 0.0, 0.7

def still(x, y, z, t, *, speed):
    return 1.0, speed, 0.0, 0.0, 0.7

def dyed(x, y, z, t, *, wobble, other):
    return Waves(0.5, [other, 1e6], sin=[wobble, 0.0])
"""


@pytest.mark.parametrize("of", ["the gas", pytest.param("a scalar", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("steps", "said"), [(1.5, "it enters as a slower one"), (4.0, "8 resolve it: take"), (9.0, "")]
)
def test_waves_faster_than_the_step_resolves(case, steps, said, of):
    (case / "case.py").write_text(FAST)
    name, entering = "enters", {"steady": False}
    scalars = {}
    if of == "a scalar":
        name, entering = "dyed", {"steady": False, "function": "still", "scalars": {"dye": "dyed"}}
        scalars = {"scalar": [{"name": "dye", "schmidt": 1.0}]}
    dt = 1e-3
    parameters = {"wobble": 0.02, "speed": 2.0, "other": 1 / (steps * dt)}
    boundary = [CASE["boundary"][0], CASE["boundary"][1] | entering, CASE["boundary"][2]]
    changed = {"parameters": parameters, "boundary": boundary, "time": {"steps": 3, "dt": dt}} | scalars
    (case / "case.toml").write_text(dumps(CASE | changed))
    wanted = (
        f'boundary.1: "{name}" gives a wave of f L / c_ref = {1 / (steps * dt):.4g}, of which {steps:.2g} time steps'
    )
    status, out, _ = command("check", case, "--json")
    lines = [line for line in json.loads(out)["setup"]["warnings"] if "gives a wave" in line]
    assert status == 0 and len(lines) == bool(said)
    assert all(line.startswith(wanted) and said in line and "of 0.001 make a period" in line for line in lines)
    status, out, err = command("run", case, "--backend", "cpu", "--out", case / "out")
    assert status == 0 and "".join((out + err).split()).count("".join(wanted.split())) == bool(said)
