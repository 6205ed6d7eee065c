"""Which half points the flux limiter looks at, by every kernel of the inviscid terms: the marks of the interpolation
reach it, apart from the states. In place of the limiter is one that leaves no flux where it looks."""

import numpy as np
import pytest
from kernels_alone import (
    ALL,
    ORIGIN,
    PLACE,
    POINTS,
    SHAPE,
    SIZE,
    STRIDES,
    conservative,
    geometry,
    inside,
    program,
    random,
)  # fmt: skip

HEADERS = ("half_point.h", "inviscid.h", "scalar.h", "inviscid_pencil.h", "fused.h")
LIMITED = "f[v] = select(limited, low[v] + theta * (f[v] - low[v]), f[v]);"
NOTHING = ("positivity/limiter.h", LIMITED, "f[v] = select(asked, T(real(0)), f[v]), (void)limited;")


def uneven() -> np.ndarray:
    """States (5, ...) that differ the more from node to node the farther on they are along i."""
    noise = random(11).normal(size=(5, *SHAPE)).clip(-2, 2) * np.linspace(0.002, 0.014, SHAPE[2])
    return conservative(np.array([1.0, 0.4, 0.3, -0.2, 0.9])[:, None, None, None] * (1 + noise))


def sweep(kernels, d: int, **fields) -> None:
    """The rates of direction `d` in one kernel, on a GPU in chunks of 4 nodes; along i of 40, more than a warp has."""
    (ni, nj, nk), (_, sj, sk) = SIZE, STRIDES
    fields |= {"viscous_flux": None, "sums": None, "sv": POINTS, "first": 1}
    if "inviscid_sweep" in kernels.signatures:
        (s1, n1), (s2, n2) = ((STRIDES[e], SIZE[e]) for e in range(3) if e != d)
        sizes = {"sd": STRIDES[d], "nd": SIZE[d], "s1": s1, "n1": n1, "s2": s2, "n2": n2}
        kernels.launch("inviscid_sweep", None, o=ORIGIN, **sizes, **fields)
    elif d == 0:
        chunks = -(-((nj - 1) * sj + ni) // 40)
        kernels.launch("sweep_along", (chunks, 1, nk), **PLACE, n=ni, rows=nj, chunk=40, walls=0, **fields)
    else:
        n, other, s2 = (nj, nk, sk) if d == 1 else (nk, nj, sj)
        along = {"s2": s2, "sd": STRIDES[d], "n": n, "chunk": 4, "walls": 0}
        kernels.launch("sweep_across", (ni, other, -(-n // 4)), o=ORIGIN, **along, **fields)


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("interpolation", ["modified", "original"])
def test_half_points_with_a_rough_node_or_state_are_limited(backend, interpolation):
    """One that interpolates at nodes marks both half points of a node, any other one the half point itself."""
    q, (m, _) = uneven(), geometry()
    kernels = program(backend, HEADERS, (NOTHING,), positivity="limiter", interpolation=interpolation)
    at_nodes = interpolation == "modified"
    for d in range(3):
        place = PLACE | {"o": ORIGIN - STRIDES[d], "sd": STRIDES[d], "sv": POINTS}
        area, rough = m[3 * d : 3 * d + 3], np.zeros(SHAPE, np.int8)
        flux, plus, f, rates, swept = np.zeros((5, 5, *SHAPE))
        pressure = np.zeros(SHAPE)
        extent, nodes = (tuple(n + more * (e == d) for e, n in enumerate(SIZE)) for more in (1, 1 + at_nodes))
        kernels.launch("interpolate", nodes, **place, q=q, m=area, minus=flux, plus=plus, rough=rough)
        kernels.launch("physical_flux", SHAPE[::-1], **ALL, sv=POINTS, q=q, m=area, f=f, pressure=pressure)
        states = {"minus": flux, "plus": plus, "rough": rough}
        kernels.launch("numerical_flux", extent, **place, q=q, m=area, f=f, pressure=pressure, **states)
        there = tuple(slice(3 - (e == d), 3 + SIZE[e]) for e in (2, 1, 0))
        assert set(np.unique(rough)) == {0, 1}  # in packs as alone
        wanted = rough | np.roll(rough, -1, 2 - d) if at_nodes else rough
        np.testing.assert_array_equal((flux == 0).all(axis=0)[there], wanted[there] != 0)
        assert 0.2 < (wanted[there] != 0).mean() < 0.8
        kernels.launch(
            "flux_difference", SIZE, **PLACE, sd=STRIDES[d], sv=POINTS, flux=flux, r=rates, first=1
        )  # fmt: skip
        sweep(kernels, d, q=q, m=area, r=swept)
        np.testing.assert_allclose(inside(swept), inside(rates), rtol=0, atol=1e-13 * np.abs(rates).max())
