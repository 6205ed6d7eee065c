"""Collections in the midst of a run that look at later objects alone."""

import gc
import weakref

from hiresx.base import garbage


class Knot:
    """An object that knows itself."""

    def __init__(self):
        self.own = self


def test_what_was_made_since_the_first_collection_is_freed_and_all_is_given_back():
    gc.unfreeze()
    garbage.collect()
    before = gc.get_freeze_count()
    assert before < 1000, "outside all objects stay those of the collector"
    with garbage.repeatedly():
        garbage.collect()
        later = weakref.ref(Knot())
        garbage.collect()
        assert gc.get_freeze_count() > before + 1000 and later() is None
        with garbage.repeatedly():
            garbage.collect()
        assert gc.get_freeze_count() > before + 1000
    assert gc.get_freeze_count() == 0
    garbage.collect()
    # Since Python 3.12 a collection sets some hundred objects apart that are never freed.
    assert gc.get_freeze_count() < 1000


def test_python_does_not_collect_by_itself_while_that_is_paused():
    assert gc.isenabled()
    with garbage.paused():
        assert not gc.isenabled()
        with garbage.paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
