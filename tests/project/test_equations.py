"""The sizes of the system of equations stand in hiresx/equations alone: no literal elsewhere means "variables of the
gas" or "ghost layers".

What a number means cannot be read off it, so this looks where such numbers are written:
- Python of the rooms that compute: 5 as a size (of zeros, empty, full, ones, range, reshape), as the bound of a slice
  or as a factor; the names of the gas's primitive variables spelt out; 3 that is given to something called halo,
  ghosts, layers or reach.
- Kernels: 5 as the size of an array, the end of a loop over it, a factor or an offset of rows; a loop to 3 over what
  lies behind a face.
"""

import ast
import re

import pytest
from paths import ROOT

ROOMS = ("case", "decomposition", "device", "exchange", "rhs", "solver", "time", "output", "scaling", "simulation")
PYTHON = sorted(
    path
    for path in (
        *(p for room in ROOMS for p in (ROOT / "hiresx" / room).rglob("*.py")),
        *(ROOT / "hiresx").glob("*.py"),
    )
)
SIZED = {"zeros", "empty", "full", "ones", "range", "reshape"}
LAYERS = re.compile(r"halo|ghost|layers|reach", re.IGNORECASE)
GAS = {"rho", "u", "v", "w", "p"}
# What is something else, by file: why.
OTHERS = {
    "hiresx/device/compiler.py": "lines of a compiler's message",
    "hiresx/decomposition/coordinates.py": "steps in which edges are settled",
    "hiresx/rhs/pole.py": "coefficients of a mean",
    "hiresx/output/fields/differences.py": "places in a stencil",
}
KERNELS = sorted((ROOT / "kernels").rglob("*.h"))
# fused.h is written for the gas alone, to its registers; metrics.h has an array of five that is a cyclic x, y, z.
UNLIKE = {"fused.h", "metrics.h"}
IN_KERNELS = (
    r"\b(?:T|real|pack|bool)\b[^;(]*\[5\]",
    r"\b[vck] < 5\b",
    r"\b5 \* (?:size|n|l|sv)\b|\(5 \+ \w\)|\[5 \+ \w\]",
    r"l <= 3; \+\+l\) \{?\s*\n[^\n]*p - ",
)


def literals(text: str) -> list[int]:
    """Lines of Python with such a literal."""
    found = []

    def five(node) -> bool:
        return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 5

    def three(node) -> bool:
        return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 3

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            sizes = [s for a in node.args for s in (a.elts if isinstance(a, ast.Tuple) else [a])]
            found += [node.lineno] * (name in SIZED and any(map(five, sizes)))
            found += [k.value.lineno for k in node.keywords if k.arg and LAYERS.search(k.arg) and three(k.value)]
        elif isinstance(node, ast.Slice):
            found += [node.lineno] * any(map(five, (node.lower, node.upper)))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add):
            found += [node.lineno] * any(map(five, (node.left, node.right)))
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            values = {e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)}
            found += [node.lineno] * (values >= GAS)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found += [node.lineno] * (bool(LAYERS.search(node.targets[0].id)) and three(node.value))
        elif isinstance(node, ast.arguments):
            names = [*node.posonlyargs, *node.args][-len(node.defaults) :] if node.defaults else []
            pairs = zip(names, node.defaults, strict=True)
            found += [value.lineno for name, value in pairs if LAYERS.search(name.arg) and three(value)]
    return found


@pytest.mark.parametrize("path", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in PYTHON])
def test_no_size_is_spelt_out(path):
    if str(path.relative_to(ROOT)) not in OTHERS:
        assert literals(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in KERNELS])
def test_no_size_is_spelt_out_in_kernels(path):
    if path.name not in UNLIKE:
        text = path.read_text(encoding="utf-8")
        assert [m[0] for pattern in IN_KERNELS for m in re.finditer(pattern, text)] == []


def test_the_rule_sees_them():
    wrong = (
        "zeros((5, n))\nq[:5]\nhalo = 3\nnames = ('rho', 'u', 'v', 'w', 'p')\ndef f(block, halo=3): ...\n5 * points\n"
    )
    assert len(literals(wrong)) == 6
    assert literals("zeros((4, n)); q[1:4]; half = 3; f(5); names = ('rho', 'p')") == []
    kernel = "T state[5], area[3];\nfor (int v = 0; v < 5; ++v) sum[5 + v] = 0;"
    assert sum(len(re.findall(pattern, kernel)) for pattern in IN_KERNELS) == 3
