"""The training step of a learner as `burn.capture` replays it, where that can be done.

It never changes what a training does: a step that cannot be captured runs as it always did, and
the reason is written to the log once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_core import Module, capture
from burn_std import ArgumentError, CaptureError
from burn_tensor import Tensor, functional
from burn_train.metrics.metric import Metric, SumMetric
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
        self._steps: dict[Any, Capture] = {}
        self._settings: list[Any] = []
        self._done: list[Any] = []
        self._calls = 0
        self._before = 0
        self._own_random = False
        self._tally = _Tally()

    @property
    def replays(self) -> int:
        """How many steps were replays."""
        return self._before + self._now()

    def forget(self) -> None:
        """Begin anew at the next step: tensors of the state were replaced."""
        self._before += self._now()
        self._steps = {}

    def _now(self) -> int:
        return sum(step.replays for step in self._steps.values())

    def run(
        self, learner: Learner, batch: Any, metrics: Sequence[Metric] = (), *,
        last: bool = True, keep: bool = True,
    ) -> tuple[Step | None, Sequence[Metric]] | None:  # fmt: skip
        """Make a step; return what the batch came to, and the metrics that did not hear of it.

        None where the step has to be made plainly.

        Args:
            learner: whose step.
            batch: from the loader.
            metrics: hear of it.
            last: no other batch belongs to the same step.
            keep: what the batch came to is wanted.
        """
        if self.wanted is False or self.why is not None:
            return None
        settings = _settings(learner)
        if not self._steps or not _same(settings, self._settings):
            reason = self._reason(learner, batch)
            if reason is not None:
                self._give_up(reason)
                return None
            self._settings = settings
            if self._now():
                self._calls = 0
            self.forget()
        if not all(isinstance(x, Tensor) for x in _leaves(batch)):
            self._give_up("a batch holds what is no tensor")
            return None
        if not self._tally.takes(metrics, self.wanted is True):
            self.forget()
        outside = self._tally.outside
        form = batch.__class__ if _is_row(batch) else None
        key = form, _kind(learner, last), keep or bool(outside)
        step = self._steps.get(key)
        if step is None:
            whole = self._whole(learner, *key)
            state = [*_state(learner), *([] if key[1] == "whole" else [learner._sums])]
            step = self._steps[key] = capture(whole, state=[*state, *self._tally.inside])
        found = self._called(step, learner, [*batch] if form else [batch], key[1])
        return None if found is None else (found[0], outside)

    def _called(
        self, step: Capture, learner: Learner, given: Sequence[Any], kind: str
    ) -> list[Any] | None:
        before, known = step.replays, self._now()
        self._done = []
        self._calls += 1
        undo = None if before else _undo(learner, self._tally.metrics)
        try:
            out = step(*given)
        except (CaptureError, ArgumentError) as error:
            done = self._done
            if not done and isinstance(error, ArgumentError):
                raise
            if self._tally.inside:  # perhaps without them
                self._tally.leave_out()
                self.forget()
            else:
                self._give_up(str(error))
            if done:  # the step was made, and only its record is of no use
                return done
            if undo is not None:
                undo()
            return None
        if step.replays > before:
            if kind != "gather":
                learner.grad_norm = out[1]
                learner.steps += 1
            if kind != "whole":
                learner._sums.replayed(taken=kind == "last")
        elif self._own_random:
            self._give_up("the step draws random numbers of Python or numpy")
        elif known == 0 and self._calls >= PATIENCE:
            self._give_up("batches are of many forms, or settings change at every step")
        return [out[0]]

    def _whole(
        self, learner: Learner, form: type | None, kind: str, keep: bool
    ) -> Callable[..., Any]:
        """Return the step as one function; what it must not do is noted on the way."""
        tally = self._tally

        def whole(*given: Any) -> Any:
            before = _own_random()
            batch = form(given) if form else given[0]
            kept, grads = learner.gradients(batch, tally.metrics, keep)
            if kind != "whole":
                learner._sums.add(learner.model, grads, learner.weight(batch))
            if kind == "whole":
                learner.apply(grads)
            elif kind == "last":
                learner.apply(learner._sums.take())
                learner._sums.begin()
            self._own_random = before != _own_random()
            self._done = [kept]
            return kept, None if kind == "gather" else learner.grad_norm

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
        kind = type(learner)
        if self.wanted is None:
            for name in ("forward", "weight"):
                own = getattr(kind, name) is not getattr(Base, name) or name in vars(learner)
                if own and (name == "forward" or learner.accumulate > 1):
                    ask = "capture=True if it always does the same"
                    return f"{kind.__name__} has its own {name}; {ask}"
            if not _is_fixed(learner.loss) and kind.forward is Base.forward:
                return "the loss is a function of its own; capture=True if it always does the same"
        if not hasattr(learner.optimizer, "step_tensors"):
            return f"{type(learner.optimizer).__name__} reads values in its step"
        schedule = learner.schedule
        if schedule is not None and not hasattr(schedule, "position"):
            return f"{type(schedule).__name__} has no position"
        return None

    def _give_up(self, why: str) -> None:
        self.why = why
        self.forget()
        if self.wanted is not False:
            LOG.info("the training step is not captured: %s", why)


class _Heard:
    """A metric that a captured step updates: another one in every epoch, of one kind."""

    def __init__(self, metric: SumMetric) -> None:
        self.metric = metric

    def step_tensors(self) -> list[Tensor]:
        return self.metric.step_tensors()

    def step_rates(self) -> list[float]:
        return self.metric.step_rates()

    def step_settings(self) -> list[Any]:
        return self.metric.step_settings()

    @property
    def step_count(self) -> int:
        return self.metric.step_count

    @step_count.setter
    def step_count(self, count: int) -> None:
        self.metric.step_count = count


class _Tally:
    """The metrics of the split that is trained on.

    Attributes:
        inside: those that a captured step updates.
        outside: those that hear of a batch after its step.
    """

    def __init__(self) -> None:
        self.inside: list[_Heard] = []
        self.outside: list[Metric] = []
        self._given: list[Metric] = []
        # Of which classes they were, which of them are left out, and which were by themselves.
        self._kinds: list[type] = []
        self._apart: set[int] = set()
        self._tried: list[int] = []

    @property
    def metrics(self) -> list[SumMetric]:
        """Those that a captured step updates now."""
        return [heard.metric for heard in self.inside]

    def takes(self, metrics: Sequence[Metric], own: bool) -> bool:
        """Take metrics; return whether a step that was captured with the last ones is theirs too.

        Args:
            metrics: of the split that runs.
            own: those of users' classes too, whose Python does not run again.
        """
        if _same(self._given, metrics):
            return True
        kinds = [type(m) for m in metrics]
        if kinds != self._kinds:
            self._kinds, self._apart, self._tried = kinds, set(), []
        inside = [
            m for k, m in enumerate(metrics)
            if isinstance(m, SumMetric) and k not in self._apart and (own or not _is_own(m))
        ]  # fmt: skip
        outside = [m for m in metrics if not any(m is i for i in inside)]
        alike = len(inside) == len(self.inside) and bool(outside) == bool(self.outside)
        for heard, m in zip(self.inside, inside, strict=False):
            alike = alike and _same(heard.step_settings(), m.step_settings())
        self._given, self.outside = [*metrics], outside
        if not alike:
            self.inside = [_Heard(m) for m in inside]
            return False
        for heard, m in zip(self.inside, inside, strict=True):
            if not m.count:
                m.begin_like(heard.metric)
            heard.metric = m
        return True

    def leave_out(self) -> None:
        """Let one of them hear of batches after the step, since they cannot be captured together.

        It is another one each time, users' own first, until there is none left: then all of them.
        """
        inside = [heard.metric for heard in self.inside]
        known = [
            k for k, m in enumerate(self._given)
            if k in self._apart or any(m is one for one in inside)
        ]  # fmt: skip
        known.sort(key=lambda k: not _is_own(self._given[k]))
        left = [k for k in known if k not in self._tried]
        self._apart = {left[0]} if left and len(known) > 1 else {*known}
        self._tried += left[:1]
        self._given = []


def _is_own(metric: Metric) -> bool:
    """Return whether a metric is of a user's class."""
    return not type(metric).__module__.startswith("burn_train.")


