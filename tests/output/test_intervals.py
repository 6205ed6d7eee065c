"""When checkpoints by time are due, what of a run's memory goes to another cut, and values of a rank without nodes."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx import Case
from hiresx.case.outputs import Checkpoint
from hiresx.output.saved.checkpoint import Checkpoints
from hiresx.output.saved.distributed_arrays import Reader
from hiresx.output.watch.gather import Take
from hiresx.simulation.epochs import Epoch, _move


@pytest.mark.parametrize(
    ("every", "time", "periods"),
    [
        (0.1, 0.0, 0), (0.1, 0.05, 0), (0.1, 0.1 - 1e-6, 0), (0.1, 0.1, 1), (0.1, 0.3, 3), (0.1, 0.7, 7), (0.1, 0.8, 8),
        (0.1, 0.1 * (1 - 1e-12), 1), (3.0, 12.0, 4), (3.0, 11.9, 3), (1e-3, 1.001, 1001), (None, 5.0, 0),
    ],
)  # fmt: skip
def test_a_time_that_is_reached_to_round_off_is_due(tmp_path, every, time, periods):
    """0.3 / 0.1 is less than 3."""
    made = Checkpoints(tmp_path, Checkpoint(every_time=every), lambda: None, lambda: None)
    assert made._periods(SimpleNamespace(time=time)) == periods


def test_what_lies_in_memory_is_moved_and_files_are_left():
    fault, pieces = RuntimeError, []
    inside, outside = Reader({}, fault, pieces), Reader({}, fault)
    moved = _move({"a": {"held": inside, "file": outside, "number": 3}, "b": {}}, lambda found: ("moved", found))
    assert moved == {"a": {"held": ("moved", pieces), "file": outside, "number": 3}, "b": {}}
    assert moved["a"]["held"][1] is pieces


def test_a_rank_without_nodes_takes_none():
    """Of the gas and of passive scalars arrays without numbers, which others' numbers can be put behind."""
    box = {"generator": "box", "n": [8, 7, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}
    case = Case.from_dict(
        {"grid": box, "time": {"steps": 1, "cfl": 0.5}, "initial": {"state": {"rho": 1.0, "p": 1.0}}}
        | {"boundary": [{"faces": "all", "type": "slip-wall"}]}
    )
    solver, nothing = SimpleNamespace(backend=None, case=case, states=[]), np.zeros(0, dtype=int)
    values = Take(solver, nothing, nothing)()
    assert set(values) == {"rho", "u", "v", "w", "p"} and {len(array) for array in values.values()} == {0}


@pytest.mark.parametrize(("speeds", "gain", "why"), [
    (None, None, "asked for"), ([2e6, 1.5e6, 4e6], None, "asked for"),
    ([2e6, 1.5e6, 4e6], 0.127, "ranks compute 1.5e+06 to 4e+06 points a second, 13% less computing a step"),
])  # fmt: skip
def test_a_new_cut_is_told_in_one_line(speeds, gain, why):
    epoch = Epoch(1, 40, 0.5, "asked for", None, None, speeds, gain, [1200, 900, 123_456], 0.0534)
    assert epoch.description == f"step 40: the grid is cut anew in 0.053 s ({why}): 900 to 123,456 points a rank"
    assert epoch.document()["gain"] == gain and epoch.document()["points"] == [1200, 900, 123_456]
