"""One line per operation of the catalogue."""

from __future__ import annotations

import doctest
import inspect
import io
import re
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import burn_dispatch
import burn_std
import burn_tensor
from burn_dispatch import device
from burn_ir import CATALOG, Entry
from burn_testing import gradcheck
from burn_testing.audit.places import INNER, OPTIMIZERS, public, table
from burn_testing.samples import ERRORS, SAMPLES

# Differentiable, with no sample that differences can measure; tests/gradients/test_special.py.
APART = {
    "ctc_loss": "through log_softmax",
    "quantize": "straight through",
    "dequantize": "straight through",
    "cholesky": "of symmetric changes",
    "eigh": "of symmetric changes",
}
SECTIONS = (
    "Args",
    "Returns",
    "Shapes",
    "DTypes",
    "Units",
    "Raises",
    "Gradient",
    "Example",
    "Source",
)


class Line(NamedTuple):
    """What stands behind one operation.

    Attributes:
        entry: its name.
        place: the nearest public function.
        cells: what is there, in words, by column.
        gaps: what is missing.
    """

    entry: str
    place: str
    cells: dict[str, str]
    gaps: list[str]


class _Facade:
    """The names that docstring examples find under `burn`."""

    def __getattr__(self, name: str) -> Any:
        for module in (burn_tensor, burn_dispatch, burn_std, burn_std.dtypes):
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)


def audit(gradients: bool = True) -> list[Line]:
    """Return a line per operation of this project.

    Args:
        gradients: run the gradient checks, which take most of the time.
    """
    return [_line(entry, gradients) for entry in CATALOG if "::" not in entry.name]


def _line(entry: Entry, gradients: bool) -> Line:
    name = entry.name
    cells: dict[str, str] = {}
    gaps: list[str] = []

    def cell(column: str, value: str | None, why: str = "") -> None:
        cells[column] = value or "MISSING"
        if value is None:
            gaps.append(f"{column} {why}".strip())

    where = table().get(name, [])
    place = "inner" if name in INNER else OPTIMIZERS.get(name) or (where[0] if where else None)
    cell("called by", place)
    backend = device("flex").resource.backend
    kernel = name in backend.table
    cell("kernel", "kernel" if kernel else "decomposed" if entry.decompose else None)
    cell("rule", _rule(entry))
    cell("samples", str(len(SAMPLES[name])) if name in SAMPLES else None)
    cell("error samples", str(len(ERRORS[name])) if name in ERRORS else None)
    if gradients:
        cell("first order", _checked(entry, gradcheck.first_order, gaps))
        closed = "not closed" if not entry.closed else None
        cell("second order", closed or _checked(entry, gradcheck.second_order, gaps))
    if place and place in public():
        _documented(entry, where, cell)
    else:
        cells["docs"] = cells["example"] = "-"
    return Line(name, place or "-", cells, gaps)


def _rule(entry: Entry) -> str | None:
    if not entry.differentiable:
        return "none needed"
    if not entry.inputs:
        return "no inputs"
    constants = device("flex").autodiff().context.fragments(entry).constants
    if "CALL" in constants:
        return "rule"
    return "decomposed" if entry.decompose is not None else None


def _checked(entry: Entry, order: Any, gaps: list[str]) -> str | None:
    if not entry.differentiable:
        return "-"
    if entry.name in APART:
        return APART[entry.name]
    if not gradcheck.checkable(entry.name):
        return None
    wrong = gradcheck.check(device("flex"), entry.name, order)
    if wrong:
        gaps.append(wrong[0])
        return "WRONG"
    return "ok"


def _documented(entry: Entry, where: list[str], cell: Any) -> None:
    """Check the docstring of the nearest public function, and run its example."""
    functions = public()
    called = where[0]
    fn = functions[called]
    text = inspect.getdoc(fn) or ""
    present = [s for s in SECTIONS if re.search(rf"^{s}:", text, re.MULTILINE)]
    wanted = {"Example"}
    if entry.differentiable and called != "Tensor.__setitem__":
        wanted.add("Gradient")
    if _parameters(fn):
        wanted.add("Args")
    if called.startswith("Tensor.__"):  # operators are documented with the class
        wanted = set()
    missing = sorted(wanted - set(present))
    cell(
        "docs",
        None if missing else ", ".join(present) or "with the class",
        f"lacks {missing} ({called})",
    )
    cell("example", "with the class" if not wanted else example(called, fn), f"({called})")


def _parameters(fn: Any) -> list[str]:
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return []
    # The operands of a method and of its free twin need no explanation.
    return [
        n
        for n in names
        if n not in ("self", "x", "input", "other", "y", "tensors", "device", "dtype")
    ]


def example(called: str, fn: Any) -> str | None:
    """Run the examples of a docstring; return how many, None where there is none or one fails."""
    # As pytest runs them: with the names of the module they stand in.
    names = {
        **getattr(inspect.unwrap(fn), "__globals__", {}),
        "burn": _Facade(),
        "F": burn_tensor.functional,
    }
    tests = doctest.DocTestParser().get_doctest(inspect.getdoc(fn) or "", names, called, None, 0)
    if not tests.examples:
        return None
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with redirect_stdout(io.StringIO()):
        result = runner.run(tests)
    return None if result.failed else str(result.attempted)
