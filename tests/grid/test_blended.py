"""Interpolation from six nodes with continuous derivatives up to the third."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import Chebyshev

from hiresx.grid import Block
from hiresx.grid.blended import BlendedMap, lagrange_blended
from hiresx.grid.patched import BlockMap

COUNT = 12


def line(x, ended=(True, True), kind=BlendedMap):
    """The map of a line of nodes, whose ends are, or are not, those of a block."""
    nodes = np.asarray(x, dtype=float).reshape(1, 1, -1)
    empty = np.zeros_like(nodes)
    found = kind(Block("line", nodes, empty, empty), [nodes, empty, empty], 0, [None] * 3)
    found.ended = np.array([ended, (True, True), (True, True)])
    return found


def at(found, xi):
    """Values and first derivatives."""
    values, slopes = found.at(np.stack([xi, 0 * xi, 0 * xi], axis=-1))
    return values[:, 0], slopes[:, 0, 0]


@pytest.mark.parametrize("power", range(6))
def test_polynomials(power):
    """Up to the fourth degree everywhere, and the fifth in the two cells at each end of a block."""
    xi = np.linspace(0, COUNT - 1, 50) if power < 5 else np.array([0.3, 1.9, COUNT - 2.9, COUNT - 1.1])
    values, slopes = at(line(np.arange(COUNT) ** power), xi)
    np.testing.assert_allclose(values, xi**power, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(slopes, power * xi ** max(power - 1, 0), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("ended", [(True, True), (True, False), (False, True), (False, False)])
def test_three_derivatives_are_continuous(ended):
    """At all nodes, where polynomials through six nodes have two slopes."""
    nodes = np.random.default_rng(2).uniform(-1, 1, COUNT)
    for kind, continuous in ((BlendedMap, 3), (BlockMap, 0)):
        found = line(nodes, ended, kind)
        cells = [
            Chebyshev.fit(t := i + 0.5 - 0.5 * np.cos(np.pi * (np.arange(12) + 0.5) / 12), at(found, t)[0], 10)
            for i in range(COUNT - 1)
        ]
        jumps = [
            max(abs(left.deriv(m)(i) - right.deriv(m)(i)) for i, (left, right) in enumerate(pairwise(cells), 1))
            for m in range(1, 4)
        ]
        assert max(jumps[:continuous], default=0) < 1e-8, jumps
        assert continuous or jumps[0] > 0.1


def test_slopes_are_the_derivatives_of_values():
    found, xi, step = line(np.random.default_rng(2).uniform(-1, 1, COUNT)), np.linspace(0.05, COUNT - 1.05, 83), 1e-5
    difference = (at(found, xi + step)[0] - at(found, xi - step)[0]) / (2 * step)
    np.testing.assert_allclose(difference, at(found, xi)[1], atol=1e-8)


def test_order():
    """Values of fifth order in the spacing, slopes of fourth."""
    errors = []
    for n in (40, 80):
        h = 1 / n
        xi = np.linspace(5, n - 5, 331)
        values, slopes = at(line(np.sin(3 * h * np.arange(n + 1))), xi)
        errors.append([np.abs(values - np.sin(3 * h * xi)).max(), np.abs(slopes / h - 3 * np.cos(3 * h * xi)).max()])
    order = np.log2(np.divide(*errors))
    assert order[0] > 4.8 and order[1] > 3.8, order


def test_it_does_not_depend_on_the_direction_of_indexes():
    nodes = np.random.default_rng(3).uniform(-1, 1, COUNT)
    xi = np.linspace(0, COUNT - 1, 67)
    for ended in [(True, False), (False, False), (True, True)]:
        values, slopes = at(line(nodes, ended), xi)
        turned, turned_slopes = at(line(nodes[::-1], ended[::-1]), COUNT - 1 - xi)
        np.testing.assert_allclose(turned, values, atol=1e-13)
        np.testing.assert_allclose(turned_slopes, -slopes, atol=1e-12)


def test_at_nodes_weights_are_exactly_0_or_1():
    found = line(np.arange(COUNT))
    xi = np.stack([np.arange(COUNT), 0 * np.arange(COUNT), 0 * np.arange(COUNT)], axis=-1).astype(float)
    base = found.base(xi)
    (weights,) = lagrange_blended((xi - base)[:, 0], found.share(xi, base)[0][:, 0])
    np.testing.assert_array_equal(weights, np.arange(6) == (xi - base)[:, :1])
