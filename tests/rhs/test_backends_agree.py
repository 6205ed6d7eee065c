"""Every kernel, of passive scalars too, in the precisions that keep fields in FP32, and that none writes where it may
only read: cpu, emulated CUDA form, and a GPU where there is one. In double precision the group "kernels" of
`hiresx verify` compares them, as a test too."""

import numpy as np
import pytest

from hiresx.device import Configuration, backend
from hiresx.device.cuda import obstacle
from hiresx.device.wrappers import GPU_KINDS
from hiresx.verify import kernel_data

# Kernels of its own on two backends: 20 s to compile.
pytestmark = pytest.mark.slow

CONFIGURATIONS = {
    "fp32": Configuration(viscosity="constant", precision="fp32", schmidt=(0.7, 0.4)),
    "mixed": Configuration(viscosity="constant", precision="mixed", schmidt=(0.7, 0.4)),
    "differences": Configuration(viscosity="constant", precision="differences", reference=(1.0, 0.1, 0.2, 0.3, 2.0)),
}

# Limits of single precision that are not 1e-6: extrapolations sum up differences with weights of up to 15, terms that
# are larger than the sum. Multiply-adds that are fused or not round these terms differently.
_EXTRAPOLATING = (
    "viscous_extrapolate", "no_slip_bend", "subsonic_primitives", "subsonic_flux", "subsonic_scalar_flux",
)  # fmt: skip
LIMITS = dict.fromkeys(_EXTRAPOLATING, 3e-6) | {"axisymmetric_friction_limit": 1e-5}


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def programs(request):
    rooms = [backend(name) for name in ("cpu", "emulated", "cuda") if name != "cuda" or not obstacle()]
    return [(room, room.compile(CONFIGURATIONS[request.param])) for room in rooms]


def test_all_have_the_same_kernels(programs):
    names = [
        {name for name, found in program.signatures.items() if found.kind not in ("CPU_KERNEL", *GPU_KINDS)}
        for _, program in programs
    ]
    assert len(names[0]) > 20 and all(other == names[0] for other in names[1:])


def test_single_precision_agrees_and_what_is_given_stays(programs):
    for name, signature in programs[1][1].signatures.items():
        able = [(room, program) for room, program in programs if name in program.signatures]
        for values in kernel_data.variants(signature, programs[0][1].real):
            results = []
            for room, program in able:
                passed = {n: room.to_device(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
                program.launch(name, kernel_data.extent(signature), **passed)
                results.append({n: room.to_host(p) if hasattr(p, "shape") else p for n, p in passed.items()})
            written = 0
            for kind, called in signature.arguments:
                reference = results[0][called]
                if kind.endswith("*") and not kind.startswith("const"):
                    assert np.all(np.isfinite(reference)), (name, called)
                    written += not np.array_equal(reference, values[called])
                    for other in results[1:]:
                        error = np.max(np.abs(other[called] - reference)) / np.max(np.abs(reference))
                        assert error <= LIMITS.get(name, 1e-6), (name, called)
                else:
                    for found in results:
                        assert np.array_equal(found[called], values[called]), (name, called)
            assert written, name
