"""Measures a halo exchange between ranks by transport and size, and checks its result:

    mpirun -n 2 python docs/make/exchange_times.py --backend cpu
    mpirun -n 4 python docs/make/exchange_times.py --backend cuda --out exchange.json
    mpirun -n 2 python docs/make/exchange_times.py --backend cuda,cpu

Every rank has one block of a ring. Ranks take the GPUs of their host in turn, and share them where there are fewer.
Times are the least of the repeats, of the slowest rank, from the start of an exchange until its ghosts can be used.
"In a row" does not wait for the device between exchanges, as within a step; "recorded" is the same for exchanges that
are recorded together, as whole steps are, where no host takes part. Plain copies between the same places are timed for
comparison. Exit status 1 if a result is wrong.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.bench.results import header
from hiresx.decomposition import Decomposition, Part
from hiresx.device import Configuration
from hiresx.device import backend as find_backend
from hiresx.device.dependency_graph import RecordingProgram
from hiresx.device.fields import Layout
from hiresx.device.interface import Backend
from hiresx.device.state import BlockState
from hiresx.equations.stencil import Stencil
from hiresx.errors import HiresxError
from hiresx.exchange.choice import NAMES
from hiresx.exchange.halo import HaloExchange
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import face_range, whole_box
from hiresx.mpi.communicator import Communicator, end_process, world

SIZES = (16, 32, 64, 128, 256)
# Nodes along k of a block: enough for a stencil; the halo is what costs.
THICKNESS = 8
LAYERS = Stencil().halo
# Exchanges in a row.
IN_A_ROW = 20
# Bytes of a plain copy, beyond any cache.
COPIED = 128 * 2**20

Row = dict[str, Any]


def ring(ranks: int, points: int) -> Decomposition:
    """A block of points x points x THICKNESS nodes on each rank, joined to the next one, the last to the first."""
    size = (points, points, THICKNESS)
    index = np.meshgrid(*(np.arange(float(n)) for n in reversed(size)), indexing="ij", sparse=True)
    nodes = [np.broadcast_to(c, size[::-1]) for c in reversed(index)]
    connections = []
    for rank in range(ranks):
        for face, donor, offset in (("kmin", rank - 1, THICKNESS), ("kmax", rank + 1, -THICKNESS)):
            connections.append(Connection(rank, face, face_range(face, size), donor % ranks, offset=(0, 0, offset)))
    return Decomposition(
        tuple(Block(f"b{rank}", *triple(nodes)) for rank in range(ranks)),
        tuple(connections),
        (),
        tuple(Part(rank, whole_box(size), rank) for rank in range(ranks)),
    )


def values(rank: int, points: int, moment: int) -> np.ndarray:
    """Return test values of the nodes of a block, (5, THICKNESS, points, points); all are different."""
    count = 5 * THICKNESS * points * points
    return np.arange(float(count)).reshape(5, THICKNESS, points, points) + count * (rank + 1000.0 * moment)


def measure(comm: Communicator, device: Backend, points: int, transport: str, repeats: int) -> Row:
    """One size by one transport. Collective; raises HiresxError as `HaloExchange`."""
    cut = ring(comm.size, points)
    configuration = Configuration()
    with comm.together():
        program = device.compile(configuration)
        state = BlockState(device, cut, comm.rank, "ring", Layout(configuration.storage))
    exchange = HaloExchange(device, program, comm, cut, [state], transport)

    def launch(times: int) -> None:
        for _ in range(times):
            exchange.start_state()
            exchange.finish_state()

    def once(times: int = 1) -> None:
        launch(times)
        device.synchronize()

    def right(moment: int, work: Callable[[], None]) -> bool:
        host = device.to_host(state.q)
        state.interior(host)[...] = values(comm.rank, points, moment)
        device.copy(state.q, device.to_device(host))
        work()
        inner = slice(LAYERS, LAYERS + points)  # behind the last of them a row may be longer
        columns = device.to_host(state.q)[..., inner, inner]
        before, after = (values((comm.rank + n) % comm.size, points, moment) for n in (-1, 1))
        below, above = columns[:, :LAYERS], columns[:, -LAYERS:]
        return np.array_equal(below, before[:, -LAYERS:]) and np.array_equal(above, after[:, :LAYERS])

    is_right = all([right(moment, once) for moment in range(3)])
    seconds = slowest_seconds(comm, once, repeats)
    in_a_row = slowest_seconds(comm, lambda: once(IN_A_ROW), repeats) / IN_A_ROW
    recorded = None
    if comm.min(exchange.memory is not None and isinstance(program, RecordingProgram)):
        assert isinstance(program, RecordingProgram)
        with program.recording() as calls:
            launch(IN_A_ROW)
        record = program.prepare(calls)

        def replay() -> None:
            record()
            device.synchronize()

        recorded = slowest_seconds(comm, replay, repeats) / IN_A_ROW
        is_right &= right(3, replay)
    sent = sum(neighbour.state_bytes for neighbour in exchange.neighbours)
    row = {
        "transport": transport,
        "ways": sorted({neighbour.transport for neighbour in exchange.neighbours}),
        "points": points,
        "bytes": sent,
        "us": 1e6 * seconds,
        "us_in_a_row": 1e6 * in_a_row,
        "us_recorded": None if recorded is None else 1e6 * recorded,
        "gb_per_s": sent / seconds / 1e9,
        "right": bool(comm.min(is_right)),
    }
    exchange.close()
    return row


def copies(comm: Communicator, device: Backend, repeats: int) -> list[Row]:
    """Return the rates of plain copies, all ranks at once, in GB/s of one: within the host's memory, between it and the
    GPU, and from the memory of the next rank's GPU."""
    if device.name != "cuda":
        source, target = np.ones(COPIED, np.uint8), np.ones(COPIED, np.uint8)
        return [_copy_row(comm, "host to host", lambda: np.copyto(target, source), repeats)]
    from hiresx.exchange.gpu import Gpu

    gpu = Gpu()
    with comm.together():
        here, host = gpu.memory(COPIED), gpu.host_memory(COPIED)
    begun, ended = gpu.moment(), gpu.moment()

    def out() -> None:
        begun.record()
        gpu.copy_out([(host, here)], begun, ended)
        ended.synchronize()

    def into() -> None:
        gpu.copy_in(here, host)
        device.synchronize()

    rows = [_copy_row(comm, "GPU to host", out, repeats), _copy_row(comm, "host to GPU", into, repeats)]
    handles = comm.allgather((comm.hosts[comm.rank], gpu.handle(here)))
    nearby, handle = handles[(comm.rank + 1) % comm.size]
    there = None
    try:
        with comm.together():
            if nearby != comm.hosts[comm.rank]:
                raise HiresxError("the ranks are on several hosts")
            there, target = gpu.open(handle, COPIED), gpu.memory(COPIED)
    except (HiresxError, RuntimeError) as error:
        if there is not None:  # others could not open theirs
            gpu.close(there)
        comm.barrier()
        return [*rows, {"copy": "GPU to GPU", "failed": str(error)}]

    def across() -> None:
        device.copy(target, there)
        device.synchronize()

    rows.append(_copy_row(comm, "GPU to GPU", across, repeats))
    gpu.close(there)
    comm.barrier()
    return rows


