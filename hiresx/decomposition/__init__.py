"""Every face node its connection or condition, and the ghost nodes behind them."""

from hiresx.decomposition.coordinates import extended_coordinates
from hiresx.decomposition.halo import HaloList, halo_lists, padded_shape, padding
from hiresx.decomposition.patches import Decomposition, Patch, decompose, places

__all__ = [
    "Decomposition",
    "HaloList",
    "Patch",
    "decompose",
    "extended_coordinates",
    "halo_lists",
    "padded_shape",
    "padding",
    "places",
]
