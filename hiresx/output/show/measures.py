"""Differences of one variable between two results, and extremes of a variable, over all blocks."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def difference(pairs: Iterable[tuple[str, np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """Return the differences of one variable between two results. `pairs`: for each block its name and the values (nk,
    nj, ni) in the first and in the second result. The keys of the returned dictionary are `greatest`, the largest
    absolute difference; `rms`, the root mean square difference; `rms_of_range`, `rms` divided by the range of the first
    values, or by their magnitude if they are all equal (None if they are 0); and `at`, the node with the largest
    difference (None if there is none)."""
    greatest, where, squares, count = 0.0, None, 0.0, 0
    low, high = np.inf, -np.inf
    for name, first, second in pairs:
        values = first.astype(np.float64)
        apart = np.abs(values - second)
        # If both values are NaN they do not differ. If only one is NaN, the difference is infinite.
        lost, gone = np.isnan(values), np.isnan(second)
        apart = np.where(lost & gone, 0.0, np.where(lost | gone, np.inf, apart))
        worst = int(np.argmax(apart))
        if apart.flat[worst] > greatest:
            k, j, i = (int(n) for n in np.unravel_index(worst, apart.shape))
            greatest, where = float(apart.flat[worst]), {"block": name, "i": i, "j": j, "k": k}
        squares, count = squares + float(np.sum(apart**2)), count + apart.size
        if np.isfinite(values).any():
            low, high = min(low, float(np.nanmin(values))), max(high, float(np.nanmax(values)))
    mean = float(np.sqrt(squares / count))
    size = high - low if high > low else max(abs(high), 0.0)
    share = mean / size if np.isfinite(size) and size > 0 else None
    return {"greatest": greatest, "rms": mean, "rms_of_range": share, "at": where}


def summary(values: Sequence[np.ndarray]) -> dict[str, float]:
    """Return the smallest value, the mean over the nodes and the largest value of a variable, as a dictionary with the
    keys `least`, `mean` and `greatest`. `values`: the values of the variable, an array of any shape for each block. NaN
    is ignored."""
    flat = np.concatenate([block.ravel() for block in values]).astype(np.float64)
    return {"least": float(np.nanmin(flat)), "mean": float(np.nanmean(flat)), "greatest": float(np.nanmax(flat))}
