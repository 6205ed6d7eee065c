"""Whatever a file holds: a machine or one clear fault, never another exception, never a hang.

HIRESX_FUZZ_EXAMPLES sets the number of examples of each fuzz test (default 150; 10000 before a release).
"""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topology_recordings import RING, UNEVEN, hwloc_box, hwloc_xml, level_matrix, nccl_xml, smi

from hiresx.errors import HiresxError
from hiresx.topology import machine as description
from hiresx.topology import smi_rows, xml_tree
from hiresx.topology.groups import groups, tree
from hiresx.topology.load import parse
from hiresx.topology.parse_smi import parse_smi
from hiresx.topology.problems import problems
from hiresx.topology.report import document

EXAMPLES = int(os.environ.get("HIRESX_FUZZ_EXAMPLES", "150"))
fuzz = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

WHOLE = smi(UNEVEN, ["0-3"] * 4 + ["4-7"] * 3, [0] * 4 + [1] * 3)
SEEDS = [
    WHOLE,
    smi(RING, nics=["mlx5_0"], nic_levels=[["PIX"], ["PIX"], ["SYS"], ["SYS"]]),
    hwloc_xml("2.0"),
    hwloc_xml("1"),
]
SEEDS += [hwloc_box(), nccl_xml(), nccl_xml("pairs")]
SEEDS.append(json.dumps(description.to_json(parse(hwloc_xml(), "seed"))))


def read(text: str):
    """The machine, fit for everything that is asked of one, or None after one clear fault."""
    try:
        machine = parse(text, "file")
    except HiresxError as fault:
        assert fault.message.startswith("file") and "\n" not in fault.message and len(fault.message) < 400
        fault.message.encode()
        machine = None
    else:
        assert not machine.live
        found = groups(machine)
        assert all(sorted(sum(parts, ())) == list(range(len(machine.gpus))) for parts in found.values())
        assert set(tree(machine).gpus) == set(range(len(machine.gpus)))
        problems(machine)
        text = json.dumps(document(machine))
        text.encode()
        description.from_json(text)
    return machine


FAULTS = {
    "empty": ("", "no row"),
    "p2p": (smi([["X", "OK"], ["OK", "X"]]).replace("PIX", "OK"), "topo -p2p"),
    "p2p, not supported": ("\tGPU0\tGPU1\nGPU0\tX\tCNS\nGPU1\tCNS\tX\n\n  CNS  = Chipset not supported\n", "topo -p2p"),
    "p2p of one GPU": (
        "\tGPU0\nGPU0\tX\n\nLegend:\n  X = Self\n  OK = Status Ok\n  CNS = Chipset not supported\n",
        "topo -p2p",
    ),
    "rows cut off": ("\n".join(WHOLE.splitlines()[:5]), "cut off"),
    "rows cut off, no header": ("\n".join(WHOLE.splitlines()[1:5]), "cut off"),
    "columns cut off": ("\n".join(line[:20] for line in WHOLE.splitlines()), "cut off"),
    "a row missing": ("\n".join(line for line in WHOLE.splitlines() if not line.startswith("GPU3")), "GPU3"),
    "not symmetric": (WHOLE.replace("GPU1\tPIX", "GPU1\tSYS"), "GPU0 to GPU1 is PIX, but GPU1 to GPU0 is SYS"),
    "rows swapped": (
        WHOLE.replace("\nGPU1\t", "\nGPUX\t").replace("\nGPU2\t", "\nGPU1\t").replace("\nGPUX\t", "\nGPU2\t"),
        "X in column",
    ),
    "two machines": (WHOLE + WHOLE.replace("NODE", "PHB"), "two rows of GPU0"),
    "a contradiction": (
        smi([["X", "PIX", "SYS"], ["PIX", "X", "PIX"], ["SYS", "PIX", "X"]]),
        "a contradiction",
    ),
    "too many GPUs": ("GPU9999\tX\tPIX\n", "no machine has that many"),
    "a number without an end": ("GPU" + "9" * 5000 + "\tX\n", "no row"),
    "links without an end": (smi([["X", "NV99999"], ["NV99999", "X"]]), "cut off"),
    "binary": ("\x7fELF\x00\x01" * 100, "no row"),
    "one long line": ("GPU0 " * 100000, "characters are no row"),
    "XML of something else": ('<?xml version="1.0"?><html/>', "not hwloc's"),
    "XML cut off": (hwloc_xml()[:2000], "cut off"),
    "XML without objects": ("<topology/>", "without any object"),
    "entities": (
        '<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><topology>&b;</topology>',
        "entities",
    ),
    "outer entity": (
        '<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a SYSTEM "/etc/passwd">]><topology>&a;</topology>',
        "entities",
    ),
    "too deep": ("<topology>" + '<object type="Group">' * 500 + "</object>" * 500 + "</topology>", "deeper"),
    "unknown encoding": ('<?xml version="1.0" encoding="nothing"?><topology/>', "without any object"),
    "no snapshot": ('{"a": 1}', "not a snapshot"),
    "JSON cut off": (SEEDS[-1][:300], "not JSON"),
    "deep JSON": ('{"a":' * 100000, "not JSON"),
    "later version": ('{"format": "hiresx-topology", "version": 2}', "version 2"),
    "unknown key": ('{"format": "hiresx-topology", "version": 1, "\\ud800\\u001b[2J": 1}', "unknown key"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_one_clear_fault(name):
    text, expected = FAULTS[name]
    with pytest.raises(HiresxError) as caught:
        parse(text, "file")
    assert expected in caught.value.message, caught.value.message
    assert read(text) is None


def test_billion_laughs_is_refused_at_once():
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(30))
    reader = xml_tree._Reader("file", "")
    text = f'<?xml version="1.0"?><!DOCTYPE t [{entities}]><topology>&a29;</topology>'
    with pytest.raises(HiresxError, match="entities"):
        reader.parser.Parse(text.encode(), True)
    assert reader.elements == 0 and reader.root is None  # nothing of it was expanded
    with pytest.raises(HiresxError, match="entities"):
        parse(text, "file")


def test_the_largest_machine_is_read():
    """64 GPUs and 64 adapters: rows are walked a fixed number of times, whatever they hold."""
    count = 64
    levels = level_matrix(
        count, ("PIX", [range(n, n + 8) for n in range(0, count, 8)]), ("NODE", [range(32), range(32, 64)])
    )
    nics = [f"mlx5_{n}" for n in range(64)]
    machine = parse_smi(smi(levels, nics=nics, nic_levels=[["NODE"] * 64 for _ in range(count)]))
    assert len(machine.gpus) == 64 and len(machine.nics) == 64 and machine.levels == tuple(map(tuple, levels))


WORDS = ["X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "PSB", "NV1", "NV18", "NV0", "OK", "CNS"]
WORDS += [
    "GPU0",
    "GPU1",
    "GPU77",
    "mlx5_0",
    "NIC0",
    "N/A",
    "0-3",
    "0,8",
    "CPU Affinity",
    "\t",
    "\n",
    " ",
    "|",
    "\x1b[4m",
]


@fuzz
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=80).map("\t".join))
def test_words_in_any_order(text):
    read(text)


