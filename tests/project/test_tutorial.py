"""The tutorial as a notebook: what its cells are, and that an executed one holds what was printed and drawn."""

import base64
import json
import sys

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT / ".ci" / "site"))
tutorial = pytest.importorskip("tutorial", reason="the site's scripts are not in a release")

PAGE = """# A page

Text with a [link](post.md#the-jet).

<!-- not run: it installs -->
```sh
pip install something
```

```sh
hiresx new sod tube    # a comment
```

```toml
# tube/case.toml, at the end
[presets.short]
time.steps = 3
```

```sh
hiresx run tube --preset short \\
    --out runs/tube
hiresx plot runs/tube --out tube.png
```

```python
steps = 3
print(f"{steps} steps")
```

```python
print(steps + 1)
```
"""


def notebook(made) -> list[dict]:
    document = json.loads(tutorial.notebook(made))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    for cell in document["cells"]:
        wanted = {"id", "cell_type", "metadata", "source"}
        wanted |= {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        assert cell.keys() == wanted
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    return document["cells"]


@pytest.mark.slow
def test_a_page_becomes_a_notebook_with_what_it_prints_and_draws(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    made = tutorial.cells(PAGE)
    assert [cell.kind for cell in made] == ["text", "sh", "sh", "file", "sh", "python", "python"]
    tutorial.executed(made, tmp_path)
    cells = notebook(made)
    sources = ["".join(cell["source"]) for cell in cells]
    assert "[link](post.html#the-jet)" in sources[0] and cells[1]["cell_type"] == "markdown"
    assert sources[3].startswith("%%writefile -a tube/case.toml\n")
    assert sources[4].splitlines() == [
        "!hiresx run tube --preset short --out runs/tube", "!hiresx plot runs/tube --out tube.png",
        "from IPython.display import Image, display", "", "display(Image('tube.png'))",
    ]  # fmt: skip
    assert [cell["outputs"][0]["text"] for cell in cells[5:]] == [["3 steps\n"], ["4\n"]]
    said, picture = cells[4]["outputs"]
    assert "wrote runs/tube\n" in said["text"]
    assert base64.b64decode(picture["data"]["image/png"]) == (tmp_path / "tube.png").read_bytes()
    assert tutorial.illustrated(PAGE, made).count("![tube.png](tutorial-tube.png)") == 1


def test_a_command_that_fails_stops_the_notebook(tmp_path):
    with pytest.raises(RuntimeError, match='no bundled case "nothing"'):
        tutorial.executed(tutorial.cells("```sh\nhiresx check nothing\n```\n"), tmp_path)


def test_the_tutorial_itself_is_a_notebook_that_compiles():
    made = tutorial.cells(tutorial.PAGE.read_text())
    cells = notebook(made)
    for cell in made:
        if cell.kind == "python":
            compile(cell.text, "tutorial", "exec")
    shown = {name.rpartition("/")[2] for cell in made for name in tutorial.pictures(cell)}
    import gallery

    assert {name.removeprefix("tutorial-") for name, *_ in gallery.TUTORIAL} <= shown
    assert sum(cell["cell_type"] == "code" for cell in cells) > 8
