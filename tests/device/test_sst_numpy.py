"""Menter's model SST at random nodes against NumPy written from the published equations of k and omega, and the
derivatives of which the implicit blocks are made against differences."""

from functools import cache
from shutil import copytree, ignore_patterns

import numpy as np
import pytest
from kernels_alone import (
    ALL,
    GAMMA,
    PLACE,
    POINTS,
    PRANDTL,
    SHAPE,
    SIZE,
    STRIDES,
    SUTHERLAND,
    conservative,
    derivative,
    geometry,
    gradient,
    inside,
    inside_but,
    primitive,
    program,
    random,
    states,
    sutherland,
    temperature,
)  # fmt: skip

from hiresx import kernels
from hiresx.device import Configuration
from hiresx.device.cpu import CpuBackend

RE, FRONT, LARGEST = 0.01, 1e-2, 2.0  # RE: 1 / Re_c
ALONG = dict(zip(("di", "dj", "dk"), STRIDES, strict=True))
# beta*, a1, and of the layer at the wall and outside sigma_k, sigma_omega, beta, gamma
BETA_STAR, A1 = 0.09, 0.31
INNER, OUTER = np.array([0.85, 0.5, 0.075, 5 / 9]), np.array([1.0, 0.856, 0.0828, 0.44])


@cache
def alone(backend):
    return program(
        backend,
        ("half_point.h", "metrics.h", "viscous.h"),
        viscosity="sutherland",
        turbulence="sst",
        schmidt=(1.0, 1.0),
    )


