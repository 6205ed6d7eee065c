"""A kernel launch with checked arguments: `Program.call` returns it and `Program.prepare` takes it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from hiresx.kernels import Signature


class Call(NamedTuple):
    """A launch of the kernel of `signature` over `extent` (None for a CPU kernel, which visits its points itself).
    `arguments`: the arguments by name, in the order of the kernel. `packed`: the same arguments in the form that the
    backend passes on without a check. `touched`: arrays that the kernel accesses by addresses in a table, each with
    whether it writes the array."""

    signature: Signature
    extent: tuple[int, int, int] | None
    arguments: Mapping[str, Any]
    packed: Any
    touched: Sequence[tuple[Any, bool]] = ()

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.signature.name


# Each entry is a launch, or a list of launches that do not depend on each other even if they share arrays.
Calls: TypeAlias = Sequence[Call | list[Call]]
