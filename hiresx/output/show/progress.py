"""The progress of a run: a progress bar on a terminal, and lines at longer intervals elsewhere."""

import math
import time as wall
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hiresx.base.termination_signals import ignore_broken_output
from hiresx.output.show.estimate import Estimator

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

_LIVE_EVERY = 0.2  # interval in s: it looks smooth, and takes less than a thousandth of the run's time


class Progress:
    """A context manager that shows the progress of a run. `points`: number of nodes. The run ends at the time `end`, at
    the step `steps`, or at the first of both. `title`: the title of the run. `console`: a Rich console on which lines
    are printed, by default standard error, so that standard output contains only results. `quiet`: whether nothing is
    printed. `clock`: a function that returns seconds.

    Call `update` after every step; it takes a microsecond if nothing is shown. On a console that is not a terminal,
    lines are printed after the first step, after every 5 % of the run and at the end. The interval between lines is at
    least a second, and at most 10 s or a fiftieth of the elapsed time, whichever is longer."""

    def __init__(
        self,
        points: int,
        end: float | None = None,
        steps: int | None = None,
        title: str = "",
        console: Any = None,
        quiet: bool = False,
        clock: Callable[[], float] = wall.perf_counter,
    ):
        if console is None or quiet:
            from rich.console import Console

            console = Console(stderr=True, quiet=quiet)
        self.points, self.end, self.steps, self.title = points, end, steps, title
        self.estimator = Estimator(end, steps)
        self._console, self._clock = console, clock
        self._live: Live | None = None
        self._shown = self._started = clock()
        self._shown_fraction = 0.0
        self._latest: tuple[int, float, float | None] | None = None
        self._residual: float | None = None

    def __enter__(self) -> "Progress":
        self._shown = self._started = self._clock()
        if self._console.is_terminal:
            from rich.live import Live

            # Refreshed explicitly: a refreshing thread would compete with the solver's threads.
            self._live = live = Live(self._bar(), console=self._console, auto_refresh=False)
            with ignore_broken_output(self._fall_silent):
                live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            with ignore_broken_output(self._fall_silent):
                self._live.update(self._bar(), refresh=True)
            with ignore_broken_output(self._fall_silent):
                self._live.stop()
        elif self._latest:
            self._print(*self._latest, last=True)

    @property
    def elapsed_time(self) -> float:
        """Wall time since this process began or continued the run, in s."""
        return self._clock() - self._started

    @property
    def point_steps_per_s(self) -> float | None:
        """Speed of the run: number of nodes times number of time steps per second of wall time. It is the median of
        recent time steps, or the mean of a very short run. None before the second step."""
        seconds = self.estimator.seconds_per_step or self.estimator.overall_seconds_per_step
        return self.points / seconds if seconds else None

    @property
    def remaining(self) -> float | None:
        """Estimated wall time until the end of the run, in s; None if it cannot be estimated yet."""
        return self.estimator.remaining()

    def update(self, step: int, time: float, dt: float | None = None, residual: float | None = None) -> None:
        """Show that the run has made `step` steps and reached `time` (L / c_ref). `dt`: the last time step; None for
        local time steps. `residual`: norm of the rate of change of the flow; if it is None, the previous value is
        shown."""
        now = self._clock()
        first = self._latest is None
        self._latest = step, time, dt
        if residual is not None:
            self._residual = residual
        self.estimator.update(now, step, time)
        if self._live:
            if first or now - self._shown >= _LIVE_EVERY:
                self._shown = now
                with ignore_broken_output(self._fall_silent):
                    self._live.update(self._bar(), refresh=True)
        elif first or self._due(now):
            self._shown = now
            self._print(*self._latest)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Return a context for recurring work other than time steps, such as writing fields. Its wall time does not
        count in the speed of the time steps."""
        began = self._clock()
        try:
            yield
        finally:
            self.estimator.aside(self._clock() - began)

    def note(self, message: str) -> None:
        """Print the line `message` on the console, above the progress bar if there is one."""
        with ignore_broken_output(self._fall_silent):
            self._console.print(message, markup=False, highlight=False, soft_wrap=True)

    def _fall_silent(self) -> None:
        self._console.quiet = True

    def _due(self, now: float) -> bool:
        since = now - self._shown
        fraction = self.estimator.fraction or 0.0
        if since >= max(10.0, (now - self._started) / 50) or (since >= 1.0 and fraction - self._shown_fraction >= 0.05):
            self._shown_fraction = fraction
            return True
        return False

    def _numbers(self, step: int, time: float, dt: float | None) -> list[str]:
        numbers = [f"step {step}", f"t {time:.6g}"]
        numbers.append("dt local" if dt is None else f"dt {dt:.3e}")
        if self._residual is not None:
            numbers.append(f"residual {self._residual:.3e}")
        if self.point_steps_per_s:
            numbers.append(f"{self.point_steps_per_s / 1e6:.3g} Mpoint-steps/s")
        return numbers

    def _print(self, step: int, time: float, dt: float | None, last: bool = False) -> None:
        fraction, left = self.estimator.fraction, self.remaining
        line = self._numbers(step, time, dt)
        if fraction is not None:
            # Rounded down, so that 100 % appears at the end only.
            line.append(f"{math.floor(100 * fraction + 1e-9)} %")
        if last:
            line.append(f"{duration(self.elapsed_time)} in all")
        elif left is not None:
            line.append(f"{duration(left)} left")
        self.note("  ".join(line))

    def _bar(self) -> "Group":
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        fraction, left = self.estimator.fraction, self.remaining
        row = Table.grid(padding=(0, 1), expand=True)
        row.add_column(no_wrap=True, overflow="ellipsis")
        row.add_column(ratio=1, min_width=10)
        row.add_column(no_wrap=True, justify="right")
        done = fraction is not None and fraction >= 1 - 1e-12
        left_text = f"{duration(left)} left" if left is not None and not done else ""
        percent = "" if fraction is None else f"{math.floor(100 * fraction + 1e-9)} %"
        row.add_row(
            Text(self.title, style="bold"),
            ProgressBar(total=1.0, completed=fraction or 0.0, pulse=self._latest is None),
            Text("   ".join(part for part in (percent, f"{duration(self.elapsed_time)} run", left_text) if part)),
        )
        return Group(row, Text("  ".join(self._numbers(*self._latest)) if self._latest else "starting", style="dim"))


def duration(seconds: float) -> str:
    """Return a duration in `seconds` as text: minutes:seconds, hours:minutes:seconds, or days and hours."""
    total = round(seconds)
    minutes, s = divmod(total, 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    if days:
        return f"{days} d {h} h"
    return f"{h}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"
