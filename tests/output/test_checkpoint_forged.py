"""Hostile checkpoints: refused, or understood and gone on from.

HIRESX_EXAMPLES: how many forged and damaged files of each kind are tried (200).
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from checkpoint_cases import vortex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiresx import HiresxError, Simulation
from hiresx.output.saved import checkpoint, container
from hiresx.output.saved.container import DamagedCheckpoint

EXAMPLES = int(os.environ.get("HIRESX_EXAMPLES", "200"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()) -> list[tuple]:
    """Path of every entry of nested JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in places(item, (*path, key)))]


def changed_at(value, path, new):
    """A copy of nested JSON with `new` at `path`."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed_at(value[path[0]], path[1:], new)
    return copy


def forged(content: bytes, index) -> bytes:
    """The file with another index, all checksums right."""
    length = int.from_bytes(content[-16:-8], "little")
    text = json.dumps(index).encode()
    magic = container.MAGIC
    tail = hashlib.sha256(magic + text).digest() + len(text).to_bytes(8, "little") + magic
    return content[: len(content) - 48 - length] + text + tail


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.slow
def test_a_forged_index_is_refused_or_understood(finished, data):
    path = checkpoint.list_checkpoints(finished)[0]
    content = path.read_bytes()
    index = json.loads(content[-48 - int.from_bytes(content[-16:-8], "little") : -48])
    place = data.draw(st.sampled_from(places(index)))
    forgery = finished.parent / "forged.hxc"
    forgery.write_bytes(forged(content, changed_at(index, place, data.draw(JSON))))
    with contextlib.suppress(HiresxError):
        checkpoint.describe(forgery)
        found = checkpoint.find(forgery)
        for name in found.container.names:
            assert found.container.array(name).nbytes <= len(content)


def forgery(finished: Path) -> tuple[bytes, dict, Path]:
    """The newest checkpoint, its index, and where a forged one goes."""
    content = checkpoint.list_checkpoints(finished)[0].read_bytes()
    index = json.loads(content[-48 - int.from_bytes(content[-16:-8], "little") : -48])
    return content, index, finished.parent / "forged.hxc"


def goes_on_from(path: Path, values: dict, finished: Path) -> bool:
    """Whether a run takes a step from the forged checkpoint `path`, which holds `values`: the one that is right."""
    simulation = Simulation(vortex(), backend="cpu", restart=path)
    simulation.run(steps=1, progress=False)
    told = values["solver"]
    step, time = int(told["steps"]), float(told["time"])
    went_on = time < simulation.case.time.end
    assert simulation.step_count == step + went_on and 0 <= time <= simulation.time < np.inf
    # the flow itself was not forged
    right = Simulation(vortex(), backend="cpu", restart=checkpoint.list_checkpoints(finished)[0]).solver
    if went_on:
        assert simulation.time == time + simulation.solver.dt
        right.step_factor = float(told["step_factor"])
        right.step(simulation.case.time.end - time)
    found = simulation.solver.primitives(0)
    for name, values in right.primitives(0).items():
        assert found[name].tobytes() == values.tobytes(), name
    return went_on


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_run_refuses_a_forged_checkpoint_or_goes_on(finished, data):
    content, index, path = forgery(finished)
    values = [place for place in places(index["values"]) if place[:1] != ("grid",)]
    place = data.draw(st.sampled_from(values))
    values = changed_at(index["values"], place, data.draw(JSON))
    path.write_bytes(forged(content, index | {"values": values}))
    with contextlib.suppress(HiresxError):
        goes_on_from(path, values, finished)


@pytest.mark.parametrize(
    ("place", "new"),
    [
        ("written", "long ago"),
        ("solver.time", 0.0),
        ("solver.steps", 40),
        ("solver.step_factor", 0.25),
        ("solver.dt", 9.0),
    ],
)
def test_a_run_goes_on_from_another_time_with_the_flow_that_is_there(finished, place, new):
    content, index, path = forgery(finished)
    values = changed_at(index["values"], tuple(place.split(".")), new)
    path.write_bytes(forged(content, index | {"values": values}))
    assert goes_on_from(path, values, finished)


@pytest.mark.parametrize(
    ("place", "new"),
    [("solver.time", -1.0), ("solver.time", float("nan")), ("solver.steps", -1), ("solver.steps", "many"),
     ("solver.step_factor", 0.0), ("solver.step_factor", 2.0), ("solver", None), ("format", 3)],
)  # fmt: skip
def test_a_run_refuses_what_no_run_can_have_written(finished, place, new):
    content, index, path = forgery(finished)
    values = changed_at(index["values"], tuple(place.split(".")), new)
    path.write_bytes(forged(content, index | {"values": values}))
    with pytest.raises(HiresxError):
        Simulation(vortex(), backend="cpu", restart=path)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_bytes_changed_cut_or_added_are_refused(finished, data):
    path = checkpoint.list_checkpoints(finished)[0]
    content = path.read_bytes()
    first = data.draw(st.integers(0, len(content)))
    last = data.draw(st.integers(first, min(first + 64, len(content))))
    new = content[:first] + data.draw(st.binary(max_size=64)) + content[last:]
    changed = finished.parent / "changed.hxc"
    changed.write_bytes(new)
    if new == content:
        checkpoint.find(changed)
    else:
        with pytest.raises(DamagedCheckpoint):
            checkpoint.find(changed)
