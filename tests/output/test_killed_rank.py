"""A rank that is killed while fields are written."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rank_fields import KINDS, cut, flow, grid, written
from ranks import ENVIRONMENT, launcher

from hiresx.mpi.communicator import world
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.formats import vtk


@pytest.mark.slow
def test_a_killed_rank_leaves_whole_files(tmp_path):
    if not launcher():
        pytest.skip("no mpi4py with an mpirun of its MPI")
    command = [*launcher(), "-n", "3", sys.executable, __file__, str(tmp_path)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=os.environ | ENVIRONMENT, **quiet)
    seed = int(os.environ.get("HIRESX_SEED", time.time_ns() % 10**6))
    print(f"HIRESX_SEED={seed}")  # shown when the test fails
    dice = random.Random(seed)
    try:
        end = time.monotonic() + 60
        while not list((tmp_path / "run").glob("thin_*4.nc")) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(dice.random())
        os.kill(int((tmp_path / f"pid-{dice.randrange(3)}").read_text()), signal.SIGKILL)
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait()
    found = fields.frames(tmp_path / "run")
    assert len(found) > 2
    for path in (*found.values(), *fields.frames(tmp_path / "run", "through").values()):
        assert all(np.isfinite(values).all() for b in fields.read(path).blocks for values in (b.x, *b.state.values()))
    block = fields.read(found[max(found)]).blocks[0]
    q = flow(grid(KINDS["solid"][1])[0], max(found))
    np.testing.assert_array_equal(block.state["rho"], q[0])
    assert vtk.frames(tmp_path / "run")


def write_until_killed(folder: Path) -> None:
    comm = world()
    (folder / f"pid-{comm.rank}").write_text(str(os.getpid()))
    comm.barrier()
    parts = cut(grid(KINDS["solid"][1]), 5, comm.size, random.Random(4))
    written(comm, folder / "run", "solid", parts, steps=100_000)


if __name__ == "__main__":
    write_until_killed(Path(sys.argv[1]))
