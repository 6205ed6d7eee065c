"""Robustness: every flux with both weights, and the scheme's named choice, survive strong shocks and near-vacuum.

The flows are those of docs/robustness.md in a small form, started as impulsively as there. The numbers are the least
density and pressure at any step, relative to those of the initial state.
"""

from dataclasses import dataclass

from hiresx import kernels
from hiresx.case.named_scheme import LOW_DISSIPATION
from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_least

LONG = True

WEIGHTS = ("js", "z")
MACH20 = "state={rho=1.0,u=20.0,p=0.7142857142857143}"


@dataclass(frozen=True)
class StrongFlow:
    """A flow at which a scheme may fail. `title`: its name. `case`, `preset`, `sets`: its case, preset and overrides.
    `small`: further overrides with which the run takes a fraction of a second."""

    title: str
    case: str
    preset: str | None
    sets: tuple[str, ...] = ()
    small: tuple[str, ...] = ()

    def run(self, flux: str, weights: str, positivity: str, small: bool = False) -> CheckRun:
        """Return the run of this flow with the numerical flux, nonlinear weights and positivity method that are given
        by their names in the table [scheme] of a case. `weights` may also be a value of the key `scheme.choice`, which
        sets the weights. `small`: whether to use a grid and a duration for a run of a fraction of a second."""
        of_weights = "choice" if weights == LOW_DISSIPATION else "weights"
        choices = {"flux": flux, of_weights: weights, "positivity": positivity}
        scheme = (f'scheme.{key}="{value}"' for key, value in choices.items())
        return CheckRun(
            self.case, self.preset, (*self.sets, *(self.small if small else ()), *scheme, "monitor.every=1")
        )


# All small forms have one gamma, so that few kernels are compiled.
AIR = "gas.gamma=1.4"
FLOWS = (
    StrongFlow("Sedov's blast", "sedov", "quick", (), ("time.end=0.05",)),
    StrongFlow("Noh, planar", "noh", "planar", (), (AIR, "grid.n=[60,1,1]")),
    StrongFlow("Noh", "noh", None, (), (AIR, "grid.n=[24,24,1]", "time.end=0.2")),
    StrongFlow("123 problem", "einfeldt-123", None, (), ("grid.n=[100,1,1]",)),
    StrongFlow("vacuum", "vacuum", None, (), ("grid.n=[100,1,1]",)),
    StrongFlow("Le Blanc's tube", "le-blanc", None, (), (AIR, "grid.n=[120,1,1]", "time.end=3.0")),
    StrongFlow("two blast waves", "blast-waves", None, ("grid.n=[401,1,1]",), ("grid.n=[101,1,1]",)),
    StrongFlow("cylindrical blast", "blast-2d", None, (), ("grid.n=[40,40,1]", "time.end=0.006")),
    StrongFlow("double Mach reflection", "double-mach", "coarse", (), ("time.end=0.01",)),
    StrongFlow(
        "Mach 20 cylinder",
        "cylinder-bow-shock",
        "mach20",
        ("grid.n_around=129", "grid.n_normal=33"),
        ("grid.n_around=25", "grid.n_normal=17", "time.end=0.2"),
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
    """Return the smaller of two ratios: the least density at any step divided by the least initial density, and the
    least pressure divided by the least initial pressure. It is positive if density and pressure remained positive."""
    return min((run.samples(f"least_{name}") / run.samples(f"least_{name}")[0]).min() for name in ("rho", "p"))


CHECKS = [
    Check(f"{flow.title}: {flux}, {weights}", at_least(1e-12), least, (flow.run(flux, weights, "limiter", True),))
    for flow in FLOWS
    for flux, weights in (
        *((flux, weights) for flux in kernels.choices("flux") for weights in WEIGHTS),
        ("steger_warming", LOW_DISSIPATION),
    )
]
