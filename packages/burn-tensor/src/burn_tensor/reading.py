"""Reading values on the host without waiting for them here."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_std import BurnError, DTypeError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from burn_tensor.tensor import Tensor

_LOCK = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def read_async(*tensors: Tensor) -> Future[Any]:
    """Return a future of the tensors' values as read-only numpy arrays.

    The work that makes them is handed to the device at once; a thread waits for it. The values are
    those of the call: what is assigned into a tensor later does not show. In a coroutine, await
    `asyncio.wrap_future(burn.read_async(x))`.

    Args:
        tensors: of any shapes, dtypes and devices.

    Returns:
        A `concurrent.futures.Future` of an array for one tensor, of a tuple of arrays for several.
        What went wrong on the device is raised by its `result()`.

    Raises:
        DTypeError: an argument is no tensor.

    Example:
        >>> loss = (burn.ones(3) * 2).sum()
        >>> future = burn.read_async(loss)
        >>> float(future.result())
        6.0
    """
    given: tuple[Any, ...] = tensors
    if not given or not all(isinstance(t, TensorBase) for t in given):
        got = ", ".join(type(t).__name__ for t in given) or "no arguments"
        raise DTypeError("read_async", "takes tensors", got=got)
    for backend in {id(t.b.resource): t.b.resource.backend for t in tensors}.values():
        with suppress(BurnError):  # the values that it concerns raise it in the future
            backend.flush()
    values: list[Any] = [t.b.make(t.v) for t in tensors]

    def read() -> Any:
        arrays = tuple(t.numpy() for t in values)
        return arrays[0] if len(arrays) == 1 else arrays

    return _readers().submit(read)


def _readers() -> ThreadPoolExecutor:
    """Return the threads that wait; made, and their module imported, at the first use."""
    global _pool
    with _LOCK:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(4, "burn-read")
    return _pool
