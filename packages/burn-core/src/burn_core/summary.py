"""What each part of a module makes of an input: shapes and counts as data and as a table."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from burn_core.parameter import Parameter
from burn_core.tree import walk
from burn_std import ArgumentError, DType
from burn_tensor import Tensor, zeros


class SummaryRow(NamedTuple):
    """One call of one module.

    Attributes:
        path: where it stands; empty for the top.
        kind: name of its class.
        output_shape: extents of what it returned; a list of them for several tensors.
        parameters: numbers that its parameters hold, those of its parts included.
    """

    path: str
    kind: str
    output_shape: Any
    parameters: int


class Summary(NamedTuple):
    """What `Module.summary` returns; prints as a table.

    Attributes:
        rows: calls in the order in which they began, the top first.
        output_shape: extents of the result.
        total: numbers in all parameters, tied ones once.
        trainable: those of them that are not frozen.
        bytes: memory of parameters and buffers.
    """

    rows: tuple[SummaryRow, ...]
    output_shape: Any
    total: int
    trainable: int
    bytes: int

    def __str__(self) -> str:
        """Return the table."""
        head = ("module", "output", "parameters")
        called = {r.path for r in self.rows}
        cells = [
            head,
            *[(_name(r, called), _shape(r.output_shape), f"{r.parameters:,}") for r in self.rows],
        ]
        wide = [max(len(c[k]) for c in cells) for k in range(3)]
        lines = [f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}" for a, b, c in cells]
        lines.insert(1, "-" * len(lines[0]))
        end = (
            f"{self.total:,} parameters, {self.trainable:,} trainable, {self.bytes / 2**20:.2f} MiB"
        )
        return "\n".join([*lines, end])


def _name(row: SummaryRow, called: set[str]) -> str:
    if not row.path:
        return row.kind
    parts = row.path.split(".")
    # Lists, and parts that are not called, have no row: their names go before what they hold.
    above = [n for n in range(len(parts)) if ".".join(parts[:n]) in called]
    return "  " * len(above) + ".".join(parts[above[-1] if above else 0 :]) + f": {row.kind}"


def _shape(shape: Any) -> str:
    return str(list(shape)) if isinstance(shape, tuple) else ", ".join(_shape(s) for s in shape)


def summarize(module: Any, inputs: tuple[Any, ...]) -> Summary:
    """Return the summary of a module; see `Module.summary`."""
    made = [_input(module, i) for i in inputs]
    # The copy is ours alone, so its forwards can be watched without touching the model.
    copy = module.valid()
    calls: list[list[Any]] = []
    for path, m in list(copy.named_modules()):
        m.__dict__["forward"] = _watched(m.forward, path, m, calls)
    out = copy(*made)
    rows = tuple(SummaryRow(path, type(m).__name__, shape, _count(m)) for path, m, shape in calls)
    leaves = [leaf for _, _, _, leaf in walk(module) if isinstance(leaf, Tensor)]
    size = sum(prod(t.shape) * t.dtype.bits // 8 for t in leaves)
    return Summary(rows, _shapes(out), module.num_params(), module.num_params(trainable=True), size)


def _input(module: Any, given: Any) -> Tensor:
    if isinstance(given, Tensor):
        return given
    if not isinstance(given, (tuple, list)) or not all(isinstance(n, int) for n in given):
        raise ArgumentError("summary", "takes a shape or a tensor per input", got=given)
    dtype: DType | None = None
    device = None
    for p in module.parameters():
        dtype, device = p.dtype, p.b.device.without_autodiff()
        break
    return zeros(*given, dtype=dtype, device=device)


def _watched(
    forward: Callable[..., Any], path: str, module: Any, calls: list[list[Any]]
) -> Callable[..., Any]:
    def watched(*args: Any, **kwargs: Any) -> Any:
        row = [path, module, ()]
        calls.append(row)
        out = forward(*args, **kwargs)
        row[2] = _shapes(out)
        return out

    return watched


def _shapes(out: Any) -> Any:
    if isinstance(out, Tensor):
        return out.shape
    if isinstance(out, dict):
        return [_shapes(v) for v in out.values()]
    return [_shapes(v) for v in out] if isinstance(out, (list, tuple)) else ()


def _count(module: Any) -> int:
    return sum(prod(leaf.shape) for _, _, _, leaf in walk(module) if isinstance(leaf, Parameter))