def _copy_row(comm: Communicator, name: str, copy: Callable[[], None], repeats: int) -> Row:
    return {"copy": name, "bytes": COPIED, "gb_per_s": COPIED / slowest_seconds(comm, copy, repeats) / 1e9}


def slowest_seconds(comm: Communicator, work: Callable[[], None], repeats: int) -> float:
    """Seconds that `work` takes on the slowest rank: the least of `repeats`, each the mean of many if it is short."""
    work()
    comm.barrier()
    began = time.perf_counter()
    work()
    calls = max(1, min(100, int(5e-3 / float(comm.max(time.perf_counter() - began)))))
    samples = []
    for _ in range(repeats):
        comm.barrier()
        began = time.perf_counter()
        for _ in range(calls):
            work()
        samples.append((time.perf_counter() - began) / calls)
    return float(comm.max(samples).min())


def run(
    comm: Communicator,
    device: Backend,
    transports: Sequence[str],
    sizes: Sequence[int],
    repeats: int,
    say: Callable[..., Any],
) -> list[Row]:
    """Rows of `copies`, if the ranks are alike, and of `measure` for each transport and size, with "failed" for a
    transport that cannot be used here. Collective."""
    rows = []
    alike = len({name == "cuda" for name in comm.allgather(device.name)}) == 1
    for row in copies(comm, device, repeats) if alike else ():
        rows.append(row)
        say(row)
    for transport in transports:
        for points in sizes:
            try:
                row = measure(comm, device, points, transport, repeats)
            except HiresxError as error:
                row = {"transport": transport, "failed": error.message}
            rows.append(row)
            say(row)
            if "failed" in row:
                break
    return rows


