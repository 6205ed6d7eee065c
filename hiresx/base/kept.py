"""A cache of results. A result is used again as long as the objects from which it was computed exist."""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
Results = Mapping[tuple[Hashable, tuple[Any, ...]], Any]


class Kept:
    """A cache of results. A result is found by a key and by the objects from which it was computed. `given`: the
    results of an earlier instance that may be used again, for instance from before the grid was partitioned anew."""

    def __init__(self, given: Results | None = None):
        self._given: Results = given or {}
        self._used: dict[tuple[Hashable, tuple[Any, ...]], Any] = {}

    def __call__(self, key: Hashable, of: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return the result of `make` for the key and the objects `of`, which are compared by `==`. If an earlier call
        had the same key and objects, its result is returned. The key must contain everything else on which the result
        depends."""
        place = key, of
        if place not in self._used:
            self._used[place] = self._given[place] if place in self._given else make()
        found: T = self._used[place]
        return found

    def with_all_of(self, there: Collection[Any]) -> Results:
        """Return those results of this cache all of whose objects are in `there`, for a new instance of this class,
        which takes them as its argument `given`."""
        known = frozenset(there)
        return {place: result for place, result in self._used.items() if known.issuperset(place[1])}
