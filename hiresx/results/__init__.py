"""The results of a run as xarray objects: `hiresx.open(RUN)`.

Uses `output`. Needs xarray: pip install 'hiresx[post]'.
"""

from hiresx.results.run_reader import Run, open

__all__ = ["Run", "open"]
