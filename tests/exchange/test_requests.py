"""Messages by MPI: each is prepared once for both turns, started again and again, and given back once."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.exchange.mpi import Mpi

pytest.importorskip("mpi4py", reason="pip install mpi4py")


class Request:
    def __init__(self, made, *of):
        self.of, self.done = of, Counter()
        made.append(self)

    def Start(self):
        self.done["start"] += 1

    def Free(self):
        self.done["free"] += 1


def test_requests_of_two_turns():
    made = []
    comm = SimpleNamespace(
        Send_init=lambda memory, rank, tag: Request(made, "send", memory[0].nbytes, rank, tag),
        Recv_init=lambda memory, rank, tag: Request(made, "receive", memory[0].nbytes, rank, tag),
    )
    peers = [SimpleNamespace(rank=rank) for rank in (3, 5)]
    out = [[np.zeros(2 + 4 * turn + n) for n in range(2)] for turn in range(2)]
    into = [{3: np.zeros(20 + turn), 5: np.zeros(30 + turn)} for turn in range(2)]
    buffers = SimpleNamespace(outgoing_messages=lambda _: out, incoming_messages=lambda _: into)
    transport = Mpi(comm, 77, peers, buffers)
    assert sorted(request.of for request in made) == sorted(
        [("send", 8 * out[turn][n].size, peer.rank, 77) for turn in range(2) for n, peer in enumerate(peers)]
        + [("receive", 8 * into[turn][peer.rank].size, peer.rank, 77) for turn in range(2) for peer in peers]
    )
    for turn in (0, 1, 0):
        received, sent = transport.receive(turn), transport.send(turn)
        assert [(request.of[1] // 8, peer) for request, peer in received] == [
            (into[turn][peer.rank].size, peer) for peer in peers
        ]
        assert [request.of[1] // 8 for request in sent] == [array.size for array in out[turn]]
        assert all(transport.message(peer, turn) is into[turn][peer.rank] for peer in peers)
    assert Counter(request.done["start"] for request in made) == {2: 4, 1: 4}
    transport.close()
    assert all(request.done["free"] == 1 for request in made)
