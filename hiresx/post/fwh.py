"""Far field of a permeable surface at rest in a uniform stream, in the time domain: Ffowcs Williams and Hawkings.

Farassat's formulation 1A (NASA TM 2007-214853) with the Green function of a stream along x: Najafi-Yazdi, Bres &
Mongeau, Proc. R. Soc. A 467 (2011) 144. Quadrupoles outside the surface are left out. With U the stream, M its Mach
number, rho', p', u' = u - U the perturbations and n the outward normal,

    (1/c^2 D^2/Dt^2 - lap) p' = D/Dt (Q delta) - div (L delta),  Q = (rho u - rho0 U).n,  L = p' n + rho u' (u.n),

whose solution, for d = x - y from a point of the surface to the observer, b^2 = 1 - M^2, R* = sqrt(d1^2 + b^2 (d2^2 +
d3^2)) and R = (R* - M d1) / b^2, is

    4 pi p'(x, t) = D/Dt int Q(t - R/c) / R* dS - d/dx_i int L_i(t - R/c) / R* dS,

with the derivatives taken inside: d/dx_i (F(t - R/c) / R*) = -(dR/dx_i) F' / (c R*) - (dR*/dx_i) F / R*^2."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hiresx.errors import HiresxError

# Number of samples of the polynomial that interpolates between two samples.
_STENCIL = 8
# Number of bytes of sources in memory at a time.
_HELD = 1 << 28
# Number of places whose sources are computed at a time.
_TURNED = 128
# rho (time, m), velocity (time, m, 3) and pressure (time, m) of some of the places.
Flow = Callable[[slice], tuple[np.ndarray, np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Surface:
    """A permeable surface for the equation of Ffowcs Williams and Hawkings: points `places` (n, 3) in units of the
    length scale L, outward unit normals (n, 3), areas (n,). If it is open, such as a box without the end that the jet
    crosses, the contribution of the missing side is neglected. `plane`: whether it is a line in a plane flow, whose
    areas are lengths; its z is that of the plane."""

    places: np.ndarray
    normals: np.ndarray
    areas: np.ndarray
    plane: bool = False

    @property
    def cells(self) -> np.ndarray:
        """Sizes of the cells of the surface (n,), in units of the length scale L: the square roots of the areas, or the
        lengths in plane flow."""
        return self.areas if self.plane else np.sqrt(self.areas)


@dataclass(frozen=True)
class Stream:
    """The uniform stream along x outside of the surface. `mach`: Mach number, below 1. `density`: in rho_ref.
    `pressure`: in rho_ref c_ref^2. `sound`: the sound speed, in c_ref."""

    mach: float = 0.0
    density: float = 1.0
    pressure: float = 1 / 1.4
    sound: float = 1.0


def box(lower: np.ndarray, upper: np.ndarray, counts: tuple[int, ...]) -> Surface:
    """Return the six sides of a box as one surface. They are divided into cells, `counts` along x, y and z, with a
    point in the middle of each. `lower` and `upper`: the corners (3,) or (2,), in units of the length scale L. With two
    counts and corners (2,) it is the boundary of a rectangle in the plane z = 0."""
    lower, upper, dimensions = np.asarray(lower, float), np.asarray(upper, float), len(counts)
    step = (upper - lower) / counts
    places, normals, areas = [], [], []
    for axis in range(dimensions):
        others = [n for n in range(dimensions) if n != axis]
        along = [lower[n] + (np.arange(counts[n]) + 0.5) * step[n] for n in others]
        across = [f.ravel() for f in np.meshgrid(*along, indexing="ij")]
        for side, at in ((-1.0, lower[axis]), (1.0, upper[axis])):
            face = np.zeros((across[0].size, 3))
            face[:, axis] = at
            for n, values in zip(others, across, strict=True):
                face[:, n] = values
            normal = np.zeros_like(face)
            normal[:, axis] = side
            places.append(face)
            normals.append(normal)
            areas.append(np.full(len(face), np.prod(step[others])))
    return Surface(np.concatenate(places), np.concatenate(normals), np.concatenate(areas), dimensions == 2)


def pressure_by_group(
    surface: Surface,
    time: np.ndarray,
    flow: Flow,
    observers: np.ndarray,
    stream: Stream,
    group: np.ndarray | None = None,
    still: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (times, p'): the times (m, k) at which m observers receive sound, and the sound pressure p' (groups, m,
    k), separated by groups of surface points, in the scales of the case. The sum over the groups is the total pressure.
    `surface`: n points with normals and areas. `time` (times,): equally spaced times of the samples. `flow`: a function
    that returns rho (times, points), velocity (times, points, 3) and pressure (times, points) at a slice of the points,
    so that only these are in memory. `observers` (m, 3): coordinates, in units of the length scale L. `stream`: the
    uniform flow outside the surface. `group` (n,): number of the group of each surface point, from 0; by default there
    is one group.

    `still`: number of samples at the beginning, `samples_before` or more, in which the flow at the surface is at rest.
    Each observer then has another time window. It begins when the observer receives the first sound of the nearest
    point, and ends when it no longer receives sound from the whole surface. All windows are equally long. Raises
    HiresxError for a stream that is not subsonic, for samples at unequal intervals, and for too few samples. Source:
    Farassat, NASA TM 2007-214853; Najafi-Yazdi, Bres & Mongeau, Proc. R. Soc. A 467 (2011) 144."""
    dt = check_step(time, stream)
    observers = np.asarray(observers, float)
    group = np.zeros(len(surface.areas), dtype=int) if group is None else np.asarray(group)
    delays = [
        _distances(observer - surface.places, stream)[1] / stream.sound / dt for observer in observers
    ]  # in samples
    # The stencil reaches _STENCIL/2 - 1 samples before the sample that precedes a retarded time, and as far behind.
    nearest = [int(np.floor(delay.min())) for delay in delays]
    if still is None:
        firsts = [int(np.ceil(max(delay.max() for delay in delays))) + _STENCIL // 2] * len(delays)
        heard = len(time) + min(nearest) - _STENCIL // 2 - firsts[0]
    else:
        firsts = [still + near for near in nearest]
        heard = len(time) - _STENCIL // 2 - still
    if heard <= 1:
        raise too_short_error()
    found = np.zeros((group.max() + 1, len(observers), heard))
    step = max(1, _HELD // (32 * len(time)))
    for start in range(0, len(surface.areas), step):
        some = slice(start, start + step)
        sources = compute_sources(surface, flow, some, stream, len(time))
        for m, observer in enumerate(observers):
            ways = _distances(observer - surface.places[some], stream)
            _add(found[:, m], sources, group[some], ways, firsts[m], dt, stream)
    return time[0] + np.add.outer(firsts, np.arange(heard)) * dt, found / (4 * np.pi)


def check_step(time: np.ndarray, stream: Stream) -> float:
    """Return the time between samples, in units of L / c_ref (length scale over sound speed). `time` (n,): the times of
    the samples. Raises HiresxError for samples at unequal intervals and for a `stream` that is not subsonic."""
    if not abs(stream.mach) < 1:
        raise HiresxError(f"a stream of Mach number {stream.mach:g} has no such far field", "it must be below 1")
    dt = float(time[-1] - time[0]) / (len(time) - 1)
    if np.abs(np.diff(time) - dt).max() > 1e-6 * dt:
        raise HiresxError("the surface was sampled at unequal distances in time", "sample it with every_time")
    return dt


def too_short_error() -> HiresxError:
    """Return the error, without raising it, that the samples cover less time than sound needs to cross the surface."""
    return HiresxError("the surface was sampled for less time than sound takes across it", "sample it for longer")


def compute_sources(surface: Surface, flow: Flow, some: slice, stream: Stream, samples: int) -> np.ndarray:
    """Return the source terms Q, L1, L2, L3 of the equation of Ffowcs Williams and Hawkings times the area, an array
    (m, 4, times), at the m points of the `surface` that the slice `some` selects. `flow`: a function that returns rho
    (times, points), velocity (times, points, 3) and pressure (times, points) at a slice of points. `stream`: the
    uniform flow outside the surface. `samples`: number of times. The terms are computed for a few points at a time, so
    that the transposed arrays fit in the cache."""
    numbers = range(len(surface.areas))[some]
    made = np.empty((len(numbers), 4, samples))
    wind = _wind(stream)
    for start in range(0, len(numbers), _TURNED):
        few = slice(numbers[start], min(numbers[start] + _TURNED, numbers[-1] + 1))
        here = made[start : start + _TURNED]
        rho, velocity, pressure = flow(few)
        columns = (rho, pressure, *np.moveaxis(velocity, -1, 0))
        rho, pressure, u, v, w = (np.array(c.T, dtype=float, order="C") for c in columns)  # each (places, times)
        normal, area = surface.normals[few], surface.areas[few, None]
        through = rho * area * sum(c * normal[:, n, None] for n, c in enumerate((u, v, w)))
        here[:, 0] = through - area * (stream.density * (normal @ wind))[:, None]
        excess = area * (pressure - stream.pressure)
        for n, c in enumerate((u, v, w)):
            here[:, n + 1] = excess * normal[:, n, None] + through * (c - wind[n])
    return made


def _wind(stream: Stream) -> np.ndarray:
    return stream.mach * stream.sound * np.array([1.0, 0.0, 0.0])


def _add(
    found: np.ndarray, sources: np.ndarray, group: np.ndarray, ways: tuple[np.ndarray, ...], first: int, dt: float,
    stream: Stream,
) -> None:  # fmt: skip
    """Add the pressure at one observer due to `sources` (n, 4, time), from the sample `first` on, to `found` (groups,
    time).

    Sources with equal delays in whole samples are summed, by a product of matrices, before they are shifted.
    """
    star, radius, grad_star, grad = ways
    delay = radius / stream.sound / dt
    # Factors of the time derivatives of Q, L1, L2, L3, and factors of their values.
    of_rates = np.stack([1 / star - stream.mach * grad[:, 0] / star, *(grad.T / (stream.sound * star))])
    of_values = np.stack([-_wind(stream)[0] * grad_star[:, 0] / star**2, *(grad_star.T / star**2)])
    whole = np.ceil(delay).astype(int)
    weights, rates = _interpolation(whole - delay)
    factors = (rates[:, None] / dt * of_rates + weights[:, None] * of_values).transpose(0, 2, 1)  # (stencil, n, 4)
    order = np.lexsort((whole, group))
    cuts = np.flatnonzero((np.diff(whole[order]) != 0) | (np.diff(group[order]) != 0)) + 1
    samples, heard = sources.shape[2], found.shape[1]
    for chosen in np.split(order, cuts):
        summed = factors[:, chosen].reshape(_STENCIL, -1) @ sources[chosen].reshape(-1, samples)
        begin = first - whole[chosen[0]] - _STENCIL // 2 + 1
        for n in range(_STENCIL):
            found[group[chosen[0]]] += summed[n, begin + n : begin + n + heard]


def samples_before(surface: Surface, observers: np.ndarray, stream: Stream, dt: float) -> int:
    """Return how many samples at rest the caller must put before the first sample of a surface. Sound from the farthest
    point of the `surface` takes longer to an observer than sound from the nearest point. The added samples cover this
    difference of travel times for all `observers` (m, 3), and the interpolation in time. `stream`: the uniform flow
    outside the surface. `dt`: the time between samples, in units of L / c_ref."""
    ways = [_distances(observer - surface.places, stream)[1] for observer in np.asarray(observers, float)]
    return int(np.ceil(max(float(np.ptp(way)) for way in ways) / stream.sound / dt)) + _STENCIL // 2 + 2


def inside(surface: Surface, observers: np.ndarray) -> np.ndarray:
    """Return the fraction (m,) of the full solid angle (of the full angle in plane flow) that the surface covers as
    seen from each of the m `observers` (m, 3). It is 1 for an observer inside a closed surface and 0 outside (Gauss's
    theorem)."""
    found = np.empty(len(observers))
    power, whole = (2, 2 * np.pi) if surface.plane else (3, 4 * np.pi)
    for m, observer in enumerate(np.asarray(observers, float)):
        d = surface.places - observer
        distances = np.maximum(np.linalg.norm(d, axis=1), np.finfo(float).tiny ** 0.25)
        found[m] = np.sum(np.einsum("ni,ni->n", d, surface.normals) * surface.areas / distances**power) / whole
    return found


def _interpolation(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (stencil, n) of the value and of the derivative at the fraction `part` (n,) of the interval
    from a sample to the next."""
    nodes = np.arange(_STENCIL) - (_STENCIL // 2 - 1)
    powers = np.arange(_STENCIL)
    inverse = np.linalg.inv(np.vander(nodes.astype(float), increasing=True))  # coefficients from values
    value = part[:, None] ** powers
    rate = np.where(powers > 0, powers * part[:, None] ** np.maximum(powers - 1, 0), 0.0)
    return (value @ inverse).T, (rate @ inverse).T


def _distances(d: np.ndarray, stream: Stream) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return R*, R (n,) and their gradients (n, 3) with respect to the observer, who is `d` (n, 3) away."""
    b2 = 1 - stream.mach**2
    stretched = d * np.array([1.0, b2, b2])
    star = np.sqrt(np.einsum("ni,ni->n", d, stretched))
    grad_star = stretched / star[:, None]
    grad = (grad_star - np.array([stream.mach, 0.0, 0.0])) / b2
    return star, (star - stream.mach * d[:, 0]) / b2, grad_star, grad
