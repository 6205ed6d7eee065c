"""Options of pictures, the same for `hiresx plot`, `hiresx post` and `.hiresx.plot`."""

import math
from dataclasses import dataclass
from typing import Any

from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.output.show.raster import Box

DEFAULT_LEVELS = 10


@dataclass(frozen=True)
class Look:
    """The appearance of a picture. An entry that is None has a default.

    - `plane`: the plane through a three-dimensional field, such as "z=0".
    - `limits`: the limits of the colours, or of the values of curves.
    - `symmetric`: colours symmetric around 0.
    - `colours`: a colour map of Matplotlib.
    - `zoom`: limits of the horizontal, then of the vertical coordinate; for curves the first two, or all four.
    - `width`, `height`: exact size of the picture in inches.
    - `title`: replaces the default title; "" for none.
    - `font`: font size in points.
    - `contours`: variable of the contour lines, by default the variable in colours.
    - `levels`: number or values of contour lines.
    - `exponent`: the exponent of the brightness of schlieren pictures, by default 0.5; 1 is linear."""

    plane: str | None = None
    limits: tuple[float, float] | None = None
    symmetric: bool = False
    colours: str | None = None
    zoom: Box | tuple[float, float] | None = None
    width: float | None = None
    title: str | None = None
    height: float | None = None
    font: float = picture_file.FONT
    contours: str | None = None
    levels: int | tuple[float, ...] | None = None
    exponent: float | None = None

    def __post_init__(self) -> None:
        """Raises HiresxError for values that no picture can have."""
        if not 2 <= self.wide <= 30 or not 1 <= self.high <= 40:
            raise HiresxError(
                f"a picture {self.wide:g} inches wide and {self.high:g} high is not possible",
                "give a width of 2 to 30, and a height of 1 to 40",
            )
        if not 3 <= self.font <= 40:
            raise HiresxError(f"letters of {self.font:g} points cannot be read", "give a font between 3 and 40")
        if self.exponent is not None and not 0.05 <= self.exponent <= 5:
            raise HiresxError(f"shades to the power {self.exponent:g} show nothing", "give an exponent of 0.05 to 5")
        if self.limits is not None and not self.limits[0] < self.limits[1]:
            low, high = self.limits
            raise HiresxError(f"a range from {low:g} to {high:g} is not possible", "give the lower number first")
        ends = self.zoom or ()
        if any(not low < high for low, high in zip(ends[::2], ends[1::2], strict=True)):
            raise HiresxError(f"a zoom to {ends} shows nothing", "give least and greatest, horizontal, then vertical")
        if isinstance(self.levels, int) and not 1 <= self.levels <= 200:
            raise HiresxError(f"{self.levels} contour lines are not possible", "give 1 to 200, or their values: 0.5,1")
        if isinstance(self.levels, tuple) and not all(map(math.isfinite, self.levels)):
            raise HiresxError(f"contour lines at {self.levels} are not possible", "give finite values: 0.5,1")

    @property
    def wide(self) -> float:
        """Largest width of the picture, in inches: the requested or the default one."""
        return picture_file.WIDTH if self.width is None else self.width

    @property
    def high(self) -> float:
        """Largest height of the picture, in inches: the requested or the default one."""
        return picture_file.HEIGHT if self.height is None else self.height

    @property
    def lines(self) -> int | list[float] | None:
        """The number of contour lines, or their values in ascending order; None if none are drawn."""
        if self.levels is None:
            return None if self.contours is None else DEFAULT_LEVELS
        return self.levels if isinstance(self.levels, int) else sorted(set(self.levels))

    @property
    def box(self) -> Box | None:
        """The zoom of a plane: limits of the horizontal, then of the vertical coordinate in units of the length scale
        L; None without a zoom. Raises HiresxError for a zoom with two numbers, which is meant for curves."""
        if self.zoom is not None and len(self.zoom) != 4:
            raise HiresxError("a zoom of a plane has four numbers", "least, greatest horizontal, then vertical")
        return self.zoom

    def style(self, more: dict[str, Any] | None = None) -> Any:
        """Return a context in which Matplotlib uses the style of these pictures with the requested font size. `more`:
        further settings of Matplotlib (rcParams)."""
        large, small = self.font, self.font - 1
        named = {"font.size": large, "axes.titlesize": large, "axes.labelsize": large, "figure.titlesize": large + 1}
        named |= {"xtick.labelsize": small, "ytick.labelsize": small, "legend.fontsize": small}
        return picture_file.style(named | (more or {}))

    def heading(self, ours: str) -> str:
        """Return the title of the picture: the title that the user has requested or, if there is none, `ours`."""
        return ours if self.title is None else self.title

    def figure(self, height: float, layout: picture_file.Layout = "constrained") -> Any:
        """Return an empty Matplotlib figure of the size that the user has requested. Without such a height it is
        `height` inches high, but not higher than a page. `layout`: Matplotlib's layout of the panels."""
        height = min(height, self.high) if self.height is None else self.height
        return picture_file.figure(height, layout, self.wide, (self.width is not None, self.height is not None))

    def curves(self, axes: Any) -> None:
        """Set the limits of the axes that the user has requested in a plot of curves. `axes`: the panels, as Matplotlib
        Axes."""
        for ax in axes:
            if self.zoom is not None:
                ax.set_xlim(*self.zoom[:2])
            if self.zoom is not None and len(self.zoom) == 4:
                ax.set_ylim(*self.zoom[2:])
            if self.limits is not None:
                ax.set_ylim(*self.limits)
