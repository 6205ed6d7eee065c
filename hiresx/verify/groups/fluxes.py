"""Numerical fluxes, on 4096 pairs of random states, subsonic and supersonic, and random faces.

F(a, b; m) is the flux between the states a and b through a face with the area vector m. Errors are relative to the size
of the flux.

- Consistent: F(q, q; m) is the physical flux.
- Reversed: F(b, a; -m) = -F(a, b; m), the same face seen from its other side.
- Turned and mirrored: F(Ra, Rb; Rm) = R F(a, b; m) for rotations and reflections R.
- Wall: between a state and its mirror image there is no flux of mass and energy.
- Supersonic: the flux is that of the upwind state. This is not required of local Lax-Friedrichs, which averages both
  states, nor of the rotated flux, whose directions differ from that of the face.
- Contact: if pressure and normal velocity are the same on both sides, the flux of HLLC, HLLC-LM, Roe and the rotated
  one is that of the upwind state.

The flux `roe_h` raises the absolute eigenvalues of Roe's flux to at least the value of a field. This value is 1 in the
first four checks, in the unit of the velocities of the states. It is 0 in the last two checks, which hold only without
the correction.
"""

from collections.abc import Callable

import numpy as np

from hiresx import kernels
from hiresx.device import Configuration
from hiresx.device import backend as find_backend
from hiresx.equations.gas import conservative
from hiresx.verify.checks import Check, Workbench, at_most

LONG = False
PAIRS = 4096
# Fluxes that preserve contacts and shear layers, and fluxes that do not use the upwind state alone.
SHARP = ("hllc", "hllc_lm", "roe", "roe_h", "rotated_rhll")
MEAN = ("local_lax_friedrichs", "rotated_rhll")


def numerical(
    bench: Workbench, flux: str, left: np.ndarray, right: np.ndarray, area: np.ndarray, field: float = 1.0
) -> np.ndarray:
    """Return the numerical flux F(left, right; area), (5, n), between the conservative states `left` and `right` (5, n)
    through faces with the area vectors `area` (3, n). `flux`: the name of the numerical flux. `bench`: the `Workbench`
    with the backend under test. `field`: the value, at all nodes, of the additional field that some numerical fluxes
    read. The kernel is called with strides of 0, so that all nodes of its stencil have the same data. The correction of
    eq. (19) of Ye et al. (2022) is then zero, and only the flux of two states remains."""
    device = find_backend(bench.backend)
    program = device.compile(Configuration(flux=flux))
    n = left.shape[1]
    minus, plus, m = (device.to_device(np.ascontiguousarray(a)) for a in (left, right, area))
    zero, one = device.zeros((5, n)), device.to_device(np.ones((5, n)))
    alone = dict.fromkeys(("o", "sj", "sk", "sd"), 0)
    fields = {"q": plus, "m": m, "f": zero, "pressure": one, "minus": minus, "plus": plus}
    holds = program.signatures["numerical_flux"].holds
    if holds.get("fields"):
        fields["fields"] = device.to_device(np.full((1, n), field))
    if holds.get("rough"):  # nowhere
        fields["rough"] = device.zeros((n,), "int8")
    program.launch("numerical_flux", (n, 1, 1), **alone, sv=n, **fields)
    return device.to_host(minus)


def states(rng: np.random.Generator) -> np.ndarray:
    """Return random conservative states (5, n) with Mach numbers up to about 8, where n is the constant PAIRS of this
    module. `rng`: the random generator."""
    rho, p = rng.uniform(0.1, 2.0, (2, PAIRS))
    return np.stack(conservative(1.4, rho, *rng.uniform(-2.0, 2.0, (3, PAIRS)), p))


