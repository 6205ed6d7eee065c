"""The case that `hiresx new --from` writes: one that `hiresx check` accepts."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hiresx import grid
from hiresx.base.shell import quote
from hiresx.case import Case
from hiresx.cli.grid_checks import check_grid
from hiresx.decomposition import decompose, extended_coordinates, patched_donors
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Range, directions_along, format_range, rectangles_of_face
from hiresx.grid.grid_report import grid_report
from hiresx.grid.patched import PATCHED
from hiresx.grid.starting_case import WAYS, Contact, case_text, contacts

# Number of times that patched faces are reduced to the nodes that can be interpolated. Each reduction moves the ghosts
# of the remaining nodes.
TURNS = 4


def case_from_grid(path: Path, connectivity: Path | None) -> tuple[str, list[str]]:
    """Return the text of a case file for the grid file `path`, and notes for the user on touching faces and on boundary
    patches that were left out. Faces that lie on other faces become patched interfaces where ghost nodes can be
    interpolated, and walls elsewhere.

    `connectivity`: the connectivity file of a Plot3D grid, or None. Raises HiresxError if the checks of grids
    (`hiresx.cli.grid_checks`) reject the case even with walls in place of all patched interfaces.
    """
    found = grid_report(path, connectivity)
    met = contacts(found)
    text = case_text(path, found, connectivity, met)
    trials: list[Callable[[], list[Contact]]] = [lambda: met]
    if any(contact.way == PATCHED for contact in met):
        trials += [lambda: _cut(path, found, connectivity, met), lambda: [_wall(contact) for contact in met]]
    for n, trial in enumerate(trials, 1):
        try:
            taken = trial()
            text = case_text(path, found, connectivity, taken)
            check_grid(_case(text))
            break
        except HiresxError as error:
            if n == len(trials):
                what = error.message.removeprefix(f"{path.resolve()}: ")
                hint = f"{error.hint}; hiresx info {quote(path)} says what the file holds"
                raise HiresxError(f"{path}: no case can start from this grid: {what}", hint) from None
    words = [f"left out, broken: {row['patch']}: {row['why']}" for row in found.get("broken", ())]
    words += [
        f"{WAYS[contact.way][0]}: block {contact.block}, face {contact.face}, nodes {format_range(contact.nodes)}, "
        f"meets {contact.others}: {WAYS[contact.way][1]}"
        for contact in taken
    ]
    return text, words


def _case(text: str) -> Case:
    return Case.from_dict(tomllib.loads(text))


def _cut(path: Path, found: dict[str, Any], connectivity: Path | None, met: Sequence[Contact]) -> list[Contact]:
    """Return the contacts. Patched ones are reduced to the nodes that can be interpolated, and the other nodes become
    walls."""
    cut = list(met)
    for _ in range(TURNS):
        case = _case(case_text(path, found, connectivity, cut))
        whole = decompose(case, grid.build(case.grid))
        fits = patched_donors.find_interpolable(whole, extended_coordinates(whole))
        known = {(whole.blocks[patch.block].name, patch.face, patch.range): parts for patch, parts in fits}
        before, cut = cut, []
        for contact in before:
            parts = known.get((contact.block, contact.face, contact.nodes), [contact.nodes])
            kept = [part for part in parts if _is_wide(part, contact)]
            cut += [replace(contact, nodes=part) for part in kept]
            cut += [replace(_wall(contact), nodes=part) for part in _rest(contact, kept) if _is_wide(part, contact)]
        if cut == before:
            break
    return cut


def _wall(contact: Contact) -> Contact:
    if contact.way != PATCHED:
        return contact
    return replace(contact, way="over" if ", over it" in contact.others else "wall")


def _is_wide(part: Range, contact: Contact) -> bool:
    """True if a part is more than a single line of the nodes of a contact; such a line belongs to the adjacent face."""
    return all(hi - lo > 1 for (lo, hi), (first, end) in zip(part, contact.nodes, strict=True) if end - first > 1)


def _rest(contact: Contact, parts: Sequence[Range]) -> list[Range]:
    """Return the nodes of a contact that lie in none of the `parts`."""
    across = directions_along(contact.face)
    first = [contact.nodes[e][0] for e in across]
    free = np.ones([contact.nodes[e][1] - contact.nodes[e][0] for e in across], dtype=bool)
    for part in parts:
        free[tuple(slice(part[e][0] - f, part[e][1] - f) for e, f in zip(across, first, strict=True))] = False
    return rectangles_of_face(contact.face, contact.nodes, free)
