"""Numbers among the arguments of an operation."""

from __future__ import annotations

from typing import Any

from burn_backend.tensor import TensorBase
from burn_ir import OPENS
from burn_std import ArgumentError, DType, DTypeError

_PY = (bool, int, float)


def plain_scalar(value: Any) -> bool | int | float | None:
    """Return a Python or numpy scalar as a Python scalar, else None.

    Example:
        >>> plain_scalar(2.5), plain_scalar("2.5")
        (2.5, None)
    """
    if isinstance(value, _PY):
        return value
    item = getattr(value, "item", None)
    if (
        item is not None
        and getattr(value, "shape", None) == ()
        and not isinstance(value, TensorBase)
    ):
        found = item()
        if isinstance(found, _PY):
            return found
        if hasattr(found, "__float__"):  # ml_dtypes scalars give themselves
            return float(found)
    return None


def number_of(value: bool | int | float, dtype: DType) -> bool | int | float:
    """Return a number that meets elements of a dtype as a Python one that a backend can hold.

    Raises:
        ArgumentError: an integer of more than 64 bits meets integers, or one that no float holds.
        DTypeError: it is no number, or the dtype is quantised.

    Example:
        >>> from burn_std.dtypes import float32
        >>> number_of(2**70, float32)
        1.1805916207174113e+21
    """
    if dtype.is_quantized:
        raise DTypeError(
            "number", "a quantised tensor meets no numbers", got=dtype,
            remedy="Call .dequantize() first.",
        )  # fmt: skip
    number = plain_scalar(value)
    if number is None:
        raise DTypeError("number", "must be a number", got=type(value).__name__)
    value = number
    if value.__class__ is not int or -(2**63) <= value < 2**64:
        return value
    if dtype.is_bool:
        return True
    try:
        if dtype.is_float:
            return float(value)
    except OverflowError:
        pass
    raise ArgumentError(
        "number", "an integer beside a tensor must fit 64 bits, beside floats a float64",
        got=f"{value.bit_length()} bits beside {dtype.name}",
    )  # fmt: skip


def check_scalar(op: str, name: str, value: Any) -> None:
    """Check the value of a scalar attribute before it is recorded.

    Raises:
        DTypeError: it is no number.
        ArgumentError: an integer of more than 64 bits.

    Example:
        >>> check_scalar("elu", "alpha", 1.0)
    """
    number = plain_scalar(value)
    if number is None:
        if value is None and name in OPENS:
            return
        got = repr(value) if isinstance(value, str) else type(value).__name__
        raise DTypeError(op, f"{name} must be a number", got=got)
    if isinstance(number, int) and not -(2**63) <= number < 2**64:
        raise ArgumentError(op, f"{name} must fit 64 bits", got=number)
