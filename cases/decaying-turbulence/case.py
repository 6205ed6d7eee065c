"""Isotropic turbulence with random phases and the spectrum that Comte-Bellot and Corrsin measured at their first
station."""

import functools

import numpy as np

from hiresx.exact import grid_turbulence

# L in cm.
LENGTH = 9.0


def _half_space(largest):
    """Return whole wave vectors (3, modes), one of each pair k and -k, up to the length `largest`, and for each the
    shell of width 1 around a whole wave number in which it lies. The shortest come first, so that a vector has the same
    random numbers for any number of vectors."""
    n = int(largest)
    whole = np.arange(-n, n + 1)
    k = np.stack([part.ravel() for part in np.meshgrid(whole, whole, np.arange(n + 1), indexing="ij")[::-1]])
    square = np.sum(k * k, axis=0)
    shell = np.rint(np.sqrt(square)).astype(int)
    ahead = (k[0] > 0) | ((k[0] == 0) & ((k[1] > 0) | ((k[1] == 0) & (k[2] > 0))))
    kept = ahead & (shell <= n)
    order = np.lexsort((*k[:, kept], square[kept]))
    return k[:, kept][:, order], shell[kept][order]


def _velocities(k, shell, energy, seed):
    """Complex amplitudes (3, modes) of u, v and w across k, of which the real part is taken (after Rogallo, NASA TM
    81315, 1981). The sum over the modes of a shell n has the kinetic energy energy[n - 1]."""
    size = np.sqrt(np.sum(k * k, axis=0))
    across = np.hypot(k[0], k[1])
    # For waves along z both components are 0; any direction normal to z is then valid.
    safe = np.where(across > 0, across, 1.0)
    one = np.where(across > 0, np.stack([k[1] / safe, -k[0] / safe, 0 * safe]), np.array([[1.0], [0.0], [0.0]]))
    other = np.cross(k / size, one, axis=0)
    first, second, share = 2 * np.pi * np.random.default_rng(seed).random((size.size, 3)).T
    u = one * np.exp(1j * first) * np.cos(share) + other * np.exp(1j * second) * np.sin(share)
    held = np.bincount(shell, np.sum(abs(u) ** 2, axis=0) / 4, minlength=energy.size + 1)[1:]
    return u * np.sqrt(energy / held)[shell - 1]


def _pressure(k, u):
    """Return the complex amplitudes of the pressure over the density with which the divergence of incompressible flow
    stays 0."""
    n = int(k.max())
    nodes = 3 * n + 2  # so that no product appears as a wave up to n
    cube = np.zeros((3, nodes, nodes, nodes // 2 + 1), complex)
    cube[:, k[2], k[1], k[0]] = u / 2
    still = k[0] == 0  # the transform needs both waves of a pair among these
    cube[:, -k[2, still], -k[1, still], 0] = np.conj(u[:, still]) / 2
    velocity = np.fft.irfftn(cube, s=(nodes,) * 3, axes=(1, 2, 3), norm="forward")
    total = 0.0
    for a, b, times in ((0, 0, 1), (1, 1, 1), (2, 2, 1), (0, 1, 2), (1, 2, 2), (2, 0, 2)):
        product = np.fft.rfftn(velocity[a] * velocity[b], norm="forward")[k[2], k[1], k[0]]
        total = total - times * k[a] * k[b] * product
    return 2 * total / np.sum(k * k, axis=0)


@functools.lru_cache(maxsize=1)
def _modes(mach, largest, seed):
    """Wave vectors (3, modes), and complex amplitudes (4, modes) of u, v, w and the pressure about its mean."""
    k, shell = _half_space(largest)
    sound_speed = grid_turbulence.FLUCTUATION[0] / mach  # cm/s
    energy = grid_turbulence.spectrum(np.arange(1, int(largest) + 1) / LENGTH) / LENGTH / sound_speed**2
    velocity = _velocities(k, shell, energy, int(seed))
    return k, np.concatenate([velocity, _pressure(k, velocity)[None]])


def _at(x, y, z, k, amplitudes):
    """The real part of the sum over modes of each of the amplitudes (parts, modes) times exp(i k x), at places that lie
    on grid lines along x, y and z: (parts, ...)."""
    n = int(k.max())
    found = np.zeros((len(amplitudes), 2 * n + 1, 2 * n + 1, n + 1), complex)
    found[:, k[2] + n, k[1] + n, k[0]] = amplitudes
    places = []
    for d, axis in enumerate((x, y, z)):
        values, index = np.unique(axis, return_inverse=True)
        places.append(np.reshape(index, np.shape(axis)))
        waves = np.arange(0 if d == 0 else -n, n + 1)
        found = np.tensordot(found, np.exp(1j * np.outer(waves, values)), ([3 - d], [0]))
    return found.real[:, places[0], places[1], places[2]]


def initial(x, y, z, *, mach, largest, seed, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case.
    The velocity has the measured spectrum and random phases. The temperature is uniform (T = 1). `mach`: root mean
    square of u, over the sound speed. `largest`: the largest wave number. `seed`: seed of the random numbers."""
    u, v, w, p = _at(x, y, z, *_modes(mach, largest, seed))
    p = 1 / gamma + p
    return gamma * p, u, v, w, p
