"""The former module of `hiresx.Terminated`, kept for one version."""

import warnings

from hiresx.base.termination_signals import Terminated as Terminated

warnings.warn("hiresx.signals has moved: use hiresx.Terminated", DeprecationWarning, stacklevel=2)
