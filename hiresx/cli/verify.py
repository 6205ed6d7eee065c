"""`hiresx verify`: does the method do on this machine what it should?"""

from typing import Annotated

import typer

from hiresx.cli import options, terminal


def verify(
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP]...", help="Groups of checks; all if absent.")
    ] = None,
    backend: options.Backend = "auto",
    json: options.Json = False,
) -> int:
    """Run the verification checks on this machine; exit status 1 when one fails."""
    with terminal.only_json(json):
        from hiresx import verify as checks_room

        checks = checks_room.run(groups or [], backend)
    passed = sum(bool(check["pass"]) for check in checks)
    if json:
        terminal.print_json({"backend": backend, "checks": checks, "pass": passed == len(checks)})
    else:
        from rich.text import Text

        marks = {True: Text("pass", "green"), False: Text("FAIL", "bold red")}
        rows = [(c["check"], c["value"], terminal.text(c["threshold"]), marks[bool(c["pass"])]) for c in checks]
        terminal.table("Verification", ["check", "value", "threshold", ""], rows)
        terminal.say(f"{passed} of {len(checks)} checks pass")
    return 0 if passed == len(checks) else 1
