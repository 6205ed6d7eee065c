"""The emulated backend: the CUDA text of every kernel, run on the CPU through kernels/shim.h."""

from hiresx.device.native import NATIVE_FLAGS, NativeBackend, NativeProgram
from hiresx.device.wrappers import BLOCK


class Program(NativeProgram):
    """Kernels launched as CUDA would: over the same grid of the same blocks, of `block` threads (x, y, z)."""

    block = BLOCK

    @staticmethod
    def visit(name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        # A row kernel goes through the lanes of its warp by itself.
        shape = f"hx_shape('{name}', '{kind}', hx_extent, hx_program.block)"
        if kind == "ROW_KERNEL":
            shape = "hx_extent, (1, 1, 1)"
        return (
            f"hx_ni, hx_nj, hx_nk = hx_extent; (hx_gx, hx_gy, hx_gz), (hx_bx, hx_by, hx_bz) = {shape}",
            ("hx_gx", "hx_gy", "hx_gz", "hx_bx", "hx_by", "hx_bz", "hx_ni", "hx_nj", "hx_nk"),
        )


class Backend(NativeBackend):
    """CUDA's threads, one after the other in every block, blocks shared among threads."""

    name = "emulated"
    program = Program
    # Contracted as NVRTC does by default, which takes the processor's own fused multiply-add: -march=native.
    flags: tuple[str, ...] = ("-O2", *NATIVE_FLAGS)