@fuzz
@given(
    st.integers(1, 9).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from(WORDS[:12]), min_size=n, max_size=n), min_size=n, max_size=n)
    ),
    st.booleans(),
)
def test_matrices_of_any_words(levels, diagonal):
    if diagonal:
        for n in range(len(levels)):
            levels[n][n] = "X"
            for m in range(n):
                levels[n][m] = levels[m][n]
    read(smi(levels))


@fuzz
@given(st.sampled_from(SEEDS), st.data())
def test_damaged_recordings(seed, data):
    text = seed
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, min(len(text), at + 40)))
        text = text[:at] + data.draw(st.sampled_from(WORDS) | st.text(max_size=5)) + text[end:]
    read(text)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just([]) | st.just({})


@fuzz
@given(st.data())
def test_damaged_snapshots(data):
    document = json.loads(SEEDS[-1])
    for _ in range(data.draw(st.integers(1, 3))):
        inside = document
        while True:
            keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(inside[key], dict | list) and inside[key] and data.draw(st.booleans()):
                inside = inside[key]
                continue
            inside[key] = data.draw(VALUES)
            break
    read(json.dumps(document))


@fuzz
@given(st.binary(max_size=300))
def test_any_bytes(data):
    read(data.decode("utf-8", errors="replace"))


def test_a_word_alone_names_no_row():
    assert [smi_rows._label(words.split()) for words in ("GPU0", "GPU0 X", "so GPU0 X PIX")] == [None, 0, 1]


@pytest.mark.parametrize(
    ("key", "entries", "said"),
    [
        ("levels", {(1, 1): "PIX"}, "levels[1][1] is not X"),
        ("pcie", {(0, 1): "PHB"}, "pcie[1][0] and pcie[0][1] are not one level"),
        ("levels", {(0, 1): "X", (1, 0): "X"}, "levels[1][0] and levels[0][1] are not one level"),
        ("levels", {(0, 1): "", (1, 0): ""}, "levels[1][0] is empty"),
    ],
)
def test_levels_of_a_snapshot_that_contradict_each_other_are_refused(key, entries, said):
    whole = description.to_json(parse(hwloc_xml(), "file"))
    for (a, b), word in entries.items():
        whole[key][a][b] = word
    with pytest.raises(HiresxError) as caught:
        parse(json.dumps(whole), "file")
    assert said in caught.value.message


def test_an_unknown_key_is_named_with_the_object_that_has_it():
    whole = description.to_json(parse(WHOLE, "file"))
    for place, words in ((whole, '"voltage"'), (whole["gpus"][1], '"gpus[1].voltage"')):
        place["voltage"] = 1
        with pytest.raises(HiresxError) as caught:
            parse(json.dumps(whole), "file")
        assert f"unknown key {words}" in caught.value.message
        del place["voltage"]
