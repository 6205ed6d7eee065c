"""Output of commands: tables for people, JSON for programs, and errors in the same form for both."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hiresx.base.json_types import to_json_types
from hiresx.base.termination_signals import ignore_broken_output
from hiresx.errors import HiresxError

if TYPE_CHECKING:
    from rich.console import Console


def end_with_error(cause: BaseException, status: int, message: str, hint: str, as_json: bool, **more: Any) -> int:
    """Print the error that ends this process, and return the exit status `status`. An error that occurred on all ranks
    of an MPI run is printed once. `cause`: the exception. `message`: what is wrong. `hint`: what to do. `as_json`:
    whether a JSON document is printed in place of text. `more`: further entries of the JSON document."""
    try:
        from hiresx.mpi.communicator import end_process
    except Exception:  # it imports NumPy, which may be broken
        error(message, hint, as_json, **more)
        return status
    return end_process(cause, status, lambda prefix: error(prefix + message, hint, as_json, **more))


def error(message: str, hint: str, as_json: bool, **more: Any) -> None:
    """Print an error `message` and a `hint` to stderr or, if `as_json` is true, to stdout as the JSON document
    {"error", "hint", ...}. `more`: further entries of the document."""
    with ignore_broken_output():
        if as_json and getattr(sys.stdout, "name", "") != os.devnull:  # otherwise `_leave_stdout` handles it
            # mend: the former name of hint, for one version
            print_json({"error": message, "hint": hint, "mend": hint, **more})
            return
        try:
            from rich.console import Console
            from rich.text import Text
        except Exception:  # rich itself may be broken
            print(f"error: {message}" + (f"\n  {hint}" if hint else ""), file=sys.stderr)
            return
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        console.print(Text.assemble(("error: ", "bold red"), message))
        if hint:
            console.print(Text(f"  {hint}"))


def note(line: str) -> None:
    """Print the text `line` to stderr as a note, which is not an error."""
    with ignore_broken_output():
        print(f"note: {line}", file=sys.stderr, flush=True)


def progress(line: str) -> None:
    """Print a line about the progress of a computation to stderr."""
    with ignore_broken_output():
        print(line, file=sys.stderr, flush=True)


def note_once(line: str) -> None:
    """Print the text `line` to stderr as a note, on the first rank of an MPI run only."""
    from hiresx.mpi.launcher_environment import process_number

    if process_number() == 0:
        note(line)


def print_json(document: Any) -> None:
    """Print `document` as JSON to stdout. Numbers of NumPy and paths are converted, and nan and inf become null."""
    import json

    with _to_stdout():
        print(json.dumps(to_json_types(document), indent=2, allow_nan=False), flush=True)


@contextlib.contextmanager
def only_json(as_json: bool) -> Iterator[None]:
    """Return a context manager that redirects output from stdout to stderr if `as_json` is true, so that stdout
    contains only the JSON document that is printed afterwards."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table to stdout. `title`: its title. `columns`: the headings. `rows`: the cells of each row. Columns of
    numbers are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    shown = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_header=any(columns),
    )
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        shown.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(text(cell)) for cell in row))
    with _to_stdout():
        console().print(shown)


@contextlib.contextmanager
def _to_stdout() -> Iterator[None]:
    """Return a context for printing results. Raises HiresxError if they cannot be written, unless the reader is
    gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _leave_stdout()
        raise HiresxError(
            f"standard output cannot be written: {error.strerror or error}", "see where the output goes"
        ) from None


def _leave_stdout() -> None:
    """Redirect stdout to the empty device. Python would otherwise flush it again at the end and change the exit
    status."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def mapping(title: str, values: Mapping[str, Any]) -> None:
    """Print the nested dictionary `values` as a table of dotted keys and values. `title`: the title of the table."""
    table(title, ["", ""], _flat(values))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from _flat(item, f"{name}.{index}.")
        else:
            yield name, text(value)


def text(value: Any) -> str:
    """Return `value` as readable text: floats with six digits, entries of lists and dictionaries separated by
    commas."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} = {text(one)}" for name, one in value.items())
    return str(value)


def say(line: str, needed: bool = True) -> None:
    """Print `line` to stdout without markup and wrapping, so that paths and commands can be copied. If it cannot be
    written, HiresxError is raised if `needed` is true; otherwise, as for reports on finished work, only a note is
    printed to stderr."""
    try:
        with ignore_broken_output(), _to_stdout():
            print(line, flush=True)
    except HiresxError as error:
        if needed:
            raise
        note(error.message)


def console() -> "Console":
    """Return the console of the library Rich on which tables are printed. If its output goes to a file, it is 160
    characters wide."""
    from rich.console import Console

    from hiresx.mpi.launcher_environment import launcher_name

    # Open MPI gives its processes a terminal as output even if the output goes to a file, which would then contain
    # codes for colours.
    file = launcher_name() == "Open MPI" or not sys.stdout.isatty()
    plain = file and "FORCE_COLOR" not in os.environ
    return Console(highlight=False, force_terminal=False if plain else None, width=160 if file else None)
