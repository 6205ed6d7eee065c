"""Viscous terms: decay of waves, and Couette flow between walls.

A shear wave decays at the rate nu k^2. The sixth-order derivative, applied twice, makes that rate too small by 2.97e-3
with 8 points per wave, 5.1e-5 with 16 and 8.1e-7 with 32. The derivative of eighth order (`scheme.viscous_order`) makes
it too small by 1.57e-4 with 9 points. A sound wave decays at the rate k^2/2 (4/3 nu + (gamma-1) nu/Pr), to leading
order in nu k. The time steps are smaller than those of the cases. With the time steps of the cases the error of RK3
would be 6 % of these errors and 0.7 % of the rate of the sound wave. Couette flow with heating has an exact solution.
Errors of the velocity are relative to the wall's speed, errors of the temperature to the lower wall's temperature. The
pressure must be uniform. With Sutherland's law neither profile is a polynomial, so the order can be measured: `order`
is log2 of the ratio of the errors on 17 and 33 nodes. The bounds on 17 nodes are three times the errors of HLLC with
trapezoidal weights at the walls. HLLC adds no dissipation to shear.
"""

from collections.abc import Callable

import numpy as np

from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_least, at_most, between

LONG = False

K = 2 * np.pi


def amplitude(x: np.ndarray, wave: np.ndarray) -> float:
    """Return the amplitude of the harmonic of wavelength 1 in `wave` (n,), values at the equidistant points `x` (n,) of
    the periodic interval (0, 1)."""
    return 2 * abs(np.mean(wave * np.exp(-1j * K * x)))


def rate_error(name: str) -> Callable[[CompletedRun], float]:
    """Return a function of a completed run that returns the relative error of the decay rate of the first harmonic of
    the variable `name` (rho, u, v, w or p) with respect to the exact rate (`exact_rate`)."""

    def measure(run: CompletedRun) -> float:
        x = np.asarray(run.blocks[0].x)
        rate = np.log(amplitude(x, run.start(name)) / amplitude(x, run.state(name))) / run.time
        return rate / exact_rate(run) - 1

    return measure


def exact_rate(run: CompletedRun) -> float:
    """Return the exact decay rate of the shear or sound wave of the run, in c_ref / L."""
    gas, mode = run.case.gas, run.case.parameters["mode"]
    assert gas.reynolds is not None
    if mode == "shear":
        return K * K / gas.reynolds
    return 0.5 * K * K / gas.reynolds * (4 / 3 + (gas.gamma - 1) / gas.prandtl)


def temperature(rho: np.ndarray, p: np.ndarray, gamma: float) -> np.ndarray:
    """Return the temperature gamma p / rho, in units of the reference temperature, of the shape of `rho` and `p`."""
    return gamma * p / rho


def couette_velocity(run: CompletedRun) -> float:
    """Return the largest error of the velocity of Couette flow with respect to the exact solution, divided by the speed
    of the wall."""
    return abs(run.state("u") - run.exact("u")).max() / run.case.parameters["wall_speed"]


def couette_temperature(run: CompletedRun) -> float:
    """Return the largest error of the temperature of Couette flow with respect to the exact solution, divided by the
    temperature of the lower wall."""
    gamma = run.case.gas.gamma
    found = temperature(run.state("rho"), run.state("p"), gamma)
    exact = temperature(run.exact("rho"), run.exact("p"), gamma)
    return abs(found - exact).max() / run.case.parameters["T_lower"]


def couette_pressure(run: CompletedRun) -> float:
    """Return the largest minus the smallest pressure in Couette flow, divided by the mean. (The exact pressure is
    uniform.)"""
    p = run.state("p")
    return np.ptp(p) / p.mean()


def couette_profiles(run: CompletedRun) -> dict[str, np.ndarray]:
    """Return the profiles of Couette flow between the walls over "y", each (nj,): the velocity "u" and the temperature
    "T", and the exact values "u_exact" and "T_exact"."""
    gamma = run.case.gas.gamma
    lines = {"y": run.blocks[0].y, "u": run.state("u"), "u_exact": run.exact("u")}
    lines["T"] = temperature(run.state("rho"), run.state("p"), gamma)
    lines["T_exact"] = temperature(run.exact("rho"), run.exact("p"), gamma)
    return {name: values[0, :, 0] for name, values in lines.items()}


def order(measure: Callable[[CompletedRun], float]) -> Callable[[CompletedRun, CompletedRun], float]:
    """Return a function of two completed runs, the second with half the grid spacing, that returns the order of
    accuracy. `measure`: the function that returns the error of a run."""
    return lambda coarse, fine: np.log2(measure(coarse) / measure(fine))


def _sutherland(n: int, flux: str) -> CheckRun:
    return CheckRun("couette", "sutherland", (f"grid.n=[8,{n},1]", "time.cfl=1.0", f'scheme.flux="{flux}"'))


def _shear(n: int, *sets: str) -> tuple[CheckRun]:
    return (CheckRun("shear-wave", None, (f"grid.n=[{n},1,1]", "time.viscous_cfl=0.1", *sets)),)


EIGHTH = "scheme.viscous_order=8"
SOUND = (CheckRun("shear-wave", "acoustic", ("grid.n=[64,1,1]", "time.cfl=0.1")),)
COUETTE = (CheckRun("couette"),)
COUETTE_EIGHTH = (CheckRun("couette", None, ("grid.n=[9,33,1]", EIGHTH)),)
ORDER = (_sutherland(17, "steger_warming"), _sutherland(33, "steger_warming"))

CHECKS = [
    Check("shear wave, 8 points: error of the rate", between(-3.0e-3, -2.9e-3), rate_error("v"), _shear(8)),
    Check("shear wave, 16 points: error of the rate", between(-6e-5, 6e-5), rate_error("v"), _shear(16)),
    Check("shear wave, 32 points: error of the rate", between(-1e-6, 1e-6), rate_error("v"), _shear(32)),
    Check(
        "shear wave, 9 points, eighth order: error of the rate",
        between(-1.62e-4, -1.5e-4),
        rate_error("v"),
        _shear(9, EIGHTH),
    ),
    Check("sound wave, 64 points: error of the rate", between(-1e-4, 1e-4), rate_error("u"), SOUND),
    Check("Couette: velocity", at_most(1e-7), couette_velocity, COUETTE, couette_profiles),
    Check("Couette: temperature", at_most(1e-7), couette_temperature, COUETTE),
    Check("Couette: pressure, largest less smallest", at_most(1e-5), couette_pressure, COUETTE),
    Check("Couette, eighth order: velocity", at_most(1e-7), couette_velocity, COUETTE_EIGHTH),
    Check("Couette, eighth order: temperature", at_most(1e-7), couette_temperature, COUETTE_EIGHTH),
    Check("Couette, Sutherland: order of the velocity", at_least(3), order(couette_velocity), ORDER),
    Check("Couette, Sutherland: order of the temperature", at_least(3), order(couette_temperature), ORDER),
    Check("Couette, Sutherland, 17 nodes: velocity", at_most(3.6e-6), couette_velocity, ORDER[:1]),
    Check("Couette, Sutherland, 17 nodes: temperature", at_most(3.2e-6), couette_temperature, ORDER[:1]),
]
