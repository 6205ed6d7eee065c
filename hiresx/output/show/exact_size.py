"""Pictures of exactly the requested size, with all content inside: titles are broken into lines, legends get fewer
columns, and panels shrink. Needs matplotlib, which is imported here."""

import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox

from hiresx.errors import HiresxError

PAD = 0.05  # inches around what is drawn
# Inches by which content may reach into the pad: a title above a panel follows the panel in ever smaller steps.
_NEAR = 0.8 * PAD
_TRIES = 12
_LEAST = 0.2  # inches of a panel
_SMALLEST = 4.0  # points of letters
# A word, or several that a formula between dollar signs joins.
_WORD = re.compile(r"(?:\$[^$]*\$|[^\s$])+")


class ExactSizeLayout(ConstrainedLayoutEngine):
    """Layout of a figure of given `width` or `height`: nothing is drawn beyond the size that was asked for. Raises
    HiresxError, when the figure is drawn, if there is no room for its content."""

    def __init__(self, width: bool, height: bool, compress: bool = False):
        super().__init__(compress=compress)
        self._asked = width, height
        self._whole: dict[Any, str] = {}  # texts before they were broken

    @property
    def exact(self) -> bool:
        """True if a size was asked for."""
        return any(self._asked)

    def execute(self, fig: Any) -> None:
        """Lay out the figure `fig`; matplotlib calls this before it draws. Raises HiresxError if there is no room."""
        if not self.exact:
            super().execute(fig)
            return
        self.set(rect=(0.0, 0.0, 1.0, 1.0))
        self._narrow(fig, lambda text: fig.bbox.width)
        self._lay_out(fig)
        _shrink_labels(fig)
        sides = [0.0, 0.0, 0.0, 0.0]  # inches left free at the left, below, at the right, above
        for _ in range(_TRIES):
            over = self._arrange(fig, sides)
            if max(over) <= PAD - _NEAR:
                return
            if max(over[0], over[2]) > PAD - _NEAR:
                self._narrow(fig, partial(_available_width, fig))
            # A title in the middle of a panel moves by half of what the panel shrinks.
            sides = [side + (2 * more if more > 0 else 0) for side, more in zip(sides, over, strict=True)]
        raise _no_room_error(fig)

    def _arrange(self, figure: Any, sides: list[float]) -> list[float]:
        """Lay the panels out with `sides` left free. Returns by how many inches what is drawn comes too near to the
        left, lower, right and upper end."""
        wide, high = figure.get_size_inches()
        inner = 1 - (sides[0] + sides[2]) / wide, 1 - (sides[1] + sides[3]) / high
        if min(inner) <= 0:
            raise _no_room_error(figure)
        self.set(rect=(sides[0] / wide, sides[1] / high, *inner))
        self._lay_out(figure)
        for ax in figure.axes:
            place = ax.get_position(original=True)
            if ax.get_label() != "<colorbar>" and min(place.width * wide, place.height * high) < _LEAST:
                raise _no_room_error(figure)
        box = figure.get_tightbbox()
        across, upwards = self._asked
        return [
            across * (PAD - box.x0), upwards * (PAD - box.y0),
            across * (box.x1 + PAD - wide), upwards * (box.y1 + PAD - high),
        ]  # fmt: skip

    def _lay_out(self, figure: Any) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            super().execute(figure)
        if any("collapsed to zero" in str(warning.message) for warning in caught):
            raise _no_room_error(figure)

    def _narrow(self, figure: Any, room_of: Callable[[Any], float]) -> None:
        """Break titles and names of axes into lines of so many pixels, and legends of the figure into more rows."""
        renderer, pad = figure._get_renderer(), 2 * PAD * figure.dpi
        for text in _texts(figure):
            if text.get_text() and text.get_window_extent(renderer).width > (room := room_of(text) - pad):
                text.set_text(self._whole.setdefault(text, text.get_text()))
                text.set_text("\n".join(_lines(text, renderer, room)))
        _break_legends(figure)

    def cut(self, figure: Any) -> Bbox:
        """Return the part of `figure` that is written to the file, in inches: in each direction all of it if its size
        was requested, or else the part with content."""
        wide, high = figure.get_size_inches()
        box = figure.get_tightbbox().padded(PAD)
        across, upwards = self._asked
        (x0, x1), (y0, y1) = (0, wide) if across else (box.x0, box.x1), (0, high) if upwards else (box.y0, box.y1)
        return Bbox([[x0, y0], [x1, y1]])


def whole_pixels(inches: float, dpi: float) -> float:
    """Round `inches` to a whole number of pixels at `dpi`, so that truncation of inches times dpi gives this number."""
    pixels = round(inches * dpi)
    return inches if int(inches * dpi) == pixels else (pixels + 1e-6) / dpi


def _available_width(figure: Any, text: Any) -> float:
    """Pixels that a text may be wide where it is now."""
    box, wide = text.get_window_extent(), figure.bbox.width
    if text.get_ha() == "left":
        return float(wide - box.x0)
    if text.get_ha() == "right":
        return float(box.x1)
    middle = 0.5 * (box.x0 + box.x1)
    return float(2 * min(middle, wide - middle))


def _shrink_labels(figure: Any) -> None:
    """Use smaller letters for names of vertical axes that are longer than their axes, because they would overlap."""
    for ax in figure.axes:
        label, room = ax.yaxis.label, ax.get_window_extent().height
        length = label.get_window_extent().height if label.get_text() else 0
        if length > room:
            label.set_fontsize(max(_SMALLEST, label.get_fontsize() * room / length))


def _break_legends(figure: Any) -> None:
    """Legends of the figure into more rows, where they are too wide."""
    renderer, pad = figure._get_renderer(), 2 * PAD * figure.dpi
    room = figure.bbox.width - pad
    for legend in figure.legends:
        for columns in range(legend._ncols - 1, 0, -1):
            if legend.get_window_extent(renderer).width <= room:
                break
            legend.set_ncols(columns)
            # matplotlib arranges the entries of a legend when it is made, and then places them.
            legend._init_legend_box(legend.legend_handles, [text.get_text() for text in legend.get_texts()])
            legend._set_loc(legend._loc)


def _texts(figure: Any) -> Iterator[Any]:
    if figure._suptitle is not None:
        yield figure._suptitle
    for ax in figure.axes:
        yield from (ax.title, ax._left_title, ax._right_title, ax.xaxis.label)


def _lines(text: Any, renderer: Any, room: float) -> list[str]:
    """The lines of a matplotlib Text, none wider than `room` pixels unless it is one word."""
    whole, found = text.get_text(), []
    for line in whole.split("\n"):
        held = ""
        for word in _WORD.findall(line):
            text.set_text(f"{held} {word}".strip())
            if held and text.get_window_extent(renderer).width > room:
                found.append(held)
                held = word
            else:
                held = f"{held} {word}".strip()
        found.append(held)
    text.set_text(whole)
    return found


def _no_room_error(figure: Any) -> HiresxError:
    wide, high = figure.get_size_inches()
    return HiresxError(
        f"a picture {wide:.4g} inches wide and {high:.4g} high has no room for its panels, scales and titles",
        'make it larger (--width, --height), its letters smaller (--font 6), or leave the title out (--title "")',
    )
