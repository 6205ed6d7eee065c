"""The former place of `hiresx.Terminated`; gone in the next version."""

import warnings

from hiresx.base.signals import Terminated as Terminated

warnings.warn("hiresx.signals has moved: use hiresx.Terminated", DeprecationWarning, stacklevel=2)
