"""What ranks tell each other when one of them fails, and how they come to their ends; ranks are threads of the test."""

from types import SimpleNamespace

import numpy as np
import pytest
from thread_ranks import run_threads

from hiresx.errors import HiresxError
from hiresx.mpi import communicator
from hiresx.mpi.communicator import Communicator, single_process
from hiresx.simulation.agreement import check_same


def failing(*which, placed=False):
    """What every rank catches where these ranks fail, each in words of its own."""

    def work(comm):
        try:
            with comm.together():
                if comm.rank in which:
                    error = HiresxError(f"no disk of {comm.rank}", "a mend")
                    error.placed = placed
                    raise error
        except HiresxError as error:
            assert error.everywhere and error.hint == "a mend"
            return error.message
        return "nothing"

    return run_threads([0, 0, 0], work)


def test_the_lowest_rank_s_error_is_everybody_s():
    assert failing() == ["nothing"] * 3
    assert failing(1, 2) == ["rank 1: no disk of 1"] * 3
    assert failing(1, placed=True) == ["no disk of 1"] * 3
    # where all have failed it is no matter which one tells of it
    assert [message.removeprefix("rank 0: ") for message in failing(0, 1, 2)] == ["no disk of 0"] * 3
    assert not any(message.startswith("rank") for message in failing(0, 1, 2))


def test_numbers_of_all_ranks():
    def work(comm):
        values = np.array([comm.rank, -comm.rank, 1.0])
        return comm.rank, comm.size, comm.root, comm.sum(values), comm.max(values), comm.min(values)

    for rank, (own, size, root, total, largest, smallest) in enumerate(run_threads([0, 0, 1], work)):
        assert (own, size, root) == (rank, 3, rank == 0)
        assert (total == [3, -3, 3]).all() and (largest == [2, 0, 1]).all() and (smallest == [0, -2, 1]).all()
    assert (single_process().rank, single_process().size, single_process().root) == (0, 1, True)


@pytest.mark.parametrize(
    ("deserts", "others_come", "said", "status"),
    [
        (None, True, "", None),
        (None, False, "rank 0 has come to its end and waits for the other ranks", None),
        ("alone", True, "", None),
        ("alone", False, "rank 0 has ended before the others, and ends them", 7),
        ("everywhere", False, "rank 0 has come to its end and waits for the other ranks", None),
    ],
)
def test_the_end_of_a_rank(monkeypatch, capsys, deserts, others_come, said, status):
    """One that ends with an error of its own ends the others, which may wait for it; another waits for them."""
    monkeypatch.setattr(communicator, "GRACE", 0.0)
    monkeypatch.setattr(communicator, "LONG", 0.0)
    waited, ended = [], []
    asked = SimpleNamespace(Test=lambda: others_come, Wait=lambda: waited.append(True))
    comm = Communicator(SimpleNamespace(Get_rank=lambda: 0, Get_size=lambda: 2))
    comm._end = SimpleNamespace(Ibarrier=lambda: asked)
    monkeypatch.setattr(comm, "abort", ended.append)
    if deserts:
        error = HiresxError("it failed")
        error.everywhere = error.everywhere or deserts == "everywhere"
        comm.mark_aborting(error, status=7)
    comm.leave()
    assert capsys.readouterr().err.strip() == said
    assert ended == [status] * (status is not None) and bool(waited) == ("waits" in said)


def test_ranks_with_different_cases_say_what_differs():
    dump = {"time": {"cfl": 0.5, "steps": 3}, "gas": {"gamma": 1.4}}

    def work(comm):
        own = dump if comm.rank < 2 else dump | {"time": {"cfl": 0.25, "steps": 3}}
        try:
            check_same(comm, own)
        except HiresxError as error:
            return error.everywhere, error.message

    assert run_threads([0, 0, 0], lambda comm: check_same(comm, dump)) == [None] * 3
    told = "ranks 0 and 2 were given different cases: time.cfl is 0.5 for rank 0 and 0.25 for rank 2"
    assert run_threads([0, 0, 0], work) == [(True, told)] * 3


def test_too_little_shared_memory_is_told_on_all_ranks(monkeypatch):
    """The rank on a host of its own has enough, and must not wait for the others."""
    monkeypatch.setattr(communicator.shared_memory, "room", lambda: 2e6)

    def work(comm):
        vars(comm)["local"] = SimpleNamespace(size=1 if comm.rank == 2 else 2, root=comm.rank != 1)
        with pytest.raises(HiresxError, match=r"need 2\.6 MB of .*/dev/shm has only 2\.0 MB left") as found:
            comm.share_on_host([np.zeros(200_000)] if comm.local.root else None)
        return found.value.everywhere

    assert run_threads([0, 0, 1], work) == [True] * 3
