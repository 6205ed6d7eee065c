"""Pictures of exactly the requested size, with all content inside: titles are broken into lines, legends get fewer
columns, and panels shrink. Needs matplotlib, which is imported here."""

import re
import warnings
from typing import Any

from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox

from hiresx.errors import HiresxError

PAD = 0.05  # margin around the content, in inches
_LEAST = 0.2  # least size of a panel, in inches
_SMALLEST = 4.0  # least size of letters, in points
_FORMULA = re.compile(r"\$[^$]*\$")


class ExactSizeLayout(ConstrainedLayoutEngine):
    """A layout engine of Matplotlib for a figure whose exact width or height was requested: nothing is drawn outside of
    this size. `width`, `height`: whether this size was requested. `compress`: see Matplotlib's ConstrainedLayoutEngine.
    Raises HiresxError, when the figure is drawn, if its content does not fit."""

    def __init__(self, width: bool, height: bool, compress: bool = False):
        super().__init__(compress=compress)
        self._asked = width, height

    @property
    def exact(self) -> bool:
        """True if the user has requested the exact width or height of the figure."""
        return any(self._asked)

    def execute(self, fig: Any) -> None:
        """Arrange the content of the figure `fig`. Matplotlib calls this method before it draws. Raises HiresxError if
        the content does not fit into the requested size."""
        if not self.exact:
            super().execute(fig)
            return
        texts = [text for ax in fig.axes for text in (ax.title, ax._left_title, ax._right_title, ax.xaxis.label)]
        for text in texts if fig._suptitle is None else [fig._suptitle, *texts]:
            _wrap(text, 2 * PAD * fig.dpi)
        _break_legends(fig)
        wide, high = fig.get_size_inches()
        self.set(rect=(PAD / wide, PAD / high, 1 - 2 * PAD / wide, 1 - 2 * PAD / high))
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*collapsed to zero")
            try:
                super().execute(fig)
                _shrink_labels(fig)
                super().execute(fig)
            except UserWarning:
                raise _no_room_error(fig) from None
        panels = [ax.get_position(original=True) for ax in fig.axes if ax.get_label() != "<colorbar>"]
        box = fig.get_tightbbox()
        across, upwards = self._asked
        if (
            any(min(place.width * wide, place.height * high) < _LEAST for place in panels)
            or (across and (box.x0 < 0 or box.x1 > wide))
            or (upwards and (box.y0 < 0 or box.y1 > high))
        ):
            raise _no_room_error(fig)

    def cut(self, figure: Any) -> Bbox:
        """Return the rectangle of `figure` that is written to the file, as a Matplotlib Bbox in inches. It spans the
        whole figure in each direction in which the user has requested the size, and otherwise the range with
        content."""
        wide, high = figure.get_size_inches()
        box = figure.get_tightbbox().padded(PAD)
        across, upwards = self._asked
        (x0, x1), (y0, y1) = (0, wide) if across else (box.x0, box.x1), (0, high) if upwards else (box.y0, box.y1)
        return Bbox([[x0, y0], [x1, y1]])


def whole_pixels(inches: float, dpi: float) -> float:
    """Return `inches`, or a length that hardly differs from it, such that int(length * dpi) is round(inches * dpi).
    `dpi`: pixels per inch. Matplotlib truncates the number of pixels."""
    pixels = round(inches * dpi)
    return inches if int(inches * dpi) == pixels else (pixels + 1e-6) / dpi


def _wrap(text: Any, margin: float) -> None:
    """Let matplotlib break a text at the edges of the figure less `margin`, in pixels, but not within formulas."""
    if not text.get_wrap():
        room = text._get_wrap_line_width
        text._get_wrap_line_width = lambda: room() - margin
        text.set_wrap(True)
    text.set_text(_FORMULA.sub(lambda found: found[0].replace(" ", "{}"), text.get_text()))


def _shrink_labels(figure: Any) -> None:
    """Use smaller letters for names of vertical axes that are longer than their axes, because they would overlap."""
    for ax in figure.axes:
        label, room = ax.yaxis.label, ax.get_window_extent().height
        length = label.get_window_extent().height if label.get_text() else 0
        if length > room:
            label.set_fontsize(max(_SMALLEST, label.get_fontsize() * room / length))


def _break_legends(figure: Any) -> None:
    """Divide legends of the figure into more rows if they are too wide."""
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


def _no_room_error(figure: Any) -> HiresxError:
    wide, high = figure.get_size_inches()
    return HiresxError(
        f"a picture {wide:.4g} inches wide and {high:.4g} high has no room for its panels, scales and titles",
        'make it larger (--width, --height), its letters smaller (--font 6), or leave the title out (--title "")',
    )
