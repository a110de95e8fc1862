"""Worker processes of a loader: started clean, fed by pipes, ended in any case."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import traceback
import weakref
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from burn_dataset.fetching import Recipe
from burn_dataset.shared import Blocks, Slots, remove
from burn_std import ArgumentError, BurnError

# What BURN_DEVICE is in a worker: making a tensor there is an error that says why.
_NO_DEVICE = "none_in_a_loader_worker"


class WorkerError(BurnError, RuntimeError):
    """A worker process of a loader ended before its time."""


class _Remote(Exception):
    """Carries a worker's traceback as text, as the cause of its error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def work(recipe: Recipe, pipe: Connection) -> None:
    """Make batches until the loader goes away; runs in the worker.

    Args:
        recipe: what batches are made with.
        pipe: brings requests, takes answers.
    """
    # The loader's process decides when to stop; a Ctrl-C, or a terminal that is closed, reaches the
    # whole group.
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    os.environ["BURN_DEVICE"] = _NO_DEVICE
    slots = Slots()
    streams: dict[int, Iterator[tuple[int, Any]]] = {}
    try:
        while (request := pipe.recv()) is not None:
            slot, what = request
            try:
                pipe.send(("batch", *slots.write(slot, _answer(recipe, what, streams))))
            except Exception as error:  # noqa: BLE001 - raised again in the loader's process
                pipe.send(("error", _portable(error), traceback.format_exc()))
    except (EOFError, OSError):
        pass  # the loader is gone
    finally:
        slots.close()


def _answer(recipe: Recipe, what: Any, streams: dict[int, Iterator[tuple[int, Any]]]) -> Any:
    """Return a batch by indices, or the next one of a stream; None at its end."""
    kind, epoch, *rest = what
    if kind == "indices":
        return recipe.fetch(rest[0], epoch)
    if kind == "begin":
        streams.clear()
        streams[epoch] = recipe.stream(epoch, *rest)
    return next(streams[epoch], (None, None))[1]


