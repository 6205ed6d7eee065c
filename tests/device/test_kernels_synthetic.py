"""The numbers of synthetic turbulence against NumPy: hash, cubic B-splines from truncated powers, eddies, lattice in
motion."""

from itertools import product
from math import comb, floor

import numpy as np
import pytest
from kernels_alone import GAMMA, program, random

MASK = (1 << 64) - 1
POINTS, PERIODS, SEED, SPEED = 40, (5, 0), 7, 1.3


def mixed(x: int) -> int:
    """The finaliser of SplitMix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def lattice_bits(a: int, b: int, c: int) -> int:
    """Of a lattice point, with the periods."""
    step, x = 0x9E3779B97F4A7C15, SEED
    for n, period in ((a, 0), (b, PERIODS[0]), (c, PERIODS[1])):
        x = mixed((x * step + (n % period if period else n)) & MASK)
    return x


def numbers(a: int, b: int, c: int) -> np.ndarray:
    """Three of a lattice point, uniform, of variance 1: 21 bits each, in the middle of their interval."""
    bits = np.array([(lattice_bits(a, b, c) >> shift) & 0x1FFFFF for shift in (0, 21, 42)])
    return np.sqrt(12) * ((bits + 0.5) / 2**21 - 0.5)


def shares(place: float) -> dict[int, float]:
    """By lattice point the cubic B-spline about it at `place`, scaled so that the squares add up to 1."""
    around = range(floor(place) - 1, floor(place) + 3)
    cubes = {n: [(-1) ** k * comb(4, k) * max(place - n + 2 - k, 0.0) ** 3 / 6 for k in range(5)] for n in around}
    values = {n: sum(parts) for n, parts in cubes.items()}
    root = np.sqrt(sum(value**2 for value in values.values()))
    return {n: value / root for n, value in values.items()}


def filtered(x: float, y: float, z: float) -> np.ndarray:
    found = np.zeros(3)
    for a, along in shares(x).items():
        for b, across in shares(y).items():
            for c, beside in shares(z).items():
                found += along * across * beside * numbers(a, b, c)
    return found


def of_eddies(*place: float) -> np.ndarray:
    """The sum over the eddies of all cells within two of the place, each 20 bits along an axis and three signs."""
    found = np.zeros(3)
    for apart in product(range(-2, 3), repeat=3):
        cell = [floor(x) + m for x, m in zip(place, apart, strict=True)]
        bits = lattice_bits(*cell)
        centre = cell + (np.array([bits >> shift & 0xFFFFF for shift in (0, 20, 40)]) + 0.5) / 2**20
        shape = np.prod(np.sqrt(1.5) * np.maximum(1 - abs(place - centre), 0))
        found += shape * np.array([1 if bits >> n & 1 else -1 for n in (60, 61, 62)])
    return found


def launch_eddies(kernels, count, places, share, clock, **given):
    """Both kernels, for the box around all places."""
    (_, *least), (along, *most) = np.floor(places.min(axis=1)), np.floor(np.ptp(places, axis=1))
    planes, rows, columns = (int(n) + 6 for n in (along, *most))
    box = {"planes": planes, "rows": rows, "columns": columns, "first1": int(least[0]) - 2, "first2": int(least[1]) - 2}
    motion = {"speed": SPEED, "share": share, "clock": clock, "eddies": np.zeros((planes, rows, columns, 6))}
    kernels.launch(
        "place_eddies", (columns, rows, planes), seed=SEED, least=places[0].min(), period1=PERIODS[0],
        period2=PERIODS[1], **box, **motion,
    )  # fmt: skip
    kernels.launch("synthetic_eddies", (count, 1, 1), n=count, places=places, **box, **motion, **given)


@pytest.mark.parametrize("fluctuation", [filtered, of_eddies])
def test_numbers_of_a_moving_lattice(fluctuation):
    """At places of both signs and at lattice points, with planes of earlier steps that are still known."""
    rng, kernels = random(3), program("cpu", ("synthetic_turbulence.h",))
    places = rng.uniform(-9, 9, (3, POINTS))
    places[:, :4] = np.floor(places[:, :4])
    mean = np.stack([rng.uniform(0.5, 2, POINTS), *rng.normal(size=(3, POINTS)), rng.uniform(0.5, 2, POINTS)])
    root, known, planes = rng.normal(size=(6, POINTS)), np.full((4, POINTS), np.nan), np.zeros((4, 3, POINTS))
    clock, found = np.zeros(8), np.full((5, POINTS), np.nan)
    clock[3] = 0.4  # CLOCK_DT
    lower = np.zeros((3, 3, POINTS))
    lower[np.tril_indices(3)] = root
    for clock[0] in (0.0, 1.0, 70.0):
        given = {"share": 0.5, "clock": clock, "places": places, "mean": mean, "root": root, "target": found}
        if fluctuation is of_eddies:
            launch_eddies(kernels, POINTS, **given)
        else:
            kernels.launch(
                "synthetic_turbulence", (POINTS, 1, 1), n=POINTS, seed=SEED, speed=SPEED, period1=PERIODS[0],
                period2=PERIODS[1], known=known, planes=planes, **given,
            )  # fmt: skip
        moved = places - np.array([[SPEED * (clock[0] + 0.5 * clock[3])], [0.0], [0.0]])
        turbulence = np.array([fluctuation(*place) for place in moved.T])
        velocity = mean[1:4] + np.einsum("rcn,nc->rn", lower, turbulence)
        energy = mean[4] / (GAMMA - 1) + mean[0] * (velocity**2).sum(axis=0) / 2
        np.testing.assert_allclose(found, [mean[0], *(mean[0] * velocity), energy], rtol=0, atol=1e-11)
