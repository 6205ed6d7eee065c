"""Free stream: a uniform flow stays uniform.

Flows at Mach 0.3 and 2 cross a strongly wavy three-dimensional grid obliquely. The volumes of this grid differ by a
factor of 5, and its angles by up to 45 degrees. All its faces have physical boundary conditions. The table has the
largest change of density, velocity and pressure at any node after 50 steps. The metrics are computed by the same linear
operator as the inviscid derivative, so the only error allowed is round-off. The check is made with every flux, with the
interpolations `modified` and `original` through five nodes, and with those through six and seven.
"""

from hiresx import kernels
from hiresx.verify.checks import Check, CheckRun, CompletedRun, at_most

LONG = False


def change(run: CompletedRun) -> float:
    """Return the largest change of rho, u, v, w or p from its initial value at any node to that at the end of `run`,
    which should be round-off for a uniform flow."""
    return max(
        abs(run.state(name, b) - run.start(name, b)).max()
        for name in ("rho", "u", "v", "w", "p")
        for b in range(len(run.blocks))
    )


def _run(preset: str | None, *sets: str) -> CheckRun:
    return CheckRun("free-stream", preset, sets)


CHECKS = (
    [
        Check(
            f"{flux}, {interpolation}, Mach {mach}",
            at_most(1e-12),
            change,
            (_run(preset, f'scheme.flux="{flux}"', f'scheme.interpolation="{interpolation}"'),),
        )
        for flux in kernels.choices("flux")
        for interpolation in ("modified", "original")
        for mach, preset in ((0.3, None), (2, "mach2"))
    ]
    + [
        Check(
            f"{interpolation}, {weights}, Mach 2",
            at_most(1e-12),
            change,
            (_run("mach2", f'scheme.weights="{weights}"', f'scheme.interpolation="{interpolation}"'),),
        )
        for interpolation, weights in (("modified", "teno"), ("original6", "teno"), ("modified7", "z"))
    ]
    + [
        Check(
            f"viscous{name}, Mach {mach}",
            at_most(1e-12),
            change,
            (_run(preset, "gas.reynolds=100.0", 'scheme.flux="hllc"', *sets),),
        )
        for name, *sets in (("",), (" of eighth order", "scheme.viscous_order=8"))
        for mach, preset in ((0.3, None), (2, "mach2"))
    ]
    + [
        Check(
            "periodic wavy grid in two dimensions",
            at_most(1e-12),
            change,
            (CheckRun("isentropic-vortex", "wavy", ("parameters.strength=0.0", "time.steps=50")),),
        )
    ]
)
