"""Plane sound waves: errors of amplitude and phase after ten wave lengths at 6, 8, 12 and 16 points each.

Four periods of a simple wave propagate through a gas at rest in a periodic box. The first harmonic of the pressure is
compared with that of the exact solution, which steepens. The CFL number is .1, so that time integration adds at most a
fiftieth to the errors in space.
A wave of amplitude 1e-6 is linear. Theory gives the errors of its amplitude and phase exactly, from the modified
wavenumber of the fifth-order interpolation and the flux's Jacobians (hiresx.exact.plane_wave). The check is the
distance of the measured complex amplitude from this theory, which must be nearly zero. For such a wave HLLC, Roe and
local Lax-Friedrichs are the same scheme, and all weights are equal.
The nonlinear weights act on a wave of amplitude 1e-3 (134 dB at sea level). The rows of this wave have the ratio of the
error to that of the linear scheme, at the worst of the four resolutions. A negative phase means that the wave lags.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hiresx.exact import plane_wave
from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_most

LONG = False

POINTS = (6, 8, 12, 16)
WAVES, IN_BOX, CFL = 10.0, 4, 0.1
FLUXES = ("steger_warming", "van_leer", "hllc", "roe", "local_lax_friedrichs")
SMALL, LOUD = 1e-6, 1e-3


def ratio(run: CompletedRun) -> complex:
    """Return the complex amplitude of the first harmonic of the pressure at the end of the run, divided by that of the
    exact solution."""
    x = np.asarray(run.blocks[0].x)
    wave = np.exp(-2j * np.pi * x)
    return complex(np.mean(run.state("p") * wave) / np.mean(run.exact("p") * wave))


def theory(run: CompletedRun) -> complex:
    """Return the complex amplitude of the first harmonic of the pressure divided by that of the exact solution, as the
    linear theory of the scheme predicts it for the wave and the duration of the run."""
    points = run.blocks[0].x.shape[-1] / IN_BOX
    return plane_wave.amplitude_ratio(run.case.scheme.flux, points, WAVES, CFL, run.case.gas.gamma)


def errors(ratios: Sequence[complex]) -> tuple[np.ndarray, np.ndarray]:
    """Return the relative errors of the amplitude and the errors of the phase in degrees, each (n,). `ratios`: for each
    of n waves the computed complex amplitude divided by the exact one. The error of the phase is negative if the wave
    is too slow."""
    found = np.array(ratios)
    return np.abs(found) - 1, np.degrees(-np.angle(found))


def amplitude_error(*runs: CompletedRun) -> float:
    """Return one number: the largest value of |`ratio` - `theory`| over all `runs`. Both are the complex amplitude of
    the pressure wave in a run divided by that of the exact solution; `ratio` is computed, and `theory` predicted by the
    linear theory of the scheme."""
    return max(abs(ratio(run) - theory(run)) for run in runs)


def excess(part: int) -> Callable[..., float]:
    """Return a function of several completed runs. It returns the largest ratio of the error of a run, in amplitude
    (`part` 0) or in phase (`part` 1), to the error that the linear theory of the scheme predicts."""

    def measure(*runs: CompletedRun) -> float:
        found, linear = (errors([of(run) for run in runs])[part] for of in (ratio, theory))
        return float(np.max(np.abs(found) / np.abs(linear)))

    return measure


def curves(*runs: CompletedRun) -> dict[str, Sequence[float]]:
    """Return the curves of the picture, for each of `runs`, by name: the "points" per wavelength, the errors
    "amplitude" and "phase", and the errors by linear theory, "theory_amplitude" and "theory_phase"."""
    amplitude, phase = errors([ratio(run) for run in runs])
    theory_amplitude, theory_phase = errors([theory(run) for run in runs])
    return {
        "points": list(POINTS), "amplitude": amplitude.tolist(), "phase": phase.tolist(),
        "theory_amplitude": theory_amplitude.tolist(), "theory_phase": theory_phase.tolist(),
    }  # fmt: skip


def _runs(amplitude: float, **scheme: str) -> tuple[CheckRun, ...]:
    chosen = tuple(f'scheme.{key}="{value}"' for key, value in scheme.items())
    return tuple(
        CheckRun("plane-wave", None, (f"parameters.amplitude={amplitude:g}", f"grid.n=[{IN_BOX * n},1,1]", *chosen))
        for n in POINTS
    )


def _small(flux: str, weights: str, most: float) -> Check:
    name = f"{flux}, {weights}, 1e-6: distance from theory"
    return Check(name, at_most(most), amplitude_error, _runs(SMALL, flux=flux, weights=weights), curves)


def _loud(weights: str, space: str, interpolation: str, amplitude: float, phase: float) -> list[Check]:
    runs = _runs(LOUD, weights=weights, space=space, interpolation=interpolation)
    name = f"{weights}, {space}, {interpolation}, 1e-3"
    return [
        Check(f"{name}: amplitude's error over the linear one", at_most(amplitude), excess(0), runs, curves),
        Check(f"{name}: phase's error over the linear one", at_most(phase), excess(1), runs),
    ]


# Largest ratio of the errors to those of the linear scheme.
MOST = {("js", "characteristic"): (2.0, 2.1), ("js", "component"): (3.0, 2.8), ("z", "characteristic"): (1.02, 1.02),
        ("z", "component"): (1.05, 1.05)}  # fmt: skip

CHECKS = [
    *(_small(flux, "linear", 1e-6) for flux in FLUXES),
    _small("steger_warming", "js", 5e-6),
    *(
        check
        for (weights, space), most in MOST.items()
        for interpolation in ("modified", "original")
        for check in _loud(weights, space, interpolation, *most)
    ),
]
