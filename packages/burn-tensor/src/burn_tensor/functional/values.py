"""Tensors as values: where several meet, constants of them, and the few places that rebind one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_std import DeviceError, DType
from burn_std.dtypes import float32
from burn_tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn_tensor.methods import Operations


def meeting(op: str, *tensors: Tensor | None) -> Operations:
    """Return the context in which tensors meet: autodiff if one of them is of it.

    A generated function trusts that its first input is of its own context, so functions of several
    steps take the context that holds for all of their tensors.

    Raises:
        DeviceError: the tensors are on different devices.
    """
    found: Any = None
    for t in tensors:
        if t is None or t.b is found:
            continue
        if found is None:
            found = t.b
        elif t.b.resource is not found.resource:
            raise DeviceError(
                op, "all tensors must be on one device", got=f"{found.device} and {t.b.device}",
                remedy="Move one with .to_device(device).",
            )  # fmt: skip
        else:
            found = found.join(op, t.b)
    context: Operations = found
    return context


def constant(x: Tensor) -> Tensor:
    """Return x without its place in the tape."""
    return x.b.make(x.v)


def straight_through(x: Tensor, value: Tensor) -> Tensor:
    """Return `value` with the gradient going to x unchanged, as if x had been overwritten."""
    if x.node is None:
        return value
    # The difference is exactly 0, so the value is not rounded again.
    return x.b.add(constant(value), x.b.sub(x, constant(x)))


def rebind(target: Tensor | None, value: Tensor) -> None:
    """Give a Buffer or Parameter a new value of its own dtype; any other tensor stays as it is.

    Tensors are values: functions that change an argument in PyTorch do so here only to objects
    made for it.
    """
    if getattr(target, "is_buffer", False) or getattr(target, "is_parameter", False):
        assert target is not None  # noqa: S101 - said by the line above
        if value.dtype is not target.dtype:
            value = value.b.cast(value, target.dtype)
        target.v = value.v


def widened(x: Tensor) -> Tensor:
    """Return x with 16-bit floats as float32, for sums and products of several steps."""
    dtype = x.dtype
    if dtype.is_float and dtype.bits == 16:
        return x.b.cast(x, float32)
    return x


def in_dtype(x: Tensor, dtype: DType) -> Tensor:
    """Return x in `dtype`; x itself when it has it."""
    return x if x.dtype is dtype else x.b.cast(x, dtype)
