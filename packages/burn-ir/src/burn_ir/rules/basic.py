"""Rules of maps, reductions, views, creation and products."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

from burn_ir.entry import Spec
from burn_std import ArgumentError, DType, DTypeError, IndexRangeError, ShapeError
from burn_std.dtypes import bool_, int64

Shape = tuple[int, ...]

_ACCEPTS: dict[str, Callable[[DType], bool]] = {
    "any": lambda d: not d.is_quantized,
    "numeric": lambda d: d.is_float or d.is_int,
    "float": lambda d: d.is_float,
    "int": lambda d: d.is_int,
    "bits": lambda d: d.is_int or d.is_bool,
    "bool": lambda d: d.is_bool,
    "quant": lambda d: d.is_quantized,
    "all": lambda d: True,
}


def _words(accepts: str) -> str:
    words = {"bits": "int or bool", "numeric": "int or float", "any": "unquantised"}
    return words.get(accepts, accepts)


def check_dtype(op: str, accepts: str, *specs: Spec | None) -> None:
    """Raise DTypeError when a spec's dtype is outside the class `accepts`."""
    for s in specs:
        if s is not None and not _ACCEPTS[accepts](s.dtype):
            raise DTypeError(
                op, f"dtype must be {_words(accepts)}", got=s,
                remedy="Convert with .to(dtype)." if accepts != "quant" else None,
            )  # fmt: skip


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """Return the numpy broadcast of the shapes; ShapeError names them."""
    rank = max(map(len, shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        pad = rank - len(shape)
        for i, n in enumerate(shape):
            if n != 1:
                if out[pad + i] not in (1, n):
                    raise ShapeError(
                        op, "shapes must broadcast (equal, or 1, from the last dim)",
                        got=" and ".join(str(list(s)) for s in shapes),
                    )  # fmt: skip
                out[pad + i] = n
    return tuple(out)


def dim_index(op: str, dim: int, rank: int) -> int:
    """Return a dim as a non-negative int; rank 0 counts as rank 1 for -1 and 0."""
    n = max(rank, 1)
    if not -n <= dim < n:
        raise IndexRangeError(
            op, f"dim must be in [{-n}, {n - 1}] for rank {rank}", got=f"dim {dim}"
        )
    return dim % n


def unary(name: str, accepts: str) -> Callable[..., Spec]:
    """Rule of a map of one tensor that keeps its dtype."""

    def rule(x: Spec, *attrs: Any) -> Spec:
        check_dtype(name, accepts, x)
        return x

    return rule


def predicate(name: str, accepts: str = "any") -> Callable[..., Spec]:
    """Rule of a map of tensors to bool."""

    def rule(*args: Any) -> Spec:
        specs = [a for a in args if isinstance(a, Spec)]
        check_dtype(name, accepts, *specs)
        return Spec(broadcast_shapes(name, *(s.shape for s in specs)), bool_)

    return rule


def broadcast(name: str, accepts: str) -> Callable[..., Spec]:
    """Rule of a map of several promoted tensors."""

    def rule(*args: Any) -> Spec:
        specs = [a for a in args if isinstance(a, Spec)]
        check_dtype(name, accepts, *specs)
        return Spec(broadcast_shapes(name, *(s.shape for s in specs)), specs[0].dtype)

    return rule


def subtract(x: Spec, y: Spec) -> Spec:
    """Rule of sub: like any arithmetic, but bool minus bool has no meaning."""
    if x.dtype.is_bool:
        raise DTypeError(
            "sub", "bool minus bool is not defined", got=f"{x} and {y}",
            remedy="Use ^ (xor), or convert one side to an integer dtype.",
        )  # fmt: skip
    return broadcast("sub", "any")(x, y)


def where(cond: Spec, x: Spec, y: Spec) -> Spec:
    """Rule of where: cond is bool, all three broadcast."""
    check_dtype("where", "bool", cond)
    return Spec(broadcast_shapes("where", cond.shape, x.shape, y.shape), x.dtype)


def cast(x: Spec, dtype: DType) -> Spec:
    """Rule of cast."""
    if x.dtype.is_quantized:
        raise DTypeError(
            "cast", "a quantised tensor has no plain elements", got=x, remedy="Use dequantize."
        )
    if dtype.is_quantized:
        raise DTypeError(
            "cast", "a quantised dtype needs scales", got=dtype, remedy="Use quantize."
        )
    return Spec(x.shape, dtype)


def reduced_shape(op: str, shape: Shape, dims: Shape | None, keepdim: bool) -> Shape:
    """Return the shape after a reduction; `dims` None means all."""
    if dims is None:
        return (1,) * len(shape) if keepdim else ()
    gone = {dim_index(op, d, len(shape)) for d in dims}
    if len(gone) != len(dims):
        raise ArgumentError(op, "a dim appears twice", got=f"dims {dims}")
    if keepdim:
        return tuple(1 if i in gone else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in gone)


def _count(shape: Shape, dims: Shape | None) -> int:
    return prod(shape) if dims is None else prod(shape[d] for d in dims if shape)


def check_target(op: str, accepts: str, dtype: DType) -> None:
    """Raise DTypeError when the dtype asked for is outside the class `accepts`."""
    if not _ACCEPTS[accepts](dtype):
        raise DTypeError(op, f"the result's dtype must be {_words(accepts)}", got=dtype)


def reduction(
    name: str, accepts: str, out: str = "same", *, nonempty: bool = False
) -> Callable[..., Spec]:
    """Rule of a reduction over dims; `out` is same, acc (ints give int64), bool or int64."""

    def rule(x: Spec, dims: Shape | None, keepdim: bool, *more: Any) -> Spec:
        check_dtype(name, accepts, x)
        shape = reduced_shape(name, x.shape, dims, keepdim)
        if nonempty and 0 in x.shape and _count(x.shape, dims) == 0:
            raise ShapeError(
                name, "the reduced dims must not be empty", got=f"{x}, dims {dims}",
                remedy="An empty axis has no extreme value.",
            )  # fmt: skip
        dtype = more[0] if more and isinstance(more[0], DType) else None
        if dtype is not None:
            check_target(name, accepts, dtype)
        else:
            dtype = x.dtype
            if out == "bool":
                dtype = x.dtype if x.dtype.name == "uint8" else bool_
            elif out == "int64" or (out == "acc" and not x.dtype.is_float):
                dtype = int64
        return Spec(shape, dtype)

    return rule


_norm = reduction("vector_norm", "float")
_extreme = reduction("vector_norm", "float", nonempty=True)


def vector_norm(x: Spec, dims: Shape | None, keepdim: bool, ord: float) -> Spec:
    """Rule of a norm; that of an infinite order is an extreme, which nothing does not have."""
    return (_extreme if ord in (inf, -inf) else _norm)(x, dims, keepdim)


def dim_pair(name: str, accepts: str) -> Callable[..., tuple[Spec, Spec]]:
    """Rule of a reduction of one dim to (values, indices)."""

    def rule(x: Spec, dim: int, keepdim: bool) -> tuple[Spec, Spec]:
        check_dtype(name, accepts, x)
        dim_index(name, dim, x.rank)
        shape = reduced_shape(name, x.shape, (dim,) if x.shape else None, keepdim)
        if x.shape and x.shape[dim] == 0:
            raise ShapeError(name, "the reduced dim must not be empty", got=f"{x}, dim {dim}")
        return Spec(shape, x.dtype), Spec(shape, int64)

    return rule


def arg_reduction(name: str) -> Callable[..., Spec]:
    """Rule of argmax and argmin; `dim` None runs over the flattened tensor."""

    def rule(x: Spec, dim: int | None, keepdim: bool) -> Spec:
        check_dtype(name, "numeric", x)
        if dim is not None:
            dim_index(name, dim, x.rank)
        dims = None if dim is None or not x.shape else (dim,)
        shape = reduced_shape(name, x.shape, dims, keepdim)
        if _count(x.shape, dims) == 0:
            raise ShapeError(name, "the reduced dim must not be empty", got=f"{x}, dim {dim}")
        return Spec(shape, int64)

    return rule


def scan(name: str, out: str = "acc") -> Callable[..., Spec]:
    """Rule of cumsum and cumprod."""

    def rule(x: Spec, dim: int, dtype: DType | None) -> Spec:
        check_dtype(name, "any", x)
        dim_index(name, dim, x.rank)
        if dtype is not None:
            check_target(name, "any", dtype)
        return Spec(x.shape, dtype or (x.dtype if x.dtype.is_float else int64))

    return rule


def scan_float(name: str) -> Callable[..., Spec]:
    """Rule of a scan of floats that keeps the dtype."""

    def rule(x: Spec, dim: int) -> Spec:
        check_dtype(name, "float", x)
        dim_index(name, dim, x.rank)
        return x

    return rule


def scan_pair(name: str) -> Callable[..., tuple[Spec, Spec]]:
    """Rule of cummax and cummin: (values, indices)."""

    def rule(x: Spec, dim: int) -> tuple[Spec, Spec]:
        check_dtype(name, "any", x)
        dim_index(name, dim, x.rank)
        return x, Spec(x.shape, int64)

    return rule


def matmul(x: Spec, y: Spec) -> Spec:
    """Rule of matmul: numpy's, for ranks 1 and up."""
    check_dtype("matmul", "numeric", x, y)
    if not x.shape or not y.shape:
        raise ShapeError("matmul", "both operands need at least one dim", got=f"{x} and {y}")
    a = x.shape if x.rank > 1 else (1, *x.shape)
    b = y.shape if y.rank > 1 else (*y.shape, 1)
    if a[-1] != b[-2]:
        at = -2 if y.rank > 1 else -1
        raise ShapeError(
            "matmul", "inner sizes must match",
            got=f"lhs {x} (dim -1 = {a[-1]}) and rhs {y} (dim {at} = {b[-2]})",
            remedy="Transpose one side?",
        )  # fmt: skip
    shape = (*broadcast_shapes("matmul", a[:-2], b[:-2]), a[-2], b[-1])
    if x.rank == 1:
        shape = (*shape[:-2], shape[-1])
    if y.rank == 1:
        shape = shape[:-1]
    return Spec(shape, x.dtype)


def linear(x: Spec, weight: Spec, bias: Spec | None) -> Spec:
    """Rule of linear: x [..., in], weight [out, in] or [in], bias [out]."""
    check_dtype("linear", "numeric", x, weight, bias)
    if weight.rank not in (1, 2) or not x.shape or x.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            "linear", "x [..., in] and weight [out, in] (or [in]) must share `in`",
            got=f"x {x} and weight {weight}",
        )  # fmt: skip
    shape = (*x.shape[:-1], *weight.shape[:-1])
    if bias is not None and broadcast_shapes("linear", shape, bias.shape) != shape:
        raise ShapeError(
            "linear", "bias must broadcast to the output",
            got=f"bias {bias}, output {list(shape)}",
        )  # fmt: skip
    return Spec(shape, x.dtype)


# ---- creation ----------------------------------------------------------------------------------


def created(name: str, accepts: str = "any") -> Callable[..., Spec]:
    """Rule of creation from a dtype and a shape."""

    def rule(dtype: DType, shape: Shape) -> Spec:
        check_target(name, accepts, dtype)
        if any(n < 0 for n in shape):
            raise ShapeError(name, "extents are not negative", got=list(shape))
        return Spec(shape, dtype)

    return rule


def counted(name: str) -> Callable[..., Spec]:
    """Rule of arange and randperm: the number of elements is already known."""

    def rule(dtype: DType, count: int) -> Spec:
        check_target(name, "numeric", dtype)
        if count < 0:
            raise ShapeError(name, "the number of elements is not negative", got=count)
        return Spec((count,), dtype)

    return rule


def gelu(x: Spec, approximate: str) -> Spec:
    """Rule of gelu: approximate is none or tanh."""
    check_dtype("gelu", "float", x)
    if approximate not in ("none", "tanh"):
        raise ArgumentError("gelu", "approximate is none or tanh", got=repr(approximate))
    return x


def polygamma(x: Spec, n: int) -> Spec:
    """Rule of polygamma: n counts derivatives of digamma, from 1."""
    check_dtype("polygamma", "float", x)
    if n.__class__ is not int or not 1 <= n <= 100:
        raise ArgumentError("polygamma", "n is a whole number from 1 to 100", got=repr(n))
    return x
