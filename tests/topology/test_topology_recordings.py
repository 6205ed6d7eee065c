"""Recordings become the right machine: real ones (beside the checkout) as a table, written ones for every habit."""

from dataclasses import replace

import pytest
from topology_recordings import RECORDINGS, RING, UNEVEN, hwloc_xml, level_matrix, nccl_xml, needs_shared, smi

from hiresx.errors import HiresxError
from hiresx.topology import machine as description
from hiresx.topology.cpus import format_list, parse_list, parse_mask
from hiresx.topology.groups import groups, tree
from hiresx.topology.load import load, parse
from hiresx.topology.parse_smi import parse_smi
from hiresx.topology.problems import problems
from hiresx.topology.report import gpu_table, picture_tree

SHAPES = {
    # file: (GPUs, adapters, sizes of the groups by level)
    "nvidia-smi/azure_nv24_m60_4gpu_soc.txt": (4, 0, {"NUMA": [4], "NODE": [1] * 4, "PIX": [1] * 4, "NV": [1] * 4}),
    "nvidia-smi/dgx1v_nic_unsorted.txt": (8, 4, {"NUMA": [4, 4], "PHB": [4, 4], "PIX": [2] * 4, "NV": [4, 4]}),
    "nvidia-smi/dgx1v_oneflow_mlx5_0.txt": (8, 1, {"NUMA": [4, 4], "NV": [4, 4], "PIX": [1, 1, 2, 1, 1, 1, 1]}),
    "nvidia-smi/gh200_gpu_numa_id.txt": (1, 4, {"NUMA": [1], "PIX": [1], "NV": [1]}),
    "nvidia-smi/gpumanager_6gpu_soc_noaffinity.txt": (6, 0, {"NUMA": [4, 2], "PHB": [4, 2], "PIX": [2, 2, 2]}),
    "nvidia-smi/p40_8gpu_two_plx_one_socket.txt": (8, 1, {"NUMA": [8], "PXB": [8], "PIX": [4, 4]}),
    "nvidia-smi/paper_10x_titan_v.txt": (10, 0, {"NUMA": [10], "PHB": [10], "PXB": [5, 5], "PIX": [5, 5]}),
    "nvidia-smi/rossum_7gpu_pix_phb.txt": (7, 0, {"NUMA": [7], "PHB": [7], "PXB": [3, 4], "PIX": [3, 4]}),
    "nvidia-smi/v100_hcm_alt_ring_hugectr.txt": (8, 2, {"NUMA": [4, 4], "NODE": [4, 4], "NV": [4, 4]}),
    "hwloc/hwloc-64intel64-3g2n+2n-irregulargroups+pci.xml": (2, 2, {"NUMA": [1, 1], "PIX": [1, 1]}),
    "hwloc/hwloc-nvidiaDGX2.xml": (16, 0, {"NUMA": [8, 8], "PXB": [4] * 4, "PIX": [2] * 8, "NV": [16]}),
    "hwloc/v3/hwloc-nvidiaDGX2.xml": (16, 0, {"NUMA": [8, 8], "PXB": [4] * 4, "PIX": [2] * 8, "NV": [16]}),
    "hwloc/hwloc-power8gpudistances.xml": (4, 0, {"NUMA": [2, 2], "PHB": [1] * 4, "NV": [2, 2]}),
    "hwloc/mpibind-coral-lassen.xml": (4, 6, {"NUMA": [2, 2], "PXB": [2, 2], "PIX": [2, 2]}),
    "hwloc/mpibind-cts1-pascal.xml": (2, 3, {"NUMA": [2], "PIX": [2]}),
    "hwloc/mpibind-epyc-corona.xml": (4, 3, {"NUMA": [1] * 4, "PIX": [1] * 4}),
    "hwloc/mpibind-g4dnmetal.xml": (8, 2, {"NUMA": [4, 4], "PHB": [2] * 4, "PIX": [1] * 8}),
}


@needs_shared
def test_the_table_has_every_recording():
    files = {
        str(path.relative_to(RECORDINGS))
        for folder in ("nvidia-smi", "hwloc")
        for path in (RECORDINGS / folder).rglob("*.*")
    }
    assert files == set(SHAPES)


