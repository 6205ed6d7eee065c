"""Kernels of the right-hand side, one at a time, against NumPy written from the equations: metrics, viscous terms,
update, boundary nodes and ghosts, halos. Both backends could share a mistake, which their agreement would not show."""

import numpy as np
import pytest
from kernels_alone import (
    ALL,
    GAMMA,
    HALO,
    ORIGIN,
    PLACE,
    POINTS,
    PRANDTL,
    SHAPE,
    SIZE,
    SMALL,
    STRIDES,
    VISCOUS,
    conservative,
    derivative,
    geometry,
    gradient,
    inside,
    inside_but,
    program,
    random,
    states,
    sutherland,
    temperature,
    turn,
)  # fmt: skip
from numpy_kernels import eigenvectors

NI, NJ, NK = SIZE
RE = 0.01  # 1 / Re_c
OUTFLOW = ("half_point.h", "metrics.h", "viscous.h", "continuation.h", "boundary/extrapolate.h")
SUBSONIC = ("half_point.h", "metrics.h", "viscous.h", "continuation.h", "boundary/subsonic_face.h")
WALLS = ("half_point.h", "metrics.h", "viscous.h", "continuation.h", "interpolated.h", "boundary/reflect.h")


# ---- metrics


def test_metrics_and_jacobian(backend):
    """The symmetric conservative form, on nodes of a stretched and turned grid."""
    k, j, i = np.indices(SHAPE)
    flat = np.stack([np.sinh(0.1 * i), 0.4 * np.tanh(0.2 * j) + 0.1 * j, 2.0 * k])
    flat += 0.05 * random(1).normal(size=flat.shape)
    x = np.ascontiguousarray(np.einsum("ab,b...->a...", turn(), flat))
    kernels = program(backend, SMALL)
    areas, jacobian = np.zeros((9, *SHAPE)), np.zeros(SHAPE)
    nodes = {"c": ORIGIN, "cj": STRIDES[1], "ck": STRIDES[2], "x": x[0], "y": x[1], "z": x[2]}
    for d in range(3):
        s1, s2 = STRIDES[(d + 1) % 3], STRIDES[(d + 2) % 3]
        kernels.launch("metrics", SIZE, **nodes, s1=s1, s2=s2, **PLACE, sv=POINTS, m=areas[3 * d : 3 * d + 3])
    kernels.launch("jacobian", SIZE, **nodes, **PLACE, result=jacobian)
    axis = [2, 1, 0]  # of i, j, k

    def cut(f, d):
        return np.take(f, np.arange(3, f.shape[axis[d]] - 3), axis[d])

    for d in range(3):
        p, r = (d + 1) % 3, (d + 2) % 3
        for c in range(3):
            y, z = x[(c + 1) % 3], x[(c + 2) % 3]

            def product(e, y=y, z=z):  # y_e z - y z_e
                return derivative(y, axis[e]) * cut(z, e) - cut(y, e) * derivative(z, axis[e])

            wanted = 0.5 * (derivative(product(p), axis[r]) - derivative(product(r), axis[p]))
            np.testing.assert_allclose(inside(areas[3 * d + c]), cut(wanted, d), rtol=0, atol=1e-12 * abs(wanted).max())
    slopes = np.stack([inside_but(np.stack([derivative(c, axis[d]) for c in x]), axis[d]) for d in range(3)], axis=1)
    np.testing.assert_allclose(1 / inside(jacobian), np.linalg.det(np.moveaxis(slopes, (0, 1), (3, 4))), rtol=1e-9)


# ---- viscous terms


