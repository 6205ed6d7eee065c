"""`hiresx run`: from a case to fields."""

from pathlib import Path
from typing import Annotated

import typer

from hiresx.cli import options, terminal
from hiresx.errors import HiresxError

Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Output folder; runs/<case>-<preset>-<n> if absent.")
]
Steps = Annotated[int | None, typer.Option("--steps", metavar="N", min=1, help="Stop after N steps.")]


def run(
    name: options.CaseName,
    preset: options.Preset = None,
    set_: options.Overrides = None,
    out: Out = None,
    backend: options.Backend = "auto",
    steps: Steps = None,
    json: options.Json = False,
) -> int:
    """Run a case and write its fields and run.json."""
    from hiresx.case import load

    with terminal.only_json(json):
        case = load(name, preset, set_ or ())
        from hiresx.output import derived
        from hiresx.simulation import Simulation

        derived.check(case.output.variables, f"{name}: output.variables")
        ours = out is None or not out.exists()
        directory = output_directory(out, case)
        try:
            Simulation(case, backend=backend, out=directory).run(steps=steps)
            fault = None
        except HiresxError as error:
            fault = error
        except KeyboardInterrupt:
            fault = HiresxError("interrupted")
        done = record(directory)
        if ours and not any(directory.iterdir()):
            directory.rmdir()  # nothing was begun: leave nothing behind

    status = done.get("status")
    if status == "finished" and fault is None:
        if json:
            terminal.print_json({"directory": str(directory), **done})
        else:
            terminal.say(f"wrote {directory}")
            terminal.say(f"  see it with: hiresx plot {directory}")
        return 0
    interrupted = (fault is not None and fault.message == "interrupted") or status == "interrupted"
    if fault is None:
        fault = HiresxError(done.get("error") or f"the run is {status or 'without a record'}")
    left = f"what was computed is in {directory}" if done else ""
    terminal.error(
        fault.message, "; ".join(part for part in (fault.mend, left) if part), json, directory=str(directory)
    )
    if interrupted:
        return 130
    return 3 if done else 2


def output_directory(out: Path | None, case) -> Path:
    """The folder of a new run: `out`, or the first free runs/<case>[-<preset>]-<n>.

    Raises HiresxError when it cannot be written, or `out` holds a run already.
    """
    from hiresx.output import files

    if out is not None:
        if (out / "run.json").exists():
            raise HiresxError(f"{out} holds a run already", "name another folder with --out DIR, or remove this one")
        return files.directory(out)
    stem = "-".join(part for part in (case.name, case.preset) if part)
    runs = files.directory(Path("runs"))
    number = 1
    while True:
        directory = runs / f"{stem}-{number}"
        try:
            # Made, not looked for: two runs that start together get two folders.
            directory.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise files.fault(directory, error) from None
        else:
            return directory


def record(directory: Path) -> dict:
    """What run.json in `directory` says; empty when there is none."""
    import json

    path = directory / "run.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
