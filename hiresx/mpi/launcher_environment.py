"""The launcher of this process, from its environment, and MPI with the check that both belong together."""

import atexit
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from hiresx.base import optional
from hiresx.base.plural import plural
from hiresx.errors import HiresxError

# Variables by which a launcher tells a process the number of processes: mpirun of Open MPI; Hydra (MPICH, Intel MPI),
# Cray's PALS, Flux and Slurm's PMI plugins.
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PALS_RANKID", "PMI_ID")
INSTALL = (
    f"{optional.install_command('mpi')} brings mpi4py and an MPI; on a cluster: pip install mpi4py, with its MPI "
    "module loaded"
)


def launched_processes(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the number of processes that a launcher (mpirun, srun) started together with this one; 0 if the launcher
    does not report the number, None without a launcher. `environment`: the environment variables."""
    for name in SIZES:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    # SLURM_NTASKS is also set in a shell inside an allocation, where a program runs alone.
    if "SLURM_PROCID" in environment and environment.get("SLURM_STEP_NUM_TASKS", "").isdigit():
        return int(environment["SLURM_STEP_NUM_TASKS"])
    return 0 if any(environment.get(name, "").isdigit() for name in RANKS) else None


def process_number(environment: Mapping[str, str] = os.environ) -> int:
    """Return the rank of this process among the processes that a launcher (mpirun, srun) started; 0 without a launcher.
    `environment`: the environment variables."""
    if launched_processes(environment) is None:
        return 0
    names = (*RANKS, "SLURM_PROCID")
    return next((int(environment[name]) for name in names if environment.get(name, "").isdigit()), 0)


def launcher_name(environment: Mapping[str, str] = os.environ) -> str:
    """Return the kind of launcher that started this process: "Open MPI", "MPICH" (or Intel MPI), "Slurm", or "" if
    unknown. `environment`: the environment variables."""
    if "OMPI_COMM_WORLD_SIZE" in environment:
        return "Open MPI"
    if "MPI_LOCALNRANKS" in environment or "HYDI_CONTROL_FD" in environment:
        return "MPICH"
    return "Slurm" if "SLURM_STEP_NUM_TASKS" in environment else ""


def initialised_mpi(environment: Mapping[str, str] = os.environ) -> Any:
    """Initialise MPI and return the module mpi4py.MPI. Raises HiresxError if mpi4py is missing or finds no library, or
    if its library does not belong to the launcher that started this process or counts another number of processes. (MPI
    would then abort, or every process would run alone.) `environment`: the environment variables."""
    expected = launched_processes(environment)
    some = plural(expected, "process") if expected else "this process"
    try:
        import mpi4py

        # UCX, if MPI loads it, uses SIGHUP for its debugging, and a run would not receive the signal.
        os.environ.setdefault("UCX_DEBUG_SIGNO", "0")
        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc.initialize = False  # an MPI that does not belong to the launcher may end the process
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the error of mpi4py for such a mixture
            from mpi4py import MPI
    except Exception as error:
        raise HiresxError(
            f"a launcher started {some}, but mpi4py cannot be used: it "
            f"{optional.describe_import_error('mpi4py', error)}",
            INSTALL,
        ) from None
    library = " ".join(MPI.Get_library_version().split("\n")[0].strip("\0 ").partition(",")[0].split())
    by = launcher_name(environment)
    if not MPI.Is_initialized():
        if by in ("Open MPI", "MPICH") and (by == "Open MPI") != library.startswith("Open MPI"):
            raise _mixed_error(some, f"the mpirun of {by} started them, mpi4py uses {library}", by)
        # Windows are used for memory that the ranks of a host share; without a network the component for networks
        # prints warnings.
        os.environ.setdefault("OMPI_MCA_osc", "^ucx")
        # Waiting ranks yield their core to processes that have work.
        os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
        MPI.Init_thread()
        atexit.register(_finalize, MPI)
    size = MPI.COMM_WORLD.Get_size()
    if expected and size != expected:
        raise _mixed_error(some, f"mpi4py's {library} counts {size}", by)
    return MPI


def _mixed_error(some: str, what: str, by: str) -> HiresxError:
    hint = "start it with hiresx launch, which finds the mpirun of that library"
    if by == "Slurm":
        hint = "srun --mpi=pmix (srun --mpi=list names what there is), or mpi4py with the MPI module of the cluster"
    error = HiresxError(f"a launcher started {some}, but {what}: launcher and library belong to two MPIs", hint)
    error.everywhere = True
    return error


def _finalize(MPI: Any) -> None:
    if not MPI.Is_finalized():
        MPI.Finalize()
