"""The jet of a nozzle after isentropic expansion to the ambient pressure, and conversion between the parameters that
define it.

Scales: ambient density and sound speed. The formulas are those of isentropic flow of a perfect gas, see Liepmann and
Roshko, Elements of Gasdynamics (1957), chapter 5.
"""

import math
from typing import Any

import numpy as np


def fully_expanded(
    pressure_ratio: float, exit_mach: float, temperature_ratio: float, gamma: float
) -> tuple[float, float]:
    """Return the velocity of a jet after isentropic expansion to ambient pressure, in units of the ambient sound speed,
    and the area of its cross-section divided by the area of the nozzle exit. The mass flow is conserved.
    `pressure_ratio`: pressure at the exit divided by the ambient pressure. `exit_mach`: Mach number at the exit.
    `temperature_ratio`: total temperature of the jet divided by the ambient temperature. `gamma`: ratio of specific
    heats. Source: Liepmann & Roshko, Elements of Gasdynamics (1957), chapter 5."""
    g = 0.5 * (gamma - 1)
    T_exit = temperature_ratio / (1 + g * exit_mach**2)
    T = T_exit * pressure_ratio ** (-(gamma - 1) / gamma)
    u = np.sqrt((temperature_ratio - T) / g)
    return u, pressure_ratio / T_exit * exit_mach * np.sqrt(T_exit) * T / u


def jet(
    *,
    Mj: float | None = None,
    NPR: float | None = None,
    pressure_ratio: float | None = None,
    exit_mach: float,
    temperature_ratio: float,
    gamma: float,
    subsonic: bool = False,
) -> dict[str, float]:
    """Return the parameters of the jet of a nozzle that one of `Mj`, `NPR` and `pressure_ratio` defines. The result has
    the keys `Mj`: Mach number of the jet after isentropic expansion to ambient pressure; `NPR`: total pressure in the
    nozzle divided by ambient pressure; `pressure_ratio`: pressure at the exit divided by ambient pressure; `Uj`:
    velocity of the expanded jet in units of the ambient sound speed.

    If several of the three parameters are given, `pressure_ratio` is used before `NPR`, and `NPR` before `Mj`.
    `exit_mach`: Mach number at the exit. `temperature_ratio`: total temperature divided by ambient temperature.
    `gamma`: ratio of specific heats. `subsonic`: whether the flow at the exit is subsonic and has the ambient pressure;
    otherwise the jet is supersonic. Raises ValueError, with the reason, if there is no such jet. Source: Liepmann &
    Roshko (1957), chapter 5."""
    g, power = 0.5 * (gamma - 1), gamma / (gamma - 1)
    # The parameters come from a case file and may be texts.
    given: dict[str, Any] = {"pressure_ratio": pressure_ratio, "NPR": NPR, "Mj": Mj}
    chosen = {name: value for name, value in given.items() if value is not None}
    if not chosen:
        raise ValueError("none of pressure_ratio, NPR and Mj is given: one of them is needed")
    for name, value in chosen.items():
        if isinstance(value, str) or not 0 < value < math.inf:
            raise ValueError(f"{name} = {value} must be a positive number")
    for name, number in (("exit_mach", exit_mach), ("temperature_ratio", temperature_ratio)):
        if not number > 0:
            raise ValueError(f"{name} = {number:g} must be positive")
    total = (1 + g * exit_mach**2) ** power  # total pressure divided by exit pressure
    if subsonic:
        return _subsonic(next(iter(chosen.items())), exit_mach, temperature_ratio, total, gamma)
    if exit_mach < 1:
        raise ValueError(
            f"exit_mach = {exit_mach:g}: a subsonic flow at the exit takes the ambient pressure, and the whole state "
            "cannot be given there; the nozzle's exit is sonic (1) or supersonic"
        )
    name, value = next(iter(chosen.items()))
    said = f"{name} = {value:g}"
    if pressure_ratio is None:
        ratio = (1 + g * value**2) ** power if name == "Mj" else value
        pressure_ratio = ratio / total
    if exit_mach == 1 and pressure_ratio < 1:
        least = math.sqrt((total ** (1 / power) - 1) / g)
        raise ValueError(
            f"{said} is below choking: a sonic exit would have {pressure_ratio:.4g} of the ambient pressure; out of a "
            f"sonic nozzle Mj > {least:g}, NPR > {total:.4g}, pressure_ratio > 1"
        )
    ratio = pressure_ratio * total
    mach = np.sqrt((ratio ** (1 / power) - 1) / g) if ratio > 1 else 0.0
    if not mach > 1:
        raise ValueError(f"{said} makes no supersonic jet: expanded to ambient pressure its Mach number is {mach:.4g}")
    velocity, _ = fully_expanded(pressure_ratio, exit_mach, temperature_ratio, gamma)
    return {"Mj": mach, "NPR": ratio, "pressure_ratio": pressure_ratio, "Uj": velocity}


def _subsonic(
    chosen: tuple[str, float], exit_mach: float, temperature_ratio: float, total: float, gamma: float
) -> dict[str, float]:
    """Return the jet out of a subsonic exit, see `jet`. `chosen`: name and value of the parameter that describes it.
    `total`: total pressure divided by exit pressure."""
    if not exit_mach < 1:
        raise ValueError(f"exit_mach = {exit_mach:g} is not subsonic: below 1, or leave out subsonic")
    of_exit = {"pressure_ratio": 1.0, "NPR": total, "Mj": exit_mach}
    name, value = chosen
    if not math.isclose(value, of_exit[name], rel_tol=1e-9):
        raise ValueError(
            f"{name} = {value:g}: a subsonic exit has the ambient pressure: pressure_ratio = 1, and Mj = exit_mach"
        )
    velocity, _ = fully_expanded(1.0, exit_mach, temperature_ratio, gamma)
    return {**of_exit, "Uj": velocity}


def walled_jet(
    *,
    layer: float,
    lip: float,
    exit_mach: float,
    temperature_ratio: float,
    gamma: float,
    subsonic: bool = False,
    **given: Any,
) -> tuple[dict[str, float], float]:
    """Return the dictionary of parameters that `jet` returns, for a nozzle with a boundary layer and a lip, and the
    area of the cross-section of the fully expanded jet divided by that of the exit. `layer`, `lip`: thickness of the
    boundary layer and of the lip, divided by the width of the nozzle. These are checked, but do not change the result.
    `given`: one of the Mach number Mj of the expanded jet, the total-pressure ratio NPR and the `pressure_ratio` at the
    exit. `exit_mach`: Mach number at the exit. `temperature_ratio`: total temperature divided by ambient temperature.
    `gamma`: ratio of specific heats. `subsonic`: whether the flow at the exit is subsonic. Raises ValueError if there
    is no such jet, or if `layer` or `lip` is too small or too large."""
    check_walls(layer, lip)
    of = {"exit_mach": exit_mach, "temperature_ratio": temperature_ratio, "gamma": gamma}
    found = jet(**given, **of, subsonic=subsonic)
    return found, float(fully_expanded(found["pressure_ratio"], **of)[1])


def check_walls(layer: float, lip: float) -> None:
    """Raise ValueError if the thickness `layer` of the boundary layers in a nozzle is not above 0 and below 0.5, or the
    thickness `lip` of the nozzle's lip is not positive. Both are divided by the width of the nozzle."""
    if not layer > 0:
        raise ValueError(f"layer = {layer:g} must be positive")
    if layer >= 0.5:
        raise ValueError(f"layer = {layer:g}: the layers of both walls meet in the nozzle, which is 1 wide; below 0.5")
    if lip <= 0:
        raise ValueError(f"lip = {lip:g} must be positive")