class _Rates:
    """A schedule of groups without the rates of groups that no parameter is in."""

    def __init__(self, learner: Learner) -> None:
        self._schedule: Any = learner.schedule
        used = getattr(learner.optimizer, "used_groups", None)
        self._used: set[str] | None = None if used is None else used(learner.model)

    @property
    def lr(self) -> Any:
        lr = self._schedule.lr
        if not isinstance(lr, Mapping) or self._used is None:
            return lr
        # The base is the rate of groups that are not named, too.
        kept = {name: rate for name, rate in lr.items() if name in self._used}
        return lr if self._used - lr.keys() else kept

    @property
    def position(self) -> int:
        return int(self._schedule.position)

    def step(self) -> None:
        self._schedule.step()


def _is_row(batch: Any) -> bool:
    return batch.__class__ in (tuple, list) and all(x.__class__ is Tensor for x in batch)


def _kind(learner: Learner, last: bool) -> str:
    """Return what a step does: all, or gather gradients, or that and the optimizer's step."""
    if learner.accumulate == 1:
        return "whole"
    return "last" if last or learner._sums.batches + 1 >= learner.accumulate else "gather"


def _state(learner: Learner) -> list[Any]:
    parts: list[Any] = [learner.model, learner.optimizer]
    parts += [p for p in (learner.scaler, learner.ema) if p is not None]
    if learner.schedule is not None:
        parts.append(_Rates(learner))
    if isinstance(learner.loss, Module):
        parts.append(learner.loss)
    return parts


def _settings(learner: Learner) -> list[Any]:
    """Return what of learner and optimizers is part of a captured step, as it is now."""
    found = [
        learner.clip_norm, learner.clip_value, learner.skip_nonfinite, learner.autocast,
        learner.schedule_on, learner.model, learner.loss, learner.schedule, learner.accumulate,
    ]  # fmt: skip
    groups = getattr(learner.optimizer, "groups", ())
    for part in (learner.optimizer, learner.scaler, learner.ema, *(g.optimizer for g in groups)):
        found += [part, *([] if part is None else _values(part))]
    return found


def _values(part: Any) -> list[Any]:
    # Rates, counts and tensors are no constants of a step: they are read at every replay.
    changing = ("lr", "updates")
    return [v for k, v in vars(part).items() if k not in changing and not isinstance(v, Tensor)]


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
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


def _undo(learner: Learner, metrics: Sequence[SumMetric]) -> Callable[[], None]:
    """Return what takes back a step that was broken off before the optimizer's."""
    sums, marks = copy(learner._sums), [m.mark() for m in metrics]
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
        learner._sums = sums
        for mark in marks:
            mark()
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
