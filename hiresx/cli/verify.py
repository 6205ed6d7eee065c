"""`hiresx verify`: tests on this machine that the method computes correct results."""

import time
from datetime import UTC, datetime
from typing import Annotated

from hiresx.cli import options, terminal
from hiresx.cli.options import argument, option


def verify(
    groups: Annotated[
        list[str] | None,
        argument("[GROUP]...", "Groups of checks; absent: groups of seconds; long: groups of minutes; all."),
    ] = None,
    backend: options.Backend = "auto",
    plan: Annotated[
        str | None,
        option(
            "--plan",
            "pencils|fused|decomposed|compact",
            "Use this plan instead of the backend's own (pencils on a CPU, fused on a GPU); checks of features that "
            "it does not support are left out.",
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Run the verification checks on this machine.

    Exit status: 0 all passed; 1 a check failed; 2 an error to correct."""
    began = time.perf_counter()
    with terminal.only_json(json):
        from hiresx import verify as verification

        checks = verification.run(groups or [], backend, plan=plan)
    judged = [check for check in checks if check["pass"] is not None]
    passed = sum(bool(check["pass"]) for check in judged)
    if json:
        from hiresx.output.saved.machine_record import hardware, versions

        command = " ".join(
            ["hiresx verify", *(groups or []), "--backend", backend, *(["--plan", plan] if plan else []), "--json"]
        )
        terminal.print_json(
            {
                "backend": backend,
                "checks": checks,
                "pass": passed == len(judged),
                "command": command,
                "date": datetime.now(UTC).date().isoformat(),
                "wall_s": time.perf_counter() - began,
                "versions": versions(),
                "hardware": hardware(),
            }
        )
    else:
        from rich.text import Text

        marks = {True: Text("pass", "green"), False: Text("FAIL", "bold red"), None: Text("left out", "yellow")}
        rows = [
            (
                c.get("group", ""),
                c["check"],
                c["value"],
                f"{c.get('relation', '')} {terminal.text(c['threshold'])}",
                marks[c["pass"]],
                c.get("error") or c.get("left_out", ""),
            )
            for c in checks
        ]
        columns = ["group", "check", "value", "must be", "", ""]
        terminal.table("Verification", columns, rows)
        left_out = f", {len(checks) - len(judged)} left out" if len(judged) < len(checks) else ""
        terminal.say(f"{passed} of {len(judged)} checks pass{left_out}")
    return 0 if passed == len(judged) else 1
