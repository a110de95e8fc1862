"""A whole backend in one file: every core operation on numpy arrays, nothing optional.

Shapes, dtypes and promotion are settled before a kernel runs; a kernel computes. Operations that
are derived run by their decompositions. Sorting, Fourier transforms, factorisations and the other
optional primitives are not in the table, which is how a backend declares them unsupported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from burn_backend import API_VERSION, PLAIN, Backend, DType, IndexRangeError, Kernel

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]
F64, I64 = np.dtype(np.float64), np.dtype(np.int64)
# What is missing here, the 16-bit floats, is refused by name.
NATIVE = {d: np.dtype(d.name) for d in PLAIN if not (d.is_float and d.bits == 16)}


def scalar(value: Any, dtype: DType) -> Any:
    """A Python number as an array of rank 0; integers wrap."""
    if dtype.is_int and isinstance(value, int):
        value = np.array(value & (1 << dtype.bits) - 1, f"uint{dtype.bits}").view(NATIVE[dtype])
    return np.array(value, NATIVE[dtype])


def round_(x: Array, decimals: int) -> Any:
    if x.dtype.kind != "f":
        return np.round(x, decimals) if decimals < 0 else x
    power = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * power) / power if decimals > 0 else np.rint(x / power) * power


def pow_(x: Array, y: Array) -> Any:
    if x.dtype.kind == "f":
        return np.power(x, y)
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, x, 1), 0))  # 1 / x^|y|
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0))).astype(x.dtype)


def cast(x: Array, dtype: DType) -> Array:
    target = NATIVE[dtype]
    if x.dtype.kind != "f" or target.kind not in "iu":
        return x.astype(target)
    # NaN becomes 0 and what is out of range the nearest bound; 2^63 and 2^64 are floats, the
    # integers below them are not.
    info, x = np.iinfo(target), x.astype(F64)
    above = x >= float(info.max) + (1 if info.bits < 64 else 0)
    inside = np.where(np.isnan(x) | above, 0, np.maximum(x, float(info.min))).astype(target)
    return np.where(above, target.type(info.max), inside)


def reduced(ufunc: np.ufunc, x: Array, dims: Any, keepdim: bool, dtype: DType | None) -> Any:
    x = cast(x, dtype) if dtype else x if x.dtype.kind == "f" else x.astype(I64)
    return ufunc.reduce(x, dims if x.ndim else (), x.dtype, None, keepdim)


def scanned(ufunc: np.ufunc, x: Array, dim: int, dtype: DType | None) -> Any:
    x = cast(x, dtype) if dtype else x if x.dtype.kind == "f" else x.astype(I64)
    # Every step adds its rounding to all that follow, so floats scan in 64 bits.
    wide = F64 if x.dtype.kind == "f" else x.dtype
    return ufunc.accumulate(x, dim, wide).astype(x.dtype) if x.ndim else x


def taps(weight: Ints, out: Ints, stride: Ints, dilation: Ints) -> Iterator[tuple[Any, Any]]:
    """Each tap of a convolution, and what all windows see there of the padded input."""
    for tap in product(*map(range, weight[2:])):
        at = zip(tap, dilation, stride, out, strict=True)
        yield (..., *tap), (..., *(slice(t * d, t * d + s * (o - 1) + 1, s) for t, d, s, o in at))


def grouped(x: Array, groups: int) -> Array:
    """[N, groups * C, *L] as [N, groups, C, L]; [groups * O, C] as [groups, O, C]."""
    if x.ndim == 2:
        return x.reshape(groups, len(x) // groups, x.shape[1])
    return x.reshape(len(x), groups, x.shape[1] // groups, math.prod(x.shape[2:]))


def conv(x: Array, weight: Array, bias: Any, *how: Any) -> Any:
    stride, padding, dilation, groups = how
    x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    sizes = zip(x.shape[2:], weight.shape[2:], stride, dilation, strict=True)
    out = tuple((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in sizes)
    y = np.zeros((len(x), len(weight), *out), x.dtype)
    for tap, seen in taps(weight.shape, out, stride, dilation):
        w = grouped(weight[tap], groups)
        y += np.einsum("ngcl,goc->ngol", grouped(x[seen], groups), w).reshape(y.shape)
    return y if bias is None else y + bias.reshape(-1, *(1 for _ in out))


def conv_input_grad(g: Array, weight: Array, *how: Any) -> Any:
    stride, padding, dilation, groups, shape = how
    dx = np.pad(np.zeros(shape, g.dtype), ((0, 0), (0, 0), *((p, p) for p in padding)))
    for tap, seen in taps(weight.shape, g.shape[2:], stride, dilation):
        part = np.einsum("ngol,goc->ngcl", grouped(g, groups), grouped(weight[tap], groups))
        dx[seen] += part.reshape(dx[seen].shape)
    return dx[(..., *(slice(p, p + n) for p, n in zip(padding, shape[2:], strict=True)))]


def conv_weight_grad(g: Array, x: Array, *how: Any) -> Any:
    stride, padding, dilation, groups, shape = how
    x, out = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding))), np.zeros(shape, g.dtype)
    for tap, seen in taps(shape, g.shape[2:], stride, dilation):
        part = np.einsum("ngol,ngcl->goc", grouped(g, groups), grouped(x[seen], groups))
        out[tap] = part.reshape(shape[:2])
    return out


def window(steps: Ints, starts: Ints, stops: Ints) -> tuple[Any, ...]:
    """numpy's key of a window; stop -1 of a negative step means through element 0."""
    bounds = zip(starts, stops, steps, strict=True)
    return (*(slice(a, None if b < 0 else b, s) for a, b, s in bounds), ...)


