"""The kernels that prescribe sums of waves, alone, beside the sums as NumPy makes them."""

from fractions import Fraction

import numpy as np
import pytest
from kernels_alone import GAMMA, Numpy, program, random

from hiresx.case.wave_sums import Waves, at
from hiresx.equations.gas import conservative
from hiresx.rhs.prescribed_waves import FaceWaves, InTime
from hiresx.time.step_clock import StepClock

SHAPE = (4, 3, 5)
# Of the largest value, in units of the last place of the reals.
ROUNDING = {"fp64": 8 * 2.0**-53, "fp32": 8 * 2.0**-24}


def amplitudes(rng, count):
    """Nothing on some of the nodes."""
    found = rng.normal(size=(count, *SHAPE)) * 0.05
    found[..., 1:3] = 0.0
    return found


def gas():
    """Waves of other frequencies, one of them shared, in each of rho, v and p."""
    rng = random(3)
    mean = rng.uniform(0.5, 2.0, (5, *SHAPE))
    waves = {
        n: Waves(mean[n], f, amplitudes(rng, len(f)), amplitudes(rng, len(f)))
        for n, f in ((0, [0.7, 3.1]), (2, [3.1]), (4, [11.9, 0.7, 0.2]))
    }
    return [waves.get(n, mean[n]) for n in range(5)]


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("precision", ["fp64", pytest.param("fp32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["gas", "scalar"])
def test_the_sums(backend, precision, kind):
    kernels = program(backend, ("waves.h",), precision=precision, schmidt=(0.7,))
    values = gas() if kind == "gas" else gas()[:1]
    real = np.float32 if precision == "fp32" else np.float64
    target = np.full((5, *SHAPE) if kind == "gas" else SHAPE, 7.0, real)
    waves, clock = FaceWaves(Numpy(), values, target), StepClock(Numpy())
    for time, dt, share in ((0.0, 0.0, 0.0), (0.3, 0.02, 0.5), (1234.5, 0.02, 1 / 3)):
        clock.put(time, dt)
        waves.launch(kernels.launch, clock.array, share)
        wanted = at(values, time + share * dt)
        wanted = np.stack(conservative(GAMMA, *wanted)) if kind == "gas" else wanted[0]
        still = np.broadcast_to(np.isin(np.arange(5), (1, 2)), wanted.shape)
        assert (target[still] == 7.0).all(), "nodes without waves are left alone"
        # a time that is late is known no better than to its last place, a turn of the fastest wave to 11.9 of those
        late = 2 * np.pi * 11.9 * np.spacing(time)
        np.testing.assert_allclose(target[~still], wanted[~still], rtol=0, atol=10 * ROUNDING[precision] + late)


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_late_times_are_as_good_as_early_ones(backend):
    """Whole turns are taken off f t without an error: the product of the two doubles has more places than one holds."""
    kernels, clock = program(backend, ("waves.h",), precision="fp64", schmidt=(0.7,)), StepClock(Numpy())
    frequency = np.array([0.7, 3.1, 11.9, 1 / 3])
    for time in (0.3, 1234.5, 3.7e7 + 1 / 7):
        clock.put(time, 0.0)
        weights = np.zeros(8)
        kernels.launch(
            "wave_weights", (4, 1, 1), frequencies=4, share=0.0, frequency=frequency, clock=clock.array, weights=weights
        )
        turns = np.array([float(Fraction(f) * Fraction(time) % 1) for f in frequency])
        wanted = np.concatenate([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])
        np.testing.assert_allclose(weights, wanted, rtol=0, atol=2e-15)


def test_a_function_that_gives_waves_is_asked_once_and_for_the_same_ones():
    asked = []

    def swell(x, t):
        asked.append(t)
        return [x, Waves(x, [2.0], [0.1 * x])]

    given = InTime(swell, (np.ones(SHAPE),), steady=False)
    assert not given.known and not given.fixed
    found = [given.values(t)[1][0, 0, 0] for t in (0.0, 0.25, 0.5)]
    np.testing.assert_allclose(found, [1.1, 0.9, 1.1], rtol=1e-14)
    assert len(asked) == 2 and given.known and not given.fixed
    still = InTime(lambda x, t: [x, Waves(x, [])], (np.ones(SHAPE),), steady=False)
    still.values(0.0)
    assert still.known and still.fixed and still.on_device(Numpy(), np.zeros((5, *SHAPE))) is None
    other = InTime(lambda x, t: [x, Waves(x, [2.0], [0.1 * t])], (np.ones(SHAPE),), steady=False)
    with pytest.raises(Exception, match="gives waves, but others at another time"):
        other.values(0.0)
