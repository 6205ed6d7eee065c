"""Progress of a run and the time that remains."""

import io
import math
import random

import pytest
from rich.console import Console

from hiresx.output.show.estimate import Estimator
from hiresx.output.show.progress import Progress, duration

# Remaining time -------------------------------------------------------------------------------------------------------


def remaining_ratios(dt, cost, at, end=5.0, steps=None, pause=None, aside=None):
    """Estimated over true remaining wall time when the fractions `at` of the wall time after the first step are over.

    Synthetic run: dt(t), cost(step) in seconds; the first step takes 300 s more (compiling); `pause` = (step, seconds);
    `aside` = (every steps, seconds).
    """
    estimator = Estimator(end, steps)
    t, step, now, log = 0.0, 0, 0.0, []
    while t < end and (steps is None or step < steps):
        t = min(t + dt(t), end)
        step += 1
        now += cost(step) + (300.0 if step == 1 else 0.0)
        if pause and step == pause[0]:
            now += pause[1]
        estimator.update(now, step, t)
        if aside and step % aside[0] == 0:
            now += aside[1]
            estimator.aside(aside[1])
        log.append((now, estimator.remaining()))
    first, last = log[0][0], log[-1][0]
    assert log[0][1] is None, "the first step tells nothing"
    assert log[-1][1] == pytest.approx(0, abs=1e-9)
    ratios = []
    for fraction in at:
        now, estimate = next(entry for entry in log if entry[0] >= first + fraction * (last - first))
        ratios.append(estimate / (last - now))
    return ratios


def steady(step):
    return 0.1


@pytest.mark.parametrize(
    ("what", "dt", "options", "at", "tolerance"),
    [
        ("constant", lambda t: 1e-3, {}, (0.05, 0.5, 0.9), 0.02),
        ("a step limit before the end", lambda t: 1e-3, {"steps": 2000}, (0.05, 0.5, 0.9), 0.02),
        ("a pause", lambda t: 1e-3, {"pause": (2000, 400.0)}, (0.8, 0.95), 0.02),
        ("fields written now and then", lambda t: 1e-3, {"aside": (100, 3.0)}, (0.3, 0.5, 0.9), 0.05),
        ("dt shrinks by e", lambda t: 2e-3 * math.exp(-t / 5), {}, (0.5, 0.7, 0.9), 0.12),
        ("dt grows sixfold", lambda t: 2e-4 * (1 + t), {}, (0.5, 0.7, 0.9), 0.2),
        ("a start-up ramp of dt", lambda t: 1e-3 * min(1, 0.01 + t / 0.2), {}, (0.35, 0.5, 0.9), 0.02),
    ],
)
def test_remaining_time(what, dt, options, at, tolerance):
    for ratio in remaining_ratios(dt, steady, at, **options):
        assert abs(math.log(ratio)) < tolerance, what


def test_remaining_time_of_a_noisy_run():
    rng = random.Random(3)
    ratios = remaining_ratios(
        lambda t: 1e-3 * rng.uniform(0.5, 1.5), lambda step: 0.1 * rng.uniform(0.5, 1.5), (0.2, 0.4, 0.6, 0.8)
    )
    assert all(0.75 < ratio < 1.33 for ratio in ratios)


def test_remaining_time_follows_a_lasting_change_of_speed():
    (ratio,) = remaining_ratios(lambda t: 1e-3, lambda step: 0.1 if step < 2500 else 0.2, (0.6,))
    assert ratio == pytest.approx(1, rel=0.05)


def test_taking_drift_into_account_is_worth_it():
    def dt(t):
        return 2e-3 * math.exp(-t / 2)

    (ratio,) = remaining_ratios(dt, steady, (0.5,))
    # With the present dt kept: half of the steps n = (e^(t/2) - 1) 1000 are done at t = 2 ln(1 + n / 2000).
    total = (math.exp(2.5) - 1) * 1000
    t = 2 * math.log(1 + total / 2000)
    assert abs(math.log(ratio)) < 0.5 * abs(math.log((5 - t) / dt(t) / (total / 2)))


