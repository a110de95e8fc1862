"""Numbers among the arguments of an operation."""

from __future__ import annotations

from typing import Any

from burn_backend.tensor import TensorBase
from burn_ir import OPENS
from burn_std import ArgumentError, DTypeError

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