@pytest.mark.parametrize("missing", [None, 1, 2], ids=["3d", "no j", "no k"])
def test_viscous_flux_and_difference(backend, missing):
    (s, q), (m, jacobian) = states(), geometry()
    kernels = program(backend, VISCOUS, viscosity="sutherland")
    w = np.zeros((4, *SHAPE))
    kernels.launch("viscous_primitives", tuple(reversed(SHAPE)), **ALL, sv=POINTS, q=q, w=w)
    np.testing.assert_allclose(w, np.stack([*s[1:4], temperature(s)]), rtol=1e-11, atol=1e-12)
    along = {f"d{'ijk'[d]}": 0 if d == missing else stride for d, stride in enumerate(STRIDES)}
    flux = random(8).normal(size=(12, *SHAPE))
    given = flux.copy()
    fields = {"w": w, "m": m, "jacobian": jacobian, "flux": flux}
    kernels.launch("viscous_flux", SIZE, **PLACE, **along, sv=POINTS, inverse_reynolds=RE, **fields)
    area = m.copy()
    if missing is not None:
        area[3 * missing : 3 * missing + 3] = 0
    g = np.stack([gradient(f, area, jacobian) for f in w])  # variable, component
    mu = sutherland(inside(w[3])) * RE
    divergence = g[0, 0] + g[1, 1] + g[2, 2]
    tau = mu * (g[:3] + np.swapaxes(g[:3], 0, 1) - 2 / 3 * divergence * np.eye(3)[:, :, None, None, None])
    heat = mu / (PRANDTL * (GAMMA - 1)) * g[3]
    energy = np.einsum("a...,ab...->b...", inside(w[:3]), tau) + heat
    areas = inside(m).reshape(3, 3, NK, NJ, NI)
    wanted = np.concatenate([np.einsum("db...,ab...->da...", areas, tau), np.sum(areas * energy, axis=1)[:, None]], 1)
    wanted = wanted.reshape(12, NK, NJ, NI)
    np.testing.assert_allclose(inside(flux), wanted, rtol=0, atol=1e-12 * abs(wanted).max())
    r = random(9).normal(size=(5, *SHAPE))
    before = r.copy()
    kernels.launch("viscous_difference", SIZE, **PLACE, **along, sv=POINTS, flux=given, r=r)
    change = sum(
        inside_but(np.stack([derivative(f, 2 - d) for f in given[4 * d : 4 * d + 4]]), 2 - d)
        for d in range(3)
        if d != missing
    )
    np.testing.assert_allclose(inside(r)[1:], inside(before)[1:] + change, rtol=0, atol=1e-12 * abs(change).max())
    np.testing.assert_array_equal(r[0], before[0])


def face(d: int, upper: bool) -> tuple[tuple[int, int, int], dict[str, int], dict]:
    """(extent, {o, s1, s2, sn, sv}, layers): `layers[l]` indexes the nodes l inside the face, -l behind it, as
    (n2, n1)."""
    tangents = [e for e in range(3) if e != d]
    at = HALO + SIZE[d] - 1 if upper else HALO
    inward = -1 if upper else 1
    o = sum(HALO * STRIDES[e] for e in tangents) + at * STRIDES[d]

    def layer(l):
        place = [slice(HALO, -HALO)] * 3
        place[2 - d] = at + inward * l
        return (..., *place)

    extent = (SIZE[tangents[0]], SIZE[tangents[1]], 1)
    s1, s2 = (STRIDES[e] for e in tangents)
    place = {"o": o, "s1": s1, "s2": s2, "sn": inward * STRIDES[d], "sv": POINTS}
    return extent, place, {l: layer(l) for l in range(-3, 7)}


FACES = pytest.mark.parametrize(("d", "upper"), [(0, False), (1, True), (2, False)], ids=["imin", "jmax", "kmin"])


@FACES
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_viscous_ghosts_are_polynomials(backend, d, upper, degree):
    """A polynomial of the degree goes on behind the face; one of the next degree does not."""
    extent, place, layers = face(d, upper)
    for power in range(degree + 2):
        w = random(10).normal(size=(4, *SHAPE))
        factor = random(11).normal(size=(4, *w[(slice(None), *layers[0])].shape[1:]))
        for l in range(4):
            w[(slice(None), *layers[l])] = factor * (l + 0.5) ** power
        kernels = program(backend, VISCOUS, viscosity="sutherland")
        kernels.launch("viscous_extrapolate", extent, **place, variables=4, degree=degree, w=w)
        error = [abs(w[(slice(None), *layers[-l])] - factor * (0.5 - l) ** power).max() for l in (1, 2, 3)]
        assert max(error) < 1e-11 if power <= degree else min(error) > 0.1


