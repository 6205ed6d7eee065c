"""Nodes along a line: where they draw together, how much, and what spacings they begin with."""

import numpy as np
import pytest

from hiresx import HiresxError
from hiresx.grid.spacing import nodes_from_centre, nodes_from_wall, spacing_into_sponge, stretch

S = np.linspace(0, 1, 20_001)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0, 7.0])
@pytest.mark.parametrize(("cluster", "small", "large"), [
    ("lower", [0.0], [1.0]), ("upper", [1.0], [0.0]), ("both", [0.0, 1.0], [0.5]), ("centre", [0.5], [0.0, 1.0]),
])  # fmt: skip
def test_the_largest_spacing_is_that_much_larger(cluster, small, large, ratio):
    x = stretch(S, cluster, ratio)
    spacing, middles = np.diff(x), (S[1:] + S[:-1]) / 2
    assert (x[0], x[-1]) == (pytest.approx(0, abs=1e-15), pytest.approx(1, abs=1e-15)) and spacing.min() > 0
    assert spacing.max() / spacing.min() == pytest.approx(ratio, rel=2e-3)
    if ratio > 1:
        for places, value in ((small, spacing.min()), (large, spacing.max())):
            for place in places:
                assert spacing[np.argmin(abs(middles - place))] == pytest.approx(value, rel=1e-3)


def test_a_ratio_below_1_is_refused():
    with pytest.raises(HiresxError, match=r"of 0\.999 .* is below 1"):
        stretch(S, "both", 0.999)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.02])
def test_the_first_node_lies_where_it_is_asked_for(share):
    cells, length = 40, 3.0
    first = share * length / cells
    x = nodes_from_wall(cells, length, first, "first_spacing")
    assert (x[0], x[1], x[-1]) == (0, pytest.approx(first, rel=1e-9), pytest.approx(length))
    growth = np.diff(x)[1:] / np.diff(x)[:-1]
    assert growth.min() >= 1 - 1e-12 and abs(np.diff(x, n=2)[0]) <= x[1] * (growth[0] - 1) * (1 + 1e-9)
    slope = nodes_from_centre(cells, length, first, "first_spacing")
    rate = np.arccosh(x[2] / (2 * x[1])) if share < 1 else 0.0  # sinh(2 b) = 2 sinh(b) cosh(b)
    assert slope[1] >= first * (1 - 1e-12) and slope[-1] == pytest.approx(length)
    if share < 1:
        own = np.arccosh(slope[2] / (2 * slope[1]))
        assert length * own / np.sinh(own * cells) == pytest.approx(first, rel=1e-9)
        assert length * np.sinh(rate) / np.sinh(rate * cells) == pytest.approx(first, rel=1e-9)


def test_spacings_that_no_line_has_are_refused():
    with pytest.raises(HiresxError, match=r"first = 0\.11 is larger than the uniform spacing 0\.1 of 10 cells"):
        nodes_from_wall(10, 1.0, 0.11, "first")
    with pytest.raises(HiresxError, match="first = 1e-300 is too small for 10 cells"):
        nodes_from_wall(10, 1.0, 1e-300, "first")


def test_spacing_grows_and_bends_where_a_sponge_begins():
    first, growth, end, faster = 0.1, 1.05, 4.0, 1.2
    x = np.linspace(0, 12, 4801)
    spacing = np.array([spacing_into_sponge(first, growth, end, faster, float(p)) for p in x])
    before = np.sqrt(first**2 + (x * np.log(growth)) ** 2)
    np.testing.assert_allclose(spacing[x <= end], before[x <= end], rtol=1e-14)
    slope = np.gradient(spacing, x)
    assert abs(np.diff(slope)).max() < 2e-3, "no kink"
    bend = 10 * before[np.argmin(abs(x - end))]
    far = np.log(faster / growth) * (8.0**2 / (8.0 + bend))
    assert spacing[-1] == pytest.approx(before[-1] + far, rel=1e-12)
    slower = spacing_into_sponge(first, growth, end, 1.01, 12.0)
    assert slower == pytest.approx(before[-1], rel=1e-14), "a sponge draws no nodes together"
