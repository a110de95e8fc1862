"""The training step of a learner as `burn.capture` replays it, where that can be done.

It never changes what a training does: a step that cannot be captured runs as it always did, and
the reason is written to the log once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_core import Module, capture
from burn_std import ArgumentError, CaptureError
from burn_tensor import Tensor, functional
from burn_train.observer import LOG

if TYPE_CHECKING:
    from burn_core import Capture
    from burn_train.learner import Learner, Step

# Calls without a replay after which it is no use: every batch is of another form.
PATIENCE = 64


class CapturedStep:
    """The step of one learner.

    Args:
        wanted: False never captures, True also where `forward` is the user's own.

    Attributes:
        why: why it is not captured; None while it is, or may be.
    """

    def __init__(self, wanted: bool | None) -> None:
        self.wanted = wanted
        self.why: str | None = None
        self._step: Capture | None = None
        self._settings: list[Any] = []
        self._done: list[Any] = []
        self._calls = 0
        self._own_random = False

    @property
    def replays(self) -> int:
        """How many steps were replays."""
        return 0 if self._step is None else self._step.replays

    def forget(self) -> None:
        """Begin anew at the next step: tensors of the state were replaced."""
        self._step = None

    def run(self, learner: Learner, batch: Any) -> Step | None:
        """Make a step and return what the batch came to; None where it has to be made plainly."""
        if self.wanted is False or self.why is not None:
            return None
        settings = _settings(learner)
        if self._step is None or not _same(settings, self._settings):
            reason = self._reason(learner, batch)
            if reason is not None:
                self._give_up(reason)
                return None
            self._settings = settings
            if self.replays:
                self._calls = 0
            self._step = capture(self._whole(learner), state=_state(learner))
        if not all(isinstance(x, Tensor) for x in _leaves(batch)):
            self._give_up("a batch holds what is no tensor")
            return None
        return self._called(self._step, learner, batch)

    def _called(self, step: Capture, learner: Learner, batch: Any) -> Step | None:
        before = step.replays
        self._done = []
        self._calls += 1
        undo = None if before else _undo(learner)
        try:
            out, norm = step(batch)
        except (CaptureError, ArgumentError) as error:
            if self._done:  # the step was made, and only its record is of no use
                self._give_up(str(error))
                out, norm = self._done
                return out  # type: ignore[no-any-return]
            if isinstance(error, ArgumentError):
                raise
            self._give_up(str(error))
            if undo is not None:
                undo()
            return None
        if step.replays > before:
            learner.grad_norm = norm
            learner.steps += 1
        elif self._own_random:
            self._give_up("the step draws random numbers of Python or numpy")
        elif before == 0 and self._calls >= PATIENCE:
            self._give_up("batches are of many forms, or settings change at every step")
        return out  # type: ignore[no-any-return]

    def _whole(self, learner: Learner) -> Callable[[Any], Any]:
        """Return the step as one function; what it must not do is noted on the way."""

        def whole(batch: Any) -> Any:
            before = _own_random()
            kept, grads = learner.gradients(batch)
            learner.apply(grads)
            self._own_random = before != _own_random()
            self._done = [kept, learner.grad_norm]
            return kept, learner.grad_norm

        return whole

    def _reason(self, learner: Learner, batch: Any) -> str | None:
        """Return why the step cannot be captured, as far as it can be seen beforehand."""
        from burn_train.learner import Learner as Base

        resources = {id(p.b.resource): p.b.resource for p in learner.model.parameters()}
        resources |= {id(x.b.resource): x.b.resource for x in _leaves(batch) if _is_tensor(x)}
        if not all(r.backend.records for r in resources.values()):
            self.wanted = False  # nothing to tell: nobody expects it there
            return "the device records nothing"
        if len(resources) != 1:
            names = ", ".join(sorted(r.name for r in resources.values()))
            return f"model and batches are on several devices: {names}"
        if learner.accumulate != 1:
            return "gradients of several batches make one step"
        kind = type(learner)
        own = kind.forward is not Base.forward or "forward" in vars(learner)
        if own and self.wanted is None:
            return f"{kind.__name__} has its own forward; capture=True if it always does the same"
        if not own and self.wanted is None and not _is_fixed(learner.loss):
            return "the loss is a function of its own; capture=True if it always does the same"
        if not hasattr(learner.optimizer, "step_tensors"):
            return f"{type(learner.optimizer).__name__} reads values in its step"
        schedule = learner.schedule
        if schedule is not None and not isinstance(schedule.lr, (int, float)):
            return "the schedule gives a rate to each group"
        if schedule is not None and not hasattr(schedule, "position"):
            return f"{type(schedule).__name__} has no position"
        return None

    def _give_up(self, why: str) -> None:
        self.why = why
        self._step = None
        if self.wanted is not False:
            LOG.info("the training step is not captured: %s", why)


def _state(learner: Learner) -> list[Any]:
    parts: list[Any] = [learner.model, learner.optimizer]
    parts += [p for p in (learner.schedule, learner.scaler, learner.ema) if p is not None]
    if isinstance(learner.loss, Module):
        parts.append(learner.loss)
    return parts


def _settings(learner: Learner) -> list[Any]:
    """Return what of learner and optimizers is part of a captured step, as it is now."""
    found = [
        learner.clip_norm, learner.clip_value, learner.skip_nonfinite, learner.autocast,
        learner.schedule_on, learner.model, learner.loss, learner.schedule,
    ]  # fmt: skip
    groups = getattr(learner.optimizer, "groups", ())
    for part in (learner.optimizer, learner.scaler, learner.ema, *(g.optimizer for g in groups)):
        found += [part, *([] if part is None else _values(part))]
    return found


def _values(part: Any) -> list[Any]:
    # Rates, counts and tensors are no constants of a step: they are read at every replay.
    changing = ("lr", "updates")
    return [v for k, v in vars(part).items() if k not in changing and not isinstance(v, Tensor)]


def _same(one: list[Any], other: list[Any]) -> bool:
    # By identity: tensors have an == of their own. What is compared is held, so none is taken for
    # another that has its place in memory.
    return len(one) == len(other) and all(map(is_, one, other))


def _is_fixed(loss: Any) -> bool:
    """Return whether a loss does the same at every call, or shows in its attributes what not.

    What else a function looks at, in a closure or an object, may be changed between two steps.
    """
    if isinstance(loss, partial):
        return _is_fixed(loss.func)
    name = getattr(loss, "__name__", "")
    return loss is None or isinstance(loss, Module) or getattr(functional, name, None) is loss


def _undo(learner: Learner) -> Callable[[], None]:
    """Return what takes back a step that was broken off before the optimizer's."""
    held = [(b, b.v, b.b) for b in learner.model.buffers()]
    streams = [(d, d.random_state()) for d in learner.devices()]
    scaler = learner.scaler
    own = random.getstate(), np.random.get_state()  # noqa: NPY002 - somebody may draw from it

    def undo() -> None:
        random.setstate(own[0])
        np.random.set_state(own[1])  # noqa: NPY002
        for buffer, payload, context in held:
            buffer.v, buffer.b = payload, context
        for device, state in streams:
            device.set_random_state(state)
        if scaler is not None:
            scaler.drop()

    return undo


def _own_random() -> tuple[Any, ...]:
    state: Any = np.random.get_state(legacy=True)  # noqa: NPY002 - whether somebody drew from it
    return random.getstate(), state[2], bytes(state[1])


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in _leaves(part)]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [tree]
