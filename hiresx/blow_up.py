"""The former module of `hiresx.BlowUp`, kept for one version."""

import warnings

from hiresx.simulation.blow_up_error import BlowUp as BlowUp

warnings.warn("hiresx.blow_up has moved: use hiresx.BlowUp", DeprecationWarning, stacklevel=2)
