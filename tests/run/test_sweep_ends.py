"""How a sweep takes the end of a run."""

import json
import signal

import pytest

from hiresx.sweeps import running
from hiresx.sweeps.members import SweepMember


@pytest.mark.parametrize(
    ("status", "asked", "ends_by", "error"),
    [
        (0, None, None, None),
        (2, None, None, None),  # the run said so itself, as with 3
        (3, None, None, None),
        (1, None, None, "the run ended with status 1"),
        (1, signal.SIGINT, signal.SIGINT, None),
        (128 + signal.SIGTERM, None, signal.SIGTERM, "the run was ended by signal 15"),
    ],
)
def test_how_a_run_ended_is_told_and_a_signal_ends_the_sweep(tmp_path, monkeypatch, status, asked, ends_by, error):
    out, one = tmp_path, SweepMember("steps=1", {}, {"grid": {}})
    (out / one.name).mkdir()
    (out / one.name / "run.json").write_text('{"status": "running"}')
    monkeypatch.setattr(running.job, "run", lambda *_: running.job.JobEnd(status, asked=asked))
    assert running._one(out, one, "begin", running.RunOptions(), None, None, print) == ends_by
    found = json.loads((out / one.name / "run.json").read_text())
    assert found.get("error") == error and found["status"] == ("running" if error is None else "failed")
