"""The table of backward rules: `@rule` fills it, the tape reads it.

A rule turns the cotangents of an entry's outputs into those of its inputs with catalogue operations
only, so a backward pass can itself be recorded, differentiated, fused and replayed. The contract is
in docs/design-notes.md, "Backward rules".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeAlias, TypeVar

from burn_ir import CATALOG
from burn_std import AutodiffError, DType
from burn_std.dtypes import float32

# What a rule handles: a TensorBase (a Python scalar of the call is one of rank 0), None for an
# absent optional, a list of them for a list input.
Tensor: TypeAlias = Any
Grads: TypeAlias = Any
F = TypeVar("F", bound=Callable[..., Any])


class Call(Protocol):
    """What a rule knows of the call that it differentiates.

    Attributes:
        ops: context on which the rule calls catalogue operations.
        need: per input of the entry, whether its gradient is wanted (a tuple for a list input).
        shapes: per input its shape, None for an absent one (a tuple for a list input).
        dtypes: per input its dtype, likewise.
        attrs: all attributes in declared order.
        create_graph: the backward is being recorded to be differentiated again.
    """

    ops: Any
    need: tuple[Any, ...]
    shapes: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    attrs: tuple[Any, ...]
    create_graph: bool


class Rule:
    """The backward of one entry.

    Attributes:
        name: entry of the catalogue.
        fn: `(call, g, *saved)` to one gradient per input, a bare one if there is one input.
        saves: names of the inputs and outputs that the rule reads, in the order of its parameters.
        readers: per saved name the inputs whose gradient reads it; empty means any.
    """

    __slots__ = ("fn", "name", "readers", "saves")

    def __init__(
        self,
        name: str,
        fn: Callable[..., Grads],
        saves: tuple[str, ...],
        readers: tuple[tuple[str, ...], ...],
    ) -> None:
        self.name = name
        self.fn = fn
        self.saves = saves
        self.readers = readers

    def __repr__(self) -> str:
        return f"<rule {self.name}({', '.join(self.saves)})>"


RULES: dict[str, Rule] = {}


def rule(name: str, saves: str = "", *, wide: bool = False) -> Callable[[F], F]:
    """Register the decorated function as the backward of an entry.

    Args:
        name: entry of the catalogue.
        saves: names of inputs and outputs whose tensors the rule reads. `x:y` is kept only
            where the gradient of y is wanted (`x:y,z` where that of y or z is); else the rule
            gets None for it.
        wide: compute in float32 where the entry's first input is float16 or bfloat16. For rules of
            several steps: half precision would round after each of them, while the contract rounds
            once. Every gradient comes back in its input's dtype, whatever the rule made.

    A package adds the rule of its own operation at any time before the operation's first call on a
    device with autodiff.

    Raises:
        GraphError: no such operation is registered.
        AutodiffError: the entry has a rule already, or the parameters do not fit `saves`.
    """
    _ = CATALOG[name]
    parts = [part.partition(":") for part in saves.split()]
    names = tuple(p[0] for p in parts)
    readers = tuple(tuple(p[2].split(",")) if p[2] else () for p in parts)

    def register(fn: F) -> F:
        takes = len(inspect.signature(fn).parameters)
        if name in RULES or takes != 2 + len(names):
            raise AutodiffError(
                name, "one rule per entry, with the parameters (c, g, *saves)",
                got=f"{takes} parameters for saves {names}{', twice' if name in RULES else ''}",
            )  # fmt: skip
        RULES[name] = Rule(name, widened(name, fn, names) if wide else fn, names, readers)
        return fn

    return register


def widened(name: str, fn: Callable[..., Grads], saves: tuple[str, ...]) -> Callable[..., Grads]:
    """Return a rule that computes in float32 where the first input has 16 bits."""
    inputs = [i.name for i in CATALOG[name].inputs]
    # Where an input is saved its own dtype is known; the others have the promoted one.
    known = [saves.index(i) if i in saves else None for i in inputs]

    @wraps(fn)
    def run(c: Call, g: Tensor, *saved: Tensor) -> Grads:
        cast, dtypes = c.ops.cast, c.dtypes

        def widen(t: Tensor) -> Tensor:
            half = t is not None and t.dtype.is_float and t.dtype.bits == 16
            return cast(t, float32) if half else t

        args = saved
        if dtypes[0].bits == 16:
            g = tuple(map(widen, g)) if isinstance(g, tuple) else widen(g)
            args = tuple(map(widen, saved))
        grads = fn(c, g, *args)
        if not isinstance(grads, tuple):
            return _fit(cast, grads, dtypes[0])
        out = []
        for grad, promoted, k in zip(grads, dtypes, known, strict=True):
            own = promoted if k is None or saved[k] is None else saved[k].dtype
            out.append(_fit(cast, grad, own))
        return tuple(out)

    return run


def _fit(cast: Callable[..., Tensor], grad: Tensor, dtype: DType) -> Tensor:
    return grad if grad is None or grad.dtype is dtype else cast(grad, dtype)
