"""Cases for weak scaling: the number of nodes grows with the number of ranks, so that it remains the same per rank."""

from hiresx.base.arrays import prime_factors
from hiresx.case import Case
from hiresx.errors import HiresxError


def refine_for_ranks(case: Case, times: int) -> Case:
    """Return `case` with `times` as many nodes and the same lengths, for weak scaling. Each prime factor of `times`,
    the largest first, multiplies the number of nodes of the direction that has the fewest at that point. Raises
    HiresxError for a grid without a key `grid.n` that lists the nodes of all directions."""
    n = getattr(case.grid, "n", None)
    if times == 1:
        return case
    if n is None or isinstance(n, int):
        raise HiresxError(
            f'weak scaling needs a grid with a list of nodes grid.n; generator "{getattr(case.grid, "generator", "")}" '
            "has none",
            "take --mode strong, or a case with the generator box or wavy",
        )
    nodes = list(n)
    for factor in reversed(prime_factors(times)):
        d = min((m for m in range(len(nodes)) if nodes[m] > 1), key=lambda m: nodes[m])
        nodes[d] *= factor
    dump = case.model_dump(mode="json")
    dump["grid"]["n"] = nodes
    return Case.from_dict(dump, case.directory, case.name)
