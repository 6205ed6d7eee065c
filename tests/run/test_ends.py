"""Whatever ends a run, or one rank of it, says so and ends all of it: functions of the user that exit or raise what is
no Exception."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from ending import CASE, needs_mpi, written
from ranks import ENVIRONMENT, NO_LISTENER, launcher, run_ranks

from hiresx import Case, HiresxError, Simulation
from hiresx.base.termination_signals import Terminated
from hiresx.case import functions, load
from hiresx.cli import execute
from hiresx.errors import describe, error_text
from hiresx.mpi.communicator import Communicator, _sendable
from hiresx.output.saved import process, record
from hiresx.simulation.logbook import Logbook

# ---- in one process


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("exit", "SystemExit: 0"),
        ("text", "SystemExit: enough"),
        ("odd", "Odd"),
        ("closed", "GeneratorExit"),
        ("again", "RecursionError: maximum recursion depth"),
        ("memory", "MemoryError"),
    ],
)
def test_whatever_a_function_raises_is_an_error_with_its_place(tmp_path, way, told):
    case = load(written(tmp_path, way, monitors=["mass"]))
    x = np.full((1, 2, 2), 1.95)
    with pytest.raises(HiresxError, match=rf'case.py, line \d+: function "initial" failed: {told}'):
        case.evaluate("initial", x, x, x)
    with pytest.raises(HiresxError, match=rf'case.py, line \d+: function "profile" failed: {told}'):
        case.evaluate("profile", x, x, x, 1.0)

    def monitor(simulation):
        functions.function(tmp_path, "profile")(0, 0, 0, 1.0, way=way)

    simulation = Simulation(case, "cpu", monitors=[monitor])
    with pytest.raises(HiresxError, match=rf'monitor "monitor" failed: {told}'):
        simulation.run(steps=1, progress=False)


def test_what_a_function_returns_is_looked_at_with_the_same_care():
    class Exits:
        def __array__(self, dtype=None, copy=None):
            sys.exit(0)

    def states(x, y, z):
        yield 1.0
        sys.exit(0)

    x = np.zeros((1, 2, 2))
    for function in (states, lambda x, y, z: (Exits(), 0.0, 0.0, 0.0, 1.0)):
        with pytest.raises(HiresxError, match="SystemExit: 0"):
            load("sod").evaluate(function, x, x, x)


def test_signals_pass_through_functions():
    x = np.zeros((1, 2, 2))
    for error in (KeyboardInterrupt(), Terminated(signal.SIGHUP)):

        def function(x, y, z, error=error):
            raise error

        with pytest.raises(type(error)):
            load("sod").evaluate(function, x, x, x)


def test_a_case_file_that_exits_is_an_error(tmp_path, capfd):
    written(tmp_path)
    (tmp_path / "case.py").write_text("import sys\nsys.exit(0)\n")
    assert execute(["check", str(tmp_path)]) == 2
    assert "case.py, line 2: SystemExit: 0" in capfd.readouterr().err


def test_an_exit_in_the_middle_of_the_work_is_told_and_no_success(capfd, monkeypatch):
    monkeypatch.setattr("hiresx.case.load", lambda *_, **keys: sys.exit(0))
    assert execute(["run", "sod"]) == 1
    assert "error: ended by SystemExit: 0" in capfd.readouterr().err
    monkeypatch.setattr("hiresx.case.load", lambda *_, **keys: sys.exit(7))
    assert execute(["run", "sod"]) == 7


def test_a_run_that_its_function_ends_ends_with_a_status(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "ends", "exit")
    assert execute(["run", "ends", "--backend", "cpu", "--out", "out"]) == 3
    assert 'function "profile" failed: SystemExit: 0' in capfd.readouterr().err
    assert record.read("out")["status"] == "failed"
    # What cannot be caught at all, who started the process sees.
    written(tmp_path / "left", "left")
    assert execute(["launch", "-n", "1", "left", "--backend", "cpu", "--out", "left-out"]) == 1
    assert "error: the run left before it was done: a function" in capfd.readouterr().err


def test_a_record_tells_a_run_from_one_that_was_lost(tmp_path, capsys):
    """The process of the first is gone without a word; that of the second is this one."""
    written(tmp_path / "left", "left")
    program = [sys.executable, "-m", "hiresx", "run", "left", "--backend", "cpu", "--out", "out"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0
    kept = json.loads((tmp_path / "out" / "run.json").read_text())
    assert kept["status"] == "running" and kept["error"] is None, "it had no time to say more"
    assert execute(["info", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "lost" and f"process {kept['process']['pid']} on" in told["error"]
    assert told["to go on"] == f"hiresx run --restart {tmp_path / 'out'}"
    (tmp_path / "out" / "run.json").write_text(json.dumps(kept | {"process": process.current_process()}))
    assert record.read(tmp_path / "out")["status"] == "running"


def test_which_processes_are_known_to_be_gone():
    own = process.current_process()
    assert all(own.values()) and not process.has_ended(own)
    assert process.has_ended(own | {"since": own["since"] + 1}), "its number was given again"
    assert process.has_ended(own | {"boot": "another"})
    for other in ({"host": "another"}, {"space": "another", "since": 1}, {"host": "another", "boot": "another"}):
        assert not process.has_ended(own | other), "nobody here can know"
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    theirs = own | {"pid": child.pid, "since": process._since(str(child.pid))}
    assert theirs["since"] and not process.has_ended(theirs)
    child.communicate(b"\n")
    assert process.has_ended(theirs) and not process.has_ended(None) and not process.has_ended({"pid": 1})


class Torn(Exception):
    def __str__(self):
        raise SystemExit(0)


class Unsendable(Exception):
    def __reduce__(self):
        raise GeneratorExit


class Another(Exception):
    def __reduce__(self):
        return int, ("1",)


def test_what_cannot_be_sent_is_sent_as_its_text():
    assert describe(Torn()) == "Torn" and describe(ValueError("x")) == "ValueError: x"
    for error in (Unsendable("a"), Another("a")):
        sent = _sendable(error)
        assert type(sent) is RuntimeError and str(sent) == f"{type(error).__name__}: a"
    assert type(_sendable(Torn())) is Torn
    kept = HiresxError("here", "so")
    assert _sendable(kept) is kept


# ---- one rank of several


def alone(comm: Communicator, folder: str) -> dict[str, str]:
    """What all ranks are told of what only the last one raises."""

    def told(work) -> str:
        try:
            work()
        except BaseException as error:
            return f"{type(error).__name__} {error.everywhere} {error_text(error)}"
        return "nothing"

    def together(raised: BaseException):
        def work():
            with comm.together():
                if comm.rank == comm.size - 1:
                    raise raised

        return work

    def last(x, y, z, t=0.0):
        if comm.rank == comm.size - 1:
            sys.exit(0)
        return 1.0, -2.0, 0.0, 0.0, 0.7

    def case(**changes) -> Case:
        return Case.from_dict(CASE | {"parameters": {"way": ""}} | changes, directory=Path(folder))

    sponge = {"axis": "x", "start": 0.0, "end": 2.0, "strength": 1.0, "function": "profile"}
    steady = [CASE["boundary"][0] | {"steady": True}, *CASE["boundary"][1:]]
    found = {
        "exit": told(together(SystemExit(0))),
        "closed": told(together(GeneratorExit())),
        "unsendable": told(together(Unsendable("a"))),
        "text": told(together(Torn())),
        "initial": told(lambda: Simulation(case(), "cpu", initial=last, comm=comm)),
        "sponge": told(
            lambda: Simulation(case(sponge=[sponge]), "cpu", profiles={"profile": last}, comm=comm)
        ),
        "steady": told(lambda: Simulation(case(boundary=steady), "cpu", profiles={"profile": last}, comm=comm)),
        "monitor": told(
            lambda: Simulation(
                case(), "cpu", monitors=[lambda simulation: last(0, 0, 0) and None], comm=comm
            ).run(steps=1, progress=False)
        ),
    }  # fmt: skip
    assert not comm._abort_status, "all have it"
    return found


@pytest.mark.slow
def test_what_only_one_rank_raises_all_are_told(tmp_path):
    written(tmp_path)
    by_rank = run_ranks(2, alone, str(tmp_path), timeout=120)
    assert by_rank[1].pop("unsendable") == "Unsendable True a", "its own"
    assert by_rank[0].pop("unsendable") == "RuntimeError True Unsendable: a"
    assert by_rank[0] == by_rank[1]
    found = by_rank[0]
    assert found["exit"].startswith("HiresxError True rank 1: ended by SystemExit: 0")
    assert found["closed"].startswith("HiresxError True rank 1: ended by GeneratorExit")
    assert found["text"] == "Torn True "
    for name in ("initial", "sponge", "steady", "monitor"):
        assert found[name].startswith("HiresxError True rank 1: ") and "failed: SystemExit: 0" in found[name], name


def launched(place: Path, *words: str) -> tuple[int, str]:
    """Exit status of `hiresx launch` and what it says. A job that does not end fails the test."""
    program = [sys.executable, "-m", "hiresx", "launch", *words, "--backend", "cpu", "--out", "out"]
    for _ in range(3):
        done = subprocess.run(
            program, cwd=place, capture_output=True, text=True, timeout=60, env={**os.environ, **ENVIRONMENT}
        )
        # Before anything has started.
        if NO_LISTENER not in done.stdout + done.stderr:
            break
    return done.returncode, done.stderr


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "function", "way", "status", "told"),
    [
        (3, "profile", "exit", 3, 'rank 2: .*case.py, line .*function "profile" failed: SystemExit: 0'),
        (2, "profile", "left", 1, r"rank 1 left before it was done: a function .* process \(os._exit\), and with it"),
        (2, "profile", "seven", 7, "rank 1 ended with status 7, and with it the others"),
        # The other rank is in the sum.
        (2, "mass", "exit", 3, 'rank 1: .*monitor "mass" failed: SystemExit: 0'),
    ],
    ids=["exit", "left", "with a status", "monitor"],
)
@pytest.mark.slow
def test_what_ends_one_rank_ends_all_with_its_line(tmp_path, monkeypatch, ranks, function, way, status, told):
    other = {"monitors": ["mass"], "boundary": [CASE["boundary"][1] | {"faces": ["imin", "imax"]}, CASE["boundary"][2]]}
    written(tmp_path / "ends", way, **(other if function == "mass" else {}))
    found, err = launched(tmp_path, "-n", str(ranks), "ends")
    assert found == status and err.count("error: ") == 1 and "Traceback" not in err, (found, err)
    assert re.search(f"error: {told}", err), err
    kept = record.read(tmp_path / "out")
    assert kept["status"] == "failed" and (status == 3 or re.match(re.split("[:,]", told)[0], kept["error"]))
    assert "launch -n" in err or "hiresx run --restart out" in err


@needs_mpi
@pytest.mark.slow
def test_a_monitor_that_fails_at_once_fails_alike_on_any_number_of_ranks(tmp_path):
    """Message, status and what is left."""
    (tmp_path / "ends").mkdir()
    open_ends = [CASE["boundary"][1] | {"faces": ["imin", "imax"]}, CASE["boundary"][2]]
    written(tmp_path / "ends", "text", monitors=["mass"], boundary=open_ends)
    source = tmp_path / "ends" / "case.py"
    source.write_text(source.read_text().replace("simulation.step_count > 20 and any", "True or any"))
    told = []
    for ranks in ("1", "2"):
        status, err = launched(tmp_path, "-n", ranks, "ends")
        kept = record.read(tmp_path / "out")
        told.append((status, err[err.index("error: ") :], kept["status"], kept["error"], kept["steps"]))
        shutil.rmtree(tmp_path / "out")
    assert told[0] == told[1] and told[0][0] == 3 and told[0][2] == "failed"
    assert 'monitor "mass" failed: SystemExit: enough' in told[0][1]


SCRIPT = """import sys
from hiresx import Simulation
from hiresx.base.termination_signals import Terminated
simulation = Simulation("sod", "cpu")
rank = simulation.comm.rank
if sys.argv[1] == "exit" and rank == 1:
    sys.exit(5)
