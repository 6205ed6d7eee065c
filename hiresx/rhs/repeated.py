"""The ghosts of a field that a term computes, behind physical faces: they repeat the nodes of the face, or mirror the
nodes inside."""

from collections.abc import Collection, Iterator, Sequence

from hiresx.decomposition.patches import Patch
from hiresx.device.fields import declared_field
from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.grid.blocks import direction, side


def repeat_at_faces(
    program: Program, state: BlockState, name: str, patches: Sequence[Patch], planes: Collection[int] = ()
) -> Iterator[Call]:
    """Yield the kernel launches that fill the ghost layers of the field `name` of the block `state` behind its physical
    faces. The ghost nodes get the values of the nodes on the face. They get those of the mirrored nodes if the field
    declares this (`Field.mirrored`), and behind `planes` unless the field is a tensor. `patches`: the boundary patches
    of all blocks. `planes`: the numbers of those in planes of symmetry whose ghosts are mirror images of nodes."""
    array, field = state.array(name), declared_field(name)
    variables = len(array) if array.ndim > DIRECTIONS else 1
    for patch in patches:
        d = direction(patch.face)
        if patch.block == state.index and d in state.active:
            along = [e for e in range(3) if e != d]
            n1, n2 = (patch.range[e][1] - patch.range[e][0] for e in along)
            first = sum(patch.range[e][0] * state.strides[e] for e in range(3))
            place = {f"s{n}": state.strides[e] for n, e in enumerate(along, 1)} | {"o": state.origin + first}
            mirrored = field.mirrored or (patch.place in planes and name != "strain")
            yield program.call(
                "repeat_at_face", (n1, n2, state.halo[d]), **place, sn=-side(patch.face) * state.strides[d],
                sv=state.variable_stride, variables=variables, mirrored=int(mirrored), field=array,
            )  # fmt: skip
