"""`hiresx launch`: starts a run on many ranks, on this machine or by a batch script."""

import contextlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from hiresx.base import shell
from hiresx.base.plural import plural
from hiresx.base.termination_signals import ENDING
from hiresx.cli import terminal
from hiresx.cli.option_groups import expand_option_groups
from hiresx.cli.options import argument, numbers, option
from hiresx.errors import HiresxError

if TYPE_CHECKING:
    from hiresx.launch.batch_script import Batch

# Options that this command does not know are passed to `hiresx run`.
CONTEXT = {"ignore_unknown_options": True}

# Largest number of ranks on a core without --oversubscribe. A process takes 0.1 GB or more even without fields.
MOST_ON_A_CORE = 16

# Exit statuses with which hiresx run has printed its own message.
_EXPLAINED = (2, 3, *(128 + number for number in ENDING))

Positive = {"min": 1, "max": 10_000_000}


@dataclass(frozen=True)
class ScriptOptions:
    """Options of batch scripts. `hiresx launch` and `hiresx sweep` have them."""

    slurm: Annotated[Path | None, option("--slurm", "FILE", "Write a script for sbatch instead.")] = None
    pbs: Annotated[Path | None, option("--pbs", "FILE", "Write a script for qsub instead.")] = None
    nodes: Annotated[int, option("--nodes", "N", "Script: nodes.", **Positive)] = 1
    ranks_per_node: Annotated[
        int | None, option("--ranks-per-node", "N", "Script: one per GPU if absent.", **Positive)
    ] = None
    gpus_per_node: Annotated[int, option("--gpus-per-node", "N", "Script: GPUs of a node.", min=0)] = 0
    cpus_per_rank: Annotated[
        int | None, option("--cpus-per-rank", "N", "Script: cores of a rank; whole nodes if absent.", **Positive)
    ] = None
    limit: Annotated[str, option("--time", "H:MM:SS", "Script: time limit; the run ends before it.")] = "24:00:00"
    partition: Annotated[str | None, option("--partition", "NAME", "Script: partition or queue.")] = None
    account: Annotated[str | None, option("--account", "NAME", "Script: who pays.")] = None
    setup: Annotated[
        list[str] | None, option("--setup", "LINE", "Script: a line before the run, e.g. 'module load openmpi'.")
    ] = None
    mpi: Annotated[str, option("--mpi", "KIND", "Script: as in srun --mpi.")] = "pmix"

    @property
    def is_wanted(self) -> bool:
        """Whether the options ask for a batch script, by --slurm or --pbs. Raises HiresxError if only other options of
        scripts are given."""
        wanted = self.slurm is not None or self.pbs is not None
        if not wanted and self != ScriptOptions():
            raise HiresxError(
                "--nodes, --ranks-per-node, --time and the other options of batch scripts have no effect here",
                "give --slurm FILE or --pbs FILE as well, or leave them out",
            )
        return wanted


class _Words(NamedTuple):
    """The words after `hiresx launch`, which are those of `hiresx run`. `values`: the words as that command parses
    them. `plain`: the words without --backend, --out and --restart."""

    words: list[str]
    values: dict[str, Any]
    plain: list[str]


# Options that are part of the stored case of a restarted run.
_OF_THE_START = ("--preset", "--set", "--unset", "--steps")
# Options of `hiresx run` without a value.
_FLAGS = ("--json", "--no-bind")


