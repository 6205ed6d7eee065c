"""The compile-time choices of a case."""

import numpy as np

from hiresx.case import Case
from hiresx.case.face_formulas import timed_formulas
from hiresx.case.source_table import source_formulas
from hiresx.case.turbulence_table import NONE
from hiresx.decomposition import Decomposition
from hiresx.device.configuration import INVISCID, Configuration
from hiresx.equations import GAS_CONSERVED
from hiresx.equations.gas import conservative
from hiresx.equations.stencil import stencil
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError


def configuration(case: Case) -> Configuration:
    """Return the compile-time choices of the kernels for `case`, such as the numerical flux and the precision."""
    scheme, gas = case.scheme, case.gas
    inviscid = gas.reynolds is None
    eddies = case.turbulence
    has_model = eddies.model != NONE
    formulas, values = source_formulas(case)
    names = [*GAS_CONSERVED, *(f"scalars.{scalar.name}" for scalar in case.scalar)]
    regularised = scheme.inviscid == "regularised"
    reach = case.stencil.difference_reach
    return Configuration(
        interpolation=scheme.interpolation,
        weights="linear" if regularised else scheme.weights,
        space="component" if regularised else scheme.space,
        flux=scheme.flux,
        flux_smoothing=scheme.flux_smoothing,
        epsilon=scheme.epsilon,
        # Without a choice of it schemes share their kernels.
        cutoff=Configuration.cutoff if scheme.cutoff is None else scheme.cutoff,
        positivity=scheme.positivity,
        inviscid=scheme.inviscid,
        sensor=scheme.hybrid.sensor if scheme.inviscid == "hybrid" else Configuration.sensor,
        stress=scheme.regularised.stress,
        # Within the ghost layers of the other stencils a filter needs no kernels of its own.
        filter_reach=0
        if case.stencil.halo == stencil(scheme.interpolation, viscous_reach=reach).halo
        else case.stencil.filter_reach,
        viscous_reach=reach,
        precision=scheme.precision,
        reference=_reference(case) if STORAGE[scheme.precision].carries else (),
        viscosity=INVISCID if inviscid else gas.viscosity.law,
        viscosity_parameters=() if inviscid else gas.viscosity.parameters,
        turbulence=eddies.model,
        eddy_constant=eddies.taken_constant if has_model else Configuration.eddy_constant,
        eddy_prandtl=eddies.prandtl if has_model else Configuration.eddy_prandtl,
        eddy_schmidt=eddies.schmidt if has_model else Configuration.eddy_schmidt,
        transported_ft2=eddies.has_ft2,
        detached_eddies=eddies.detached_eddies,
        source=tuple((names.index(key), formula.text) for key, formula in formulas.items()),
        source_variables=next((formula.variables for formula in formulas.values()), ()),
        source_parameters=tuple(values.items()),
        face_formulas=tuple((text, tuple(values.items())) for text, values in timed_formulas(case).items()),
        gamma=gas.gamma,
        # There is no heat conduction without viscosity: all inviscid cases share their kernels.
        prandtl=Configuration.prandtl if inviscid else gas.prandtl,
        schmidt=tuple(scalar.schmidt for scalar in case.all_scalars),
    )


def check_reference(chosen: Configuration, cut: Decomposition) -> None:
    """Raise HiresxError if the kernels store differences from a reference state with a velocity, and a connection
    between blocks rotates vectors. (The exchange of ghost nodes would rotate the stored differences but not the
    reference.) `chosen`: the compile-time choices of the kernels. Its `reference` is empty unless the precision is
    "differences". `cut`: the blocks with their connections."""
    moves = any(chosen.reference[momentum] for momentum in range(1, 4)) if chosen.reference else False
    if moves and any(connection.rotation is not None for connection in cut.connections):
        raise HiresxError(
            "scheme.reference has a velocity, but faces of the grid are connected by a rotation, over which it differs",
            "give scheme.reference no velocity",
        )


def check_stress(chosen: Configuration, cut: Decomposition) -> None:
    """Raise HiresxError if the compile-time choices `chosen` need tensors in ghost nodes that the exchange cannot
    rotate or reflect. This is so for a compressive entropic stress if block faces are patched (touch other blocks
    without common nodes) or connected by a rotation, and for the dynamic Smagorinsky model if faces are connected by a
    rotation. `cut`: the blocks with their connections."""
    turned = any(connection.rotation is not None for connection in cut.connections)
    if chosen.stress == "compressive" and (turned or any(p.condition.type == "patched" for p in cut.patches)):
        raise HiresxError(
            'scheme.regularised.stress = "compressive": faces of the grid are '
            f"{'connected by a rotation' if turned else 'patched'}, over which the stress is not transferred",
            'take "isotropic"',
        )
    if chosen.turbulence == "dynamic_smagorinsky" and turned:
        raise HiresxError(
            'turbulence.model = "dynamic_smagorinsky": faces of the grid are connected by a rotation, over which the '
            "rate of strain is not transferred",
            'take another model, such as "sigma" or "wale"',
        )


def _reference(case: Case) -> tuple[float, ...]:
    """Return the conservative reference state of the stored differences."""
    s = case.reference
    values = conservative(case.gas.gamma, *np.array([s.rho, s.u, s.v, s.w, s.p]))
    return tuple(float(number) for number in values)
