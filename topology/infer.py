"""PCIe levels of pairs of devices that a recording does not contain, inferred from the levels that it contains. PCIe
devices are the leaves of a tree.

In a tree, if the levels of two devices to a third one differ, the level between the two is the farther of them. If they
are the same, the level between the two is not farther."""

from collections.abc import Callable, Sequence

import numpy as np

from hiresx.topology.connection_levels import PCIE, RANK, SELF, UNKNOWN, rank


def ranks(words: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the distance of each PCIe level in `words` (PIX, PXB, ...) as an integer array (rows, columns): the
    position of the level in the order of closeness, from 0 for "PSB" (one board) to 5 for "SYS" (two sockets). It is 6
    (UNKNOWN) for NVLink and for an empty name."""
    return np.array([[rank(word) for word in row] for row in words], dtype=int).reshape(len(words), -1)


def complete(
    known: np.ndarray, guess: Callable[[int, int], str] = lambda a, b: ""
) -> tuple[list[list[str]], list[tuple[int, int, str, str]]]:
    """Infer the unknown PCIe levels (PIX, PXB, ...) between n devices from the known ones, since the devices are the
    leaves of a tree. `known` (n, n), symmetric: the levels as integers, the output of `ranks`, 6 (UNKNOWN) if not
    known. `guess`: a function of two indexes that returns a level for a pair whose level does not follow from the
    others, or "". Returns the levels of all pairs as words ("" if nothing is known), and a list of contradictions (a,
    b, level, level), in which two inferences about the pair (a, b) differ.

    Levels that follow from known ones are set first, then the guesses and the levels that follow from them. All
    remaining pairs get the farthest level that is consistent with the tree."""
    found = known.copy()
    wrong = _prove(found)
    bounds = _bounds(found)
    for a, b in np.argwhere(np.tril(found == UNKNOWN, -1)):
        if word := guess(int(a), int(b)):
            found[a, b] = found[b, a] = min(RANK[word], bounds[a, b])
    _prove(found)
    found = np.where(found == UNKNOWN, _bounds(found), found)
    words = (*PCIE, "")
    size = len(found)
    return [[SELF if a == b else words[found[a, b]] for b in range(size)] for a in range(size)], wrong


def _prove(found: np.ndarray) -> list[tuple[int, int, str, str]]:
    """Set the levels that follow from two different levels to a third device, repeatedly. If two results differ, the
    nearer one is used."""
    wrong = []
    while True:
        proved = []
        for a, b in np.argwhere(np.tril(found == UNKNOWN, -1)):
            first, second = found[a], found[b]
            tells = (first != second) & (first != UNKNOWN) & (second != UNKNOWN)
            tells[[a, b]] = False
            if tells.any():
                farther = np.maximum(first, second)[tells]
                proved.append((a, b, farther.min()))
                if farther.min() != farther.max():
                    wrong.append((int(b), int(a), PCIE[farther.min()], PCIE[farther.max()]))
        if not proved:
            return wrong
        for a, b, nearest in proved:
            found[a, b] = found[b, a] = nearest


def _bounds(found: np.ndarray) -> np.ndarray:
    """Return an upper bound of the distance of every pair: the best path over other devices, each as far as its
    farthest part."""
    bound = found.copy()
    for c in range(len(found)):
        bound = np.minimum(bound, np.maximum(bound[:, c, None], bound[None, c, :]))
    return bound
