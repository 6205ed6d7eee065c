"""The compile-time choices of the kernels, and the source text that they define."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from hiresx import kernels
from hiresx.equations import DIRECTIONS, GAS_CONSERVED, GAS_GRADIENTS
from hiresx.equations.diffusivity import largest_diffusivity
from hiresx.equations.stencil import DIFFERENCE_REACH, stencil
from hiresx.equations.storage import (
    BLOCK_BITS,
    EXTENDED,
    MATRIX_FREE,
    STORAGE,
    BlockStorage,
    Precision,
    Storage,
    SweepPrecision,
    block_reals,
    factor_reals,
    line_words,
    neighbour_words,
    packed_reals,
    record_numbers,
)
from hiresx.equations.system import recorded_terms, transported_units
from hiresx.errors import HiresxError

Target = Literal["cpu", "cuda", "emulated"]
INVISCID = "none"

# Largest number of steps along a line whose data a GPU loads in advance; and the number of reals in the 64 KiB of
# shared memory that every GPU gives a thread block, here a warp.
LINE_STEPS, BLOCK_REALS = 8, 8192


@dataclass(frozen=True)
class Configuration:
    """The compile-time choices. The value of a choice with the name of a folder of kernels/ is the name of a header
    there, without its suffix.

    - `sensor`: the shock sensor of the `inviscid` scheme "hybrid". `stress`: the stress of the scheme "regularised".
    - `filter_reach`: the number of nodes that the explicit filter reads on each side, if the interpolation reads fewer.
    - `viscous_reach`: the number of nodes that the central differences of the viscous terms read on each side.
    - `reference`: the conservative state that the precision "differences" subtracts.
    - `viscosity`: a law of hiresx.case.viscosity, or "none". `viscosity_parameters`: the parameters of this law that
      differ from the defaults.
    - `turbulence`: the model of the eddy viscosity. `eddy_constant`, `eddy_prandtl`, `eddy_schmidt`: its constant, and
      its turbulent Prandtl and Schmidt numbers. `transported_ft2`: whether a model of Spalart and Allmaras has the term
      ft2. The variables that a model transports are the last of the scalars.
    - `detached_eddies`: the length by which detached-eddy simulation replaces the distance to the wall; its constant is
      `eddy_constant`.
    - `source`: pairs of the number of a conserved variable and the formula of its source, in terms of
      `source_variables` and `source_parameters`.
    - `face_formulas`: formulas of place and time for values on faces, each with its parameters.
    - `schmidt`: the Schmidt number of every passive scalar.
    - `program`: the header of the compiled program, by its path without `.h`. There are programs of the solver, of the
      vectors of integrators, of the implicit integrator, and of studies with kernels of their own.
    - `implicit_storage`, `stored_directions`, `sweep_precision`: for the implicit integrator, the number format of its
      blocks, the number of directions along which blocks are stored, and the number format of the sweeps.

    - `gamma`, `prandtl`, and the others: keys of the tables [gas] and [scheme] with the same names."""

    interpolation: str = "modified"
    weights: str = "js"
    space: str = "characteristic"
    flux: str = "steger_warming"
    flux_smoothing: float = 0.0
    epsilon: float = 1e-6
    cutoff: float = 1e-5
    positivity: str = "limiter"
    inviscid: Literal["afweno", "split", "hybrid", "regularised"] = "afweno"
    sensor: str = "none"
    stress: Literal["isotropic", "compressive"] = "isotropic"
    filter_reach: int = 0
    viscous_reach: int = DIFFERENCE_REACH
    precision: Precision = "fp64"
    reference: tuple[float, ...] = ()
    viscosity: str = INVISCID
    viscosity_parameters: tuple[tuple[str, float], ...] = ()
    turbulence: str = "none"
    eddy_constant: float = 0.0
    eddy_prandtl: float = 0.9
    eddy_schmidt: float = 0.7
    transported_ft2: bool = False
    detached_eddies: str = "none"
    source: tuple[tuple[int, str], ...] = ()
    source_variables: tuple[str, ...] = ()
    source_parameters: tuple[tuple[str, float], ...] = ()
    face_formulas: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    gamma: float = 1.4
    prandtl: float = 0.72
    schmidt: tuple[float, ...] = ()
    program: str = "solver"
    implicit_storage: BlockStorage = "fp32"
    stored_directions: int = DIRECTIONS
    sweep_precision: SweepPrecision = "fp64"

    @property
    def real(self) -> str:
        """NumPy's name of the floating-point type in which the kernels compute, "float64" or "float32"."""
        return self.storage.real

    @property
    def storage(self) -> Storage:
        """The number types in which the kernels compute and in which the arrays at the nodes are stored."""
        return STORAGE[self.precision]

    @property
    def viscous(self) -> bool:
        """Whether the kernels contain viscous terms."""
        return self.viscosity != INVISCID


