"""Time integrators: each file here is one. Its name is the option `time.integrator`, and it
defines one class derived from `Integrator`.

hiresx.time.integrator defines the interface.
"""

import importlib
from functools import cache

from hiresx import kernels
from hiresx.case import Case
from hiresx.equations.stencil import DIFFERENCE_REACH, largest_diffusion
from hiresx.errors import HiresxError
from hiresx.time.integrator import Integrator


def integrator(name: str) -> Integrator:
    """Return a new time integrator called `name`, the value of `time.integrator` in a case: an instance of the class in
    the file of this name in hiresx/time/integrators. Raises TypeError if the file does not define exactly one such
    class."""
    return _class(name)()


@cache
def _class(name: str) -> type[Integrator]:
    module = importlib.import_module(f"{__name__}.{name}")
    found: list[type[Integrator]] = [
        value for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Integrator) and value.__module__ == module.__name__
    ]  # fmt: skip
    if len(found) != 1:
        raise TypeError(f"{module.__name__} has {len(found)} classes derived from Integrator: define one")
    return found[0]


def check_integrator(case: Case, scheme: Integrator) -> None:
    """Raise HiresxError if `case` needs local time steps or a filter, which only explicit time integrators support, and
    `scheme` is not explicit."""
    name = case.time.integrator
    if case.time.local and scheme.iterates and not scheme.steady:
        raise HiresxError(
            f'time.local is for explicit integrators, which "{name}" is not',
            'leave time.local out, or time.integrator = "ssp_rk3"',
        )
    if case.filter is not None and scheme.iterates:
        raise HiresxError(
            f'filter is for explicit integrators, which "{name}" is not',
            'leave the table [filter] out, or take time.integrator = "ssp_rk3"',
        )


def viscous_limit(case: Case) -> float:
    """Return the largest stable `time.viscous_cfl` for the integrator and the order of the viscous differences of
    `case`."""
    share = largest_diffusion(DIFFERENCE_REACH) / largest_diffusion(case.stencil.difference_reach)
    return integrator(case.time.integrator).viscous_cfl * share


def remarks(case: Case) -> list[str]:
    """Return warnings about the time integrator of `case`: CFL numbers above its limits of stability, and stages that
    do not guarantee positive density and pressure."""
    name, scheme, time = case.time.integrator, integrator(case.time.integrator), case.time
    found: list[str] = []
    if scheme.implicit:
        return found
    if kernels.trait("positivity", case.scheme.positivity, "limits_flux") and not scheme.convex:
        found.append(
            f'time.integrator = "{name}": density and pressure may become negative, as its stages are no '
            f'convex combinations of Euler steps, which scheme.positivity = "{case.scheme.positivity}" requires; '
            '"ssp_rk3" with time.cfl up to 0.5 keeps them positive'
        )
    limits = (("cfl", time.cfl, scheme.cfl), ("viscous_cfl", time.viscous_cfl, viscous_limit(case)))
    for key, asked, limit in limits[: 1 if case.gas.reynolds is None else 2]:
        if asked is not None and asked > limit and time.cfl is not None:
            found.append(f'time.{key} = {asked:g} is above {limit:g}, up to which "{name}" is stable')
    return found
