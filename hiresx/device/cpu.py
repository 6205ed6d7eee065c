"""The cpu backend: point kernels as OpenMP loops, and the kernels written by hand for the CPU."""

from hiresx.device.native import NativeBackend, NativeProgram


class Program(NativeProgram):
    """Kernels visited by loops, and CPU kernels, which visit for themselves."""

    def run(self, name: str, *arguments) -> None:
        """Calls the CPU kernel `name`. Raises as `launch`."""
        caller = self._callers.get(name)
        if caller is None:
            caller = self._callers[name] = self._caller(name, name)
        caller(*arguments)


class Backend(NativeBackend):
    """Kernels for this machine's cores."""

    name = "cpu"
    program = Program
    # Of what -ffast-math does, only what leaves infinities, NaNs and the order of sums alone: errno is not set and no
    # floating-point exception is waited for.
    flags = (
        "-O3",
        "-march=native",
        "-ffp-contract=fast",
        "-std=c++17",
        "-fopenmp",
        "-fPIC",
        "-shared",
        "-Wl,-Bsymbolic",
        "-fno-math-errno",
        "-fno-trapping-math",
    )
