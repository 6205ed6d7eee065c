"""A shape of a wall that fades with the distance from it."""

import numpy as np


def diffuse(positions: np.ndarray, values: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """`values` (n,) at rising `positions` (n,), smoothed over the `widths` (m, n), which rise with their first index
    from 0; (m, n). The two end values stay.

    Every row comes from the one before by one implicit step of the heat equation over half the growth of the widths'
    squares, on which a Gaussian's width counts. A kink of the values is rounded off at once, over the distance that the
    width says, and the result has no odd terms in the width: continued with negative widths it is smooth.
    """
    left, right = np.diff(positions)[:-1], np.diff(positions)[1:]
    # Coefficients of the second derivative, without that of the middle: the sum of all three is 0.
    below = np.concatenate([[0.0], 2 / (left * (left + right)), [0.0]])
    above = np.concatenate([[0.0], 2 / (right * (left + right)), [0.0]])
    rows = [np.asarray(values, float)]
    for growth in 0.5 * np.diff(np.asarray(widths, float) ** 2, axis=0):
        rows.append(_solve_tridiagonal(growth * below, growth * above, rows[-1]))
    return np.array(rows)


def _solve_tridiagonal(below: np.ndarray, above: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x with (1 + below + above) x - below x[-1] - above x[+1] = right, by elimination; both coefficients positive."""
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
