"""The former name of `hiresx.exact.shear_layer`, kept for one version."""

import warnings

from hiresx.exact.shear_layer import *  # noqa: F403

warnings.warn("hiresx.verify.shear_layer is hiresx.exact.shear_layer now", FutureWarning, stacklevel=2)
