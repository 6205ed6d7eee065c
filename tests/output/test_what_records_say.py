"""What a record holds of its machine, what differs in two, files that others hold, and the last sample of a run."""

import fcntl
import json
from types import SimpleNamespace

import made_runs
import pytest
from plotted import case, save, vortex

from hiresx.output.fields.field_reader import open_file
from hiresx.output.saved import machine_record
from hiresx.output.show.compare import compare
from hiresx.output.watch.sampling import MonitorToTheEnd


def test_sockets_and_cores_are_counted_by_their_numbers(monkeypatch):
    """Two sockets of three cores with two threads each; cores are numbered within their socket."""
    threads = [(socket, core) for _ in range(2) for socket in range(2) for core in range(3)]
    monkeypatch.setattr(
        machine_record,
        "_text",
        lambda path: "\n".join(
            f"model name : one\nphysical id : {socket}\nsiblings : 6\ncore id : {core}\nflags : fma avx2\n"
            for socket, core in threads
        ),
    )
    found = machine_record.hardware()
    assert (found["sockets"], found["cores"], found["simd"]) == (2, 6, ["fma", "avx2"])
    monkeypatch.setattr(machine_record, "_text", lambda path: "")
    found = machine_record.hardware()
    assert (found["sockets"], found["cores"]) == (1, found["threads"])


def test_versions_and_hardware_that_differ_are_listed(tmp_path):
    about = [{"versions": {"numpy": "2.1", "python": "3.12"}, "hardware": {"cpu": "one", "cores": n}} for n in (4, 8)]
    about[1]["versions"] = {"numpy": "2.2", "python": "3.12"}
    runs = []
    for n, entries in enumerate([*about, {}]):
        runs.append(made_runs.run(tmp_path / str(n)))
        kept = json.loads((runs[n] / "run.json").read_text())
        (runs[n] / "run.json").write_text(json.dumps(kept | entries))
        save(runs[n], vortex(8), case("Vortex"))
    found = compare(*runs[:2])
    assert found["versions"] == [{"key": "numpy", "first": "2.1", "second": "2.2"}]
    assert found["hardware"] == [{"key": "cores", "first": 4, "second": 8}]
    # A record from before these were kept.
    assert {entry["key"] for entry in compare(runs[2], runs[0])["versions"]} == {"numpy", "python"}
    assert {entry["key"] for entry in compare(runs[0], runs[2])["hardware"]} == {"cpu", "cores"}


def test_a_field_file_is_read_though_its_writer_has_locked_it(tmp_path):
    path = save(tmp_path, vortex(8), case("Vortex"))
    with path.open("rb+") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        with open_file(path) as blocks:
            assert blocks.step == 7


@pytest.mark.parametrize(
    ("looked_at", "sampled", "taken"),
    [([0, 4, 8], 6, [8]), ([0, 4, 8], 8, []), ([0, 4], 6, []), ([8, 4], 6, []), ([], 6, [])],
)
def test_the_last_step_is_sampled_once_if_it_was_looked_at(looked_at, sampled, taken):
    found = []

    class Last(MonitorToTheEnd):
        def __init__(self):
            self._simulation = SimpleNamespace(history=[{"step": step} for step in looked_at])
            self._clock = SimpleNamespace(last=sampled)
            self.history = SimpleNamespace(samples=3, path=None, digest=0, sync=lambda: None, close=lambda: None)

        def _sample(self, solver):
            found.append(solver.steps)

    Last().finish(SimpleNamespace(steps=8))
    assert found == taken
    with pytest.raises(ZeroDivisionError):
        try:
            raise ZeroDivisionError
        finally:
            Last().finish(SimpleNamespace(steps=8))
    assert found == taken, "the state that an error left is no sample"
