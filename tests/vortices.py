"""The Taylor-Green vortex, for tests that do not look at its Prandtl number."""

from hiresx import Case, load

# What every other bundled case has. It is a constant of the kernels: theirs are then taken, and none are compiled for
# the vortex alone.
PRANDTL = "gas.prandtl=0.72"


def taylor_green(*overrides: str, preset: str | None = None) -> Case:
    """The bundled vortex with these changes, and the Prandtl number of the other cases."""
    return load("taylor-green", preset, (PRANDTL, *overrides))
