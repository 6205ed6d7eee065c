"""`[average]`: time averages of the whole flow, on the device, and their file averages.nc."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case.monitors import Average as Spec
from hiresx.errors import HiresxError
from hiresx.output import files
from hiresx.output.attachment import Attachment
from hiresx.output.derived import VARIABLES
from hiresx.output.netcdf import LOCK
from hiresx.output.sampling import Clock
from hiresx.output.writer import Writer

FILE = "averages.nc"
# What the kernels keep, in their order; the means first, then the second moments.
MEANS = {"reynolds": ("rho", "u", "v", "w", "p", "T"), "favre": ("rho", "u", "v", "w", "T")}
MOMENTS = {
    "reynolds": ("rho_rho", "u_u", "v_v", "w_w", "p_p", "T_T", "u_v", "u_w", "v_w"),
    "favre": ("u_u", "v_v", "w_w", "u_v", "u_w", "v_w", "u_T", "v_T", "w_T"),
}


def build(case, simulation) -> list[Attachment]:
    if case.average is None:
        return []
    return [Average(case.average, simulation.solver, simulation.out)]


class Average(Attachment):
    """Reynolds and Favre means and second moments of every block.

    A sample stands for the time since the sample before (with local time steps: for the steps), from `start` or the
    beginning of the run on.
    """

    name = "averages"

    def __init__(self, spec: Spec, solver, out: Path | None):
        self._spec, self._solver, self._path = spec, solver, None if out is None else out / FILE
        self._kinds = [kind for kind in MEANS if getattr(spec, kind)]
        self._clock = Clock(spec.every, spec.every_time)
        output = solver.case.output
        self._writing = Clock(output.every_steps, output.every_time)
        self._writer = Writer(outstanding=1)
        self._begun = False
        self._since: float | None = None
        self._weight = dict.fromkeys(self._kinds, 0.0)
        self._sums = {
            kind: [
                solver.backend.zeros((len(MEANS[kind]) + len(MOMENTS[kind]), *state.block.x.shape), "float64")
                for state in solver.states
            ]
            for kind in self._kinds
        }

    @property
    def next_time(self) -> float:
        """The next step must not pass this time."""
        return self._clock.next_time

    @property
    def bytes(self) -> int:
        """Device memory held for the averages."""
        return sum(array.nbytes for arrays in self._sums.values() for array in arrays)

    def _now(self, solver) -> float:
        return float(solver.steps) if solver.case.time.local else solver.time

    def begin(self, solver, restarted: bool) -> None:
        if self._begun:
            return
        self._begun = True
        if not restarted and self._path is not None:
            files.remove([self._path])  # another run's
        self._clock.begin(solver)
        self._writing.begin(solver)
        self._writing.last = solver.steps
        if self._since is None:
            self._since = self._now(solver)
        self._sample(solver)

    def after_step(self, solver) -> None:
        self._writer.check()
        self._sample(solver)
        if self._writing.due(solver):
            self._write(solver)

    def _sample(self, solver) -> None:
        if not self._clock.due(solver):
            return
        now = self._now(solver)
        weight = now - max(self._since, self._spec.start)
        self._since = now
        if weight <= 0:
            return
        for kind in self._kinds:
            self._weight[kind] += weight
            share = weight / self._weight[kind]
            for state, mean in zip(solver.states, self._sums[kind], strict=True):
                ni, nj, nk = state.size
                solver.program.launch(
                    f"average_{kind}", state.size, *state.place, state.variable_stride, state.q, ni, nj, ni * nj * nk,
                    share, mean,
                )  # fmt: skip

    def fields(self, b: int) -> dict[str, dict[str, np.ndarray]]:
        """Averages of block `b`: {"reynolds": {name: (nk, nj, ni)}, "favre": ...}, means and second moments of the
        fluctuations such as u_v; "rho" and "p" of Favre are the unweighted means."""
        found = {
            kind: dict(zip((*MEANS[kind], *MOMENTS[kind]), self._solver.backend.to_host(arrays[b]), strict=True))
            for kind, arrays in self._sums.items()
        }
        if favre := found.get("favre"):
            favre["p"] = favre["rho"] * favre["T"] / self._solver.case.gas.gamma
        return found

    def capture(self) -> dict[str, Any]:
        self._writer.drain()
        self._writer.check()
        found: dict[str, Any] = {
            "since": -1.0 if self._since is None else self._since,
            "last": -1 if self._clock.last is None else self._clock.last,
            "start": self._spec.start,
        }
        for kind, weight in self._weight.items():
            found[f"{kind}.weight"] = weight
            for b, array in enumerate(self._sums[kind] if weight > 0 else ()):
                found[f"{kind}.{b}"] = self._solver.backend.to_host(array)
        return found

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Averages of another start are not continued, nor those that were not kept then."""
        self._begun = False
        self._since = None if captured["since"] < 0 else float(captured["since"])
        self._clock.last = None if captured["last"] < 0 else int(captured["last"])
        for kind in self._kinds:
            weight = captured.get(f"{kind}.weight", 0.0) if captured["start"] == self._spec.start else 0.0
            self._weight[kind] = float(weight)
            for b, array in enumerate(self._sums[kind]):
                value = captured[f"{kind}.{b}"] if weight > 0 else np.zeros(array.shape)
                self._solver.backend.copy(array, self._solver.backend.to_device(value))

    def finish(self, solver) -> None:
        """Writes the last averages, also those of a run that failed."""
        self._begun = False
        try:
            if not self._writer.failed:
                self._write(solver)
        finally:
            self._writer.drain()
        self._writer.check()

    def _finite(self) -> bool:
        return all(bool(np.isfinite(array).all()) for arrays in self._sums.values() for array in arrays)

    def _write(self, solver) -> None:
        # Where a bad state has come into the averages, those written before stay.
        if self._path is None or not any(self._weight.values()) or not self._finite():
            return
        blocks = [(block, self.fields(b)) for b, block in enumerate(solver.decomposition.blocks)]
        about = {
            "time": solver.time,
            "step": solver.steps,
            "start": self._spec.start,
            "averaged_over": max(self._weight.values()),
        }
        case, unit = solver.case.model_dump(mode="json"), "steps" if solver.case.time.local else "L / c_ref"
        self._writer.submit(lambda: write(self._path, blocks, about, case, unit))


