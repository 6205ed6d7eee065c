"""`[[surface]]`: samples of the flow on a surface, for the computation of its far field."""

from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.surfaces import Surface as Spec
from hiresx.decomposition import Decomposition
from hiresx.device.interface import Calls
from hiresx.equations.gas import primitive
from hiresx.output.saved import files
from hiresx.output.watch.device_samples import DeviceMonitor
from hiresx.output.watch.interpolation import Interpolation, locate_places
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.surface_file import KIND, SurfaceFile
from hiresx.output.watch.surface_places import Places, surface


def build(case: Case, simulation: Any) -> list[Monitor]:
    """Return a monitor of the run `simulation` for each table `[[surface]]` of the case. The list is empty without a
    run directory, since the samples are too large for the memory."""
    if simulation.out is None or not case.surface:
        return []
    solver, folder = simulation.solver, simulation.out / KIND.folder
    return [SurfaceMonitor(f"surface.{n}", spec, solver, folder) for n, spec in enumerate(case.surface)]


def check(case: Case, decomposition: Decomposition) -> None:
    """Raise HiresxError for faults in the tables [[surface]] of a case: points outside the grid, and blocks, regions
    and ranges that do not exist. `decomposition`: the blocks of the grid."""
    for n, spec in enumerate(case.surface):
        _find_surface(f"surface.{n}", spec, decomposition)


class SurfaceMonitor(DeviceMonitor):
    """Monitor of the flow on the surface of one table [[surface]], `spec`. `key`: the name of the table in messages.
    `folder`: the folder of the file. Only rank 0 has the samples."""

    def __init__(self, key: str, spec: Spec, solver: Any, folder: Path):
        super().__init__(solver.comm, spec.name, KIND.name, KIND.columns, spec.every, spec.every_time)
        self.name = f"surface.{spec.name}"
        what = f"{key}: {spec.model_dump_json()}"
        found, block, xi = solver.kept(
            ("places", what),
            (solver.decomposition,),
            lambda: files.on_root(solver.comm, lambda: _find_surface(key, spec, solver.decomposition)),
        )
        plane = max(len(b.active) for b in solver.decomposition.blocks) == 2
        form = next(name for name in ("nodes", "box", "cylinder") if getattr(spec, name) is not None)
        self._gamma = solver.case.gas.gamma
        # Samples at other times are not appended to the same file: a far field needs them at equal intervals.
        sampled = f"every = {spec.every}" if spec.every_time is None else f"every_time = {spec.every_time!r}"
        self.history = SurfaceFile(spec.name, found, plane, spec.precision, form, sampled, folder, self._gamma)
        self._interpolation = Interpolation(solver, what, block, xi)
        self.array = self._interpolation.array
        if found.gaps:
            what = "; ".join(found.gaps)
            self.history.notes.append(f'surface "{spec.name}" is not closed: {what}; what passes there is not heard')

    def samples_last_step(self, solver: Any) -> bool:
        """Return False: the last step of a run is sampled only if a sample is due, since a far field needs equal
        intervals."""
        return False  # a far field needs samples at equal intervals

    def calls(self, numbers: Any) -> Calls:
        """Return the kernel launches that interpolate the flow to the points of the surface. They write into the
        attribute `array`, the device array of this monitor; `numbers` is not used."""
        return self._interpolation.calls

    def values(self, numbers: np.ndarray, time: float) -> dict[str, np.ndarray]:
        """Return rho, u, v, w and p at the points of the surface, on rank 0, each an array (points,); an empty
        dictionary on other ranks. `numbers`: the interpolated flow that the launches `calls` computed on this rank.
        `time` is not used. All ranks must call this method."""
        state = self._interpolation.state(numbers)
        return {} if state is None else primitive(self._gamma, state)


def _find_surface(key: str, spec: Spec, decomposition: Decomposition) -> tuple[Places, np.ndarray, np.ndarray]:
    places = surface(key, spec, decomposition)
    if places.block is not None and places.index is not None:
        return places, places.block, places.index
    return places, *locate_places(decomposition, places.at, f'{key} "{spec.name}"')
