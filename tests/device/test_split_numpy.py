"""The split form of the inviscid terms, the hybrid one and their sensors, one kernel at a time, against NumPy written
from the equations."""

from itertools import product

import numpy as np
import pytest
from kernels_alone import (
    ALL,
    GAMMA,
    ORIGIN,
    PLACE,
    POINTS,
    SHAPE,
    SIZE,
    STRIDES,
    conservative,
    geometry,
    inside,
    program,
    random,
    states,
)  # fmt: skip
from numpy_weights import EPSILON, PARTS, SPAN, smoothness

from hiresx.device import wrappers

HEADERS = (
    "half_point.h", "inviscid.h", "scalar.h", "split.h", "hybrid.h", "fused.h", "split_points.h", "sensed.h",
    "calibration.h", "terms/shock_sensor.h",
)  # fmt: skip
WEIGHTS = (3 / 4, -3 / 20, 1 / 60)
PLANES = 5  # of a chunk
# Of the sensor `teno`, on nodes whose states have nothing in common, so that its values are spread from 0 to 1.
SENSED_CUTOFF = 1e-8


def two_point(s: np.ndarray, m: np.ndarray, t: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Flux (5, ...) between primitive states s and t (5, ...) with the areas m and n (3, ...)."""
    area, rho, velocity, p = (m + n) / 2, (s[0] + t[0]) / 2, (s[1:4] + t[1:4]) / 2, (s[4] + t[4]) / 2
    e, f = s[4] / (GAMMA - 1) / s[0], t[4] / (GAMMA - 1) / t[0]
    mass = rho * (area * velocity).sum(0)
    work = (area * (s[1:4] * t[4] + t[1:4] * s[4])).sum(0) / 2
    energy = mass * ((s[1:4] * t[1:4]).sum(0) / 2 + 2 / (1 / e + 1 / f)) + work
    return np.stack([mass, *(mass * velocity + p * area), energy])


def split_flux(s: np.ndarray, m: np.ndarray, axis: int) -> np.ndarray:
    """At the half points behind the nodes -1..n-1 along the last but `axis`, of nodes with three ghosts."""
    n = s.shape[axis] - 6

    def at(array: np.ndarray, first: int) -> np.ndarray:
        return np.take(array, np.arange(3 + first, 3 + first + n + 1), axis)

    total = np.zeros(())
    for k, weight in enumerate(WEIGHTS, start=1):
        for behind in range(k):
            l, r = -1 - behind, -1 - behind + k
            total = total + 2 * weight * two_point(at(s, l), at(m, l), at(s, r), at(m, r))
    return total


def half_points(d: int) -> tuple[tuple[int, ...], dict[str, int], tuple[slice, ...]]:
    """Extent and place of the half points -1..n-1 along d; where they lie in a padded array."""
    extent = tuple(n + (e == d) for e, n in enumerate(SIZE))
    cut = tuple(slice(3 - (e == d), 3 + SIZE[e]) for e in (2, 1, 0))
    return extent, PLACE | {"o": ORIGIN - STRIDES[d], "sd": STRIDES[d], "sv": POINTS}, (slice(None), *cut)


def of_lines(array: np.ndarray, d: int) -> np.ndarray:
    """The nodes of the block and the ghosts along d alone."""
    cuts = [slice(3, -3)] * 3
    cuts[2 - d] = slice(None)
    return array[(slice(None), *cuts)]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles of which the block holds many, the last ones in part."""
    monkeypatch.setattr(wrappers, "TILE", (5, 4))


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_split_fluxes_and_rates(backend):
    """In every direction and in all at once, of states and metrics that have nothing in common from node to node."""
    s, q = states()
    m, _ = geometry()
    kernels = program(backend, HEADERS, inviscid="split")
    total = np.zeros((5, *SIZE[::-1]))
    for d in range(3):
        extent, place, there = half_points(d)
        flux, rates, area = np.zeros((5, *SHAPE)), np.full((5, *SHAPE), 7.0), m[3 * d : 3 * d + 3]
        kernels.launch("split_numerical_flux", extent, **place, q=q, m=area, flux=flux)
        wanted = split_flux(of_lines(s, d), of_lines(area, d), 3 - d)
        np.testing.assert_allclose(flux[there], wanted, rtol=0, atol=2e-14 * np.abs(wanted).max())
        if backend == "cpu":
            continue
        change = -np.diff(wanted, axis=3 - d)
        total += change
        for first in (1, 0):
            march(kernels, [d], q, m, rates, first)
            np.testing.assert_allclose(inside(rates), change * (2 - first), rtol=0, atol=1e-13 * np.abs(wanted).max())
    if backend == "emulated":
        march(kernels, [0, 1, 2], q, m, rates, 1)
        np.testing.assert_allclose(inside(rates), total, rtol=0, atol=1e-13 * np.abs(total).max())


def march(kernels, directions: list[int], q, m, rates: np.ndarray, first: int, **sensor) -> None:
    """The rates of the split form in some directions, in chunks of planes, and the sensor."""
    sensor = {"threshold": 1.0, "smooth": 0, "floor": 0.0, "counts": None} | sensor
    if "sensor" in sensor:
        sensor |= {"tiles": np.ones(SHAPE, np.int8), "counts": np.ones(3, np.int32)}
    steps = {f"d{name}": STRIDES[d] * (d in directions) for d, name in enumerate("ijk")}
    ni, nj, n = SIZE
    kernels.launch(
        "split_march", (ni, nj, -(-n // PLANES)), **PLACE, **steps, n=n, chunk=PLANES, sv=POINTS, q=q, m=m, r=rates,
        first=first, **sensor,
    )  # fmt: skip
    if "sensor" in sensor:
        wanted = tiles(sensor["sensor"])
        assert np.array_equal(sensor["tiles"][wanted >= 0], wanted[wanted >= 0]) and not sensor["counts"].any()


def tiles(sensor: np.ndarray) -> np.ndarray:
    """The field `sensed_tiles` of a sensor, -1 where it has no mark, in chunks of PLANES planes."""
    (ti, tj), (ni, nj, nk) = wrappers.TILE, SIZE
    found, seen = np.full(SHAPE, -1, np.int8), inside(sensor) > 0
    for begin in range(0, nk, PLANES):
        for k in range(begin, min(begin + PLANES, nk), 8):
            for j, i in product(range(0, nj, tj), range(0, ni, ti)):
                own = seen[k : min(k + 8, begin + PLANES), j : j + tj, i : i + ti]
                found[3 + k, 3 + j, 3 + i] = own.any()
    return found


def sweep(kernels, d: int, q: np.ndarray, area: np.ndarray, sensor: np.ndarray, rates: np.ndarray) -> None:
    """What the hybrid flux has over the split one in the direction `d`, in chunks of 4 nodes."""
    (ni, nj, nk), (_, sj, sk) = SIZE, STRIDES
    fields = {"chunk": 4, "sv": POINTS, "q": q, "m": area, "sensor": sensor, "viscous_flux": None, "r": rates}
    fields |= {"first": 0, "walls": 0, "sums": None}
    if d == 0:
        chunks = -(-((nj - 1) * sj + ni) // 4)
        kernels.launch("sweep_along", (chunks, 1, nk), **PLACE, n=ni, rows=nj, **fields)
        return
    n, other, s2 = (nj, nk, sk) if d == 1 else (nk, nj, sj)
    kernels.launch("sweep_across", (ni, other, -(-n // 4)), o=ORIGIN, s2=s2, sd=STRIDES[d], n=n, **fields)


def sweep_listed(
    kernels,
    d: int,
    q,
    area,
    sensor: np.ndarray,
    rates: np.ndarray,
    marks=None,
    march=PLANES,
    warps=3,
    threads=4,
    listed=True,
) -> list[tuple[int, int]]:
    """The same in the segments that a sensor lists. They are returned in order: their first nodes and lengths. `marks`:
    the field `sensed_tiles`, in chunks of `march` planes. `warps`, `threads`: those that share the work. `listed`:
    false if there are too many segments, so that all lines are swept."""
    (n0, n1, _), n2 = SIZE, sensor.shape[0] - 6
    marks = np.maximum(tiles(sensor), 0) if marks is None else marks
    room, counts = n0 * n1 * n2, np.zeros(3, np.int32)
    (ti, tj), (other, s2) = wrappers.TILE, ((n2, STRIDES[2]) if d == 1 else (n1, STRIDES[1]))
    share = -(-3 * -(-n0 // ti) * -(-n1 // tj) * -(-n2 // 16) // warps)
    segments = np.full(6 * room, -1, np.int32)
    kernels.launch(
        "list_segments", (warps, 1, 1), share=share, directions=1 << d, corner=ORIGIN, sj=STRIDES[1], sk=STRIDES[2],
        n0=n0, n1=n1, n2=n2, spread=1, march=march, sensor=sensor, tiles=marks, counts=counts, segments=segments,
        start_0=0, start_1=room, start_2=2 * room,
    )  # fmt: skip
    assert not counts[[e for e in range(3) if e != d]].any()
    own = segments[2 * d * room : 2 * (d + 1) * room]
    place = {"corner": ORIGIN, "n": (n0, n1, n2)[d], "limit": counts[d] if listed else 0}
    fields = {"sv": q[0].size, "q": q, "m": area, "sensor": sensor, "r": rates, "count": counts[d:]}
    kernels.launch(
        "sweep_segments", (threads, 1, 1), threads=threads, s2=s2, sd=STRIDES[d], width=n0, chunk=4,
        lines=n0 * other if d else 0, segments=own, **place, **fields,
    )  # fmt: skip
    if d == 0:
        kernels.launch(
            "sweep_all_along", (warps, 1, 1), warps=warps, sj=STRIDES[1], sk=STRIDES[2], rows=n1, planes=n2, chunk=40,
            **place, **fields,
        )  # fmt: skip
    assert (segments >= 0).sum() == 2 * counts[d] and (own[: 2 * counts[d]] >= 0).all()
    return sorted((int(first), int(length)) for first, length in own[: 2 * counts[d]].reshape(-1, 2))


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("interpolation", ["modified", pytest.param("original", marks=pytest.mark.slow)])
def test_hybrid_fluxes_and_rates(backend, interpolation):
    """The flux lies between the split one and that of interpolated states, as the kernels of AFWENO have it, by the
    share of the sensor; where that is 0 it is the split one to the last bit."""
    q = conservative(0.2 * states()[0] + np.array([0.8, 0.3, 0.2, -0.1, 0.9])[:, None, None, None])
    m, _ = geometry()
    rng = random(5)
    sensor = np.where(rng.uniform(size=SHAPE) > 0.97, rng.uniform(0.1, 1.0, SHAPE), 0.0)
    kernels = program(backend, HEADERS, inviscid="hybrid", sensor="jump", interpolation=interpolation)
    bare = program(backend, HEADERS, inviscid="split", interpolation=interpolation)
    for d in range(3):
        extent, place, there = half_points(d)
        area = m[3 * d : 3 * d + 3]
        flux, split, minus, plus, f = np.zeros((5, 5, *SHAPE))
        pressure, rates = np.zeros(SHAPE), np.zeros((5, *SHAPE))
        kernels.launch("split_numerical_flux", extent, **place, q=q, m=area, sensor=sensor, flux=flux)
        bare.launch("split_numerical_flux", extent, **place, q=q, m=area, flux=split)
        last = int(interpolation == "modified")
        longer = tuple(n + (e == d) * last for e, n in enumerate(extent))
        kernels.launch("interpolate", longer, **place, q=q, m=area, minus=minus, plus=plus)
        kernels.launch("physical_flux", SHAPE[::-1], **ALL, sv=POINTS, q=q, m=area, f=f, pressure=pressure)
        kernels.launch(
            "numerical_flux", extent, **place, q=q, m=area, f=f, pressure=pressure, minus=minus, plus=plus
        )  # fmt: skip
        along = of_lines(sensor[None], d)[0]
        n = along.shape[2 - d] - 5
        share = np.max([np.take(along, np.arange(a, a + n), 2 - d) for a in range(6)], axis=0)
        assert 0.05 < (share == 0).mean() < 0.95
        wanted = split[there] + share * (minus[there] - split[there])
        largest = np.abs(wanted).max()
        np.testing.assert_allclose(flux[there], wanted, rtol=0, atol=1e-13 * largest)
        assert np.array_equal(flux[there][:, share == 0], split[there][:, share == 0])
        if backend == "cpu":
            continue
        march(kernels, [d], q, m, rates, 1, jacobian=np.ones(SHAPE), sensor=np.zeros(SHAPE))
        listed = rates.copy()
        sweep(kernels, d, q, area, sensor, rates)
        np.testing.assert_allclose(inside(rates), -np.diff(wanted, axis=3 - d), rtol=0, atol=2e-13 * largest)
        sweep_listed(kernels, d, q, area, sensor, listed)
        np.testing.assert_allclose(listed, rates, rtol=0, atol=2e-14 * largest)


def test_marks_of_a_single_node():
    """The mark of a tile is at the first of its planes, also if the sensor is 0 in this plane."""
    q = np.empty((5, *SHAPE))
    q[:] = conservative(np.array([1.0, 0.2, 0.1, -0.1, 0.8])[:, None, None, None])
    q[0, 3 + 2, 3 + 3, 3 + 3] *= 1.5
    (m, jacobian), kernels = geometry(), program("emulated", HEADERS, inviscid="hybrid", sensor="jump")
    sensor, given = np.zeros(SHAPE), {"threshold": 0.02, "smooth": 0}
    march(kernels, [0, 1, 2], q, m, np.zeros((5, *SHAPE)), 1, jacobian=jacobian, sensor=sensor, **given)
    assert sorted({int(k) for k in np.nonzero(sensor)[0]}) == [4, 5, 6]


@pytest.mark.parametrize("d", range(3))
def test_a_mark_anywhere_on_a_line(d):
    """One node or ghost whose sensor is above 0 changes the rates of the nodes that its flux reaches, whichever tiles
    these and the node belong to. These nodes are in segments that do not overlap."""
    q = conservative(0.2 * states()[0] + np.array([0.8, 0.3, 0.2, -0.1, 0.9])[:, None, None, None])
    area, kernels = geometry()[0][3 * d : 3 * d + 3], program("emulated", HEADERS, inviscid="hybrid", sensor="jump")
    n, across = SIZE[d], [4, 4, 4]
    for s in range(-3, n + 3):
        at = [3 + place for place in across]
        at[d] = 3 + s
        sensor, rates = np.zeros(SHAPE), np.zeros((5, *SHAPE))
        sensor[tuple(at[::-1])] = 0.5
        segments = sweep_listed(kernels, d, q, area, sensor, rates)
        line = [slice(None), *(slice(3 + place, 4 + place) for place in across[::-1])]
        line[3 - d] = slice(3, -3)
        changed = np.flatnonzero(rates[tuple(line)].reshape(5, -1).any(0))
        wanted = list(range(max(s - 3, 0), min(s + 4, n)))
        assert changed.tolist() == wanted
        first = ORIGIN + sum(4 * stride for e, stride in enumerate(STRIDES) if e != d)
        listed = [node + e * STRIDES[d] for node, length in segments for e in range(length)]
        assert listed == [first + e * STRIDES[d] for e in wanted]


def test_a_line_across_the_ends_of_chunks_of_the_marching_kernel():
    """Chunks of nine planes have a mark for eight planes and one for the last, and the next chunk begins with another
    one. A node or ghost anywhere on a line along k, whose sensor is above 0, changes the rates of all nodes that its
    flux reaches, whichever of these marks and chunks they belong to, and whichever segments."""
    q = conservative(0.2 * states()[0] + np.array([0.8, 0.3, 0.2, -0.1, 0.9])[:, None, None, None])
    q, area = (np.concatenate([a, a], axis=1) for a in (q, geometry()[0][6:]))
    kernels = program("emulated", HEADERS, inviscid="hybrid", sensor="jump")
    n, planes, own = q.shape[1] - 6, 9, (4, 5)
    begins = sorted({*range(0, n, planes), *range(8, n, planes)})
    assert len(begins) == 5
    for s in range(-3, n + 3):
        sensor, rates = np.zeros((2, *q.shape[1:])), np.zeros_like(q)
        sensor[0, 3 + s, 3 + own[1], 3 + own[0]] = 0.5
        marks = np.zeros(q.shape[1:], np.int8)
        if 0 <= s < n:
            ti, tj = wrappers.TILE
            first = max(begin for begin in begins if begin <= s)
            marks[3 + first, 3 + own[1] // tj * tj, 3 + own[0] // ti * ti] = 1
        sweep_listed(kernels, 2, q, area, sensor[0], rates, marks, planes)
        changed = np.flatnonzero(rates[:, 3:-3, 3 + own[1], 3 + own[0]].any(0))
        assert changed.tolist() == list(range(max(s - 3, 0), min(s + 4, n)))


@pytest.mark.parametrize("d", range(3))
def test_no_result_depends_on_who_lists_and_takes_segments(d):
    """One warp and one thread give the same rates to the last bit as more of them than there are boxes and segments."""
    q = conservative(0.2 * states()[0] + np.array([0.8, 0.3, 0.2, -0.1, 0.9])[:, None, None, None])
    area, kernels = geometry()[0][3 * d : 3 * d + 3], program("emulated", HEADERS, inviscid="hybrid", sensor="jump")
    sensor = np.where(random(7).uniform(size=SHAPE) > 0.97, 0.5, 0.0)
    rates, segments, every = np.zeros((3, 5, *SHAPE)), [], np.zeros((5, *SHAPE))
    for r, warps, threads in zip(rates, (1, 7, 500), (1, 5, 4000), strict=True):
        segments.append(sweep_listed(kernels, d, q, area, sensor, r, warps=warps, threads=threads))
    assert len(segments[0]) > 20 and segments[0] == segments[1] == segments[2]
    assert np.array_equal(rates[0], rates[1]) and np.array_equal(rates[0], rates[2])
    sweep_listed(kernels, d, q, area, sensor, every, listed=False)
    assert np.abs(every - rates[0]).max() < 1e-14 * np.abs(every).max()


def second_difference(a: np.ndarray, axis: int) -> np.ndarray:
    before, at, after = (np.roll(a, s, axis) for s in (1, 0, -1))
    return np.abs(before - 2 * at + after) / (before + 2 * at + after)


def share_of_the_roughest(values: np.ndarray) -> np.ndarray:
    """Of five nodes' values (node, ...): the least share of a part in the sum of TENO's gamma_k."""
    betas = np.stack([smoothness(part, values[[SPAN[5].index(s) for s in part]]) for part in PARTS[5]])
    gamma = (1 + np.abs(betas[0] - betas[2]) / (EPSILON + betas)) ** 6
    return (gamma / gamma.sum(0)).min(0)


def cut_off(s: np.ndarray, m: np.ndarray) -> np.ndarray:
    """The value of the sensor `teno` at every node of the block."""
    shares, sound = [], np.sqrt(GAMMA * s[4] / s[0])
    for d, area in enumerate(m.reshape(3, 3, *SHAPE)):
        nodes = [np.roll(s, -k, 3 - d) for k in SPAN[5]]
        n = area / np.sqrt((area**2).sum(0))
        fields = (
            [t[0] / s[0] for t in nodes],
            [t[4] / s[4] for t in nodes],
            [(n * t[1:4]).sum(0) / sound for t in nodes],
        )
        shares += [share_of_the_roughest(np.array(values)) for values in fields]
    return inside(SENSED_CUTOFF / (SENSED_CUTOFF + np.min(shares, axis=0)))


def sensed(name: str, s: np.ndarray, m: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
    """The sensor of every node of the block."""
    if name == "teno":
        return cut_off(s, m)
    jumps = [[second_difference(a, 2 - d) for d in range(3)] for a in (s[4], s[0])]
    if name in ("jump", "jameson"):
        return inside(np.max(jumps if name == "jump" else jumps[0], axis=(0, 1) if name == "jump" else 0))
    areas = m.reshape(3, 3, *SHAPE)
    rates = [[(np.roll(s[1 + a], -1, 2 - d) - np.roll(s[1 + a], 1, 2 - d)) / 2 for a in range(3)] for d in range(3)]
    g = np.einsum("dakji,dckji->ackji", np.array(rates), areas) * jacobian
    divergence = g[0, 0] + g[1, 1] + g[2, 2]
    curl2 = (g[2, 1] - g[1, 2]) ** 2 + (g[0, 2] - g[2, 0]) ** 2 + (g[1, 0] - g[0, 1]) ** 2
    crossing = np.sqrt(GAMMA * s[4] / s[0] * (areas**2).sum(1).max(0)) * jacobian
    if name == "ducros":
        square = np.minimum(divergence, 0) ** 2
        return inside(square / (square + curl2 + (0.01 * crossing) ** 2))
    quick = (1 - np.tanh(2.5 + 10 * divergence / crossing)) / 2
    return inside(quick * divergence**2 / (divergence**2 + curl2 + (1e-6 * crossing) ** 2))


def test_a_sensor_of_divergence_and_curl():
    """Ducros' alone, compiled without the fluxes that read it."""
    (s, q), (m, jacobian) = states(), geometry()
    found, strides = np.zeros(SHAPE), dict(zip(("di", "dj", "dk"), STRIDES, strict=True))
    headers = ("half_point.h", "split.h", "sensed.h", "terms/shock_sensor.h")
    kernels = program("cpu", headers, inviscid="hybrid", sensor="ducros")
    value = sensed("ducros", s, m, jacobian)
    threshold = float(np.median(value[value > 0]))
    kernels.launch(
        "shock_sensor", SIZE, **PLACE, **strides, sv=POINTS, q=q, m=m, jacobian=jacobian, sensor=found[None],
        threshold=threshold, smooth=1, floor=0.0,
    )  # fmt: skip
    share = np.clip(value / threshold - 0.5, 0, 1)
    compare(found, share * share * (3 - 2 * share))


def test_the_divergence_in_the_sensor_of_jumps():
    """Where pressure and density are uniform, the sensor is a tenth of the divergence over the rate at which sound
    crosses a cell. Its test without a division leaves out no node that exceeds half of the threshold."""
    (s, _), (m, jacobian) = states(), geometry()
    s[0], s[4] = 1.2, 0.9
    areas = m.reshape(3, 3, *SHAPE)
    opening = sum((areas[d] * (np.roll(s[1:4], -1, 3 - d) - np.roll(s[1:4], 1, 3 - d))).sum(0) for d in range(3))
    value = inside(0.05 * np.abs(opening) / np.sqrt(GAMMA * 0.9 / 1.2 * (areas**2).sum(1).max(0)))
    threshold, found = float(np.median(value)), np.zeros(SHAPE)
    kernels = program("emulated", HEADERS, inviscid="hybrid", sensor="jump")
    kernels.launch(
        "shock_sensor", SIZE, **PLACE, **dict(zip(("di", "dj", "dk"), STRIDES, strict=True)), sv=POINTS,
        q=conservative(s), m=m, jacobian=jacobian, sensor=found[None], threshold=threshold, smooth=1, floor=0.0,
    )  # fmt: skip
    t = np.clip(value / threshold - 0.5, 0, 1)
    compare(found, t * t * (3 - 2 * t))


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize(
    "name",
    ["jump", "teno", pytest.param("jameson", marks=pytest.mark.slow), pytest.param("ducros", marks=pytest.mark.slow),
     pytest.param("bhagatwala_lele", marks=pytest.mark.slow)],
)  # fmt: skip
def test_sensors(backend, name):
    """Their values, blended smoothly and sharply, and the floor."""
    s, q = states()
    m, jacobian = geometry()
    kernels = program(backend, HEADERS, inviscid="hybrid", sensor=name, cutoff=SENSED_CUTOFF)
    value = sensed(name, s, m, jacobian)
    threshold, found = float(np.median(value[value > 0])), np.zeros(SHAPE)
    strides = dict(zip(("di", "dj", "dk"), STRIDES, strict=True))
    place = PLACE | strides | {"sv": POINTS, "q": q, "m": m, "jacobian": jacobian, "sensor": found[None]}
    t = np.clip(value / threshold - 0.5, 0, 1)
    for smooth, wanted in ((1, t * t * (3 - 2 * t)), (0, (value >= threshold).astype(float))):
        given = {"threshold": threshold, "smooth": smooth, "floor": 0.05}
        kernels.launch("shock_sensor", SIZE, **place, **given)
        compare(found, np.maximum(wanted, 0.05))
        if backend == "emulated":
            beside = np.full(SHAPE, np.nan)
            march(kernels, [0, 1, 2], q, m, np.zeros((5, *SHAPE)), 1, jacobian=jacobian, sensor=beside, **given)
            compare(beside, np.maximum(wanted, 0.05))
            # in two dimensions, as the kernel of the sensor alone
            kernels.launch("shock_sensor", SIZE, **(place | {"dk": 0}), **given)
            march(kernels, [0, 1], q, m, np.zeros((5, *SHAPE)), 1, jacobian=jacobian, sensor=beside, **given)
            np.testing.assert_allclose(inside(beside), inside(found), rtol=0, atol=1e-12)


def compare(found: np.ndarray, wanted: np.ndarray) -> None:
    """But for what lies on the threshold itself."""
    assert np.quantile(np.abs(inside(found) - wanted), 0.99) < 1e-12
