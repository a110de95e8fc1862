"""Learner: a model, its loss and its optimizer, and what one step of each kind does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal, NamedTuple

from burn_core import Module
from burn_dispatch import Device, autocast
from burn_optim import (
    EMA,
    GradientAccumulator,
    Gradients,
    GradScaler,
    Optimizer,
    clip_grad_norm,
    clip_grad_value,
    lr_scheduler,
)
from burn_std import ArgumentError, Closed, DType, DTypeError
from burn_tensor import Tensor
from burn_train.captured import CapturedStep
from burn_train.metrics.metric import Metric, batch_size


class Step(NamedTuple):
    """What a batch came to.

    Attributes:
        output: of the model.
        target: what it should be.
        loss: of rank 0.
    """

    output: Any
    target: Any
    loss: Tensor


class Learner(Closed):
    """What training needs to know; override `forward` for other batches or losses.

    A class of one's own may derive from a protocol too, or be a module: `class Mine(Learner,
    nn.Module)`, with its model beside it. The optimizer updates the parameters of the model alone.

    Args:
        model: on an autodiff device.
        optimizer: updates it.
        loss: `(output, target) -> loss of rank 0`, a mean over samples.
        schedule: gives the learning rate.
        schedule_on: `step` or `epoch`: what it counts.
        monitor: column that an epoch's schedule is shown (`ReduceLROnPlateau`).
        clip_norm: bound of the norm of all gradients together.
        clip_value: bound of each gradient's elements.
        skip_nonfinite: leave out a step whose gradients' norm is not finite.
        accumulate: batches per step of the optimizer; gradients equal those of the big batch.
        autocast: dtype of mixed precision, `burn.float16` or `burn.bfloat16`.
        scaler: scales the loss, for float16.
        ema: average of the weights, updated after every step.
        validate_average: validate the average instead of the weights.
        capture: on devices that record, replay the step without its Python, as `burn.capture` does,
            once it was seen to do the same each time; the bits are those of a step that is not
            captured, and the log says why where it cannot be done. None leaves a learner with a
            `forward`, `weight` or loss function of its own as it is, since that Python would not
            run again; True captures it too, and metrics of one's own; False captures nothing.

    Attributes:
        captured: `captured.replays` steps were replays; `captured.why` says why none is.
        steps: of the optimizer, so far.
        grad_norm: norm of the last step's gradients if they were clipped, a tensor; or None.

    Raises:
        ArgumentError: a setting has no meaning.

    Example:
        >>> from burn.nn import Linear, MSELoss
        >>> model = Linear(1, 1, device=burn.Device.default().autodiff())
        >>> learner = Learner(model, burn.optim.SGD(lr=0.1), MSELoss(), clip_norm=1.0)
        >>> learner.train_step((burn.ones(4, 1), burn.ones(4, 1)))
        >>> learner.steps
        1
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse classes whose steps would call methods of a module.

        Raises:
            ArgumentError: `Module` stands in front of `Learner`.
        """
        super().__init_subclass__(**kwargs)
        order = [c for c in cls.__mro__ if c in (Learner, Module)]
        if order[0] is Module:
            raise ArgumentError(
                cls.__name__, "a learner that is a module is a learner first",
                got=", ".join(c.__name__ for c in cls.__bases__),
                remedy=f"Write class {cls.__name__}(Learner, nn.Module).",
            )  # fmt: skip

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss: Callable[[Any, Any], Tensor] | None = None,
        *,
        schedule: lr_scheduler.LRScheduler | lr_scheduler.GroupLR | None = None,
        schedule_on: Literal["step", "epoch"] = "step",
        monitor: str = "valid loss",
        clip_norm: float | None = None,
        clip_value: float | None = None,
        skip_nonfinite: bool = False,
        accumulate: int = 1,
        autocast: DType | None = None,
        scaler: GradScaler | None = None,
        ema: EMA | None = None,
        validate_average: bool = False,
        capture: bool | None = None,
    ) -> None:
        named: object = model
        if named is self:
            raise ArgumentError(
                type(self).__name__, "a learner is not its own model", got="itself as the model",
                remedy="Give it a module that it trains.",
            )  # fmt: skip
        if not hasattr(optimizer, "step"):
            raise ArgumentError(
                "Learner", "the optimizer stands second, the loss third",
                got=type(optimizer).__name__,
            )  # fmt: skip
        if accumulate < 1 or schedule_on not in ("step", "epoch"):
            raise ArgumentError(
                "Learner", "accumulate is positive, schedule_on is step or epoch",
                got=f"{accumulate}, {schedule_on!r}",
            )  # fmt: skip
        if validate_average and ema is None:
            raise ArgumentError("Learner", "validate_average needs ema", got="none")
        self.model = model
        self.optimizer = optimizer
        self.loss = loss
        self.schedule = schedule
        self.schedule_on = schedule_on
        self.monitor = monitor
        self.clip_norm = clip_norm
        self.clip_value = clip_value
        self.skip_nonfinite = skip_nonfinite
        self.accumulate = accumulate
        self.autocast = autocast
        self.scaler = scaler
        self.ema = ema
        self.validate_average = validate_average
        self.steps = 0
        self.grad_norm: Tensor | None = None
        self.captured = CapturedStep(capture)
        self._sums = GradientAccumulator()

    # ---- what to override ---------------------------------------------------------------------

    def forward(self, model: Module, batch: Any) -> Step:
        """Return what a batch (inputs, targets) comes to; training and validation call it.

        Args:
            model: the model, or its inference copy.
            batch: from the loader.

        Raises:
            ArgumentError: there is no loss function and this is not overridden.
        """
        if self.loss is None:
            raise ArgumentError("Learner.forward", "give a loss, or override forward", got="none")
        inputs, target = batch
        output = model(inputs)
        return Step(output, target, self.loss(output, target))

    def weight(self, batch: Any) -> float | Tensor:
        """Return what the loss of a batch is a mean over: its samples; override for tokens.

        Args:
            batch: from the loader.
        """
        return float(batch_size(batch))

    # ---- steps --------------------------------------------------------------------------------

    @property
    def between_steps(self) -> bool:
        """Whether no batch waits for others of its step; a checkpoint can be taken then."""
        return not self._sums.batches

    def check_trains(self, where: str) -> None:
        """Raise where the model cannot be trained: its device takes no gradients.

        Args:
            where: who asks, for the error.

        Raises:
            ArgumentError: no parameter is on an autodiff device.
        """
        devices = self.devices()
        if devices and not any(d.is_autodiff() for d in devices):
            raise ArgumentError(
                where, "the model is on an autodiff device",
                got=", ".join(str(d) for d in devices),
                remedy="Make it with device=device.autodiff(), or move it there: "
                "model.to_device(device.autodiff()).",
            )  # fmt: skip

    def train_step(
        self, batch: Any, metrics: Sequence[Metric] = (), *, last: bool = False, keep: bool = False
    ) -> Step | None:
        """Update the model by one batch, or gather its gradients.

        The metrics hear of it before the optimizer's step ends the recording, so that a whole
        step is one program. Nothing is read on the host.

        Args:
            batch: from the loader.
            metrics: with sums on the device.
            last: the epoch ends here, so a step is made with what was gathered.
            keep: return what the batch came to.
        """
        if not self.steps:
            self.check_trains("Learner.train_step")
        done = self.captured.run(self, batch, metrics, last=last, keep=keep)
        if done is not None:
            step, unheard = done
            if step is not None and unheard:
                for m in unheard:
                    m.update(*step)
                self.flush()
            return step if keep else None
        kept, grads = self.gradients(batch, metrics, keep)
        if self.accumulate == 1:
            self.apply(grads)
            return kept
        self._sums.add(self.model, grads, self.weight(batch))
        del grads
        if last or self._sums.batches >= self.accumulate:
            self.apply(self._sums.take())
        else:
            self.flush()
        return kept

    def gradients(
        self, batch: Any, metrics: Sequence[Metric] = (), keep: bool = True
    ) -> tuple[Step | None, Gradients]:
        """Return what a batch came to, and its gradients.

        Args:
            batch: from the loader.
            metrics: hear of it.
            keep: False returns None in the place of what it came to.
        """
        if self.autocast is None:
            step = self.forward(self.model, batch)
        else:
            with autocast(self.autocast):
                step = self.forward(self.model, batch)
        if not isinstance(step.loss, Tensor):
            raise DTypeError(
                "Learner.forward", "the loss is a tensor of one element",
                got=type(step.loss).__name__, remedy="Compute it from the output.",
            )  # fmt: skip
        loss = step.loss if self.scaler is None else self.scaler.scale(step.loss)
        grads: Gradients = loss.backward()
        for m in metrics:
            m.update(*step)
        return _detached(step) if keep else None, grads

    def apply(self, grads: Gradients) -> None:
        """Clip, step, average, and go on in the schedule.

        Args:
            grads: of one batch, or the mean of several.
        """
        model, skip = self.model, None
        if self.scaler is not None:
            self.scaler.unscale(model, grads)
        if self.clip_value is not None:
            clip_grad_value(model, grads, self.clip_value)
        if self.clip_norm is not None or self.skip_nonfinite:
            norm = clip_grad_norm(model, grads, self.clip_norm or float("inf"))
            self.grad_norm = norm
            skip = norm.isfinite().logical_not() if self.skip_nonfinite else None
            del norm
        lr = None if self.schedule is None else self.schedule.lr
        last = self.ema is None
        if self.scaler is None:
            self.optimizer.step(model, grads, lr, skip=skip, flush=last)
        else:
            self.scaler.step(self.optimizer, model, grads, lr, skip=skip, flush=last)
        del skip
        if self.ema is not None:
            self.ema.update(model)
            self.flush()
        if self.schedule is not None and self.schedule_on == "step":
            self.schedule.step()
        self.steps += 1

    def valid_step(
        self,
        batch: Any,
        metrics: Sequence[Metric] = (),
        *,
        model: Module | None = None,
        keep: bool = False,
    ) -> Step | None:
        """Let the metrics hear of one batch; changes nothing in the model.

        Args:
            batch: from the loader.
            metrics: with sums on the device.
            model: what `inference` returned; made anew if None.
            keep: return what the batch came to.
        """
        scope = nullcontext() if self.autocast is None else autocast(self.autocast)
        with scope:
            step = self.forward(self.inference() if model is None else model, batch)
        for m in metrics:
            m.update(*step)
        return _detached(step) if keep else None

    def inference(self) -> Module:
        """Return the model as validation runs it: the average of the weights if that is asked."""
        if self.ema is not None and self.validate_average:
            return self.ema.averaged(self.model).valid()
        return self.model.valid()

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        """Let a schedule that counts epochs hear of one.

        Args:
            row: the epoch's values.
        """
        if self.schedule is not None and self.schedule_on == "epoch":
            value = row.get(self.monitor)
            self.schedule.step(None if value is None else float(value))

    # ---- devices and rates --------------------------------------------------------------------

    def devices(self) -> list[Device]:
        """Return the devices of the model's parameters, each once."""
        return list({p.device.name: p.device for p in self.model.parameters()}.values())

    def flush(self) -> None:
        """Hand the recorded operations to the devices."""
        for device in self.devices():
            device.flush()

    def rates(self) -> dict[str, float]:
        """Return the learning rates of the step to come, by group."""
        lr = None if self.schedule is None else self.schedule.lr
        if lr is None:
            return self.optimizer.rates()
        return dict(lr) if isinstance(lr, Mapping) else {**self.optimizer.rates(), "": lr}

    # ---- state --------------------------------------------------------------------------------

    def parts(self) -> dict[str, dict[str, Tensor]]:
        """Return all tensors of the state by part and name: snapshots."""
        out = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(self.model),
        }
        if self.ema is not None:
            out["ema"] = self.ema.state_dict()
        if self.scaler is not None:
            out["scaler"] = self.scaler.state_dict()
        return out

    def scalars(self) -> dict[str, Any]:
        """Return what else the state is, as JSON can hold it."""
        return {
            "steps": self.steps,
            "rates": self.optimizer.rates(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "averages": None if self.ema is None else self.ema.updates,
        }

    def restore(
        self, parts: Mapping[str, Mapping[str, Tensor]], scalars: Mapping[str, Any]
    ) -> None:
        """Take what `parts` and `scalars` returned.

        Args:
            parts: tensors by part and name.
            scalars: the rest.

        Raises:
            BurnError: they belong to another model or other settings.
        """
        self.model.load_state_dict(parts["model"])
        self.optimizer.load_state_dict(self.model, parts["optimizer"])
        self.optimizer.set_rates(scalars["rates"])
        if self.ema is not None:
            self.ema.load_state_dict(parts["ema"], int(scalars["averages"] or 0))
        if self.scaler is not None:
            self.scaler.load_state_dict(parts["scaler"])
        if self.schedule is not None and scalars["schedule"] is not None:
            self.schedule.load_state_dict(scalars["schedule"])
        self.steps = int(scalars["steps"])
        self.captured.forget()
        self._sums = GradientAccumulator()


def _detached(step: Step) -> Step:
    return Step(*(_plain(value) for value in step))


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_plain(v) for v in value)
    return value
