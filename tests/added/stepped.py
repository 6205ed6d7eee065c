"""In a copy to which the integrators beside this file were added: what they do, printed as JSON by rank 0.

python stepped.py BACKEND FOLDER
"""

import json
import sys

import numpy as np

from hiresx import Case, Simulation
from hiresx.estimate import estimate
from hiresx.mpi.communicator import world

device, folder = sys.argv[1:]


def case(integrator: str, steps: int, end: float = 0.24, **times) -> Case:
    """A sound wave on a line, between a wall that it does not slip on and one that it does, in `steps` steps."""
    return Case.from_dict(
        {
            "title": "A wave between walls",
            "gas": {"reynolds": 50.0},
            "grid": {"generator": "box", "n": [20, 1, 1], "upper": [1.0, 0.0, 0.0], "lower": [0.0, 0.0, 0.0]},
            "time": {"integrator": integrator, "dt": end / steps, "steps": steps} | times,
            "initial": {"state": {"rho": 1.0, "u": 0.0, "p": 1 / 1.4}},
            "boundary": [
                {"faces": ["imin"], "type": "no-slip-wall", "temperature": 1.0},
                {"faces": ["imax"], "type": "slip-wall"},
            ],
        }
    )


def wave(x, y, z):
    rho = 1 + 0.05 * np.cos(np.pi * x)
    return rho, 0.05 * np.sin(np.pi * x) ** 2, 0.0, 0.0, rho / 1.4


def pieces(simulation) -> dict[str, np.ndarray]:
    """What a checkpoint of now holds, on all ranks."""
    own = {(piece.name, piece.box): np.array(piece.array) for piece in simulation.solver.pieces()}
    return {key: array for theirs in simulation.comm.allgather(own) for key, array in theirs.items()}


def flow(simulation) -> np.ndarray:
    """The state, independent of the cut."""
    system = simulation.solver.system
    found = system.vector()
    system.state(found)
    return system.gather(found)


def after(integrator: str, steps: int, **times) -> Simulation:
    simulation = Simulation(case(integrator, steps, **times), device, initial=wave)
    simulation.run(progress=False)
    return simulation


def again(integrator: str) -> dict:
    """Six steps, of changing size, and three, a restart, and three."""
    chosen = case(integrator, 6, dt=None, cfl=3.0)
    through = Simulation(chosen, device, initial=wave)
    through.run(progress=False)
    first = Simulation(chosen, device, initial=wave, out=f"{folder}/{integrator}")
    first.run(steps=3, progress=False)
    rest = Simulation(restart=f"{folder}/{integrator}", backend=device)
    rest.run(progress=False)
    one, other = pieces(through), pieces(rest)
    held = sum(name.startswith("history.") for name, _ in one)
    # The step that was taken last, taken once more.
    solver = rest.solver
    dt, alive = solver.dt, solver.can_rewind
    solver.rewind()
    solver.step(dt)
    last = pieces(rest)
    return {
        "same": one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one),
        "taken back": alive and all(np.array_equal(last[key], other[key]) for key in other),
        "time": [through.time, rest.time], "held": held, "sizes": solver.values()["history"],
        "bytes": solver.comm.sum([float(solver.bytes)])[0], "planned": estimate(chosen)["memory_bytes"],
        "flow": flow(rest).tolist(),
    }  # fmt: skip


def orders(integrator: str) -> list[float]:
    """Measured, against steps so small that they count no more."""
    exact = flow(after("carpenter_kennedy_rk4", 480))
    errors = [np.abs(flow(after(integrator, steps)) - exact).max() for steps in (6, 12, 24)]
    return (-np.diff(np.log2(errors))).tolist()


found, alone = {}, world().size == 1
for name in ("implicit_euler", "two_step_bdf"):
    found[name] = {"orders": orders(name) if alone else []} | again(name)
if world().root:
    print(json.dumps(found))
