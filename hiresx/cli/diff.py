"""`hiresx diff`: the differences between two runs, in set-up and results."""

from pathlib import Path
from typing import Annotated, Any

from hiresx.cli import options, terminal
from hiresx.cli.options import argument


def diff(
    first: Annotated[Path, argument("RUN1", "Folder of a run, or one of its fields or checkpoints.")],
    second: Annotated[Path, argument("RUN2", "Another one.")],
    json: options.Json = False,
) -> int:
    """Show the differences between two runs.

    Exit status: 0 the runs agree; 1 configuration, functions, grid or results differ; 2 an error to correct."""
    with terminal.only_json(json):
        from hiresx.output.show.compare import compare

        found = compare(first, second)
    if json:
        terminal.print_json(found)
    else:
        show(found)
    return 0 if found["same"] else 1


def show(found: dict[str, Any]) -> None:
    """Print `found`, the result of `hiresx.output.show.compare.compare`: tables and lines with the differences between
    two runs in their settings, software, hardware, functions, grid, timings and results."""
    sides = [found["first"], found["second"]]
    for title in ("run", "configuration", "versions", "hardware"):
        rows = [(entry["key"], _value(entry["first"]), _value(entry["second"])) for entry in found[title]]
        if rows:
            terminal.table(title.capitalize(), ["", *sides], rows)
        else:
            terminal.say(f"{title}: no difference")
    if found["functions"]:
        terminal.say("case.py: the functions differ")
    grid = found["grid"]
    apart = found["results"].get("greatest_distance_of_nodes")
    if grid["same"]:
        terminal.say("grid: no difference")
    elif apart is not None:
        terminal.say(f"grid: nodes differ by up to {apart:.3g} L")
    elif found["results"].get("same_sizes"):
        terminal.say("grid: nodes differ")
    else:
        terminal.say("grid: other blocks or other numbers of nodes")
    rows = [(entry["key"], entry["first"], entry["second"]) for entry in found["timings"]]
    if rows:
        terminal.table("Timings", ["", *sides], rows)
    _show_results(found["results"], sides)


def _show_results(results: dict[str, Any], sides: list[str]) -> None:
    (step, other), (time, late) = results["steps"], results["times"]
    when = f"step {step} and {other}, time {time:.6g}" + (
        "" if results["one_time"] else f" and {late:.6g}: NOT ONE TIME"
    )
    if results["same"]:
        terminal.say(f"results: the same to the last bit ({when})")
        return
    variables = results["variables"]
    if not variables:
        terminal.say("results: no variable is in the fields of both")
    elif "greatest" in variables[0]:
        rows = [
            (
                v["name"],
                v["greatest"],
                v["rms"],
                "" if v["rms_of_range"] is None else v["rms_of_range"],
                _place(v["at"]),
            )
            for v in variables
        ]
        columns = ["difference of", "greatest", "rms", "rms / range", "greatest at"]
        terminal.table(f"Results: {when}", columns, rows)
    else:
        rows = [
            (v["name"], side, *(v[key][part] for part in ("least", "mean", "greatest")))
            for v in variables
            for key, side in zip(("first", "second"), sides, strict=True)
        ]
        terminal.table(f"Results: {when}", ["", "", "least", "mean of nodes", "greatest"], rows)


def _place(at: dict[str, Any] | None) -> str:
    return "" if at is None else f"{at['block']} ({at['i']}, {at['j']}, {at['k']})"


def _value(value: Any) -> str:
    return "-" if value is None else terminal.text(value)