@needs_shared
@pytest.mark.parametrize("name", SHAPES)
def test_real_recording(name):
    gpus, nics, sizes = SHAPES[name]
    machine = load(RECORDINGS / name)
    found = groups(machine)
    assert (len(machine.gpus), len(machine.nics)) == (gpus, nics)
    assert {level: [len(part) for part in found[level]] for level in sizes} == sizes
    assert all(sorted(sum(parts, ())) == list(range(gpus)) for parts in found.values())
    assert not machine.live and tree(machine).gpus == tuple(range(gpus))
    again = description.from_json(description.json.dumps(description.to_json(machine)))
    assert again == machine and not again.live


@needs_shared
def test_what_else_real_recordings_tell():
    dgx2 = load(RECORDINGS / "hwloc/hwloc-nvidiaDGX2.xml")
    assert dgx2.levels[0][15] == "NV6" and [dgx2.pcie[0][n] for n in (1, 2, 4, 8)] == ["PIX", "PXB", "NODE", "SYS"]
    assert load(RECORDINGS / "hwloc/hwloc-power8gpudistances.xml").levels[0][1] == "NV2"
    assert load(RECORDINGS / "hwloc/v3/hwloc-nvidiaDGX2.xml").levels == dgx2.levels
    unsorted = load(RECORDINGS / "nvidia-smi/dgx1v_nic_unsorted.txt")
    assert [nic.name for nic in unsorted.nics] == ["mlx5_0", "mlx5_2", "mlx5_1", "mlx5_3"]
    assert unsorted.pcie[0][1] == "PIX"  # behind NVLink, known from the adapter both share a switch with
    assert any(
        "one NUMA node" in line for line in problems(load(RECORDINGS / "nvidia-smi/azure_nv24_m60_4gpu_soc.txt"))
    )
    corona = load(RECORDINGS / "hwloc/mpibind-epyc-corona.xml")
    assert [gpu.numa for gpu in corona.gpus] == [1, 2, 5, 7] and corona.gpus[0].model == "Vega 20"
    gh200 = load(RECORDINGS / "nvidia-smi/gh200_gpu_numa_id.txt")
    assert gh200.gpus[0].numa == 0 and gh200.nics[0].name == "mlx5_0"


PLAIN = smi(UNEVEN, ["0-3,8-11"] * 4 + ["4-7,12-15"] * 3, [0] * 4 + [1] * 3)


def marked(text: str) -> str:
    lines = text.splitlines()
    return "\n".join([f"\x1b[4m{lines[0]}\x1b[0m", *lines[1:]])


def markdown(text: str) -> str:
    rows = [line.split("\t") for line in text.splitlines() if line.startswith("GPU")]
    table = ["| | CPU Affinity | NUMA Affinity | GPU0 | GPU1 |", "|---|---|---|---|---|"]
    return "\n".join(table + [f"| `{r[0]}` | {r[-2]} | {r[-1]} | " + " | ".join(r[1:-2]) + " |" for r in rows])


HABITS = {
    "plain": PLAIN,
    "blanks for tabs": PLAIN.expandtabs(8),
    "escapes": marked(PLAIN),
    "windows line ends": PLAIN.replace("\n", "\r\n"),
    "no header": PLAIN.split("\n", 1)[1],
    "glued header": "".join(PLAIN.split("\n")[0].split("\t")) + "\n" + PLAIN.split("\n", 1)[1],
    "commented": "\n".join("# " + line for line in PLAIN.splitlines()),
    "log": "\n".join("2024-05-01 10:00:00 node7: " + line for line in PLAIN.splitlines()),
    "prompt": "$ nvidia-smi topo -m\n" + "\n".join("> " + line for line in PLAIN.splitlines()),
    "trailing words": "\n".join(
        line + "\tN/A\tsome words" if line.startswith("GPU") else line for line in PLAIN.splitlines()
    ),
    "Markdown, affinity first": markdown(PLAIN),
    "inside a report": "GPU 0: Tesla V100 (UUID: GPU-1)\nGPU0 is fine\n" + PLAIN + "GPU count: 7\n",
    "old word": PLAIN.replace("SYS", "SOC"),
    "twice": PLAIN + PLAIN,
}


@pytest.mark.parametrize("habit", HABITS)
def test_text_as_people_paste_it(habit):
    machine = parse_smi(HABITS[habit])
    assert machine.levels == tuple(map(tuple, UNEVEN))
    assert [gpu.numa for gpu in machine.gpus] == [0] * 4 + [1] * 3, habit
    assert format_list(machine.gpus[6].cpus) == "4-7,12-15"
    found = groups(machine)
    assert found["PIX"] == ((0, 1), (2, 3), (4, 5, 6)) and found["NODE"] == found["NUMA"] == ((0, 1, 2, 3), (4, 5, 6))


