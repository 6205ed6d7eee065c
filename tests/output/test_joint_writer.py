"""What a rank does with work that others have not done yet: the other rank here only says how far it is."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace

from hiresx.mpi.background import JointWriter, Work


class Noted(Work):
    def __init__(self, number, notes):
        self.number, self.notes = number, notes

    def note(self, what):
        self.notes.append(f"{what} {self.number}")

    def write(self):
        self.note("written")

    def complete(self, comm):
        self.note("completed")

    def publish(self):
        self.note("published")

    def discard(self):
        self.note("discarded")


def writer(root=True, outstanding=3):
    """A writer of two ranks, and what the other rank answers: works it has written, those published, whether all is
    well."""
    other = {"says": [0, sys.maxsize, True]}
    comm = SimpleNamespace(
        size=2, root=root, together=nullcontext, barrier=lambda: None,
        min=lambda own: [min(pair) for pair in zip(own, other["says"], strict=True)],
    )  # fmt: skip
    made, notes = JointWriter(comm, outstanding), []

    def step(says, submit=None):
        made._writer.drain()
        notes.clear()
        other["says"] = says
        if submit is None:
            made.advance()
        else:
            made.submit(Noted(submit, notes))
        made._writer.drain()
        return list(notes)

    return step, made, notes


def test_work_is_completed_when_all_have_written_it_and_then_published():
    step, made, _ = writer(outstanding=4)
    assert step([0, sys.maxsize, True], 0) == ["written 0"]
    assert step([0, sys.maxsize, True], 1) == ["written 1"], "the other one has not written yet"
    assert step([0, sys.maxsize, True]) == []
    assert step([1, sys.maxsize, True]) == ["completed 0", "published 0"]
    assert step([1, sys.maxsize, True], 2) == ["written 2"]
    # the thread publishes while the next one is completed
    assert sorted(step([3, sys.maxsize, True])) == ["completed 1", "completed 2", "published 1", "published 2"]
    assert step([3, sys.maxsize, True]) == [] and not made._open


def test_a_rank_that_is_not_the_first_publishes_nothing():
    step, made, _ = writer(root=False)
    assert step([1, 0, True], 0) == ["written 0"]
    assert step([1, 0, True]) == ["completed 0"] and len(made._open) == 1
    assert step([1, 1, True]) == [] and not made._open


def test_what_another_rank_could_not_write_is_discarded_and_nothing_follows():
    step, made, notes = writer()
    assert step([0, sys.maxsize, True], 0) == ["written 0"] and step([1, sys.maxsize, True], 1)[-1] == "written 1"
    step([1, sys.maxsize, True])
    step([1, sys.maxsize, False])
    assert notes == ["discarded 1"] and made.has_failed
    assert step([9, sys.maxsize, True], 2) == []
