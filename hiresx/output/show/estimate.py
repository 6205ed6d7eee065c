"""Estimate of the time left, from the recent rate of a run and the drift of its time step."""

import math
from collections import deque
from statistics import median


class Estimator:
    """An estimate of the wall time left of a run. The run ends at the time `end`, after the step `steps`, or at the
    first of both; None for a limit that the run does not have.

    The clock starts with the first `update`, which should follow the first step. Compilation, start-up and the first
    access to memory are therefore not included. Later wall time is divided into windows. Each window is a fortieth of
    the wall time since the start, but at least 0.25 s and at most 10 s. The rate is the median of the last 15 windows:
    short disturbances do not change it, and a lasting change has an effect after half of the windows. Other work, such
    as writing fields, is reported by `aside`. Its time is added in proportion to the steps left.

    The number of steps left up to `end` follows from the mean time step of each window and from its drift. The drift is
    the slope of ln(dt) over the physical time, in the windows of the last half of the wall time. This half is divided
    into two parts, and the smaller of their robust slopes is taken. If the signs of the two differ, the drift is 0. The
    drift is extrapolated over at most the interval of physical time in which it was observed."""

    _WINDOWS = 15
    _SAMPLES = 64

    def __init__(self, end: float | None = None, steps: int | None = None):
        self.end, self.steps = end, steps
        self.step, self.time = 0, 0.0
        self._begin()

    def _begin(self) -> None:
        """Discard all samples."""
        self._origin: tuple[float, int, float] | None = None
        self._opened = (0.0, 0, 0.0)
        self._aside_opened = 0.0
        # Wall time recorded by `aside` so far, and the wall times of steps between the first update and the last.
        self._aside = self._busy = 0.0
        self._rates: deque[float] = deque(maxlen=self._WINDOWS)
        # (time, ln dt) of the last windows, and (wall clock, time, ln dt) over the whole run. If the list is full,
        # every other entry is removed and the spacing doubles.
        self._recent: deque[tuple[float, float]] = deque(maxlen=5)
        self._samples: list[tuple[float, float, float]] = []
        self._spacing = 1
        self._windows = 0
        self._slope = self._horizon = 0.0

    def update(self, now: float, step: int, time: float) -> None:
        """Record the progress of the run: `step` steps were made, and `time` (in L / c_ref) was reached, at the
        wall-clock time `now` (s). The call is cheap enough to be made after every step."""
        # the run has returned to a checkpoint: the measurement starts anew
        if self._origin is not None and step < self.step:
            self._begin()
        self.step, self.time = step, time
        if self._origin is None:
            self._origin = self._opened = (now, step, time)
            self._aside = self._aside_opened = 0.0
            return
        self._busy = now - self._origin[0] - self._aside
        opened, step_opened, time_opened = self._opened
        busy = now - opened - (self._aside - self._aside_opened)
        taken = step - step_opened
        if taken < 1 or busy < min(max((now - self._origin[0]) / 40, 0.25), 10.0):
            return
        self._rates.append(busy / taken)
        if time > time_opened:
            self._sample(now, self._origin[0], (time + time_opened) / 2, math.log((time - time_opened) / taken))
        self._opened, self._aside_opened = (now, step, time), self._aside

    def aside(self, seconds: float) -> None:
        """Add `seconds` of wall time that the run spent on recurring work other than time steps, such as writing
        fields."""
        self._aside += seconds

    @property
    def seconds_per_step(self) -> float | None:
        """Median wall time of a recent time step in s, without the time that was reported by `aside`. None before it
        can be measured."""
        return median(self._rates) if self._rates else None

    @property
    def overall_seconds_per_step(self) -> float | None:
        """Mean wall time of a time step since the first one in s, without the time that was reported by `aside`. None
        before the second step."""
        if self._origin is None or self.step == self._origin[1]:
            return None
        return self._busy / (self.step - self._origin[1]) if self._busy > 0 else None

    @property
    def fraction(self) -> float | None:
        """Fraction of the run that is done, 0 to 1: the simulated time divided by the end time, or the steps made
        divided by the number of steps, whichever is larger. None if the run has neither limit."""
        if self._origin is None:
            return 0.0
        done = []
        if self.end is not None:
            done.append(self.time / self.end)
        if self.steps is not None:
            done.append(self.step / self.steps)
        return min(max(done), 1.0) if done else None

    def steps_left(self) -> float | None:
        """Return the estimated number of time steps until the end of the run; None if it cannot be estimated yet."""
        left = []
        if self._origin is None:
            return None
        if self.steps is not None:
            left.append(float(max(self.steps - self.step, 0)))
        if self.end is not None and self._recent:
            left.append(self._steps_to(self.end))
        return min(left) if left else None

    def remaining(self) -> float | None:
        """Return the estimated wall time until the end of the run, in s; None if it cannot be estimated yet."""
        rate, left = self.seconds_per_step, self.steps_left()
        if rate is None or left is None or self._origin is None:
            return None
        return left * (rate + self._aside / max(self.step - self._origin[1], 1))

    def _sample(self, now: float, began: float, time: float, log_dt: float) -> None:
        self._recent.append((time, log_dt))
        self._windows += 1
        if self._windows % self._spacing == 0:
            self._samples.append((now, time, log_dt))
        if len(self._samples) == self._SAMPLES:
            self._samples = self._samples[1::2]
            self._spacing *= 2
        begin = (now + began) / 2
        half = [sample[1:] for sample in self._samples if sample[0] >= begin]
        if len(half) < 6:
            # With fewer windows the slope would be dominated by noise.
            self._slope = self._horizon = 0.0
            return
        middle = len(half) // 2
        early, late = _slope(half[: middle + 1]), _slope(half[middle:])
        # The smaller of both slopes is used, as by the minmod limiter: an oscillation or the end of a start-up must not
        # count as a drift.
        self._slope = math.copysign(min(abs(early), abs(late)), early) if early * late > 0 else 0.0
        self._horizon = half[-1][0] - half[0][0]

    def _steps_to(self, end: float) -> float:
        span = max(end - self.time, 0.0)
        slope, seen = self._slope, min(span, self._horizon)
        # The level of the last few windows, extrapolated to the present with the drift.
        level = median(log_dt + slope * (self.time - time) for time, log_dt in self._recent)
        # dt(s) = dt exp(slope s) as far as `seen`, constant beyond: the steps are the integral of 1/dt.
        growth = slope * seen
        drifting = seen if abs(growth) < 1e-9 else -math.expm1(-growth) / slope
        return (drifting + (span - seen) * math.exp(-growth)) / math.exp(level)


def _slope(samples: list[tuple[float, float]]) -> float:
    """Return the median of the slopes between all pairs of samples (x, y) (Theil-Sen)."""
    return median((b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(samples) for b in samples[i + 1 :])
