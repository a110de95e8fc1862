"""The scalar-expression language of maps: what one element of a map's result is.

`Entry.expr` is a restricted Python expression over the entry's inputs and attributes:

    operators       + - * / // % ** & | ^ << >> ~ and the six comparisons; - and ~ before a value
    where(c, a, b)  select per element
    a if c else b   select when the program is made: c reads static attributes, `floating`, and
                    whether an optional is None; the other branch vanishes
    cast(x, dtype)  to the dtype that a static attribute holds
    intrinsics      the closed table `INTRINSICS`
    constants       numbers, `inf`, `largest` (the dtype's largest finite value)
    _i, _row, _column   linear index, and the index along the last two dims, of the result

`floating` says whether the map computes in floats. `//` and `%` are the quotient rounded down
and its remainder; division of integers by zero gives 0; of bools `+` is or, `*` is and, `~` is
not. `parse` reads a text, `bind` settles what is known when a program is made, `steps` lists the
operations for an emitter, and `evaluate` runs the tree over any table of callables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from burn_std import DType, GraphError

# Name and number of arguments of every function that an expression may call.
INTRINSICS: dict[str, int] = {
    **dict.fromkeys(
        (
            "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh",
            "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "abs",
            "floor", "ceil", "trunc", "round",
        ),
        1,
    ),
    **dict.fromkeys(("maximum", "minimum", "atan2", "hypot", "fmod", "cast"), 2),
    "where": 3,
}  # fmt: skip

# Python's operators by the names that a table of callables uses.
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift", ast.USub: "neg", ast.Invert: "invert",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip

_SIGN = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip

# Names with a meaning of their own, beside inputs and attributes.
RESERVED = ("_i", "_row", "_column", "floating", "largest")
_MISSING = object()


class Node:
    """One node of an expression tree; immutable.

    Attributes:
        op: `name`, `const`, `if`, an operator of `OPERATORS` or an intrinsic.
        args: operands.
        value: the name, or the constant.
    """

    __slots__ = ("args", "op", "value")

    def __init__(self, op: str, args: tuple[Node, ...] = (), value: Any = None) -> None:
        self.op = op
        self.args = args
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        # repr tells 1 from 1.0 and True, 0.0 from -0.0, and makes nan equal to itself.
        return (self.op, self.args, repr(self.value))

    def __repr__(self) -> str:
        return f"<scalar {self}>"

    def __str__(self) -> str:
        a = [str(x) for x in self.args]
        if self.op == "name":
            return str(self.value)
        if self.op == "const":
            return self.value.name if isinstance(self.value, DType) else repr(self.value)
        if self.op == "if":
            return f"({a[1]} if {a[0]} else {a[2]})"
        if self.op in ("is_none", "not_none"):
            return f"({a[0]} is {'not ' if self.op == 'not_none' else ''}None)"
        if self.op in ("neg", "invert", "not"):
            return f"({ {'neg': '-', 'invert': '~', 'not': 'not '}[self.op] }{a[0]})"
        if self.op in _SIGN:
            return f"({a[0]} {_SIGN[self.op]} {a[1]})"
        return f"{self.op}({', '.join(a)})"


def parse(text: str, op: str = "expr") -> Node:
    """Return the tree of an expression.

    Args:
        text: the expression.
        op: the operation it belongs to, for the error.

    Raises:
        GraphError: the text is outside the language; the error names the part.

    Example:
        >>> str(parse("where(x > 0, x, alpha * expm1(x))"))
        'where((x > 0), x, (alpha * expm1(x)))'
    """
    try:
        body = ast.parse(text, mode="eval").body
        return _node(body, op)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as cause:
        if isinstance(cause, GraphError):
            raise
        raise GraphError(op, "expr: must be an expression", got=repr(text[:80])) from cause


def _node(node: ast.expr, op: str) -> Node:
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
        return Node("const", value=node.value)
    if isinstance(node, ast.Name):
        if node.id == "inf":
            return Node("const", value=inf)
        return Node("name", value=node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return Node(OPERATORS[type(node.op)], (_node(node.left, op), _node(node.right, op)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Node("not", (_node(node.operand, op),))
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return Node(OPERATORS[type(node.op)], (_node(node.operand, op),))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _comparison(node, op)
    if isinstance(node, ast.IfExp):
        parts = (node.test, node.body, node.orelse)
        return Node("if", tuple(_node(p, op) for p in parts))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name, count = node.func.id, len(node.args)
        if INTRINSICS.get(name) == count:
            return Node(name, tuple(_node(a, op) for a in node.args))
    raise GraphError(op, "expr: outside the scalar language", got=repr(ast.unparse(node)))


def _comparison(node: ast.Compare, op: str) -> Node:
    sign, right = node.ops[0], node.comparators[0]
    if isinstance(sign, (ast.Is, ast.IsNot)):
        if isinstance(right, ast.Constant) and right.value is None:
            kind = "is_none" if isinstance(sign, ast.Is) else "not_none"
            return Node(kind, (_node(node.left, op),))
    elif type(sign) in OPERATORS:
        return Node(OPERATORS[type(sign)], (_node(node.left, op), _node(right, op)))
    raise GraphError(op, "expr: outside the scalar language", got=repr(ast.unparse(node)))


def names(node: Node) -> set[str]:
    """Return the names an expression reads.

    Example:
        >>> sorted(names(parse("x + alpha * inf")))
        ['alpha', 'x']
    """
    if node.op == "name":
        return {node.value}
    return {name for a in node.args for name in names(a)}


def bind(node: Node, known: Mapping[str, Any]) -> Node:
    """Return the expression with known names put in and every `if` settled.

    Args:
        node: an expression.
        known: values of static attributes, `floating`, and None for absent optionals. Numbers
            become constants; arithmetic of constants is done here, in Python's numbers.

    Raises:
        GraphError: the condition of an `if` is not known.

    Example:
        >>> text = "x if not floating else round(x) if decimals == 0 else round(x * 10)"
        >>> str(bind(parse(text), {"floating": True, "decimals": 0}))
        'round(x)'
    """
    if node.op == "name":
        value = known.get(node.value, _MISSING)
        return node if value is _MISSING else Node("const", value=value)
    if node.op == "const":
        return node
    if node.op == "if":
        test = bind(node.args[0], known)
        if test.op != "const":
            raise GraphError("expr", "the condition of an if must be known", got=str(test))
        return bind(node.args[1 if test.value else 2], known)
    args = tuple(bind(a, known) for a in node.args)
    if node.op in ("is_none", "not_none"):
        absent = args[0].op == "const" and args[0].value is None
        return Node("const", value=absent == (node.op == "is_none"))
    if args and all(a.op == "const" for a in args):
        value = _fold(node.op, *(a.value for a in args))
        if value is not _MISSING:
            return Node("const", value=value)
    return Node(node.op, args)


_FOLDS: dict[str, Callable[..., Any]] = {
    "neg": lambda a: -a, "not": lambda a: not a, "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b, "ge": lambda a, b: a >= b, "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "pow": lambda a, b: a**b,
}  # fmt: skip


def _fold(op: str, *values: Any) -> Any:
    numbers = all(isinstance(v, (bool, int, float)) for v in values)
    if op not in _FOLDS or not (numbers or op in ("eq", "ne")):
        return _MISSING
    if op == "pow" and not 0 <= abs(values[1]) <= 400:
        return _MISSING
    try:
        return _FOLDS[op](*values)
    except (ArithmeticError, ValueError):
        return _MISSING


class Step:
    """One operation of a bound expression.

    Attributes:
        op: `name`, `const`, an operator or an intrinsic.
        args: numbers of the steps that are its operands.
        value: the name, or the constant.
    """

    __slots__ = ("args", "op", "value")

    def __init__(self, op: str, args: tuple[int, ...], value: Any) -> None:
        self.op = op
        self.args = args
        self.value = value

    def __repr__(self) -> str:
        shown = [f"%{a}" for a in self.args] or [
            self.value.name if isinstance(self.value, DType) else str(self.value)
        ]
        return f"{self.op} {' '.join(shown)}"


def steps(node: Node) -> tuple[Step, ...]:
    """Return the operations of a tree in order, equal subtrees once; the last is the result.

    Example:
        >>> for number, step in enumerate(steps(parse("x * x + x"))):
        ...     print(f"%{number} = {step}")
        %0 = name x
        %1 = mul %0 %0
        %2 = add %1 %0
    """
    out: list[Step] = []
    numbers: dict[Node, int] = {}

    def visit(n: Node) -> int:
        if n not in numbers:
            args = tuple(visit(a) for a in n.args)
            numbers[n] = len(out)
            out.append(Step(n.op, args, n.value))
        return numbers[n]

    visit(node)
    return tuple(out)


def evaluate(node: Node, env: Mapping[str, Any], table: Mapping[str, Callable[..., Any]]) -> Any:
    """Return the value of an expression over any kind of operand.

    Args:
        node: an expression; every `if` must be settled by `env`, or bound before.
        env: values of the names, None for an absent optional.
        table: the function of every operator (names in `OPERATORS`) and intrinsic it uses.

    Raises:
        GraphError: a name has no value, or an operation no function.

    Example:
        >>> table = {"add": lambda a, b: a + b, "exp": __import__("math").exp}
        >>> evaluate(parse("exp(x) + 1"), {"x": 0.0}, table)
        2.0
    """
    if node.op == "const":
        return node.value
    if node.op == "name":
        if node.value not in env:
            raise GraphError("expr", "a name has no value", got=node.value)
        return env[node.value]
    if node.op == "if":
        return evaluate(bind(node, env), env, table)
    args = [evaluate(a, env, table) for a in node.args]
    function = table.get(node.op)
    if function is None:
        raise GraphError("expr", "the table lacks an operation", got=node.op)
    return function(*args)
