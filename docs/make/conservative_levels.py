"""A study in NumPy of levels that conserve: the figures of docs/refinement.md, "Levels that conserve".

    python docs/make/conservative_levels.py

One patch of half the spacing lies in a periodic grid; every second of its nodes lies on a node of the grid. Fluxes are
upwind and of fifth order, with linear weights, or WENO in the shock tube; steps are those of SSP-RK3. A strong blast
has fluxes of first order and linear ghosts, which keep density and pressure positive. Modes: "none", as HiResX does by
default; "flux", where the flux of the coarser level at the end of the patch is that of the finer one; "defect", where
the rate of the integral with Gregory's weights is taken back at the nodes at the end of the patch, at all alike;
"rates": likewise, at each node in proportion to the norm of its rates; "own", as HiResX does with
`refine.conservative`: each variable in proportion to its own rates, and no more than density and pressure allow.
"""

from collections.abc import Callable

import numpy as np

GAMMA = 1.4
HALF = np.array([3, -25, 150, 150, -25, 3]) / 256  # halfway between the middle two of six nodes
LINEAR = np.array([0, 0, 1, 1, 0, 0]) / 2
CENTRAL = np.array([1, -8, 37, 37, -8, 1]) / 60
DAMPED = np.array([1, -5, 10, -10, 5, -1]) / 60
GREGORY = np.array([19087, 84199, 37738, 75242, 55031, 61343]) / 60480
MODES = ("none", "flux", "defect", "rates", "own")
LEAST = 0.25  # share of its volume with which a node counts at least that takes back a part, by "rates" and "own"
EVEN = 0.1  # by "rates" and "own", of an even distribution, added to the rates
RING = {"rates": 8, "own": 12}  # nodes at the end of the patch that take a part, others 8
MODES_OF_LINES = (*MODES, "local")
Field = np.ndarray
Physics = Callable[[Field], tuple[list[Field], float]]  # fluxes along x and y, and the fastest wave


def halfway(a: Field, weights: Field, axis: int) -> Field:
    """Weighted sums of the six nodes around the place behind each node of a periodic line."""
    return np.asarray(sum(w * np.roll(a, 2 - m, axis) for m, w in enumerate(weights)))


def finer(a: Field, axes: tuple[int, ...], weights: Field = HALF) -> Field:
    """Values at the nodes of half the spacing."""
    for axis in axes:
        a = np.moveaxis(a, axis, -1)
        made = np.empty((*a.shape[:-1], 2 * a.shape[-1]))
        made[..., ::2], made[..., 1::2] = a, halfway(a, weights, -1)
        a = np.moveaxis(made, -1, axis)
    return a


def weno(f: Field, axis: int) -> Field:
    """The flux behind each node from the nodes before it (Jiang and Shu, 1996)."""
    a, b, c, d, e = (np.roll(f, 2 - m, axis) for m in range(5))
    parts = (2 * a - 7 * b + 11 * c) / 6, (-b + 5 * c + 2 * d) / 6, (2 * c + 5 * d - e) / 6
    rough = [
        13 / 12 * (a - 2 * b + c) ** 2 + (a - 4 * b + 3 * c) ** 2 / 4,
        13 / 12 * (b - 2 * c + d) ** 2 + (b - d) ** 2 / 4,
        13 / 12 * (c - 2 * d + e) ** 2 + (3 * c - 4 * d + e) ** 2 / 4,
    ]
    alpha = [share / (1e-6 + r) ** 2 for share, r in zip((0.1, 0.6, 0.3), rough, strict=True)]
    return np.asarray(sum(w * p for w, p in zip(alpha, parts, strict=True)) / sum(alpha))


def advection(q: Field) -> tuple[list[Field], float]:
    return [1.0 * q, 0.5 * q], 1.0


def euler(q: Field) -> tuple[list[Field], float]:
    """Fluxes along x and y of (rho, rho u, rho v, e), and the fastest wave."""
    rho, u, v, e = q[0], q[1] / q[0], q[2] / q[0], q[3]
    p = (GAMMA - 1) * (e - 0.5 * rho * (u * u + v * v))
    x = np.stack([q[1], q[1] * u + p, q[1] * v, u * (e + p)])
    y = np.stack([q[2], q[2] * u, q[2] * v + p, v * (e + p)])
    return [x, y], float((np.hypot(u, v) + np.sqrt(GAMMA * p / rho)).max())


