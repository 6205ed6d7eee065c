"""Far field of a permeable line at rest in a uniform stream, in two dimensions: Ffowcs Williams and Hawkings.

The equation and the sources Q and L are those of `hiresx.post.fwh`. In the plane a pulse is followed by an infinite
wake, so the integral is computed for each frequency (Lockard, J. Sound Vib. 229 (2000) 897): for parts proportional to
exp(i w t),

    p'(x) = int (i w + U d/dx1) G Q dl - int dG/dx_i L_i dl,
    G = -i / (4 b) exp(i M K d1) H0(K R*),   K = w / (c b^2),   R* = sqrt(d1^2 + b^2 d2^2),   b^2 = 1 - M^2,

with d = x - y from a point of the line to the observer and H0 Hankel's function of the second kind, of waves that go
outwards. Derivatives follow from dH0 = -H1.

The samples are a section of a longer signal, and truncating them would produce sound. Therefore the signal of each
point is extrapolated before and after them by linear prediction (Burg's method, Kay & Marple, Proc. IEEE 69 (1981)
1380), and faded out."""

import numpy as np

from hiresx.post.fwh import Flow, Stream, Surface, check_step, compute_sources, too_short_error
from hiresx.results import needs

# Length of the extrapolation on either side, as a multiple of the length of the samples, and order of the prediction.
_PREDICTED, _ORDER = 0.25, 16
# Number of samples beside an end that the extrapolation behind it may still affect.
_TOUCHED = 8
# Number of complex values (frequencies times places) in memory at a time.
_HELD = 1 << 21


