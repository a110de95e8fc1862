"""The metrics' own thread: it reads tensors and computes values while training goes on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from burn_tensor import Tensor

Job = Callable[[], Any]


class Worker:
    """Runs jobs in order on a thread of its own; an error comes out at the next call.

    Args:
        waiting: how many jobs may wait before `put` blocks.

    Example:
        >>> done = []
        >>> with Worker() as worker:
        ...     worker.put(lambda: done.append(1))
        ...     worker.drain()
        >>> done
        [1]
    """

    def __init__(self, waiting: int = 16) -> None:
        self._jobs: queue.Queue[Job | None] = queue.Queue(waiting)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="burn-metrics", daemon=True)

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                # After an error the queue is only emptied, so that nobody waits for ever.
                if self._error is None:
                    job()
            except BaseException as error:  # noqa: BLE001 - raised again in `_check`
                self._error = error
            finally:
                del job
                self._jobs.task_done()
        self._jobs.task_done()

    def _check(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def put(self, job: Job) -> None:
        """Add a job.

        Args:
            job: is called on the thread.

        Raises:
            BaseException: whatever a job before it raised, with its own traceback.
        """
        self._check()
        self._jobs.put(job)

    @property
    def idle(self) -> bool:
        """Whether nothing waits or runs."""
        return not self._jobs.unfinished_tasks

    def drain(self) -> None:
        """Wait for all jobs.

        Raises:
            BaseException: whatever one of them raised, with its own traceback.
        """
        self._jobs.join()
        self._check()


def on_host(value: Any) -> Any:
    """Return a value with its tensors as arrays.

    Args:
        value: a tensor, or lists, tuples and dicts of them.
    """
    if isinstance(value, Tensor):
        array: np.ndarray[Any, Any] = value.numpy()
        return array
    if isinstance(value, dict):
        return {k: on_host(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(on_host(v) for v in value)
    return value
