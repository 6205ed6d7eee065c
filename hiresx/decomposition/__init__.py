"""Decomposition of the grid: the boxes of nodes that the ranks compute, the connection or boundary condition of every
face node, and ghost nodes."""

from hiresx.decomposition.coordinates import extended_coordinates
from hiresx.decomposition.domain import Domain, domain
from hiresx.decomposition.halo_copies import HaloList, halo_lists, padded_shape, padding
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition, Patch, decompose, places
from hiresx.decomposition.split_blocks import split

__all__ = [
    "Decomposition",
    "Domain",
    "HaloList",
    "Part",
    "Patch",
    "decompose",
    "domain",
    "extended_coordinates",
    "halo_lists",
    "padded_shape",
    "padding",
    "places",
    "split",
]
