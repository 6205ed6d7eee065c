"""The bow shock of a sphere by shock fitting. It shares nothing with the solver but the equations.

The region between the sphere and the shock is mapped on a rectangle, the shock being its edge, and the axisymmetric
Euler equations for (ln p, u_r, u_t, entropy) are marched in time by Chebyshev collocation until the shock rests, as in
Hussaini, Kopriva, Salas & Zang, AIAA J. 23 (1985) 234. Behind the shock hold the jump conditions, which with the one
characteristic that reaches it from behind give its acceleration; at the sphere the normal velocity vanishes; the last
ray lies in supersonic flow and needs no condition.

    python docs/make/blunt_body.py 2 12        (Mach number, nodes; about two minutes)
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

GAMMA = 1.4
# The last ray, in degrees from the upstream axis: the flow beyond is supersonic from the body on.
LAST = 80.0


@dataclass
class Layer:
    """What is known at a time: ln p, velocities in speeds of sound of the free stream and entropy (nodes from the body
    to the shock, rays), the shock's radius and its velocity along its normal (rays)."""

    p: np.ndarray
    radial: np.ndarray
    polar: np.ndarray
    entropy: np.ndarray
    radius: np.ndarray
    velocity: np.ndarray

    def combined(self, *terms: tuple[float, "Layer"]) -> "Layer":
        return Layer(*(sum(f * getattr(other, name) for f, other in terms) for name in vars(self)))


