"""Dynamic loss scaling for float16: small gradients survive, overflowing steps are left out."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from burn_core import Module
from burn_dispatch import Device
from burn_optim.gradients import Gradients, bundles
from burn_optim.optimizer import Optimizer, Rates
from burn_optim.placing import moved, snapshot
from burn_std import ArgumentError, Closed, StoreError
from burn_std.dtypes import float32, int64
from burn_tensor import Tensor, where


class GradScaler(Closed):
    """Multiplies the loss, divides the gradients, and leaves out steps whose gradients overflow.

    The scale halves after a step that was left out and doubles after `growth_interval` good ones.
    Whether a step counts is a select on the device: nothing is read on the host.

    Args:
        init_scale: first scale.
        growth_factor: what the scale grows by.
        backoff_factor: what it shrinks by.
        growth_interval: good steps in a row before it grows.
        device: where the scale lives, that of the loss.
        enabled: False makes everything here do nothing, so that one loop serves all dtypes.

    Raises:
        ArgumentError: a setting is out of its range.

    Example:
        >>> device = burn.Device.default().autodiff()
        >>> model = burn.nn.Linear(1, 1, bias=False, device=device)
        >>> model.weight.set(burn.ones(1, 1))
        >>> scaler, opt = GradScaler(1024.0, device=device), burn.optim.SGD(lr=0.5)
        >>> with burn.autocast(burn.float16):
        ...     loss = model(burn.tensor([[1.0]])).sum()
        >>> grads = scaler.scale(loss).backward()
        >>> scaler.step(opt, model, grads)
        >>> model.weight.item(), scaler.get_scale()
        (0.5, 1024.0)
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        *,
        device: Device | None = None,
        enabled: bool = True,
    ) -> None:
        if not (init_scale > 0 and growth_factor >= 1 and 0 < backoff_factor <= 1):
            raise ArgumentError(
                "GradScaler", "init_scale > 0, growth_factor >= 1, backoff_factor in (0, 1]",
                got=f"{init_scale=}, {growth_factor=}, {backoff_factor=}",
            )  # fmt: skip
        if growth_interval < 1:
            raise ArgumentError("GradScaler", "growth_interval is positive", got=growth_interval)
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        context: Any = (device or Device.default()).without_autodiff().context
        self._ctx = context
        self._scale: Tensor = context.at_once("full", float32, (), float(init_scale))
        self._good: Tensor = context.at_once("full", int64, (), 0)
        self._overflow: Tensor | None = None

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss times the scale, in float32 if the loss is a 16-bit float.

        Args:
            loss: on the scaler's device.
        """
        if not self.enabled:
            return loss
        return (loss.to(float32) if loss.dtype.bits == 16 else loss) * self._scale

    def unscale(self, model: Module, grads: Gradients) -> None:
        """Divide the gradients by the scale, as clipping needs them; `step` does it otherwise.

        Args:
            model: whose gradients they are.
            grads: of the scaled loss; the true ones are put into it.

        Raises:
            ArgumentError: they were unscaled already since the last step.
        """
        if not self.enabled:
            return
        if self._overflow is not None:
            raise ArgumentError(
                "GradScaler.unscale", "gradients are unscaled once per step", got="a second call"
            )
        share = 1.0 / self._scale
        bad: Tensor | None = None
        for bundle in bundles(model, grads):
            here = share.to_device(bundle.ctx.device)
            true = bundle.ctx.scale_all(bundle.grads, here)
            for p, g in zip(bundle.params, true, strict=True):
                grads.set(p, g)
            largest = bundle.ctx.norm_all(list(true), inf)
            found = largest.isfinite().logical_not().to_device(self._ctx.device)
            bad = found if bad is None else bad.logical_or(found)
        self._overflow = bad

    def step(
        self,
        optimizer: Optimizer,
        model: Module,
        grads: Gradients,
        lr: Rates | None = None,
        *,
        skip: Tensor | None = None,
        flush: bool = True,
    ) -> None:
        """Make the optimizer's step unless a gradient is infinite or NaN, and adapt the scale.

        Args:
            optimizer: makes the step.
            model: whose parameters are updated.
            grads: of the scaled loss.
            lr: as for `Optimizer.step`.
            skip: bool of rank 0, another reason to leave the step out.
            flush: as for `Optimizer.step`.

        Raises:
            ArgumentError: as for `Optimizer.step`.
        """
        if not self.enabled:
            optimizer.step(model, grads, lr, skip=skip, flush=flush)
            return
        if self._overflow is None:
            self.unscale(model, grads)
        bad, self._overflow = self._overflow, None
        if bad is not None:
            self._adapt(bad)
            skip = bad if skip is None else skip.logical_or(bad)
            del bad
        optimizer.step(model, grads, lr, skip=skip, flush=flush)

    def _adapt(self, bad: Tensor) -> None:
        good = where(bad, 0, self._good + 1)
        full = good >= self.growth_interval
        grown = where(full, self._scale * self.growth_factor, self._scale)
        self._scale = where(bad, self._scale * self.backoff_factor, grown)
        self._good = where(full, 0, good)

    def drop(self) -> None:
        """Forget gradients that were unscaled for a step that is not made."""
        self._overflow = None

    def step_tensors(self) -> list[Tensor]:
        """Return the tensors that a step reads and changes, for `burn.capture`."""
        return [self._scale, self._good] if self.enabled else []

    def step_rates(self) -> list[float]:
        """Return the numbers that a step takes from it: none."""
        return []

    def step_settings(self) -> list[Any]:
        """Return what else a step depends on."""
        return [self.enabled, self.growth_factor, self.backoff_factor, self.growth_interval]

    def get_scale(self) -> float:
        """Return the scale; reads it on the host."""
        return float(self._scale.item()) if self.enabled else 1.0

    def state_dict(self) -> dict[str, Tensor]:
        """Return the scale and the count of good steps."""
        return {"scale": snapshot(self._scale), "good_steps": snapshot(self._good)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take what `state_dict` returned.

        Args:
            state: tensors by name.

        Raises:
            StoreError: other names; nothing is changed then.
        """
        if set(state) != {"scale", "good_steps"}:
            raise StoreError("GradScaler", "the state is scale and good_steps", got=sorted(state))
        device = self._ctx.device
        self._scale = moved(state["scale"], device)
        self._good = moved(state["good_steps"], device)
