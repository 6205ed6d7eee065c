"""The ghosts of a field that a term computes. Behind physical faces they repeat the nodes of the face, or mirror the
nodes inside; those of connected and patched faces are overwritten by the exchange."""

from collections.abc import Iterator

from hiresx.device.fields import declared_field
from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.grid.blocks import FACES, direction
from hiresx.rhs.inviscid import face_nodes


def repeat_at_faces(program: Program, state: BlockState, name: str) -> Iterator[Call]:
    """Launches that fill the ghosts of the field `name` of a block behind all faces: they repeat the face's nodes or
    mirror the nodes within (`Field.mirrored`), until the ghosts of connected and patched faces arrive."""
    array = state.array(name)
    for face in FACES:
        d = direction(face)
        if d in state.active:
            (n1, n2, _), place = face_nodes(state, face)
            extent = (n1, n2, state.halo[d])
            yield program.call(
                "repeat_at_face", extent, **place, sv=state.variable_stride, variables=len(array),
                mirrored=int(declared_field(name).mirrored), field=array,
            )  # fmt: skip
