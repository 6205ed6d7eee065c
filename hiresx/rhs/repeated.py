"""The ghosts of a field that a term computes, behind physical faces: they repeat the nodes of the face, or mirror the
nodes inside."""

from collections.abc import Iterator, Sequence

from hiresx.decomposition.patches import Patch
from hiresx.device.fields import declared_field
from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.grid.blocks import direction
from hiresx.rhs.inviscid import face_nodes


def repeat_at_faces(program: Program, state: BlockState, name: str, patches: Sequence[Patch]) -> Iterator[Call]:
    """Yield the kernel launches that fill the ghost layers of the field `name` of the block `state` behind its physical
    faces. The ghost nodes get the values of the nodes on the face, or of the mirrored nodes if the field declares this
    (`Field.mirrored`). `patches`: the boundary patches of all blocks. A face may have patches only in part; the later
    exchange between blocks overwrites the ghost nodes behind the rest of it."""
    array = state.array(name)
    for face in sorted({patch.face for patch in patches if patch.block == state.index}):
        d = direction(face)
        if d in state.active:
            (n1, n2, _), place = face_nodes(state, face)
            extent = (n1, n2, state.halo[d])
            yield program.call(
                "repeat_at_face", extent, **place, sv=state.variable_stride, variables=len(array),
                mirrored=int(declared_field(name).mirrored), field=array,
            )  # fmt: skip
