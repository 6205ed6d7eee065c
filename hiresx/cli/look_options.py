"""Options for the appearance of pictures, shared by `hiresx plot` and `hiresx post`."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from hiresx.cli import options
from hiresx.cli.options import option

if TYPE_CHECKING:
    from hiresx.output.show.look import Look


def _option(name: str, metavar: str | None, text: str) -> Any:
    return option(name, metavar, text, rich_help_panel="Look")


@dataclass(frozen=True)
class LookOptions:
    """Options for the appearance of a picture. `hiresx.cli.option_groups` adds them to commands."""

    contours: Annotated[str | None, _option("--contours", "V", "Add contour lines of this variable.")] = None
    levels: Annotated[
        str | None, _option("--levels", "N|A,B,...", "Number or values of contour lines; see --contours.")
    ] = None
    plane: Annotated[str | None, _option("--plane", "z=0", "Plane of a 3-D field.")] = None
    limits: Annotated[
        str | None, _option("--range", "A,B", "Range of the colours, or of curves.")
    ] = None  # fmt: skip
    symmetric: Annotated[bool, _option("--symmetric", None, "Colours symmetric around 0.")] = False
    colours: Annotated[str | None, _option("--colours", "MAP", "A colour map of matplotlib.")] = None
    exponent: Annotated[float | None, _option("--exponent", "X", "Exponent of schlieren shades; 1: linear.")] = None
    zoom: Annotated[
        str | None, _option("--zoom", "A,B[,C,D]", "Least, greatest horizontal, then vertical.")
    ] = None  # fmt: skip
    title: Annotated[str | None, _option("--title", "TEXT", "Another title.")] = None
    width: Annotated[float | None, _option("--width", "INCHES", "Width of the picture; about 7 if absent.")] = None
    height: Annotated[float | None, _option("--height", "INCHES", "Height of the picture; as drawn if absent.")] = None
    font: Annotated[float | None, _option("--font", "POINTS", "Size of the letters; 9 if absent.")] = None

    def given_options(self) -> dict[str, Any]:
        """Return the values of those options of the command line that were given, by the names of the options, such as
        "--zoom"."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        asked = {name: value for name, value in values.items() if value not in (None, False)}
        return {"--range" if name == "limits" else f"--{name}": value for name, value in asked.items()}

    def arguments(self) -> dict[str, Any]:
        """Return {"look": look}, the keyword argument of functions that draw a picture: the `Look` (appearance) that
        these options describe."""
        return {"look": self.look()}

    def look(self) -> "Look":
        """Return the appearance of a picture, a `Look`, that these options describe. Raises HiresxError for an option
        with an invalid value."""
        from hiresx.output.show.look import Look

        is_number = self.levels is not None and self.levels.strip().isdigit()
        given: dict[str, Any] = {
            "limits": options.numbers(self.limits, "--range", "0,2", 2),
            "zoom": options.numbers(self.zoom, "--zoom", "0,10,-3,3", 2, 4),
            "levels": int(self.levels or 0) if is_number else options.numbers(self.levels, "--levels", "0.5,1"),
        }
        given |= {} if self.font is None else {"font": self.font}
        return Look(
            plane=self.plane, symmetric=self.symmetric, colours=self.colours, width=self.width, title=self.title,
            height=self.height, contours=self.contours, exponent=self.exponent, **given,
        )  # fmt: skip
