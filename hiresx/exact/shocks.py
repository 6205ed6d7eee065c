"""Ratios across shocks of a perfect gas, and the correlation of bow shocks. `gamma` is the ratio of specific heats."""

from dataclasses import dataclass
from math import acos, atan, cos, exp, pi, radians, sin, sqrt, tan

from hiresx.errors import HiresxError


@dataclass(frozen=True)
class Shock:
    """A plane shock. `angle`: the angle between the shock and the upstream flow, in degrees. `pressure` and `density`:
    ratios of the downstream to the upstream values. `mach`: the downstream Mach number."""

    angle: float
    pressure: float
    density: float
    mach: float


def normal_shock(mach: float, gamma: float) -> Shock:
    """Return the normal shock at the upstream Mach number `mach`. `gamma`: ratio of specific heats. Raises HiresxError
    for `mach` < 1. Source: NACA report 1135 (1953), equations 93 to 96."""
    if mach < 1:
        raise HiresxError(f"no shock at Mach {mach:g}", "give a Mach number of at least 1")
    m2, g = mach * mach, gamma
    return Shock(
        90.0,
        (2 * g * m2 - (g - 1)) / (g + 1),
        (g + 1) * m2 / ((g - 1) * m2 + 2),
        sqrt(((g - 1) * m2 + 2) / (2 * g * m2 - (g - 1))),
    )


def oblique_shock(mach: float, deflection: float, gamma: float) -> Shock:
    """Return the weak oblique shock that turns a flow of Mach number `mach` by `deflection` degrees.

    `gamma`: ratio of specific heats. Raises HiresxError if the shock would be detached. Source: NACA report 1135
    (1953), equations 128 to 138; the angle in closed form after Mascitti, Journal of Aircraft 6 (1969) 66."""
    m2, g, theta = mach * mach, gamma, radians(deflection)
    if theta == 0:
        beta = acos(sqrt(1 - 1 / m2))
    else:
        a, b = 1 + 0.5 * (g - 1) * m2, 1 + 0.5 * (g + 1) * m2
        squared = (m2 - 1) ** 2 - 3 * a * b * tan(theta) ** 2
        root = sqrt(squared) if squared > 0 else 0.0
        chi = ((m2 - 1) ** 3 - 9 * a * (a + 0.25 * (g + 1) * m2 * m2) * tan(theta) ** 2) / root**3 if root else 2.0
        if abs(chi) > 1:
            raise HiresxError(
                f"a shock at Mach {mach:g} that turns the flow by {deflection:g} degrees is detached",
                "lower the angle or raise the Mach number",
            )
        beta = atan((m2 - 1 + 2 * root * cos((4 * pi + acos(chi)) / 3)) / (3 * a * tan(theta)))
    normal = normal_shock(max(1.0, mach * sin(beta)), gamma)
    return Shock(beta * 180 / pi, normal.pressure, normal.density, normal.mach / sin(beta - theta))


def rayleigh_pitot(mach: float, gamma: float) -> float:
    """Return the stagnation pressure behind a normal shock divided by the static pressure ahead of it. `mach`: the Mach
    number ahead of the shock. `gamma`: ratio of specific heats. Raises HiresxError for `mach` < 1. Source: Rayleigh,
    Proc. R. Soc. A 84 (1910) 247; NACA report 1135 (1953), equation 100."""
    behind = normal_shock(mach, gamma)
    return behind.pressure * (1 + 0.5 * (gamma - 1) * behind.mach**2) ** (gamma / (gamma - 1))


def billig_standoff(mach: float, shape: str = "cylinder") -> tuple[float, float]:
    """Return the stand-off distance of a bow shock and its radius of curvature on the axis, both divided by the radius
    of the body, by an empirical correlation for gamma = 1.4.

    `mach`: the Mach number of the free stream. `shape`: "cylinder" or "sphere". Raises HiresxError for another shape.
    Source: Billig, Journal of Spacecraft and Rockets 4 (1967) 822."""
    if shape == "cylinder":
        return 0.386 * exp(4.67 / mach**2), 1.386 * exp(1.8 / (mach - 1) ** 0.75)
    if shape == "sphere":
        return 0.143 * exp(3.24 / mach**2), 1.143 * exp(0.54 / (mach - 1) ** 1.2)
    raise HiresxError(f"no bow-shock correlation for a {shape!r}", "shape is 'cylinder' or 'sphere'")
