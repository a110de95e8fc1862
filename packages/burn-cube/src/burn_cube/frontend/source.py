"""The source of a user's function: its syntax tree, and the place of each node in its file."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from typing import Any

from burn_cube.errors import KernelError, Where


class Source:
    """A function's text and tree.

    Attributes:
        file: file it stands in.
        name: name of the function.
        tree: its definition.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        code = fn.__code__
        self.file = code.co_filename
        self.name = code.co_name
        self._first = code.co_firstlineno
        self._lines = linecache.getlines(self.file, getattr(fn, "__globals__", None))
        block = _block(self._lines[self._first - 1 :])
        self._indent = len(block[0]) - len(block[0].lstrip()) if block else 0
        text = "".join(line[self._indent :] if line.strip() else "\n" for line in block)
        try:
            parsed = ast.parse(text).body
        except SyntaxError:
            parsed = []
        if not parsed or not isinstance(parsed[0], ast.FunctionDef):
            raise KernelError(
                self.name, "the source of a kernel is a `def` that can be read from its file",
                got=f"{self.file}:{self._first}", remedy="Write the kernel as a def in a file.",
            )  # fmt: skip
        self.tree: ast.FunctionDef = parsed[0]

    def where(self, node: ast.AST) -> Where:
        """Return the place of a node."""
        line = self._first + getattr(node, "lineno", 1) - 1
        column = getattr(node, "col_offset", 0) + self._indent + 1
        text = self._lines[line - 1].rstrip() if line <= len(self._lines) else ""
        return Where(self.file, line, column, text, self.name)


def _block(lines: list[str]) -> list[str]:
    """Return the lines of the definition at the head: decorators, header, indented body."""
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    depth, in_body, out = 0, False, []
    for line in lines:
        stripped = line.strip()
        deeper = len(line) - len(line.lstrip()) > indent
        if in_body and stripped and not deeper and not stripped.startswith("#"):
            break
        out.append(line)
        if not in_body:
            code = stripped.split("#")[0].rstrip()
            depth += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
            in_body = depth == 0 and code.endswith(":") and not code.startswith("@")
            # `def f(): return 1` on one line has no body below.
            if depth == 0 and code.startswith("def ") and not code.endswith(":"):
                break
    return out


class Assigned(ast.NodeVisitor):
    """Collects what a list of statements assigns, nested functions left out.

    Attributes:
        names: names that are bound.
        elements: names whose items or attributes are bound, with those attributes.
    """

    def __init__(self, statements: list[ast.stmt]) -> None:
        self.names: set[str] = set()
        self.elements: dict[str, set[str]] = {}
        for statement in statements:
            self.visit(statement)

    def visit_Name(self, node: ast.Name) -> None:  # noqa: D102
        if isinstance(node.ctx, ast.Store):
            self.names.add(node.id)

    def visit_Subscript(self, node: ast.Subscript) -> None:  # noqa: D102
        self._element(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: D102
        self._element(node)

    def _element(self, node: ast.Subscript | ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            part = node.attr if isinstance(node, ast.Attribute) else "[]"
            self.elements.setdefault(node.value.id, set()).add(part)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:  # noqa: D102
        # The target is fresh in each loop: it needs no mutable local.
        for child in (node.iter, *node.body):
            self.visit(child)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: D102
        self.names.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:  # noqa: D102
        pass


def jumps_in(statements: list[ast.stmt]) -> bool:
    """Return whether a `break` or `continue` of this loop stands in its body."""
    for node in statements:
        if isinstance(node, ast.Break | ast.Continue):
            return True
        if isinstance(node, ast.For | ast.While | ast.FunctionDef):
            continue
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
        if jumps_in(inner):
            return True
    return False


def returns_inside(statements: list[ast.stmt], nested: bool = False) -> bool:
    """Return whether a `return` stands inside an `if` or a loop."""
    for node in statements:
        if isinstance(node, ast.Return) and nested:
            return True
        if isinstance(node, ast.FunctionDef):
            continue
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
        if returns_inside(inner, True):
            return True
    return False
