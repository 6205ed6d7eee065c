"""In a copy to which the flux `hybrid` beside this file and the sensor that it reads were added: what they do, printed
as JSON by rank 0. The flow at the end is left in FOLDER.

python sensed.py BACKEND FOLDER
"""

import json
import sys

import numpy as np

from hiresx import Case, Simulation
from hiresx.estimate import estimate
from hiresx.mpi.communicator import world
from hiresx.solver.plan_choice import _OF_BACKEND

device, folder = sys.argv[1:]
N = (24, 18)


def case(flux="hybrid", **tables) -> Case:
    grid = {"generator": "box", "n": [*N, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0], "periodic": ["x"]}
    sides = [
        {"faces": ["imin", "imax"], "type": "periodic"},
        {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0},
        {"faces": ["jmax"], "type": "slip-wall"},
    ]
    start = {"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "p": 1 / 1.4}}
    given = {"time": {"steps": 6, "cfl": 0.4}, "scheme": {"flux": flux}, "gas": {"reynolds": 200.0}}
    return Case.from_dict({"grid": grid, "initial": start, "boundary": sides} | given | tables)


def bump(x, y, z):
    p = (1 + 1.5 * np.exp(-60 * ((np.mod(x - 0.05, 1) - 0.5) ** 2 + (y - 0.4) ** 2))) / 1.4
    return 1.4 * p, 0.2 * np.sin(2 * np.pi * x), 0.1 * np.sin(np.pi * y) ** 2, 0.0, p


def started(flux="hybrid", start=bump, **options) -> Simulation:
    run = Simulation(case(flux), device, initial=start, **options)
    run.solver.choose_dt()
    run.solver.right_hand_side()
    return run


def exact(x, y) -> np.ndarray:
    """The sensor, of the pressure at nodes."""

    def p(x, y):
        return bump(x, y, 0.0)[4]

    h, k = 1 / N[0], 1 / (N[1] - 1)
    jumps = p(x - h, y) - 2 * p(x, y) + p(x + h, y), p(x, y - k) - 2 * p(x, y) + p(x, y + k)
    return np.minimum(np.max(np.abs(jumps), axis=0) / (0.1 * p(x, y)), 1.0)


def sensed() -> dict:
    """How far the field is from what it is to be, at nodes and in ghosts of connected faces but for the walls' nodes;
    whether ghosts of walls repeat these; how many nodes it finds a shock at."""
    run, off, repeats, found = started(), 0.0, True, 0
    for state in run.solver.states:
        field = np.asarray(run.backend.to_host(state.array("flux_fields")))[0, 0]
        (hi, hj, _), (ni, nj, _), (fi, fj, _) = state.halo, state.size, state.first
        i, j = np.arange(-hi, ni + hi), np.arange(-hj, nj + hj)[:, None]
        field = field[: len(j), : len(i)]  # rows are longer than that
        x, y = (i + fi) / N[0] + 0 * j, (j + fj) / (N[1] - 1) + 0 * i
        corner = ((i < 0) | (i >= ni)) & ((j < 0) | (j >= nj))
        off = max(off, float(np.abs(field - exact(x, y))[~corner & (y > 1e-9) & (y < 1 - 1e-9)].max()))
        walls = [hj - 1] * (fj == 0) + [hj + nj] * (fj + nj == N[1])
        repeats &= all(
            np.array_equal(field[w, hi : hi + ni], field[min(max(w, hj), hj + nj - 1), hi : hi + ni]) for w in walls
        )
        found += int((field[hj : hj + nj, hi : hi + ni] >= 1).sum())
    sums = run.comm.sum([float(found), float(not repeats)])
    return {"off": float(run.comm.max([off])[0]), "shocked": float(sums[0]), "repeats": float(sums[1]) == 0.0}


def rates(run) -> list[np.ndarray]:
    return [np.array(s.interior(run.backend.to_host(s.r))) for s in run.solver.states]


def apart(one, other) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def compared() -> dict:
    """How far rates are from those by the local Lax-Friedrichs flux, in a flow that is all shocks and in one without
    any."""

    def checkered(x, y, z):
        p = (1 + 0.4 * (-1.0) ** np.rint(x * N[0] + y * (N[1] - 1))) / 1.4
        return 1.0, 0.1, 0.0, 0.0, p

    def contact(x, y, z):
        return 1 + 0.3 * np.sin(2 * np.pi * x), 0.3, 0.0, 0.0, 1 / 1.4

    starts = {"shocks": checkered, "contact": contact}
    return {n: apart(rates(started(start=s)), rates(started("local_lax_friedrichs", s))) for n, s in starts.items()}


def plans() -> float:
    """How far rates by other plans are from those of the first."""
    found = []
    for plan in (*_OF_BACKEND[device], "compact"):
        run = Simulation(case().model_copy(update={"plan": plan}), device, initial=bump)
        run.solver.choose_dt()
        run.solver.right_hand_side()
        found.append(rates(run))
    return max(apart(found[0], other) for other in found[1:-1])


def flow(run) -> np.ndarray:
    """The state, independent of the cut."""
    system = run.solver.system
    found = system.vector()
    system.state(found)
    return system.gather(found)


through = Simulation(case(), device, initial=bump)
held = float(through.comm.sum([float(through.solver.bytes)])[0])
through.run(progress=False)
first = Simulation(case(), device, initial=bump, out=f"{folder}/run")
first.run(steps=3, progress=False)
rest = Simulation(restart=f"{folder}/run", backend=device)
rest.run(progress=False)
end, again = flow(through), flow(rest)
found = {"same": bool(np.array_equal(end, again)), "bytes": held} | sensed()
if world().size == 1:
    found |= {"planned": estimate(through.case)["memory_bytes"], "plans": plans()} | compared()
if world().root:
    np.save(f"{folder}/flow.npy", end)
    print(json.dumps(found))
