"""Copies of boxes of nodes between many arrays by one launch."""

import numpy as np
import pytest

from hiresx.device import Configuration, backend
from hiresx.device.dependency_graph import dependencies
from hiresx.exchange.copied_boxes import CopiedBoxes


@pytest.mark.parametrize("name", ["cpu", "emulated"])
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_copied_boxes(name, precision):
    """Boxes of several arrays, contiguous or not, turned and with a sign, with more variables than a thread loads at
    once."""
    place, configuration = backend(name), Configuration(precision=precision, viscosity="constant")
    rng = np.random.default_rng(5)
    given = [rng.random((7, 6, 9, 20)).astype(configuration.real) for _ in range(3)]
    arrays = [*map(place.to_device, given)]
    # Both rows: the array, its first node (k, j, i), and the steps of the three directions.
    boxes = [
        ((4, 3, 2), (0, (1, 2, 3), (1, 20, 180)), (1, (2, 0, 5), (1, 20, 180)), 1),
        ((2, 5, 3), (1, (0, 8, 19), (-1, -20, 180)), (2, (1, 1, 1), (20, 1, 180)), -1),
        ((9, 1, 1), (2, (5, 0, 0), (20, 1, 1)), (0, (5, 0, 19), (20, 1, 1)), 1),
    ]
    expected = [array.copy() for array in given]
    for size, *ends, sign in boxes:
        n = np.indices(size[::-1]).reshape(3, -1)[::-1]
        (to, into), (source, giving) = (
            (own, np.ravel_multi_index(node, (6, 9, 20)) + np.array(steps) @ n) for own, node, steps in ends
        )
        expected[to].reshape(7, -1)[:, into] = sign * given[source].reshape(7, -1)[:, giving]
    array, node, steps = (np.array([[box[row][of] for box in boxes] for row in (1, 2)]) for of in range(3))
    first = np.ravel_multi_index(tuple(np.moveaxis(node, -1, 0)), (6, 9, 20))
    copied = CopiedBoxes(array, np.array([box[0] for box in boxes]), first, steps, np.array([box[3] for box in boxes]))
    program = place.compile(configuration)
    [call] = copied.calls(place, program, "copy_halo", 7, arrays.__getitem__, lambda n: 6 * 9 * 20)
    program.run(call)
    for own, wanted in zip(arrays, expected, strict=True):
        assert np.array_equal(place.to_host(own), wanted)
    later = call._replace(touched=[(arrays[0][:, 1:], False)])
    assert dependencies([call, later]) == [[], [0]] and dependencies([later, later]) == [[], []]
    assert CopiedBoxes.none().calls(place, program, "copy_halo", 7, arrays.__getitem__, lambda n: 0) == []
