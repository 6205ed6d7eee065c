"""The common style of all pictures, and functions that save them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from hiresx.base import optional
from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.saved import files

Layout = Literal["constrained", "compressed"]  # how matplotlib arranges the panels of a figure
FONT = 9  # points
_LENGTH = re.compile(r"(?<![A-Za-z{])L(?![A-Za-z_}])")
_GREEK = {"rho": r"\rho", "mu": r"\mu"}
STYLE: dict[str, Any] = {
    "font.size": FONT,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.1,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "mathtext.fontset": "dejavuserif",
    "savefig.dpi": 200,
    "svg.hashsalt": "hiresx",  # the same picture gives the same file
}
# Colours of the first curves, and of further ones.
BLUE, OTHERS = "#0b61a4", ("#c8501e", "#3a8a3a", "#7a4fa3", "#8c6d1f")
TIME = r"$t\,c_\mathrm{ref}/L$"
WIDTH, HEIGHT = 7.0, 9.2  # width of the text of a page, in inches


def require_matplotlib() -> None:
    """Raise HiresxError, with the command that installs it, if Matplotlib is missing or cannot be imported."""
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg", "PIL.Image"):
        optional.import_required(name, "plotting needs matplotlib", optional.install_command("plot"))


def style(more: Mapping[str, Any] | None = None) -> Any:
    """Return a context in which Matplotlib uses the style of this project's pictures. `more`: further settings of
    Matplotlib (rcParams)."""
    import matplotlib as mpl

    settings: Any = STYLE | dict(more or {})
    return mpl.rc_context(settings)


def figure(
    height: float, layout: Layout = "constrained", width: float = WIDTH, exact: tuple[bool, bool] = (False, False)
) -> Any:
    """Return an empty Matplotlib figure, `width` inches wide (by default as wide as a page) and `height` inches high.
    It needs no window system. `layout`: Matplotlib's layout of the panels. `exact`: whether the picture in the file
    must have exactly this width and this height (`exact_size.ExactSizeLayout`)."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    from hiresx.output.show import exact_size

    dots = rcParams["figure.dpi"], rcParams["savefig.dpi"]
    finest = max(dot for dot in dots if not isinstance(dot, str))
    width, height = (exact_size.whole_pixels(inches, finest) for inches in (width, height))
    return Figure(figsize=(width, height), layout=exact_size.ExactSizeLayout(*exact, compress=layout == "compressed"))


def distinct_colours(count: int) -> list[Any]:
    """Return `count` colours for the curves of a plot, as Matplotlib colours. More than five are taken from a colour
    map, so that consecutive ones are similar."""
    first = [BLUE, *OTHERS]
    if count <= len(first):
        return first[:count]
    import matplotlib as mpl

    return [mpl.colormaps["viridis"](0.95 * n / (count - 1)) for n in range(count)]


