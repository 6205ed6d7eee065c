"""Which half points the flux limiter looks at, by every kernel of the inviscid terms: the marks of the interpolation
reach it, apart from the states. In place of the limiter is one that leaves no flux where it looks."""

import kernels_alone as alone
import numpy as np
import pytest

HEADERS = ("half_point.h", "inviscid.h", "scalar.h", "inviscid_pencil.h", "fused.h")
LIMITED = "f[v] = select(limited, low[v] + theta * (f[v] - low[v]), f[v]);"
NOTHING = ("positivity/limiter.h", LIMITED, "f[v] = select(asked, T(real(0)), f[v]), (void)limited;")


def uneven() -> np.ndarray:
    """States (5, ...) that differ the more from node to node the farther on they are along i."""
    noise = alone.random(11).normal(size=(5, *alone.SHAPE)).clip(-2, 2) * np.linspace(0.002, 0.014, alone.SHAPE[2])
    return alone.conservative(np.array([1.0, 0.4, 0.3, -0.2, 0.9])[:, None, None, None] * (1 + noise))


def sweep(kernels, d: int, **fields) -> None:
    """The rates of direction `d` in one kernel, on a GPU in chunks of 4 nodes; along i of 40, more than a warp has."""
    (ni, nj, nk), (_, sj, sk) = alone.SIZE, alone.STRIDES
    fields |= {"viscous_flux": None, "sums": None, "sv": alone.POINTS, "first": 1}
    if "inviscid_sweep" in kernels.signatures:
        (s1, n1), (s2, n2) = ((alone.STRIDES[e], alone.SIZE[e]) for e in range(3) if e != d)
        sizes = {"sd": alone.STRIDES[d], "nd": alone.SIZE[d], "s1": s1, "n1": n1, "s2": s2, "n2": n2}
        kernels.launch("inviscid_sweep", None, o=alone.ORIGIN, **sizes, **fields)
    elif d == 0:
        chunks = -(-((nj - 1) * sj + ni) // 40)
        kernels.launch("sweep_along", (chunks, 1, nk), **alone.PLACE, n=ni, rows=nj, chunk=40, walls=0, **fields)
    else:
        n, other, s2 = (nj, nk, sk) if d == 1 else (nk, nj, sj)
        along = {"s2": s2, "sd": alone.STRIDES[d], "n": n, "chunk": 4, "walls": 0}
        kernels.launch("sweep_across", (ni, other, -(-n // 4)), o=alone.ORIGIN, **along, **fields)


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("interpolation", ["modified", "original"])
def test_half_points_with_a_rough_node_or_state_are_limited(backend, interpolation):
    """One that interpolates at nodes marks both half points of a node, any other one the half point itself."""
    q, (m, _) = uneven(), alone.geometry()
    kernels = alone.program(backend, HEADERS, (NOTHING,), positivity="limiter", interpolation=interpolation)
    at_nodes = interpolation == "modified"
    for d in range(3):
        place = alone.PLACE | {"o": alone.ORIGIN - alone.STRIDES[d], "sd": alone.STRIDES[d], "sv": alone.POINTS}
        area, rough = m[3 * d : 3 * d + 3], np.zeros(alone.SHAPE, np.int8)
        flux, plus, f, rates, swept = np.zeros((5, 5, *alone.SHAPE))
        pressure = np.zeros(alone.SHAPE)
        extent, nodes = (tuple(n + more * (e == d) for e, n in enumerate(alone.SIZE)) for more in (1, 1 + at_nodes))
        kernels.launch("interpolate", nodes, **place, q=q, m=area, minus=flux, plus=plus, rough=rough)
        kernels.launch(
            "physical_flux", alone.SHAPE[::-1], **alone.ALL, sv=alone.POINTS, q=q, m=area, f=f, pressure=pressure
        )
        states = {"minus": flux, "plus": plus, "rough": rough}
        kernels.launch("numerical_flux", extent, **place, q=q, m=area, f=f, pressure=pressure, **states)
        there = tuple(slice(3 - (e == d), 3 + alone.SIZE[e]) for e in (2, 1, 0))
        assert set(np.unique(rough)) == {0, 1}  # in packs as alone
        wanted = rough | np.roll(rough, -1, 2 - d) if at_nodes else rough
        np.testing.assert_array_equal((flux == 0).all(axis=0)[there], wanted[there] != 0)
        assert 0.2 < (wanted[there] != 0).mean() < 0.8
        kernels.launch(
            "flux_difference", alone.SIZE, **alone.PLACE, sd=alone.STRIDES[d], sv=alone.POINTS, flux=flux, r=rates,
            first=1,
        )  # fmt: skip
        sweep(kernels, d, q=q, m=area, r=swept)
        np.testing.assert_allclose(alone.inside(swept), alone.inside(rates), rtol=0, atol=1e-13 * np.abs(rates).max())
