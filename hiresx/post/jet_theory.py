"""What theory and correlations say of an under-expanded planar jet: its expanded state, shock cells and screech.

Tam, J. Sound Vib. 121 (1988) 135; Tam, Shen & Raman, AIAA J. 35 (1997) 1119: the vortex-sheet model of the first mode
of a rectangular jet. Powell's feedback: a wave that the shear layer carries one cell down and sound brings back.
The empirical wavelength of rectangular jets is Powell's, K = 5.2, and Krothapalli's, K = 5.0.
Scales: nozzle height h, ambient density and sound speed.
"""

from dataclasses import dataclass

import numpy as np

# Convection velocity over that of the jet, and K of the empirical wavelength: the curves that are drawn.
CONVECTION = (0.55, 0.70)
EMPIRICAL = {"Powell": 5.2, "Krothapalli": 5.0}
# Where the empirical wavelength becomes nothing: NPR of a choked nozzle.
_CHOKED = 1.893


@dataclass(frozen=True)
class Expanded:
    """The jet expanded without losses to the ambient pressure: Mach number, nozzle pressure ratio (total over ambient),
    exit over ambient pressure, velocity in c_ref, height in h."""

    mach: float
    npr: float
    pressure_ratio: float
    velocity: float
    height: float


def expanded(
    pressure_ratio: float,
    exit_mach: float = 1.0,
    gamma: float = 1.4,
    total_temperature: float = 1.0,
    aspect: float = np.inf,
) -> Expanded:
    """Of a nozzle whose exit has `pressure_ratio` times the ambient pressure and the Mach number `exit_mach`; the total
    temperature is `total_temperature` times the ambient one; `aspect`: width over height of the nozzle."""
    g = 0.5 * (gamma - 1)
    npr = pressure_ratio * (1 + g * exit_mach**2) ** (gamma / (gamma - 1))
    mach = float(np.sqrt((npr ** ((gamma - 1) / gamma) - 1) / g)) if npr > 1 else float("nan")
    velocity = mach * float(np.sqrt(total_temperature / (1 + g * mach**2)))
    power = 0.5 * (gamma + 1) / (gamma - 1)
    area = exit_mach / mach * ((1 + g * mach**2) / (1 + g * exit_mach**2)) ** power
    height = 1 + (area - 1) * (1.0 if np.isinf(aspect) else aspect / (aspect + 1))
    return Expanded(mach, float(npr), float(pressure_ratio), velocity, float(height))


def of_mach(mach: float, gamma: float = 1.4, total_temperature: float = 1.0) -> Expanded:
    """The jet of this fully expanded Mach number out of a sonic nozzle."""
    g = 0.5 * (gamma - 1)
    ratio = ((1 + g * mach**2) / (1 + g)) ** (gamma / (gamma - 1))
    return expanded(ratio, 1.0, gamma, total_temperature)


def spacing(jet: Expanded) -> float:
    """Length of a shock cell, Ls/h = 2 sqrt(Mj^2 - 1) hj/h (vortex sheet, planar)."""
    return float(2 * np.sqrt(max(jet.mach**2 - 1, 0.0)) * jet.height)


def strouhal(jet: Expanded, convection: float, cell: float | None = None) -> float:
    """St = f h/Uj of f = uc / (Ls (1 + uc/c)), uc = `convection` Uj; `cell`: Ls/h, default that of the vortex sheet."""
    return convection / ((spacing(jet) if cell is None else cell) * (1 + convection * jet.velocity))


def empirical(jet: Expanded, constant: float) -> float:
    """St = f h/Uj of the wavelength lambda/h = K sqrt(NPR - 1.893), K = `constant`."""
    return float(1 / (constant * np.sqrt(max(jet.npr - _CHOKED, 1e-12)) * jet.velocity))
