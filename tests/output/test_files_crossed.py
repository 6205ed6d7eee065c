"""How many files of hiresx/output/ a reader must open to follow one field write: those whose functions run in it."""

import sys
import threading
from pathlib import Path

import pytest
from written_runs import Run, periodic

from hiresx import output
from hiresx.output.fields import formats

ROOM = Path(output.__file__).parent
MOST = 4


def crossed(directory: Path, *settings: str) -> set[str]:
    """The files of a write in the middle of a run, from the step after which it is due until its files have their
    names, in all threads."""
    found = set()

    def note(frame, event, _):
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(ROOM):
            found.add(Path(frame.f_code.co_filename).relative_to(ROOM).as_posix())

    threading.setprofile(note)  # of the thread that writes, which begins with the first write
    try:
        run = Run(periodic("output.every_steps=2", *settings), directory).steps(3)
        run.output.capture()
        run.solver.step(run.solver.dt)
        before = set(directory.rglob("*"))
        found.clear()
        sys.setprofile(note)
        run.output.after_step(run.solver)
        run.output.capture()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert any("000004" in path.name for path in set(directory.rglob("*")) - before), "fields were written"
    run.finish()
    return found


@pytest.mark.parametrize("kind", formats.names())
@pytest.mark.parametrize(
    "also",
    [
        (),
        pytest.param(("scheme.precision=fp32",), marks=pytest.mark.slow),
        ('output.subset=[{name="sheet", plane={z=0.3}}, {name="thin", range={i=[0, "end", 2]}}]',),
    ],
    ids=["whole", "fp32", "subsets"],
)
def test_a_field_write_crosses_few_files(tmp_path, kind, also):
    found = crossed(tmp_path, f'output.formats=["{kind}"]', *also)
    assert f"fields/formats/{kind}.py" in found
    assert len(found) <= MOST, sorted(found)


@pytest.mark.parametrize("coordinates", ["once", "each"])
def test_wherever_coordinates_are(tmp_path, coordinates):
    assert len(crossed(tmp_path, f'output.coordinates="{coordinates}"')) <= MOST


def test_derived_variables_add_what_computes_them(tmp_path):
    """And formats beside each other add one file each."""
    plain = crossed(tmp_path / "a")
    assert crossed(tmp_path / "b", 'output.variables=["rho", "mach"]') - plain == {"fields/derived.py"}
    gradients = crossed(tmp_path / "c", 'output.variables=["rho", "vorticity"]')
    assert gradients - plain == {"fields/derived.py", "fields/differences.py"}
    every = crossed(tmp_path / "d", f"output.formats={formats.names()}")
    assert len(every) < MOST + len(formats.names())
