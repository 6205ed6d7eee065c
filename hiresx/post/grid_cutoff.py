"""Highest frequencies of sound that a grid resolves at given points: of waves with enough nodes per wavelength
there."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.errors import HiresxError
from hiresx.estimate.resolution import HELD, POINTS_PER_WAVE, largest_spacing
from hiresx.post.signal_reading import Signals
from hiresx.post.welch import Peak
from hiresx.results import Run, needs

# Fraction of the sampling rate of filtered samples up to which a tone is not an alias: aliases there are damped by 38
# dB.
CLEAN = 0.25


def cutoffs(run: Run, places: np.ndarray | None, points: float = POINTS_PER_WAVE) -> np.ndarray | None:
    """Return the cutoff frequencies (n,), in c_ref / L, at `places` (n, 3): up to these the grid has at least `points`
    nodes per wavelength of sound in gas at rest. They are c_ref / (points h), where h is the longest edge of the cell
    around the point. `hiresx check` prints them for probes. The result is NaN for a point far from all nodes. It is
    None if `places` is None, and for a run without stored coordinates. Raises HiresxError for `points` < 2."""
    if points < 2:
        raise HiresxError(f"{points:g} points per wavelength make no wave", "give 2 or more")
    edges = _edges(run, places)
    return None if edges is None else 1 / (points * edges[0])


def highest_waves(run: Run, places: np.ndarray | None) -> np.ndarray | None:
    """Return the highest frequencies (n,), in c_ref / L, of waves that the grid of `run` can represent at `places` (n,
    3): sound in gas at rest with two nodes per wavelength along the shortest edge of the cell. The result is NaN for a
    point far from all nodes. It is None if `places` is None, and for a run without stored coordinates."""
    edges = _edges(run, places)
    return None if edges is None else 1 / (HELD * edges[1])


def alias_free(taken: Signals, highest: np.ndarray | None) -> np.ndarray | None:
    """Return the frequencies (n,), in c_ref / L, below which a tone in n sampled signals cannot be an alias of a higher
    tone. `taken`: the signals of a probe. `highest` (n,): the highest frequencies of waves on the grid
    (`highest_waves`). The result is infinite if half the sampling rate exceeds `highest`. Otherwise it is a quarter of
    the sampling rate for filtered samples, and 0 for unfiltered ones. It is None if `highest` is unknown (None)."""
    if highest is None:
        return None
    enough = 0.5 / taken.dt >= (1 - 1e-6) * highest
    return np.where(np.isnan(highest), np.nan, np.where(enough, np.inf, CLEAN / taken.dt if taken.filtered else 0.0))


def warnings(taken: Signals, highest: np.ndarray | None) -> list[str]:
    """Return a list with a warning if tones in the n sampled signals `taken` may be aliased; otherwise an empty list.
    `highest` (n,): the highest frequencies of waves that the grid can represent at the points of the signals
    (`highest_waves`); None if unknown."""
    if taken.filtered or highest is None or not (0.5 / taken.dt < (1 - 1e-6) * highest).any():
        return []
    return [
        f'the samples of "{taken.history}" were not filtered and contain frequencies up to {0.5 / taken.dt:.4g}, but '
        f"the grid contains waves up to {np.nanmax(highest):.4g}: these appear at lower frequencies by aliasing, so "
        'that it is not known which tones the grid resolves; remove filter = "none" of the probe, or sample more often'
    ]


def _edges(run: Run, places: np.ndarray | None) -> np.ndarray | None:
    """Return the longest and the shortest edge (2, place) of the cell that contains each of the `places`."""
    blocks = None if places is None else _coordinates(run)
    if places is None or blocks is None:
        return None
    nearest, found_edges = np.full(len(places), np.inf), np.full((2, len(places)), np.nan)
    low, high = places.min(axis=0)[:, None], places.max(axis=0)[:, None]
    for x, y, z in blocks:
        active = [d for d in range(3) if x.shape[2 - d] > 1]
        longest = largest_spacing(x, y, z, active).ravel()
        # The coordinates along the block's dimensions, and those nodes that may be nearest to a place.
        nodes = np.stack([c.ravel() for c in (x, y, z)])[active]
        beyond = np.maximum(np.maximum(low[active] - nodes, nodes - high[active]), 0.0)
        near = np.flatnonzero(np.sum(beyond**2, axis=0) <= longest**2)
        if not near.size:
            continue
        tree = needs.scipy("spatial").cKDTree(nodes[:, near].T)
        distance, found = tree.query(places[:, active])
        for n in np.flatnonzero((distance < nearest) & (distance <= longest[near[found]])):
            nearest[n] = distance[n]
            node = np.unravel_index(int(near[found[n]]), x.shape)
            lengths = _lengths((x, y, z), node, places[n], active)
            found_edges[:, n] = max(lengths), min(lengths)
    return found_edges


def _lengths(
    block: tuple[np.ndarray, ...], node: Sequence[Any], place: np.ndarray, active: Sequence[int]
) -> list[float]:
    """Return the lengths of the edges from a `node` (k, j, i) along the `active` directions, towards the place."""
    here, found = np.array([c[tuple(node)] for c in block]), []
    for d in active:
        edges = []
        for step in (1, -1):
            beside = list(node)
            beside[2 - d] += step
            if 0 <= beside[2 - d] < block[0].shape[2 - d]:
                edges.append(np.array([c[tuple(beside)] for c in block]) - here)
        # The edge towards higher indexes comes first: a place on a node belongs to the cell above it.
        found.append(float(np.linalg.norm(max(edges, key=lambda edge: float(edge @ (place - here)) >= 0))))
    return found


def is_resolved(peak: Peak, cutoff: float | None, trusted: float | None) -> bool | None:
    """Return whether the grid resolves the tone `peak`: whether its frequency is at most `cutoff`, in c_ref / L. The
    result is None if `cutoff` is unknown (None or not finite). It is also None if the frequency is below `cutoff` and
    the tone may be an alias of a higher one, because it is above `trusted` (`alias_free`) or `trusted` is None."""
    if cutoff is None or not np.isfinite(cutoff):
        return None
    if peak.frequency > cutoff:
        return False
    return True if trusted is not None and peak.frequency <= trusted else None


def lowest(cutoff: np.ndarray | None) -> float | None:
    """Return the lowest of the cutoff frequencies `cutoff` (points,), in c_ref / L, below which the grid resolves a
    tone at all points. Unknown ones are NaN and are ignored. Returns None if no frequency is known."""
    known = np.empty(0) if cutoff is None else cutoff[~np.isnan(cutoff)]
    return float(known.min()) if known.size else None


def shade(ax: Any, cutoff: float | None, points: float) -> None:
    """Shade the frequencies above `cutoff` in the Matplotlib Axes `ax`; `cutoff` is in the unit of the horizontal axis.
    A label says that waves there have fewer than `points` nodes per wavelength. Nothing is done if `cutoff` is None or
    beyond the axis."""
    first, last = ax.get_xlim()
    if cutoff is None or cutoff >= last:
        return
    begin = max(cutoff, first)
    ax.axvspan(begin, last, color="0.92", lw=0, zorder=0)
    ax.axvline(begin, color="0.5", lw=0.7, ls="--", zorder=0.5)
    ax.set_xlim(first, last)
    ax.annotate(
        f"fewer than {points:g} points per wave", (begin, 0.02), (3, 0), xycoords=("data", "axes fraction"),
        textcoords="offset points", rotation=90, ha="left", va="bottom", fontsize=7, color="0.3",
    )  # fmt: skip


def _coordinates(run: Run) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]] | None:
    """Return x, y, z (nk, nj, ni) of every block, from the last fields or the averages."""
    try:
        tree = run.fields(-1, [])
    except HiresxError:
        try:
            tree = run.averages
        except HiresxError:
            return None
    return [triple(np.asarray(node[axis].values, float) for axis in "xyz") for node in tree.children.values()]
