"""Theory and correlations of an under-expanded jet: its expanded state, shock cells and screech.

Planar: Tam, J. Sound Vib. 121 (1988) 135; Tam, Shen & Raman, AIAA J. 35 (1997) 1119: the vortex-sheet model of the
first mode of a rectangular jet. The empirical wavelength of rectangular jets is Powell's, K = 5.2, and Krothapalli's, K
= 5.0. Round: the first mode of Prandtl's and Pack's vortex sheet; Tam, Seiner & Yu, J. Sound Vib. 110 (1986) 309.
Powell's feedback: the shear layer carries a wave one cell downstream, and sound travels back. Scales: nozzle height h
(diameter D of a round one), ambient density and sound speed. St is f h/Uj of a planar jet, f Dj/Uj of a round one, as
each is published.
"""

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
    """The jet after isentropic expansion to the ambient pressure. `mach`: Mach number. `npr`: total over ambient
    pressure. `pressure_ratio`: pressure at the exit over ambient pressure. `velocity`: in units of the ambient sound
    speed. `height`: height over that of the nozzle; for a round jet, diameter over that of the nozzle. `shape`:
    "planar" or "round"."""

    mach: float
    npr: float
    pressure_ratio: float
    velocity: float
    height: float
    shape: Shape = "planar"

    @property
    def length(self) -> float:
        """Length in the Strouhal number, in units of the nozzle: its height h (1) for a planar jet, the diameter Dj for
        a round one."""
        return 1.0 if self.shape == "planar" else self.height


def expand_jet(
    pressure_ratio: float,
    exit_mach: float = 1.0,
    gamma: float = 1.4,
    total_temperature: float = 1.0,
    shape: Shape = "planar",
) -> ExpandedJet:
    """Return the jet of a nozzle, expanded to the ambient pressure. `pressure_ratio`: pressure at the exit divided by
    the ambient pressure. `exit_mach`: Mach number there. `total_temperature`: total temperature divided by the ambient
    temperature. `gamma`: ratio of specific heats."""
    g = 0.5 * (gamma - 1)
    npr = pressure_ratio * (1 + g * exit_mach**2) ** (gamma / (gamma - 1))
    mach = float(np.sqrt((npr ** ((gamma - 1) / gamma) - 1) / g)) if npr > 1 else float("nan")
    velocity = mach * float(np.sqrt(total_temperature / (1 + g * mach**2)))
    power = 0.5 * (gamma + 1) / (gamma - 1)
    area = exit_mach / mach * ((1 + g * mach**2) / (1 + g * exit_mach**2)) ** power
    height = area if shape == "planar" else np.sqrt(area)
    return ExpandedJet(mach, float(npr), float(pressure_ratio), velocity, float(height), shape)


def of_mach(mach: float, gamma: float = 1.4, shape: Shape = "planar") -> ExpandedJet:
    """Return the jet with the fully expanded Mach number `mach` from a sonic nozzle. `gamma`: ratio of specific heats.
    `shape`: "planar" or "round"."""
    g = 0.5 * (gamma - 1)
    ratio = ((1 + g * mach**2) / (1 + g)) ** (gamma / (gamma - 1))
    return expand_jet(ratio, 1.0, gamma, shape=shape)


def spacing(jet: ExpandedJet) -> float:
    """Return the length of a shock cell according to the vortex sheet model, in h or D: Ls/h = 2 sqrt(Mj^2 - 1) hj/h or
    Ls/D = 1.3064 sqrt(Mj^2 - 1) Dj/D."""
    constant = 2.0 if jet.shape == "planar" else _PRANDTL_PACK
    return float(constant * np.sqrt(max(jet.mach**2 - 1, 0.0)) * jet.height)


def strouhal(jet: ExpandedJet, convection: float, cell: float | None = None) -> float:
    """Return the Strouhal number of the screech, from its frequency f = uc / (Ls (1 + uc/c)) (Powell's feedback loop).
    `convection`: the convection velocity uc over Uj. `cell`: the length Ls of a shock cell; by default that of the
    vortex-sheet model."""
    cell = spacing(jet) if cell is None else cell
    return jet.length * convection / (cell * (1 + convection * jet.velocity))


def tam_seiner_yu(jet: ExpandedJet) -> float:
    """Return the Strouhal number of a round jet's screech by Tam, Seiner and Yu: (.67/sqrt(Mj^2 - 1)) / (1 + .7 Uj/c).
    It assumes uc = .7 Uj and cells of .8 times the length of the vortex-sheet model."""
    return float(0.67 / np.sqrt(jet.mach**2 - 1) / (1 + 0.7 * jet.velocity))


def empirical(jet: ExpandedJet, constant: float) -> float:
    """Return the Strouhal number f h/Uj of the screech of a planar jet, from the empirical wavelength lambda/h = K
    sqrt(NPR - 1.893) with K = `constant`."""
    return float(1 / (constant * np.sqrt(max(jet.npr - _CHOKED, 1e-12)) * jet.velocity))


def screech_strouhal(jet: ExpandedJet) -> float:
    """Return the Strouhal number of the screech according to the empirical correlations."""
    if jet.shape == "round":
        return tam_seiner_yu(jet)
    return float(np.mean([empirical(jet, constant) for constant in EMPIRICAL.values()]))


# A formula for a quantity of a jet, and its name.
Formula = tuple[str, Callable[[ExpandedJet], float]]


def spacings(shape: Shape) -> list[Formula]:
    """Return the formulas for the length of a shock cell; the first is that of the vortex-sheet model."""
    name = "vortex sheet (Tam)" if shape == "planar" else "vortex sheet (Prandtl, Pack)"
    return [(name, spacing), (f"{_SHORTENED:g} of it", lambda jet: _SHORTENED * spacing(jet))]


def tones(shape: Shape) -> list[Formula]:
    """Return the theoretical formulas for the Strouhal number of the screech."""
    found: list[Formula] = [
        (f"vortex sheet, uc = {k:.2f} Uj", partial(strouhal, convection=k)) for k in CONVECTION
    ]  # fmt: skip
    return found if shape == "planar" else [("Tam, Seiner & Yu", tam_seiner_yu), found[-1]]


def correlations(shape: Shape) -> list[Formula]:
    """Return the empirical formulas for the Strouhal number, which bound the shaded band in the picture. The list is
    empty for round jets."""
    if shape == "round":
        return []
    return [(f"{name}, K = {k:g}", partial(empirical, constant=k)) for name, k in EMPIRICAL.items()]
