"""What is nearest to a GPU, NVLink domains over hosts, and what users of other tools stumbled over."""

import json
import os
import re
from dataclasses import replace

import pytest
from topology_recordings import RECORDINGS, hwloc_box, hwloc_xml, level_matrix, nccl_xml, needs_shared, smi

from hiresx import cli
from hiresx.errors import HiresxError
from hiresx.topology import connection_levels, near, nearest
from hiresx.topology.cost import Model, traffic
from hiresx.topology.domains import nvlink_domains, one_machine
from hiresx.topology.groups import groups
from hiresx.topology.libcuda import Driver
from hiresx.topology.load import load, parse
from hiresx.topology.machine import GPU, NIC, Machine, NumaNode, save
from hiresx.topology.parse_smi import parse_smi
from hiresx.topology.place import place, plan
from hiresx.topology.problems import problems, surroundings
from hiresx.topology.report import renderables
from hiresx.topology.sysfs import level_by_bridges

# ---- the call


def test_nearest_to_a_gpu_of_a_recording():
    machine = parse(hwloc_xml(), "f")
    found = nearest(2, machine)
    assert found.nic.name == "mlx5_0" and found.nic_level == "PHB" and found.numa == 1 and not found.warnings
    assert found.cpus == {4, 5, 6, 7} and found.cores == (frozenset([4, 5]), frozenset([6, 7]))
    far = nearest("0000:03:00.0", machine)
    assert (far.gpu.index, far.nic_level, far.numa) == (0, "SYS", 0) and "another NUMA node" in far.warnings[0]
    assert nearest("00000000:04:00.0", machine).gpu.index == 1  # as NVML and nvidia-smi write it
    named = replace(machine, gpus=(*machine.gpus[:2], replace(machine.gpus[2], uuid="GPU-7", mig_uuid="MIG-7")))
    assert nearest("MIG-7", named) == nearest(2, named)
    for wrong in (3, -1, "", "GPU-9"):
        with pytest.raises(HiresxError, match="there is no GPU"):
            nearest(wrong, machine)


def test_gpus_with_several_adapters_take_turns():
    nics = ["mlx5_0", "mlx5_1", "eth0"]
    near_all = [["PXB", "PXB", "PIX"]] * 2 + [["SYS", "SYS", "SYS"]]
    machine = parse_smi(smi(level_matrix(3, ("PIX", [(0, 1)])), nics=nics, nic_levels=near_all))
    machine = replace(machine, nics=tuple(NIC(name, rdma=name != "eth0") for name in nics))
    found = [nearest(n, machine) for n in range(3)]
    assert [len(one.nics) for one in found] == [2, 2, 2] and [one.nic.name for one in found[:2]] == nics[:2]
    assert Model(machine).nic == [nics.index(one.nic.name) for one in found]
    # Without any with RDMA the nearest of the others.
    plain = replace(machine, nics=tuple(NIC(name) for name in nics))
    assert nearest(0, plain).nics == plain.nics[2:] and nearest(0, plain).nic_level == "PIX"
    assert nearest(0, replace(plain, nics=(), nic_levels=((),) * 3)).nic is None


TWO = Machine(
    "here",
    gpus=(GPU(0, "0000:10:00.0", numa=1, cpus=frozenset([2, 3])), GPU(1, "0000:20:00.0", numa=0)),
    nics=(NIC("a", numa=0), NIC("b", numa=1), NIC("c")),
    nic_levels=(("SYS", "PIX", "SYS"), ("PHB", "SYS", "SYS")),
    numa=(NumaNode(0, 1, frozenset([0, 1])), NumaNode(1, 1, frozenset([2, 3]))),
    cores=tuple(frozenset([n]) for n in range(4)),
    live=True,
)


def bind(monkeypatch, *cpus, own=None):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(cpus))
    monkeypatch.setattr(near, "_own", lambda: own)


def test_nearest_to_this_process(monkeypatch):
    bind(monkeypatch, 0, 1, 3, own="0000:10:00.0")
    found = nearest(machine=TWO)
    assert (found.gpu.index, found.nic.name, found.numa, found.cores) == (0, "b", 1, (frozenset([3]),))
    assert nearest(1, TWO).cpus == {0, 1}  # by its node, where no CPUs are given
    # Its cpuset has none of them: it stays there, and that is told.
    bind(monkeypatch, 0, own="0000:10:00.0")
    found = nearest(machine=TWO)
    assert found.cpus == {0} and "near the GPU" in found.warnings[0]
    # No GPU: what is near the CPUs that it is bound to.
    bind(monkeypatch, 2)
    found = nearest(machine=TWO)
    assert found.gpu is None and (found.numa, found.nic.name, found.nic_level) == (1, "b", "NODE")
    bind(monkeypatch, 0, 2)
    found = nearest(machine=TWO)
    assert found.numa is None and found.nic_level == "" and len(found.nics) == 3