def relative_change(q: Field, d: Field) -> Field:
    """The changes of density, internal energy and velocity by d, in shares of rho, e and the root of e / rho."""
    velocity = q[1:3] / q[0]
    internal = q[3] - 0.5 * (velocity * q[1:3]).sum(axis=0)
    energy = d[3] - (velocity * (d[1:3] - 0.5 * velocity * d[0])).sum(axis=0)
    momentum = np.sqrt(((d[1:3] - velocity * d[0]) ** 2).sum(axis=0))
    return np.asarray(np.abs(d[0]) / q[0] + np.abs(energy) / internal + momentum / np.sqrt(q[0] * internal))


def own_shares(q: Field, rate: Field, lost: Field, mass: Field, dt: float) -> Field:
    """What each of the nodes (variables, nodes) takes of the rate `lost` of the integrals, by its own rates."""
    gas = len(q) > 1
    of, of_lost, even, which = np.abs(rate), np.abs(lost), np.ones_like(q[:1]), [0]
    if gas:
        internal = q[3] - 0.5 * (q[1] ** 2 + q[2] ** 2) / q[0]
        of, of_lost = (np.stack([np.abs(a[0]), np.hypot(a[1], a[2]), np.abs(a[3])]) for a in (rate, lost))
        even, which = np.stack([q[0], np.sqrt(q[0] * internal), internal]), [0, 1, 1, 2]
    evenly = even / (mass * even).sum(axis=1, keepdims=True)
    added = EVEN * of_lost[:, None]
    share = (of + added * evenly) / ((mass * of).sum(axis=1, keepdims=True) + added + 1e-30)
    part: Field = share[which] * lost[:, None]
    if not gas:
        return part
    moved = np.maximum(relative_change(q, dt * part), relative_change(q + dt * rate, dt * part))
    part *= np.minimum(1, 0.5 / np.maximum(moved, 0.5))
    return np.asarray(part + (lost - (mass * part).sum(axis=1))[:, None] * evenly[which])


class Level:
    """Areas and volumes of a level, from its periodic displacements and spacing, as differences of them in the
    conservative form: a uniform flow keeps to round-off."""

    def __init__(self, shifts: list[Field], spacing: float, axes: tuple[int, ...], scheme: str):
        self.axes, self.scheme = axes, scheme
        slope = [[self._slope(shift, axis) + spacing * (n == m) for m, axis in enumerate(axes)]
                 for n, shift in enumerate(shifts)]  # fmt: skip
        if len(axes) == 1:
            self.areas, self.volume = [[np.ones_like(shifts[0])]], slope[0][0]
        else:
            (xi, xj), (yi, yj) = slope
            self.areas, self.volume = [[yj, -xj], [-yi, xi]], xi * yj - xj * yi

    @staticmethod
    def _slope(a: Field, axis: int) -> Field:
        behind = halfway(a, CENTRAL, axis)
        return np.asarray(behind - np.roll(behind, 1, axis))

    def fluxes(self, q: Field, physics: Physics) -> list[Field]:
        """The flux behind each node, along each direction."""
        along, speed = physics(q)
        found = []
        for axis, areas in zip(self.axes, self.areas, strict=True):
            f = sum(area * g for area, g in zip(areas, along, strict=False))
            alpha = speed * float(np.sqrt(sum(np.max(area**2) for area in areas)))
            if self.scheme == "first":
                ahead = [np.roll(a, -1, axis) for a in (f, q)]
                found.append(0.5 * (f + ahead[0] - alpha * (ahead[1] - q)))
            elif self.scheme == "weno":
                right = np.flip(weno(np.flip(0.5 * (f - alpha * q), axis), axis), axis)
                found.append(weno(0.5 * (f + alpha * q), axis) + np.roll(right, -1, axis))
            else:
                found.append(halfway(np.asarray(f), CENTRAL, axis) + 0.5 * alpha * halfway(q, DAMPED, axis))
        return found

    def rate(self, fluxes: list[Field]) -> Field:
        of_axes = zip(fluxes, self.axes, strict=True)
        return np.asarray(-sum(f - np.roll(f, 1, axis) for f, axis in of_axes) / self.volume)


def line(n: int, first: int, last: int, kind: str) -> Field:
    """Weights of the nodes first ... last in an integral between both, on a periodic line of n nodes."""
    found = np.zeros(n)
    found[first : last + 1] = 1
    if kind == "gregory":
        found[first : first + 6], found[last - 5 : last + 1] = GREGORY, GREGORY[::-1]
    elif kind == "half":
        found[[first, last]] = 0.5
    return found


def product(along: Field, d: int) -> Field:
    return along[None] if d == 1 else along[:, None] * along[None]


