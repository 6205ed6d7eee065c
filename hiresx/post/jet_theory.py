"""Theory and correlations of an under-expanded jet: its fully expanded state, shock cells and screech.

Planar: Tam, J. Sound Vib. 121 (1988) 135; Tam, Shen & Raman, AIAA J. 35 (1997) 1119: the vortex-sheet model of the
first mode of a rectangular jet. The empirical wavelength of rectangular jets is Powell's, K = 5.2, and Krothapalli's, K
= 5.0. Round: the first mode of Prandtl's and Pack's vortex sheet; Tam, Seiner & Yu, J. Sound Vib. 110 (1986) 309.
Powell's feedback: the shear layer carries a wave one cell downstream, and sound travels back. Scales: nozzle height h
(diameter D of a round one), ambient density and sound speed. The Strouhal number St is f h/Uj for a planar jet and f
Dj/Uj for a round jet, as in the publications."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

Shape = Literal["planar", "round"]

# Ratios of convection velocity to jet velocity, and constants K of the empirical wavelength, for which curves are
# drawn.
CONVECTION = (0.55, 0.70)
EMPIRICAL = {"Powell": 5.2, "Krothapalli": 5.0}
# NPR of a choked nozzle, at which the empirical wavelength vanishes.
_CHOKED = 1.893
# pi / 2.40483, the first zero of the Bessel function J0.
_PRANDTL_PACK = 1.3064
# Length of the cells at the source of screech, as a fraction of the vortex sheet's spacing (Tam, Seiner & Yu).
_SHORTENED = 0.8


@dataclass(frozen=True)
class ExpandedJet:
    """The state of a jet after isentropic expansion to the ambient pressure. `mach`: Mach number. `npr`: total pressure
    divided by ambient pressure. `pressure_ratio`: pressure at the exit divided by ambient pressure. `velocity`: in
    units of the ambient sound speed. `height`: height of the jet divided by that of the nozzle; for a round jet the
    ratio of diameters. `shape`: "planar" or "round"."""

    mach: float
    npr: float
    pressure_ratio: float
    velocity: float
    height: float
    shape: Shape = "planar"

    @property
    def length(self) -> float:
        """The length in the Strouhal number of the jet, in units of the nozzle's height or diameter: the nozzle height
        (1) for a planar jet, and the diameter Dj of the expanded jet for a round one."""
        return 1.0 if self.shape == "planar" else self.height


def expand_jet(
    pressure_ratio: float,
    exit_mach: float = 1.0,
    gamma: float = 1.4,
    total_temperature: float = 1.0,
    shape: Shape = "planar",
) -> ExpandedJet:
    """Return the state of the jet of a nozzle after isentropic expansion to the ambient pressure. `pressure_ratio`:
    pressure at the exit divided by the ambient pressure. `exit_mach`: Mach number at the exit. `gamma`: ratio of
    specific heats. `total_temperature`: total temperature divided by the ambient temperature. `shape`: "planar" or
    "round". The Mach number is NaN if the total pressure is not above the ambient pressure."""
    g = 0.5 * (gamma - 1)
    npr = pressure_ratio * (1 + g * exit_mach**2) ** (gamma / (gamma - 1))
    mach = float(np.sqrt((npr ** ((gamma - 1) / gamma) - 1) / g)) if npr > 1 else float("nan")
    velocity = mach * float(np.sqrt(total_temperature / (1 + g * mach**2)))
    power = 0.5 * (gamma + 1) / (gamma - 1)
    area = exit_mach / mach * ((1 + g * mach**2) / (1 + g * exit_mach**2)) ** power
    height = area if shape == "planar" else np.sqrt(area)
    return ExpandedJet(mach, float(npr), float(pressure_ratio), velocity, float(height), shape)


def of_mach(mach: float, gamma: float = 1.4, shape: Shape = "planar") -> ExpandedJet:
    """Return the state of a jet from a sonic nozzle, after isentropic expansion to ambient pressure, from its Mach
    number `mach`. `gamma`: ratio of specific heats. `shape`: "planar" or "round"."""
    g = 0.5 * (gamma - 1)
    ratio = ((1 + g * mach**2) / (1 + g)) ** (gamma / (gamma - 1))
    return expand_jet(ratio, 1.0, gamma, shape=shape)


def spacing(jet: ExpandedJet) -> float:
    """Return the length of a shock cell of a jet by the vortex-sheet model, divided by the nozzle's height h or
    diameter D: Ls/h = 2 sqrt(Mj^2 - 1) hj/h or Ls/D = 1.3064 sqrt(Mj^2 - 1) Dj/D, where Mj, hj and Dj are Mach number,
    height and diameter of the fully expanded jet. Source: Tam, J. Sound Vib. 121 (1988) 135 (planar); Prandtl and Pack
    (round)."""
    constant = 2.0 if jet.shape == "planar" else _PRANDTL_PACK
    return float(constant * np.sqrt(max(jet.mach**2 - 1, 0.0)) * jet.height)


def strouhal(jet: ExpandedJet, convection: float, cell: float | None = None) -> float:
    """Return the Strouhal number of the screech of a jet by Powell's feedback loop, from its frequency f = uc / (Ls (1
    + uc/c)) with the ambient sound speed c. `convection`: the convection velocity uc divided by the jet velocity Uj.
    `cell`: the length Ls of a shock cell, divided by the nozzle's height or diameter; None for the vortex-sheet
    model."""
    cell = spacing(jet) if cell is None else cell
    return jet.length * convection / (cell * (1 + convection * jet.velocity))


def tam_seiner_yu(jet: ExpandedJet) -> float:
    """Return the Strouhal number f Dj/Uj of the screech of a round jet, (.67/sqrt(Mj^2 - 1)) / (1 + .7 Uj/c). Mj, Uj
    and Dj are Mach number, velocity and diameter of the fully expanded jet, and c is the ambient sound speed. The
    formula assumes the convection velocity .7 Uj and shock cells of .8 times the length of the vortex-sheet model.
    Source: Tam, Seiner & Yu, J. Sound Vib. 110 (1986) 309."""
    return float(0.67 / np.sqrt(jet.mach**2 - 1) / (1 + 0.7 * jet.velocity))


def empirical(jet: ExpandedJet, constant: float) -> float:
    """Return the Strouhal number f h/Uj of the screech of a planar jet, with the nozzle height h and the jet velocity
    Uj. It follows from the empirical wavelength lambda/h = K sqrt(NPR - 1.893), with the nozzle pressure ratio NPR. K
    is `constant`: 5.2 by Powell, 5.0 by Krothapalli."""
    return float(1 / (constant * np.sqrt(max(jet.npr - _CHOKED, 1e-12)) * jet.velocity))


def screech_strouhal(jet: ExpandedJet) -> float:
    """Return the Strouhal number of the screech of a jet by empirical correlations: the formula of Tam, Seiner & Yu for
    a round jet, and the mean of Powell's and Krothapalli's values for a planar one."""
    if jet.shape == "round":
        return tam_seiner_yu(jet)
    return float(np.mean([empirical(jet, constant) for constant in EMPIRICAL.values()]))


# A formula for a quantity of a jet, and its name.
Formula = tuple[str, Callable[[ExpandedJet], float]]


def spacings(shape: Shape) -> list[Formula]:
    """Return the formulas for the length of a shock cell of a "planar" or "round" jet, as pairs of a name and a
    function of the expanded jet. The first formula is that of the vortex-sheet model, the second gives 0.8 times its
    value."""
    name = "vortex sheet (Tam)" if shape == "planar" else "vortex sheet (Prandtl, Pack)"
    return [(name, spacing), (f"{_SHORTENED:g} of it", lambda jet: _SHORTENED * spacing(jet))]


def tones(shape: Shape) -> list[Formula]:
    """Return the theoretical formulas for the Strouhal number of the screech of a "planar" or "round" jet, as pairs of
    a name and a function of the expanded jet."""
    found: list[Formula] = [
        (f"vortex sheet, uc = {k:.2f} Uj", partial(strouhal, convection=k)) for k in CONVECTION
    ]  # fmt: skip
    return found if shape == "planar" else [("Tam, Seiner & Yu", tam_seiner_yu), found[-1]]


def correlations(shape: Shape) -> list[Formula]:
    """Return the empirical formulas for the Strouhal number of the screech of a planar jet, as pairs of a name and a
    function of the expanded jet. The list is empty if `shape` is "round"."""
    if shape == "round":
        return []
    return [(f"{name}, K = {k:g}", partial(empirical, constant=k)) for name, k in EMPIRICAL.items()]
