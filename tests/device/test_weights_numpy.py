"""Nonlinear weights and the interpolations of six and seven nodes, against NumPy written from their definitions, and
their order on a smooth field with critical points."""

import numpy as np
import pytest
from kernels_alone import GAMMA, conservative, primitive, program, random
from numpy_kernels import eigenvectors
from numpy_weights import PARTS, SPAN, ideal_weights, value_right

LINE = 24
# interpolation, weights, space, nodes of the stencil, nodes that it reaches to each side of a half point. No case may
# take Z with six nodes, but it shows what a selection hides: every digit of betas and tau.
SCHEMES = [
    ("modified", "za", "component", 5, 3),
    ("original", "teno", "characteristic", 5, 3),
    ("original6", "teno_adaptive", "characteristic", 6, 3),
    ("original6", "z", "component", 6, 3),
    ("modified7", "z", "characteristic", 7, 4),
]


def interpolate(scheme, weights, space, reach, q, m):
    """Both states (5, ...) at the half points between the nodes `reach` .. n - reach - 1 of a line, by the kernel."""
    kernels = program("emulated", ("half_point.h", "inviscid.h"), weights=weights, interpolation=scheme, space=space)
    length = q.shape[1]
    minus, plus = np.zeros((2, 5, length))
    count = length - 2 * reach + scheme.startswith("modified") - 1
    line = {"o": reach, "sj": 0, "sk": 0, "sd": 1, "sv": length}
    kernels.launch("interpolate", (count, 1, 1), **line, q=q, m=m, minus=minus, plus=plus)
    return minus[:, reach : length - reach - 1], plus[:, reach : length - reach - 1]


def by_definition(scheme, weights, space, count, reach, q, m):
    length = q.shape[1]
    minus, plus = np.zeros((2, 5, length))
    for h in range(reach, length - reach - 1):
        for found, node, way in ((minus, h, 1), (plus, h + 1, -1)):
            if scheme.startswith("original"):
                c = {-2: 3, -1: -25, 0: 150, 1: 150, 2: -25, 3: 3}
                state = 0.5 * (q[:, h] + q[:, h + 1])
                area = sum(weight * m[:, h + s] for s, weight in c.items()) / 256
            else:
                state, area = q[:, node], m[:, node]
            basis = eigenvectors(state[:, None], area[:, None])[0] if space == "characteristic" else np.eye(5)
            nodes = [node + way * offset for offset in SPAN[count]]
            fields = np.linalg.solve(basis, q[:, nodes] - q[:, node : node + 1]).T
            found[:, h] = q[:, node] + basis @ value_right(weights, count, fields)
    return minus[:, reach : length - reach - 1], plus[:, reach : length - reach - 1]


@pytest.mark.parametrize("amplitude", [1e-4, 1e-3, 3e-2, 0.3])
@pytest.mark.parametrize(("scheme", "weights", "space", "count", "reach"), SCHEMES)
def test_states_follow_from_the_definitions(scheme, weights, space, count, reach, amplitude):
    """Rough data of several sizes: epsilon outweighs the smoothness of the small, and is nothing beside the large."""
    rng = random(2)
    s = primitive(rng, 1) * np.ones((1, LINE)) * (1 + amplitude * rng.normal(size=(5, LINE)).clip(-2, 2))
    q = conservative(s)
    m = np.array([0.5, -0.3, 0.6])[:, None] * (1 + 0.1 * rng.normal(size=(3, LINE)))
    found = interpolate(scheme, weights, space, reach, q, m)
    wanted = by_definition(scheme, weights, space, count, reach, q, m)
    for states, reference in zip(found, wanted, strict=True):
        error = abs(states - reference).max(axis=1) / abs(q).max(axis=1)
        assert error.max() < 1e-9 * amplitude, error


@pytest.mark.parametrize("count", PARTS)
def test_ideal_weights(count):
    wanted = {5: np.array([1, 10, 5]) / 16, 6: np.array([1, 15, 10, 6]) / 32, 7: np.array([1, 21, 35, 7]) / 64}
    np.testing.assert_allclose(ideal_weights(count), wanted[count], rtol=1e-12)


