"""The sizes of the system of equations stand in hiresx/equations alone: no literal elsewhere means "variables of the
gas", "ghost layers" or how far a stencil reaches.

What a number means cannot be read off it, so this looks where such numbers are written:
- Python of the rooms that compute: 5 as a size (of zeros, empty, full, ones, range, reshape), as the bound of a slice
  or as a factor; the names of the gas's primitive variables spelt out; 3, or a number that is put together with it,
  that is given to something called halo, ghosts, layers or reach, and -3 beside 3; 7, the nodes of a stencil, as a
  size, as the bound of a slice, in a comparison, or given to something called edge or nodes; the weights of the central
  difference.
- Kernels: 5 as the size of an array, the end of a loop over it, a factor or an offset of rows; a loop to 3 over what
  lies behind a face; arrays, windows and offsets of as many nodes as a stencil has; a reach that no header of an
  interpolation declares; the weights of the central difference.
"""

import ast
import re

from paths import ROOT

ROOMS = ("case", "decomposition", "device", "exchange", "rhs", "solver", "time", "output", "scaling", "simulation")
# Beside them, of what says how far a stencil reaches.
REACHING = sorted(p for room in ("grid", "bench") for p in (ROOT / "hiresx" / room).rglob("*.py"))
PYTHON = sorted(
    path
    for path in (
        *(p for room in ROOMS for p in (ROOT / "hiresx" / room).rglob("*.py")),
        *(ROOT / "hiresx").glob("*.py"),
    )
)
SIZED = {"zeros", "empty", "full", "ones", "range", "reshape"}
LAYERS = re.compile(r"halo|ghost|layers|reach", re.IGNORECASE)
NODES = re.compile(r"^_?(edge|width|\w*nodes)$", re.IGNORECASE)
# Of the 6th-order central difference, times 60.
WEIGHTS = {1, 9, 45}
GAS = {"rho", "u", "v", "w", "p"}
# Lines with a number that is something else, by file.
OTHERS = {
    # lines of a compiler's message
    "hiresx/device/compiler.py": {"or lines)[:5])"},
    # coefficients of a mean
    "hiresx/rhs/pole.py": {"(5 * jump) ** 4", "share * (5 * mean[0] - 6 * mean[1] + mean[2]) / 10"},
}
KERNELS = sorted((ROOT / "kernels").rglob("*.h"))
IN_KERNELS = (
    r"\b(?:T|real|pack|bool)\b[^;(]*\[5\]",
    r"\b[vck] < 5\b",
    r"\b5 \* (?:size|n|l|sv)\b|\(5 \+ \w\)|\[5 \+ \w\]",
    r"l <= 3; \+\+l\) \{?\s*\n[^\n]*p - ",
)
# As far as a stencil reaches, or its nodes.
REACHES = (
    r"\[ghost_layers\]\[\d\]|\bweight\[3\]\[3\]|\bghosts(?:\[\w+\])?\[3\](?!\[)",
    r"\bWindow<T, \d>|\bit\[s \+ [23]\]|\(s - 3\)|\b3ll \*",
    r"\bT [^;]*\bvalues?\[6\]|\breal values?\[7\]|\.node\(-2\)|line\.n \+ 2\)",
    r"l < 3; \+\+l\)[^;]*-\(l \+ 1\)",
    r"flow\[4\]\[3\]",
    r"real\(-?3\.0 / (?:2|4|10|20)\)|real\(1\.0 / 30\)",
)
REACH = r"^constexpr int (\w*(?:reach|layers|halo)\w*) = \d+;"
DECLARED = {"interpolation_reach", "correction_reach"}


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


