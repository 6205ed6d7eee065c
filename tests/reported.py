"""What commands print, whole: tests/reports/NAME.txt holds the text that was looked through once, and a test says that
it is still printed, every word, figure and unit of it. Where a report has changed on purpose, HIRESX_REPORTS=write
makes the file anew (then look at the difference in git).

Left out is what differs between machines: places among equals, figures that are round-off, blanks at the ends of lines.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).with_name("reports")
# "2.676e-12 at 171, 126, 0" is a zero, and of equal volumes either half of a symmetric grid may have the least.
_PLACE = re.compile(r" at (?:\d+(?:, \d+)+|\([^()]*\))")
_NOISE = re.compile(r"-?\d(?:\.\d+)?e-(?:1\d|2\d)\b")
# Of a document what is another one each time.
_LEFT_OUT = ("files", "replaced", "run")


def check(name: str, text: str, *, places: bool = True, **named: object) -> None:
    """Raises AssertionError unless `text` is what the file says, lines as a table has them. `named`: words that stand
    for what is another one each time, as a folder; without `places` those of extremes, and the widths of columns that
    follow from them, are left out."""
    for word, what in named.items():
        text = text.replace(str(what), f"<{word}>")
    if not places:
        text = _PLACE.sub("", text)
        text = "\n".join(re.sub(r" {2,}|─+", "  ", line) for line in text.splitlines())
        text = re.sub(r" *\n(?=[a-z])", " ", text)  # a title is as wide as its table
    found = "".join(f"{line.rstrip()}\n" for line in _NOISE.sub("0", text).splitlines())
    path = FOLDER / f"{name}.txt"
    if os.environ.get("HIRESX_REPORTS") == "write":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8"), f"not as in {path}; if it is meant, HIRESX_REPORTS=write"


def figures(what: object, digits: int = 5) -> str:
    """The numbers and words of a document, a line each, or of a data set: of each variable its dimensions, range, mean,
    rms and a moment that tells in what order values stand."""
    return "\n".join(f"{path}: {text}" for path, text in _figures(what, "", digits))


def _figures(what: object, path: str, digits: int) -> Iterator[tuple[str, str]]:
    if hasattr(what, "data_vars"):
        for name in sorted([*what.data_vars, *what.coords]):
            yield from _figures(what[name].values, f"{path} {name} {what[name].dims}", digits)
    elif isinstance(what, Mapping):
        for key, value in what.items():
            if key not in _LEFT_OUT:
                yield from _figures(value, f"{path}.{key}" if path else str(key), digits)
    elif isinstance(what, np.ndarray) and what.dtype.kind in "fc" and what.size > 4:
        yield path, f"{what.shape} {' '.join(_of_an_array(what, digits))}"
    elif isinstance(what, list | tuple | np.ndarray):
        for n, value in enumerate(what.tolist() if isinstance(what, np.ndarray) else what):
            yield from _figures(value, f"{path}.{n}", digits)
    else:
        yield path, _rounded(what, digits) if isinstance(what, float) else str(what)


def _of_an_array(values: np.ndarray, digits: int) -> Iterator[str]:
    finite = np.isfinite(values)
    kept = np.where(finite, values, 0.0).ravel()
    order = np.sin(1.0 + np.arange(kept.size))
    for part in (kept.real, kept.imag) if kept.dtype.kind == "c" else (kept,):
        found = [part.min(), part.max(), part.mean(), np.sqrt((part**2).mean()), (part * order).mean()]
        least = 1e-6 * max(map(abs, found))
        yield from (_rounded(float(number) if abs(number) > least else 0.0, digits) for number in found)
    if not finite.all():
        yield f"lost {np.count_nonzero(~finite)}"


def _rounded(number: float, digits: int) -> str:
    return "0" if abs(number) < 1e-10 else f"{number:.{digits}g}"


def drawn(figure: Any) -> str:
    """What a picture of matplotlib shows: sizes, words, axes, and the figures of all that is drawn in them."""
    return "\n".join(_drawn(figure))


def _drawn(figure: Any) -> Iterator[str]:
    yield f"{' x '.join(f'{inches:.4g}' for inches in figure.get_size_inches())} inches"
    yield from (f"text {text.get_text()!r}" for text in figure.texts if text.get_text())
    if figure._suptitle is not None and figure._suptitle not in figure.texts:
        yield f"heading {figure._suptitle.get_text()!r}"
    for n, ax in enumerate(figure.axes):
        yield f"axes {n}: {ax.get_title()!r} {ax.get_title(loc='left')!r} x {ax.get_xlabel()!r} y {ax.get_ylabel()!r}"
        for name, scale, ends in (("x", ax.get_xscale(), ax.get_xlim()), ("y", ax.get_yscale(), ax.get_ylim())):
            yield f"  {name} {scale} {' '.join(_rounded(float(end), 4) for end in ends)}"
        for line in ax.lines:
            look = f"{line.get_linestyle()} {line.get_marker()} {line.get_linewidth():.3g} {_colour(line.get_color())}"
            x, y = (np.atleast_1d(np.asarray(part, float)) for part in line.get_data())
            yield f"  line {_named(line)} {look}: {figures(x, 4)}; {figures(y, 4)}"
        for kind in (*ax.collections, *ax.images):
            values = kind.get_array()
            told = "" if values is None else figures(np.ma.filled(np.ma.asarray(values, float), np.nan), 4)
            ends = "" if values is None else " ".join(_rounded(float(end), 4) for end in kind.get_clim())
            yield f"  {type(kind).__name__} {_named(kind)} {kind.get_alpha()} {told} {ends}"
        yield from (f"  {type(patch).__name__} {_named(patch)}" for patch in ax.patches)
        for text in ax.texts:
            places = dict.fromkeys((text.get_position(), tuple(getattr(text, "xy", text.get_position()))))
            place = " of ".join(" ".join(_rounded(float(part), 4) for part in place) for place in places)
            yield f"  text {text.get_text()!r} {place} {text.get_ha()} {text.get_va()}"
        if (legend := ax.get_legend()) is not None:
            yield f"  legend {[text.get_text() for text in legend.get_texts()]}"


def _named(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else repr(label)


def _colour(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour)
