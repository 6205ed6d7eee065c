"""Scripts for Slurm and PBS: what they say, what a shell does with them, names that a shell would change."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from launching import hiresx, write_program
from paths import ROOT

from hiresx.launch import batch_script, mpi_library
from hiresx.launch.mpi_library import MPICH, OPEN_MPI, MpiLibrary


def written(capfd, tmp_path, kind: str, *words: str) -> str:
    path = tmp_path / f"job.{kind}"
    status, out, err = hiresx(capfd, "launch", f"--{kind}", str(path), *words)
    assert status == 0, err
    assert f"{'sbatch' if kind == 'slurm' else 'qsub'} {path}" in out
    subprocess.run(["bash", "-n", str(path)], check=True)
    return path.read_text()


def test_a_slurm_script(capfd, tmp_path):
    words = ("--nodes", "2", "--gpus-per-node", "4", "--cpus-per-rank", "16", "--time", "2-12:00:00")
    words += ("--partition", "gpu", "--account", "abc", "--setup", "module load openmpi", "--mpi", "pmi2")
    text = written(capfd, tmp_path, "slurm", *words, "planar-jet", "--preset", "quick", "--set", "time.cfl=0.4")
    lines = text.splitlines()
    for line in (
        "#SBATCH --job-name=planar-jet-quick", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=4",
        "#SBATCH --cpus-per-task=16", "#SBATCH --gpus-per-node=4", "#SBATCH --time=60:00:00",
        "#SBATCH --partition=gpu", "#SBATCH --account=abc", "#SBATCH --requeue", "#SBATCH --signal=B:USR1@300",
        "module load openmpi",
        'run=(hiresx run planar-jet --preset quick --set time.cfl=0.4 --backend cuda --out "$out")',
        '        run=(hiresx run --restart "$out" --backend cuda)',
        'srun --mpi=pmi2 --cpu-bind=none --kill-on-bad-exit=1 --cpus-per-task=16 "${run[@]}" &',
    ):  # fmt: skip
        assert line in lines, line
    assert "#SBATCH --exclusive" not in lines
    assert all(lines.index(line) < lines.index("set -u -o pipefail") for line in lines if line.startswith("#SBATCH"))


def test_a_slurm_script_of_whole_nodes_without_gpus(capfd, tmp_path):
    text = written(capfd, tmp_path, "slurm", "--ranks-per-node", "8", "--time", "30", "sod", "--transport", "mpi")
    lines = text.splitlines()
    assert {"#SBATCH --exclusive", "#SBATCH --ntasks-per-node=8", "##SBATCH --partition=NAME"} <= set(lines)
    assert "#SBATCH --time=00:30:00" in lines and "#SBATCH --signal=B:USR1@300" in lines
    assert "gpus" not in text and "--cpus-per-task" not in text
    # What is no matter of the case is said again to a run that goes on.
    assert '        run=(hiresx run --restart "$out" --transport mpi --backend cpu)' in lines
    mixed = written(capfd, tmp_path, "slurm", "--nodes", "3", "--mix", "cuda:4,cpu:8", "--gpus-per-node", "4", "sod")
    assert "#SBATCH --ntasks-per-node=12" in mixed and "--backend cuda:4,cpu:8" in mixed
    total = written(capfd, tmp_path, "slurm", "-n", "12", "--nodes", "3", "sod")
    assert "#SBATCH --ntasks-per-node=4" in total


def test_a_pbs_script(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(mpi_library, "library", lambda: MpiLibrary(OPEN_MPI, "5.0", "", ""))
    words = (
        "--nodes",
        "2",
        "--ranks-per-node",
        "4",
        "--cpus-per-rank",
        "8",
        "--gpus-per-node",
        "4",
        "--time",
        "1:00:00",
    )
    lines = written(capfd, tmp_path, "pbs", *words, "planar-jet", "--preset", "quick").splitlines()
    for line in (
        "#PBS -N planar-jet-quic", "#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4", "#PBS -l walltime=01:00:00",
        "unset OMP_NUM_THREADS", 'run+=(--set "time.wall_limit=3300")',
        'mpirun -n 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none "${pass[@]}" "${run[@]}"',
    ):  # fmt: skip
        assert line in lines, line
    monkeypatch.setattr(mpi_library, "library", lambda: MpiLibrary(MPICH, "4.0", "", ""))
    lines = written(capfd, tmp_path, "pbs", *words, "sod").splitlines()
    assert 'mpirun -n 8 -ppn 4 -f "$PBS_NODEFILE" -bind-to none "${run[@]}"' in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--slurm", "f", "sod"), "the number of ranks per node is not known"),
        (("--slurm", "f", "-n", "5", "--nodes", "2", "sod"), "-n 5 is not 2 nodes times a whole number"),
        (("--slurm", "f", "-n", "6", "--ranks-per-node", "4", "--nodes", "2", "sod"), "-n 6 is not 2 nodes times 4"),
        (("--slurm", "f", "-n", "6", "--ranks-per-node", "4", "--nodes", "2", "sod"), "leave -n away, or write -n 8"),
        (("--slurm", "f", "-n", "5", "--nodes", "2", "sod"), "give --ranks-per-node"),
        (("--slurm", "f", "--ranks-per-node", "4", "--mix", "cuda:1,cpu:1", "sod"), "a node has 4"),
        (("--slurm", "f", "--ranks-per-node", "4", "--time", "soon", "sod"), '"soon" is not a time limit'),
        (("--slurm", "f", "--ranks-per-node", "4", "--time", "0:00:00", "sod"), "is not a time limit"),
        (("--slurm", "f", "--ranks-per-node", "4", "--partition", "a b", "sod"), "is not a name of a partition"),
        (("--slurm", "no/such/f", "--ranks-per-node", "4", "sod"), "cannot write no/such/f"),
        (("--slurm", "f", "--ranks-per-node", "4", "--restart", "latest"), "--restart latest: the run is not known"),
        (("--slurm", "f", "--ranks-per-node", "4", "--restart", "a", "--steps", "9"), "--set time.steps=N"),
        (("--pbs", "f", "--ranks-per-node", "4", "sod"), "PBS must be told how many cores"),
        (("--slurm", "f", "--ranks-per-node", "4", "sod", "--stepps", "4"), 'no option "--stepps"'),
        (("--nodes", "2", "-n", "2", "sod"), "have no effect here"),
    ],
)
@pytest.mark.slow
def test_scripts_that_cannot_be(capfd, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    status, _, err = hiresx(capfd, "launch", *words)
    assert status == 2 and message in err and not Path("f").exists()


@pytest.mark.parametrize(("text", "expected"), [("90", 5400), ("12:00:00", 43200), ("2-00:00:01", 172801)])
def test_time_limits(text, expected):
    assert batch_script.parse_time_limit(text) == expected


SRUN_STUB = """
printf '%s\\n' "$@" > srun.txt
trap 'echo TERM >> srun.txt; exit 143' TERM
echo $$ > srun.new; mv srun.new srun.pid
for n in $(seq "${STUB_TENTHS:-1}"); do sleep 0.1; done
exit "${STUB_STATUS:-0}"
"""


def sbatch(folder: Path, wait_for: str | None = None, **environment: str) -> tuple[int, list[str], str]:
    """Run job.slurm as Slurm would: (status, words after srun, what scontrol was told)."""
    for name in ("srun.txt", "srun.pid", "scontrol.txt"):
        (folder / name).unlink(missing_ok=True)
    write_program(folder / "bin" / "srun", SRUN_STUB)
    write_program(folder / "bin" / "scancel", 'kill -TERM "$(cat srun.pid)"\n')
    write_program(folder / "bin" / "scontrol", 'echo "$@" > scontrol.txt\n')
    outer = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "42"} | environment
    text = re.sub(r"^(source|export PATH).*\n", "", (folder / "job.slurm").read_text(), flags=re.MULTILINE)
    (folder / "job.sh").write_text(text)
    process = subprocess.Popen(["bash", "job.sh"], cwd=folder, env=outer)
    if wait_for:
        while not (folder / "srun.pid").exists():
            time.sleep(0.02)
        if wait_for == "USR1":
            process.send_signal(signal.SIGUSR1)
        else:
            os.kill(int((folder / "srun.pid").read_text()), signal.SIGTERM)
    status = process.wait(timeout=30)
    queued = folder / "scontrol.txt"
    return status, (folder / "srun.txt").read_text().split("\n"), queued.read_text() if queued.exists() else ""


def test_the_slurm_script_does_what_it_says(capfd, tmp_path):
    written(capfd, tmp_path, "slurm", "--ranks-per-node", "2", "sod", "--out", "a run", "--set", "time.t = x")
    status, words, queued = sbatch(tmp_path)
    assert (status, queued) == (0, "")
    assert words[3:-1] == ["hiresx", "run", "sod", "--set", "time.t = x", "--backend", "cpu", "--out", "a run"]
    assert sbatch(tmp_path, STUB_STATUS="2")[::2] == (2, "")
    # Late: the ranks are told, and the job is queued again; ended by someone, it is not.
    status, words, queued = sbatch(tmp_path, "USR1", STUB_TENTHS="50")
    assert (status, words[-2], queued) == (143, "TERM", "requeue 42\n")
    assert sbatch(tmp_path, "TERM", STUB_TENTHS="50")[::2] == (143, "")
    # Next time there is a checkpoint.
    folder = tmp_path / "a run" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "checkpoint_000001_step_000010.hxc").touch()
    assert sbatch(tmp_path)[1][3:-1] == ["hiresx", "run", "--restart", "a run", "--backend", "cpu"]


def test_the_script_of_a_restart_begins_there_with_its_changes(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("one", "checkpoints", "checkpoint_000001_step_000010.hxc")
    file.parent.mkdir(parents=True)
    file.touch()
    plain = ("--ranks-per-node", "2", "--set", "time.end=9.0")
    written(capfd, tmp_path, "slurm", *plain, "--restart", "one")
    change = ["--set", "time.end=9.0"]
    assert sbatch(tmp_path)[1][5:-1] == ["--restart", "one", *change, "--backend", "cpu"]
    written(capfd, tmp_path, "slurm", *plain, "--restart", str(file), "--out", "two")
    assert sbatch(tmp_path)[1][5:-1] == [*change, "--restart", str(file), "--backend", "cpu", "--out", "two"]
    shutil.copytree("one", "two")
    assert sbatch(tmp_path)[1][5:-1] == ["--restart", "two", *change, "--backend", "cpu"]


def test_a_script_for_a_new_run_refuses_the_folder_of_another(capfd, tmp_path, monkeypatch):
    """Its job would continue the other run, whatever the new options are."""
    monkeypatch.chdir(tmp_path)
    Path("runs/sod").mkdir(parents=True)
    Path("runs/sod/run.json").write_text("{}")
    words = ("launch", "--slurm", "f", "--ranks-per-node", "2", "sod", "--set", "time.cfl=0.3")
    status, _, err = hiresx(capfd, *words)
    assert status == 2 and "runs/sod holds a run already" in err and not Path("f").exists()
    written(capfd, tmp_path, "slurm", "--ranks-per-node", "2", "--restart", "runs/sod")


def test_a_case_named_like_the_value_of_an_option(capfd, tmp_path):
    text = written(capfd, tmp_path, "slurm", "--ranks-per-node", "2", "--no-bind", "mpi", "--transport", "mpi")
    assert 'run=(hiresx run --restart "$out" --no-bind --transport mpi --backend cpu)' in text


def test_a_script_continues_no_single_checkpoint_in_its_own_run(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("one", "checkpoints", "checkpoint_000001_step_000010.hxc")
    file.parent.mkdir(parents=True)
    file.touch()
    for more in ((), ("--out", "./one")):
        words = ("launch", "--slurm", "f", "--ranks-per-node", "2", "--restart", str(file), *more)
        status, _, err = hiresx(capfd, *words)
        assert status == 2 and f"--restart {file} --out DIR" in err and "--restart one" in err.replace("\n", " ")
    assert not Path("f").exists()


def test_the_pbs_script_does_what_it_says(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(mpi_library, "library", lambda: MpiLibrary(OPEN_MPI, "5.0", "", ""))
    words = ("--ranks-per-node", "2", "--cpus-per-rank", "1", "--time", "10", "sod", "--out", "there")
    text = written(capfd, tmp_path, "pbs", *words)
    text = re.sub(r"^(source|export PATH).*\n", "", text, flags=re.MULTILINE)
    write_program(tmp_path / "bin" / "mpirun", 'printf "%s\\n" "$@"; exit 3\n')
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "OMP_NUM_THREADS": "8"}
    environment |= {"PBS_O_WORKDIR": str(tmp_path), "PBS_NODEFILE": "nodes"}
    environment |= {"LD_LIBRARY_PATH": "/site/mpi/lib", "HIRESX_A": "a", "UCX_TLS": "tcp"}
    environment.pop("CXX", None)
    done = subprocess.run(["bash"], input=text, env=environment, capture_output=True, text=True)
    assert done.returncode == 3 and f"to go on: qsub {tmp_path / 'job.pbs'}" in done.stdout
    words = done.stdout.split()
    assert "time.wall_limit=450" in words and "nodes" in words
    # Of the environment what the program needs, and of that what there is.
    passed = {words[n + 1] for n, word in enumerate(words) if word == "-x"}
    assert {"PATH", "LD_LIBRARY_PATH", "HIRESX_A", "UCX_TLS"} <= passed and not {"CXX", "OMP_NUM_THREADS"} & passed


HOSTILE = (
    "x[1]", "a b", "a'b", 'a"b', "$(touch pwned)", "`touch pwned`", "a\nb", "a\ntouch pwned", "a;touch pwned", "-x",
    "*", "~", "#a", "ü", "a\tb", "a\\b", "!!", "$HOME",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["slurm", "pbs"])
def test_names_reach_the_run_as_they_are(capfd, tmp_path, monkeypatch, kind, name):
    """Of the case, its folder, the run, the script, the kind of MPI and a value: in a real shell."""
    monkeypatch.setattr(mpi_library, "library", lambda: MpiLibrary(OPEN_MPI, "5.0", "", ""))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "cases" / "sod", tmp_path / name)
    script = tmp_path / f"{name}.job"
    case, words = f"./{name}/case.toml", ["--ranks-per-node", "2", "--cpus-per-rank", "1", "--mpi", name]
    words += [f"--{kind}={script}", case, "--set", f"title={name}", "--out", name]
    status, out, err = hiresx(capfd, "launch", *words)
    assert status == 0, err
    submit, file = shlex.split(out.partition("submit it with: ")[2])
    assert (submit, file) == ("sbatch" if kind == "slurm" else "qsub", str(script))
    text = re.sub(r"^(source|export PATH).*\n", "", script.read_text(), flags=re.MULTILINE)
    directives = [line for line in text.splitlines() if re.match("#(SBATCH|PBS) .*(job-name=|-N )", line)]
    assert len(directives) == 1 and re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", re.split("-N |=", directives[0])[1])
    stub = 'printf "%s\\0" "$@" > words.bin; exit 3\n'
    for program in ("srun", "mpirun"):
        write_program(tmp_path / "bin" / program, stub)
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "1"}
    environment |= {"PBS_O_WORKDIR": str(tmp_path), "PBS_NODEFILE": "nodes"}
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0

    def started() -> list[str]:
        done = subprocess.run(["bash", "-s"], input=text, env=environment, text=True, capture_output=True)
        assert done.returncode == 3 and not done.stderr, done
        if kind == "pbs":
            told = done.stdout.partition("to go on: ")[2]
            again = subprocess.run(["bash", "-c", f"printf '%s\\0' {told}"], capture_output=True, text=True).stdout
            assert again.split("\0")[:2] == ["qsub", str(script)]
        words = (tmp_path / "words.bin").read_text().split("\0")[:-1]
        return words[words.index("hiresx") : len(words) - 2 * (kind == "pbs")]

    where = f"./{name}" if name.startswith("-") else name
    assert started() == ["hiresx", "run", case, "--set", f"title={name}", "--backend", "cpu", "--out", where]
    (tmp_path / name / "checkpoints").mkdir()
    (tmp_path / name / "checkpoints" / "checkpoint_000001_step_000010.hxc").touch()
    assert started() == ["hiresx", "run", "--restart", where, "--backend", "cpu"]
    assert not list(tmp_path.rglob("pwned"))
