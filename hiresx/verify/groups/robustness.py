"""Robustness: every flux with both weights, and the scheme's named choice, survive strong shocks and near-vacuum.

The flows are those of docs/robustness.md in a small form, started as impulsively as there. The numbers are the least
density and pressure at any step, relative to those of the initial state.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hiresx import kernels
from hiresx.case.named_scheme import LOW_DISSIPATION
from hiresx.exact import rayleigh_pitot
from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_least

LONG = True

WEIGHTS = ("js", "z")
MACH20 = "state={rho=1.0,u=20.0,p=0.7142857142857143}"


def density_error(run: CompletedRun) -> float:
    """L1 error of the density, relative to its mean."""
    exact = run.exact("rho")
    return abs(run.state("rho") - exact).mean() / exact.mean()


def shock_radius_error(run: CompletedRun) -> float:
    """Relative error of the radius of Sedov's blast, where the density is largest, against 0.75 sqrt(t)."""
    block = run.blocks[0]
    rho, radius = run.state("rho"), np.hypot(block.x, block.y)
    return abs(radius.flat[rho.argmax()] / (0.75 * run.time**0.5) - 1)


def pitot_error(run: CompletedRun) -> float:
    """Stagnation pressure on the windward side of the cylinder against Rayleigh's formula at Mach 20, relative."""
    block = run.blocks[0]
    wall = np.s_[0, 0, :]
    foremost = block.x[wall].argmin()
    return abs(run.state("p")[wall][foremost] * 1.4 / rayleigh_pitot(20.0, 1.4) - 1)


@dataclass(frozen=True)
class StrongFlow:
    """A flow that may break a scheme, and the check of its end state. `small`: settings with which the run takes a
    fraction of a second. `error`: a function that measures the error of the run. `limit`: the largest accepted error.
    `fault`: the meaning of a larger error, in words."""

    title: str
    case: str
    preset: str | None
    sets: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    error: Callable[[CompletedRun], float] | None = None
    limit: float = np.inf
    fault: str = ""

    def run(self, flux: str, weights: str, positivity: str, small: bool = False) -> CheckRun:
        """Return the run of this flow with a numerical flux, weights and a positivity limiter. `weights` may also be a
        scheme.choice. `small`: whether to take the smaller grid."""
        of_weights = "choice" if weights == LOW_DISSIPATION else "weights"
        choices = {"flux": flux, of_weights: weights, "positivity": positivity}
        scheme = (f'scheme.{key}="{value}"' for key, value in choices.items())
        return CheckRun(
            self.case, self.preset, (*self.sets, *(self.small if small else ()), *scheme, "monitor.every=1")
        )


# All with one gamma in the small forms, so that few kernels are compiled.
AIR = "gas.gamma=1.4"
FLOWS = (
    StrongFlow("Sedov's blast", "sedov", "quick", (), ("time.end=0.05",), shock_radius_error, 0.1, "shock misplaced"),
    StrongFlow("Noh, planar", "noh", "planar", (), (AIR, "grid.n=[60,1,1]"), density_error),
    StrongFlow("Noh", "noh", None, (), (AIR, "grid.n=[24,24,1]", "time.end=0.2"), density_error),
    StrongFlow("123 problem", "einfeldt-123", None, (), ("grid.n=[100,1,1]",), density_error),
    StrongFlow("vacuum", "vacuum", None, (), ("grid.n=[100,1,1]",), density_error),
    StrongFlow("Le Blanc's tube", "le-blanc", None, (), (AIR, "grid.n=[120,1,1]", "time.end=3.0"), density_error),
    StrongFlow("two blast waves", "blast-waves", None, ("grid.n=[401,1,1]",), ("grid.n=[101,1,1]",)),
    StrongFlow("cylindrical blast", "blast-2d", None, (), ("grid.n=[40,40,1]", "time.end=0.006")),
    StrongFlow("double Mach reflection", "double-mach", "coarse", (), ("time.end=0.01",)),
    StrongFlow(
        "Mach 20 cylinder",
        "cylinder-bow-shock",
        "mach20",
        ("grid.n_around=129", "grid.n_normal=33"),
        ("grid.n_around=25", "grid.n_normal=17", "time.end=0.2"),
        pitot_error,
        0.05,
        "carbuncle",
    ),
    StrongFlow(
        "Mach 20 cylinder, all round",
        "cylinder-o",
        None,
        (
            "gas.reynolds=inf",
            "force=[]",
            "output.subset=[]",
            "grid.n_around=64",
            "grid.n_normal=33",
            "time.cfl=0.5",
            "time.end=1.0",
            f"initial={{{MACH20}}}",
            f'boundary=[{{faces=["jmin"],type="slip-wall"}},{{faces=["jmax"],type="far-field",{MACH20}}}]',
        ),
        ("grid.n_around=32", "grid.n_normal=17", "time.end=0.1"),
    ),
)


def least(run: CompletedRun) -> float:
    """Return the smaller of two ratios: the least density at any step over the least initial density, and the same of
    the pressure. It is positive if the flow remained admissible."""
    return min((run.samples(f"least_{name}") / run.samples(f"least_{name}")[0]).min() for name in ("rho", "p"))


CHECKS = [
    Check(f"{flow.title}: {flux}, {weights}", at_least(1e-12), least, (flow.run(flux, weights, "limiter", True),))
    for flow in FLOWS
    for flux, weights in (
        *((flux, weights) for flux in kernels.choices("flux") for weights in WEIGHTS),
        ("steger_warming", LOW_DISSIPATION),
    )
]