@expand_option_groups
def launch(
    run: Annotated[
        list[str] | None, argument("CASE [options of hiresx run]", "Arguments of hiresx run.", show_default=False)
    ] = None,
    ranks: Annotated[
        int | None,
        option(
            "-n", "N", "Number of ranks; one per free GPU, or one per NUMA node, if absent.", also="--ranks", **Positive
        ),
    ] = None,
    ranks_per_gpu: Annotated[int, option("--ranks-per-gpu", "N", "Ranks on each GPU.", **Positive)] = 1,
    mix: Annotated[
        str | None, option("--mix", "cuda:2,cpu:4", "Ranks with a GPU and without; short for --backend.")
    ] = None,
    oversubscribe: Annotated[
        bool, option("--oversubscribe", None, f"Start more than {MOST_ON_A_CORE} ranks a core.")
    ] = False,
    dry_run: Annotated[bool, option("--dry-run", None, "Print the command and do not run it.")] = False,
    mpirun: Annotated[
        str | None, option("--mpirun", "COMMAND", "Launcher to use, instead of that of mpi4py's library.")
    ] = None,
    *,
    script: ScriptOptions,
) -> int:
    """Run a case on many ranks of this machine, or write the script that does so under Slurm or PBS.

    CASE and all other options are those of hiresx run. Ctrl-C, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end the run with a
    checkpoint.

    Exit status: 0 done; 2 an error to correct; 3 stopped before the end; 130 Ctrl-C; 128 + N another signal N.
    """
    _refuse_other_commands(run or [])
    words = parse_run_arguments(run or [])
    as_json = bool(words.values["json"])
    if mix is not None:
        if words.values["backend"] != "auto":
            raise HiresxError("--mix and --backend have the same meaning", "give one of them")
        words = parse_run_arguments([*(run or []), "--backend", mix])
    if script.is_wanted:
        from hiresx.cli.run import refuse_existing_run

        made = make_batch(words, script, ranks, ranks_per_gpu)
        if words.values["restart"] is None:  # the job would continue that run, without the options of this one
            refuse_existing_run(Path(made.out))
        return write_scripts(made, script, as_json)
    return _launch_here(words, ranks, ranks_per_gpu, oversubscribe, mpirun, dry_run, as_json)


def _refuse_other_commands(arguments: list[str]) -> None:
    """Raises HiresxError if the first word is the name of a command and not of a case."""
    command = arguments[0] if arguments else ""
    if command not in ("run", "gradient") or Path(command).exists():
        return
    rest = arguments[1:]
    hint = f"hiresx launch -n N {shell.quote_all(rest)}"
    if command != "run":
        hint = f"mpirun -n N hiresx {command} {shell.quote_all(rest)}"
    raise HiresxError(f'"{command}" is no case: hiresx launch takes a case, and starts hiresx run alone', hint.strip())


def parse_run_arguments(arguments: list[str]) -> _Words:
    """Parse `arguments`, the words of a command line after `hiresx run`, so that usage errors are reported before ranks
    are started. Return the words, the parsed values by the names of the parameters of `hiresx run`, and the words
    without --backend, --out and --restart. Raises Typer's usage errors, and HiresxError if no case is named."""
    import typer

    from hiresx.cli.run import run

    alone = typer.Typer(add_completion=False)
    alone.command("run")(run)
    values = typer.main.get_command(alone).make_context("hiresx run", list(arguments)).params
    if values["name"] is None and values["restart"] is None:
        raise HiresxError(
            "Missing argument NAME|FILE.toml", "hiresx launch -n 4 NAME [options of hiresx run]; see hiresx run --help"
        )
    return _Words(list(arguments), values, _without(arguments, ("--backend", "--out", "--restart")))


def _without(arguments: list[str], options: tuple[str, ...], name: str | None = None) -> list[str]:
    """Return `arguments` without the options and their values, and without the word `name` unless it is the value of
    another option."""
    found, skip = [], False
    for before, word in pairwise(["", *arguments]):
        is_value = before.startswith("--") and "=" not in before and before not in _FLAGS
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif (word != name or is_value) and not word.startswith(tuple(f"{option}=" for option in options)):
            found.append(word)
    return found


# ---- launch on this machine


