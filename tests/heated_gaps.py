"""Small disturbances of a gas at rest between two no-slip walls, y = 0 and 1 of a plane gap or the radii 1/2 and 3/2 of
a ring, whose temperature is uneven along them: solved by a spectral method, and computed on grids whose lines are
orthogonal to the walls or oblique."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import expm

from hiresx import Simulation
from hiresx.case import Case
from hiresx.grid import Block, Grid

GAMMA, PRANDTL, REYNOLDS, P = 1.4, 0.72, 20.0, 1 / 1.4
INNER, TURNS = 0.5, 2
# Of the uneven temperature: what is quadratic in it lies below all errors.
AMPLITUDE = 1e-7


def chebyshev(n):
    """Points 0..1 and the matrix of the derivative of what is given there."""
    x = np.cos(np.pi * np.arange(n + 1) / n)
    c = np.r_[2, np.ones(n - 1), 2] * (-1.0) ** np.arange(n + 1)
    d = np.outer(c, 1 / c) / (x[:, None] - x + np.eye(n + 1))
    return (1 - x) / 2, -2 * (d - np.diag(d.sum(axis=1)))


class Mode(NamedTuple):
    """Complex amplitudes at the points y of density, velocity normal to the walls and along them, temperature, pressure
    over that of the gas at rest, and of the slopes across of the last velocity and the temperature."""

    y: np.ndarray
    rho: np.ndarray
    normal: np.ndarray
    along: np.ndarray
    T: np.ndarray
    p: np.ndarray
    shear: np.ndarray
    slope: np.ndarray

    def at(self, name, y):
        """By barycentric interpolation at places y."""
        weight = (-1.0) ** np.arange(len(self.y))
        weight[[0, -1]] /= 2
        distance = y.ravel()[:, None] - self.y
        exact = np.abs(distance) < 1e-14
        share = weight / np.where(exact, 1, distance)
        share = np.where(exact.any(axis=1)[:, None], exact, share)
        return ((share @ getattr(self, name)) / share.sum(axis=1)).reshape(y.shape)


def mode(time, adiabatic, start, wave, inner=None, points=32):
    """The mode exp(i wave x), or with `inner` radius exp(i wave theta), that begins with T = start(y), without pressure
    and velocity. The equations of Navier and Stokes linearised about rest, with constant viscosity."""
    y, D = chebyshev(points)
    n, mu, unit = points + 1, 1 / REYNOLDS, np.eye(points + 1)
    turn = np.diag(1 / (inner + y)) if inner else 0 * unit
    W = 1j * wave * (turn if inner else unit)
    across, L = D + turn, D @ D + turn @ D + W @ W
    zero = 0 * unit
    A = np.block([
        [zero, -across, -W, zero],
        [-D / GAMMA, mu * (L - turn @ turn + D @ across / 3), mu * (D @ W / 3 - 2 * W @ turn), -D / GAMMA],
        [-W / GAMMA, mu * (W @ across / 3 + 2 * W @ turn), mu * (L - turn @ turn + W @ W / 3), -W / GAMMA],
        [zero, -(GAMMA - 1) * across, -(GAMMA - 1) * W, GAMMA * mu / PRANDTL * L],
    ]).astype(complex)  # fmt: skip
    conditions = np.zeros((6, 4 * n), complex)
    for row, end in enumerate((0, points)):
        conditions[row, n + end] = conditions[2 + row, 2 * n + end] = 1
        conditions[4 + row, 3 * n :] = D[end] if adiabatic else unit[end]
    held = [f * n + end for f in (1, 2, 3) for end in (0, points)]
    free = np.setdiff1d(np.arange(4 * n), held)
    all_of = np.zeros((4 * n, len(free)), complex)
    all_of[free, np.arange(len(free))] = 1
    all_of[held] = -np.linalg.solve(conditions[:, held], conditions[:, free])
    begin = np.concatenate([-start(y), 0 * y, 0 * y, start(y)])
    rho, normal, along, T = np.split(all_of @ (expm(A[free] @ all_of * time) @ begin[free]), 4)
    return Mode(y, rho, normal, along, T, rho + T, D @ along, D @ T)


class Gap:
    """A plane gap of n nodes, or a `ring` with lines that are closer at the inner wall. Lines are displaced along the
    walls by `skew` (x, or (x, z): then in three dimensions) times the distance from one of them. `tables` of the case
    besides."""

    def __init__(self, n, skew, adiabatic, ring=False, **tables):
        self.adiabatic, self.ring, self.spatial = adiabatic, ring, np.ndim(skew) > 0
        skews = skew if self.spatial else (skew, 0.0)
        around = 3 * (n - 1) if ring else n - 1
        turns, period = np.arange(around) / around, {"i": (1.0, 0.0, 0.0)}
        spans = turns if self.spatial else [0.0]
        z, y, x = np.meshgrid(spans, np.linspace(0, 1, n), turns, indexing="ij")
        if ring:
            y = y + 0.3 * y * (1 - y)
            angle, radius, period = skews[0] * y - 2 * np.pi * x, INNER + y, {"i": (0.0, 0.0, 0.0)}
            nodes = radius * np.cos(angle), radius * np.sin(angle), z
        else:
            period |= {"k": (0.0, 0.0, 1.0)} if self.spatial else {}
            nodes = x + skews[0] * y, y, z + skews[1] * y
        self.grid = Grid((Block("gap", *(np.ascontiguousarray(c) for c in nodes), {}),), period=(period,))
        wall = {"type": "no-slip-wall", "faces": ["jmin", "jmax"]} | ({} if adiabatic else {"temperature": 1.0})
        sides = {"type": "periodic", "faces": ["imin", "imax"] + (["kmin", "kmax"] if self.spatial else [])}
        # the grid is replaced
        own = {
            "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x"]},
            "gas": {"reynolds": REYNOLDS, "prandtl": PRANDTL},
            "time": {"end": 0.25, "cfl": 0.5, "viscous_cfl": 0.5},
            "initial": {"state": {"rho": 1.0, "p": P}},
            "boundary": [sides, wall],
        }
        self.case = Case.from_dict(own | tables)

    def place(self, x, y, z):
        """Distance from the lower or inner wall, and exp(i wave times the place along it)."""
        if self.ring:
            return np.hypot(x, y) - INNER, np.exp(1j * TURNS * np.arctan2(y, x))
        return y, np.exp(2j * np.pi * (x + z * self.spatial))

    def start(self, y):
        """The uneven temperature across the gap, one that the walls allow."""
        return np.cos(np.pi * y) if self.adiabatic else np.sin(np.pi * y) ** 3

    def initial(self, x, y, z):
        distance, phase = self.place(x, y, z)
        return 1 / (1 + AMPLITUDE * self.start(distance) * phase.real), 0.0, 0.0, 0.0, P

    def directions(self, x, y, z):
        """Unit vectors normal to the walls and along them."""
        zero = 0 * x
        if self.ring:
            radius = np.hypot(x, y)
            return np.stack([x / radius, y / radius, zero]), np.stack([-y / radius, x / radius, zero])
        length = np.sqrt(1.0 + self.spatial)
        return np.stack([zero, zero + 1, zero]), np.stack([zero + 1, zero, zero + self.spatial]) / length

    def mode(self, time):
        wave = TURNS if self.ring else 2 * np.pi * np.sqrt(1.0 + self.spatial)
        return mode(time, self.adiabatic, self.start, wave, INNER if self.ring else None)

    def run(self, where="cpu"):
        simulation = Simulation(self.case, where, initial=self.initial, grid=self.grid)
        simulation.run(progress=False)
        return simulation

    def errors(self):
        """Largest errors over the amplitude: of T, of the velocity along the walls, of the pressure."""
        simulation = self.run()
        block, exact = simulation.blocks[0], self.mode(simulation.time)
        distance, phase = self.place(block.x, block.y, block.z)
        velocity = np.stack([block.state(name) for name in "uvw"])
        found = {
            "T": block.state("T") - 1,
            "along": (velocity * self.directions(block.x, block.y, block.z)[1]).sum(axis=0),
            "p": GAMMA * block.state("p") - 1,
        }
        return np.array(
            [abs(value / AMPLITUDE - (exact.at(name, distance) * phase).real).max() for name, value in found.items()]
        )
