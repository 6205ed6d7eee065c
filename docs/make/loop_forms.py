"""The forms of the loops of the right-hand side that loop_times.py measures (loop_modes.h): the fields that
they work on, and the launches of each loop and mode.

Modes: "node", a thread per node, "line", one per grid line, "half point", one per half point; a half point that adds to
the nodes on both its sides does so with atomics, or by "two colours" one after the other.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bytes_moved import reals

from hiresx.bench import rhs
from hiresx.device.configuration import Configuration
from hiresx.device.interface import Backend, Call, Program
from hiresx.equations import DIRECTIONS, GAS_CONSERVED, GAS_GRADIENTS
from hiresx.equations.stencil import stencil
from hiresx.rhs.chunks import line_chunk, row_chunk
from hiresx.solver import case_configuration

Triple = tuple[int, int, int]

# The header of the kernels of the study, which lies beside this file, without its ending.
PROGRAM = str(Path(__file__).with_name("loop_modes"))

# Loops: what is computed.
INTERPOLATION = "interpolation"
FLUX = "numerical flux and its difference"
DIFFERENCE = "flux difference alone"
VISCOUS_FLUX = "viscous flux"
VISCOUS_DIFFERENCE = "viscous difference"
WHOLE = "inviscid terms of a direction"
LOOPS = (INTERPOLATION, FLUX, DIFFERENCE, VISCOUS_FLUX, VISCOUS_DIFFERENCE, WHOLE)

_GAS, _W = len(GAS_CONSERVED), len(GAS_GRADIENTS)
_FLUX_READ = 3 + 3 * _GAS + 1  # m, minus, plus, f, pressure
# What lies in a stencil, and so is gone through by each of two colours: m, f, pressure.
_STENCIL = 3 + _GAS + 1
# Reals read and written per visited node, as in bytes_moved.py, whose table has the solver's kernels; of
# two colours what both take together, though each visits half of them.
_MOVED = {
    "interpolate_half": (8, 10),
    "interpolate_line": (8, 10),
    "flux_gather": (_FLUX_READ + _GAS, _GAS),
    "flux_scatter": (_FLUX_READ + _GAS, _GAS),
    "flux_coloured": (_FLUX_READ + _STENCIL + 2 * _GAS, 2 * _GAS),
    "flux_line": (_FLUX_READ + _GAS, _GAS),
    "difference_scatter": (2 * _GAS, _GAS),
    "difference_coloured": (3 * _GAS, 2 * _GAS),
    "difference_line": (2 * _GAS, _GAS),
    "zero": (0, 3 * _W),
    "gradient_node": (_W + 3 + 3 * _W, 3 * _W),  # w, m, gradient
    "gradient_gather": (_W + 3 + 3 * _W, 3 * _W),
    "gradient_scatter": (_W + 3 + 3 * _W, 3 * _W),
    "gradient_coloured": (2 * (_W + 3 + 3 * _W), 6 * _W),
    "gradient_stress": (_W + 9 + 1 + 3 * _W, 3 * _W),
    "viscous_flux_line": (_W + 9 + 1, 3 * _W),
    "viscous_difference_gather": (4 * _W, _W),
    "viscous_difference_scatter": (2 * _W, _W),
    "viscous_difference_coloured": (4 * _W, 2 * _W),
    "viscous_difference_line": (2 * _W, _W),
}


class Form(NamedTuple):
    """One way of a loop: `calls` are its launches, those of the solver's decomposed plan if it is `solvers`; `results`
    are the arrays it changes, and adds to if `adds`; `direction` is None for all directions; `atomics`: whether several
    threads add to one number."""

    loop: str
    mode: str
    direction: int | None
    calls: list[Call]
    results: tuple[Any, ...]
    adds: bool
    atomics: bool = False
    solvers: bool = False


def study(precision: str) -> Configuration:
    """The choices of `hiresx.bench.rhs.flow`, viscous, compiled with the kernels of the study."""
    return replace(case_configuration.configuration(rhs.flow(rhs.LEAST_NODES, True, precision)), program=PROGRAM)


def moved(form: Form) -> int:
    """Reals that `form` moves per node at least: every value read or written once in each of its launches."""
    total, seen = 0.0, set()
    for call in form.calls:
        name = call.name
        if name == "viscous_difference":  # in the directions that have a stride
            total += 2 * _W + _W * sum(call.arguments[d] != 0 for d in ("di", "dj", "dk"))
        elif name == "gradient_node" and call.arguments["first"]:
            total += sum(_MOVED[name]) - 3 * _W
        elif name.endswith("_coloured"):
            key = name, call.arguments["direction"]
            total += 0 if key in seen else sum(_MOVED[name])
            seen.add(key)
        else:
            total += sum(_MOVED[name]) if name in _MOVED else reals(name, call.arguments)
    return int(total)


class Fields:
    """Fields on n^3 nodes with ghosts, smooth, nowhere uniform, with areas that are nearly those of a uniform grid; and
    the forms of the loops on them. `cut`: whether the fused sweeps cut lines into chunks, as they do to fill a GPU."""

    def __init__(self, device: Backend, n: int, configuration: Configuration, cut: bool = True):
        self.backend, self.configuration, self.n, self.cut = device, configuration, n, cut
        self.program: Program = device.compile(configuration)
        real, self.halo = configuration.real, stencil(configuration.interpolation).halo
        side = n + 2 * self.halo
        self.shape, self.strides, self.variable_stride = (side,) * 3, (1, side, side * side), side**3
        self.origin = self.halo * sum(self.strides)
        self.q = self._smooth((1.0, 0.3, 0.2, -0.1, 2.5), real)
        self.m = self._smooth(np.eye(3).ravel(), real)
        self.jacobian = self._smooth((1.0,), real)
        self.r = self._smooth((0.1,) * _GAS, real)

        def empty(count: int) -> Any:
            return device.zeros((count, *self.shape), real)

        # what interpolation gives; what the numerical flux is written over; the fluxes of a direction
        self.states, self.minus, self.plus, self.fluxes = (empty(_GAS) for _ in range(4))
        self.f, self.pressure = empty(_GAS), empty(1)
        # where interpolation finds that the flux is to be limited
        self.rough = device.zeros(self.shape, "int8")
        self.w, self.viscous_flux, self.gradient = empty(_W), empty(3 * _W), empty(3 * _W)
        everywhere = (0, 0, 0), (side,) * 3
        self._run("viscous_primitives", *everywhere, q=self.q, w=self.w)
        self.program.run(self._viscous_flux())

    def _smooth(self, means: Any, real: str) -> Any:
        """One variable for each of `means`, which varies by a tenth of it, or by a tenth about 0."""
        target = self.backend.empty((len(means), *self.shape), real)
        for v, mean in enumerate(map(float, means)):
            waves = (0.05 * np.sin(2 * np.pi * np.arange(n) / n + v + d) for d, n in enumerate(self.shape))
            k, j, i = (self.backend.to_device(wave.astype(real)) for wave in waves)
            # Where the arrays are: a GPU would wait for the host to do it, and for the copy.
            target[v] = mean + (mean or 1.0) * (k[:, None, None] * (1 + j[:, None]) + j[:, None] + i)
        return target

    # --- launches

    def _call(self, kernel: str, begin: Triple, extent: Triple, **arguments: Any) -> Call:
        """Of nodes begin.. in the array with ghosts."""
        o = sum(b * s for b, s in zip(begin, self.strides, strict=True))
        return self.program.call(
            kernel, extent, o=o, sj=self.strides[1], sk=self.strides[2], sv=self.variable_stride, **arguments
        )

    def _run(self, kernel: str, begin: Triple, extent: Triple, **arguments: Any) -> None:
        self.program.run(self._call(kernel, begin, extent, **arguments))

    def _along(self, kernel: str, d: int, low: int, high: int, /, **arguments: Any) -> Call:
        """Of nodes, or half points, low..n-1+high of direction d."""
        begin, extent = [self.halo] * 3, [self.n] * 3
        begin[d] += low
        extent[d] += high - low
        return self._call(kernel, _triple(begin), _triple(extent), sd=self.strides[d], **arguments)

    def _lines(self, kernel: str, d: int, **arguments: Any) -> Call:
        """Of all lines along direction d."""
        others = [self.strides[e] for e in range(DIRECTIONS) if e != d]
        extent, strides = ((1, self.n, self.n), others) if d == 0 else ((self.n, self.n, 1), [others[1]] * 2)
        return self.program.call(
            kernel, extent, o=self.origin, sj=strides[0], sk=strides[1], sd=self.strides[d], n=self.n,
            sv=self.variable_stride, **arguments,
        )  # fmt: skip

    def _colours(self, kernel: str, d: int, **arguments: Any) -> list[Call]:
        """Of half points -1, 1, ... and of 0, 2, ... of direction d."""
        calls = []
        for first, count in ((-1, (self.n + 2) // 2), (0, (self.n + 1) // 2)):
            begin, extent = [self.halo] * 3, [self.n] * 3
            begin[d] += first
            extent[d] = count
            calls.append(
                self._call(kernel, _triple(begin), _triple(extent), sd=self.strides[d], direction=d, **arguments)
            )
        return calls

    def _inner(self, kernel: str, **arguments: Any) -> Call:
        return self._call(kernel, (self.halo,) * 3, (self.n,) * 3, **arguments)

    def _derivatives(self, d: int | None = None) -> dict[str, int]:
        """Strides of the derivatives in direction d, or in all."""
        return {f"d{'ijk'[e]}": self.strides[e] if d in (None, e) else 0 for e in range(DIRECTIONS)}

    def _viscous_flux(self) -> Call:
        return self._inner(
            "viscous_flux", **self._derivatives(), w=self.w, m=self.m, jacobian=self.jacobian, inverse_reynolds=0.01,
            flux=self.viscous_flux,
        )  # fmt: skip

    # --- forms

    def prepare(self, d: int) -> None:
        """The states and fluxes of direction d, for its forms."""
        m = self.m[3 * d : 3 * d + 3]
        states = {"minus": self.states, "plus": self.plus, "rough": self.rough}
        self.program.run(self._along("interpolate", d, -1, 1, q=self.q, m=m, **states))
        self.program.run(self._physical_flux(d))
        self.restore()
        self.program.run(self._numerical_flux(d))
        self.backend.copy(self.fluxes, self.minus)
        self.restore()

    def restore(self) -> None:
        """The states that a numerical flux was written over."""
        self.backend.copy(self.minus, self.states)

    def _physical_flux(self, d: int) -> Call:
        begin, extent = [self.halo] * 3, [self.n] * 3
        begin[d], extent[d] = 0, self.n + 2 * self.halo
        m = self.m[3 * d : 3 * d + 3]
        return self._call(
            "physical_flux", _triple(begin), _triple(extent), q=self.q, m=m, f=self.f, pressure=self.pressure
        )

    def _numerical_flux(self, d: int) -> Call:
        return self._along(
            "numerical_flux", d, -1, 0, q=self.q, m=self.m[3 * d : 3 * d + 3], f=self.f, pressure=self.pressure,
            minus=self.minus, plus=self.plus, rough=self.rough,
        )  # fmt: skip

    def _has(self, kernel: str) -> bool:
        return kernel in self.program.signatures

    def of_direction(self, d: int) -> Iterator[Form]:
        """The forms that work along direction d, the solver's own first of each loop."""
        r, m = self.r, self.m[3 * d : 3 * d + 3]
        states = {"q": self.q, "m": m, "minus": self.minus, "plus": self.plus, "rough": self.rough}
        sides, rates = (self.minus, self.plus), (r,)
        interpolate = self._along("interpolate", d, -1, 1, **states)
        yield Form(INTERPOLATION, "node", d, [interpolate], sides, False, solvers=True)
        half = self._along("interpolate_half", d, -1, 0, **states)
        yield Form(INTERPOLATION, "half point, both its nodes", d, [half], sides, False)
        yield Form(INTERPOLATION, "line", d, [self._lines("interpolate_line", d, **states)], sides, False)

        given = states | {"f": self.f, "pressure": self.pressure}
        difference = self._along("flux_difference", d, 0, 0, flux=self.minus, r=r, first=0)
        own = [self._numerical_flux(d), difference]
        yield Form(FLUX, "half point, then node", d, own, rates, True, solvers=True)
        yield from self._others(FLUX, "flux", d, given | {"r": r}, gather=True)

        flux = {"flux": self.fluxes, "r": r}
        own = [self._along("flux_difference", d, 0, 0, **flux, first=0)]
        yield Form(DIFFERENCE, "node", d, own, rates, True, solvers=True)
        yield from self._others(DIFFERENCE, "difference", d, flux, gather=False)

        own = [interpolate, self._physical_flux(d), self._numerical_flux(d), difference]
        yield Form(WHOLE, "four kernels", d, own, rates, True, solvers=True)
        mode = "row, fused" if d == 0 and self._has("sweep_along") else "line, fused"
        yield Form(WHOLE, mode, d, [self._sweep(d)], rates, True)

    def _others(self, loop: str, kernel: str, d: int, given: Mapping[str, Any], gather: bool) -> Iterator[Form]:
        rates = (self.r,)
        if gather:
            both = self._along(f"{kernel}_gather", d, 0, 0, **given)
            yield Form(loop, "node, both its half points", d, [both], rates, True)
        scatter = [self._along(f"{kernel}_scatter", d, -1, 0, **given)]
        yield Form(loop, "half point, adds to both nodes", d, scatter, rates, True, atomics=True)
        if self._has(f"{kernel}_coloured"):
            coloured = self._colours(f"{kernel}_coloured", d, **given)
            yield Form(loop, "half point, two colours", d, coloured, rates, True)
        yield Form(loop, "line", d, [self._lines(f"{kernel}_line", d, **given)], rates, True)

    def _sweep(self, d: int) -> Call:
        """The kernel that does all of a direction in the plan of the backend."""
        n, s, sv = self.n, self.strides, self.variable_stride
        fields = {"q": self.q, "m": self.m[3 * d : 3 * d + 3], "viscous_flux": None, "r": self.r, "sv": sv}
        ways: dict[str, Any] = {"first": 0, "sums": None}
        if self._has("inviscid_sweep"):
            s1, s2 = sorted(s[e] for e in range(DIRECTIONS) if e != d)
            return self.program.call(
                "inviscid_sweep", None, o=self.origin, sd=s[d], nd=n, s1=s1, n1=n, s2=s2, n2=n, **fields, **ways
            )
        ways["walls"] = 0
        if d == 0:
            elements = (n - 1) * s[1] + n
            chunk = row_chunk(elements, n) if self.cut else elements
            place = {"o": self.origin, "sj": s[1], "sk": s[2], "rows": n}
            extent = (-(-elements // chunk), 1, n)
            return self.program.call("sweep_along", extent, **place, n=n, chunk=chunk, **fields, **ways)
        chunk = line_chunk(n, n * n, self.q.itemsize) if self.cut else n
        place = {"o": self.origin, "s2": s[3 - d], "sd": s[d]}
        return self.program.call("sweep_across", (n, n, -(-n // chunk)), **place, n=n, chunk=chunk, **fields, **ways)

    def of_all_directions(self) -> Iterator[Form]:
        """The forms of the viscous terms, which take all directions one after the other, or at once."""
        flux = {"flux": self.viscous_flux}
        yield Form(VISCOUS_FLUX, "node", None, [self._viscous_flux()], (self.viscous_flux,), False, solvers=True)
        yield from self._gradients()
        line = self.program.call(
            "viscous_flux_line", (self.n, self.n, 1), o=self.origin, sj=self.strides[1], sk=self.strides[2],
            **self._derivatives(), n=self.n, sv=self.variable_stride, w=self.w, m=self.m, jacobian=self.jacobian,
            inverse_reynolds=0.01, **flux,
        )  # fmt: skip
        yield Form(VISCOUS_FLUX, "line", None, [line], (self.viscous_flux,), False)

        def all_directions(make: Callable[..., Call | list[Call]], kernel: str, *ends: int) -> list[Call]:
            calls: list[Call] = []
            for d in range(DIRECTIONS):
                found = make(kernel, d, *ends, flux=self.viscous_flux[_W * d : _W * (d + 1)], r=self.r)
                calls += found if isinstance(found, list) else [found]
            return calls

        loop, r, rates = VISCOUS_DIFFERENCE, self.r, (self.r,)
        once = self._inner("viscous_difference", **self._derivatives(), **flux, r=r)
        yield Form(loop, "node", None, [once], rates, True, solvers=True)
        each = [self._inner("viscous_difference", **self._derivatives(d), **flux, r=r) for d in range(DIRECTIONS)]
        yield Form(loop, "node, direction by direction", None, each, rates, True)
        both = self._inner("viscous_difference_gather", **self._derivatives(), **flux, r=r)
        yield Form(loop, "node, both its half points", None, [both], rates, True)
        scatter = all_directions(self._along, "viscous_difference_scatter", -1, 0)
        yield Form(loop, "half point, adds to both nodes", None, scatter, rates, True, atomics=True)
        if self._has("viscous_difference_coloured"):
            coloured = all_directions(self._colours, "viscous_difference_coloured")
            yield Form(loop, "half point, two colours", None, coloured, rates, True)
        yield Form(loop, "line", None, all_directions(self._lines, "viscous_difference_line"), rates, True)

    def _gradients(self) -> Iterator[Form]:
        """The viscous flux by gradients that are summed in memory, direction by direction."""
        given = {"w": self.w, "gradient": self.gradient}
        zero = self._inner("zero", variables=3 * _W, target=self.gradient)
        last = self._inner(
            "gradient_stress", w=self.w, m=self.m, jacobian=self.jacobian, gradient=self.gradient,
            inverse_reynolds=0.01, flux=self.viscous_flux,
        )  # fmt: skip
        areas = [self.m[3 * d : 3 * d + 3] for d in range(DIRECTIONS)]

        def form(mode: str, calls: list[Call], atomics: bool = False) -> Form:
            return Form(VISCOUS_FLUX, mode, None, [*calls, last], (self.viscous_flux,), False, atomics)

        every = list(enumerate(areas))
        nodes = [self._along("gradient_node", d, 0, 0, **given, m=m, first=int(d == 0)) for d, m in every]
        yield form("node, direction by direction", nodes)
        both = [self._along("gradient_gather", d, 0, 0, **given, m=m) for d, m in every]
        yield form("node, both its half points", [zero, *both])
        scatter = [self._along("gradient_scatter", d, -1, 0, **given, m=m) for d, m in every]
        yield form("half point, adds to both nodes", [zero, *scatter], atomics=True)
        if self._has("gradient_coloured"):
            coloured = [call for d, m in every for call in self._colours("gradient_coloured", d, **given, m=m)]
            yield form("half point, two colours", [zero, *coloured])


def _triple(values: list[int]) -> Triple:
    i, j, k = values
    return i, j, k
