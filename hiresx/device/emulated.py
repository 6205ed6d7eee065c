"""The emulated backend: the CUDA text of every kernel, executed on the CPU by kernels/shim.h."""

from hiresx.device.arguments import CHUNK
from hiresx.device.native import NATIVE_FLAGS, NativeBackend, NativeProgram
from hiresx.device.wrappers import BLOCK, LARGE_MEMORY


class EmulatedProgram(NativeProgram):
    """CUDA kernels that are compiled for the CPU and launched over the same grids of thread blocks. `block`: the
    threads (x, y, z) of a thread block."""

    block = BLOCK
    arranges_at_once = True

    @staticmethod
    def visit(name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        """Return what the generated Python function that launches the emulated CUDA kernel `name` needs: a statement
        that sets the numbers of points, thread blocks and threads, and the names of the variables that it passes on to
        the compiled kernel. `kind`: the macro that declares the kernel, such as "KERNEL" or "ROW_KERNEL"."""
        # A row kernel loops over the lanes of its warp itself, a tile kernel over the threads of its block.
        shape = f"hx_shape('{name}', '{kind}', hx_extent, hx_program.block)"
        if kind in ("ROW_KERNEL", "TILE_KERNEL"):
            shape += "[0], (1, 1, 1)"
        return (
            f"hx_ni, hx_nj, hx_nk = hx_extent; (hx_gx, hx_gy, hx_gz), (hx_bx, hx_by, hx_bz) = {shape}",
            ("hx_gx", "hx_gy", "hx_gz", "hx_bx", "hx_by", "hx_bz", "hx_ni", "hx_nj", "hx_nk"),
        )


class EmulatedBackend(NativeBackend):
    """The backend that runs CUDA kernels on the CPU. The CUDA threads of a thread block run one after the other; thread
    blocks are distributed over CPU threads."""

    name = "emulated"
    chunk_bytes = CHUNK
    block_memory = LARGE_MEMORY
    program = EmulatedProgram
    # Fused multiply-adds as NVRTC uses by default; -march=native provides the instruction. -O2 takes 1.6 times the
    # compiler's time and saves a tenth of the kernels'.
    flags: tuple[str, ...] = ("-O1", *NATIVE_FLAGS)