def density(x: np.ndarray) -> np.ndarray:
    """With two critical points, at one of which the second derivative is small too."""
    return 1 + 0.2 * np.sin(np.pi * x - np.sin(np.pi * x) / np.pi)


@pytest.mark.parametrize(("scheme", "weights", "space", "count", "reach"), SCHEMES)
def test_order_with_critical_points(scheme, weights, space, count, reach):
    """A density wave in a stream. TENO leaves nothing out of it: it is the linear interpolation to round-off."""
    errors = []
    for points in (32, 64):
        h = 2 / points
        x = -1 + h * (np.arange(points + 2 * reach) - reach + 0.25)

        def state(x):
            rho = density(x)
            return np.stack([rho, 0.7 * rho, 0 * x, 0 * x, 1 / (GAMMA - 1) + 0.245 * rho])

        q, m = state(x), np.tile([[1.0], [0.2], [-0.1]], x.size)
        minus, plus = interpolate(scheme, weights, space, reach, q, m)
        exact = state(x + h / 2)[:, reach : x.size - reach - 1]
        errors.append(max(abs(minus[0] - exact[0]).mean(), abs(plus[0] - exact[0]).mean()))
        if "teno" in weights:
            here = slice(reach, x.size - reach - 1)
            stencil = np.stack([np.roll(q, -offset, axis=1)[:, here] for offset in SPAN[count]])
            np.testing.assert_allclose(minus, value_right("linear", count, stencil), rtol=0, atol=1e-14)
    assert np.log2(errors[0] / errors[1]) > count - 0.2, errors


def scalar_at_half_points(scheme, weights, reach, s, mass, changes):
    """s_h at the half points between the nodes `reach` .. n - reach - 1 of a line of a scalar s, by the kernel, whose
    nodes have no mass flux: then the flux is `mass` s_h."""
    headers, given = ("half_point.h", "inviscid.h", "scalar.h"), {"weights": weights, "interpolation": scheme}
    kernels = program("emulated", headers, changes, space="component", schmidt=(0.7,), **given)
    q, flux, still = np.stack([*np.ones((5, s.size)), s]), np.zeros((1, s.size)), np.zeros((1, s.size))
    line = {"o": reach, "sj": 0, "sk": 0, "sd": 1, "sv": s.size}
    rest = {"mass": mass, "f": still, "pressure": still, "flux": flux}
    kernels.launch("scalar_flux", (s.size - 2 * reach - 1, 1, 1), **line, q=q, **rest)
    return (flux / mass)[0, reach : s.size - reach - 1]


# The scheme without its interpolation of scalars: what is declared, and the function by its name.
NONE_OF_ITS_OWN = (
    ("interpolation/modified7.h", "constexpr bool interpolates_scalars = true;", ""),
    ("interpolation/modified7.h", "interpolate_scalar", "unused"),
)


@pytest.mark.parametrize(
    ("scheme", "weights", "count", "reach", "changes"),
    [
        ("modified", "js", 5, 3, ()),
        ("original", "teno", 5, 3, ()),
        ("original6", "teno", 6, 3, ()),
        ("modified7", "z", 7, 4, ()),
        ("modified7", "z", 5, 4, NONE_OF_ITS_OWN),
    ],
    ids=["modified", "original", "original6", "modified7", "none-of-its-own"],
)
@pytest.mark.parametrize("way", [1, -1], ids=["forward", "backward"])
def test_scalars_are_interpolated_as_the_gas(scheme, weights, count, reach, changes, way):
    """From the side from which the mass comes; through five nodes where the interpolation has no such form."""
    s = random(3).uniform(0.0, 1.0, LINE)
    found = scalar_at_half_points(scheme, weights, reach, s, way * np.linspace(0.5, 1.5, LINE)[None], changes)
    half_points = np.arange(reach, LINE - reach - 1)
    nodes = half_points + (way < 0) + way * np.array(SPAN[count])[:, None]
    np.testing.assert_allclose(found, value_right(weights, count, s[nodes]), rtol=0, atol=1e-12)
