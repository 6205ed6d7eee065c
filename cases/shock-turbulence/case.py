"""Isotropic turbulence that is carried through a shock at x = 0: a sum of solenoidal Fourier modes, constant in the
frame of the incoming flow."""

import numpy as np

from hiresx.case.wave_sums import Waves
from hiresx.exact import normal_shock


def _modes(peak, largest, seed, speed, amplitude):
    """Return wave vectors (3, modes) and complex amplitudes (3, modes) of u, v, w, of which the real part is taken.
    There is one vector of each pair k and -k, with kx = 1/2, 3/2, ..., so that no wave is steady in the inflow, and
    whole ky and kz. The energy of a wave vector is E(k) / (4 pi k^2), with a random phase. Half of it is in the plane
    of k and the x axis, and half normal to it, with a phase difference of a quarter of a period (after Rogallo, NASA TM
    81315, 1981). E ~ k^4 exp(-2 (k / peak)^2) up to `largest`. The mean variance of u, v and w is (speed amplitude)^2.
    """
    n = int(largest)
    whole = np.arange(-n, n + 1)
    kx, ky, kz = (k.ravel() for k in np.meshgrid(np.arange(n + 1) + 0.5, whole, whole, indexing="ij"))
    size = np.sqrt(kx**2 + ky**2 + kz**2)
    k = np.stack([kx, ky, kz])[:, size <= largest]
    size = size[size <= largest]
    rng = np.random.default_rng(seed)
    phase = np.exp(2j * np.pi * rng.random(size.size))
    other = phase * 1j * rng.choice([-1, 1], size.size)
    across = np.hypot(k[1], k[2])
    # If both components in the plane normal to the mean flow are 0, any direction in this plane is valid.
    safe = np.where(across > 0, across, 1.0)
    outside = np.where(across > 0, np.stack([0 * safe, -k[2] / safe, k[1] / safe]), np.array([[0.0], [1.0], [0.0]]))
    inside = np.cross(outside, k / size, axis=0)
    u = inside * phase + outside * other
    u = u * np.sqrt(size**2 * np.exp(-2 * (size / peak) ** 2))
    return k, u * speed * amplitude * np.sqrt(6 / np.sum(abs(u) ** 2))


def _velocity(x, y, z, k, u):
    """Return the complex velocities of each kx of the modes at the time 0: kx (M,), and u, v, w (M, places)."""
    along = np.unique(k[0])
    places = np.stack([np.ravel(a) for a in np.broadcast_arrays(x, y, z)]).astype(float)
    found = np.zeros((along.size, 3, places.shape[1]), complex)
    for m, kx in enumerate(along):
        of = k[0] == kx
        # exp(i k x) is computed for y and for z, which have few different values.
        found[m] = _plane(places[1], places[2], k[1:, of], u[:, of]) * np.exp(1j * kx * places[0])
    return along, found


def _plane(y, z, k, u):
    """Return the sum over modes of u exp(i (ky y + kz z)) at places. It is computed from the few different values of ky
    and kz."""
    (ky, j), (kz, m) = (np.unique(row, return_inverse=True) for row in k)
    table = np.zeros((3, ky.size, kz.size), complex)
    table[:, j, m] = u
    across, depth = np.exp(1j * np.outer(ky, y)), np.exp(1j * np.outer(kz, z))
    return np.einsum("djm,jp,mp->dp", table, across, depth, optimize=True)


def behind(x, y, z, *, mach, gamma):
    """Return rho, u, v, w and p downstream of the normal shock at Mach number `mach`, in the scales of the case. They
    do not depend on x, y, z."""
    shock = normal_shock(mach, gamma)
    return shock.density, mach / shock.density, 0.0, 0.0, shock.pressure / gamma


def initial(x, y, z, *, mach, amplitude, peak, largest, seed, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case: a
    normal shock at x = 0, and frozen turbulence upstream of it. `amplitude`: root mean square of u, v and w, divided by
    the upstream velocity. `peak`: wave number of the largest energy. `largest`: the largest wave number. `seed`: seed
    of the random numbers."""
    modes = _modes(peak, largest, seed, mach, amplitude)
    u, v, w = _velocity(x, y, z, *modes)[1].sum(axis=0).real.reshape(3, *np.shape(x)) * (x < 0)
    rho2, u2, _, _, p2 = behind(x, y, z, mach=mach, gamma=gamma)
    rho, speed, p = (np.where(x < 0, a, b) for a, b in ((1.0, rho2), (mach, u2), (1 / gamma, p2)))
    return rho, speed + u, v, w, p


def inflow(x, y, z, t, *, mach, amplitude, peak, largest, seed, gamma):
    """Return rho, u, v, w and p at the inflow at the places x, y, z (arrays of one shape), as waves in time
    (`hiresx.Waves`): frozen turbulence that moves along x with the mean velocity. The arguments are those of `initial`.
    """
    kx, velocity = _velocity(x, y, z, *_modes(peak, largest, seed, mach, amplitude))
    # frozen: exp(i kx (x - mach t))
    frequency, shape = kx * mach / (2 * np.pi), (kx.size, *np.shape(x))
    u, v, w = (
        Waves(mean, frequency, part.real.reshape(shape), part.imag.reshape(shape))
        for mean, part in zip((mach, 0.0, 0.0), np.moveaxis(velocity, 1, 0), strict=True)
    )
    return 1.0, u, v, w, 1 / gamma
