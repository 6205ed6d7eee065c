"""The kernel sources (`*.h`) and functions that read them: the available choices with their descriptions, the combined
source text, and the kernels that it declares.

A kernel is declared by a macro, followed by its body:

- `KERNEL(name, int i, int j, int k, <arguments>)`: the body computes one point.
- `VECTOR_KERNEL(...)`: the same, and the body can also compute several neighbouring points along i at once.
- `LINE_KERNEL(...)`: the same, but each point is a line along which one thread of a GPU proceeds.
- `ROW_KERNEL(...)`: the same, but each point is the work of a warp of a GPU, and only a warp can do it.
- `TILE_KERNEL(...)`: the same, but each point is the work of a block of threads of a GPU.
- `CPU_KERNEL(name, <arguments>)`: a loop written by hand for the CPU. If its arguments begin with `long long begin,
  long long end`, it only does these parts of its work, and threads share the parts. The function `hx_shape
  <name>_parts(<arguments>)`, which is defined before it, returns the number of parts and the cost of one, in points of
  a cheap kernel.

A launch passes arguments by their names in the declaration. Some names have the same meaning in all kernels. A point is
the node `o` + i + j `sj` + k `sk`, or `o` + i `s1` + j `s2` on a face. In a CPU kernel it is `o` plus up to `nd`, `n1`,
`n2` times the strides `sd`, `s1`, `s2`. `sv` is the distance between variables.

The types of arguments are aliases:

- `field<n>` is a `real *`, and `const_field<n>` a `const real *`. The array must have n variables at every node
  visited; n is a number, or a sum or product of constants of equations.h. A field without variables is not passed: the
  kernel gets a null pointer.
- `optional<...>`: a field or pointer for which a launch may pass None. The kernel then gets a null pointer.
- `state_field<n>`, `work_field<n>`, `rate_field<n>` and `stored_field<n>` are fields that a precision may store in
  fewer bits (storage.h). Their `sv` has the type `stride`.
- `mark_field<n>`: true or false at every node, one byte each (arithmetic.h).
- `chunked_field<n>`: a field that begins at a multiple of 16 bytes (implicit/chunks.h).
"""

import keyword
import os
import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, TypeVar, TypeVarTuple, cast

ROOT = Path(__file__).parent

