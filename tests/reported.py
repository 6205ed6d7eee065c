"""What commands print, whole: tests/reports/NAME.txt holds the text that was looked through once, and a test says that
it is still printed, every word, figure and unit of it. Where a report has changed on purpose, HIRESX_REPORTS=write makes
the file anew (then look at the difference in git).

Left out, as what differs between machines: places among equals, figures that are round-off, blanks at the ends of lines.
"""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).with_name("reports")
# "2.676e-12 at 171, 126, 0" is a zero, and of equal volumes either half of a symmetric grid may have the least.
_PLACE = re.compile(r" at (?:\d+(?:, \d+)+|\([^()]*\))")
_NOISE = re.compile(r"-?\d(?:\.\d+)?e-(?:1\d|2\d)\b")


def check(name: str, text: str, *, places: bool = True, **named: object) -> None:
    """Raises AssertionError unless `text` is what the file says, lines as a table has them. `named`: words that stand
    for what is another one each time, as a folder; `places`: whether those of extremes are compared."""
    for word, what in named.items():
        text = text.replace(str(what), f"<{word}>")
    if not places:
        text = _PLACE.sub("", text)
        text = "\n".join(re.sub(r" {2,}|─+", "  ", line) for line in text.splitlines())
        text = re.sub(r" *\n(?=[a-z])", " ", text)  # a title is as wide as its table
    found = "".join(f"{line.rstrip()}\n" for line in _NOISE.sub("~0", text).splitlines())
    path = FOLDER / f"{name}.txt"
    if os.environ.get("HIRESX_REPORTS") == "write":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8"), f"not as in {path}; if it is meant, HIRESX_REPORTS=write"
