"""Exact solutions, linear solutions and measured data of flows. Cases use them as initial flows, and checks compare
computed results with them. This package does not use the solver.

Functions of closed form can be imported from here; `grid_turbulence`, `linear_interaction`, `nozzle`, `plane_wave` and
`shear_layer` are modules."""

from hiresx.exact.shear_flows import blasius, blasius_layer, couette, crocco_busemann
from hiresx.exact.shock_tube import Riemann, jump, riemann
from hiresx.exact.shocks import Shock, billig_standoff, normal_shock, oblique_shock, rayleigh_pitot

__all__ = [
    "Riemann",
    "Shock",
    "billig_standoff",
    "blasius",
    "blasius_layer",
    "couette",
    "crocco_busemann",
    "jump",
    "normal_shock",
    "oblique_shock",
    "rayleigh_pitot",
    "riemann",
]