def _launch_here(
    words: _Words, ranks: int | None, per_gpu: int, oversubscribe: bool, given: str | None, dry_run: bool, as_json: bool
) -> int:
    from hiresx.launch import counts, mpi_library
    from hiresx.launch.command import command
    from hiresx.mpi import launcher_environment
    from hiresx.placement.backend_selection import by_rank

    if (launcher_environment.launched_processes() or 0) > 1:
        raise HiresxError(
            "hiresx launch was itself started by a launcher",
            "run hiresx launch without a launcher, or start hiresx run with it",
        )
    backend = words.values["backend"]
    count, why = (ranks, "-n") if ranks is not None else counts.default_ranks(backend, per_gpu)
    cores = counts.cores()
    if count > MOST_ON_A_CORE * cores and not oversubscribe:
        raise HiresxError(
            f"{count} ranks are too many for {plural(cores, 'core')}: each is a process with its own memory",
            f"take {MOST_ON_A_CORE * cores} or fewer, or give --oversubscribe to start them all the same",
        )
    by_rank(backend, [0] * count)  # a list that does not fit is reported here once, and not by every rank
    used = launcher = None
    if count > 1 or given is not None:
        used, launcher = mpi_library.find(given)
    line = command(launcher, count, cores, words.words)
    notes = []
    if used is not None and launcher is not None and not mpi_library.is_compatible(launcher, used):
        notes.append(f"{launcher} does not belong to {used}, which mpi4py uses")
    if count > cores and not _on_gpus(backend):
        notes.append(f"{count} ranks on {plural(cores, 'core')}: they share the cores and are not faster than {cores}")
    if dry_run:
        with terminal.only_json(as_json):
            _check_run(words.values, count)
    if dry_run and as_json:
        terminal.print_json({"ranks": count, "why": why, "command": line, "notes": notes})
        return 0
    for note in notes:
        terminal.note(note)
    if dry_run:
        terminal.say(shlex.join(line))
        return 0
    if ranks is None:
        terminal.note(f"{plural(count, 'rank')}: {why}")
    return _run_job(line, words, count, launcher is not None and launcher.hydra, as_json)


def _on_gpus(backend: str) -> bool:
    """True if no rank needs a core for itself alone."""
    from hiresx.device import cuda

    return set(backend.replace(":", ",").split(",")) <= {"cuda", "auto"} and not cuda.obstacle()


def _run_job(line: list[str], words: _Words, count: int, hydra: bool, as_json: bool) -> int:
    from hiresx.cli.run import record
    from hiresx.launch import job
    from hiresx.launch.mpirun_messages import signal_name
    from hiresx.output.saved.record import mark_failed

    before = _records(words)
    again = f"hiresx launch -n {count}"
    for name in ("backend", "transport", "rebalance"):
        value = words.values[name]
        again += f" --{name} {shell.quote(value)}" if value != "auto" else ""
    ended = job.run(line, count, hydra, again)
    if ended.status in _EXPLAINED:
        return ended.status
    directory = _directory(words, before)
    begun = directory is not None and record(directory).get("status") in ("running", "lost")
    if ended.status == 0 and not begun:
        return 0
    who = "the run" if ended.rank is None else f"rank {ended.rank}"
    how = f"ended with status {ended.status}" if ended.signal is None else f"was ended by {signal_name(ended.signal)}"
    if ended.status == 0 or ended.left:
        # with an exit status of its own; mpirun then chooses one
        how = "left before it was done: a function of the case, or a library, ended its process (os._exit)"
    message = f"{who} {how}" + (", and with it the others" if count > 1 else "")
    hint = ""
    if directory is not None:
        from hiresx.output.saved import checkpoint

        hint = f"what was computed is in {directory}"
        if checkpoint.list_checkpoints(directory):
            hint += f"; to go on: {again} --restart {shell.quote(directory)}"
    more = {} if directory is None else {"directory": str(directory)}
    if begun and directory is not None:
        with contextlib.suppress(HiresxError):
            mark_failed(directory, "failed", message)
    terminal.error(message, hint, as_json, **more)
    return ended.status or 1


def _records(words: _Words) -> dict[Path, int]:
    """Return the folders with a record that the command may compute in, and when each record was last written, in
    ns."""
    out, restart = words.values["out"], words.values["restart"]
    if out is not None:
        found = [Path(out)]
    elif restart not in (None, "latest"):
        from hiresx.output.saved import checkpoint

        run = checkpoint.run_directory(Path(restart))
        found = [] if run is None else [run]
    else:
        found = list(Path("runs").glob("*/"))
    from hiresx.cli.run import record

    return {path: (path / "run.json").stat().st_mtime_ns for path in found if record(path)}