def once(simulation):
    if rank == 1 and simulation.step_count > 0:
        raise Terminated()
simulation.monitors = (once,)
simulation.attachments = simulation._build_attachments()
try:
    simulation.run(progress=False)
except SystemExit:
    pass  # as if nothing were
"""


@needs_mpi
@pytest.mark.parametrize(("way", "status"), [("exit", 5), ("caught", 1)])
@pytest.mark.slow
def test_a_script_of_which_one_rank_leaves_ends(tmp_path, way, status):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [*launcher(), "-n", "2", sys.executable, "script.py", way], cwd=tmp_path, capture_output=True, text=True,
        timeout=60, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert done.returncode == status and "rank 1 has ended before the others, and ends them" in done.stderr, done


@pytest.mark.parametrize(
    ("root", "everywhere", "told"),
    [(False, None, True), (False, False, True), (False, True, False), (True, None, False)],
)
def test_a_rank_that_fails_alone_tells_the_record(tmp_path, monkeypatch, root, everywhere, told):
    """Rank 0 keeps the record, and comes to know of errors that all ranks have alone."""
    (tmp_path / "run.json").write_text('{"status": "running"}')
    error = ValueError("no disk")  # of which nobody said whether all ranks have it
    if everywhere is not None:
        error = HiresxError("no disk")
        error.everywhere = everywhere
    log = Logbook.__new__(Logbook)
    log.simulation = SimpleNamespace(comm=SimpleNamespace(root=root, rank=1, size=2), out=tmp_path, restarts=[])
    log._begun = True
    monkeypatch.setattr(Logbook, "finish", lambda *_: None)
    log.fail(error, [])
    found = json.loads((tmp_path / "run.json").read_text())
    assert found["status"] == ("failed" if told else "running")
    assert ("error" in found) == told and (not told or re.fullmatch("rank 1: .*no disk", found["error"]))