class Levels:
    """A grid of n nodes a side, and a patch between the nodes `ends`, along all of d directions. `bent`: curved."""

    def __init__(self, n: int, d: int, mode: str, bent: float = 0.0, scheme: str = "linear"):
        self.d, self.mode, self.n = d, mode, n
        self.ghosts = LINEAR if scheme == "first" else HALF
        self.axes = (-1,) if d == 1 else (-1, -2)
        x = np.arange(n) / n
        wave = bent * product(np.sin(2 * np.pi * (x + 0.1)), d)
        shifts = [wave, -0.7 * wave][:d]
        self.coarse = Level(shifts, 1 / n, self.axes, scheme)
        self.fine = Level([finer(s, self.axes) for s in shifts], 0.5 / n, self.axes, scheme)
        a, b = self.ends = n // 4, 3 * n // 4
        inset = mode == "flux"  # the patch then ends halfway between two nodes of the grid
        own = line(2 * n, 2 * a + inset, 2 * b - inset, "ones")
        self.patch = product(own, d) > 0
        self.under = product(line(n, a + inset, b - inset, "ones"), d) > 0
        kind = "half" if inset else "gregory"
        self.fine_weights = product(line(2 * n, 2 * a + inset, 2 * b - inset, kind), d) * self.fine.volume
        removed = product(line(n, a + 1, b - 1, "ones") if inset else line(n, a, b, kind), d)
        self.coarse_weights = (1 - removed) * self.coarse.volume
        width = RING.get(mode, 8)
        inner = product(line(2 * n, 2 * a + width, 2 * b - width, "ones"), d) > 0
        self.ring = self.patch & ~inner
        self.counted = self.fine_weights.copy()
        self.coincident(self.counted)[...] += self.coarse_weights * self.under
        if mode in RING:
            self.ring &= self.counted > LEAST * self.fine.volume
        self.ring_under = self.under & self.coincident(self.ring)

    def coincident(self, fine: Field) -> Field:
        return fine[..., ::2] if self.d == 1 else fine[..., ::2, ::2]

    def together(self, coarse: Field, fine: Field) -> tuple[Field, Field]:
        """The states of both levels: under the patch that of the patch, around the patch interpolated."""
        coarse = np.where(self.under, self.coincident(fine), coarse)
        return coarse, np.where(self.patch, fine, finer(coarse, self.axes, self.ghosts))

    def integral(self, coarse: Field, fine: Field) -> Field:
        sums = (self.coarse_weights * coarse).reshape(len(coarse), -1).sum(1)
        return np.asarray(sums + (self.fine_weights * fine).reshape(len(fine), -1).sum(1))

    def rates(self, coarse: Field, fine: Field, physics: Physics, dt: float = 0.0) -> tuple[Field, Field]:
        of_coarse, of_fluxes = self.coarse.fluxes(coarse, physics), self.fine.fluxes(fine, physics)
        if self.mode == "flux":
            for axis, to, source in zip(self.axes, of_coarse, of_fluxes, strict=True):
                self._take_flux(axis, to, source)
        one, other = self.coarse.rate(of_coarse), self.fine.rate(of_fluxes)
        one = np.where(self.under, self.coincident(other), one)
        if self.mode == "defect":
            lost = self.integral(one, other)
            return self._take_back(one, other, lost, np.array(True), np.array(True))
        if self.mode == "rates":
            lost, share = self.integral(one, other), np.sqrt((other**2).sum(axis=0))
            mass = (self.coarse_weights * self.ring_under).sum() + (self.fine_weights * self.ring).sum()
            share += EVEN * np.sqrt((lost**2).sum()) / mass + 1e-30
            return self._take_back(one, other, lost, self.coincident(share), share)
        if self.mode == "own":
            lost, taken = self.integral(one, other), np.zeros_like(other)
            at, mass = self.ring.reshape(fine.shape[1:]), self.counted.reshape(fine.shape[1:])
            taken[:, at] = own_shares(fine[:, at], other[:, at], lost, mass[at], dt)
            return one - self.coincident(taken), other - taken
        if self.mode == "local":
            # The right half ends behind the middle node of the patch and behind the last node of the grid.
            right, of_fine = np.arange(self.n) > self.n // 2, np.arange(2 * self.n) > self.n
            lost = self.integral(one * right, other * of_fine) + of_coarse[0][:, -1] - of_fluxes[0][:, self.n]
            rest = self.integral(one, other) - lost
            one, other = self._take_back(one, other, lost, right, of_fine)
            return self._take_back(one, other, rest, ~right, ~of_fine)
        return one, other

    def _take_back(self, one: Field, other: Field, lost: Field, at: Field, at_fine: Field) -> tuple[Field, Field]:
        """Rates of both levels without the rate `lost` of the integral, which nodes at the end of the patch give, in
        proportion to `at` and `at_fine`."""
        under, ring = self.ring_under * at, self.ring * at_fine
        held = (self.coarse_weights * under).sum() + (self.fine_weights * ring).sum()
        back = (lost / held).reshape(-1, *(1,) * (one.ndim - 1))
        return one - back * under, other - back * ring

    def _take_flux(self, axis: int, to: Field, source: Field) -> None:
        a, b = self.ends
        to, source = np.moveaxis(to, axis, -1), np.moveaxis(source, axis, -1)
        for end in (a, b - 1):  # behind the node `end`, on the node 2 end + 1 of the patch
            mean = 0.5 * (source[..., 2 * end] + source[..., 2 * end + 1])
            if self.d == 1:
                to[..., end] = mean
                continue
            j = np.arange(a + 1, b)
            to[..., j, end] = 0.5 * mean[..., 2 * j - 1] + mean[..., 2 * j] + 0.5 * mean[..., 2 * j + 1]

    def run(self, coarse: Field, fine: Field, physics: Physics, end: float) -> tuple[Field, Field, float]:
        """States at the time `end`, and the largest change of an integral meanwhile."""
        coarse, fine = self.together(coarse, fine)
        before, time, drift = self.integral(coarse, fine), 0.0, 0.0
        while time < end - 1e-12:
            speed = physics(fine)[1]
            # Of smooth flow the errors are those of the space.
            smaller = (24 / self.n) ** (2 / 3) if self.fine.scheme == "linear" else 0.5
            dt = min(smaller * 0.2 / self.n / speed / self.d, end - time)
            one, other = coarse, fine
            for kept, share in ((0, 1), (0.75, 0.25), (1 / 3, 2 / 3)):
                r, s = self.rates(one, other, physics, dt)
                one, other = kept * coarse + share * (one + dt * r), kept * fine + share * (other + dt * s)
                one, other = self.together(one, other)
            coarse, fine, time = one, other, time + dt
            drift = max(drift, float(np.abs(self.integral(coarse, fine) - before).max()))
        return coarse, fine, drift


