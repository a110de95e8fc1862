"""Tensors as values: where several meet, constants of them, and the few places that rebind one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_dispatch import current_scope
from burn_std import DeviceError, DType, DTypeError
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
        DTypeError: something is no tensor.
    """
    found: Any = None
    for t in tensors:
        if t is None:
            continue
        if not isinstance(t, TensorBase):
            raise DTypeError(
                op, "needs tensors", got=type(t).__name__, remedy="Make one with burn.tensor(...)."
            )
        if t.b is found:
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


def is_buffer(x: Tensor | None) -> bool:
    """Return whether x is a Buffer, which functions that keep statistics may rebind.

    The class is asked, because an unknown name on a plain tensor is an error made with care.
    """
    return getattr(x.__class__, "is_buffer", False) is True


def rebind(target: Any, value: Tensor) -> None:
    """Give a Buffer or Parameter a new value, unless a checkpoint runs this a second time."""
    if not current_scope().recompute:
        target.set(value)


def widened(x: Tensor) -> Tensor:
    """Return x with 16-bit floats as float32, for sums and products of several steps."""
    dtype = x.dtype
    if dtype.is_float and dtype.bits == 16:
        return x.b.cast(x, float32)
    return x


def in_dtype(x: Tensor, dtype: DType) -> Tensor:
    """Return x in `dtype`; x itself when it has it."""
    return x if x.dtype is dtype else x.b.cast(x, dtype)
