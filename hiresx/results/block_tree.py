"""Trees of blocks (xarray.DataTree). If a block or a variable does not exist, the error names those that do."""

from functools import cache
from typing import Any

from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.results import needs


class Absent(HiresxError, KeyError):
    """The error for a block or variable that does not exist. It is also a KeyError, as readers of mappings expect."""


@cache
def block_tree() -> Any:
    """Return a subclass of xarray.DataTree for the fields of a run, with a child node for each block. Its KeyError for
    an unknown block or variable names the existing ones. The class is defined at the first call, since xarray is an
    optional package."""

    class BlockTree(needs.xarray().DataTree):  # type: ignore[misc]
        """An xarray.DataTree of the blocks of a field. Access to a block or a variable that does not exist, such as
        `tree["jet/p"]`, raises `Absent` with the names of those that exist."""

        __slots__ = ()

        def __getitem__(self, key: Any) -> Any:
            try:
                return super().__getitem__(key)
            except KeyError:
                raise (_absent(self, key) if isinstance(key, str) else KeyError(key)) from None

    return BlockTree


def _absent(tree: Any, key: str) -> Absent:
    node, word = tree, key
    for word in key.strip("/").split("/"):
        if word not in node.children:
            break
        node = node.children[word]
    held = list(map(str, node.data_vars))
    if held:
        there, kind, who = [*held, *node.children], "variable", f"{node.path.strip('/')} has"
    else:
        there, kind, who = list(node.children), "block", "there is"
    return Absent(f'{who} no {kind} "{word}"', did_you_mean(word, there, f"{kind}s"))