@pytest.mark.parametrize(
    ("affinity", "numa", "cpus", "node"),
    [
        ("0-3", "1", "0-3", 1),
        ("0,3-9,11-17", "0", "0,3-9,11-17", 0),
        ("N/A", "N/A", None, None),
        ("", "1", None, 1),
        ("0", "8", "0", 8),
        ("0-3", "0-1", "0-3", None),
        ("5-2", "0", None, 0),
        ("0-99999999999", "0", None, 0),
    ],
)
def test_affinities(affinity, numa, cpus, node):
    levels = level_matrix(2, ("PIX", [(0, 1)]))
    gpu = parse_smi(smi(levels, [affinity] * 2, [numa] * 2)).gpus[0]
    assert (gpu.cpus and format_list(gpu.cpus), gpu.numa) == (cpus, node)


NEAR = level_matrix(8, ("PIX", [(0, 1), (2, 3), (4, 5), (6, 7)]), ("NODE", [(0, 1, 2, 3), (4, 5, 6, 7)]))
HALVES = ((0, 1, 2, 3), (4, 5, 6, 7))
LINKED = [["X" if a == b else "NV12" for b in range(8)] for a in range(8)]
TO_NICS = [["PXB", "SYS"]] * 4 + [["SYS", "PXB"]] * 4


@pytest.mark.parametrize(
    ("levels", "nics", "cpus", "numa", "told"),
    [
        # A job has few CPUs, and the affinities of all GPUs are clipped to them; what NVLink hides follows from NICs.
        (NEAR, None, ["0-1,64-65"] * 8, None, "are SYS of each other, yet near the same CPUs (0-1,64-65)"),
        (LINKED, TO_NICS, ["0-1,64-65"] * 8, None, "GPUs 0-4, 1-4, 2-4, 3-4, 0-5, 1-5 and 10 more pairs are SYS"),
        (NEAR, None, ["0-1"] * 8, [0] * 8, "are SYS of each other, yet on NUMA node 0: the levels count"),
        (NEAR, None, None, [0] * 8, "are SYS of each other, yet on NUMA node 0"),
        (NEAR, None, ["0-1"] * 8, [0] * 4 + [1] * 4, "SYS of each other, yet near the same CPUs (0-1)"),
        (NEAR, None, ["0-31"] * 2 + ["32-63"] * 2 + ["64-95"] * 4, [0] * 4 + [1] * 4, "none of their nearest CPUs in"),
    ],
)
def test_levels_count_where_affinities_contradict_them(levels, nics, cpus, numa, told):
    machine = parse_smi(smi(levels, cpus, numa, *((["mlx5_0", "mlx5_1"], nics) if nics else ())))
    assert groups(machine)["NUMA"] == groups(machine)["NODE"] == HALVES
    assert told in "\n".join(problems(machine))


def test_affinities_that_agree_are_not_told():
    machine = parse_smi(smi(NEAR, ["0-31"] * 4 + ["32-63"] * 4, [0] * 4 + [1] * 4))
    assert groups(machine)["NUMA"] == HALVES and not problems(machine)
    # Where all levels are SYS, as in a virtual machine, they tell nothing.
    hidden = parse_smi(smi(level_matrix(4), ["0-23"] * 4))
    assert groups(hidden)["NUMA"] == ((0, 1, 2, 3),)
    near = parse_smi(smi(level_matrix(2, ("NODE", [(0, 1)])), ["0-1"] * 2, [0, 1]))
    assert any("GPUs 0-1 are on two NUMA nodes, yet near the same CPUs (0-1)" in line for line in problems(near))
    lscpu = "NUMA node0 CPU(s): 0-31\nNUMA node1 CPU(s): 32-63\n"
    wrong = parse_smi(lscpu + smi(NEAR, ["32-63"] * 4 + ["0-31"] * 4, [0] * 4 + [1] * 4))
    assert "GPU 0: its nearest CPUs (32-63) are none of NUMA node 0 (0-31)" in problems(wrong)[0]


