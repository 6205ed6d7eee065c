"""A disc covered by a square block and a ring around it, smooth everywhere but at the square's four corners.

The nodes of the square are X[b, a] with a, b = 0 .. m, those of the ring lie on `m` rays per side, 4 m in all, the ray
0 on the positive first axis. Positions are complex numbers. Three index squares meet at each corner instead of four:
the index space is a cone there, whose angle is three right angles. Positions are the solution of a linear elliptic
equation on this surface (every node the weighted mean of its neighbours; Tutte, Proc. London Math. Soc. s3-13, 1963:
such a grid never folds). With equal weights the map goes as rho^(4/3) with the distance rho from a corner in index
space, and cells shrink there without limit; with weights rho^beta as rho^mu, mu^2 + beta mu = (4/3)^2.
"""

from functools import cache

import numpy as np

# Exponent beta of the weights near a corner: cells there shrink as rho^0.11 only, and lines bend less than with 7/9, at
# which they would not shrink at all (a vortex over a corner then leaves twice the error).
WEIGHT_POWER = 0.5
# The square of the distance from a corner, in cells, within which the weights become constant.
CORE_OF_CORNER = 0.25


def butterfly(m: int, radii: np.ndarray, fade: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of a butterfly grid (O-H grid) in a circle: an inner square, (m + 1, m + 1) [z direction, y
    direction], and a ring around it, (L, 4 m) [layer, ray]. A position is a complex number y + i z. `m`: the number of
    cells along each side of the square, which must be even.

    `radii` (L + 1,): the mean radius of the square's edge, and the radii of the layers 1 .. L of the ring. `fade`:
    numbers of two layers. From layer fade[1] on the ring is polar: the layers are circles of the given radii, and the
    rays are straight, at equal angles. Up to layer fade[0] the nodes solve an elliptic equation. The transition in
    between is smooth."""
    square, ring = _solve_quarter(m, tuple(float(r) for r in radii))
    share = np.clip((np.arange(1, len(radii)) - fade[0]) / (fade[1] - fade[0]), 0.0, 1.0)
    kept = 1 - share**4 * (35 - 84 * share + 70 * share**2 - 20 * share**3)
    polar = np.outer(radii[1:], _rays(4 * m))
    return square.copy(), polar + kept[:, None] * (ring - polar)


def _rays(n: int) -> np.ndarray:
    """Return exp(i theta) of n equal angles; multiples of a quarter turn are exact."""
    quarter = np.exp(2j * np.pi * np.arange(n // 4) / n)
    return np.concatenate([quarter, 1j * quarter, -quarter, -1j * quarter])


@cache
def _solve_quarter(m: int, radii: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the solution of the elliptic equation as in `butterfly`. One quarter is computed, and the others are its
    rotations."""
    h = m // 2
    t = np.arange(-h + 1, h + 1)  # rays of the first quarter, the corner included
    layers = _ring(m, np.array(radii), t)
    numbers = {(a, b): n for n, (a, b) in enumerate((a, b) for a in range(1, h + 1) for b in range(-a + 1, a + 1))}

    def unknown(a: int, b: int) -> tuple[int, complex]:
        """Return (unknown, factor) of a node counted from the centre: the node of the first quarter, rotated."""
        factor = 1 + 0j
        while (a, b) not in numbers:
            a, b, factor = b, -a, factor * 1j
        return numbers[a, b], factor

    matrix = np.zeros((len(numbers),) * 2, complex)
    right = np.zeros(len(numbers), complex)
    for (a, b), row in numbers.items():
        for c, d in ((a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)):
            if max(abs(c), abs(d)) <= h:
                weight = float(_weight(m, h - abs(a + c) / 2, h - abs(b + d) / 2))
                matrix[row, row] += weight
                if (c, d) != (0, 0):
                    column, factor = unknown(c, d)
                    matrix[row, column] -= weight * factor
    edge = [numbers[h, b] for b in t.tolist()]
    inverse, known, spokes = layers[0]
    matrix[np.ix_(edge, edge)] += np.diag(spokes) - spokes[:, None] * inverse * spokes
    right[edge] += spokes * (inverse @ known)
    x = np.linalg.solve(matrix, right)

    square = np.zeros((m + 1, m + 1), complex)
    for a in range(-h, h + 1):
        for b in range(-h, h + 1):
            if (a, b) != (0, 0):
                number, factor = unknown(a, b)
                square[b + h, a + h] = x[number] * factor
    ring = np.empty((len(radii) - 1, 4 * m), complex)
    values = x[edge]
    for layer, (inverse, known, spokes) in enumerate(layers):
        values = inverse @ (known + spokes * values)
        for quarter in range(4):
            ring[layer, (t + quarter * m) % (4 * m)] = values * 1j**quarter
    ring[-1] = radii[-1] * _rays(4 * m)
    return square, ring


def _weight(m: int, along: np.ndarray | float, across: np.ndarray | float) -> np.ndarray:
    """Return the weight of an edge whose middle lies `along` and `across` cells from a corner; it is 1 far from the
    corner."""
    x = (np.square(along) + np.square(across) + CORE_OF_CORNER) / (m / 4) ** 2
    return (x / (1 + x)) ** (WEIGHT_POWER / 2)


def _ring(m: int, r: np.ndarray, t: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Eliminate the unknowns of a quarter of the ring from the outermost layer, a circle, inwards. Returns for each
    layer 1 .. L - 1 (inverse (m, m), known (m,), spokes (m,)): its values are inverse @ (known + spokes * values of the
    next layer inside)."""
    h, last = m // 2, len(r) - 1
    # Weights along rays for which a polar ring with these radii satisfies the equation.
    bend = 1 - np.cos(2 * np.pi / (4 * m))
    radial = np.ones(last)
    for j in range(1, last):
        radial[j] = radial[j - 1] * (r[j] - r[j - 1] + bend * r[j]) / (r[j + 1] - r[j] - bend * r[j])
    layers: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for j in range(last - 1, 0, -1):
        spokes, outwards = (radial[j + s] * _weight(m, j + s + 0.5, h - np.abs(t)) for s in (-1, 0))
        # along[n]: the weight between the rays t[n] and t[n] + 1; the last ray's neighbour is the first ray of the next
        # quarter
        along = 0.5 * (radial[j - 1] + radial[j]) * _weight(m, j, h - np.abs(t + 0.5))
        matrix = np.diag(spokes + outwards + along + np.roll(along, 1)).astype(complex)
        for n in range(m):
            factor = 1j if n == m - 1 else 1.0
            matrix[n, (n + 1) % m] -= along[n] * factor
            matrix[(n + 1) % m, n] -= along[n] * np.conj(factor)
        if j == last - 1:
            known = outwards * r[last] * np.exp(2j * np.pi * t / (4 * m))
        else:
            inverse, beyond, _ = layers[0]
            matrix -= outwards[:, None] * inverse * outwards
            known = outwards * (inverse @ beyond)
        layers.insert(0, (np.linalg.inv(matrix), known, spokes))
    return layers
