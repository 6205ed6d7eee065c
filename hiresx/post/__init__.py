"""Analysis of runs: one verb a file, the same in Python as in `hiresx post`.

Uses `results`. Needs the extra `post`: pip install 'hiresx[post]'.
"""

from hiresx.post.animate import animate
from hiresx.post.correlate import correlate
from hiresx.post.farfield import farfield
from hiresx.post.fwh import Stream, Surface, far_field
from hiresx.post.jet import jet
from hiresx.post.profile import profile
from hiresx.post.slice import slice
from hiresx.post.spectrum import spectrum
from hiresx.post.spod import spod
from hiresx.post.view import Look
from hiresx.post.xt import xt

__all__ = [
    "Look",
    "Stream",
    "Surface",
    "animate",
    "correlate",
    "far_field",
    "farfield",
    "jet",
    "profile",
    "slice",
    "spectrum",
    "spod",
    "xt",
]
