"""The former name of `hiresx.exact`, kept for one version."""

import warnings

from hiresx.exact import *  # noqa: F403

warnings.warn("hiresx.verify.exact is hiresx.exact now", FutureWarning, stacklevel=2)
