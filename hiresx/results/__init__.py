"""What a run left behind, as xarray objects: `hiresx.open(RUN)`.

Uses `output`. Needs xarray: pip install 'hiresx[post]'.
"""

from hiresx.results.run import Run, open

__all__ = ["Run", "open"]
