"""Numbers of nodes in chunks of 16 bytes (kernels/implicit/chunks.h): where they lie, and addresses of no chunk."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from kernels_alone import with_implicit_program

from hiresx.device.configuration import Configuration
from hiresx.device.cpu import CpuBackend
from hiresx.device.emulated import EmulatedBackend
from hiresx.solver.coloured_arrays import in_grid_order, in_precision

# A number of nodes that packs take one by one, too; of numbers that fill chunks and that do not.
NODES, ROW, COUNTS = 21, 21, (5, 16, 25)
PROGRAM = '#include "gas.h"\n#include "implicit/chunks.h"\n' + "".join(
    f"""
VECTOR_KERNEL(copy_{n}, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<{n}> given,
              field<{n}> kept) {{
    T found[{n}];
    load_numbers<{n}>(given, sv, o + i, 0, found);
    store_numbers_where<{n}>(found[0] > T(real(0)), kept, sv, o + i, found);
}}
KERNEL(keep_{n}, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<{n}> given, field<{n}> kept) {{
    for (int n = 0; n < {n}; ++n) node_numbers<{n}, real>{{kept, sv, o + i}}[n] = given[n * sv + o + i];
}}
"""
    for n in COUNTS
)
BACKENDS = {"cpu": CpuBackend, "emulated": EmulatedBackend}
PLACE = {"o": 0, "sj": ROW, "sk": NODES, "sv": NODES}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return with_implicit_program(tmp_path_factory.mktemp("chunks"), PROGRAM)


@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_numbers_lie_in_chunks_on_a_gpu_and_in_rows_on_a_cpu(root, backend, precision):
    """Where kernels of single numbers put them, those of chunks find them, and so does the host."""
    device = BACKENDS[backend](root)
    program = device.compile(
        Configuration(
            program="implicit", implicit_storage="none", precision=precision, sweep_precision=precision,
            positivity="none",
        )
    )  # fmt: skip
    size = 1 if backend == "cpu" else {"fp64": 2, "fp32": 4}[precision]
    kind = {"fp64": "float64", "fp32": "float32"}[precision]
    for count in COUNTS:
        given, kept, copy = (device.zeros((count, 1, 1, NODES), kind) for _ in range(3))
        given[...] = 1 + np.arange(count)[:, None, None, None] + np.arange(NODES) / 32
        given[0, ..., 3] = 0.0
        program.launch(f"keep_{count}", (NODES, 1, 1), **PLACE, given=given, kept=kept)
        flat, wanted = kept.reshape(-1), given.reshape(count, NODES)
        whole = count // size * size
        np.testing.assert_array_equal(flat[: 2 * size], np.concatenate([wanted[:size, 0], wanted[:size, 1]]))
        np.testing.assert_array_equal(flat[whole * NODES :], wanted[whole:].reshape(-1))
        found = in_precision(np.asarray(kept), count, precision, device.chunk_bytes)
        np.testing.assert_array_equal(found, in_grid_order(np.asarray(given)))
        program.launch(f"copy_{count}", (NODES, 1, 1), **PLACE, given=kept, kept=copy)
        copied = in_precision(np.asarray(copy), count, precision, device.chunk_bytes)
        there = found[0] > 0
        assert not copied[:, ~there].any() and (~there).sum() == 1
        np.testing.assert_array_equal(copied[:, there], found[:, there])


def test_a_launch_refuses_what_begins_elsewhere(backend):
    device = BACKENDS[backend]()
    program = device.compile(
        Configuration(
            program="products", implicit_storage="none", stored_directions=0, positivity="none", flux="van_leer"
        )
    )
    shape = (3, 3, 5)
    numbers = {
        "o": 21, "sj": 5, "sk": 15, "di": 1, "dj": 5, "dk": 15, "first": 0, "colour": 0, "sv": 45,
        "inverse_reynolds": 0.0,
    }  # fmt: skip
    sizes = {"records": 19, "inverses": 25, "right": 5, "update": 5}
    fields = {name: device.zeros((count, *shape)) for name, count in sizes.items()}
    program.call("product_sweep", (1, 1, 1), **numbers, **fields)
    for name, count in sizes.items():
        moved = device.zeros((count * 45 + 1,))[1:].reshape(count, *shape)
        if name == "right":
            program.call("product_sweep", (1, 1, 1), **numbers, **fields | {name: moved})
            continue
        message = (
            rf"^kernel product_sweep, argument {name} \(.*real \*\): needs an array that begins at a multiple of 16"
        )
        with pytest.raises(TypeError, match=message):
            program.call("product_sweep", (1, 1, 1), **numbers, **fields | {name: moved})


@pytest.mark.parametrize("kernel", ["load", "store"])
def test_an_emulated_chunk_at_another_address_ends_the_process(root, kernel):
    moved, other = ("given", "kept") if kernel == "load" else ("kept", "given")
    script = f"""
from pathlib import Path
from hiresx.device.configuration import Configuration
from hiresx.device.emulated import EmulatedBackend
device = EmulatedBackend(Path({str(root)!r}))
program = device.compile(Configuration(program="implicit", implicit_storage="none", positivity="none"))
{moved} = device.zeros((16 * {NODES} + 1,))[1:].reshape(16, 1, 1, {NODES})
{other} = device.zeros((16, 1, 1, {NODES}))
print("begins", flush=True)
program.launch("copy_16", ({NODES}, 1, 1), **{PLACE!r}, given=given, kept=kept)
print("ends", flush=True)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.stdout == "begins\n" and found.returncode == -signal.SIGABRT, found.stderr
