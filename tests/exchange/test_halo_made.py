"""What a halo exchange takes to be made, and what it leaves where a part of it cannot be made."""

from types import SimpleNamespace

import numpy as np
import pytest
from exchange_arrangements import Place, arrangement, opposite, set_up
from thread_ranks import run_threads

from hiresx.exchange import halo
from hiresx.mpi.communicator import single_process

PLACE = Place("cpu")
TWO = opposite("imax", tuple(map(tuple, np.eye(3, dtype=int).tolist())))


def fails(*_, **__):
    raise MemoryError("nothing is left")


@pytest.fixture
def endpoints(monkeypatch) -> dict[int, SimpleNamespace]:
    """In place of the endpoint of each rank that makes one: the GPU that it is given, and what closes it."""
    made = {}

    def endpoint(backend, program, gpu, comm, layout, kinds, widths, precision, transport):
        closed = []
        messages = [halo.QuantityMessages((), ())] * len(widths)
        made[comm.rank] = SimpleNamespace(
            gpu=gpu, closed=closed, close=closed.append, signalled=(), messages=messages, memory=None
        )
        return made[comm.rank]

    monkeypatch.setattr(halo, "Endpoint", endpoint)
    return made


def test_the_endpoint_of_every_rank_is_closed_where_one_cannot_make_its_channels(endpoints, monkeypatch):
    channel = halo.Channel

    def work(comm):
        with pytest.raises(MemoryError, match="nothing is left") as caught:
            set_up(PLACE, TWO, comm)
        return caught.value

    def of_rank(backend, program, layout, *rest, **more):
        return fails() if layout.peers[0].rank == 0 else channel(backend, program, layout, *rest, **more)

    monkeypatch.setattr(halo, "Channel", of_rank)
    told = run_threads((0, 0), work)
    assert {rank: one.closed for rank, one in endpoints.items()} == {rank: [told[rank]] for rank in (0, 1)}
    assert all(error.everywhere for error in told)


def test_what_fails_in_one_process_is_told_as_it_is(monkeypatch):
    monkeypatch.setattr(halo, "Channel", fails)
    with pytest.raises(MemoryError, match="nothing is left"):
        set_up(PLACE, arrangement(7, 1), single_process())


def test_a_gpu_is_opened_for_other_ranks_alone(endpoints, monkeypatch):
    opened = []
    monkeypatch.setattr(halo, "_gpu", lambda backend: opened.append(backend) or "a GPU")
    set_up(PLACE, arrangement(7, 1), single_process())
    assert opened == [] and endpoints == {}
    monkeypatch.setattr(halo, "Channel", lambda *given, **more: SimpleNamespace(later=more["later"]))
    run_threads((0, 0), lambda comm: set_up(PLACE, TWO, comm))
    assert opened == [PLACE, PLACE] and [one.gpu for one in endpoints.values()] == ["a GPU"] * 2
