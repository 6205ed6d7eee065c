"""The result of an analysis: numbers, arrays and a picture, and the files that contain them."""

import html
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiresx.errors import HiresxError
from hiresx.output.saved import directories, files, library_files
from hiresx.output.show import picture_file
from hiresx.results import Run, needs
from hiresx.results import open as open_run


@dataclass
class Result:
    """The result of an analysis.

    - `name`: the beginning of the names of files.
    - `summary`: numbers and texts.
    - `data`: the arrays, an xarray.Dataset with units.
    - `draw`: a function that makes the figure, within the context of `style`.
    - `more`: functions that write further files, by the end of their names (such as "_levels.csv").
    - `on_request`: functions for files that `write` makes only if `out` names one, by the end of their names.
    - `case`: the case of the run, with defaults filled in, which may define another symbol for the length L.
    - `replaced`: existing files that `write` has replaced."""

    name: str
    summary: dict[str, Any]
    data: Any
    draw: Callable[[], Any]
    more: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    style: Callable[[], Any] = picture_file.style
    case: Mapping[str, Any] | None = None
    replaced: list[Path] = field(default_factory=list)
    on_request: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)

    def plot(self) -> tuple[Any, Any]:
        """Draw the result and return the Matplotlib figure and its axes (a single Axes, or a list). Raises HiresxError
        if Matplotlib is missing."""
        picture_file.require_matplotlib()
        with self.style():
            figure = picture_file.use_length_symbol(self.draw(), self.case)
        axes = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
        return figure, axes[0] if len(axes) == 1 else axes

    def write(self, out: str | Path) -> list[Path]:
        """Write the result to files and return their paths: the arrays to <name>.nc, the picture to <name>.png and
        further files of the analysis, in the folder `out`, and <name>.csv if the data have one dimension. If `out` is
        the name of a .nc, .csv, .png, .svg or .pdf file, only that file is written. Raises HiresxError for a file that
        cannot be written; an earlier file of that name is then unchanged."""
        out = Path(out)
        if out.suffix and not out.is_dir():
            return [self._one(out)]
        directories.make_directory(out)
        endings = [".nc", *([".csv"] if self._tables() else []), ".png", *self.more]
        return [self._one(out / f"{self.name}{ending}", ending) for ending in endings]

    def _one(self, path: Path, ending: str = "") -> Path:
        kind, there = ending or path.suffix.lower(), path.exists()
        more = {**self.more, **self.on_request}
        with files.naming_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind in more:
                with files.replacing(path) as temporary:
                    more[kind](temporary)
            elif kind == ".nc":
                with library_files.replacing(path, int(self.data.nbytes)) as temporary:
                    _flat(self.data).to_netcdf(temporary, engine="netcdf4", mode="w")
            elif kind == ".csv":
                tables = self._tables()
                if not tables:
                    raise HiresxError(
                        f"{path}: these values lie over several dimensions", "write netCDF: --out FILE.nc"
                    )
                with files.replacing(path) as temporary:
                    temporary.write_text(tables, encoding="utf-8")
            elif kind in (".png", ".svg", ".pdf"):
                picture_file.require_matplotlib()
                with self.style():  # the resolution is one of its settings
                    picture_file.save(picture_file.use_length_symbol(self.draw(), self.case), path)
            else:
                others = ", ".join([".nc", ".csv", ".png", ".svg", ".pdf", *more])
                raise HiresxError(f'{path}: results cannot be written as "{path.suffix}"', f"there are {others}")
        self.replaced += [path] * there
        return path

    def _tables(self) -> str:
        """Return the values over the dimension that most of them have, as CSV; "" if one of them has two dimensions."""
        if hasattr(self.data, "children"):  # a tree of blocks
            return ""
        variables = self.data.variables
        if any(v.ndim > 1 for v in variables.values()) or not self.data.sizes:
            return ""
        along = max(self.data.sizes, key=lambda name: sum(name in v.dims for v in variables.values()))
        names = [name for name, v in variables.items() if v.dims == (along,)]
        names.sort(key=lambda name: name != along)
        rows = zip(*(variables[name].values.tolist() for name in names), strict=True)
        return csv_text(map(str, names), rows)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(key)}</th><td>{html.escape(_text(value))}</td></tr>'
            for key, value in self.summary.items()
            if not isinstance(value, list | dict)
        )
        return f"<table>{rows}</table>"


def _flat(data: Any) -> Any:
    """Return `data` with attributes that netCDF supports."""
    made = data.copy()
    made.attrs = {key: value for key, value in data.attrs.items() if isinstance(value, str | int | float)}
    return made


def csv_text(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as comma-separated values, with all digits of numbers. `names`: the names of the columns. `rows`:
    the values of each row."""
    cells = ([repr(value) if isinstance(value, float) else str(value) for value in row] for row in rows)
    return "".join(f"{','.join(row)}\n" for row in (names, *cells))


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_run(run: Any) -> Run:
    """Return the run in the folder `run`, opened; a run that is already open (a `Run`) is returned unchanged."""
    return run if isinstance(run, Run) else open_run(run)


def file_stem(*words: Any) -> str:
    """Return a file name without suffix that joins `words` by underscores. Characters that are unsuitable in file names
    are replaced, and empty words are left out."""
    return "_".join(re.sub(r"[^A-Za-z0-9.+-]+", "_", str(word)).strip("_") for word in words if word not in (None, ""))


def dataset(variables: Mapping[str, Any], coordinates: Mapping[str, Any], **attributes: Any) -> Any:
    """Return an xarray.Dataset whose variables have a long name and units. `variables` and `coordinates`: dictionaries
    from names to tuples (dimensions, values, long name, units). `attributes`: the attributes of the dataset."""
    xarray = needs.xarray()

    def variable(entry: tuple[Any, ...]) -> tuple[Any, ...]:
        dimensions, values, long_name, units = entry
        return dimensions, values, {"long_name": long_name, "units": units}

    return xarray.Dataset(
        {name: variable(entry) for name, entry in variables.items()},
        {name: variable(entry) for name, entry in coordinates.items()},
        attributes,
    )
