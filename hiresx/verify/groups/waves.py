"""Plane sound waves: what ten wave lengths at 6, 8, 12 and 16 points each take of amplitude and phase.

A simple wave in a gas at rest, of 4 waves in a periodic box; the first harmonic of the pressure beside that of the
exact solution, which steepens. The CFL number is .1, so that the errors are those in space.
A wave of amplitude 1e-6 is a linear one, for which theory gives both errors exactly (the modified wavenumber of the
fifth-order interpolation with the flux's Jacobians, hiresx.verify.plane_wave): the distance of the measured complex
amplitude from theirs must be nothing, for all fluxes. HLLC, Roe and local Lax-Friedrichs are one scheme there.
A wave of amplitude 1e-3 (134 dB at sea level) feels the nonlinear weights. The ideal ones set what can be had; beside
it, over the four resolutions, Jiang-Shu's and Z's lose what the rows below say: the largest error of all schemes.
"""

from collections.abc import Sequence

import numpy as np

from hiresx.verify import plane_wave
from hiresx.verify.check import Check, Finished, Run, at_most, between

LONG = False

POINTS = (6, 8, 12, 16)
WAVES, IN_BOX, CFL = 10.0, 4, 0.1
FLUXES = ("steger_warming", "van_leer", "hllc", "roe", "local_lax_friedrichs")
SMALL, LOUD = 1e-6, 1e-3


def ratio(run: Finished) -> complex:
    """First harmonic of the pressure over that of the exact solution."""
    x = run.blocks[0].x
    wave = np.exp(-2j * np.pi * x)
    return complex(np.mean(run.state("p") * wave) / np.mean(run.exact("p") * wave))


def theory(run: Finished) -> complex:
    points = run.case.grid.n[0] / IN_BOX
    return plane_wave.factor(run.case.scheme.flux, points, WAVES, CFL, run.case.gas.gamma)


def errors(ratios: Sequence[complex]) -> tuple[np.ndarray, np.ndarray]:
    """Of the amplitude, relative, and of the phase in degrees: negative is behind."""
    found = np.array(ratios)
    return np.abs(found) - 1, -np.degrees(np.angle(found))


def distance(*runs: Finished) -> float:
    """Largest distance of the measured from the theoretical complex amplitude."""
    return max(abs(ratio(run) - theory(run)) for run in runs)


def curves(*runs: Finished) -> dict[str, Sequence[float]]:
    amplitude, phase = errors([ratio(run) for run in runs])
    found = {"points": list(POINTS), "amplitude": amplitude, "phase": phase}
    if runs[0].case.parameters["amplitude"] == SMALL:
        found["theory_amplitude"], found["theory_phase"] = errors([theory(run) for run in runs])
    return found