def terms(rho, mu, k, g, d, strain, slope_k, slope_g, limited_k, limited_g, change_k, inverse):
    """mu_t over mu_ref, the diffusivities of k and g over mu_ref, and the changes of rho k and rho g by sources. k and
    omega in c^2 and 1/t, t = L/c, then in the units of the variables; lengths in L."""
    c2 = 1e-6
    omega, kinetic, re = c2 / (inverse * g**2), c2 * np.maximum(k, 0), 1 / inverse
    slope_omega = -2 * omega / g * slope_g
    cross_slopes = np.sum(c2 * limited_k * (-2 * omega / g * limited_g), axis=0)
    nu = mu * inverse / rho
    cd = np.maximum(2 * rho * OUTER[1] / omega * cross_slopes, 1e-10)
    turbulent, viscous = np.sqrt(kinetic) / (BETA_STAR * omega * d), 500 * nu / (d**2 * omega)
    f1 = np.tanh(np.minimum(np.maximum(turbulent, viscous), 4 * rho * OUTER[1] * kinetic / (cd * d**2)) ** 4)
    f2 = np.tanh(np.maximum(2 * turbulent, viscous) ** 2)
    sigma_k, sigma_w, beta, gamma = (f1 * i + (1 - f1) * o for i, o in zip(INNER, OUTER, strict=True))
    eddy = rho * A1 * kinetic / np.maximum(A1 * omega, strain * f2)
    resolved = np.maximum(k, 0) ** 2 / (np.maximum(k, 0) ** 2 + FRONT**2 * change_k + 1e-30)
    most = 10 * BETA_STAR * rho * kinetic * omega
    of_k = resolved * np.minimum(eddy * strain**2, most) - BETA_STAR * rho * c2 * k * omega
    crossing, destroyed = 2 * (1 - f1) * rho * OUTER[1] / omega * cross_slopes, beta * rho * omega**2
    nothing = (FRONT**2) ** 2 * change_k + 1e-30
    least = -destroyed * (np.maximum(k, 0) ** 2 + nothing) / nothing
    of_omega = gamma * rho * strain**2 - destroyed + np.maximum(crossing, least)
    # g = (10^-6 Re_c / omega)^(1/2), and what the diffusion of omega is besides that of g
    spread = mu * inverse + sigma_w * eddy
    of_g = -0.5 * g / omega * of_omega - 3 * spread * np.sum(limited_g**2, axis=0) / g
    assert slope_omega.shape == slope_g.shape
    branches = (
        crossing < least,
        f1 > 0.5,
        f2 > 0.5,
        strain * f2 > A1 * omega,
        eddy * strain**2 > most,
        resolved > 0.5,
        cd > 1e-10,
    )
    assert all(some.any() and not some.all() for some in branches)
    return eddy * re, mu + sigma_k * eddy * re, mu + sigma_w * eddy * re, of_k / c2, of_g


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_sources_and_diffusion_are_those_of_k_and_omega(backend):
    (s, q), grid, rng = states(), geometry(), random(11)
    k = 10 ** rng.uniform(-2, 3, SHAPE) * np.where(rng.uniform(size=SHAPE) < 0.1, -1, 1)
    g, distance = 10 ** rng.uniform(-1.5, 1.5, SHAPE), 10 ** rng.uniform(-2, 1.5, (1, *SHAPE))
    s[1:4] *= 10 ** rng.uniform(-3, 0, SHAPE)
    q = np.stack([*conservative(s), s[0] * k, s[0] * g])
    w, flux, source, eddies = (np.zeros((n, *SHAPE)) for n in (6, 18, 2, 1))
    distance[:, :, 4] = 0  # nodes of walls
    there = alone(backend)
    there.launch("viscous_primitives", tuple(reversed(SHAPE)), **ALL, sv=POINTS, q=q, w=w)
    there.launch(
        "viscous_flux", SIZE, **PLACE, **ALONG, sv=POINTS, w=w, m=grid[0], jacobian=grid[1], inverse_reynolds=RE, q=q,
        wall_distance=distance, transported_source=source, eddies=eddies, flux=flux,
    )  # fmt: skip
    area = inside(grid[0]).reshape(3, 3, *SIZE[::-1])
    velocity = np.stack([gradient(c, *grid) for c in s[1:4]])
    symmetric = 0.5 * (velocity + np.swapaxes(velocity, 0, 1))
    strain = np.sqrt(2 * np.sum(symmetric**2, axis=(0, 1)))
    own = {name: inside(values) for name, values in (("k", k), ("g", g))}
    changes = {
        name: np.stack([inside_but(derivative(values, 2 - d), 2 - d) for d in range(3)])
        for name, values in (("k", k), ("g", g))
    }
    limited = np.clip(changes["g"], -LARGEST * own["g"], LARGEST * own["g"])
    assert (limited != changes["g"]).any() and (limited == changes["g"]).any()
    slopes = {
        name: np.einsum("d...,dc...->c...", values, area) * inside(grid[1])
        for name, values in (changes | {"limited": limited}).items()
    }
    rho, mu, d = inside(s[0]), sutherland(inside(temperature(s))), inside(distance[0])
    with np.errstate(all="ignore"):
        eddy, of_k, of_g, source_k, source_g = terms(
            rho, mu, own["k"], own["g"], d, strain, slopes["k"], slopes["g"], slopes["k"], slopes["limited"],
            np.sum(changes["k"] ** 2, axis=0), RE,
        )  # fmt: skip
    there = d > 0
    np.testing.assert_allclose(inside(eddies)[0][there], eddy[there], rtol=1e-12)
    for n, wanted in enumerate((source_k, source_g)):
        found = inside(source)[n]
        # where large terms cancel beside the largest of them
        scale = {0: 0.09 * 1e-6 / RE, 1: 0.5 / RE * 1e-6}[n]
        beside = [scale * rho * np.abs(own["k"]) / own["g"] ** 2, scale * rho * 0.08 / own["g"]][n]
        beside = (
            beside + np.abs(wanted) + (3 * RE * of_g * np.sum(slopes["limited"] ** 2, axis=0) / own["g"] if n else 0)
        )
        assert (np.abs(found - wanted)[there] / beside[there]).max() < 1e-12
        assert not found[~there].any()
    spread = np.stack([of_k * slopes["k"], of_g * slopes["g"]]) * RE
    wanted = np.einsum("db...,ab...->da...", area, spread)
    found = inside(flux).reshape(3, 6, *SIZE[::-1])[:, 4:]
    assert (np.abs(found - wanted)[..., there] / np.abs(wanted[..., there]).max()).max() < 1e-12


