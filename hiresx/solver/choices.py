"""The compile-time choices of a case."""

from hiresx.case import Case
from hiresx.device.configuration import INVISCID, Configuration


def configuration(case: Case) -> Configuration:
    """The compile-time choices of a case."""
    scheme, gas = case.scheme, case.gas
    inviscid = gas.reynolds is None
    return Configuration(
        interpolation=scheme.interpolation,
        weights=scheme.weights,
        space=scheme.space,
        flux=scheme.flux,
        flux_smoothing=scheme.flux_smoothing,
        epsilon=scheme.epsilon,
        positivity=scheme.positivity,
        precision=scheme.precision,
        viscosity=INVISCID if inviscid else gas.viscosity.law,
        viscosity_parameters=() if inviscid else gas.viscosity.parameters,
        gamma=gas.gamma,
        # Without viscosity no heat is conducted: such cases share their kernels.
        prandtl=Configuration.prandtl if inviscid else gas.prandtl,
        schmidt=tuple(scalar.schmidt for scalar in case.scalar),
    )
