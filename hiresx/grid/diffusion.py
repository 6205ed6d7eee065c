"""The shape of a wall, smoothed more and more with increasing distance from it."""

import numpy as np


def diffuse(positions: np.ndarray, values: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Smooth `values` (n,), given at the increasing `positions` (n,), over m widths, and return the m results, (m, n).
    `widths` (m, n): the width of each result at each position. All widths of the first row must be 0, and the widths
    must increase from row to row. The two end values do not change. Each row is computed from the row before by one
    implicit step of the heat equation. The step is half the increase of the squared widths, so that a width is the
    standard deviation of a Gaussian. The result is an even function of the width."""
    left, right = np.diff(positions)[:-1], np.diff(positions)[1:]
    # Coefficients of the second derivative, without the middle one: the sum of all three is 0.
    below = np.concatenate([[0.0], 2 / (left * (left + right)), [0.0]])
    above = np.concatenate([[0.0], 2 / (right * (left + right)), [0.0]])
    rows = [np.asarray(values, float)]
    for growth in 0.5 * np.diff(np.asarray(widths, float) ** 2, axis=0):
        rows.append(_solve_tridiagonal(growth * below, growth * above, rows[-1]))
    return np.array(rows)


def _solve_tridiagonal(below: np.ndarray, above: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve (1 + below + above) x - below x[-1] - above x[+1] = right by elimination; both coefficients are
    positive."""
    ratio, value, ratios, values = 0.0, 0.0, [], []
    for b, a, r in zip(below.tolist(), above.tolist(), right.tolist(), strict=True):
        pivot = 1 + a + b * (1 - ratio)
        ratio, value = a / pivot, (r + b * value) / pivot
        ratios.append(ratio)
        values.append(value)
    x, result = 0.0, []
    for ratio, value in zip(reversed(ratios), reversed(values), strict=True):
        x = value + ratio * x
        result.append(x)
    return np.array(result[::-1])
