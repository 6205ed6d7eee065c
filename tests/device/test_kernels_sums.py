"""Kernels that look at a whole block, one at a time, against NumPy: reductions, norms, time-step radii, monitors' sums,
averages. Both backends could share a mistake, which their agreement would not show."""

from itertools import combinations_with_replacement

import kernels_alone as alone
import numpy as np
import pytest
from kernels_alone import SMALL, geometry, gradient, inside, primitive, program, random, states, sutherland, temperature
from kernels_alone import conservative as conserved

from hiresx.device.averaging import BITS, BUDGETS, names
from hiresx.rhs.sponge import moments

NI, NJ, NK = alone.SIZE
RE = 0.01  # 1 / Re_c
# Columns along k, in one piece, and along j.
COLUMNS = {"columns": NI * NJ, "rows": NJ, "nodes": NK, "height": NK, "width": NI}
ALONG_J = {"height": NJ, "columns": NI * NK, "width": NI, "sv": alone.POINTS}
# Columns along j in pieces, the last of them shorter.
HEIGHT = 4
PIECES = -(-NJ // HEIGHT)
IN_PIECES = ALONG_J | {"height": HEIGHT, "nodes": NJ, "rows": NK, "columns": NI * NK * PIECES}


@pytest.fixture(params=["cpu", "emulated"])
def backend(request):
    return request.param


def close(found, wanted, tolerance=1e-12):
    """Relative to the largest value of each quantity (first index)."""
    scale = np.abs(wanted).reshape(len(wanted), -1).max(axis=1).reshape(-1, *[1] * (np.ndim(wanted) - 1))
    np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("how", [0, 1, 2], ids=["sum", "largest", "least"])
@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 2047, 2048, 2049, 5000])
def test_reduce(backend, count, how):
    """Every entry counts, also those beyond one round of all threads: each is made the one that is asked for."""
    threads, quantities = min(1024, count), 3
    kernels = program(backend, SMALL)
    values = random(count).uniform(-1.0, 1.0, (quantities, count))
    values[1, -1], values[2, 0] = (-9.0, 9.0) if how == 2 else (9.0, -9.0)
    result, what = np.zeros((quantities, threads)), {"count": count, "threads": threads, "how": how}
    kernels.launch("reduce", (threads, quantities, 1), **what, values=values, result=result)
    numpy = (np.sum, np.max, np.min)[how]
    wanted = np.array([[numpy(row[t::threads]) for t in range(threads)] for row in values])
    np.testing.assert_allclose(result, wanted, rtol=1e-14, atol=1e-14)
    for place in (0, count // 2, count - 1):  # and a NaN is not lost
        values[1, place] = np.nan
        kernels.launch("reduce", (threads, quantities, 1), **what, values=values, result=result)
        assert np.isnan(result[1, place % threads]) and np.isnan(result[1]).sum() == 1
        values[1, place] = 0.0


def test_column_norms(backend):
    (s, q), (_, jacobian) = states(), geometry()
    r = random(1).normal(size=(5, *alone.SHAPE))
    partial = np.zeros((7, NJ, NI))
    program(backend, SMALL).launch(
        "column_norms", (NI, NJ, 1), **alone.PLACE, columns=NI * NJ, height=NK, sv=alone.POINTS, q=q, r=r,
        jacobian=jacobian, width=NI, partial=partial,
    )  # fmt: skip
    close(partial[:5], np.sum(inside(r * jacobian) ** 2, axis=1))
    close(partial[5:], [inside(s[0]).min(axis=0), inside(s[4]).min(axis=0)])


def radii(s, m, jacobian, directions):
    """Inviscid J sum (|U_d| + a |m_d|), viscous J^2 M max(4/3, gamma/Pr) mu/(Re_c rho), where M is the larger one of
    sum |m_d|^2 and 0.6 sum |m_d . m_e|."""
    sound, inviscid, squares = np.sqrt(alone.GAMMA * s[4] / s[0]), 0.0, 0.0
    areas = np.array([m[3 * d : 3 * d + 3] for d in directions])
    products = np.abs(np.einsum("dc...,ec...->de...", areas, areas)).sum(axis=(0, 1))
    for d in directions:
        area = m[3 * d : 3 * d + 3]
        size = np.linalg.norm(area, axis=0)
        inviscid = inviscid + abs(np.sum(area * s[1:4], axis=0)) + sound * size
        squares = squares + size**2
    diffusion = max(4 / 3, alone.GAMMA / alone.PRANDTL) * sutherland(temperature(s)) * RE / s[0]
    return jacobian * inviscid, jacobian**2 * np.maximum(squares, 0.6 * products) * diffusion


@pytest.mark.parametrize("oblique", [0.0, 4.0])
@pytest.mark.parametrize("directions", [(0, 1, 2), (0, 2), (1,)], ids=str)
def test_radii_and_local_steps(backend, directions, oblique):
    """`oblique`: added to the first component of all areas."""
    (s, q), (m, jacobian) = states(), geometry()
    m[::3] += oblique
    kernels = program(backend, alone.VISCOUS, viscosity="sutherland")
    active = sum(1 << d for d in directions)
    wanted = np.array([inside(found) for found in radii(s, m, jacobian, directions)])
    partial, dt = np.zeros((2, NJ, NI)), np.zeros(alone.SHAPE)
    flow = alone.PLACE | {"sv": alone.POINTS, "q": q, "m": m, "jacobian": jacobian, "inverse_reynolds": RE}
    kernels.launch("column_radii", (NI, NJ, 1), **flow, **COLUMNS, active=active, partial=partial)
    close(partial, wanted.max(axis=1))
    for cfl, viscous_cfl in ((0.5, 1e9), (1e9, 0.4), (0.5, np.median(0.5 * wanted[1] / wanted[0]))):
        kernels.launch(
            "local_step", alone.SIZE, **flow, active=active, cfl=float(cfl), viscous_cfl=float(viscous_cfl),
            longest=np.inf, dt=dt,
        )  # fmt: skip
        np.testing.assert_allclose(inside(dt), np.minimum(cfl / wanted[0], viscous_cfl / wanted[1]), rtol=1e-13)


def test_the_least_viscous_factor_is_four_thirds():
    """Where heat diffuses more slowly than momentum: gamma/Pr below 4/3."""
    (s, q), (m, jacobian) = states(), geometry()
    kernels = program("emulated", ("timestep.h",), viscosity="constant", prandtl=5.0)
    partial = np.zeros((2, NJ, NI))
    flow = alone.PLACE | {"sv": alone.POINTS, "q": q, "m": m, "jacobian": jacobian, "inverse_reynolds": RE}
    kernels.launch("column_radii", (NI, NJ, 1), **flow, **COLUMNS, active=7, partial=partial)
    wanted = inside(jacobian**2 * np.sum(m * m, axis=0) * 4 / 3 * RE / s[0]).max(axis=0)
    np.testing.assert_allclose(partial[1], wanted, rtol=1e-13)


def by_piece(values):
    """Sums (quantities, pieces, nk, ni) of values (quantities, nk, nj, ni) over the nodes of each piece of a column."""
    return np.moveaxis(np.add.reduceat(values, range(0, NJ, HEIGHT), axis=2), 2, 1)


@pytest.mark.parametrize("real", ["float64", "float32"])
def test_sums_over_columns(backend, real):
    """In double, whatever the columns are in, and of fewer columns than threads."""
    kernels = program(backend, ("reduce.h",), precision={"float64": "fp64", "float32": "fp32"}[real])
    for count, threads in ((1000, 64), (5, 32)):
        values, result = random(4).uniform(0.5, 1.5, (3, count)).astype(real), np.zeros((3, threads))
        wanted = np.array([[row[t::threads].sum(dtype=float) for t in range(threads)] for row in values])
        of = {"count": count, "threads": threads, "result": result}
        kernels.launch("sum_reals", (threads, 3, 1), values=values, **of)
        np.testing.assert_allclose(result, wanted, rtol=1e-14)
        result[...] = 0.0
        kernels.launch("sum_columns", (threads, 3, 1), values=values.astype(float), **of)
        np.testing.assert_allclose(result, wanted, rtol=1e-14)


@pytest.mark.parametrize("both", [0, 1])
def test_column_totals(backend, both):
    _, q = states()
    weight, other = random(2).uniform(0.5, 2.0, (2, *alone.SHAPE))
    partial = np.zeros((10, PIECES, NK, NI))
    program(backend, SMALL).launch(
        "column_totals", (NI, PIECES, NK), **alone.PLACE, **IN_PIECES, q=q, weight=weight, other=other, both=both,
        partial=partial,
    )  # fmt: skip
    sums = [by_piece(inside(q * w)) for w in (weight, other)]
    close(partial[:5], sums[0])
    if both:
        close(partial[5:], sums[1])


def test_column_extrema(backend):
    s, q = states()
    q[:, :, alone.HALO + 1] = q[:, :, alone.HALO + NJ - 1]  # values that come twice: the first place counts
    s[:, :, alone.HALO + 1] = s[:, :, alone.HALO + NJ - 1]
    kernels, where = program(backend, SMALL), alone.PLACE | IN_PIECES | {"q": q}
    partial, places = np.zeros((2, 2, 7, PIECES, NK, NI))
    kernels.launch("column_extrema", (NI, PIECES, NK), **where, partial=partial)
    t = temperature(s)
    values = inside(np.stack([*s, t, np.sqrt(np.sum(s[1:4] ** 2, axis=0) / t)]))
    first_of_piece, piece_of = range(0, NJ, HEIGHT), np.arange(NJ) // HEIGHT
    least, largest = (np.moveaxis(of.reduceat(values, first_of_piece, axis=2), 2, 1) for of in (np.minimum, np.maximum))
    np.testing.assert_allclose(partial, [least, largest], rtol=1e-12, atol=1e-14)

    # The extremes of two parts, of which one has fewer values, and the bounds by a share of the largest value or scale.
    found, counts = np.full((2, 14 * 32), 7.7), np.array([32, 5], np.int32)
    given = [random(6 + n).normal(size=(2, 7, count)) for n, count in enumerate(counts)]
    given[1][1, 3, 2] = np.nan
    for n, rows in enumerate(given):
        found[n, : rows.size] = rows.ravel()
    scales, best, bounds = np.linspace(0.0, 6.0, 7), np.zeros((2, 7)), np.zeros((2, 7))
    kernels.launch(
        "extreme_bounds", (7, 1, 1), parts=2, counts=counts, tie=1e-3, scales=scales, found=found, best=best,
        bounds=bounds,
    )  # fmt: skip
    low = np.minimum(*(rows[0].min(axis=1) for rows in given))
    high = np.maximum(*(rows[1].max(axis=1) for rows in given))
    np.testing.assert_array_equal(best, [low, high])
    near = 1e-3 * np.maximum(scales, np.maximum(abs(low), abs(high)))
    others = np.arange(7) != 3
    np.testing.assert_allclose(bounds[:, others], np.array([low + near, high - near])[:, others], rtol=1e-13)
    assert np.isnan(bounds[1, 3])

    # Bounds that some columns reach once, some several times and some nowhere.
    bounds = np.stack([np.median(values.min(axis=2), axis=(1, 2)), np.median(values.max(axis=2), axis=(1, 2))])
    kernels.launch("column_places", (NI, PIECES, NK), **where, bounds=bounds, partial=places)
    beyond = np.stack([values <= bounds[0][:, None, None, None], values >= bounds[1][:, None, None, None]])
    for piece in range(PIECES):
        here = beyond[:, :, :, piece_of == piece]
        first = np.where(here.any(axis=3), here.argmax(axis=3) + piece * HEIGHT, NJ)
        assert NJ in first and len(set(first.flat)) > 1
        np.testing.assert_array_equal(places[:, :, piece], first)

    # The part begins at node (3, 2, 1) of a block of 20 x 30 nodes along i and j, behind 1000 other nodes.
    numbers, nowhere = np.zeros((14, 6)), 1e9
    kernels.launch(
        "least_numbers", (6, 14, 1), columns=NI * NK * PIECES, threads=6, nodes=NJ, rows=NK, width=NI,
        origin=1000.0 + (30 + 2) * 20 + 3, whole_i=20, whole_j=30, nowhere=nowhere, places=places, numbers=numbers,
    )  # fmt: skip
    k, j, i = np.indices((NK, NJ, NI))
    of_nodes = 1000 + ((1 + k) * 30 + 2 + j) * 20 + 3 + i
    of_nodes = np.where(beyond, of_nodes, nowhere)
    columns = [of_nodes[:, :, :, piece_of == piece].min(axis=3) for piece in range(PIECES)]
    columns = np.stack(columns, axis=2).reshape(14, -1)
    np.testing.assert_array_equal(numbers, np.stack([columns[:, t::6].min(axis=1) for t in range(6)], axis=1))


@pytest.mark.parametrize("viscosity", ["none", "sutherland"])
def test_column_energy(backend, viscosity):
    (s, q), (m, jacobian) = states(), geometry()
    weight, w = random(3).uniform(0.5, 2.0, alone.SHAPE), np.stack([*s[1:4], temperature(s)])
    partial = np.zeros((7, PIECES, NK, NI))
    program(backend, SMALL if viscosity == "none" else alone.VISCOUS, viscosity=viscosity).launch(
        "column_energy", (NI, PIECES, NK), **alone.PLACE, **dict(zip(("di", "dj", "dk"), alone.STRIDES, strict=True)),
        **IN_PIECES, q=q, w=w, m=m, jacobian=jacobian, weight=weight, inverse_reynolds=RE, partial=partial,
    )  # fmt: skip
    g = np.stack([gradient(c, m, jacobian) for c in s[1:4]])
    curl = np.stack([g[2, 1] - g[1, 2], g[0, 2] - g[2, 0], g[1, 0] - g[0, 1]])
    turning, dilatation = np.sum(curl**2, axis=0), g[0, 0] + g[1, 1] + g[2, 2]
    rho, p = inside(s[0]), inside(s[4])
    mu = 0.0 * rho if viscosity == "none" else sutherland(inside(temperature(s))) * RE
    stress = g + np.swapaxes(g, 0, 1) - 2 / 3 * dilatation * np.eye(3)[:, :, None, None, None]
    wanted = [
        0.5 * rho * inside(np.sum(s[1:4] ** 2, axis=0)), 0.5 * rho * turning, mu * np.sum(stress * g, axis=(0, 1)),
        mu * turning, mu * 4 / 3 * dilatation**2, p * dilatation, dilatation**2,
    ]  # fmt: skip
    wanted = by_piece(inside(weight) * np.stack(wanted))
    for n in range(7):
        np.testing.assert_allclose(partial[n], wanted[n], rtol=0, atol=1e-12 * (abs(wanted[n]).max() + 1e-300))


MEANS = {"reynolds": ("rho", "u", "v", "w", "p", "T"), "favre": ("rho", "u", "v", "w", "T")}
MOMENTS = {
    "reynolds": ("rho rho", "u u", "v v", "w w", "p p", "T T", "u v", "u w", "v w"),
    "favre": ("u u", "v v", "w w", "u v", "u w", "v w", "u T", "v T", "w T"),
}


@pytest.mark.parametrize("size", [1.0, 1e-9])
@pytest.mark.parametrize("kind", MEANS)
def test_averages(backend, kind, size):
    """Four samples of different weight, all components of velocity at work: every moment is its own. Where they differ
    by 1e-9 their moments are 1e-18, and of one sample zero: nothing is lost in the rounding of squares of means."""
    kernels = program(backend, SMALL)
    base, *others = [primitive(random(n), *alone.SHAPE) for n in range(5)]
    samples, weights = [base + size * (s - base) for s in others], np.array([0.3, 1.0, 0.1, 0.7])
    found = np.zeros((len(MEANS[kind]) + len(MOMENTS[kind]), NK, NJ, NI))
    for n, s in enumerate(samples):
        share = weights[n] / weights[: n + 1].sum()
        kernels.launch(
            "average_moments", alone.SIZE, **alone.PLACE, sv=alone.POINTS, q=conserved(s), width=NI, height=NJ,
            kinds=BITS[kind], count=NI * NJ * NK, share=np.array([share]), mean=found,
        )  # fmt: skip
        if n == 0:
            assert not found[len(MEANS[kind]) :].any()
    values = [dict(zip(MEANS["reynolds"], inside(np.stack([*s, temperature(s)])), strict=True)) for s in samples]
    values = {name: np.stack([v[name] for v in values]) for name in values[0]}  # (samples, nk, nj, ni)
    weights = weights[:, None, None, None]
    share = weights * (values["rho"] if kind == "favre" else np.ones(values["rho"].shape))
    share /= share.sum(axis=0)
    mean = {name: np.sum(share * v, axis=0) for name, v in values.items()}
    means = [mean[name] for name in MEANS[kind]]
    if kind == "favre":
        means[0] = np.sum(weights / weights.sum() * values["rho"], axis=0)
    moments = [
        np.sum(share * (values[a] - mean[a]) * (values[b] - mean[b]), axis=0) for a, b in map(str.split, MOMENTS[kind])
    ]
    close(found[: len(means)], np.array(means), 1e-13)
    # what samples round is felt as twice the fluctuation times it
    close(found[len(means) :], np.array(moments), max(1e-13, 1e-14 / size))


def test_moments_of_parts_add_up_to_those_of_the_whole():
    values = random(4).normal(size=(5, 6, 7, 8))
    whole = moments(values)
    flat = values.reshape(5, -1)
    np.testing.assert_allclose(whole, [6 * 7 * 8, *flat.sum(axis=1), *(flat**2).sum(axis=1)], rtol=1e-12)
    np.testing.assert_allclose(moments(values[:, :2]) + moments(values[:, 2:]), whole, rtol=1e-12)


def test_the_sponge_draws_to_its_reference(backend):
    """r -= sigma (q - reference)/J, over a part of the block."""
    (_, q), (_, jacobian) = states(), geometry()
    kernels = program(backend, SMALL)
    ni, nj, nk, first = 5, 4, 6, (2, 1, 2)
    box = tuple(slice(3 + lo, 3 + lo + n) for lo, n in zip(first[::-1], (nk, nj, ni), strict=True))
    o = alone.ORIGIN + sum(lo * stride for lo, stride in zip(first, alone.STRIDES, strict=True))
    sigma = random(5).uniform(0.0, 2.0, (nk, nj, ni))
    for stride, reference in enumerate((np.arange(1.0, 6.0), random(6).normal(size=(5, nk, nj, ni)))):
        r = random(7).normal(size=(5, *alone.SHAPE))
        wanted = r.copy()
        goal = reference if stride else reference[:, None, None, None]
        wanted[(slice(None), *box)] -= sigma * (q[(slice(None), *box)] - goal) / jacobian[box]
        kernels.launch(
            "sponge", (ni, nj, nk), **(alone.PLACE | {"o": o}), width=ni, height=nj, count=ni * nj * nk,
            sv=alone.POINTS, q=q, jacobian=jacobian, sigma=sigma, reference=reference, reference_stride=stride, r=r,
        )  # fmt: skip
        np.testing.assert_allclose(r, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", list(BUDGETS))
@pytest.mark.parametrize("viscosity", ["none", "sutherland"])
def test_average_budget(backend, viscosity, kind):
    """Four samples of different weight on a curved grid: each covariance and third moment is its own."""
    kernels = program(backend, SMALL if viscosity == "none" else alone.VISCOUS, viscosity=viscosity)
    (m, jacobian), weights = geometry(), np.array([0.3, 1.0, 0.1, 0.7])
    held = {of: np.zeros((len(names(of)), NK, NJ, NI)) for of in ("reynolds", "favre", kind)}
    samples = [primitive(random(n), *alone.SHAPE) for n in range(4)]
    nodes = {"width": NI, "height": NJ, "count": NI * NJ * NK}
    gathered = []
    for n, s in enumerate(samples):
        share, q, w = weights[n] / weights[: n + 1].sum(), conserved(s), np.stack([*s[1:4], temperature(s)])
        alike = alone.PLACE | nodes | {"sv": alone.POINTS, "q": q, "share": np.array([share])}
        kernels.launch(
            f"average_{kind}", alone.SIZE, **alike, **dict(zip(("di", "dj", "dk"), alone.STRIDES, strict=True)), w=w,
            m=m, jacobian=jacobian, inverse_reynolds=RE, reynolds=held["reynolds"], favre=held["favre"],
            mean=held[kind],
        )  # fmt: skip
        for of in ("reynolds", "favre"):
            kernels.launch("average_moments", alone.SIZE, **alike, kinds=BITS[of], mean=held[of])
        g = np.stack([gradient(c, m, jacobian) for c in s[1:4]])
        mu = 0.0 if viscosity == "none" else sutherland(inside(temperature(s))) * RE
        tau = mu * (g + np.swapaxes(g, 0, 1) - 2 / 3 * np.trace(g) * np.eye(3)[:, :, None, None, None])
        gathered.append((inside(s[0]), inside(s[1:4]), inside(s[4]), g, tau))
    rho, u, p, g, tau = (np.stack(values) for values in zip(*gathered, strict=True))
    share = weights / weights.sum()

    def mean(values):
        return np.tensordot(share, values, axes=1)

    rest = [values - mean(values) for values in (u, p, g, tau)]
    (du, dp, dg, dtau), mass = rest, rho / mean(rho)
    f = u - mean(mass[:, None] * u)
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    wanted = [*(mean(tau)[a, b] for a, b in pairs), *mean(g).reshape(9, NK, NJ, NI), *mean(dp[:, None] * du)]
    if kind == "budget":
        wanted += [
            mean(dp * np.trace(dg, axis1=1, axis2=2)),
            *mean(np.sum(du[:, :, None] * dtau, axis=1)),
            mean(np.sum(dtau * dg, axis=(1, 2))),
            *mean(0.5 * mass[:, None] * np.sum(f * f, axis=1)[:, None] * f),
        ]
    else:
        loss = mean(np.einsum("nik...,njk...->nij...", dtau, dg))
        wanted += [mean(dp * (dg[:, a, b] + dg[:, b, a])) for a, b in pairs]
        wanted += [mean(du[:, c] * dtau[:, a, b]) for c in range(3) for a, b in pairs]
        wanted += [loss[a, b] + loss[b, a] for a, b in pairs]
        triples = combinations_with_replacement(range(3), 3)
        wanted += [mean(mass * f[:, a] * f[:, b] * f[:, c]) for a, b, c in triples]
    for name, found, exact in zip(names(kind), held[kind], wanted, strict=True):
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * (abs(exact).max() + 1e-300), err_msg=name)
