"""The emulated backend for checks of kernels: what a GPU leaves open is another thing every time.

Of every launch the blocks, the threads of a block and the lanes between two meetings of a warp come in another order,
and so do launches that a CUDA graph may make side by side. What is fetched is nowhere until it is waited for, memory of
the chip and of a thread holds huge numbers until it is written, and device memory NaNs (kernels/checked.h).
"""

import ctypes
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

from hiresx import kernels
from hiresx.device import emulated
from hiresx.device.batch_wrappers import Entry
from hiresx.device.call import Call, Calls
from hiresx.device.configuration import Configuration
from hiresx.device.native import Array, NativeProgram
from hiresx.device.side_by_side import flat, levels

# Signalling NaNs, by bytes of a real; an index that is nowhere.
POISON = {
    "float64": ("uint64", 0x7FF4_DEAD_DEAD_DEAD),
    "float32": ("uint32", 0x7FA0_DEAD),
    "int32": ("int32", -(2**31)),
}

FLAGS = (
    "-DHX_CHECKED", "-O1", "-g1", "-march=native", "-ffp-contract=fast", "-std=c++17", "-fPIC", "-shared",
    "-Wl,-Bsymbolic", "-ftrivial-auto-var-init=pattern",
)  # fmt: skip
# Of AddressSanitizer, whose library the process must have been started with, and UndefinedBehaviorSanitizer.
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


class Program(emulated.Program):
    """Launches of one level in an order of their own."""

    order = 0

    def prepare(self, calls: Calls, guard: Any = None) -> Callable[[], None]:
        """See `Program.prepare` of hiresx.device.interface."""
        usual = super().prepare(calls, guard)
        if not self.order:
            return usual
        turned = super().prepare(self._turned(calls), guard)

        def run() -> None:
            # What is noted is prepared once more, by whoever notes it.
            usual() if self.noted is not None else turned()

        return run

    def _turned(self, calls: Calls) -> list[Call]:
        chance = Random(self.order)
        of_level = list(zip(levels(calls), flat(calls), strict=True))
        if self.order == 1:
            of_level.reverse()
        else:
            chance.shuffle(of_level)
        return [call for _, call in sorted(of_level, key=lambda entry: entry[0])]


class Backend(emulated.Backend):
    """`order`: 0 as ever, 1 backwards, others by chance. `poisoned`: new memory holds NaNs, that of `zeros` too: none
    is to be read before it is written. `memory`: with checks of addresses and undefined behaviour. `batches`: see
    `emulated.Backend`."""

    program = Program

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
        self.flags = (*FLAGS, *SANITIZERS) if memory else FLAGS
        self.threads = 1

    def compile(self, configuration: Configuration) -> NativeProgram:
        found = super().compile(configuration)
        assert isinstance(found, Program)
        found.order = self.order
        for library in found.libraries:
            self._order(library)
        return found

    def batched(self, program: emulated.Program, entries: Iterable[Entry]) -> ctypes.CDLL:
        library = super().batched(program, entries)
        self._order(library)
        return library

    def _order(self, library: ctypes.CDLL) -> None:
        ctypes.c_uint.in_dll(library, "hx_order").value = self.order

    def empty(self, shape: Sequence[int] | int, dtype: str = "float64") -> Array:
        size = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        # No room behind it: what lies there is somebody else's.
        array: Array = np.empty(size, dtype).view(Array)
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