@FACES
def test_viscous_flux_behind_a_plane_of_symmetry(backend, d, upper):
    """Normal momentum even, the rest odd."""
    (m, _), (extent, place, layers) = geometry(), face(d, upper)
    flux = random(12).normal(size=(4, *SHAPE))
    area = np.ascontiguousarray(m[3 * d : 3 * d + 3])
    program(backend, VISCOUS, viscosity="sutherland").launch(
        "viscous_reflect", extent, **place, m=area, flux=flux
    )  # fmt: skip
    n = area[(slice(None), *layers[0])]
    n = n / np.linalg.norm(n, axis=0)
    for l in (1, 2, 3):
        ghost, inner = (flux[(slice(None), *layers[s * l])] for s in (-1, 1))
        wanted = 2 * np.sum(n * inner[:3], axis=0) * n - inner[:3]
        np.testing.assert_allclose(ghost, np.concatenate([wanted, -inner[3:]]), rtol=1e-12, atol=1e-12)


@FACES
@pytest.mark.parametrize("jump", [0.0, 30.0], ids=["smooth", "jump"])
def test_viscous_flux_behind_a_wall_that_mirrors_places(backend, d, upper, jump):
    """The parabola through three nodes, at a jump of density and pressure the mirrored flux."""
    (m, _), (extent, place, layers) = geometry(), face(d, upper)
    flux, area = random(13).normal(size=(4, *SHAPE)), np.ascontiguousarray(m[3 * d : 3 * d + 3])
    q = np.ones((5, *SHAPE)) * np.reshape((1.0, 0.2, -0.1, 0.3, 2.5), (5, 1, 1, 1))
    q[(slice(None), *layers[2])] *= 1 + jump
    program(backend, WALLS, viscosity="sutherland", positivity="fallback").launch(
        "viscous_mirrored", extent, **place, m=area, q=q, flux=flux
    )  # fmt: skip
    inner = [flux[(slice(None), *layers[l])] for l in range(4)]
    n = area[(slice(None), *layers[0])]
    n = n / np.linalg.norm(n, axis=0)
    share = 1 / (1 + (5 * jump / (2 + jump)) ** 4)  # the second difference at the jump over the sum of its parts
    for l in (1, 2, 3):
        parabola = (l + 1) * (l + 2) / 2 * inner[0] - l * (l + 2) * inner[1] + l * (l + 1) / 2 * inner[2]
        mirrored = np.concatenate([2 * np.sum(n * inner[l][:3], axis=0) * n, 0 * n[:1]]) - inner[l]
        wanted = share * parabola + (1 - share) * mirrored
        np.testing.assert_allclose(flux[(slice(None), *layers[-l])], wanted, rtol=1e-12, atol=1e-12)


def quartic_behind(inner, l):
    """The polynomial of degree 4 through five nodes, l nodes behind the first."""
    weights = [np.prod([(-l - b) / (a - b) for b in range(5) if b != a]) for a in range(5)]
    return sum(weight * value for weight, value in zip(weights, inner, strict=True))


def shrinking(d, upper, ratio):
    """The arguments of spacings that grow by `ratio` from cell to cell inwards of a face: area vectors and Jacobian."""
    index = np.indices(SHAPE)[2 - d]
    m = np.zeros((3, *SHAPE))
    m[d] = 2.0
    return {"m": m, "jacobian": ratio ** (index if upper else -index).astype(float)}


# of the ghosts 1 and 2 by the cubics through neighbouring nodes and through every second node
CUBICS = ((1, (4, -6, 4, -1), (35, -35, 21, -5)), (2, (10, -20, 15, -4), (4, -6, 4, -1)))


def closed_flux(flux, layers, l, share, ratio):
    """What the ghost l of a normal viscous flux is, l = 1 or 2."""
    neighbours, second = CUBICS[l - 1][1:]
    steep = min(max(2 * (ratio - 1.5), 0), 1)
    f = [flux[layers[a]] for a in range(7)]
    cubic = sum(weight * f[a] for a, weight in enumerate(neighbours))
    by_second = sum(weight * f[2 * a] for a, weight in enumerate(second)) / (16 if l == 1 else 1)
    return share * ((1 - steep) * cubic + steep * by_second) + (1 - share) * f[0]


