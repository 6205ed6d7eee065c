"""What a solver of any cut, on any number of ranks, has computed on the whole blocks."""

import numpy as np

from hiresx import Case, Simulation
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.output.saved import distributed_arrays
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import difference


def whole(solver: Solver) -> list[np.ndarray]:
    """The conservative states of all blocks, on every rank. Collective."""
    own = [(piece.name, piece.box, np.asarray(piece.array)) for piece in solver.pieces()]
    found = [piece for theirs in solver.comm.allgather(own) for piece in theirs]
    read = distributed_arrays.read_from_memory(distributed_arrays.Piece(*piece) for piece in found)
    return [read(name, read.whole(name)) for name in (f"q.{n}" for n in range(len(solver.grid.blocks)))]


def advanced(solver: Solver, steps: int) -> list[np.ndarray]:
    """The same after so many steps from the initial state."""
    solver.initialize()
    for _ in range(steps):
        solver.step()
    return whole(solver)


def off_on_ranks(comm, case, steps: int, where: str = "cpu") -> float:
    """How far the ranks of `comm`, on the backend `where`, are off what one computes on the CPU. Collective."""
    ground = domain(case, comm, parts=lambda cut: partition(cut, comm.size))
    solver = Solver(case, backend(where), domain=ground)
    found = difference(advanced(solver, steps), advanced(Solver(case, backend("cpu")), steps))
    solver.halo.close()
    return found


def started(case: Case, flow, **options) -> Simulation:
    """A run on the CPU whose time step is chosen and whose right-hand side is computed, without a step."""
    run = Simulation(case, "cpu", initial=flow, **options)
    run.solver.choose_dt()
    run.solver.right_hand_side()
    return run
