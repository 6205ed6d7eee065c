"""The results of a finished or unfinished run: its record, fields, series, histories and averages."""

import html
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.argument_types import check_types
from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.output.fields import field_file
from hiresx.output.saved import record as records
from hiresx.output.watch import history as histories
from hiresx.output.watch import surface_file, wall_file
from hiresx.results import needs, place_datasets, trees

AVERAGES = "averages.nc"
# A step or a time.
Which = int | float | np.integer | np.floating


@check_types
def open(run: str | Path) -> "Run":
    """Open the run in the folder `run` and return it. Raises HiresxError if the folder contains no run, or if xarray is
    missing."""
    return Run(run)


class Run:
    """A run directory. Files are read only when a method or property needs them. A run in progress can be opened, too.

    Raises HiresxError for a folder that contains no run.
    """

    def __init__(self, path: str | Path):
        needs.xarray()
        from hiresx.results import accessor  # noqa: F401  (gives the objects their .hiresx)

        self.path = Path(path)
        if not self.path.is_dir():
            raise HiresxError(f"{self.path} is not the folder of a run", "give the folder that hiresx run made")
        if not (self.path / "run.json").is_file() and not field_file.frames(self.path):
            raise HiresxError(f"{self.path} holds no run", "give a folder with run.json or fields_*.nc")

    @cached_property
    def record(self) -> dict[str, Any]:
        """The content of run.json, the record of the run: case, machine, state and timings (described on the page
        Outputs of the documentation). An empty dictionary if there is no such file."""
        return records.read(self.path) if (self.path / "run.json").is_file() else {}

    @cached_property
    def case(self) -> dict[str, Any]:
        """The case of the run as nested dictionaries, with defaults filled in written out."""
        found = self.record.get("case")
        return found if found else field_file.describe(field_file.last(self.path))["case"]

    @property
    def title(self) -> str:
        """Title of the case, or the name of the folder if the case has none."""
        return self.case.get("title") or self.path.resolve().name

    @property
    def gamma(self) -> float:
        """Ratio of specific heats of the gas."""
        return float(self.case["gas"]["gamma"])

    @property
    def steps(self) -> list[int]:
        """The numbers of the time steps at which fields of the whole grid are stored."""
        return list(field_file.frames(self.path))

    @property
    def subsets(self) -> list[str]:
        """Names of the stored subsets of the fields, which are the tables `[[output.subset]]` of the case."""
        named = [entry.get("name", "") for entry in (self.case.get("output") or {}).get("subset") or ()]
        return [name for name in named if field_file.frames(self.path, name)]

    @property
    def histories(self) -> list[str]:
        """Names of the histories of the run, which are time series of monitors and residuals. `history` reads one."""
        return list(histories.histories(self.path))

    @check_types
    def fields(self, which: Which = -1, variables: Iterable[str] | None = None, subset: str = "fields") -> Any:
        """Return the fields of one time as an xarray.DataTree with a node for each block and variables over k, j, i.
        Values are read from the file when they are used.

        `which`: a step (an int of 0 or more), a position from the end (a negative int; -1 is the last time), or a
        float, a time in units of L / c_ref (length scale over sound speed); the nearest stored time is used (see
        `nearest_time`). `variables`: names of stored or derived variables, by default all stored ones. `subset`: the
        name of an `[[output.subset]]`, by default the whole fields. Raises HiresxError for fields or variables that do
        not exist."""
        return trees.fields([self.file(which, subset)], _as_list(variables))

    @check_types
    def series(
        self,
        variables: Iterable[str] | None = None,
        start: float = -np.inf,
        end: float = np.inf,
        every: int = 1,
        subset: str = "fields",
        blocks: Iterable[str] | None = None,
    ) -> Any:
        """Return the fields of many times as an xarray.DataTree with a node for each block, whose variables have the
        dimensions time, k, j, i. Coordinates do not depend on time. Values are read from the files when they are used;
        only the selected slice of a file is read. Every n-th stored time (n = `every`) from `start` to `end`, in units
        of L / c_ref (length scale over sound speed), is taken. `variables`: names of stored or derived variables, by
        default all stored ones. `subset`: the name of an `[[output.subset]]`. `blocks`: names of the blocks to read, by
        default all. Raises HiresxError for a block whose nodes change with time (adaptive refinement), with the names
        of the blocks that do not change."""
        files = self.files(start, end, every, subset)
        return trees.fields(files, _as_list(variables), series=True, blocks=_as_list(blocks))

    @check_types
    def files(self, start: float = -np.inf, end: float = np.inf, every: int = 1, subset: str = "fields") -> list[Path]:
        """Return the paths of the field files of every n-th stored time (n = `every`) from `start` to `end`, in units
        of L / c_ref (length scale over sound speed). `subset`: the name of an `[[output.subset]]`, by default the whole
        fields. Raises HiresxError if there are none, and for `every` < 1."""
        if every < 1:
            raise HiresxError(f"every = {every} selects nothing", "give 1 or more")
        paths = list(field_file.frames(self.path, subset).values()) or [field_file.last(self.path, subset)]
        if start == -np.inf and end == np.inf:
            return paths[::every]
        times = {path: field_file.read_time(path) for path in paths}
        kept = [path for path in paths if start <= times[path] <= end][::every]
        if not kept:
            there = f"{min(times.values()):g} to {max(times.values()):g}"
            raise HiresxError(f"{self.path} has no {subset} from {start:g} to {end:g}", f"there are times {there}")
        return kept

    def history(self, name: str) -> Any:
        """Return the history of the monitor `name` as an xarray.Dataset over time, and over place for probes, with the
        step and the coordinates x, y, z of the places. With local time steps the first dimension is called sample,
        because the time does not advance. Raises HiresxError for an unknown name."""
        xarray = needs.xarray()
        there = histories.histories(self.path)
        table = histories.read(self._file_of(name, there, "history", did_you_mean(name, list(there), "histories")))
        time, step = table.data["time"], table.data["step"]
        clock = "time" if (np.diff(time) > 0).all() else "sample"
        about = {key: {"long_name": c.long_name, "units": c.units} for key, c in table.columns.items()}
        coordinates: dict[str, Any] = {"time": (clock, time, about["time"]), "step": (clock, step, about["step"])}
        if table.places is not None:
            for n, axis in enumerate("xyz"):
                text = {"long_name": f"{axis} coordinate of the places", "units": "L"}
                coordinates[axis] = ("place", table.places[:, n], text)
        held = {
            key: ((clock, "place")[: table.data[key].ndim], table.data[key], about[key]) for key in table.quantities
        }
        attributes = {"name": table.name, "kind": table.kind, "title": self.title, "filter": table.filter}
        attributes["length_symbol"] = self.case.get("length_symbol", "L")
        return xarray.Dataset(held, coordinates, attributes)

    @property
    def surfaces(self) -> list[str]:
        """Names of the surfaces on which the run stored samples of the flow, for the method `surface`."""
        return list(surface_file.surfaces(self.path))

    def surface(self, name: str) -> Any:
        """Return the samples of the flow on the surface `name` as an xarray.Dataset: rho, u, v, w, p over time and
        place, with coordinates, normals and areas of the places. Values are read when they are used. Raises HiresxError
        if there is no such surface."""
        stored = self.stored_surface(name)
        return place_datasets.dataset(stored, self.title, surface_file.describe(stored))

    def stored_surface(self, name: str) -> surface_file.StoredSurface:
        """Open the file of samples on the surface `name` (a table [[surface]] of the case). Raises HiresxError if the
        run has no such surface, or if the file is truncated."""
        there = surface_file.surfaces(self.path)
        hint = did_you_mean(name, list(there), "surfaces") if there else "add a [[surface]] to the case, and run it"
        return surface_file.read(self._file_of(name, there, "surface", hint))

    @property
    def walls(self) -> list[str]:
        """Names of the force monitors that stored the distribution of pressure and friction along their walls, for the
        method `wall`."""
        return list(wall_file.walls(self.path))

    def wall(self, name: str) -> Any:
        """Return the distribution along the walls of the force monitor `name` as an xarray.Dataset: p, friction_x,
        friction_y, friction_z, heat and y_plus over time and place, with x, y, z, normals, areas, blocks and indexes of
        the wall nodes. Values are read when they are used. Raises HiresxError if there is none."""
        stored = self.stored_wall(name)
        found = place_datasets.dataset(stored, self.title, wall_file.describe(stored))
        return found.assign_coords(block=("place", np.array(stored.blocks)[stored.where[0]], found["block"].attrs))

    def stored_wall(self, name: str) -> wall_file.StoredWalls:
        """Open the file of the distribution along the walls of the force monitor `name`. Raises HiresxError if the run
        has none, or if the file is truncated."""
        there = wall_file.walls(self.path)
        hint = did_you_mean(name, list(there), "distributions along walls") if there else (
            "add distribution = { every_time = ... } to the [[force]], and run it"
        )  # fmt: skip
        return wall_file.read(self._file_of(name, there, "distribution along the walls of", hint))

    def _file_of(self, name: str, there: Mapping[str, Path], what: str, hint: str) -> Path:
        """Return the file of `name` among those of one kind, `there`. Raises HiresxError if there is none."""
        if not isinstance(name, str) or name not in there:
            raise HiresxError(f'{self.path} has no {what} "{name}"', hint)
        return there[name]

    @property
    def averages(self) -> Any:
        """Time averages as an xarray.DataTree with a node for each block. A node has the means, variables derived from
        the means, root mean squares (`rms_p`), second moments (`u_v`) and the turbulent kinetic energy `tke`; its
        children `reynolds` and `favre` have the Reynolds and Favre averages as stored. Values are read when they are
        used. Raises HiresxError if the run has none."""
        path = self.path / AVERAGES
        if not path.is_file():
            raise records.no_averages(self.path)
        return trees.averages(path)

    def file(self, which: Which = -1, subset: str = "fields") -> Path:
        """Return the path of the field file of one time. `which`: a step (0 or more), a position from the end
        (negative), or a time (a float). `subset`: the name of an `[[output.subset]]`, by default the whole fields.
        Raises HiresxError if there is no such file, and if `which` is neither a step nor a time."""
        if isinstance(which, bool) or not isinstance(which, Which):
            raise HiresxError(
                f"{which!r:.60} is neither a step nor a time", 'variables come second or by name: variables=["p"]'
            )
        field_file.last(self.path, subset)  # the error names the missing data
        found = field_file.frames(self.path, subset)
        steps = list(found)
        if isinstance(which, int | np.integer):
            step = int(which)
            if step < 0 and -step <= len(steps):
                return found[steps[step]]
            if step in found:
                return found[step]
            raise HiresxError(f"{self.path} has no {subset} of step {step}", f"there are {_abbreviate(steps)}")
        times = {path: field_file.read_time(path) for path in found.values()}
        return list(times)[nearest_time(list(times.values()), float(which), f"{self.path} has no {subset}")]

    @check_types
    def plot(self, *variables: str, which: Which = -1, subset: str = "fields", **how: Any) -> tuple[Any, Any]:
        """Plot `variables` (default: the first stored one) of the fields of one time. `which`: a step (0 or more), a
        position from the end (negative), or a time (a float). `subset`: the name of an `[[output.subset]]`, by default
        the whole fields. `how`: plane="z=0" or line="y=0" to choose a plane or a line. Returns a Matplotlib figure and
        its axes."""
        return self.fields(which, variables or None, subset).hiresx.plot(*variables, **how)

    def _facts(self) -> list[tuple[str, str]]:
        record = self.record
        found = [("folder", str(self.path)), ("status", str(record.get("status", "no record")))]
        if record:
            found.append(("steps, time", f"{record.get('steps')}, {float(record.get('time') or 0.0):.6g} L / c_ref"))
            found.append(("points, backend", f"{record.get('points')}, {record.get('backend')}"))
        found.append(("fields of steps", _abbreviate(self.steps)))
        found += [("subsets", ", ".join(self.subsets))] if self.subsets else []
        found.append(("histories", ", ".join(self.histories) or "none"))
        found += [("surfaces", ", ".join(self.surfaces))] if self.surfaces else []
        found += [("walls", ", ".join(self.walls))] if self.walls else []
        found.append(("averages", "yes" if (self.path / AVERAGES).is_file() else "none"))
        return found

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self._facts())
        return "\n".join([f"Run: {self.title}", *(f"  {name:<{width}}  {text}" for name, text in self._facts())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(text)}</td></tr>'
            for name, text in self._facts()
        )
        return f"<div><strong>{html.escape(self.title)}</strong><table>{rows}</table></div>"


