"""Halo exchange between the blocks of one process: a copy on the device by index lists."""

from hiresx.decomposition import HaloList
from hiresx.device.state import BlockState


class HaloExchange:
    """Fills the ghosts of every connected face from its donor.

    `state()` exchanges the conservative state, `fluxes(per_block)` the normal viscous fluxes, where the donor's may run
    along another direction or the other way. No edge or corner is exchanged: no kernel reads one.
    """

    def __init__(self, backend, program, states: list[BlockState], lists: list[HaloList]):
        self._launch = program.launch
        self._links = []
        for entry in lists:
            to, source = backend.to_device(entry.destination), backend.to_device(entry.source)
            self._links.append((entry, to, source, states[entry.donor], states[entry.block]))
        self._state_calls = [
            (
                "copy_halo", (len(entry.destination), 5, 1), to, source, donor.q, donor.variable_stride, own.q,
                own.variable_stride, 1.0,
            )
            for entry, to, source, donor, own in self._links
        ]  # fmt: skip
        self._jacobian_calls = [
            (
                "copy_halo", (len(entry.destination), 1, 1), to, source, donor.jacobian, donor.variable_stride,
                own.jacobian, own.variable_stride, 1.0,
            )
            for entry, to, source, donor, own in self._links
        ]  # fmt: skip

    def state(self) -> None:
        for call in self._state_calls:
            self._launch(*call)

    def jacobian(self) -> None:
        for call in self._jacobian_calls:
            self._launch(*call)

    def fluxes(self, fluxes: list[tuple]) -> None:
        """`fluxes[block][direction]`: 4 variables each."""
        for entry, to, source, donor, own in self._links:
            self._launch(
                "copy_halo", (len(entry.destination), 4, 1), to, source,
                fluxes[entry.donor][entry.donor_direction], donor.variable_stride,
                fluxes[entry.block][entry.direction], own.variable_stride, float(entry.sign),
            )  # fmt: skip