def test_estimator_without_an_end():
    estimator = Estimator()
    assert estimator.remaining() is None
    for step in range(1, 100):
        estimator.update(step * 0.1, step, step * 0.01)
    assert estimator.fraction is None
    assert estimator.remaining() is None
    assert estimator.seconds_per_step == pytest.approx(0.1)


# Progress -------------------------------------------------------------------------------------------------------------


def run_progress(seconds_per_step, count, terminal=False, compile_time=0.0, **ends):
    """The text that a run of equal steps shows, with a synthetic clock."""
    now = [0.0]
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100)
    with Progress(10_000, title="jet", console=console, clock=lambda: now[0], **ends) as progress:
        for step in range(1, count + 1):
            now[0] += seconds_per_step + (compile_time if step == 1 else 0)
            progress.update(step, step * 1e-2, 1e-2, residual=1e-3 if step % 10 == 0 else None)
    return text.getvalue(), progress


def test_plain_lines_come_at_a_sane_rate():
    # 2000 s: every 5 % is every 100 s, so the lines come by the clock; 10 s each until 500 s, then a fiftieth.
    lines = run_progress(0.1, 20_000, compile_time=20.0, steps=20_000)[0].splitlines()
    assert 50 + 2 < len(lines) < 150
    # 10 s: a line for every 5 % would come twice a second; not within one.
    assert 9 <= len(run_progress(0.01, 1000, steps=1000)[0].splitlines()) <= 13
    # Without an end only the clock counts.
    assert len(run_progress(0.1, 95)[0].splitlines()) == 2
    # 40 s: every 5 % is every 2 s.
    assert 20 <= len(run_progress(0.04, 1000, steps=1000)[0].splitlines()) <= 23


def test_what_plain_lines_say():
    lines = run_progress(0.1, 2000, compile_time=20.0, end=20.0)[0].splitlines()
    assert lines[0] == "step 1  t 0.01  dt 1.000e-02  0 %"
    assert lines[-1] == ("step 2000  t 20  dt 1.000e-02  residual 1.000e-03  0.1 Mpoint-steps/s  100 %  3:40 in all")
    middle = next(line for line in lines if " 50 %" in line)
    assert "1:40 left" in middle or "1:39 left" in middle or "1:38 left" in middle


def test_live_bar():
    text, progress = run_progress(0.1, 200, terminal=True, end=2.0)
    assert "jet" in text
    assert "100 %" in text
    assert "Mpoint-steps/s" in text
    assert progress.point_steps_per_s == pytest.approx(1e5)


def test_local_time_steps_and_an_open_end():
    text = io.StringIO()
    with Progress(1, console=Console(file=text)) as progress:
        progress.update(1, 0.0, None)
    assert text.getvalue().splitlines()[0] == "step 1  t 0  dt local"


def test_quiet_progress_shows_nothing_and_knows_the_rate(capfd):
    now = [0.0]
    with Progress(1000, steps=100, quiet=True, clock=lambda: now[0]) as progress:
        for step in range(1, 11):
            now[0] += 1.0
            progress.update(step, step * 0.1, 0.1)
    assert capfd.readouterr() == ("", "")
    assert progress.point_steps_per_s == pytest.approx(1000)


def test_time_aside_is_no_part_of_the_rate():
    now = [0.0]
    with Progress(1000, steps=100, console=Console(file=io.StringIO()), clock=lambda: now[0]) as progress:
        for step in range(1, 51):
            now[0] += 1.0
            progress.update(step, step * 0.1, 0.1)
            with progress.aside():
                now[0] += 1.0
    assert progress.point_steps_per_s == pytest.approx(1000)
    assert progress.remaining == pytest.approx(100, rel=0.05)


def test_an_error_passes_through_after_a_last_line():
    text = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Progress(1, steps=5, console=Console(file=text)) as progress:
        progress.update(1, 0.1, 0.1)
        progress.update(2, 0.2, 0.1)
        raise KeyboardInterrupt
    assert text.getvalue().splitlines()[-1].startswith("step 2")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.2, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01"), (180000, "2 d 2 h")]
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown
