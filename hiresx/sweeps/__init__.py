"""Sweeps: one case with several values of its keys, each in a run of its own.

values: what is varied. plan: the runs. folder: what a sweep keeps, and whether it is the same one. member: how far a
run is. numbers: what a table says of a run. table: the table. picture: one column over another. running: one run after
the other. array: a job array.
"""

from hiresx.sweeps.running import sweep
from hiresx.sweeps.table import SweepTable

__all__ = ["SweepTable", "sweep"]
