"""The processes that compute one case together: MPI ranks, or one process alone."""

import atexit
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from types import TracebackType
from typing import Any

import numpy as np

from hiresx.base.termination_signals import SIGNALLED
from hiresx.errors import HiresxError, describe
from hiresx.mpi import launcher_environment, shared_memory

# Seconds that a rank with an error of its own waits, so that rank 0 can report the error.
GRACE = 1.0
# Seconds that a rank at its end waits for the others before it prints that it waits.
LONG = 60.0


class Communicator:
    """The processes that compute one case together. `mpi_comm`: their mpi4py communicator, or None for a single
    process. `rank`: the number of this process; `size`: the number of processes; `root`: whether this is rank 0.

    Every call except `together` is collective: all ranks make it, in the same order, from the main thread.
    """

    def __init__(self, mpi_comm: Any = None):
        self.mpi_comm = mpi_comm
        self.rank: int = 0 if mpi_comm is None else mpi_comm.Get_rank()
        self.size: int = 1 if mpi_comm is None else mpi_comm.Get_size()
        self.root = self.rank == 0
        self._windows: list[Any] = []
        self._aside: Any = None
        self._end: Any = None
        self._abort_status = 0
        self._unanswered: Any = None

    def allgather(self, thing: Any) -> list[Any]:
        """Return, on all ranks, the list of the values `thing` of all ranks, in the order of the ranks. A value may be
        anything that can be pickled."""
        return [thing] if self.mpi_comm is None else self.mpi_comm.allgather(thing)

    def gather(self, thing: Any) -> list[Any] | None:
        """Return, on rank 0, the list of the values `thing` of all ranks, in the order of the ranks; None on other
        ranks. A value may be anything that can be pickled."""
        return [thing] if self.mpi_comm is None else self.mpi_comm.gather(thing)

    def bcast(self, thing: Any = None, root: int = 0) -> Any:
        """Return, on all ranks, the value `thing` of the rank `root`. The values of other ranks are ignored. A value
        may be anything that can be pickled."""
        return thing if self.mpi_comm is None else self.mpi_comm.bcast(thing, root)

    def barrier(self) -> None:
        """Wait until all ranks have called this method."""
        if self.mpi_comm is not None:
            self.mpi_comm.Barrier()

    def _rows(self, values: Any) -> np.ndarray:
        """Return `values` (same shape and type on all ranks) of every rank, by rank."""
        values = np.array(values, order="C")
        if self.mpi_comm is None:
            return values[None]
        rows = np.empty((self.size, *values.shape), values.dtype)
        self.mpi_comm.Allgather(values, rows)
        return rows

    def sum(self, values: Any) -> np.ndarray:
        """Return the sum of `values` (n,) over the ranks, element by element. The terms are added in the order of the
        ranks, so that the result is bit-identical on all ranks."""
        return self._rows(values).sum(axis=0)

    def max(self, values: Any) -> np.ndarray:
        """Return the largest value over the ranks of each element of `values` (n,); NaN if any rank has NaN."""
        return self._rows(values).max(axis=0)

    def min(self, values: Any) -> np.ndarray:
        """Return the least value over the ranks of each element of `values` (n,); NaN if any rank has NaN."""
        return self._rows(values).min(axis=0)

    @contextmanager
    def together(self, patience: float | None = None) -> Iterator[None]:
        """Return a context that all ranks enter, and in which an error on one rank is raised on all ranks, so that no
        rank waits for a rank that has failed. If several ranks fail, all raise the error of the lowest of these ranks,
        with its attribute `everywhere` set to True. Exceptions that are no `Exception`, such as SystemExit, become a
        HiresxError. A signal is raised at once, only on the rank that received it.

        `patience`: None if the ranks do not communicate within the context. If they do, a rank that fails may have left
        others waiting for its messages. It then waits at most `patience` seconds for them to leave the context, and
        raises its own error, which ends the job."""
        if self.mpi_comm is None:
            yield
            return
        error: Exception | None = None
        try:
            yield
        except SIGNALLED as found:
            self.mark_aborting(found)
            raise
        except Exception as found:
            error = found
        except BaseException as found:
            error = HiresxError(f"ended by {describe(found)}", "find the call that ends the program during the run")
            error.__cause__ = found
        if not self._any_failed(error is not None, patience):
            if error is not None:
                self.mark_aborting(error)
                raise error
            return
        errors = self.aside().allgather(None if error is None else _sendable(error))
        first = next(rank for rank, found in enumerate(errors) if found is not None)
        raised: Any = error if first == self.rank else errors[first]
        alike = all(found is not None for found in errors)
        if isinstance(raised, HiresxError) and not (alike or raised.placed):
            raised.message, raised.placed = f"rank {first}: {raised.message}", True
        raised.everywhere = True
        raise raised

    def aside(self) -> Any:
        """Return a second mpi4py communicator of the same ranks, whose messages do not mix with the messages of
        `mpi_comm`. The first call creates it and is collective."""
        if self._aside is None:
            self._aside = self.mpi_comm.Dup()
        return self._aside

    def _any_failed(self, failed: bool, patience: float | None) -> bool:
        """True if `failed` is true on any rank. It is false on a rank that has failed and whose `patience` has
        ended."""
        flags = np.zeros(self.size, np.int8)
        asked = self.aside().Iallgather(np.array([failed], np.int8), flags)
        if failed and patience is not None:
            self._unanswered = asked  # and so are the buffers that MPI may still read and write
            return _completes_within(asked, patience)
        asked.Wait()
        return bool(flags.any())

    def mark_aborting(self, error: BaseException, status: int = 1) -> None:
        """Record an `error` of this rank that the other ranks may not know. If this process then ends before the other
        ranks, it ends them with the exit status `status`."""
        if self.mpi_comm is not None and not is_on_all_ranks(error):
            self._abort_status = status

    def leave(self) -> None:
        """Wait, at the end of this process, until the other ranks have ended. If this rank is marked as aborting
        (`mark_aborting`), end the other ranks instead."""
        asked = self._end.Ibarrier()
        if self._abort_status:
            if not _completes_within(asked, 2 * GRACE):
                _say(f"rank {self.rank} has ended before the others, and ends them")
                self.abort(self._abort_status)
        elif not _completes_within(asked, LONG):
            _say(f"rank {self.rank} has come to its end and waits for the other ranks")
            asked.Wait()

    @cached_property
    def local(self) -> "Communicator":
        """Communicator of the ranks on this host. The first use creates it and is collective."""
        if self.mpi_comm is None:
            return self
        from mpi4py import MPI

        return Communicator(self.mpi_comm.Split_type(MPI.COMM_TYPE_SHARED, self.rank))

    @cached_property
    def hosts(self) -> tuple[int, ...]:
        """For each rank the number of its host. Hosts are numbered from 0 in the order of their lowest ranks."""
        firsts = self.allgather(self.local.bcast(self.rank))
        order = {first: number for number, first in enumerate(sorted(set(firsts)))}
        return tuple(order[first] for first in firsts)

    def share_on_host(self, arrays: Sequence[np.ndarray] | None) -> list[np.ndarray]:
        """Return, on all ranks of a host, the `arrays` that the first rank of this host passes, as views of one copy in
        shared memory, which callers must not change; on a host with one rank, the arrays themselves. The other ranks
        pass None. The views are valid as long as this communicator exists. Raises HiresxError on all ranks if a host
        has too little shared memory. Collective."""
        local = self.local
        needed, left = sum(array.nbytes for array in arrays or ()) + shared_memory.SPARE, shared_memory.room()
        with self.together():
            if local.size > 1 and local.root and needed > left:
                raise HiresxError(
                    f"the ranks of this host need {needed / 1e6:.1f} MB of shared memory, and {shared_memory.SHARED} "
                    f"has only {left / 1e6:.1f} MB left",
                    f"enlarge {shared_memory.SHARED} (Docker: --shm-size), or remove what ended processes left there",
                )
        if local.size == 1:
            return list(arrays or ())
        from mpi4py import MPI

        given = () if arrays is None else arrays
        kinds = local.bcast([(a.dtype.str, a.shape) for a in given] if local.root else None)
        sizes = [
            -(-np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)) // 64) * 64 for dtype, shape in kinds
        ]
        window = MPI.Win.Allocate_shared(sum(sizes) if local.root else 0, 1, comm=local.mpi_comm)
        self._windows.append(window)
        whole: Any = window.Shared_query(0)[0]
        memory = np.frombuffer(whole, np.uint8)
        views, start = [], 0
        for (dtype, shape), size in zip(kinds, sizes, strict=True):
            count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            views.append(memory[start : start + count].view(dtype).reshape(shape))
            start += size
        if local.root:
            for view, array in zip(views, given, strict=True):
                view[...] = array
        local.barrier()
        return views

    def abort(self, status: int) -> None:
        """End all processes of the communicator at once with the exit status `status`, or with 1 if `status` means
        success."""
        status = status if 0 < status < 256 else 1
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # the reader is gone
                stream.flush()
        if self.mpi_comm is not None:
            self.mpi_comm.Abort(status)
        os._exit(status)


