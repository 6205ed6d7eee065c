"""The compiler and the cache of what it made: made once, for nobody else to write, made anew when damaged."""

import ctypes
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from hiresx.device import Configuration, cache
from hiresx.device import compiler as host_compiler
from hiresx.device.cpu import CpuBackend
from hiresx.errors import HiresxError

pytestmark = pytest.mark.usefixtures("environment")


@pytest.mark.slow
def test_second_compile_comes_from_the_cache(native, monkeypatch):
    native.compile(Configuration())

    def run(command):
        raise AssertionError("compiled again")

    monkeypatch.setattr(host_compiler, "_run", run)
    native.compile(Configuration())


def test_key_sees_text_flags_compiler_and_processor(tmp_path, monkeypatch):
    """A compiler is asked for its version once, until its file is another one."""
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    script = tmp_path / "compiler"
    monkeypatch.setenv("CXX", str(script))
    script.write_text("1")
    script.chmod(0o755)
    compiled, asked = [], []

    def run(command, **keywords):
        asked.append(version)
        return subprocess.CompletedProcess(command, 0, stdout=version, stderr="")

    def compile(command):
        Path(command[command.index("-o") + 1]).write_text("library")
        compiled.append(command)
        return 0, ""

    monkeypatch.setattr(host_compiler.subprocess, "run", run)
    monkeypatch.setattr(host_compiler, "_run", compile)
    version = "g++ 1"
    paths = [host_compiler.build("text", ("-O1",), "label")]
    paths.append(host_compiler.build("other", ("-O1",), "label"))
    paths.append(host_compiler.build("text", ("-O2",), "label"))
    version = "g++ 2"
    script.write_text("the second")
    paths.append(host_compiler.build("text", ("-O1",), "label"))
    monkeypatch.setattr(host_compiler, "processor", lambda: "another")
    paths.append(host_compiler.build("text", ("-O1",), "label"))
    assert len(set(paths)) == 5 == len(compiled)
    assert host_compiler.build("text", ("-O1",), "label") == paths[-1] and len(compiled) == 5
    assert asked == ["g++ 1", "g++ 2"]


@pytest.mark.slow
def test_simultaneous_processes(tmp_path, root):
    code = textwrap.dedent(f"""
        from pathlib import Path
        from hiresx.device import Configuration
        from hiresx.device.emulated import EmulatedBackend
        program = EmulatedBackend(Path({str(root)!r})).compile(Configuration())
        print(len(program.signatures))
    """)
    environment = {**os.environ, "HIRESX_CACHE": str(tmp_path / "new/cache")}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in running] == [b"5"] * 3
    # The kernels, and the thread pool.
    suffixes = sorted(path.suffix for path in (tmp_path / "new/cache").iterdir())
    assert suffixes == [".cpp", ".cpp", ".sha256", ".sha256", ".so", ".so"]
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in (tmp_path / "new", tmp_path / "new/cache"))


def test_no_compiler(native, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HiresxError, match=r"no C\+\+ compiler: g\+\+ is not found") as caught:
        native.compile(Configuration())
    assert "apt install g++" in caught.value.hint


def test_compiler_that_does_not_run(native, monkeypatch):
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(HiresxError, match="false --version fails with status 1"):
        native.compile(Configuration())


@pytest.mark.parametrize("way", ["exit 0", 'while [ "$1" != -o ]; do shift; done; : > "$2"'], ids=["nothing", "empty"])
def test_a_compiler_that_writes_nothing(tmp_path, monkeypatch, way):
    """It ends with 0 all the same: no fault of the cache."""
    script = tmp_path / "compiler"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 1 && exit\n{way}\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path / "cache"))
    with pytest.raises(HiresxError, match=f"{script} ends as if it had compiled .* and writes nothing") as caught:
        host_compiler.build("int n;", (), "cpu")
    assert "CXX" in caught.value.hint and "cache" not in caught.value.message
    assert not list((tmp_path / "cache").glob("*.so*"))