def test_nearest_on_this_machine():
    found = nearest()
    assert found.cpus and found.cpus <= frozenset(os.sched_getaffinity(0))
    assert frozenset().union(*found.cores) <= found.cpus


@pytest.mark.parametrize(("used", "count", "expected"), [([1], 2, "b"), ([], 2, None), ([], 1, "a"), ([], 0, None)])
def test_the_gpu_of_this_process(monkeypatch, used, count, expected):
    names = {"a": "0000:0a:00.0", "b": "0000:0b:00.0", None: None}
    for name, answer in (
        ("__init__", lambda self: None),
        ("count", lambda self: count),
        ("has_context", lambda self, n: n in used),
        ("bus_id", lambda self, n: names["ab"[n]]),
        ("mig_uuid", lambda self, n: ""),
    ):
        monkeypatch.setattr(Driver, name, answer)
    assert near._own() == names[expected]


# ---- NVLink over hosts


def tray(name: str, domain: str, count: int = 4) -> Machine:
    """A host of a rack: GPUs on two NUMA nodes, each beside an adapter, all on one NVLink switch."""
    text = smi(
        [["X" if a == b else "NV18" for b in range(count)] for a in range(count)],
        ["0-71"] * (count // 2) + ["72-143"] * (count // 2),
        [0] * (count // 2) + [1] * (count // 2),
        [f"mlx5_{n}" for n in range(count)],
        [["PIX" if a == b else "NODE" if a // 2 == b // 2 else "SYS" for b in range(count)] for a in range(count)],
    )
    machine = parse_smi(text)
    gpus = tuple(replace(gpu, domain=domain, links=18, model="GB200") for gpu in machine.gpus)
    return replace(machine, host=name, gpus=gpus)


RACK, OTHER = "11111111-2222-3333-4444-555555555555/0", "11111111-2222-3333-4444-555555555555/1"


def test_domains_reach_over_hosts():
    hosts = [tray("a", RACK), tray("b", RACK), tray("c", OTHER), parse_smi(smi(level_matrix(2)))]
    assert nvlink_domains(hosts) == {
        RACK: tuple((n, gpu) for n in (0, 1) for gpu in range(4)),
        OTHER: tuple((2, gpu) for gpu in range(4)),  # one cluster, another clique
    }
    whole = one_machine(hosts[:2])
    assert groups(whole)["NV"] == (tuple(range(8)),) and groups(whole)["NUMA"] == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert whole.levels[0][4] == "NV18" and whole.pcie[0][4] == "SYS"
    assert [gpu.index for gpu in whole.gpus] == [*range(8)] and [node.index for node in whole.numa] == [0, 1, 2, 3]
    assert [gpu.numa for gpu in whole.gpus] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert whole.nic_levels[5][5] == "PIX" and whole.nic_levels[5][1] == "SYS" and whole.nics[5].name == "b:mlx5_1"
    assert whole.pcie[4:] == tuple(("SYS",) * 4 + row for row in hosts[1].pcie)
    model, message = Model(whole), traffic([[0, 1e9], [0, 0]])
    # Over hosts as within one, by the links of both ends.
    assert model.estimate(message, (0, 4)).seconds == pytest.approx(model.estimate(message, (0, 1)).seconds)
    assert model.bandwidth[0, 4] == pytest.approx(18 * connection_levels.NVLINK["blackwell"])
    assert len(set(place(whole, traffic([[1e6] * 8] * 8)))) == 8
    assert any("NVLink domain 1111" in str(line) for line in renderables(hosts[0]))
    assert one_machine(hosts[3:]) is hosts[3]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (tray("b", OTHER), "GPU 0 of b is in the NVLink domain 1111"),
        (tray("b", ""), "GPU 0 of b is in no NVLink domain"),
    ],
)
def test_hosts_of_two_domains_are_no_one_machine(second, said):
    with pytest.raises(HiresxError, match=said):
        one_machine([tray("a", RACK), second])


def test_the_command_plans_for_the_hosts_of_one_domain(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, domain in (("a", RACK), ("b", RACK), ("c", OTHER)):
        save(tray(name, domain), tmp_path / f"{name}.json")
    (tmp_path / "bytes.csv").write_text("0,1e6\n1e6,0\n")
    start = ["topo", "plan", "--bytes", "bytes.csv", "--json", "--from", "a.json", "--with"]
    assert cli.execute([*start, "b.json", "--gpu-map", "1,6"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gpus"] == [*range(8)] and found["strategies"]["gpu-map"]["busiest_link"].startswith("GPU 1 NVLink")
    assert cli.execute([*start, "c.json"]) == 2 and "is in the NVLink domain" in capsys.readouterr().out


# ---- what others' users stumbled over


def test_every_number_of_nvlinks_is_better_than_pcie():
    """Also numbers that few machines have."""
    for model, most in (("P100", 4), ("V100", 6), ("A100", 12), ("H100", 18), ("B200", 18)):
        for count in range(1, most + 1):
            text = smi([["X", f"NV{count}", "SYS"], [f"NV{count}", "X", "PIX"], ["SYS", "PIX", "X"]])
            machine = parse_smi(text)
            machine = replace(machine, gpus=tuple(replace(gpu, model=model) for gpu in machine.gpus))
            found = Model(machine)
            assert machine.levels[0][1] == f"NV{count}" and found.bandwidth[0, 1] > found.bandwidth[0, 2], text
            if count >= 4:
                assert found.bandwidth[0, 1] > 63 and place(machine, traffic([[0, 1e9], [1e9, 0]])) in ((0, 1), (1, 0))


def test_masks_that_hide_gpus_are_told_with_one_that_does_not(monkeypatch):
    machine = parse_smi(smi(level_matrix(4)))
    machine = replace(machine, gpus=tuple(replace(gpu, uuid=f"GPU-{gpu.index}f") for gpu in machine.gpus))
    for mask, said in (("2", "hides GPU 0-1,3"), ("GPU-3,1", "hides GPU 0,2"), ("", "hides GPU 0-3")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
        (line,) = surroundings(machine)
        assert said in line and "CUDA IPC" in line
        kept = re.search(r"PCI_BUS_ID CUDA_VISIBLE_DEVICES=([0-9,]+)$", line)[1]
        assert sorted(kept.split(",")) == ["0", "1", "2", "3"] and (mask != "2" or kept == "2,0,1,3")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", kept)
        assert not surroundings(machine)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-3,GPU-0,GPU-1,GPU-2")
    assert not surroundings(machine)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert not surroundings(machine)


def test_gpus_without_an_adapter_on_their_node_are_told():
    one = parse(hwloc_xml(), "f")
    assert any("GPU 0-1: no network adapter on their NUMA nodes" in line for line in problems(one))
    assert not any("no network adapter" in line for line in problems(parse(nccl_xml(), "f")))
    # Where none has one nothing can be chosen.
    none = replace(one, nic_levels=(("SYS",),) * 3)
    assert not any("no network adapter" in line for line in problems(none))


def test_partitions_of_a_gpu_are_told():
    part = '<object type="OSDev" name="rsmi{}" subtype="RSMI" osdev_type="8"/>'
    text = hwloc_box(xgmi=True)
    whole = parse(text, "f")
    device = '<object type="OSDev" gp_index="900" name="gpu" osdev_type="5"/>'
    assert device in text
    machine = parse(text.replace(device, "".join(part.format(n) for n in range(3))), "f")
    assert len(machine.gpus) == len(whole.gpus) and "3 of GPU 0: each GPU counts as one" in machine.problems[0]
    one = parse(text.replace(device, part.format(0)), "f")
    assert not any("partitions" in line for line in (*whole.problems, *one.problems))


@needs_shared
def test_real_recordings_have_nearest_adapters():
    lassen = load(RECORDINGS / "hwloc/mpibind-coral-lassen.xml")
    for gpu in lassen.gpus:
        found = nearest(gpu.index, lassen)
        assert found.nic.rdma and found.nic_level != "SYS" and found.numa == gpu.numa and found.cpus == gpu.cpus
        assert {nic.numa for nic in found.nics} == {gpu.numa}
    assert plan(lassen, traffic([[0, 1e6], [1e6, 0]])).strategies["optimal"].placement in ((0, 1), (2, 3))


def test_an_adapter_whose_bridges_are_not_known_is_as_near_as_its_numa_node():
    gpu = GPU(0, numa=1)
    assert [level_by_bridges(gpu, NIC("a", numa=numa)) for numa in (0, 1)] == ["SYS", "NODE"]