# In the order of inclusion: a header may use those of earlier folders.
FOLDERS = ("weights", "space", "positivity", "interpolation", "flux")
# Those of them that the implicit integrator uses: its blocks are of first order, computed from states at nodes.
OF_IMPLICIT = ("positivity", "flux")
# The programs of the implicit integrator: all of its kernels, and the products of sweeps without stored blocks.
IMPLICIT = ("implicit", "products")

# The parts of the solver that every run on a CPU needs: headers of kernels/ that are compiled separately. Every other
# part is a header with kernels that only some runs need. And the properties of an interpolation that is not included.
USUAL = ("scheme", "every_scheme")
REACHES = ("interpolation_reach", "correction_reach")

# The include line of headers that use the chosen numerical flux, weights and space.
OF_SCHEME = ("scheme.h", "../scheme.h", "flux_between.h")


def source(configuration: Configuration, target: Target, root: Path = kernels.ROOT, part: str | None = None) -> str:
    """Return the main source text of the kernels for the compile-time choices `configuration`: its `#define`s, its
    viscosity law, and the `#include`s of the chosen headers and of solver.h with every boundary condition and term, or
    of the header of another program. `target`: "cpu", "cuda" or "emulated", which is the CUDA text for execution on the
    CPU. `root`: the folder of the kernels. `part`: only this separately compiled part of the solver, the name of a
    header of kernels/ without `.h`, with the headers that it needs; None: everything. Raises HiresxError for a choice
    without a header, and for an unknown viscosity law or parameter."""
    c = configuration
    whole, of_scheme = part is None, part in (None, "scheme") or _computes_fluxes(root / f"{part}.h")
    chosen = OF_IMPLICIT if c.program in IMPLICIT else FOLDERS if of_scheme else ("positivity",)
    headers = [_header(c, folder, root) for folder in chosen]
    headers.append(f"{part or c.program}.h")
    if c.program == "solver":
        if part in (None, "scheme") and c.inviscid == "hybrid":
            headers.append(_header(c, "sensor", root))
        headers += _of_storage(c.storage) if whole else []
        of_cases = _conditions_and_terms(root) if part in (None, "scheme") else []
        headers += [header for header in of_cases if whole or _computes_fluxes(root / header)]
    body = [f'#include "{header}"' for header in headers]
    named = kernels.flatten("\n".join(body), root)
    if c.viscous and (whole or "HX_VISCOUS" in named):
        models = [_header(c, folder, root) for folder in ("turbulence", "detached_eddies")]
        law = ["#define HX_VISCOUS", *_law(c).code().splitlines(), *(f'#include "{header}"' for header in models)]
        body = [*law, *body]
    body = [*(_source(c) if c.source and (whole or "HX_SOURCE" in named) else []), *body]
    body = [*(_face_formulas(c) if c.face_formulas and (whole or "HX_FACE_FORMULAS" in named) else []), *body]
    first = [*(["shim.h"] if target == "emulated" else []), "arithmetic.h", "storage.h", "equations.h", "gas.h"]
    body = [*(f'#include "{header}"' for header in first), *body]
    implicit = c.program in IMPLICIT
    given = [*_of_diffusion(c, root), *(_of_scheme(c, root) if of_scheme else [])]
    given += _reaches(c, root) if implicit or not of_scheme else []
    if implicit or not whole:
        # Such a text contains only the choices that it uses, so that it is the same for all other choices.
        named = kernels.flatten("\n".join(body), root)
        given = [line for line in given if re.findall(r"\w+", line)[2 if line.startswith("const") else 1] in named]
    return "\n".join([*_of_all(c, target, part, root), *given, *body]) + "\n"


