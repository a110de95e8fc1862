"""What optimizers share: grouping of parameters, state, one recorded update, save and restore.

An optimizer is a value of its own: it holds settings and state, and is given model and gradients
at each step. State is keyed by the identity of a parameter and saved under its path.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from burn_core import Module, Parameter
from burn_dispatch import to_device
from burn_std import ArgumentError, ShapeError, StoreError
from burn_std.dtypes import int64
from burn_tensor import Tensor

# C-level setter of the payload slot: a loop over it is one call that no signal can split.
_set_payload = Tensor.v.__set__


class Optimizer:
    """Base of optimizers.

    Attributes:
        lr: learning rate; a schedule or the caller may change it at any time.
        slots: names of the state tensors per parameter.
    """

    slots: tuple[str, ...] = ()

    def __init__(self, lr: float, **settings: float | bool) -> None:
        name = type(self).__name__
        for key, value in {"lr": lr, **settings}.items():
            if not isinstance(value, bool) and not value >= 0:
                raise ArgumentError(name, f"{key} must not be negative", got=value)
        self.lr = lr
        # Found by identity; weak keys would compare parameters by ==, which is elementwise.
        self._state: dict[Parameter, dict[str, Tensor]] = {}

    def update(
        self,
        ctx: Any,
        lr: float,
        params: list[Tensor],
        grads: list[Tensor],
        state: list[list[Tensor]],
        step: Tensor,
        skip: Tensor | None,
    ) -> list[Tensor]:
        """Return new params, new state lists one after the other, and the new step."""
        raise NotImplementedError

    def active_slots(self) -> tuple[str, ...]:
        """Return the names of the state tensors that the settings need."""
        return self.slots

    def step(
        self,
        model: Module,
        grads: Any,
        lr: float | None = None,
        *,
        keep: bool = False,
        skip: Tensor | None = None,
    ) -> None:
        """Update the parameters of a model; one recorded operation per dtype, no host read.

        Args:
            model: whose trainable parameters are updated; those without gradient stay.
            grads: what `loss.backward()` returned. The gradients are taken out of it.
            lr: learning rate of this step; `self.lr` if None.
            keep: leave the gradients in `grads`.
            skip: bool of rank 0; where True everything stays as it was (loss scaling).

        Raises:
            ArgumentError: `grads` holds no gradient of the model.
        """
        backends = self._step(model, grads, self.lr if lr is None else lr, keep, skip)
        # This frame holds no tensor of the step, so the recorder sees every temporary as dead.
        for backend in backends:
            backend.flush()

    def _step(
        self, model: Module, grads: Any, lr: float, keep: bool, skip: Tensor | None
    ) -> list[Any]:
        groups: dict[Any, list[Parameter]] = {}
        gradients: dict[Parameter, Tensor] = {}
        counts: dict[int, Tensor] = {}
        for p in model.parameters():
            g = grads.get(p) if keep else grads.take(p)
            if g is not None:
                gradients[p] = g
                state = self._state.get(p) or self._begin(p, counts)
                groups.setdefault((id(p.b.resource), p.dtype, id(state["step"])), []).append(p)
        if not groups:
            raise ArgumentError(
                f"{type(self).__name__}.step",
                "grads holds no gradient of this model's parameters",
                remedy="Is the model on an autodiff device, and did it make the loss?",
            )
        used = []
        for params in groups.values():
            resource = params[0].b.resource
            ctx = resource.plain_context()
            self._update_group(ctx, params, [ctx.make(gradients[p].v) for p in params], lr, skip)
            used.append(resource.backend)
        return used

    def _begin(self, p: Parameter, counts: dict[int, Tensor]) -> dict[str, Tensor]:
        """Return the state of a parameter at its first step.

        Those that start together share one step count, so that one operation updates them all.
        """
        ctx = p.b.resource.plain_context()
        state: dict[str, Tensor] = {
            k: ctx.at_once("full", p.dtype, p.shape, 0) for k in self.active_slots()
        }
        step = counts.get(id(ctx))
        if step is None:
            step = counts[id(ctx)] = ctx.at_once("full", int64, (), 0)
        state["step"] = step
        self._state[p] = state
        return state

    def _update_group(
        self, ctx: Any, params: list[Parameter], grads: list[Tensor], lr: float, skip: Tensor | None
    ) -> None:
        states = [self._state[p] for p in params]
        names = self.active_slots()
        columns = [[s[name] for s in states] for name in names]
        step = states[0]["step"]
        values = [ctx.make(p.v) for p in params]
        out = self.update(ctx, lr, values, grads, columns, step, skip)
        n = len(params)
        rebound: list[Tensor] = list(params)
        payloads = [t.v for t in out[:n]]
        for p, v in zip(params, payloads[:n], strict=True):
            if p._twin is not None:
                rebound.append(p._twin)
                payloads.append(v)
        for k, name in enumerate(names):
            rebound += columns[k]
            payloads += [t.v for t in out[n * (k + 1) : n * (k + 2)]]
            assert name in states[0]  # noqa: S101 - columns follow the names
        new_step = out[-1]
        note = ctx.resource.backend.rebinding
        for t in rebound:
            note(t)
        deque(map(_set_payload, rebound, payloads), 0)
        for s in states:
            s["step"] = new_step

    # ---- state --------------------------------------------------------------------------------

    def state_dict(self, model: Module) -> dict[str, Tensor]:
        """Return the state by path and name, `fc.weight.exp_avg`: a snapshot."""
        out: dict[str, Tensor] = {}
        for path, p in model.named_parameters():
            for name, t in self._state.get(p, {}).items():
                out[f"{path}.{name}"] = t.b.make(t.v)
        return out

    def load_state_dict(self, model: Module, state: dict[str, Tensor]) -> None:
        """Take a state that `state_dict` returned.

        Raises:
            StoreError: names do not belong to this model and optimizer; nothing is changed then.
            ShapeError: a shape differs; nothing is changed then.
        """
        names = (*self.active_slots(), "step")
        left = dict(state)
        made: dict[Parameter, dict[str, Tensor]] = {}
        for path, p in model.named_parameters():
            found = {n: left.pop(f"{path}.{n}") for n in names if f"{path}.{n}" in left}
            if found and len(found) != len(names):
                raise StoreError(
                    type(self).__name__, f"the state of {path} is incomplete", got=sorted(found)
                )
            for n, t in found.items():
                if n != "step" and t.shape != p.shape:
                    raise ShapeError(
                        type(self).__name__,
                        f"the state of {path} has the parameter's shape",
                        got=t.shape,
                    )
            if found:
                made[p] = {
                    n: to_device(t.detach(), p.b.device.without_autodiff())
                    for n, t in found.items()
                }
        if left:
            raise StoreError(
                type(self).__name__,
                "the state has names that this model lacks",
                got=sorted(left)[:5],
            )
        shared: dict[int, Tensor] = {}
        for p, s in made.items():
            # Equal counts are one tensor again, so one operation updates them all.
            s["step"] = shared.setdefault(int(s["step"].item()), s["step"])
            self._state[p] = s
