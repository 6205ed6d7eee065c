"""Connectivity files of other programs, converted to the tables of a HiResX connectivity file (`connectivity.py`).

- NMF, the neutral map file of NASA Langley's GEOLAB;
- the input of CFL3D: its boundary segments and its one-to-one blocking data;
- the generic boundary file of Gridgen and Pointwise.

The form is detected from the content. Regions have the name, or the number, of the type of condition in the file. The
case gives them their boundary conditions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from hiresx.base.plural import plural
from hiresx.base.whole_files import describe_path
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, FACES, Block, direction, format_size
from hiresx.grid.patched import PATCHED

TOGETHER = "take files that belong together"
Ends = dict[int, tuple[int, int]]


@dataclass(frozen=True)
class ForeignPatch:
    """A part of a face in a file of another program. `block`: the number of the block, from 0. `ends`: for each
    direction along the face its first and last node, from 1, in the order in which the file runs through them."""

    block: int
    face: str
    ends: Ends


class Lines:
    """The lines of a text file, read one after another, with their line numbers for messages. `comment`: the character
    that begins a comment."""

    def __init__(self, path: Path, comment: str = ""):
        self.path = path
        if kind := describe_path(path):
            raise HiresxError(f"{path} {kind}", "check grid.connectivity")
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise HiresxError(f"{path}: cannot be read: {error.strerror or error}", "check grid.connectivity") from None
        lines = ((n, line.strip().rstrip("\\").strip()) for n, line in enumerate(text.splitlines(), 1))
        self._lines = [(n, line) for n, line in lines if line and not (comment and line.startswith(comment))]
        self._at = 0

    def error(self, what: str, hint: str = "correct the file, or write it again") -> NoReturn:
        """Raise HiresxError with the text `what`, the name of the file and the number of the last line read. `hint`:
        the advice to the user."""
        n = self._lines[min(self._at, len(self._lines)) - 1][0] if self._lines else 1
        raise HiresxError(f"{self.path}, line {n}: {what}", hint)

    @property
    def all(self) -> list[tuple[int, str]]:
        """All lines that are neither empty nor comments, each with its line number in the file (from 1)."""
        return self._lines

    @property
    def has_more(self) -> bool:
        """Whether there are lines that have not been read."""
        return self._at < len(self._lines)

    def next(self, what: str) -> str:
        """Read and return the next line. `what`: a description of the expected line for the error message. Raises
        HiresxError at the end of the file."""
        if not self.has_more:
            self.error(f"the file ends before {what}")
        self._at += 1
        return self._lines[self._at - 1][1]

    def peek(self) -> str:
        """Return the next line, which remains the next line to be read; "" at the end of the file."""
        return self._lines[self._at][1] if self.has_more else ""

    def integers(self, count: int, what: str) -> list[int]:
        """Read the next line and return its first `count` words as integers. `what`: a description of the expected line
        for the error message. Raises HiresxError for fewer words, and for words that are not integers."""
        words = self.next(what).replace(",", " ").split()
        try:
            return [int(word) for word in words[:count] if len(words) >= count or self.error(f"{what} is missing")]
        except ValueError:
            self.error(f"{what}: {count} whole numbers are wanted, found '{' '.join(words)[:60]}'")


def choose_reader(path: Path) -> Callable[[Path, Sequence[Block]], dict[str, Any]] | None:
    """Return the function that reads the connectivity file `path` of another program (NMF, CFL3D, Gridgen, GridPro),
    chosen by the content of the file; None for a file in the format of HiResX. The function has the arguments and the
    result of `tables`."""
    if path.suffix.lower() == ".toml":
        return None
    lines = Lines(path)
    text = [line for _, line in lines.all]
    if any(line.startswith("[[") for line in text):
        return None
    if any(line.upper().split()[:1] == ["NBLI"] for line in text):
        return _cfl3d
    plain = [line for line in text if not line.startswith("#")]
    numbers = [len(line.split()) if line.replace("-", " ").replace(" ", "").isdigit() else 0 for line in plain[:3]]
    if numbers[:2] == [1, 4]:
        return _nmf
    if numbers[:2] == [1, 1] and numbers[2] in (2, 3):
        return _gridgen
    if numbers[:1] == [1] and len(plain) > 1 and len(plain[1].split()) >= GRIDPRO_WORDS:
        return _gridpro
    return None


def tables(path: Path, blocks: Sequence[Block]) -> dict[str, Any] | None:
    """Return the connections and boundary regions in a connectivity file of another program (NMF, CFL3D, Gridgen,
    GridPro), in the form of the tables of a HiResX connectivity file; None if `path` is a HiResX file. `blocks`: the
    blocks of the grid. Raises HiresxError for an invalid line, with its number."""
    reader = choose_reader(path)
    return None if reader is None else reader(path, blocks)


def is_wall(name: str) -> bool:
    """Return whether the name of a type of boundary condition denotes a solid wall: it contains "wall" or "solid"."""
    return any(word in name.lower() for word in ("wall", "solid"))


# --- common functions


def _region(name: str, patch: ForeignPatch, blocks: Sequence[Block]) -> dict[str, Any]:
    return {"name": name, "block": blocks[patch.block].name, "face": patch.face, "range": _range(patch)}


def _range(patch: ForeignPatch) -> dict[str, list[int]]:
    return {AXES[d]: [min(ends) - 1, max(ends)] for d, ends in patch.ends.items()}


def _connection(
    own: ForeignPatch, donor: ForeignPatch, pairs: dict[int, int], blocks: Sequence[Block]
) -> dict[str, Any]:
    """Return the table of two patches. `pairs`: for each direction of the block the corresponding direction of the
    donor."""
    transform = [0, 0, 0]
    for d, e in pairs.items():
        (a, z), (b, y) = own.ends[d], donor.ends[e]
        transform[d] = (e + 1) * (1 if (z >= a) == (y >= b) else -1)
    d, e = direction(own.face), direction(donor.face)
    transform[d] = (e + 1) * (1 if own.face[1:] != donor.face[1:] else -1)
    return {
        "block": blocks[own.block].name,
        "face": own.face,
        "range": _range(own),
        "donor": blocks[donor.block].name,
        "donor_face": donor.face,
        "donor_range": _range(donor),
        "transform": transform,
    }


def _check_patch(lines: Lines, patch: ForeignPatch, blocks: Sequence[Block]) -> ForeignPatch:
    """Return the patch. Raises an error if it does not lie in an existing block."""
    if not 0 <= patch.block < len(blocks):
        lines.error(f"there is no block {patch.block + 1}: the grid has {len(blocks)}")
    size = blocks[patch.block].size
    for d, ends in patch.ends.items():
        if min(ends) < 1 or max(ends) > size[d]:
            lines.error(f"nodes {ends[0]} to {ends[1]} in direction {AXES[d]} leave block {patch.block + 1}")
    return patch


def _check_sizes(lines: Lines, sizes: Sequence[Sequence[int]], blocks: Sequence[Block]) -> None:
    found = [block.size for block in blocks]
    for n, (given, there) in enumerate(zip(sizes, found, strict=False), 1):
        if tuple(given) != there:
            texts = [format_size(size) for size in (given, there)]
            lines.error(
                f"block {n} has {texts[0]} nodes here and {texts[1]} in the grid file",
                "take files that belong together",
            )
    if len(sizes) != len(found):
        lines.error(f"{plural(len(sizes), 'block')} here and {len(found)} in the grid file", TOGETHER)


# --- NMF

# Faces 1 to 6, and the two directions along them in the order of the file's columns.
NMF_FACES = {1: "kmin", 2: "kmax", 3: "imin", 4: "imax", 5: "jmin", 6: "jmax"}
NMF_ALONG = {"k": (0, 1), "i": (1, 2), "j": (2, 0)}


def _nmf(path: Path, blocks: Sequence[Block]) -> dict[str, Any]:
    lines = Lines(path, comment="#")
    (count,) = lines.integers(1, "the number of blocks")
    sizes = [lines.integers(4, f"the size of block {n}")[1:] for n in range(1, count + 1)]
    _check_sizes(lines, sizes, blocks)
    regions, connections = [], []
    while lines.has_more:
        words = lines.next("a patch").replace("'", " ").replace('"', " ").split()
        if not words:
            continue
        name, numbers = words[0], [w for w in words[1:] if w.lstrip("-").isdigit()]
        joined = name.lower().replace("_", "-") in ("one-to-one", "1-to-1", "one-to-one-")
        if len(numbers) < (12 if joined else 6):
            lines.error(f"'{name}' with {plural(len(numbers), 'number')}, {12 if joined else 6} are wanted")
        own = _nmf_patch(lines, [int(n) for n in numbers[:6]], blocks)
        if not joined:
            regions.append(_region(name, own, blocks))
            continue
        donor = _nmf_patch(lines, [int(n) for n in numbers[6:12]], blocks)
        mine, theirs = (list(NMF_ALONG[p.face[0]]) for p in (own, donor))
        if any(w.lower().strip(".") in ("true", "t") for w in words[1:]):
            theirs.reverse()
        connections.append(_connection(own, donor, dict(zip(mine, theirs, strict=True)), blocks))
    return {"connection": connections, "region": regions}


def _nmf_patch(lines: Lines, numbers: list[int], blocks: Sequence[Block]) -> ForeignPatch:
    block, face, *ends = numbers
    if face not in NMF_FACES:
        lines.error(f"there is no face {face}: they are 1 to 6")
    name = NMF_FACES[face]
    first, second = NMF_ALONG[name[0]]
    return _check_patch(
        lines, ForeignPatch(block - 1, name, {first: (ends[0], ends[1]), second: (ends[2], ends[3])}), blocks
    )


# --- CFL3D

CFL3D_TYPES = {
    1000: "free-stream",
    1001: "symmetry",
    1002: "extrapolation",
    1003: "far-field",
    1005: "inviscid-wall",
    1011: "singular-axis-half",
    1012: "singular-axis-full",
    1013: "singular-axis-partial",
    2002: "pressure-outflow",
    2003: "total-inflow",
    2004: "viscous-wall",
    2008: "given-inflow",
    2009: "total-inflow",
}
CFL3D_SECTIONS = {"I0": "imin", "IDIM": "imax", "J0": "jmin", "JDIM": "jmax", "K0": "kmin", "KDIM": "kmax"}


def _cfl3d(path: Path, blocks: Sequence[Block]) -> dict[str, Any]:
    lines = Lines(path)
    regions: list[dict[str, Any]] = []
    connections: list[dict[str, Any]] = []
    open_: list[ForeignPatch] = []
    sides: list[list[tuple[ForeignPatch, tuple[int, int]]]] = [[], []]
    sized = is_patched = False
    while lines.has_more:
        words = lines.next("a section").split()
        if [w.upper() for w in words[:3]] == ["IDIM", "JDIM", "KDIM"]:
            _check_sizes(lines, [lines.integers(3, "IDIM JDIM KDIM") for _ in blocks], blocks)
            sized = True
        elif words[0].endswith(":") and words[0][:-1].upper() in CFL3D_SECTIONS:
            regions += _cfl3d_segments(lines, CFL3D_SECTIONS[words[0][:-1].upper()], blocks, open_)
        elif words[0].upper() == "NBLI":
            (count,) = lines.integers(1, "NBLI")
            sides = []
            for _ in range(2):
                lines.next("the head of the blocking data")
                sides.append([_cfl3d_side(lines, blocks) for _ in range(count)])
            connections += [_connection(own, donor, dict(zip(a, b, strict=True)), blocks)
                            for (own, a), (donor, b) in zip(*sides, strict=True)]  # fmt: skip
        elif words[0].upper() == "NINTER":
            is_patched = lines.integers(1, "NINTER") != [0]
    if is_patched:
        joined = [patch for side in sides for patch, _ in side]
        regions += [_region(PATCHED, patch, blocks) for patch in open_ if not any(_meet(patch, j) for j in joined)]
    if not sized:
        lines.error("no table IDIM JDIM KDIM: this is no input of CFL3D")
    return {"connection": connections, "region": regions}


def _meet(a: ForeignPatch, b: ForeignPatch) -> bool:
    """True if two patches share more than a line of nodes."""
    return (a.block, a.face) == (b.block, b.face) and all(
        min(max(a.ends[d]), max(b.ends[d])) > max(min(a.ends[d]), min(b.ends[d])) for d in a.ends
    )


def _cfl3d_segments(
    lines: Lines, face: str, blocks: Sequence[Block], open_: list[ForeignPatch]
) -> list[dict[str, Any]]:
    """Yield the boundary segments of a face. Those of type 0, which belong to other blocks, are added to `open_`."""
    along = [d for d in range(3) if d != direction(face)]
    found = []
    while lines.peek().split() and lines.peek().split()[0].lstrip("-").isdigit():
        block, _, kind, *ends, count = lines.integers(8, "a boundary segment")
        if not 1 <= block <= len(blocks):
            lines.error(f"there is no block {block}: the grid has {len(blocks)}")
        size = blocks[block - 1].size
        given = {d: (ends[2 * m], ends[2 * m + 1]) for m, d in enumerate(along)}
        whole = {d: pair if any(pair) else (1, size[d]) for d, pair in given.items()}
        if count:  # one line of names, and one line with values or the name of a file
            lines.next("the names of the data of a segment")
            lines.next("the data of a segment")
        patch = _check_patch(lines, ForeignPatch(block - 1, face, whole), blocks)
        if not kind:
            open_.append(patch)
        else:
            found.append(_region(CFL3D_TYPES.get(kind, f"bctype-{kind}"), patch, blocks))
    return found


def _cfl3d_side(lines: Lines, blocks: Sequence[Block]) -> tuple[ForeignPatch, tuple[int, int]]:
    """Return a side of a one-to-one interface, and the two directions in which its nodes run, in order."""
    _, block, *rest = lines.integers(10, "a line of the blocking data")
    first, last, along = rest[:3], rest[3:6], (rest[6] - 1, rest[7] - 1)
    if len(set(along)) != 2 or not set(along) <= {0, 1, 2}:
        lines.error(f"ISVA1, ISVA2 = {rest[6]}, {rest[7]}: two different of 1, 2 and 3 are wanted")
    (d,) = {0, 1, 2} - set(along)
    if first[d] != last[d] or not 1 <= block <= len(blocks):
        lines.error("the interface lies on no face of a block")
    face = FACES[2 * d + (first[d] > 1)]
    return _check_patch(lines, ForeignPatch(block - 1, face, {e: (first[e], last[e]) for e in along}), blocks), along


# --- GridPro

# A line of a block: its number, then type, property, neighbour and orientation of each of its six faces.
GRIDPRO_WORDS = 26


def _gridpro(path: Path, blocks: Sequence[Block]) -> NoReturn:
    raise HiresxError(
        f"{path}: a connectivity file of GridPro: how it codes the orientation of two faces is not published, and is "
        "not guessed",
        "leave grid.connectivity out, nodes that coincide are joined; or export the grid as CGNS, which says it",
    )


# --- Gridgen


def _gridgen(path: Path, blocks: Sequence[Block]) -> dict[str, Any]:
    lines = Lines(path)
    lines.next("the number of the solver")
    (count,) = lines.integers(1, "the number of blocks")
    regions, connections, sizes = [], [], []
    for n in range(count):
        size = lines.integers(len(lines.peek().split()) or 3, "the size of a block")
        if len(size) not in (2, 3):
            lines.error("the size of a block is two or three numbers")
        sizes.append([*size, 1][:3])
        lines.next("the name of a block")
        (patches,) = lines.integers(1, "the number of patches")
        for _ in range(patches):
            numbers = lines.integers(2 * len(size) + 1, "a patch")
            if n >= len(blocks):
                continue
            own, marked = _gridgen_patch(lines, n, numbers[:-1], blocks)
            if numbers[-1] >= 0:
                regions.append(_region(f"bc-{numbers[-1]}", own, blocks))
                continue
            other = lines.integers(2 * len(size) + 1, "the other side of a patch")
            donor, met = _gridgen_patch(lines, other[-1] - 1, other[:-1], blocks)
            mine, theirs = ([d for d in p.ends] for p in (own, donor))
            if len(mine) == 2 and (marked == mine[1]) != (met == theirs[1]):
                theirs.reverse()
            # The other block lists the same connection, too.
            table = _connection(own, donor, dict(zip(mine, theirs, strict=True)), blocks)
            connections.append({**table, "mutual": False})
    _check_sizes(lines, sizes, blocks)
    return {"connection": connections, "region": regions}


def _gridgen_patch(
    lines: Lines, block: int, numbers: list[int], blocks: Sequence[Block]
) -> tuple[ForeignPatch, int | None]:
    """Return a patch, and its direction that is marked by negative numbers. It corresponds to the marked direction of
    the other side."""
    pairs = {d: (numbers[2 * d], numbers[2 * d + 1]) for d in range(len(numbers) // 2)}
    marked = next((d for d, pair in pairs.items() if pair[0] < 0), None)
    plain = {d: (abs(a), abs(b)) for d, (a, b) in pairs.items()}
    flat = [d for d, (a, b) in plain.items() if a == b]
    if not 0 <= block < len(blocks):
        lines.error(f"there is no block {block + 1}: the grid has {len(blocks)}")
    thick = [d for d in flat if blocks[block].size[d] > 1]
    if len(thick) != 1:
        lines.error("the patch lies on no face of a block")
    (d,) = thick
    face = FACES[2 * d + (plain[d][0] > 1)]
    return _check_patch(
        lines, ForeignPatch(block, face, {e: ends for e, ends in plain.items() if e != d}), blocks
    ), marked
