"""Analysis of runs: one verb a file, the same in Python as in `hiresx post`.

Uses `results`. Needs the extra `post`: pip install 'hiresx[post]'.
"""

from hiresx.post.correlate import correlate
from hiresx.post.jet import jet
from hiresx.post.spectrum import spectrum

__all__ = ["correlate", "jet", "spectrum"]
