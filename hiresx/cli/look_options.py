"""Options of how a picture looks, of `hiresx plot` and `hiresx post`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiresx.cli import options

if TYPE_CHECKING:
    from hiresx.output.show.look import Look


def _option(name: str, metavar: str | None, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel="Look")


@dataclass(frozen=True)
class LookOptions:
    """They are given to commands by `hiresx.cli.unfolded`."""

    contours: Annotated[str | None, _option("--contours", "V", "Lines of this variable over it.")] = None
    levels: Annotated[str, _option("--levels", "N|A,B,...", "Number of the lines, or their values.")] = "10"
    plane: Annotated[str | None, _option("--plane", "z=0", "Of a 3-D field.")] = None
    limits: Annotated[
        str | None, _option("--range", "A,B", "Least and greatest colour, or value of curves.")
    ] = None  # fmt: skip
    symmetric: Annotated[bool, _option("--symmetric", None, "Colours alike around 0.")] = False
    colours: Annotated[str | None, _option("--colours", "MAP", "A map of matplotlib.")] = None
    exponent: Annotated[float, _option("--exponent", "X", "Of the shades of schlieren; 1: linear.")] = 0.5
    zoom: Annotated[
        str | None, _option("--zoom", "A,B[,C,D]", "Least, greatest horizontal, then vertical.")
    ] = None  # fmt: skip
    title: Annotated[str | None, _option("--title", "TEXT", "In place of ours.")] = None
    width: Annotated[float, _option("--width", "INCHES", "Of the picture.")] = 7.0
    height: Annotated[float, _option("--height", "INCHES", "At most.")] = 9.2
    font: Annotated[float, _option("--font", "POINTS", "Size of the letters.")] = 9.0

    def look(self) -> "Look":
        """The `Look` that they ask for. Raises HiresxError for what is not understood."""
        from hiresx.errors import HiresxError
        from hiresx.output.show.look import Look

        ends, box = options.numbers(self.limits, "--range", "0,2"), options.numbers(self.zoom, "--zoom", "0,10,-3,3")
        if ends is not None and len(ends) != 2:
            raise HiresxError(f'--range "{self.limits}" is not two numbers', "e.g. --range 0,2")
        if box is not None and len(box) not in (2, 4):
            raise HiresxError(f'--zoom "{self.zoom}" is not four numbers (of curves two)', "e.g. --zoom 0,10,-3,3")
        values = tuple(options.numbers(self.levels, "--levels", "0.5,1") or ())
        number = int(values[0]) if self.levels.strip().isdigit() else values
        # Lists of numbers, whose length is looked at above.
        given: dict[str, Any] = {"limits": tuple(ends) if ends else None, "zoom": tuple(box) if box else None}
        return Look(
            plane=self.plane, symmetric=self.symmetric, colours=self.colours, width=self.width, title=self.title,
            height=self.height, font=self.font, contours=self.contours, levels=number, exponent=self.exponent, **given,
        )  # fmt: skip
