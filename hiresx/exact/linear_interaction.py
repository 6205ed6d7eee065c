"""Linear interaction analysis: a plane wave of vorticity and entropy that meets a plane shock.

Behind the shock there are a wave of vorticity, one of entropy and one of sound, and the shock ripples. The jump
conditions give these four amplitudes to first order. Source: Ribner, NACA report 1164 (1954); Mahesh, Moin & Lele,
Stanford report TF-69 (1996), chapter 3."""

from typing import NamedTuple

import numpy as np

from hiresx.exact.shocks import normal_shock

# Difference of Mach numbers for the derivatives of the jump conditions.
_STEP = 1e-5
# Number of points of the Gauss-Legendre rule on each side of the critical angle.
_PLACES = 64


class Behind(NamedTuple):
    """The waves downstream of a shock at x = 0, caused by a plane vorticity wave whose wavenumber along y is 1.
    `vortical`: the wavenumber along x of the vorticity and entropy waves. `acoustic`: the wavenumber along x of the
    sound wave, which is complex if the sound decays. `vortical_velocity`, `acoustic_velocity`: complex amplitudes of
    the velocity (u, v) in the vorticity wave and in the sound wave, divided by the velocity upstream of the shock."""

    vortical: float
    acoustic: complex
    vortical_velocity: np.ndarray
    acoustic_velocity: np.ndarray


class Amplification(NamedTuple):
    """Ratios of values far downstream of a shock to those upstream. `R11`: the variance of the velocity normal to the
    shock. `R22`: the variance of a velocity component parallel to the shock. `k`: the turbulent kinetic energy per
    mass."""

    R11: float
    R22: float
    k: float


def behind(mach: float, angle: float, gamma: float = 1.4, entropy: float = 0.0) -> Behind:
    """Return the waves that a plane vorticity wave causes downstream of a normal shock, by linear interaction analysis.
    Upstream, gas of density and sound speed 1 moves at the Mach number `mach` along x. The disturbances there are u' =
    mach sin(angle) cos(phase), v' = -mach cos(angle) cos(phase), rho' = `entropy` cos(phase) and p' = 0, times a small
    amplitude. The phase is k (x cos(angle) + y sin(angle)) - omega t. `angle`: in degrees, above 0 and below 90.
    `gamma`: ratio of specific heats. Source: Ribner, NACA report 1164 (1954)."""
    psi = np.radians(angle)
    ky, kx = 1.0, 1.0 / np.tan(psi)
    omega, shock = mach * kx, normal_shock(mach, gamma)
    (density, of_density), (pressure, of_pressure) = (
        (getattr(shock, name), _slope(name, mach, gamma)) for name in ("density", "pressure")
    )
    u2, c2 = mach / density, np.sqrt(pressure / density)
    du, dv, drho = mach * np.sin(psi), -mach * np.cos(psi), entropy
    # Unknowns: amplitudes of vorticity, entropy (density), sound (pressure), and of the shock's place.
    vortical, along = omega / u2, _sound(omega, ky, u2, c2)
    moving, long = omega - u2 * along, np.hypot(vortical, ky)
    # To first order in the position Z of the shock, whose velocity is -i omega Z: the change of its Mach number, then
    # that of the state behind it.
    mach_ahead, mach_place = du + 0.5 * mach * drho, 1j * omega
    jump = np.array(
        [
            [of_density * mach_ahead + density * drho, of_density * mach_place],
            [of_pressure * mach_ahead / gamma, of_pressure * mach_place / gamma],
            [
                du / density - mach * of_density / density**2 * mach_ahead,
                1j * omega / density - 1j * omega - mach * of_density / density**2 * mach_place,
            ],
            [dv, 1j * ky * (mach - u2)],
        ]
    )
    sound = [1 / c2**2, 1.0, along / (density * moving), ky / (density * moving)]
    waves = np.array([[0, 1, sound[0]], [0, 0, sound[1]], [ky / long, 0, sound[2]], [-vortical / long, 0, sound[3]]])
    amplitudes = np.linalg.solve(np.hstack([waves, -jump[:, 1:]]), jump[:, 0]) / mach
    return Behind(vortical, along, amplitudes[0] * waves[2:, 0], amplitudes[2] * waves[2:, 2])


