"""Backend selection: the backend of each rank, from --backend."""

from collections import Counter
from collections.abc import Sequence

from hiresx.base.plural import plural
from hiresx.device import NAMES
from hiresx.errors import HiresxError

AUTO = "auto"
_FORM = "write one backend for all, or a list by rank such as cuda,cuda,cpu,cpu or, shorter, cuda:2,cpu:2"


def parse_backends(text: str) -> list[str]:
    """Return the list of backend names in a `text` such as "cpu", "cuda,cpu,cpu" or "cuda:1,cpu:2". Raises HiresxError
    for an unknown name or an invalid number."""
    found = []
    for word in text.split(","):
        name, colon, count = word.strip().partition(":")
        if name not in (AUTO, *NAMES):
            raise HiresxError(f'there is no backend "{name}"', f"backends are auto, {', '.join(NAMES)}; {_FORM}")
        if colon and not (count.isascii() and count.isdigit() and 0 < int(count) <= 10**6):
            raise HiresxError(f'backend "{word.strip()}": "{count}" is no number of ranks', _FORM)
        found += [name] * int(count or 1)
    return found


def by_rank(text: str, hosts: Sequence[int]) -> list[str]:
    """Return the name of the backend for each rank. `text`: one name for all ranks, a list with one name for each rank,
    or a list with one name for each rank of a host, which is repeated on every host; then all hosts must have equally
    many ranks. `hosts`: for each rank the number of its host (machine). Raises HiresxError for a list of another
    length, and for an unknown name or an invalid number in it."""
    names, size = parse_backends(text), len(hosts)
    if len(names) == 1 and ":" not in text:
        return names * size
    if len(names) == size:
        return names
    if set(Counter(hosts).values()) == {len(names)}:
        seen: Counter[int] = Counter()
        found = []
        for host in hosts:
            found.append(names[seen[host]])
            seen[host] += 1
        return found
    raise HiresxError(f'--backend "{text}" is for {plural(len(names), "rank")}, not {size}', _FORM)
