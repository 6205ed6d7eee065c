"""The cpu backend: point kernels as loops over rows, and kernels written for the CPU."""

from hiresx.device.native import NATIVE_FLAGS, NativeBackend, NativeProgram


class CpuProgram(NativeProgram):
    """Kernels compiled for the CPU. A kernel for a single point is called in a loop over the points. A CPU kernel
    contains this loop itself."""

    @staticmethod
    def visit(name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        """Return two parts of the generated function that makes a launch on a CPU: the Python statement that sets the
        points to visit, and the names of the values that the compiled kernel gets. Here these are the numbers of
        points. `name`, `kind`: name and kind of the kernel."""
        return "hx_ni, hx_nj, hx_nk = hx_extent", ("hx_ni", "hx_nj", "hx_nk")


class CpuBackend(NativeBackend):
    """The backend for the CPU cores of this machine."""

    name = "cpu"
    program = CpuProgram
    # Only those options of -ffast-math that preserve infinities, NaNs and the order of sums: errno is not set and
    # floating-point exceptions do not trap.
    flags = ("-O3", *NATIVE_FLAGS, "-fno-math-errno", "-fno-trapping-math")
