"""Rigid motions that map one side of a periodic grid onto the other."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hiresx.base.arrays import triple

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]
IntMatrix = tuple[tuple[int, int, int], ...]
# Two rotation matrices that differ by less count as equal, and one that differs by less from the identity counts as no
# rotation.
SAME_ROTATION = 1e-9


@dataclass(frozen=True)
class Motion:
    """A rigid motion. It moves the point x to `rotation` @ x + `translation`, with lengths in L. `rotation` is a matrix
    (3, 3), or None for a pure translation."""

    rotation: Matrix | None = None
    translation: Vector = (0.0, 0.0, 0.0)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Return the moved points (3, ...)."""
        turned = points if self.rotation is None else np.tensordot(np.array(self.rotation), points, axes=1)
        return turned + np.reshape(self.translation, (3, *[1] * (np.ndim(points) - 1)))

    @property
    def inverse(self) -> "Motion":
        """The inverse motion, which moves every point back to its original position."""
        if self.rotation is None:
            return Motion(None, _vector(-np.array(self.translation)))
        back = np.array(self.rotation).T
        return Motion(_matrix(back), _vector(-back @ np.array(self.translation)))

    def then(self, other: "Motion") -> "Motion":
        """Return the single motion that has the effect of this motion followed by `other`."""
        turns = [np.array(m.rotation) for m in (other, self) if m.rotation is not None]
        turned = turns[0] @ turns[-1] if len(turns) == 2 else turns[0] if turns else None
        shift = _vector(other(np.array(self.translation)))
        return Motion(None if turned is None else _matrix(turned), shift)

    @property
    def still(self) -> bool:
        """Whether the motion is the identity."""
        return self.rotation is None and not any(self.translation)

    @property
    def axis_and_angle(self) -> tuple[Vector, float]:
        """Unit vector of the rotation axis, and rotation angle in degrees from 0 to 180. The motion must have a
        rotation."""
        r = np.array(self.rotation)
        axis = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
        length = np.linalg.norm(axis)
        angle = math.degrees(math.atan2(length / 2, (np.trace(r) - 1) / 2))
        # half a turn has no antisymmetric part: R + 1 is then twice the dyad of the axis
        axis = axis if length > SAME_ROTATION else (r + np.eye(3))[np.argmax(np.diag(r))]
        return _vector(_unit(axis)), angle

    def __str__(self) -> str:
        """Return a description for messages."""
        if self.still:
            return "no motion"
        words = []
        if self.rotation is not None:
            axis, angle = self.axis_and_angle
            words.append(f"a rotation by {angle:.6g} degrees about {format_vector(axis)}")
        if any(self.translation):
            words.append(f"a translation by {format_vector(self.translation)}")
        return " and ".join(words)


def format_vector(vector: Iterable[float]) -> str:
    """Return the three numbers of `vector` as text with six significant digits, such as "(0, 0.5, 1)"."""
    return "({:.6g}, {:.6g}, {:.6g})".format(*(float(v) + 0.0 for v in vector))


def rotation_about(axis: Vector, angle: float) -> np.ndarray:
    """Return the matrix (3, 3) of a right-handed rotation by `angle` degrees about the direction `axis`; exact for
    multiples of 90 degrees about a coordinate axis."""
    x, y, z = _unit(np.array(axis, dtype=float))
    c, s = _cosine_sine(angle)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    dyad = np.outer([x, y, z], [x, y, z])
    return c * np.eye(3) + s * cross + (1 - c) * dyad


def _unit(vector: np.ndarray) -> np.ndarray:
    scaled = vector / np.abs(vector).max()  # the squares of very small and very large numbers underflow or overflow
    return scaled / np.linalg.norm(scaled)


def motion(
    rotation: np.ndarray | None = None, centre: Vector = (0.0, 0.0, 0.0), translation: Iterable[float] = (0.0, 0.0, 0.0)
) -> Motion:
    """Return the rigid motion that rotates about the point `centre` by the matrix `rotation` (3, 3) and then moves by
    `translation`. Without `rotation` it is a translation."""
    if rotation is None or np.abs(rotation - np.eye(3)).max() < SAME_ROTATION:
        return Motion(None, _vector(translation))
    return Motion(_matrix(rotation), _vector(np.array(centre) - rotation @ np.array(centre) + np.array(translation)))


def reflection(normal: np.ndarray, height: float) -> Motion:
    """Return the reflection at the plane of all x with `normal` @ x = `height`. `normal`: a unit vector (3,)."""
    return Motion(_matrix(np.eye(3) - 2 * np.outer(normal, normal)), _vector(2 * height * normal))


def _cosine_sine(degrees: float) -> tuple[float, float]:
    quarters = degrees / 90.0
    if quarters == round(quarters):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


def _vector(values: Iterable[float]) -> Vector:
    return triple(float(v) + 0.0 for v in values)  # no negative zeros, which would be visible in messages and files


def _matrix(values: np.ndarray) -> Matrix:
    return triple(_vector(row) for row in values)
