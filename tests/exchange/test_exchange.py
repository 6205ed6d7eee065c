"""Halo exchange: between the blocks of one process and between ranks, by every transport that runs here, against the
definition of a connection.

HIRESX_ARRANGEMENTS: how many random arrangements of blocks are tried on up to 16 ranks (100).
"""

import os
import random
import re
import time

import exchange_times as exchange_bench
import pytest
from exchange_arrangements import (
    INVISCID,
    ORIENTATIONS,
    Place,
    arrangement,
    exchanged,
    opposite,
    set_up,
    several,
    shared,
)
from ranks import Failed, launcher, run_ranks

from hiresx.device import Configuration, backend
from hiresx.grid.blocks import FACES
from hiresx.mpi.communicator import Communicator, single_process

ARRANGEMENTS = int(os.environ.get("HIRESX_ARRANGEMENTS", "100"))


# --- in one process


@pytest.mark.parametrize("name", ["cpu", "emulated"])
@pytest.mark.parametrize("seed", range(6))
def test_one_process(name, seed):
    assert exchanged(Place(name), arrangement(seed, 1), single_process()) == []


def test_single_precision_and_no_viscosity():
    cut = arrangement(7, 1)
    assert (
        exchanged(
            Place("cpu"), cut, single_process(), configuration=Configuration(viscosity="constant", precision="fp32")
        )
        == []
    )
    exchange, _, _ = set_up(Place("cpu"), cut, single_process(), INVISCID)
    exchange.start_state()
    assert exchange.counts == (1, 0)


# --- between ranks


@pytest.mark.parametrize(
    "ranks, transport, names",
    [
        (2, "window", ["cpu", "cpu"]),
        pytest.param(3, "mpi", ["cpu", "emulated", "cpu"], marks=pytest.mark.slow),
        pytest.param(4, "auto", ["emulated", "cpu", "cpu", "emulated"], marks=pytest.mark.slow),
        pytest.param(3, "signals", ["emulated", "cpu", "emulated"], marks=pytest.mark.slow),
    ],
)
def test_ranks(ranks, transport, names):
    assert run_ranks(ranks, several, transport, names, range(4)) == [[]] * ranks


TRANSPORTS = ("auto", "window", "mpi", "signals")


def many(comm, seeds):
    """Arrangements on comms of 4 to all ranks, side by side on what ranks there are."""
    place = Place("cpu")
    found, seeds = [], list(seeds)
    while seeds:
        dice = random.Random(seeds[0])
        # The ranks of comms at work at once; who is in none waits.
        ranks, comms = list(range(comm.size)), []
        dice.shuffle(ranks)
        while len(ranks) >= 4 and len(comms) < len(seeds):
            n = dice.randint(4, len(ranks))
            comms.append(ranks[:n])
            del ranks[:n]
        number = next((m for m, ranks in enumerate(comms) if comm.rank in ranks), None)
        mpi_comm = comm.mpi_comm.Split(len(comms) if number is None else number, dice.randrange(1000) * comm.rank)
        if number is not None:
            seed = seeds[number]
            delays, members = random.Random(100 * seed + comm.rank), Communicator(mpi_comm)
            found += exchanged(
                place, shared(seed, members), members, TRANSPORTS[seed % len(TRANSPORTS)], delays, moments=2
            )
        mpi_comm.Free()
        del seeds[: len(comms)]
    return found


def turned_blocks(comm, transport):
    place, found = Place(("cpu", "emulated")[comm.rank]), []
    for face in FACES:
        for turn in ORIENTATIONS:
            found += exchanged(place, opposite(face, turn), comm, transport, moments=1)
    return found


@pytest.mark.slow
def test_orientations_between_ranks():
    """All 48, on each face, each rank being the other's donor."""
    assert run_ranks(2, turned_blocks, "mpi") == [[], []]


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "seeds"), [(5, range(10)), (16, range(ARRANGEMENTS))], ids=["5", "16"])
def test_many_arrangements(ranks, seeds):
    """Random ones on 4 to 16 ranks, more than there are cores, ranks late at random."""
    assert run_ranks(ranks, many, seeds, timeout=300) == [[]] * ranks


# --- the benchmark, and what runs all this


def measured(comm):
    exchange_bench.COPIED = 2**16
    place = backend(("cpu", "emulated")[comm.rank])
    rows = exchange_bench.run(comm, place, ["auto", "mpi", "ipc"], [8, 12], 1, lambda row: None)
    rows += exchange_bench.run(comm, backend("emulated"), ["signals"], [8], 1, lambda row: None)[1:]
    return rows


@pytest.mark.slow
def test_benchmark():
    rows, others = run_ranks(2, measured)
    assert [row.get("copy") or row["transport"] for row in rows] == [
        "host to host",
        "auto",
        "auto",
        "mpi",
        "mpi",
        "ipc",
        "signals",
    ]
    assert all(row["right"] and row["us"] > 0 for row in rows + others if "us" in row)
    assert [row["ways"] for row in rows[1:5]] == [["window"]] * 2 + [["mpi"]] * 2
    assert rows[2]["bytes"] == 2 * 3 * 12 * 12 * 5 * 8
    assert "compute on GPUs" in rows[5]["failed"]
    assert rows[6]["us_recorded"] > 0 and rows[1]["us_recorded"] is None


def late_or_wrong(comm, what):
    if what == "late" and comm.rank:
        time.sleep(100)
    if what == "wrong" and comm.rank:
        raise ValueError("a rank of its own mind")
    comm.barrier()


@pytest.mark.parametrize("what, message", [("late", "did not end within 2 s"), ("wrong", "rank 1:.*of its own mind")])
def test_a_job_that_fails(what, message):
    if not launcher():
        pytest.skip("no mpi4py with an mpirun of its MPI")
    with pytest.raises(Failed, match=re.compile(message, re.DOTALL)):
        run_ranks(2, late_or_wrong, what, timeout=2 if what == "late" else 60)