def vorticity_ratio(mach: float, angle: float, gamma: float = 1.4, entropy: float = 0.0) -> float:
    """Return the amplitude of the vorticity downstream of a normal shock of Mach number `mach`, divided by the
    amplitude of the plane vorticity wave upstream of it. `angle`: angle between the wave vector of this wave and the
    normal of the shock, in degrees, above 0 and below 90. `gamma`: ratio of specific heats. `entropy`: amplitude of
    rho'/rho upstream divided by the amplitude of the wave's velocity over the mean velocity (`behind`)."""
    found = behind(mach, angle, gamma, entropy)
    u, v = found.vortical_velocity
    return float(abs(found.vortical * v - u) * np.sin(np.radians(angle)))


def critical_angle(mach: float, gamma: float = 1.4) -> float:
    """Return the critical angle, in degrees, between the wave vector of a plane vorticity wave and the normal of a
    shock. Above it, the sound that the wave causes downstream of the shock decays with the distance from the shock.
    `mach`: the Mach number of the shock. `gamma`: ratio of specific heats. Source: Ribner, NACA report 1164 (1954)."""
    shock = normal_shock(mach, gamma)
    u2, c2 = mach / shock.density, np.sqrt(shock.pressure / shock.density)
    return float(np.degrees(np.arctan(mach / np.sqrt(c2**2 - u2**2))))


def isotropic_amplification(mach: float, gamma: float = 1.4) -> Amplification:
    """Return the factors by which a normal shock of Mach number `mach` amplifies isotropic vortical turbulence of small
    amplitude, far downstream.

    A vorticity wave with a given wave vector has two velocity components of equal energy. One lies in the plane that
    contains the wave vector and the normal of the shock; `behind` computes how the shock changes it. The other is
    normal to this plane and not changed by the shock. The result does not depend on the spectrum of the turbulence,
    since far downstream only the direction of the wave vector matters. At Mach 1.5 the factor is 1.601 for the square
    of the velocity normal to the shock (R11), 1.380 for that along it (R22), and 1.454 for the kinetic energy k.
    `gamma`: ratio of specific heats. Source: Ribner, NACA report 1164 (1954)."""
    nodes, weights = np.polynomial.legendre.leggauss(_PLACES)
    critical = critical_angle(mach, gamma)
    R11 = in_plane = 0.0
    for low, high in ((0.0, critical), (critical, 90.0)):
        # psi = end + (begin - end) s^2 from the critical angle, since the amplitudes vary there as the square root of
        # the distance
        s = 0.5 * (nodes + 1)
        away = low if high == critical else high
        for at, weight in zip(critical + (away - critical) * s**2, weights * s, strict=True):
            share = weight * np.radians(high - low) * np.sin(np.radians(at))
            waves = behind(mach, at, gamma)
            power = abs(waves.vortical_velocity) ** 2
            if waves.acoustic.imag == 0:
                power = power + abs(waves.acoustic_velocity) ** 2
            R11, in_plane = R11 + share * power[0], in_plane + share * power[1]
    # of unit in-plane power: 2/3 ahead of the shock for each of the three components
    R11, R22 = float(1.5 * R11), float(0.75 * (in_plane + 1))
    return Amplification(R11, R22, (R11 + 2 * R22) / 3)


def _slope(name: str, mach: float, gamma: float) -> float:
    """Return the derivative of a ratio across a normal shock with respect to the Mach number."""
    above, below = (float(getattr(normal_shock(mach + step, gamma), name)) for step in (_STEP, -_STEP))
    return (above - below) / (2 * _STEP)


def _sound(omega: float, ky: float, u2: float, c2: float) -> complex:
    """Return the wavenumber k along x of the sound behind the shock, which leaves the shock or decays: (omega - u2 k)^2
    = c2^2 (k^2 + ky^2)."""
    roots = np.roots(np.array([u2 * u2 - c2 * c2, -2 * omega * u2, omega**2 - (c2 * ky) ** 2], complex))
    if abs(roots[0].imag) > 1e-9 * abs(roots[0]):
        return complex(max(roots, key=lambda k: k.imag))
    return complex(max(roots, key=lambda k: (u2 + c2 * c2 * k / (omega - u2 * k)).real))