def _of_all(c: Configuration, target: Target, part: str | None, root: Path) -> list[str]:
    """Yield the definitions that every text has."""
    flags = {
        "HX_EMULATED": target == "emulated",
        "HX_FP32": c.precision == "fp32",
        "HX_EXTENDED": c.precision == EXTENDED,
        **c.storage.defines,
    }
    if target == "cpu" and part is not None and part not in USUAL:
        kinds = set(kernels.declared_kernels(root / f"{part}.h").values())
        flags["HX_POINTS"] = not kinds & {"VECTOR_KERNEL", "CPU_KERNEL"}
    lines = [f"#define HX_GAMMA ({float(c.gamma)!r})"]
    lines += [f"#define {name} {value}" for name, value in _sizes(c, root).items()]
    lines += [f"#define {name}" for name, wanted in flags.items() if wanted]
    if c.storage.carries:
        lines.append(f"#define HX_REFERENCE {', '.join(f'real({number!r})' for number in _reference(c))}")
    return lines


def _reaches(c: Configuration, root: Path) -> list[str]:
    """Yield the definitions of the interpolation for texts that do not include it."""
    found = {what: kernels.trait("interpolation", c.interpolation, what, root) for what in REACHES}
    return [f"constexpr int {what} = {reach};" for what, reach in found.items()]


def parts(configuration: Configuration, root: Path = kernels.ROOT) -> tuple[str | None, ...]:
    """Return the parts in which the kernels for the compile-time choices `configuration` are compiled separately, as
    names of headers of kernels/ without `.h`. The part "scheme" depends on numerical flux, weights and interpolated
    variables but not on viscosity; for "every_scheme" the opposite is true. Boundary conditions and terms outside
    "scheme", and kernels that only some runs need, are parts by themselves. The result (None,) means that all kernels
    are compiled together. `root`: the folder of the kernels."""
    if configuration.program != "solver" or "every_scheme.h" not in _included_headers(root / "solver.h"):
        return (None,)
    of_some = [header for header in _conditions_and_terms(root) if not _computes_fluxes(root / header)]
    of_some += [*_included_headers(root / "occasional.h"), *_of_storage(configuration.storage)]
    return (*USUAL, *(header.removesuffix(".h") for header in of_some))


@kernels.cached_by_headers
def later_kernels(configuration: Configuration, root: Path) -> Mapping[str, str]:
    """Return a dictionary from the names of those kernels for the compile-time choices `configuration` that only some
    runs need to the separately compiled part that contains the kernel (the name of a header of kernels/ without `.h`).
    `root`: the folder of the kernels."""
    later: dict[str, str] = {}
    for part in parts(configuration, root):
        if part is not None and part not in USUAL:
            later |= dict.fromkeys(kernels.declared_kernels(root / f"{part}.h"), part)
    return MappingProxyType(later)


def _conditions_and_terms(root: Path) -> list[str]:
    return [f"{folder}/{name}.h" for folder in ("boundary", "terms") for name in kernels.choices(folder, root)]


def _sizes(c: Configuration, root: Path) -> dict[str, int]:
    storage, variables = c.implicit_storage, len(GAS_CONSERVED) + len(c.schmidt)
    free = storage == MATRIX_FREE
    records = record_numbers(variables, recorded_terms(c.turbulence, root)) if c.program in IMPLICIT else 0
    of_blocks = {
        "HX_MATRIX_FREE": int(free),
        "HX_STORED_DIRECTIONS": c.stored_directions,
        "HX_BLOCK_REALS": block_reals(storage, variables, c.stored_directions),
        "HX_NEIGHBOUR_BITS": BLOCK_BITS.get(storage, 32),
        "HX_NEIGHBOUR_WORDS": neighbour_words(storage, variables),
        "HX_SWEEP_BITS": 64 if c.sweep_precision == "fp64" else 32,
        "HX_HALF_SWEEPS": int(c.sweep_precision == "fp16"),
        "HX_INVERSE_REALS": packed_reals(variables**2, c.sweep_precision),
        "HX_LINE_WORDS": line_words(storage, variables, c.sweep_precision),
        "HX_FACTOR_REALS": factor_reals(storage, variables, c.sweep_precision),
        **_line_steps(storage, variables, c.sweep_precision),
        "HX_UPDATE_REALS": packed_reals(variables, c.sweep_precision),
        "HX_RIGHT_REALS": packed_reals(variables, c.sweep_precision if free else "fp64"),
        "HX_RECORD_REALS": packed_reals(records, c.sweep_precision),
        "HX_RECORD_NUMBERS": records,
    }
    return (of_blocks if c.program in IMPLICIT else {}) | {
        "HX_GAS_VARIABLES": len(GAS_CONSERVED),
        "HX_GAS_GRADIENTS": len(GAS_GRADIENTS),
        "HX_SCALARS": len(c.schmidt),
        "HX_GHOST_LAYERS": stencil(c.interpolation, root, c.filter_reach, c.viscous_reach).halo,
        "HX_VISCOUS_REACH": c.viscous_reach,
    }


