"""Scopes: what `no_grad`, `autocast` and `no_fusion` change for the code inside them alone.

While a scope is open anywhere, contexts carry functions that ask a context variable and call the
right set; when the last one closes, the plain ones return. Outside scopes nothing is tested.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from burn_std import DType, DTypeError

if TYPE_CHECKING:
    from burn_dispatch.context import Context


class Scope(NamedTuple):
    """What holds in the current block.

    Attributes:
        no_grad: results are untracked.
        autocast: dtype of the operations marked `lower`, or None.
        recompute: the block recomputes values for a checkpoint: buffers must not be updated.
        checkpoint: `no_grad` only stands for the first run of a checkpointed function, so
            training behaviour is not switched off by it.
        no_fusion: nothing is recorded; operations run at once.
        watched: operations are measured, see `profiling`.
    """

    no_grad: bool = False
    autocast: DType | None = None
    recompute: bool = False
    checkpoint: bool = False
    no_fusion: bool = False
    watched: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether operations do what they do outside of all scopes."""
        special = self.no_grad or self.no_fusion or self.watched
        return not special and self.autocast is None


_CURRENT: ContextVar[Scope] = ContextVar("burn_scope", default=Scope())  # noqa: B039 - immutable
LOCK = threading.RLock()
_PLAIN = Scope()


class _Open:
    count = 0
    contexts: weakref.WeakSet[Context] = weakref.WeakSet()


def current() -> Scope:
    """Return the scope that holds here."""
    return _CURRENT.get()


def watch(context: Context) -> None:
    """Make a context take part in the swapping of function sets."""
    with LOCK:
        _Open.contexts.add(context)


def scoped() -> bool:
    """Return whether a scope is open anywhere."""
    return _Open.count > 0


@contextmanager
def scope(
    *,
    no_grad: bool | None = None,
    autocast: DType | bool | None = False,
    recompute: bool | None = None,
    checkpoint: bool | None = None,
    no_fusion: bool | None = None,
    watched: bool | None = None,
) -> Iterator[None]:
    """Open a block in which the given parts of the scope differ; others stay as they are.

    What `checkpoint` says is about `no_grad`, so it ends where that is given anew.
    """
    old = _CURRENT.get()
    new = Scope(
        old.no_grad if no_grad is None else no_grad,
        old.autocast if autocast is False else (autocast or None),  # type: ignore[arg-type]
        old.recompute if recompute is None else recompute,
        (old.checkpoint and no_grad is None) if checkpoint is None else checkpoint,
        old.no_fusion if no_fusion is None else no_fusion,
        old.watched if watched is None else watched,
    )
    with LOCK:
        _Open.count += 1
        if _Open.count == 1:
            for context in list(_Open.contexts):
                context.swap(True)
    token = _CURRENT.set(new)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        with LOCK:
            _Open.count -= 1
            if _Open.count == 0:
                for context in list(_Open.contexts):
                    context.swap(False)


def no_grad() -> Block:
    """Return a block, also usable as a decorator, in which nothing is tracked.

    Example:
        >>> with no_grad():
        ...     current().no_grad
        True
    """
    return Block(no_grad=True)


def enable_grad() -> Block:
    """Return a block that undoes `no_grad`."""
    return Block(no_grad=False)


def no_fusion() -> Block:
    """Return a block, also usable as a decorator, in which devices that record run at once.

    Each operation is one kernel, called before the next line of Python runs: for a debugger, for
    an error at its own line, and to see what recording gains. What was recorded before runs when
    an operation inside reads it. Devices that do not record are as they were. Blocks hold for
    their own thread or coroutine. A step that is captured records, so there it is an error.

    Example:
        >>> x = burn.ones(3, device=burn.device("fusion-flex"))
        >>> x.device.flush()
        >>> with burn.no_fusion():
        ...     y = x * 2 + 1
        >>> x.device.resource.backend.report()["waiting"]
        0
        >>> (y - x).sum().item()
        6.0
    """
    return Block(no_fusion=True)


# Blocks that were entered, innermost first; a context variable, so that threads and coroutines may
# share a block object.
_ENTERED: ContextVar[tuple[AbstractContextManager[None], Any] | None] = ContextVar(
    "burn_entered", default=None
)


class Block:
    """A reusable block and decorator; `changes` are those of `scope`."""

    def __init__(self, **changes: bool) -> None:
        self._changes = changes

    def __enter__(self) -> None:
        block = scope(**self._changes)
        block.__enter__()
        _ENTERED.set((block, _ENTERED.get()))

    def __exit__(self, *exc: Any) -> None:
        entered = _ENTERED.get()
        assert entered is not None  # noqa: S101 - entered before
        _ENTERED.set(entered[1])
        entered[0].__exit__(*exc)

    def __call__(self, fn):  # type: ignore[no-untyped-def]
        """Return a function whose calls are blocks."""
        from functools import wraps

        @wraps(fn)
        def wrapped(*args, **kwargs):  # type: ignore[no-untyped-def]
            with scope(**self._changes):
                return fn(*args, **kwargs)

        return wrapped


def autocast(dtype: DType | None):  # type: ignore[no-untyped-def]
    """Return a block in which products run in `dtype` and sensitive operations in float32.

    Args:
        dtype: float16 or bfloat16; None switches it off inside.

    Raises:
        DTypeError: another dtype.
    """
    given: object = dtype  # what an untyped caller passes may be anything
    known = isinstance(given, DType) and given.is_float and given.bits == 16
    if dtype is not None and not known:
        raise DTypeError(
            "autocast", "dtype is float16 or bfloat16", got=dtype,
            remedy="Write burn.autocast(burn.bfloat16); it holds on every device.",
        )  # fmt: skip
    return scope(autocast=dtype)
