"""Whole reports of `hiresx topo`: every word, figure and unit, of recordings of each kind."""

import pytest
import reported
from topology_recordings import BOX, MESH, RING, UNEVEN, hwloc_box, hwloc_xml, level_matrix, nccl_xml, smi

from hiresx import cli

_NEAR = [["PIX" if g // 2 == n else "PXB" if g // 4 == n // 2 else "SYS" for n in range(4)] for g in range(8)]
RECORDINGS = {
    "ten": smi(level_matrix(10, ("PIX", [range(5), range(5, 10)]), ("PHB", [range(10)])), ["0-11"] * 10, [0] * 10),
    "box": smi(BOX, ["0-31"] * 4 + ["32-63"] * 4, [0] * 4 + [1] * 4, [f"NIC{n}" for n in range(4)], _NEAR),
    "mesh": smi(MESH, ["0-31"] * 4 + ["32-63"] * 4),
    "ring": smi(RING),
    "uneven": smi(UNEVEN),
    "hwloc": hwloc_xml(),
    "packages": hwloc_box(),
    "no-gpus": hwloc_box(gpus=False),
    "xgmi": hwloc_box(xgmi=True),
    "nccl-switch": nccl_xml(),
    "nccl-pairs": nccl_xml("pairs"),
    "nccl-no-elements": nccl_xml("", gpu_elements=False),
}
# Bytes between four and between eight ranks: no two pairs alike.
FOUR = "0,1e6,8e6,0\n1e6,0,0,7e6\n8e6,0,0,2e6\n0,7e6,2e6,0\n"
EIGHT = "\n".join(",".join(str(1000 * (a - b) ** 2 * (a + b)) if a != b else "0" for a in range(8)) for b in range(8))


@pytest.fixture
def topo(tmp_path, monkeypatch, capsys):
    """What `hiresx topo` says in a folder with the recordings."""
    monkeypatch.chdir(tmp_path)
    for name, text in {**RECORDINGS, "four.csv": FOUR, "eight.csv": EIGHT, "off.csv": "0,0,1e6,3e6\n"}.items():
        (tmp_path / name).write_text(text)

    def run(*words):
        assert cli.execute(["topo", *words]) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording(topo, name):
    reported.check(f"topo-{name}", topo("--from", name))


@pytest.mark.parametrize("name", ["box", "packages", "nccl-pairs"])
def test_a_recording_for_programs(topo, name):
    reported.check(f"topo-{name}-json", topo("--from", name, "--json"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ten", ["four.csv", "--gpu-map", "0,5,6,1", "--off-host", "off.csv"]),
        ("ten", ["four.csv", "--gpus", "0,1,5,6"]),
        ("box", ["eight.csv"]),
        ("box", ["four.csv", "--off-host", "off.csv"]),
        ("mesh", ["eight.csv", "--gpu-map", "0,1,2,3,4,5,6,7"]),
        ("mesh", ["four.csv"]),
        ("ring", ["four.csv"]),
        ("uneven", ["four.csv"]),
        ("packages", ["four.csv"]),
        ("xgmi", ["four.csv"]),
        ("nccl-switch", ["four.csv"]),
    ],
)
def test_a_plan(topo, name, words):
    found = topo("plan", "--from", name, "--bytes", *words)
    reported.check("-".join(["topo-plan", name, words[0].removesuffix(".csv"), *words[1:2]]).replace("---", "-"), found)