def test_adapters_and_what_is_behind_nvlink():
    levels = [["X", "NV4", "SYS"], ["NV4", "X", "SYS"], ["SYS", "SYS", "X"]]
    nic_levels = [["PIX", "SYS"], ["PXB", "SYS"], ["SYS", "NODE"]]
    text = smi(levels, nics=["mlx5_0", "ib1"], nic_levels=nic_levels)
    machine = parse_smi(text)
    assert machine.pcie[0][1] == "PXB" and machine.nic_levels == tuple(map(tuple, nic_levels))
    assert [nic.name for nic in machine.nics] == ["mlx5_0", "ib1"]
    numbered = (
        text.replace("mlx5_0", "NIC0").replace("ib1", "NIC1") + "\nNIC Legend:\n\n  NIC0: mlx5_7\n  NIC1: mlx5_8\n"
    )
    assert [nic.name for nic in parse_smi(numbered).nics] == ["mlx5_7", "mlx5_8"]
    with pytest.raises(HiresxError, match="mlx5_0 to GPU0 is PHB, but GPU0 to mlx5_0 is PIX"):
        parse_smi(text.replace("mlx5_0\tPIX", "mlx5_0\tPHB"))


@pytest.mark.parametrize("cpus", [["0-3", "0-3", "4-7", "4-7"], None])
def test_numa_nodes_that_are_not_given(cpus):
    """By the CPUs, whatever the levels say; without them by the levels, across host bridges of a node."""
    halves = [(0, 1), (2, 3)]
    levels = level_matrix(4, *([("NODE", [range(4)])] if cpus else [("NODE", halves)]))
    assert groups(parse_smi(smi(levels, cpus)))["NUMA"] == tuple(halves)


def test_peer_access_in_the_same_report():
    levels = level_matrix(2, ("PHB", [(0, 1)]))
    report = (
        smi(levels)
        + "\n$ nvidia-smi topo -p2p r\n\tGPU0\tGPU1\nGPU0\tX\tGNS\nGPU1\tGNS\tX\n\n  GNS = GPU not supported\n"
    )
    machine = parse_smi(report)
    assert machine.peer == (("X", "GNS"), ("GNS", "X")) and machine.levels[0][1] == "PHB"
    assert any("no peer access (GNS)" in line for line in problems(machine))
    assert parse_smi(smi(levels)).peer == (("X", ""), ("", "X"))


def test_a_table_with_a_column_of_nodes_and_bold_levels():
    table = "| | GPU0 | GPU1 | NUMA |\n|---|---|---|---|\n| GPU0 | X | **NV4** | 0 |\n| GPU1 | **NV4** | X | 1 |\n"
    machine = parse_smi(table)
    assert machine.levels[0][1] == "NV4" and [(gpu.numa, gpu.cpus) for gpu in machine.gpus] == [(0, None), (1, None)]
    lines = "+------+------+------+-----+\n"
    rows = ("|      | GPU0 | GPU1 | HSN |", "| GPU0 | X    | NV12 | SYS |", "| GPU1 | NV12 | X    | SYS |")
    grid = lines + "".join(f"{row}\n{lines}" for row in rows)
    assert [nic.name for nic in parse_smi(grid).nics] == ["HSN"]


def test_groups_are_named_by_the_nearest_level_of_all_their_gpus():
    def named(group):
        return group.level, group.gpus, *map(named, group.children)

    switches = ("PIX", (0, 1)), ("PIX", (2, 3))
    wanted = "machine", tuple(range(7)), ("NODE", (0, 1, 2, 3), *switches), ("PIX", (4, 5, 6))
    assert named(tree(parse_smi(smi(UNEVEN, ["0-3"] * 4 + ["4-7"] * 3)))) == wanted
    apart = level_matrix(4, ("NODE", [(0, 1), (2, 3)]))
    two = "machine", (0, 1, 2, 3), ("NODE", (0, 1)), ("NODE", (2, 3))
    assert named(tree(parse_smi(smi(apart)))) == two


