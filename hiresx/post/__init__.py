"""Analysis of runs: one module for each command of `hiresx post`. The same functions can be called from Python. Uses
`results`. Needs the extra `post`: pip install '.[post]' in the clone of HiresX."""

from hiresx.output.show.look import Look
from hiresx.post.amplification import amplification
from hiresx.post.animate import animate
from hiresx.post.azimuthal import azimuthal
from hiresx.post.correlate import correlate
from hiresx.post.energy_spectrum import energy_spectrum
from hiresx.post.farfield import far_field, farfield
from hiresx.post.fwh import Stream, Surface
from hiresx.post.isosurface import isosurface
from hiresx.post.jet import jet
from hiresx.post.profile import profile
from hiresx.post.slice import slice
from hiresx.post.spectrum import spectrum
from hiresx.post.spod import spod
from hiresx.post.turbulence import turbulence
from hiresx.post.wall import wall
from hiresx.post.wavenumber import wavenumber
from hiresx.post.xt import xt

__all__ = [
    "Look",
    "Stream",
    "Surface",
    "amplification",
    "animate",
    "azimuthal",
    "correlate",
    "energy_spectrum",
    "far_field",
    "farfield",
    "isosurface",
    "jet",
    "profile",
    "slice",
    "spectrum",
    "spod",
    "turbulence",
    "wall",
    "wavenumber",
    "xt",
]
