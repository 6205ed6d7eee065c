"""The ghosts of a field that a term computes. Behind physical faces they repeat the nodes of the face, or mirror the
nodes inside; those of connected and patched faces are overwritten by the exchange."""

from collections.abc import Iterator

from hiresx.device.fields import declared_field
from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.grid.blocks import FACES, direction
from hiresx.rhs.inviscid import face_nodes


def repeat_at_faces(program: Program, state: BlockState, name: str) -> Iterator[Call]:
    """Yield the launches that fill the ghosts of the field `name` behind all faces of a block. The ghosts have the
    values of the face's nodes, or are mirror images (`Field.mirrored`). Those of connected and patched faces are
    replaced when the exchange is complete."""
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