def _portable(error: Exception) -> Exception:
    """Return an error that survives the pipe; a plain one of the same words if it does not."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever its pickling raises, the words must arrive
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class Pool:
    """Worker processes that make batches in turn.

    Args:
        recipe: what batches are made with.
        count: how many processes.
        prefetch: batches under way per process.
        timeout: seconds that an answer is waited for; 0 waits for ever.

    Raises:
        ArgumentError: the data set, or what joins items, cannot be sent to a process.
    """

    def __init__(self, recipe: Recipe, count: int, prefetch: int, timeout: float = 0.0) -> None:
        check_pickles(recipe)
        # Not fork: threads and devices of this process must not come along.
        context = multiprocessing.get_context("forkserver")
        self.count = count
        self.prefetch = prefetch
        self.timeout = timeout
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        self._blocks = [Blocks() for _ in range(count)]
        for k in range(count):
            here, there = context.Pipe()
            process = context.Process(
                target=work, args=(recipe, there), name=f"burn-loader-{k}", daemon=True
            )
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)
        self.close = weakref.finalize(self, _end, self._pipes, self._processes, self._blocks)

    def ask(self, worker: int, slot: int, what: Any) -> None:
        """Send a request.

        Args:
            worker: to whom.
            slot: which block the answer may use.
            what: the request.

        Raises:
            WorkerError: the worker is gone.
        """
        try:
            self._pipes[worker].send((slot, what))
        except OSError:
            self._gone(worker)

    def answer(self, worker: int, slot: int) -> Any:
        """Wait for an answer and return the batch.

        Args:
            worker: whose.
            slot: which block was given.

        Raises:
            WorkerError: the worker is gone, or the answer does not come in time.
            Exception: what the worker raised, with its own traceback as the cause.
        """
        pipe, process = self._pipes[worker], self._processes[worker]
        ready = wait([pipe, process.sentinel], self.timeout or None)
        if not ready:
            raise WorkerError(
                "DataLoader", f"a batch comes within {self.timeout:g} seconds",
                got=f"nothing from {process.name}",
                remedy="Does an item of the data set hang? Or pass a longer timeout=.",
            )  # fmt: skip
        if pipe not in ready and not pipe.poll(0):
            self._gone(worker)
        try:
            kind, *content = pipe.recv()
        except (EOFError, OSError):
            self._gone(worker)
        if kind == "error":
            error, text = content
            raise error from _Remote(text)
        return self._blocks[worker].read(slot, *content)

    def _gone(self, worker: int) -> None:
        process = self._processes[worker]
        process.join(1)
        raise WorkerError(
            "DataLoader",
            "a worker process ended",
            got=f"{process.name}, exit code {process.exitcode}",
            # A signal gives a number below zero, an error while the script is imported gives 1.
            remedy='Does the script begin its work under `if __name__ == "__main__":`?'
            if process.exitcode == 1
            else "Was memory short, or does the data set end the process?",
        )


def _end(pipes: list[Connection], processes: list[Any], blocks: list[Blocks]) -> None:
    """Stop the processes, gently and then not, and remove the shared memory."""
    for pipe in pipes:
        with contextlib.suppress(OSError, ValueError):
            pipe.send(None)
    for pipe, process in zip(pipes, processes, strict=True):
        # A worker in the middle of a batch is not waited for.
        process.join(0.5)
        if process.is_alive():
            process.terminate()
            process.join(2)
        if process.is_alive():
            process.kill()
            process.join()
        _remove_unread(pipe)
        pipe.close()
        process.close()
    for block in blocks:
        block.close()


def _remove_unread(pipe: Connection) -> None:
    """Remove the blocks of answers that nobody read; a worker that was killed left them."""
    with contextlib.suppress(EOFError, OSError):
        while pipe.poll(0):
            kind, *content = pipe.recv()
            if kind == "batch" and content[1] is not None:
                with contextlib.suppress(FileNotFoundError):
                    remove(SharedMemory(content[1]))


def run_by_indices(pool: Pool, batches: list[np.ndarray[Any, Any]], epoch: int) -> Iterator[Any]:
    """Yield the batches of some indices in order, made by workers in turn.

    Args:
        pool: of workers.
        batches: indices of each batch.
        epoch: from 0.
    """
    ahead = pool.count * pool.prefetch
    asked = 0
    for k in range(len(batches)):
        while asked < len(batches) and asked < k + ahead:
            slot = asked // pool.count % pool.prefetch
            pool.ask(asked % pool.count, slot, ("indices", epoch, batches[asked]))
            asked += 1
        yield pool.answer(k % pool.count, k // pool.count % pool.prefetch)


def run_stream(pool: Pool, epoch: int, first: int, step: int = 1) -> Iterator[Any]:
    """Yield the batches of an iterable data set in order, made by workers in turn.

    Args:
        pool: of workers.
        epoch: from 0.
        first: number of the first batch.
        step: distance to the next.
    """
    for w in range(pool.count):
        pool.ask(w, 0, ("begin", epoch, first + w * step, pool.count * step))
    k = 0
    while True:
        worker, turn = k % pool.count, k // pool.count
        batch = pool.answer(worker, turn % pool.prefetch)
        if batch is None:
            # The others' next answers are none either, and must not stay in their pipes.
            for rest in range(1, pool.count):
                pool.answer((k + rest) % pool.count, (k + rest) // pool.count % pool.prefetch)
            return
        pool.ask(worker, (turn + 1) % pool.prefetch, ("next", epoch))
        k += 1
        yield batch


def check_pickles(recipe: Recipe) -> None:
    """Raise for what cannot be sent to a process, naming the attribute.

    Args:
        recipe: what batches are made with.

    Raises:
        ArgumentError: something in it does not pickle.
    """
    for name, value in (("dataset", recipe.dataset), ("collate", recipe.join)):
        error = _pickle_error(value)
        if error is not None:
            path, inner, cause = _culprit(name, value, error, 0)
            raise ArgumentError(
                "DataLoader", "what workers use can be pickled",
                got=f"{path} of type {type(inner).__name__}: {cause}",
                remedy="Use a function of a module instead of a lambda, open files on first use, "
                "or num_workers=0.",
            ) from error  # fmt: skip


def _pickle_error(value: Any) -> Exception | None:
    try:
        ForkingPickler.dumps(value)
    except Exception as error:  # noqa: BLE001 - pickling raises anything
        return error
    return None


def _culprit(path: str, value: Any, error: Exception, depth: int) -> tuple[str, Any, Exception]:
    """Return the innermost attribute that does not pickle."""
    inner: list[tuple[str, Any]] = [
        (f"{path}.{name}", v) for name, v in getattr(value, "__dict__", {}).items()
    ]
    if isinstance(value, dict):
        inner = [(f"{path}[{k!r}]", v) for k, v in value.items()]
    elif isinstance(value, (list, tuple)):
        inner = [(f"{path}[{k}]", v) for k, v in enumerate(value)]
    if depth < 20 and not isinstance(value, type) and not callable(value):
        for name, v in inner:
            found = _pickle_error(v)
            if found is not None:
                return _culprit(name, v, found, depth + 1)
    return path, value, error