@FACES
@pytest.mark.parametrize("ratio", [1.4, 1.8, 3.0])
@pytest.mark.parametrize("jump", [0.0, 30.0], ids=["smooth", "jump"])
def test_viscous_terms_at_subsonic_faces(backend, d, upper, jump, ratio):
    """Velocity and temperature go on by quartics, at a jump by straight lines. The flux goes on by a cubic, on steep
    lines through every second node, at a jump as a constant, and has no derivative at the face."""
    extent, place, layers = face(d, upper)
    w, flux = random(14).normal(size=(4, *SHAPE)), random(15).normal(size=(4, *SHAPE))
    q = np.ones((5, *SHAPE)) * np.reshape((1.0, 0.2, -0.1, 0.3, 2.5), (5, 1, 1, 1))
    q[(slice(None), *layers[2])] *= 1 + jump
    share = 1 / (1 + (5 * jump / (2 + jump)) ** 4)
    kernels = program(backend, SUBSONIC, viscosity="sutherland", positivity="fallback")
    kernels.launch("subsonic_primitives", extent, **place, q=q, w=w)
    kernels.launch("subsonic_flux", extent, **place, **shrinking(d, upper, ratio), q=q, flux=flux)
    step = 1 if not upper else -1
    box = [slice(HALO, -HALO)] * 3
    at = HALO + SIZE[d] - 1 if upper else HALO
    box[2 - d] = at + 4 * step
    inner = [*(w[(slice(None), *layers[l])] for l in range(4)), w[(slice(None), *box)]]
    for l in (1, 2, 3):
        straight = inner[0] - l * (inner[1] - inner[0])
        wanted = share * quartic_behind(inner, l) + (1 - share) * straight
        np.testing.assert_allclose(w[(slice(None), *layers[-l])], wanted, rtol=1e-11, atol=1e-11)
    f = {l: flux[(slice(None), *layers[l])] for l in range(-3, 4)}
    for l in (1, 2):
        np.testing.assert_allclose(f[-l], closed_flux(flux, layers, l, share, ratio), rtol=1e-11, atol=1e-11)
    level = f[3] + 45 * (f[1] - f[-1]) - 9 * (f[2] - f[-2])
    np.testing.assert_allclose(f[-3], level, rtol=1e-10, atol=1e-10)


@FACES
@pytest.mark.parametrize("jump", [0.0, 0.8], ids=["smooth", "jump"])
def test_a_scalar_at_subsonic_faces(backend, d, upper, jump):
    """The same of a scalar, whose own jump counts in a smooth gas."""
    extent, place, layers = face(d, upper)
    q = np.ones((5, *SHAPE)) * np.reshape((2.0, 0.2, -0.1, 0.3, 2.5), (5, 1, 1, 1))
    scalar, flux, w = 2 * random(14).uniform(0.4, 0.41, SHAPE), random(15).normal(size=SHAPE), np.zeros(SHAPE)
    scalar[layers[2]] += 2 * jump
    kernels = program(backend, SUBSONIC, viscosity="sutherland", positivity="fallback", schmidt=(0.7,))
    kernels.launch("subsonic_scalar", extent, **place, transported=0, q=q, scalar=scalar, w=w)
    spacings = shrinking(d, upper, 1.8)
    kernels.launch("subsonic_scalar_flux", extent, **place, **spacings, transported=0, q=q, scalar=scalar, flux=flux)
    inner = [scalar[layers[l]] / 2 for l in range(5)]
    sensor = np.max([abs(inner[l - 1] - 2 * inner[l] + inner[l + 1]) / 4 for l in (1, 2)], axis=0)
    share = 1 / (1 + (5 * sensor) ** 4)
    for l in (1, 2, 3):
        wanted = share * quartic_behind(inner, l) + (1 - share) * (inner[0] - l * (inner[1] - inner[0]))
        np.testing.assert_allclose(w[layers[-l]], wanted, rtol=1e-11, atol=1e-11)
    f = {l: flux[layers[l]] for l in range(-3, 4)}
    np.testing.assert_allclose(f[-1], closed_flux(flux, layers, 1, share, 1.8), rtol=1e-11, atol=1e-11)
    level = f[3] + 45 * (f[1] - f[-1]) - 9 * (f[2] - f[-2])
    np.testing.assert_allclose(f[-3], level, rtol=1e-10, atol=1e-10)


