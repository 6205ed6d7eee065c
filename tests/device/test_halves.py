"""Inverses of diagonal blocks in FP16 (kernels/implicit/halves.h)."""

import numpy as np
import pytest
from kernels_alone import with_implicit_program

from hiresx.device.configuration import Configuration
from hiresx.device.cpu import CpuBackend
from hiresx.device.emulated import EmulatedBackend
from hiresx.equations.diffusivity import transported_schmidt
from hiresx.equations.storage import packed_reals
from hiresx.solver.coloured_arrays import in_grid_order, in_halves, in_precision

PROGRAM = '#include "gas.h"\n#include "implicit/recorded.h"\n'
BACKENDS = {"cpu": CpuBackend, "emulated": EmulatedBackend}
SHAPE = (2, 3, 21)
PLACE = {"o": 0, "sj": SHAPE[2], "sk": SHAPE[1] * SHAPE[2], "sv": int(np.prod(SHAPE))}
# By the number of variables of a node
MODELS = {5: "none", 6: "spalart_allmaras", 7: "sst"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return with_implicit_program(tmp_path_factory.mktemp("halves"), PROGRAM)


@pytest.mark.parametrize("variables", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (6, 7))])
def test_inverses_have_the_rounding_of_halves(root, backend, variables):
    """In any unit of the equations. The inverse of a singular block has no number."""
    device, n, name = BACKENDS[backend](root), variables, MODELS[variables]
    model = {"viscosity": "sutherland", "turbulence": name, "schmidt": transported_schmidt(name)} if n > 5 else {}
    program = device.compile(
        Configuration(
            program="implicit", implicit_storage="none", stored_directions=0, sweep_precision="fp16",
            positivity="none", **model,
        )
    )  # fmt: skip
    rng = np.random.default_rng(1)
    blocks = np.eye(n)[..., None, None, None] + 0.1 * rng.normal(size=(n, n, *SHAPE))
    blocks *= 10.0 ** rng.integers(-30, 30, size=SHAPE)
    blocks[:, 2, 0, 1, 4] = 0.0
    singular = np.all(blocks == 0.0, axis=0).any(axis=0)
    kept = device.zeros((packed_reals(n * n, "fp16"), *SHAPE))
    program.launch(
        "invert_recorded", SHAPE[::-1], **PLACE, numbers=np.zeros(SHAPE, np.int32), inverses=kept,
        blocks=coloured(blocks.reshape(n * n, *SHAPE)),
    )  # fmt: skip
    found = in_halves(kept, n) if backend == "emulated" else in_precision(kept, n * n, "fp16").reshape(blocks.shape)
    assert singular.sum() == 1 and np.isnan(found[..., singular]).all()
    wanted = np.moveaxis(np.linalg.inv(np.moveaxis(blocks[..., ~singular], -1, 0)), 0, -1)
    error = np.abs(found[..., ~singular] - wanted)
    size = np.abs(wanted).sum(axis=(0, 1))
    assert (error > 2.0**-13 * np.abs(wanted)).any()
    assert (error <= 2.0**-11 * np.abs(wanted) + 2.0**-39 * size).all()


def coloured(array: np.ndarray) -> np.ndarray:
    """An array (..., i) in the order of the sweeps."""
    found = np.empty_like(array)
    row = array.shape[-1]
    place = in_grid_order(np.arange(row))
    found[..., place] = array
    return found