def write(path: Path, blocks: list[tuple[Any, dict[str, dict[str, np.ndarray]]]], about, case, unit: str) -> None:
    """Write averages to `path`, laid out like a field file: a group per block with coordinates and the means, which
    `hiresx plot` takes, and in it the groups "reynolds" and "favre" with everything. `blocks`: (block, its `fields`);
    `about`: time, step, start, averaged_over (in `unit`).

    Raises HiresxError when it cannot be written.
    """
    import netCDF4

    try:
        with files.replacing(path) as temporary:
            with LOCK:
                file = netCDF4.Dataset(temporary, "w", format="NETCDF4")
            try:
                with LOCK:
                    _describe(file, about, case, unit)
                    variables = [
                        entry
                        for index, (block, found) in enumerate(blocks)
                        for entry in _define(file, index, block, found)
                    ]
                for variable, values in variables:
                    for k in range(len(values)):
                        with LOCK:  # for a moment: others want the library too
                            variable[k] = values[k]
            finally:
                with LOCK:
                    file.close()
    except RuntimeError as error:
        raise HiresxError(f"cannot write {path}: {error}", "most often the disk is full") from None
    except OSError as error:
        raise files.fault(path, error) from None


def _describe(file, about: Mapping[str, Any], case: Mapping[str, Any], unit: str) -> None:
    from importlib.metadata import version

    file.set_fill_off()
    file.title = f"time averages: {case.get('title', '')}"
    file.source, file.case = f"hiresx {version('hiresx')}", json.dumps(case)
    file.average_start = about["start"]
    file.averaged_over, file.averaged_over_unit = about["averaged_over"], unit
    for name, kind, long_name, units in (
        ("time", "f8", "time", "L / c_ref"),
        ("step", "i8", "time steps taken", "1"),
    ):
        scalar = file.createVariable(name, kind)
        scalar.long_name, scalar.units = long_name, units
        scalar[...] = about[name]


def _define(file, index: int, block, found) -> Iterator[tuple[Any, np.ndarray]]:
    """All variables of a block, with their values."""
    group = file.createGroup(block.name)
    group.index = index
    for dimension, size in zip("kji", block.x.shape, strict=True):
        group.createDimension(dimension, size)

    def variable(holder, name: str, long_name: str, units: str):
        made = holder.createVariable(name, "f8", ("k", "j", "i"))
        made.long_name, made.units = long_name, units
        return made

    for axis in "xyz":
        yield variable(group, axis, f"{axis} coordinate of the nodes", "L"), getattr(block, axis)
    kind = next(iter(found))
    for name in MEANS["reynolds"]:
        about = VARIABLES[name]
        yield variable(group, name, f"mean {about.long_name} ({kind})", about.scale), found[kind][name]
    for kind, values in found.items():
        part = group.createGroup(kind)
        for name, array in values.items():
            factors = [VARIABLES[factor] for factor in name.split("_")]
            if len(factors) == 1:
                what, units = f"mean {factors[0].long_name}", factors[0].scale
            else:
                what = f"covariance of {factors[0].long_name} and {factors[1].long_name}"
                units = " ".join(f"({factor.scale})" for factor in factors)
            yield variable(part, name, f"{what} ({kind})", units), array
