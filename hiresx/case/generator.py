"""Base class of the tables of all grid generators."""

from math import prod
from typing import TYPE_CHECKING

from hiresx.case.model import Table


class Generator(Table):
    """Base class of the tables [grid] of grid generators. Subclasses have the key `generator`, the name of the
    generator."""

    if TYPE_CHECKING:

        @property
        def generator(self) -> str:
            """Name of the grid generator, such as "box"."""
            ...

    @property
    def nodes(self) -> int:
        """Number of nodes of the grid, known before the grid is made: the product of the numbers in the key `n`, or of
        the keys n_<direction>."""
        counts = [getattr(self, name) for name in type(self).model_fields if name == "n" or name.startswith("n_")]
        return prod(counts[0]) if isinstance(counts[0], tuple) else prod(counts)