def test_groups_of_nvlink():
    ring = parse_smi(smi(RING, ["0-3"] * 2 + ["4-7"] * 2))
    assert groups(ring)["NV"] == ((0, 1), (2, 3)) and [c.gpus for c in tree(ring).children] == [(0, 1), (2, 3)]
    # On one NUMA node, whose GPUs are not all linked, the pairs with most links.
    beside = [[word.replace("SYS", "PHB") for word in row] for row in RING]
    assert groups(parse_smi(smi(beside, ["0-7"] * 4)))["NV"] == ((0, 1), (2, 3))
    # A pair of NVLink across two switches comes together before the switches do.
    bridged = level_matrix(4, ("PIX", [(0, 1), (2, 3)]), ("PHB", [(0, 1, 2, 3)]))
    bridged[1][2] = bridged[2][1] = "NV4"
    assert tree(parse_smi(smi(bridged))).gpus == (0, 1, 2, 3)
    alone = parse_smi(smi([["X"]], ["0-71"], [0]))
    assert tree(alone).gpus == (0,) and groups(alone)["NV"] == ((0,),)


@pytest.mark.parametrize("version", ["1", "2.0", "3.0"])
def test_hwloc_of_every_layout(version):
    machine = parse(hwloc_xml(version), "example.xml")
    assert [gpu.bus_id for gpu in machine.gpus] == ["0000:03:00.0", "0000:04:00.0", "0000:81:00.0"]
    assert machine.levels == (("X", "PIX", "SYS"), ("PIX", "X", "SYS"), ("SYS", "SYS", "X"))
    assert [gpu.numa for gpu in machine.gpus] == [0, 0, 1] and machine.nic_levels == (("SYS",), ("SYS",), ("PHB",))
    assert format_list(machine.gpus[0].cpus) == "0-3" and len(machine.cores) == 4 and len(machine.packages) == 2
    assert machine.nics[0].rdma and machine.host == "example" and machine.numa[1].memory == 8 * 2**30


def test_problems_are_told():
    machine = parse(hwloc_xml(), "example.xml")
    without = replace(machine, numa=(machine.numa[0], replace(machine.numa[1], memory=0)))
    assert any("no memory" in line for line in problems(without))
    outside = replace(machine, allowed=frozenset([0, 1]))
    assert any("GPU 2: none of its nearest CPUs" in line for line in problems(outside))
    busy = replace(machine, gpus=(replace(machine.gpus[0], utilisation=97), *machine.gpus[1:]))
    assert any("GPU 0 is busy: 97 %" in line for line in problems(busy))
    peer = (("X", "CNS", "OK"), ("CNS", "X", "OK"), ("OK", "OK", "X"))
    assert any("no peer access (CNS) between GPUs 0-1" in line for line in problems(replace(machine, peer=peer)))
    slow = description.MeasuredSpeeds(((None, 5.0, 9.0), (5.0, None, 9.0), (9.0, 9.0, None)), ((None,) * 3,) * 3)
    assert any("is ACS on?" in line for line in problems(replace(machine, measured=slow)))
    odd = parse_smi(smi([["X", "PHB", "SYS"], ["PHB", "X", "PHB"], ["SYS", "PHB", "X"]]))
    assert any("GPU 0 and GPU 2 are SYS of each other, yet both are PHB" in line for line in problems(odd))
    far = parse_smi(smi(level_matrix(3), ["0-11"] * 3))
    assert any("hides its topology" in line for line in problems(far))
    # one GPU for each socket
    apart = parse_smi(smi(level_matrix(2), ["0-11", "12-23"], [0, 1]))
    assert not any("hides its topology" in line for line in problems(apart))


@pytest.mark.parametrize(("memory", "used", "told"), [(8, 3, "38%"), (8, None, "-"), (None, 3, "-")])
def test_memory_in_use_is_told_as_a_share(memory, used, told):
    machine = parse(hwloc_xml(), "example.xml")
    gpu = replace(machine.gpus[0], memory=memory, memory_used=used)
    (cell,) = gpu_table(replace(machine, gpus=(gpu,))).columns[5].cells
    assert str(cell) == told


def test_a_switch_is_shown_above_gpus_right_below_it():
    gpus = [description.GPU(n, f"0000:0{n + 3}:00.0", path=("0000:00", "0000:02:00.0")) for n in range(2)]
    machine = description.Machine("made", **description.device_matrices(gpus, (), lambda a, b: "PIX"))
    (bridge,) = picture_tree(machine).children
    (switch,) = bridge.children
    assert str(switch.label) == "PCIe switch 0000:02:00.0" and len(switch.children) == 2


