"""Every public name has a docstring, and every error that a user can correct says how."""

import ast
import gc
from collections.abc import Iterator
from functools import cache

from paths import ROOT

FOLDERS = ("hiresx", "kernels", "topology")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


@cache
def _trees() -> dict[str, ast.Module]:
    """The syntax trees of the packages' files by their paths."""
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    gc.disable()  # the collector would look through the growing trees again and again, for most of the time
    try:
        return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in files}
    finally:
        gc.enable()


def _last_name(expression: ast.expr) -> str:
    """The last part of a dotted name, without type parameters: `Monitor` for `sampling.Monitor[Table]`."""
    if isinstance(expression, ast.Subscript):
        return _last_name(expression.value)
    return getattr(expression, "attr", "") or getattr(expression, "id", "")


def _classes(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    """The classes among statements, and those inside them."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node
            yield from _classes(node.body)


def undocumented(trees: dict[str, ast.Module]) -> list[str]:
    """Public modules, classes, functions and methods without a docstring.

    A method that overrides a documented one of a base class inherits its docstring, as `inspect.getdoc` finds it. Base
    classes are known by their names. Names with a leading underscore and what a function defines inside are not public.
    """
    classes: dict[str, list[ast.ClassDef]] = {}
    for tree in trees.values():
        for node in _classes(tree.body):
            classes.setdefault(node.name, []).append(node)

    def inherits(name: str, of: ast.ClassDef) -> bool:
        for base in (base for expression in of.bases for base in classes.get(_last_name(expression), [])):
            methods = (node for node in base.body if isinstance(node, FUNCTIONS) and node.name == name)
            if any(map(ast.get_docstring, methods)) or (base is not of and inherits(name, base)):
                return True
        return False

    def within(body: list[ast.stmt], prefix: str, of: ast.ClassDef | None = None) -> Iterator[str]:
        for node in body:
            if not isinstance(node, DEFINITIONS) or node.name.startswith("_"):
                continue
            # The docstring of a property is that of its getter.
            further = {"overload", "setter"} & {_last_name(decorator) for decorator in node.decorator_list}
            if not (further or ast.get_docstring(node) or (of and inherits(node.name, of))):
                yield f"{prefix}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from within(node.body, f"{prefix}{node.name}.", node)

    found = []
    for path, tree in trees.items():
        if not ast.get_docstring(tree):
            found.append(path)
        found += within(tree.body, f"{path}: ")
    return found


def test_every_public_name_has_a_docstring():
    assert undocumented(_trees()) == []


def test_a_missing_docstring_is_found():
    documented = 'class A:\n    """A."""\n    def f(self):\n        """F."""\n'
    bare = '""""""\nclass B(A):\n    def f(self): ...\n    def g(self): ...\n    def _h(self): ...\ndef i(): ...\n'
    trees = {"a.py": ast.parse(f'"""a"""\n{documented}'), "b.py": ast.parse(bare)}
    assert undocumented(trees) == ["b.py", "b.py: B", "b.py: B.g", "b.py: i"]


def errors_without_hint(trees: dict[str, ast.Module]) -> list[str]:
    """Where a `HiresxError`, or an error derived from it, is made without a hint, or with one that may be empty.

    That is an empty text, in one case at least, or a name to which the function around it assigns one.
    """
    classes = [node for tree in trees.values() for node in _classes(tree.body)]
    kinds = {"HiresxError"}
    while more := {c.name for c in classes if kinds & set(map(_last_name, c.bases))} - kinds:
        kinds |= more
    found = []
    for path, tree in trees.items():
        nodes = list(ast.walk(tree))
        for call in (node for node in nodes if isinstance(node, ast.Call) and _last_name(node.func) in kinds):
            hints = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "hint")]
            if hints and isinstance(hints[0], ast.Name):
                around = [f for f in nodes if isinstance(f, FUNCTIONS) and f.lineno < call.lineno <= f.end_lineno]
                hints += _values(hints[0].id, around[-1]) if around else []
            if not hints or any(map(_is_empty, hints)):
                what = ast.unparse(call.args[0]).replace('"', "'")  # which of them, depends on the version of Python
                found.append(f"{path}: {_last_name(call.func)}({what})")
    return found


def _values(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """What a function assigns to `name`."""
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    return [node.value for node in assigned if name in map(_last_name, node.targets)]


def _is_empty(text: ast.expr) -> bool:
    """True if an expression is an empty text, in one of its cases at least."""
    if isinstance(text, ast.IfExp):
        return _is_empty(text.body) or _is_empty(text.orelse)
    return isinstance(text, ast.Constant) and not text.value


def test_every_error_says_what_to_do():
    """Those of `hiresx run` repeat how a run ended. What to do follows in its report, from what the run has left."""
    assert errors_without_hint(_trees()) == [
        "hiresx/cli/run.py: HiresxError(str(fault))",
        "hiresx/cli/run.py: HiresxError('interrupted')",
        "hiresx/cli/run.py: HiresxError(done.get('error') or f'the run is {status or 'without a record'}')",
    ]


def test_an_error_without_hint_is_found():
    code = """
class Kind(HiresxError): ...
def f(known):
    hint = ""
    raise HiresxError("a", hint)
def g(hint):
    raise HiresxError("b", hint)
raise HiresxError("c", "mend" if known else "")
raise errors.Kind("d")
raise Kind("e", hint="mend")
"""
    found = errors_without_hint({"a.py": ast.parse(code)})
    assert sorted(found) == [f"a.py: {error}" for error in ("HiresxError('a')", "HiresxError('c')", "Kind('d')")]
