"""Solver of high order for the compressible Navier-Stokes equations on curvilinear structured grids. CPUs and GPUs run
the same kernel source."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers and editors; at run time `__getattr__` below imports these names
    from hiresx import post as post
    from hiresx.base.termination_signals import Terminated as Terminated
    from hiresx.case import Case as Case
    from hiresx.case import load as load
    from hiresx.case.wave_sums import Waves as Waves
    from hiresx.errors import HiresxError as HiresxError
    from hiresx.gradients import gradient as gradient
    from hiresx.results import open as open
    from hiresx.simulation import Simulation as Simulation
    from hiresx.simulation.blow_up_error import BlowUp as BlowUp
    from hiresx.sweeps import sweep as sweep

__version__ = "0.1.0"

# In a source tree kernels/, topology/ and cases/ lie beside this package; installed, they lie in it.
_beside = Path(__file__).parent.parent
if (_beside / "kernels" / "solver.h").is_file():
    __path__.append(str(_beside))

__all__ = [
    "BlowUp",
    "Case",
    "HiresxError",
    "Simulation",
    "Terminated",
    "Waves",
    "__version__",
    "gradient",
    "load",
    "open",
    "sweep",
]

# Resolved on first use, so that `import hiresx` and `hiresx --help` cost nothing.
_MODULES = {
    "BlowUp": "hiresx.simulation.blow_up_error",
    "Case": "hiresx.case",
    "Terminated": "hiresx.base.termination_signals",
    "load": "hiresx.case",
    "Waves": "hiresx.case.wave_sums",
    "Simulation": "hiresx.simulation",
    "HiresxError": "hiresx.errors",
    "gradient": "hiresx.gradients",
    "open": "hiresx.results",
    "sweep": "hiresx.sweeps",
}
# Packages that need no import of their own: `hiresx.post.spectrum(...)`.
_PACKAGES = ("post",)


if not TYPE_CHECKING:  # a type checker would otherwise accept any name

    def __getattr__(name: str) -> object:
        import importlib

        if name in _PACKAGES:
            return importlib.import_module(f"hiresx.{name}")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_PACKAGES})
