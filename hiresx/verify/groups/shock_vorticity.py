"""Plane vorticity waves through a shock at Mach 1.5: how much they grow, against linear interaction analysis.

The amplification is the amplitude of the vorticity behind the shock over that of the incoming wave. The amplitude
behind the shock is that of the harmonic with the wave's period along y, averaged over 1 < x < 6, at the end of the run.
The amplitude of the incoming wave is 2 % of the velocity, which is small enough for linear theory."""

import numpy as np

from hiresx.exact.linear_interaction import vorticity_ratio
from hiresx.output.fields.differences import derivative
from hiresx.verify.checks import Check, CheckRun, CompletedRun, between

LONG = False

# End of the run, after all transients, by the angle in degrees.
ENDS = {30.0: 25.0, 45.0: 20.0, 75.0: 40.0}
FROM, TO = 1.0, 6.0


def profile(run: CompletedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return x (in units of the length scale L) and the amplitude at the end of `run` of the harmonic of the vorticity
    along y, divided by the amplitude of the incoming vorticity wave, each (n,)."""
    x, y = (np.asarray(c[0], float) for c in (run.blocks[0].x, run.blocks[0].y))
    u, v = run.state("u"), run.state("v")
    slope = derivative(v, 2)[0] / derivative(np.asarray(run.blocks[0].x), 2)[0]
    # One period along y, of wavenumber 1: du/dy is i times the amplitude of u.
    wave = np.exp(-1j * y)
    found = np.abs(2 * np.mean((slope - 1j * u[0]) * wave, axis=0))
    mach, angle, amplitude = _wave_parameters(run)
    return x[0], found * np.sin(np.radians(angle)) / (amplitude * mach)


def theory(run: CompletedRun) -> float:
    """Return the amplitude of the vorticity downstream of the shock divided by that upstream, by linear interaction
    analysis."""
    mach, angle, _ = _wave_parameters(run)
    return vorticity_ratio(mach, angle, run.case.gas.gamma)


def _wave_parameters(run: CompletedRun) -> list[float]:
    return [float(run.case.parameters[name]) for name in ("mach", "angle", "amplitude")]


def error(run: CompletedRun) -> float:
    """Return the relative error of the amplification of the vorticity by the shock with respect to linear interaction
    analysis."""
    x, found = profile(run)
    return float(found[(x > FROM) & (x < TO)].mean()) / theory(run) - 1


def curves(run: CompletedRun) -> dict[str, np.ndarray]:
    """Return the curves of the picture over "x", each (n,): "ratio", the amplitude of the vorticity divided by that of
    the incoming wave, and "theory": 1 upstream of the shock, and downstream the ratio by linear interaction analysis.
    """
    x, found = profile(run)
    return {"x": x, "ratio": found, "theory": np.where(x < 0, 1.0, theory(run))}


CHECKS = [
    Check(
        f"{angle:g} degrees: growth of the vorticity, relative to theory",
        between(-0.03, 0.03),
        error,
        (CheckRun("shock-vorticity", None, (f"parameters.angle={angle:g}", f"time.end={end:g}")),),
        curves,
    )
    for angle, end in ENDS.items()
]
