"""How many nodes the schemes read to each side."""

import pytest

from hiresx.equations.stencil import CENTRAL_DIFFERENCES, Stencil, stencil


@pytest.mark.parametrize(("interpolation", "order", "reach"), [
    ("original", 6, 3), ("modified", 6, 3), ("original6", 6, 3), ("modified7", 8, 4),
])  # fmt: skip
def test_reach_of_the_interpolations(interpolation, order, reach):
    """Half points between six nodes, with weights of seven between eight; metrics follow the correction's order."""
    found = stencil(interpolation)
    assert (found.interpolation_reach, found.correction_reach) == (reach, reach)
    assert (found.halo, found.least_nodes) == (reach, 2 * reach + 1)
    assert stencil(interpolation, filter_reach=5).halo == 5
    weights = dict(zip(range(-reach, reach + 1), found.metric_difference, strict=True))
    for power in range(order + 1):
        moment = sum(weight * place**power for place, weight in weights.items())
        assert moment == pytest.approx(float(power == 1), abs=1e-12), power
    assert abs(sum(weight * place ** (order + 1) for place, weight in weights.items())) > 1


def test_every_reach_counts():
    assert [Stencil(*reaches).halo for reaches in ((5, 3, 3, 0), (3, 5, 3, 0), (3, 3, 5, 0), (3, 3, 3, 5))] == [5] * 4
    assert sorted(CENTRAL_DIFFERENCES) == [3, 4]
