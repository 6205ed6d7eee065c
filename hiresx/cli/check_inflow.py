"""Report of `hiresx check` on inflows and outflows: the planes from which fluctuations are recycled, synthetic
turbulence that the grid does not resolve, states of subsonic inflow conditions that enter faster than sound or leave
the domain, and given pressures and mass flows that viscous terms change."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.boundaries import PressureOutflow
from hiresx.decomposition.oblique_walls import edges_at_no_slip_walls, inward_rows, local_normals
from hiresx.grid.blocks import direction, face_range, slices

if TYPE_CHECKING:
    from hiresx.case import Case
    from hiresx.decomposition import Decomposition, Patch
    from hiresx.grid import Block

# A state leaves through a face if the Mach number of its outward velocity exceeds this value, which is above round-off.
LEAVES = 1e-3


def recycling(case: "Case", decomposition: "Decomposition") -> list[dict[str, Any]]:
    """Return one dictionary for each inflow of type `recycling-inflow`: its `block` and `face`; the plane of nodes from
    which its fluctuations are taken; and `sponges`, a dictionary from the number of each sponge in which the plane lies
    to the largest relative depth of the plane, 0 at the start of the sponge and 1 at its end. Five entries describe the
    plane: `index` (the index direction normal to it), `node` (its index along this direction), `range` (its half-open
    index ranges i, j, k), `distance` from the face, and its lower and upper `bounds` [x, y, z]."""
    from hiresx.grid.blocks import AXES
    from hiresx.rhs import layers
    from hiresx.rhs.recycling import check

    found = []
    placed = layers.place_sponges(case, decomposition.blocks) if case.sponge else case
    for place, plane in check(case, decomposition).items():
        patch = decomposition.patches[place]
        block, d = decomposition.blocks[patch.block], direction(patch.face)
        x, y, z = (np.asarray(c[slices(plane.range)]) for c in (block.x, block.y, block.z))
        damped: dict[int, float] = {}
        for n, spec in enumerate(placed.sponge):
            if spec.blocks is None or block.name in spec.blocks:
                share = float(np.max(layers.shares(spec, layers.along(spec.axis, x, y, z))))
                damped |= {n: share} if share > 0 else {}
        found.append(
            {
                "block": block.name, "face": patch.face, "index": AXES[d], "node": plane.range[d][0],
                "range": plane.range, "distance": plane.length,
                "bounds": [[float(end(c)) for c in (x, y, z)] for end in (np.min, np.max)],
                "sponges": damped,
            }
        )  # fmt: skip
    return found


def notes_of_recycling(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a warning, as a sentence, for each `recycling-inflow` whose plane of fluctuations lies in a sponge.
    `found`: the result of `recycling`."""
    for plane in found:
        for n, share in plane["sponges"].items():
            yield (
                f"recycling-inflow on {plane['face']} of block '{plane['block']}': its plane, {plane['index']} = "
                f"{plane['node']}, lies in sponge.{n}, at most {share:.0%} of its depth: the fluctuations there are "
                "damped; take a smaller distance"
            )


def notes_of_turbulence(case: "Case", decomposition: "Decomposition") -> Iterator[str]:
    """Yield a warning, as a sentence, for each inflow whose synthetic turbulence has an integral length below the
    largest distance between neighbouring nodes at the inflow. Raises HiresxError, with the node, for Reynolds stresses
    that are not positive semidefinite at a node of the face."""
    from hiresx.rhs.synthetic_inflow import roots_of_stresses

    for patch in decomposition.patches:
        spec = getattr(patch.condition, "turbulence", None)
        if spec is None:
            continue
        block = decomposition.blocks[patch.block]
        nodes = np.stack([np.asarray(row) for row in inward_rows(block, patch.face, patch.range, 2)])
        apart = [
            np.linalg.norm(np.diff(nodes, axis=axis), axis=1).max()
            for axis in (0, 2, 3, 4)
            if axis < nodes.ndim and nodes.shape[axis] > 1
        ]
        roots_of_stresses(case, spec, nodes[0], f"{patch.condition.type} on {patch.face} of block '{block.name}'")
        least = min(np.atleast_1d(spec.length))
        if least < max(apart):
            yield (
                f"turbulence of {patch.condition.type} on face {patch.face} of block '{block.name}': its integral "
                f"length {least:.4g} is below the distance of nodes there, {max(apart):.4g}: the grid does not carry it"
            )


def notes_of_characteristic_inflows(case: "Case", decomposition: "Decomposition") -> Iterator[str]:
    """Yield a warning, as a sentence, for each `characteristic-inflow` whose given state is supersonic normal to the
    face or flows out of the domain."""
    for patch in decomposition.patches:
        condition = patch.condition
        state = getattr(condition, "state", None)
        if condition.type != "characteristic-inflow" or state is None:
            continue
        block = decomposition.blocks[patch.block]
        normals = _inward_normals(block, patch)
        speeds = np.tensordot([state.u, state.v, state.w][: len(normals)], normals, 1)
        machs = speeds / np.sqrt(case.gas.gamma * state.p / state.rho)
        number = next(n for n, other in enumerate(case.boundary) if other is condition)
        place = f"boundary.{number} ({condition.type}) on face {patch.face} of block '{block.name}'"
        if machs.max() >= 1:
            yield (
                f"{place}: its state enters at a Mach number normal to the face of {machs.max():.3g} at most, and the "
                'condition is for subsonic flow; take type = "supersonic-inflow"'
            )
        if machs.min() < -LEAVES:
            outflow = "supersonic-outflow" if machs.min() <= -1 else "pressure-outflow"
            yield (
                f"{place}: its state leaves the domain, at a Mach number normal to the face of {-machs.min():.3g} at "
                f'most; take type = "{outflow}", or "far-field" where flow may enter and leave'
            )


def notes_of_viscous_outflows(case: "Case", decomposition: "Decomposition") -> Iterator[str]:
    """Yield a warning, as a sentence, for each `pressure-outflow` of viscous flow without `relaxation` that has a
    `mass_flux` or meets a no-slip wall."""
    for n, condition in enumerate(case.boundary if case.gas.reynolds else ()):
        if not isinstance(condition, PressureOutflow) or condition.relaxation is not None:
            continue
        patches = [patch for patch in decomposition.patches if patch.condition is condition]
        what = "the mass flow by several percent"
        if condition.mass_flux is None:
            if not any(edges_at_no_slip_walls(decomposition, patch) for patch in patches):
                continue
            what = "the pressure in a boundary layer by several percent of the dynamic pressure"
        yield (
            f"boundary.{n} (pressure-outflow): with the default relaxation viscous terms at the face may change "
            f"{what}; give a relaxation, such as 5 divided by the height of the face"
        )


def _inward_normals(block: "Block", patch: "Patch") -> np.ndarray:
    """Unit normals (dimensions, nk, nj, ni) into the block at the nodes of a patch."""
    d, dimensions = direction(patch.face), len(block.active)
    face, behind = inward_rows(block, patch.face, face_range(patch.face, block.size), 2)[:, :dimensions]
    normals = local_normals(face, d, [e for e in block.active if e != d])
    inward = np.where(np.sum((behind - face) * normals, axis=0) < 0, -normals, normals)
    k, j, i = slices(triple((0, 1) if e == d else ends for e, ends in enumerate(patch.range)))
    return inward[:, k, j, i]
