"""The launches of the kernels of a boundary condition on one patch, and their order (`hiresx.rhs.boundary`)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Decomposition, Patch
from hiresx.device.interface import Backend, Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED, GAS_GRADIENTS
from hiresx.grid.blocks import Range, direction, intersection, side, slices

# Names of the variables whose gradients and viscous fluxes the gas has.
_GRADIENTS = len(GAS_GRADIENTS)


@dataclass(frozen=True, eq=False)
class Face:
    """The arguments from which the boundary condition of one boundary patch of a block is constructed. `extended`:
    coordinates of the block with ghost nodes. `cut`: the blocks of all ranks. `profile(name)`: returns a function of
    the case. `mirrored`: whether ghosts take their values at the mirror images of their own positions. `curved`:
    whether the patch lies on a curved no-slip wall of given temperature."""

    backend: Backend
    program: Program
    state: BlockState
    patch: Patch
    case: Case
    extended: tuple[np.ndarray, ...]
    cut: Decomposition
    profile: Callable[[str], Callable[..., Any]]
    mirrored: bool = False
    curved: bool = False

    @property
    def is_edge(self) -> bool:
        """Whether the patch is the edge of a step between no-slip walls, behind which a connection gives the ghosts
        (`hiresx.decomposition.wall_seams.connected_over_steps`)."""
        p = self.patch
        return p.condition.kernel == "no_slip" and any(
            (c.block, c.face) == (p.block, p.face) and intersection(c.range, p.range) for c in self.cut.connections
        )


def place_of(patch: Patch, block: str) -> str:
    """Return a text for messages that names the type and the face of the boundary condition of `patch` and the block
    called `block`."""
    return f"{patch.condition.type} on {patch.face} of block '{block}'"


class FaceCondition:
    """The boundary condition of one patch. Each method launches the kernels of one part of it: nodes on the face,
    ghosts, rates. A method that a condition does not need does nothing.

    A method launches the same kernels with the same arguments at every call and has no other effect. The launches are
    therefore recorded once (`calls`) and then made together with those of other conditions. Values that change in time
    are updated before `node`: by the host in `prepare`, and if `moves` is true by the device in `move`.

    `kernel`: the `kernel` of the tables of the case (`hiresx.case.boundaries`) that use this class. `of_patch`: whether
    it depends only on the patch and the state of its block. `is_edge`: see `Face`.
    """

    kernel: str | None = None
    of_patch = True
    # Nodes shared by two faces: the condition with the higher rank writes last.
    rank = 0
    # Whether nodes have values that the case prescribes: of such conditions of one rank, the first one of the case
    # writes last.
    gives_nodes = False
    # Whether `rate` needs the sums of mass fluxes in the field `wall_sums` behind the face (kernels/wall_sums.h).
    closed = False
    # Whether primitive variables behind the face are extrapolated by polynomials. If not, they follow from the ghosts
    # of q, or another condition sets them.
    continued = True
    # Whether the walls of its part know where they meet each other.
    has_met = False
    # Degrees of the polynomials for the viscous terms behind the face.
    primitive_degree = flux_degree = 1

    def __init__(self, face: Face):
        state, patch = self.state, self.patch = face.state, face.patch
        self.is_edge = face.is_edge
        self._noted: dict[tuple[Any, ...], list[Call]] | None = None
        self._backend, self._program, self._launch = face.backend, face.program, face.program.launch
        d = direction(patch.face)
        self._direction, self._halo = d, state.halo[d]
        tangents = [e for e in range(3) if e != d]
        n1, n2 = (patch.range[e][1] - patch.range[e][0] for e in tangents)
        self.extent, self._box = (n1, n2), (n1, n2, 1)
        first = sum(patch.range[e][0] * state.strides[e] for e in range(3))
        inward = -side(patch.face)
        self._inward = float(inward)
        # The positions of the face's nodes and, with `sv`, of their variables, for most boundary kernels.
        s1, s2 = (state.strides[e] for e in tangents)
        self._nodes = {"o": state.origin + first, "s1": s1, "s2": s2, "sn": inward * state.strides[d]}
        self._face = self._nodes | {"sv": state.variable_stride}
        # The nodes where slip walls meet a slip wall (kernels/boundary/reflect.h) or a `TotalInflow`.
        self.corner_arguments: dict[str, Any] = {"n1": n1, "which": None, "left": None}

    def meet_slip_walls(self, which: np.ndarray, left: np.ndarray) -> None:
        """Store the directions of velocity that remain free at nodes where slip walls meet this condition.
        `which` (n2, n1): for each node of the patch its row in `left`, or -1; the axes are those of [k, j, i] without
        the direction normal to the face. `left` (n, 9): 3 x 3 matrices, by rows, that project a velocity onto the free
        directions."""
        put = self._backend.to_device
        if self._noted is not None:
            self._noted.clear()
        self.corner_arguments |= {"which": put(which.astype(np.int32)), "left": put(left.astype(self.state.real))}

    def areas(self, d: int, box: Range) -> np.ndarray:
        """Return the area vectors grad(xi_d)/J, in L^2, of the index direction `d` at the nodes in `box` as a host
        array (3, nk, nj, ni). `box`: half-open index ranges (i, j, k) in the block, without ghost layers."""
        taken = self.state.interior(self.state.areas[d])[(slice(None), *slices(box))]
        return np.asarray(self._backend.to_host(taken), dtype=float)

    def places(self) -> np.ndarray:
        """Return the flat indexes (n,) of the n nodes of the patch in an array of the block with ghost layers."""
        first, second = (np.arange(n) * self._nodes[step] for n, step in zip(self.extent, ("s1", "s2"), strict=True))
        found: np.ndarray = (self._nodes["o"] + second[:, None] + first).ravel()
        return found

    @property
    def order(self) -> tuple[int, int, int]:
        """Order in which boundary conditions write nodes and ghost nodes: ascending by this tuple. Conditions with
        equal tuples write at the same time."""
        return self.rank, -self.patch.place * self.gives_nodes, self._direction

    def prepare(self, time: float) -> None:
        """Prepare on the host the prescribed values at `time`, in L / c_ref, which `node` then uses."""

    @property
    def is_prepared(self) -> bool:
        """Whether the prescribed values never change, so that `prepare` need not be called again."""
        return True

    def finish_reads(self) -> None:
        """Wait until all file reads that `prepare` has started in the background are complete."""

    @property
    def moves(self) -> bool:
        """Whether prescribed values change in time and are computed on the device, by `move`."""
        return False

    def move(self, clock: Any, share: float) -> None:
        """Compute on the device the prescribed values that change in time. Their time is the start of the time step
        plus the fraction `share` of the size of the step. `clock`: the device array that contains start and size
        (`hiresx.time.step_clock.DeviceClock`)."""

    def node(self) -> None:
        """Set the nodes on the face according to the boundary condition, in a state that a caller has given, for
        instance the initial one. `stage_node` is called afterwards."""

    def stage_node(self) -> None:
        """Set the nodes on the face according to the boundary condition, after a stage of a time step has computed the
        state, and after `node`."""
        self.node()

    def ghost(self) -> None:
        """Set the ghost layers of the state behind the face according to the boundary condition."""

    def bend(self) -> None:
        """Correct the mirrored ghost values of a no-slip wall, in smooth flow, by the slope and the curvature of the
        flow at the wall (kernels/boundary/no_slip.h)."""

    def stress(self) -> None:
        """Set the ghost layers of the field `entropic_stress`, a symmetric tensor by which the regularised scheme
        spreads shocks. Only conditions that change the sign of components or rotate them implement this. Before the
        call, the ghost layers have the values of the mirrored nodes."""

    def rate(self) -> None:
        """Correct the inviscid right-hand side at the nodes on the face according to the boundary condition."""

    def edge_rate(self, edge: int) -> None:
        """Correct the inviscid right-hand side at one of the four edges of the boundary patch, after `rate`. `edge`: 2
        t + u. t: 0 if the first index direction of the face crosses the edge, 1 if the second does. u: 1 for the edge
        at the upper end of this direction, else 0."""

    def hold(self) -> None:
        """Store, for a passive scalar s at an outflow, the right-hand side of rho s minus s times the right-hand side
        of the density, before the outflow changes the latter."""

    def follow(self) -> None:
        """Set, for a passive scalar s at an outflow, the right-hand side of rho s to the values that `hold` stored plus
        s times the right-hand side of the density, which the outflow has set."""

    def keep(self, patch: Patch) -> None:
        """Use this boundary condition again in the next solver of the run. `patch`: the patch there that corresponds to
        the present one, with the same nodes and the same boundary table of the case. Recorded launches remain valid."""
        self.patch = patch
        self._noted = {} if self._noted is None else self._noted

    def calls(self, method: str, *arguments: Any) -> list[Call]:
        """Return the kernel launches of a method of this boundary condition without making them. On the edge of a step
        (`is_edge`) only its nodes are set. `method`: the name of the method. `arguments`: its arguments."""
        if self.is_edge and method not in ("node", "stage_node", "move"):
            return []
        if self._noted is None or any(not isinstance(a, int) for a in arguments):
            return self._record(method, *arguments)
        key = method, *arguments
        if key not in self._noted:
            self._noted[key] = self._record(method, *arguments)
        return [*self._noted[key]]

    def _record(self, method: str, *arguments: Any) -> list[Call]:
        noted: list[Call] = []

        def note(name: str, extent: tuple[int, int, int] | None, /, **arguments: Any) -> None:
            noted.append(self._program.call(name, extent, **arguments))

        launch, self._launch = self._launch, note
        try:
            getattr(self, method)(*arguments)
        finally:
            self._launch = launch
        return noted

    @property
    def function_moments(self) -> np.ndarray | None:
        """The number of nodes, including ghost nodes where they are prescribed, and the sums and sums of squares over
        them of the conservative variables that a function of the case prescribes on this patch, (1 + 2 variables,). A
        restart compares these numbers to detect a changed function. Sums of waves are computed at one time, the
        same in every run. None without such a function, or if its values change in time in another way."""
        return None

    def viscous_primitives(self, w: Any) -> None:
        """Set the ghost layers of `w` (variables, k, j, i), the primitive variables of the viscous terms: velocity,
        temperature and scalars."""
        if self.continued:
            degree = self.primitive_degree
            self._launch("viscous_extrapolate", self._box, **self._face, variables=_GRADIENTS, degree=degree, w=w)

    def viscous_state(self) -> None:
        """Set the ghost layers of the conservative variables, for viscous terms that are computed from these instead of
        the primitive variables. The values are consistent with those of `viscous_primitives`."""
        if self.continued:
            degree, q = self.primitive_degree, self.state.q
            self._launch("viscous_ghost_state", self._box, **self._face, degree=degree, q=q)

    def viscous_node(self, fluxes: Any) -> None:
        """Set the viscous fluxes at the nodes on the face, before `viscous_flux` is called. `fluxes[d]` (variables, k,
        j, i): the fluxes along index direction d, with ghost layers."""

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the viscous fluxes behind the face. `fluxes[d]` (variables, k, j, i): the fluxes
        along index direction d, with ghost layers."""
        rows, degree = fluxes[self._direction], self.flux_degree
        self._launch("viscous_extrapolate", self._box, **self._face, variables=_GRADIENTS, degree=degree, w=rows)

    def _continue_flow(self, quartic: float) -> None:
        """Extrapolate the flow to the ghosts by cubics, with the share `quartic` of quartics, where the nodes on the
        face are given."""
        s = self.state
        area, jacobian = s.areas[self._direction], s.jacobian
        self._launch("total_inflow_ghost", self._box, **self._face, quartic=quartic, m=area, jacobian=jacobian, q=s.q)

    def _leaving_flux(self, rows: Any, variables: int, inverse_reynolds: float) -> None:
        """Set the ghosts of the number `rows` of viscous fluxes behind a supersonic outflow."""
        s = self.state
        self._launch(
            "outflow_flux", self._box, **self._face, variables=variables, direction=self._inward,
            inverse_reynolds=inverse_reynolds, m=s.areas[self._direction], jacobian=s.jacobian, q=s.q, flux=rows,
        )  # fmt: skip

    def _coordinates(self, extended: tuple[np.ndarray, ...], layers: int) -> tuple[np.ndarray, ...]:
        """Return x, y, z of the face and of `layers` - 1 ghost layers: (layers, n2, n1)."""
        d, halo = self._direction, self._halo
        box: list[Any] = [slice(lo + halo, hi + halo) for lo, hi in self.patch.range]
        found = []
        for c in extended:
            rows = []
            for layer in range(layers):
                box[d] = self.patch.range[d][0] + halo - int(self._inward) * layer
                rows.append(c[tuple(reversed(box))])
            found.append(np.stack(rows))
        return tuple(found)


class GivenNodes(FaceCondition):
    """An inflow that sets the conserved variables of the nodes on the face. Subclasses store them in the array
    `_target` (5, n2, n1). Its ghosts are extrapolated by cubics through the face's node and the nodes inside."""

    gives_nodes = True
    primitive_degree = flux_degree = 3

    def __init__(self, face: Face):
        super().__init__(face)
        n1, n2 = self.extent
        self._target = face.backend.zeros((len(GAS_CONSERVED), n2, n1), str(np.dtype(face.state.real)))

    def node(self) -> None:
        """Set the nodes on the face to the prescribed conservative variables."""
        n1, n2 = self.extent
        self._launch("precursor_node", self._box, **self._face, n1=n1, n2=n2, state=self._target, q=self.state.q)

    def ghost(self) -> None:
        """Extrapolate the flow to the ghost nodes by cubics through the node on the face and nodes inside."""
        self._continue_flow(0.0)
