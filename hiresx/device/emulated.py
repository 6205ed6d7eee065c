"""The emulated backend: the CUDA text of every kernel, executed on the CPU by kernels/shim.h."""

import ctypes
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from hiresx import kernels
from hiresx.device import thread_pool
from hiresx.device.arguments import CHUNK
from hiresx.device.batch_wrappers import Entry, generate_batched
from hiresx.device.batches import BatchedLaunch, arrange_batches
from hiresx.device.call import Call, Calls
from hiresx.device.compiler import build
from hiresx.device.native import NATIVE_FLAGS, LaunchWork, NativeBackend, NativeProgram
from hiresx.device.wrappers import BLOCK, SINGLE, Shape, kernel_shape


class EmulatedProgram(NativeProgram):
    """Kernels that are launched as CUDA launches them, over the same grid of the same thread blocks. `block`: the
    threads (x, y, z) of a thread block."""

    block = BLOCK
    arranges_at_once = True

    @staticmethod
    def visit(name: str, kind: str) -> tuple[str, tuple[str, ...]]:
        # A row kernel loops over the lanes of its warp itself, a tile kernel over the threads of its block.
        shape = f"hx_shape('{name}', '{kind}', hx_extent, hx_program.block)"
        if kind in ("ROW_KERNEL", "TILE_KERNEL"):
            shape += "[0], (1, 1, 1)"
        return (
            f"hx_ni, hx_nj, hx_nk = hx_extent; (hx_gx, hx_gy, hx_gz), (hx_bx, hx_by, hx_bz) = {shape}",
            ("hx_gx", "hx_gy", "hx_gz", "hx_bx", "hx_by", "hx_bz", "hx_ni", "hx_nj", "hx_nk"),
        )

    def arrange_launches(self, calls: Calls, alone: bool = False) -> tuple[list[LaunchWork], list[int]]:
        """See `NativeProgram.arrange_launches`; in batches where the backend makes them."""
        backend = self._backend
        if not (isinstance(backend, EmulatedBackend) and backend.batches):
            return super().arrange_launches(calls, alone)
        made, waits = arrange_batches(calls, self._shape, lambda array: int(array.ctypes.data))
        level: list[int] = []
        for of_one in waits:
            level.append(1 + max((level[n] for n in of_one), default=-1))
        library = backend.compile_batches(self, {one.entry for one in made if isinstance(one, BatchedLaunch)})
        return [
            self._batch_work(library, one) if isinstance(one, BatchedLaunch) else self.work(one) for one in made
        ], level

    def _shape(self, call: Call) -> Shape:
        assert call.extent is not None  # there are no CPU kernels here
        grid, block = kernel_shape(call.name, call.signature.kind, call.extent, self.block)
        return grid, (1, 1, 1) if call.signature.kind in ("ROW_KERNEL", "TILE_KERNEL") else block

    def _batch_work(self, library: ctypes.CDLL, one: BatchedLaunch) -> LaunchWork:
        words = struct.pack("6q", *one.grid, *one.block)
        for kind, number in one.numbers:
            words += struct.pack("q" if kind in ("int", "long long") else "d", number)
        words += b"".join(struct.pack("P", table.ctypes.data) for table in one.tables)
        function = ctypes.cast(library[f"{one.entry.name}_launch"], ctypes.c_void_p).value
        return LaunchWork(function, words, int(np.prod(one.grid)), SINGLE * int(np.prod(one.block)), one)


class EmulatedBackend(NativeBackend):
    """CUDA's threads, one after the other in every block; blocks are shared among threads. `batches`: prepared launches
    run in batches as on a GPU. That compiles more kernels and saves no time here."""

    name = "emulated"
    chunk_bytes = CHUNK
    program = EmulatedProgram
    # Fused multiply-adds as NVRTC uses by default; -march=native provides the instruction. -O2 takes 1.6 times the
    # compiler's time and saves a tenth of the kernels'.
    flags: tuple[str, ...] = ("-O1", *NATIVE_FLAGS)

    def __init__(self, root: Path = kernels.ROOT, batches: bool = False):
        super().__init__(root)
        self.batches = batches

    def compile_batches(self, program: EmulatedProgram, entries: Iterable[Entry]) -> ctypes.CDLL:
        """Return a library of the wrappers `entries`, compiled unless it is in the cache. Raises HiresxError."""
        text = generate_batched(program.configuration, "emulated", entries, self._root)
        return thread_pool.load_library(build(text, self.flags, self.name))
