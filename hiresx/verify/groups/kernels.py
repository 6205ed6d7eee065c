"""Kernels: every backend and every plan computes the same.

The rows "every kernel" apply each kernel to states with a jump, by loops on the CPU and by threads of the verified
backend. If the CPU is verified, the threads are emulated CUDA threads. The number is the largest difference, relative
to the largest result. The rows "right-hand side" are for a rough flow on the wavy grid of the group "free-stream". They
compare the plan `pencils` on the CPU with `decomposed` on the CPU and with the plans for GPUs on the verified backend.
Each row has a set of choices of the scheme and the gas. Together, the sets contain every file in kernels/ that a case
can choose. Further rows compare the vortex on a wavy grid and the planar jet after 20 steps in the same way. The last
rows compare the updates by the sweeps of the implicit integrator, over lines and over nodes, with stored blocks and
without.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from hiresx.case import load
from hiresx.case.viscosity import VISCOSITIES
from hiresx.device import Configuration
from hiresx.device import backend as find_backend
from hiresx.device.interface import Backend
from hiresx.device.wrappers import GPU_KINDS
from hiresx.equations.stencil import suited_weights
from hiresx.kernels import choices
from hiresx.rhs import compact
from hiresx.solver import Solver
from hiresx.time.linearised import ImplicitIntegrator
from hiresx.verify import kernel_data
from hiresx.verify.checks import Check, CheckRun, Workbench, at_most

LONG = False
AGREE = 1e-12
# Folders of kernels/ whose files are the choices of a key of [scheme].
FOLDERS = ("interpolation", "weights", "space", "flux", "positivity")

# Keys that each set of choices adds to the defaults of a case.
SETS: dict[str, tuple[str, ...]] = {
    "default": (),
    "constant viscosity, hllc, TENO": ("gas.reynolds=100.0", 'scheme.flux="hllc"', 'scheme.weights="teno"'),
    "power-law viscosity, van Leer, original, Z, component-wise, limiter": (
        "gas.reynolds=100.0",
        'gas.viscosity={law="power"}',
        'scheme.flux="van_leer"',
        'scheme.interpolation="original"',
        'scheme.weights="z"',
        'scheme.space="component"',
        'scheme.positivity="limiter"',
    ),
    "Sutherland viscosity, Lax-Friedrichs, linear, no fallback": (
        "gas.reynolds=100.0",
        'gas.viscosity={law="sutherland"}',
        'scheme.flux="local_lax_friedrichs"',
        'scheme.weights="linear"',
        'scheme.positivity="none"',
    ),
    "Roe, original, ZA": ('scheme.flux="roe"', 'scheme.interpolation="original"', 'scheme.weights="za"'),
    "six nodes, TENO with an adaptive cut-off, HLLC-LM": (
        'scheme.flux="hllc_lm"',
        'scheme.interpolation="original6"',
        'scheme.weights="teno_adaptive"',
        "scheme.cutoff=1e-6",
    ),
    "seven nodes, Z": ('scheme.interpolation="modified7"', 'scheme.weights="z"'),
    "hybrid by Ducros's sensor": ("gas.reynolds=100.0", 'scheme.inviscid="hybrid"', 'scheme.hybrid.sensor="ducros"'),
    "regularised": ("gas.reynolds=100.0", 'scheme.inviscid="regularised"', "scheme.regularised.sweeps=2"),
    "viscous terms of eighth order": ("gas.reynolds=100.0", "scheme.viscous_order=8"),
    "sigma model": ("gas.reynolds=100.0", 'turbulence.model="sigma"'),
    "smoothed Steger-Warming, Z, fallback": (
        "scheme.flux_smoothing=0.05",
        'scheme.weights="z"',
        'scheme.positivity="fallback"',
    ),
}


def _left_out() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return a set of choices for each choice of a kernel, and each viscosity law, that none of SETS contains."""
    usual = load("free-stream").scheme
    chosen = {word for sets in SETS.values() for text in sets for word in re.findall(r'"(\w+)"', text)}
    defaults = {str(getattr(usual, folder)) for folder in FOLDERS}
    for folder in FOLDERS:
        for name in choices(folder):
            if name not in chosen | defaults:
                known = suited_weights(name) if folder == "interpolation" else [usual.weights]
                weights = () if usual.weights in known else (f'scheme.weights="{known[0]}"',)
                yield f"{folder} {name}", (f'scheme.{folder}="{name}"', *weights)
    for law in VISCOSITIES:
        if law not in chosen | {"constant"}:
            yield f"viscosity law {law}", ("gas.reynolds=100.0", f'gas.viscosity={{law="{law}"}}')


SETS |= dict(_left_out())


def partner(backend: str) -> str:
    """Return the name of the backend whose results are compared with the results of the CPU when `backend` is verified:
    "emulated" for the CPU itself, otherwise `backend`."""
    return "emulated" if backend == "cpu" else backend


