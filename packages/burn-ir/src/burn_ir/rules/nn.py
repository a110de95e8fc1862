"""Rules of convolution, pooling, resampling, normalisation and attention."""

from __future__ import annotations

from math import prod
from typing import Any

from burn_ir.entry import Spec
from burn_ir.rules.basic import Shape, broadcast_shapes, check_dtype, dim_index
from burn_std import ArgumentError, DType, DTypeError, ShapeError
from burn_std.dtypes import float32, int64

Ints = tuple[int, ...]


def _positive(op: str, **groups: Ints) -> None:
    for name, values in groups.items():
        if any(v < (0 if "padding" in name else 1) for v in values):
            raise ArgumentError(
                op,
                f"{name} must be {'non-negative' if 'padding' in name else 'positive'}",
                got=values,
            )


def conv(
    x: Spec,
    weight: Spec,
    bias: Spec | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Spec:
    """Rule of conv: x [N, C, *L], weight [O, C/groups, *K]."""
    check_dtype("conv", "numeric", x, weight, bias)
    n = len(stride)
    if x.rank != n + 2 or weight.rank != n + 2:
        raise ShapeError(
            "conv", f"input and weight need {n + 2} dims", got=f"input {x}, weight {weight}"
        )
    _positive("conv", stride=stride, dilation=dilation, padding=padding, groups=(groups,))
    out_c, in_c = weight.shape[:2]
    if x.shape[1] != in_c * groups or out_c % groups:
        raise ShapeError(
            "conv", "input channels = weight.shape[1] * groups, output channels divide by groups",
            got=f"input {x}, weight {weight}, groups {groups}",
        )  # fmt: skip
    if bias is not None and bias.shape != (out_c,):
        raise ShapeError("conv", "bias is [out channels]", got=bias)
    if 0 in weight.shape[2:]:
        raise ShapeError("conv", "the kernel must not be empty", got=f"weight {weight}")
    sizes = []
    for length, k, s, p, d in zip(
        x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True
    ):
        span = d * (k - 1) + 1
        if length + 2 * p < span:
            raise ShapeError(
                "conv",
                "the padded input must not be smaller than the kernel",
                got=f"input {x}, weight {weight}, padding {padding}, dilation {dilation}",
            )
        sizes.append((length + 2 * p - span) // s + 1)
    return Spec((x.shape[0], out_c, *sizes), x.dtype)


def conv_transpose(
    x: Spec,
    weight: Spec,
    bias: Spec | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> Spec:
    """Rule of conv_transpose: x [N, C, *L], weight [C, O/groups, *K]."""
    check_dtype("conv_transpose", "numeric", x, weight, bias)
    n = len(stride)
    if x.rank != n + 2 or weight.rank != n + 2:
        raise ShapeError(
            "conv_transpose",
            f"input and weight need {n + 2} dims",
            got=f"input {x}, weight {weight}",
        )
    _positive(
        "conv_transpose",
        stride=stride,
        dilation=dilation,
        padding=padding,
        output_padding=output_padding,
        groups=(groups,),
    )
    if x.shape[1] != weight.shape[0] or x.shape[1] % groups:
        raise ShapeError(
            "conv_transpose",
            "input channels = weight.shape[0], divisible by groups",
            got=f"input {x}, weight {weight}, groups {groups}",
        )
    if any(o >= max(s, d) for o, s, d in zip(output_padding, stride, dilation, strict=True)):
        raise ArgumentError(
            "conv_transpose",
            "output_padding must be smaller than stride or dilation",
            got=output_padding,
        )
    out_c = weight.shape[1] * groups
    if bias is not None and bias.shape != (out_c,):
        raise ShapeError("conv_transpose", "bias is [out channels]", got=bias)
    sizes = [
        (length - 1) * s - 2 * p + d * (k - 1) + o + 1
        for length, k, s, p, d, o in zip(
            x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding, strict=True
        )
    ]
    if any(v < 0 for v in sizes):
        raise ShapeError(
            "conv_transpose",
            "the output extents must not be negative",
            got=f"input {x}, weight {weight}, padding {padding}",
        )
    return Spec((x.shape[0], out_c, *sizes), x.dtype)


def _same_conv(
    op: str,
    g: Spec,
    x: Spec,
    weight: Spec,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> None:
    """Raise ShapeError when g is not what conv of x and weight gives."""
    want = conv(x, weight, None, stride, padding, dilation, groups).shape
    if g.shape != want:
        raise ShapeError(op, f"g must have conv's shape {list(want)}", got=g)


def conv_input_grad(
    g: Spec, weight: Spec, stride: Ints, padding: Ints, dilation: Ints, groups: int, shape: Shape
) -> Spec:
    """Rule of conv_input_grad: gradient of conv with respect to an input of `shape`."""
    _same_conv(
        "conv_input_grad", g, Spec(shape, g.dtype), weight, stride, padding, dilation, groups
    )
    return Spec(shape, g.dtype)


def conv_weight_grad(
    g: Spec, x: Spec, stride: Ints, padding: Ints, dilation: Ints, groups: int, shape: Shape
) -> Spec:
    """Rule of conv_weight_grad: gradient of conv with respect to a weight of `shape`."""
    _same_conv("conv_weight_grad", g, x, Spec(shape, g.dtype), stride, padding, dilation, groups)
    return Spec(shape, g.dtype)


def pooled_size(op: str, length: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    """Return the pooled extent; in ceil mode a window must start inside input plus left pad."""
    span = d * (k - 1) + 1
    free = length + 2 * p - span
    if free < 0 and not (ceil and free + s > 0):
        raise ShapeError(
            op,
            "the padded input must not be smaller than the window",
            got=f"extent {length}, window {k}, padding {p}, dilation {d}",
        )
    out = (free + (s - 1 if ceil else 0)) // s + 1
    if ceil and (out - 1) * s >= length + p:
        out -= 1
    if out < 1:
        raise ShapeError(
            op,
            "the pooled extent must be positive",
            got=f"extent {length}, window {k}, padding {p}",
        )
    return out


def _pool(
    op: str, x: Spec, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool
) -> Shape:
    n = len(kernel)
    if x.rank != n + 2:
        raise ShapeError(op, f"input needs {n + 2} dims", got=x)
    if 0 in x.shape[1:]:
        raise ShapeError(op, "only the batch dim may be empty", got=x)
    _positive(op, kernel_size=kernel, stride=stride, padding=padding, dilation=dilation)
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise ArgumentError(
            op,
            "padding must be at most half the window",
            got=f"padding {padding}, kernel_size {kernel}",
        )
    sizes = [
        pooled_size(op, *a, ceil)
        for a in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    ]
    return (*x.shape[:2], *sizes)


def max_pool(
    x: Spec, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool
) -> tuple[Spec, Spec]:
    """Rule of max_pool: (values, flat indices into each plane)."""
    check_dtype("max_pool", "numeric", x)
    shape = _pool("max_pool", x, kernel, stride, padding, dilation, ceil)
    return Spec(shape, x.dtype), Spec(shape, int64)


def avg_pool(
    x: Spec,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Spec:
    """Rule of avg_pool."""
    check_dtype("avg_pool", "numeric", x)
    if divisor is not None and not (hasattr(divisor, "__index__") and divisor):
        rule = "divisor_override is a whole number other than 0"
        raise ArgumentError("avg_pool", rule, got=divisor)
    return Spec(_pool("avg_pool", x, kernel, stride, padding, (1,) * len(kernel), ceil), x.dtype)


def to_shape(*args: Any) -> Spec:
    """Rule of backward pieces whose last argument is the target shape."""
    g, shape = args[0], args[-1]
    if g.rank != len(shape) or g.shape[:2] != shape[:2] or any(n < 0 for n in shape):
        raise ShapeError(
            "backward", "g and the shape share batch, channels and rank", got=f"{g}, {list(shape)}"
        )
    return Spec(args[-1], args[0].dtype)


def adaptive_pool(op: str, pair: bool = False) -> Any:
    """Rule of adaptive_avg_pool and adaptive_max_pool: output_size per spatial dim."""

    def rule(x: Spec, size: Shape) -> Any:
        check_dtype(op, "numeric", x)
        if x.rank != len(size) + 2:
            raise ShapeError(op, f"input needs {len(size) + 2} dims", got=x)
        if 0 in x.shape[1:] or any(s < 0 for s in size):
            raise ShapeError(
                op,
                "only the batch dim may be empty and sizes are not negative",
                got=f"{x}, output_size {size}",
            )
        out = Spec((*x.shape[:2], *size), x.dtype)
        return (out, Spec(out.shape, int64)) if pair else out

    return rule


def interpolate(
    x: Spec, mode: str, align_corners: bool, size: Shape, scales: tuple[float | None, ...]
) -> Spec:
    """Rule of interpolate: x [N, C, *L] to [N, C, *size]."""
    if mode not in ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear"):
        raise ArgumentError(
            "interpolate",
            "mode is nearest, nearest-exact, linear, bilinear, bicubic or trilinear",
            got=repr(mode),
        )
    n = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode, x.rank - 2)
    if x.rank != n + 2 or len(size) != n or n < 1:
        raise ShapeError(
            "interpolate", f"mode {mode} needs {n + 2} dims and {n} sizes", got=f"{x}, size {size}"
        )
    if 0 in x.shape[1:] or any(s < 1 for s in size):
        raise ShapeError(
            "interpolate", "extents and sizes must be positive", got=f"{x}, size {size}"
        )
    return Spec((*x.shape[:2], *size), x.dtype)


def grid_sample(x: Spec, grid: Spec, mode: str, padding: str, align_corners: bool) -> Spec:
    """Rule of grid_sample: x [N, C, *L] (2 or 3 spatial dims), grid [N, *S, dims]."""
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and x.rank != 4):
        raise ArgumentError(
            "grid_sample",
            "mode is bilinear, nearest, or (for images) bicubic",
            got=f"{mode!r} for {x}",
        )
    if padding not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            "grid_sample", "padding is zeros, border or reflection", got=repr(padding)
        )
    n = x.rank - 2
    if n not in (2, 3) or grid.rank != x.rank or grid.shape[-1] != n or grid.shape[0] != x.shape[0]:
        raise ShapeError(
            "grid_sample",
            "input [N, C, *L] and grid [N, *S, dims] must agree",
            got=f"{x}, grid {grid}",
        )
    if 0 in x.shape[2:]:
        raise ShapeError("grid_sample", "spatial extents must be positive", got=x)
    return Spec((*x.shape[:2], *grid.shape[1:-1]), x.dtype)


def unfold(x: Spec, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Spec:
    """Rule of unfold (im2col): [N, C, H, W] to [N, C*prod(K), L]."""
    if x.rank != 4 or 0 in x.shape[1:]:
        raise ShapeError("unfold", "needs [N, C, H, W] with only N possibly empty", got=x)
    _positive("unfold", kernel_size=kernel, dilation=dilation, padding=padding, stride=stride)
    blocks = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(x.shape[2:], kernel, dilation, padding, stride, strict=True)
    ]
    if any(b < 1 for b in blocks):
        raise ShapeError(
            "unfold",
            "the padded input must not be smaller than the window",
            got=f"{x}, kernel_size {kernel}",
        )
    return Spec((x.shape[0], x.shape[1] * prod(kernel), prod(blocks)), x.dtype)


def fold(x: Spec, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, size: Shape) -> Spec:
    """Rule of fold (col2im): [N, C*prod(K), L] to [N, C, *size], overlaps add up."""
    _positive("fold", kernel_size=kernel, dilation=dilation, padding=padding, stride=stride)
    blocks = prod(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    )
    if x.rank != 3 or x.shape[1] % prod(kernel) or x.shape[2] != blocks:
        raise ShapeError("fold", f"needs [N, C*{prod(kernel)}, {blocks}]", got=x)
    return Spec((x.shape[0], x.shape[1] // prod(kernel), *size), x.dtype)


def softmax(op: str) -> Any:
    """Rule of softmax and log_softmax: integers need a dtype."""

    def rule(x: Spec, dim: int, dtype: DType | None) -> Spec:
        dim_index(op, dim, x.rank)
        out = dtype or x.dtype
        if not out.is_float:
            raise DTypeError(op, "dtype must be float", got=x, remedy="Pass dtype=burn.float32.")
        return Spec(x.shape, out)

    return rule


def normalized(op: str) -> Any:
    """Rule of layer_norm and rms_norm: over the last `dims` dims; weight and bias have them."""

    def rule(x: Spec, *rest: Any) -> Any:
        params, dims = [r for r in rest if r is None or isinstance(r, Spec)], rest[-1]
        check_dtype(op, "float", x)
        if not 1 <= dims <= x.rank:
            raise ShapeError(
                op, "normalises over 1 to rank last dims", got=f"{x}, normalised dims {dims}"
            )
        tail = x.shape[x.rank - dims :]
        for p in params:
            if p is not None and p.shape != tail:
                raise ShapeError(
                    op, f"weight and bias have the normalised shape {list(tail)}", got=p
                )
        stats = Spec((*x.shape[: x.rank - dims], *(1,) * dims), x.dtype)
        if x.dtype.bits == 16:
            stats = Spec(stats.shape, float32)
        return (x, stats, stats) if op == "layer_norm" else (x, stats)

    return rule


def group_norm(
    x: Spec, weight: Spec | None, bias: Spec | None, groups: int
) -> tuple[Spec, Spec, Spec]:
    """Rule of group_norm: x [N, C, *], (out, mean, rstd)."""
    check_dtype("group_norm", "float", x)
    if x.rank < 2 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(
            "group_norm", "channels must divide by groups", got=f"{x}, groups {groups}"
        )
    for p in (weight, bias):
        if p is not None and p.shape != (x.shape[1],):
            raise ShapeError("group_norm", "weight and bias are [channels]", got=p)
    stats = Spec((x.shape[0], groups), float32 if x.dtype.bits == 16 else x.dtype)
    return x, stats, stats


def batch_norm(
    x: Spec,
    weight: Spec | None,
    bias: Spec | None,
    mean: Spec | None,
    var: Spec | None,
    training: bool,
) -> tuple[Spec, Spec, Spec]:
    """Rule of batch_norm: x [N, C, *]; (out, mean used, biased variance used)."""
    check_dtype("batch_norm", "float", x)
    if x.rank < 2 and x.shape != (0,):
        raise ShapeError("batch_norm", "needs [N, C, ...]", got=x)
    channels = x.shape[1] if x.rank > 1 else 0
    for p in (weight, bias, mean, var):
        if p is not None and p.shape != (channels,):
            raise ShapeError(
                "batch_norm", "weight, bias and statistics are [channels]", got=f"{p} for input {x}"
            )
    if not training and (mean is None or var is None):
        raise ArgumentError("batch_norm", "running statistics are needed outside training")
    stats = Spec((channels,), float32 if x.dtype.bits == 16 else x.dtype)
    return x, stats, stats


def batch_norm_backward(
    g: Spec, x: Spec, weight: Spec | None, mean: Spec, var: Spec, training: bool
) -> tuple[Spec, Spec, Spec]:
    """Rule of batch_norm_backward: (x, weight, bias), the last two in the dtype of statistics."""
    out, stats, _ = batch_norm(x, weight, None, mean, var, training)
    if g.shape != out.shape or g.dtype is not out.dtype:
        raise ShapeError("batch_norm_backward", "g is like the output", got=f"{g} for {out}")
    return x, stats, stats


def attention(
    q: Spec, k: Spec, v: Spec, mask: Spec | None, causal: bool, gqa: bool
) -> tuple[Spec, Spec]:
    """Rule of attention: q [..., L, E], k [..., S, E], v [..., S, V] to [..., L, V] and [..., L].

    The sums of a row are log2(sum(exp(scores))), in float32 for halves, and inf for a row that sees
    nothing: so a weight is 2^(score log2(e) - sums) in every row.
    """
    check_dtype("attention", "float", q, k, v)
    if min(q.rank, k.rank, v.rank) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            "attention", "q [..., L, E], k [..., S, E], v [..., S, V]", got=f"q {q}, k {k}, v {v}"
        )
    heads = q.shape[:-2]
    if gqa:
        if (
            q.rank < 3
            or k.rank < 3
            or k.shape[-3] == 0
            or q.shape[-3] % k.shape[-3]
            or k.shape[-3] != v.shape[-3]
        ):
            raise ShapeError("attention", "query heads divide by key heads", got=f"q {q}, k {k}")
    else:
        heads = broadcast_shapes("attention", q.shape[:-2], k.shape[:-2], v.shape[:-2])
    if mask is not None:
        if not (mask.dtype.is_bool or mask.dtype.is_float):
            raise DTypeError("attention", "the mask is bool or float", got=mask)
        scores = (*heads, q.shape[-2], k.shape[-2])
        if broadcast_shapes("attention", mask.shape, scores) != scores:
            raise ShapeError("attention", f"the mask must broadcast to {list(scores)}", got=mask)
    rows = (*heads, q.shape[-2])
    kept = float32 if q.dtype.bits == 16 else q.dtype
    return Spec((*rows, v.shape[-1]), q.dtype), Spec(rows, kept)


def attention_backward(
    g: Spec, q: Spec, k: Spec, v: Spec, mask: Spec | None, out: Spec, sums: Spec,
    causal: bool, gqa: bool,
) -> tuple[Spec, ...]:  # fmt: skip
    """Rule of attention_backward: gradients of q, k, v and the float mask's scores."""
    made, kept = attention(q, k, v, mask, causal, gqa)
    for name, given, wanted in (("g", g, made), ("out", out, made), ("sums", sums, kept)):
        if given.shape != wanted.shape:
            shape = list(wanted.shape)
            raise ShapeError("attention_backward", f"{name} has the shape {shape}", got=given)
        if given.dtype is not wanted.dtype:
            raise DTypeError("attention_backward", f"{name} is {wanted.dtype.name}", got=given)
    return q, k, v, Spec((*g.shape[:-1], k.shape[-2]), q.dtype)


def quantize(x: Spec, scale: Spec | None, zero: Spec | None, dtype: DType) -> Spec:
    """Rule of quantize: to a quantised dtype; scale None = from the range of x."""
    check_dtype("quantize", "float", x, scale)
    if not dtype.is_quantized:
        raise DTypeError(
            "quantize",
            "dtype is a quantised scheme",
            got=dtype,
            remedy="Make one with burn.quantized(8).",
        )
    return Spec(x.shape, dtype)


def dequantize(q: Spec, dtype: DType) -> Spec:
    """Rule of dequantize."""
    check_dtype("dequantize", "quant", q)
    return Spec(q.shape, dtype)


def quantized_matmul(x: Spec, weight: Spec, bias: Spec | None, transpose: bool) -> Spec:
    """Rule of quantized_matmul: x [..., in], weight [in, out] or [out, in], bias [out]."""
    check_dtype("quantized_matmul", "float", x, bias)
    check_dtype("quantized_matmul", "quant", weight)
    if weight.rank != 2 or not x.shape or x.shape[-1] != weight.shape[1 if transpose else 0]:
        raise ShapeError(
            "quantized_matmul",
            f"x [..., in] and weight {'[out, in]' if transpose else '[in, out]'} must share `in`",
            got=f"x {x} and weight {weight}",
        )
    shape = (*x.shape[:-1], weight.shape[0 if transpose else 1])
    if bias is not None and broadcast_shapes("quantized_matmul", shape, bias.shape) != shape:
        raise ShapeError(
            "quantized_matmul",
            "bias must broadcast to the output",
            got=f"bias {bias}, output {list(shape)}",
        )
    return Spec(shape, x.dtype)


def pool_gather(x: Spec, indices: Spec) -> Spec:
    """Rule of pool_gather: x [N, C, *L] at flat indices [N, C, *S]."""
    if x.rank < 3 or indices.rank < 3 or x.shape[:2] != indices.shape[:2]:
        raise ShapeError("pool_gather", "x and indices share [N, C]", got=f"{x} and {indices}")
    return Spec(indices.shape, x.dtype)


def grid_sample_backward(
    g: Spec, x: Spec, grid: Spec, mode: str, padding: str, align_corners: bool
) -> tuple[Spec, Spec]:
    """Rule of grid_sample_backward: the gradients have the shapes of x and grid."""
    return x, grid