def spot(*places: Field) -> Field:
    return np.asarray(1 + 0.3 * np.exp(2 * sum(np.cos(2 * np.pi * c) - 1 for c in places)))


def smooth(d: int, system: str, mode: str, n: int, end: float = 0.4) -> tuple[float, float]:
    """The largest error at the time `end` of a spot that is carried along, and the largest change of an integral."""
    levels = Levels(n, d, mode)
    velocity = (1.0, 0.5)[:d]

    def state(time: float, nodes: int) -> Field:
        x = np.arange(nodes) / nodes
        places = [x] if d == 1 else [x[None], x[:, None]]
        rho = spot(*(c - u * time for c, u in zip(places, velocity, strict=True)))
        if system == "advection":
            return rho[None]
        u, v = velocity[0], 0.5 * (d == 2)
        return np.stack([rho, rho * u, rho * v, 1 / GAMMA / (GAMMA - 1) + 0.5 * rho * (u * u + v * v)])

    coarse, fine, drift = levels.run(state(0, n), state(0, 2 * n), advection if system == "advection" else euler, end)
    on_patch = np.where(levels.patch, np.abs(fine - state(end, 2 * n)), 0).max()
    return max(float(on_patch), float(np.abs(coarse - state(end, n)).max())), drift


def tube(mode: str, n: int = 200) -> tuple[float, float, float]:
    """Two of Sod's tubes in one period, of which a shock leaves the patch: mean difference of density to half the
    spacing throughout, the largest change of an integral, and the pressure waves behind the shock."""

    def state(x: Field) -> Field:
        inside = np.abs(x - 0.45) < 0.2
        rho, p = np.where(inside, 1.0, 0.125), np.where(inside, 1.0, 0.1) / GAMMA
        return np.stack([rho, 0 * x, 0 * x, p / (GAMMA - 1)])

    levels, alone = Levels(n, 1, mode, scheme="weno"), Levels(2 * n, 1, "none", scheme="weno")
    coarse, _, drift = levels.run(state(np.arange(n) / n), state(np.arange(2 * n) / (2 * n)), euler, 0.1)
    q, time = state(np.arange(2 * n) / (2 * n)), 0.0
    while time < 0.1 - 1e-12:
        dt, one = min(0.4 * 0.25 / n / euler(q)[1], 0.1 - time), q
        for kept, share in ((0, 1), (0.75, 0.25), (1 / 3, 2 / 3)):
            one = kept * q + share * (one + dt * alone.coarse.rate(alone.coarse.fluxes(one, euler)))
        q, time = one, time + dt
    x, p = np.arange(n) / n, (GAMMA - 1) * (coarse[3] - 0.5 * coarse[1] ** 2 / coarse[0])
    behind = p[(x > 0.7) & (x < 0.78)]
    return float(np.abs(coarse[0] - q[0, ::2]).mean()), drift, float(np.ptp(behind) / p.max())


