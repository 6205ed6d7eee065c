"""Accuracy of the precisions: the distance of a run from the same run in FP64.

The numbers are the largest differences of density, velocity and pressure at any node, in the units of the case. The
flows are: the isentropic vortex on 64 x 64 points, on a uniform and on a wavy grid; the Taylor-Green vortex on 24^3
points, ten turnover times (Mach 0.1); Sod's shock tube; the first 100 steps of the planar jet; a plane sound wave whose
velocity is 1e-5 of the speed of sound (differences relative to this velocity); and 50 steps of a uniform flow at Mach
0.3 through a strongly wavy grid. Rows with "differences" store the difference from the state at rest; rows with "about
its mean flow" store the difference from the mean flow.
"""

from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_most

LONG = True

AMPLITUDE = 1e-5
MEAN = "scheme.reference={rho=1.0, u=1.0, v=1.0, p=1.0}"
WAVY = "grid.n=[64, 64, 1]"

FLOWS: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "vortex": ("isentropic-vortex", "n64", ()),
    "vortex, wavy grid": ("isentropic-vortex", "wavy", (WAVY, "time.cfl=0.315")),
    "Taylor-Green, t = 10": ("taylor-green", None, ("grid.n=[24, 24, 24]", "time.end=100.0", "time.cfl=1.2")),
    "Sod": ("sod", None, ()),
    "jet, 100 steps": ("planar-jet", "quick", ("time.steps=100",)),
    "sound, over its amplitude": ("plane-wave", None, (f"parameters.amplitude={AMPLITUDE}",)),
    "uniform flow, wavy grid": ("free-stream", None, ()),
}
# Thresholds of the largest differences, with a margin for other orders of rounding: mixed, differences, fp32.
LIMITS: dict[str, tuple[float, float, float]] = {
    "vortex": (5e-7, 1e-6, 5e-5),
    "vortex, wavy grid": (1e-6, 1e-6, 5e-5),
    "Taylor-Green, t = 10": (1e-6, 1e-6, 1e-3),
    "Sod": (1e-7, 1e-6, 1e-4),
    "jet, 100 steps": (1e-6, 1e-4, 1e-2),
    "sound, over its amplitude": (1e-6, 1e-6, 10.0),
    "uniform flow, wavy grid": (1e-6, 1e-6, 1e-5),
}
OPTIONS = ("mixed", "differences", "fp32")


def _run(flow: str, precision: str, *more: str) -> CheckRun:
    case, preset, sets = FLOWS[flow]
    return CheckRun(case, preset, (*sets, f'scheme.precision="{precision}"', *more))


def largest_difference(run: CompletedRun, other: CompletedRun) -> float:
    """Return the largest difference of rho, u, v, w and p at any node between the runs `run` and `other` of a case, in
    the scales of the case."""
    return max(
        abs(run.state(name, b) - other.state(name, b)).max()
        for name in ("rho", "u", "v", "w", "p")
        for b in range(len(run.blocks))
    )


def over_amplitude(run: CompletedRun, other: CompletedRun) -> float:
    """Return the largest difference of rho, u, v, w and p at any node between the runs `run` and `other` of a sound
    wave, divided by the amplitude of the wave."""
    return largest_difference(run, other) / AMPLITUDE


def _check(flow: str, precision: str, limit: float, name: str, *more: str) -> Check:
    measure = over_amplitude if "amplitude" in flow else largest_difference
    return Check(name, at_most(limit), measure, (_run(flow, precision, *more), _run(flow, "fp64")))


CHECKS = [
    _check(flow, precision, limit, f"{flow}: {precision}")
    for flow, limits in LIMITS.items()
    for precision, limit in zip(OPTIONS, limits, strict=True)
] + [
    _check(flow, "differences", LIMITS[flow][1], f"{flow}: differences, mean flow as scheme.reference", MEAN)
    for flow in ("vortex", "vortex, wavy grid")
]
