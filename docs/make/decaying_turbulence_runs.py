"""Runs of the case `decaying-turbulence` with every model of large-eddy simulation, beside measured spectra.

    python docs/make/decaying_turbulence_runs.py --backend cuda --points 64 32 128 --out decaying-turbulence.json

Each model runs with the split form, which dissipates nothing, and with that form and the filter of the case; without a
model there are further schemes. The file is written after every run, so that what was finished is kept.
decaying_turbulence.py makes docs/decaying-turbulence.md of it.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hiresx import Simulation, load
from hiresx.errors import HiresxError
from hiresx.exact import grid_turbulence
from hiresx.output.fields import field_file
from hiresx.output.saved import files, machine_record
from hiresx.output.watch import history as histories
from hiresx.post.energy_spectrum import shells
from hiresx.verify import runner
from hiresx.verify.checks import Check, CheckRun, Workbench, at_least

CASE = "decaying-turbulence"
MODELS = ("none", "smagorinsky", "dynamic_smagorinsky", "wale", "vreman", "sigma")
# What the table calls a scheme, and its keys. That of the case is the split form with a filter.
SPLIT, FILTERED, CHOICE = "split", "split, filter", "low_dissipation"
_AFWENO = ("scheme.inviscid=afweno", "filter.strength=0")
SCHEMES = {
    FILTERED: (),
    SPLIT: ("filter.strength=0",),
    CHOICE: ("scheme.choice=low_dissipation",),
    "afweno, js": _AFWENO,
    "afweno, z": (*_AFWENO, "scheme.weights=z"),
    "afweno, 7 nodes, z": (*_AFWENO, "scheme.interpolation=modified7", "scheme.weights=z"),
}
# Of a history: the time, the energy, and by what it is lost.
LOSSES = ("dissipation", "dissipation_model", "dissipation_numerical")
# L of the case in cm, and times that are the same.
LENGTH, SAME = 9.0, 1e-4


def variants() -> Iterator[tuple[str, str]]:
    """Scheme and model of each run on a grid."""
    for scheme in SCHEMES:
        models = MODELS if scheme in (SPLIT, FILTERED) else ("none", "sigma") if scheme == CHOICE else ("none",)
        yield from ((scheme, model) for model in models)


def check_run(scheme: str, model: str, points: int) -> CheckRun:
    """The run on points^3 nodes, whose waves at the start are shorter than half of them."""
    size = (f"grid.n=[{points},{points},{points}]", f"parameters.largest={points // 2 - 1}")
    return CheckRun(CASE, sets=(*size, f"turbulence.model={model}", *SCHEMES[scheme]))


def outcome(scheme: str, model: str, points: int, backend: str) -> dict[str, Any]:
    """A row of the document: what was chosen, the `command`, and either what was found or what `stopped` the run.
    `spectra` has the energies of the shells 1, 2, ... at each of grid_turbulence.TIMES, `losses` the integrals over
    time of the dissipation by viscosity, by the model and by the scheme."""
    run = check_run(scheme, model, points)
    row: dict[str, Any] = {"scheme": scheme, "model": model, "points": points, "command": run.command}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        try:
            simulation = Simulation(run.loaded_case, backend, out=out)
            simulation.run(progress=False)
        except HiresxError as error:
            return row | {"stopped": error.message}
        row |= {"steps": simulation.step_count, "seconds": round(time.perf_counter() - began, 2)}
        history = histories.read(out / "history" / "kinetic_energy.nc").data
        row["spectra"] = [_spectrum(out, station)[: points // 2 - 1] for station in grid_turbulence.TIMES]
    clock = history["time"]
    row |= {"time": _rounded(clock), "energy": _rounded(history["kinetic_energy"]), "losses": {}}
    for name in LOSSES:
        # What the scheme dissipates is a mean since the sample before, the others are values at samples.
        values = history.get(name, np.zeros(clock.size))
        means = values[1:] if name.endswith("numerical") else 0.5 * (values[1:] + values[:-1])
        row["losses"][name] = float(np.sum(means * np.diff(clock)))
    return row


def sound_speed() -> float:
    """c_ref of the case, in cm/s."""
    return grid_turbulence.FLUCTUATION[0] / float(load(CASE).parameters["mach"])


def _spectrum(out: Path, station: int) -> list[float]:
    """Energies of the shells 1, 2, ... of the fields that a run wrote into `out` when a frame that moves with the
    flow was `station` meshes behind the grid."""
    wanted = grid_turbulence.elapsed_seconds(station) * sound_speed() / LENGTH
    times = {field_file.read_time(path): path for path in field_file.frames(out).values()}
    nearest = min(times, key=lambda time: abs(time - wanted))
    if abs(nearest - wanted) > SAME:
        raise HiresxError(f"{CASE} has no fields at {wanted:g}, but at {sorted(times)}", "correct output.every_time")
    state = field_file.read(times[nearest], ("u", "v", "w")).blocks[0].state
    _, energies = shells([state[name] for name in "uvw"], 2 * np.pi * np.eye(3))
    return _rounded(energies[1:])


def _rounded(values: np.ndarray) -> list[float]:
    """Six digits of each value."""
    return [float(f"{value:.6g}") for value in values]


def _hardware() -> dict[str, Any]:
    """The machine, without its name and the numbers of its GPUs."""
    found = machine_record.hardware()
    gpus = [{key: value for key, value in gpu.items() if key != "uuid"} for gpu in found["gpus"]]
    return {key: value for key, value in found.items() if key != "host"} | {"gpus": gpus}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python docs/make/decaying_turbulence_runs.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--backend", default="cpu", help="cpu, cuda or emulated (default: %(default)s)")
    parser.add_argument("--points", type=int, nargs="+", default=[32], help="nodes along each direction")
    parser.add_argument("--out", type=Path, required=True, help="the results")
    asked = parser.parse_args(arguments)
    words = sys.argv[1:] if arguments is None else arguments
    document: dict[str, Any] = {
        "kind": "decaying turbulence",
        "command": " ".join(["python docs/make/decaying_turbulence_runs.py", *words]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "backend": asked.backend,
        "hardware": _hardware(),
        "rows": [],
    }
    wanted = [(*variant, points) for points in asked.points for variant in variants()]
    began = time.perf_counter()
    checks = [Check("", at_least(0), len, (check_run(*given),)) for given in wanted]
    count = runner.compile_ahead(Workbench(asked.backend), checks)
    print(f"{count} sets of kernels in {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    for given in wanted:
        row = outcome(*given, asked.backend)
        document["rows"].append(row)
        document["wall_s"] = round(time.perf_counter() - began, 1)
        print(*given, row.get("stopped") or f"{row['steps']} steps, {row['seconds']} s", file=sys.stderr, flush=True)
        with files.replacing(asked.out) as temporary:
            temporary.write_text(json.dumps(document) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
