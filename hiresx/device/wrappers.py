"""The functions that visit points: written around every point kernel, for each target.

A wrapper stands right behind the kernel it calls, on its last line, so that it lives inside the same `#if`s and a
compiler's message about it names the kernel's own place.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import numpy as np

from hiresx import kernels
from hiresx.device.configuration import Configuration, Target, source
from hiresx.equations.storage import Storage

Shape = tuple[tuple[int, int, int], tuple[int, int, int]]

# The longest piece of a row along i that one thread takes at a time; and the shortest into which rows are cut where
# there are fewer than `ROWS` of them. Pieces begin at whole packs and do not depend on the number of threads: nor do
# results.
PIECE, SHORTEST, ROWS = 4096, 64, 64

# What a point weighs, roughly, in points of a kernel that only moves data: where packs of points are taken, and where a
# point is taken at a time, as on faces.
PACKED, SINGLE = 2, 8

# What goes ahead of the text of the native targets. A kernel's arguments travel as a row of words; `hx_shape` says into
# how many parts its work is cut and what one of them weighs, in points of a cheap kernel.
WORD = "union hx_word { long long i; double d; void *p; };"
WORDS = f"""#line 1 "words"
{WORD}
struct hx_shape {{ long long parts, weight; }};
struct hx_rows {{
    long long piece, pieces, parts;
    explicit hx_rows(const hx_word *a) : hx_rows(a[0].i, a[1].i, a[2].i) {{}}
    hx_rows(long long ni, long long nj, long long nk) {{
        const long long rows = nj > 0 && nk > 0 ? nj * nk : 0, wanted = ni * rows / {ROWS};
        piece = (wanted < {SHORTEST} ? {SHORTEST} : wanted + {SHORTEST - 1}) / {SHORTEST} * {SHORTEST};
        piece = rows >= {ROWS} || piece > {PIECE} ? {PIECE} : piece;
        pieces = ni > 0 ? (ni + piece - 1) / piece : 0;
        parts = pieces * rows;
    }}
}};
"""

# Most threads of a CUDA block. With 256 the compiler may still give every thread its 255 registers.
BLOCK_THREADS = 256

# Threads (x, y, z) of a block over a range that has room for them. Small blocks waste fewer of a multiprocessor's
# registers on the kernels that take many: on an H200 `interpolate` (FP64, 136 registers) took 0.225 ns per point with
# 128 threads and 0.350 with 256; of the shapes tried, this one was the fastest over the four heavy kernels together.
BLOCK = (32, 2, 2)

# Kernels that go better with others: along i, where a stencil's neighbours are, as many as can be; and of those that do
# little but move memory whole rows (H200, 256^3, FP32: `update` 415 us with 32x2x2, 382 with 64x4x1, 354 with 256x1x1).
BLOCKS = dict.fromkeys(("viscous_flux", "viscous_update"), (64, 4, 1))
BLOCKS |= dict.fromkeys(("update", "accumulate", "viscous_primitives"), (256, 1, 1))

# Kernels with stencils along j and k, and how many blocks along j make up a slab of theirs: blocks go through a slab
# plane by plane, so that what a stencil along k reads again is still in the GPU's second cache, which seven whole
# planes of all arrays would not fit (H200, 256^3, FP64: 5 % faster each).
SLABS = dict.fromkeys(("viscous_flux", "viscous_difference", "viscous_update"), 16)

# The same on a CPU: rows along j of a slab, through which it goes plane by plane. Seven planes of the four variables
# that a stencil along k reads are then in its second cache, 250 kB with rows of 64 nodes.
SLAB_ROWS = 8

# Kinds of kernels that a CPU has no use for.
GPU_KINDS = ("LINE_KERNEL", "ROW_KERNEL")

# Threads of a block of a row kernel, and how many such blocks are to fit a multiprocessor (H200, 256^3, FP32: 865 us
# with 16, 855 with 24, 828 with 28).
WARP = 32
ROW_BLOCKS = "(sizeof(real) == 4 ? 28 : 16)"

# Threads of a block of a line kernel, which takes lines in the order in which they lie in memory, so that none is idle
# whatever rows are long; and how many such blocks are to fit a multiprocessor: as many as what they keep on the chip
# leaves room for. In FP64 a thread may then have 255 registers; of those that keep less on the chip, to be more at a
# time with 168, none was as fast on an H200.
LINE_BLOCK = 64
LINE_BLOCKS = "(sizeof(real) == 4 ? 8 : 4)"

# What a CUDA kernel begins with.
GUARDED = "if (hx_guard && *hx_guard < real(0)) return; "

# Bytes on the chip that a block of any kernel may have of every GPU; more must be given by the launch.
ORDINARY_MEMORY = 48 * 1024


def generate(
    configuration: Configuration, target: Target, root: Path = kernels.ROOT
) -> tuple[str, dict[str, kernels.Signature]]:
    """The complete text to compile for `target`, and the kernels it declares by name.

    "cuda": `__global__ void name(guard, ni, nj, nk, <arguments>)`, a thread per point, which does nothing where there
    is a number at the address `guard` and it is negative. "cpu" and "emulated" have for every
    kernel `void name_launch(words, begin, end)`, which does the parts begin..end-1 of its work: of a point kernel rows
    of the range, words being ni, nj, nk, <arguments>, or CUDA's blocks, words being the grid's blocks and a block's
    threads, each along x, y, z, ahead of that. `hx_shape name_shape(words)` says how many parts there are.
    """
    text, found = _wrapped(flat_text(configuration, target, root), target, configuration.storage)
    return text, dict(found)


def flat_text(configuration: Configuration, target: Target, root: Path) -> str:
    """The text of the kernels themselves."""
    threads = f"#define HX_LINE_THREADS {LINE_BLOCK}\n"
    return kernels.flatten(threads + source(configuration, target, root), root)


# Every solver asks anew for the same few texts; to read one takes as long as a small run.
@lru_cache(maxsize=16)
def _wrapped(text: str, target: Target, storage: Storage) -> tuple[str, Mapping[str, kernels.Signature]]:
    """A flat text with the functions around its kernels, and these kernels by name."""
    wrapper = {"cpu": _cpu, "cuda": _cuda, "emulated": _emulated}[target]
    pieces, start = [] if target == "cuda" else [WORDS], 0
    found: dict[str, kernels.Signature] = {}
    for signature, end in kernels.declarations(text):
        if signature.kind in GPU_KINDS and target == "cpu":
            continue
        if signature.kind != "CPU_KERNEL":
            parameters = ", ".join(filter(None, ["int ni, int nj, int nk", signature.parameters]))
            names = "".join(f", {name}" for name in signature.passed)
            pieces += [text[start:end], " ", wrapper(signature, parameters, names)]
            start = end
        elif target != "cpu":
            continue
        else:
            pieces += [text[start:end], " ", _cpu_kernel(signature)]
            start = end
        found[signature.name] = _kept_as(signature, storage)
    return "".join([*pieces, text[start:]]), MappingProxyType(found)


def _kept_as(signature: kernels.Signature, storage: Storage) -> kernels.Signature:
    """The signature in plain types."""
    plain, arguments = storage.c_types, []
    for kind, name in signature.arguments:
        *const, base, star = kind.split() if kind.endswith("*") else ("", "", "")
        arguments.append((" ".join([*const, plain[base], star]) if base in plain else kind, name))
    return signature._replace(arguments=tuple(arguments))


def decoded(signature: kernels.Signature, first: int, null: bool = False) -> str:
    """The arguments out of the words `first` and following; with null pointers for those that are none."""
    words = {name: word(kind, n) for n, (kind, name) in enumerate(signature.arguments, first)}
    return "".join(f", {words.get(name, name)}" for name in (signature.passed if null else words))


def word(kind: str, number: int) -> str:
    """An argument of C type `kind` out of the word of that number."""
    member = {"int": "i", "long long": "i", "real": "d", "double": "d"}
    return f"({kind})hx_words[{number}].{member.get(kind, 'p')}"


def launcher(name: str, shape: str, statement: str) -> str:
    """The two functions by which a native target runs kernel `name` (`generate`)."""
    return (
        f'extern "C" hx_shape {name}_shape(const hx_word *hx_words) {{ (void)hx_words; return {shape}; }} '
        f'extern "C" void {name}_launch(const hx_word *hx_words, long long hx_begin, long long hx_stop) '
        f"{{ {statement} }}"
    )


def _cpu(kernel: kernels.Signature, parameters: str, names: str) -> str:
    point = f"{kernel.name}_point"
    if kernel.kind == "VECTOR_KERNEL":
        row = (
            "int i = hx_first; "
            f"for (; i + int(pack::size()) <= hx_end; i += int(pack::size())) {point}<pack>(i, j, k{names}); "
            f"for (; i < hx_end; ++i) {point}<real>(i, j, k{names});"
        )
    else:
        row = f'_Pragma("GCC ivdep") for (int i = hx_first; i < hx_end; ++i) {point}(i, j, k{names});'
    place = "const int j = int(hx_row % nj), k = int(hx_row / nj)"
    if kernel.name in SLABS:
        place = (
            f"const int hx_low = int(hx_row / ({SLAB_ROWS} * nk)) * {SLAB_ROWS}, "
            f"hx_rows_of = nj - hx_low < {SLAB_ROWS} ? nj - hx_low : {SLAB_ROWS}; "
            f"const long long hx_in = hx_row - (long long)hx_low * nk; "
            "const int j = hx_low + int(hx_in % hx_rows_of), k = int(hx_in / hx_rows_of)"
        )
    return (
        f"static void {kernel.name}_rows(long long hx_begin, long long hx_stop, {parameters}) {{ "
        "const hx_rows hx(ni, nj, nk); "
        "for (long long hx_part = hx_begin; hx_part < hx_stop; ++hx_part) { "
        "const long long hx_row = hx_part / hx.pieces, hx_from = hx_part % hx.pieces * hx.piece; "
        f"{place}, hx_first = int(hx_from), "
        "hx_end = ni - hx_from > hx.piece ? int(hx_from + hx.piece) : ni; "
        f"{row} }} }} "
    ) + launcher(
        kernel.name,
        f"{{hx_rows(hx_words).parts, {PACKED if kernel.kind == 'VECTOR_KERNEL' else SINGLE} "
        "* (hx_rows(hx_words).pieces > 1 ? hx_rows(hx_words).piece : hx_words[0].i)}",
        f"{kernel.name}_rows(hx_begin, hx_stop, int(hx_words[0].i), int(hx_words[1].i), int(hx_words[2].i)"
        f"{decoded(kernel, 3)});",
    )


def _cpu_kernel(kernel: kernels.Signature) -> str:
    arguments = decoded(kernel, 0, null=True)
    shape, call = "{1, 0}", f"(void)hx_begin, (void)hx_stop; {kernel.name}({arguments[2:]});"
    if kernel.shared:
        shape, call = f"{kernel.name}_parts({arguments[2:]})", f"{kernel.name}(hx_begin, hx_stop{arguments});"
    return launcher(kernel.name, shape, call)


def _cuda(kernel: kernels.Signature, parameters: str, names: str) -> str:
    return (
        f'extern "C" __global__ void {launch_bounds(kernel)} {kernel.name}(const real *hx_guard, {parameters}) {{ '
        f"{GUARDED}{visit(kernel, names, 'blockIdx.x', 'blockIdx.y', 'blockIdx.z')} }}"
    )


def launch_bounds(kernel: kernels.Signature) -> str:
    """How many threads a CUDA block of a kernel has at most, and how many such blocks are to fit a multiprocessor."""
    if kernel.kind == "ROW_KERNEL":
        return f"__launch_bounds__({WARP}, {ROW_BLOCKS})"
    if kernel.kind == "LINE_KERNEL":
        return f"__launch_bounds__(HX_LINE_THREADS, {LINE_BLOCKS})"
    return f"__launch_bounds__({BLOCK_THREADS})"


def visit(kernel: kernels.Signature, names: str, x: str, y: str, z: str) -> str:
    """What a thread of CUDA block (x, y, z) does, over the range ni, nj, nk and with the arguments `names`."""
    if kernel.kind == "ROW_KERNEL":
        return f"{kernel.name}_row({x}, {y}, {z}{names});"
    if kernel.kind == "LINE_KERNEL":
        return (
            f"const int hx_line = {x} * blockDim.x + threadIdx.x, i = hx_line % ni, j = hx_line / ni, "
            f"k = {z} * blockDim.z + threadIdx.z; "
            f"if (j < nj && k < nk) {kernel.name}_point(i, j, k{names});"
        )
    block_j, block_k = y, z
    if slab := SLABS.get(kernel.name):
        block_j, block_k = f"{z} * {slab} + {y} % {slab}", f"{y} / {slab}"
    return (
        f"const int hx_j = {block_j}, hx_k = {block_k}; "
        f"const int i = {x} * blockDim.x + threadIdx.x, j = hx_j * blockDim.y + threadIdx.y, "
        "k = hx_k * blockDim.z + threadIdx.z; "
        f"if (i < ni && j < nj && k < nk) {kernel.name}_point(i, j, k{names});"
    )


def _emulated(kernel: kernels.Signature, parameters: str, names: str) -> str:
    extent = "".join(f", {word('int', n)}" for n in (6, 7, 8))
    return f"{_cuda(kernel, parameters, names)} {grid_launcher(kernel.name, extent + decoded(kernel, 9))}"


def grid_launcher(name: str, passed: str) -> str:
    """The two functions by which the emulated backend runs a CUDA kernel, with the arguments `passed` behind the guard,
    over the grid of CUDA blocks that the first six words say."""
    grid, block = (", ".join(word("int", n) for n in some) for some in ((0, 1, 2), (3, 4, 5)))
    blocks, threads = (" * ".join(f"hx_words[{n}].i" for n in some) for some in ((0, 1, 2), (3, 4, 5)))
    visiting = f"hx_visit({{{grid}}}, {{{block}}}, hx_begin, hx_stop, [=] {{ {name}(nullptr{passed}); }});"
    return launcher(name, f"{{{blocks}, {SINGLE} * {threads}}}", visiting)


def kernel_shape(name: str, kind: str, extent: tuple[int, int, int], block: tuple[int, int, int]) -> Shape:
    """(grid, block) of a CUDA launch of kernel `name`, of this `kind`, `block` being that of most point kernels."""
    if kind == "ROW_KERNEL":
        ni, nj, nk = extent
        return ((ni, nj, nk) if min(extent) > 0 else (0, 0, 0)), (WARP, 1, 1)
    if kind == "LINE_KERNEL":
        return launch_shape(extent[0] * extent[1], 1, extent[2], (LINE_BLOCK, 1, 1))
    grid, threads = even_shape(*extent, BLOCKS[name]) if name in BLOCKS else launch_shape(*extent, block)
    return _in_slabs(name, grid), threads


def shape_by_block(name: str, extent: tuple[int, int, int], block: tuple[int, int, int]) -> Shape:
    """As `kernel_shape` of a point kernel, but with blocks of just these threads. What a point gets is the same: its
    thread knows its place, and no other thread."""
    return _in_slabs(name, _covering(extent, block)[0]), block


def _in_slabs(name: str, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    slab = SLABS.get(name)
    return grid if slab is None else (grid[0], grid[2] * slab, -(-grid[1] // slab))


def given_memory(kernel: kernels.Signature, real: str) -> int:
    """Bytes on the chip that a CUDA launch gives every block of a kernel whose reals are `real`: 0 where what it keeps
    fits the memory that blocks have without asking."""
    needed = kernel.own * LINE_BLOCK * np.dtype(real).itemsize
    return needed if needed > ORDINARY_MEMORY else 0


@lru_cache(maxsize=4096)
def launch_shape(ni: int, nj: int, nk: int, block: tuple[int, int, int] = BLOCK) -> Shape:
    """(grid, block) of a CUDA launch over ni x nj x nk points: blocks of `block` threads, all powers of two, and where
    a direction is thinner its threads go to the others. An empty range has an empty grid."""
    ni, nj, nk = int(ni), int(nj), int(nk)
    if min(ni, nj, nk) <= 0:
        return (0, 0, 0), (1, 1, 1)
    threads = block[0] * block[1] * block[2]
    x = min(block[0], _power(ni))
    z = min(block[2], _power(nk))
    y = min(_power(nj), threads // (x * z))
    z = min(_power(nk), threads // (x * y), 64)  # CUDA allows 64 threads along z
    x = min(_power(ni), threads // (y * z))
    return _covering((ni, nj, nk), (x, y, z))


@lru_cache(maxsize=4096)
def even_shape(ni: int, nj: int, nk: int, block: tuple[int, int, int]) -> Shape:
    """As `launch_shape`, but that rows are cut into equal pieces of up to `block`[0] points, for kernels that take long
    at a point: of a row of 97 none of 128 threads is idle but one."""
    ni, nj, nk = int(ni), int(nj), int(nk)
    if min(ni, nj, nk) <= 0:
        return (0, 0, 0), (1, 1, 1)
    threads = block[0] * block[1] * block[2]
    x = -(-ni // -(-ni // block[0]))
    y = min(nj, threads // x)
    z = min(nk, threads // (x * y), 64)
    return _covering((ni, nj, nk), (x, y, z))


def _covering(extent: tuple[int, int, int], block: tuple[int, int, int]) -> Shape:
    (ni, nj, nk), (x, y, z) = extent, block
    return (-(-ni // x), -(-nj // y), -(-nk // z)), (x, y, z)


def _power(n: int) -> int:
    """The smallest power of two that is not below n >= 1."""
    return 1 << (n - 1).bit_length()


def find(signatures: dict[str, kernels.Signature], name: str) -> kernels.Signature:
    """The signature of kernel `name`; KeyError, naming those there are, if there is no such kernel."""
    if name not in signatures:
        raise KeyError(f"no kernel {name} in this configuration; known: {', '.join(sorted(signatures))}")
    return signatures[name]
