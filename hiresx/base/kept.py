"""Results that are made once and used again as long as the objects that they were made of are there."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
Results = Mapping[tuple[Hashable, tuple[Any, ...]], Any]


class Kept:
    """A cache of results by a key and by the objects that they were computed from. `given`: results of an earlier
    instance, for instance that of the solver before the grid was cut anew, which may be used again."""

    def __init__(self, given: Results | None = None):
        self._given: Results = given or {}
        self._used: dict[tuple[Hashable, tuple[Any, ...]], Any] = {}

    def __call__(self, key: Hashable, of: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return the result of `make` for the key and the objects `of`, which are compared by `==`: that of an earlier
        call, if there was one. The key holds everything else on which the result depends."""
        place = key, of
        if place not in self._used:
            self._used[place] = self._given[place] if place in self._given else make()
        found: T = self._used[place]
        return found

    def together(
        self, places: Sequence[tuple[Hashable, tuple[Any, ...]]], make: Callable[[list[int]], Sequence[T]]
    ) -> list[T]:
        """Return a result for each key with its objects in `places`, as calls do. Those that are missing are made by
        one call of `make`, which takes their numbers in `places`."""
        missing = [n for n, place in enumerate(places) if place not in self._used and place not in self._given]
        made = dict(zip(missing, make(missing), strict=True)) if missing else {}
        return [self(*place, partial(made.__getitem__, n)) for n, place in enumerate(places)]

    def with_all_of(self, there: Collection[Any]) -> Results:
        """Return the results that were used and whose objects are all in `there`. The next instance takes them as
        `given`."""
        return {place: result for place, result in self._used.items() if all(one in there for one in place[1])}
