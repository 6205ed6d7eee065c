"""In a copy to which the interpolation beside this file was added, which holds four ghost layers: what the scheme of
seventh order does there, printed as JSON by rank 0. The flow at the end is left in FOLDER.

python widened.py BACKEND FOLDER
"""

import json
import sys
from types import SimpleNamespace

import numpy as np
from arrangements import shaken
from oblique_grids import strip
from patched_grids import PATCHED, beside

from hiresx import Case, HiresxError, Simulation, load
from hiresx.device import Configuration
from hiresx.estimate import estimate
from hiresx.grid import Grid
from hiresx.mpi.communicator import world
from hiresx.verify.groups.accuracy import interpolation_errors

device, folder = sys.argv[1:]
STATE = {"rho": 1.0, "u": 0.5, "v": 0.2, "w": 0.1, "p": 1 / 1.4}
SCHEME = {"interpolation": "seventh", "weights": "linear"}
SPHERE = {"generator": "sphere", "n_meridian": 15, "n_normal": 9, "n_around": 16, "standoff_axis": 0.6}
WALLS = {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "velocity": [0.5, 0.2, 0.1]}


def case(boundary, state=STATE, steps=10, **tables) -> Case:
    far = {"faces": "all", "type": "far-field", "state": state}
    rest = [] if boundary and boundary[-1]["faces"] == "all" else [far]
    given = {"grid": {"file": "none"}, "scheme": SCHEME, "time": {"steps": steps, "cfl": 0.4}} | tables
    return Case.from_dict({**given, "initial": {"state": state}, "boundary": [*boundary, *rest]})


def errors(n: int) -> np.ndarray:
    """Mean error of the rates of density and scalar where a uniform flow carries them over a wavy grid, without
    viscosity."""
    box = {"generator": "wavy", "n": [n, n, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "amplitude": [0.05, 0.05, 0.0]}
    sides = {"faces": "all", "type": "periodic"}
    made = case([sides], grid=box, scheme=SCHEME | {"positivity": "none"}, scalar=[{"name": "dye"}])
    solver = Simulation(made, device).solver
    (state,), (block,) = solver.states, solver.grid.blocks
    along, across = (2 * np.pi * (block.x + side * block.y) for side in (1, -1))
    rho, dye = 1 + 0.2 * np.sin(along), 0.5 + 0.3 * np.cos(across)
    solver.set_state(0, rho, 0.5, 0.2, 0.0, 0.7, {"dye": dye})
    solver.complete_state()
    solver.choose_dt()
    solver.right_hand_side()
    rate, jacobian = (state.interior(solver.backend.to_host(f)) for f in (state.r, state.jacobian))
    of_rho = -0.7 * 0.4 * np.pi * np.cos(along)
    of_dye = of_rho * dye + rho * 0.3 * 0.6 * np.pi * np.sin(across)
    found = rate[[0, -1]] * jacobian
    return np.abs(found - np.stack([of_rho, of_dye])).reshape(2, -1).mean(axis=1)


def off(simulation) -> float:
    """How far a uniform flow comes off itself."""
    simulation.run(progress=False)
    uniform = simulation.case.initial.state
    return max(
        float(np.abs(block.state(name) - getattr(uniform, name)).max())
        for block in simulation.blocks
        for name in ("rho", "u", "v", "w", "p")
    )


def streams() -> dict[str, float]:
    """The same by what is at the faces, on grids that are nowhere uniform where they may be."""
    along = STATE | {"v": 0.0, "w": 0.0}
    turned = {"grid": {"generator": "box", "n": [10, 10, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}}
    opened = ['scheme.interpolation="seventh"', "grid.n=[12,11,10]", "time.steps=10"]
    cases = {
        "walls": Simulation(case([WALLS], gas={"reynolds": 200.0}), device, grid=shaken((11, 12, 13))),
        "cold walls": Simulation(case([WALLS | {"temperature": 1.0}]), device, grid=shaken((11, 12, 13))),
        "slow": Simulation(load("free-stream", overrides=opened), device),
        "fast": Simulation(load("free-stream", "mach2", overrides=opened), device),
        "axis": Simulation(
            case([{"faces": ["jmin"], "type": "axis"}], along, axisymmetric=True, **turned), device
        ),
        "pole": Simulation(
            case([{"faces": ["imin", "imax"], "type": "pole"}], grid=SPHERE | {"standoff_side": 0.9}), device
        ),
        "patched": Simulation(
            case(PATCHED), device, grid=Grid(beside((12, 13), (11, 14), (0.0, 1.0, 2.0), curve=0.05))
        ),
        "mirrored places": Simulation(
            case([{"faces": ["jmin", "jmax"], "type": "slip-wall"}, {"faces": ["imin", "imax"], "type": "periodic"}],
                 along), device, grid=strip(12, 0.3),
        ),
    }  # fmt: skip
    return {name: off(simulation) for name, simulation in cases.items()}


def flow(**options) -> Simulation:
    """Past walls that it does not slip on, heated and with a scalar, on a grid that is nowhere uniform."""
    walls = [
        {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.1},
        {"faces": ["imin", "imax"], "type": "periodic"},
        {"faces": "all", "type": "slip-wall"},
    ]
    scalar = [{"name": "dye", "initial": 0.2}]
    tables = {
        "gas": {"reynolds": 200.0},
        "scalar": scalar,
        "grid": {"file": f"{folder}/grid.xyz", "period": {"i": [1.0, 0.0, 0.0]}},
    }
    made = case(walls, STATE | {"u": 0.0, "v": 0.0, "w": 0.0}, 6, **tables)
    return Simulation(made, device, initial=swirl, **options)


def swirl(x, y, z):
    rho = 1 + 0.1 * np.sin(2 * np.pi * x) * np.cos(3 * y)
    return rho, 0.3 * np.sin(3 * y), 0.1 * np.sin(2 * np.pi * x), 0.1 * np.cos(4 * z), rho / 1.4


def state(simulation) -> np.ndarray:
    """Independent of the cut."""
    system = simulation.solver.system
    found = system.vector()
    system.state(found)
    return system.gather(found)


def refused(n: list[int]) -> str:
    try:
        box = {"generator": "box", "n": n, "lower": [0, 0, 0], "upper": [1, 1, 0]}
        Simulation(case([], grid=box), device)
    except HiresxError as why:
        return str(why)
    return ""


root, alone = world().root, world().size == 1
through = flow()
held = through.comm.sum([float(through.solver.bytes)])[0]
through.run(progress=False)
first = flow(out=f"{folder}/run")
first.run(steps=3, progress=False)
rest = Simulation(restart=f"{folder}/run", backend=device)
rest.run(progress=False)
end, again = state(through), state(rest)
found = {"halo": through.solver.states[0].halo, "same": bool(np.array_equal(end, again)), "bytes": held}
if root:
    np.save(f"{folder}/flow.npy", end)
if alone:
    found |= {"planned": estimate(through.case)["memory_bytes"], "refused": refused([8, 12, 1])}
    choices = Configuration(interpolation="seventh", weights="linear", positivity="none")
    bench = SimpleNamespace(backend=device)
    coarse, fine = (interpolation_errors(bench, choices, n) for n in (16, 32))
    rates = np.log2(errors(24) / errors(48)).tolist()
    found |= {"interpolation": float(np.log2(coarse / fine)), "rates": rates}
    found["off"] = streams()
if root:
    print(json.dumps(found))
