"""README's "Where do I add...": an interpolation that reaches farther than those that are there, done in a copy."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from arrangements import shaken
from paths import ROOT
from ranks import ENVIRONMENT, launcher
from test_adding import LESS_OPTIMISED, _put

from hiresx.grid import write_plot3d


@pytest.mark.slow
def test_an_interpolation_of_seventh_order_widens_the_halo(tmp_path):
    """Seven nodes, linear, in the one header: four ghost layers, and with the next term of the correction the scheme is
    of seventh order too, for a passive scalar as well; uniform flow, cuts, a restart and the CUDA form."""
    _put(tmp_path, ("weights, interpolation, positivity",))
    path = os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])
    ends = {}
    for device, ranks in (("cpu", 1), ("cpu", 2), ("emulated", 1)):
        if ranks > 1 and not launcher():
            continue
        folder = tmp_path / f"{device}-{ranks}"
        folder.mkdir()
        write_plot3d(folder / "grid.xyz", shaken((19, 20, 11)))
        command = [sys.executable, str(ROOT / "tests/added/widened.py"), device, str(folder)]
        command = [*launcher(), "-n", str(ranks), *command] if ranks > 1 else command
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": path, "CXX": str(LESS_OPTIMISED)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout + done.stderr
        one = json.loads(done.stdout.splitlines()[-1])
        ends[device, ranks] = np.load(folder / "flow.npy")
        assert one["halo"] == [4, 4, 4] and one["same"]
        if ranks == 1:
            assert "8 nodes along i" in one["refused"] and "9 or more are needed" in one["refused"]
            assert 0 <= one["bytes"] - one["planned"] <= 8  # the one step of all points
            assert one["interpolation"] == pytest.approx(7, abs=0.1)
            assert one["rates"] == pytest.approx([7, 7], abs=0.3)  # of density and scalar
            assert max(one["off"].values()) < 1e-12 and len(one["off"]) == 8
    for end in ends.values():
        assert np.abs(end - ends["cpu", 1]).max() < 1e-13
