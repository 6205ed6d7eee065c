"""`hiresx topo` and its verbs: JSON for programs, tables for people, one clear fault for everything else."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest
from topology_recordings import RING, UNEVEN, hwloc_box, hwloc_xml, level_matrix, nccl_xml, smi

from hiresx import cli
from hiresx.case.toml import dumps

TEN = smi(level_matrix(10, ("PIX", [range(5), range(5, 10)]), ("PHB", [range(10)])), ["0-11"] * 10, [0] * 10)
STUDY = "0,1e6,8e6,0\n1e6,0,0,8e6\n8e6,0,0,1e6\n0,8e6,1e6,0\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty working folder with a recording of ten GPUs and the bytes of the paper's study."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ten.txt").write_text(TEN)
    (tmp_path / "study.csv").write_text(STUDY)
    return tmp_path


@pytest.fixture
def topo(capsys):
    def run(*arguments):
        status = cli.execute(["topo", *(str(argument) for argument in arguments)])
        return status, *capsys.readouterr()

    return run


def test_report_of_this_machine(place, topo):
    status, out, _ = topo("--json")
    document = json.loads(out)
    assert status == 0 and document["live"] is True and document["allowed"]
    status, out, _ = topo()
    assert status == 0 and "NUMA node" in out and "source:" in out


@pytest.mark.parametrize(
    "text", [TEN, smi(UNEVEN), smi(RING), hwloc_xml("1"), hwloc_xml("3.0"), hwloc_box(), nccl_xml()]
)
def test_report_of_a_recording(place, topo, text):
    (place / "other").write_text(text)
    status, out, err = topo("--from", "other", "--save", "machine.json", "--plot", "machine.png")
    assert status == 0 and not err and "not this machine" in out and (place / "machine.png").read_bytes()[1:4] == b"PNG"
    status, first, _ = topo("--from", "other", "--json")
    again, second, _ = topo("--from", "machine.json", "--json")
    first, second = json.loads(first), json.loads(second)
    assert status == again == 0 and first == second and first["live"] is False
    (place / "printed.json").write_text(json.dumps(first))
    assert topo("--from", "printed.json")[0] == 0


def test_the_tree_shows_switches_where_nvlink_joins_the_gpus(place, topo):
    linked = [["X" if a == b else "NV12" for b in range(8)] for a in range(8)]
    near = [["PIX" if g // 2 == n else "PXB" if g // 4 == n // 2 else "SYS" for n in range(4)] for g in range(8)]
    nics = [f"NIC{n}" for n in range(4)]
    text = smi(linked, ["0-31"] * 4 + ["32-63"] * 4, [0] * 4 + [1] * 4, nics, near)
    (place / "linked.txt").write_text(text)
    status, out, _ = topo("--from", "linked.txt")
    picture = out[: out.index("GPUs ")]
    assert status == 0 and "NVLink joins GPU 0-7" in picture
    assert "NUMA node 0: CPUs 0-31" in picture and "NUMA node 1: CPUs 32-63" in picture
    assert picture.count("NUMA node") == 2 and picture.count("PCIe switch\n") == 4 and "CPUs 32-63" in picture
    lines = [line.strip("│├└─ ") for line in picture.splitlines()]
    assert lines[lines.index("GPU 4") - 1 : lines.index("GPU 4") + 3] == ["PCIe switch", "GPU 4", "GPU 5", "NIC NIC2"]
    document = json.loads(topo("--from", "linked.txt", "--json")[1])
    (first, second) = document["tree"]["children"]
    assert first["numa"] == 0 and second["gpus"] == [4, 5, 6, 7] and second["nics"] == ["NIC2", "NIC3"]
    (switches,) = second["children"]
    assert switches["level"] == "PXB" and [child["level"] for child in switches["children"]] == ["PIX", "PIX"]


def test_adapters_have_levels_among_them(place, topo):
    between = [["PIX", "SYS"], ["SYS", "PIX"]]
    (place / "two.txt").write_text(smi(level_matrix(2), nics=["mlx5_0", "mlx5_1"], nic_levels=between))
    status, out, _ = topo("--from", "two.txt")
    assert status == 0 and "NIC to NIC" in out
    assert json.loads(topo("--from", "two.txt", "--json")[1])["nic_pairs"] == [["X", "SYS"], ["SYS", "X"]]


def test_a_machine_without_gpus_is_told_like_the_others(place, topo):
    text = hwloc_box(gpus=False)
    (place / "plain.xml").write_text(text)
    status, out, _ = topo("--from", "plain.xml")
    assert status == 0 and "0 GPUs, 1 network adapter" in out
    table = {line.split("  ")[0].strip(): line.split() for line in out.splitlines()}
    assert table["cores of package 1"][-3:] == ["2", "-", "2"]
    assert table["L3 cache"][-4:] == ["2", "32", "MiB", "4"] and table["L2 cache"][-4:] == ["4", "1", "MiB", "2"]
    assert "NVMe" in out and "nvme0n1" in out and "VGA" in out
    document = json.loads(topo("--from", "plain.xml", "--json")[1])
    assert [device["kind"] for device in document["devices"]] == ["VGA", "NVMe"] and len(document["caches"]) == 6


def test_names_in_brackets_are_no_markup(place, topo):
    (place / "odd.xml").write_text(hwloc_xml().replace("Tesla V100-PCIE-16GB", "[/bold] [red]"))
    assert "[/bold] [red]" in topo("--from", "odd.xml")[1]


def test_plan(place, topo):
    status, out, _ = topo("plan", "--bytes", "study.csv", "--from", "ten.txt", "--gpus", "0,1,5,6", "--json")
    document = json.loads(out)
    assert status == 0 and set(document["strategies"]) == {"optimal", "pair-sum", "paper", "round-robin"}
    best = document["strategies"]["optimal"]
    assert best["shortest"] and document["bound_seconds"] == best["seconds"] and document["recommended"] == "optimal"
    assert set(best) >= {"placement", "cost", "seconds", "busiest_link"} and document["gpus"] == [0, 1, 5, 6]
    side = [gpu < 5 for gpu in best["placement"]]
    assert side[0] == side[2] != side[1] == side[3]
    status, out, _ = topo(
        "plan", "--bytes", "study.csv", "--from", "ten.txt", "--gpu-map", "0,5,6,1", "--plot", "p.png"
    )
    assert (
        status == 0
        and "gpu-map *" in out
        and "no placement with at most 1 rank on each of the 10 GPUs takes" in out
        and "uplink of PIX" in out
        and (place / "p.png").exists()
    )
    (place / "off.csv").write_text("0,0,1e6,1e6\n")
    status, out, _ = topo("plan", "--bytes", "study.csv", "--from", "ten.txt", "--off-host", "off.csv", "--json")
    assert status == 0 and json.loads(out)["off_host_bytes"] == 2e6


def test_plan_of_a_case(place, topo):
    connection = {"generator": "box", "n": [40, 30, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}
    case = {
        "title": "box",
        "grid": connection | {"periodic": ["x", "y"]},
        "time": {"end": 1.0},
        "initial": {"state": {"rho": 1, "p": 0.7}},
        "boundary": [{"faces": ["imin", "imax", "jmin", "jmax"], "type": "periodic"}],
    }
    (place / "box.toml").write_text(dumps(case))
    status, out, _ = topo("plan", "--case", "box.toml", "--from", "ten.txt", "--json")
    assert status == 0 and json.loads(out)["ranks"] == 10  # one for every GPU
    status, out, _ = topo("plan", "--case", "box.toml", "--ranks", "2", "--from", "ten.txt", "--json")
    # halves of 20 x 30 nodes, each the other's neighbour on both sides; no cut of a periodic direction is cheaper
    assert status == 0 and json.loads(out)["bytes"] == 2 * 2 * 30 * 3 * 5 * 8
    status, _, err = topo("plan", "--case", "box.toml", "--ranks", "21", "--from", "ten.txt")
    assert status == 2 and "21 ranks are too many" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["plan", "--from", "ten.txt"], "the plan needs the bytes"),
        (
            ["plan", "--bytes", "study.csv", "--case", "sod"],
            "the plan takes the bytes between ranks from --bytes or from --case",
        ),
        (["plan", "--bytes", "none.csv", "--from", "ten.txt"], "none.csv: cannot be read"),
        (["plan", "--bytes", "ten.txt", "--from", "ten.txt"], "is not a row of numbers"),
        (["plan", "--bytes", "study.csv", "--from", "ten.txt", "--ranks", "5"], "4 ranks, not 5"),
        (["plan", "--bytes", "study.csv", "--from", "ten.txt", "--gpus", "a"], "not a list of GPUs"),
        (["plan", "--bytes", "study.csv", "--from", "ten.txt", "--gpus", "99"], "there is no GPU 99"),
        (["plan", "--bytes", "study.csv", "--from", "ten.txt", "--busy", "nan"], "--busy nan is not a finite number"),
        (["plan", "--bytes", "study.csv", "--from", "ten.txt", "--busy", "-1"], "--busy -1: no percentage"),
        (["plan", "--bytes", "study.csv", "--from", "ten.txt", "--busy-memory", "inf"], "--busy-memory inf is not a"),
        (["plan", "--bytes", "study.csv", "--from", "ten.txt", "--preset", "quick"], "--preset needs --case"),
        (["plan", "--bytes", "study.csv", "--from", "study.csv"], "no row of `nvidia-smi topo -m`"),
        (["--from", "."], "cannot be read"),
        (["--from", "ten.txt", "--save", "none/machine.json"], "cannot be written"),
        (["--from", "ten.txt", "--plot", "machine.nothing"], "ends in .png"),
        (["verify", "--strategy", "foo"], "--strategy foo: not known"),
        (["plam"], "plam"),
        (["plan", "--bites", "study.csv"], "--bytes"),
    ],
)
def test_faults(place, topo, arguments, expected):
    status, out, err = topo(*arguments)
    assert status == 2 and expected in err and not out
    status, out, _ = topo(*arguments, "--json")
    assert status == 2 and expected in json.dumps(json.loads(out))


@pytest.mark.parametrize(("option", "name"), [("--save", "pipe"), ("--plot", "pipe.png")])
def test_no_file_comes_in_the_place_of_a_pipe(place, topo, option, name):
    os.mkfifo(name)
    reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK)  # whoever opens it to write does not wait
    try:
        status, _, err = topo("--from", "ten.txt", option, name)
        assert status == 2 and f"cannot write {name}: it is a pipe" in " ".join(err.split())
    finally:
        os.close(reader)


def test_what_needs_a_gpu_says_so(place, topo):
    from hiresx.topology.discover import discover

    if discover().gpus:
        pytest.skip("this machine has a GPU")
    assert "there is no GPU here to measure" in topo("measure")[2]
    assert "this machine has no GPU to place ranks on" in topo("plan", "--bytes", "study.csv")[2]
    topo("--save", "here.json")
    status, _, err = topo("plan", "--bytes", "study.csv", "--from", "here.json")
    assert status == 2 and "the recording has no GPU to place ranks on" in err and "this machine" not in err


def test_a_gpu_that_a_recording_lacks(place, topo):
    status, _, err = topo("plan", "--bytes", "study.csv", "--from", "ten.txt", "--gpus", "0,10")
    assert (
        status == 2
        and "there is no GPU 10" in err
        and "the recording has 10: 0 to 9" in err
        and "this machine" not in err
    )


def test_verify_without_mpi4py(place, topo, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    status, _, err = topo("verify")
    assert status == 2 and "mpirun -n 4 hiresx topo verify" in err


class Alone:
    """A communicator of one, as `verify` makes it of MPI's ranks."""

    root, rank, size = True, 0, 1


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_the_exit_status_of_verify_is_what_it_found(place, topo, monkeypatch, right, form):
    from hiresx.placement import placement_check
    from hiresx.placement.stored_placement import Seat

    seat = Seat(0, "n1", "cpu", None, "", "", "", "0-3", 4, 0, 4, "hwloc")
    standing = placement_check.Standing(seat, "", "0-3" if right else "0-7", "NUMA 0", right, ())
    monkeypatch.setattr(placement_check, "comm", Alone)
    monkeypatch.setattr(placement_check, "verify", lambda ranks, matrix, strategy: [standing])
    status, out, _ = topo("verify", *form)
    assert status == (0 if right else 1)
    if form:
        assert json.loads(out)["pass"] is right
    else:
        assert ("ELSEWHERE" in out) is not right


