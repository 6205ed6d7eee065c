"""The viscosity laws, one class each. The formula of a class is the only definition of its law. It is used by the
kernels, the forces on walls, the estimate of the time step, and the documentation of the case file."""

import operator
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from hiresx.case.formula import Formula
from hiresx.case.model import Positive, Table


class ViscosityLaw(Table):
    """Base class of viscosity laws. `formula` is mu / mu_ref (see hiresx.case.formula) as a function of T, the
    temperature over the reference temperature. It may contain the keys of the class, except `law`, which is the name of
    the law.

    Each subclass in this file is a law. Raises TypeError for a subclass whose formula is not valid.
    """

    formula: ClassVar[str]
    _formula: ClassVar[Formula]

    if TYPE_CHECKING:  # every law defines its own key

        @property
        def law(self) -> str:
            """Name of the viscosity law, as in the key `law`, such as "sutherland"."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        try:
            cls._formula = Formula(cls.formula, "T", tuple(name for name in cls.model_fields if name != "law"))
        except (AttributeError, ValueError) as error:
            raise TypeError(f"{cls.__name__}.formula: {error}") from None

    @property
    def parameters(self) -> tuple[tuple[str, float], ...]:
        """The name and the value of each parameter in the formula of the viscosity law."""
        return tuple((name, float(getattr(self, name))) for name in self._formula.parameters)

    def viscosity(self, temperature: np.ndarray) -> np.ndarray:
        """Return the viscosity mu / mu_ref at `temperature`, the temperature over the reference temperature. The result
        has the shape of `temperature`."""
        return self._formula.values(temperature, dict(self.parameters))

    def code(self) -> str:
        """Return the viscosity law as the source code of the C++ function `viscosity(T)`, which the kernels call."""
        return f"// mu = {self.formula}\n{self._formula.code('viscosity', dict(self.parameters))}"


class ConstantViscosity(ViscosityLaw):
    """The viscosity of the reference state everywhere."""

    law: Literal["constant"] = "constant"
    formula = "1"


class PowerViscosity(ViscosityLaw):
    """A power of the temperature."""

    law: Literal["power"] = "power"
    exponent: float = Field(0.75, description="exponent of the temperature")
    formula = "T**exponent"


class SutherlandViscosity(ViscosityLaw):
    """Sutherland's law."""

    law: Literal["sutherland"] = "sutherland"
    sutherland_temperature: Positive = Field(
        110.4 / 288.15, description="S / reference temperature; the default is air, 110.4 K, at 288.15 K"
    )
    formula = "T * sqrt(T) * (1 + sutherland_temperature) / (T + sutherland_temperature)"


if TYPE_CHECKING:
    VISCOSITIES: dict[str, type[ViscosityLaw]]
    Viscosity = ViscosityLaw  # type checkers need a plain type in place of the computed union


def __getattr__(name: str) -> Any:
    """Return VISCOSITIES, a dictionary of all laws of this file, or Viscosity, their union."""
    found = [model for model in ViscosityLaw.__subclasses__() if model.__module__ == __name__]
    if name == "VISCOSITIES":
        return {model.model_fields["law"].default: model for model in found}
    if name == "Viscosity":
        return Annotated[reduce(operator.or_, found), Field(discriminator="law")]
    raise AttributeError(f"module {__name__} has no attribute {name}")
