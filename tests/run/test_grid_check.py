"""A grid that cannot be computed on is refused before its kernels are compiled."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from hiresx.case import load
from hiresx.decomposition.domain import domain
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.simulation import grid_check
from hiresx.solver import Solver

FOLDED = """
[grid]
generator = "wavy"
n = [24, 20, 1]
lower = [0.0, 0.0, 0.0]
upper = [1.0, 1.0, 1.0]
amplitude = [0.3, 0.0, 0.0]
[[boundary]]
faces = ["imin", "imax", "jmin", "jmax"]
type = "supersonic-outflow"
[time]
steps = 1
[initial.state]
rho = 1.0
p = 0.7
"""


def never():
    return False


@pytest.fixture
def folded(tmp_path):
    (tmp_path / "case.toml").write_text(FOLDED)
    return tmp_path


def test_a_folded_grid_is_refused_as_the_kernels_do(folded):
    case = load(folded / "case.toml")
    with pytest.raises(HiresxError, match="grid lines fold over each other there") as ahead:
        grid_check.refuse_folded(case, domain(case), never)
    with pytest.raises(HiresxError) as found:
        Solver(case, backend("cpu"))
    assert str(ahead.value) == str(found.value)
    grid_check.refuse_folded(case, domain(case), lambda: True)  # the kernels are there


CASES = {
    "sphere": ["grid.n_around=12", "grid.n_normal=10"],
    "cylinder-o": [],
    "planar-jet": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_volumes_are_those_of_the_kernels(name):
    case = load(name, overrides=CASES[name])
    ground = domain(case)
    solver = Solver(case, backend("cpu"), domain=ground)
    for n, state in enumerate(solver.states):
        poles = [p for p in ground.cut.patches if p.block == n and p.condition.kernel == "pole"]
        coordinates = ground.coordinates(ground.cut.parts[n])
        volume = grid_check._volumes(coordinates, ground.whole.stencil, slice(0, state.size[2]), poles)
        kernels = 1 / np.asarray(state.interior(state.jacobian), dtype=float)
        known = np.isfinite(volume)
        assert known.sum() > 0.9 * known.size and (poles or known.all())
        np.testing.assert_allclose(volume[known], kernels[known], rtol=1e-12)
    grid_check.refuse_folded(case, ground, never)


@pytest.fixture
def slow_compiler(tmp_path):
    """The environment of one that does not come to an end, and where it leaves its number."""
    compiler, pid = tmp_path / "slow-g++", tmp_path / "pid"
    compiler.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec echo 1\necho $$ > {pid}\nsleep 300\nsleep 300\n')
    compiler.chmod(0o755)
    more = {"CXX": str(compiler), "HIRESX_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    return os.environ | more, pid


def test_the_refusal_does_not_wait_for_the_compiler(folded, slow_compiler):
    words = [sys.executable, "-m", "hiresx", "run", folded, "--backend", "cpu", "--out", folded / "out"]
    done = subprocess.run(words, env=slow_compiler[0], capture_output=True, text=True, timeout=150)
    assert done.returncode == 2 and "cell volume" in done.stderr, done.stderr
    assert not (folded / "out").exists()


def test_a_compiler_ends_with_the_process_that_began_it(tmp_path, slow_compiler):
    environment, pid = slow_compiler
    begin = (
        "from hiresx.device import Configuration, asynchronous_compilation\n"
        "asynchronous_compilation.start_compilation(Configuration(), 'cpu')"
    )
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(pid)!r}).exists(): time.sleep(0.01)"
    subprocess.run([sys.executable, "-c", f"{begin}\n{wait}"], env=environment, check=True, timeout=150)
    number, deadline = pid.read_text().strip(), time.monotonic() + 60
    while number and os.path.exists(f"/proc/{number}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not number or not os.path.exists(f"/proc/{number}")
    assert list((tmp_path / "cache").iterdir()) == []
