"""In a copy to which a field and terms beside this file were added: what they do, printed as JSON by rank 0.

python declared.py BACKEND FOLDER
"""

import json
import sys

import numpy as np

from hiresx import Case, Simulation
from hiresx.estimate import estimate
from hiresx.mpi.communicator import world
from hiresx.output.fields import field_file
from hiresx.solver.plan_choice import _OF_BACKEND

device, folder = sys.argv[1:]
P, K, REYNOLDS, SCHMIDT, END = 1 / 1.4, 2.0, 20.0, 0.5, 0.05
PULL = (0.3, -0.2, 0.1)


def case(boundary, n, **tables) -> Case:
    grid = {"generator": "box", "n": n, "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0]}
    start = {"state": {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P}}
    return Case.from_dict({"grid": grid, "initial": start, "boundary": boundary} | tables)


def conserved(run) -> list[np.ndarray]:
    return [np.array(state.interior(run.backend.to_host(state.q))) for state in run.solver.states]


def same_from_restart(through, name: str, halfway: int, begin=lambda run: None) -> bool:
    """Whether the run `through`, which is over, ends in the same bits where it is stopped `halfway` and goes on."""
    first = Simulation(through.case, device, out=f"{folder}/{name}")
    begin(first)
    first.run(steps=halfway, progress=False)
    rest = Simulation(restart=f"{folder}/{name}", backend=device)
    rest.run(progress=False)
    same = all(np.array_equal(a, b) for a, b in zip(conserved(through), conserved(rest), strict=True))
    return bool(rest.comm.min([float(same and rest.step_count == through.step_count)])[0])


def pulled() -> dict:
    """How far a uniform gas is from what it falls to, and whether it falls on as it did behind a restart."""
    spec = case([{"faces": "all", "type": "periodic"}], [24, 20, 1], pull={"acceleration": PULL}, time={"steps": 6})
    run = Simulation(spec, device)
    run.run(progress=False)
    wanted = (0.3 + PULL[0] * run.time, 0.2 + PULL[1] * run.time, PULL[2] * run.time, P)
    found = zip("uvwp", wanted, strict=True)
    off = max(np.abs(block.state(name) - goal).max() for name, goal in found for block in run.blocks)
    same = same_from_restart(run, "pulled", 3)
    shapes = [state.array("pulled").shape == (2, *state.shape) for state in run.solver.states]
    return {"off": float(run.comm.max([off])[0]), "same": same, "its field": all(shapes)}


def decays() -> dict:
    """A scalar between walls that hold it at 0, which spreads and decays: how far from the solution by every plan, and
    from the first plan; whether a restart goes on to the last bit."""
    walls = {"type": "no-slip-wall", "temperature": 1.0, "scalars": {"dye": 0.0}}
    spec = case(
        [{"faces": ["imin", "imax"], "type": "periodic"}, {"faces": ["jmin", "jmax"], **walls}], [12, 25, 1],
        gas={"reynolds": REYNOLDS}, scalar=[{"name": "dye", "schmidt": SCHMIDT}], decay={"rate": K},
        time={"end": END, "dt": 0.002}, initial={"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "p": P}},
    )  # fmt: skip
    found, same = {}, True

    def begin(run):
        for block in run.blocks:
            block.set_state(1.0, 0.0, 0.0, 0.0, P, {"dye": np.sin(np.pi * block.y)})

    for plan in (*_OF_BACKEND[device], "compact"):
        run = Simulation(spec.model_copy(update={"plan": plan}), device)
        begin(run)
        run.run(progress=False)
        same &= same_from_restart(run, f"decays-{plan}", 10, begin)
        rate = K + np.pi**2 / (REYNOLDS * SCHMIDT)
        off = [np.abs(b.state("dye") - np.exp(-rate * run.time) * np.sin(np.pi * b.y)).max() for b in run.blocks]
        found[plan] = float(run.comm.max([max(off, default=0.0)])[0]), [b.state("dye") for b in run.blocks]
    first = next(iter(found.values()))[1]
    apart = [np.abs(a - b).max() for _, arrays in found.values() for a, b in zip(arrays, first, strict=True)]
    apart = world().mpi_comm.allreduce(max(apart, default=0.0), max) if world().size > 1 else max(apart)
    return {"off": {plan: off for plan, (off, _) in found.items()}, "apart": float(apart), "same": same}


def filled(state) -> bool:
    """Whether the mark, which is the density at nodes, is so in the ghosts of all faces; none are at edges."""
    mark, rho = (np.asarray(array[0]) for array in (state.array("mark"), state.q))
    (ni, nj, nk), layers = state.size, sum(state.halo) // 2
    return np.count_nonzero(mark) == (ni * nj + 2 * layers * (ni + nj)) * nk and bool((mark == rho)[mark != 0].all())


def marked() -> dict:
    """The field "mark": its ghosts where the state has some, what a restart and a file have of it."""
    spec = case(
        [{"faces": "all", "type": "periodic"}], [24, 20, 1], time={"steps": 4, "dt": 0.005},
        output={"variables": ["rho", "mark"]}, checkpoint={"every_steps": 2},
    )  # fmt: skip
    waves = {"initial": lambda x, y, z: (1 + 0.2 * np.sin(6.3 * x + 1) * np.cos(6.3 * y), 0.3, 0.2, 0.0, P)}
    run = Simulation(spec, device, out=folder, **waves)
    assert not run.solver.layout.has("pulled")  # which [pull] alone needs
    for state in run.solver.states:
        run.backend.copy(state.interior(state.array("mark"))[0], state.interior(state.q)[0])
    run.solver.complete_state()
    ghosts = all(filled(s) for s in run.solver.states)
    kept = [block.state("mark") for block in run.blocks]
    run.run(steps=2, progress=False)
    rest = Simulation(restart=folder, backend=device)
    again = [block.state("mark") for block in rest.blocks]
    rest.run(progress=False)
    last = field_file.read(max(field_file.frames(folder).items())[1])
    file = last.blocks[0].state["mark"]
    own = [(state.part.box, array) for state, array in zip(rest.solver.states, kept, strict=True)]
    inside = [np.array_equal(file[tuple(slice(*r) for r in reversed(box))], array) for box, array in own]
    same = ghosts, all(np.array_equal(a, b) for a, b in zip(kept, again, strict=True)), all(inside)
    good = rest.comm.min([float(b) for b in same])
    return {
        "same": list(map(bool, good)), "spread": float(np.ptp(file)),
        "bytes": rest.solver.layout.bytes_per_point, "planned": estimate(spec)["reals_per_padded_point"],
    }  # fmt: skip


found = {"pulled": pulled(), "decays": decays(), "marked": marked()}
if world().root:
    print(json.dumps(found))
