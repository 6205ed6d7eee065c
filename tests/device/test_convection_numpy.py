"""Interpolation and numerical fluxes, one kernel at a time, against NumPy written from the equations."""

from functools import partial

import kernels_alone as alone
import numpy as np
import pytest
from numpy_kernels import eigenvectors

EPSILON = 1e-6
LINE = 40  # points of a grid line that is looked at alone


# ---- interpolation


def value_right(kind: str, stencil: np.ndarray) -> np.ndarray:
    """Interpolated value at i+1/2 from the five nodes i-2..i+2 (first index), eqs (13) to (17)."""
    centre = stencil[2]
    a = stencil - centre  # smoothness does not see a constant
    left, middle, right = a[0:3], a[1:4], a[2:5]
    values = (
        3 / 8 * left[0] - 5 / 4 * left[1] + 15 / 8 * left[2],
        -1 / 8 * middle[0] + 3 / 4 * middle[1] + 3 / 8 * middle[2],
        3 / 8 * right[0] + 3 / 4 * right[1] - 1 / 8 * right[2],
    )

    def beta(s, *c):
        x, y, z = s
        return (c[0] * x * x + c[1] * x * y + c[2] * y * y + c[3] * x * z + c[4] * y * z + c[5] * z * z) / 3

    betas = beta(left, 4, -19, 25, 11, -31, 10), beta(middle, 4, -13, 13, 5, -13, 4)
    betas = *betas, beta(right, 10, -31, 25, 11, -19, 4)
    ideal, tau = (1 / 16, 5 / 8, 5 / 16), abs(betas[0] - betas[2])
    weights = {
        "js": [d / (EPSILON + b) ** 2 for d, b in zip(ideal, betas, strict=True)],
        "z": [d * (1 + (tau / (EPSILON + b)) ** 2) for d, b in zip(ideal, betas, strict=True)],
        "linear": [d + 0 * tau for d in ideal],
    }[kind]
    return centre + sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def metric_at_half(m: np.ndarray) -> np.ndarray:
    """At h + 1/2 for h = 2..n-4 of nodes 0..n-1 (last index)."""
    n = m.shape[-1] - 5
    return sum(c * m[..., s : s + n] for s, c in enumerate((3, -25, 150, 150, -25, 3))) / 256