KILLED = """
import os, signal
from hiresx.device import cache
with cache.workplace() as private:
    (private / "kernels.cpp").write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_left_is_removed(tmp_path, monkeypatch):
    """By the next who makes something; what somebody is at work in stays."""
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    assert subprocess.run([sys.executable, "-c", KILLED]).returncode == -9
    (left,) = tmp_path.iterdir()
    with cache.workplace() as first:
        assert list(tmp_path.iterdir()) == [first] and first != left
        with cache.workplace() as second:
            assert set(tmp_path.iterdir()) == {first, second}
            (second / "file").write_text("")
    assert not list(tmp_path.iterdir())


LEAVES_IN_THE_MIDST = """
import threading, time
from hiresx.device import cache

def work():
    with cache.workplace() as private:
        inside.set()
        for n in range(10**9):
            (private / str(n % 50)).write_text("")

inside = threading.Event()
threading.Thread(target=work, daemon=True).start()
inside.wait()
time.sleep(0.05)
"""


MAKES_SLOWLY = """
import sys, time
from pathlib import Path
from hiresx.device import cache

def make(private):
    with open(sys.argv[1], "a") as made:
        made.write("once ")
    (private / "file").write_text("library")
    time.sleep(float(sys.argv[2]))
    return private / "file"

cache.PATIENCE = float(sys.argv[3])
print(cache.find_or_make("one.so", make).read_text())
"""


@pytest.mark.parametrize(("patience", "count"), [(60, 1), (0.05, 2)])
def test_what_two_processes_want_is_made_once(tmp_path, patience, count):
    """The second waits for the first, but not for ever."""
    environment = os.environ | {"HIRESX_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", MAKES_SLOWLY, str(tmp_path / "made")]
    first = subprocess.Popen([*command, "3", "60"], env=environment, stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "made").exists():
        time.sleep(0.01)
    second = subprocess.run([*command, "0", str(patience)], env=environment, capture_output=True, text=True)
    assert first.communicate()[0] == second.stdout == "library\n"
    assert (tmp_path / "made").read_text() == "once " * count
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["one.so", "one.so.sha256"]


def test_a_process_that_was_killed_is_not_waited_for(tmp_path):
    environment = os.environ | {"HIRESX_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", MAKES_SLOWLY, str(tmp_path / "made")]
    first = subprocess.Popen([*command, "60", "60"], env=environment)
    while not (tmp_path / "made").exists():
        time.sleep(0.01)
    first.kill()
    first.wait()
    assert (tmp_path / "cache/one.so.lock").exists()
    second = subprocess.run([*command, "0", "60"], env=environment, capture_output=True, text=True, timeout=30)
    assert second.stdout == "library\n" and not (tmp_path / "cache/one.so.lock").exists()


def test_a_process_that_ends_while_a_thread_compiles_leaves_nothing(tmp_path):
    environment = os.environ | {"HIRESX_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LEAVES_IN_THE_MIDST], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and not list(tmp_path.iterdir())


def test_a_killed_process_takes_its_compiler_along(tmp_path):
    """With SIGKILL too, of which the process hears nothing, and with what the compiler has started."""
    driver = tmp_path / "driver"
    driver.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec echo 1\nsleep 60 &\necho $$ $! > "{tmp_path}/a"\n'
        f'mv "{tmp_path}/a" "{tmp_path}/started"\nwait\n'
    )
    driver.chmod(0o755)
    environment = os.environ | {"HIRESX_CACHE": str(tmp_path / "cache"), "CXX": str(driver)}
    code = "from hiresx.device.compiler import build\nbuild('', (), 'test')"
    compiling = subprocess.Popen([sys.executable, "-c", code], env=environment)
    while not (tmp_path / "started").exists():
        assert compiling.poll() is None
        time.sleep(0.01)
    compiling.kill()
    compiling.wait()
    started = [Path(f"/proc/{pid}/stat") for pid in (tmp_path / "started").read_text().split()]
    until = time.monotonic() + 20
    while any(runs(stat) for stat in started):
        assert time.monotonic() < until, "the compiler goes on"
        time.sleep(0.01)


def runs(stat: Path) -> bool:
    """True if there is such a process, and none that has ended and waits for its parent to hear of it."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_options_of_the_compiler_that_are_wrong_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "g++ -no-such-option")
    with pytest.raises(HiresxError, match=r"no-such-option") as caught:
        host_compiler.build("", (), "test")
    assert caught.value.hint.startswith("CXX=g++ -no-such-option: correct its options or leave them away")
    monkeypatch.setenv("CXX", "g++ '")
    with pytest.raises(HiresxError, match=r"CXX=g[+]{2} ': no closing quotation"):
        host_compiler.compiler()


