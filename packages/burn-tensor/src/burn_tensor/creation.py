"""New tensors: from data, filled, counted, random.

Where no dtype is given, floats take the device's default float (float32) and ints its default
int (int64). Where no device is given, it is `Device.default()`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Any, Never

import ml_dtypes
import numpy as np

from burn_backend import TensorBase
from burn_dispatch import Device, device as named_device, plain_scalar
from burn_std import ArgumentError, DType, DTypeError, ShapeError, dtypes as dt
from burn_tensor.arguments import Number, as_int, flat, need_tensor, stored
from burn_tensor.guard import explained, refused

if TYPE_CHECKING:
    from burn_tensor.methods import Operations
    from burn_tensor.tensor import Tensor

_NUMPY = {d: np.dtype(ml_dtypes.bfloat16 if d is dt.bfloat16 else d.name) for d in dt.PLAIN}
_DTYPE = {n: d for d, n in _NUMPY.items()}


def context_of(device: Device | str | None) -> Operations:
    """Return the context of a device, its name, or the default device."""
    d = Device.default() if device is None else named_device(device)
    context: Any = d.context
    context.resource.used = True
    out: Operations = context
    return out


# ---- from data ---------------------------------------------------------------------------------


def _ragged(data: Any, place: str) -> str | None:
    """Return where nested lists differ in length, in words."""
    if not isinstance(data, (list, tuple)):
        return None
    kinds = {
        (len(e) if isinstance(e, (list, tuple)) else None): i
        for i, e in reversed(list(enumerate(data)))
    }
    if len(kinds) > 1:
        (n, i), (m, j) = sorted(kinds.items(), key=lambda item: item[1])[:2]
        words = [
            f"{place}[{k}] has {'no' if e is None else e} elements" for k, e in ((i, n), (j, m))
        ]
        return " but ".join(words)
    for i, e in enumerate(data):
        found = _ragged(e, f"{place}[{i}]")
        if found:
            return found
    return None


def _typed(data: Any) -> bool:
    """Return whether nested lists hold arrays or tensors, whose dtype counts."""
    depth = 0
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
        depth += 1
        if depth > 64:  # among them a list that holds itself
            raise RecursionError
    return isinstance(data, (TensorBase, np.ndarray))


def host_array(op: str, data: Any, dtype: DType | None, context: Any) -> np.ndarray[Any, Any]:
    """Return data as a numpy array of a supported dtype: the given one, or the data's own."""
    try:
        return _host_array(op, data, dtype, context)
    except RecursionError:
        raise ShapeError(op, "lists nest at most 64 deep", got="deeper ones") from None


def _host_array(op: str, data: Any, dtype: DType | None, context: Any) -> np.ndarray[Any, Any]:
    typed = isinstance(data, (np.ndarray, TensorBase)) or _typed(data)
    if not typed and hasattr(data, "__array__") and not isinstance(data, np.generic):
        data, typed = np.asarray(data), True
    if isinstance(data, TensorBase):
        data = data.b.to_numpy(data)
    try:
        array = np.asarray(data)
    except ValueError:
        place = _ragged(data, "data")
        raise ShapeError(
            op, "nested lists must be rectangular", got=place or "lists of several lengths",
            remedy="Pad the short ones, or make one tensor each.",
        ) from None  # fmt: skip
    if typed and array.dtype.kind == "O":  # numbers as Python has them, and what is none
        return _host_array(op, array.tolist(), dtype, context)
    if array.dtype.kind == "O" or (
        not typed and array.dtype.kind == "f" and array.size and _all_ints(data)
    ):
        if dtype is dt.uint64 or not _all_ints(data):
            array = _as_numbers(op, data, dtype)
        else:
            raise DTypeError(
                op,
                "an integer does not fit int64",
                got=_widest(data),
                remedy="Pass dtype=burn.uint64, or floats.",
            )
    if array.dtype not in _DTYPE:
        array = _native(op, array)
    if typed:
        return array
    wanted = dtype or _natural(array, context)
    return _in_range(op, array, wanted)


def _natural(array: np.ndarray[Any, Any], context: Any) -> DType:
    if array.dtype.kind in "iu" and array.size:
        default: DType = context.default_int
        return default
    if array.dtype.kind == "b" and array.size:
        return dt.bool_
    out: DType = context.default_float
    return out


def _has_none(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_none(e) for e in data)
    return data is None


