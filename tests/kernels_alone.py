"""Single kernels on a block of random nodes: stretched, turned, three components of velocity, areas that are not 1.

`program` compiles only the headers that are asked for, so that a kernel can be looked at in a second.
"""

import tempfile
from functools import cache
from pathlib import Path
from shutil import copytree, ignore_patterns

import numpy as np

from hiresx import kernels
from hiresx.device import Configuration
from hiresx.device.cpu import CpuBackend
from hiresx.device.emulated import EmulatedBackend

BACKENDS = {"cpu": CpuBackend, "emulated": EmulatedBackend}
GAMMA, PRANDTL, SUTHERLAND = 1.3, 0.6, 0.45
SIZE, HALO = (11, 7, 8), 3
SHAPE = tuple(n + 2 * HALO for n in reversed(SIZE))
STRIDES = (1, SHAPE[2], SHAPE[1] * SHAPE[2])
POINTS = SHAPE[0] * STRIDES[2]
ORIGIN = HALO * sum(STRIDES)
# Headers that are compiled together, as most of the time goes into what all of them include: those of kernels that know
# no viscosity, and those that are looked at with Sutherland's law.
SMALL = (
    "half_point.h", "metrics.h", "update.h", "reduce.h", "statistics.h", "averages.h", "exchange.h", "work_exchange.h",
    "sponge.h", "continuation.h", "interpolated.h", "spatial_filter.h", "boundary/extrapolate.h",
    "boundary/prescribe.h", "boundary/reflect.h",
)  # fmt: skip
VISCOUS = ("half_point.h", "metrics.h", "viscous.h", "timestep.h", "statistics.h", "averages.h", "axisymmetric.h")
# As most kernels take them.
PLACE = {"o": ORIGIN, "sj": STRIDES[1], "sk": STRIDES[2]}
ALL = PLACE | {"o": 0}  # ghosts too


class Numpy:
    """As much of a backend as arrays of numpy's need."""

    to_device = staticmethod(np.array)
    to_host = staticmethod(np.asarray)
    zeros = staticmethod(np.zeros)
    copy = write = staticmethod(np.copyto)


def with_implicit_program(folder: Path, text: str) -> Path:
    """A copy of the kernels in `folder`, whose program of the implicit integrator is `text`."""
    root = folder / "kernels"
    copytree(kernels.ROOT, root, ignore=ignore_patterns("__pycache__"))
    (root / "implicit.h").write_text(text)
    return root


@cache
def program(backend: str, headers: tuple[str, ...], changes: tuple[tuple[str, str, str], ...] = (), **choices):
    """The kernels that `headers` declare, for the backend's name and these choices of a Configuration. `changes`: of
    headers, (name, text, what takes its place)."""
    given = {"gamma": GAMMA, "prandtl": PRANDTL, "positivity": "none"}
    if choices.get("viscosity") == "sutherland":
        given["viscosity_parameters"] = (("sutherland_temperature", SUTHERLAND),)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "kernels"
        copytree(kernels.ROOT, root, ignore=ignore_patterns("__pycache__"))
        for name, old, new in changes:
            text = (root / name).read_text()
            assert old in text
            (root / name).write_text(text.replace(old, new))
        # Boundary conditions and terms come behind solver.h by themselves, and some of them with the whole scheme.
        placed = {root / header for header in headers if header.startswith(("boundary/", "terms/"))}
        for header in {*(root / "boundary").iterdir(), *(root / "terms").iterdir()} - placed:
            header.unlink()
        scheme = (root / "scheme.h").read_text()
        kept = (f'#include "{header}"\n' for header in headers if f'#include "{header}"' in scheme)
        (root / "scheme.h").write_text("".join(kept))
        others = [header for header in headers if root / header not in placed]
        (root / "solver.h").write_text("".join(f'#include "{header}"\n' for header in others))
        return BACKENDS[backend](root).compile(Configuration(**(given | choices)))


def inside(array: np.ndarray) -> np.ndarray:
    """The nodes of the block without ghosts, [..., k, j, i]."""
    return array[..., HALO:-HALO, HALO:-HALO, HALO:-HALO]


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def primitive(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """rho, u, v, w, p (5, ...) with three components of velocity, up to about Mach 2."""
    rho, p = rng.uniform(0.5, 2.0, (2, *shape))
    return np.stack([rho, *rng.uniform(-1.0, 1.0, (3, *shape)), p])


def conservative(s: np.ndarray) -> np.ndarray:
    rho, u, v, w, p = s
    return np.stack([rho, rho * u, rho * v, rho * w, p / (GAMMA - 1) + 0.5 * rho * (u * u + v * v + w * w)])


def states(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A primitive and the same conservative state of every padded node."""
    s = primitive(random(seed), *SHAPE)
    return s, conservative(s)


def turn(seed: int = 0) -> np.ndarray:
    """A rotation in space."""
    found = np.linalg.qr(random(seed).normal(size=(3, 3)))[0]
    return found * np.sign(np.linalg.det(found))


def geometry(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Areas (9, ...) of about 0.3, 2 and 5 in turned directions, a little askew, and the Jacobian."""
    rng = random(seed + 100)
    directions = turn(seed) + rng.uniform(-0.2, 0.2, (*SHAPE, 3, 3))
    areas = np.array([0.3, 2.0, 5.0])[:, None] * directions
    return np.ascontiguousarray(np.moveaxis(areas.reshape(*SHAPE, 9), -1, 0)), rng.uniform(0.2, 4.0, SHAPE)


def temperature(s: np.ndarray) -> np.ndarray:
    return GAMMA * s[4] / s[0]


def sutherland(t: np.ndarray) -> np.ndarray:
    return t**1.5 * (1 + SUTHERLAND) / (t + SUTHERLAND)


def derivative(f: np.ndarray, axis: int) -> np.ndarray:
    """6th-order central difference along `axis`, which loses three nodes at each end."""
    n = f.shape[axis] - 6

    def at(offset: int) -> np.ndarray:
        return np.take(f, np.arange(3 + offset, 3 + offset + n), axis)

    return (at(3) - 9 * at(2) + 45 * at(1) - 45 * at(-1) + 9 * at(-2) - at(-3)) / 60


def gradient(f: np.ndarray, m: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
    """df/dx, df/dy, df/dz (3, ...) of the nodes without ghosts."""
    own = [inside_but(derivative(f, 2 - d), 2 - d) for d in range(3)]
    area = inside(m).reshape(3, 3, *SIZE[::-1])
    return np.einsum("d...,dc...->c...", own, area) * inside(jacobian)


def inside_but(array: np.ndarray, axis: int) -> np.ndarray:
    """Without the ghosts of the other directions than `axis` (of k, j, i)."""
    cuts = [slice(HALO, -HALO)] * 3
    cuts[axis] = slice(None)
    return array[(..., *cuts)]
