"""Mixing layer: growth of its first instability against linear theory.

Two inviscid streams of Mach +-M with a tanh profile flow between slip walls. The unit of length is half the vorticity
thickness. The initial flow is this layer with the fastest growing mode at the wavenumber 0.4. The mode and its growth
rate are computed by collocation (hiresx.exact.shear_layer). At Mach 0.01 and wavenumber 0.4446 that method gives a rate
of 0.1897, the value of Michalke 1964. The amplitude of the computed wave is the root mean square of v across the layer.
The measured rate is the slope of its logarithm from t = 5 on. The vorticity thickness has 8 points (the spacing across
the layer is a quarter of the unit of length), or 16 where a row says so.
"""

from collections.abc import Sequence

import numpy as np

from hiresx.exact.shear_layer import growing_mode
from hiresx.simulation import Simulation
from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_least, between

LONG = False

# Growth before this time is not used: until then the part of the initial flow that is not a mode of the scheme decays.
_START = 5.0
# End of the run by Mach number, 2.5 e-foldings later at the rate of `growing_mode`, which would take too long at
# import.
_ENDS = {0.2: 74.4, 0.4: 44.75, 0.6: 39.57}


def wave(simulation: Simulation) -> dict[str, float]:
    """Return {"wave": amplitude}, as a user-defined monitor does: the amplitude of the harmonic of v along x with the
    wavenumber of the case, in c_ref, as the root mean square over y."""
    block = simulation.blocks[0]
    wavenumber = float(simulation.case.parameters["wavenumber"])
    part = 2 * np.mean(block.state("v")[0] * np.exp(-1j * wavenumber * block.x[0]), axis=1)
    return {"wave": float(np.sqrt(np.mean(np.abs(part) ** 2)))}


def history(run: CompletedRun) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of the samples of `run`, in L / c_ref, and the amplitudes of the unstable mode at these times,
    each (samples,)."""
    entries = [entry for entry in run.simulation.history if "wave" in entry]
    return np.array([entry["time"] for entry in entries]), np.array([entry["wave"] for entry in entries])


def rate(run: CompletedRun) -> float:
    """Return the growth rate of the unstable mode, in c_ref / L, fitted to its amplitude in `run`."""
    time, amplitude = history(run)
    kept = time >= _START
    return float(np.polyfit(time[kept], np.log(amplitude[kept]), 1)[0])


def exact(run: CompletedRun) -> float:
    """Return the growth rate of the unstable mode by linear theory, in c_ref / L, for the parameters of the run."""
    p = run.case.parameters
    return growing_mode(p["mach"], p["wavenumber"], p["half_height"], run.case.gas.gamma).rate


def error(run: CompletedRun) -> float:
    """Return the relative error of the computed growth rate of the unstable mode with respect to linear theory."""
    return rate(run) / exact(run) - 1


def growth(run: CompletedRun) -> float:
    """Return the factor by which the unstable mode grew during the time in which its growth rate is measured."""
    time, amplitude = history(run)
    return float(amplitude[-1] / amplitude[time >= _START][0])


def curves(run: CompletedRun) -> dict[str, Sequence[float]]:
    """Return the curves of the picture, by name: the "time" of the samples in L / c_ref, the computed amplitude "wave"
    of the unstable mode, and its amplitude by linear "theory"."""
    time, amplitude = history(run)
    theory = amplitude[time >= _START][0] * np.exp(exact(run) * (time - time[time >= _START][0]))
    return {"time": time.tolist(), "wave": amplitude.tolist(), "theory": theory.tolist()}


def _layer(mach: float, *sets: str) -> tuple[CheckRun]:
    return (CheckRun("mixing-layer", None, (f"parameters.mach={mach}", f"time.end={_ENDS[mach]}", *sets), (wave,)),)


MIDDLE, FINE = _layer(0.4), _layer(0.4, "grid.n=[64,161,1]")
CHOICES = ('scheme.weights="z"', 'scheme.flux="hllc"')


def order(middle: CompletedRun, fine: CompletedRun) -> float:
    """Return the order of accuracy of the growth rate from its errors in the runs `middle` and `fine`, of which the
    second has half the grid spacing."""
    return float(np.log2(abs(error(middle) / error(fine))))


CHECKS = [
    Check("Mach 0.4: what the wave grows by, from t = 5", at_least(10.0), growth, MIDDLE, curves),
    *(
        Check(f"Mach {mach}: error of the rate", between(-0.05, 0.05), error, _layer(mach), curves)
        for mach in (0.2, 0.4, 0.6)
    ),
    Check("Mach 0.4, 16 points: error of the rate", between(-0.005, 0.005), error, FINE),
    Check("Mach 0.4: order of the rate, 8 to 16 points", at_least(4.0), order, MIDDLE + FINE),
    *(Check(f"Mach 0.4, {s}: error of the rate", between(-0.01, 0.01), error, _layer(0.4, s)) for s in CHOICES),
]
