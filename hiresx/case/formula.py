"""Formulas of one or more variables. A formula is written once and evaluated in two ways: by NumPy on arrays, and by
the kernels as C++.

The text is a Python expression. It can contain the variables, named parameters, numbers, the operators + - * / **,
comparisons as the condition of `where`, and the functions below, which have the names and meanings of NumPy's.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import PydanticCustomError

from hiresx.case.model import case_error


class _Function(NamedTuple):
    """A function that formulas may contain. `code`: its name in kernels/arithmetic.h."""

    values: Callable[..., np.ndarray]
    code: str
    arguments: int


FUNCTIONS = {
    "sqrt": _Function(np.sqrt, "square_root", 1),
    "exp": _Function(np.exp, "exponential", 1),
    "log": _Function(np.log, "logarithm", 1),
    "sin": _Function(np.sin, "sine", 1),
    "cos": _Function(np.cos, "cosine", 1),
    "minimum": _Function(np.minimum, "smaller", 2),
    "maximum": _Function(np.maximum, "larger", 2),
    "where": _Function(np.where, "select", 3),
}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class _WithReals(ast.NodeTransformer):
    """Replaces integers by real numbers."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            return ast.copy_location(ast.Constant(float(node.value)), node)
        return node


class Formula:
    """A function of `variables` with named `parameters`, given by the expression `text`. Raises ValueError if `text` is
    not a valid expression or contains an operation that is not supported."""

    def __init__(self, text: str, variables: str | Sequence[str], parameters: tuple[str, ...] = ()):
        self.variables = (variables,) if isinstance(variables, str) else tuple(variables)
        self.text, self.parameters = text, parameters
        try:
            self._tree = ast.parse(text, mode="eval")
        except SyntaxError as error:
            raise ValueError(f'"{text}" is not an expression: {error.msg}') from None
        self._code(self._tree.body)
        # Powers of whole numbers must not be computed exactly, because they may have very many digits.
        self._compiled = compile(_WithReals().visit(ast.parse(text, mode="eval")), text, "eval")

    @property
    def names(self) -> frozenset[str]:
        """All names in the formula: variables, parameters and functions."""
        return frozenset(node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))

    def values(self, at: Any, parameters: Mapping[str, float]) -> np.ndarray:
        """Return the values of the formula, a float64 array. `at`: the values of the variable, an array; if the formula
        has several variables, a dictionary from their names to arrays of one shape. The result has the shape of these
        arrays. `parameters`: the values of the parameters by name."""
        given = at if isinstance(at, Mapping) else {self.variables[0]: at}
        arrays = {name: np.asarray(given[name], dtype=np.float64) for name in self.variables}
        names: dict[str, Any] = {name: function.values for name, function in FUNCTIONS.items()}
        names |= {name: np.float64(parameters[name]) for name in self.parameters}
        try:
            found = eval(self._compiled, {"__builtins__": {}}, names | arrays)
        # a constant expression such as 1/0: Python raises an error where arrays give inf or nan
        except ArithmeticError:
            found = np.nan
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        return np.array(np.broadcast_to(found, shape), dtype=np.float64)

    def code(self, name: str, parameters: Mapping[str, float]) -> str:
        """Return the source code of a C++ function template called `name` that evaluates the formula. Its arguments are
        the variables, and the template parameter is the arithmetic type (see kernels/arithmetic.h). `parameters`:
        values by name, which become constants in the code."""
        taken = ", ".join(f"Value {_cpp_name(variable)}" for variable in self.variables)
        lines = [f"template <class Value> HD Value {name}({taken}) {{"]
        lines += [f"constexpr real {_cpp_name(p)} = real({float(parameters[p])!r});" for p in self.parameters]
        lines += [f"(void){_cpp_name(used)};" for used in (*self.variables, *self.parameters)]
        return "\n    ".join([*lines, f"return {self._value(self._tree.body)};"]) + "\n}\n"

    def _code(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and type(node.value) is not bool:
            return f"real({float(node.value)!r})"
        if isinstance(node, ast.Name) and node.id in (*self.variables, *self.parameters):
            return _cpp_name(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"(-{self._code(node.operand)})"
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return f"({self._code(node.left)} {_OPERATORS[type(node.op)]} {self._code(node.right)})"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            if any(isinstance(part, ast.Name) and part.id in self.variables for part in ast.walk(node.right)):
                varying = " or ".join(self.variables)
                raise self._fault(node, f"an exponent with {varying} in it: write exp(exponent * log(base))")
            return f"power({self._value(node.left)}, {self._code(node.right)})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            return self._call(node, node.func.id)
        raise self._fault(node, f"it may hold {', '.join((*self.variables, *self.parameters, *FUNCTIONS))} and numbers")

    def _call(self, node: ast.Call, name: str) -> str:
        function = FUNCTIONS[name]
        if node.keywords or len(node.args) != function.arguments:
            raise self._fault(node, f"{name} takes {function.arguments}")
        if name != "where":
            return f"{function.code}({', '.join(map(self._value, node.args))})"
        condition, *choices = node.args
        if not (
            isinstance(condition, ast.Compare) and len(condition.ops) == 1 and type(condition.ops[0]) in _COMPARISONS
        ):
            raise self._fault(condition, "where takes one comparison first")
        sides = [self._value(condition.left), self._value(condition.comparators[0])]
        mask = f" {_COMPARISONS[type(condition.ops[0])]} ".join(sides)
        return f"{function.code}({mask}, {', '.join(map(self._value, choices))})"

    def _value(self, node: ast.expr) -> str:
        """Return the value in the arithmetic type, even if it does not depend on the variable."""
        return f"Value({self._code(node)})"

    def _fault(self, node: ast.expr, hint: str) -> ValueError:
        return ValueError(f'"{self.text}": {ast.unparse(node)}: {hint}')


def formula_of_case(case: Any, text: str, variables: Sequence[str]) -> tuple[Formula, dict[str, float]]:
    """Return the formula that the string `text` in `case` contains, and the values, by name, of the parameters that it
    uses. The formula may contain `variables`, the numeric [parameters] of the case, and gamma. Raises ValueError for a
    string that is not a valid formula."""
    numbers = {name: float(v) for name, v in case.parameters.items() if isinstance(v, int | float)}
    known = {"gamma": case.gas.gamma, **numbers}
    known = {name: known[name] for name in sorted(known) if name not in (*variables, *FUNCTIONS)}
    used = Formula(text, variables, tuple(known)).names
    values = {name: value for name, value in known.items() if name in used}
    return Formula(text, variables, tuple(values)), values


def constant_errors(formulas: Mapping[str, Formula], values: Mapping[str, float]) -> Iterator[PydanticCustomError]:
    """Yield an error for each of `formulas`, a dictionary from dotted keys to formulas, that contains no variable and
    has a value that is not finite. `values`: the values of the parameters of all formulas, by name."""
    for key, formula in formulas.items():
        if formula.names.isdisjoint(formula.variables):
            with np.errstate(all="ignore"):
                number = formula.values({name: np.zeros(1) for name in formula.variables}, values)[0]
            if not np.isfinite(number):
                yield case_error(f'{key}: "{formula.text}" is {number} everywhere; give a formula that is finite')


def _cpp_name(name: str) -> str:
    """Return the C++ name of a name of the formula, which may be a C++ keyword."""
    return f"{name}_"
