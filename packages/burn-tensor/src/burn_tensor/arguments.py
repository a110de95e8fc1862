"""Friendly arguments to strict ones: negative dims, `-1` extents, ints for tuples; remembered.

Each look-up is one dict access in the common case; the functions that fill the dicts raise the
typed errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from burn_backend import Memo, TensorBase
from burn_dispatch import plain_scalar
from burn_std import ArgumentError, BurnError, DType, DTypeError, IndexRangeError, ShapeError

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor

Shape = tuple[int, ...]
Ints = int | Sequence[int]
Number = bool | int | float


def as_int(op: str, name: str, value: Any) -> int:
    """Return an integer argument (Python, numpy or a rank-0 integer tensor) as an int.

    Raises:
        DTypeError: it is none of these.
    """
    try:
        return index(value)
    except TypeError:
        raise DTypeError(op, f"{name} must be an integer", got=repr(value)) from None


def as_number(op: str, name: str, value: Any) -> Number:
    """Return a number argument (Python, numpy or a tensor of one element) as a Python number.

    Raises:
        DTypeError: it is none of these.
    """
    if isinstance(value, TensorBase) and prod(value.shape) == 1:
        value = value.b.to_numpy(value).reshape(())
    number = plain_scalar(value)
    if number is None:
        raise DTypeError(op, f"{name} must be a number", got=type(value).__name__)
    return number


def stored(op: str, number: Any, dtype: DType) -> Any:
    """Return a number that becomes elements of a dtype as it is.

    Sums and products of integers wrap, but a value that is stored or a bound would be another one.
    Of an unsigned dtype -1 is the largest, as in PyTorch.

    Raises:
        DTypeError: an integer that the dtype cannot hold.
    """
    if number.__class__ is int and dtype.is_int:
        top = (1 << (dtype.bits - dtype.is_signed)) - 1
        if not -top - dtype.is_signed <= number <= top:
            raise DTypeError(op, f"an integer does not fit {dtype.name}", got=number)
    return number


def as_ints(op: str, name: str, value: Any) -> Shape:
    """Return an int or a sequence of ints as a tuple."""
    if isinstance(value, (tuple, list)):
        return tuple([as_int(op, name, v) for v in value])
    if isinstance(value, TensorBase) and len(value.shape) == 1 and value.dtype.is_int:
        return tuple(value.b.to_numpy(value).tolist())
    return (as_int(op, name, value),)


def _dim(key: tuple[Any, int]) -> int:
    dim, rank = key
    n = rank or 1
    dim = as_int("dim", "dim", dim)
    if not -n <= dim < n:
        raise IndexRangeError("dim", f"dim must be in [{-n}, {n - 1}] for rank {rank}", got=dim)
    return dim % n


def _dims(key: tuple[Any, int]) -> Shape | None:
    dims, rank = key
    if dims is None or (dims.__class__ is tuple and not dims) or not rank:
        for d in () if dims is None else as_ints("dim", "dim", dims):
            _dim((d, rank))
        return None
    out = tuple([_dim((d, rank)) for d in as_ints("dim", "dim", dims)])
    if len(set(out)) != len(out):
        raise ArgumentError("dim", "a dim appears twice", got=dims)
    return out


_DIM = Memo(_dim)
_DIMS = Memo(_dims)


def _renamed(op: str, error: BurnError) -> BurnError:
    return error.__class__(op, error.rule, got=error.got, remedy=error.remedy)


def one_dim(op: str, dim: Any, rank: int) -> int:
    """Return a dim as a non-negative int; rank 0 takes -1 and 0 and gives 0.

    Raises:
        IndexRangeError: it is outside [-rank, rank - 1].
    """
    try:
        out: int = _DIM[dim, rank]
    except BurnError as error:
        raise _renamed(op, error) from None
    except TypeError:  # not hashable
        return one_dim(op, as_int(op, "dim", dim), rank)
    return out


def some_dims(op: str, dim: Any, rank: int) -> Shape | None:
    """Return the dims of a reduction: None for all of them (also for `()` and rank 0).

    Raises:
        IndexRangeError: one is out of range.
        ArgumentError: one appears twice.
    """
    try:
        out: Shape | None = _DIMS[dim, rank]
    except BurnError as error:
        raise _renamed(op, error) from None
    except TypeError:  # a list is not hashable
        return some_dims(op, as_ints(op, "dim", dim), rank)
    return out


def flat(op: str, name: str, values: tuple[Any, ...]) -> Shape:
    """Return `f(2, 3)` and `f((2, 3))` as (2, 3)."""
    if len(values) == 1 and not isinstance(values[0], int):
        return as_ints(op, name, values[0])
    return tuple([as_int(op, name, v) for v in values])


def _reshaped(key: tuple[Shape, tuple[Any, ...]]) -> Shape:
    shape, wanted = key
    out = flat("reshape", "shape", wanted)
    if -1 not in out:
        return out
    at = out.index(-1)
    known = prod(out[:at] + out[at + 1 :])
    size = prod(shape)
    if -1 in out[at + 1 :] or known == 0 or size % known:
        raise ShapeError(
            "reshape", "at most one extent is -1, and the others must divide the elements",
            got=f"{list(shape)} ({size} elements) to {list(out)}",
        )  # fmt: skip
    return (*out[:at], size // known, *out[at + 1 :])


def _expanded(key: tuple[Shape, tuple[Any, ...]]) -> Shape:
    shape, wanted = key
    out = flat("expand", "sizes", wanted)
    pad = len(out) - len(shape)
    if pad < 0 or -1 in out[:pad]:
        raise ShapeError(
            "expand", "as many sizes as dims at least; -1 keeps a dim that exists",
            got=f"{list(shape)} to {list(out)}",
        )  # fmt: skip
    return (*out[:pad], *(s if n == -1 else n for n, s in zip(out[pad:], shape, strict=True)))


_RESHAPED = Memo(_reshaped)
_EXPANDED = Memo(_expanded)


def reshaped(shape: Shape, wanted: tuple[Any, ...]) -> Shape:
    """Return the shape that `reshape(*wanted)` asks for, -1 resolved."""
    try:
        out: Shape = _RESHAPED[shape, wanted]
    except TypeError:  # a list is not hashable
        return _reshaped((shape, wanted))
    return out


def expanded(shape: Shape, wanted: tuple[Any, ...]) -> Shape:
    """Return the shape that `expand(*wanted)` asks for, -1 resolved."""
    try:
        out: Shape = _EXPANDED[shape, wanted]
    except TypeError:
        return _expanded((shape, wanted))
    return out


def _permuted(key: tuple[int, tuple[Any, ...]]) -> Shape:
    rank, dims = key
    return tuple([one_dim("permute", d, rank) for d in flat("permute", "dims", dims)])


_PERMUTED = Memo(_permuted)


# Rank to the dims in reverse order.
def _swapped(key: tuple[int, int, int]) -> Shape:
    rank, dim0, dim1 = key
    a, b = one_dim("transpose", dim0, rank), one_dim("transpose", dim1, rank)
    order = list(range(rank))
    if rank:
        order[a], order[b] = b, a
    return tuple(order)


SWAPPED: dict[tuple[int, int, int], Shape] = Memo(_swapped)
REVERSED: dict[int, Shape] = Memo(lambda rank: tuple(range(rank - 1, -1, -1)))


def permuted(rank: int, dims: tuple[Any, ...]) -> Shape:
    """Return the dims that `permute(*dims)` asks for, not negative."""
    try:
        out: Shape = _PERMUTED[rank, dims]
    except TypeError:
        return _permuted((rank, dims))
    return out


def tensor_list(op: str, tensors: Any) -> list[Tensor]:
    """Return a list of tensors out of any iterable of them.

    Raises:
        DTypeError: something else is in it, or it is no iterable.
    """
    try:
        out = list(tensors)
    except TypeError:
        raise DTypeError(op, "needs a list of tensors", got=type(tensors).__name__) from None
    for i, t in enumerate(out):
        if not isinstance(t, TensorBase):
            raise DTypeError(op, "needs a list of tensors", got=f"{type(t).__name__} at {i}")
    return out


def need_rank(op: str, x: TensorBase, rank: int) -> None:
    """Raise ShapeError unless x has that many dims."""
    if len(x.shape) != rank:
        raise ShapeError(
            op, f"needs {rank} dim{'s' if rank != 1 else ''}", got=f"{x.dtype.name}{list(x.shape)}"
        )


def need_dim(op: str, x: TensorBase) -> None:
    """Raise ShapeError for a tensor of rank 0."""
    if not x.shape:
        raise ShapeError(op, "needs a dim", got="rank 0")


def as_float(x: Any) -> Tensor:
    """Return a tensor of floats as it is, another one in the default float."""
    made: Tensor = x if x.dtype.is_float else x.b.cast(x, x.b.default_float)
    return made


def both_parts(op: str, pair: Any) -> tuple[Tensor, Tensor]:
    """Return real and imaginary parts.

    Raises:
        DTypeError: it is no pair of tensors.
    """
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise DTypeError(op, "input is a pair of real and imaginary parts", got=type(pair).__name__)
    for name, part in zip(("the real part", "the imaginary part"), pair, strict=True):
        need_tensor(op, name, part)
    real, imag = pair
    return real, imag


def need_tensor(op: str, name: str, x: Any) -> None:
    """Raise DTypeError unless x is a tensor."""
    if not isinstance(x, TensorBase):
        raise DTypeError(
            op, f"{name} must be a tensor", got=type(x).__name__,
            remedy="Make one with burn.tensor(...).",
        )  # fmt: skip


def refuse_inplace(op: str) -> None:
    """Raise for `inplace=True`: the caller expects its own tensor to change, and none ever does.

    Modules take the same word as leave to overwrite (decision 9): their caller uses the result.

    Raises:
        ArgumentError: always.
    """
    raise ArgumentError(
        op, "no operation changes its input", got="inplace=True",
        remedy=f"Write x = {op}(x) without inplace.",
    )  # fmt: skip


def refuse_other(op: str, name: str, value: object, only: object, remedy: str) -> None:
    """Raise unless an argument that is here for PyTorch's sake has its one meaningful value.

    Raises:
        ArgumentError: it has another.
    """
    if value != only:
        raise ArgumentError(op, f"{name} can only be {only!r}", got=repr(value), remedy=remedy)