def backends_to_compare(backend: str) -> tuple[str, str]:
    """Return the names of the two backends whose results are compared when `backend` is verified: "cpu", and `backend`
    itself or, if this is the CPU, "emulated"."""
    return "cpu", partner(backend)


def flow_with_jump(strength: float) -> Callable[..., tuple[np.ndarray, ...]]:
    """Return a function of the coordinates x, y, z in the unit cube (arrays of one shape) that returns rho, u, v, w, p
    of a test flow in this shape. The flow consists of waves and of a discontinuity at an oblique plane. Behind the
    plane the density is multiplied by `strength`, and the pressure by the square of `strength`."""

    def state(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, ...]:
        wave = np.sin(2 * np.pi * (x + 0.7 * y + 0.4 * z))
        behind = x + 0.5 * y + 0.3 * z > 0.9
        rho = np.where(behind, strength, 1.0) * (1 + 0.1 * wave)
        p = np.where(behind, strength**2, 1.0) * (0.7 + 0.1 * np.roll(wave, 3, axis=-1))
        return rho, 0.3 + 0.2 * wave, 0.1 - 0.2 * wave, 0.3 * wave, p

    return state


def _relative(found: np.ndarray, reference: np.ndarray, scale: float) -> float:
    """Return the largest difference divided by `scale` (the largest value; if all are 0, the difference itself). NaN
    remains NaN."""
    difference = float(np.max(np.abs(found - reference)))
    return difference if scale == 0 else difference / scale


def point_by_point(bench: Workbench, configuration: Configuration) -> float:
    """Return the largest relative difference between the results of the CPU and of the backend that is verified, over
    all kernels for the compile-time choices `configuration`. `bench`: the `Workbench` with the backend under test."""
    backends = [find_backend(name) for name in backends_to_compare(bench.backend)]
    return float(np.max(list(differences(backends, configuration).values())))


