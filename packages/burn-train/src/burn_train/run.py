"""One run of a training: the loop itself, and what it keeps while it goes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from burn_dataset import WorkerError
from burn_std import TrainError
from burn_tensor import Tensor
from burn_train.checkpoint import Mark, Saved, Writer, set_aside
from burn_train.evaluation import flush, no_batches
from burn_train.learner import Learner
from burn_train.loggers.files import FileLogger
from burn_train.measuring import Pace, Split, run_state, steps_of, with_last
from burn_train.observer import LOG, Observers, Progress, Row, RunInfo
from burn_train.summary import Summary
from burn_train.views.choose import choose_view
from burn_train.worker import Worker

if TYPE_CHECKING:
    from burn_train.training import SupervisedTraining, TrainingResult

# Seconds between two updates of a live view.
_REFRESH = 0.5


class Run:
    """One run of a training.

    Args:
        training: its settings.
        learner: is trained.
    """

    def __init__(self, training: SupervisedTraining, learner: Learner) -> None:
        self.training = training
        self.learner = learner
        self.history: list[Row] = []
        self._batch = 0  # done of the epoch that a checkpoint stopped in
        self._seen: dict[str, Tensor] = {}  # by the metrics, of that epoch
        self._before = 0.0  # seconds of that epoch
        self._stopped = False  # early stopping has spoken
        self._cut_short = False  # the loader ended before its time, when training was to end
        self._best: dict[str, Tensor] | None = None
        self._steps = steps_of(training.train)
        self._start = time.perf_counter()
        self._done = 0
        self._items = 0
        self._pace = Pace(_REFRESH)
        self._writer = Writer()

    # ---- the whole ----------------------------------------------------------------------------

    def go(self, resume: bool) -> TrainingResult:
        """Train until the end, an early stop or an interruption."""
        from burn_train.training import TrainingResult

        t = self.training
        t.interrupter.reset()
        notes: list[str] = []
        if resume and t.checkpoints is not None:
            saved = t.checkpoints.load_newest(notes.append)
            if saved is not None:
                self._restore(saved)
                notes.append(f"resumed from {t.checkpoints.path(saved.mark).name}")
        elif t.checkpoints is not None and (mark := t.checkpoints.latest()) is not None:
            name = t.checkpoints.path(mark).name
            aside = set_aside(t.checkpoints.directory)
            notes.append(
                f"the run that was here, up to {name}, is in {aside.name}; "
                "resume=True would have gone on from it"
            )
        self.learner.flush()  # what made the model is no part of the first step
        files = [] if t.directory is None else [FileLogger(t.directory)]
        shown = (
            t.view if t.view is not None and not isinstance(t.view, str) else choose_view(t.view)
        )
        self._tell = Observers([*files, *t.loggers, shown])
        summary: Summary | None = None
        try:
            with ExitStack() as stack:
                stack.enter_context(_log_lines(self._tell))
                self._tell.tell("begin", self._info())
                stack.enter_context(t.interrupter.on_signals())
                self._worker = stack.enter_context(Worker())
                for note in notes:
                    LOG.info(note)
                reason = self._loop()
                self._writer.wait()
                best = self._bring_back_best()
                if reason != "done":
                    LOG.info("ended: %s", reason)
            summary = Summary(self.history, facts=self._facts(reason))
        finally:
            self._tell.tell("end", summary)
        return TrainingResult(self.history, reason, self.learner.model.valid(), summary, best)

    def _loop(self) -> str:
        t = self.training
        while len(self.history) < t.epochs and not self._stopped:
            row = self._epoch(len(self.history) + 1)
            if row is None:
                return str(t.interrupter.reason)
            self.history.append(row)
            self.learner.end_epoch(row)
            stop = self._ask_early_stopping(row)
            self._tell.tell("epoch", row)
            ends = t.interrupter.should_stop and len(self.history) < t.epochs
            if t.checkpoints is not None and (
                t.checkpoints.wanted(self.history) or (ends and t.interrupter.save)
            ):
                self._save(Mark(len(self.history)), None)
            if stop:
                return "early stop"
            if ends:
                return str(t.interrupter.reason)
        return "early stop" if self._stopped else "done"

    # ---- an epoch -----------------------------------------------------------------------------

    def _epoch(self, epoch: int) -> Row | None:
        """Return the row of an epoch, or None if it was interrupted."""
        start = time.perf_counter() - self._before
        split = self.training.metrics.split(gauges=True)
        if self._seen:
            split.load_state_dict(self._seen)
        reached = self._train(epoch, split, start)
        if reached is not None:
            self._save_inside(epoch, reached, split, start)
            return None
        self._batch, self._seen, self._before = 0, {}, 0.0
        row: Row = {"epoch": epoch, **self._values("train", epoch, split)}
        if self.training.valid is not None:
            row |= self._validate(epoch)
        row["seconds"] = time.perf_counter() - start
        return row

    def _train(self, epoch: int, split: Split, start: float) -> int | None:
        """Make the steps of an epoch; return how many batches were done when interrupted."""
        t, learner = self.training, self.learner
        loader: Any = t.train
        if hasattr(loader, "epoch"):
            loader.epoch, loader.position = epoch - 1, self._batch
        elif self._batch:
            raise TrainError(
                "SupervisedTraining", "a loader that is resumed inside an epoch has a position",
                got=type(loader).__name__, remedy="Use DataLoader.",
            )  # fmt: skip
        first = self._batch
        every = self._tell.every
        known = max(self._steps - first, 0) if self._steps else 0
        if self._steps and not known:
            return None
        k = first
        # The path of every step: what cannot change within an epoch is looked up here.
        train_step, metrics, keep = learner.train_step, split.on_device, split.keep
        interrupter, save_every, gathers = t.interrupter, t.save_every, learner.accumulate > 1
        due = self._pace.due if self._tell.live else _never
        before = self._items - split.count
        for batch, last in with_last(self._until_stopped(loader), known):
            step = train_step(batch, metrics, last=last, keep=keep)
            k += 1
            self._done = (epoch - 1) * self._steps + k if self._steps else self._done + 1
            if keep:
                split.hand_over(step, self._worker)
                del step
            if every:
                self._log_values(every, "train", epoch, split)
            if due():
                self._items = before + split.count
                self._show("train", epoch, k, self._steps, split)
            if gathers and not learner.between_steps:
                continue
            if interrupter.should_stop and not last:
                return k
            if save_every and not last and k % save_every == 0:
                self._save_inside(epoch, k, split, start)
        self._items = before + split.count
        if k == 0:
            raise no_batches("an epoch", f"none in epoch {epoch}")
        return k if interrupter.should_stop and self._cut_short else None

    def _until_stopped(self, loader: Any) -> Iterator[Any]:
        """Yield batches; a worker that ends at the signal that ends the training ends them."""
        self._cut_short = False
        try:
            yield from iter(loader)
        except WorkerError:
            if not self.training.interrupter.should_stop or not self.learner.between_steps:
                raise
            self._cut_short = True

    def _validate(self, epoch: int) -> dict[str, float]:
        loader: Any = self.training.valid
        if hasattr(loader, "epoch"):
            loader.epoch, loader.position = 0, 0
        split = self.training.metrics.split(gauges=False)
        model = self.learner.inference()
        steps, k = steps_of(loader), 0
        for k, batch in enumerate(loader, 1):
            step = self.learner.valid_step(batch, split.on_device, model=model, keep=split.keep)
            flush(batch)
            split.hand_over(step, self._worker)
            del step
            if self._tell.live and self._pace.due():
                self._show("valid", epoch, k, steps, split)
        if k == 0:
            raise no_batches("validation", f"none in epoch {epoch}")
        return self._values("valid", epoch, split)

    def _values(self, name: str, epoch: int, split: Split) -> dict[str, float]:
        """Return the values of a finished pass, by column."""
        self._worker.drain()
        values = split.reading(run_state(self.learner, self._seconds()))()
        if self._tell.live:
            self._tell.tell("values", name, epoch, self._done, values, only=_is_live)
        return {f"{name} {metric}": value for metric, value in values.items()}

    # ---- showing ------------------------------------------------------------------------------

    def _seconds(self) -> float:
        return time.perf_counter() - self._start

    def _show(self, name: str, epoch: int, step: int, steps: int, split: Split) -> None:
        """Tell live observers where training is; values only if the worker keeps up."""
        progress = Progress(name, epoch, step, steps, self._items, self._done, self._seconds())
        self._tell.tell("progress", progress, only=_is_live)
        if self._worker.idle:
            self._send_values(name, epoch, split, _is_live)

    def _log_values(self, every: list[int], name: str, epoch: int, split: Split) -> None:
        done = self._done
        if any(done % n == 0 for n in every):
            self._send_values(name, epoch, split, lambda o: bool(o.every and done % o.every == 0))

    def _send_values(self, name: str, epoch: int, split: Split, only: Any) -> None:
        reading, done = split.reading(run_state(self.learner, self._seconds())), self._done
        tell = self._tell.tell
        self._worker.put(lambda: tell("values", name, epoch, done, reading(), only=only))

    def _info(self) -> RunInfo:
        t, model = self.training, self.learner.model
        valid = 0 if t.valid is None else steps_of(t.valid)
        devices = ", ".join(str(d) for d in self.learner.devices())
        return RunInfo(
            t.epochs, self._steps, valid, list(self.history), t.metrics.columns(), devices,
            model.num_params(), t.directory, t.interrupter, self.learner.devices(),
        )  # fmt: skip

    def _facts(self, reason: str) -> dict[str, str]:
        return {
            "device": ", ".join(str(d) for d in self.learner.devices()),
            "parameters": f"{self.learner.model.num_params():,}",
            "steps": f"{self.learner.steps:,}",
            "ended": reason,
        }

    # ---- early stopping -----------------------------------------------------------------------

    def _ask_early_stopping(self, row: Row) -> bool:
        stopping = self.training.early_stopping
        if stopping is None:
            return False
        self._stopped = stopping.update(row)
        if stopping.restore_best and stopping.best_epoch == row["epoch"]:
            self._best = self.learner.model.state_dict()
        return self._stopped

    def _bring_back_best(self) -> int | None:
        """Give the model its best weights, however the training ended."""
        stopping = self.training.early_stopping
        if stopping is None or not stopping.restore_best or self._best is None:
            return None
        self.learner.model.load_state_dict(self._best)
        return stopping.best_epoch

    # ---- saving -------------------------------------------------------------------------------

    def _save_inside(self, epoch: int, batch: int, split: Split, start: float) -> None:
        t = self.training
        if t.checkpoints is None or not (t.interrupter.save or not t.interrupter.should_stop):
            return
        self._worker.drain()
        self._before = time.perf_counter() - start
        self._save(Mark(epoch - 1, batch), split.state_dict())
        if t.interrupter.should_stop:
            LOG.info("saved where it was: epoch %d, batch %d", epoch, batch)

    def _save(self, mark: Mark, seen: dict[str, Tensor] | None) -> None:
        """Take snapshots here and let the writer bring them to the disk."""
        t, learner = self.training, self.learner
        assert t.checkpoints is not None  # noqa: S101 - the callers asked
        parts = learner.parts()
        if seen:
            parts["metrics"] = seen
        if self._best is not None:
            parts["best"] = self._best
        stopping = t.early_stopping
        state = {
            "history": list(self.history),
            "learner": learner.scalars(),
            "random": {d.name: list(d.random_state()) for d in learner.devices()},
            "early_stopping": None if stopping is None else stopping.state_dict(),
            "stopped": self._stopped,
            "seconds": self._before,
        }
        learner.flush()
        save, rows = t.checkpoints.save, list(self.history)
        self._writer.submit(lambda: save(mark, parts, state, rows))

    def _restore(self, saved: Saved) -> None:
        t, learner = self.training, self.learner
        learner.restore(saved.parts, saved.state["learner"])
        devices, streams = learner.devices(), saved.state["random"]
        for device in devices:
            # A training that goes on elsewhere takes its only stream along.
            only = len(devices) == len(streams) == 1
            name = next(iter(streams)) if only else device.name
            if name in streams:
                device.set_random_state(tuple(streams[name]))
        if t.early_stopping is not None and saved.state["early_stopping"] is not None:
            t.early_stopping.load_state_dict(saved.state["early_stopping"])
            self._stopped = bool(saved.state["stopped"])
            self._best = saved.parts.get("best")
        self.history = saved.state["history"][: t.epochs]
        self._batch = saved.mark.batch
        self._seen = saved.parts.get("metrics", {})
        self._before = float(saved.state["seconds"])
        self._done = len(self.history) * self._steps + self._batch


def _never() -> bool:
    return False


def _is_live(observer: Any) -> bool:
    return bool(getattr(observer, "live", False))


@contextmanager
def _log_lines(observers: Observers) -> Iterator[None]:
    """Pass lines of the log on to the observers for a block."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            observers.tell("message", record.getMessage())

    handler = Handler(logging.INFO)
    before = LOG.level
    LOG.setLevel(logging.INFO)
    LOG.addHandler(handler)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(before)