def _say(row: Row) -> None:
    name = row.get("copy") or row["transport"]
    if "failed" in row:
        print(f"{name:12} {row['failed']}", flush=True)
    elif "copy" in row:
        print(f"{name:12} {row['gb_per_s']:8.2f} GB/s", flush=True)
    else:
        wrong = "" if row["right"] else "  WRONG"
        recorded = "" if row["us_recorded"] is None else f", {row['us_recorded']:.1f} recorded"
        print(
            f"{name:12} {row['points']:4}^2 nodes {row['bytes'] / 1e6:9.3f} MB {row['us']:10.1f} us "
            f"({row['us_in_a_row']:.1f} in a row{recorded}) {row['gb_per_s']:8.2f} GB/s  "
            f"{', '.join(row['ways'])}{wrong}",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python docs/make/exchange_times.py", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )  # fmt: skip
    parser.add_argument("--backend", default="auto", help="one, or several for the ranks in turn; default: %(default)s")
    parser.add_argument("--transports", default=",".join(NAMES), help="separated by commas; default: %(default)s")
    parser.add_argument(
        "--points", default=",".join(map(str, SIZES)), help="nodes in a direction; default: %(default)s"
    )
    parser.add_argument("--repeats", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--out", type=Path, help="file for the rows as JSON")
    options = parser.parse_args(arguments)
    comm = world()
    try:
        return _main(comm, options)
    except HiresxError as error:
        text = f"error: {error}"
        return end_process(error, 2, lambda prefix: print(f"{prefix}{text}", file=sys.stderr))


def _main(comm: Communicator, options: argparse.Namespace) -> int:
    if comm.size < 2:
        raise HiresxError("one rank has nobody to exchange with", "mpirun -n 2 python docs/make/exchange_times.py")
    with comm.together():
        names = options.backend.split(",")
        device = find_backend(names[comm.rank % len(names)], _gpu_number(comm))
    say = _say if comm.root else lambda row: None
    sizes = [int(points) for points in options.points.split(",")]
    rows = run(comm, device, options.transports.split(","), sizes, options.repeats, say)
    backends = comm.allgather(device.name)
    if comm.root and options.out:
        one = "cuda" if "cuda" in backends else device.name
        result = header("exchange") | {"ranks": comm.size, "backend": one, "backends": backends, "rows": rows}
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.get("right", True) for row in rows) else 1


def _gpu_number(comm: Communicator) -> int | None:
    """GPUs in turn among the ranks of a host."""
    from hiresx.device.cuda import devices

    found = devices()
    return comm.local.rank % len(found) if found else None


if __name__ == "__main__":
    sys.exit(main())