def _directory(words: _Words, before: Mapping[Path, int]) -> Path | None:
    """Return the folder of the run that the command has computed; None if it did not create one. `before`: the result
    of `_records` before the start. Times are only compared with those of the same folder, because the clock of a file
    server may differ from that of this machine, and clocks may be set."""
    after = _records(words)
    written = [path for path in after if after[path] != before.get(path)]
    return max(written, key=lambda path: after[path], default=None)


def _check_run(values: Mapping[str, Any], ranks: int) -> None:
    """Raise the error with which `hiresx run` would end before its first step. For a restart only the options are
    checked."""
    from hiresx.base.threads import check_threads
    from hiresx.cli.run import refuse_existing_run
    from hiresx.exchange.choice import known_transport
    from hiresx.simulation.rebalance import parse_rule

    weights = numbers(values["weights"], "--weights", "1,1,4")
    check_threads(values["threads"])
    known_transport(values["transport"])
    parse_rule(values["rebalance"])
    if values["restart"] is not None:
        return
    from hiresx.case import load
    from hiresx.cli.check_walls import check_wall_models, check_wall_models_on_ranks
    from hiresx.cli.grid_checks import check_grid
    from hiresx.decomposition.partition import partition
    from hiresx.estimate import refuse_on_gpus, refuse_oversized
    from hiresx.output.fields import field_output

    case = load(values["name"], values["preset"] or (), values["set_"] or (), unset=values["unset"] or ())
    refuse_oversized(case, values["backend"])
    refuse_on_gpus(case, values["backend"], ranks)
    field_output.check(case)
    if values["out"] is not None:
        refuse_existing_run(Path(values["out"]))
    decomposition = check_grid(case).decomposition
    partition(decomposition, ranks, weights)
    check_wall_models(decomposition)
    check_wall_models_on_ranks(decomposition, ranks, weights)


# ---- batch scripts


