"""Quantities that functions of a case give as sums of waves."""

import numpy as np
import pytest
from checkpoint_cases import CHANNEL

from hiresx import Case, HiresxError, Waves
from hiresx.case.functions import evaluate_profile

CHANNEL_CASE = Case.from_dict(CHANNEL)
X, Y, Z = np.random.default_rng(0).uniform(size=(3, 4, 3, 5))


def test_the_sum():
    cos, sin = [0.3 * X, 0.1], [0.0, np.sin(Y)]
    found = Waves(Y, [0.7, 2.3], cos, sin)
    for t in (0.0, 0.3, 12.7):
        a, b = 2 * np.pi * 0.7 * t, 2 * np.pi * 2.3 * t
        wanted = Y + 0.3 * X * np.cos(a) + 0.1 * np.cos(b) + np.sin(Y) * np.sin(b)
        np.testing.assert_allclose(found.at(t), wanted, rtol=0, atol=1e-13)
    # 2**33 L/c_ref later a wave of frequency 3/8 is where it was
    wave = Waves(0.0, [0.375], [X], [Y])
    np.testing.assert_array_equal(wave.at(2.0**33 + 1.0), wave.at(1.0))
    np.testing.assert_array_equal(Waves(Y, []).at(3.0), Y)


def test_it_does_not_fall_below_its_least():
    found = Waves(2.0, [0.7, 5**0.5], [0.3 * X, 0.1], [0.4 * Y, 0.0]).on(X.shape)
    sampled = np.min([found.at(t) for t in np.arange(0, 200, 0.01)], axis=0)
    assert (found.least() <= sampled).all() and np.abs(sampled - found.least()).max() < 1e-3


def test_parts_of_the_places_have_the_same_sums():
    def on(part):
        return Waves(Y[part], [0.7, 2.3], [0.3 * X[part], 0.1], [0.0, np.sin(Y[part])]).at(12.7)

    np.testing.assert_array_equal(np.concatenate([on(np.s_[:1]), on(np.s_[1:])]), on(np.s_[:]))


def test_what_a_function_gives():
    """Left as waves where they are wanted, numbers at a time elsewhere; on the shape of the places."""

    def swell(x, y, z, t):
        return 1.0, Waves(1.5 + 0 * y, [2.0], sin=[0.1 * y]), 0.0, 0.0, 0.7

    state = CHANNEL_CASE.evaluate(swell, X, Y, Z, 0.1)
    np.testing.assert_allclose(state[1], 1.5 + 0.1 * Y * np.sin(0.4 * np.pi), rtol=1e-15)
    rho, u, *_ = evaluate_profile(CHANNEL_CASE, swell, X, Y, Z, 0.1)
    assert u.cos[0].shape == u.sin[0].shape == rho.shape == X.shape
    assert u.same_as(evaluate_profile(CHANNEL_CASE, swell, X, Y, Z, 0.2)[1])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (lambda: Waves(0.0, [1.0, 2.0], [0.1]), "cos: needs 2 amplitudes, one of each frequency, got 1"),
        (lambda: Waves(0.0, 1.0, [0.1]), "frequency: needs a list of finite numbers"),
        (lambda: Waves(0.0, [np.nan], [0.1]), "frequency: needs a list of finite numbers"),
        (lambda: Waves(0.0, [1.0], [np.zeros(7)]), "something else than a state"),
        (lambda: Waves(0.0, [1.0], sin=[np.nan * X]), "returned u = nan at"),
    ],
)
def test_waves_that_cannot_be(given, reason):
    with pytest.raises(HiresxError, match=reason):
        CHANNEL_CASE.evaluate(lambda x, y, z, t: (1.0, given(), 0.0, 0.0, 0.7), X, Y, Z, 0.0)


def test_the_error_of_waves_in_a_script_and_in_a_function_of_a_case():
    with pytest.raises(HiresxError, match=r"^Waves: cos: needs 2 amplitudes") as error:
        Waves(0.0, [1.0, 2.0], [0.1])
    assert "give a mean, M frequencies" in error.value.hint
    with pytest.raises(HiresxError, match=r'test_waves\.py: function "<lambda>": Waves: mean'):
        CHANNEL_CASE.evaluate(lambda x, y, z, t: (1.0, Waves("a", []), 0.0, 0.0, 0.7), X, Y, Z, 0.0)


def test_a_pressure_that_would_become_negative():
    def swell(x, y, z, t):
        return 1.0, 0.0, 0.0, 0.0, Waves(0.7, [1.0, 3.0], sin=[0.4, 0.4])

    with pytest.raises(HiresxError, match=r"waves that may come down to p = -0\.1"):
        CHANNEL_CASE.evaluate(swell, X, Y, Z, 0.0)


def test_no_waves_where_nothing_depends_on_time():
    with pytest.raises(HiresxError, match="waves, where nothing depends on time"):
        CHANNEL_CASE.evaluate(lambda x, y, z: (1.0, Waves(0.0, [1.0]), 0.0, 0.0, 0.7), X, Y, Z)
