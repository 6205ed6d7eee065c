"""The cpu backend: point kernels as loops over rows, and kernels written for the CPU."""

from hiresx.device.native import NATIVE_FLAGS, NativeBackend, NativeProgram


class CpuProgram(NativeProgram):
    """Kernels compiled for the CPU. A kernel for a single point is called in a loop over the points. A CPU kernel
    contains this loop itself."""

    @staticmethod
    def visit(name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        """Return what the generated Python function that launches the kernel `name` on a CPU needs: a statement that
        unpacks the numbers of points of the launch, and the names of the variables that it passes on to the compiled
        kernel. `kind`: the macro that declares the kernel, such as "KERNEL". Neither argument changes the result."""
        return "hx_ni, hx_nj, hx_nk = hx_extent", ("hx_ni", "hx_nj", "hx_nk")


class CpuBackend(NativeBackend):
    """The backend for the CPU cores of this machine."""

    name = "cpu"
    program = CpuProgram
    # Only those options of -ffast-math that preserve infinities, NaNs and the order of sums: errno is not set and
    # floating-point exceptions do not trap.
    flags = ("-O3", *NATIVE_FLAGS, "-fno-math-errno", "-fno-trapping-math")
