"""NVIDIA's run-time compiler through CuPy's bindings; no GPU is needed.

CuPy's own compile helpers are not used: they always flush subnormal numbers to zero, which changes FP32 results.
"""

from pathlib import Path
from typing import Any, NamedTuple

from hiresx.base import optional
from hiresx.base.notify import notify
from hiresx.device import cache
from hiresx.device.compiler import COMPILING, first_errors
from hiresx.errors import HiresxError

HINT = f"{optional.install_command('cuda13')} (cuda12 for a driver older than 580)"

# -Xptxas=-v writes the resources of every kernel to the log, which docs/make/kernel_registers.py reads.
OPTIONS = ("-std=c++17", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=true", "-Xptxas=-v")

# If a driver is present, NVRTC caches images, and a cached image has no log. Older versions do not have this option.
NO_CACHE = "--no-cache"


class CompiledImage(NamedTuple):
    """Kernels compiled for one architecture. `image`: a cubin, or PTX if NVRTC does not know the architecture. `log`:
    the messages of the compilers."""

    image: bytes
    log: str


def bindings() -> Any:
    """Return CuPy's module for NVRTC, NVIDIA's run-time compiler. Raises HiresxError if CuPy or the NVRTC library is
    not installed."""
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (RuntimeError, OSError) as error:
        raise HiresxError(f"CUDA kernels need the NVRTC library: {error}", HINT) from None
    except Exception as error:
        raise HiresxError(
            f"CUDA kernels need CuPy, which {optional.describe_import_error('cupy_backends', error)}", HINT
        ) from None
    return nvrtc


def version() -> str:
    """Return the version of NVRTC, NVIDIA's run-time compiler, as "major.minor". Raises HiresxError if it is not
    installed."""
    return ".".join(map(str, bindings().getVersion()))


def target(capability: int) -> str:
    """Return the architecture for which kernels are compiled on a GPU of the compute `capability` (90 for 9.0): its own
    architecture, such as "sm_90". For a GPU that is newer than the compiler it is the newest architecture that NVRTC
    knows, such as "compute_120", whose PTX code the driver translates."""
    known = bindings().getSupportedArchs()
    return f"sm_{capability}" if capability in known else f"compute_{max(known)}"


def compile(text: str, architecture: str) -> CompiledImage:
    """Compile the CUDA source `text` for `architecture` ("sm_90"; "compute_90" gives PTX) by NVRTC, and return the
    image and the messages. Raises HiresxError with the messages of the compiler if it fails."""
    nvrtc = bindings()
    program = nvrtc.createProgram(text, "kernels.cu", (), ())
    try:
        options = (*OPTIONS, f"-arch={architecture}")
        try:
            try:
                nvrtc.compileProgram(program, (*options, NO_CACHE))
            except nvrtc.NVRTCError:
                if NO_CACHE not in nvrtc.getProgramLog(program):
                    raise
                nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).strip("\0\n ") or str(error)
            known = ", ".join(f"sm_{number}" for number in nvrtc.getSupportedArchs())
            raise HiresxError(
                f"NVRTC does not compile the kernels for {architecture}:\n  {first_errors(log)}",
                f"NVRTC {version()} knows {known}",
            ) from None
        ptx = architecture.startswith("compute_")
        image = nvrtc.getPTX(program) if ptx else nvrtc.getCUBIN(program)
        return CompiledImage(image.encode() if isinstance(image, str) else image, nvrtc.getProgramLog(program))
    finally:
        nvrtc.destroyProgram(program)


def build(text: str, architecture: str) -> Path:
    """Return the path of the compiled image of the CUDA source `text` for `architecture`, such as "sm_90", in the cache
    of compiled kernels. It is compiled if the cache does not have it. Raises HiresxError with the messages of the
    compiler if that fails."""
    ending = "ptx" if architecture.startswith("compute_") else "cubin"
    name = f"cuda-{architecture}-{cache.key([text, *OPTIONS, architecture, version()])}.{ending}"

    def make(private: Path) -> Path:
        notify(COMPILING)
        made = private / name
        made.write_bytes(compile(text, architecture).image)
        return made

    return cache.find_or_make(name, make)


def has_kernel(image: bytes, kernel: str) -> bool:
    """Return whether the compiled file with the content `image`, a cubin or PTX, contains the kernel called
    `kernel`."""
    return f".text.{kernel}\0".encode() in image or f".entry {kernel}(".encode() in image
