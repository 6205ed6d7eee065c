"""The pages of measurements are what their commands make of the results that are stored."""

import runpy
import shlex

import pytest
import reported
from paths import ROOT

from hiresx.output.show import picture_file


@pytest.mark.parametrize("name", ["decaying-turbulence", "performance", "robustness", "verification"])
def test_a_page_is_what_its_results_make(name, tmp_path, monkeypatch):
    wanted = (ROOT / "docs" / f"{name}.md").read_text()
    command = next(line for line in wanted.splitlines() if line.endswith(f"--out docs/{name}.md"))
    script, *words = shlex.split(command)[1:]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "results").symlink_to(ROOT / "docs" / "results")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [script, *words])
    pictures = []
    monkeypatch.setattr(picture_file, "save", lambda figure, target: pictures.append(figure) or target)
    try:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    except SystemExit as ended:
        assert not ended.code
    assert (tmp_path / "docs" / f"{name}.md").read_text() == wanted
    if pictures:
        reported.check(f"drawn-{name}", "\n".join(map(reported.drawn, pictures)))
