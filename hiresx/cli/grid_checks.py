"""The checks of a case's grid and of the conditions at its faces, for `hiresx check`, `hiresx new --from` and
`hiresx launch --dry-run`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hiresx import grid
from hiresx.base.plural import plural
from hiresx.case import Case
from hiresx.decomposition import decompose, extended_coordinates, patched_donors
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.decomposition.patched_donors import Coordinates
from hiresx.decomposition.patches import Decomposition, poles
from hiresx.estimate.volumes import refuse_underflow
from hiresx.grid import Grid
from hiresx.grid.blocks import Block
from hiresx.grid.connectivity_check import ConnectionCheck
from hiresx.grid.doubled import refuse_doubled
from hiresx.grid.motions import format_vector
from hiresx.grid.quality import folded_cells
from hiresx.output.fields import field_output
from hiresx.rhs import boundary, compact, grid_spacings, precursor, recycling, spatial_filter, wall_distance
from hiresx.solver.case_configuration import check_stress, configuration
from hiresx.solver.sweeps import check_lines

# Ratio of neighbouring spacings above which a remark is worth it: a pulse of sound eight cells wide leaves 6e-5 of its
# height behind at a jump by 2, 2.5e-5 at one by 1.5 and 1e-5 on an even grid.
STEEP = 2.0


@dataclass(frozen=True, eq=False)
class CheckedGrid:
    """The results of the checks of a grid. `grid`: the grid. `quality`: for each block its quality. `decomposition`:
    the blocks with their connections and conditions. `proofs`: the result of the check of each connection.
    `interfaces`: for each patched face, the places of its ghosts. `extended`: the coordinates x, y, z of each block
    with ghost layers. `warnings`: warnings, as sentences."""

    grid: Grid
    quality: list[dict[str, Any]]
    decomposition: Decomposition
    proofs: Sequence[ConnectionCheck]
    interfaces: Sequence[patched_donors.PatchedDonors]
    extended: Sequence[Coordinates | GhostLayers]
    warnings: list[str]


def check_grid(case: Case) -> CheckedGrid:
    """Build the grid of `case`, check it with its connections and boundary conditions, and return all results. Raises
    HiresxError, with the position, if a Jacobian is not positive, a connection is wrong, or the grid does not fit the
    settings of the case."""
    built = grid.build(case.grid, case.directory)
    grid.check_connections(built.blocks, built.connections)
    refuse_doubled(built)
    quality = grid.quality(built)
    grid.check_jacobian(built, poles(case, built))
    for found in quality:
        refuse_underflow(case, found["block"], found["volume_min"]["value"], found["volume_min"]["node"])
    field_output.check_grid(case, built.blocks)
    decomposition = decompose(case, built)
    check_stress(configuration(case), decomposition)
    boundary.check(decomposition.patches)
    precursor.check(case, decomposition)
    recycling.check(case, decomposition)
    spatial_filter.check(case, built.blocks)
    wall_distance.check(case, decomposition)
    grid_spacings.check(case, decomposition)
    compact.check(case, case.plan, decomposition)
    check_lines(case.implicit.lines, decomposition.blocks)
    proofs = grid.check_connections(built.blocks, decomposition.connections)
    extended = extended_coordinates(decomposition)
    interfaces = patched_donors.find_donors(decomposition, extended)
    over = {frozenset((t.block, t.other)) for t in built.touching if t.over or t.other_face is None}
    pairs = sorted(sorted(pair) for pair in over)
    warnings = [
        f"block '{built.blocks[pair[0]].name}' and block '{built.blocks[pair[-1]].name}' lie over each other: each is "
        "computed by itself, nothing of one reaches the other"
        for pair in pairs
    ]
    warnings += [*stretching_notes(quality), *joint_notes(built.blocks, proofs), *folded_notes(built.blocks)]
    return CheckedGrid(built, quality, decomposition, proofs, interfaces, extended, warnings)


def stretching_notes(quality: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a warning for each block in which the ratio of neighbouring spacings along a grid line exceeds 2.
    `quality`: the result of `hiresx.grid.quality`. Spacings that have collapsed are not considered."""
    for block in quality:
        found = block["stretching"]
        yield from _steep(f"block '{block['block']}'", "", found["value"], found["node"], found["position"])


def joint_notes(blocks: Sequence[Block], proofs: Sequence[ConnectionCheck]) -> Iterator[str]:
    """Yield a warning for each connection of `blocks` across which the ratio of neighbouring spacings exceeds 2.
    `proofs`: the results of the checks of the connections. A connection that is listed in both directions gives one
    warning."""
    said = set()
    for proof in proofs:
        c = proof.connection
        if frozenset({(c.block, c.face), (c.donor, c.donor_face)}) not in said:
            across = f" across the connection of face {c.face} to block '{blocks[c.donor].name}'"
            place = blocks[c.block].node(*proof.steepest)
            for note in _steep(f"block '{blocks[c.block].name}'", across, proof.stretching, proof.steepest, place):
                said.add(frozenset({(c.block, c.face), (c.donor, c.donor_face)}))
                yield note


def _steep(who: str, where: str, ratio: float, node: Sequence[int], place: Iterable[float]) -> Iterator[str]:
    if ratio > STEEP:
        i, j, k = node
        yield (
            f"{who}: the spacing along a grid line changes by a factor of {ratio:.3g}{where} at node (i, j, k) = "
            f"({i}, {j}, {k}), (x, y, z) = {format_vector(place)}: above {STEEP:g} the scheme loses accuracy there; "
            "let spacings change by a factor of 1.2 or less from a cell to the next"
        )


def folded_notes(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield a warning for each block that has cells of negative volume although its Jacobian is positive at all
    nodes."""
    for block in blocks:
        if (found := folded_cells(block)) is not None:
            count, node = found
            yield (
                f"block '{block.name}': {plural(count, 'cell')} with a negative volume, the first at node (i, j, k) = "
                f"{node}, (x, y, z) = {format_vector(block.node(*node))}: grid lines fold over each other or cross "
                "there; untangle the grid"
            )