def interpolated(kind: str, scheme: str, space: str, q: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The states (5, n) on both sides of the half points between the nodes 3..LINE-4 of a line."""
    minus, plus = np.zeros((2, 5, LINE))
    half = metric_at_half(m)

    def both(h, basis, centre_minus, centre_plus):
        """Left-biased from h-2..h+2 and right-biased from h+3..h-1."""
        inverse = np.linalg.inv(basis)
        for found, nodes, centre in (
            (minus, range(h - 2, h + 3), centre_minus),
            (plus, range(h + 3, h - 2, -1), centre_plus),
        ):
            if centre is not None:
                fields = np.stack([inverse @ (q[:, node] - q[:, centre]) for node in nodes])
                found[:, h] = q[:, centre] + basis @ value_right(kind, fields)

    for h in range(3, LINE - 4):
        if scheme == "original":
            basis = eigenvectors(0.5 * (q[:, h : h + 1] + q[:, h + 1 : h + 2]), half[:, h - 2 : h - 1])[0]
            both(h, basis if space == "characteristic" else np.eye(5), h, h + 1)
        else:  # the space of the node that a value is biased to
            for centre, sides in ((h, (h, None)), (h + 1, (None, h + 1))):
                basis = eigenvectors(q[:, centre : centre + 1], m[:, centre : centre + 1])[0]
                both(h, basis if space == "characteristic" else np.eye(5), *sides)
    return minus[:, 3 : LINE - 4], plus[:, 3 : LINE - 4]


@pytest.mark.parametrize("amplitude", [1e-4, 1e-3, 3e-2, 0.3])
@pytest.mark.parametrize(
    ("kind", "scheme", "space"),
    [
        ("js", "modified", "component"), ("z", "modified", "component"), ("linear", "modified", "component"),
        ("js", "original", "component"), ("z", "original", "characteristic"), ("js", "modified", "characteristic"),
    ],
)  # fmt: skip
def test_interpolation(kind, scheme, space, amplitude):
    """Rough data of several sizes: epsilon outweighs the smoothness of the small, and is nothing beside the large."""
    rng = alone.random(2)
    s = alone.primitive(rng, 1) * np.ones((1, LINE)) * (1 + amplitude * rng.normal(size=(5, LINE)).clip(-2, 2))
    q = alone.conservative(s)
    # two normals on either side of where the tangents change over
    normal = np.array([0.5, -0.3, 0.6 if amplitude in (1e-4, 3e-2) else 2.0])
    m = normal[:, None] * (1 + 0.1 * rng.normal(size=(3, LINE)))
    minus, plus = np.zeros((2, 5, LINE))
    kernels = alone.program("emulated", ("half_point.h", "inviscid.h"), weights=kind, interpolation=scheme, space=space)
    first, last = (3, LINE - 3) if scheme == "modified" else (3, LINE - 4)
    line = {"o": first, "sj": 0, "sk": 0, "sd": 1, "sv": LINE}
    kernels.launch("interpolate", (last - first, 1, 1), **line, q=q, m=m, minus=minus, plus=plus)
    wanted = interpolated(kind, scheme, space, q, m)
    for found, reference in zip((minus, plus), wanted, strict=True):
        # the modified scheme's last node gives no left-biased value that has its partner
        error = abs(found[:, 3 : LINE - 4] - reference).max(axis=1) / abs(q).max(axis=1)
        assert error.max() < 1e-9 * amplitude, error


def test_interpolation_along_every_direction():
    """The same line along i, j and k gives the same; the strides of the block are all different."""
    rng = alone.random(3)
    _, q = alone.states()
    m = np.ascontiguousarray(np.broadcast_to(np.array([0.5, -0.3, 0.2])[:, None, None, None], (3, *alone.SHAPE)))
    kernels = alone.program("emulated", ("half_point.h", "inviscid.h"), weights="js", space="component")
    node = rng.integers(3, 7, 3)  # i, j, k
    values = rng.uniform(0.9, 1.1, (5, 6)) * np.array([1.0, 0.3, -0.2, 0.1, 3.0])[:, None]
    found = []
    for d in range(3):
        here, place = q.copy(), [slice(n, n + 1) for n in node]
        place[d] = slice(node[d] - 2, node[d] + 4)
        here[(slice(None), *place[::-1])] = values.reshape(5, *[6 if e == d else 1 for e in (2, 1, 0)])
        minus, plus = np.zeros((2, 5, *alone.SHAPE))
        o = sum(int(n) * stride for n, stride in zip(node, alone.STRIDES, strict=True))
        extent = [1 + (e == d) for e in range(3)]
        nodes = alone.PLACE | {"o": o, "sd": alone.STRIDES[d], "sv": alone.POINTS}
        kernels.launch("interpolate", tuple(extent), **nodes, q=here, m=m, minus=minus, plus=plus)
        at = (slice(None), *(int(n) for n in node[::-1]))
        found.append(np.stack([minus[at], plus[at]]))
        assert np.all(found[-1] != 0)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-14)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-14)


@pytest.mark.parametrize("positivity", ["fallback", "limiter"])
@pytest.mark.parametrize("variable", [0, 4], ids=["density", "pressure"])
@pytest.mark.parametrize(("peak", "kept"), [(7.0, 1.0), (9.0, 4 / 19), (12.0, 0.0)])
def test_states_far_from_their_node_are_drawn_to_it(positivity, peak, kept, variable):
    """Beside a peak in gas at rest the polynomial gives 1 + 60/128 (peak - 1): up to a factor of 4 all of it is kept,
    from 5 on nothing, and in between in proportion to the inverse of the factor (here 4.75): the rates never jump."""
    s = np.ones((5, LINE))
    s[1:4] = 0.0
    s[variable, 12] = peak
    q, m = alone.conservative(s), np.ones((3, LINE))
    minus, plus = np.zeros((2, 5, LINE))
    choices = {"weights": "linear", "space": "component", "positivity": positivity}
    kernels = alone.program("emulated", ("half_point.h", "inviscid.h"), **choices)
    line = {"o": 3, "sj": 0, "sk": 0, "sd": 1, "sv": LINE}
    marks = {"rough": np.zeros(LINE, np.int8)} if positivity == "limiter" else {}
    kernels.launch("interpolate", (LINE - 6, 1, 1), **line, q=q, m=m, minus=minus, plus=plus, **marks)
    wanted = q[variable, 11] * (1 + kept * 60 / 128 * (peak - 1))
    np.testing.assert_allclose([minus[variable, 11], plus[variable, 12]], wanted, rtol=1e-13)


# ---- fluxes


def physical_flux(s: np.ndarray, q: np.ndarray, m: np.ndarray) -> np.ndarray:
    volume = np.sum(m * s[1:4], axis=0)
    return np.concatenate([[q[0] * volume], q[1:4] * volume + m * s[4], [(q[4] + s[4]) * volume]])


def test_physical_flux(backend):
    (s, q), (m, _) = alone.states(), alone.geometry()
    f, pressure = np.zeros((5, *alone.SHAPE)), np.zeros(alone.SHAPE)
    extent = tuple(reversed(alone.SHAPE))
    alone.program(backend, ("half_point.h", "inviscid.h")).launch(
        "physical_flux", extent, **alone.ALL, sv=alone.POINTS, q=q, m=m[3:6], f=f, pressure=pressure
    )
    np.testing.assert_allclose(f, physical_flux(s, q, m[3:6]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pressure, s[4], rtol=1e-12)


def split(q, s, m, side):
    """Steger-Warming: R max(lambda, 0) L q, or min; the flux is homogeneous of degree one."""
    area = np.linalg.norm(m, axis=0)
    volume, sound = np.sum(m * s[1:4], axis=0), np.sqrt(alone.GAMMA * s[4] / s[0]) * area
    speeds = np.stack([volume - sound, volume, volume, volume, volume + sound], axis=1)
    basis = eigenvectors(q, m)
    fields = np.linalg.solve(basis, q.T[..., None])[..., 0]
    return np.einsum("nij,nj->in", basis, np.where(side * speeds > 0, speeds, 0.0) * fields)


def steger_warming(a, b, m):
    return split(a[1], a[0], m, 1) + split(b[1], b[0], m, -1)


def averages(a, b):
    """Roe's: density, velocity (3, n), enthalpy, sound speed."""
    weights = [np.sqrt(s[0]) for s, _ in (a, b)]
    total = sum(weights)
    mean = sum(w * np.stack([*s[1:4], (q[4] + s[4]) / s[0]]) for w, (s, q) in zip(weights, (a, b), strict=True)) / total
    sound = np.sqrt((alone.GAMMA - 1) * (mean[3] - 0.5 * np.sum(mean[:3] ** 2, axis=0)))
    return weights[0] * weights[1], mean[:3], mean[3], sound


def roe(a, b, m, least=0.0):
    rho, velocity, _, sound = averages(a, b)
    # a conservative state with Roe's velocity and enthalpy: its eigenvectors are those of the matrix of Roe
    p = rho * sound**2 / alone.GAMMA
    state = alone.conservative(np.stack([rho, *velocity, p]))
    area = np.linalg.norm(m, axis=0)
    un = np.sum(m * velocity, axis=0) / area
    basis = eigenvectors(state, m)
    strengths = np.linalg.solve(basis, (b[1] - a[1]).T[..., None])[..., 0]
    limit = 0.1 * (abs(un) + sound)
    speeds = [abs(un - sound), *[abs(un)] * 3, abs(un + sound)]
    for n in (0, 4):  # Harten's
        speeds[n] = np.where(speeds[n] < limit, (speeds[n] ** 2 + limit**2) / (2 * limit), speeds[n])
    speeds = [np.maximum(speed, least) for speed in speeds]
    spread = np.einsum("nij,nj->in", basis, np.stack(speeds, axis=1) * strengths)
    return 0.5 * (physical_flux(*a, m) + physical_flux(*b, m) - area * spread)


def rotated(a, b, m):
    """HLL along the difference of the velocities, Roe's across it in its plane with the area."""
    area = np.linalg.norm(m, axis=0)
    n, jump = m / area, b[0][1:4] - a[0][1:4]
    n1 = jump / np.linalg.norm(jump, axis=0) * np.sign(np.sum(n * jump, axis=0))
    share = np.sum(n * n1, axis=0)
    _, velocity, _, sound = averages(a, b)
    un, ul, ur = (np.sum(n1 * u, axis=0) for u in (velocity, a[0][1:4], b[0][1:4]))
    sound_l, sound_r = (np.sqrt(alone.GAMMA * s[4] / s[0]) for s, _ in (a, b))
    slow, fast = np.minimum(ul - sound_l, un - sound), np.maximum(ur + sound_r, un + sound)
    slow, fast = np.minimum(slow, 0), np.maximum(fast, 0)
    left, right = (physical_flux(*side, n1) for side in (a, b))
    hll = (fast * left - slow * right + fast * slow * (b[1] - a[1])) / (fast - slow)
    return area * share * hll + roe(a, b, area * (n - share * n1))


def hllc(a, b, m, low_mach=False):
    area = np.linalg.norm(m, axis=0)
    n = m / area
    _, velocity, _, sound = averages(a, b)
    un = np.sum(n * velocity, axis=0)
    (l, ql), (r, qr) = a, b
    ul, ur = (np.sum(n * s[1:4], axis=0) for s in (l, r))
    slow = np.minimum(ul - np.sqrt(alone.GAMMA * l[4] / l[0]), un - sound)
    fast = np.maximum(ur + np.sqrt(alone.GAMMA * r[4] / r[0]), un + sound)
    middle = r[4] - l[4] + l[0] * ul * (slow - ul) - r[0] * ur * (fast - ur)
    middle /= l[0] * (slow - ul) - r[0] * (fast - ur)

    def star(s, q, u, wave):
        push = middle + s[4] / (s[0] * (wave - u))
        state = np.stack([np.ones_like(u), *(s[1:4] + (middle - u) * n), q[4] / s[0] + (middle - u) * push])
        return physical_flux(s, q, n) + wave * (s[0] * (wave - u) / (wave - middle) * state - q)

    if low_mach:  # the mean of both sides of the contact, the outer waves weighed with the normal Mach number over .1
        mach = np.maximum(abs(ul) / np.sqrt(alone.GAMMA * l[4] / l[0]), abs(ur) / np.sqrt(alone.GAMMA * r[4] / r[0]))
        x = np.minimum(10 * mach, 1.0)
        weight = x * (3 - x * x) / 2
        fl, fr = physical_flux(l, ql, n), physical_flux(r, qr, n)
        changes = [(star(l, ql, ul, slow) - fl) / slow, (star(r, qr, ur, fast) - fr) / fast]
        outer = weight * (slow * changes[0] + fast * changes[1])
        mean = 0.5 * (fl + fr + outer + abs(middle) * (ql + changes[0] - qr - changes[1]))
        return area * np.select([slow >= 0, fast <= 0], [fl, fr], mean)
    regions = [slow >= 0, middle >= 0, fast >= 0]
    choices = [physical_flux(l, ql, n), star(l, ql, ul, slow), star(r, qr, ur, fast), physical_flux(r, qr, n)]
    return area * np.select(regions, choices[:3], choices[3])


def van_leer(a, b, m):
    area, found = np.linalg.norm(m, axis=0), 0.0
    for (s, q), side in ((a, 1), (b, -1)):
        un, sound = np.sum(m * s[1:4], axis=0) / area, np.sqrt(alone.GAMMA * s[4] / s[0])
        mach = un / sound
        mass = side * s[0] * sound * area * (mach + side) ** 2 / 4
        velocity = s[1:4] + m / area * (-un + 2 * side * sound) / alone.GAMMA
        energy = ((alone.GAMMA - 1) * un + 2 * side * sound) ** 2 / (2 * (alone.GAMMA**2 - 1))
        energy += 0.5 * (np.sum(s[1:4] ** 2, axis=0) - un**2)
        part = mass * np.stack([np.ones_like(un), *velocity, energy])
        found = found + np.where(side * mach >= 1, physical_flux(s, q, m), np.where(side * mach <= -1, 0.0, part))
    return found


def local_lax_friedrichs(a, b, m):
    speeds = [
        abs(np.sum(m * s[1:4], axis=0)) + np.sqrt(alone.GAMMA * s[4] / s[0]) * np.linalg.norm(m, axis=0)
        for s, _ in (a, b)
    ]
    return 0.5 * (physical_flux(*a, m) + physical_flux(*b, m) - np.maximum(*speeds) * (b[1] - a[1]))


ETA = alone.random(9).uniform(0, 2, 400)


def raised_roe(a, b, m):
    """Roe's flux whose eigenvalues are at least the larger ETA, of either sign, of both nodes."""
    return roe(a, b, m, np.maximum(ETA[:-1], ETA[1:])[2:-2])


FLUXES = {
    "steger_warming": steger_warming, "van_leer": van_leer, "local_lax_friedrichs": local_lax_friedrichs, "hllc": hllc,
    "roe": roe, "hllc_lm": partial(hllc, low_mach=True), "rotated_rhll": rotated,
    "roe_h": raised_roe,
}  # fmt: skip


@pytest.mark.parametrize("flux", FLUXES)
def test_numerical_flux_with_its_correction(flux):
    """On a line: the two-state flux through the interpolated areas plus -f_xx/24 + 7 f_xxxx/5760 of the node fluxes."""
    rng, n = alone.random(5), 400
    a, b = ((s, alone.conservative(s)) for s in (alone.primitive(rng, n), alone.primitive(rng, n)))
    m, f = rng.normal(size=(3, n)) * [[0.2], [1.0], [4.0]], rng.normal(size=(5, n))
    m[:] = m[:, :1] * (1 + 0.1 * rng.normal(size=(3, n)))
    minus, plus, one = a[1].copy(), b[1].copy(), np.ones((5, n))
    fields = {"fields": (ETA * (-1) ** np.arange(n))[None]} if flux == "roe_h" else {}
    alone.program("emulated", ("half_point.h", "inviscid.h"), flux=flux).launch(
        "numerical_flux", (n - 5, 1, 1), o=2, sj=0, sk=0, sd=1, sv=n, q=plus, m=m, f=f, pressure=one, minus=minus,
        plus=plus, **fields,
    )  # fmt: skip
    half = metric_at_half(m)
    kept = slice(2, n - 3)
    wanted = FLUXES[flux](*((s[:, kept], q[:, kept]) for s, q in (a, b)), half)
    # second and fourth differences at the half point, each to the order that the sum has
    second = sum(c * f[:, s : s + n - 5] for s, c in enumerate((-5, 39, -34, -34, 39, -5))) / 48
    fourth = sum(c * f[:, s : s + n - 5] for s, c in enumerate((1, -3, 2, 2, -3, 1))) / 2
    wanted = wanted - second / 24 + 7 * fourth / 5760
    np.testing.assert_allclose(minus[:, kept], wanted, rtol=0, atol=1e-12 * abs(wanted).max())


def test_smoothed_steger_warming():
    """|lambda| becomes sqrt(lambda^2 + (s a |m|)^2), at rest as much as elsewhere."""
    rng, n = alone.random(6), 300
    s, smoothing = alone.primitive(rng, n), 0.2
    s[1:4, ::2] *= 1e-3
    q, m = alone.conservative(s), rng.normal(size=(3, n))
    other = alone.primitive(rng, n)
    q2 = alone.conservative(other)
    area = np.linalg.norm(m, axis=0)
    wanted = 0.0
    for state, flow, side in ((q, s, 1), (q2, other, -1)):
        volume, sound = np.sum(m * flow[1:4], axis=0), np.sqrt(alone.GAMMA * flow[4] / flow[0]) * area
        speeds = np.stack([volume - sound, volume, volume, volume, volume + sound], axis=1)
        speeds = 0.5 * (speeds + side * np.sqrt(speeds**2 + (smoothing * sound[:, None]) ** 2))
        basis = eigenvectors(state, m)
        wanted = wanted + np.einsum("nij,nj->in", basis, speeds * np.linalg.solve(basis, state.T[..., None])[..., 0])
    minus, zero, one = q.copy(), np.zeros((5, n)), np.ones((5, n))
    alone.program("emulated", ("half_point.h", "inviscid.h"), flux_smoothing=smoothing).launch(
        "numerical_flux", (n, 1, 1), o=0, sj=0, sk=0, sd=0, sv=n, q=q2, m=m, f=zero, pressure=one, minus=minus,
        plus=q2,
    )  # fmt: skip
    np.testing.assert_allclose(minus, wanted, rtol=0, atol=1e-12 * abs(wanted).max())


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("d", [0, 1, 2])
def test_flux_difference(backend, d, first):
    flux, before = alone.random(7).normal(size=(2, 5, *alone.SHAPE))
    r = before.copy()
    alone.program(backend, ("half_point.h", "inviscid.h")).launch(
        "flux_difference", alone.SIZE, **alone.PLACE, sd=alone.STRIDES[d], sv=alone.POINTS, flux=flux, r=r, first=first
    )
    change = np.roll(flux, 1, axis=3 - d) - flux
    np.testing.assert_allclose(alone.inside(r), alone.inside(change + (0 if first else before)), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_where_the_limiter_looks(backend):
    """The mark of a node stands where the outer stencils of all fields together are rough: the root of the sum of 3
    beta, over the density, is above .1. It stands apart from the states, which are those without a limiter."""
    rng = alone.random(8)
    s = alone.primitive(rng, 1) * np.ones((1, LINE)) * (1 + 0.03 * rng.normal(size=(5, LINE)) * np.linspace(0, 1, LINE))
    q, m = alone.conservative(s), np.array([0.5, -0.3, 0.6])[:, None] * np.ones((3, LINE))
    (minus, plus), bare = np.zeros((2, 5, LINE)), np.zeros((2, 5, LINE))
    rough = np.zeros(LINE, np.int8)
    line = {"o": 3, "sj": 0, "sk": 0, "sd": 1, "sv": LINE}
    headers = ("half_point.h", "inviscid.h")
    alone.program(backend, headers, positivity="limiter").launch(
        "interpolate", (LINE - 6, 1, 1), **line, q=q, m=m, minus=minus, plus=plus, rough=rough
    )
    alone.program(backend, headers, positivity="fallback").launch(
        "interpolate", (LINE - 6, 1, 1), **line, q=q, m=m, minus=bare[0], plus=bare[1]
    )
    roughness = []
    for h in range(3, LINE - 3):
        inverse = np.linalg.inv(eigenvectors(q[:, h : h + 1], m[:, h : h + 1])[0])
        d1, d2, d3, d4 = (inverse @ (q[:, h + n + 1] - q[:, h + n]) for n in (-2, -1, 0, 1))
        ends = 4 * d1**2 - 11 * d1 * d2 + 10 * d2**2 + 4 * d4**2 - 11 * d4 * d3 + 10 * d3**2
        sound2 = alone.GAMMA * s[4, h] / s[0, h]
        roughness.append(np.sqrt(ends[[0, 1, 4]].sum() + ends[2:4].sum() / sound2) / s[0, h])
    wanted = np.array(roughness) > 0.1
    assert 5 < wanted.sum() < LINE - 11 and max(roughness) < 1
    np.testing.assert_array_equal(rough[3 : LINE - 3] != 0, wanted)
    np.testing.assert_array_equal(rough[[0, 1, 2, -3, -2, -1]], 0)
    np.testing.assert_array_equal([minus, plus], bare)