# The flux through a face, of duals and of reals, and the derivatives of the sources with the values that they are of.
# The compiler chooses which functions it copies, as by HX_FEW_COPIES in arithmetic.h. The derivatives of the flux by 14
# numbers are compiled in a seventh of the time then.
PROBE = """
#undef HD
#define HD inline
#include "gas.h"
#include "half_point.h"
#define HX_NEIGHBOUR_BITS 32
#define HX_NEIGHBOUR_WORDS 25
#define HX_UPDATE_REALS 7
#define HX_SWEEP_BITS 64
#define HX_BLOCK_REALS 345
#define HX_STORED_DIRECTIONS 3
#include "viscous.h"
#include "implicit/blocks.h"
KERNEL(probe_face, int i, int j, int k, int side, const real *left, const real *right, const real *m, real *f,
       real *slope) {
    TransportedConstants<> known;
    known.blend = real(0.3), known.limit = real(0.02);
    real block[49];
    face_flux(left + 7 * i, right + 7 * i, m + 3 * i, real(0.7), real(0.3), real(0), f + 7 * i, known);
    if (side)
        flux_derivative<false>(left + 7 * i, right + 7 * i, m + 3 * i, real(0.7), real(0.3), real(0), known, block);
    else
        flux_derivative<true>(left + 7 * i, right + 7 * i, m + 3 * i, real(0.7), real(0.3), real(0), known, block);
    for (int e = 0; e < 49; ++e) slope[49 * i + e] = block[e];
}
// changed: q with one variable of one node changed; that of the node itself is kept in what is known
KERNEL(probe_sources, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv, const real *q,
       const real *changed, const real *m, const real *jacobian, const real *distance, real inverse_reynolds, real *own,
       real *along, real *value) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long at = i + (long long)@NI@ * (j + (long long)@NJ@ * k);
    const int apart[3] = {di, dj, dk};
    real beside[6][4];
    const TransportedConstants<> known = transported_derivatives(q, m, jacobian, p, sv, apart, distance, nullptr,
                                                               inverse_reynolds, own + 4 * at, beside);
    for (int s = 0; s < 6; ++s) for (int e = 0; e < 4; ++e) along[24 * at + 4 * s + e] = beside[s][e];
    real state[7], gradient[3][3] = {{real(0)}}, slope[2][3] = {{real(0)}}, none[3] = {real(0)};
    for (int v = 0; v < 7; ++v) state[v] = q[v * sv + p];
    const Primitive<real> here = primitive(state);
    TransportedNode<real> node;
    for (int n = 0; n < 2; ++n) node.s[n] = changed[(5 + n) * sv + p] / q[p];
    for (int d = 0; d < 3; ++d)
        for (int c = 0; c < 3; ++c) {
            const real area = m[(3 * d + c) * sv + p] * jacobian[p];
            const long long a = p - apart[d], b = p + apart[d];
            for (int v = 0; v < 3; ++v)
                gradient[v][c] += real(0.5) * area * (q[(v + 1) * sv + b] / q[b] - q[(v + 1) * sv + a] / q[a]);
            for (int n = 0; n < 2; ++n) {
                const real change = real(0.5) * (changed[(5 + n) * sv + b] / q[b] - changed[(5 + n) * sv + a] / q[a]);
                slope[n][c] += area * limited_change(n, change, node.s[n]);
            }
        }
    node.rho = q[p], node.mu = viscosity(gas_gamma * here.p / here.rho), node.distance = distance[p];
    node.inverse_reynolds = inverse_reynolds, node.strain = square_root(real(2) * strain_square(gradient));
    node.take(known);
    node.sources(slope, none, value + 2 * at);
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    root = tmp_path_factory.mktemp("probe") / "kernels"
    copytree(kernels.ROOT, root, ignore=ignore_patterns("__pycache__"))
    for folder in ("boundary", "terms"):
        for header in (root / folder).iterdir():
            header.unlink()
    (root / "solver.h").write_text(PROBE.replace("@NI@", str(SIZE[0])).replace("@NJ@", str(SIZE[1])))
    law = {"viscosity": "sutherland", "viscosity_parameters": (("sutherland_temperature", SUTHERLAND),)}
    model = {"turbulence": "sst", "schmidt": (1.0, 1.0)}
    return CpuBackend(root).compile(
        Configuration(gamma=GAMMA, prandtl=PRANDTL, flux="roe", positivity="none", **law, **model)
    )


@pytest.mark.slow
def test_blocks_are_the_derivatives_of_the_flux_through_a_face(probe):
    """By both states, 7 x 7, against central differences."""
    rng, count, step = random(3), 40, 1e-6
    left, right = (
        np.concatenate([conservative(s), s[0] * rng.uniform(0.5, 2.0, (2, count))]).T.copy()
        for s in (primitive(rng, count), primitive(rng, count))
    )
    m = rng.uniform(-1.0, 1.0, (count, 3))

    def face(side, *states):
        f, slope = np.zeros((count, 7)), np.zeros((count, 7, 7))
        probe.launch("probe_face", (count, 1, 1), side=side, left=states[0], right=states[1], m=m, f=f, slope=slope)
        return f, slope

    for side in (0, 1):
        _, slope = face(side, left, right)
        assert (np.abs(slope[:, 5:]).max(axis=(1, 2)) > 0).all()
        for variable in range(7):
            ends = []
            for sign in (1.0, -1.0):
                given = [left.copy(), right.copy()]
                given[side][:, variable] += sign * step
                ends.append(face(side, *given)[0])
            off = np.abs(slope[:, :, variable] - (ends[0] - ends[1]) / (2 * step))
            assert (off / np.maximum(np.abs(slope).max(axis=(1, 2)), 0.1)[:, None]).max() < 1e-7


@pytest.mark.slow
def test_blocks_have_the_derivatives_of_the_sources(probe):
    """By k and g of the node and of its six neighbours, at random nodes of which some are limited; those on the
    diagonal only where they are negative, and those by the differences of the same variable upwind."""
    (s, q), (m, jacobian), rng = states(), geometry(), random(12)
    s[1:4] *= 0.1
    k, g = 10 ** rng.uniform(0, 2, SHAPE), 10 ** rng.uniform(-1, 0.5, SHAPE)
    q = np.stack([*conservative(s), s[0] * k, s[0] * g])
    distance = 10 ** rng.uniform(-2, 1, SHAPE)

    def sources(changed):
        nodes = SIZE[2], SIZE[1], SIZE[0]
        own, along, value = np.zeros((*nodes, 2, 2)), np.zeros((*nodes, 6, 2, 2)), np.zeros((*nodes, 2))
        probe.launch(
            "probe_sources", SIZE, **PLACE, **ALONG, sv=POINTS, q=q, changed=changed, m=m, jacobian=jacobian,
            distance=distance, inverse_reynolds=RE, own=own, along=along, value=value,
        )  # fmt: skip
        return own, along, value

    own, along, _ = sources(q)
    scale = np.maximum(np.abs(own).max(axis=(-1, -2)), np.abs(along).max(axis=(-1, -2, -3)))
    third = np.indices(SHAPE).sum(axis=0) % 3 + 3 * (np.indices(SHAPE)[0] % 3) + 9 * (np.indices(SHAPE)[1] % 3)
    exact, of_sides = np.zeros_like(own), np.zeros_like(along)
    for variable in range(2):
        for colour in range(27):  # nodes of a colour have no neighbour in common
            step = 1e-6 * np.abs(q[5 + variable])
            ends = []
            for sign in (1.0, -1.0):
                changed = q.copy()
                changed[5 + variable] += sign * step * (third == colour)
                ends.append(sources(changed)[2])
            difference = ends[0] - ends[1]
            for place in [None, *range(6)]:
                offset = [0, 0, 0]
                if place is not None:
                    offset[2 - place // 2] = 2 * (place % 2) - 1
                moved = np.roll(third, [-n for n in offset], (0, 1, 2)), np.roll(step, [-n for n in offset], (0, 1, 2))
                here, by = inside(moved[0]) == colour, 2 * inside(moved[1])
                into = exact if place is None else of_sides[..., place, :, :]
                into[here, :, variable] = difference[here] / by[here][:, None]
    clipped = sum((exact[..., v, v] > 0).sum() for v in range(2))
    for v in range(2):
        exact[..., v, v] = np.minimum(exact[..., v, v], 0)
        for d in range(3):
            behind, ahead = (inside(np.roll(q[0], n, 2 - d)) for n in (1, -1))
            # of rho s of the node itself: upwind
            size = np.abs(of_sides[..., 2 * d + 1, v, v] * ahead)
            exact[..., v, v] -= 2 * size / inside(q[0])
            of_sides[..., 2 * d, v, v] += size / behind
            of_sides[..., 2 * d + 1, v, v] += size / ahead
    for found, wanted in ((own, exact), *((along[..., n, :, :], of_sides[..., n, :, :]) for n in range(6))):
        off = np.abs(found - wanted) / scale[..., None, None]
        assert np.quantile(off, 0.99) < 1e-7  # at a kink a difference is of both sides
    assert clipped


@pytest.mark.slow
def test_g_falls_at_a_bounded_rate():
    """Where it falls: r/(1 - r/(M rho g)), M a hundred times that of convection and diffusion over a cell; elsewhere,
    and of k, as it was. In a stage of an explicit step its sources take half of it at most."""
    (s, q), (m, jacobian), rng = states(), geometry(), random(13)
    q = np.stack([*q, s[0], s[0] * rng.uniform(0.1, 2.0, SHAPE)])
    q[6, :, 4] = 0  # nodes of walls
    before = rng.normal(size=(2, *SHAPE)) * 10 ** rng.uniform(-1, 5, (2, *SHAPE))
    r = before.copy()
    there = program("cpu", ("half_point.h", "viscous.h", "terms/transported.h"), viscosity="sutherland",
                    turbulence="sst", schmidt=(1.0, 1.0))  # fmt: skip
    there.launch(
        "transported_bound", SIZE, **PLACE, active=3, sv=POINTS, q=q, m=m, jacobian=jacobian, inverse_reynolds=RE, r=r
    )
    area = m.reshape(3, 3, *SHAPE)[:2]
    most = jacobian * np.sum(np.abs(np.einsum("dc...,c...->d...", area, s[1:4])), axis=0)
    most = most + 4 * jacobian**2 * np.sum(area**2, axis=(0, 1)) * sutherland(temperature(s)) * RE / s[0]
    with np.errstate(all="ignore"):
        bounded = before[1] / (1 - before[1] * jacobian / (100 * most * q[6]))
    wanted = np.stack([before[0], np.where((before[1] < 0) & (q[6] > 0), bounded, before[1])])
    np.testing.assert_allclose(inside(r), inside(wanted), rtol=1e-12)
    assert 0.1 < (np.abs(inside(wanted[1])) < 0.5 * np.abs(inside(before[1]))).mean() < 0.9
    dt, taken = 10 ** rng.uniform(-5, -2, SHAPE), {}
    for loss in (0.5, 0.0):
        r = np.zeros_like(before)
        there.launch(
            "transported_source", SIZE, **PLACE, sv=POINTS, jacobian=jacobian, q=q, source=before, dt=dt, dt_stride=1,
            largest_loss=loss, r=r,
        )  # fmt: skip
        taken[loss] = inside(r * jacobian)
    least = np.where(q[6] > 0, -0.5 * q[6] / dt, -np.inf)
    np.testing.assert_allclose(taken[0.0], inside(before), rtol=1e-12)
    np.testing.assert_allclose(taken[0.5], inside(np.stack([before[0], np.maximum(before[1], least)])), rtol=1e-12)
    assert 0.1 < (taken[0.5][1] != taken[0.0][1]).mean() < 0.9
