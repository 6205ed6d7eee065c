"""Arguments that the check of all kernels (`hiresx verify kernels`) makes."""

import numpy as np
import pytest

from hiresx.device import Configuration
from hiresx.device.arguments import is_pointer
from hiresx.device.wrappers import generate
from hiresx.verify import kernel_data


@pytest.mark.parametrize(
    "configuration",
    [Configuration(), Configuration(viscosity="constant", inviscid="regularised")],
    ids=["plain", "regularised"],
)
def test_pointers_are_given_arrays_and_numbers_numbers(configuration):
    _, signatures = generate(configuration, "cpu")
    assert len(signatures) > 20
    for name, signature in signatures.items():
        if signature.kind == "CPU_KERNEL":  # not among those that are compared
            continue
        values = next(kernel_data.variants(signature, configuration.real), {})
        wrong = [
            called
            for kind, called in signature.arguments
            if values and values[called] is not None and isinstance(values[called], np.ndarray) != is_pointer(kind)
        ]
        assert not wrong, name
