"""High-order compressible Navier-Stokes on curvilinear structured grids, on CPUs and GPUs from one kernel source."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for those who read the sources, people's editors among them; at run time see below
    from hiresx import post as post
    from hiresx.case import Case as Case
    from hiresx.case import load as load
    from hiresx.case.waves import Waves as Waves
    from hiresx.errors import HiresxError as HiresxError
    from hiresx.results import open as open
    from hiresx.simulation import Simulation as Simulation
    from hiresx.sweeps import sweep as sweep

__version__ = "0.1.0"

# In a source tree kernels/, topology/ and cases/ lie beside this package; installed, they lie in it.
_beside = Path(__file__).parent.parent
if (_beside / "kernels" / "solver.h").is_file():
    __path__.append(str(_beside))

__all__ = ["Case", "HiresxError", "Simulation", "Waves", "__version__", "load", "open", "sweep"]

# Resolved on first use, so that `import hiresx` and `hiresx --help` cost nothing.
_HOMES = {
    "Case": "hiresx.case",
    "load": "hiresx.case",
    "Waves": "hiresx.case.waves",
    "Simulation": "hiresx.simulation",
    "HiresxError": "hiresx.errors",
    "open": "hiresx.results",
    "sweep": "hiresx.sweeps",
}
# Rooms that need no import of their own: `hiresx.post.spectrum(...)`.
_ROOMS = ("post",)


if not TYPE_CHECKING:  # to a reader of the sources it would say that there is any name

    def __getattr__(name: str) -> object:
        import importlib

        if name in _ROOMS:
            return importlib.import_module(f"hiresx.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_ROOMS})
