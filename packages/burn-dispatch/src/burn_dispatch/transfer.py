"""Moves between resources, with the gradient flowing back across them."""

from __future__ import annotations

from typing import Any

from burn_backend import TensorBase
from burn_dispatch import scopes
from burn_dispatch.device import Device
from burn_dispatch.slow import rewrap


def to_device(x: TensorBase, device: Device) -> TensorBase:
    """Return x on a device.

    A tracked tensor stays tracked, whatever the device says; a plain one takes the device's
    context untracked. The gradient flows back across the move.
    """
    source = x.b
    target = device.context
    tracked = x.node is not None
    if tracked and not target.is_autodiff:
        target = target.resource.context(source.decorator, source.checkpointing)
    if target is source:
        return x
    if target.resource is source.resource:
        return rewrap(x, target)
    payload = move_payload(source.resource.backend, target.resource.backend, x.v)
    target.resource.used = True
    moved = target.make(payload)
    if tracked and not scopes.current().no_grad:
        moved.node = source.decorator.moved(x, target)
    return moved


def move_payload(source: Any, target: Any, payload: Any) -> Any:
    """Return a payload of another backend with the same elements, through the host."""
    array = source.to_numpy(payload)
    return target.from_numpy(array, True)
