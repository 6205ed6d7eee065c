"""Spectral proper orthogonal decomposition (SPOD): the modes that carry most energy at each frequency.

Towne, Schmidt & Colonius, J. Fluid Mech. 847 (2018) 821, algorithm 2: the snapshots are divided into overlapping blocks
under a window, each block is transformed in time, and at each frequency the weighted cross-spectral density of the
blocks' realisations is decomposed by the method of snapshots. Space is read in groups of points, a slab, so that only
one slab with all its times is in memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.results import needs

# All times (time, n) of n places and the weights (n,) of these.
Slab = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes of the spectral proper orthogonal decomposition. `frequency`: in c_ref / L. `energy` (frequencies, modes):
    the mean squares of the fluctuations, weighted and summed over space, per unit of frequency, one-sided, in
    descending order. `expansion` (frequencies, blocks, modes): a mode is the sum of the Fourier transforms of the
    blocks of samples, multiplied by these coefficients. `length`: the number of samples of a block. `starts`: the first
    sample of each block. `window` (length,): the factors of its samples. `dt`: the time between samples, in units of L
    / c_ref (length scale over sound speed)."""

    frequency: np.ndarray
    energy: np.ndarray
    expansion: np.ndarray
    length: int
    starts: range
    window: np.ndarray
    dt: float

    def shape(self, values: np.ndarray, line: int, count: int) -> np.ndarray:
        """Return the shapes of the first `count` modes at one frequency, a complex array (count, n) for n points in
        space. `values` (times, n): the samples at these points. `line`: the index of the frequency in the attribute
        `frequency`. Over all points together the modes are orthonormal, with the weights that were given to `spod`."""
        wave = self.window * np.exp(-2j * np.pi * line * np.arange(self.length) / self.length)
        mean = values.mean(axis=0)
        transformed = np.stack([wave @ (values[first : first + self.length] - mean) for first in self.starts])
        return np.asarray(self.expansion[line, :, :count].T @ transformed)


def starts(times: int, length: int, overlap: float) -> range:
    """Return the index of the first snapshot of each block. `times`: the number of snapshots. `length`: the number of
    snapshots of a block. `overlap`: the fraction by which blocks overlap. Raises HiresxError for fewer than two blocks,
    for blocks of fewer than four snapshots, and for an overlap that is not in [0, 1)."""
    if not 0 <= overlap < 1:
        raise HiresxError(f"an overlap of {overlap:g} is not possible", "give 0 or more, and less than 1")
    found = range(0, times - length + 1, max(1, length - int(overlap * length)))
    if length < 4:
        raise HiresxError(f"blocks of {plural(length, 'snapshot')} are too short: 4 are needed", "give longer blocks")
    if len(found) < 2:
        raise HiresxError(
            f"{plural(times, 'snapshot')} in blocks of {length} make {max(len(found), 0)} realisation(s); 2 are needed",
            "give shorter blocks, or write fields more often",
        )
    return found


def spod(slabs: Callable[[], Iterable[Slab]], times: int, dt: float, length: int, overlap: float = 0.5) -> Modes:
    """Return the modes of the spectral proper orthogonal decomposition of `times` snapshots at intervals `dt`, in units
    of L / c_ref (length scale over sound speed). `slabs`: a function that yields, for one group of n points after the
    other, their values (times, n) and weights (n,). `length`, `overlap`: blocks of `length` snapshots overlap by the
    fraction `overlap`. They have a Hann window, and the mean over time is subtracted. Raises HiresxError for fewer than
    two blocks. Source: Towne, Schmidt & Colonius, J. Fluid Mech. 847 (2018) 821, algorithm 2."""
    begin = starts(times, length, overlap)
    window = needs.scipy("signal").get_window("hann", length)
    lines = length // 2 + 1
    products = np.zeros((lines, len(begin), len(begin)), complex)
    for values, weights in slabs():
        transformed = _transforms(values, length, begin, window)
        for line in range(lines):
            part = transformed[:, line]
            products[line] += (part.conj() * weights) @ part.T
    # Two-sided spectral density: the squares of the transforms divided by the power of the window, averaged over the
    # blocks.
    scale = dt / np.sum(window**2) / len(begin)
    sides = np.full(lines, 2.0)
    sides[0] = 1.0
    if length % 2 == 0:
        sides[-1] = 1.0
    values, vectors = np.linalg.eigh(products)
    values, vectors = np.maximum(values[:, ::-1], 0.0), vectors[:, :, ::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        expansion = np.where(values[:, None, :] > 1e-14 * values.max(), vectors / np.sqrt(values[:, None, :]), 0.0)
    return Modes(np.fft.rfftfreq(length, dt), values * scale * sides[:, None], expansion, length, begin, window, dt)


def _transforms(values: np.ndarray, length: int, starts: range, window: np.ndarray) -> np.ndarray:
    """Return the Fourier transforms of the blocks of `values` (time, n): (block, frequency, n)."""
    mean = values.mean(axis=0)
    found = np.empty((len(starts), length // 2 + 1, values.shape[1]), complex)
    for n, first in enumerate(starts):
        part = values[first : first + length] - mean
        part *= window[:, None]
        found[n] = np.fft.rfft(part, axis=0)
    return found