def arange(dtype: DType, count: int, start: Any, step: Any) -> Any:
    if dtype.is_float or isinstance(start, float) or isinstance(step, float):
        return cast(start + np.arange(count) * float(step), dtype)
    return np.array([scalar(start + i * step, dtype) for i in range(count)], NATIVE[dtype])


def words(key: tuple[int, int], count: int) -> Array:
    """The first words of Philox4x32-10, the generator of the numerics contract, as uint64."""
    (seed, counter), low = key, 0xFFFFFFFF
    block = np.arange(-(-count // 4), dtype=np.uint64)
    c = [block & low, block >> 32]
    c += [np.full_like(block, counter >> shift & low) for shift in (0, 32)]
    for r in range(10):
        k, m = seed + r * 0x9E3779B9 & low, (seed >> 32) + r * 0xBB67AE85 & low
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k, b & low, a >> 32 ^ c[3] ^ m, a & low]
    return np.stack(c, 1).reshape(-1)[:count]


def uniform(dtype: DType, shape: Ints, low: float, high: float, key: Any) -> Any:
    target, count = NATIVE[dtype].type, math.prod(shape)
    if target is np.float64:
        w = words(key, 2 * count)
        u = ((w[::2] | w[1::2] << 32) >> 11) * 2.0**-53
    else:
        u = (words(key, count) >> 8).astype(target) * target(2.0**-24)
    out = u.reshape(shape) * target(high - low) + target(low)
    # Never high, even after rounding.
    return np.minimum(out, np.nextafter(target(high), target(low))) if low < high else out


def normal(dtype: DType, shape: Ints, mean: float, std: float, key: Any) -> Any:
    target, w = NATIVE[dtype].type, words(key, 2 * math.prod(shape)).reshape(*shape, 2)
    unit = (w[..., 0] + 1).astype(target) * target(2.0**-32)
    angle = w[..., 1].astype(target) * target(2 * math.pi) * target(2.0**-32)
    return np.sqrt(target(-2) * np.log(unit)) * np.cos(angle) * target(std) + target(mean)


def randint(dtype: DType, shape: Ints, low: int, high: int, key: Any) -> Any:
    span, bits = high - low, 32 if high - low <= 1 << 32 else 64
    drawn = words(key, math.prod(shape) * bits // 32).tolist()
    if bits == 64:
        drawn = [a | b << 32 for a, b in zip(drawn[::2], drawn[1::2], strict=True)]
    made = [scalar(low + (n * span >> bits), dtype) for n in drawn]
    return np.array(made, NATIVE[dtype]).reshape(shape)


def inside(op: str, index: Array, dim: int, size: int, low: int = 0) -> Array:
    """The index in int64, after a check of its range."""
    wrong = index[(index < low) | (index >= size)]
    if wrong.size:
        rule = f"indices along dim {dim} must be in [{low}, {size - 1}]"
        raise IndexRangeError(op, rule, got=f"index {wrong[0]} for size {size}")
    return index.astype(I64)


def flat(x: Array, key: Any) -> Array:
    """Positions in the flat x of what numpy's key names."""
    return np.arange(x.size).reshape(x.shape)[key]


def places(op: str, x: Array, index: Array, dim: int) -> Array:
    """Positions in the flat x of what index names along dim."""
    if not x.ndim or not index.ndim:
        return inside(op, index, 0, x.size)
    key = list(np.indices(index.shape, sparse=True))
    key[dim] = inside(op, index, dim, x.shape[dim])
    return flat(x, tuple(key))


def chosen(op: str, x: Array, indices: Sequence[Array], dims: Ints) -> Array:
    """Positions in the flat x of what integer arrays on dims name; negative ones count."""
    key: list[Any] = [slice(None)] * x.ndim
    for d, i in zip(dims, indices, strict=True):
        key[d] = inside(op, i, d, x.shape[d], -x.shape[d])
    return flat(x, tuple(key))


def written(x: Array, at: Array, src: Array, combine: np.ufunc | None = None) -> Array:
    """x with src combined, or assigned, at flat positions in order: duplicates count, or win."""
    out, src = np.array(x, order="C"), np.broadcast_to(src, at.shape)
    if combine is None:
        out.reshape(-1)[at.reshape(-1)] = src.reshape(-1)
    else:
        combine.at(out.reshape(-1), at.reshape(-1), src.reshape(-1))
    return out


def scatter(x: Array, index: Array, src: Array, dim: int, mode: str) -> Array:
    modes = {"add": np.add, "multiply": np.multiply, "amin": np.minimum, "amax": np.maximum}
    part = src[tuple(map(slice, index.shape))] if index.ndim and src.ndim else src
    return written(x, places("scatter", x, index, dim), part, modes.get(mode))


KERNELS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "neg": np.negative, "abs": np.abs,
    "erf": lambda x: np.vectorize(math.erf, otypes=[x.dtype])(x), "round": round_, "cast": cast,
    "floor": lambda x: np.floor(x) if x.dtype.kind == "f" else x, "bitwise_not": np.invert,
    "eq": np.equal, "lt": np.less, "le": np.less_equal, "add": np.add, "sub": np.subtract,
    "mul": np.multiply, "div": np.divide, "floor_divide": np.floor_divide, "pow": pow_,
    "remainder": np.remainder, "maximum": np.maximum, "minimum": np.minimum, "atan2": np.arctan2,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift, "where": np.where,
    "sum": partial(reduced, np.add), "prod": partial(reduced, np.multiply), "conv": conv,
    "cumsum": partial(scanned, np.add), "cumprod": partial(scanned, np.multiply),
    "matmul": np.matmul,
    "amax": lambda x, dims, keepdim: np.max(x, dims if x.ndim else (), keepdims=keepdim),
    "argmax": lambda x, dim, keepdim: np.argmax(x, dim if x.ndim else None, keepdims=keepdim),
    "conv_input_grad": conv_input_grad, "conv_weight_grad": conv_weight_grad,
    "reshape": np.reshape, "permute": np.transpose, "expand": np.broadcast_to,
    "slice": lambda x, *where: x[window(*where)],
    "slice_assign": lambda x, value, *where: written(x, flat(x, window(*where)), value),
    "cat": np.concatenate, "contiguous": lambda x: np.array(x, order="C"), "arange": arange,
    "full": lambda dtype, shape, value: np.full(shape, scalar(value, dtype)),
    "uniform": uniform, "normal": normal, "randint": randint, "nonzero": np.argwhere,
    "gather": lambda x, index, dim: x.reshape(-1)[places("gather", x, index, dim)],
    "index": lambda x, indices, dims: x.reshape(-1)[chosen("index", x, indices, dims)],
    "index_put": lambda x, value, indices, dims, accumulate: written(
        x, chosen("index_put", x, indices, dims), value, np.add if accumulate else None
    ),
    "scatter": scatter,
}  # fmt: skip


class PlainBackend(Backend):
    """numpy arrays as payloads."""

    name = "plain"
    ready = np.ndarray
    wrap = staticmethod(np.asarray)  # numpy gives scalars for rank 0
    scalar = staticmethod(scalar)

    def __init__(self) -> None:
        quiet = np.errstate(all="ignore")  # inf and NaN are answers, not faults
        made = {name: quiet(fn) for name, fn in KERNELS.items()}
        super().__init__({n: Kernel(lambda dtype, fn=fn: fn) for n, fn in made.items()}, NATIVE)

    def from_numpy(self, array: Array, copy: bool) -> Array:
        return np.array(array, order="C") if copy else array

    def to_numpy(self, payload: Array) -> Array:
        return np.broadcast_to(payload, payload.shape)  # a view that is read-only


class Plugin:
    """The entry point; importing it touches no device."""

    name = "plain"
    api_version = API_VERSION
    about = "every core operation in one file of numpy"

    def device_count(self) -> int:
        return 1

    def create(self, index: int) -> PlainBackend:
        return PlainBackend()


plugin = Plugin()
