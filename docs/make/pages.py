"""What the makers of pages share: they read stored results, fill a template of templates/ and write the page."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_tables import cell, table

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.saved import files

# Programs in docs/make/ by the modules of the package that stored results name, from before they were moved.
MOVED = {
    "bench.counted": "stage_costs",
    "bench.exchange": "exchange_times",
    "bench.loop_modes": "loop_times",
    "bench.precisions": "precision_speed",
    "bench.sizes": "grid_sizes",
    "device.nvrtc": "kernel_registers",
    "scaling.ready": "ready",
    "verify.device": "measure_gpu",
    "verify.robustness": "robustness_runs",
}


def current_text(text: str) -> str:
    """A text of a stored result, with the programs that it names where they are now."""
    for module, program in MOVED.items():
        text = text.replace(f"python -m hiresx.{module}", f"python docs/make/{program}.py")
    return text


def by(rows: Iterable[dict[str, Any]], key: str) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Each value of `key` once, in the order of the rows, with the rows that have it."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return list(found.items())


def count_each(names: Iterable[str]) -> list[str]:
    """Each name once, with how often it was there if more than once: "8 NVIDIA H200"."""
    return [name if count == 1 else f"{count} {name}" for name, count in Counter(names).items()]


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals |= {"table": table, "plural": plural}
TEMPLATES.filters |= {"cell": cell, "by": by}


def fill(template: str, **values: Any) -> str:
    """The text of a page: templates/`template` with these values, ended by one line break."""
    return TEMPLATES.get_template(template).render(values).rstrip("\n") + "\n"


def read(path: Path, needed: Sequence[str], held: str, hint: str) -> dict[str, Any]:
    """The document in the JSON file `path`. Raises HiresxError, with `hint`, for a file that cannot be read and for one
    without the `needed` keys, which holds no results that are called `held`."""
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key in needed:
            document[key]
        document |= {key: current_text(document[key]) for key in ("command", "predicted_from") if key in document}
    except OSError as error:
        raise files.io_error(path, error, "read") from None
    except (ValueError, KeyError, TypeError) as error:
        raise HiresxError(f"{path} holds no {held}: {type(error).__name__}: {error}", hint) from None
    return document


def write(text: str, out: Path) -> None:
    """Write the page `out`. Raises HiresxError where that fails."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with files.replacing(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise files.io_error(out, error) from None


def command(script: str, results: Sequence[Path], out: Path) -> str:
    """The command that makes a page."""
    words = [f"python docs/make/{script}", *(path.as_posix() for path in results), "--out", out.as_posix()]
    return " ".join(words)


def command_line(
    script: str,
    document: str | None,
    make: Callable[[list[Path], Path], None],
    arguments: Sequence[str] | None,
    out: str = "the page to write",
) -> int:
    """The command line of a `script` that makes something of stored results; returns its exit status. `document`: what
    the script says of itself; `out`: what --out names."""
    summary = (document or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog=f"python docs/make/{script}", description=summary)
    parser.add_argument("results", nargs="+", type=Path, help="JSON files of results")
    parser.add_argument("--out", type=Path, required=True, help=out)
    options = parser.parse_args(arguments)
    try:
        make(options.results, options.out)
    except HiresxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
