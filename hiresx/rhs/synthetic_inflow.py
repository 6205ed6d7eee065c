"""Synthetic turbulence at an inflow, which the device evaluates at each time (kernels/synthetic_turbulence.h)."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.synthetic_turbulence import STRESSES
from hiresx.case.synthetic_turbulence import SyntheticTurbulence as Spec
from hiresx.device.interface import Backend
from hiresx.errors import HiresxError
from hiresx.rhs.face_values import place_at, values_at

# Fraction of the largest stress below which a pivot of the Cholesky factor is zero.
_ROUND_OFF = 1e-10
# A number that no lattice plane has: no plane is stored yet.
_UNKNOWN = 0.5
# Integral length of the random field of synthetic eddies, divided by the reach of an eddy, which is the spacing of the
# lattice: with the shape f(x) = 1 - |x|, the square of the integral of f over twice the integral of f^2.
EDDY_LENGTH = 3 / 4
# Eddies around the part of a face that a rank has: they take 0.5 GB in double precision.
_MOST_EDDIES = 10_000_000


@cache
def integral_length() -> float:
    """Return the integral length of the random field of the digital filter, divided by the spacing of the lattice of
    random numbers from which it is interpolated by B-splines: the integral of its autocorrelation over the distance,
    averaged over positions in the lattice."""
    steps = 64
    at = (np.arange(steps) + 0.5) / steps
    share = np.stack([_spline(at - k) for k in (-1, 0, 1, 2)])
    share /= np.sqrt((share**2).sum(axis=0))
    # Weight of lattice point k - 1 at the position at + cell; correlations of positions `m` steps apart, averaged over
    # all positions.
    spread = np.zeros((12, 12 * steps))
    for cell in range(9):
        for k in range(4):
            spread[cell + k, cell * steps : (cell + 1) * steps] = share[k]
    middle = 4 * steps  # the beginning of the cell in the middle
    first = spread[:, middle : middle + steps]
    sums = [np.mean((first * spread[:, middle + m : middle + m + steps]).sum(axis=0)) for m in range(middle)]
    return float((sum(sums) - 0.5 * sums[0]) / steps)


def _spline(x: np.ndarray) -> np.ndarray:
    """Return the cubic B-spline about 0."""
    x = np.abs(x)
    return np.where(x < 1, 2 / 3 - x**2 + x**3 / 2, np.maximum(2 - x, 0) ** 3 / 6)


def axes(velocity: Sequence[float]) -> np.ndarray:
    """Return three orthogonal unit vectors (3, 3), one in each row, the first of which is along `velocity`. For a
    velocity along x they are along x, y and z; for y they are along y, z and x; for z along z, x and y."""
    along = np.array(velocity, float) / np.linalg.norm(velocity)
    across = np.eye(3)[(int(np.abs(along).argmax()) + 1) % 3]
    across = across - (across @ along) * along
    across /= np.linalg.norm(across)
    return np.stack([along, across, np.cross(along, across)])


def cholesky(stresses: Sequence[np.ndarray], where: Callable[[int], str]) -> np.ndarray:
    """Return the Cholesky factors of Reynolds-stress tensors at points: the entries xx, yx, yy, zx, zy, zz of the lower
    triangles, (6, ...). `stresses`: the components xx, xy, yy, xz, yz, zz, each an array (...) over the points. An
    eigenvalue may be zero. Raises HiresxError for a tensor with a negative eigenvalue. `where(n)`: returns the
    description of point number n for the message."""
    xx, xy, yy, xz, yz, zz = (np.asarray(s, float).ravel() for s in stresses)
    small = _ROUND_OFF * np.maximum(np.maximum(np.abs(xx), np.abs(yy)), np.maximum(np.abs(zz), 1e-300))

    def check(fault: np.ndarray) -> None:
        if fault.any():
            n = int(np.flatnonzero(fault)[0])
            row = ", ".join(f"{name} = {s.ravel()[n]:.4g}" for name, s in zip(STRESSES, stresses, strict=True))
            raise HiresxError(
                f"{where(n)}: {row} are not stresses: their matrix is not positive definite",
                "of all directions the mean square must be positive: |xy| below the root of xx yy, and so on",
            )

    def root(square: np.ndarray, *rests: np.ndarray) -> np.ndarray:
        check(~(square >= -small))
        zero = square <= small
        for rest in rests:
            check(zero & (np.abs(rest) > np.sqrt(small) * 1e-3 + small))
        return np.where(zero, 0.0, np.sqrt(np.maximum(square, 0.0)))

    def over(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(b > 0, a / np.where(b > 0, b, 1.0), 0.0)

    a = root(xx, xy, xz)
    b, d = over(xy, a), over(xz, a)
    c = root(yy - b * b, yz - d * b)
    e = over(yz - d * b, c)
    f = root(zz - d * d - e * e)
    return np.stack([a, b, c, d, e, f]).reshape(6, *np.shape(stresses[0]))


def roots_of_stresses(case: Case, spec: Spec, places: np.ndarray, what: str) -> np.ndarray:
    """Return the Cholesky factors (6, ...) of the Reynolds stresses of the table `spec` at `places` x, y, z (3, ...).
    `what`: the name of the face for messages. Raises HiresxError, with the place, for stresses that are not finite or
    not positive semidefinite."""
    stresses = [
        values_at(case, spec.stresses.get(name, 0.0), places, f"turbulence of {what}: {name} = ") for name in STRESSES
    ]
    return cholesky(stresses, lambda n: f"turbulence of {what} at {place_at(places, n)}")


class SyntheticTurbulence:
    """The synthetic turbulence of one inflow, which the table `spec` of a case defines. It is added to the mean flow
    `mean`: rho, u, v, w, p at the `places` x, y, z (3, layers, n2, n1), whose layers are counted from the face
    outwards. The sum is written to `target` (5, layers, n2, n1), the device array of the conservative state there.
    `velocity`: the convection velocity. `what`: the name of the face for messages.

    Raises HiresxError for stresses that are not finite or not positive semidefinite, with the place, for a convection
    velocity that does not point into the block, and for lengths that make too many eddies.
    """

    def __init__(
        self,
        backend: Backend,
        case: Case,
        spec: Spec,
        velocity: Sequence[float],
        mean: np.ndarray,
        places: np.ndarray,
        target: Any,
        what: str,
    ):
        shape, real = places.shape[1:], target.dtype

        def where(n: int) -> str:
            return f"turbulence of {what} at {place_at(places, n)}"

        entering = np.tensordot(np.array(velocity, float), places[:, 0] - places[:, 1], 1)
        if not (entering > 0).all():
            raise HiresxError(
                f"{where(int(np.flatnonzero(entering.ravel() <= 0)[0]))}: its convection velocity {list(velocity)} "
                "does not lead into the block",
                "give turbulence.velocity, or leave turbulence out of a face that is no inflow",
            )
        root = roots_of_stresses(case, spec, places, what)
        by_eddies = spec.method == "synthetic-eddies"
        lengths = np.broadcast_to(spec.length, (3,)) / (EDDY_LENGTH if by_eddies else integral_length())
        periods = [0, 0]
        for n, period in enumerate(spec.period):
            if period > 0:
                periods[n] = max(4, round(period / lengths[n + 1]))
                lengths = np.array([*lengths[: n + 1], period / periods[n], *lengths[n + 2 :]])
        in_lattice = np.tensordot(axes(velocity), places, 1) / lengths.reshape(3, *(1,) * len(shape))
        count = int(np.prod(shape))
        lattice = {
            "seed": spec.seed, "speed": float(np.linalg.norm(velocity) / lengths[0]), "period1": periods[0],
            "period2": periods[1],
        }  # fmt: skip
        copied = {"places": in_lattice, "mean": mean.astype(real), "root": root.astype(real)}
        points = {"n": count, "target": target} | {
            name: backend.to_device(np.ascontiguousarray(values)) for name, values in copied.items()
        }
        # Kernels in the order of their launches, with extents and arguments.
        self._kernels: list[tuple[str, tuple[int, int, int], dict[str, Any]]]
        if by_eddies:
            least, most = (end(in_lattice.reshape(3, -1), axis=1) for end in (np.min, np.max))
            # The planes move past the face. One more plane at each end allows for round-off of their positions.
            planes = int(most[0] - least[0]) + 6
            rows, columns = (int(np.floor(most[n]) - np.floor(least[n])) + 3 for n in (1, 2))
            if (eddies := planes * rows * columns) > _MOST_EDDIES:
                raise HiresxError(
                    f"turbulence of {what}: its length {spec.length} makes {eddies:.3g} eddies around the face, and at "
                    f"most {_MOST_EDDIES:.3g} are stored",
                    'give a larger length, or take turbulence.method = "digital-filter"',
                )
            box = {
                "planes": planes, "rows": rows, "columns": columns, "first1": int(np.floor(least[1])) - 1,
                "first2": int(np.floor(least[2])) - 1, "eddies": backend.zeros((planes, rows, columns, 6), str(real)),
            }  # fmt: skip
            self._kernels = [
                ("place_eddies", (columns, rows, planes), lattice | box | {"least": float(least[0])}),
                ("synthetic_eddies", (count, 1, 1), points | box | {"speed": lattice["speed"]}),
            ]
        else:
            known = backend.to_device(np.full((4, count), _UNKNOWN))
            stored = {"known": known, "planes": backend.zeros((4, 3, count), str(real))}
            self._kernels = [("synthetic_turbulence", (count, 1, 1), lattice | points | stored)]

    def launch(self, launch: Callable[..., None], clock: Any, share: float) -> None:
        """Compute the mean flow plus the synthetic turbulence on the device and write it to the target array. `launch`:
        the function that launches a kernel (`Program.launch`). The time is the start of the time step plus the fraction
        `share` of its size, both read from the device array `clock`."""
        for name, extent, arguments in self._kernels:
            launch(name, extent, share=share, clock=clock, **arguments)
