"""Plans for other launchers: what is written, and that Open MPI and a shell do what it says."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from topology_recordings import UNEVEN, hwloc_box, hwloc_xml, level_matrix, smi

from hiresx import cli
from hiresx.errors import HiresxError
from hiresx.placement import cores
from hiresx.placement.export import FORMS, export, logical_cores
from hiresx.placement.facts import PlacementFacts
from hiresx.topology import sysfs
from hiresx.topology.cost import traffic
from hiresx.topology.cpus import parse_list
from hiresx.topology.load import parse
from hiresx.topology.machine import GPU, Cache, Machine, NumaNode, Package, save
from hiresx.topology.place import even_traffic, plan

# Two sockets of four cores with two threads each, whose CPUs are numbered to and fro; GPU 0 is near the last node, as
# on Polaris, where nodes and GPUs are counted in opposite orders.
NODES = [frozenset(range(n, 16, 2)) for n in range(2)]
BACKWARDS = Machine(
    "example",
    gpus=tuple(GPU(n, f"0000:{16 + n:02x}:00.0", "H200", numa=1 - n // 2, cpus=NODES[1 - n // 2]) for n in range(4)),
    levels=tuple(map(tuple, level_matrix(4, ("PIX", [(0, 1), (2, 3)])))),
    pcie=tuple(map(tuple, level_matrix(4, ("PIX", [(0, 1), (2, 3)])))),
    peer=tuple(map(tuple, level_matrix(4, ("", [range(4)])))),
    nic_levels=((),) * 4,
    packages=tuple(Package(n, cpus=NODES[n]) for n in range(2)),
    numa=tuple(NumaNode(n, 2**34, NODES[n]) for n in range(2)),
    # In the order that /sys has them, which is not hwloc's.
    cores=tuple(frozenset([n, n + 8]) for n in range(8)),
)


def planned(machine=BACKWARDS, ranks=4, gpu_map=None):
    return plan(machine, traffic(even_traffic(ranks)), gpu_map=gpu_map or list(range(ranks)))


def test_each_form():
    made = planned()
    # hwloc counts the cores of a package one after the other: CPUs 0, 2, 4, 6 are its cores 0 to 3.
    assert export(made, "rankfile") == (
        "rank 0=localhost slot=4-5\nrank 1=localhost slot=6-7\nrank 2=localhost slot=0-1\nrank 3=localhost slot=2-3\n"
    )
    assert export(made, "map_cpu") == "--cpu-bind=map_cpu:1,5,0,4\n"
    assert export(made, "mask_cpu") == "--cpu-bind=mask_cpu:0xa0a,0xa0a0,0x505,0x5050\n"
    two = export(made, "rankfile", ["a", "b"]).splitlines()
    assert len(two) == 8 and two[3:5] == ["rank 3=a slot=2-3", "rank 4=b slot=4-5"]
    # As a run would bind them.
    ranks = {rank: PlacementFacts("host", frozenset(range(16))) for rank in range(4)}
    shares = cores.cut(BACKWARDS, ranks, dict(enumerate(BACKWARDS.gpus)))
    masks = [int(word, 16) for word in export(made, "mask_cpu").split(":")[1].split(",")]
    assert masks == [sum(1 << cpu for cpu in shares[rank].cpus) for rank in range(4)]


def test_what_may_not_be_used_is_not_counted():
    """Of a live machine in a cpuset hwloc shows Open MPI the cores that are left, and numbers these."""
    made = planned(replace(BACKWARDS, live=True, allowed=frozenset([0, 2, 10, 5, 7, 15])), 2, [2, 0])
    assert export(made, "rankfile") == "rank 0=localhost slot=0-1\nrank 1=localhost slot=2-3\n"
    assert export(made, "mask_cpu") == "--cpu-bind=mask_cpu:0x405,0x80a0\n"


def test_cores_below_caches_are_counted_together():
    """Two caches of the third level in a node, whose cores are numbered to and fro."""
    order = [frozenset([n]) for n in (0, 2, 4, 6, 1, 3, 5, 7)]
    halves = (frozenset([0, 2, 4, 6]), frozenset([1, 3, 5, 7]))
    machine = Machine("x", cores=tuple(frozenset([n]) for n in range(8)),
                      numa=(NumaNode(0, 1, frozenset(range(8))),),
                      caches=tuple(Cache(3, "", 1, cpus) for cpus in halves))  # fmt: skip
    assert logical_cores(machine, frozenset(range(8))) == order
    assert logical_cores(machine, frozenset([5, 2])) == [order[1], order[6]]


@pytest.mark.parametrize("text", [hwloc_xml("1"), hwloc_xml("3.0"), hwloc_box()])
def test_cores_of_a_recording_are_counted_as_hwloc_does(text):
    """An export of hwloc has its objects in the order of their logical numbers."""
    machine = parse(text, "f")
    assert logical_cores(machine, frozenset(range(64))) == list(machine.cores)


def run_script(text, tmp_path, **environment):
    script = tmp_path / "gpus.sh"
    script.write_text(text)
    clean = {name: value for name, value in os.environ.items() if "LOCAL" not in name}
    command = ["sh", str(script), "sh", "-c", "echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES"]
    return subprocess.run(command, env=clean | environment, capture_output=True, text=True, timeout=20)


def test_the_script_hides_no_gpu(tmp_path):
    text = export(planned(gpu_map=[2, 3, 0, 1]), "visible")
    masks = ["2,0,1,3", "3,0,1,2", "0,1,2,3", "1,0,2,3"]
    for variable in ("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"):
        for rank, mask in enumerate(masks):
            # Inside an allocation of Slurm mpirun's word counts.
            given = {"SLURM_LOCALID": "0"} | {variable: str(rank)}
            assert run_script(text, tmp_path, **given).stdout == f"PCI_BUS_ID {mask}\n"
    for given in ({}, {"SLURM_LOCALID": "4"}):
        done = run_script(text, tmp_path, **given)
        assert done.returncode == 2 and "none of the 4 of the plan" in done.stderr and not done.stdout


def test_masks_of_slices_and_of_what_stands_behind_them():
    """CUDA counts cards, and shows a process one slice."""
    whole = BACKWARDS.gpus[0]
    gpus = (replace(whole, mig=True, mig_uuid="MIG-a"), replace(whole, index=1, mig=True, mig_uuid="MIG-b"))
    machine = replace(BACKWARDS, gpus=(*gpus, *BACKWARDS.gpus[2:]))
    text = export(planned(machine, 2, [1, 0]), "visible")
    assert "0) CUDA_VISIBLE_DEVICES=MIG-b ;;" in text and "1) CUDA_VISIBLE_DEVICES=MIG-a ;;" in text
    made = plan(machine, traffic(even_traffic(2)), gpus=[2, 3])
    assert "CUDA_VISIBLE_DEVICES=1,2 ;;" in export(made, "visible")


@pytest.mark.parametrize(
    ("machine", "form", "hosts", "expected"),
    [
        (BACKWARDS, "hostfile", [], 'no form of export "hostfile"'),
        (BACKWARDS, "map_cpu", ["a"], "--hosts is for rankfile"),
        (parse(smi(UNEVEN, ["0-3"] * 4 + ["4-7"] * 3), "f"), "map_cpu", [], "the recording has no cores"),
        (replace(BACKWARDS, cores=BACKWARDS.cores[:3]), "rankfile", [], "4 ranks are more than the machine has cores"),
    ],
)
def test_what_cannot_be_exported(machine, form, hosts, expected):
    with pytest.raises(HiresxError, match=expected):
        export(planned(machine), form, hosts)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(BACKWARDS, tmp_path / "four.json")
    (tmp_path / "b.csv").write_text("0,1e6\n1e6,0\n")
    start = ["topo", "plan", "--from", "four.json", "--bytes", "b.csv", "--gpu-map", "3,0"]
    for form in FORMS:
        assert cli.execute([*start, "--export", form]) == 0
        plain = capsys.readouterr().out
        assert cli.execute([*start, "--export", form, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["export"] == plain
    assert plain.startswith("#!/bin/sh") and "0) CUDA_VISIBLE_DEVICES=3," in plain
    assert cli.execute([*start, "--export", "rankfile", "--hosts", "n1,n2"]) == 0
    assert capsys.readouterr().out.splitlines()[2].startswith("rank 2=n2 slot=")
    for wrong, said in (
        (["--hosts", "n1"], "--export rankfile"),
        (["--with", "four.json", "--export", "map_cpu"], "--export is of one host"),
        (["--with", "four.json"], "no NVLink domain that reaches over hosts"),
    ):
        assert cli.execute([*start, *wrong]) == 2 and said in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or shutil.which("mpirun") is None or len(sysfs.discover().cores) < 2,
    reason="mpi4py, mpirun or a second core is not here",
)
def test_open_mpi_does_what_the_rankfile_says(tmp_path):
    """Two GPUs, each near one core of this machine, in the order that no launcher would take by itself."""
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, timeout=60).stdout
    if "Open MPI) 5" not in version:
        pytest.skip("rankfiles are asked for in another way than by Open MPI 5")
    here = sysfs.discover()
    if not frozenset().union(*here.cores) <= sysfs.allowed_cpus():
        pytest.skip("this process may use some of the cores, and Open MPI counts all of them")
    near = logical_cores(here, sysfs.allowed_cpus())[1::-1]
    square = (("X", "SYS"), ("SYS", "X"))
    gpus = tuple(GPU(n, f"0000:{16 + n:02x}:00.0", cpus=cpus) for n, cpus in enumerate(near))
    machine = replace(here, gpus=gpus, levels=square, pcie=square, peer=(("X", ""), ("", "X")),
                      nic_levels=tuple(("",) * len(here.nics) for _ in gpus), allowed=sysfs.allowed_cpus())  # fmt: skip
    made = planned(machine, 2, [0, 1])
    (tmp_path / "ranks").write_text(export(made, "rankfile"))
    (tmp_path / "gpus.sh").write_text(export(made, "visible"))
    code = (
        "import os, json, sys; from hiresx.topology.binding import bound_cpus; from hiresx.topology.cpus import *; "
        "sys.stdout.write(json.dumps([int(os.environ['OMPI_COMM_WORLD_RANK']), format_list(bound_cpus()), "
        "os.environ['CUDA_VISIBLE_DEVICES']]) + '\\n')"
    )
    start = ["mpirun", "--allow-run-as-root", "--map-by", f"rankfile:file={tmp_path / 'ranks'}", "-n", "2"]
    start += ["sh", str(tmp_path / "gpus.sh"), sys.executable, "-c", code]
    done = subprocess.run(start, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = sorted(json.loads(line) for line in done.stdout.splitlines())
    assert [(parse_list(cpus), mask) for _, cpus, mask in found] == [(near[0], "0,1"), (near[1], "1,0")]
