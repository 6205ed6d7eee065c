"""Times the loops of the right-hand side with a thread per node, per grid line or per half point, with and without
atomics.

    python docs/make/loop_times.py --json > docs/results/loop-modes-cpu.json

This measures every form of loop_forms.py on one core, or with --backend cuda on a GPU. It adds what needs no GPU:
operations and bytes per node, registers and spills of the CUDA form. On a GPU `python docs/make/measure_gpu.py
--parts loops` measures the same. loop_modes.py makes docs/loop-modes.md of the results.

After Weng et al., Advances in Aerodynamics 3:21 (2021).
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any, cast

import kernel_registers
import numpy as np
import operations
from loop_forms import FLUX, INTERPOLATION, LOOPS, WHOLE, Fields, Form, moved, study
from markdown_tables import cell

from hiresx.bench import PRECISIONS, rhs
from hiresx.bench.results import header
from hiresx.device import backend as find_backend
from hiresx.device.interface import Backend
from hiresx.equations import DIRECTIONS
from hiresx.errors import HiresxError

KIND = "loop-modes"
# Nodes in a direction: on a core, where the arrays (0.6 GB) fit no cache, and of what is counted.
POINTS, COUNTED = 96, 24
ARCHITECTURES = ("sm_80", "sm_90")

Row = dict[str, Any]


def forms(fields: Fields) -> Iterator[Form]:
    """All forms on `fields`, each when it can be launched."""
    for d in range(DIRECTIONS):
        fields.prepare(d)
        yield from fields.of_direction(d)
    yield from fields.of_all_directions()


def fields_of(device: Backend, n: int, precision: str) -> Fields:
    """Raises HiresxError for too few nodes."""
    if n < rhs.LEAST_NODES:
        raise HiresxError(f"{n} points in a direction are too few", f"take at least {rhs.LEAST_NODES}")
    return Fields(device, n, study(precision))


def disagreements(device: Backend, n: int, precision: str) -> Iterator[tuple[Form, float]]:
    """Every form but the solver's own, and the largest difference of what it makes from what the solver's makes, over
    the largest of the latter, on n^3 nodes."""
    with rhs.only(device, _threads(device)):
        fields = fields_of(device, n, precision)
        before = device.to_device(device.to_host(fields.r))
        wanted: list[np.ndarray[Any, Any]] = []
        for form in forms(fields):
            found = _outcome(fields, form, before)
            if form.solvers:
                wanted = found
            else:
                yield form, max(_difference(*pair) for pair in zip(found, wanted, strict=True))


def _outcome(fields: Fields, form: Form, before: Any) -> list[np.ndarray[Any, Any]]:
    """What the form makes, where it is read."""
    device = fields.backend
    fields.restore()
    device.copy(fields.r, before)
    if not form.adds:
        for array in form.results:
            device.copy(array, device.zeros(array.shape, str(array.dtype)))
    for call in form.calls:
        fields.program.run(call)
    halo = fields.halo
    cuts: list[Any] = [slice(halo, -halo)] * DIRECTIONS
    if form.loop == INTERPOLATION and form.direction is not None:
        cuts[DIRECTIONS - 1 - form.direction] = slice(halo - 1, -halo)
    return [device.to_host(array)[(..., *cuts)] for array in form.results]


def _difference(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def measure(device: Backend, n: int, precision: str, repeats: int) -> list[Row]:
    """One row for each form: `loop`, `mode`, `direction` (i, j, k or None), `atomics`, `solvers`, `kernels`,
    `launches`, `ns_per_point` (the median of `repeats`, by the device's events), `least`, `most`; on a CPU, of which it
    takes one core, `processor_ns`, what of it the processor worked, and the median `calibration_ns` beside it; and
    `bytes_per_point` that it must move at least."""
    with rhs.only(device, _threads(device)):
        fields = fields_of(device, n, precision)
        return [_row(fields, form, repeats) for form in forms(fields)]


def _threads(device: Backend) -> int | None:
    """One, as nothing but a GPU adds atomically; None where there are none to set."""
    return 1 if hasattr(device, "threads") else None


def _row(fields: Fields, form: Form, repeats: int) -> Row:
    device, samples = fields.backend, []
    worked, calibration = [], []

    def launch() -> None:
        for call in form.calls:
            fields.program.run(call)

    for repeat in range(repeats + 1):
        if form.loop in (FLUX, WHOLE):
            fields.restore()
        if repeat:
            loop = rhs.calibrate(cast(Any, fields))
            calibration += [] if loop is None else [loop]
        began = time.process_time()
        samples.append(1e9 * rhs.device_seconds(device, launch) / fields.n**3)
        worked.append(1e9 * (time.process_time() - began) / fields.n**3)
    timed = samples[1:]
    return {
        "loop": form.loop,
        "mode": form.mode,
        "direction": None if form.direction is None else "ijk"[form.direction],
        "atomics": form.atomics,
        "solvers": form.solvers,
        "kernels": list(dict.fromkeys(call.name for call in form.calls)),
        "launches": len(form.calls),
        "ns_per_point": median(timed),
        "least": min(timed),
        "most": max(timed),
        "processor_ns": median(worked[1:]) if hasattr(device, "threads") else None,
        "bytes_per_point": fields.q.itemsize * moved(form),
        "calibration_ns": median(calibration) if calibration else None,
    }


def count_forms() -> list[Row]:
    """Of every CUDA form `loop`, `mode`, `direction`, `atomics`, `solvers`, `kernels`, `bytes_per_point` (FP64) and
    `operations_per_point`: sums, products, quotients and roots, counted as in operations.py, with what the
    ends of a line take."""
    fields = Fields(cast(Backend, operations.CountingBackend()), COUNTED, study("fp64"), cut=False)
    found = []
    for row in (_row(fields, form, 1) for form in forms(fields)):
        kept = ("loop", "mode", "direction", "atomics", "solvers", "kernels", "bytes_per_point")
        # The events of that backend give operations where others give seconds.
        done = row["ns_per_point"] / 1e9
        found.append({name: row[name] for name in kept} | {"operations_per_point": done})
    return found


def registers(kernels: Iterable[str], precisions: Sequence[str]) -> list[Row]:
    """What NVRTC says of these kernels: `precision`, `architecture`, `kernel`, `registers`, `spill_stores`,
    `spill_loads`, `stack`. Raises HiresxError without it."""
    wanted, found = set(kernels), []
    for precision in precisions:
        for entry in kernel_registers.report([study(precision)], ARCHITECTURES):
            found += [{"precision": precision} | kernel for kernel in entry["kernels"] if kernel["kernel"] in wanted]
    return found


def run(backend: str, n: int, precisions: Sequence[str], repeats: int) -> dict[str, Any]:
    """`rows` (see `measure`, each with its precision), `counted` (see `count_forms`), `registers` (see there;
    empty without NVRTC), `disagreement` by precision (see `disagreements`), and the entries of
    `hiresx.bench.results.header`. Raises HiresxError."""
    device = find_backend(backend)
    rows = [{"precision": p} | row for p in precisions for row in measure(device, n, p, repeats)]
    done = count_forms()
    try:
        taken = registers({name for row in done for name in row["kernels"]}, precisions)
    except HiresxError as error:
        print(f"registers are left out: {error}", file=sys.stderr)
        taken = []
    return header(KIND) | {
        "backend": device.name,
        "nodes": n,
        "repeats": repeats,
        "rows": rows,
        "counted": done,
        "registers": taken,
        "disagreement": {p: max(error for _, error in disagreements(device, COUNTED, p)) for p in precisions},
    }


def _show(result: dict[str, Any]) -> None:
    for precision in dict.fromkeys(row["precision"] for row in result["rows"]):
        print(f"{result['backend']}, {precision}, {result['nodes']}^3 points: ns per point")
        for loop in LOOPS:
            print(f"  {loop}")
            found: dict[str, list[str]] = {}
            for row in result["rows"]:
                if (row["loop"], row["precision"]) == (loop, precision):
                    found.setdefault(row["mode"], []).append(cell(row["ns_per_point"]))
            for mode, figures in found.items():
                print(f"    {mode:32}{''.join(f'{figure:>9}' for figure in figures)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python docs/make/loop_times.py", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )  # fmt: skip
    parser.add_argument("--backend", default="cpu", help="cpu (one core), cuda or emulated; default: %(default)s")
    parser.add_argument("--points", type=int, default=POINTS, help="nodes in a direction; default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--precision", choices=PRECISIONS, help="default: both")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args(arguments)
    try:
        if asked.repeats < 1:
            raise HiresxError(f"{asked.repeats} repeats measure nothing", "--repeats 1 or more")
        result = run(asked.backend, asked.points, [asked.precision] if asked.precision else PRECISIONS, asked.repeats)
    except HiresxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps(result, indent=1))
    else:
        _show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
