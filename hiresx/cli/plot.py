"""`hiresx plot`: pictures of a run."""

from pathlib import Path
from typing import Annotated

import typer

from hiresx.cli import options, terminal


def plot(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR|FILE.nc", help="Folder of a run, or one of its field files.")
    ],
    variable: Annotated[
        str | None, typer.Option("--variable", metavar="V[,V...]", help="What to show, e.g. rho,mach.")
    ] = None,
    plane: Annotated[str | None, typer.Option("--plane", metavar="z=0", help="Cut of a 3-D field.")] = None,
    line: Annotated[str | None, typer.Option("--line", metavar="y=0[,z=0]", help="Draw values along a line.")] = None,
    reference: Annotated[
        Path | None,
        typer.Option("--reference", metavar="CSV", help="Points to draw beside a line; its header names them."),
    ] = None,
    step: Annotated[
        int | None, typer.Option("--step", metavar="N", help="Fields of step N; the last if absent.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE|DIR", help="Picture to write; beside the fields if absent.")
    ] = None,
    json: options.Json = False,
) -> int:
    """Draw the fields of a run."""
    with terminal.only_json(json):
        from hiresx.output.plot import plot_run

        pictures = plot_run(
            directory, variable=variable, out=out, plane=plane, line=line, reference=reference, step=step
        )
    if json:
        terminal.print_json({"pictures": pictures})
    else:
        for picture in pictures:
            terminal.say(f"wrote {picture}")
    return 0