def test_kernel_that_does_not_compile(tmp_path, root, monkeypatch):
    broken = tmp_path / "kernels"
    broken.mkdir()
    for path in root.iterdir():
        (broken / path.name).symlink_to(path)
    (broken / "solver.h").unlink()
    (broken / "solver.h").write_text("\nKERNEL(bad, int i, int j, int k, real *a) {\n    a[i] = undeclared;\n}\n")
    with pytest.raises(HiresxError, match=r"kernels/solver.h:3:\d+: error: .*undeclared") as caught:
        CpuBackend(broken).compile(Configuration())
    log = re.search(r"\S+\.log", caught.value.hint)[0]
    assert "undeclared" in Path(log).read_text()


def test_cache_that_cannot_be_written(native, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(HiresxError, match=r"kernel cache .*file/cache cannot be written: Not a directory") as caught:
        native.compile(Configuration())
    assert "HIRESX_CACHE" in caught.value.hint


def test_cache_directory_default(monkeypatch, tmp_path):
    from hiresx.device import cache

    monkeypatch.delenv("HIRESX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "hiresx" and cache.directory().is_dir()


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """keep(content): the path of a file in a cache of its own, and how often one was made."""
    from hiresx.device import cache

    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path / "cache"))
    made = []

    def keep(content: bytes = b"library") -> tuple[Path, int]:
        def make(private: Path) -> Path:
            (private / "file").write_bytes(content)
            made.append(content)
            return private / "file"

        return cache.find_or_make("one.so", make), len(made)

    return keep


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def test_what_is_kept_is_made_once_and_for_nobody_else_to_write(kept):
    before = os.umask(0)
    try:
        path, count = kept()
    finally:
        os.umask(before)
    assert (path.read_bytes(), count) == (b"library", 1) and kept() == (path, 1)
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["one.so", "one.so.sha256"]
    assert path.parent.stat().st_mode & 0o777 == 0o700 and not any(file.stat().st_mode & 0o022 for file in files)


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3])


def _bit(path: Path) -> None:
    path.write_bytes(b"Library")


def _without_digest(path: Path) -> None:
    path.with_name("one.so.sha256").unlink()


def _digest_of_another(path: Path) -> None:
    path.with_name("one.so.sha256").write_bytes(b"\xff" * 64)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _group(path: Path) -> None:
    path.chmod(0o775)


def _everybody(path: Path) -> None:
    path.with_name("one.so.sha256").chmod(0o666)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("change", [_half, _bit, _without_digest, _digest_of_another, _link, _group, _everybody, _pipe])
def test_what_is_not_whole_or_could_be_another_s_is_made_anew(kept, change):
    path, _ = kept()
    if os.geteuid() == 0:
        os.chown(path, -1, 12345)  # no group of the user's own
    change(path)
    assert kept() == (path, 2) and path.read_bytes() == b"library" and not path.is_symlink()
    assert kept() == (path, 2)


@needs_root
def test_a_library_of_another_user_is_made_anew(kept):
    path, _ = kept()
    os.chown(path, 12345, 12345)
    assert kept() == (path, 2) and path.stat().st_uid == 0


