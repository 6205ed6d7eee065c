"""The content of one series of output files and the nodes that each rank writes, determined once for all times."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hiresx.device.fields import output_fields
from hiresx.equations.gas import Gas
from hiresx.output.fields import block_neighbours, derived, formats, selection
from hiresx.output.fields.formats import FormatFrame, FormatSeries, WrittenSeries
from hiresx.output.fields.level_cells import cell_kinds
from hiresx.output.fields.local_regions import LocalBoxes, LocalSamples
from hiresx.output.saved import files

_TYPES: dict[str, np.dtype] = {"fp64": np.dtype("f8"), "fp32": np.dtype("f4")}


class Content:
    """The content of one series of output files. `variables` are stored with the `precision` for all blocks of the
    `solver`, or for the subset `spec` of them (None: all blocks). The files have the formats `kinds`, and their names
    begin with `name`. `case`: the case with defaults filled in as a dictionary.

    All ranks construct the object together. Raises HiresxError for a subset that does not fit the grid, and for a
    variable that the run does not have."""

    def __init__(
        self, name: str, spec: Any, variables: tuple[str, ...], precision: str, kinds: Sequence[str],
        case: Mapping[str, Any], solver: Any,
    ):  # fmt: skip
        self.name, self.variables, self.dtype, self.comm = name, variables, _TYPES[precision], solver.comm
        self.gas = Gas.of(solver.case)
        # Variables that are fields of the run and cannot be computed from others. Raises HiresxError for one that the
        # run does not have.
        self.fields = [variable for variable in variables if variable in output_fields()]
        for field in self.fields:
            solver.layout.must_have(field)
        blocks, parts, own = solver.decomposition.blocks, solver.cut.parts, [state.part for state in solver.states]
        # Rank 0 finds them for all ranks, because this reads all coordinates.
        of_grid, levels = solver.decomposition.names_of_grid, solver.decomposition.levels
        of_cells = None if levels is None else partial(cell_kinds, levels)
        pieces = files.on_root(
            self.comm,
            lambda: selection.whole(blocks) if spec is None else selection.subset(spec, blocks, of_grid, of_cells),
        )
        margin = not all(derived.about(variable).local for variable in variables)
        self.shares: list[LocalBoxes | LocalSamples] = [
            LocalBoxes(piece, blocks, own, margin)
            if isinstance(piece, selection.NodeBlock)
            else LocalSamples(piece, blocks, parts, own, self.comm.rank, self.comm.size, margin)
            for piece in pieces
        ]
        # Whether ranks wait for values of other ranks.
        self.waits = bool(self.comm.max(any(share.waits for share in self.shares)))
        # A number that is common to the temporary files of all ranks, and differs from that of all other files.
        tag = self.comm.bcast(os.getpid())
        part = "" if spec is None else selection.describe(spec)
        known = block_neighbours.encode_connections(solver.decomposition.connections) if spec is None else ""
        of_whole = levels if spec is None else None
        self.about = WrittenSeries(
            name, pieces, blocks, variables, precision, case, part, self.comm, tag, known, of_whole
        )
        made = [formats.format_of(kind).Format for kind in kinds]
        self.series = [kind(self.about) for kind in made if issubclass(kind, FormatSeries)]
        self.frames: list[Callable[..., FormatFrame]] = [kind for kind in made if not issubclass(kind, FormatSeries)]
