"""The free stream of the wing, and the numbers of cells of its grid."""

import numpy as np

# Half the area of the section over the square of its chord. The model's tip is a body of revolution of the section, so
# this is its planform, too.
HALF_SECTION = 0.0342


def derived(*, mach, incidence, resolution, semi_span, taper, tip):
    """Return the derived parameters by name. "u" and "v" are the velocity of the free stream divided by its speed of
    sound, inclined by `incidence` degrees. The numbers of nodes and the spacings of the grid follow from `resolution`;
    1 is the coarsest useful value. The thickness of the wing begins to decrease at `last_section`, where its chord is
    `last_chord`, so that it has the planform of the model with its rounded tip. `semi_span`: half the span, in root
    chords. `taper`: tip chord over root chord. `tip`: distance from `last_section` to the end of the wing."""
    angle = np.deg2rad(incidence)
    last_section = semi_span + HALF_SECTION * taper - tip
    if not 0.5 <= resolution <= 10:
        raise ValueError(f"resolution = {resolution:g} is not between 0.5 and 10")
    return {
        "u": float(mach * np.cos(angle)),
        "v": float(mach * np.sin(angle)),
        "n_airfoil": 2 * round(32 * resolution),
        "n_wake": round(16 * resolution),
        "n_normal": 1 + round(24 * resolution),
        "last_section": last_section,
        "last_chord": 1 - (1 - taper) * last_section / semi_span,
        "on_wing": round(22 * resolution),
        "on_tip": round(4 * resolution),
        "beyond": round(12 * resolution),
        "stretching": 1.3 ** (1 / resolution),
        "first": 0.012 / resolution,
        "edge": 0.02 / resolution,
    }
