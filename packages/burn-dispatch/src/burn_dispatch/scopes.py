"""Scopes: what `no_grad`, `autocast` and `no_fusion` change for the code inside them alone.

While a scope is open anywhere, contexts carry functions that ask a context variable and call the
right set; when the last one closes, the plain ones return. Outside scopes nothing is tested.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from burn_std import DType, DTypeError

if TYPE_CHECKING:
    from burn_dispatch.context import Context

F = TypeVar("F", bound=Callable[..., Any])


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


LOCK = threading.RLock()
_PLAIN = Scope()


class _Entry:
    """One entering of a block."""

    __slots__ = ("block", "closed")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.closed = False


class _State(NamedTuple):
    """The scope of a thread or coroutine, and the entries that make it, outermost first."""

    scope: Scope = _PLAIN
    entries: tuple[_Entry, ...] = ()


# Entries are kept one by one, not as what held before each: blocks in generators end in any order,
# and in other threads than they began in.
_OUTSIDE = _State()
_STATE: ContextVar[_State] = ContextVar("burn_scope", default=_OUTSIDE)


def _state(entries: Iterable[_Entry]) -> _State:
    left = tuple([e for e in entries if not e.closed])
    if not left:
        return _OUTSIDE
    scope = _PLAIN
    for entry in left:
        scope = entry.block.inside(scope)
    return _State(scope, left)


class _Open:
    count = 0
    contexts: weakref.WeakSet[Context] = weakref.WeakSet()


def current() -> Scope:
    """Return the scope that holds here."""
    state = _STATE.get()
    if state is _OUTSIDE:
        return _PLAIN
    scope, entries = state
    for entry in entries:
        if entry.closed:  # elsewhere: by another thread, or under a task that it outlived
            return _state(entries).scope
    return scope


def watch(context: Context) -> None:
    """Make a context take part in the swapping of function sets."""
    with LOCK:
        _Open.contexts.add(context)


def scoped() -> bool:
    """Return whether a scope is open anywhere."""
    return _Open.count > 0


class Block:
    """A block and a decorator that can be used again and again; `changes` are those of `scope`."""

    def __init__(
        self,
        *,
        no_grad: bool | None = None,
        autocast: DType | bool | None = False,
        recompute: bool | None = None,
        checkpoint: bool | None = None,
        no_fusion: bool | None = None,
        watched: bool | None = None,
    ) -> None:
        self._no_grad = no_grad
        self._autocast = autocast
        self._recompute = recompute
        self._checkpoint = checkpoint
        self._no_fusion = no_fusion
        self._watched = watched
        self._open: list[_Entry] = []

    def inside(self, old: Scope) -> Scope:
        """Return the scope inside the block, where `old` is the one around it."""
        new = self._no_grad
        return Scope(
            old.no_grad if new is None else new,
            old.autocast if self._autocast is False else (self._autocast or None),  # type: ignore[arg-type]
            old.recompute if self._recompute is None else self._recompute,
            (old.checkpoint and new is None) if self._checkpoint is None else self._checkpoint,
            old.no_fusion if self._no_fusion is None else self._no_fusion,
            old.watched if self._watched is None else self._watched,
        )

    def __enter__(self) -> None:
        entry = _Entry(self)
        with LOCK:
            self._open.append(entry)
            _Open.count += 1
            if _Open.count == 1:
                for context in list(_Open.contexts):
                    context.swap(True)
        _STATE.set(_state((*_STATE.get().entries, entry)))

    def __exit__(self, *exc: object) -> None:
        here = _STATE.get().entries
        with LOCK:
            # A generator may be closed by another thread; the block that it entered ends there.
            mine = [e for e in here if e.block is self and not e.closed] or self._open
            entry = mine[-1]
            entry.closed = True
            self._open.remove(entry)
            _STATE.set(_state(here))
            _Open.count -= 1
            if _Open.count == 0:
                for context in list(_Open.contexts):
                    context.swap(False)

    def __call__(self, fn: F) -> F:
        """Return a function whose calls are blocks, and whose generators are while they run."""
        made: Any
        if inspect.isasyncgenfunction(fn):
            made = self._async_generator(fn)
        elif inspect.isgeneratorfunction(fn):
            made = self._generator(fn)
        elif inspect.iscoroutinefunction(fn):

            async def made(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await fn(*args, **kwargs)
        else:

            def made(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return fn(*args, **kwargs)

        return wraps(fn)(made)  # type: ignore[return-value]

    def _generator(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            inner = fn(*args, **kwargs)
            act, given = inner.send, None
            try:
                while True:
                    try:
                        with self:
                            value = act(given)
                    except StopIteration as end:
                        return end.value
                    try:
                        act, given = inner.send, (yield value)
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001 - handed on inside
                        act, given = inner.throw, error
            finally:
                with self:
                    inner.close()

        return made

    def _async_generator(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        async def made(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            inner = fn(*args, **kwargs)
            act, given = inner.asend, None
            try:
                while True:
                    try:
                        with self:
                            value = await act(given)
                    except StopAsyncIteration:
                        return
                    try:
                        act, given = inner.asend, (yield value)
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001 - handed on inside
                        act, given = inner.athrow, error
            finally:
                with self:
                    await inner.aclose()

        return made


def scope(
    *,
    no_grad: bool | None = None,
    autocast: DType | bool | None = False,
    recompute: bool | None = None,
    checkpoint: bool | None = None,
    no_fusion: bool | None = None,
    watched: bool | None = None,
) -> Block:
    """Return a block in which the given parts of the scope differ; others stay as they are.

    What `checkpoint` says is about `no_grad`, so it ends where that is given anew.
    """
    return Block(
        no_grad=no_grad, autocast=autocast, recompute=recompute,
        checkpoint=checkpoint, no_fusion=no_fusion, watched=watched,
    )  # fmt: skip


@overload
def no_grad() -> Block: ...
@overload
def no_grad(fn: F, /) -> F: ...
def no_grad(fn: Any = None, /) -> Any:
    """Return a block, also usable as a decorator, in which nothing is tracked.

    Args:
        fn: a function; it is returned decorated, so `@no_grad` says the same as `@no_grad()`.
            Of a generator, what runs inside is in the block, and its caller is not.

    Example:
        >>> with no_grad():
        ...     current().no_grad
        True
        >>> @no_grad
        ... def parts():
        ...     yield current().no_grad
        >>> next(parts()), current().no_grad
        (True, False)
    """
    return _block(fn, no_grad=True)


@overload
def enable_grad() -> Block: ...
@overload
def enable_grad(fn: F, /) -> F: ...
def enable_grad(fn: Any = None, /) -> Any:
    """Return a block, also usable as a decorator, that undoes `no_grad`.

    Args:
        fn: a function; it is returned decorated.
    """
    return _block(fn, no_grad=False)


@overload
def no_fusion() -> Block: ...
@overload
def no_fusion(fn: F, /) -> F: ...
def no_fusion(fn: Any = None, /) -> Any:
    """Return a block, also usable as a decorator, in which devices that record run at once.

    Each operation is one kernel, called before the next line of Python runs: for a debugger, for
    an error at its own line, and to see what recording gains. What was recorded before runs when
    an operation inside reads it. Devices that do not record are as they were. Blocks hold for
    their own thread or coroutine. A step that is captured records, so there it is an error.

    Args:
        fn: a function; it is returned decorated.

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
    return _block(fn, no_fusion=True)


def _block(fn: Any, **changes: bool) -> Any:
    return Block(**changes) if fn is None else Block(**changes)(fn)


def autocast(dtype: DType | None) -> Block:
    """Return a block, also usable as a decorator, in which products run in 16 bits.

    Operations that need more compute in float32.

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
