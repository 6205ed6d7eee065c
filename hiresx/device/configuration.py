"""The compile-time choices of the kernels, and the source text that they define."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hiresx import kernels
from hiresx.equations import GAS_CONSERVED, GAS_GRADIENTS
from hiresx.equations.diffusivity import largest_diffusivity
from hiresx.equations.stencil import stencil
from hiresx.equations.storage import STORAGE, Precision, Storage
from hiresx.errors import HiresxError

Target = Literal["cpu", "cuda", "emulated"]
INVISCID = "none"


@dataclass(frozen=True)
class Configuration:
    """The compile-time choices. A choice named like a folder of kernels/ is the stem of a header in it. `viscosity`: a
    law of hiresx.case.viscosity, with its parameters that differ from the defaults, or "none". `schmidt`: the Schmidt
    number of every passive scalar. `reference`: the conservative state of the gas from which precision "differences"
    keeps differences. `program`: the header of the compiled program: the solver, the vectors of integrators, or a study
    with kernels of its own."""

    interpolation: str = "modified"
    weights: str = "js"
    space: str = "characteristic"
    flux: str = "steger_warming"
    flux_smoothing: float = 0.0
    epsilon: float = 1e-6
    positivity: str = "limiter"
    precision: Precision = "fp64"
    reference: tuple[float, ...] = ()
    viscosity: str = INVISCID
    viscosity_parameters: tuple[tuple[str, float], ...] = ()
    gamma: float = 1.4
    prandtl: float = 0.72
    schmidt: tuple[float, ...] = ()
    program: Literal["solver", "vectors", "loop_modes"] = "solver"

    @property
    def real(self) -> str:
        """The numpy name of the kernels' `real`."""
        return self.storage.real

    @property
    def storage(self) -> Storage:
        """The number types of the fields."""
        return STORAGE[self.precision]

    @property
    def viscous(self) -> bool:
        return self.viscosity != INVISCID


# In the order of inclusion: a header may use those of earlier folders.
FOLDERS = ("weights", "space", "positivity", "interpolation", "flux")


def source(configuration: Configuration, target: Target, root: Path = kernels.ROOT) -> str:
    """Return the main text of `configuration`: its `#define`s, its viscosity law, then the `#include`s of the chosen
    headers and of solver.h with every boundary condition and term, or of the header of another program.

    `target` "emulated" is "cuda" with HX_EMULATED defined and shim.h first. Raises HiresxError for a choice without a
    header, and for an unknown viscosity law or parameter.
    """
    c = configuration
    defines = {
        "HX_GAMMA": c.gamma,
        "HX_PRANDTL": c.prandtl,
        "HX_EPSILON": c.epsilon,
        "HX_FLUX_SMOOTHING": c.flux_smoothing,
        "HX_LARGEST_DIFFUSIVITY": largest_diffusivity(c.gamma, c.prandtl, c.schmidt),
    }
    headers = [_header(c, folder, root) for folder in FOLDERS]
    lines = [f"#define {name} ({float(value)!r})" for name, value in defines.items()]
    sizes = {
        "HX_GAS_VARIABLES": len(GAS_CONSERVED),
        "HX_GAS_GRADIENTS": len(GAS_GRADIENTS),
        "HX_SCALARS": len(c.schmidt),
        "HX_GHOST_LAYERS": stencil(c.interpolation, root).halo,
        "HX_FLUX_FIELDS": kernels.trait("flux", c.flux, "flux_fields", root, silent=0),
    }
    lines += [f"#define {name} {value}" for name, value in sizes.items()]
    lines += [f"#define HX_OVER_SCHMIDT {', '.join(f'real({1 / s!r})' for s in c.schmidt)}"] if c.schmidt else []
    flags = {
        "HX_EMULATED": target == "emulated",
        "HX_FP32": c.precision == "fp32",
        **c.storage.defines,
        # properties of the chosen headers that the preprocessor needs
        "HX_INTERPOLATES_NODES": kernels.trait("interpolation", c.interpolation, "interpolates_nodes", root),
        "HX_LIMITER": kernels.trait("positivity", c.positivity, "limits_flux", root),
    }
    lines += [f"#define {name}" for name, wanted in flags.items() if wanted]
    if c.storage.carries:
        lines.append(f"#define HX_REFERENCE {', '.join(f'real({number!r})' for number in _reference(c))}")
    first = [*(["shim.h"] if target == "emulated" else []), "arithmetic.h", "storage.h", "equations.h", "gas.h"]
    last = [*headers, f"{c.program}.h"]
    if c.program == "solver":
        last += _of_storage(c.storage)
        last += [f"{folder}/{name}.h" for folder in ("boundary", "terms") for name in kernels.choices(folder, root)]
    lines += [f'#include "{header}"' for header in first]
    if c.viscous:
        lines += ["#define HX_VISCOUS", *_law(c).code().splitlines()]
    lines += [f'#include "{header}"' for header in last]
    return "\n".join(lines) + "\n"


def _of_storage(storage: Storage) -> list[str]:
    """Return the headers that only this storage needs."""
    apart = ["work_exchange.h"] if storage.work != storage.stored else []
    return apart + (["differences.h"] if storage.carries else [])


def _reference(configuration: Configuration) -> tuple[float, ...]:
    given = tuple(map(float, configuration.reference))
    if len(given) != len(GAS_CONSERVED):
        raise ValueError(f'precision "differences" wants a reference of {len(GAS_CONSERVED)} numbers, got {given}')
    return given


def _law(configuration: Configuration) -> Any:
    """Return the ViscosityLaw of the configuration."""
    from hiresx.case.viscosity import VISCOSITIES  # imported here: the rest of this package needs no pydantic

    kind = VISCOSITIES.get(configuration.viscosity)
    if kind is None:
        raise _unknown("viscosity", configuration.viscosity, [INVISCID, *VISCOSITIES])
    known = [name for name in kind.model_fields if name != "law"]
    for name, _ in configuration.viscosity_parameters:
        if name not in known:
            raise _unknown(f"parameter of {configuration.viscosity} viscosity", name, known)
    return kind(**dict(configuration.viscosity_parameters))


def _header(configuration: Configuration, folder: str, root: Path) -> str:
    name = getattr(configuration, folder)
    known = kernels.choices(folder, root)
    if name not in known:
        raise _unknown(folder, name, known)
    return f"{folder}/{name}.h"


def _unknown(kind: str, name: str, known: list[str]) -> HiresxError:
    from hiresx.case.error_messages import did_you_mean

    return HiresxError(f'no {kind} is called "{name}"', did_you_mean(name, known, "known"))
