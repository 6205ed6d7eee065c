"""A launch that was built, and so checked: what `Program.call` gives and `Program.prepare` takes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from hiresx.kernels import Signature


class Call(NamedTuple):
    """A launch of the kernel of `signature` over `extent` (None: a CPU kernel, which visits for itself): `arguments` by
    name, in the kernel's order, and `packed` what the backend made of them, so that nothing is looked at again."""

    signature: Signature
    extent: tuple[int, int, int] | None
    arguments: Mapping[str, Any]
    packed: Any

    @property
    def name(self) -> str:
        return self.signature.name


# A launch, or some that do not depend on each other whatever arrays they share.
Calls: TypeAlias = Sequence[Call | list[Call]]
