"""Sets of logical CPUs: as Linux writes them ("0,3-9,11-17"), and as hwloc does (0x00000303,,0x3)."""

from collections.abc import Iterable

# Linux supports at most 8192 logical CPUs; a text with more is not valid.
MOST = 65536


def parse_list(text: str) -> frozenset[int] | None:
    """Return the CPU numbers in a text such as "0,3-9", the format of Linux. The result is None if the text is not such
    a list, or contains a number above 65535."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.strip().partition("-")
        if not _number(first) or (dash and not _number(last)):
            return None
        low, high = int(first), int(last or first)
        if low > high or high >= MOST:
            return None
        found.update(range(low, high + 1))
    return frozenset(found)


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def parse_mask(text: str) -> frozenset[int] | None:
    """Return the CPU numbers of a mask in the format of hwloc: hexadecimal words of 32 bits, separated by commas, the
    most significant word first. The result is None if `text` is not such a mask."""
    words = text.split(",")
    # hwloc writes an infinite set as "0xf...f". It means "all", and gives no information on this machine.
    if len(words) > MOST // 32 or any("..." in word for word in words):
        return None
    found: set[int] = set()
    for place, word in enumerate(reversed(words)):
        digits = word.strip().removeprefix("0x")
        if len(digits) > 8:
            return None
        try:
            value = int(digits or "0", 16)
        except ValueError:
            return None
        found.update(32 * place + bit for bit in range(32) if value >> bit & 1)
    return frozenset(found)


def format_list(cpus: Iterable[int]) -> str:
    """Return the CPU numbers `cpus` as a text of single numbers and ranges in ascending order, such as "0,3-9"; "" if
    there are none."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