# Number types in which fields are stored (storage.h).
KEPT_TYPES = ("stored_real", "work_real", "rate_real")
_POINTED_TO = ("real", *KEPT_TYPES, "wide", "mark", "int", "long long", "double")
POINTER_TYPES = tuple(f"{const}{base} *" for base in _POINTED_TO for const in ("", "const "))
ARGUMENT_TYPES = ("int", "long long", "real", "double", *POINTER_TYPES)

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)".*$')
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$")
_DECLARATION = re.compile(r"^[ \t]*((?:VECTOR_|LINE_|ROW_|TILE_|CPU_)?KERNEL)[ \t]*\(([^()]*)\)", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_FIELD = re.compile(r"\b(const_)?(?:(state|stored|work|rate|mark|chunked)_)?field<([^<>]*)>")
_OPTIONAL = re.compile(r"\boptional<(.*)>")
_STRIDE = re.compile(r"\bstride\b")
_SIZE = re.compile(r"^#define (HX_\w+) (\d+)$|^constexpr int (\w+) = ([\w+* ]+);$", re.MULTILINE)
_ARGUMENT = re.compile(r"^(?P<type>.*[\s*])(?P<name>[A-Za-z_]\w*)$")


Kind: TypeAlias = Literal["KERNEL", "VECTOR_KERNEL", "LINE_KERNEL", "ROW_KERNEL", "TILE_KERNEL", "CPU_KERNEL"]


Given = TypeVarTuple("Given")
Made = TypeVar("Made")


class Signature(NamedTuple):
    """The signature of a kernel, without the arguments i, j, k of a point kernel and begin, end of a CPU kernel that is
    `shared`.

    - `arguments`: pairs (type, name).
    - `parameters`: the arguments as they are written in the header.
    - `kind`: the macro that declares it.
    - `shared`: whether it is a CPU kernel whose work is divided among threads.
    - `holds`: for each argument that is a field, the number of variables per node that its array must have.
    - `own`: the number of reals that each thread of a line kernel, or each block of a tile or row kernel, stores in
      on-chip memory (the constant <name>_own).
    - `passed`: the arguments of its body in their order. Fields without variables are null pointers there.
    - `optional`: the arrays that may be None.
    - `aligned`: the arrays whose address must be a multiple of 16 bytes.
    """

    name: str
    arguments: tuple[tuple[str, str], ...]
    parameters: str
    kind: Kind
    shared: bool = False
    holds: Mapping[str, int] = MappingProxyType({})
    own: int = 0
    passed: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    aligned: frozenset[str] = frozenset()


def choices(folder: str, root: Path = ROOT) -> list[str]:
    """Return the names of the choices in kernels/<folder>, sorted: each file `<name>.h` there is the option `name`.
    `root`: the folder of the headers."""
    return sorted(path.stem for path in (root / folder).glob("*.h"))


def trait(folder: str, name: str, what: str, root: Path = ROOT, silent: int | None = None) -> int:
    """Return the number n that the header kernels/<folder>/<name>.h declares by `constexpr int <what> = n;`, or 0 or 1
    for `constexpr bool`. If it has no such declaration, return `silent`. `root`: the folder of the headers.

    Raises ValueError if the declaration is missing and `silent` is None. Raises FileNotFoundError if there is no such
    header.
    """
    found = _numbers_of(_without_comments(os.path.join(root, folder, f"{name}.h")), what)
    if not found and silent is not None:
        return silent
    if len(found) != 1 or not (found[0].isdigit() or found[0] in ("true", "false")):
        raise ValueError(f"kernels/{folder}/{name}.h must declare `constexpr int {what}` (or bool) once, with a number")
    return int(found[0]) if found[0].isdigit() else int(found[0] == "true")


@lru_cache(maxsize=256)
def _numbers_of(text: str, what: str) -> list[str]:
    return re.findall(rf"^constexpr (?:int|bool) {what} = (\w+);$", text, re.MULTILINE)


def _without_comments(header: Path | str) -> str:
    """Return the text of a header with blanks in place of comments; a changed file is read again."""
    about = os.stat(header)
    return _text_of(header, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=64)
def _text_of(header: Path | str, changed: int, size: int) -> str:
    return _COMMENT.sub(_blank, Path(header).read_text(encoding="utf-8"))


def fractions(folder: str, name: str, what: str, root: Path = ROOT) -> tuple[float, ...]:
    """Return the numbers that the header kernels/<folder>/<name>.h declares by `constexpr real <what>[...] = {real(a /
    b), ...};`. `root`: the folder of the headers.

    Raises ValueError unless it has exactly one such declaration, and FileNotFoundError if there is no such header.
    """
    text = _without_comments(root / folder / f"{name}.h")
    found = re.findall(rf"^constexpr real {what}\[\w+\] = {{(.*?)}};$", text, re.MULTILINE | re.DOTALL)
    parts = [re.fullmatch(r"real\((-?[\d.]+) / (\d+)\)", part.strip()) for part in found[0].split(",")] if found else []
    if len(found) != 1 or None in parts:
        raise ValueError(f"kernels/{folder}/{name}.h must declare `constexpr real {what}[...]` once, as fractions")
    return tuple(float(part[1]) / float(part[2]) for part in parts if part)


def names(folder: str, name: str, what: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the names that the header kernels/<folder>/<name>.h declares by `enum <what> { ... };`. The tuple is empty
    if it has no such declaration. `root`: the folder of the headers. Raises FileNotFoundError if there is no such
    header."""
    text = _without_comments(root / folder / f"{name}.h")
    found = re.findall(rf"^enum {what} {{ ([\w, ]+) }};$", text, re.MULTILINE)
    return tuple(found[0].split(", ")) if found else ()


def cached_by_headers(make: Callable[[*Given, Path], Made]) -> Callable[[*Given, Path], Made]:
    """Decorate the function `make` with a cache. Its arguments must be hashable, and the last one is the folder of the
    headers. The cached results are used as long as no header changes."""

    @lru_cache(maxsize=128)
    def kept(_state: object, root: Path, *given: *Given) -> Made:
        return make(*given, root)

    @wraps(make)
    def asked(*arguments: *tuple[*Given, Path]) -> Made:
        *given, root = arguments
        now = state(root)
        return make(*arguments) if now is None else kept(now, root, *given)

    return asked


def state(root: Path = ROOT) -> tuple[tuple[str, int, int], ...] | None:
    """Return the headers in `root`, each with the time of its last change in nanoseconds and its size in bytes. As long
    as this does not change, results computed from the headers are valid. The result is None if a header was changed
    less than a second ago: a file system with a coarse clock could hide another change."""
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".h"):
                status = os.stat(path := os.path.join(folder, name))
                found.append((path, status.st_mtime_ns, status.st_size))
    settled = time.time_ns() - 10**9
    return tuple(sorted(found)) if all(changed < settled for _, changed, _ in found) else None


def flatten(text: str, root: Path = ROOT) -> str:
    """Return `text` with every `#include "x.h"` replaced by the content of that file, each file once. Paths are
    relative to the including file or to `root`. `#line` directives make the compiler's messages refer to the original
    files.

    Raises FileNotFoundError for a header that is in neither place. The compiler has no further files to read, so that
    the text alone is a complete cache key.
    """
    lines: list[str] = []
    _append(text, "generated", root, root, set(), lines)
    return "\n".join(lines) + "\n"


def _append(text: str, label: str, folder: Path, root: Path, seen: set[Path], lines: list[str]) -> None:
    lines.append(f'#line 1 "{label}"')
    for number, line in enumerate(text.splitlines(), start=1):
        include = _INCLUDE.match(line) if "#" in line else None
        path = _find(include[1], folder, root, f"{label}:{number}") if include else None
        if path is None:
            # #pragma once has no meaning in a single text, and compilers warn about it in a main file.
            lines.append("" if "#" in line and _ONCE.match(line) else line)
        elif path in seen:
            lines.append("")
        else:
            seen.add(path)
            name = os.path.relpath(path, root)
            _append(path.read_text(encoding="utf-8"), f"kernels/{name}", path.parent, root, seen, lines)
            lines.append(f'#line {number + 1} "{label}"')


def _find(name: str, folder: Path, root: Path, place: str) -> Path:
    for candidate in (folder / name, root / name):
        if candidate.is_file():
            return Path(os.path.normpath(candidate))
    raise FileNotFoundError(f'{place}: no kernel header "{name}" in {folder} or {root}')


def declarations(text: str) -> list[tuple[Signature, int]]:
    """Return the signature of every kernel that `text` declares, in order, each with the index of the character behind
    its body.

    Raises ValueError for an argument of an unsupported type or whose name is a keyword of Python, for a field of
    unknown size, for a point kernel that does not begin with int i, int j, int k, for two kernels of one name, for a
    body without an end, and for a kernel with memory of its block, but without the constant <name>_own.
    """
    text = _COMMENT.sub(_blank, text)
    sizes = _sizes(text)
    found: dict[str, tuple[Signature, int]] = {}
    for match in _DECLARATION.finditer(text):
        name, *parameters = [" ".join(part.split()) for part in match[2].split(",")]
        if name in found:
            raise ValueError(f"kernel {name} is declared twice")
        if match[1] != "CPU_KERNEL":
            if parameters[:3] != ["int i", "int j", "int k"]:
                raise ValueError(f"kernel {name} must take int i, int j, int k first")
            parameters = parameters[3:]
        shared = match[1] == "CPU_KERNEL" and parameters[:2] == ["long long begin", "long long end"]
        parameters = parameters[2 * shared :]
        arguments = tuple(_argument(name, parameter) for parameter in parameters)
        fields = {
            called: field
            for parameter, (_, called) in zip(parameters, arguments, strict=True)
            if (field := _FIELD.search(parameter))
        }
        holds = {called: _value(name, field[3], sizes) for called, field in fields.items()}
        aligned = frozenset(called for called, field in fields.items() if field[2] == "chunked")
        there = [holds.get(called) != 0 for _, called in arguments]
        passed = tuple(called if given else "nullptr" for (_, called), given in zip(arguments, there, strict=True))
        arguments = tuple(compress(arguments, there))
        optional = frozenset(parameter.rpartition(" ")[2] for parameter in parameters if _OPTIONAL.search(parameter))
        kind = cast(Kind, match[1])
        own = sizes.get(f"{name}_own", 0)
        end = _body_end(name, text, match.end())
        if not own and (kind == "TILE_KERNEL" or "BLOCK_MEMORY(" in text[match.end() : end]):
            raise ValueError(f"kernel {name}: {name}_own, the reals of its block, is not known: no sum of products")
        holds = {called: count for called, count in holds.items() if count}
        written = ", ".join(compress(parameters, there))
        signature = Signature(name, arguments, written, kind, shared, holds, own, passed, optional, aligned)
        found[name] = signature, end
    return list(found.values())


def declared_kernels(header: Path) -> dict[str, Kind]:
    """Return the kernels that the text of the file `header` itself declares, in any configuration: a dictionary from
    the name to the kind."""
    return _declared(header.read_text(encoding="utf-8"))


@lru_cache(maxsize=256)
def _declared(text: str) -> dict[str, Kind]:
    found = _DECLARATION.finditer(_COMMENT.sub(_blank, text))
    return {match[2].split(",")[0].strip(): cast(Kind, match[1]) for match in found}


def _argument(kernel: str, parameter: str) -> tuple[str, str]:
    match = _ARGUMENT.match(parameter)
    if match and not keyword.iskeyword(match["name"]):
        fields = _FIELD.sub(_pointer, match["type"])
        plain = _STRIDE.sub("long long", _OPTIONAL.sub(r"\1", fields))
        kind = " ".join(plain.replace("__restrict__", " ").replace("*", " * ").split())
        if kind in (POINTER_TYPES if _OPTIONAL.search(fields) else ARGUMENT_TYPES):
            return kind, match["name"]
    raise ValueError(
        f'kernel {kernel} cannot take "{parameter}": an argument is one of {", ".join(ARGUMENT_TYPES)}, field<n>, '
        "const_field<n>, an optional<> one of these that is a pointer, and its name no keyword of Python"
    )


def _pointer(field: re.Match[str]) -> str:
    base = {"state": "stored_real", "mark": "mark", "chunked": "real", None: "real"}.get(field[2], f"{field[2]}_real")
    return f"const {base} *" if field[1] else f"{base} *"


def _sizes(text: str) -> dict[str, int]:
    """Return the numbers of variables to which `text` gives names."""
    found: dict[str, int] = {}
    for macro, number, constant, expression in _SIZE.findall(text):
        if macro:
            found[macro] = int(number)
        elif all(word in found or word.isdigit() for word in re.findall(r"\w+", expression)):
            found[constant] = _value(constant, expression, found)
    return found


def _value(kernel: str, expression: str, sizes: Mapping[str, int]) -> int:
    """Return the value of an expression of sums and products of numbers and names."""
    total = 0
    for term in expression.split("+"):
        product = 1
        for factor in map(str.strip, term.split("*")):
            if factor not in sizes and not factor.isdigit():
                raise ValueError(f'kernel {kernel}: the size "{expression}" of a field is not known here')
            product *= int(factor) if factor.isdigit() else sizes[factor]
        total += product
    return total


def _body_end(name: str, text: str, start: int) -> int:
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    raise ValueError(f"kernel {name}: its braces do not balance")


def _blank(comment: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", comment[0])
