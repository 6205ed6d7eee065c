"""The batch script for sbatch of Slurm."""

from hiresx.base.shell import quote, quote_for_comment
from hiresx.launch.batch_script import Batch, body


def script(batch: Batch, file: str, mpi: str = "pmix") -> str:
    """Return the text of a Slurm batch script that runs a case on many ranks. `batch`: the runs and the resources that
    they need. `file`: the name of the script, for the comment on how to submit it. `mpi`: the value of srun's option
    --mpi."""
    head = [
        "#!/bin/bash",
        f"# Written by hiresx {batch.command}. Submit it with: sbatch {quote_for_comment(file)}",
        f"#SBATCH --job-name={batch.job}",
        f"#SBATCH --nodes={batch.nodes}",
        f"#SBATCH --ntasks-per-node={batch.ranks}",
    ]
    if batch.array:
        head.append(f"#SBATCH --array={batch.array}")
    # Complete nodes, so that the ranks may use all their cores.
    head.append("#SBATCH --exclusive" if batch.cores is None else f"#SBATCH --cpus-per-task={batch.cores}")
    if batch.gpus:
        # GPUs are requested for the node and not for a task: every rank sees all of them, and chooses one when the
        # traffic between ranks is known.
        head.append(f"#SBATCH --gpus-per-node={batch.gpus}")
    head += [
        f"#SBATCH --time={batch.limit}",
        f"#SBATCH --partition={batch.queue}" if batch.queue else "##SBATCH --partition=NAME",
        f"#SBATCH --account={batch.account}" if batch.account else "##SBATCH --account=NAME",
        "#SBATCH --output=%x-%A_%a.out" if batch.array else "#SBATCH --output=%x-%j.out",
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue",
        f"# {batch.margin} s before the time limit Slurm sends USR1 to this script alone.",
        f"#SBATCH --signal=B:USR1@{batch.margin}",
        "",
    ]
    # In a job array the SLURM_JOB_ID of one task is also that of the array, which Slurm understands as all tasks.
    own = "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}" if batch.array else "$SLURM_JOB_ID"
    cores = "" if batch.cores is None else f" --cpus-per-task={batch.cores}"
    tail = [
        "",
        "# Then the ranks get TERM, write a checkpoint and end with status 143, and the job is queued again.",
        "late=",
        f"trap 'late=yes; scancel --signal=TERM \"{own}\"' USR1",
        "",
        "# Nothing is bound by Slurm: the run binds its ranks itself. --mpi: as the MPI library wants it; pmix for",
        "# Open MPI, pmi2 or cray_shasta for MPICH and its like; srun --mpi=list names what there is.",
        f'srun --mpi={quote(mpi)} --cpu-bind=none --kill-on-bad-exit=1{cores} "${{run[@]}}" &',
        "job=$!",
        'wait "$job"',
        "status=$?",
        'if [ -n "$late" ]; then',
        '    wait "$job"  # the signal ended the first one',
        "    status=$?",
        "fi",
        'if [ -n "$late" ] && [ "$status" -ne 0 ]; then',
        f'    scontrol requeue "{own}"',
        "fi",
        'exit "$status"',
    ]
    return "\n".join([*head, *body(batch, "SLURM_ARRAY_TASK_ID"), *tail]) + "\n"
