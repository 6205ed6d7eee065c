"""Conditions on faces that one launch may work on: such as touch no node in common."""

from types import SimpleNamespace

from hiresx.grid.blocks import FACES, direction
from hiresx.rhs.boundary import together


def condition(rank: int, face: str, *calls: str) -> SimpleNamespace:
    return SimpleNamespace(order=(rank, 0, direction(face)), calls=lambda method: [*calls])


def test_faces_of_one_direction_and_rank():
    """Each after those of a lower rank, whatever their order was; those that launch nothing are left out."""
    conditions = [condition(rank, face, f"{rank} {face}") for rank in (2, 1) for face in reversed(FACES)]
    conditions += [condition(0, "imin"), condition(3, "kmax")]
    wanted = [{f"{rank} {d}min", f"{rank} {d}max"} for rank in (1, 2) for d in "ijk"]
    assert [set(calls) for calls in together(conditions, "ghost")] == wanted