def strong_blast(mode: str, ratio: float, n: int = 32) -> tuple[float, float, float]:
    """A blast in the plane that leaves the patch, density 1 everywhere and a `ratio` of pressures: the time until which
    density and pressure are positive, or the end; the largest change of an integral; the least pressure, in shares of
    that of the gas at rest."""
    levels = Levels(n, 2, mode, scheme="first")

    def state(m: int) -> Field:
        x = np.arange(m) / m - 0.5
        inside, q = x[None] ** 2 + x[:, None] ** 2 < 0.2**2, np.zeros((4, m, m))
        q[0], q[3] = 1, np.where(inside, 1.0, 1 / ratio) / (GAMMA - 1)
        return q

    coarse, fine, time, drift, pressure = state(n), state(2 * n), 0.0, 0.0, 1 / ratio
    while time < 0.12 - 1e-9:
        with np.errstate(all="ignore"):
            coarse, fine, changed = levels.run(coarse, fine, euler, 0.01)
        p = (GAMMA - 1) * (coarse[3] - 0.5 * (coarse[1] ** 2 + coarse[2] ** 2) / coarse[0])
        if not (p.min() > 0 and coarse[0].min() > 0):
            break
        time, drift, pressure = time + 0.01, drift + changed, float(p.min())
    return time, drift, pressure * ratio


def free_stream(mode: str, n: int) -> float:
    """The largest rate of a uniform flow on curved grid lines."""
    levels = Levels(n, 2, mode, bent=0.03)
    flow = np.array([1.0, 0.7, 0.4, 1 / GAMMA / (GAMMA - 1) + 0.5 * (0.7**2 + 0.4**2)])
    coarse, fine = (np.multiply.outer(flow, np.ones((m, m))) for m in (n, 2 * n))
    one, other = levels.rates(coarse, fine, euler)
    return max(float(np.abs(one).max()), float(np.abs(np.where(levels.patch, other, 0)).max()))


def unclosed(n: int) -> float:
    """By how much the areas of two cuts across both levels differ on curved grid lines: one through the middle of the
    patch, the other outside of it. Each half of the patch would take back its own defect between these."""
    levels = Levels(n, 2, "defect", bent=0.03)
    a, b = levels.ends
    along, of_fine = line(n, a, b, "gregory"), line(2 * n, 2 * a, 2 * b, "gregory")
    coarse, fine = (halfway(level.areas[0][0], CENTRAL, -1) for level in (levels.coarse, levels.fine))
    middle = ((1 - along) * coarse[:, n // 2]).sum() + (of_fine * fine[:, n]).sum()
    return float(abs(coarse[:, -1].sum() - middle))


def main() -> None:
    for d, sizes in ((1, (32, 64, 128)), (2, (24, 48))):
        for system in ("advection", "euler"):
            for mode in MODES_OF_LINES if d == 1 else MODES:
                found = [smooth(d, system, mode, n) for n in sizes]
                errors, drift = zip(*found, strict=True)
                order = np.log2(errors[-2] / errors[-1])
                print(f"{d}-D {system}, {mode}: errors {errors}, order {order:.1f}; change of the integrals {drift}")
    for mode in MODES_OF_LINES:
        print(f"shock tube, {mode}: L1 {{:.2e}}, change {{:.1e}}, pressure waves {{:.1e}}".format(*tube(mode)))
    for mode in MODES:
        for ratio in (1e3, 1e5):
            until, change, pressure = strong_blast(mode, ratio)
            print(f"blast, {mode}, {ratio:.0e}: until {until:.2f}, change {change:.1e}, least pressure {pressure:.2g}")
    for mode in MODES:
        print(f"uniform flow on curved lines, {mode}: rates {[free_stream(mode, n) for n in (32, 64, 128)]}")
    print(f"areas of cuts on curved lines differ by {[unclosed(n) for n in (32, 64, 128)]}")


if __name__ == "__main__":
    main()