def chebyshev(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Differentiation matrix and nodes cos(pi k / n) (Trefethen, Spectral Methods in MATLAB, chapter 6)."""
    x = np.cos(np.pi * np.arange(n + 1) / n)
    c = np.r_[2.0, np.ones(n - 1), 2.0] * (-1.0) ** np.arange(n + 1)
    d = np.outer(c, 1 / c) / (x[:, None] - x + np.eye(n + 1))
    return d - np.diag(d.sum(axis=1)), x


def _filter(n: int) -> np.ndarray:
    """Takes the highest Chebyshev modes down, exp(-(k/n)^16/2)."""
    modes = np.cos(np.outer(np.pi * np.arange(n + 1) / n, np.arange(n + 1)))
    damping = np.diag(np.exp(-0.5 * (np.arange(n + 1) / n) ** 16))
    return np.asarray(modes @ damping @ np.linalg.inv(modes))


class BluntBody:
    """The flow at Mach number `mach` with `n` + 1 nodes from body to shock on `n` + 1 rays."""

    def __init__(self, mach: float, n: int):
        self.mach = mach
        d, x = chebyshev(n)
        self.share, self.across = (1 - x)[:, None] / 2, -2 * d
        # In the angle all fields are even or odd: half of the nodes of twice the interval, of which none is at 0.
        d, y = chebyshev(2 * n + 1)
        d, own = d / np.radians(LAST), np.arange(n + 1)[::-1]
        mirrored = 2 * n + 1 - own
        self.angle = np.radians(LAST) * y[own]
        self.even, self.odd = (d[np.ix_(own, own)] + s * d[np.ix_(own, mirrored)] for s in (1, -1))
        smooth = _filter(2 * n + 1)
        self.smooth = _filter(n)
        self.smooth_even, self.smooth_odd = (
            smooth[np.ix_(own, own)] + s * smooth[np.ix_(own, mirrored)] for s in (1, -1)
        )
        radius = 1 + 0.143 * np.exp(3.24 / mach**2) * (1 + 1.2 * self.angle**2)
        velocity = np.zeros(n + 1)
        p, radial, polar, entropy, _ = self.behind(radius, velocity)
        body = p[0] + np.log(1.1 * np.maximum(np.cos(self.angle) ** 2, 0.08))
        s = self.share
        self.layer = Layer(
            s * p + (1 - s) * body, s * radial, (0.9 + 0.1 * s) * polar, s * entropy + (1 - s) * entropy[0], radius,
            velocity,
        )  # fmt: skip

    def behind(self, radius: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, ...]:
        """ln p, velocities, entropy behind the shock, and its outward normal (radial, polar)."""
        slope = self.even @ radius / radius
        normal = np.array([np.ones_like(slope), -slope]) / np.sqrt(1 + slope**2)
        stream = self.mach * np.array([-np.cos(self.angle), np.sin(self.angle)])
        into = velocity - (stream * normal).sum(axis=0)
        p = (1 + 2 * GAMMA / (GAMMA + 1) * (into**2 - 1)) / GAMMA
        density = (GAMMA + 1) * into**2 / ((GAMMA - 1) * into**2 + 2)
        radial, polar = stream + into * (1 - 1 / density) * normal
        return np.log(p), radial, polar, np.log(p / density**GAMMA), normal

    def sound(self, layer: Layer) -> np.ndarray:
        return np.sqrt(GAMMA * np.exp(layer.p * (GAMMA - 1) / GAMMA + layer.entropy / GAMMA))

    def rate(self, now: Layer) -> Layer:
        depth, c = now.radius - 1, self.sound(now)
        r = 1 + self.share * depth
        normal = self.behind(now.radius, now.velocity)[4]
        outward = now.velocity / normal[0]
        slope = self.even @ now.radius

        def along(f: np.ndarray, even: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            """d/dr, d/dt at constant r, and what the moving nodes see."""
            inwards = self.across @ f / depth
            turned = f @ (self.even if even else self.odd).T - self.share * slope * inwards
            return inwards, turned, self.share * outward * inwards

        (p_r, p_t, p_s), (s_r, s_t, s_s) = along(now.p, True), along(now.entropy, True)
        (u_r, u_t, u_s), (v_r, v_t, v_s) = along(now.radial, True), along(now.polar, False)
        u, v = now.radial, now.polar / r
        divergence = u_r + 2 * u / r + v_t / r + v / np.tan(self.angle)
        p = p_s - u * p_r - v * p_t - GAMMA * divergence
        radial = u_s - u * u_r - v * u_t + v * now.polar - c**2 / GAMMA * p_r
        polar = v_s - u * v_r - v * v_t - u * v - c**2 / GAMMA * p_t / r
        entropy = s_s - u * s_r - v * s_t
        # at the body the incoming acoustic field keeps the normal velocity zero
        p[0] -= GAMMA / c[0] * radial[0]
        radial[0] = 0
        # at the shock the outgoing one is that of the inside
        arriving = p[-1] + GAMMA / c[-1] * (radial[-1] * normal[0] + polar[-1] * normal[1])
        small = 1e-6

        def field(radius: np.ndarray, velocity: np.ndarray) -> np.ndarray:
            p, radial, polar, _, _ = self.behind(radius, velocity)
            return np.asarray(p + GAMMA / c[-1] * (radial * normal[0] + polar * normal[1]))

        here = field(now.radius, now.velocity)
        by_velocity = (field(now.radius, now.velocity + small) - here) / small
        moved = (field(now.radius + small * outward, now.velocity) - here) / small
        return Layer(p, radial, polar, entropy, outward, (arriving - moved) / by_velocity)

    def fitted(self, layer: Layer) -> Layer:
        layer.p[-1], layer.radial[-1], layer.polar[-1], layer.entropy[-1], _ = self.behind(layer.radius, layer.velocity)
        layer.radial[0] = 0
        return layer

    def march(self, steps: int, cfl: float = 0.25) -> Iterator[float]:
        """SSP-RK3; yields the largest rate of the shock's velocity every 500 steps."""
        for step in range(steps):
            now, c = self.layer, self.sound(self.layer)
            thin = (self.share[1, 0] - self.share[0, 0]) * (now.radius - 1).min()
            narrow = self.angle[-1] - self.angle[-2]
            dt = cfl / ((c + abs(now.radial)).max() / thin + (c + abs(now.polar)).max() / narrow)
            k = self.rate(now)
            one = self.fitted(now.combined((1, now), (dt, k)))
            two = self.fitted(now.combined((0.75, now), (0.25, one), (0.25 * dt, self.rate(one))))
            new = self.fitted(now.combined((1 / 3, now), (2 / 3, two), (2 / 3 * dt, self.rate(two))))
            if step % 5 == 0:
                a, e, o = self.smooth, self.smooth_even.T, self.smooth_odd.T
                new = Layer(
                    a @ new.p @ e, a @ new.radial @ e, a @ new.polar @ o, a @ new.entropy @ e, new.radius @ e,
                    new.velocity @ e,
                )  # fmt: skip
            self.layer = new
            if step % 500 == 499:
                yield float(np.abs(k.velocity).max())

    def on_axis(self, values: np.ndarray) -> float:
        """An even function of the angle at 0."""
        return float(np.polynomial.polynomial.polyfit(self.angle**2, values, len(values) - 1)[0])

    @property
    def standoff(self) -> float:
        return self.on_axis(self.layer.radius) - 1

    @property
    def stagnation_pressure(self) -> float:
        """Over the pressure of the free stream."""
        return GAMMA * float(np.exp(self.on_axis(self.layer.p[0])))


def solve(mach: float, n: int, tolerance: float = 1e-4, steps: int = 40_000) -> BluntBody:
    """The flow when the rate of the shock's velocity, in squares of the speed of sound over the radius, has fallen
    below `tolerance`."""
    flow = BluntBody(mach, n)
    for rate in flow.march(steps):
        if rate < tolerance:
            break
    return flow


if __name__ == "__main__":
    found = solve(float(sys.argv[1]), int(sys.argv[2]))
    print(f"stand-off {found.standoff:.5f} R, stagnation pressure {found.stagnation_pressure:.4f}")
