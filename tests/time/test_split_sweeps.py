"""Sweeps over nodes without stored blocks, with a Jacobian that is split by the signs of its eigenvalues
(kernels/implicit/split_jacobian.h), beside the same sweeps with dense matrices."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from hiresx import Case
from hiresx.case.viscosity import VISCOSITIES
from hiresx.device import backend
from hiresx.solver import Solver

GAMMA, PRANDTL, REYNOLDS, OVER_CFL, OVER_TIME, SWEEPS = 1.3, 0.7, 40.0, 0.01, 20.0, 2


def flux(q, m):
    """The inviscid flux of a state q through the area vector m."""
    u = q[1:4] / q[0]
    p = (GAMMA - 1) * (q[4] - 0.5 * q[0] * (u @ u))
    return (m @ u) * q + p * np.array([0.0, *m, m @ u])


def viscous(q, m):
    """What the thin layer of viscosity 1 and Jacobian 1 takes from the flux through m by the state behind it."""
    u = q[1:4] / q[0]
    t = GAMMA * (GAMMA - 1) * (q[4] / q[0] - 0.5 * (u @ u))
    energy = (m @ m) * (0.5 * (u @ u) + t / ((GAMMA - 1) * PRANDTL)) + (m @ u) ** 2 / 6
    return np.array([0.0, *((m @ m) * u + m * (m @ u) / 3), energy])


def derivative(of, q, m):
    """By complex steps."""
    return np.stack([np.imag(of(q + 1e-30j * row, m)) / 1e-30 for row in np.eye(5)], axis=1)


# The share of the acoustic eigenvalues in that of shear and entropy
SHARES = {"steger_warming": 1 / GAMMA, "hllc": 0.0}


def part(q, m, sign, smoothing, share):
    """The part of the Jacobian of `flux` with the eigenvalues of one sign."""
    u = q[1:4] / q[0]
    sound = np.sqrt(GAMMA * (GAMMA - 1) * (q[4] / q[0] - 0.5 * (u @ u)) * (m @ m))
    speeds = m @ u + sound * np.array([-1.0, 0.0, 1.0])
    # the interpolating polynomial of the wanted function of the matrix in its three eigenvalues
    wanted = 0.5 * (speeds + sign * np.sqrt(speeds**2 + (smoothing * sound) ** 2))
    wanted[1] = (1 - share) * wanted[1] + share * 0.5 * (wanted[0] + wanted[2])
    a = derivative(flux, q, m)
    found = np.zeros((5, 5))
    for n, speed in enumerate(speeds):
        others = np.delete(speeds, n)
        found += wanted[n] * (a - others[0] * np.eye(5)) @ (a - others[1] * np.eye(5)) / np.prod(speed - others)
    return found


@cache
def flow(precision, of_flux, reynolds, smoothing):
    """A right-hand side, what sweeps make of it, and what they depend on, in a periodic flow on a wavy grid."""
    viscosity = {"viscosity": {"law": "sutherland"}} if np.isfinite(reynolds) else {}
    case = Case.from_dict(
        {
            "gas": {"gamma": GAMMA, "prandtl": PRANDTL, "reynolds": reynolds} | viscosity,
            "grid": {
                "generator": "wavy", "n": [10, 8, 8], "amplitude": [0.04, 0.03, 0.05], "lower": [0, 0, 0],
                "upper": [1.0, 0.7, 0.8], "periodic": ["x", "y", "z"],
            },
            "scheme": {"flux": of_flux, "flux_smoothing": smoothing},
            "initial": {"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "w": 0.0, "p": 1 / GAMMA}},
            "time": {"steps": 1, "integrator": "bdf2", "dt": 0.05},
            "implicit": {"lines": "none", "sweeps": SWEEPS, "storage": "none", "sweep_precision": precision},
            "boundary": [{"faces": "all", "type": "periodic"}],
        }
    )  # fmt: skip
    solver = Solver(case, backend("cpu"))
    (s,) = solver.states
    x, y, z = (
        2 * np.pi * c / length for c, length in zip((s.block.x, s.block.y, s.block.z), (1.0, 0.7, 0.8), strict=True)
    )
    solver.set_state(
        0, 1 + 0.2 * np.sin(x + z), 0.5 + 0.9 * np.sin(y), 0.4 * np.cos(x), 0.3 * np.sin(z + x),
        (1 + 0.2 * np.cos(x - y)) / GAMMA,
    )  # fmt: skip
    solver.complete_state()
    system, linear = solver.system, solver.integrator.linearised
    state, right, found = (system.vector() for _ in range(3))
    system.state(state)
    linear.unsteady(0.0, OVER_TIME, system.vector())
    linear.begin()
    linear.assemble(state, OVER_CFL)
    linear.change(state, right)
    linear.precondition(right, found)
    host = {
        name: np.array(s.interior(solver.backend.to_host(getattr(s, name)))) for name in ("metrics", "jacobian", "dt")
    }
    vectors = {
        name: system.gather(v).reshape(5, *s.size[::-1])
        for name, v in (("q", state), ("right", right), ("found", found))
    }
    return SimpleNamespace(**host, **vectors)


def swept_densely(given, of_flux, reynolds, smoothing):
    """The same sweeps with dense blocks."""
    eigenvalues = smoothing, SHARES[of_flux]
    q, dt, jacobian = given.q, np.squeeze(given.dt), np.squeeze(given.jacobian)
    x, shape = np.zeros_like(q), q.shape[1:]
    rho = q[0]
    p = (GAMMA - 1) * (q[4] - 0.5 * (q[1:4] ** 2).sum(axis=0) / rho)
    mu = VISCOSITIES["sutherland"]().viscosity(GAMMA * p / rho) if np.isfinite(reynolds) else 0.0 * rho
    spreads, blocks = mu / (reynolds * rho) * jacobian, {}
    for at in np.ndindex(shape):
        whole = (OVER_CFL + OVER_TIME * dt[at]) * np.eye(5)
        beside = []
        for d in range(3):
            for side in (-1, 1):
                n = list(at)
                n[2 - d] = (n[2 - d] + side) % shape[2 - d]
                n = tuple(n)
                m = (
                    side
                    * 0.5
                    * (given.metrics[(slice(3 * d, 3 * d + 3), *at)] + given.metrics[(slice(3 * d, 3 * d + 3), *n)])
                )
                spread = 0.5 * (spreads[at] + spreads[n])
                own, other = q[(slice(None), *at)], q[(slice(None), *n)]
                step = dt[at] * jacobian[at]
                whole += step * (part(own, m, 1, *eigenvalues) + spread * rho[at] * derivative(viscous, own, m))
                beside.append(
                    (n, step * (part(other, m, -1, *eigenvalues) - spread * rho[n] * derivative(viscous, other, m)))
                )
        blocks[at] = np.linalg.inv(whole), beside
    for _ in range(SWEEPS):
        for colour in (0, 1):
            for at in np.ndindex(shape):
                if sum(at) % 2 == colour:
                    inverse, beside = blocks[at]
                    rest = given.right[(slice(None), *at)] - sum(b @ x[(slice(None), *n)] for n, b in beside)
                    x[(slice(None), *at)] = inverse @ rest
    return x


@pytest.mark.parametrize(
    "choice",
    [
        ("steger_warming", REYNOLDS, 0.0), ("steger_warming", REYNOLDS, 0.3), ("steger_warming", np.inf, 0.0),
        ("hllc", REYNOLDS, 0.0),
    ],
    ids=["viscous", "smoothed", "inviscid", "hllc"],
)  # fmt: skip
def test_sweeps_are_those_with_dense_blocks(choice):
    """In FP64 to round-off, in FP32 to that of FP32, and in FP16 to the rounding of areas and states."""
    wanted = swept_densely(flow("fp64", *choice), *choice)
    for precision, error in (("fp64", 1e-12), ("fp32", 3e-6), ("fp16", 3e-3)):
        found = flow(precision, *choice).found
        assert np.abs(found - wanted).max() < error * np.abs(wanted).max()
