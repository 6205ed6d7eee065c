"""`hiresx post energy-spectrum`: the spectrum of the kinetic energy of flow in a periodic box over the magnitude of the
wave vector, and the scales of turbulence that follow from it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.post import homogeneous_directions
from hiresx.post.result import Result, as_run, dataset, file_stem

VELOCITIES = ("u", "v", "w")
# Least determinant of the directions of a box; it is 1 if they are orthogonal.
_FLAT = 1e-6


def energy_spectrum(
    run: Any, start: float | None = None, end: float | None = None, every: int = 1, subset: str = "fields"
) -> Result:
    """Return the spectrum E of the kinetic energy of a flow in a periodic box at each time, and scales of turbulence.
    `run`: a folder or the result of `hiresx.open`; its grid must be one block, periodic and uniform in all three index
    directions. `start`, `end`: first and last time, in units of L / c_ref (length scale over sound speed). `every`: if
    it is n, every n-th stored time is used. `subset`: the name of an `[[output.subset]]`, by default the whole fields.

    A wave vector belongs to the shell of the nearest wave number. Wave numbers are multiples of the smallest spacing of
    wave numbers among the directions of the box. The sum of E times this spacing is the mean of (u'^2 + v'^2 + w'^2)/2
    about the mean velocities. `parseval_error` is the difference of the two, divided by this mean. The sum includes
    waves in the corners of the spectral box, beyond the largest complete sphere.

    The table has at each time this energy, u' = (2/3 energy)^(1/2), the integral length pi/(2 u'^2) int E/k dk, and
    Taylor's length lambda from lambda^2 = 15 u'^2/(2 int k^2 E dk) (Pope, Turbulent Flows, 2000, section 6.5). In
    viscous flow it also has Re_lambda = u' lambda Re_c, where Re_c = rho_ref c_ref L / mu_ref is `gas.reynolds`. This
    is the Reynolds number of a gas with the reference density and viscosity. Raises HiresxError for a grid of several
    blocks, and for a grid that is not periodic and uniform in three directions."""
    run = as_run(run)
    since, until = -np.inf if start is None else start, np.inf if end is None else end
    series = run.series(VELOCITIES, since, until, every, subset)
    _, node = homogeneous_directions.only_block(series, "spectra of the kinetic energy", run.case)
    coordinates = [node[axis].values for axis in "xyz"]
    steps = homogeneous_directions.axes(run.case, coordinates, "i,j,k")
    block = node.to_dataset().isel(homogeneous_directions.distinct(run.case, steps, coordinates[0].shape))
    counts = block["u"].shape[1:]
    periods = np.array([steps[axis] * n for axis, n in enumerate(counts)])
    if abs(np.linalg.det(periods / np.linalg.norm(periods, axis=1)[:, None])) < _FLAT:
        raise HiresxError("the directions of the box lie in a plane", "take a grid of three directions")
    reynolds = run.case["gas"].get("reynolds")
    rows, found, times = [], [], block["time"].values
    for m in range(times.size):
        velocity = [np.asarray(block[name].isel(time=m).values, float) for name in VELOCITIES]
        k, held = shells(velocity, periods)
        found.append(held / k[1])
        energy = 0.5 * float(sum(np.var(values) for values in velocity))
        rows.append(_scales(float(times[m]), k[1:], held[1:], energy, reynolds))
    spacing = float(k[1])
    largest = float(min(2 * np.pi / np.linalg.norm(a) * ((n - 1) // 2) for a, n in zip(periods, counts, strict=True)))
    summary = {
        "run": str(run.path), "times": times.size, "wavenumber_spacing": spacing, "largest_sphere": largest,
        "spectra": rows,
    }  # fmt: skip
    data = dataset(
        {"E": (("time", "wavenumber"), np.array(found), "spectral density of the kinetic energy", "c_ref^2 L")},
        {
            "time": ("time", times, "time", "L / c_ref"),
            "wavenumber": ("wavenumber", k, "wavenumber", "1 / L"),
        },
        title=run.title,
    )
    return Result(file_stem("energy-spectrum"), summary, data, lambda: _draw(data, largest), case=run.case)


def shells(velocity: Sequence[np.ndarray], periods: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the spectrum of the kinetic energy over spherical shells of wave vectors: the wave numbers 0, dk, 2 dk,
    ... (n,), in radians per L, and the kinetic energy per mass (n,), in c_ref^2, of the waves in a shell of width dk
    around each. `velocity`: u, v and w, arrays (nk, nj, ni); their means are subtracted. `periods` (3, 3): the vectors,
    one in each row, after which the flow repeats along k, j and i. dk is the smallest spacing of wave numbers among the
    directions."""
    # Columns, one for each period: the wave vector that has one wavelength along this period and is constant along the
    # others.
    waves = 2 * np.pi * np.linalg.inv(periods)
    spacing = float(np.linalg.norm(waves, axis=0).min())
    numbers = np.stack(np.meshgrid(*(np.fft.fftfreq(n, 1 / n) for n in velocity[0].shape), indexing="ij"))
    size = np.sqrt(sum(np.tensordot(row, numbers, 1) ** 2 for row in waves))
    shell = np.rint(size / spacing).astype(int).ravel()
    held = np.zeros(shell.max() + 1)
    for values in velocity:
        power = 0.5 * np.abs(np.fft.fftn(values - values.mean(), norm="forward")) ** 2
        held += np.bincount(shell, power.ravel())
    return spacing * np.arange(held.size), held


def _scales(time: float, k: np.ndarray, power: np.ndarray, energy: float, reynolds: float | None) -> dict[str, Any]:
    """Return a row of the table, from the energies `power` of the wave numbers k, whose sum should be `energy`."""
    total = float(power.sum())
    missing = abs(total - energy) / energy if energy else 0.0
    row: dict[str, Any] = {"time": time, "energy": energy, "parseval_error": missing}
    square = 2 * total / 3
    speed, mean_square = float(np.sqrt(square)), float(np.sum(k * k * power))
    taylor = float(np.sqrt(7.5 * square / mean_square)) if mean_square else None
    row |= {
        "fluctuation": speed,
        "integral_length": float(np.pi / (2 * square) * np.sum(power / k)) if square else None,
        "taylor_length": taylor,
        "reynolds_taylor": None if reynolds is None or taylor is None else speed * taylor * reynolds,
    }
    return row


def _draw(data: Any, largest: float) -> Any:
    figure = picture_file.figure(3.4)
    ax = figure.subplots()
    k = data["wavenumber"].values
    shown = (k > 0) & (k <= largest * (1 + 1e-9))
    for time, density in zip(data["time"].values, data["E"].values, strict=True):
        ax.loglog(k[shown], np.maximum(density[shown], 1e-300), label=f"$t = {time:.4g}$")
    highest = float(np.max(data["E"].values[:, shown], initial=0.0))
    if highest > 0:
        ax.set_ylim(highest * 1e-8, highest * 3)
    ax.set_xlabel(r"wavenumber $\kappa L$")
    ax.set_ylabel(r"$E / (c_\mathrm{ref}^2 L)$")
    picture_file.legend_beside(ax)
    picture_file.add_grid(ax)
    ax.set_title(data.attrs.get("title", ""), fontsize=9)
    return figure
