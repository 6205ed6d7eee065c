"""The viscous terms at faces with subsonic inflow or outflow (kernels/boundary/subsonic_face.h)."""

from typing import Any

from hiresx.rhs.face_condition import FaceCondition


class SubsonicFace(FaceCondition):
    """Base class of the boundary conditions of faces at whose nodes the flow equations are solved for some or all
    variables. Viscous flow needs a condition there: the derivative of the viscous flux along the grid line is zero at
    the nodes."""

    def viscous_primitives(self, w: Any) -> None:
        """Set the ghost layers of `w` (variables, k, j, i), the primitive variables of the viscous terms, for zero
        derivative of the viscous flux at the face."""
        self._launch("subsonic_primitives", self._box, **self._face, q=self.state.q, w=w)

    def viscous_state(self) -> None:
        """Set the ghost layers of the conservative state for the viscous terms, for zero derivative of the viscous flux
        at the face."""
        self._launch("subsonic_ghost_state", self._box, **self._face, q=self.state.q)

    def viscous_flux(self, fluxes: Any) -> None:
        """Set the ghost layers of the viscous fluxes, `fluxes[d]` (variables, k, j, i) along index direction d, such
        that their derivative along the grid line is zero at the face."""
        s, d = self.state, self._direction
        self._launch("subsonic_flux", self._box, **self._face, m=s.areas[d], jacobian=s.jacobian, q=s.q, flux=fluxes[d])
