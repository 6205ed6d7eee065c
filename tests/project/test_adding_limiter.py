"""README's "Where do I add...": a flux limiter under another name than that of the one there, done in a copy."""

import json

import numpy as np
import pytest
from ranks import launcher
from test_adding import _in_a_copy

from hiresx import BlowUp, Simulation, load


def flow(positivity: str) -> np.ndarray:
    """What tests/added/limited.py computes, by a positivity that is there."""
    case = load("vacuum", overrides=["grid.n=[60,1,1]", "time.steps=24", f'scheme.positivity="{positivity}"'])
    run = Simulation(case, "cpu")
    run.run(progress=False)
    (state,) = run.solver.states
    return np.array(state.interior(state.q)).ravel()


@pytest.mark.slow
def test_a_flux_limiter_has_any_name(tmp_path):
    """The text of "limiter" as a header of another name does the same: what it declares decides, on CPU and
    emulated, on two ranks and from a restart to the last bit. Without it the flow blows up, and with "fallback" it is
    another one."""
    wanted = flow("limiter")
    ways = [("cpu", 1), ("emulated", 1), *([("cpu", 2)] if launcher() else [])]
    for device, ranks in ways:
        place = tmp_path / f"{device}-{ranks}"
        done = _in_a_copy(("weights, interpolation, positivity",), "limited.py", device, ranks, place)
        found = json.loads(done.stdout.splitlines()[-1])
        assert found == {"same": True, "steps": 24}
        assert np.abs(np.load(place / "out/flow.npy") - wanted).max() < 1e-12
    with pytest.raises(BlowUp):
        flow("none")
    assert np.abs(flow("fallback") - wanted).max() > 1