def test_a_state_kept_as_differences_has_a_reference_of_its_own_for_each_variable():
    s, q = states()
    reference = (1.1, 0.2, -0.3, 0.45, 2.5)
    stored = (q - np.reshape(reference, (5, 1, 1, 1))).astype(np.float32)
    w = np.zeros((4, *SHAPE), np.float32)
    kernels = program("emulated", ("metrics.h", "viscous.h"), precision="differences", reference=reference)
    kernels.launch("viscous_primitives", tuple(reversed(SHAPE)), **ALL, sv=POINTS, q=stored, w=w)
    np.testing.assert_allclose(w, np.stack([*s[1:4], temperature(s)]), rtol=2e-6, atol=2e-6)


# ---- update


@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize("local", [False, True], ids=["global", "local"])
def test_update(backend, stage, local):
    """SSP-RK3, eq. (20), with the 1/J that r carries taken out."""
    a, b = ((0.0, 1.0), (0.75, 0.25), (1 / 3, 2 / 3))[stage]
    (_, q), (_, jacobian) = states(), geometry()
    start, r = states(1)[1], random(13).normal(size=(5, *SHAPE))
    dt = random(14).uniform(0.1, 1.0, SHAPE) if local else np.array([0.37])
    now, q0 = q.copy(), start.copy()
    program(backend, SMALL).launch(
        "update", SIZE, **PLACE, sv=POINTS, q0=q0, q=now, r=r, jacobian=jacobian, dt=dt, dt_stride=int(local), a=a, b=b,
        first=int(stage == 0),
    )  # fmt: skip
    wanted = a * start + b * (q + dt * jacobian * r)
    np.testing.assert_allclose(inside(now), inside(wanted), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(inside(q0), inside(q if stage == 0 else start))


# ---- boundaries and halos


@FACES
def test_slip_wall(backend, d, upper):
    """The node loses its normal momentum and keeps density, tangential momentum and pressure; the ghosts mirror."""
    (s, q), (m, _), (extent, place, layers) = states(), geometry(), face(d, upper)
    area = np.ascontiguousarray(m[3 * d : 3 * d + 3])
    kernels = program(backend, SMALL)
    kernels.launch("reflect_node", extent, **place, n1=extent[0], which=None, left=None, m=area, q=q)
    n = area[(slice(None), *layers[0])]
    n = n / np.linalg.norm(n, axis=0)

    def velocity_changed(state, factor):
        found = state.copy()
        found[1:4] -= factor * np.sum(n * state[1:4], axis=0) * n
        return found

    wall = velocity_changed(s[(slice(None), *layers[0])], 1)
    np.testing.assert_allclose(q[(slice(None), *layers[0])], conservative(wall), rtol=1e-12, atol=1e-12)
    kernels.launch("reflect_ghost", extent, **place, m=area, q=q)
    for l in (1, 2, 3):
        ghost = velocity_changed(s[(slice(None), *layers[l])], 2)
        np.testing.assert_allclose(q[(slice(None), *layers[-l])], conservative(ghost), rtol=1e-12, atol=1e-12)


@FACES
@pytest.mark.parametrize(
    ("rated", "cell", "roughness", "mach"),
    [
        *[(0, 0.0, 1.0, None), (1, 0.0, 1.0, None), (0, 5.0, 1e-3, None), (1, 5.0, 1e-3, None)],
        *[(1, 15.0, 1e-3, None), (0, 0.0, 1e-3, 1.07), (0, 5.0, 1e-3, 1.07)],
    ],
)
def test_ghosts_of_an_outflow(backend, d, upper, rated, cell, roughness, mach):
    """The cubic through four nodes goes on in the fields that leave; those that enter repeat the node, but for the
    acoustic one where its rate is set. Where lines shrink towards the face the cubic of the latter is the one through
    every second node. Where the flow is smooth the quartic through five nodes goes on: where that rate
    is set if the cell's Reynolds number, `cell` (0: inviscid), is low, elsewhere from Mach 1.1 on. `mach`: that of the
    gas, if it leaves."""
    (s, q), (m, jacobian), (extent, place, layers) = states(), geometry(), face(d, upper)
    area, inward = np.ascontiguousarray(m[3 * d : 3 * d + 3]), -1.0 if upper else 1.0
    at = (slice(None), *layers[0])
    mean = s[:, :1, :1, :1].copy()
    if mach:
        outward = -inward * area[at].reshape(3, -1).mean(axis=1)
        mean[1:4, 0, 0, 0] = mach * np.sqrt(temperature(mean)) * outward / np.linalg.norm(outward)
    mean = conservative(mean)
    q = mean + roughness * (q - mean)
    rho, n = q[at][0].ravel(), inward * area[at].reshape(3, -1)
    un = np.sum(n * q[at][1:4].reshape(3, -1), axis=0) / rho / np.linalg.norm(n, axis=0)
    p = (GAMMA - 1) * (q[at][4].ravel() - 0.5 * np.sum(q[at][1:4].reshape(3, -1) ** 2, axis=0) / rho)
    sound = np.sqrt(GAMMA * p / rho)
    # the jacobian that gives all cells their number
    jacobian[layers[0]] = (rho * sound / (max(cell, 1) * np.linalg.norm(n, axis=0))).reshape(jacobian[layers[0]].shape)
    along, chance = [np.linalg.norm(area[(slice(None), *layers[l])], axis=0) for l in range(5)], random(19)
    for l in range(1, 5):  # ratios of neighbouring spacings about the limits between which the closure changes
        growth = chance.uniform(0.95, 1.08, along[l].shape)
        jacobian[layers[l]] = jacobian[layers[l - 1]] * along[l - 1] / along[l] / growth
    kernels = program(backend, OUTFLOW, viscosity="constant") if cell else program(backend, SMALL)
    kernels.launch(
        "extrapolate", extent, **place, direction=inward, rated=rated, inverse_reynolds=1.0, m=area, jacobian=jacobian,
        q=q,
    )  # fmt: skip
    nodes = np.stack([q[(slice(None), *layers[l])].reshape(5, -1) for l in range(7)])
    spacings = np.stack([1 / (jacobian[layers[l]] * along[l]) for l in range(5)])
    shrinking = np.clip(((spacings[1:] / spacings[:-1]).max(axis=0).ravel() - 1.05) / 0.05, 0, 1) * rated
    assert not rated or 0 < shrinking.mean() < 1
    speeds = np.stack([un - sound, un, un, un, np.full(un.shape, -1.0) if rated else un + sound], axis=1)
    basis = eigenvectors(nodes[0], n)
    fourth = np.tensordot([1, -4, 6, -4, 1], nodes[:5], 1) / rho / np.stack([0 * sound + 1, *[sound] * 3, sound**2])
    share = {0: 0, 5: 1, 15: 0.5}[cell] if rated else np.clip(10 * (-un / sound - 1), 0, 1)
    quartic = share / (1 + (np.sum(fourth**2, axis=0) / 0.01**2) ** 2)
    assert np.ptp(quartic) > 0.3 or (mach is None and not (rated and cell))
    for l in (1, 2, 3):
        cubic, whole, wide = (
            sum(nodes[a] * np.prod([(-l - b) / (a - b) for b in those if b != a]) for a in those)
            for those in (range(4), range(5), range(0, 7, 2))
        )  # Lagrange's
        fields, entering = (
            np.linalg.solve(basis, (to - nodes[0]).T[..., None])[..., 0]
            for to in (cubic + quartic * (whole - cubic), wide)
        )
        fields[:, 4] += shrinking * (entering[:, 4] - fields[:, 4])
        # a field that moves in enters whole from a thirtieth of the sound speed times its share of the density on
        change = abs(fields)
        change[:, 1:4] = np.sqrt(fields[:, 1] ** 2 + np.sum((fields[:, 2:4] / sound[:, None]) ** 2, axis=1))[:, None]
        enters = np.clip(30 * rho[:, None] * speeds / (sound[:, None] * change), 0, 1)
        assert rated or roughness < 1 or all(0 < np.sum(of_field) < len(un) for of_field in enters.T[1:])
        wanted = nodes[0] + np.einsum("nij,nj->in", basis, (1 - enters) * fields)
        ghost = q[(slice(None), *layers[-l])].reshape(5, -1)
        np.testing.assert_allclose(ghost, wanted, rtol=0, atol=1e-11 * abs(wanted).max())


@FACES
def test_prescribed_ghosts(backend, d, upper):
    (_, q), (extent, place, layers) = states(), face(d, upper)
    kernels = program(backend, SMALL)
    given = random(15).normal(size=(5, 4, extent[1], extent[0]))
    kernels.launch("prescribe", extent, **place, n1=extent[0], n2=extent[1], state=given, q=q)
    for l in range(4):
        np.testing.assert_array_equal(q[(slice(None), *layers[-l])], given[:, l])


@pytest.mark.parametrize("work", ["", "work_"])
def test_halos(backend, work):
    """Lists and signs: each node from its own, through a buffer, vectors turned; state and work arrays."""
    kernels, rng, count = program(backend, SMALL), random(16), 50
    source, target = rng.normal(size=(2, 4, *SHAPE))
    to, giving = (rng.permutation(POINTS)[:count].astype(np.int32) for _ in range(2))
    wanted = target.copy().reshape(4, -1)
    wanted[:, to] = -source.reshape(4, -1)[:, giving]
    through = target.copy()
    given = {"source": source, "source_sv": POINTS, "sign": -1.0}
    buffer, seats = np.zeros((count, 4)), rng.permutation(count).astype(np.int32)
    message, taken = {"buffer": buffer, "variables": 4}, {"target": through, "target_sv": POINTS}
    kernels.launch(f"pack_{work}halo", (count, 1, 1), to=seats, giving=giving, **given, **message)
    kernels.launch(f"unpack_{work}halo", (count, 1, 1), to=to, giving=seats, **message, **taken)
    np.testing.assert_array_equal(through.reshape(4, -1), wanted)
    rotation = turn(3)
    kernels.launch(f"rotate_{work}vectors", (count, 1, 1), at=to, **taken, **entries(rotation))
    wanted[:3, to] = rotation @ wanted[:3, to]
    np.testing.assert_allclose(through.reshape(4, -1), wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("work", ["", "work_"])
@pytest.mark.parametrize("raised", [6, 7])
def test_halos_by_signals(backend, work, raised):
    """Packed for the exchange that comes next, unpacked from the last one; what was unpacked before is neither unpacked
    nor turned again."""
    kernels, rng, count = program(backend, SMALL), random(17), 50
    source, target = rng.normal(size=(2, 4, *SHAPE))
    to, giving = (rng.permutation(POINTS)[:count].astype(np.int32) for _ in range(2))
    seats, extent = rng.permutation(count).astype(np.int32), (count, 1, 1)
    buffer = np.full((2, 4, count), np.nan)  # by the turn, variables apart
    message = {"buffer": buffer, "turn_reals": 4 * count, "variables": 4}
    kernels.launch(
        f"pack_signalled_{work}halo", extent, to=seats, giving=giving, source=source, source_sv=POINTS, sign=-1.0,
        count=np.array([raised, raised, 1]), **message,
    )  # fmt: skip
    sent = -source.reshape(4, -1)[:, giving]
    np.testing.assert_array_equal(buffer[(raised + 1) % 2][:, seats], sent)
    assert np.isnan(buffer[raised % 2]).all(), "a peer may still read it"
    found, rotation = target.copy(), turn(3)
    taken = {"target": found, "target_sv": POINTS}
    for new in (0, 1):
        now = {"count": np.array([raised + 1, raised + 1, new])}
        kernels.launch(f"unpack_signalled_{work}halo", extent, to=to, giving=seats, **message, **taken, **now)
        kernels.launch(f"rotate_signalled_{work}vectors", extent, at=to, **taken, **entries(rotation), **now)
        wanted = target.copy().reshape(4, -1)
        if new:
            wanted[:, to] = [*(rotation @ sent[:3]), sent[3]]
        np.testing.assert_allclose(found.reshape(4, -1), wanted, rtol=1e-13, atol=1e-13 if new else 0)


def entries(rotation: np.ndarray) -> dict[str, float]:
    """Of a rotation, as kernels take them."""
    return {f"r{row}{c}": float(rotation[n, m]) for n, row in enumerate("xyz") for m, c in enumerate("xyz")}
