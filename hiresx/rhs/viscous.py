"""Viscous right-hand side in the three launches between which the ghosts are filled."""

from hiresx.device.state import BlockState

# primitives (u, v, w, T) and three directions of four fluxes
VARIABLES = 16


class Viscous:
    """`primitives()`, `flux()` and `difference()` of one block; `w` (4) and `fluxes[d]` (4 each) are views of its work
    array. The ghosts of `w` are filled between the first two, those of `fluxes` between the last two."""

    def __init__(self, program, state: BlockState, reynolds: float):
        s, sv = state, state.variable_stride
        self.w = s.work[:4]
        self.fluxes = tuple(s.work[4 + 4 * d : 8 + 4 * d] for d in range(3))
        derivative_strides = tuple(stride if n > 1 else 0 for stride, n in zip(s.strides, s.size, strict=True))
        padded = tuple(reversed(s.shape))
        all_fluxes = s.work[4:16]
        self._primitives = ("viscous_primitives", padded, 0, s.strides[1], s.strides[2], sv, s.q, self.w)
        self._flux = (
            "viscous_flux", s.size, *s.place, *derivative_strides, sv, self.w, s.metrics, s.jacobian,
            1.0 / reynolds, all_fluxes,
        )  # fmt: skip
        self._difference = ("viscous_difference", s.size, *s.place, *derivative_strides, sv, all_fluxes, s.r)
        self._launch = program.launch

    def primitives(self) -> None:
        self._launch(*self._primitives)

    def flux(self) -> None:
        self._launch(*self._flux)

    def difference(self) -> None:
        self._launch(*self._difference)
