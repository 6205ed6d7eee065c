"""Conditions on faces that one launch may work on: such as touch no node in common."""

from types import SimpleNamespace

import pytest

from hiresx.grid.blocks import FACES
from hiresx.rhs.boundary import together


def condition(rank: int, face: str, *calls: str) -> SimpleNamespace:
    return SimpleNamespace(rank=rank, patch=SimpleNamespace(face=face), calls=lambda method: [*calls])


@pytest.mark.parametrize(
    ("method", "apart"),
    [
        ("ghost", [["imin", "imax"], ["jmin", "jmax"], ["kmin", "kmax"]]),
        ("rate", [["imin"], ["imax"], ["jmin"], ["jmax"], ["kmin"], ["kmax"]]),
    ],
)
def test_faces_of_one_direction_and_rank(method, apart):
    """Each after those of a lower rank, whatever their order was; those that launch nothing are left out."""
    conditions = [condition(rank, face, f"{rank} {face}") for rank in (2, 1) for face in reversed(FACES)]
    conditions += [condition(0, "imin"), condition(3, "kmax")]
    wanted = [{f"{rank} {face}" for face in faces} for rank in (1, 2) for faces in apart]
    assert [set(calls) for calls in together(conditions, method)] == wanted
