"""Sweeps: one case with several values of its keys, each in a run of its own.

values: the keys that vary. members: the runs. folder: the files of a sweep. member: the state of a run.
run_numbers: columns of the table. table: the table. picture: one column over another. running: one run after the other.
"""

from hiresx.sweeps.running import sweep
from hiresx.sweeps.table import SweepTable

__all__ = ["SweepTable", "sweep"]
