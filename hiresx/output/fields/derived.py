"""The variables that can be written and plotted: one small function for each, by name.

Scales: ambient density rho_ref, sound speed c_ref, temperature T_ref, length L; p = p* / (rho_ref c_ref^2),
T = gamma p / rho, so that the ambient gas has rho = 1, p = 1/gamma, T = 1.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hiresx.device.fields import output_fields
from hiresx.equations import GAS_PRIMITIVE
from hiresx.errors import HiresxError
from hiresx.output.fields.differences import Metrics, Sides

PRIMITIVE = GAS_PRIMITIVE


@dataclass(frozen=True)
class Variable:
    """A variable that output may contain. `compute`: the function of a `FlowState` that returns it. `long_name`: its
    description. `scale`: its unit in terms of the reference values. `symbol`: its symbol in mathtext. `colours`: its
    colour map in plots.

    `local`: whether it depends only on the state at a point; other variables need gradients.
    """

    compute: Callable[["FlowState"], np.ndarray]
    long_name: str
    scale: str
    symbol: str
    colours: str = "viridis"
    local: bool = True


class FlowState:
    """The flow on one block, from which derived variables are computed. `x`, `y`, `z`: coordinates of the nodes in
    units of the length scale L. `state`: the primitive variables by name. All arrays are `[k, j, i]`. Gradients are
    computed when they are first needed, and kept.

    `metrics`: a function that returns the metrics of the grid, if they were computed before. `beyond`: a function that
    returns the values of a coordinate or primitive variable at the nodes beyond the faces of the block; without it
    gradients are one-sided there. Raises HiresxError for a variable that cannot be computed from this state."""

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray,
        z: np.ndarray,
        state: Mapping[str, np.ndarray],
        gamma: float,
        metrics: Callable[[], Metrics] | None = None,
        beyond: Callable[[str], Sides] | None = None,
    ):
        self.x, self.y, self.z, self.gamma = x, y, z, gamma
        self._state = state
        self._known_metrics, self._beyond = metrics, beyond
        self._gradients: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the primitive variable `name` in float64."""
        if name not in self._state:
            stored = ", ".join(self._state) or "nothing"
            raise HiresxError(f"{name} is needed but was not stored (stored: {stored})", how_to_store(name))
        return np.asarray(self._state[name], dtype=np.float64)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables that the state of this block contains: primitive variables of the gas and passive
        scalars."""
        return tuple(self._state)

    @property
    def flat(self) -> bool:
        """True if at most two of the three index directions of the block have more than one node, as in plane flow."""
        return sum(n > 1 for n in self.x.shape) < 3

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics of the grid of this block, with which gradients are computed."""
        if self._known_metrics is not None:
            return self._known_metrics()
        return Metrics(self.x, self.y, self.z, self._beyond)

    def gradient(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the derivatives of the primitive variable `name` with respect to x, y and z, three arrays `[k, j, i]`
        in the unit of the variable per length scale L."""
        if name not in self._gradients:
            sides = None if self._beyond is None else self._beyond(name)
            self._gradients[name] = self.metrics.gradient(self[name], sides)
        return self._gradients[name]

    @property
    def speed_squared(self) -> np.ndarray:
        """Square of the speed, in c_ref^2, as an array [k, j, i]."""
        return self["u"] ** 2 + self["v"] ** 2 + self["w"] ** 2

    @property
    def temperature(self) -> np.ndarray:
        """Temperature gamma p / rho, in units of the reference temperature, as an array [k, j, i]."""
        return self.gamma * self["p"] / self["rho"]

    @property
    def vorticity(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Components of the curl of the velocity, in c_ref / L, each an array [k, j, i]."""
        (_, u_y, u_z), (v_x, _, v_z), (w_x, w_y, _) = (self.gradient(name) for name in "uvw")
        return w_y - v_z, u_z - w_x, v_x - u_y


def _vorticity(flow: FlowState) -> np.ndarray:
    x, y, z = flow.vorticity
    return z if flow.flat else np.sqrt(x * x + y * y + z * z)


def _mach(flow: FlowState) -> np.ndarray:
    return np.sqrt(flow.speed_squared / flow.temperature)


def _total_pressure(flow: FlowState) -> np.ndarray:
    gamma = flow.gamma
    return flow["p"] * (1 + (gamma - 1) / 2 * _mach(flow) ** 2) ** (gamma / (gamma - 1))


def _total_enthalpy(flow: FlowState) -> np.ndarray:
    return flow.temperature / (flow.gamma - 1) + flow.speed_squared / 2


def _q_criterion(flow: FlowState) -> np.ndarray:
    # Q = (|Omega|^2 - |S|^2)/2 = -(du_i/dx_j)(du_j/dx_i)/2 (Hunt, Wray & Moin 1988), also where the flow is compressed.
    g = [flow.gradient(name) for name in "uvw"]
    return -0.5 * sum(g[i][j] * g[j][i] for i in range(3) for j in range(3))


VARIABLES: dict[str, Variable] = {
    "rho": Variable(lambda f: f["rho"], "density", "rho_ref", r"\rho/\rho_\mathrm{ref}"),
    "u": Variable(lambda f: f["u"], "velocity along x", "c_ref", r"u/c_\mathrm{ref}"),
    "v": Variable(lambda f: f["v"], "velocity along y", "c_ref", r"v/c_\mathrm{ref}"),
    "w": Variable(lambda f: f["w"], "velocity along z", "c_ref", r"w/c_\mathrm{ref}"),
    "p": Variable(lambda f: f["p"], "pressure", "rho_ref c_ref^2", r"p/(\rho_\mathrm{ref}\,c_\mathrm{ref}^2)"),
    "T": Variable(lambda f: f.temperature, "temperature", "T_ref", r"T/T_\mathrm{ref}", "inferno"),
    "speed": Variable(lambda f: np.sqrt(f.speed_squared), "speed", "c_ref", r"|\mathbf{u}|/c_\mathrm{ref}"),
    "mach": Variable(_mach, "Mach number", "1", r"M"),
    "sound_speed": Variable(lambda f: np.sqrt(f.temperature), "sound speed", "c_ref", r"c/c_\mathrm{ref}"),
    "entropy": Variable(
        lambda f: np.log(f.gamma * f["p"] / f["rho"] ** f.gamma),
        "entropy above that of the ambient gas",
        "c_v",
        r"(s - s_\mathrm{ref})/c_v",
    ),
    "total_enthalpy": Variable(_total_enthalpy, "total enthalpy per mass", "c_ref^2", r"h_0/c_\mathrm{ref}^2"),
    "total_pressure": Variable(
        _total_pressure,
        "pressure of the gas brought to rest at constant entropy",
        "rho_ref c_ref^2",
        r"p_0/(\rho_\mathrm{ref}\,c_\mathrm{ref}^2)",
    ),
    "vorticity": Variable(
        _vorticity,
        "vorticity: z component in two dimensions, magnitude in three",
        "c_ref / L",
        r"\omega\,L/c_\mathrm{ref}",
        "inferno",
        local=False,
    ),
    **{
        f"vorticity_{axis}": Variable(
            lambda f, d=d: f.vorticity[d],  # type: ignore[misc]
            f"{axis} component of vorticity",
            "c_ref / L",
            rf"\omega_{axis}\,L/c_\mathrm{{ref}}",
            local=False,
        )
        for d, axis in enumerate("xyz")
    },
    "dilatation": Variable(
        lambda f: np.asarray(sum(f.gradient(name)[d] for d, name in enumerate("uvw"))),
        "divergence of velocity",
        "c_ref / L",
        r"\nabla\cdot\mathbf{u}\,L/c_\mathrm{ref}",
        local=False,
    ),
    "schlieren": Variable(
        lambda f: np.sqrt(sum(d * d for d in f.gradient("rho"))),
        "magnitude of the density gradient",
        "rho_ref / L",
        r"|\nabla\rho|\,L/\rho_\mathrm{ref}",
        "gray_r",
        local=False,
    ),
    "q_criterion": Variable(_q_criterion, "Q criterion", "c_ref^2 / L^2", r"Q\,L^2/c_\mathrm{ref}^2", local=False),
}


def about(name: str) -> Variable:
    """Return the description of the variable `name`: its formula, long name, unit, symbol and colour map. A name that
    is not a variable of the gas is taken as that of a further field of the run (such as a turbulence variable) or of a
    passive scalar, without a check."""
    if name in VARIABLES:
        return VARIABLES[name]
    if name in output_fields():
        return Variable(lambda f: f[name], output_fields()[name].shown, "1", rf"\mathrm{{{name}}}")
    return Variable(lambda f: f[name], f"passive scalar {name}", "1", rf"\mathrm{{{name}}}", "magma")


def is_known(name: str) -> bool:
    """Return whether `name` is a variable that output may contain in some case: a primitive or derived variable of the
    gas, or a further field such as a turbulence variable. Passive scalars, which a case names, do not count."""
    return name in VARIABLES or name in output_fields()


def how_to_store(name: str) -> str:
    """Return advice for an error message about a variable `name` that was not stored: what the key output.variables of
    the case must contain so that the variable is stored or can be computed."""
    if name in VARIABLES:
        return 'write "rho", "u", "v", "w", "p" in output.variables: every other variable of the gas follows from them'
    return f'write "{name}" in output.variables: it follows from no other variable'


def check(names: Iterable[str], place: str = "output.variables", scalars: Iterable[str] = ()) -> None:
    """Raise HiresxError, with the most similar existing name, for the first of `names` that is no variable that output
    may contain. `scalars`: names of the passive scalars of the case, which are accepted; a scalar with the name of
    another variable is an error, too. `place`: the key of the case for the error message."""
    scalars = tuple(scalars)
    for name in scalars:
        if is_known(name):
            raise HiresxError(
                f'scalar "{name}": that is the name of a variable ({about(name).long_name})', "choose another"
            )
    known, where = [*VARIABLES, *output_fields(), *scalars], f"{place}: " if place else ""
    for name in names:
        if name not in known:
            raise unknown_variable(name, known, where)


def unknown_variable(name: Any, known: Sequence[str], where: str = "") -> HiresxError:
    """Return the error for a variable `name` that does not exist, with the most similar name of the list `known`.
    `where`: the beginning of the error message."""
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return HiresxError(f'{where}there is no variable "{name}"', f"{hint}there are {', '.join(known)}")


def evaluate(names: Iterable[str], flow: FlowState) -> dict[str, np.ndarray]:
    """Compute the variables `names` from the flow on a block, and return them by name, each as a float64 array `[k, j,
    i]` in the scales of the case. Values are NaN at nodes where density or pressure is not positive. Raises HiresxError
    for an unknown name, and if a primitive variable that is needed is missing."""
    names = list(names)
    check(names, "variables", [name for name in flow.names if not is_known(name)])
    with np.errstate(invalid="ignore", divide="ignore"):
        return {name: about(name).compute(flow) for name in names}
