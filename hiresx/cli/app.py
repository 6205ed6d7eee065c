"""The application with all commands. It imports no large library, so that `hiresx --help` starts quickly."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, cast

import typer
import typer.main

from hiresx.cli import (
    bench,
    check,
    diff,
    doctor,
    gradient,
    history,
    info,
    launch,
    new,
    plot,
    post,
    run,
    scaling,
    sweep,
    topo,
    verify,
)

COMMANDS = {
    "run": run.run,
    "launch": launch.launch,
    "sweep": sweep.sweep,
    "check": check.check,
    "gradient": gradient.gradient,
    "new": new.new,
    "plot": plot.plot,
    "post": post.post,
    "history": history.history,
    "info": info.info,
    "diff": diff.diff,
    "verify": verify.verify,
    "bench": bench.bench,
    "scaling": scaling.scaling,
    "topo": topo.topo,
    "doctor": doctor.doctor,
}

CONTEXTS = {"launch": launch.CONTEXT}

app = typer.Typer(
    help="Compressible Navier-Stokes at high order on curvilinear structured grids, on CPUs and GPUs.",
    epilog="Begin with [bold]hiresx run planar-jet --preset quick[/bold], then hiresx plot; hiresx doctor says what "
    "this machine lacks.",
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, called in COMMANDS.items():
    if isinstance(called, typer.Typer):  # a group of commands
        app.add_typer(called, name=name)
    else:
        app.command(name, context_settings=CONTEXTS.get(name))(cast(Callable[..., object], called))


def _version(wanted: bool) -> None:
    if wanted:
        import hiresx

        typer.echo(f"hiresx {hiresx.__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Print the help text of `hiresx` if the command line names no command. `context`: Typer's data about the command
    line. `version`: not used, since its callback prints the version and ends the process."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache
def command() -> Any:
    """Return the command-line program with all commands, a command of Click. Typer builds it once in a process from the
    signatures of the functions."""
    return typer.main.get_command(app)
