"""Execution of the command line of a job: signals, exit status, and the rank that ended the job."""

import ctypes
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from hiresx.base.termination_signals import URGENT, handle_signals
from hiresx.launch.command import LAUNCHED_BY
from hiresx.launch.mpirun_messages import EndFacts, MessageFilter
from hiresx.mpi.launcher_environment import RANKS

POLL = 0.2  # seconds
# After the second signal, or after the first one while ranks are being started, the job has this many seconds to end by
# itself.
PATIENCE = 5.0
# Exit statuses of Hydra, the launcher of MPICH's family, if a signal ended a rank. hiresx run has other exit statuses,
# but a function of a case may end its process with any status.
_SIGNALS = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV)
_RANK = re.compile("|".join(f"(?:^|\0)(?:{name})=([0-9]+)" for name in RANKS))


@dataclass(frozen=True)
class JobEnd:
    """The end of a job. `status`: its exit status. `rank`: the rank that ended first, if MPI reports it. `signal`: the
    signal that ended it. `left`: whether it ended without a signal, with status 0. `asked`: the first signal that this
    process received during the job."""

    status: int
    rank: int | None = None
    signal: int | None = None
    left: bool = False
    asked: int | None = None


def run(command: Sequence[str], ranks: int = 1, hydra: bool = False, launched_by: str = "") -> JobEnd:
    """Run a command, such as an mpirun, and wait for its end; return how it ended. `ranks`: the number of ranks that
    the command starts. `hydra`: whether the command is an mpirun of the MPICH family. `launched_by`: the beginning of
    the shell command that starts such a job, by which messages of the ranks say how to continue it; "" for the command
    that a rank would name by itself.

    Signals that this process receives are sent to the ranks themselves, which then end with a checkpoint. (An mpirun
    that receives a signal kills the ranks within a second.) A third SIGINT or SIGTERM, or a second one some seconds
    after the first, kills the ranks. Before all ranks have started, a signal is also sent to mpirun, and some seconds
    later all processes that it started are killed."""
    job = _Job(ranks)
    with handle_signals(job.pass_on):
        job.start(command, launched_by)
        job.watch()
    status = job.wait()
    status = 128 - status if status < 0 else status
    number = job.notices.signal
    if number is None and hydra and ranks > 1 and status in _SIGNALS and not job.notices.ended:
        number = status
    status = status if number is None else 128 + number
    if job.asked and status not in (0, 2, 3):
        # whatever status the launcher returns, a signal ended the job
        return JobEnd(128 + job.asked[0], asked=job.asked[0])
    return JobEnd(status, job.first(), number, job.notices.left, next(iter(job.asked), None))


