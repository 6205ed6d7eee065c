"""Wavy grids and states on them, for tests of derived variables and of files."""

import numpy as np


def wavy(nk, nj, ni):
    """Strongly wavy node coordinates (nk, nj, ni) on a unit box; a singleton direction stays flat."""
    k, j, i = (np.linspace(0, 1, n) if n > 1 else np.zeros(1) for n in (nk, nj, ni))
    z, y, x = np.meshgrid(k, j, i, indexing="ij")
    wave = 0.04 * np.sin(2 * np.pi * x) * (np.sin(2 * np.pi * y + 1) if nj > 1 else 1)
    wave = wave * (np.cos(2 * np.pi * z) if nk > 1 else 1)
    return x + wave, y + (wave if nj > 1 else 0), z + (wave if nk > 1 else 0)


def state(shape, dtype=np.float64, **values):
    uniform = {"rho": 1.0, "u": 0.0, "v": 0.0, "w": 0.0, "p": 1 / 1.4} | values
    return {name: np.array(np.broadcast_to(value, shape), dtype=dtype) for name, value in uniform.items()}
