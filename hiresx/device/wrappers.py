"""The wrapper functions that visit points, generated around every point kernel for each target.

A wrapper follows its kernel on the kernel's last line. It is thus inside the same `#if`s, and compiler messages about
it refer to the place of the kernel.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import numpy as np

from hiresx import kernels
from hiresx.device.configuration import USUAL, Configuration, Target, source
from hiresx.equations.storage import Storage

Shape = tuple[tuple[int, int, int], tuple[int, int, int]]

# The longest piece of a row along i that a thread takes at a time; the shortest piece, used where there are fewer than
# `ROWS` rows. Pieces begin at whole packs and do not depend on the number of threads, so that results do not either.
PIECE, SHORTEST, ROWS = 4096, 64, 64

# The cost of a point, roughly, in points of a kernel that only moves data: in kernels that process packs of points, and
# in kernels that process single points, as on faces.
PACKED, SINGLE = 2, 8

# The first lines of the text of the native targets. A kernel's arguments are a row of words. `hx_shape` holds the
# number of parts of its work, and the cost of one part in points of a cheap kernel.
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

# The largest number of threads of a CUDA block. With 256, each thread can still have 255 registers.
BLOCK_THREADS = 256

# Threads (x, y, z) of a block over a range that is large enough. Small blocks waste fewer registers of a multiprocessor
# in kernels that need many: on an H200, `interpolate` (FP64, 136 registers) took 0.225 ns per point with 128 threads
# and 0.350 with 256. Of the shapes tried, this one was the fastest for the four most expensive kernels together.
BLOCK = (32, 2, 2)

# Kernels with other block shapes: long blocks along i for stencils along i, and whole rows for kernels that mostly move
# memory (H200, 256^3, FP32: `update` 415 us with 32x2x2, 382 with 64x4x1, 354 with 256x1x1).
BLOCKS = dict.fromkeys(("viscous_flux", "viscous_update"), (64, 4, 1))
BLOCKS |= dict.fromkeys(("update", "accumulate", "viscous_primitives"), (256, 1, 1))
# Kernels of the implicit integrator that read many numbers of a node (H200, 128^3, FP32, inviscid Steger-Warming flux:
# `product_sweep` 0.091 ns per node and sweep with 32x2x2, 0.087 with this shape). A block of `split_sweep` is a part of
# one line, whose neighbours along j and k it copies to shared memory.
BLOCKS |= {"product_sweep": (64, 2, 1), "split_sweep": (64, 1, 1)}
# The wanted number of its blocks per multiprocessor, which limits registers.
POINT_BLOCKS = {"split_sweep": "(sizeof(real) == 4 ? 16 : 1)"}
# Small blocks, so that few threads wait for the last ones (H200, 128^3, FP32: 0.234 ns per node and sweep with 32x2x2,
# 0.229 with this one).
BLOCKS["colour_sweep"] = (64, 1, 1)

# Threads of a block of kernels whose points are grid lines, of which there are few: on all multiprocessors.
OF_LINES = {"factor_lines": (32, 1, 1)}

# Kernels for packs that may visit a node twice: what they write does not depend on it.
REPEATABLE = ("product_sweep", "split_sweep", "product_right", "diagonal_blocks", "implicit_blocks")

# Kernels with stencils along j and k, and the number of blocks along j in a slab. Blocks visit a slab plane by plane,
# so that the data a stencil along k reads again are still in the L2 cache, which does not hold seven whole planes of
# all arrays (H200, 256^3, FP64: 5 % faster each).
SLABS = dict.fromkeys(("viscous_flux", "viscous_difference", "viscous_update"), 16)

# Rows along j of a slab on a CPU. Seven planes of the four variables that a stencil along k reads then fit
# the L2 cache: 250 kB with rows of 64 nodes.
SLAB_ROWS = 8

# Kinds of kernels that the cpu backend does not use.
GPU_KINDS = ("LINE_KERNEL", "ROW_KERNEL", "TILE_KERNEL")

# Threads per block of a row kernel, and the wanted number of such blocks per multiprocessor (H200, 256^3, FP32: 865 us
# with 16, 855 with 24, 828 with 28).
WARP = 32
ROW_BLOCKS = "(sizeof(real) == 4 ? 28 : 16)"

# Threads per block of a line kernel, which takes lines in memory order, so that no thread is idle for any row length;
# and the wanted number of such blocks per multiprocessor, which is limited by their shared memory. In FP64 a thread may
# then have 255 registers. Variants with less shared memory, 168 registers and more blocks were slower on an H200.
LINE_BLOCK = 64
LINE_BLOCKS = "(sizeof(real) == 4 ? 8 : 4)"

# Nodes along i and j of the tile of a tile kernel, a thread for each (H100, 256^3, FP64: `split_march` 0.124 ns a point
# with 16 x 8 and three blocks on a multiprocessor, 0.104 with 16 x 12 and two).
TILE = (16, 12)
# Kernels whose tiles are twice as wide and half as high, with as many threads: they mostly move memory (H200, 256^3,
# FP64: `viscous_march` 0.0689 ns a point, and 0.0696 with the tiles of `split_march`).
WIDE = ("viscous_march",)

# Ahead of a CUDA kernel, which is found by its name. Its emulated form is called by its launcher alone.
EXPORTED = 'extern "C" '

# The first statement of a CUDA kernel.
GUARDED = "if (hx_guard && *hx_guard < real(0)) return; "

# Bytes of shared memory that a block may have on every GPU without a request by the launch.
ORDINARY_MEMORY = 48 * 1024
# Bytes that a block may have by a request on every GPU of compute capability 8.0 or more, and on older ones.
LARGE_MEMORY, OLDER_MEMORY = 99 * 1024, 64 * 1024


def generate(
    configuration: Configuration, target: Target, root: Path = kernels.ROOT
) -> tuple[str, dict[str, kernels.Signature]]:
    """Return the complete source text of the kernels for the compile-time choices `configuration`, with a wrapper
    function around each kernel that visits the points, and the signatures of the kernels by name. `root`: the folder of
    the kernels.

    `target` "cuda": `__global__ void name(guard, ni, nj, nk, <arguments>)` has a thread per point, which does nothing
    if the number at the address `guard` is negative. "cpu" and "emulated" have two functions for every kernel. `void
    name_launch(words, begin, end)` computes the parts begin..end-1 of its work. For "cpu", parts are rows of the range,
    and the words are ni, nj, nk, <arguments>. For "emulated", parts are CUDA blocks, and the words are the numbers of
    blocks of the grid and of threads of a block, along x, y, z, then ni, nj, nk, <arguments>. `hx_shape
    name_shape(words)` returns the number of parts.
    """
    text, found = generate_part(configuration, target, None, root)
    return text, dict(found)


def generate_part(
    configuration: Configuration, target: Target, part: str | None, root: Path = kernels.ROOT
) -> tuple[str, Mapping[str, kernels.Signature]]:
    """Return the source text of the kernels for the compile-time choices `configuration` with their wrapper functions,
    and the signatures of the kernels by name. `target`: "cpu", "cuda" or "emulated". `part`: only the kernels of this
    separately compiled part (`hiresx.device.configuration.parts`); None: all kernels. `root`: the folder of the
    kernels. The result is cached as long as the headers do not change. The signatures are a read-only mapping."""
    return _generate_part(configuration, target, part, root)


@kernels.cached_by_headers
def _generate_part(
    configuration: Configuration, target: Target, part: str | None, root: Path
) -> tuple[str, Mapping[str, kernels.Signature]]:
    own = None if part is None or part in USUAL else frozenset(kernels.declared_kernels(root / f"{part}.h"))
    return _wrap_kernels(flat_text(configuration, target, root, part), target, configuration.storage, own)


def flat_text(configuration: Configuration, target: Target, root: Path, part: str | None = None) -> str:
    """Return the C++ source text of the kernels for the compile-time choices `configuration` with all headers included,
    but without the wrapper functions that visit points. `target`: "cpu", "cuda" or "emulated". `root`: the folder of
    the kernels. `part`: only this separately compiled part (`hiresx.device.configuration.parts`); None: everything."""
    (i, j), threads = TILE, f"#define HX_LINE_THREADS {LINE_BLOCK}\n"
    threads += f"#define HX_WIDE_I {2 * i}\n#define HX_WIDE_J {j // 2}\n"
    threads += f"#define HX_TILE_I {i}\n#define HX_TILE_J {j}\n#define HX_TILE_THREADS {i * j}\n"
    return kernels.flatten(threads + source(configuration, target, root, part), root)


# Configurations share texts, and parsing a text takes as long as a small run.
@lru_cache(maxsize=128)
def _wrap_kernels(
    text: str, target: Target, storage: Storage, own: frozenset[str] | None
) -> tuple[str, Mapping[str, kernels.Signature]]:
    """Return a flat text with the wrappers of its kernels, or of those in `own` alone, and these kernels by name."""
    wrapper = {"cpu": _cpu_wrapper, "cuda": _cuda_wrapper, "emulated": _emulated_wrapper}[target]
    pieces, start = [] if target == "cuda" else [WORDS], 0
    found: dict[str, kernels.Signature] = {}
    for signature, end in kernels.declarations(text):
        if (signature.kind in GPU_KINDS and target == "cpu") or (own is not None and signature.name not in own):
            continue
        if signature.kind != "CPU_KERNEL":
            parameters = ", ".join(filter(None, ["int ni, int nj, int nk", signature.parameters]))
            names = "".join(f", {name}" for name in signature.passed)
            pieces += [text[start:end], " ", wrapper(signature, parameters, names)]
            start = end
        elif target != "cpu":
            continue
        else:
            pieces += [text[start:end], " ", _cpu_kernel_wrapper(signature)]
            start = end
        found[signature.name] = _in_storage_types(signature, storage)
    return "".join([*pieces, text[start:]]), MappingProxyType(found)


def _in_storage_types(signature: kernels.Signature, storage: Storage) -> kernels.Signature:
    """Return the signature with the C types of the storage."""
    plain, arguments = storage.c_types, []
    for kind, name in signature.arguments:
        *const, base, star = kind.split() if kind.endswith("*") else ("", "", "")
        arguments.append((" ".join([*const, plain[base], star]) if base in plain else kind, name))
    return signature._replace(arguments=tuple(arguments))


def decode_words(signature: kernels.Signature, first: int, null: bool = False) -> str:
    """Return the C++ text of the arguments of a kernel, read from the array hx_words of 8-byte words from index `first`
    on. `signature`: the names and types of the kernel's parameters. If `null` is true, optional arguments that are not
    passed are null pointers."""
    words = {name: word(kind, n) for n, (kind, name) in enumerate(signature.arguments, first)}
    return "".join(f", {words.get(name, name)}" for name in (signature.passed if null else words))


def word(kind: str, number: int) -> str:
    """Return the C++ expression that reads an argument of the C type `kind` from entry `number` of the array hx_words
    of 8-byte words."""
    member = {"int": "i", "long long": "i", "real": "d", "double": "d"}
    return f"({kind})hx_words[{number}].{member.get(kind, 'p')}"


def launcher(name: str, shape: str, statement: str) -> str:
    """Return the C++ text of the two functions by which the CPU runs the kernel `name`: name_launch computes parts of
    the work, and name_shape returns the number of parts (`generate`). `shape`: C++ expression for this number.
    `statement`: C++ statement that computes the parts hx_begin to hx_stop - 1."""
    return (
        f'extern "C" hx_shape {name}_shape(const hx_word *hx_words) {{ (void)hx_words; return {shape}; }} '
        f'extern "C" void {name}_launch(const hx_word *hx_words, long long hx_begin, long long hx_stop) '
        f"{{ {statement} }}"
    )


# The last nodes of a row, which do not fill a pack, are computed in a pack that begins before them.
_REPEATED = "if (i > hx_first && i < hx_end) {{ {point}<pack>(hx_end - int(pack::size()), j, k{names}); i = hx_end; }} "


def _cpu_wrapper(kernel: kernels.Signature, parameters: str, names: str) -> str:
    point = f"{kernel.name}_point"
    if kernel.kind == "VECTOR_KERNEL":
        row = (
            "int i = hx_first; "
            f"for (; i + int(pack::size()) <= hx_end; i += int(pack::size())) {point}<pack>(i, j, k{names}); "
            f"{_REPEATED.format(point=point, names=names) if kernel.name in REPEATABLE else ''}"
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
        f"{decode_words(kernel, 3)});",
    )


def _cpu_kernel_wrapper(kernel: kernels.Signature) -> str:
    arguments = decode_words(kernel, 0, null=True)
    shape, call = "{1, 0}", f"(void)hx_begin, (void)hx_stop; {kernel.name}({arguments[2:]});"
    if kernel.shared:
        shape, call = f"{kernel.name}_parts({arguments[2:]})", f"{kernel.name}(hx_begin, hx_stop{arguments});"
    return launcher(kernel.name, shape, call)


def _cuda_wrapper(kernel: kernels.Signature, parameters: str, names: str) -> str:
    return (
        f"{EXPORTED}__global__ void {launch_bounds(kernel)} {kernel.name}(const real *hx_guard, {parameters}) {{ "
        f"{GUARDED}{visit(kernel, names, 'blockIdx.x', 'blockIdx.y', 'blockIdx.z')} }}"
    )


def launch_bounds(kernel: kernels.Signature) -> str:
    """Return the CUDA launch bounds of a kernel as C++ text: the largest number of threads of a block and, for some
    kinds of kernels, the wanted number of blocks per multiprocessor."""
    if kernel.kind == "ROW_KERNEL":
        return f"__launch_bounds__({WARP}, {ROW_BLOCKS})"
    if kernel.kind == "LINE_KERNEL":
        return f"__launch_bounds__(HX_LINE_THREADS, {LINE_BLOCKS})"
    if kernel.kind == "TILE_KERNEL":
        return f"__launch_bounds__(HX_TILE_THREADS, {kernel.name}_blocks)"
    if kernel.name in POINT_BLOCKS:
        return f"__launch_bounds__({np.prod(BLOCKS[kernel.name])}, {POINT_BLOCKS[kernel.name]})"
    return f"__launch_bounds__({BLOCK_THREADS})"


def visit(kernel: kernels.Signature, names: str, x: str, y: str, z: str) -> str:
    """Return the C++ body of one CUDA thread of a kernel, which computes its point if that lies in the range ni, nj,
    nk. `names`: the text of the kernel's arguments. `x`, `y`, `z`: C++ expressions for the indexes of the thread
    block."""
    if kernel.kind == "ROW_KERNEL":
        return f"{kernel.name}_row({x}, {y}, {z}{names});"
    if kernel.kind == "TILE_KERNEL":
        i, j = tile(kernel.name)
        return f"{kernel.name}_tile(ni, nj, {x} * {i}, {y} * {j}, {z}{names});"
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


def _emulated_wrapper(kernel: kernels.Signature, parameters: str, names: str) -> str:
    extent = "".join(f", {word('int', n)}" for n in (6, 7, 8))
    kept = _cuda_wrapper(kernel, parameters, names).removeprefix(EXPORTED)
    return f"{kept} {grid_launcher(kernel.name, extent + decode_words(kernel, 9))}"


def grid_launcher(name: str, passed: str) -> str:
    """Return the C++ text of the two functions by which the emulated backend runs the CUDA kernel `name` on the CPU.
    These functions read the arguments from an array of 8-byte words, whose first six are the numbers of thread blocks
    (x, y, z) and of threads of a block (x, y, z). `passed`: the C++ text of the arguments of the kernel after the first
    one. The first argument, the guard, is a null pointer here."""
    grid, block = (", ".join(word("int", n) for n in some) for some in ((0, 1, 2), (3, 4, 5)))
    blocks, threads = (" * ".join(f"hx_words[{n}].i" for n in some) for some in ((0, 1, 2), (3, 4, 5)))
    visiting = f"hx_visit({{{grid}}}, {{{block}}}, hx_begin, hx_stop, [=] {{ {name}(nullptr{passed}); }});"
    return launcher(name, f"{{{blocks}, {SINGLE} * {threads}}}", visiting)


def kernel_shape(name: str, kind: str, extent: tuple[int, int, int], block: tuple[int, int, int]) -> Shape:
    """Return (grid, block) of a CUDA launch of the kernel `name`: the number of thread blocks, and of threads in each,
    along x, y and z. `kind`: the kind of the kernel (`Signature.kind`). `extent`: the numbers of points (ni, nj, nk).
    `block`: the threads of a block for kernels without a particular block size."""
    if kind == "ROW_KERNEL":
        ni, nj, nk = extent
        return ((ni, nj, nk) if min(extent) > 0 else (0, 0, 0)), (WARP, 1, 1)
    if kind == "TILE_KERNEL":
        tiles = _covering(extent, (*tile(name), 1))[0]
        return (tiles if min(tiles) > 0 else (0, 0, 0)), (TILE[0] * TILE[1], 1, 1)
    if kind == "LINE_KERNEL":
        return launch_shape(extent[0] * extent[1], 1, extent[2], (LINE_BLOCK, 1, 1))
    if name in OF_LINES:
        return launch_shape(*extent, OF_LINES[name])
    grid, threads = even_shape(*extent, BLOCKS[name]) if name in BLOCKS else launch_shape(*extent, block)
    return _in_slabs(name, grid), threads


def tile(name: str) -> tuple[int, int]:
    """Return the numbers of nodes along i and j of a tile of the tile kernel `name`."""
    return (2 * TILE[0], TILE[1] // 2) if name in WIDE else TILE


def shape_by_block(name: str, extent: tuple[int, int, int], block: tuple[int, int, int]) -> Shape:
    """Return (grid, block) of a CUDA launch of the point kernel `name` with thread blocks of the size `block` (x, y,
    z): the number of thread blocks, and of threads in each, along x, y and z. `extent`: the numbers of points (ni, nj,
    nk). The result at a point does not depend on the block size, since no thread depends on another one."""
    return _in_slabs(name, _covering(extent, block)[0]), block


def _in_slabs(name: str, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    slab = SLABS.get(name)
    return grid if slab is None else (grid[0], grid[2] * slab, -(-grid[1] // slab))


def dynamic_shared_memory(kernel: kernels.Signature, real: str) -> int:
    """Return the bytes of dynamic shared memory that a CUDA thread block of a kernel needs; 0 if its data fit the
    default size. `real`: NumPy's name of the floating-point type."""
    of_thread = kernel.kind == "LINE_KERNEL"
    needed = kernel.own * (LINE_BLOCK if of_thread else 1) * np.dtype(real).itemsize
    return 0 if of_thread and needed <= ORDINARY_MEMORY else needed


