"""`hiresx post spod`: spectral proper orthogonal decomposition of the fields of a run."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.fields import field_file
from hiresx.output.fields.differences import Sides
from hiresx.output.fields.field_reader import open_file
from hiresx.output.show import picture_file, raster
from hiresx.output.show.look import Look
from hiresx.post import modes, plane_view
from hiresx.post.result import Result, as_run, file_stem
from hiresx.post.snapshots import Snapshots
from hiresx.results import Run, needs
from hiresx.results.stored_levels import kinds_of_stored

# Number of bytes of all times of the places that are transformed at once.
_SLAB = 1 << 25
# Number of modes whose energies are drawn and returned.
_KEPT = 5


def spod(
    run: Any,
    variable: str = "p",
    start: float | None = None,
    end: float | None = None,
    length: int | None = None,
    overlap: float = 0.5,
    frequency: float | None = None,
    subset: str = "fields",
    look: Look | None = None,
) -> Result:
    """Return the spectral proper orthogonal decomposition (SPOD) of one `variable` of plane fields. `run`: a folder or
    the result of `hiresx.open`. `start` and `end`: the first and the last time, in units of L / c_ref, length scale
    over sound speed. The fields must be at equal intervals in time. `subset`: the name of an `[[output.subset]]`, by
    default the whole fields; for a three-dimensional flow, write a plane as a subset.

    The spectra are of blocks of `length` snapshots (default: such that there are seven blocks), which overlap by the
    fraction `overlap`. Cells are weighted by their areas. The picture has the energies of the modes, and the first mode
    at `frequency` (default: where its energy is largest). `look`: the appearance of the picture. The method is that of
    Towne, Schmidt & Colonius, J. Fluid Mech. 847 (2018) 821. Raises HiresxError for fields that are not plane, are too
    few or at unequal intervals, and for subsets of fields with levels of refinement."""
    run, look = as_run(run), look or Look()
    series = run.series([variable], -np.inf if start is None else start, np.inf if end is None else end, subset=subset)
    blocks = {name: node for name, node in series.children.items()}
    times = np.asarray(next(iter(blocks.values()))["time"].values, dtype=float)
    if times.size < 8:
        raise HiresxError(
            f"{plural(times.size, 'field')} are too few", "write more of them: output.every_time, or a subset"
        )
    dt = float(times[-1] - times[0]) / (times.size - 1)
    if np.abs(np.diff(times) - dt).max() > 1e-3 * dt:
        raise HiresxError(
            "the fields lie at unequal distances in time",
            "write them with every_time, and leave others out by --from, --to",
        )
    length = max(4, int(times.size / 4)) if length is None else length
    modes.starts(times.size, length, overlap)  # raises its errors before anything is read
    one = series.isel(time=0)
    one.attrs = series.attrs
    if one.hiresx.dimensions != 2:
        raise HiresxError("modes are found of plane fields", "write a plane: [[output.subset]] plane = { z = 0.0 }")
    horizontal, vertical, pieces, _ = plane_view.plane_of_fields(one, look)
    kinds_of_cells = kinds_of_stored(blocks)
    if run.case.get("refine") and kinds_of_cells[0] is None:
        raise HiresxError(
            "in this output points lie on several levels of [refine] and would be counted several times",
            "take whole fields of a plane flow, or leave refine out and run again",
        )
    axes = (horizontal, vertical)
    beyond = [
        _beyond(piece, axes, sides) for piece, sides in zip(pieces, _sides(run, subset, blocks, axes), strict=True)
    ]
    weights = np.concatenate([_areas(*xy, kinds).ravel() for xy, kinds in zip(beyond, kinds_of_cells, strict=True)])
    kinds = {node[variable].dtype for node in blocks.values()}
    snapshots = Snapshots(times.size, weights.size, np.result_type(*kinds))
    snapshots.fill(_rows(run, subset, blocks, variable))
    at_once = max(1, _SLAB // (8 * times.size))
    found = modes.spod(
        lambda: ((values, weights[part]) for part, values in snapshots.columns(at_once)),
        times.size, dt, length, overlap,
    )  # fmt: skip
    leading = found.energy[:, 0].copy()
    leading[0] = 0  # the remainder of the mean
    line = int(np.argmax(leading)) if frequency is None else int(np.argmin(np.abs(found.frequency - frequency)))
    kept = min(_KEPT, found.energy.shape[1])
    shapes = np.concatenate([found.shape(values, line, kept) for _, values in snapshots.columns(at_once)], axis=1)
    cuts = np.cumsum([piece[horizontal].size for piece in pieces])[:-1]
    first_modes = [part.reshape(-1, *piece[horizontal].shape) for part, piece in
                   zip(np.split(shapes, cuts, axis=1), pieces, strict=True)]  # fmt: skip
    total = found.energy.sum(axis=1)
    summary = {
        "run": str(run.path), "variable": variable, "from": float(times[0]), "to": float(times[-1]),
        "snapshots": int(times.size), "dt": dt, "block_snapshots": found.length, "realisations": len(found.starts),
        "overlap": overlap, "resolution": float(found.frequency[1]), "frequency": float(found.frequency[line]),
        "first_mode_part": float(found.energy[line, 0] / total[line]) if total[line] else 0.0,
        "strongest": [
            {"frequency": float(found.frequency[n]), "energy": float(found.energy[n, 0]),
             "part_of_its_frequency": float(found.energy[n, 0] / total[n])}
            for n in np.argsort(-leading)[:5]
        ],
    }  # fmt: skip
    xarray = needs.xarray()
    held = {
        "/": xarray.Dataset(
            {"energy": (("frequency", "mode"), found.energy)},
            {"frequency": ("frequency", found.frequency, {"units": "c_ref / L"})},
        )
    }
    for name, piece, shape in zip(blocks, pieces, first_modes, strict=True):
        over = ("mode_kept", "j", "i")
        held[f"/{name}"] = xarray.Dataset(
            {"real": (over, shape.real), "imaginary": (over, shape.imag)},
            {axis: (("j", "i"), piece[axis]) for axis in "xyz"},
        )
    data = xarray.DataTree.from_dict(held)
    data.attrs = {"title": run.title, "frequency": summary["frequency"], "variable": variable}
    draw_of = {"title": run.title, "axes": (horizontal, vertical), "line": line, "variable": variable}
    return Result(
        file_stem("spod", variable, subset if subset != "fields" else ""),
        summary,
        data,
        lambda: _draw(found, pieces, first_modes, draw_of, look),
        case=run.case,
    )


def _rows(run: Run, subset: str, blocks: dict[str, Any], variable: str) -> Iterator[np.ndarray]:
    """Yield the values of all blocks, one time after the other. Each file is opened once if it contains the
    variable."""
    frames = field_file.frames(run.path, subset)
    for n, step in enumerate(next(iter(blocks.values()))["step"].values):
        stored = field_file.read_stored(frames[int(step)], list(blocks), variable)
        if stored is not None:
            yield np.concatenate([part.ravel() for part in stored])
            continue
        yield np.concatenate([np.asarray(block[variable].isel(time=n).values).ravel() for block in blocks.values()])


def _sides(run: Run, subset: str, blocks: dict[str, Any], axes: tuple[str, str]) -> list[dict[str, Sides]]:
    """Return for each of the `blocks` the coordinates `axes` beyond its connected faces, by axis. With levels of
    refinement there are none."""
    if run.case.get("refine"):
        return [{axis: {} for axis in axes} for _ in blocks]
    with open_file(next(iter(field_file.frames(run.path, subset).values()))) as reader:
        near = field_file.neighbours(reader)
        return [{axis: near.of(reader.names.index(name), axis) for axis in axes} for name in blocks]


def _beyond(
    piece: dict[str, np.ndarray], axes: tuple[str, str], sides: dict[str, Sides]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates `axes` of a plane block with a layer of nodes around it, arrays (nj + 2, ni + 2). The
    nodes of this layer are those of neighbouring blocks with cells in between, and NaN elsewhere. The cells at its
    corners are parallelograms."""

    def extended(axis: str) -> np.ndarray:
        padded = np.pad(piece[axis].astype(float), 1, constant_values=np.nan)
        for (of, upper), face in sides[axis].items():
            values = np.where(face.apart, face.values[0], np.nan).ravel()
            if of == 1:
                padded[-1 if upper else 0, 1:-1] = values
            elif of == 2:
                padded[1:-1, -1 if upper else 0] = values
        for j, i in product((0, -1), (0, -1)):
            own_j, own_i = (1 if j == 0 else -2), (1 if i == 0 else -2)
            padded[j, i] = padded[j, own_i] + padded[own_j, i] - padded[own_j, own_i]
        return padded

    return extended(axes[0]), extended(axes[1])


