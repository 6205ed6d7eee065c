"""What `hiresx info` says of a grid that cannot be computed on, and of files that are no grids."""

import json
from itertools import product

import numpy as np
import pytest
from plot3d_files import write

from hiresx.case.grid_file import GridFile
from hiresx.cli import execute
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid, build, check_jacobian
from hiresx.grid.doubled import doubled_line
from hiresx.grid.grid_report import grid_report
from hiresx.grid.plot3d_others import kind_of
from hiresx.grid.quality import why_not_positive


def sheet(n=(15, 13, 1), stretched=1.0) -> np.ndarray:
    """A curved sheet or body of grid lines, closer together at jmin."""
    z, y, x = np.meshgrid(*(np.linspace(0, 1, m) if m > 1 else [0.0] for m in reversed(n)), indexing="ij")
    y = y**stretched
    return np.stack([x + 0.2 * y * y, y + 0.1 * np.sin(3 * x), z + 0.05 * x * (n[2] > 1)])


@pytest.mark.parametrize("stretched", [1.0, 2.0])
@pytest.mark.parametrize("n", [(15, 13, 1), (15, 13, 11)])
@pytest.mark.parametrize("at", [(7, 6), (1, 6), (7, 0), (0, 0)])
@pytest.mark.parametrize("by", [(0.25, -0.1), (-0.2, 0.15)])
def test_a_displaced_node_is_named(n, stretched, at, by):
    nodes = sheet(n, stretched)
    node = (*at, n[2] // 2)
    nodes[:2, node[2], node[1], node[0]] += by
    with pytest.raises(HiresxError) as error:
        check_jacobian(Grid((Block("b", *nodes),)))
    assert f"node ({node[0]}, {node[1]}, {node[2]}) is out of its place" in error.value.message
    assert "correct that node" in error.value.hint


def test_a_stretched_line_has_no_displaced_node():
    """Its spacing falls to nothing at one node, no node is out of its place."""
    x = np.linspace(-1, 1, 21) ** 3
    with pytest.raises(HiresxError, match="not positive") as error:
        check_jacobian(Grid((Block("b", x[None, None], 0 * x[None, None], 0 * x[None, None]),)))
    assert "out of its place" not in error.value.message


@pytest.mark.parametrize("nk", [1, 9])
def test_a_block_around_a_sharp_edge_is_none(nk):
    """A C-grid that turns around the end of a plate of no thickness."""
    t, s = np.meshgrid(np.linspace(0, 1, 9), np.linspace(-1, 1, 21), indexing="ij")
    plane = np.array([s * s - t * t, 2 * s * t])  # parabolic coordinates: s turns back at the edge where t = 0
    z = np.linspace(0, 1, nk)[:, None, None] + 0 * s
    x, y = (np.broadcast_to(c, z.shape) for c in plane)
    with pytest.raises(HiresxError, match="turns back on itself there, the block is wrapped around a sharp edge"):
        check_jacobian(Grid((Block("b", x, y, z if nk > 1 else 0 * x),)))


def told(path, capsys) -> tuple[dict, str]:
    assert execute(["info", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert execute(["info", str(path)]) == 0
    return found, " ".join(capsys.readouterr().out.split())


def test_the_least_and_the_largest_spacing_are_those_of_all_directions(tmp_path, capsys):
    x, y, z = (np.array(line) for line in ([0.0, 1, 2, 4, 6, 8, 9], np.arange(7) * 0.5, np.arange(7) * 3.0))
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    write(tmp_path / "g.x", [np.stack([x, y, z])])
    (block,) = told(tmp_path / "g.x", capsys)[0]["blocks"]
    assert block["spacing"] == [0.5, 3.0] and block["ratio"] == 2.0


@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("n", [(15, 13, 1), (11, 12, 9)])
@pytest.mark.parametrize("at", [0, 4])
def test_a_line_that_is_there_twice_is_named_and_refused(tmp_path, capsys, n, d, at):
    if n[d] == 1:
        return
    nodes = sheet(n)
    write(tmp_path / "g.x", [np.insert(nodes, at, np.take(nodes, at, 3 - d), axis=3 - d)])
    found, said = told(tmp_path / "g.x", capsys)
    lines = f"{'ijk'[d]} = {at} and {'ijk'[d]} = {at + 1} coincide"
    assert found["blocks"][0]["collapsed"] == lines and lines in said and found["blocks"][0]["spacing"][0] == 0
    assert lines in found["refused"]
    with pytest.raises(HiresxError, match=f"the nodes {lines}: cells without volume") as error:
        build(GridFile(file=str(tmp_path / "g.x")))
    assert "leave one of the two out" in error.value.hint


@pytest.mark.parametrize(("node", "seen"), [(4, False), (5, True), (10, True), (11, False)])
def test_a_collapsed_line_is_the_reason_where_differences_reach_it(node, seen):
    """The nodes i = 7 and 8 coincide: three nodes to each side count in the metrics of one."""
    nodes = sheet()
    block = Block("b", *np.insert(nodes, 7, nodes[..., 7], axis=3))
    assert ("along i has collapsed there" in why_not_positive(block, (node, 6, 0))[0]) == seen


def test_nodes_that_are_there_twice_are_found_piece_by_piece(monkeypatch):
    """As in a file whose nodes are not held in memory."""
    nodes = sheet((11, 12, 9))
    nodes[:, 5, 4, 3] = nodes[:, 5, 4, 2]
    nodes[:, :, 0] = nodes[:, :, :1, 0]  # a face that has collapsed
    whole = doubled_line(Block("b", *nodes))
    assert whole is not None and whole.describe() == "i = 2 and i = 3 coincide at 1 of 70 places"
    pieces = [[c[k : k + 4] for c in nodes] for k in (0, 3)] + [[c[6:] for c in nodes]]
    monkeypatch.setattr("hiresx.grid.doubled.slabs", lambda *_, overlap: iter(pieces))
    assert doubled_line(Block("b", *nodes)) == whole
    twice = np.insert(nodes, 3, nodes[:, 3], axis=1)[:, :9]
    pieces[:] = [[c[k : k + 4] for c in twice] for k in (0, 3)] + [[c[6:] for c in twice]]
    assert doubled_line(Block("b", *twice)).describe() == "k = 3 and k = 4 coincide"


def test_a_row_for_jacobians_that_are_not_positive(tmp_path, capsys):
    good, bad = sheet(), sheet()
    bad[0] += 2
    bad[0, 0, 6, 7] += 0.2
    write(tmp_path / "g.x", [good, bad])
    found, said = told(tmp_path / "g.x", capsys)
    (row,) = found["jacobian"]
    assert row["block"] == "block-2" and row["worst 1/J"] < 0 and row["nodes"].endswith(f"of {good[0].size}")
    assert row["why"].startswith("node (7, 6, 0) is out of its place")
    assert "Blocks whose Jacobian is not positive" in said and "is out of its place" in said
    write(tmp_path / "g.x", [good, good + 3])
    assert "jacobian" not in grid_report(tmp_path / "g.x")


def wedge(real: str) -> np.ndarray:
    """A body whose edge at imin, jmin is a point, as far as a file of single precision can say so."""
    x, y, z = sheet((11, 12, 9))
    z[:, 0, 0] = z[0, 0, 0] + 1e-8 * np.arange(9) * (real == "f4")
    x[:, 0, 0], y[:, 0, 0] = x[0, 0, 0], y[0, 0, 0]
    return np.stack([x, y, z])


@pytest.mark.parametrize("real", ["f4", "f8"])
def test_a_collapsed_edge_is_named(tmp_path, capsys, real):
    write(tmp_path / "g.x", [wedge(real)], "stream", real)
    found, said = told(tmp_path / "g.x", capsys)
    assert found["blocks"][0]["collapsed"] == "edge imin, jmin along k"
    assert "edge imin, jmin along k" in said
    if real == "f8":
        assert "has collapsed" in found["jacobian"][0]["why"]


def test_lines_of_a_face_that_have_collapsed_are_not_joined_to_themselves(tmp_path, capsys):
    """The apex of a wing, a part of kmin that is a line, is what is refused, no overlap of the block with itself."""
    x, y, z = sheet((13, 12, 9))
    y[0, :, :5] = y[0, :1, :5]
    x[0, :, :5] = x[0, :1, :5]
    write(tmp_path / "g.x", [np.stack([x, y, z])])
    found, _ = told(tmp_path / "g.x", capsys)
    assert found["connections"] == 0 and "kmin along j on 4 lines" in found["blocks"][0]["collapsed"]
    assert execute(["new", "--from", str(tmp_path / "g.x")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the Jacobian is not positive" in said and "along j has collapsed there" in said and "overlap" not in said


def test_a_collapsed_end_of_a_plane_grid_is_named(tmp_path, capsys):
    """A triangle: all nodes of one face are one."""
    x, y, z = sheet()
    x[:, :, 0], y[:, :, 0] = 0.0, 0.5
    write(tmp_path / "g.x", [np.stack([x, y, z])])
    found, _ = told(tmp_path / "g.x", capsys)
    assert found["blocks"][0]["collapsed"] == "imin along j"


# --- files that hold no nodes

SIZES = {1: [(9, 8, 7)], 2: [(9, 8, 7), (8, 9, 10)]}


def other(path, kind: str, form: str, dimensions: int, count: int, real: str, order: str) -> None:
    """A solution file, as Plot3D or as OVERFLOW writes it, or a function file."""
    sizes = [size[:dimensions] for size in SIZES[count]]
    variables = {"Q": dimensions + 2, "OVERFLOW": dimensions + 4, "function": 3}[kind]
    rows = [(*size, variables) if kind == "function" else size for size in sizes]
    whole = [[count]] if count > 1 else []
    whole.append([n for row in rows for n in row] + ([variables, 1] if kind == "OVERFLOW" else []))
    random, reals = np.random.default_rng(0), []
    for size in sizes:
        if kind != "function":
            reals.append(random.random(4 if kind == "Q" else 16))
        reals.append(1 + random.random(variables * int(np.prod(size))))
    if form == "text":
        path.write_text("\n".join(" ".join(map(str, line)) for line in [*whole, *reals]))
        return
    parts = [np.array(part, order + "i4").tobytes() for part in whole]
    parts += [part.astype(order + real).tobytes() for part in reals]
    marks = [np.array(len(part), order + "i4").tobytes() if form == "records" else b"" for part in parts]
    path.write_bytes(b"".join(mark + part + mark for mark, part in zip(marks, parts, strict=True)))


@pytest.mark.parametrize("form", ["text", "records", "stream"])
@pytest.mark.parametrize("kind", ["Q", "OVERFLOW", "function"])
def test_files_without_nodes_are_named_everywhere(tmp_path, capsys, kind, form):
    """By info, new, check and where a case names them."""
    words = "a Plot3D function file" if kind == "function" else "a Plot3D solution (Q) file"
    path, case = tmp_path / "a.out", tmp_path / "case.toml"
    case.write_text('[grid]\nfile = "a.out"\n[time]\nsteps = 1\n[initial]\nstate = { rho = 1.0, p = 1.0 }\n')
    for dimensions, count, real, order in product((2, 3), (1, 2), ("f4", "f8"), "<>"):
        # Every two of the four choices are there together.
        even = (dimensions + count + (real == "f4") + (order == "<")) % 2 == 0
        if (real, order) != ("f8", "<") if form == "text" else not even:
            continue
        other(path, kind, form, dimensions, count, real, order)
        for verb in (["info", str(path)], ["new", "--from", str(path)], ["check", str(case)]):
            assert execute(verb) == 2
            said = " ".join(capsys.readouterr().err.split())
            assert f"{words}, which holds no nodes" in said and "name the grid file that belongs to it" in said
        with pytest.raises(HiresxError, match="which holds no nodes"):
            build(GridFile(file=str(path)))


@pytest.mark.parametrize("part", [0.4, 0.5, 0.6])
def test_a_text_grid_that_is_cut_off_is_told_as_that(tmp_path, part):
    """Its one block is 9 nodes wide: 1, 9 are no sizes of a block of 11 variables."""
    text = "1\n9 11 1\n" + " ".join(f"{c:.6g}" for c in sheet((9, 11, 1)).ravel())
    (tmp_path / "g.x").write_text(text[: round(part * len(text))])
    with pytest.raises(HiresxError, match="take 301 numbers, the file holds"):
        grid_report(tmp_path / "g.x")


def test_a_grid_that_is_cut_off_is_none_of_them(tmp_path):
    for form in ("text", "records", "stream"):
        write(tmp_path / "g.x", [sheet((9, 8, 7)), sheet((8, 9, 10))], form)
        content = (tmp_path / "g.x").read_bytes()
        (tmp_path / "g.x").write_bytes(content[: len(content) - 96])
        with pytest.raises(HiresxError) as error:
            build(GridFile(file=str(tmp_path / "g.x")))
        assert "holds no nodes" not in error.value.message


def test_a_grid_file_that_is_not_there_is_not_blamed_on_a_key(tmp_path, capsys):
    assert execute(["new", "--from", str(tmp_path / "nosuch")]) != 0
    assert "grid.file" not in capsys.readouterr().err


def reals(kind: str, nodes: list[int], variables: int = 6) -> int:
    """How many a file of `kind` holds."""
    each = {"Q": 5, "Q of a plane": 4, "OVERFLOW": variables, "function": 2}[kind]
    more = {"OVERFLOW": 16, "function": 0}.get(kind, 4)
    return sum(nodes) * each + more * len(nodes)


@pytest.mark.parametrize(
    ("head", "kind", "nodes", "found"),
    [
        ([2, 3, 4, 5, 6, 7, 8], "Q", [60, 336], "solution (Q)"),
        ([3, 4, 5], "Q", [60], "solution (Q)"),
        ([1, 3, 4, 5], "Q", [60], "solution (Q)"),
        ([2, 3, 4, 5, 6], "Q of a plane", [12, 30], "solution (Q)"),
        ([3, 4], "Q of a plane", [12], "solution (Q)"),
        ([2, 3, 4, 5, 6, 7, 8, 6, 1], "OVERFLOW", [60, 336], "solution (Q)"),
        ([3, 4, 5, 6, 1], "OVERFLOW", [60], "solution (Q)"),
        ([2, 3, 4, 5, 2, 6, 7, 8, 2], "function", [60, 336], "function"),
        ([3, 4, 5, 2], "function", [60], "function"),
    ],
)
def test_what_a_file_is_follows_from_its_length(head, kind, nodes, found):
    """Of its first numbers, and of the reals behind them to the last one."""
    there = reals(kind, nodes)
    assert kind_of(np.array(head), lambda used: {there} if used == len(head) else ()) == found
    if kind == "Q" or (kind == "function" and len(nodes) == 2):  # the others may be read as something else
        for more in (-1, 1):
            assert kind_of(np.array(head), lambda used, more=more: {there + more} if used == len(head) else ()) is None
    assert kind_of(np.array(head), lambda used: ()) is None
    assert kind_of(np.array([0, *head[1:]]), lambda used: {there} if used == len(head) else ()) is None
    assert kind_of(np.array(head[:0]), lambda used: {there}) is None


@pytest.mark.parametrize(("rest", "known"), [(3, False), (4, True), (64, True), (65, False)])
def test_overflow_writes_four_references_or_more(rest, known):
    there = 60 * 6 + rest
    kind = kind_of(np.array([3, 4, 5, 6, 1]), lambda used: {there} if used == 5 else ())
    assert kind == ("solution (Q)" if known else None)
