"""Wrapper functions that run several launches of one kernel as a single launch. They are generated on demand, besides
the wrappers for single launches (hiresx.device.wrappers).

A `Form` states what the launches have in common. ALIKE: the same extent and the same numbers; only arrays differ, and
numbers are plain arguments. MIXED: only the shape of a CUDA block; all arguments are in a table. Each CUDA block
belongs to one launch, its member, and does the same work as in a single launch of that member.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from hiresx import kernels
from hiresx.device.arguments import is_pointer
from hiresx.device.configuration import Configuration
from hiresx.device.wrappers import (
    EXPORTED,
    GUARDED,
    WORD,
    WORDS,
    decode_words,
    flat_text,
    grid_launcher,
    launch_bounds,
    visit,
    word,
)
from hiresx.kernels import Signature

# Words before the arguments of a member of a mixed launch: its first CUDA block, its number of blocks along x and y,
# and its extent.
AHEAD = 6


class Form(StrEnum):
    """Kind of a wrapper for several launches: all launches have one extent (ALIKE), or each has its own (MIXED)."""

    ALIKE = "alike"
    MIXED = "mixed"


class Entry(NamedTuple):
    """A C++ wrapper function that makes several launches of `kernel` as one. `form`: whether the launches have one
    extent."""

    kernel: str
    form: Form

    @property
    def name(self) -> str:
        """The name of the C++ wrapper function: the kernel's name, "_", and the value of `form`."""
        return f"{self.kernel}_{self.form}"


def generate_batched(
    configuration: Configuration, target: str, entries: Iterable[Entry], root: Path = kernels.ROOT
) -> str:
    """Return the complete source text of the kernels for the compile-time choices `configuration`, with the wrapper
    functions `entries`, each of which makes several launches of one kernel as a single launch. `target`: "cuda" or
    "emulated". `root`: the folder of the kernels.

    The CUDA blocks of a wrapper find their arguments in a table of 8-byte words, with a row for each of the launches
    that are joined (members). A wrapper of the form ALIKE, `name_alike(guard, ni, nj, nk, planes, <numbers>, table)`,
    gives each member `planes` CUDA blocks along z; a row holds the array addresses, and the numbers are the same for
    all members. A wrapper of the form MIXED, `name_mixed(guard, members, table)`, has a one-dimensional grid. CUDA
    block b belongs to the member number members[b], and a row holds `AHEAD` words about the grid of this member, then
    all its arguments.
    """
    assert target in ("cuda", "emulated")
    text = flat_text(configuration, "cuda" if target == "cuda" else "emulated", root)
    wanted: dict[str, list[Form]] = {}
    for entry in sorted(entries):
        wanted.setdefault(entry.kernel, []).append(entry.form)
    pieces, start = [f'#line 1 "words"\n{WORD}\n' if target == "cuda" else WORDS], 0
    for signature, end in kernels.declarations(text):
        if signature.name not in wanted:
            continue
        pieces.append(text[start:end])
        for form in wanted[signature.name]:
            entry, (cuda, passed) = Entry(signature.name, form), _FORMS[form](signature)
            launcher = grid_launcher(entry.name, passed) if target == "emulated" else ""
            bounds = launch_bounds(signature)
            exported = EXPORTED if target == "cuda" else ""
            pieces.append(f" {exported}__global__ void {bounds} {entry.name}(const real *hx_guard, {cuda} {launcher}")
        start = end
    return "".join([*pieces, text[start:]])


def _alike_text(kernel: Signature) -> tuple[str, str]:
    """Return the parameters and body of the wrapper, and how an emulated launch unpacks them from words."""
    parameters = ["int ni", "int nj", "int nk", "int hx_planes"]
    passed = [word("int", n) for n in range(6, 10)]
    values, arrays = {}, 0
    for (kind, name), parameter in zip(kernel.arguments, kernel.parameters.split(","), strict=True):
        if is_pointer(kind):
            values[name] = word(kind, arrays)
            arrays += 1
        else:
            values[name] = name
            passed.append(word(kind, 6 + len(parameters)))
            parameters.append(parameter.strip())
    passed.append(word("const hx_word *", 6 + len(parameters)))
    member = (
        "const int hx_member = blockIdx.z / hx_planes, hx_x = blockIdx.x, hx_y = blockIdx.y, "
        "hx_z = blockIdx.z - hx_member * hx_planes; "
        f"const hx_word *hx_words = hx_table + {arrays} * hx_member; "
    )
    names = "".join(f", {values.get(name, name)}" for name in kernel.passed)
    body = visit(kernel, names, "hx_x", "hx_y", "hx_z")
    text = f"{', '.join(parameters)}, const hx_word *__restrict__ hx_table) {{ {GUARDED}{member}{body} }}"
    return text, "".join(f", {of}" for of in passed)


def _mixed_text(kernel: Signature) -> tuple[str, str]:
    """Return the same as `_alike_text`, for mixed launches."""
    names = decode_words(kernel, AHEAD, null=True)
    first, along_x, along_y, ni, nj, nk = (word("int", n) for n in range(AHEAD))
    member = (
        f"const hx_word *hx_words = hx_table + {AHEAD + len(kernel.arguments)} * hx_members[blockIdx.x]; "
        f"const int hx_in = blockIdx.x - {first}, hx_along_x = {along_x}, hx_along_y = {along_y}, "
        f"ni = {ni}, nj = {nj}, nk = {nk}; "
        "const int hx_x = hx_in % hx_along_x, hx_yz = hx_in / hx_along_x, "
        "hx_y = hx_yz % hx_along_y, hx_z = hx_yz / hx_along_y; (void)ni, (void)nj, (void)nk; "
    )
    body = visit(kernel, names, "hx_x", "hx_y", "hx_z")
    tables = "const int *__restrict__ hx_members, const hx_word *__restrict__ hx_table"
    return f"{tables}) {{ {GUARDED}{member}{body} }}", f", {word('const int *', 6)}, {word('const hx_word *', 7)}"


_FORMS = {Form.ALIKE: _alike_text, Form.MIXED: _mixed_text}
