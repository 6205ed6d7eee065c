"""Files stay so short that one can be read at a sitting."""

import pytest
from paths import ROOT

LONGEST = 500
FOLDERS = ("hiresx", "kernels", "topology", "cases", "tests", "docs", ".ci")
KINDS = {".py", ".h", ".cu", ".cpp", ".sh"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_is_longer(folder):
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in files}
    assert files and {path.relative_to(ROOT): n for path, n in lines.items() if n > LONGEST} == {}
