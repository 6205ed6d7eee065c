"""The results of a run as xarray objects: `hiresx.open(RUN)`.

Uses `output`. Needs xarray: pip install '.[post]' in the clone of HiresX.
"""

from hiresx.results.run_reader import Run, open

__all__ = ["Run", "open"]
