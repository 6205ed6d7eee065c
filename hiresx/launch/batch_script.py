"""The common parts of batch scripts of all schedulers."""

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from hiresx.base.shell import quote, quote_all
from hiresx.errors import HiresxError

# Seconds before the time limit at which a run ends with a checkpoint.
MARGIN = 300


@dataclass(frozen=True)
class ArrayMember:
    """One run of a job array. `out`: the folder that it writes. `words`: the arguments of `hiresx run` for this run
    alone."""

    out: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Batch:
    """A batch job for one run or for several runs (a job array).

    - `name`: the name of the job; characters that a scheduler may refuse are replaced.
    - `nodes`: the number of nodes. `ranks`, `gpus`: numbers per node.
    - `cores`: number of cores per rank; None for whole nodes.
    - `seconds`: the time limit.
    - `queue`: the partition or queue. `account`: the account that is charged.
    - `setup`: lines that make the program available (modules, environment).
    - `run`: the arguments of `hiresx run` for a new run. `again`: the arguments for a run that continues from a
      checkpoint. Both are without --out and --restart.
    - `out`: the folder of the run.
    - `members`: the runs of a job array, each with its own `out`."""

    name: str
    nodes: int
    ranks: int
    gpus: int
    cores: int | None
    seconds: int
    queue: str | None
    account: str | None
    setup: tuple[str, ...]
    run: tuple[str, ...]
    again: tuple[str, ...]
    out: str
    members: tuple[ArrayMember, ...] = ()

    @property
    def array(self) -> str | None:
        """Range of run numbers of the job array, such as "0-11"; None if the script is for one run."""
        return f"0-{len(self.members) - 1}" if len(self.members) > 1 else None

    @property
    def command(self) -> str:
        """Subcommand of hiresx that writes the script: "sweep" for several runs, "launch" for one."""
        return "sweep" if self.members else "launch"

    @property
    def job(self) -> str:
        """Name of the job with only such characters as every scheduler accepts; others are replaced by "_"."""
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", self.name)
        return plain if re.match(r"[A-Za-z]", plain) else f"job_{plain}".rstrip("_")

    @property
    def size(self) -> int:
        """Total number of MPI ranks on all nodes of the cluster that the job uses."""
        return self.nodes * self.ranks

    @property
    def limit(self) -> str:
        """Time limit of the job as hours:minutes:seconds."""
        return f"{self.seconds // 3600:02d}:{self.seconds // 60 % 60:02d}:{self.seconds % 60:02d}"

    @property
    def margin(self) -> int:
        """Time in seconds, before the time limit of the job, at which the run is asked to end with a checkpoint."""
        return min(MARGIN, self.seconds // 4)


def parse_time_limit(text: str) -> int:
    """Return the time limit of a batch job in seconds. `text`: 90 (minutes), 12:00:00 or 2-00:00:00 (days first).
    Raises HiresxError for any other text."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)", text)
    if found:
        days, hours, minutes, rest = (int(part or 0) for part in found.groups())
        total = ((24 * days + hours) * 60 + minutes) * 60 + rest
    else:
        total = 60 * int(text) if text.isascii() and text.isdigit() else 0
    if not 0 < total < 400 * 86400:
        raise HiresxError(f'--time "{text}" is not a time limit', "write hours:minutes:seconds, e.g. --time 12:00:00")
    return total


def environment() -> tuple[str, ...]:
    """Return the lines with which a batch script makes this program available: they activate the virtual environment of
    this Python, or add its folder to PATH."""
    activate = Path(sys.prefix, "bin", "activate")
    if sys.prefix == sys.base_prefix or not activate.is_file():
        return (f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH",)
    return (f"source {shlex.quote(str(activate))}",)


def body(batch: Batch, number: str) -> list[str]:
    """Return the lines that batch scripts for all schedulers have in common: the environment, the choice of the run of
    a job array, and the choice between a new run and the continuation of an interrupted one. `number`: the name of the
    shell variable with which the scheduler numbers the runs of a job array."""
    which = [f"out={quote(Path(batch.out))}"]
    if batch.members:
        which = [
            "# Which of the runs this one is.",
            f'case "${{{number}:-0}}" in',
            *(
                f"    {n}) out={quote(Path(one.out))}; own=({quote_all(one.words)}) ;;"
                for n, one in enumerate(batch.members)
            ),
            f'    *) echo "there is no run ${number}" >&2; exit 2 ;;',
            "esac",
        ]
    own = ' "${own[@]}"' if batch.members else ""
    return [
        "# What this program needs; add here, e.g.: module load gcc cuda openmpi",
        *batch.setup,
        "",
        "set -u -o pipefail",
        *which,
        f'run=(hiresx run {quote_all(batch.run)}{own} --out "$out")',
        "# With a checkpoint the run goes on from the newest whole one.",
        'for checkpoint in "$out"/checkpoints/checkpoint_*.hxc; do',
        '    if [ -e "$checkpoint" ]; then',
        f'        run=(hiresx run --restart "$out" {quote_all(batch.again)})',
        "        break",
        "    fi",
        "done",
    ]
