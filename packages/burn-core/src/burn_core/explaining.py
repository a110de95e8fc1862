"""`burn.explain`: what a recorded program becomes, plan by plan and kernel by kernel."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from burn_core.capturing import _flat, _resource
from burn_core.module import Module
from burn_tensor import Tensor

# Operations that are named in a line of the table.
_NAMED = 6


class KernelRow(NamedTuple):
    """One call of a plan.

    Attributes:
        operations: what it computes, in order.
        reads: bytes.
        writes: bytes; 0 with no bytes read for a view.
    """

    operations: tuple[str, ...]
    reads: int
    writes: int

    @property
    def is_view(self) -> bool:
        """Whether nothing is computed."""
        return not self.reads and not self.writes


class PlanReport(NamedTuple):
    """One plan.

    Attributes:
        kernels: its calls, in order.
        least: bytes of its inputs and results, which any way to compute it moves.
        seconds: median time of some runs, each waited for.
    """

    kernels: tuple[KernelRow, ...]
    least: int
    seconds: float


class Explanation:
    """What `burn.explain` returns; prints as tables.

    Attributes:
        device: where the program ran.
        plans: what it became.
    """

    def __init__(self, device: str, plans: Sequence[PlanReport]) -> None:
        self.device = device
        self.plans = tuple(plans)

    @property
    def operations(self) -> int:
        """How many operations were recorded and not dropped."""
        return sum(len(k.operations) for p in self.plans for k in p.kernels)

    @property
    def kernels(self) -> int:
        """How many calls compute something."""
        return sum(not k.is_view for p in self.plans for k in p.kernels)

    def __str__(self) -> str:
        """Return the tables."""
        lines = [
            f"operations {self.operations}, kernels {self.kernels}, plans {len(self.plans)}: "
            f"{self.device}"
        ]
        for number, plan in enumerate(self.plans, 1):
            moved = sum(k.reads + k.writes for k in plan.kernels)
            lines.append(
                f"plan {number}: {plan.seconds * 1e6:.0f} us, {_bytes(moved)} moved, "
                f"{_bytes(plan.least)} at least"
            )
            for k in plan.kernels:
                size = "view" if k.is_view else f"{_bytes(k.reads)} -> {_bytes(k.writes)}"
                lines.append(f"  {size:>24}  {_named(k.operations)}")
        return "\n".join(lines)

    __repr__ = __str__

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the tables and the order of the kernels as one page.

        Args:
            path: the file.
        """
        import html

        parts = []
        for number, plan in enumerate(self.plans, 1):
            moved = sum(k.reads + k.writes for k in plan.kernels)
            most = max((k.reads + k.writes for k in plan.kernels), default=0) or 1
            rows = "".join(
                f"<tr><td>{html.escape(' '.join(k.operations))}</td><td>{_bytes(k.reads)}</td>"
                f"<td>{_bytes(k.writes)}</td><td><div class=bar style='width:"
                f"{100 * (k.reads + k.writes) / most:.0f}%'></div></td></tr>"
                for k in plan.kernels
            )
            parts.append(
                f"<h2>Plan {number}</h2><p>{plan.seconds * 1e6:.0f} us, {_bytes(moved)} moved, "
                f"{_bytes(plan.least)} at least</p><table><tr><th>kernel</th><th>reads</th>"
                f"<th>writes</th><th>bytes</th></tr>{rows}</table>"
            )
        title = f"{self.operations} operations, {self.kernels} kernels on {self.device}"
        page = (
            "<!doctype html><meta charset=utf-8><title>burn.explain</title><style>"
            "body{font-family:sans-serif;margin:2em}td,th{text-align:left;padding:.2em 1em}"
            "td:last-child{width:20em}.bar{background:#c60;height:.8em}</style>"
            f"<h1>{html.escape(title)}</h1>{''.join(parts)}"
        )
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)


def explain(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Run a function on a device that records, and return what its program became.

    Args:
        fn: the program, a module too. It may read nothing on the host.
        *args: its arguments, with the tensors that say which device it is.
        **kwargs: more of them.

    Raises:
        CaptureError: the device records nothing, or the program reads a value.

    Example:
        >>> x = burn.ones(1000, device=burn.Device.cpu())
        >>> found = burn.explain(lambda x: (x * 2 + 1).tanh().sum(), x)
        >>> found.operations, found.kernels
        (4, 1)
        >>> [k.operations for k in found.plans[0].kernels]
        [('mul', 'add', 'tanh', 'sum')]
    """
    given = [x for x in _flat((args, kwargs)) if isinstance(x, Tensor)]
    if isinstance(fn, Module):
        given += [*fn.parameters(), *fn.buffers()]
    resource = _resource(given, "explain")
    backend = resource.backend
    with backend.step_log("explain") as log:
        out = fn(*args, **kwargs)
    del out
    plans = []
    for run in log.runs:
        payloads = [backend.settled(v) for v in run.inputs]
        times = []
        for _ in range(5):
            start = perf_counter()
            made = run.function()(payloads, run.numbers)
            resource.backend.sync()
            times.append(perf_counter() - start)
            del made
        rows = tuple(KernelRow(tuple(names), r, w) for names, r, w in run.units())
        plans.append(PlanReport(rows, run.least(), sorted(times)[len(times) // 2]))
    return Explanation(resource.name, plans)


def _named(operations: Sequence[str]) -> str:
    shown = " ".join(operations[:_NAMED])
    more = len(operations) - _NAMED
    return shown if more <= 0 else f"{shown} and {more} more"


def _bytes(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"
