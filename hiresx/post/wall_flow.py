"""Samples of the flow at wall nodes: from the newest checkpoint of a run, or from the samples along the walls that a
`[[force]]` has stored."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hiresx.base.plural import plural
from hiresx.case import Case
from hiresx.case.monitors import Force
from hiresx.errors import HiresxError
from hiresx.output.saved import checkpoint
from hiresx.results import Run
from hiresx.results.run_reader import nearest_time

if TYPE_CHECKING:
    from hiresx.output.watch.monitors.force import ForceMonitor
    from hiresx.simulation import Simulation


@dataclass(frozen=True, eq=False)
class WallFlow:
    """Samples of the flow at n nodes on the walls of the `[[force]]` table `spec`, in the order of block, k, j, i.
    `case`: the case, with its default values filled in. `blocks`: names of all blocks. `where` (4, n): the number of
    the block and the indexes i, j, k of each node. `places` (3, n): its coordinates, in units of the length scale L.
    `normals` (3, n): the unit normals of the wall that point out of the gas. `steps` and `times` (samples,): the step
    number and the time of each sample. `sample(m)` returns sample number m as arrays (n,) by the names of
    `wall_nodes.COLUMNS`."""

    case: Case
    spec: Force
    blocks: list[str]
    where: np.ndarray
    places: np.ndarray
    normals: np.ndarray
    steps: np.ndarray
    times: np.ndarray
    sample: Callable[[int], Mapping[str, np.ndarray]]

    @property
    def has_times(self) -> bool:
        """Whether the times of the samples increase. With local time steps they do not."""
        return bool((np.diff(self.times) > 0).all())


def of_checkpoint(path: Path, force: str | None) -> WallFlow:
    """Return the flow at wall nodes in the newest checkpoint of the run in the folder `path`, on the walls of the
    [[force]] with the name `force`. If `force` is None, the walls are those of the only [[force]], or all walls if the
    case has none. The run is not changed. Raises HiresxError for a force that does not exist, if there is no
    checkpoint, and if the grid of the run was given in Python."""
    # Imported here, because no other command needs the solver, whose import takes a tenth of a second.
    from hiresx.simulation import Simulation
    from hiresx.simulation.continuation import kept_case

    found = checkpoint.find(path)
    if found.container.values.get("grid_given"):
        raise HiresxError(
            f"{found.container.path} does not contain its grid, which was given in Python",
            "samples that a [[force]] with a distribution has stored contain the places of their nodes: --time or "
            "--mean",
        )
    simulation = Simulation(kept_case(found), backend="cpu", restart=replace(found, directory=None))
    spec, monitor = _monitor(simulation, force)
    nodes, solver = monitor.nodes, simulation.solver
    values = nodes.measure()
    return WallFlow(
        simulation.case, spec, [block.name for block in solver.decomposition.blocks], nodes.where, nodes.places,
        nodes.normals, np.array([solver.steps]), np.array([float(solver.time)]), lambda _: values,
    )  # fmt: skip


def of_samples(run: Run, force: str | None) -> WallFlow:
    """Return the stored samples of the flow along the walls of a force monitor, a table [[force]] of the case. `force`:
    its name; None: the only one with samples. Raises HiresxError if there are no samples, and for None if several
    monitors have some."""
    stored = run.stored_wall(_choose_name(run.walls, force, "wall distribution"))
    if not stored.samples:
        raise HiresxError(f"{stored.path} has no sample yet", "continue the run")
    case = Case.model_validate(run.case)
    return WallFlow(
        case, next(spec for spec in case.force if spec.name == stored.name), stored.blocks, stored.where,
        stored.fixed_columns("x", "y", "z").T, stored.fixed_columns("normal_x", "normal_y", "normal_z").T,
        np.array(stored.records["step"], dtype=np.int64), np.array(stored.records["time"], dtype=float), stored.sample,
    )  # fmt: skip


def _choose_name(names: list[str], name: str | None, what: str) -> str:
    """Return the `name` that is requested, or the only one. Raises HiresxError if there are several of `what`."""
    if name is None and len(names) > 1:
        raise HiresxError(f"there are {plural(len(names), what)}", f"name one: {', '.join(names)}")
    return name if name is not None else names[0] if names else ""


def _monitor(simulation: "Simulation", name: str | None) -> "tuple[Force, ForceMonitor]":
    """Return the table and the monitor of the force; without a name those of all walls."""
    from hiresx.output.watch.monitors.force import ForceMonitor

    forces = [monitor for monitor in simulation.attachments if isinstance(monitor, ForceMonitor)]
    names = [monitor.history.name for monitor in forces]
    name = _choose_name(names, name, "force")
    if name and name not in names:
        there = f"it has {', '.join(names)}" if names else "it has none: leave the name out, for all walls"
        raise HiresxError(f'the case has no force "{name}"', there)
    if not forces:
        spec = Force(name="all")
        return spec, ForceMonitor("walls", spec, simulation.solver, None)
    return next(spec for spec in simulation.case.force if spec.name == name), forces[names.index(name)]


def nearest(flow: WallFlow, time: float) -> int:
    """Return the index of the sample of `flow` nearest to `time`, in units of L / c_ref (length scale over sound
    speed). Raises HiresxError for samples whose times do not increase (local time steps), and for a time outside the
    range of the samples by more than their largest interval."""
    _check_timed(flow, "--time")
    return nearest_time(flow.times, time, "there is no sample")


def mean_weights(flow: WallFlow, start: float | None, end: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the indexes (n,) of the samples of `flow` from the time `start` to `end` (None for no limit), and their
    weights (n,) in a mean over time by the trapezoidal rule. The times are in units of L / c_ref, length scale over
    sound speed. With local time steps the samples are weighted by steps. Raises HiresxError if there are no samples in
    this range."""
    if start is not None or end is not None:
        _check_timed(flow, "--from and --to")
    times = flow.times if flow.has_times else flow.steps.astype(float)
    low, high = (-np.inf if start is None else start), (np.inf if end is None else end)
    chosen = np.flatnonzero((times >= low) & (times <= high))
    if not chosen.size:
        raise HiresxError("there is no sample in this range", f"there are some from {times[0]:g} to {times[-1]:g}")
    steps = np.diff(times[chosen])
    return chosen, 0.5 * (np.append(steps, 0) + np.append(0, steps)) if steps.size else np.ones(1)


def _check_timed(flow: WallFlow, asked: str) -> None:
    if not flow.has_times:
        raise HiresxError(
            f"{asked}: with local time steps samples have no time", "leave it out; --mean alone is over all samples"
        )


def mean_and_rms(samples: Iterable[tuple[float, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of weighted samples and the root mean square of their fluctuations, two arrays (m, n). `samples`:
    pairs of a positive weight and an array (m, n). The method has no loss of digits by cancellation (West 1979)."""
    total, mean, squares = 0.0, np.zeros(()), np.zeros(())
    for weight, values in samples:
        total += weight
        change = values - mean
        mean = mean + weight / total * change
        squares = squares + weight * change * (values - mean)
    return mean, np.sqrt(squares / total)
