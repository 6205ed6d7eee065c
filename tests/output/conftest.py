"""What several test files of the room are given."""

from pathlib import Path

import pytest
from checkpoint_cases import vortex

from hiresx import Simulation


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run of the vortex with checkpoints at steps 2, 4 and 6."""
    directory = tmp_path_factory.mktemp("finished") / "run"
    case = vortex(checkpoint__every_steps=2, checkpoint__keep=3)
    Simulation(case, backend="cpu", out=directory).run(steps=6, progress=False)
    return directory
