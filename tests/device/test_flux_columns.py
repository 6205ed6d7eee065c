"""Derivatives of the flux through a face by columns of dual numbers (kernels/implicit/flux_columns.h), in packs, of
split fluxes by one part of them alone."""

import numpy as np
import pytest
from kernels_alone import with_implicit_program

from hiresx.device.configuration import Configuration
from hiresx.device.cpu import CpuBackend

FACES = 24
PROGRAM = """
#include "gas.h"
#include "half_point.h"
#include "implicit/flux_columns.h"
VECTOR_KERNEL(probe, int i, int j, int k, int n, const real *left, const real *right, const real *m, real *f,
              real *by_left, real *by_right) {
    T l[5], r[5], area[3], flux[5], block[25];
    for (int v = 0; v < 5; ++v) l[v] = load<T>(left + v * n + i), r[v] = load<T>(right + v * n + i);
    for (int c = 0; c < 3; ++c) area[c] = load<T>(m + c * n + i);
    numerical_flux(l, r, area, flux);
    for (int v = 0; v < 5; ++v) store(f + v * n + i, flux[v]);
    flux_derivative<true>(l, r, area, T(real(1)), real(0), T(real(0)), TransportedConstants<T>(), block);
    for (int e = 0; e < 25; ++e) store(by_left + e * n + i, block[e]);
    flux_derivative<false>(l, r, area, T(real(1)), real(0), T(real(0)), TransportedConstants<T>(), block);
    for (int e = 0; e < 25; ++e) store(by_right + e * n + i, block[e]);
}
"""


@pytest.mark.parametrize("flux", ["steger_warming", pytest.param("van_leer", marks=pytest.mark.slow)])
def test_columns_are_differences_of_the_flux(flux, tmp_path):
    root = with_implicit_program(tmp_path, PROGRAM)
    program = CpuBackend(root).compile(Configuration(program="implicit", flux=flux, positivity="none"))
    rng = np.random.default_rng(3)
    sides = []
    for _ in range(2):
        rho, velocity, p = (
            rng.uniform(0.5, 2.0, FACES),
            rng.uniform(-1.5, 1.5, (3, FACES)),
            rng.uniform(0.5, 2.0, FACES),
        )
        sides.append(np.stack([rho, *(rho * velocity), p / 0.4 + rho * (velocity**2).sum(axis=0) / 2]))
    m = rng.uniform(-1.0, 1.0, (3, FACES))

    def probed(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        f, blocks = np.zeros((5, FACES)), [np.zeros((25, FACES)) for _ in range(2)]
        given = {"left": left, "right": right, "m": m, "f": f, "by_left": blocks[0], "by_right": blocks[1]}
        program.launch("probe", (FACES, 1, 1), n=FACES, **given)
        return f, [block.reshape(5, 5, FACES) for block in blocks]

    step, (_, blocks) = 1e-6, probed(*sides)
    for side, variable in np.ndindex(2, 5):
        ends = []
        for sign in (1.0, -1.0):
            changed = [state.copy() for state in sides]
            changed[side][variable] += sign * step
            ends.append(probed(*changed)[0])
        off = np.abs(blocks[side][:, variable] - (ends[0] - ends[1]) / (2 * step)).max()
        assert off < 1e-7 * np.abs(blocks[side]).max()