def differences(backends: Sequence[Backend], configuration: Configuration) -> dict[str, float]:
    """Return, for each kernel of `configuration` by name, the largest difference between the results of the two
    `backends` from the same arguments, divided by the largest magnitude in the array that is compared. `configuration`:
    the compile-time choices of the kernels."""
    programs = [backend.compile(configuration) for backend in backends]
    found = {}
    for name, signature in programs[1].signatures.items():
        if signature.kind in ("CPU_KERNEL", *GPU_KINDS):
            continue
        worst = 0.0
        for values in kernel_data.variants(signature, configuration.real):
            results = []
            for backend, program in zip(backends, programs, strict=True):
                passed = {n: backend.to_device(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
                program.launch(name, kernel_data.extent(signature), **passed)
                results.append([backend.to_host(p) for p in passed.values() if hasattr(p, "shape")])
            for first, other in zip(*results, strict=True):
                worst = np.maximum(worst, _relative(other, first, np.max(np.abs(first))))
        found[name] = float(worst)
    return found


def _solvers(bench: Workbench, run: CheckRun) -> list[Solver]:
    """Return the solvers to compare: the CPU's pencils first, then its decomposed kernels, and the plans of the partner
    for GPUs, with the requested plan if it is suitable."""
    places = [("cpu", "pencils"), ("cpu", "decomposed")]
    asked = [compact.NAME] if bench.plan == compact.NAME and compact.obstacle(run.loaded_case) is None else []
    places += [(partner(bench.backend), plan) for plan in ("decomposed", "fused", *asked)]
    return [Solver(run.loaded_case, find_backend(name), plan=plan) for name, plan in places]


def right_hand_side(bench: Workbench, run: CheckRun) -> float:
    """Return the largest relative difference between right-hand sides of one flow, a flow with a jump on the grid of
    `run`. They are computed by the CPU and by the backend that is verified (by "emulated" if this is the CPU), each in
    several orders of computation. `bench`: the `Workbench` with the backend under test."""
    results = []
    for solver in _solvers(bench, run):
        # Without a limiter the scheme would give negative pressures at a strong jump.
        solver.initialize(flow_with_jump(1.1 if run.loaded_case.scheme.positivity == "none" else 3.0))
        solver.choose_dt()
        solver.right_hand_side()
        results.append([s.interior(solver.backend.to_host(s.r)) for s in solver.states])
    return _worst(results)


def twenty_steps(bench: Workbench, run: CheckRun) -> float:
    """Return the largest relative difference of the primitive variables after 20 steps of `run` between the CPU and the
    backend that is verified ("emulated" if this is the CPU), each in several orders of computation. `bench`: the
    `Workbench` with the backend under test."""
    results = []
    for solver in _solvers(bench, run):
        solver.initialize()
        for _ in range(20):
            solver.step()
        found = [solver.primitives(b) for b in range(len(solver.states))]
        results.append([np.stack(list(block.values())) for block in found])
    return _worst(results)


def many_at_a_time(bench: Workbench, run: CheckRun) -> float:
    """Return the largest difference of the conservative variables, in the scales of the case, between 20 steps of `run`
    that the device makes without the host and the same steps that the host makes one by one. `bench`: the `Workbench`
    with the backend under test."""
    results = []
    for largest in (np.inf, np.finfo(float).max):
        name = partner(bench.backend)
        solver = Solver(bench.case(run) if name == bench.backend else run.loaded_case, find_backend(name))
        solver.initialize()
        while solver.steps < 20:
            if largest == np.inf:
                solver.advance(20 - solver.steps)
            else:
                solver.step(largest)
        results.append([solver.backend.to_host(s.q) for s in solver.states])
    return max(float(np.abs(a - b).max()) for a, b in zip(*results, strict=True))


def sweeps(bench: Workbench, run: CheckRun) -> float:
    """Return the largest relative difference between the CPU and the backend that is verified ("emulated" if this is
    the CPU) in the result of the block Gauss-Seidel sweeps that precondition the implicit integrator. Both start from
    the initial flow of `run` and the same right-hand side. `bench`: the `Workbench` with the backend under test."""
    results: list[list[np.ndarray]] = []
    rates: Any = None
    for name in backends_to_compare(bench.backend):
        solver = Solver(run.loaded_case, find_backend(name))
        solver.initialize()
        linear, system = cast(ImplicitIntegrator, solver.integrator).linearised, solver.system
        x, right, found = (system.vector() for _ in range(3))
        system.state(x)
        linear.begin()
        linear.assemble(x, 0.01)
        linear.change(x, right)
        rates = system.gather(right) if rates is None else rates
        system.scatter(rates, right)
        linear.precondition(right, found)
        results.append([system.gather(found)])
    return _worst(results)


def _worst(results: list[list[np.ndarray]]) -> float:
    """Return the largest difference over blocks and variables, relative to the largest value of the variable in any
    block."""
    reference = results[0]
    worst = 0.0
    for v in range(5):
        scale = max(np.max(np.abs(block[v])) for block in reference)
        for other in results[1:]:
            for first, block in zip(reference, other, strict=True):
                worst = np.maximum(worst, _relative(block[v], first[v], scale))
    return worst


def _check(name: str, function: Callable[[Workbench, Any], float], argument: Any, run: CheckRun) -> Check:
    return Check(
        name,
        at_most(AGREE),
        lambda bench: function(bench, argument),
        configurations=(run.configuration,),
        backends=backends_to_compare,
    )


# Of the implicit integrator: a case, a preset and keys. The derivatives of conditions are differences over 1e-7 of a
# variable, which round-off changes by 1e-9. The lines of the vortex are closed, so that their ends have neighbours.
SWEEPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "lines, bump": ("bump", "subsonic", ("implicit.lines=j",)),
    "lines without stored blocks, vortex": (
        "isentropic-vortex",
        "wavy",
        ("grid.n=[24,24,1]", "implicit.lines=i", "implicit.storage=none"),
    ),
    "nodes without stored blocks, bump": ("bump", "subsonic", ("implicit.lines=none", "implicit.storage=none")),
    "lines, blocks in 16 bits, plate by SST": ("flat-plate-sa", "sst", ("implicit.storage=fp16",)),
}
SWEEPS_AGREE = 1e-8

CHECKS = []
for title, sets in SETS.items():
    cube = CheckRun("free-stream", None, sets)
    CHECKS += [
        _check(f"every kernel: {title}", point_by_point, cube.configuration, cube),
        _check(f"right-hand side: {title}", right_hand_side, cube, cube),
    ]
for title, steps in {
    "vortex, wavy grid": CheckRun("isentropic-vortex", "wavy", ("grid.n=[64,64,1]",)),
    "planar jet": CheckRun("planar-jet", "quick"),
}.items():
    CHECKS.append(_check(f"20 steps: {title}", twenty_steps, steps, steps))
    CHECKS.append(
        Check(
            f"20 steps at a time, as one by one: {title}",
            at_most(0.0),
            lambda bench, steps=steps: many_at_a_time(bench, steps),
            configurations=(steps.configuration,),
            backends=lambda tested: (partner(tested),),
        )
    )
for title, (name, preset, keys) in SWEEPS.items():
    swept = CheckRun(name, preset, ("time.integrator=implicit", *keys))
    CHECKS.append(
        Check(
            f"implicit sweeps: {title}",
            at_most(SWEEPS_AGREE),
            lambda bench, swept=swept: sweeps(bench, swept),
            configurations=(swept.configuration,),
            backends=backends_to_compare,
        )
    )