def physical(q: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return the physical flux (5, n) of the conservative states `q` (5, n) through faces with the area vectors `m` (3,
    n), eq. (4) of Ye et al. (2022)."""
    u = q[1:4] / q[0]
    p = 0.4 * (q[4] - 0.5 * np.sum(q[1:4] * u, axis=0))
    volume = np.sum(m * u, axis=0)
    return np.concatenate([[q[0] * volume], q[1:4] * volume + m * p, [(q[4] + p) * volume]])


def _random_states() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    return states(rng), states(rng), rng.normal(size=(3, PAIRS))


def _error(found: np.ndarray, wanted: np.ndarray | float, *given: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the largest difference, relative to the physical fluxes of the `given` (state, area): two supersonic
    streams that separate have a flux of 0."""
    scale = np.max([np.max(np.abs(physical(q, m)), axis=0) for q, m in given], axis=0)
    return float(np.max(np.abs(found - wanted) / scale))


def consistent(bench: Workbench, flux: str) -> float:
    """Return the largest relative error of consistency: the difference between the numerical flux of two equal states
    and the physical flux. `flux`: the name of the numerical flux. `bench`: the `Workbench` with the backend under
    test."""
    q, _, m = _random_states()
    return _error(numerical(bench, flux, q, q, m), physical(q, m), (q, m))


def reversal_error(bench: Workbench, flux: str) -> float:
    """Return the largest relative violation of F(b, a; -m) = -F(a, b; m), where F is the numerical flux called `flux`
    between the states a and b through a face with the area vector m. `bench`: the `Workbench` with the backend under
    test."""
    a, b, m = _random_states()
    return _error(-numerical(bench, flux, b, a, -m), numerical(bench, flux, a, b, m), (a, m), (b, m))


def rotation_error(bench: Workbench, flux: str) -> float:
    """Return the largest relative error of the numerical flux called `flux` when states and area vector are rotated or
    reflected: the flux should be rotated or reflected with them. `bench`: the `Workbench` with the backend under
    test."""
    a, b, m = _random_states()
    # Random rotations; every other one with a reflection (-1 in three dimensions is one, turned).
    turn = np.linalg.qr(np.random.default_rng(13).normal(size=(PAIRS, 3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))[:, None, None]
    turn[::2] *= -1

    def apply(vector: np.ndarray) -> np.ndarray:
        return np.einsum("nij,jn->in", turn, vector)

    def apply_to_state(q: np.ndarray) -> np.ndarray:
        return np.concatenate([q[:1], apply(q[1:4]), q[4:]])

    found = numerical(bench, flux, apply_to_state(a), apply_to_state(b), apply(m))
    return _error(found, apply_to_state(numerical(bench, flux, a, b, m)), (a, m), (b, m))


def wall(bench: Workbench, flux: str) -> float:
    """Return the largest relative flux of mass and energy between a state and its mirror image, as at a wall, which
    should be zero. `flux`: the name of the numerical flux. `bench`: the `Workbench` with the backend under test."""
    a, _, m = _random_states()
    n = m / np.linalg.norm(m, axis=0)
    b = a.copy()
    b[1:4] -= 2 * np.sum(a[1:4] * n, axis=0) * n
    found = numerical(bench, flux, a, b, m)
    return _error(found[[0, 4]], 0.0, (a, m))


def _with_normal_velocity(
    rho: np.ndarray, u: np.ndarray, p: np.ndarray, m: np.ndarray, normal: np.ndarray
) -> np.ndarray:
    """Return the conservative state of density rho, pressure p and velocity u whose component along m is replaced by
    `normal`."""
    n = m / np.linalg.norm(m, axis=0)
    u = u + (normal - np.sum(u * n, axis=0)) * n
    return np.stack(conservative(1.4, rho, *u, p))


def _upwind(
    bench: Workbench, flux: str, left: np.ndarray, right: np.ndarray, m: np.ndarray, normal: np.ndarray
) -> float:
    wanted = np.where(normal > 0, physical(left, m), physical(right, m))
    return _error(numerical(bench, flux, left, right, m, field=0.0), wanted, (left, m), (right, m))


def supersonic(bench: Workbench, flux: str) -> float:
    """Return the largest relative difference of the numerical flux called `flux` from the physical flux of the upwind
    state for supersonic flow, with normal Mach numbers above 1.3 on both sides. (The entropy fix of Roe's flux acts up
    to 1.22.) `bench`: the `Workbench` with the backend under test."""
    rng = np.random.default_rng(17)
    m = rng.normal(size=(3, PAIRS))
    rho, p, mach = (rng.uniform(low, high, (2, PAIRS)) for low, high in ((0.5, 1.5), (0.9, 1.1), (1.3, 3.0)))
    sign = rng.choice([-1.0, 1.0], PAIRS)
    # faster than 1.3 times the larger of both sound speeds
    normal = sign * mach * np.sqrt(1.4 * np.max(p / rho, axis=0))
    sides = [_with_normal_velocity(rho[s], rng.uniform(-1, 1, (3, PAIRS)), p[s], m, normal[s]) for s in (0, 1)]
    return _upwind(bench, flux, sides[0], sides[1], m, sign)


def contact(bench: Workbench, flux: str) -> float:
    """Return the largest relative difference of the numerical flux called `flux` from the physical flux of the upwind
    state at a contact discontinuity (equal pressure and normal velocity on both sides). `bench`: the `Workbench` with
    the backend under test."""
    rng = np.random.default_rng(19)
    m = rng.normal(size=(3, PAIRS))
    rho, (p, normal) = rng.uniform(0.1, 2.0, (2, PAIRS)), rng.uniform((0.1, -2), (2.0, 2), (PAIRS, 2)).T
    sides = [_with_normal_velocity(rho[s], rng.uniform(-2, 2, (3, PAIRS)), p, m, normal) for s in (0, 1)]
    return _upwind(bench, flux, sides[0], sides[1], m, normal)


def _check(flux: str, title: str, function: Callable[[Workbench, str], float]) -> Check:
    return Check(
        f"{flux}: {title}",
        at_most(1e-12),
        lambda bench: function(bench, flux),
        configurations=(Configuration(flux=flux),),
    )


CHECKS = [
    _check(flux, title, function)
    for flux in kernels.choices("flux")
    for title, function in (
        ("consistent", consistent),
        ("reversed", reversal_error),
        ("turned and mirrored", rotation_error),
        ("wall", wall),
        ("supersonic", supersonic),
        ("contact", contact),
    )
    if not (function is supersonic and flux in MEAN) and not (function is contact and flux not in SHARP)
]
