"""The blocks of a series of field files whose nodes stay at their places, unlike refined blocks that follow the
flow."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields.field_file import read_stored
from hiresx.output.fields.field_reader import AXES, link_target


def choose_blocks(
    paths: Sequence[Path], headers: Sequence[Mapping[str, Any]], case: Mapping[str, Any], blocks: Iterable[str] | None
) -> list[str]:
    """Return the names of the wanted blocks of a series of field files, in the order of the first file. `paths`: the
    field files. `headers`: the header of each file (`field_file.describe`), with its blocks and levels of refinement.
    `case`: the case of the run. `blocks`: the names of the wanted blocks; None for all. Raises HiresxError if a wanted
    block is missing in a file or has other nodes there than in the first file. The message names this file, and the
    blocks that do not change."""
    first = list(headers[0]["blocks"])
    wanted = first if blocks is None else list(blocks)
    for name in wanted:
        if name not in first:
            raise HiresxError(f'{paths[0]} has no block "{name}"', f"there are {', '.join(first)}")
    lasting, fault = _lasting(paths, headers, case)
    missing = [name for name in wanted if name not in lasting]
    if fault is not None and (missing or blocks is None):
        kept = [name for name in first if name in lasting]
        hint = f"give blocks = {kept!r}, which are the same at all times, or " if kept else ""
        raise HiresxError(f"{fault} has other blocks than {paths[0]}", f"{hint}open the files one by one")
    return [name for name in first if name in wanted]


def _lasting(
    paths: Sequence[Path], headers: Sequence[Mapping[str, Any]], case: Mapping[str, Any]
) -> tuple[set[str], Path | None]:
    """Return the blocks that all files have with the same nodes, and the first file with other blocks than the first
    one."""
    moves = bool((case.get("refine") or {}).get("criterion"))
    blocks, fault = dict(headers[0]["blocks"]), None
    seen = {_place(paths[0], moves)}
    for path, header in zip(paths[1:], headers[1:], strict=True):
        same = header["blocks"] == headers[0]["blocks"]
        blocks = {name: size for name, size in blocks.items() if header["blocks"].get(name) == size}
        if (place := _place(path, moves)) not in seen:
            seen.add(place)
            moved = [name for name in blocks if not _same_nodes(paths[0], path, name)]
            blocks = {name: size for name, size in blocks.items() if name not in moved}
            same = same and not moved
        if not same and fault is None:
            fault = path
    return set(blocks), fault


def _place(path: Path, moves: bool) -> str:
    """Return an identifier of the coordinates of a file: files with the same one have the same coordinates. Files with
    coordinates of their own have the same one if the blocks do not change."""
    return link_target(path) or (str(path) if moves else "")


def _same_nodes(one: Path, other: Path, block: str) -> bool:
    for axis in AXES:
        here, there = read_stored(one, [block], axis), read_stored(other, [block], axis)
        if here is not None and there is not None and not np.array_equal(here[0], there[0]):
            return False
    return True
