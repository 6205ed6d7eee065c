"""`hiresx topo`: shows the hardware topology, places ranks on GPUs, measures link speeds, and verifies a placement."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hiresx.base.plural import plural
from hiresx.cli import options, terminal
from hiresx.cli.options import option
from hiresx.errors import HiresxError

if TYPE_CHECKING:
    from hiresx.topology.machine import Machine

From = Annotated[
    Path | None,
    option(
        "--from", "FILE", "A recording: snapshot, hwloc XML, NCCL XML or nvidia-smi topo -m. This machine if absent."
    ),
]
Plot = Annotated[Path | None, option("--plot", "FILE.png", "Draw the machine.")]
Bytes = Annotated[Path | None, option("--bytes", "FILE.csv", "Bytes between ranks: square, row = sender.")]

topo = typer.Typer(help="Show this machine or a recording of one: GPUs, links, groups, problems.")


@topo.callback(invoke_without_command=True)
def show(
    context: typer.Context,
    recording: From = None,
    save: Annotated[Path | None, option("--save", "FILE.json", "Write a snapshot.")] = None,
    plot: Plot = None,
    json: options.Json = False,
) -> int:
    """Show the machine, or a recording of another one, or save a snapshot. The command hiresx topo without a subcommand
    does the same.

    Exit status: 0 done; 2 an error to correct."""
    if context.invoked_subcommand is not None:
        return 0
    with terminal.only_json(json):
        machine = _machine(recording)
        if save is not None:
            from hiresx.topology.machine import save as write

            write(machine, save)
        if plot is not None:
            from hiresx.topology.diagram import draw

            draw(machine, plot)
    from hiresx.topology import report

    if json:
        terminal.print_json(report.document(machine))
        return 0
    console = terminal.console()
    for part in report.renderables(machine):
        console.print(part)
    for path in (save, plot):
        if path is not None:
            terminal.say(f"wrote {path}")
    return 0


@topo.command("plan")
def plan(
    recording: From = None,
    bytes_: Bytes = None,
    case: Annotated[str | None, option("--case", "NAME|FILE.toml", "Bytes of a case.")] = None,
    preset: options.Preset = None,
    ranks: Annotated[
        int | None, option("--ranks", "N", "Ranks on this host; for a case one per GPU if absent.", min=1)
    ] = None,
    off_host: Annotated[
        Path | None, option("--off-host", "FILE.csv", "Bytes of each rank to ranks of other hosts.")
    ] = None,
    gpus: Annotated[str | None, option("--gpus", "0,1,...", "GPUs to use, even if they are busy.")] = None,
    gpu_map: Annotated[str | None, option("--gpu-map", "2,0,...", "Compare with this: the GPU of each rank.")] = None,
    busy: Annotated[float, option("--busy", "PERCENT", "Leave out GPUs with a higher utilisation.")] = 20,
    busy_memory: Annotated[float, option("--busy-memory", "PERCENT", "Leave out GPUs with more memory in use.")] = 10,
    with_: Annotated[
        list[Path] | None, option("--with", "FILE", "A recording of a further host of the NVLink domain; repeat.")
    ] = None,
    export: Annotated[
        str | None,
        option(
            "--export",
            "FORM",
            "Print the plan for another launcher instead: rankfile (Open MPI), map_cpu or mask_cpu (Slurm), "
            "visible (a script that sets CUDA_VISIBLE_DEVICES).",
        ),
    ] = None,
    hosts: Annotated[str | None, option("--hosts", "A,B,...", "Hosts of the rankfile, each with these ranks.")] = None,
    plot: Plot = None,
    json: options.Json = False,
) -> int:
    """Compare strategies that place ranks on the GPUs of a machine, by the time and the busiest link of the exchange
    that --bytes or --case describes.

    Exit status: 0 done; 2 an error to correct."""
    with terminal.only_json(json):
        if bytes_ is not None and case is not None:
            raise HiresxError(
                "the plan takes the bytes between ranks from --bytes or from --case, not from both", "give one of them"
            )
        if bytes_ is None and case is None:
            raise HiresxError("the plan needs the bytes between ranks", "give --bytes matrix.csv or --case NAME")
        if preset and case is None:
            raise HiresxError("--preset needs --case", "leave it out, or give --case NAME")
        from hiresx.topology import place
        from hiresx.topology.cost import traffic
        from hiresx.topology.domains import one_machine

        if hosts is not None and export is None:
            raise HiresxError("--hosts is for --export rankfile", "leave it out, or give --export rankfile")
        if with_ and recording is None:
            raise HiresxError("--with goes with --from", "give the first host's recording by --from FILE")
        if with_ and export is not None:
            raise HiresxError(
                "--export is of one host", "leave out --with: a plan of one host is the same on the others"
            )
        machine = one_machine([_machine(path) for path in (recording, *(with_ or ()))])
        chosen = _indexes(gpus, "--gpus")
        count = ranks or len(chosen or machine.gpus)
        matrix = _matrix(bytes_) if bytes_ is not None else case_bytes(case or "", preset or (), count)
        if ranks is not None and ranks != len(matrix):
            raise HiresxError(
                f"{bytes_}: {plural(len(matrix), 'rank')}, not {ranks}", "drop --ranks, or give a matrix that fits"
            )
        beyond = None if off_host is None else [value for row in _matrix(off_host) for value in row]
        made = place.plan(
            machine,
            traffic(matrix, beyond),
            gpus=chosen,
            gpu_map=_indexes(gpu_map, "--gpu-map"),
            busy_utilisation=busy,
            busy_memory=busy_memory,
        )
        text = None
        if export is not None:
            from hiresx.placement.export import export as export_plan

            text = export_plan(made, export, [name for name in (hosts or "").replace(",", " ").split()])
        if plot is not None:
            from hiresx.topology.diagram import draw

            best = made.strategies[made.best]
            draw(machine, plot, best.placement, best.estimate)
    if json:
        terminal.print_json(place.to_json(made) | ({} if text is None else {"export": text}))
        return 0
    if text is not None:
        print(text, end="")
        return 0
    from hiresx.topology import report

    moved = report.bytes_text(made.demand.bytes.sum())
    terminal.say(
        f"{plural(made.demand.ranks, 'rank')}, {moved} per exchange, on {plural(len(made.gpus), 'GPU')} of "
        f"{machine.source}"
    )
    for gpu, reason in made.left_out.items():
        terminal.say(f"  GPU {gpu} is left out: {reason}")
    terminal.console().print(report.plan_table(made))
    best = made.strategies[made.best]
    gain = made.gain(made.best)
    terminal.say(
        f"* {made.best}: {report.time_text(best.estimate.seconds)} per exchange, {abs(gain):.0%} "
        f"{'less' if gain >= 0 else 'more'} than round-robin"
    )
    terminal.say(f"  {report.bound_text(made)}")
    if machine.measured is None:
        terminal.say("  by assumed bandwidths; hiresx topo measure --save machine.json makes them true")
    if plot is not None:
        terminal.say(f"wrote {plot}")
    return 0


@topo.command("measure")
def measure(
    save: Annotated[Path, option("--save", "FILE.json", "The snapshot to write.")] = Path("machine.json"),
    json: options.Json = False,
) -> int:
    """Measure bandwidth and latency between all GPUs and host memory, and write the results into a snapshot.

    Exit status: 0 done; 2 an error to correct."""
    with terminal.only_json(json):
        from hiresx.topology import machine as description
        from hiresx.topology.discover import discover
        from hiresx.topology.link_speeds import measure as run

        measured = run(discover(), say=terminal.say)
        description.save(measured, save)
    from hiresx.topology import report

    if json:
        terminal.print_json(report.document(measured))
    else:
        terminal.console().print(report.measured_table(measured))
        terminal.say(f"wrote {save}")
    return 0


@topo.command("verify")
def verify(
    bytes_: Bytes = None,
    strategy: Annotated[
        str | None, option("--strategy", "NAME", "Strategy of placement; the shortest exchange if absent.")
    ] = None,
    json: options.Json = False,
) -> int:
    """Place and bind the ranks that mpirun has started, as a run does, and report the actual devices of each rank.

    Exit status: 0 all ranks are where they should be; 1 one is not; 2 an error to correct."""
    from dataclasses import asdict

    with terminal.only_json(json):
        from hiresx.topology.place import STRATEGIES

        if strategy is not None and strategy not in STRATEGIES:
            raise HiresxError(f"--strategy {strategy}: not known", f"there are {', '.join(STRATEGIES)}")
        matrix = None if bytes_ is None else _matrix(bytes_)
        from hiresx.placement import placement_check

        ranks = placement_check.comm()
        standing = placement_check.verify(ranks, matrix, strategy)
    right = all(entry.right for entry in standing)
    if ranks.root:
        if json:
            found = [asdict(entry) | {"rank": entry.seat.rank} for entry in standing]
            terminal.print_json({"ranks": found, "pass": right})
        else:
            from rich.text import Text

            marks = {True: Text("as planned", "green"), False: Text("ELSEWHERE", "bold red")}
            rows = [
                (
                    e.seat.rank,
                    e.seat.host,
                    e.seat.backend,
                    "-" if e.seat.gpu is None else e.seat.gpu,
                    e.bus_id or "-",
                    e.seat.cpus,
                    e.cpus,
                    e.memory,
                    marks[e.right],
                )
                for e in standing
            ]
            columns = ["rank", "host", "backend", "GPU", "PCI", "planned CPUs", "bound to CPUs", "memory", ""]
            terminal.table("Ranks", columns, rows)
            for remark in dict.fromkeys(remark for entry in standing for remark in entry.remarks):
                who = [entry.seat.rank for entry in standing if remark in entry.remarks]
                some = "" if len(who) == len(standing) else f"rank {', '.join(map(str, who))}: "
                terminal.say(f"{some}{remark}")
    return 0 if right else 1


def case_bytes(name: str, preset: Sequence[str], ranks: int) -> list[list[int]]:
    """Return how many bytes each rank sends to each other rank in one exchange of the state: a row for each sender, a
    column for each receiver. `name`: the name or file of a case, whose grid is divided among `ranks` ranks. `preset`:
    the names of presets of the case; later ones override earlier ones. Raises HiresxError if the grid cannot be divided
    among so many ranks."""
    from hiresx import grid
    from hiresx.case import load
    from hiresx.decomposition import decompose, split
    from hiresx.decomposition.halo_bytes import halo_bytes
    from hiresx.decomposition.partition import partition
    from hiresx.device.fields import Layout
    from hiresx.equations import equations
    from hiresx.equations.storage import STORAGE

    case = load(name, preset, ())
    decomposition = decompose(case, grid.build(case.grid, case.directory))
    cut = split(decomposition, partition(decomposition, max(ranks, 1)))
    layout = Layout(STORAGE[case.scheme.precision], equations(case))
    return halo_bytes(cut, layout.exchanged_bytes(viscous=False)).tolist()


def _machine(recording: Path | None) -> "Machine":
    if recording is not None:
        from hiresx.topology.load import load

        return load(recording)
    from hiresx.topology.discover import discover

    return discover()


def _matrix(path: Path) -> list[list[float]]:
    """Return the numbers of a CSV file, separated by commas or blanks; lines that begin with # are ignored."""
    from hiresx.topology.machine import read_text

    rows = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.replace(",", " ").replace(";", " ").split()
        if not words or words[0].startswith("#"):
            continue
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            raise HiresxError(
                f"{path}, line {number}: '{line[:40]}' is not a row of numbers", "write plain numbers, row = sender"
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise HiresxError(
                f"{path}, line {number}: {plural(len(rows[-1]), 'number')}, the first row has {len(rows[0])}",
                "one row and one column per rank",
            )
    if not rows:
        raise HiresxError(f"{path}: no numbers in it", "one row and one column per rank, row = sender")
    return rows


def _indexes(text: str | None, option: str) -> list[int] | None:
    if text is None:
        return None
    words = text.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() and len(word) <= 6 for word in words) or not words:
        raise HiresxError(f"{option} {text[:40]}: not a list of GPUs", f"e.g. {option} 0,1,2,3")
    return [int(word) for word in words]
