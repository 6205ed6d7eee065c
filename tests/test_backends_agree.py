"""Every kernel of the solver, on generated data: the cpu backend's loops against the emulated CUDA form,
and against a GPU where there is one."""

import numpy as np
import pytest

from hiresx.device import Configuration, backend
from hiresx.device.cuda import fault

# A block of 17 x 7 x 7 nodes with three ghost layers.
SHAPE, EXTENT = (13, 13, 23), (17, 7, 7)
SJ, SK, SV = 23, 23 * 13, 23 * 13 * 13
START = 3 * (1 + SJ + SK)
PLACES = {"o": START, "c": START, "sj": SJ, "cj": SJ, "dj": SJ, "sk": SK, "ck": SK, "dk": SK, "sd": 1, "di": 1}
FACE = {"s1": 1, "s2": SJ, "sn": SK, "n1": 17, "n2": 7}
INTEGERS = {
    **PLACES,
    **FACE,
    **dict.fromkeys(("sv", "source_sv", "target_sv"), SV),
    **{"columns": 17 * 7, "width": 17, "height": 7, "count": 17 * 7 * 7, "threads": 5, "how": 0},
    **{"dt_stride": 1, "reference_stride": 1, "directions": 3, "active": 7, "first": 0, "variables": 4, "face": 5},
}
EXTENTS = {
    **dict.fromkeys(("column_norms", "column_radii"), (17, 7, 1)),
    **dict.fromkeys(("column_totals", "column_extrema", "column_places", "column_energy"), (17, 1, 7)),
    **dict.fromkeys(("pack_halo", "unpack_halo", "rotate_vectors"), (17, 1, 1)),
    **{"outflow_rates": (17, 1, 1), "outflow_sums": (5, 1, 1)},
    **{"reduce": (5, 7, 1), "copy_halo": (17, 5, 1)},
}
STATES = {"q", "q0", "minus", "plus", "state", "target", "reference"}


def argument(kind: str, name: str, rng: np.random.Generator, real: str):
    """A value that makes sense for an argument of that name: admissible states, metrics of a nearly uniform grid, and
    1 for a count or switch that is not in the table."""
    if kind in ("int", "long long"):
        return INTEGERS.get(name, 1)
    if not kind.endswith("*"):
        return {"direction": 1.0, "sign": -1.0}.get(name, 0.3)
    if name == "faces":
        return np.where(rng.random((3, 17)) < 0.7, [[0], [3], [4]], -1).astype(np.int32)
    if "int" in kind:
        return (START + rng.permutation(17 * 7)).astype(np.int32)
    variation = 0.1 * rng.random((40, *SHAPE)) - 0.05
    base = np.ones((40, 1, 1, 1))
    if name in STATES:
        base[:] = np.resize([1, 0.2, 0.3, -0.1, 2.5], (40, 1, 1, 1))
    elif name == "m":
        base[:] = np.resize(np.eye(3).ravel(), (40, 1, 1, 1))
    elif name in "xyz":
        base = np.indices(SHAPE, float)["zyx".index(name)][None]
    return (base + variation).astype("float64" if "double" in kind else real)


@pytest.mark.parametrize(
    ("configuration", "tolerance"),
    [
        (Configuration(viscosity="sutherland"), 1e-12),
        (
            Configuration("original", "z", "component", "roe", positivity="limiter", viscosity="power"),
            1e-12,
        ),
        (Configuration(viscosity="constant", precision="fp32"), 1e-6),
    ],
    ids=["default", "other-choices", "fp32"],
)
def test_every_kernel_agrees(configuration, tolerance):
    rooms = [backend(name) for name in ("cpu", "emulated", "cuda") if name != "cuda" or not fault()]
    programs = [room.compile(configuration) for room in rooms]
    names = [name for name, found in programs[0].signatures.items() if found.kind != "CPU_KERNEL"]
    assert len(names) > 20 and all(set(names) == set(program.signatures) for program in programs[1:])
    for name in names:
        arguments = programs[0].signatures[name].arguments
        rng = np.random.default_rng(7)
        values = [argument(kind, called, rng, configuration.real) for kind, called in arguments]
        extent = EXTENTS.get(name, (17, 7, 1) if any(called == "sn" for _, called in arguments) else EXTENT)
        results = []
        for room, program in zip(rooms, programs, strict=True):
            passed = [room.to_device(value) if isinstance(value, np.ndarray) else value for value in values]
            program.launch(name, extent, *passed)
            results.append(
                [room.to_host(p) if isinstance(v, np.ndarray) else p for v, p in zip(values, passed, strict=True)]
            )
        for place, (kind, called) in enumerate(arguments):
            reference = results[0][place]
            if kind.endswith("*") and not kind.startswith("const"):
                assert np.all(np.isfinite(reference)), (name, called)
                for other in results[1:]:
                    error = np.max(np.abs(other[place] - reference)) / np.max(np.abs(reference))
                    assert error <= tolerance, (name, called)
            else:
                assert np.array_equal(reference, values[place]), (name, called)
        assert any(not np.array_equal(now, old) for now, old in zip(results[0], values, strict=True)), name