def _sendable(error: Exception) -> Exception:
    """Return the error, or an object that can be sent in its place."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except BaseException:  # its own methods may raise any error
        pass
    return RuntimeError(describe(error))


def is_on_all_ranks(error: BaseException) -> bool:
    """Return whether all ranks have raised this `error` at the same place in the program, for instance in
    `Communicator.together`, so that no rank waits for another. Its attribute `everywhere` states this."""
    try:
        return bool(getattr(error, "everywhere", False))
    except Exception:  # of a class that answers any attribute
        return False


def _completes_within(request: Any, seconds: float) -> bool:
    """True if a request of MPI is completed within this number of seconds."""
    end = time.monotonic() + seconds
    while not request.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def _say(line: str) -> None:
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def single_process() -> Communicator:
    """Return a communicator that contains only this process."""
    return Communicator()


_world: list[Communicator] = []


def world() -> Communicator:
    """Return the communicator of all processes that one launcher (mpirun, srun) started, or of this process alone
    without a launcher. Every call returns the same object. Raises HiresxError if a launcher started several processes
    and mpi4py is missing, cannot be loaded, or belongs to another MPI than the launcher."""
    if not _world:
        comm = _start()
        if comm.size > 1:
            sys.excepthook = partial(_end_all, sys.excepthook)
            sys.exit = partial(_exit, sys.exit)  # type: ignore[assignment]
            comm.aside()
            comm._end = comm.mpi_comm.Dup()
            atexit.register(comm.leave)
        _world.append(comm)
    return _world[0]


def _start() -> Communicator:
    expected = launcher_environment.launched_processes()
    if expected in (None, 1):
        return single_process()
    mpi_comm = launcher_environment.initialised_mpi().COMM_WORLD
    return Communicator(mpi_comm) if mpi_comm.Get_size() > 1 else single_process()


def end_process(error: BaseException, status: int, tell: Callable[[str], None]) -> int:
    """Report an `error` that ends this process, end the other ranks if necessary, and return the exit status of this
    process. `status`: the exit status for this error. `tell(prefix)`: a function that prints the error behind a prefix.
    An error of all ranks is printed on rank 0 only. An error that only this rank has is printed with the number of the
    rank, and all other ranks are ended, because they would wait for this one."""
    if not _world:
        return _ended_early(error, status, tell)
    comm = _world[0]
    if comm.size == 1 or is_on_all_ranks(error):
        if comm.root:
            tell("")
        return status
    try:
        if not comm.root:
            # If all ranks have found the same error themselves, rank 0 reports it and ends the others.
            time.sleep(GRACE)
        tell("" if comm.root else f"rank {comm.rank}: ")
    finally:  # even if reporting fails
        comm.abort(status)
    return status


def _ended_early(error: BaseException, status: int, tell: Callable[[str], None]) -> int:
    """Handle an error before the `world` exists: process 0 prints it. The launcher ends the other processes, unless
    only they have the error."""
    rank = launcher_environment.process_number()
    if rank and is_on_all_ranks(error):
        return status
    if rank:
        time.sleep(GRACE)
    tell(f"rank {rank}: " if rank else "")
    return status


def _exit(before: Callable[[Any], None], status: Any = None) -> None:
    """Call sys.exit in a program on several ranks: Python does not tell the other ranks."""
    if status not in (None, 0):
        _world[0]._abort_status = status if isinstance(status, int) else 1
    before(status)


def _end_all(
    before: Callable[[type[BaseException], BaseException, TracebackType | None], Any],
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
) -> None:
    def tell(prefix: str) -> None:
        if prefix:
            print(prefix, end="", file=sys.stderr)
        before(kind, error, traceback)

    end_process(error, 1, tell)
