"""Conditions on faces that one launch may work on: such as touch no node in common."""

from types import SimpleNamespace

from hiresx.grid.blocks import FACES, direction
from hiresx.rhs.boundary import together
from hiresx.rhs.face_condition import FaceCondition


class Condition(FaceCondition):
    """One without a block, of a rank, that launches `called`."""

    def __init__(self, rank: int, face: str, *called: str):
        self.rank, self._direction, self._called = rank, direction(face), called
        self.patch = SimpleNamespace(place=FACES.index(face))

    def calls(self, method):
        return [*self._called]


def test_faces_of_one_direction_and_rank():
    """Each after those of a lower rank, whatever their order was; those that launch nothing are left out."""
    conditions = [Condition(rank, face, f"{rank} {face}") for rank in (2, 1) for face in reversed(FACES)]
    conditions += [Condition(0, "imin"), Condition(3, "kmax")]
    wanted = [{f"{rank} {d}min", f"{rank} {d}max"} for rank in (1, 2) for d in "ijk"]
    assert [set(calls) for calls in together(conditions, "ghost")] == wanted
