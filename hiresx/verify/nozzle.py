"""The former name of `hiresx.exact.nozzle`, kept for one version."""

import warnings

from hiresx.exact.nozzle import *  # noqa: F403

warnings.warn("hiresx.verify.nozzle is hiresx.exact.nozzle now", FutureWarning, stacklevel=2)