def _all_ints(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return all(_all_ints(e) for e in data)
    return isinstance(data, int)


def _widest(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return max((_widest(e) for e in data), key=abs)
    return data


def _as_numbers(op: str, data: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    try:
        made = np.array(data, np.float64 if dtype is None else _NUMPY.get(dtype, np.float64))
        if data is None or (made.dtype.kind == "f" and _has_none(data)):  # numpy reads None as NaN
            raise TypeError("None")
        return made
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(op, "data must be numbers, in nested lists or arrays", got=error) from None


def _native(op: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    swapped = array.dtype.newbyteorder("=")
    if swapped in _DTYPE:
        return array.astype(swapped)
    raise DTypeError(
        op, "numpy's dtype has no counterpart", got=array.dtype,
        remedy="Supported: " + ", ".join(d.name for d in dt.PLAIN) + ".",
    )  # fmt: skip


def _in_range(op: str, array: np.ndarray[Any, Any], wanted: DType) -> np.ndarray[Any, Any]:
    """Return Python numbers in a dtype; integers that it cannot hold are an error."""
    if wanted.is_quantized or (wanted.is_int and array.dtype.kind == "f"):
        return array  # converted on the device, by its rules
    native = _NUMPY[wanted]
    if wanted.is_int and array.dtype.kind in "iu" and array.size:
        limit = np.iinfo(native)
        for v in (int(array.min()), int(array.max())):
            if not limit.min <= v <= limit.max:
                raise DTypeError(op, f"an integer does not fit {wanted.name}", got=v)
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(native, copy=False)


def tensor(data: Any, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Return a tensor of data, copied.

    Args:
        data: a number, nested lists of numbers, a numpy array, a tensor, or what has `__array__`.
        dtype: of the result; else Python floats give the default float, ints the default int,
            bools bool, numpy's numbers the same, and arrays keep theirs.
        device: where it goes; a tensor's own by default.

    Raises:
        ShapeError: nested lists of several lengths; the message says where.
        DTypeError: an integer does not fit, or the elements are no numbers.

    Example:
        >>> tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
        >>> tensor(2**53 + 1).item() - 2**53
        1
    """
    if isinstance(data, TensorBase):
        plain: Tensor = data.b.make(data.v)
        return plain.to(dtype=dtype, device=device)
    context = context_of(device)
    made = context.tensor_from_numpy(host_array("tensor", data, dtype, context), True)
    if dtype is not None and made.dtype is not dtype:
        made = made.to(dtype)
    return made


def as_tensor(data: Any, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Return data as a tensor; a tensor that already fits is returned itself.

    Args:
        data: as for `tensor`.
        dtype: of the result.
        device: where it goes.

    Example:
        >>> x = burn.zeros(2)
        >>> burn.as_tensor(x) is x
        True
    """
    if isinstance(data, TensorBase):
        same: Tensor = data  # type: ignore[assignment] # every tensor is of the subclass
        return same.to(dtype=dtype, device=device)
    return tensor(data, dtype, device)


def from_numpy(array: np.ndarray[Any, Any], device: Device | str | None = None) -> Tensor:
    """Return a tensor of a numpy array without a copy where that is safe.

    An array that owns its memory is shared and made read-only; a view is copied. Writing through
    a view made earlier breaks the promise that values never change, and is the caller's fault.

    Args:
        array: of a supported dtype.
        device: where it goes; other devices than flex copy.

    Raises:
        DTypeError: no array, or its dtype has no counterpart.

    Example:
        >>> import numpy as np
        >>> a = np.ones(2, np.float32)
        >>> x = burn.from_numpy(a)
        >>> a.flags.writeable
        False
    """
    if not isinstance(array, np.ndarray):
        raise DTypeError(
            "from_numpy",
            "needs a numpy array",
            got=type(array).__name__,
            remedy="Use burn.tensor(...).",
        )
    known = array if array.dtype in _DTYPE else _native("from_numpy", array)
    # A subclass may carry more than elements; the base class is what backends know.
    if type(known) is not np.ndarray or known.base is not None or not known.flags.owndata:
        return context_of(device).tensor_from_numpy(np.array(known, subok=False), False)
    known.flags.writeable = False
    return context_of(device).tensor_from_numpy(known, False)


def from_dlpack(x: Any, *, device: Device | str | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor of what another library exports through DLPack.

    Args:
        x: an object with `__dlpack__`, on the host.
        device: where it goes.
        copy: False shares the memory, which nobody may write afterwards; else it is copied.

    Example:
        >>> import numpy as np
        >>> burn.from_dlpack(np.arange(3))
        tensor([0, 1, 2])
    """
    if isinstance(x, TensorBase):
        return tensor(x, device=device)
    try:
        array = np.from_dlpack(x)
    except (AttributeError, TypeError):
        raise DTypeError(
            "from_dlpack", "needs an object with __dlpack__", got=type(x).__name__
        ) from None
    except (BufferError, RuntimeError) as error:  # the exporter's own words
        raise DTypeError("from_dlpack", "the exporter refuses", got=error) from error
    if array.dtype not in _DTYPE:
        array = _native("from_dlpack", array)
    return context_of(device).tensor_from_numpy(array, copy is not False)


# ---- filled ------------------------------------------------------------------------------------


def full(
    size: Any, fill_value: Number, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Return one value everywhere.

    Args:
        size: extents, a tuple or an int.
        fill_value: the value.
        dtype: of the result; else that of the value.
        device: where it is made.

    Raises:
        DTypeError: the value is an integer that the dtype cannot hold.

    Example:
        >>> burn.full((2,), 7)
        tensor([7, 7])
    """
    b = context_of(device)
    number = _number("full", "fill_value", fill_value)
    if dtype is None:
        dtype = _dtype_of(number, b)
    return b.full(dtype, flat("full", "size", (size,)), stored("full", number, dtype))


def _dtype_of(number: Number, b: Any) -> DType:
    if isinstance(number, bool):
        return dt.bool_
    out: DType = b.default_int if isinstance(number, int) else b.default_float
    return out


def zeros(
    *size: Any,
    dtype: DType | None = None,
    device: Device | str | None = None,
    **others: Never,
) -> Tensor:
    """Return zeros.

    Args:
        size: extents, as ints or one tuple.
        dtype: of the result; else the default float.
        device: where they are made.
        others: none; other names are an error.

    Example:
        >>> burn.zeros(2)
        tensor([0., 0.])
    """
    try:
        b = context_of(device)
        if others:
            raise refused(empty, others, "zeros")
        return b.full(dtype or b.default_float, flat("zeros", "size", size), 0)
    except Exception as e:  # noqa: BLE001 - raised again
        raise explained(e, zeros, ("dtype", "device"), (dtype, device))  # noqa: B904 - it decides


def ones(
    *size: Any,
    dtype: DType | None = None,
    device: Device | str | None = None,
    **others: Never,
) -> Tensor:
    """Return ones.

    Args:
        size: extents, as ints or one tuple.
        dtype: of the result; else the default float.
        device: where they are made.
        others: none; other names are an error.

    Example:
        >>> burn.ones(2)
        tensor([1., 1.])
    """
    try:
        b = context_of(device)
        if others:
            raise refused(empty, others, "ones")
        return b.full(dtype or b.default_float, flat("ones", "size", size), 1)
    except Exception as e:  # noqa: BLE001 - raised again
        raise explained(e, ones, ("dtype", "device"), (dtype, device))  # noqa: B904 - it decides


def empty(*size: Any, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Return zeros: there is no memory without values here.

    Args:
        size: extents, as ints or one tuple.
        dtype: of the result; else the default float.
        device: where they are made.

    Example:
        >>> burn.empty(2, 3).shape
        (2, 3)
    """
    return zeros(*size, dtype=dtype, device=device)


def _like(x: TensorBase, value: Any, dtype: DType | None, device: Device | str | None) -> Any:
    need_tensor("like", "the model", x)
    b = x.b if device is None else context_of(device)
    kind = dtype or x.dtype
    return b.full(kind, x.shape, stored("full_like", value, kind))


def full_like(
    input: Tensor,
    fill_value: Number | Tensor,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return one value everywhere, in the shape, dtype and on the device of another tensor.

    Example:
        >>> burn.full_like(burn.zeros(2), 3)
        tensor([3., 3.])
    """
    out: Tensor = _like(input, fill_value, dtype, device)
    return out


def zeros_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Return zeros in the shape, dtype and on the device of another tensor.

    Example:
        >>> burn.zeros_like(burn.ones(2))
        tensor([0., 0.])
    """
    out: Tensor = _like(input, 0, dtype, device)
    return out


def ones_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Return ones in the shape, dtype and on the device of another tensor.

    Example:
        >>> burn.ones_like(burn.zeros(2))
        tensor([1., 1.])
    """
    out: Tensor = _like(input, 1, dtype, device)
    return out


def empty_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Return zeros in the shape, dtype and on the device of another tensor.

    Example:
        >>> burn.empty_like(burn.ones(2)).shape
        (2,)
    """
    out: Tensor = _like(input, 0, dtype, device)
    return out


# ---- counted -----------------------------------------------------------------------------------


def as_scalar(value: Any) -> Number | None:
    """Return a Python or numpy scalar or a tensor of one element as a number, else None."""
    if isinstance(value, TensorBase):
        value = value.b.to_numpy(value)
        value = value.reshape(()) if value.size == 1 else value
    return plain_scalar(value)


def _number(op: str, name: str, value: Any) -> Number:
    number = as_scalar(value)
    if number is None:
        raise DTypeError(op, f"{name} must be a number", got=type(value).__name__)
    out: Number = number
    return out


def arange(
    start: Number,
    end: Number | None = None,
    step: Number = 1,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return start, start + step, ... up to but without the end.

    Element i is start + i * step, computed in int64 or float64 and rounded once.

    Args:
        start: the first; alone it is the end, and 0 the start.
        end: where to stop.
        step: the distance, not 0.
        dtype: of the result; else int if all arguments are, the default float otherwise.
        device: where it is made.

    Raises:
        ArgumentError: the step is 0 or points away from the end.

    Example:
        >>> burn.arange(1, 7, 2)
        tensor([1, 3, 5])
    """
    b = context_of(device)
    first, last = (0, start) if end is None else (start, end)
    a, e, s = (
        _number("arange", n, v) for n, v in (("start", first), ("end", last), ("step", step))
    )
    if s == 0 or (e - a) * s < 0 or any(v != v or abs(v) == float("inf") for v in (a, e, s)):
        raise ArgumentError("arange", "step leads from start towards end", got=f"{a}, {e}, {s}")
    whole = all(isinstance(v, int) for v in (a, e, s))
    count = -((a - e) // s) if whole else ceil((e - a) / s)
    if dtype is None:
        dtype = b.default_int if whole else b.default_float
    return b.arange(dtype, int(count), a, s)


def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return `steps` values at equal distances from start to end, both exact.

    Args:
        start: the first.
        end: the last.
        steps: how many.
        dtype: of the result; else the default float. Integers are rounded down.
        device: where it is made.

    Example:
        >>> burn.linspace(0, 1, 3)
        tensor([0.0000, 0.5000, 1.0000])
    """
    b = context_of(device)
    a, e = _number("linspace", "start", start), _number("linspace", "end", end)
    n = _count("linspace", "steps", steps)
    dtype = dtype or b.default_float
    values = np.linspace(a, e, n, dtype=np.float64)
    if dtype.is_int:
        values = np.floor(values).astype(np.int64)
        if n:
            values[0], values[-1] = int(a), int(e) if n > 1 else int(a)
    return b.tensor_from_numpy(values.astype(_NUMPY[dtype]), False)


def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return base to the power of `steps` values at equal distances from start to end.

    Example:
        >>> burn.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
    """
    b = context_of(device)
    a, e = _number("logspace", "start", start), _number("logspace", "end", end)
    n = _count("logspace", "steps", steps)
    with np.errstate(all="ignore"):
        values = np.logspace(a, e, n, base=_number("logspace", "base", base))
    return b.tensor_from_numpy(values.astype(_NUMPY[dtype or b.default_float]), False)


def eye(
    n: int, m: int | None = None, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Return ones on the diagonal, zeros elsewhere.

    Args:
        n: rows.
        m: columns; else as many.
        dtype: of the result; else the default float.
        device: where it is made.

    Example:
        >>> burn.eye(2)
        tensor([[1., 0.],
                [0., 1.]])
    """
    b = context_of(device)
    columns = n if m is None else m
    rows = b.unsqueeze(b.arange(dt.int64, as_int("eye", "n", n), 0, 1), (1,))
    same = b.eq(rows, b.arange(dt.int64, as_int("eye", "m", columns), 0, 1))
    return b.cast(same, dtype or b.default_float)


def _count(op: str, name: str, value: Any) -> int:
    """Return how many values are to be made on the host."""
    count = as_int(op, name, value)
    # Beyond it numpy counts wrongly; what is below it and too much finds no memory.
    if not 0 <= count < 1 << 59:
        raise ArgumentError(op, f"{name} is not negative, and below 2^59", got=count)
    return count


def _triangle(
    name: str, row: int, col: int, offset: int, dtype: DType | None, device: Device | str | None
) -> Any:
    b = context_of(device)
    row, col = _count(f"{name}_indices", "row", row), _count(f"{name}_indices", "col", col)
    pick: Callable[..., Any] = np.tril_indices if name == "tril" else np.triu_indices
    made = np.stack(pick(row, offset, col))
    return b.tensor_from_numpy(made.astype(_NUMPY[dtype or dt.int64]), False)


def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return the coordinates of the lower triangle of a row x col matrix, [2, N].

    Example:
        >>> burn.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])
    """
    out: Tensor = _triangle("tril", row, col, offset, dtype, device)
    return out


def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return the coordinates of the upper triangle of a row x col matrix, [2, N].

    Example:
        >>> burn.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
    """
    out: Tensor = _triangle("triu", row, col, offset, dtype, device)
    return out
