"""The command line. `hiresx` calls `main`. Each command has a file, and large libraries are only imported by the
commands that need them.

Exit status: 0 the command succeeded; 1 it ran, but found a fault (a check of `verify` failed, or `doctor` misses
something that runs on a CPU need); 2 an error that the user can correct; 3 the run stopped before its end; 130
interrupted; 128 + N terminated by signal N (143: SIGTERM).
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line `arguments` (without the program's name; by default the arguments of this process), and end
    the process with the exit status of the command."""
    _fill_closed_streams()
    status = execute(sys.argv[1:] if arguments is None else list(arguments))
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # the reader of the pipe is gone: Python would write again and change the exit status
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    sys.exit(status)


def _fill_closed_streams() -> None:
    """Open those of stdin, stdout and stderr that were closed (hiresx ... >&-) as the empty device. Otherwise the next
    files that are opened would have their numbers, and the output of libraries would go into these files."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def execute(arguments: list[str]) -> int:
    """Run the command line `arguments` (without the program's name) and return its exit status. Errors are printed, not
    raised. If --json is among the arguments, stdout contains only JSON, errors included."""
    from hiresx.base.termination_signals import Terminated
    from hiresx.cli import terminal
    from hiresx.errors import FILE_LIMIT, FILE_LIMIT_HINT, HiresxError, describe, is_file_limit

    as_json = "--json" in arguments
    for word in arguments:
        shown = word.encode(errors="surrogateescape").decode(errors="backslashreplace")
        if shown != word:
            terminal.error(f'"{shown}" is not UTF-8', "rename it, or go to its folder and leave that out", as_json)
            return 2
    for n, word in enumerate(arguments):
        # Path("") would be the current folder
        if word == "--out=" or (word == "--out" and arguments[n + 1 : n + 2] == [""]):
            terminal.error('--out "" is empty', "name a folder or file, or leave --out away", as_json)
            return 2
    arguments = _complete_arguments(arguments)
    try:
        from hiresx.base.notify import notifications_to
        from hiresx.cli.app import command

        with notifications_to(terminal.note_once):
            return command().main(arguments, prog_name="hiresx", standalone_mode=False) or 0
    except HiresxError as error:
        return terminal.end_with_error(error, 2, error.message, error.hint, as_json)
    except MemoryError as error:
        hint = "take fewer points; hiresx check says what a case needs"
        return terminal.end_with_error(error, 2, f"out of memory: {error}", hint, as_json)
    except KeyboardInterrupt as error:
        return terminal.end_with_error(error, 130, "interrupted", "", as_json)
    except SystemExit as error:
        if isinstance(error, Terminated):
            return terminal.end_with_error(error, int(error.code or 0), str(error), "", as_json)
        if isinstance(error.__context__, BrokenPipeError):  # the reader of the pipe is gone, so no message is needed
            return 1
        # An exit in the middle of a command is a failure, whatever its status.
        status = error.code if isinstance(error.code, int) and 0 < error.code < 256 else 1
        return terminal.end_with_error(error, status, f"ended by {describe(error)}", "", as_json)
    except OSError as error:
        if is_file_limit(error):
            return terminal.end_with_error(error, 2, FILE_LIMIT, FILE_LIMIT_HINT, as_json)
        # The error names the file of the user, unless a message closer to the cause names it.
        named = error.filename if isinstance(error.filename, str | Path) else None
        what = f"{named}: {error.strerror}" if named else str(error)
        return terminal.end_with_error(error, 2, what[:500], "see that the path is right and reachable", as_json)
    except Exception as error:
        from hiresx.cli import import_errors

        if (explained := import_errors.describe(error)) is not None:
            return terminal.end_with_error(explained, 2, explained.message, explained.hint, as_json)
        from typer import Abort

        if isinstance(error, Abort):  # some versions of Typer raise this for an interrupt
            terminal.error("interrupted", "", as_json)
            return 130
        # The classes of Typer's usage errors differ between its versions; all have the method format_message.
        if not hasattr(error, "format_message"):
            raise
        terminal.error(*_usage(error, arguments), as_json)
        return 2


# Options whose value may be omitted, and the value that is then used.
_OPTIONAL = {"--restart": "latest"}


def _complete_arguments(arguments: list[str]) -> list[str]:
    """Return `arguments` with the values that were omitted: Typer supports options with and without a value, but none
    with an optional value."""
    found = []
    for n, word in enumerate(arguments):
        found.append(word)
        if word in _OPTIONAL and (n + 1 == len(arguments) or arguments[n + 1].startswith("-")):
            found.append(_OPTIONAL[word])
    return found


def _whose(option: str) -> str:
    """Return the hint for an option that a few other commands have."""
    from hiresx.cli.app import command as all_commands

    found, left = [], [("hiresx", all_commands())]
    while left:
        path, command = left.pop()
        found += [path] if any(option in parameter.opts for parameter in command.params) else []
        left += [(f"{path} {name}", inner) for name, inner in getattr(command, "commands", {}).items()]
    verb = "has" if len(found) == 1 else "have"
    return f"{' and '.join(sorted(found))} {verb} this option; " if 0 < len(found) < 3 else ""


def _is_like(name: str, option: str) -> bool:
    """True if two options resemble each other, apart from the dashes with which both begin."""
    import difflib

    return difflib.SequenceMatcher(None, name.lstrip("-"), option.lstrip("-")).ratio() >= 0.6


def _usage(error: Any, arguments: Sequence[str]) -> tuple[str, str]:
    """Return (message, hint) for an unknown command, an unknown option or a missing argument."""
    import re

    from hiresx.cli.app import COMMANDS

    message = error.format_message() or "no command is given"
    name = next((word for word in arguments if word in COMMANDS), None)
    # If the error is in a command of a group, such as hiresx post slice, the help of that command is named.
    path = getattr(getattr(error, "ctx", None), "command_path", None) or " ".join(filter(None, ("hiresx", name)))
    unknown = re.search(r"No such command '([^']*)'", message)
    if unknown:
        from hiresx.case.error_messages import did_you_mean

        known = getattr(getattr(error.ctx, "command", None), "commands", None) or COMMANDS
        return f'no command "{unknown[1]}"', did_you_mean(unknown[1], list(known), "commands")
    near = [name for name in getattr(error, "possibilities", None) or () if _is_like(name, error.option_name)]
    option = getattr(error, "option_name", None)
    if option:
        others = "" if near else _whose(option)
        return f'no option "{option}"', f"did you mean {' or '.join(near)}?" if near else f"{others}see {path} --help"
    # newer versions of Typer use pydantic's descriptions of invalid numbers
    message = message.replace("Input should be ", "must be ").replace("greater than or equal to", "at least")
    message = re.sub(r"a valid integer.*", "a whole number", re.sub(r"a valid number.*", "a number", message))
    return message, "check its permissions" if "is not readable" in message else f"see {path} --help"
