"""Threads that lose their core anywhere between two looks at the pool's state: no part of the work is lost."""

import json
import re
import subprocess
import sys

import pytest

from hiresx import kernels

# Many short runs on three threads; what they do is counted.
PROGRAM = """
import ctypes, sys
from pathlib import Path
from hiresx.device import thread_pool
from hiresx.device.compiler import build

library = thread_pool.load_library(build(Path(sys.argv[1]).read_text(), thread_pool.FLAGS, "thread_pool"))
done = ctypes.c_longlong.in_dll(library, "parts_done")
function = ctypes.cast(library.count_parts, ctypes.c_void_p)
calls = (thread_pool.PoolCall * 2)(*(thread_pool.PoolCall(function, 0, 0, 16, 512) for _ in range(2)))
levels = (thread_pool.Level * 2)(*(thread_pool.Level(ctypes.addressof(call), 1, 16, 8192) for call in calls))
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
struct ThreadPool {"""
COUNTING = """
extern "C" { long long parts_done = 0; }
extern "C" void count_parts(const void *, integer first, integer last) {
    __atomic_fetch_add(&parts_done, last - first, __ATOMIC_SEQ_CST);
}
"""


def test_pauses_anywhere_lose_no_part(tmp_path):
    text = kernels.flatten('#include "thread_pool.h"\n')
    text, accesses = re.subn(ACCESS, r"paused(\1).", text)
    assert accesses > 10
    # every run is shared, whatever it gains
    text, shared = re.subn(r"const bool share = [^;]*;", "const bool share = true;", text)
    assert shared == 1
    source = tmp_path / "thread_pool.cpp"
    source.write_text(text.replace("struct ThreadPool {", PAUSED) + COUNTING)
    runs = 400
    try:
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(source), str(runs)],
            capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.fail("the threads wait for each other for ever")
    assert run.stdout.strip() == str(32 * runs), run.stderr


# Of the pieces in which a thread takes parts of a call: what each of them weighs.
PIECES = """
import ctypes, json, sys
from pathlib import Path
from hiresx.device import thread_pool
from hiresx.device.compiler import build

library = thread_pool.load_library(build(Path(sys.argv[1]).read_text(), thread_pool.FLAGS, "thread_pool"))
threads, given = int(sys.argv[2]), json.loads(sys.argv[3])
function = ctypes.cast(library.note_piece, ctypes.c_void_p)
calls, first = (thread_pool.PoolCall * len(given))(), 0
for call, (parts, weight) in zip(calls, given):
    call.function, call.words, call.first, call.parts, call.weight = function, weight, first, parts, weight
    first += parts
total = sum(parts * weight for parts, weight in given)
level = (thread_pool.Level * 1)(thread_pool.Level(ctypes.addressof(calls), len(given), first, total))
library.hx_run(level, 1, threads, 1000)
count = ctypes.c_longlong.in_dll(library, "pieces_noted").value
noted = list((ctypes.c_longlong * (3 * count)).in_dll(library, "noted"))
print(json.dumps(sorted(noted[n : n + 3] for n in range(0, 3 * count, 3))))
"""
NOTING = """
extern "C" { long long pieces_noted = 0, noted[300000]; }
extern "C" void note_piece(const void *weight, integer first, integer last) {
    const integer n = 3 * __atomic_fetch_add(&pieces_noted, 1, __ATOMIC_SEQ_CST);
    noted[n] = integer(weight), noted[n + 1] = first, noted[n + 2] = last;
}
"""


@pytest.mark.parametrize("threads", [2, 7])
@pytest.mark.parametrize("calls", [[[56, 20000], [2000, 64]], [[3, 100000]], [[5000, 3], [1, 1], [0, 7], [4, 90000]]])
def test_pieces_weigh_a_share_of_what_is_left(tmp_path, threads, calls):
    """However unlike the calls of a level are: none of many light parts makes a thread take many heavy ones."""
    text = kernels.flatten('#include "thread_pool.h"\n')
    text, shared = re.subn(r"const bool share = [^;]*;", "const bool share = true;", text)
    assert shared == 1
    source = tmp_path / "thread_pool.cpp"
    source.write_text(text + NOTING)
    run = subprocess.run(
        [sys.executable, "-c", PIECES, str(source), str(threads), json.dumps(calls)],
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    pieces = json.loads(run.stdout)
    left = sum(parts * weight for parts, weight in calls)
    for parts, weight in calls:
        own = [(first, last) for of, first, last in pieces if of == weight]
        ends = [0, *(last for _, last in own)]
        assert ends[-1] == parts and [first for first, _ in own] == ends[: len(own)]
        for first, last in own:
            assert (last - first) * weight <= max(weight, 256, left / (4 * threads))
            left -= (last - first) * weight
    assert left == 0