def nearest_time(times: Sequence[float] | np.ndarray, asked: float, lacking: str) -> int:
    """Return the index in `times` of the time nearest to `asked`, both in units of L / c_ref (length scale over sound
    speed). Raises HiresxError if `asked` lies outside the range of `times` by more than their largest interval.
    `lacking`: the beginning of this error's message, such as "runs/jet has no fields"."""
    first, last = min(times), max(times)
    # Times in messages have 6 digits; a time that is copied from a message must be found.
    apart = max([*np.diff(np.sort(times)), 1e-5 * max(abs(first), abs(last))])
    if not first - apart <= asked <= last + apart:
        there = f"there are some from {first:g} to {last:g}"
        raise HiresxError(f"{lacking} at time {asked:g}", there if len(times) > 1 else f"there is one at {first:g}")
    return int(np.abs(np.asarray(times) - asked).argmin())


def _as_list(variables: Iterable[str] | str | None) -> list[str] | None:
    return [variables] if isinstance(variables, str) else None if variables is None else list(variables)


def _abbreviate(steps: list[int]) -> str:
    if len(steps) <= 8:
        return ", ".join(map(str, steps)) or "none"
    return f"{', '.join(map(str, steps[:3]))}, ... {steps[-1]} ({len(steps)} in all)"
