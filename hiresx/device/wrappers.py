"""The functions that visit points: written around every point kernel, for each target.

A wrapper stands right behind the kernel it calls, on its last line, so that it lives inside the same `#if`s and a
compiler's message about it names the kernel's own place.
"""

from functools import lru_cache
from pathlib import Path

from hiresx import kernels
from hiresx.device.configuration import Configuration, Target, source

# Points that are not worth sharing among threads: waking them costs a few microseconds, which is the time of some
# thousand points of the cheapest kernel. Also the longest piece of a row along i that one thread takes at a time.
PIECE = 4096

# Most threads of a CUDA block. With 256 the compiler may still give every thread its 255 registers.
BLOCK_THREADS = 256

# Threads (x, y, z) of a block over a range that has room for them. Small blocks waste fewer of a multiprocessor's
# registers on the kernels that take many: on an H200 `interpolate` (FP64, 136 registers) took 0.225 ns per point with
# 128 threads and 0.350 with 256; of the shapes tried, this one was the fastest over the four heavy kernels together.
BLOCK = (32, 2, 2)


def generate(
    configuration: Configuration, target: Target, root: Path = kernels.ROOT
) -> tuple[str, dict[str, kernels.Signature]]:
    """The complete text to compile for `target`, and the kernels it declares by name.

    "cpu": `void name(ni, nj, nk, <arguments>)` loops over the points. "cuda": `__global__ void name(...)` with the same
    arguments, a thread per point. "emulated": that, and `void name_launch(gx, gy, gz, bx, by, bz, ni, nj, nk, ...)`.
    """
    text = kernels.flatten(source(configuration, target, root), root)
    wrapper = {"cpu": _cpu, "cuda": _cuda, "emulated": _emulated}[target]
    pieces, start, found = [], 0, {}
    for signature, end in kernels.declarations(text):
        if signature.kind != "CPU_KERNEL":
            parameters = ", ".join(filter(None, ["int ni, int nj, int nk", signature.parameters]))
            names = "".join(f", {name}" for _, name in signature.arguments)
            pieces += [text[start:end], " ", wrapper(signature, parameters, names)]
            start = end
        elif target != "cpu":
            continue
        found[signature.name] = signature
    return "".join([*pieces, text[start:]]), found


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
    return (
        f'extern "C" void {kernel.name}({parameters}) {{ '
        f"const int hx_pieces = (ni + {PIECE - 1}) / {PIECE}; "
        f'_Pragma("omp parallel for collapse(3) schedule(static) if ((long long)ni * nj * nk > {PIECE})") '
        "for (int k = 0; k < nk; ++k) for (int j = 0; j < nj; ++j) "
        "for (int hx_piece = 0; hx_piece < hx_pieces; ++hx_piece) { "
        f"const int hx_first = hx_piece * {PIECE}, hx_end = ni - hx_first > {PIECE} ? hx_first + {PIECE} : ni; "
        f"{row} }} }}"
    )


def _cuda(kernel: kernels.Signature, parameters: str, names: str) -> str:
    return (
        f'extern "C" __global__ void __launch_bounds__({BLOCK_THREADS}) {kernel.name}({parameters}) {{ '
        "const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y, "
        "k = blockIdx.z * blockDim.z + threadIdx.z; "
        f"if (i < ni && j < nj && k < nk) {kernel.name}_point(i, j, k{names}); }}"
    )


def _emulated(kernel: kernels.Signature, parameters: str, names: str) -> str:
    return (
        f"{_cuda(kernel, parameters, names)} "
        f'extern "C" void {kernel.name}_launch(int gx, int gy, int gz, int bx, int by, int bz, {parameters}) '
        f"{{ hx_visit({{gx, gy, gz}}, {{bx, by, bz}}, [=] {{ {kernel.name}(ni, nj, nk{names}); }}); }}"
    )


@lru_cache(maxsize=4096)
def launch_shape(
    ni: int, nj: int, nk: int, block: tuple[int, int, int] = BLOCK
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
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
    return (-(-ni // x), -(-nj // y), -(-nk // z)), (x, y, z)


def _power(n: int) -> int:
    """The smallest power of two that is not below n >= 1."""
    return 1 << (n - 1).bit_length()


def find(signatures: dict[str, kernels.Signature], name: str) -> kernels.Signature:
    """The signature of kernel `name`; KeyError, naming those there are, if there is no such kernel."""
    if name not in signatures:
        raise KeyError(f"no kernel {name} in this configuration; known: {', '.join(sorted(signatures))}")
    return signatures[name]