@needs_root
@pytest.mark.parametrize(
    ("which", "owner", "mode", "why"),
    [
        ("cache", 12345, 0o755, "it belongs to user 12345"),
        ("cache", 0, 0o777, "it can be written to by everybody"),
        ("cache", 0, 0o1777, "it can be written to by everybody"),
        ("cache", 0, 0o775, "it can be written to by the group 12345"),
        ("", 0, 0o777, "in which it lies, can be written to by everybody"),
        ("", 0, 0o775, "in which it lies, can be written to by the group 12345"),
        ("", 12345, 0o755, "in which it lies, belongs to user 12345"),
    ],
)
def test_a_folder_that_others_can_fill_or_exchange_is_refused(kept, tmp_path, which, owner, mode, why):
    kept()
    folder = tmp_path / which
    os.chown(folder, owner, 12345)
    folder.chmod(mode)
    with pytest.raises(HiresxError) as caught:
        kept()
    assert (
        f"the kernel cache {tmp_path / 'cache'} is not used: " in caught.value.message and why in caught.value.message
    )
    assert "HIRESX_CACHE" in caught.value.hint
    mends = owner == 0 and not mode & 0o1000
    assert (f"chmod go-w {folder}" in caught.value.hint) == mends
    if mends:
        folder.chmod(mode & ~0o022)
        assert kept()[1] == 1


@needs_root
def test_folders_that_are_safe_are_taken(kept, tmp_path, monkeypatch):
    """In a sticky folder; of root, for a user; for the group of the user alone; through a link; of nobody, where root
    has no name."""
    from hiresx.device import cache

    tmp_path.chmod(0o1777)
    path, _ = kept()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert kept() == (path, 1)
    path.parent.chmod(0o775)
    assert kept() == (path, 1), "root's own group"
    link = tmp_path / "link"
    link.symlink_to("cache")
    monkeypatch.setenv("HIRESX_CACHE", str(link))
    assert kept() == (path, 1)
    os.chown(tmp_path, cache._unmapped_user(), -1)
    tmp_path.chmod(0o755)
    assert kept() == (path, 1)


def test_half_a_library_is_compiled_anew(tmp_path, monkeypatch):
    """It ends the process with SIGBUS where it is loaded."""
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    library = host_compiler.build('extern "C" int answer() { return 42; }', ("-shared", "-fPIC"), "half")
    size = library.stat().st_size
    os.truncate(library, size // 2)
    again = host_compiler.build('extern "C" int answer() { return 42; }', ("-shared", "-fPIC"), "half")
    assert again == library and library.stat().st_size == size and ctypes.CDLL(str(library)).answer() == 42


def test_no_home_directory(monkeypatch):
    from hiresx.device import cache

    for name in ("HIRESX_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(HiresxError, match="no home directory"):
        cache.directory()


def test_damaged_library(native, tmp_path, monkeypatch):
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(b"\x7fELF")
    monkeypatch.setattr("hiresx.device.native.build_all", lambda *_: [damaged])
    with pytest.raises(HiresxError, match="cannot be loaded") as caught:
        native.compile(Configuration())
    assert str(damaged) in caught.value.hint


def test_the_processor_is_the_first_of_the_machine(monkeypatch):
    """Its model and its instruction sets tell compiled kernels of different machines apart."""
    text = "processor : 0\nmodel name : A\nflags : fma avx\nbogomips : 1\n\nprocessor : 1\nmodel name : A\n\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    assert host_compiler.processor.__wrapped__() == "model name : A\nflags : fma avx"


def test_a_thread_that_waits_for_another_wakes_to_look_for_signals(tmp_path, monkeypatch):
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    waited = []

    class Taken:
        """Free at the third try."""

        def acquire(self, blocking=True, timeout=-1):
            waited.append(timeout)
            return len(waited) == 3

        __enter__ = acquire

        def release(self, *ignored):
            waited.append("released")

        __exit__ = release

    def make(folder):
        (folder / "kernel").write_text("made")
        return folder / "kernel"

    monkeypatch.setitem(cache._making, cache.directory() / "kernel", Taken())
    assert cache.find_or_make("kernel", make).read_text() == "made"
    assert waited[3:] == ["released"] and all(0 < timeout <= 1 for timeout in waited[:3])
