"""In a copy with a flux limiter under another name than "limiter": an expansion to near vacuum by it, told as JSON by
rank 0. The flow at the end is left in FOLDER.

python limited.py BACKEND FOLDER
"""

import json
import sys

import numpy as np

from hiresx import Simulation, load
from hiresx.mpi.communicator import world

device, folder = sys.argv[1:]
CASE = load("vacuum", overrides=["grid.n=[60,1,1]", "time.steps=24", 'scheme.positivity="capped"'])


def flow(run) -> np.ndarray:
    """The state, independent of the cut."""
    system = run.solver.system
    found = system.vector()
    system.state(found)
    return system.gather(found)


through = Simulation(CASE, device)
through.run(progress=False)
first = Simulation(CASE, device, out=f"{folder}/run")
first.run(steps=12, progress=False)
rest = Simulation(restart=f"{folder}/run", backend=device)
rest.run(progress=False)
end, again = flow(through), flow(rest)
if world().root:
    np.save(f"{folder}/flow.npy", end)
    print(json.dumps({"same": bool(np.array_equal(end, again)), "steps": rest.step_count}))