def _ranks_of_node(words: _Words, script: ScriptOptions, ranks: int | None, ranks_per_gpu: int) -> int:
    from hiresx.placement.backend_selection import parse_backends

    backend = words.values["backend"]
    names = parse_backends(backend)
    listing = len(names) if len(names) > 1 or ":" in backend else None
    nodes, per_node, gpu_ranks = script.nodes, script.ranks_per_node, script.gpus_per_node * ranks_per_gpu
    size = per_node or (ranks // nodes if ranks and ranks % nodes == 0 else None)
    if ranks is not None and ranks != (size or 0) * nodes:
        hint = "give --ranks-per-node" if per_node is None else f"leave -n away, or write -n {nodes * per_node}"
        raise HiresxError(f"-n {ranks} is not {plural(nodes, 'node')} times {size or 'a whole number'}", hint)
    size = size or listing or gpu_ranks or None
    if size is None:
        raise HiresxError(
            "the number of ranks per node is not known", "give --ranks-per-node N: one per NUMA node is a good choice"
        )
    if listing not in (None, size, size * nodes):
        raise HiresxError(
            f"--backend {backend} is for {plural(listing, 'rank')}, a node has {size}", "make the two agree"
        )
    return size


def make_batch(words: _Words, script: ScriptOptions, ranks: int | None, ranks_per_gpu: int = 1) -> "Batch":
    """Return the description of a batch job: its runs and resources. `words`: the parsed arguments of `hiresx run`.
    `script`: the options of the batch script. `ranks`: number of ranks of the job; None: as `script` says.
    `ranks_per_gpu`: number of ranks that share a GPU. Raises HiresxError for options that batch scripts do not
    support."""
    from hiresx.launch import batch_script

    size, values = _ranks_of_node(words, script, ranks, ranks_per_gpu), words.values
    restart = None if values["restart"] == "latest" else values["restart"]
    if values["restart"] is not None:
        _refuse_restart(values)
    backend = values["backend"]
    if backend == "auto":
        backend = "cuda" if script.gpus_per_node else "cpu"
    name = Path(values["name"] or values["out"] or values["restart"]).name.removesuffix(".toml")
    if name == "case":
        name = Path(values["name"]).absolute().parent.name
    name = "-".join(part for part in (name, *(values["preset"] or ())) if part)
    out = values["out"] or restart or f"runs/{name}"
    # The first job of a restart in another folder finds no checkpoint there.
    begin = () if restart is None else ("--restart", restart)
    changes = words.plain if restart is not None else _without(words.plain, _OF_THE_START, values["name"])
    for value in (script.partition, script.account):
        if value is not None and (not value.isprintable() or not value.split() == [value]):
            raise HiresxError(f'"{value}" is not a name of a partition or an account', "write one word")
    return batch_script.Batch(
        name=name,
        nodes=script.nodes,
        ranks=size,
        gpus=script.gpus_per_node,
        cores=script.cpus_per_rank,
        seconds=batch_script.parse_time_limit(script.limit),
        queue=script.partition,
        account=script.account,
        setup=(*(script.setup or ()), *batch_script.environment()),
        run=(*words.plain, *begin, "--backend", backend),
        again=(*changes, "--backend", backend),
        out=str(out),
    )


def _refuse_restart(values: Mapping[str, Any]) -> None:
    """Raise HiresxError for a restart that a batch script cannot repeat: each of its jobs continues from the newest
    checkpoint of one folder. `values`: the parsed options of `hiresx run`, with --restart."""
    from hiresx.output.saved import checkpoint

    restart, out = values["restart"], values["out"]
    if values["steps"] is not None:
        raise HiresxError(
            f"--steps {values['steps']}: every job of the script would take as many steps more",
            "give the number of steps of the whole run: --set time.steps=N",
        )
    if restart == "latest":
        if values["name"] is None:
            raise HiresxError("--restart latest: the run is not known yet", "name it: --restart DIR")
        return
    run = checkpoint.run_directory(Path(restart))
    if Path(restart).is_file() and (out is None or (run is not None and run.absolute() == Path(out).absolute())):
        newest = "" if run is None else f", or from its newest checkpoint: --restart {shell.quote(run)}"
        raise HiresxError(
            f"{restart} is one checkpoint, and a job of the script continues from the newest one of its folder",
            f"continue from it in another folder: --restart {shell.quote(restart)} --out DIR{newest}",
        )


def write_scripts(made: "Batch", script: ScriptOptions, as_json: bool) -> int:
    """Write the batch scripts of the job `made`, print how to submit them, and return the exit status 0. `script`: the
    options, with the files to write. `as_json`: whether JSON is printed in place of text. Raises HiresxError if a
    script cannot be written."""
    from hiresx.launch import mpi_library as launchers
    from hiresx.launch import pbs as pbs_script
    from hiresx.launch import slurm as slurm_script
    from hiresx.output.saved import files

    written = []
    if (slurm := script.slurm) is not None:
        written.append((slurm, slurm_script.script(made, str(slurm), script.mpi), "sbatch"))
    if (pbs := script.pbs) is not None:
        try:
            kind = launchers.library().kind
        except HiresxError:
            kind = launchers.OPEN_MPI  # it may not be installed on the machine on which the script is written
        written.append((pbs, pbs_script.script(made, str(pbs), kind), "qsub"))
    for path, text, _ in written:
        with files.naming_errors(path):
            files.write_text(path, text)
            path.chmod(0o755)
    if as_json:
        terminal.print_json({"ranks": made.size, "out": made.out, "files": [str(path) for path, _, _ in written]})
        return 0
    for path, _, submit in written:
        size = f"{plural(made.size, 'rank')} on {plural(made.nodes, 'node')}"
        terminal.say(f"wrote {path}: {size}; submit it with: {submit} {shell.quote(path)}")
    return 0