def test_verify_sees_a_rank_that_is_elsewhere(monkeypatch):
    """What the placement says and the kernel does not is found: here by a kernel that tells other CPUs."""
    from hiresx.mpi.communicator import single_process
    from hiresx.placement import cpu_binding, placement_check

    assert [entry.right for entry in placement_check.verify(single_process(), backends="cpu")] == [True]
    given = cpu_binding.allowed_cpus()
    monkeypatch.setattr(placement_check.cpu_binding, "now", lambda: frozenset([4095]))
    monkeypatch.setattr(placement_check, "place", lambda *_, **__: _seated(given))
    (standing,) = placement_check.verify(single_process(), backends="cpu")
    assert not standing.right and "bound to CPUs 4095, not" in standing.remarks[0]


def _seated(cpus):
    from hiresx.placement.stored_placement import Placement, Seat
    from hiresx.topology.cpus import format_list

    return Placement((Seat(0, "n1", "cpu", None, "", "", "", format_list(cpus), 1, None, 1, ""),), None)


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or shutil.which("mpirun") is None, reason="mpi4py or mpirun is not here"
)
@pytest.mark.slow
def test_verify_under_mpirun(place):
    start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", sys.executable, "-c"]
    code = "from hiresx.cli import main; main(['topo', 'verify', '--json'])"
    done = subprocess.run([*start, code], capture_output=True, text=True, timeout=120)
    document = json.loads(done.stdout)
    assert done.returncode == 0 and document["pass"] and [entry["rank"] for entry in document["ranks"]] == [0, 1]


