"""The backends that run kernels: one small interface, and a backend per kind of device.

`backend(name)` returns a backend, and `backend.compile(Configuration(...))` a program. `program.launch(kernel, (ni, nj,
nk), **arguments)` visits points. `program.call` builds a launch for later use with `program.prepare`.
"""

from hiresx.device.configuration import Configuration, source
from hiresx.device.interface import Backend
from hiresx.errors import HiresxError

__all__ = ["NAMES", "Backend", "Configuration", "backend", "source"]

NAMES = ("cpu", "cuda", "emulated")


def backend(name: str = "auto", device: int | None = None) -> Backend:
    """Return the backend called `name`, which compiles and runs kernels: "cpu", "cuda" (an NVIDIA GPU), "emulated" (the
    CUDA kernels on the CPU) or "auto", which is cuda if a GPU can be used, else cpu. `device`: number of the GPU, as
    CUDA counts them in this process (0 by default).

    Raises HiresxError for an unknown name, and for cuda without CuPy or a GPU.
    """
    if name == "auto":
        from hiresx.device.cuda import obstacle

        name = "cpu" if obstacle() else "cuda"
    if name == "cpu":
        from hiresx.device import cpu

        return cpu.CpuBackend()
    if name == "emulated":
        from hiresx.device import emulated

        return emulated.EmulatedBackend()
    if name == "cuda":
        from hiresx.device import cuda

        return cuda.CudaBackend(device=device or 0)
    raise HiresxError(f'there is no backend "{name}"', f"backends are auto, {', '.join(NAMES)}")
