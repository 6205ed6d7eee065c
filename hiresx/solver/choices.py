"""The compile-time choices of a case."""

from hiresx.case import Case
from hiresx.device.configuration import Configuration


def configuration(case: Case) -> Configuration:
    """The compile-time choices of a case."""
    scheme, gas = case.scheme, case.gas
    return Configuration(
        interpolation=scheme.interpolation,
        weights=scheme.weights,
        space=scheme.space,
        flux=scheme.flux,
        flux_smoothing=scheme.flux_smoothing,
        epsilon=scheme.epsilon,
        positivity=scheme.positivity,
        precision=scheme.precision,
        viscosity="none" if gas.reynolds is None else gas.viscosity.law,
        viscosity_parameters=() if gas.reynolds is None else gas.viscosity.parameters,
        gamma=gas.gamma,
        prandtl=gas.prandtl,
        schmidt=tuple(scalar.schmidt for scalar in case.scalar),
    )
