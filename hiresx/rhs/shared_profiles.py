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
from hiresx.rhs.prescribed_waves import OTHER_TIME, InTime

# The values of a patch begin at a multiple of so many numbers, as arrays of their own do.
APART = 64
# Values are the same up to so much of the largest one: vector instructions may round otherwise.
SAME = 1e-11


class SharedProfile:
    """The values of one function of the case at the patches of `members`, whose functions depend on the time. Like a
    `Profile` it keeps the values of the last two times, since stages of successive steps have the same time. `gamma`:
    the ratio of specific heats. `agreed`: as for `shared_profiles`."""

    def __init__(self, backend: Backend, members: Sequence[Profile], gamma: float, agreed: set[str]):
        self.members, self._backend, self._gamma = members, backend, gamma
        given, targets = zip(*(c.share() for c in members), strict=True)
        self._apart, self._given = given, InTime.together(given)
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
        # Functions whose values for all patches together were compared with those for each, at another time than that
        # of the step, since a part of them may be 0 at the start.
        self._agreed = agreed
        self._time: float | None = None
        self._made: dict[float, Any] = {}

    def prepare(self, time: float) -> bool:
        """Set the prescribed values at all patches to those at `time`, in L / c_ref, by one call of the function, and
        return True. Return False, and set nothing, if the patches have to evaluate the function one by one: if it
        returns waves, which the device then computes, or if its values for all patches together differ from those for
        each patch."""
        if time == self._time:
            return True
        made = self._made.pop(time, None)
        if made is None:
            try:
                values = self._values(self._given, time)
                if self._given.known or not (self._checked or self._agree(time + OTHER_TIME)):
                    return False
            except Exception:
                # Evaluated for each patch, the function shows whether this is a fault of its own.
                if self._checked:
                    raise
                return False
            self._agreed.add(self._name)
            made = self._backend.to_device(values.ravel()[self._order].astype(self._target.dtype))
        self._backend.copy(self._target, made)
        self._time = time
        self._made = {**dict([*self._made.items()][-1:]), time: made}
        return True

    @property
    def _name(self) -> str:
        return str(self.members[0].shared_function)

    @property
    def _checked(self) -> bool:
        return self._name in self._agreed

    def _values(self, given: InTime, time: float) -> np.ndarray:
        """Return the conservative variables (variables, ...) at the places of `given`."""
        return np.stack(conservative(self._gamma, *given.values(time)))

    def _agree(self, time: float) -> bool:
        """True if the function has the same values at `time` when it is called for each patch: they depend on the place
        and the time alone."""
        together = self._values(self._given, time)
        apart = np.concatenate([self._values(one, time).reshape(len(together), -1) for one in self._apart], axis=1)
        return together.shape == apart.shape and bool(np.abs(together - apart).max() <= SAME * np.abs(apart).max())


def shared_profiles(
    backend: Backend, conditions: Iterable[FaceCondition], gamma: float, agreed: set[str]
) -> list[SharedProfile]:  # fmt: skip
    """Return, for each function of the case that prescribes time-dependent values at several boundary patches, a
    `SharedProfile`, which evaluates the function once for all these patches. `conditions`: all boundary conditions.
    `gamma`: ratio of specific heats. `agreed`: the names of functions whose values were found to
    depend on the place and the time alone; those that are checked later are added."""
    alike: dict[str, list[Profile]] = {}
    for c in conditions:
        if isinstance(c, Profile) and c.shared_function is not None:
            alike.setdefault(c.shared_function, []).append(c)
    return [SharedProfile(backend, members, gamma, agreed) for members in alike.values() if len(members) > 1]
