"""Facts about dtypes: their limits, and which of them meets another."""

from __future__ import annotations

from typing import Any

from burn_backend import TensorBase
from burn_std import DType, DTypeError
from burn_tensor.joins import promote_types

# Bits after the binary point, and the largest and smallest exponent of a number at full precision.
_FLOATS = {
    "float16": (10, 15, -14), "bfloat16": (7, 127, -126), "float32": (23, 127, -126),
    "float64": (52, 1023, -1022),
}  # fmt: skip


def _dtype(op: str, value: Any) -> DType:
    found = value.dtype if isinstance(value, TensorBase) else value
    if not isinstance(found, DType):
        raise DTypeError(op, "needs a dtype", got=repr(value), remedy="Write burn.float32, ...")
    return found


class finfo:
    """Limits of a float dtype.

    Args:
        dtype: a float dtype.

    Attributes:
        dtype: the dtype.
        bits: width of a number.
        eps: distance from 1 to the next number.
        max: largest finite number.
        min: its negative, the smallest finite number.
        tiny: smallest positive number of full precision.
        smallest_normal: the same.
        resolution: one unit of the last decimal digit that always holds.

    Raises:
        DTypeError: it is no float dtype.

    Example:
        >>> burn.finfo(burn.float32).eps == 2.0**-23
        True
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, dtype: DType) -> None:
        found = _dtype("finfo", dtype)
        if found.name not in _FLOATS:
            raise DTypeError(
                "finfo", "needs a float dtype", got=found.name, remedy="Use burn.iinfo."
            )
        digits, high, low = _FLOATS[found.name]
        self.dtype = found
        self.bits = found.bits
        self.eps = 2.0**-digits
        self.max = (2 - self.eps) * 2.0**high
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**low
        self.resolution = float(f"1e-{int(digits * 0.30103)}")

    def __repr__(self) -> str:
        return f"finfo({self.dtype}, min={self.min!r}, max={self.max!r}, eps={self.eps!r})"


class iinfo:
    """Limits of an integer dtype.

    Args:
        dtype: an integer dtype.

    Attributes:
        dtype: the dtype.
        bits: width of a number.
        max: largest number.
        min: smallest number.

    Raises:
        DTypeError: it is no integer dtype.

    Example:
        >>> burn.iinfo(burn.uint8).max
        255
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: DType) -> None:
        found = _dtype("iinfo", dtype)
        if not found.is_int:
            raise DTypeError(
                "iinfo", "needs an integer dtype", got=found.name, remedy="Use burn.finfo."
            )
        self.dtype = found
        self.bits = found.bits
        self.max = 2 ** (found.bits - (1 if found.is_signed else 0)) - 1
        self.min = -self.max - 1 if found.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo({self.dtype}, min={self.min}, max={self.max})"


def can_cast(from_: DType, to: DType) -> bool:
    """Return whether a conversion keeps the kind: floats never become ints, nor numbers bools.

    Args:
        from_: the dtype before.
        to: the dtype after.

    Example:
        >>> burn.can_cast(burn.float64, burn.float32), burn.can_cast(burn.float32, burn.int64)
        (True, False)
    """
    a, z = _dtype("can_cast", from_), _dtype("can_cast", to)
    if a.is_int and z.is_int:
        return z.is_signed or not a.is_signed
    return _RANK[a.kind] <= _RANK[z.kind]


_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2, "quant": 3}


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """Return the dtype of an operation on two tensors or numbers.

    Args:
        tensor1: a tensor or a number.
        tensor2: a tensor or a number.

    Raises:
        DTypeError: neither is a tensor, or their dtypes have no common one.

    Example:
        >>> burn.result_type(burn.tensor([1]), 1.5)
        burn.float32
    """
    one, two = isinstance(tensor1, TensorBase), isinstance(tensor2, TensorBase)
    if one and two:
        return promote_types(tensor1.dtype, tensor2.dtype)
    if not one and not two:
        raise DTypeError(
            "result_type", "needs a tensor", got=f"{tensor1!r} and {tensor2!r}",
            remedy="Use burn.promote_types for dtypes.",
        )  # fmt: skip
    x, number = (tensor1, tensor2) if one else (tensor2, tensor1)
    out: DType = x.b.mul(x.new_zeros(()), number).dtype
    return out
