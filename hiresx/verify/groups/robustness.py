"""Robustness: every flux with both weights lives through strong shocks and near-vacuum, by default.

Small forms of the flows of docs/robustness.md, each started as impulsively as it is: the least density and pressure at
any step, over those of the initial state.
"""

from hiresx.verify import robustness

LONG = True

CHECKS = robustness.checks()
