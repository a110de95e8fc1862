"""A computing resource: one backend on one device, with its defaults and random streams."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from burn_backend import Backend, native_mode, number_of
from burn_std import DeviceError, DType, DTypeError
from burn_std.dtypes import float32, int64

if TYPE_CHECKING:
    from burn_dispatch.context import Context

_MAIN = threading.main_thread()
_MASK = (1 << 64) - 1


class _Stream(threading.local):
    """The random stream of one thread; threads are numbered in order of first use, main is 0."""

    def __init__(self) -> None:
        self.index: int | None = None
        self.epoch = -1
        self.seed = 0
        self.counter = 0


class Resource:
    """One backend instance and what belongs to it.

    Attributes:
        name: `flex`, `fusion-flex`, `cpu`; without the index.
        chain: how the device prints, `fusion<flex>`; what is usual for a backend is not shown.
        backend: where payloads live.
        default_float: dtype of Python floats; `default_int` of Python ints.
        tf32: products of float32 may read their factors as tf32.
        used: an operation or tensor was made, so defaults are fixed.
        scalars: payloads of Python scalars seen before.
        often: operations that come again and again, whose functions are native.
        weak: (payload dtype, class of a scalar) that meet without promotion.
    """

    def __init__(self, name: str, chain: str, backend: Backend, index: int) -> None:
        self.name = name
        self.chain = chain
        self.backend = backend
        self.index = index
        self.default_float: DType = float32
        self.default_int: DType = int64
        self.tf32 = False
        self.used = False
        self.configured = False
        self.scalars: dict[Any, Any] = {}
        self.weak: dict[Any, DType] = {}
        self.contexts: dict[Any, Context] = {}
        self._lock = threading.Lock()
        self.often: set[str] = set()
        backend.repeating = self.natively
        self._streams = _Stream()
        self._threads = 1
        self._epoch = 0
        self._seed = 0

    def plain_context(self) -> Context:
        """Return the context without autodiff."""
        return self.contexts.get((False, False)) or self.context(None, False)

    def context(self, decorator: Any, checkpointing: bool) -> Context:
        """Return the context of a decorator and strategy; one object each."""
        key = (decorator is not None, checkpointing)
        found = self.contexts.get(key)
        if found is not None:
            return found
        from burn_dispatch.context import Context
        from burn_dispatch.device import Device

        with self._lock:
            found = self.contexts.get(key)
            if found is None:
                found = Context(self, decorator, checkpointing)
                found.device = Device(self, *key)
                self.contexts[key] = found
        return found

    def natively(self, names: Iterable[str]) -> None:
        """Put native code in the place of functions that are called again and again.

        Args:
            names: of operations.
        """
        if native_mode() == "off":
            return
        self.often.update(names)
        for context in list(self.contexts.values()):
            for made in (context, *context.variants.values()):
                made.natively(names)

    def scalar_payload(self, key: Any, value: Any, number: bool | int | float, dtype: DType) -> Any:
        """Return the payload of a scalar; immutable ones are kept for the next call."""
        self.used = True
        if number.__class__ is int and not -(2**63) <= number < 2**64:
            number = number_of(number, dtype)
        payload = self.backend.scalar(number, dtype)
        # -0.0 equals 0.0 as a key, so zeros are made anew.
        if self.backend.keeps_scalars and number != 0:
            if len(self.scalars) > 1024:
                self.scalars.clear()
            self.scalars[key, value, value.__class__] = payload
        return payload

    def configure(self, default_float: DType, default_int: DType, tf32: bool = False) -> None:
        """Set the default dtypes and how exact products are; once, before the first tensor."""
        if self.used or self.configured:
            raise DeviceError(
                self.name, "a device is configured once, before its first tensor",
                remedy="Call configure at the start of the program.",
            )  # fmt: skip
        for dtype in (default_float, default_int):
            if not self.backend.supports_dtype(dtype):
                raise DeviceError(self.name, "the device does not support this dtype", got=dtype)
        self.default_float, self.default_int = default_float, default_int
        if tf32:
            self.tf32 = True
            self.backend.allow_tf32()
        self.configured = True

    # ---- random numbers ---------------------------------------------------------------------

    def seed(self, value: int) -> None:
        """Restart every thread's stream from a seed."""
        value = _integer("seed", value)
        with self._lock:
            self._seed = value & _MASK
            self._epoch += 1

    def _stream(self) -> _Stream:
        s = self._streams
        if s.index is None:
            with self._lock:
                if threading.current_thread() is _MAIN:
                    s.index = 0
                else:
                    s.index = self._threads
                    self._threads += 1
        if s.epoch != self._epoch:
            s.epoch = self._epoch
            # Weyl step: distinct threads get distinct keys, thread 0 the seed itself.
            s.seed = (self._seed + s.index * 0x9E3779B97F4A7C15) & _MASK
            s.counter = 0
        return s

    def next_key(self) -> tuple[int, int]:
        """Return (seed, counter) of this thread and advance the counter."""
        s = self._stream()
        key = (s.seed, s.counter)
        s.counter += 1
        return key

    def random_state(self) -> tuple[int, int]:
        """Return (seed, counter) of this thread without advancing."""
        s = self._stream()
        return s.seed, s.counter

    def set_random_state(self, state: tuple[int, int]) -> None:
        """Put this thread's stream where `random_state` was taken."""
        given: Any = state
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise DTypeError(
                "set_random_state", "takes what random_state returned", got=type(given).__name__
            )
        seed, counter = (_integer("set_random_state", part) for part in given)
        s = self._stream()
        s.seed, s.counter = seed & _MASK, counter


def _integer(op: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise DTypeError(op, "takes an integer", got=repr(value))
    return int(value.__index__())
