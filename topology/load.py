"""A machine from a recording: whichever of the three forms the file has."""

from pathlib import Path

from hiresx.topology.machine import Machine, from_json, read_text
from hiresx.topology.parse_hwloc_xml import parse_hwloc_xml
from hiresx.topology.parse_smi import parse_smi


def load(path: Path) -> Machine:
    """The machine that a file describes: a snapshot (JSON), an hwloc XML export, or the text of `nvidia-smi topo -m`.

    It is never the live machine. Raises HiresxError for anything else.
    """
    text = read_text(path)
    return parse(text, str(path))


def parse(text: str, name: str) -> Machine:
    """As `load`, of a text."""
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if start == "{":
        return from_json(text, name)
    if start == "<" and ("<topology" in text or text.lstrip("\ufeff \t\r\n").startswith("<?xml")):
        return parse_hwloc_xml(text, name)
    return parse_smi(text, name)
