"""Options of how a picture looks, of `hiresx plot` and `hiresx post`."""

from typing import Annotated, Any

import typer

from hiresx.cli import options

PANEL = "Look"
Plane = Annotated[str | None, typer.Option("--plane", metavar="z=0", help="Of a 3-D field.", rich_help_panel=PANEL)]
Range = Annotated[
    str | None,
    typer.Option(
        "--range", metavar="A,B", help="Least and greatest colour, or value of curves.", rich_help_panel=PANEL
    ),
]
Symmetric = Annotated[bool, typer.Option("--symmetric", help="Colours alike around 0.", rich_help_panel=PANEL)]
Colours = Annotated[
    str | None, typer.Option("--colours", metavar="MAP", help="A map of matplotlib.", rich_help_panel=PANEL)
]
Zoom = Annotated[
    str | None,
    typer.Option(
        "--zoom", metavar="A,B[,C,D]", help="Least, greatest horizontal, then vertical.", rich_help_panel=PANEL
    ),
]
Contours = Annotated[
    str | None, typer.Option("--contours", metavar="V", help="Lines of this variable over it.", rich_help_panel=PANEL)
]
Levels = Annotated[
    str,
    typer.Option("--levels", metavar="N|A,B,...", help="Number of the lines, or their values.", rich_help_panel=PANEL),
]
Exponent = Annotated[
    float,
    typer.Option("--exponent", metavar="X", help="Of the shades of schlieren; 1: linear.", rich_help_panel=PANEL),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="In place of ours.", rich_help_panel=PANEL)]
Width = Annotated[float, typer.Option("--width", metavar="INCHES", help="Of the picture.", rich_help_panel=PANEL)]
Height = Annotated[float, typer.Option("--height", metavar="INCHES", help="At most.", rich_help_panel=PANEL)]
Font = Annotated[float, typer.Option("--font", metavar="POINTS", help="Size of the letters.", rich_help_panel=PANEL)]


def made(
    plane: str | None = None, limits: str | None = None, symmetric: bool = False, colours: str | None = None,
    zoom: str | None = None, title: str | None = None, levels: str = "10", **others: Any,
) -> Any:  # fmt: skip
    """The `Look` that these options ask for; `others` have its names. Raises HiresxError for what is not understood."""
    from hiresx.errors import HiresxError
    from hiresx.output.show.look import Look

    ends, box = options.numbers(limits, "--range", "0,2"), options.numbers(zoom, "--zoom", "0,10,-3,3")
    if ends is not None and len(ends) != 2:
        raise HiresxError(f'--range "{limits}" is not two numbers', "e.g. --range 0,2")
    if box is not None and len(box) not in (2, 4):
        raise HiresxError(f'--zoom "{zoom}" is not four numbers (of curves two)', "e.g. --zoom 0,10,-3,3")
    values = tuple(options.numbers(levels, "--levels", "0.5,1") or ())
    number = int(values[0]) if levels.strip().isdigit() else values
    given: dict[str, Any] = {"limits": tuple(ends) if ends else None, "zoom": tuple(box) if box else None}
    return Look(plane=plane, symmetric=symmetric, colours=colours, title=title, levels=number, **given, **others)
