"""Threads that lose their core anywhere between two looks at the team's state: no part of the work is lost."""

import re
import subprocess
import sys

import pytest

from hiresx import kernels

# Many short runs on three threads; what they do is counted.
PROGRAM = """
import ctypes, sys
from pathlib import Path
from hiresx.device import team
from hiresx.device.compiler import build

library = team.load_library(build(Path(sys.argv[1]).read_text(), team.FLAGS, "team"))
done = ctypes.c_longlong.in_dll(library, "parts_done")
function = ctypes.cast(library.count_parts, ctypes.c_void_p)
calls = (team.TeamCall * 2)(*(team.TeamCall(function, 0, 0, 16, 512) for _ in range(2)))
levels = (team.Level * 2)(*(team.Level(ctypes.addressof(call), 1, 16, 8192) for call in calls))
runs = int(sys.argv[2])
for run in range(runs):
    library.hx_run(levels, 2, 3, 1000)
    assert done.value == 32 * (run + 1), (run, done.value)
print(done.value)
"""
# The atomics' accesses, each after a pause at times.
ACCESS = r"\b(tickets|left|finished|sleepers)\.(?=load|store|fetch|compare)"
PAUSED = """
inline unsigned &dice() { thread_local unsigned state = unsigned(pthread_self() >> 6) | 1; return state; }
template <class T> T &paused(T &found) {
    unsigned &state = dice();
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    if (state % 8 == 0) usleep(50 + state / 8 % 200);
    return found;
}
struct Team {"""
COUNTING = """
extern "C" { long long parts_done = 0; }
extern "C" void count_parts(const void *, integer first, integer last) {
    __atomic_fetch_add(&parts_done, last - first, __ATOMIC_SEQ_CST);
}
"""


def test_pauses_anywhere_lose_no_part(tmp_path):
    text = kernels.flatten('#include "team.h"\n')
    text, accesses = re.subn(ACCESS, r"paused(\1).", text)
    assert accesses > 10
    # every run is shared, whatever it gains
    text, shared = re.subn(r"const bool share = [^;]*;", "const bool share = true;", text)
    assert shared == 1
    source = tmp_path / "team.cpp"
    source.write_text(text.replace("struct Team {", PAUSED) + COUNTING)
    runs = 400
    try:
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(source), str(runs)],
            capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.fail("the threads wait for each other for ever")
    assert run.stdout.strip() == str(32 * runs), run.stderr