def stencil_literals(text: str) -> list[int]:
    """Lines of Python with a number that says how far a stencil reaches, or how many nodes it has."""
    found = []

    def is_(node, *values: int) -> bool:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return is_(node.operand, *(-value for value in values))
        return isinstance(node, ast.Constant) and type(node.value) is int and node.value in values

    def sizes(node: ast.Call) -> list[ast.expr]:
        return [s for a in node.args for s in (a.elts if isinstance(a, ast.Tuple) else [a])]

    def named(target: ast.expr, value: ast.expr) -> bool:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            return any(named(t, v) for t, v in zip(target.elts, value.elts, strict=False))
        name = getattr(target, "id", getattr(target, "attr", ""))
        return bool(LAYERS.search(name) and is_(value, 3)) or bool(NODES.match(name) and is_(value, 7))

    for node in ast.walk(ast.parse(text)):
        bad = False
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            bad = name == "ghosts" and any(is_(a, 3) for a in node.args)
            bad |= name in SIZED and any(is_(s, 7) for s in sizes(node))
            bad |= any(is_(a, -3) for a in node.args) and any(is_(a, 3) for a in node.args)
            bad |= any(k.arg and LAYERS.search(k.arg) and is_(k.value, 3) for k in node.keywords)
        elif isinstance(node, ast.Slice):
            bad = any(is_(end, 7, -8) for end in (node.lower, node.upper))
        elif isinstance(node, ast.Compare):
            bad = any(is_(side, 7) for side in (node.left, *node.comparators))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            bad = any(is_(side, 7) for side in (node.left, node.right))
        elif isinstance(node, ast.Assign):
            bad = any(named(target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            bad = named(node.target, node.value)
        elif isinstance(node, ast.Tuple | ast.List):
            numbers = {abs(ast.literal_eval(e)) for e in node.elts if _number(e)}
            bad = numbers - {0} == WEIGHTS
        if bad:
            found.append(node.lineno)
    return found


def _number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int | float)


def stencil_literals_of_kernels(text: str) -> list[str]:
    """The same of kernels."""
    reaches = [m[1] for m in re.finditer(REACH, text, re.MULTILINE) if m[1] not in DECLARED]
    return reaches + [m[0] for pattern in REACHES for m in re.finditer(pattern, text)]


def found_in(paths, look) -> dict[str, list]:
    """What `look`, given its text, finds in each file, where it finds anything."""
    assert paths
    every = {str(path.relative_to(ROOT)): look(path.read_text(encoding="utf-8")) for path in paths}
    return {name: found for name, found in every.items() if found}


def test_no_reach_is_spelt_out():
    assert found_in([*PYTHON, *REACHING], stencil_literals) == {}


def test_no_reach_is_spelt_out_in_kernels():
    where_it_is_defined = {"kernels/central_difference.h": ["difference_reach", "real(3.0 / 4)", "real(-3.0 / 20)"]}
    assert found_in(KERNELS, stencil_literals_of_kernels) == where_it_is_defined


def test_no_size_is_spelt_out():
    found = found_in(PYTHON, lambda text: [text.splitlines()[number - 1] for number in literals(text)])
    for name, ends in OTHERS.items():
        lines = found.pop(name, [])
        assert len(lines) == len(ends) and all(any(end in line for line in lines) for end in ends), (name, lines)
    assert found == {}


def test_no_size_is_spelt_out_in_kernels():
    def look(text):
        return [m[0] for pattern in IN_KERNELS for m in re.finditer(pattern, text)]

    assert found_in(KERNELS, look) == {}


def test_the_rule_sees_them():
    wrong = (
        "zeros((5, n))\nq[:5]\nhalo = 3\nnames = ('rho', 'u', 'v', 'w', 'p')\ndef f(block, halo=3): ...\n5 * points\n"
    )
    assert len(literals(wrong)) == 6
    assert literals("zeros((4, n)); q[1:4]; half = 3; f(5); names = ('rho', 'p')") == []
    kernel = "T state[5], area[3];\nfor (int v = 0; v < 5; ++v) sum[5 + v] = 0;"
    assert sum(len(re.findall(pattern, kernel)) for pattern in IN_KERNELS) == 3
    reach = (
        "c.ghosts(3, n)\nzeros((2, 7))\nvisit('flux', -3, 3)\nf[:7]\nf[:-8]\nn < 7\nLAYERS = 3\n"
        "_REACH, _EDGE = GHOSTS, 7\n[-1, 9, -45, 0, 45, -9, 1]\nx = Run(halo=3)\nnodes: int = 7\n"
    )
    assert sorted(stencil_literals(reach)) == list(range(1, 12))
    assert stencil_literals("c.ghosts(halo, n); zeros((3, 6)); f[:3]; reach = 2; n < 6; shape = 7; g(3, 3)") == []
    kernel = (
        "constexpr int REACH_OR_SO_layers = 3;\nreal ghosts[3];\nWindow<T, 7> near;\nx = real(3.0 / 20) * y;\n"
        "constexpr int weight[ghost_layers][3] = {};\nT area[3], values[6];\nconstexpr int correction_reach = 3;\n"
    )
    assert len(stencil_literals_of_kernels(kernel)) == 6
