"""Damaged grid files of every container: one error in words or a grid, soon, and in memory that the file accounts for.

`HIRESX_FUZZ_EXAMPLES` sets how many mutated files of each container are tried (2,400 in all by 160 of each).
"""

import os
import resource
import signal
import tracemalloc

import numpy as np
import pytest
from adf_files import from_hdf5
from arrangements import shaken
from multiblock import Arrangement
from plot3d_files import write
from test_cgns import written
from test_foreign_connectivity import WRITERS
from test_grid_delivered import as_delivered

from hiresx.errors import HiresxError
from hiresx.grid import Grid, stored_coordinates, write_plot3d
from hiresx.grid.from_file import read_raw
from hiresx.grid.grid_report import grid_report

EXAMPLES = int(os.environ.get("HIRESX_FUZZ_EXAMPLES", "20"))
# Seconds that no file of this size takes on the busiest machine.
LONG = 30
# Bytes that reading takes whatever the file.
ANYWAY = 1_000_000

SOLID = Arrangement(shaken((18, 17, 16)).blocks[0], 2, 1, True)
PLANE = Arrangement(shaken((25, 24, 1)).blocks[0], 2, 1, True)


def solid(folder, **how):
    write(folder / "g.dat", [np.stack([b.x, b.y, b.z]) for b in SOLID.blocks], **how)
    return folder / "g.dat"


def plane(folder, **how):
    write(folder / "g.dat", [np.stack([b.x, b.y]) for b in PLANE.blocks], **how)
    return folder / "g.dat"


def layers(folder, **how):
    write(folder / "g.dat", as_delivered(PLANE.blocks, 0, "xz"), **how)
    return folder / "g.dat"


def ones():
    return [np.ones(b.x.shape, dtype=int) for b in SOLID.blocks]


def adf(folder, version, order, pieces):
    from_hdf5(written(folder / "g.cgns", SOLID), folder / "g.adf", version, order, pieces=pieces)
    return folder / "g.adf"


CONTAINERS = {
    "plot3d text": lambda f: solid(f, form="text"),
    "plot3d records, little-endian": lambda f: solid(f, form="records"),
    "plot3d records, big-endian, single": lambda f: solid(f, form="records", order=">", real="f4"),
    "plot3d stream": lambda f: solid(f, form="stream"),
    "plot3d stream, big-endian, single": lambda f: solid(f, form="stream", order=">", real="f4"),
    "plot3d with blanking": lambda f: solid(f, form="stream", blanking=ones()),
    "plot3d 2-D": lambda f: plane(f, form="records"),
    "plot3d two planes": lambda f: layers(f, form="stream"),
    "CGNS HDF5": lambda f: written(f / "g.cgns", SOLID),
    "CGNS ADF": lambda f: adf(f, "A", "<", 1),
    "CGNS ADF, version B, big-endian": lambda f: adf(f, "B", ">", 3),
}
CONNECTIVITY = {
    "NMF": WRITERS["nmf"][0],
    "CFL3D": WRITERS["cfl3d"][0],
    "Gridgen": WRITERS["gridgen"][0],
    "GridPro": lambda a: f"# GridPro\n{len(a.blocks)}\n" + "\n".join(
        f"B {n} " + " ".join(["pdc 2 0 0"] * 6) + " ." for n in range(len(a.blocks))
    ),
}  # fmt: skip


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """Bytes changed, most often at the beginning; numbers made absurd; parts cut out, doubled or lost at the end."""
    data = bytearray(content)
    for _ in range(random.integers(1, 5)):
        at = int(random.integers(min(len(data), 200) if random.random() < 0.5 else len(data)))
        how = random.integers(6)
        if how == 0:
            data[at] = int(random.integers(256))
        elif how == 1:
            at -= at % 4
            number = int(random.choice([0, -1, 1, 2**31 - 1, -(2**31), 7, 10**6, 3]))
            data[at : at + 4] = number.to_bytes(4, str(random.choice(["little", "big"])), signed=True)
        elif how == 2:
            del data[at : at + int(random.integers(1, 64))]
        elif how == 3:
            data[at:at] = data[at : at + int(random.integers(1, 64))]
        elif how == 4 and random.random() < 0.3:
            del data[at:]
        else:
            data[at : at + 1] = bytes(random.choice(list(b" 0-9eE.,\n*\xff\x7f"), 1).astype("u1"))
        if not data:
            break
    return bytes(data)


def too_long(*_):
    raise AssertionError(f"not done after {LONG} s")


def tried(path, connectivity, size: int, limit: int) -> bool:
    """Whether a file is a grid; asserts what must hold of it in any case."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LONG)
    tracemalloc.start()
    try:
        read_raw(path, connectivity)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < limit
        found = grid_report(path, connectivity)
        said = found.get("refused", "")
        assert "\n" not in said
        return not said
    except HiresxError as error:
        assert error.message and error.hint and "\n" not in error.message and "Traceback" not in error.message
        peak = tracemalloc.get_traced_memory()[1]
        assert peak < limit or not tracemalloc.is_tracing()
        return False
    finally:
        signal.alarm(0)
        tracemalloc.stop()


def most_memory() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("large", [False, True], ids=["in memory", "in the file"])
@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.slow
def test_damaged_containers(tmp_path, monkeypatch, name, large):
    monkeypatch.setattr(stored_coordinates, "LARGE", 0 if large else stored_coordinates.LARGE)
    content = CONTAINERS[name](tmp_path).read_bytes()
    random = np.random.default_rng(len(name) + 100 * large)
    read_raw(next(tmp_path.glob("g.*")), None)  # what is imported for it is not counted
    path, before = tmp_path / "damaged", most_memory()
    for n in range(max(EXAMPLES // 2, 1)):
        data = damaged(content, random) if n else content
        path.write_bytes(data)
        usable = tried(path, None, len(data), 4 * len(data) + ANYWAY)
        assert usable or n
    assert most_memory() - before < 200e6  # what libraries take is counted, too


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", CONNECTIVITY)
def test_damaged_connectivity(tmp_path, name):
    write_plot3d(tmp_path / "g.x", Grid(tuple(SOLID.blocks)))
    size = (tmp_path / "g.x").stat().st_size
    content = CONNECTIVITY[name](SOLID).encode()
    random = np.random.default_rng(len(name))
    for n in range(EXAMPLES):
        data = damaged(content, random) if n else content
        (tmp_path / "c.dat").write_bytes(data)
        usable = tried(tmp_path / "g.x", tmp_path / "c.dat", size, 4 * (size + len(data)) + ANYWAY)
        assert usable or n or name == "GridPro"


def test_gridpro_is_refused_by_name(tmp_path):
    write_plot3d(tmp_path / "g.x", Grid(tuple(SOLID.blocks)))
    (tmp_path / "blk.tmp.conn").write_text(CONNECTIVITY["GridPro"](SOLID))
    with pytest.raises(HiresxError, match="of GridPro: how it codes the orientation of two faces is not published"):
        read_raw(tmp_path / "g.x", tmp_path / "blk.tmp.conn")
