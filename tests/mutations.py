"""Single small changes to a source file, and one drawn of them: of Python by the operators of Cosmic Ray, of kernels by
operators of our own: a sign, a constant, an index, a comparison, the smaller for the larger, a dropped term or factor.

Each is a span of the text and what comes in its place. Comments, texts and lines of the preprocessor are left alone.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

# Of Cosmic Ray's operators those of which a plausible program comes; the others, `+` to `<<`, end in a TypeError.
_BINARY = (
    "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Mul_Add", "FloorDiv_Div", "Div_FloorDiv", "Mod_FloorDiv", "Pow_Mul",
    "BitOr_BitAnd", "BitAnd_BitOr",
)  # fmt: skip
_COMPARED = ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "Gt_LtE", "Is_IsNot", "IsNot_Is")
_OPERATORS = (
    *(f"ReplaceBinaryOperator_{name}" for name in _BINARY),
    *(f"ReplaceComparisonOperator_{name}" for name in _COMPARED),
    "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "AddNot", "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop",
)  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """text[start:end] becomes `new`; `kind` says what was done."""

    start: int
    end: int
    new: str
    kind: str

    def applied(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]

    def anchored(self, text: str) -> tuple[str, str]:
        """The whole lines that are changed, with as many before and behind that they stand in the text once; and what
        they become."""
        first, last = text.rfind("\n", 0, self.start) + 1, (text.find("\n", self.end) + 1) or len(text)
        while text.count(text[first:last]) > 1:
            first, last = text.rfind("\n", 0, max(first - 1, 0)) + 1, (text.find("\n", last) + 1) or len(text)
        return text[first:last], text[first : self.start] + self.new + text[self.end : last]


def draw(name: str, text: str, dice: random.Random) -> Mutation | None:
    """One mutation of a file: a place first, then one of those that the operators offer there. None: there is none."""
    return of_python(text, dice) if name.endswith(".py") else of_kernel(text, dice)


# ---- Python


def of_python(text: str, dice: random.Random) -> Mutation | None:
    """A mutation that still compiles, by Cosmic Ray (pip install '.[mutants]')."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    operators = {name: get_operator(f"core/{name}")() for name in _OPERATORS}
    places: dict[object, list[tuple[str, int]]] = {}
    found = dict.fromkeys(operators, 0)
    for node in ast_nodes(get_ast(text)):
        for name, operator in operators.items():
            for position in operator.mutation_positions(node):
                places.setdefault(position, []).append((name, found[name]))
                found[name] += 1
    order = list(places.values())
    dice.shuffle(order)
    for offered in order:
        name, occurrence = dice.choice(offered)
        changed = mutate_code(text, operators[name], occurrence)
        if changed is None or changed == text:
            continue
        try:
            compile(changed, "mutant", "exec")
        except (SyntaxError, ValueError):
            continue
        return _between(text, changed, name)
    return None


def _between(old: str, new: str, kind: str) -> Mutation:
    """What differs, from the first to the last character."""
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - start
    same = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    return Mutation(start, len(old) - same, new[start : len(new) - same], kind)


# ---- kernels

_UNREAD = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE)
# Blanks on both sides are how the kernels' operators are told from templates and pointers.
_SWAPPED = {
    "a sign": {" + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += "},
    "a comparison": {
        " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ",
        " || ": " && ",
    },
    "the smaller for the larger": {"smaller(": "larger(", "larger(": "smaller("},
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\w.])")
_INDEX = re.compile(r"(?<=\[)\d(?=[\]\s])")
# One factor: a name or number with all its calls, subscripts and members, or what stands in brackets.
_HEAD = re.compile(r"[-!]?(?:[A-Za-z_]\w*|\d[\w.]*)?")


def of_kernel(text: str, dice: random.Random) -> Mutation | None:
    places: dict[int, list[Mutation]] = {}
    for mutation in _of_kernel(text):
        places.setdefault(mutation.start, []).append(mutation)
    return dice.choice(dice.choice(list(places.values()))) if places else None


def _of_kernel(text: str) -> Iterator[Mutation]:
    code = _UNREAD.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    code = re.sub(r"template <[^>]*>", lambda found: " " * len(found[0]), code)
    for kind, swaps in _SWAPPED.items():
        for old, new in swaps.items():
            for found in re.finditer((r"\b" if old[0].isalpha() else "") + re.escape(old), code):
                yield Mutation(found.start(), found.end(), new, kind)
    for found in _NUMBER.finditer(code):
        if _INDEX.match(code, found.start()):
            number = int(found[0])
            yield Mutation(*found.span(), str(number - 1 if number else 1), "an index")
        else:
            yield Mutation(*found.span(), _other(found[0]), "a constant")
    for found in re.finditer(r"(?<=[\w)\]]) ([-+*/]) (?=\S)", code):
        end = _term(code, found.end()) if found[1] in "+-" else _factor(code, found.end())
        if end is not None:
            yield Mutation(found.start(), end, "", "a dropped term" if found[1] in "+-" else "a dropped factor")


def _other(number: str) -> str:
    """Another constant: one more of a whole number, twice a real one."""
    if number.isdigit():
        return str(int(number) + 1)
    return repr(2 * float(number)) if float(number) else "1.0"


def _factor(code: str, at: int) -> int | None:
    """Where the factor that begins there ends."""
    head = _HEAD.match(code, at)
    end = head.end()
    while end < len(code) and code[end] in "([.":
        if code[end] == ".":
            end = re.compile(r"\.\w+").match(code, end).end()
        elif (end := _closed(code, end)) is None:
            return None
    return end if end > at else None


def _closed(code: str, at: int) -> int | None:
    """Behind the bracket that closes the one there."""
    depth = 0
    for n in range(at, len(code)):
        depth += (code[n] in "([") - (code[n] in ")]")
        if depth == 0:
            return n + 1
    return None


def _term(code: str, at: int) -> int | None:
    """Where the product that begins there ends."""
    end = _factor(code, at)
    while end is not None and (more := re.compile(r"\s[*/] ").match(code, end)):
        end = _factor(code, more.end())
    return end
