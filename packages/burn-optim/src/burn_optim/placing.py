"""Where values live: plain contexts and moves between devices, typed as tensors."""

from __future__ import annotations

from typing import Any

from burn_dispatch import Device, to_device
from burn_tensor import Tensor


def plain_context(x: Tensor) -> Any:
    """Return the context of a tensor's resource without autodiff."""
    return x.b.resource.plain_context()


def snapshot(x: Tensor) -> Tensor:
    """Return the value as it is now, in the plain context."""
    made: Tensor = plain_context(x).make(x.v)
    return made


def moved(x: Tensor, device: Device) -> Tensor:
    """Return the value on a device, untracked there."""
    plain = x.detach()
    made: Any = to_device(plain, device.without_autodiff())
    found: Tensor = made
    return found
