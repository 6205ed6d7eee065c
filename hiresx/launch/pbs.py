"""The batch script for qsub of PBS (OpenPBS, PBS Professional)."""

from hiresx.base.shell import quote, quote_for_comment
from hiresx.errors import HiresxError
from hiresx.launch.batch_script import Batch, body
from hiresx.launch.mpi_library import OPEN_MPI

# Lines that tell mpirun which environment variables the program needs, and which of them are set.
_PASSED = (
    "# mpirun gives the ranks of other nodes nothing of this environment but what it is told to: what else the program",
    "# needs goes into this list.",
    "pass=()",
    "for name in PATH LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX CXX XDG_CACHE_HOME \\",
    '    CUDA_HOME CUDA_PATH "${!HIRESX_@}" "${!OMP_@}" "${!GOMP_@}" "${!MPI4PY_@}" "${!UCX_@}" "${!NCCL_@}"; do',
    '    if [ -n "${!name+set}" ] && [ "$name" != OMP_NUM_THREADS ]; then pass+=(-x "$name"); fi',
    "done",
)


def script(batch: Batch, file: str, kind: str) -> str:
    """Return the text of a PBS batch script that runs a case on many ranks. `batch`: the runs and the resources that
    they need. `file`: the name of the script, for the comment on how to submit it. `kind`: the family of the MPI
    library (`hiresx.launch.mpi_library`). Raises HiresxError if `batch` has no number of cores, which PBS needs."""
    if batch.cores is None:
        raise HiresxError("PBS must be told how many cores a rank takes", "--cpus-per-rank N")
    chunk = f"select={batch.nodes}:ncpus={batch.ranks * batch.cores}:mpiprocs={batch.ranks}"
    if batch.gpus:
        chunk += f":ngpus={batch.gpus}"
    array = [f"#PBS -J {batch.array}"] if batch.array else []
    head = [
        "#!/bin/bash",
        f"# Written by hiresx {batch.command}. Submit it with: qsub {quote_for_comment(file)}",
        "# and once more to go on from the newest checkpoint.",
        f"#PBS -N {batch.job[:15]}",
        *array,
        f"#PBS -l {chunk}",
        "#PBS -l place=scatter",
        f"#PBS -l walltime={batch.limit}",
        f"#PBS -q {batch.queue}" if batch.queue else "##PBS -q NAME",
        f"#PBS -A {batch.account}" if batch.account else "##PBS -A NAME",
        "#PBS -j oe",
        "#PBS -r y",
        "",
        'cd "$PBS_O_WORKDIR" || exit 1',
        "",
    ]
    start = f'-n {batch.size} --hostfile "$PBS_NODEFILE" --map-by ppr:{batch.ranks}:node --bind-to none "${{pass[@]}}"'
    if kind != OPEN_MPI:
        start = f'-n {batch.size} -ppn {batch.ranks} -f "$PBS_NODEFILE" -bind-to none'
    tail = [
        "",
        *(_PASSED if kind == OPEN_MPI else ()),
        "# PBS gives little time between its signal and the end: the run ends itself before, with a checkpoint and",
        "# status 3.",
        f'run+=(--set "time.wall_limit={batch.seconds - batch.margin}")',
        "# PBS sets this to all cores of a node; the run gives each rank its share.",
        "unset OMP_NUM_THREADS",
        f'mpirun {start} "${{run[@]}}"',
        "status=$?",
        'if [ "$status" -eq 3 ]; then',
        f"    echo {quote(f'to go on: qsub {quote_for_comment(file)}')}",
        "fi",
        'exit "$status"',
    ]
    return "\n".join([*head, *body(batch, "PBS_ARRAY_INDEX"), *tail]) + "\n"