def test_sets_of_cpus():
    assert parse_list("0,3-5") == {0, 3, 4, 5} and parse_list("") is None and parse_list("1-") is None
    assert parse_mask("0x00000303,,0x3") == {0, 1, 64, 65, 72, 73} and parse_mask("0xf...f") is None
    assert format_list({9, 3, 4, 5}) == "3-5,9" and format_list(()) == ""


@needs_shared
def test_agreement_with_mpibind():
    """mpibind's mappings of whole machines with as many tasks as cores, GPUs, or two per GPU: the same GPU for every
    task when ranks share GPUs evenly, and CPUs near it. Where mpibind differs, test_mpibind_differs says why."""
    from hiresx.placement.cores import cut
    from hiresx.placement.facts import PlacementFacts

    for name, tests in (("coral-lassen", (1, 3, 11)), ("epyc-corona", (1, 11))):
        machine = load(RECORDINGS / f"hwloc/mpibind-{name}.xml")
        every = frozenset().union(*(node.cpus for node in machine.numa))
        expected = mpibind(name)
        for number in tests:
            cpus, gpus = expected[number]
            count = len(cpus)
            if count < len(machine.gpus):
                # Fewer tasks than GPUs: mpibind gives a task several, which are those of its NUMA node.
                ours = [
                    [g.index for g in machine.gpus if g.numa == node]
                    for node in dict.fromkeys(g.numa for g in machine.gpus)
                ]
                assert gpus == ours
                continue
            placement = [rank * len(machine.gpus) // count for rank in range(count)]
            assert [[gpu] for gpu in placement] == gpus, (name, number)
            seats = {rank: machine.gpus[gpu] for rank, gpu in enumerate(placement)}
            shares = cut(machine, {rank: PlacementFacts("host", every) for rank in seats}, seats)
            for rank, own in ((rank, share.cpus) for rank, share in shares.items()):
                assert cpus[rank] <= machine.gpus[placement[rank]].cpus
                if count <= len(machine.cores):
                    assert cpus[rank] <= own, (name, number, rank)


@needs_shared
def test_mpibind_differs():
    """Corona, one task to each NUMA node without the GPUs in mind (test 10): tasks 0, 3, 4 and 6 get no GPU, since
    there is none on their node. Ours never does that: a rank has a GPU, and is bound to the CPUs near it. Test 5
    restricts tasks to core 0, which is near no GPU: mpibind gives none, ours warns and stays on that core."""
    from hiresx.placement.cores import cut
    from hiresx.placement.facts import PlacementFacts

    machine = load(RECORDINGS / "hwloc/mpibind-epyc-corona.xml")
    expected = mpibind("epyc-corona")
    assert expected[10][1] == [[], [0], [1], [], [], [2], [], [3]]
    assert [gpu.numa for gpu in machine.gpus] == [1, 2, 5, 7]
    assert expected[5][1] == [[], []]
    share = cut(machine, {0: PlacementFacts("host", frozenset({0, 48}))}, {0: machine.gpus[0]})[0]
    assert share.cpus == {0, 48} and share.why == ("none of its CPUs is near its GPU",)


def mpibind(name: str) -> dict[int, tuple[list[frozenset[int]], list[list[int]]]]:
    """(CPUs, GPUs) of every task, by number of the test."""
    found, number, quoted = {}, 0, []
    for line in (RECORDINGS / f"mpibind-expected/mpibind-expected.{name}.txt").read_text().splitlines():
        if line.startswith("#") and line.strip("# :").isdigit():
            number, quoted = int(line.strip("# :")), []
        elif line.startswith('"'):
            quoted.append(line.strip().strip('"').split(";"))
            if len(quoted) == 3:
                gpus = [[int(g) for g in entry.split(",") if g] for entry in quoted[2]]
                found[number] = [parse_list(entry) for entry in quoted[1]], gpus
    return found


@pytest.mark.parametrize(
    ("cpu", "name"),
    [
        ('arch="arm64" vendor="Neoverse" familyid="8" modelid="212"', "ARM Neoverse (family 8, model 212)"),
        ('arch="ppc64" vendor="unknown" familyid="2" modelid="0"', "POWER (family 2, model 0)"),
        ('arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"', "AMD EPYC (family 143, model 49)"),
    ],
)
def test_processors_of_ncclxml_have_the_name_of_their_family(cpu, name):
    text = nccl_xml().replace('arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"', cpu)
    assert {package.model for package in parse(text, "system.xml").packages} == {name}
