"""Results that are used again as long as what they were made of is there."""

from hiresx.base.kept import Kept


class Thing:
    """Compared by identity."""


def test_a_result_is_made_once_and_given_to_the_next_one_with_all_of_its_objects():
    one, other, made = Thing(), Thing(), []

    def make():
        made.append(object())
        return made[-1]

    first = Kept()
    found = [first("a", (one,), make), first("a", (one, other), make), first("b", (), make)]
    assert found == made and first("a", (one,), make) is found[0] and first("b", (one,), make) is made[3]
    second = Kept(first.with_all_of({one}))
    assert second("a", (one,), make) is found[0] and second("b", (), make) is found[2] and len(made) == 4
    assert second("a", (one, other), make) is made[4]


def test_a_result_that_was_not_asked_for_is_forgotten():
    first = Kept()
    first("a", (), Thing)
    second = Kept(first.with_all_of(()))
    assert not Kept(second.with_all_of(())).with_all_of(()) and not second.with_all_of(())


def test_nothing_is_a_result_too():
    kept, made = Kept(), []
    assert kept("a", (), lambda: made.append(1)) is None and kept("a", (), lambda: made.append(1)) is None
    assert made == [1]
