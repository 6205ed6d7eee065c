"""Tables of `nvidia-smi topo -m` as wide and as damaged as they come: every cell is used or named; what NVLink hides
follows from the tree of PCIe."""

import itertools

import numpy as np
import pytest
from topology_recordings import level_matrix, smi

from hiresx.errors import HiresxError
from hiresx.topology import connection_levels, infer
from hiresx.topology.cpus import format_list
from hiresx.topology.load import parse
from hiresx.topology.parse_smi import parse_smi
from hiresx.topology.problems import problems


def wide(gpus: int, nics: int) -> str:
    """GPUs joined by NVLink and adapters, half of each on either socket; affinities with the empty column that the
    tool writes."""
    size = gpus + nics
    labels = [f"GPU{n}" for n in range(gpus)] + [f"NIC{n}" for n in range(nics)]
    side = [2 * n // gpus for n in range(gpus)] + [2 * n // nics for n in range(nics)]
    lines = ["\t" + "\t".join(labels) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"]
    for a in range(size):
        row = [labels[a]]
        for b in range(size):
            linked = max(a, b) < gpus
            row.append("X" if a == b else "NV18" if linked else "NODE" if side[a] == side[b] else "SYS")
        if a < gpus:
            row += [("0-55,112-167", "56-111,168-223")[side[a]], str(side[a]), "", "N/A"]
        lines.append("\t".join(row))
    return "\n".join(lines) + "\n"


def is_wide(machine, gpus: int, nics: int) -> None:
    sides = [["NODE" if 2 * g // gpus == 2 * n // nics else "SYS" for n in range(nics)] for g in range(gpus)]
    assert [list(row) for row in machine.nic_levels] == sides
    assert [gpu.numa for gpu in machine.gpus] == [2 * g // gpus for g in range(gpus)]
    assert format_list(machine.gpus[-1].cpus) == "56-111,168-223" and not machine.problems
    assert machine.nic_pairs[0][1] == "NODE" and machine.nic_pairs[0][-1] == "SYS" and len(machine.nic_pairs) == nics
    assert [machine.pcie[0][g] for g in (1, gpus - 1)] == ["NODE", "SYS"] and machine.levels[0][1] == "NV18"


@pytest.mark.parametrize(("gpus", "nics"), [(8, 36), (8, 72), (16, 18), (4, 4)])
def test_any_number_of_columns(gpus, nics):
    text = wide(gpus, nics)
    is_wide(parse_smi(text), gpus, nics)
    is_wide(parse_smi(text.expandtabs(8)), gpus, nics)
    lines = text.splitlines()
    mixed = [lines[0], *reversed(lines[1:])]  # rows in another order
    is_wide(parse_smi("\n".join(mixed)), gpus, nics)


def test_words_that_run_together():
    """Columns too narrow for their words: NODENODE, NV18NV18, NIC24NIC25, a label with its first level."""
    text = wide(8, 36).expandtabs(8)
    glued = text.replace("NODE    NODE", "NODENODE").replace("NIC24   NIC25", "NIC24NIC25")
    assert "NODENODE" in glued and "NIC24NIC25" in glued
    is_wide(parse_smi(glued), 8, 36)
    is_wide(parse_smi(text.replace("NV18    NV18", "NV18NV18").replace("SYS     SYS", "SYSSYS")), 8, 36)
    is_wide(parse_smi(text.replace("NIC20   SYS", "NIC20SYS").replace("SYS     0-55", "SYS0-55")), 8, 36)


def test_a_word_that_is_no_level_costs_no_other_column():
    lines = wide(8, 36).splitlines()
    lines[1] = lines[1].replace("NODE", "C2C", 1).replace("SYS", "ERR!", 1)
    machine = parse_smi("\n".join(lines))
    assert machine.nic_levels == parse_smi(wide(8, 36)).nic_levels
    assert any("line 2: 'C2C' between GPU0 and NIC0 is no level: NODE by the other row" in p for p in machine.problems)
    alone = "\n".join(line for line in lines if not line.startswith("NIC0"))
    machine = parse_smi(alone)
    assert machine.nic_levels[0][0] == "NODE"  # GPU1 is NODE from both, GPU7 SYS from both: no nearer is known
    assert any("inferred from the others" in line for line in machine.problems)
    pair = parse_smi(smi([["X", "ODD", "SYS"], ["PIX", "X", "SYS"], ["SYS", "SYS", "X"]]))
    assert pair.levels[0][1] == "PIX" and "PIX by the other row" in pair.problems[0]
    with pytest.raises(HiresxError, match="cut off"):
        parse_smi(smi([["X", "ODD"], ["ODD", "X"]]))


def test_columns_are_counted_against_the_header():
    lines = wide(4, 4).splitlines()
    more = [lines[0], lines[1].replace("\t0-55", "\tPHB\t0-55"), *lines[2:]]
    assert any("1 more levels than the header has columns" in line for line in parse_smi("\n".join(more)).problems)
    names = lines[0].replace("NIC3", "NIC3\tNIC4\tNIC5")
    machine = parse_smi("\n".join([names, *lines[1:]]))
    assert len(machine.nics) == 4 and any("nothing is known of NIC4, NIC5" in line for line in machine.problems)
    assert format_list(machine.gpus[0].cpus) == "0-55,112-167" and machine.gpus[3].numa == 1
    short = ["\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID", *lines[1:]]
    machine = parse_smi("\n".join(short))
    assert [nic.name for nic in machine.nics] == ["NIC0", "NIC1", "NIC2", "NIC3"] and machine.gpus[3].numa == 1
    assert machine.nic_levels == parse_smi("\n".join(lines)).nic_levels and "counted by the rows" in machine.problems[0]
    labelled = parse_smi("\n".join(f"0: {line}" for line in lines))  # as `srun --label` writes
    assert labelled.nic_pairs == machine.nic_pairs and labelled.gpus == machine.gpus
    mode = [
        lines[0].replace("\tCPU", "\tMIG M.\tCPU", 1),
        *(line.replace("\t0-55", "\tEnabled\t0-55") for line in lines[1:]),
    ]
    mode = [line.replace("\t56-", "\tEnabled\t56-") for line in mode]
    machine = parse_smi("\n".join(mode))
    assert len(machine.nics) == 4 and machine.gpus[3].numa == 1
    assert any("column MIG holds no level" in line for line in machine.problems)
    extra = [*lines, "NIC9\t" + "\t".join(["SYS"] * 8)]
    assert any("NIC9 belongs to no column" in line for line in parse_smi("\n".join(extra)).problems)
    said = [lines[0], lines[1] + "\tmore words", *lines[2:]]
    assert any("line 2: not used: 'more words'" in line for line in parse_smi("\n".join(said)).problems)


def test_columns_in_another_order():
    text = "\tNIC0\tGPU1\tGPU0\tCPU Affinity\nNIC0\tX\tPIX\tSYS\nGPU0\tSYS\tPHB\tX\t0-3\nGPU1\tPIX\tX\tPHB\t4-7\n"
    machine = parse_smi(text)
    assert machine.nic_levels == (("SYS",), ("PIX",)) and machine.levels[0][1] == "PHB"
    assert [format_list(gpu.cpus) for gpu in machine.gpus] == ["0-3", "4-7"]


PAIRS = level_matrix(4, ("PIX", [(0, 1), (2, 3)]))


@pytest.mark.parametrize("form", ["table", "table, label last", "plain", "numa first", "with blanks"])
def test_affinities_on_either_side(form):
    cpus, numa = ["0,3-9,11-17", "18-35"], [0, 1]
    if form.startswith("table"):
        head = ["CPU Affinity", "NUMA Affinity", ""] if form == "table, label last" else ["", "CPU Affinity", "NUMA"]
        lines = ["| " + " | ".join([*head, *(f"GPU{n}" for n in range(4))]) + " |", "|" + "---|" * 7]
        for n in range(4):
            beside = [cpus[n // 2], str(numa[n // 2])]
            front = [*beside, f"GPU{n}"] if form == "table, label last" else [f"GPU{n}", *beside]
            lines.append("| " + " | ".join([*front, *PAIRS[n]]) + " |")
        text = "\n".join(lines)
    elif form == "plain":
        text = "\n".join(" ".join([cpus[n // 2], str(n // 2), f"GPU{n}", *PAIRS[n]]) for n in range(4))
    elif form == "numa first":
        lines = ["\t".join(["", *(f"GPU{n}" for n in range(4)), "NUMA Affinity", "CPU Affinity"])]
        lines += ["\t".join([f"GPU{n}", *PAIRS[n], str(n // 2), cpus[n // 2]]) for n in range(4)]
        text = "\n".join(lines)
    else:
        text = smi(PAIRS, [cpus[n // 2].replace(",", ", ") for n in range(4)], [n // 2 for n in range(4)])
    machine = parse_smi(text)
    assert [format_list(gpu.cpus) for gpu in machine.gpus] == [cpus[0]] * 2 + [cpus[1]] * 2
    assert [gpu.numa for gpu in machine.gpus] == [0, 0, 1, 1] and machine.levels == tuple(map(tuple, PAIRS))
    assert not [line for line in machine.problems if "clipped" not in line]


def test_lists_of_numa_nodes():
    """Boards whose GPUs' memory is NUMA nodes too: the list is kept, and is one node where only one has CPUs."""
    machine = parse_smi(smi(PAIRS, ["0-71"] * 4, ["0,3-9,11-17"] * 4))
    assert format_list(machine.gpus[0].nodes) == "0,3-9,11-17" and machine.gpus[0].numa is None
    text = (
        smi([["X"]], ["0-71"], ["0,2"]).replace("NUMA Affinity", "NUMA Affinity\tGPU NUMA ID").replace("0,2", "0,2\t2")
    )
    assert parse_smi(text).gpus[0].numa == 0
    lines = ["\t".join(["", *(f"GPU{n}" for n in range(4)), "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    lists, linked = ["0,2-17", "1,18-33"], [["X" if a == b else "NV18" for b in range(4)] for a in range(4)]
    lines += [
        "\t".join([f"GPU{n}", *linked[n], f"{n // 2}-{n // 2}", lists[n // 2], "", str(2 + 8 * n)]) for n in range(4)
    ]
    machine = parse_smi("\n".join(lines))
    assert [gpu.numa for gpu in machine.gpus] == [0, 0, 1, 1] and format_list(machine.gpus[3].nodes) == lists[1]
    assert machine.pcie[0][1] == "NODE" and machine.pcie[0][2] == "SYS"
    report = "Model name:  Neoverse-V2\nNUMA node0 CPU(s):  0-71\nNUMA node2 CPU(s):\n" + smi(
        [["X"]], ["0-71"], ["0,2"]
    )
    machine = parse_smi(report)
    assert machine.gpus[0].numa == 0 and machine.cpu == "Neoverse-V2" and machine.numa[0].cpus == frozenset(range(72))


def test_affinities_that_a_job_clipped_are_told():
    clipped = parse_smi(smi(PAIRS, ["0", "0", "36-71", "36-71"], [0, 0, 1, 1]))
    assert any("GPU 0-1 (0) is clipped" in line and "others have 36" in line for line in clipped.problems)
    assert not any("clipped" in line for line in parse_smi(smi(PAIRS, ["0-3"] * 2 + ["4-7"] * 2)).problems)
    odd = parse_smi(smi(PAIRS, ["0-3,..."] * 4))
    assert any("0-3,..." in line and "not used" in line for line in odd.problems)
    none = parse_smi(smi(PAIRS, ["0-3", "0-3", "N/A", "N/A"]))
    assert any("no CPU affinity for GPU 2-3" in line for line in none.problems)


def test_other_tools_are_refused_by_name():
    text = "=== ROCm System Management Interface ===\n       GPU0  GPU1\nGPU0   0     XGMI\nGPU1   XGMI  0\n"
    with pytest.raises(HiresxError, match="rocm-smi"):
        parse(text, "file")
    for sentence in ("GPU0 and GPU1 are PIX", "GPU0: is it PIX or PXB?"):
        with pytest.raises(HiresxError, match="no row"):
            parse_smi(sentence + "\n")


REPORT = """GPU 0: NVIDIA H200 (UUID: GPU-1a2b)
GPU 1: NVIDIA H200 (UUID: GPU-3c4d)

GPU 00000000:18:00.0
    Product Name                          : NVIDIA H200
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 16x
GPU 00000000:2A:00.0
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
            Link Width
                Max                       : 8x
"""


def test_what_the_report_says_of_the_links_is_used():
    matrix = smi([["X", "PHB"], ["PHB", "X"]])
    machine = parse_smi(REPORT + matrix)
    assert [gpu.bus_id for gpu in machine.gpus] == ["0000:18:00.0", "0000:2a:00.0"]
    assert [gpu.model for gpu in machine.gpus] == ["NVIDIA H200"] * 2 and machine.gpus[1].uuid == "GPU-3c4d"
    assert machine.gpus[0].pcie == pytest.approx(63.0, 0.01) and machine.gpus[1].pcie == pytest.approx(15.75, 0.01)
    assert any("GPU 1 are 15.8 GB/s, their model can do 63" in line for line in problems(machine))
    table = "index, name, pcie.link.gen.max, pcie.link.width.max\n0, NVIDIA A10, 4, 16\n1, NVIDIA A10, 4, 8\n"
    machine = parse_smi(table + matrix)
    assert [round(gpu.pcie, 1) for gpu in machine.gpus] == [31.5, 15.8] and machine.gpus[0].model == "NVIDIA A10"


@pytest.mark.parametrize(
    ("rate", "share"),
    [(2.5, 0.8), (5.0, 0.8), (8.0, 128 / 130), (16.0, 128 / 130), (32.0, 128 / 130), (64.0, 242 / 256)],
)
def test_pcie_of_every_generation(rate, share):
    """Bits of all lanes less those of the coding, 8 in 10 and 128 in 130, or of the packets' ends, 242 in 256 bytes."""
    for width in (16, 4):
        found = connection_levels.pcie_speed_of_rate(f"{rate} GT/s PCIe", str(width))
        assert found == pytest.approx(rate * width / 8 * share, rel=1e-4)


def test_pcie_is_as_fast_as_the_recording_or_the_model_says():
    from hiresx.topology.cost import Model

    matrix = smi([["X", "PIX"], ["PIX", "X"]])
    speeds = {}
    for model in ("", "NVIDIA H200", "NVIDIA A100-PCIE-40GB", "Tesla V100-PCIE-16GB"):
        text = "".join(f"GPU {n}: {model} (UUID: GPU-{n})\n" for n in range(2)) if model else ""
        speeds[model] = Model(parse_smi(text + matrix)).bandwidth[0, 1]
    assert [speeds[model] for model in speeds] == pytest.approx([12.0, 48.0, 24.0, 12.0])
    slow = REPORT.replace("Max                       : 5", "Max                       : 3")
    assert Model(parse_smi(slow + matrix)).bandwidth[0, 1] == pytest.approx(12.0, rel=1e-4)


# ---- the tree


def random_tree(draw, size: int) -> np.ndarray:
    """Levels of the leaves of a tree: each inner node has one, no nearer than those below it."""
    rank = np.full((size, size), infer.UNKNOWN)

    def split(some, level):
        parts = np.array_split(draw.permutation(some), max(2, int(draw.integers(2, 5)))) if len(some) > 1 else []
        for a, b in itertools.combinations(range(len(parts)), 2):
            rank[np.ix_(parts[a], parts[b])] = rank[np.ix_(parts[b], parts[a])] = level
        for part in parts:
            if len(part) > 1:
                split(part, max(0, level - int(draw.integers(0, 3))))

    split(np.arange(size), len(connection_levels.PCIE) - 1)
    return rank


@pytest.mark.parametrize("seed", range(20))
def test_what_is_inferred_contradicts_no_tree(seed):
    """Pairs hidden at random: what is inferred is never nearer than it is, and exact where a third device proves it."""
    draw = np.random.default_rng(seed)
    size = int(draw.integers(3, 20))
    true = random_tree(draw, size)
    hidden = np.triu(draw.random((size, size)) < draw.choice([0.2, 0.5]), 1)
    hidden |= hidden.T
    known = np.where(hidden, infer.UNKNOWN, true)
    words, wrong = infer.complete(known)
    assert not wrong
    for a, b in itertools.combinations(range(size), 2):
        found = connection_levels.RANK.get(words[a][b], infer.UNKNOWN)
        assert words[a][b] == words[b][a] and found >= true[a, b]
        third = [c for c in range(size) if c not in (a, b) and not hidden[a, c] and not hidden[b, c]]
        if not hidden[a, b] or any(true[a, c] != true[b, c] for c in third):
            assert found == true[a, b]
        assert found <= min((max(true[a, c], true[b, c]) for c in third), default=infer.UNKNOWN)


def test_adapters_prove_what_affinity_only_suggests():
    """Both GPUs on one NUMA node by their affinity, yet one adapter is PIX of the first and SYS of the second."""
    linked = [["X", "NV4", "NV4"], ["NV4", "X", "NV4"], ["NV4", "NV4", "X"]]
    near = [["PIX", "SYS"], ["SYS", "PHB"], ["PXB", "SYS"]]
    machine = parse_smi(smi(linked, ["0-7"] * 3, [0] * 3, nics=["mlx5_0", "mlx5_1"], nic_levels=near))
    assert machine.pcie == (("X", "SYS", "PXB"), ("SYS", "X", "SYS"), ("PXB", "SYS", "X"))
    odd = parse_smi(smi(linked, nics=["a_0", "a_1"], nic_levels=[["PIX", "PIX"], ["SYS", "PHB"], ["PIX", "PIX"]]))
    assert odd.pcie[0][1] == "PHB" and any("PHB of each other by some columns, SYS" in line for line in odd.problems)


@pytest.mark.parametrize(
    ("model", "wanted"),
    [("NVIDIA sm_60", "pascal"), ("sm_70", "volta"), ("sm_80", "ampere"), ("sm_90", "hopper"), ("sm_100", "blackwell"),
     ("sm_120", None), ("NVIDIA B200", "blackwell"), ("NVIDIA GH200 480GB", "hopper"), ("T4", None)],
)  # fmt: skip
def test_the_generation_of_a_gpu(model, wanted):
    assert connection_levels.generation(model) == wanted
