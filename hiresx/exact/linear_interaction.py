"""Linear interaction analysis: a plane wave of vorticity and entropy that meets a plane shock.

Behind the shock there are a wave of vorticity, one of entropy and one of sound, and the shock ripples: four amplitudes,
which the jump conditions give to first order. Source: Ribner, NACA report 1164 (1954); Mahesh, Moin & Lele, Stanford
report TF-69 (1996), chapter 3.
"""

import numpy as np

from hiresx.exact.shocks import normal_shock

# Difference of Mach numbers for the slopes of the jump conditions.
_STEP = 1e-5


def vorticity_ratio(mach: float, angle: float, gamma: float = 1.4, entropy: float = 0.0) -> float:
    """Amplitude of the vorticity behind a shock over that ahead of it.

    Ahead, in gas of density and sound speed 1 and velocity `mach` along x, u' = mach sin(angle) cos(phase),
    v' = -mach cos(angle) cos(phase) and rho' = `entropy` cos(phase) without a pressure, times a small amplitude; the
    phase is k (x cos(angle) + y sin(angle)) - omega t, `angle` in degrees, above 0 and below 90.
    """
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
    # To first order in the place Z of the shock, whose velocity is -i omega Z: change of its Mach number, then of what
    # is behind it.
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
    amplitudes = np.linalg.solve(np.hstack([waves, -jump[:, 1:]]), jump[:, 0])
    return float(abs(amplitudes[0]) * long / (mach * np.hypot(kx, ky)))


def _slope(name: str, mach: float, gamma: float) -> float:
    """Derivative of a ratio across a normal shock with respect to the Mach number."""
    above, below = (float(getattr(normal_shock(mach + step, gamma), name)) for step in (_STEP, -_STEP))
    return (above - below) / (2 * _STEP)


def _sound(omega: float, ky: float, u2: float, c2: float) -> complex:
    """Wavenumber k along x of the sound behind the shock, which leaves it or decays: (omega - u2 k)^2 = c2^2 (k^2 +
    ky^2)."""
    roots = np.roots(np.array([u2 * u2 - c2 * c2, -2 * omega * u2, omega**2 - (c2 * ky) ** 2], complex))
    if abs(roots[0].imag) > 1e-9 * abs(roots[0]):
        return complex(max(roots, key=lambda k: k.imag))
    return complex(max(roots, key=lambda k: (u2 + c2 * c2 * k / (omega - u2 * k)).real))
