"""The key `vortex` of far-field conditions. It adds the circulation of a lifting airfoil to the state far away."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx.case.model import State, Table, Vector, case_error

if TYPE_CHECKING:
    from hiresx.case.schema import Case


class Vortex(Table):
    """The far field of a lifting airfoil in steady plane flow: a compressible point vortex in the stream `state`, with
    the circulation that corresponds to the lift (Usab & Murman 1983; Thomas & Salas 1986). Its entropy and total
    enthalpy are those of `state`. The circulation is updated from the lift after every step of the implicit integrator,
    and after every tenth step of other integrators. The history `vortex` has lift and circulation."""

    force: str = Field(min_length=1, description="name of the [[force]] on the airfoil, which has the lift")
    centre: Vector = Field(
        (0.25, 0.0, 0.0),
        description="place of the vortex [x, y, z], in L; absent: the quarter chord of an airfoil from x = 0 to 1",
    )

    def flow(
        self, state: State, gamma: float, circulation: float, x: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return rho, u, v and p, in the scales of the case, of the uniform stream `state` with the vortex. `x`, `y`:
        coordinates of the points, in units of the length scale L; all results have the shape of x. `gamma`: ratio of
        specific heats. `circulation`: in c_ref L, positive clockwise, as for a lift to the left of the stream. Source:
        J. L. Thomas & M. D. Salas, AIAA Journal 24 (1986) 1074."""
        sound = gamma * state.p / state.rho
        square = (state.u**2 + state.v**2) / sound
        dx, dy = x - self.centre[0], y - self.centre[1]
        distance = dx**2 + dy**2
        # r^2 times the square of the sine of the angle between the stream and the place
        across = (state.u * dy - state.v * dx) ** 2 / (state.u**2 + state.v**2)
        swirl = circulation / (2 * np.pi) * np.sqrt(1 - square) / (distance - square * across)
        u, v = state.u + swirl * dy, state.v - swirl * dx
        ratio = 1 + (gamma - 1) / 2 * (state.u**2 + state.v**2 - u**2 - v**2) / sound
        return state.rho * ratio ** (1 / (gamma - 1)), u, v, state.p * ratio ** (gamma / (gamma - 1))

    def largest(self, state: State, gamma: float, x: np.ndarray, y: np.ndarray) -> float:
        """Return the largest circulation that is accepted, in c_ref L: at the point nearest to the vortex it changes
        the velocity by half of the stream's speed. `x`, `y`: coordinates of the points of the far field, arrays of one
        shape in units of L. `state`: the uniform stream. `gamma`: ratio of specific heats."""
        square = (state.u**2 + state.v**2) * state.rho / (gamma * state.p)
        distance = np.hypot(x - self.centre[0], y - self.centre[1]).min(initial=np.inf)
        return float(np.pi * distance * np.hypot(state.u, state.v) * np.sqrt(1 - square))


def _vortices(case: "Case") -> Iterator[tuple[int, Vortex, State]]:
    """Yield the numbers of the far fields with a vortex, their vortices and states."""
    for n, condition in enumerate(case.boundary):
        far: Any = condition
        if getattr(far, "vortex", None) is not None:
            yield n, far.vortex, far.state


def vortex_of(case: "Case") -> tuple[Vortex, State] | None:
    """Return the far-field vortex of `case` and the state of the uniform stream around it, or None if the case has no
    vortex."""
    return next(((vortex, state) for _, vortex, state in _vortices(case)), None)


def vortex_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield an error for each setting of `case` that a far-field vortex does not support."""
    names = [force.name for force in case.force]
    for n, vortex, s in _vortices(case):
        place = f"boundary.{n}.vortex"
        if not case.time.local:
            yield case_error(
                f'{place} is for steady flow: set time.local = true or time.integrator = "implicit", or leave it out'
            )
        if case.axisymmetric:
            yield case_error(f"{place} is for plane flow, in which there is circulation: leave it out of axisymmetric")
        if vortex.force not in names:
            there = ", ".join(f'"{name}"' for name in names) or "none"
            yield case_error(f'{place}.force = "{vortex.force}": there is no [[force]] of that name (there is {there})')
        square = (s.u**2 + s.v**2) * s.rho / (case.gas.gamma * s.p)
        if not 0 < square < 1:
            yield case_error(
                f"{place} is for a subsonic stream along x and y, and that of boundary.{n}.state has the Mach number "
                f"{square**0.5:.4g}: leave it out"
            )
        if (vortex, s) != vortex_of(case):
            yield case_error(f"{place}: another far field has another vortex or state; a flow has one of each")