class _Job:
    """A running mpirun. `asked`: the signals that this process received. `notices`: the messages of mpirun on its
    end."""

    def __init__(self, count: int):
        self.notices = EndFacts()
        self.asked: list[int] = []
        self._process: subprocess.Popen[bytes]  # after it was started
        self._started = False
        self._under_mpi, self._count = count > 1, count
        self._known: dict[int, int] = {}
        self._kill_after = float("inf")
        self._stopped_since, self._reported = float("inf"), False

    def start(self, command: Sequence[str], launched_by: str) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, LAUNCHED_BY: launched_by} if launched_by else None,
            start_new_session=True,  # a terminal sends Ctrl-C to this process only
            preexec_fn=_die_with_parent,
        )
        self._started = True
        if self.asked:
            self._process.terminate()
            self._kill_after = time.monotonic() + PATIENCE

    def wait(self) -> int:
        return self._process.wait()

    def ranks(self) -> dict[int, int]:
        return ranks_of(self._process.pid) if self._under_mpi else {0: self._process.pid}

    def pass_on(self, number: int, frame: object) -> None:
        self.asked.append(number)
        if not self._started:
            return  # `start` ensures this
        self._process.send_signal(signal.SIGCONT)  # without it ranks do not end by themselves
        ranks = self.ranks()
        urged = sum(found in URGENT for found in self.asked) if number in URGENT else 0
        if urged > 2:
            self._kill()
        elif len(self._known | ranks) < self._count:
            _send(ranks, number)
            self._process.terminate()
            self._kill_after = time.monotonic() + PATIENCE
        else:
            _send(ranks, number)
            if urged == 2:
                self._kill_after = time.monotonic() + PATIENCE

    def _kill(self) -> None:
        _send(self.ranks(), signal.SIGKILL)
        self._process.terminate()
        self._kill_after = time.monotonic() + PATIENCE

    def _kill_all(self) -> None:
        """Kill all remaining processes, the launcher first, so that it starts no more."""
        below = _below(self._process.pid)
        self._process.kill()
        session = [pid for pid, _, leader in _processes() if leader == self._process.pid]
        for pid in {*below, *session}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def watch(self) -> None:
        """Show what the job writes, until it writes no more."""
        out, err = self._process.stdout, self._process.stderr
        assert out is not None and err is not None  # both are pipes
        streams = {out: (MessageFilter(self.notices), sys.stdout), err: (MessageFilter(self.notices), sys.stderr)}
        with selectors.DefaultSelector() as selector:
            for stream in streams:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
            looked = 0.0
            while selector.get_map():
                ready = {key.fileobj for key, _ in selector.select(POLL)}
                for stream, (notices, target) in streams.items():
                    data = stream.read() if stream in ready else None
                    if data == b"":
                        selector.unregister(stream)
                        _show(target, notices.end())
                    else:
                        _show(target, notices.feed(data) if data else notices.idle())
                now = time.monotonic()
                if now > self._kill_after:
                    self._kill_all()
                if self._under_mpi and now - looked > POLL:
                    looked = now
                    if len(self._known) < self._count:  # a search reads all processes of the machine
                        self._known |= self.ranks()
                    self._report_stop(now)

    def _report_stop(self, now: float) -> None:
        """Print a message once if mpirun has been stopped for some time: the output of ranks is then not shown, and the
        end of a rank is not noticed. If all ranks are gone, or an end was requested, let mpirun continue."""
        pid = self._process.pid
        if not _is_stopped(pid):
            self._stopped_since = float("inf")
        elif self.asked or (len(self._known) == self._count and not self.ranks()):
            self._process.send_signal(signal.SIGCONT)
        elif self._stopped_since == float("inf"):
            self._stopped_since = now
        elif now - self._stopped_since > PATIENCE and not self._reported:
            self._reported = True
            _show(
                sys.stderr,
                f"note: mpirun, process {pid}, is stopped: nothing that the ranks write is shown, and they may come to "
                f"wait for it; to let it go on: kill -CONT {pid}\n".encode(),
            )

    def first(self) -> int | None:
        """The rank that ended first, as far as mpirun reported it."""
        rank, pid = self.notices.rank, self.notices.pid
        return rank if rank is not None else next((r for r, known in self._known.items() if known == pid), None)


def _send(ranks: Mapping[int, int], number: int) -> None:
    for pid in ranks.values():
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _die_with_parent() -> None:
    """Let the job receive SIGTERM when this process is killed; Linux only (prctl.h: PR_SET_PDEATHSIG is 1)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _show(target: TextIO, data: bytes) -> None:
    if data:
        with suppress(OSError):  # the reader or the terminal is gone, which is no reason to end a run
            target.flush()
            if hasattr(target, "buffer"):
                target.buffer.write(data)
            else:  # replaced by a stream that takes text
                target.write(data.decode(errors="replace"))
            target.flush()


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yield every process: (process id, parent, session)."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError, ValueError):
                # The name of the program, in brackets, may contain any character.
                words = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()
                yield int(path.name), int(words[1]), int(words[3])


def _is_stopped(pid: int) -> bool:
    """True if a process was stopped by a signal."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "T"
    return False


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pid, parent, _ in _processes():
        found.setdefault(parent, []).append(pid)
    return found


def _below(root: int) -> list[int]:
    """Return the processes that `root` has started, and those that these have started."""
    children = _children()
    found = list(children.get(root, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def ranks_of(root: int) -> dict[int, int]:
    """Return {rank: process id} for the MPI ranks among the descendants of the process `root`, recognised by the
    environment variables of the launcher. Processes that a rank has started are left out."""
    children = _children()
    found: dict[int, int] = {}
    below = list(children.get(root, ()))
    while below:
        pid = below.pop()
        number = None
        with suppress(OSError):
            number = _RANK.search(Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace"))
        if number:
            found[int(next(filter(None, number.groups())))] = pid
        else:
            below += children.get(pid, ())
    return found