def _areas(x: np.ndarray, y: np.ndarray, kinds: np.ndarray | None = None) -> np.ndarray:
    """Return the area (nj, ni) that belongs to each node: a quarter of each of the cells around it that are not hidden
    by `kinds` (see `level_cells.cell_kinds`). `x`, `y` (nj + 2, ni + 2): the coordinates with a layer of nodes around
    the block, NaN where there are none (`_beyond`)."""
    across = (x[1:, 1:] - x[:-1, :-1]) * (y[1:, :-1] - y[:-1, 1:]) - (x[1:, :-1] - x[:-1, 1:]) * (
        y[1:, 1:] - y[:-1, :-1]
    )
    cells = 0.5 * np.nan_to_num(np.abs(across))
    if kinds is not None:
        cells[1:-1, 1:-1] *= kinds.reshape(cells.shape[0] - 2, -1) == 0
    return 0.25 * (cells[:-1, :-1] + cells[1:, :-1] + cells[:-1, 1:] + cells[1:, 1:])


def _draw(found: modes.Modes, pieces: list[Any], shapes: list[np.ndarray], about: dict[str, Any], look: Look) -> Any:
    horizontal, vertical = about["axes"]
    box = look.box or raster.box_of(pieces, horizontal, vertical)
    picture = raster.raster(pieces, horizontal, vertical, box)([shape[0].real for shape in shapes])
    ratio = (box[3] - box[2]) / (box[1] - box[0])
    figure = picture_file.figure(3.3 + float(np.clip(5.8 * ratio, 1.2, 5.5)))
    top, ax = figure.subplots(2, 1, height_ratios=[2.4, float(np.clip(5.8 * ratio, 1.2, 5.5))])
    count = found.energy.shape[1]
    for n in range(count - 1, -1, -1):
        top.loglog(found.frequency[1:], np.maximum(found.energy[1:, n], 1e-300),
                   color=picture_file.BLUE if n == 0 else "0.55",
                   lw=1.4 if n == 0 else 0.7, label={0: "first mode", 1: "the others"}.get(n))  # fmt: skip
    highest = found.energy[1:].max()
    top.set_ylim(max(found.energy[1:, 0].min() * 1e-3, highest * 1e-10), highest * 3)
    top.axvline(found.frequency[about["line"]], color=picture_file.OTHERS[0], lw=0.8, ls="--")
    picture_file.use_frequency_axis(top, found.frequency[1], found.frequency[-1])
    top.set_xlabel(r"$f\,L/c_\mathrm{ref}$")
    top.set_ylabel(f"energy of {about['variable']}")
    top.grid(lw=0.3, color="0.85", which="both")
    picture_file.legend_beside(top)
    strongest = float(np.nanquantile(np.abs(picture), 0.998)) or 1.0
    drawn = ax.imshow(
        picture / strongest, origin="lower", extent=box, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest"
    )
    figure.colorbar(drawn, cax=ax.inset_axes((1.02, 0, 0.022, 1)), extend="both")
    ax.set_xlabel(f"${horizontal}/L$")
    ax.set_ylabel(f"${vertical}/L$")
    f = found.frequency[about["line"]]
    ax.set_title(f"first mode at $f = {f:.4g}\\,c_\\mathrm{{ref}}/L$, real part", loc="left")
    figure.suptitle(
        f"{about['title']}\n{plural(len(found.starts), 'block')} of {plural(found.length, 'snapshot')}, "
        f"resolution {found.frequency[1]:.3g}",
        fontsize=9,
    )
    return figure