@lru_cache(maxsize=4096)
def launch_shape(ni: int, nj: int, nk: int, block: tuple[int, int, int] = BLOCK) -> Shape:
    """Return (grid, block) of a CUDA launch over ni x nj x nk points: the number of thread blocks, and of threads in
    each, along x, y and z. `block`: the preferred numbers of threads, all powers of two. If a direction has fewer
    points, threads are moved to other directions. An empty range has an empty grid."""
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
    """Return (grid, block) of a CUDA launch over ni x nj x nk points, whose rows along i are divided into equal
    segments of at most `block`[0] points: the number of thread blocks, and of threads in each, along x, y and z. This
    suits kernels that are expensive per point: with segments of up to 64, a row of 97 points has two of 49, and one
    idle thread."""
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
    """Return the smallest power of two that is not less than n >= 1."""
    return 1 << (n - 1).bit_length()


def find_signature(
    signatures: Mapping[str, kernels.Signature], name: str, known: Iterable[str] | None = None
) -> kernels.Signature:
    """Return the signature (parameter names and types) of the kernel `name`. Raises KeyError, with the known names, if
    there is no such kernel. `known`: the known names; None: the keys of `signatures`, whose listing may compile all
    kernels."""
    if name not in signatures:
        names = ", ".join(sorted(signatures if known is None else known))
        raise KeyError(f"no kernel {name} in this configuration; known: {names}")
    return signatures[name]
