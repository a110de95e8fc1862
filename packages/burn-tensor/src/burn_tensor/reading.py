"""Reading values on the host without waiting for them here."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_std import BurnError, DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor

    from burn_tensor.tensor import Tensor

_LOCK = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def read_async(*tensors: Tensor) -> Future[Any]:
    """Return a future of the tensors' values as read-only numpy arrays.

    The work that makes them and the copies are handed to the device at once, all tensors of one
    together; a thread waits for them. The values are those of the call: what is assigned into a
    tensor later does not show. In a coroutine, await `asyncio.wrap_future(burn.read_async(x))`.

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
    resources = {id(t.b.resource): t.b.resource.backend for t in tensors}
    for backend in resources.values():
        with suppress(BurnError):  # the values that it concerns raise it in the future
            backend.flush()
    # One group per device: its copies start here and are waited for once.
    groups = [
        (backend, [n for n, t in enumerate(tensors) if id(t.b.resource) == key])
        for key, backend in resources.items()
    ]
    started = [
        (places, _start(backend, [tensors[n] for n in places])) for backend, places in groups
    ]

    def read() -> Any:
        arrays: list[Any] = [None] * len(tensors)
        for places, wait in started:
            for n, array in zip(places, wait(), strict=True):
                arrays[n] = array
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    return _readers().submit(read)


def _start(backend: Any, tensors: list[Tensor]) -> Callable[[], list[Any]]:
    """Start reading tensors of one device; what goes wrong is raised where they are waited for."""
    if any(t.dtype.is_quantized for t in tensors):
        values = [t.b.make(t.v) for t in tensors]
        return lambda: [t.numpy() for t in values]  # says why not
    try:
        wait: Callable[[], list[Any]] = backend.read_async([t.v for t in tensors])
    except BurnError as error:
        failed = error

        def refuse() -> list[Any]:
            raise failed

        return refuse
    return wait


def _readers() -> ThreadPoolExecutor:
    """Return the threads that wait; made, and their module imported, at the first use."""
    global _pool
    with _LOCK:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(4, "burn-read")
    return _pool
