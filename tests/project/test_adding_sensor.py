"""README's "Where do I add...": a field that the fluxes read, done in a copy."""

import json

import numpy as np
import pytest
from ranks import launcher
from test_adding import _in_a_copy


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_a_sensor_goes_ahead_of_the_fluxes(device, tmp_path):
    """In a copy: a flux that reads a sensor of shocks, which a term computes and whose halos follow it; by every plan,
    on one rank and on two, and from a restart to the last bit."""
    flows = {}
    for ranks in (1, 2) if launcher() else (1,):
        place = tmp_path / str(ranks)
        done = _in_a_copy(("field that the fluxes read, such as a sensor",), "sensed.py", device, ranks, place)
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["off"] < 1e-13 and found["repeats"] and found["shocked"] == 33.0
        assert found["same"]
        flows[ranks] = np.load(place / "out/flow.npy")
        if ranks == 1:
            assert found["plans"] < 1e-13 and 0 <= found["bytes"] - found["planned"] <= 8
            assert found["shocks"] == 0.0 and found["contact"] > 1e-3
    assert all(np.abs(flow - flows[1]).max() < 1e-13 for flow in flows.values())
