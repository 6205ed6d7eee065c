"""The former place of `hiresx.BlowUp`; gone in the next version."""

import warnings

from hiresx.simulation.blow_up import BlowUp as BlowUp

warnings.warn("hiresx.blow_up has moved: use hiresx.BlowUp", DeprecationWarning, stacklevel=2)
