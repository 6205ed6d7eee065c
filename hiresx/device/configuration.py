"""What is fixed when the kernels are compiled, and the text that fixes it."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hiresx import kernels
from hiresx.errors import HiresxError

Target = Literal["cpu", "cuda", "emulated"]


@dataclass(frozen=True)
class Configuration:
    """The compile-time choices. Every choice named like a folder of kernels/ is the stem of a header in it."""

    interpolation: str = "modified"
    weights: str = "js"
    space: str = "characteristic"
    flux: str = "steger_warming"
    flux_smoothing: float = 0.0
    epsilon: float = 1e-6
    positivity: str = "limiter"
    precision: Literal["fp64", "fp32"] = "fp64"
    viscosity: str = "none"
    viscosity_exponent: float = 0.75
    sutherland_temperature: float = 110.4 / 288.15
    gamma: float = 1.4
    prandtl: float = 0.72

    @property
    def real(self) -> str:
        """The numpy name of the kernels' `real`."""
        return "float32" if self.precision == "fp32" else "float64"

    @property
    def viscous(self) -> bool:
        return self.viscosity != "none"


# In the order in which a header may rely on an earlier one.
FOLDERS = ("viscosity", "weights", "space", "positivity", "interpolation", "flux")


def source(configuration: Configuration, target: Target, root: Path = kernels.ROOT) -> str:
    """The main text of `configuration`: its `#define`s, then the `#include`s of the chosen headers and of solver.h.

    `target` "emulated" is "cuda" with HX_EMULATED defined and shim.h ahead. Raises HiresxError for a choice that has
    no header.
    """
    c = configuration
    defines = {
        "HX_GAMMA": c.gamma,
        "HX_PRANDTL": c.prandtl,
        "HX_EPSILON": c.epsilon,
        "HX_FLUX_SMOOTHING": c.flux_smoothing,
        "HX_VISCOSITY_EXPONENT": c.viscosity_exponent,
        "HX_SUTHERLAND_TEMPERATURE": c.sutherland_temperature,
    }
    lines = [f"#define {name} ({float(value)!r})" for name, value in defines.items()]
    flags = {
        "HX_EMULATED": target == "emulated",
        "HX_FP32": c.precision == "fp32",
        f"HX_INTERPOLATION_{c.interpolation.upper()}": True,
        "HX_LIMITER": c.positivity == "limiter",
    }
    lines += [f"#define {name}" for name, wanted in flags.items() if wanted]
    headers = ["shim.h"] if target == "emulated" else []
    headers += ["arithmetic.h", "gas.h", *(_header(c, folder, root) for folder in FOLDERS), "solver.h"]
    lines += [f'#include "{header}"' for header in headers]
    return "\n".join(lines) + "\n"


def _header(configuration: Configuration, folder: str, root: Path) -> str:
    name = getattr(configuration, folder)
    known = kernels.choices(folder, root)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        raise HiresxError(
            f'no {folder} is called "{name}"',
            (f'did you mean "{close[0]}"? ' if close else "") + f"known: {', '.join(known) or 'none'}",
        )
    return f"{folder}/{name}.h"
