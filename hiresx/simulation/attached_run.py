"""A run: a solver with its attachments, which are views of its blocks, outputs and monitors."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hiresx.case import Case
from hiresx.decomposition import Domain
from hiresx.device.interface import Backend
from hiresx.mpi.communicator import Communicator
from hiresx.output.fields.field_output import FieldOutput
from hiresx.output.saved import checkpoint
from hiresx.output.saved.attachment import Attachment
from hiresx.output.watch import monitors as watch
from hiresx.simulation import blow_up_error
from hiresx.simulation.block_view import BlockView
from hiresx.simulation.continuation import Continuation
from hiresx.solver import Solver
from hiresx.solver.block_states import Reused
from hiresx.solver.initial_flow import Flow


class AttachedRun:
    """Base class of `hiresx.Simulation` that builds a solver and attaches outputs and monitors to it. `out`: the run
    directory, or None. `blocks`: the boxes of nodes of this rank. `attachments`: outputs and monitors. `history`: an
    entry for each step that was reported, with the numbers of monitors."""

    case: Case
    comm: Communicator
    out: Path | None
    backend: Backend
    solver: Solver
    blocks: list[BlockView]
    attachments: list[Attachment]
    history: list[dict[str, Any]]
    monitors: tuple[Callable[..., Mapping[str, float] | None], ...]
    _open: list[Attachment]
    _continuation: Continuation
    _profiles: dict[str, Callable[..., Any]]
    _transport: str

    def _build(self, ground: Domain, flow: Flow | None, reused: Reused | None = None) -> None:
        """Return the solver of a decomposition, and its attachments. `reused`: data of the solver before, which must
        not be used afterwards; None for a first solver."""
        self._ground = ground
        self.solver = Solver(
            self.case, self.backend, profiles=self._profiles, domain=ground, transport=self._transport, flow=flow,
            reused=reused,
        )  # fmt: skip
        self.blocks = [BlockView(self.solver, b) for b in range(len(self.solver.states))]
        self._trace = blow_up_error.Trace(self.solver)

    @property
    def restarted(self) -> list[str]:
        """Lines of text that name the checkpoint from which the run continues and the files that were ignored. The run
        prints them and then empties the list."""
        return self._continuation.notes

    @property
    def profiles(self) -> dict[str, Any]:
        """The functions, by name, that the user gave to the simulation in place of the functions of case.py with these
        names, for boundary conditions and sponges."""
        return dict(self._profiles)

    @property
    def restarts(self) -> list[dict[str, Any]]:
        """Records of the restarts of this run and of the runs that it continues, as in run.json."""
        return self._continuation.restarts

    @property
    def retries(self) -> list[dict[str, Any]]:
        """Records of the failures of the flow after which the run returned to a checkpoint, as in run.json."""
        return self._continuation.retries

    @property
    def time(self) -> float:
        """Time that the run has reached, in L / c_ref (0 with local time steps)."""
        return self.solver.time

    @property
    def step_count(self) -> int:
        """Number of time steps that the run has made so far."""
        return self.solver.steps

    def _build_attachments(self) -> list[Attachment]:
        return [FieldOutput(self.case, self.out), *watch.build(self.case, self)]

    def _launch_ahead(self, count: int) -> None:
        """Prepare `count` steps: let the launches of the samples that are due after them follow on the device, so that
        it computes these while the host comes to know of the steps."""
        steps, step = self.solver.device_resident_steps, self.step_count + count

        def launch() -> None:
            if step % self.case.monitor.every == 0:
                self.solver.step_size.seek_norms()
            for attachment in self.attachments:
                attachment.launch_ahead(self.solver, step)

        if self.comm.size == 1 and steps.possible:
            steps.ahead(launch)

    def _check(self) -> None:
        """Raises BlowUp for an invalid flow."""
        blow_up_error.check(self.solver)

    def _restore_attachments(self, place: Path) -> None:
        """Pass the data that attachments have captured at `place` to them."""
        captured = self._continuation.captured
        with self.comm.together(), checkpoint.reading_contents(place):
            for attachment in self.attachments:
                if attachment.name in captured:
                    attachment.restore(captured[attachment.name])
        self._continuation.captured = {}  # of a file that may be removed

    def _open_attachments(self, restarted: bool) -> None:
        self._open = []
        for attachment in self.attachments:
            self._open.append(attachment)
            attachment.begin(self.solver, restarted)

    def _finish_attachments(self) -> list[Exception]:
        """Finish each attachment once, also if others fail. Returns the errors."""
        errors = []
        while self._open:
            try:
                self._open.pop(0).finish(self.solver)
            except Exception as error:
                errors.append(error)
        return errors
