"""Messages of mpirun when a job ends badly. They tell which rank ended first and are replaced by one line; all other
output is passed on."""

import re
import signal
from dataclasses import dataclass

# A framed message of Open MPI begins and ends with a line of dashes. One of MPICH begins with a line of equals signs
# and ends with this line.
_DASHES, _EQUALS = re.compile(rb"-{40,}\s*"), re.compile(rb"={40,}\s*")
_LAST = b"Please see the FAQ page"
_KNOWN = (
    b"exited with non-zero status",
    b"exited on",
    b"MPI_ABORT was invoked",
    b'calling "abort"',
    b"exiting improperly",
    b"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
)
_NUMBERED = re.compile(rb"process rank (\d+) with PID (\d+)|Process name: \[[^\]]*,(\d+)\]|=\s+PID (\d+) RUNNING")
_SIGNAL = re.compile(rb"signal (\d+) \(|\(signal (\d+)\)")


@dataclass
class EndFacts:
    """The report of mpirun on the process that ended first. `rank` and `pid`: the rank and the process id. `signal`:
    the signal that ended it, None if unknown. `left`: whether it ended with status 0 without finalising MPI. `ended`:
    whether mpirun reports that it ended without a signal."""

    rank: int | None = None
    pid: int | None = None
    signal: int | None = None
    left: bool = False
    ended: bool = False


class MessageFilter:
    """A filter of one output stream of mpirun, which removes mpirun's framed messages on the end of a process. What
    these messages report is stored in `known`."""

    def __init__(self, known: EndFacts):
        self.known = known
        self._line, self._frame = b"", b""

    def feed(self, data: bytes) -> bytes:
        """Add `data`, the next bytes that mpirun printed, and return the bytes to show now. The framed messages with
        which mpirun reports the end of a process are removed; bytes that may begin such a message are held back."""
        shown = b""
        *lines, self._line = (self._line + data).splitlines(keepends=True) or [b""]
        if self._line.endswith(b"\n"):
            lines, self._line = [*lines, self._line], b""
        for line in lines:
            shown += self._take(line)
        if not self._frame and not self._line.startswith((b"-", b"=")):
            # a prompt or a progress bar: an incomplete line that must be shown
            shown, self._line = shown + self._line, b""
        return shown

    def _take(self, line: bytes) -> bytes:
        if not self._frame:
            if _DASHES.fullmatch(line) or _EQUALS.fullmatch(line):
                self._frame = line
                return b""
            return line
        self._frame += line
        dashes = self._frame.startswith(b"-")
        if (dashes and _DASHES.fullmatch(line)) or (not dashes and line.startswith(_LAST)):
            return self._read()
        return b""

    def _read(self) -> bytes:
        frame, self._frame = self._frame, b""
        plain = b" ".join(frame.split())
        if not any(text in plain for text in _KNOWN):
            return frame
        known = self.known
        known.left |= b"exiting improperly" in plain
        if (found := _NUMBERED.search(plain)) and known.rank is None and known.pid is None:
            rank, pid, named, other = found.groups()
            known.rank = int(rank or named) if rank or named else None
            known.pid = int(pid or other) if pid or other else None
        if (found := _SIGNAL.search(plain)) and known.signal is None:
            known.signal = int(found[1] or found[2])
        known.ended |= known.signal is None
        return b""

    def idle(self) -> bytes:
        """Return the bytes to show after a pause without output: those held back because they looked like the beginning
        of a framed message of mpirun on the end of a process."""
        if self._frame and self._frame.startswith(b"=") and b"TERMINATION" in self._frame:
            return b""
        return self.end()

    def end(self) -> bytes:
        """Return the bytes that are still held back when mpirun's output has ended."""
        shown = self._read() if self._frame else b""
        shown, self._line = shown + self._line, b""
        return shown


def signal_name(number: int) -> str:
    """Return the name of the operating system's signal `number`, such as SIGKILL for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
