"""Profiles that one function of the case gives at several patches: the function is called once for all of them, and the
values are copied to the device together. Tiles of refinement divide an edge of the grid into many patches."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from hiresx.device.interface import Backend
from hiresx.equations.gas import conservative
from hiresx.rhs.boundary import Profile
from hiresx.rhs.face_condition import FaceCondition
from hiresx.rhs.prescribed_waves import InTime

# The values of a patch begin at a multiple of so many numbers, as arrays of their own do.
APART = 64


class SharedProfile:
    """The values of one function of the case at the patches of `members`, whose functions depend on the time. Like a
    `Profile` it keeps the values of the last two times, since stages of successive steps have the same time. `gamma`:
    the ratio of specific heats."""

    def __init__(self, backend: Backend, members: Sequence[Profile], gamma: float):
        self.members, self._backend, self._gamma = members, backend, gamma
        given, targets = zip(*(c.share() for c in members), strict=True)
        self._given = InTime.together(given)
        points = [prod(target.shape[1:]) for target in targets]
        firsts = np.cumsum([0, *(-(-target.size // APART) * APART for target in targets)]).tolist()
        self._target = backend.zeros((firsts[-1],), str(targets[0].dtype))
        # Of each number of the target the place in the values (variables, all points).
        self._order = np.zeros(firsts[-1], np.intp)
        ends = np.cumsum([0, *points]).tolist()
        for member, target, first, (a, b) in zip(members, targets, firsts, pairwise(ends), strict=False):
            inside = slice(first, first + target.size)
            self._order[inside] = (np.arange(len(target))[:, None] * ends[-1] + np.arange(a, b)).ravel()
            member.prescribe_in(self._target[inside].reshape(target.shape))
        self._time: float | None = None
        self._made: dict[float, Any] = {}

    def prepare(self, time: float) -> bool:
        """Set the values of all patches to those at `time`, in L / c_ref. Returns False, and sets nothing, if the
        function returns waves: the device then computes them for each patch."""
        if time == self._time:
            return True
        made = self._made.pop(time, None)
        if made is None:
            values = np.stack(conservative(self._gamma, *self._given.values(time)))
            if self._given.known:
                return False
            made = self._backend.to_device(values.ravel()[self._order].astype(self._target.dtype))
        self._backend.copy(self._target, made)
        self._time = time
        self._made = {**dict([*self._made.items()][-1:]), time: made}
        return True


def shared_profiles(backend: Backend, conditions: Iterable[FaceCondition], gamma: float) -> list[SharedProfile]:
    """Return a `SharedProfile` for each function of the case that gives the values of several `conditions`."""
    alike: dict[str, list[Profile]] = {}
    for c in conditions:
        if isinstance(c, Profile) and c.shared_function is not None:
            alike.setdefault(c.shared_function, []).append(c)
    return [SharedProfile(backend, members, gamma) for members in alike.values() if len(members) > 1]
