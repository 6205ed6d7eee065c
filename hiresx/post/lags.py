"""Correlations in space and time between signals at points along a line, and the convection velocity."""

from dataclasses import dataclass

import numpy as np

# Correlations below this value give no velocity: they may be caused by other waves.
_ENOUGH = 0.3


@dataclass(frozen=True, eq=False)
class Correlation:
    """Correlation coefficients (points, lags) between signals at points along a line: of the values at t + lag with the
    values of point number `reference` at t. `lag` (lags,): in units of L / c_ref (length scale over sound speed).
    `distance` (points,): distance along the line from its first point, in units of the length scale L."""

    coefficients: np.ndarray
    lag: np.ndarray
    distance: np.ndarray
    reference: int


def distances(places: np.ndarray) -> np.ndarray:
    """Return the distances (n,) of n points from the first one, along the line from the first to the last point.
    `places` (n, 3): coordinates. The result has the unit of the coordinates."""
    along = places[-1] - places[0]
    return (places - places[0]) @ along / max(float(np.linalg.norm(along)), 1e-300)


def space_time(values: np.ndarray, dt: float, distance: np.ndarray, reference: int, longest: float) -> Correlation:
    """Return the correlation coefficients between signals at points along a line, for lags up to `longest` in both
    directions. `values` (times, points): the signals. `dt`: the time between samples, in units of L / c_ref (length
    scale over sound speed). `distance` (points,): distance of each point from the first one, in units of the length
    scale L. `reference`: index of the point with which all others are correlated. The products of each lag are divided
    by the root mean squares of the whole signals and by the number of samples that overlap (unbiased). A periodic
    signal therefore has the correlation 1 after every period."""
    part = values - values.mean(axis=0)
    samples = len(part)
    most = min(round(longest / dt), samples // 2)
    size = 1 << int(np.ceil(np.log2(samples + most + 1)))
    transformed = np.fft.rfft(part, size, axis=0)
    products = np.fft.irfft(np.conj(transformed[:, reference : reference + 1]) * transformed, size, axis=0)
    lags = np.arange(-most, most + 1)
    rms = np.sqrt(np.mean(part**2, axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = rms * rms[reference] * (samples - np.abs(lags))[:, None]
        coefficients = products[lags] / scale
    return Correlation(coefficients.T, lags * dt, distance, reference)


def convection(values: np.ndarray, dt: float, distance: np.ndarray, reach: float, longest: float) -> np.ndarray:
    """Return the convection velocity (points,), in c_ref, at each point of a line; nan if the correlation is too weak.
    `values` (times, points): the signals. `dt`: the time between samples, in L / c_ref. `distance` (points,): distance
    of each point from the first one, in L. `reach`: the largest distance downstream of a point, in L, of the points
    that are used for its velocity. `longest`: the largest lag, in units of L / c_ref (length scale over sound speed).

    For each point the lags of the largest correlations with points up to `reach` downstream are found. The velocity is
    the slope of a line through the origin that is fitted to the distances of these points as a function of the lags, by
    least squares. The maximum is followed from point to point, so that in a periodic flow it still belongs to the same
    wave."""
    found = np.full(distance.size, np.nan)
    for n in range(distance.size):
        one = space_time(values, dt, distance, n, longest)
        lag, ahead, delays = 0.0, [], []
        for m in range(n + 1, distance.size):
            if distance[m] - distance[n] > reach:
                break
            row = one.coefficients[m]
            # The maximum is searched at velocities of 0.15 to 3 c_ref from the maximum at the previous place.
            step = distance[m] - distance[m - 1]
            near = (one.lag >= lag + step / 3.0 - dt) & (one.lag <= lag + step / 0.15 + dt)
            if not near.any():
                break
            best = int(np.flatnonzero(near)[np.argmax(row[near])])
            if not row[best] > _ENOUGH:
                break
            inner = 0 < best < row.size - 1
            lag = one.lag[best] + (dt * vertex(row[best - 1 : best + 2]) if inner else 0.0)
            ahead.append(distance[m] - distance[n])
            delays.append(lag)
        if len(ahead) >= 3 and np.dot(ahead, delays) > 0:
            found[n] = np.dot(ahead, ahead) / np.dot(ahead, delays)
    return found


def vertex(values: np.ndarray) -> float:
    """Return the position of the maximum of the parabola through three equidistant `values` (3,), as the distance from
    the middle one in units of their spacing; 0 if the parabola has no maximum."""
    a, b, c = values
    bend = a - 2 * b + c
    return float(np.clip(0.5 * (a - c) / bend, -0.5, 0.5)) if bend < 0 else 0.0