def test_a_map_that_puts_both_ranks_on_one_gpu_is_not_the_shortest(place, topo):
    (place / "two.txt").write_text(smi(level_matrix(2)))
    (place / "pair.csv").write_text("0,1e6\n1e6,0\n")
    start = ["plan", "--from", "two.txt", "--bytes", "pair.csv"]
    for gpus, even in (("0,0", False), ("1,0", True)):
        status, out, _ = topo(*start, "--gpu-map", gpus, "--json")
        found = json.loads(out)
        entries = found["strategies"]
        assert (
            status == 0 and entries["optimal"]["shortest"] and entries["optimal"]["seconds"] == found["bound_seconds"]
        )
        assert entries["gpu-map"]["shortest"] == entries["gpu-map"]["least_sum"] == even
        out = " ".join(topo(*start, "--gpu-map", gpus)[1].split())
        assert "no placement with at most 1 rank on each of the 2 GPUs takes less than" in out
        assert ("gpu-map is none of these" in out) == (not even)


def test_one_of_a_thing_is_not_given_as_many(place, topo):
    (place / "one.json").write_text(topo("--from", "ten.txt", "--json")[1])
    (place / "alone.csv").write_text("0\n")
    out = topo("plan", "--from", "one.json", "--bytes", "alone.csv", "--gpus", "3")[1]
    assert "1 rank, 0 B per exchange, on 1 GPU of" in out