def pressure_by_group(
    surface: Surface,
    time: np.ndarray,
    flow: Flow,
    observers: np.ndarray,
    stream: Stream,
    group: np.ndarray | None = None,
    still: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (times, p'): the times (m, k) at which m observers in plane flow receive sound, and the sound pressure p'
    (groups, m, k), separated by groups of points of a line, in the scales of the case. The sum over the groups is the
    total pressure. `surface`: the line, as n points. `time` (times,): equally spaced times of the samples. `flow`: a
    function that returns rho (times, points), velocity (times, points, 3) and pressure (times, points) at a slice of
    the points. `observers` (m, 3): coordinates, in units of the length scale L. `stream`: the uniform flow outside the
    line. `group` (n,): number of the group of each point, from 0; by default there is one group. If `still` is true,
    the flow on the line before the first sample is assumed to be that of the first sample, and each observer has
    another time window, which begins with its first sound. If it is false, the mean in time is subtracted at each
    point. Raises HiresxError for a stream that is not subsonic, for samples at unequal intervals, and for too few
    samples. Source: Lockard, J. Sound Vib. 229 (2000) 897."""
    dt = check_step(time, stream)
    samples, observers = len(time), np.asarray(observers, float)
    group = np.zeros(len(surface.areas), dtype=int) if group is None else np.asarray(group)
    near, far = (np.array([f(_delays(surface, one, stream)) for one in observers]) / dt for f in (np.min, np.max))
    lead = int(_PREDICTED * samples) + _TOUCHED
    before = 0 if still else lead
    start = np.floor(near).astype(int)
    if still:
        firsts, heard = start, samples - _TOUCHED
    else:
        firsts = np.full(len(observers), int(np.ceil(far.max())) + _TOUCHED)
        heard = samples - _TOUCHED + int(start.min()) - int(firsts[0])
    if heard <= 1:
        raise too_short_error()
    # The period of the transform is four times as long as the signal, so that the wake of the period before is nearly
    # constant.
    length = needs.scipy("fft").next_fast_len(
        4 * (before + samples + lead + int(np.ceil((far - near).max()))), real=True
    )
    omega = 2 * np.pi * np.fft.rfftfreq(length, dt)
    parts = np.zeros((group.max() + 1, len(observers), omega.size), dtype=complex)
    step = max(1, _HELD // (4 * omega.size))
    for begin in range(0, len(surface.areas), step):
        some = slice(begin, begin + step)
        sources = compute_sources(surface, flow, some, stream, samples)[:, :3]
        sources -= sources[..., :1] if still else sources.mean(axis=-1, keepdims=True)
        started = [_extrapolate(sources[..., ::-1], before)[..., ::-1]] if before else []
        sources = np.concatenate([*started, sources, _extrapolate(sources, lead)], axis=-1)
        spectra = np.fft.rfft(sources, length, axis=-1)
        belongs = (group[some] == np.arange(len(parts))[:, None]).astype(float)
        for m, observer in enumerate(observers):
            shift = omega * ((start[m] + before) * dt)  # so that the first sound of the observer comes first
            parts[:, m] += belongs @ _amplitudes_at(observer - surface.places[some], spectra, omega, shift, stream)
    signals = np.fft.irfft(parts, length, axis=-1)
    # Before the first extrapolated sample arrives there is silence, which lies at the end of the period.
    quiet = length - before - _TOUCHED
    signals -= signals[..., quiet : quiet + 1]
    found = np.stack([signals[:, m, begin : begin + heard] for m, begin in enumerate(firsts - start)], axis=1)
    return time[0] + np.add.outer(firsts, np.arange(heard)) * dt, found


def _amplitudes_at(
    d: np.ndarray, spectra: np.ndarray, omega: np.ndarray, shift: np.ndarray, stream: Stream
) -> np.ndarray:
    """Return the amplitudes (n, frequency) that an observer, `d` (n, 3) away, receives of Q, L1, L2 in `spectra` (n, 3,
    frequency), with the phase `shift` (frequency,) added. The amplitude at the frequency 0, which is not sound, is
    zero."""
    special = needs.scipy("special")
    b2, found = 1 - stream.mach**2, np.zeros((len(d), omega.size), dtype=complex)
    along, star, slope = _distances(d, stream)
    wavenumber = omega[1:] / (stream.sound * b2)
    phase = wavenumber * star[:, None]
    zeroth = special.j0(phase) - 1j * special.y0(phase)
    first = wavenumber * (special.j1(phase) - 1j * special.y1(phase))
    x1 = 1j * stream.mach * wavenumber * zeroth - (along / star)[:, None] * first
    x2 = -slope[:, None] * first
    q, l1, l2 = (spectra[:, n, 1:] for n in range(3))
    turn = np.exp(1j * (stream.mach * wavenumber * along[:, None] + shift[1:]))
    heard = (1j * omega[1:] * zeroth + stream.mach * stream.sound * x1) * q - x1 * l1 - x2 * l2
    found[:, 1:] = -0.25j / np.sqrt(b2) * turn * heard
    return found


def _extrapolate(values: np.ndarray, number: int) -> np.ndarray:
    """Return `values` (..., time), extrapolated by `number` samples. Each sample is predicted from those before it, and
    the amplitude decreases smoothly to zero."""
    factors = _predictor(values, min(_ORDER, values.shape[-1] // 3))
    order = factors.shape[-1]
    made = np.concatenate([values[..., -order:], np.zeros((*values.shape[:-1], number))], axis=-1)
    for n in range(order, order + number):
        made[..., n] = np.sum(factors * made[..., n - order : n], axis=-1)
    return made[..., order:] * 0.5 * (1 + np.cos(np.pi * np.arange(1, number + 1) / (number + 1)))


def _predictor(values: np.ndarray, order: int) -> np.ndarray:
    """Return the factors (..., order) by which a value is predicted from the `order` values before it in `values` (...,
    time), oldest first. Burg's method is used, which gives a stable prediction."""
    ahead, behind = values[..., 1:], values[..., :-1]
    found = np.zeros((*values.shape[:-1], order))
    for m in range(order):
        power = np.sum(ahead**2 + behind**2, axis=-1)
        reflected = (2 * np.sum(ahead * behind, axis=-1) / np.where(power > 0, power, 1.0))[..., None]
        if m:
            found[..., :m] -= reflected * found[..., m - 1 :: -1]
        found[..., m] = reflected[..., 0]
        ahead, behind = (ahead - reflected * behind)[..., 1:], (behind - reflected * ahead)[..., :-1]
    return found[..., ::-1]


def _delays(surface: Surface, observer: np.ndarray, stream: Stream) -> np.ndarray:
    """Return the travel times of sound from the places to an observer."""
    along, star = _distances(observer - surface.places, stream)[:2]
    return (star - stream.mach * along) / ((1 - stream.mach**2) * stream.sound)


def _distances(d: np.ndarray, stream: Stream) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return d1, R* and the slope of R* along d2, (n,)."""
    b2 = 1 - stream.mach**2
    star = np.sqrt(d[:, 0] ** 2 + b2 * d[:, 1] ** 2)
    return d[:, 0], star, b2 * d[:, 1] / star
