"""The cpu backend: point kernels as loops over rows, and the kernels written by hand for the CPU."""

from hiresx.device.native import NATIVE_FLAGS, NativeBackend, NativeProgram


class CpuProgram(NativeProgram):
    """Kernels visited by loops, and CPU kernels, which visit for themselves."""

    @staticmethod
    def visit(name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        return "hx_ni, hx_nj, hx_nk = hx_extent", ("hx_ni", "hx_nj", "hx_nk")


class CpuBackend(NativeBackend):
    """Kernels for this machine's cores."""

    name = "cpu"
    program = CpuProgram
    # Of what -ffast-math does, only what leaves infinities, NaNs and the order of sums alone: errno is not set and no
    # floating-point exception is waited for.
    flags = ("-O3", *NATIVE_FLAGS, "-fno-math-errno", "-fno-trapping-math")
