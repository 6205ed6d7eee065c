"""Reads the description of a machine from a recording in any of four formats."""

import re
from pathlib import Path

from hiresx.topology.machine import Machine, from_json, read_text
from hiresx.topology.parse_hwloc_xml import parse_hwloc_xml
from hiresx.topology.parse_nccl_xml import parse_nccl_xml
from hiresx.topology.parse_smi import parse_smi


def load(path: Path) -> Machine:
    """Read the description of a machine from a file: a JSON recording by `hiresx topo --save`, an XML export of hwloc,
    a topology file of NCCL (XML), or the text of `nvidia-smi topo -m`. The entry `live` of the result is false. Raises
    HiresxError for any other file."""
    text = read_text(path)
    return parse(text, str(path))


def parse(text: str, name: str) -> Machine:
    """Return the machine that `text` describes, in any of the formats that `load` reads: JSON recording, XML of hwloc
    or NCCL, or text of `nvidia-smi topo -m`. `name`: the name of the text in error messages. Raises HiresxError for any
    other text."""
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if start == "{":
        return from_json(text, name)
    if start == "<":
        root = re.search(r"<([A-Za-z]\w*)", re.sub(r"<!--.*?-->", "", text[:65536], flags=re.DOTALL))
        return parse_nccl_xml(text, name) if root and root[1] == "system" else parse_hwloc_xml(text, name)
    return parse_smi(text, name)
