"""Flows with passive scalars that tests share."""

import numpy as np

from hiresx.case import Case

# Two everywhere, so that all tests share their kernels.
NAMES = ("dye", "ink")
SCHMIDT = {"dye": 0.7, "ink": 0.4}
P = 1 / 1.4


def case(n=(24, 24, 1), boundary=None, reynolds=None, initial=(0.7, 0.25), periodic=("x", "y"), **tables):
    lower, upper = [0.0, 0.0, 0.0], [1.0 * (m > 1) for m in n]
    return Case.from_dict(
        {
            "grid": {"generator": "wavy", "n": list(n), "lower": lower, "upper": upper,
                     "amplitude": [0.04 * (m > 1) for m in n], "periodic": list(periodic)},
            "gas": {} if reynolds is None else {"reynolds": reynolds},
            "time": {"steps": 10, "cfl": 0.5},
            "initial": {"state": {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P}},
            "boundary": boundary or [{"faces": "all", "type": "periodic"}],
            "scalar": [
                {"name": name, "schmidt": SCHMIDT[name], "initial": value}
                for name, value in zip(NAMES, initial, strict=True)
            ],
            **tables,
        }
    )  # fmt: skip


def shocks(x, y, z):
    """Smooth motion with a jump of density and pressure in the middle."""
    inside = np.hypot(x - 0.5, y - 0.5) < 0.2
    rho = (1 + 2 * inside) * (1 + 0.2 * np.sin(2 * np.pi * x))
    return rho, 0.5 * np.sin(2 * np.pi * y), 0.4 * np.cos(2 * np.pi * x), 0 * x, P * (1 + 3 * inside)


def patches(x, y, z):
    return {
        "dye": 0.5 + 0.4 * np.sin(6 * x + 1) * np.cos(5 * y + z),
        "ink": 0.1 + 0.8 * (np.hypot(x - 0.4, y - 0.6) < 0.2),
    }


def at_rest(x, y, z):
    return 1.0 + 0 * x, 0.0, 0.0, 0.0, P


def start(made, flow, scalars=None):
    """Give a solver the flow `flow`(x, y, z) and its scalars, or those of the case."""
    for n, state in enumerate(made.states):
        x, y, z = state.block.x, state.block.y, state.block.z
        uniform = {s.name: s.initial for s in made.case.scalar}
        made.set_state(n, *flow(x, y, z), uniform if scalars is None else scalars(x, y, z))
    made.complete_state()


STATE = {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P}
CARRIED = {"scalars": {"dye": 0.7, "ink": 0.25}}
OPEN = [
    {"faces": ["imin"], "type": "supersonic-inflow", "state": {**STATE, "u": 1.5}, **CARRIED},
    {"faces": ["imax"], "type": "supersonic-outflow"},
    {"faces": ["jmin"], "type": "far-field", "state": STATE, **CARRIED},
    {"faces": ["jmax"], "type": "characteristic-outflow", "pressure": P},
]
OUTFLOWS = [{"faces": "all", "type": "characteristic-outflow", "pressure": P}]
WALLS = [
    {"faces": ["imin"], "type": "slip-wall", "range": {"j": [0, 9]}},
    {"faces": ["imin"], "type": "no-slip-wall", "range": {"j": [9, "end"]}},
    {"faces": ["imax"], "type": "no-slip-wall"},
    {"faces": ["jmin"], "type": "no-slip-wall", "scalars": {"dye": 0.7, "ink": 0.25}},
    {"faces": ["jmax"], "type": "symmetry"},
]
CONDITIONS = {"periodic": None, "open": OPEN, "outflows": OUTFLOWS, "walls": WALLS}
SPONGE = {"sponge": [{"axis": "x", "start": 0.6, "end": 1.0, "strength": 5.0, "state": {"rho": 1.3, "p": P}}]}