def legend_beside(ax: Any, **more: Any) -> None:
    """Place the legend of the Axes `ax` to the right of the panel, where there are no curves. `more`: further arguments
    of Matplotlib's `legend`."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0, **more)


def label_points(ax: Any, places: Sequence[tuple[float, float, str]]) -> None:
    """Write names at points of curves in the Axes `ax`, in rows above the curves, each with a vertical line down to its
    point. `places`: x, y and name of each point. Set the limits of both axes first; the upper limit of the vertical
    axis is increased."""
    from matplotlib.transforms import offset_copy

    if not places:
        return
    figure, size = ax.figure, 8.0
    inches = ax.get_position().size * figure.get_size_inches()
    rows: list[float] = []  # the end of the last name of each row, as a fraction of the width
    placed = []
    for x, y, name in sorted(places):
        share = float(ax.transLimits.transform(ax.transScale.transform((x, y)))[0])
        half = 0.5 * 0.62 * size * (len(name) + 2) / 72 / inches[0]
        side = "left" if share < half else "right" if share > 1 - half else "center"
        begin = share - {"left": 0, "center": half, "right": 2 * half}[side]
        row = next((n for n, end in enumerate(rows) if end <= begin), len(rows))
        rows[row : row + 1] = [begin + 2 * half]
        placed.append((row, x, y, name, side))
    low, high = ax.get_ylim()
    taken = (1.5 * size * len(rows) + 6) / 72 / inches[1]
    top = low + (high - low) / max(1 - 1.2 * taken, 0.3)
    ax.set_ylim(low, top)
    for row, x, y, name, side in placed:
        down = offset_copy(ax.get_xaxis_transform(), figure, 0, -3 - 1.5 * size * row, units="points")
        ax.vlines(x, y, top, color="0.5", lw=0.5, zorder=2.5)
        ax.text(
            x,
            1.0,
            name,
            transform=down,
            ha=side,
            va="top",
            fontsize=size,
            bbox={"fc": "white", "ec": "none", "pad": 0.5},
        )


def name_axes(ax: Any, horizontal: str, vertical: str, true: bool) -> None:
    """Label the axes of a picture of a plane. `ax`: the Axes. `horizontal`, `vertical`: the names of the coordinates.
    `true`: whether both axes have the same scale (true proportions); if not, the label says "(stretched)"."""
    ax.set_aspect("equal" if true else "auto")
    ax.set_xlabel(f"${horizontal}/L$")
    ax.set_ylabel(f"${vertical}/L$" + ("" if true else " (stretched)"))
    ax.tick_params(direction="out", length=2.5)


def add_grid(ax: Any, minor: bool = False) -> None:
    """Draw grid lines behind the curves in the Axes `ax`. `minor`: whether lines at minor ticks are drawn, too."""
    ax.grid(lw=0.3, color="0.85", which="both" if minor else "major")
    ax.set_axisbelow(True)


def symbol(name: str) -> str:
    """Return the symbol with the unit of a flow variable, or of its root mean square `rms_<name>`, as a formula of
    Matplotlib for the label of an axis. `name`: the name of the variable, which is returned unchanged if the variable
    has no symbol."""
    if (of := name.removeprefix("rms_")) not in derived.VARIABLES:
        return name
    return f"{'rms ' if of != name else ''}${derived.VARIABLES[of].symbol}$"


def unit(units: str) -> str:
    """Return the unit `units`, such as "rho_ref c_ref^2 / L", as a formula of Matplotlib for the label of an axis. A
    text that is not such a unit is returned unchanged."""
    words = re.split(r" |(?=\))|(?<=\()", units)
    if not units or not all(re.fullmatch(r"/|\(|(\)|[A-Za-z]+(_[A-Za-z]+)?)(\^\d+)?", word) for word in words):
        return units
    return "$" + r"\,".join(map(_factor, words)).replace(r"\,/\,", "/").replace(r"(\,", "(").replace(r"\,)", ")") + "$"


def level(reference: str) -> str:
    """Return the label of the unit of an axis of levels in dB, with formulas in Matplotlib's syntax. `reference`: the
    unit in plain text, such as "dB re rho_ref c_ref^2" or "dB re 20 uPa"."""
    over = reference.removeprefix("dB re ")
    return "dB re " + (r"20 $\mu$Pa" if over == "20 uPa" else unit(over))


def _factor(word: str) -> str:
    """Return one factor of `unit`: a letter is slanted, a word upright, the text after _ an index."""
    name, _, power = word.partition("^")
    letter, _, index = name.partition("_")
    letter = _GREEK.get(letter, letter if len(letter) == 1 else rf"\mathrm{{{letter}}}")
    return letter + (rf"_\mathrm{{{index}}}" if index else "") + (f"^{{{power}}}" if power else "")


def use_length_symbol(figure: Any, case: Mapping[str, Any] | None) -> Any:
    """Replace the letter L, the length scale, in all texts of a Matplotlib figure by the symbol that the key
    `length_symbol` of `case` gives. Returns the figure."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_text(with_length_symbol(text.get_text(), case))
    return figure


def with_length_symbol(words: str, case: Mapping[str, Any] | None) -> str:
    """Return the text `words`, in whose formulas the letter L, the length scale, is replaced by the symbol that the key
    `length_symbol` of `case` gives."""
    symbol_of_length = _factor(str((case or {}).get("length_symbol") or "L"))
    parts = words.split("$")  # every second part is a formula
    parts[1::2] = [_LENGTH.sub(lambda _: symbol_of_length, part) for part in parts[1::2]]
    return "$".join(parts)


def use_frequency_axis(ax: Any, least: float, largest: float) -> None:
    """Make the horizontal axis of the Axes `ax` logarithmic, from the frequency `least` to `largest`. The labels are
    plain numbers, not powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if largest < 1000 * least else (1,)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(least, largest)


def check_target(target: Path) -> None:
    """Raise HiresxError if no picture can be written to the path `target`: Matplotlib is missing, it cannot write this
    file type, or the path is a folder."""
    require_matplotlib()
    from matplotlib.figure import Figure

    _kind(Figure(), target)
    if target.is_dir():
        raise HiresxError(f"{target}: this is a folder", "name a file in it, as .png, .svg or .pdf")


def _kind(drawn: Any, target: Path) -> str:
    """Return the kind of picture for the name of a file. Raises HiresxError for one that cannot be written."""
    kind = target.suffix[1:].lower()
    if kind not in drawn.canvas.get_supported_filetypes():
        raise HiresxError(f'{target}: pictures cannot be written as "{target.suffix}"', "use .png, .svg or .pdf")
    return kind


def save(drawn: Any, target: Path) -> Path:
    """Write the Matplotlib figure `drawn` to the file `target` (.png, .svg, .pdf, ...), and return this path. Raises
    HiresxError if the file cannot be written."""
    kind = _kind(drawn, target)
    # With dates in the files, two plots of the same fields would differ.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with files.writing(target, parents=True) as temporary:
        drawn.savefig(temporary, format=kind, metadata=metadata, bbox_inches=_bounding_box(drawn), pad_inches=0.05)
    return target


def _bounding_box(drawn: Any) -> Any:
    """Return the written part of a figure: the drawn part, or all of a requested size."""
    from hiresx.output.show.exact_size import ExactSizeLayout

    engine = drawn.get_layout_engine()
    if not isinstance(engine, ExactSizeLayout) or not engine.exact:
        return "tight"
    drawn.draw_without_rendering()
    return engine.cut(drawn)
