"""The kernel of a non-reflecting outflow beside exact flows, and that of patched faces beside its formula."""

import numpy as np
import pytest
from kernels_alone import (
    GAMMA,
    HALO,
    ORIGIN,
    POINTS,
    SHAPE,
    SIZE,
    STRIDES,
    conservative,
    primitive,
    program,
    random,
    turn,
)

from hiresx.device.arguments import address

KERNELS = ("half_point.h", "metrics.h", "interpolated.h", "boundary/outflow.h", "boundary/patched.h")


@pytest.mark.parametrize("face", range(6), ids=["imin", "imax", "jmin", "jmax", "kmin", "kmax"])
def test_what_the_stream_carries_leaves_as_it_is(backend, face):
    """A strong vortex that crosses a face at rest in the frame of its stream has the rates q_t = -(V.grad) q, in which
    the relation changes nothing, whatever its strength and wherever its core is."""
    h, side, d = 0.06, 1 if face % 2 else -1, face // 2
    axes = turn(7)  # columns: along i, j, k
    other = (d + 1) % 3
    normal, along, third = side * axes[:, d], axes[:, other], axes[:, (d + 2) % 3]
    at = np.stack(np.indices(SHAPE)[::-1]) - HALO  # i, j, k
    place = h * (at - (np.array(SIZE) // 2)[:, None, None, None])
    strength, speed, drift = 0.6, 0.5, 0.2  # Mach numbers, of the stream along the normal and along the face
    stream = speed * normal + drift * along + 0.1 * third

    def flow(time):
        a, b = side * place[d] + 0.3 - speed * time, place[other] - 0.2 - drift * time
        f = strength * np.exp(0.5 * (1 - a * a - b * b))
        heat = 1 - 0.5 * (GAMMA - 1) * f * f
        velocity = [s + f * (a * e - b * n) for s, n, e in zip(stream, normal, along, strict=True)]
        return conservative(np.stack([heat ** (1 / (GAMMA - 1)), *velocity, heat ** (GAMMA / (GAMMA - 1)) / GAMMA]))

    q = flow(0.0)
    step = 1e-3
    rate = (8 * (flow(step) - flow(-step)) - flow(2 * step) + flow(-2 * step)) / (12 * step)
    jacobian = np.full(SHAPE, h**-3)
    m = np.ascontiguousarray(np.broadcast_to((h * h * axes.T).reshape(9, 1, 1, 1), (9, *SHAPE)))
    r = rate / jacobian
    on_face = [slice(HALO, -HALO)] * 3
    on_face[2 - d] = slice(HALO + SIZE[d] - 1, HALO + SIZE[d]) if side > 0 else slice(HALO, HALO + 1)
    nodes = np.arange(POINTS).reshape(SHAPE)[tuple(on_face)].ravel().astype(np.int32)
    faces = np.full((3, len(nodes)), -1, np.int32)
    faces[0] = face
    given = np.array([[2.0, 0.0, 0.0, *stream, *stream, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]])  # neither relaxed nor held
    before = r.copy()
    program(backend, KERNELS).launch(
        "outflow_rates", (len(nodes), 1, 1), n1=len(nodes), nodes=nodes, faces=faces, given=given, sv=POINTS,
        di=STRIDES[0], dj=STRIDES[1], dk=STRIDES[2], q=q, m=m, jacobian=jacobian, r=r,
    )  # fmt: skip
    change = (r - before) * jacobian
    assert abs(change).max() < 1e-4 * abs(rate[(slice(None), *on_face)]).max()
    assert abs(change).max() > 0  # the damping of sixth differences


@pytest.mark.parametrize("held", range(3), ids=["eddies", "pressure", "mass flux"])
@pytest.mark.parametrize(("speed", "mean"), [(0.5, 0.5), (-0.12, 0.0), (0.1, -0.11), (-0.02, -0.3), (-0.3, 0.2)])
def test_what_a_face_of_even_flow_is_drawn_to(backend, held, speed, mean):
    """The wave that enters a flow without gradients, p_t = -rho c u_n,t: half of (c - u_n) times the relaxation to the
    pressure or mass flux that is given, and 0.35 of the firmness to the mean pressure of the face. Where the gas or the
    mean flow enters faster than Mach 0.1, fully from 0.14 on, no eddies leave, and a face for eddies holds no pressure
    even. Gas that enters there, itself fully from Mach 0.04 on, is drawn to the mean velocity along the face of what
    comes in, by 1.4 of the firmness. `speed`, `mean`: outward Mach numbers of the gas and of the mean flow."""
    rho, p, far, relaxation, firmness, mean_pressure, mass_flux = 0.9, 0.8, 0.75, 0.4, 3.0, 0.87, 0.3
    d, h, axes, coming, sound = 1, 0.06, turn(9), np.array([0.3, 0.1, -0.2]), np.sqrt(GAMMA * p / rho)
    normal, along = -axes[:, d], axes[:, 0]
    velocity, stream = sound * (speed * normal + 0.2 * along), sound * (mean * normal + 0.1 * along)
    flow = np.array([rho, *velocity, p]).reshape(5, 1, 1, 1) * np.ones(SHAPE)
    given = np.array([[far, relaxation, firmness, *stream, *stream, mean_pressure, *coming, mass_flux, held]])
    jacobian, r = np.full(SHAPE, h**-3), np.zeros((5, *SHAPE))
    m = np.ascontiguousarray(np.broadcast_to((h * h * axes.T).reshape(9, 1, 1, 1), (9, *SHAPE)))
    program(backend, KERNELS).launch(
        "outflow_rates", (1, 1, 1), n1=1, nodes=np.array([ORIGIN], np.int32),
        faces=np.array([[-1], [2 * d], [-1]], np.int32), given=given, sv=POINTS, di=STRIDES[0], dj=STRIDES[1],
        dk=STRIDES[2], q=conservative(flow), m=m, jacobian=jacobian, r=r,
    )  # fmt: skip
    entered = np.clip(-25 * (min(speed, mean) + 0.1), 0, 1)
    lacking, level = (sound * (mass_flux - far), 1.0) if held == 2 else (far - p, (1 - entered) * (held == 0))
    wave = 0.5 * sound * (1 - speed) * (relaxation * lacking + 0.35 * firmness * level * (mean_pressure - p))
    drawn = 1.4 * firmness * sound * min(entered, np.clip(-25 * speed, 0, 1))
    shear = drawn * (np.eye(3) - np.outer(normal, normal)) @ (coming - velocity)
    wanted = [wave / sound**2, *(shear - wave / (rho * sound) * normal), wave]
    np.testing.assert_allclose(rates(flow, r * jacobian).reshape(5, -1)[:, ORIGIN], wanted, rtol=1e-11, atol=1e-13)


def rates(flow: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Of the primitive variables (5, ...), from those of the conservative ones."""
    rho, velocity = flow[0], flow[1:4]
    of_velocity = (rate[1:4] - velocity * rate[0]) / rho
    energy = rate[4] - 0.5 * np.sum(velocity**2, axis=0) * rate[0] - rho * np.sum(velocity * of_velocity, axis=0)
    return np.stack([rate[0], *of_velocity, (GAMMA - 1) * energy])


def test_ghosts_of_a_patched_face(backend):
    """low + (high - low)/(1 + (s/.1)^4), s the larger relative difference of density and pressure; low where the
    sixth-order state is no gas."""
    n = 64
    rng = random(41)
    low = primitive(rng, n)
    high = low * (1 + rng.normal(size=(5, n)) * np.geomspace(1e-3, 0.6, n))
    high[0, :5] *= -1  # no gas
    high[4, 5:10] *= 0.05
    rows = np.concatenate([conservative(high), conservative(low)])
    shares = rng.uniform(0.2, 0.8, n)  # of two parts that are added
    buffer = np.concatenate([rows * shares, rows * (1 - shares)], axis=1).T.copy()
    order = rng.permutation(2 * n).astype(np.int32)  # where a part lies in the buffer
    placed = np.empty_like(buffer)
    placed[order] = buffer
    to = rng.permutation(POINTS)[:n].astype(np.int32)
    q = np.zeros((2, 5, *SHAPE))  # of two parts, of which the second one has the ghosts from 20 on
    program(backend, KERNELS).launch(
        "patched_ghosts", (n, 1, 1), to=to, begin=2 * np.arange(n + 1, dtype=np.int32),
        rows=np.stack([order[:n], order[n:]], axis=1).ravel().astype(np.int32), buffer=placed, parts=2,
        part=np.array([0, address(q[0]), 0, POINTS, 20, address(q[1]), 0, POINTS]),
    )  # fmt: skip
    s = np.maximum(abs(high[0] - low[0]) / low[0], abs(high[4] - low[4]) / low[4])
    gas = (high[0] > 0.1 * low[0]) & (high[4] > 0.1 * low[4])
    share = np.where(gas, 1 / (1 + (s / 0.1) ** 4), 0.0)
    assert ((share > 0.05) & (share < 0.95)).sum() > 10 and (share == 0).sum() >= 10
    wanted = rows[5:] + share * (rows[:5] - rows[5:])
    found = np.where(np.arange(n) < 20, *q.reshape(2, 5, -1)[:, :, to])
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)
    assert np.count_nonzero(q) == 5 * n


@pytest.mark.parametrize("leaves", [True, False])
def test_means_of_a_face(backend, leaves):
    """Weighted means of both patches of a face; of the first three the value at no divergence of the line through what
    was summed, with a ridge of .05; where nothing leaves the plain means."""
    rows, threads = 4, 3
    sums = random(43).uniform(0.5, 1.5, (rows, 19, threads))
    sums[:, 3] *= leaves
    face_of_row, face_of_patch = np.array([0, 2, 2, 0], np.int32), np.array([2, 0], np.int32)
    given = np.full((2, 15), 7.0)
    program(backend, KERNELS).launch(
        "outflow_means", (11, 2, 1), rows=rows, threads=threads, face_of_row=face_of_row, face_of_patch=face_of_patch,
        sums=sums, given=given,
    )  # fmt: skip
    assert (given[:, :3] == 7).all() and (given[:, 14] == 7).all()
    for means, face in zip(given[:, 3:14], face_of_patch, strict=True):
        total = sums[face_of_row == face].sum(axis=(0, 2))
        velocity, plain, pressure, coming = total[:3], total[4:7], total[8], total[9:12]
        if leaves:
            d, dd, du = total[13] / total[3], total[14] / total[3], total[15:18] / total[3]
            covariance = du - velocity / total[3] * d
            wanted = velocity / total[3] - covariance / (max(0.0, dd - d * d) + 0.05 * dd) * d
        else:
            wanted = plain / total[7]
        mass = total[18] / total[7]
        wanted = [*wanted, *(plain / total[7]), pressure / total[7], *(coming / total[12]), mass]
        np.testing.assert_allclose(means, wanted, rtol=1e-12)
