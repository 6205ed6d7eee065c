"""Fields to be drawn: a vortex, a jet, a ring, a tube."""

import matplotlib.image
import numpy as np

from hiresx.output.fields import field_file as fields
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.fields.formats import netcdf


def case(title, *variables):
    return {"title": title, "gas": {"gamma": 1.4}, "output": {"variables": ["rho", "u", "v", "w", "p", *variables]}}


def block(name, x, y, z, rho, u=0.0, v=0.0, w=0.0, p=1 / 1.4):
    values = {"rho": rho, "u": u, "v": v, "w": w, "p": p}
    return FieldBlock(name, x, y, z, {key: np.array(np.broadcast_to(value, x.shape)) for key, value in values.items()})


def mesh(x, y=(0.0,), z=(0.0,)):
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    return x, y, z


def vortex(n=32):
    """Isentropic vortex of strength 5 on a wavy periodic grid whose last nodes are not doubled."""
    s = np.arange(n) * 10 / n
    x, y, z = mesh(s, s)
    wave = 0.5 * np.sin(np.pi * x / 5) * np.sin(np.pi * y / 5)
    x, y = x + wave, y + wave
    r2 = (x - 5) ** 2 + (y - 5) ** 2
    temperature = 1 - 0.4 * 25 / (8 * 1.4 * np.pi**2) * np.exp(1 - r2)
    swirl = 5 / (2 * np.pi) * np.exp((1 - r2) / 2)
    rho = temperature**2.5
    return [block("main", x, y, z, rho, 1 - swirl * (y - 5), 1 + swirl * (x - 5), 0.0, rho * temperature / 1.4)]


def jet(nz=1):
    """Three blocks side by side, the middle one finer, with shared nodes: cells and a shear layer."""
    blocks = []
    for name, y in (("below", (-4, -0.5, 20)), ("core", (-0.5, 0.5, 15)), ("above", (0.5, 4, 20))):
        x, y, z = mesh(np.linspace(0, 12, 60), np.linspace(*y), np.linspace(0, 3, nz) if nz > 1 else (0.0,))
        core = (np.tanh((y + 0.5) / 0.15) - np.tanh((y - 0.5) / 0.15)) / 2
        p = (1 + 0.4 * core * (x / 2.6 % 1 - 0.5) * np.exp(-x / 6)) / 1.4
        blocks.append(block(name, x, y, z, 1.4 * p / (1 - 0.3 * core), 1.27 * core, 0.0, 0.0, p))
    return blocks


def ring(n=20, m=40):
    """An O-grid round a cylinder of radius 1, along theta without a doubled node."""
    r, theta, z = mesh(np.linspace(1, 5, n), np.arange(m) * 2 * np.pi / m)
    return [block("ring", r * np.cos(theta), r * np.sin(theta), z, 1 + 1 / r)]


def save(directory, blocks, about, step=7, time=0.25):
    directory.mkdir(exist_ok=True)
    return fields.write(netcdf.frame(directory, step), blocks, time, step, about)


def picture(path):
    """A PNG as an array, after seeing that something of many colours is drawn."""
    image = matplotlib.image.imread(path)
    assert image.shape[0] > 300
    assert image.shape[1] > 1000
    assert len(np.unique(image.reshape(-1, image.shape[2])[::7], axis=0)) > 50
    return image
