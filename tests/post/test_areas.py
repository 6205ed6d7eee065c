"""Areas of the nodes of curved planes, and of what numbers a file seems to hold."""

from io import BytesIO

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install 'hiresx[post]'")

from hiresx.grid import plot3d_binary
from hiresx.post.spod import _areas


def shoelace(corners):
    x, y = np.array(corners).T
    return 0.5 * abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


@pytest.mark.parametrize("turned", [False, True])
def test_a_node_has_a_quarter_of_each_cell_around_it(turned):
    rng = np.random.default_rng(2)
    y, x = np.mgrid[0:5, 0:4] + rng.uniform(-0.3, 0.3, (2, 5, 4))
    if turned:
        x, y = x[:, ::-1], y[:, ::-1]
    wanted = np.zeros(x.shape)
    for j in range(4):
        for i in range(3):
            around = [(j, i), (j, i + 1), (j + 1, i + 1), (j + 1, i)]
            for node in around:
                wanted[node] += shoelace([(x[at], y[at]) for at in around]) / 4
    np.testing.assert_allclose(_areas(x, y), wanted, rtol=1e-12)


@pytest.mark.parametrize("real", ["f4", "f8"])
def test_the_share_of_numbers_that_a_grid_may_hold(real):
    """Zeros of both signs, and what is neither tiny nor huge nor no number."""
    rng = np.random.default_rng(3)
    good = np.concatenate([[0.0, -0.0, 0.0, 1.1e-30, -0.9e30], rng.uniform(-5, 5, 10)])
    bad = [np.nan, np.inf, -np.inf, 0.9e-30, -1.1e30]
    values = np.concatenate([good, bad]).astype(f"<{real}")
    file = BytesIO(b"head" + values.tobytes())
    share = plot3d_binary._likeness(file, ("<", [[20, 1, 1]], 4, real, 0))
    assert share == pytest.approx(15 / 20)
