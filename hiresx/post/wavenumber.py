"""`hiresx post wavenumber`: one-dimensional spectra of fields over the wavenumber in a homogeneous direction."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hiresx.decomposition.homogeneous import LETTERS
from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.show import picture_file
from hiresx.post import homogeneous_directions
from hiresx.post.result import Result, as_run, dataset, file_stem

# Largest number of curves in one picture, each for a node of the remaining directions.
_CURVES = 5


def wavenumber(
    run: Any,
    variables: Sequence[str] = ("u", "v", "w", "p"),
    along: str | None = None,
    start: float | None = None,
    end: float | None = None,
    every: int = 1,
    subset: str = "fields",
) -> Result:
    """Return one-dimensional spectra of `variables` over the wavenumber along a homogeneous index direction, from the
    fields of `run` (a folder or the result of `hiresx.open`). `along`: the index direction, such as "i"; by default the
    first homogeneous one. `start`, `end`: first and last time, in units of L / c_ref (length scale over sound speed).
    `every`: if it is n, every n-th stored time is used. `subset`: the name of an `[[output.subset]]`, by default the
    whole fields. The spectra are averaged over times and the other homogeneous directions, for each node of the
    remaining directions.

    The density E is one-sided. The sum of E times the spacing of the wavenumbers is the variance about the mean over
    times and homogeneous directions. `parseval_error` is the difference between this sum and the variance, divided by
    the largest variance. The value at wavenumber 0 is the variance of the means along lines. Raises HiresxError for
    unknown names, for a grid of several blocks, and for a grid without a homogeneous direction."""
    run = as_run(run)
    if not variables:
        raise HiresxError("no variable was asked for", "e.g. --variable u,v,w,p")
    since, until = -np.inf if start is None else start, np.inf if end is None else end
    series = run.series(variables, since, until, every, subset)
    _, node = homogeneous_directions.only_block(series, "spectra over wavenumbers", run.case)
    coordinates = [node[axis].values for axis in "xyz"]
    steps = homogeneous_directions.axes(run.case, coordinates)
    letters = [LETTERS[axis] for axis in steps]
    chosen = along or letters[-1]
    (axis, step), *_ = homogeneous_directions.axes(run.case, coordinates, chosen).items()
    distinct = homogeneous_directions.distinct(run.case, steps, coordinates[0].shape)
    block = node.to_dataset().isel(distinct)
    n = block.sizes[LETTERS[axis]]
    spacing = 2 * np.pi / (n * float(np.linalg.norm(step)))
    waves = spacing * np.arange(n // 2 + 1)
    left = [a for a in range(3) if a not in steps and coordinates[0].shape[a] > 1]
    dimensions = tuple(LETTERS[a] for a in left)
    kept: dict[str, tuple[Any, ...]] = {}
    rows, times = [], block.sizes["time"]
    shape = [coordinates[0].shape[a] for a in left]
    for name in variables:
        power, variance = _moments(block[name], axis, tuple(steps))
        power, variance = power.reshape(*shape, waves.size), variance.reshape(shape)
        about = derived.about(name)
        square_unit = f"({about.scale})^2"
        kept[f"E_{name}"] = (
            (*dimensions, "wavenumber"), power / spacing, f"spectral density of {about.long_name}", f"{square_unit} L"
        )  # fmt: skip
        kept[f"variance_{name}"] = dimensions, variance, f"variance of {about.long_name}", square_unit
        largest = float(variance.max())
        missing = float(np.abs(power.sum(axis=-1) - variance).max())
        rows.append(
            {"variable": name, "largest_variance": largest, "parseval_error": missing / largest if largest else missing}
        )
    places: dict[str, tuple[Any, ...]] = {"wavenumber": ("wavenumber", waves, "wavenumber", "1 / L")}
    first = tuple(slice(None) if a in left else 0 for a in range(3))
    places |= {x: (dimensions, c[first], f"{x} coordinate", "L") for x, c in zip("xyz", coordinates, strict=True)}
    data = dataset(kept, places, title=run.title)
    clock = block["time"].values
    summary = {
        "run": str(run.path), "along": LETTERS[axis], "homogeneous": letters, "times": times,
        "from": float(clock.min()), "to": float(clock.max()), "wavenumber_spacing": spacing,
        "highest_wavenumber": float(waves[-1]), "spectra": rows,
    }  # fmt: skip
    return Result(
        file_stem("wavenumber", summary["along"], *variables), summary, data, lambda: _draw(data, variables),
        case=run.case,
    )  # fmt: skip


def _moments(series: Any, axis: int, over: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean squares of the waves along `axis` (..., waves), and the variance, of a variable over time and k,
    j, i. Both are means over time and the axes `over`, which keep one node. Waves that a real signal has in pairs count
    twice."""
    n, times, others = series.shape[1 + axis], series.shape[0], tuple(a for a in over if a != axis)
    powers, means, squares, base = [], [], [], np.zeros(1)
    for m in range(times):
        values = np.asarray(series.isel(time=m).values, float)
        if m == 0:
            base = values.mean(axis=over, keepdims=True)  # so that a small variance beside a large mean is not lost
        values = values - base
        waves = np.abs(np.fft.rfft(values, axis=axis) / n) ** 2
        np.moveaxis(waves, axis, -1)[..., 1 : (n + 1) // 2] *= 2
        powers.append(np.moveaxis(waves.mean(axis=others, keepdims=True), axis, -1))
        means.append(values.mean(axis=over, keepdims=True))
        squares.append((values**2).mean(axis=over, keepdims=True))
    power, mean, square = (np.mean(held, axis=0) for held in (powers, means, squares))
    power[..., 0] -= np.squeeze(mean**2, axis=axis)
    return power, square - mean**2


def _draw(data: Any, variables: Sequence[str]) -> Any:
    figure = picture_file.figure(0.6 + 2.2 * len(variables))
    axes = figure.subplots(len(variables), 1, sharex=True, squeeze=False)[:, 0]
    over = data["wavenumber"].values[1:]
    for ax, name in zip(axes, variables, strict=True):
        density = data[f"E_{name}"]
        flat = density.values.reshape(-1, density.sizes["wavenumber"])
        numbers = [np.ravel(data[x].values) for x in "xyz"]
        widest = int(np.argmax([np.ptp(values) for values in numbers]))
        for n in np.unique(np.linspace(0, len(flat) - 1, min(_CURVES, len(flat))).astype(int)):
            label = f"${'xyz'[widest]} = {numbers[widest][n]:.3g}$" if len(flat) > 1 else None
            ax.loglog(over, np.maximum(flat[n, 1:], 1e-300), label=label)
        largest = float(np.max(flat[:, 1:], initial=0.0))
        if largest > 0:
            ax.set_ylim(largest * 1e-14, largest * 3)
        if len(flat) > 1:
            picture_file.legend_beside(ax)
        ax.set_ylabel(f"$E_{{{name}}}$")
        picture_file.add_grid(ax)
    axes[-1].set_xlabel(r"wavenumber $\kappa L$")
    figure.suptitle(data.attrs.get("title", ""), fontsize=9)
    return figure
