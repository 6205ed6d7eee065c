"""The emulated backend for checks of kernels: it varies everything that a GPU leaves undefined.

The blocks of a launch, the threads of a block and the lanes between two warp synchronizations run in another order each
time, and so do launches that a CUDA graph may run concurrently. Asynchronously copied data arrive only at the wait.
Shared and local memory hold huge numbers until they are written, and device memory holds NaNs (checked.h).
"""

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
from batching_emulator import BatchingBackend, BatchingProgram

from hiresx import kernels
from hiresx.device.batch_wrappers import Entry
from hiresx.device.call import Call, Calls
from hiresx.device.configuration import Configuration
from hiresx.device.dependency_graph import flatten_calls, levels
from hiresx.device.native import Array, NativeProgram

# Signalling NaNs by type of real; for an integer, an invalid index; for an int8, a mark that is set.
POISON = {
    "float64": ("uint64", 0x7FF4_DEAD_DEAD_DEAD),
    "float32": ("uint32", 0x7FA0_DEAD),
    "int32": ("int32", -(2**31)),
    "int64": ("int64", -(2**63)),
    "int8": ("int8", 1),
}

HEADER = Path(__file__).with_name("checked.h")
# With the header's content, as what was compiled with another one must not be taken.
FLAGS = (
    f'-DHX_CHECKED="{HEADER}"', f"-DHX_CHECKED_TEXT={crc32(HEADER.read_bytes())}", "-O1", "-g1",
    "-march=native", "-ffp-contract=fast", "-std=c++17", "-fPIC", "-shared",
    "-Wl,-Bsymbolic", "-ftrivial-auto-var-init=pattern",
)  # fmt: skip
# Flags of AddressSanitizer, whose library must be preloaded, and of UndefinedBehaviorSanitizer.
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
# Bytes ahead of and behind every array that nobody may access. AddressSanitizer itself keeps at most 2 KiB, less than a
# variable of a block takes, and another array may lie beyond.
GUARD = 2**18


class CheckingProgram(BatchingProgram):
    """A program that runs the launches of one level in a given order."""

    order = 0

    def _add(self, library: ctypes.CDLL, declared: Mapping[str, kernels.Signature]) -> None:
        assert isinstance(self._backend, CheckingBackend)
        self._backend.set_order(library)
        super()._add(library, declared)

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """See `Program.prepare` of hiresx.device.interface."""
        usual = super().prepare(calls, guard)
        if not self.order:
            return usual
        turned = super().prepare(self._reorder(calls), guard)

        def run() -> None:
            # Recorded launches are prepared again by the recorder.
            usual() if self.recorded is not None else turned()

        return run

    def _reorder(self, calls: Calls) -> list[Call]:
        chance = Random(self.order)
        of_level = list(zip(levels(calls), flatten_calls(calls), strict=True))
        if self.order == 1:
            of_level.reverse()
        else:
            chance.shuffle(of_level)
        return [call for _, call in sorted(of_level, key=lambda entry: entry[0])]


class CheckingBackend(BatchingBackend):
    """`order`: 0 for the usual order, 1 for the reverse one, others for random ones. `poisoned`: new memory holds NaNs,
    also that of `zeros`: a kernel must not read it before it is written. `memory`: checks addresses and undefined
    behaviour. `batches`: see `BatchingBackend`."""

    program = CheckingProgram

    def __init__(
        self,
        order: int = 0,
        poisoned: bool = True,
        memory: bool = False,
        root: Any = kernels.ROOT,
        batches: bool = False,
    ):
        super().__init__(root, batches)
        self.order, self._poisoned = order, poisoned
        self.flags, self._guarded = (*FLAGS, *(SANITIZERS if memory else ())), memory
        self.threads = 1

    def compile(self, configuration: Configuration) -> NativeProgram:
        found = super().compile(configuration)
        assert isinstance(found, CheckingProgram)
        found.order = self.order
        return found

    def compile_batches(self, program: BatchingProgram, entries: Iterable[Entry]) -> ctypes.CDLL:
        library = super().compile_batches(program, entries)
        self.set_order(library)
        return library

    def set_order(self, library: ctypes.CDLL) -> None:
        """Blocks, threads and lanes of the kernels of `library` run in the order of the backend."""
        ctypes.c_uint.in_dll(library, "hx_order").value = self.order

    def empty(self, shape: Sequence[int] | int, dtype: str = "float64") -> Array:
        size = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        # No padding behind the array, so that any access beyond it is detected.
        array = _between_guards(size, dtype) if self._guarded else np.empty(size, dtype).view(Array)
        if self._poisoned:
            word, pattern = POISON[str(array.dtype)]
            array.view(word)[...] = pattern
        return array

    def zeros(self, shape: Sequence[int] | int, dtype: str = "float64") -> Array:
        array = self.empty(shape, dtype)
        if not self._poisoned:
            array[...] = 0
        return array

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        copy = self.empty(np.shape(array), str(np.asarray(array).dtype))
        copy[...] = array
        return copy


def _between_guards(shape: Sequence[int], dtype: str) -> Array:
    count = prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(count + 2 * GUARD, np.uint8)
    for begin in (0, GUARD + count):
        poison = ctypes.CDLL(None).__asan_poison_memory_region  # of the preloaded library
        poison(ctypes.c_void_p(raw.ctypes.data + begin), ctypes.c_size_t(GUARD))
    return Array(tuple(shape), dtype, raw, GUARD)
