"""The program that measures the storages of the implicit integrator's blocks: its table and its picture."""

import block_storage

SMALL = [
    "--set", "grid.n_airfoil=33", "--set", "grid.n_wake=12", "--set", "grid.n_normal=17", "--set", "grid.far_field=5.0",
    "--set", "grid.wake=5.0", "--set", "grid.first_spacing=1e-2", "--set", "grid.trailing_edge_spacing=2e-2",
]  # fmt: skip


def test_residuals_are_listed_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(block_storage, "SWEEPS", (1, 20))
    picture = tmp_path / "sweeps.png"
    given = ["residuals", "naca0012", "laminar", *SMALL, "--steps", "2", "--cfl", "20", "--picture", str(picture)]
    assert block_storage.main(given) == 0
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()[2:]]
    rows = [row for row in rows if row]
    assert [row[:2] for row in rows] == [[over, s] for over in ("nodes", "lines") for s in ("fp32", "fp16", "int8")]
    for row in rows:
        first, last = map(float, row[2:])
        assert last < 0.1 * first
    assert picture.read_bytes().startswith(b"\x89PNG")
    monkeypatch.delattr(block_storage, "Simulation")  # a picture that cannot be is refused before any flow is computed
    (tmp_path / "folder.png").mkdir()
    for name, words in (("a.nothing", 'pictures cannot be written as ".nothing"'), ("folder.png", "this is a folder")):
        assert block_storage.main([*given[:-1], str(tmp_path / name)]) == 2
        assert words in capsys.readouterr().err
