"""What the host keeps of the device's clock."""

import numpy as np
import pytest
from kernels_alone import Numpy

from hiresx.time.step_clock import DeviceClock, StepClock, new_clock


@pytest.mark.parametrize("other", ["a whole clock", "a sample"])
def test_a_clock_that_was_set_otherwise_is_put_again(other):
    """A step that the host had put before, too: what lies between has changed the device's clock."""
    clock, wanted = StepClock(Numpy()), new_clock()
    wanted[[DeviceClock.TIME, DeviceClock.DT]] = 0.3, 0.02
    clock.put(0.3, 0.02)
    if other == "a sample":
        clock.put_sample(0.3, 0.02, 0.2, 1)
        assert clock.array[DeviceClock.AT_SAMPLE] == 1 and clock.array[DeviceClock.SLOT] == 1
    else:
        clock.set(np.arange(len(wanted), dtype=float))
    clock.put(0.3, 0.02)
    np.testing.assert_array_equal(clock.array, wanted)


def test_what_the_device_holds_is_not_put_again():
    clock = StepClock(Numpy())
    clock.set(np.arange(len(new_clock()), dtype=float))
    clock.set_known(0.3, 0.02)
    clock.put(0.3, 0.02)
    np.testing.assert_array_equal(clock.array, np.arange(len(new_clock())))
