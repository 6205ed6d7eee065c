"""The numbers of synthetic turbulence against NumPy: hash, cubic B-splines from truncated powers, lattice in motion."""

from math import comb, floor

import numpy as np
from kernels_alone import GAMMA, program, random

MASK = (1 << 64) - 1
POINTS, PERIODS, SEED, SPEED = 40, (5, 0), 7, 1.3


def mixed(x: int) -> int:
    """The finaliser of SplitMix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def numbers(a: int, b: int, c: int) -> np.ndarray:
    """Three of a lattice point, uniform, of variance 1: 21 bits each, in the middle of their interval."""
    step, x = 0x9E3779B97F4A7C15, SEED
    for n in (a, b, c):
        x = mixed((x * step + n) & MASK)
    bits = np.array([(x >> shift) & 0x1FFFFF for shift in (0, 21, 42)])
    return np.sqrt(12) * ((bits + 0.5) / 2**21 - 0.5)


def shares(place: float) -> dict[int, float]:
    """By lattice point the cubic B-spline about it at `place`, scaled so that the squares add up to 1."""
    around = range(floor(place) - 1, floor(place) + 3)
    cubes = {n: [(-1) ** k * comb(4, k) * max(place - n + 2 - k, 0.0) ** 3 / 6 for k in range(5)] for n in around}
    values = {n: sum(parts) for n, parts in cubes.items()}
    root = np.sqrt(sum(value**2 for value in values.values()))
    return {n: value / root for n, value in values.items()}


def fluctuation(x: float, y: float, z: float) -> np.ndarray:
    found = np.zeros(3)
    for a, along in shares(x).items():
        for b, across in shares(y).items():
            for c, beside in shares(z).items():
                lattice = [m % period if period else m for m, period in zip((b, c), PERIODS, strict=True)]
                found += along * across * beside * numbers(a, *lattice)
    return found


def test_numbers_of_a_moving_lattice():
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
        kernels.launch(
            "synthetic_turbulence", (POINTS, 1, 1), n=POINTS, seed=SEED, speed=SPEED, period1=PERIODS[0],
            period2=PERIODS[1], share=0.5, clock=clock, places=places, mean=mean, root=root, known=known,
            planes=planes, target=found,
        )  # fmt: skip
        moved = places - np.array([[SPEED * (clock[0] + 0.5 * clock[3])], [0.0], [0.0]])
        turbulence = np.array([fluctuation(*place) for place in moved.T])
        velocity = mean[1:4] + np.einsum("rcn,nc->rn", lower, turbulence)
        energy = mean[4] / (GAMMA - 1) + mean[0] * (velocity**2).sum(axis=0) / 2
        np.testing.assert_allclose(found, [mean[0], *(mean[0] * velocity), energy], rtol=0, atol=1e-11)