def _line_steps(storage: BlockStorage, variables: int, precision: SweepPrecision) -> dict[str, int]:
    """Return how many steps of its lines a warp of a GPU loads in advance, and the number of reals of each
    (kernels/implicit/lines.h)."""
    of_node = packed_reals(variables**2, precision) + line_words(storage, variables, precision)
    reals = 32 * (of_node + packed_reals(variables, precision))
    return {"HX_LINE_STEPS": max(1, min(LINE_STEPS, BLOCK_REALS // reals)), "HX_LINE_STEP_REALS": reals}


def _of_diffusion(c: Configuration, root: Path) -> list[str]:
    """Yield the definitions for viscous terms and the diffusion of scalars."""
    largest = largest_diffusivity(c.gamma, c.prandtl, c.schmidt)
    lines = [f"#define HX_PRANDTL ({float(c.prandtl)!r})", f"#define HX_LARGEST_DIFFUSIVITY ({float(largest)!r})"]
    lines += _of_eddies(c, root)
    over = ", ".join(f"real({1 / s!r})" for s in c.schmidt)
    return [*lines, f"#define HX_OVER_SCHMIDT {over}"] if c.schmidt else lines


def _of_eddies(c: Configuration, root: Path) -> list[str]:
    """Yield the definitions for the model of the eddy viscosity and for kernels that read it."""
    count = 0
    if c.viscous:
        _header(c, "turbulence", root)
        count = kernels.trait("turbulence", c.turbulence, "eddy_fields", root)
    lines = [f"#define HX_EDDY_FIELDS {count}"]
    coefficients = kernels.trait("turbulence", c.turbulence, "eddy_coefficients", root, silent=0) if count else 0
    lines.append(f"#define HX_EDDY_COEFFICIENTS {coefficients}")
    transported = kernels.trait("turbulence", c.turbulence, "transported_variables", root, silent=0) if count else 0
    if transported > len(c.schmidt):
        raise ValueError(f'turbulence "{c.turbulence}" transports {transported}, of which schmidt has no numbers')
    has_length = kernels.trait("turbulence", c.turbulence, "transported_has_length", root, silent=0) if count else 0
    spacings = kernels.trait("detached_eddies", c.detached_eddies, "spacings", root) if has_length else 0
    lines += [f"#define HX_TRANSPORTED {transported}", f"#define HX_TRANSPORTED_FT2 {int(c.transported_ft2)}"]
    first_order = transported and kernels.trait("turbulence", c.turbulence, "transported_first_order", root)
    lines.append(f"#define HX_WALL_DISTANCE {int(transported > 0)}")
    lines.append(f"#define HX_TRANSPORTED_FIRST_ORDER {int(first_order)}")
    if transported:
        units = ", ".join(f"real({1 / unit!r})" for unit in transported_units(c.turbulence, root))
        lines.append(f"#define HX_OVER_TRANSPORTED_UNITS {units}")
    lines += [f"#define HX_SPACINGS {spacings}", f"#define HX_DETACHED {int(spacings > 0)}"]
    if not count:
        return lines
    largest = largest_diffusivity(c.gamma, c.eddy_prandtl, (c.eddy_schmidt,) if c.schmidt else ())
    numbers = {
        "HX_EDDY_CONSTANT": c.eddy_constant,
        "HX_EDDY_PRANDTL": c.eddy_prandtl,
        "HX_EDDY_SCHMIDT": c.eddy_schmidt,
        "HX_LARGEST_EDDY_DIFFUSIVITY": largest,
    }
    return lines + [f"#define {name} ({float(value)!r})" for name, value in numbers.items()]


def _source(c: Configuration) -> list[str]:
    """Return the user's sources in C++, as the kernels' `user_source(at, rate)`. at: the variables in their order."""
    from hiresx.case.formula import Formula  # imported here, like the laws below

    lines, values = ["#define HX_SOURCE"], dict(c.source_parameters)
    given = ", ".join(f"at[{n}]" for n in range(len(c.source_variables)))
    rates = {}
    for variable, text in c.source:
        known = Formula(text, c.source_variables, tuple(values))
        formula = Formula(text, c.source_variables, tuple(name for name in values if name in known.names))
        lines += formula.code(f"source_of_{variable}", values).splitlines()
        rates[variable] = f"source_of_{variable}<real>({given})"
    there = " || ".join(f"variable == {variable}" for variable in rates)
    lines.append(f"HD bool user_source_of(int variable) {{ return {there}; }}")
    body = "".join(f" rate[{variable}] = {value};" for variable, value in rates.items())
    return [*lines, f"HD void user_source(const real *at, real *rate) {{{body} }}"]


def _face_formulas(c: Configuration) -> list[str]:
    """Return the formulas of values on faces in C++, as the kernels' `user_face(which, x, y, z, t)`."""
    from hiresx.case.face_formulas import VARIABLES  # imported here, like the laws below
    from hiresx.case.formula import Formula

    lines, given = ["#define HX_FACE_FORMULAS"], ", ".join(VARIABLES)
    for n, (text, parameters) in enumerate(c.face_formulas):
        values = dict(parameters)
        lines += Formula(text, VARIABLES, tuple(values)).code(f"face_formula_{n}", values).splitlines()
    chosen = " ".join(f"if (which == {n}) return face_formula_{n}<real>({given});" for n in range(len(c.face_formulas)))
    taken = ", ".join(f"real {name}" for name in VARIABLES)
    return [*lines, f"HD real user_face(int which, {taken}) {{ {chosen} return real(0); }}"]


def _of_scheme(c: Configuration, root: Path) -> list[str]:
    """Yield the definitions for the chosen headers."""
    numbers = {"HX_EPSILON": c.epsilon, "HX_CUTOFF": c.cutoff, "HX_FLUX_SMOOTHING": c.flux_smoothing}
    lines = [f"#define {name} ({float(value)!r})" for name, value in numbers.items()]
    regularised, compressive = c.inviscid == "regularised", c.stress == "compressive"
    entropic = 6 if compressive else 1  # the entropic stress or pressure, which the flux reads
    fields = entropic if regularised else kernels.trait("flux", c.flux, "flux_fields", root, silent=0)
    lines.append(f"#define HX_FLUX_FIELDS {fields}")
    lines.append(f"#define HX_SPLIT {int(c.inviscid in ('split', 'hybrid'))}")
    lines.append(f"#define HX_SENSORS {int(c.inviscid == 'hybrid')}")
    lines.append(f"#define HX_REGULARISED {int(regularised)}")
    lines.append(f"#define HX_COMPRESSIVE {int(compressive)}")
    lines.append(f"#define HX_LIMITER {kernels.trait('positivity', c.positivity, 'limits_flux', root)}")
    if kernels.trait("interpolation", c.interpolation, "interpolates_nodes", root):
        lines.append("#define HX_INTERPOLATES_NODES")
    if kernels.trait("interpolation", c.interpolation, "interpolates_scalars", root, silent=0):
        lines.append("#define HX_INTERPOLATES_SCALARS")
    return lines


def _computes_fluxes(header: Path) -> bool:
    return any(other in OF_SCHEME for other in _included_headers(header))


def _included_headers(header: Path) -> list[str]:
    return re.findall(r'^#include "(.*)"$', header.read_text(encoding="utf-8"), re.MULTILINE)


def _of_storage(storage: Storage) -> list[str]:
    """Return the headers that only this storage needs."""
    apart = ["work_exchange.h"] if storage.work != storage.stored else []
    return apart + (["differences.h"] if storage.carries else [])


def _reference(configuration: Configuration) -> tuple[float, ...]:
    given = tuple(map(float, configuration.reference))
    if len(given) != len(GAS_CONSERVED):
        raise ValueError(f'precision "differences" needs a reference of {len(GAS_CONSERVED)} numbers, got {given}')
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
