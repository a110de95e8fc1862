"""What a generated function does when the straight path does not fit.

That is merging of contexts, Python scalars in odd places, promotion, lifting of integers, and the
words of errors.

None of this runs for two tensors of one context and one dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burn_backend import TENSOR_CLASS, TensorBase, check_scalar, plain_scalar
from burn_ir import Entry, Spec, check_dtype
from burn_std import (
    BurnError,
    DeviceError,
    DType,
    DTypeError,
    ExecutionError,
    ShapeError,
    promote_dtypes,
)
from burn_std.dtypes import bool_, int64

if TYPE_CHECKING:
    from burn_dispatch.context import Context


def weak_dtype(value: bool | int | float, other: DType, default_float: DType) -> DType:
    """Return the dtype in which a Python scalar meets a tensor of dtype `other`."""
    if isinstance(value, bool) or other.is_float:
        return other
    if isinstance(value, int):
        return int64 if other.is_bool else other
    return default_float


def common_dtype(op: str, specs: list[Spec]) -> DType:
    """Return the promoted dtype of tensors; rank 0 does not raise others inside its kind."""
    order = {"bool": 0, "uint": 1, "int": 1, "float": 2, "quant": 3}
    full = [s for s in specs if s.rank] or specs
    kind = max(order[s.dtype.kind] for s in full)
    ranked = full + [s for s in specs if not s.rank and order[s.dtype.kind] > kind]
    top = max(order[s.dtype.kind] for s in ranked)
    if top > kind:  # a rank-0 tensor of a higher kind decides alone
        ranked = [s for s in ranked if order[s.dtype.kind] == top]
    out = ranked[0].dtype
    for s in ranked[1:]:
        joined = promote_dtypes(out, s.dtype)
        if joined is None:
            raise DTypeError(
                op, "these dtypes have no common one", got=", ".join(map(repr, specs)),
                remedy="Convert one side with .to(dtype).",
            )  # fmt: skip
        out = joined
    return out


def merged(op: str, contexts: list[Context]) -> Context:
    """Return the context in which tensors of these contexts meet."""
    first = contexts[0]
    out = first
    for c in contexts[1:]:
        if c is out:
            continue
        if c.resource is not out.resource:
            raise DeviceError(
                op, "all tensors must be on one device", got=f"{out.device} and {c.device}",
                remedy="Move one with .to_device(device).",
            )  # fmt: skip
        out = out.join(op, c)
    return out


def rewrap(x: TensorBase, context: Context) -> TensorBase:
    """Return the same tensor seen from another context of its resource."""
    t = object.__new__(TENSOR_CLASS.cls)
    t.b = context
    t.v = x.v
    t.node = x.node
    return t


def slow_path(owner: Context, entry: Entry) -> Callable[..., Any]:
    """Return the function that mends the arguments of a call and calls again."""
    count = len(entry.inputs)
    base = owner.base
    is_product = entry.name in _PRODUCTS

    def slow(*args: Any) -> Any:
        inputs = list(args[:count])
        if not base.is_autodiff:  # most often: a plain tensor first, a tracked one after it
            for x in inputs:
                if isinstance(x, TensorBase) and x.b is not base and x.b.resource is base.resource:
                    return getattr(x.b, entry.name)(*args)
        if is_product and _is_packed(inputs[1]) and all(_is_ready(x, base) for x in inputs):
            return _packed_product(entry, owner, *inputs)  # serving asks it again and again
        tensors: list[TensorBase] = []
        for i, x in zip(entry.inputs, inputs, strict=True):
            if i.many:
                _check_list(entry, i.name, x)
                tensors += x
            elif isinstance(x, TensorBase):
                tensors.append(x)
            elif x is None and i.optional:
                continue
            elif not i.scalar or plain_scalar(x) is None:
                raise DTypeError(
                    entry.name, f"{i.name} must be a tensor{' or a number' if i.scalar else ''}",
                    got=f"{type(x).__name__}", remedy="Make one with burn.tensor(...).",
                )  # fmt: skip
        if not tensors:
            raise DTypeError(entry.name, "needs at least one tensor", got="numbers only")
        ctx = merged(entry.name, [base, *(t.b for t in tensors)])
        plain = ctx.resource.plain_context()
        changed = ctx is not base or any(t.b is not ctx and t.b is not plain for t in tensors)
        if changed:
            inputs = [_each(x, lambda t: t if t.b is ctx else rewrap(t, ctx)) for x in inputs]
        target = owner if ctx is base else ctx
        if is_product and _is_packed(inputs[1]):
            return _packed_product(entry, target, *inputs)
        opened = entry.accepts != "quant" and any(
            _has_quantized(x) and not i.quantized for i, x in zip(entry.inputs, inputs, strict=True)
        )
        if opened:
            inputs = [
                x if i.quantized else _each(x, lambda t: _dequantized(target, t))
                for i, x in zip(entry.inputs, inputs, strict=True)
            ]
        inputs, cast = _promote(entry, target, inputs)
        if not (changed or opened or cast):
            # Nothing to mend here, so the straight path must accept it or say why not.
            raise _refusal(entry, target, inputs, args[count:])
        return getattr(target, entry.name)(*inputs, *args[count:])

    return slow


def _dequantized(ctx: Context, t: TensorBase) -> TensorBase:
    """Return the floats that a quantised tensor stands for, another tensor as it is."""
    made: TensorBase = ctx.dequantize(t, ctx.default_float) if t.dtype.is_quantized else t
    return made


# Products by a matrix that may stay quantised, and whether it is the transpose.
_PRODUCTS = {"matmul": False, "linear": True}


def _is_packed(x: Any) -> bool:
    return isinstance(x, TensorBase) and x.dtype.is_quantized and len(x.shape) == 2


def _is_ready(x: Any, ctx: Context) -> bool:
    return x is None or (isinstance(x, TensorBase) and x.b is ctx)


def _packed_product(
    entry: Entry, ctx: Context, x: TensorBase, weight: TensorBase, bias: TensorBase | None = None
) -> Any:
    """Return a product by a quantised matrix, in the dtype that its floats would give."""
    transpose, kind = _PRODUCTS[entry.name], ctx.default_float
    given = [t if t is None else _dequantized(ctx, t) for t in (x, bias)]
    dtypes = [t.dtype for t in given if t is not None]
    if any(dtype is not kind for dtype in dtypes):
        specs = [Spec(t.shape, t.dtype) for t in given if t is not None]
        kind = common_dtype(entry.name, [Spec(weight.shape, kind), *specs])
        given = [t if t is None or t.dtype is kind else ctx.cast(t, kind) for t in given]
    try:
        return ctx.quantized_matmul(given[0], weight, given[1], transpose)
    except ShapeError:
        # What is refused is refused by the operation that was called.
        shapes = (x.shape, weight.shape, None if bias is None else bias.shape)
        specs_ = [None if shape is None else Spec(shape, kind) for shape in shapes]
        entry.infer(*specs_[: len(entry.inputs)])
        raise


def _check_list(entry: Entry, name: str, x: Any) -> None:
    if not isinstance(x, (list, tuple)) or not all(isinstance(t, TensorBase) for t in x):
        raise DTypeError(entry.name, f"{name} must be a list of tensors", got=type(x).__name__)


def _each(x: Any, fn: Callable[[TensorBase], TensorBase]) -> Any:
    if isinstance(x, TensorBase):
        return fn(x)
    return [fn(t) for t in x] if isinstance(x, (list, tuple)) else x


def _promote(entry: Entry, ctx: Context, inputs: list[Any]) -> tuple[list[Any], bool]:
    specs: list[Spec] = []
    numbers: list[bool | int | float] = []
    for i, x in zip(entry.inputs, inputs, strict=True):
        if not i.promoted or x is None:
            continue
        if i.many:
            specs += [Spec(t.shape, t.dtype) for t in x]
        elif isinstance(x, TensorBase):
            specs.append(Spec(x.shape, x.dtype))
        else:
            number = plain_scalar(x)
            if number is not None:
                numbers.append(number)
    if not specs:
        lead = entry.inputs[0] if entry.inputs else None
        if lead is None or inputs[0] is None or lead.many:
            return inputs, False
        if numbers:  # only scalars among the promoted, e.g. where(cond, 1, 0)
            target = _scalars_dtype(numbers, ctx)
            specs = [Spec((), target)]
        elif entry.lift and not inputs[0].dtype.is_float:
            return [ctx.cast(inputs[0], ctx.default_float), *inputs[1:]], True
        else:
            return inputs, False
    target = common_dtype(entry.name, specs)
    for number in numbers:
        weak = weak_dtype(number, target, ctx.default_float)
        target = weak if promote_dtypes(target, weak) is weak else target
    if entry.lift and not target.is_float and not target.is_quantized:
        target = ctx.default_float
    cast = False
    out: list[Any] = []
    for i, given in zip(entry.inputs, inputs, strict=True):
        made: Any = given
        if i.promoted and given is not None:
            number = None if isinstance(given, (TensorBase, list, tuple)) else plain_scalar(given)
            if number is not None:
                made = ctx.scalar(number, target)
                cast = True
            elif any(t.dtype is not target for t in (given if i.many else (given,))):
                made = _each(given, lambda t: t if t.dtype is target else ctx.cast(t, target))
                cast = True
        out.append(made)
    return out, cast


def _scalars_dtype(numbers: list[bool | int | float], ctx: Context) -> DType:
    if any(isinstance(n, float) for n in numbers):
        return ctx.default_float
    return bool_ if all(isinstance(n, bool) for n in numbers) else ctx.default_int


def _spec(x: Any) -> Any:
    if isinstance(x, TensorBase):
        return Spec(x.shape, x.dtype)
    return tuple(_spec(t) for t in x) if isinstance(x, (list, tuple)) else x


def _each_spec(x: Any, dtype: DType) -> Any:
    """Return specs with another dtype."""
    if isinstance(x, Spec):
        return Spec(x.shape, dtype)
    return tuple(_each_spec(t, dtype) for t in x) if isinstance(x, tuple) else x


def _refusal(
    entry: Entry, ctx: Context, inputs: list[Any], attrs: tuple[Any, ...]
) -> BaseException:
    shaped = [a for a, d in zip(attrs, entry.attrs, strict=True) if d.kind != "scalar"]
    try:
        entry.infer(*(_spec(x) for x in inputs), *shaped)
    except BurnError as error:
        return error.with_traceback(None)
    return ExecutionError(
        entry.name, "the call was refused although its rule accepts it", got=inputs
    )


def _failure(entry: Entry, cause: Exception) -> BaseException:
    """Return the error of a kernel that failed although nothing is wrong with the arguments."""
    error: BurnError | None = too_large(entry.name, cause)
    if error is None:
        text = f"{type(cause).__name__}: {cause}"
        error = ExecutionError(entry.name, "the kernel failed", got=text)
    error.__cause__ = cause
    return error


def too_large(op: str, cause: Exception) -> BurnError | None:
    """Return the typed error of what failed for its size alone, None for other failures.

    Args:
        op: what the error names.
        cause: what was raised.
    """
    text = f"{type(cause).__name__}: {cause}"
    # numpy's words for extents whose product leaves the address space.
    if isinstance(cause, (MemoryError, OverflowError)) or (
        isinstance(cause, ValueError) and ("too big" in text or "Maximum allowed" in text)
    ):
        return ExecutionError(
            op, "the result does not fit in memory, or a number in 64 bits", got=text,
            remedy="Use smaller extents.",
        )  # fmt: skip
    return None


def failure_path(owner: Context, entry: Entry, again: Callable[..., Any]) -> Callable[..., Any]:
    """Return what follows a kernel that raised.

    That is the call once more with quantised inputs dequantised, or a typed error.
    """
    count = len(entry.inputs)
    scalars = [
        (k, a.name)
        for k, a in enumerate(entry.attrs, count)
        if a.kind == "scalar" and a.name != "key"
    ]

    def broken(args: tuple[Any, ...]) -> None:
        """Raise what the rules say against the arguments, if anything."""
        shaped = [a for a, d in zip(args[count:], entry.attrs, strict=True) if d.kind != "scalar"]
        inputs = [_spec(x) for x in args[:count]]
        lead = next((x for x in inputs if isinstance(x, Spec)), None)
        if lead is not None and entry.lift and not lead.dtype.is_float:
            # Integers are computed as floats, so only their shapes can be at fault.
            lead = Spec(lead.shape, owner.default_float)
            inputs = [
                _each_spec(x, lead.dtype) if i.promoted or not k else x
                for k, (i, x) in enumerate(zip(entry.inputs, inputs, strict=True))
            ]
        if lead is not None:  # a scalar in the second place stands for a rank-0 tensor
            check_dtype(entry.name, entry.accepts, lead)
            inputs = [
                Spec((), lead.dtype) if i.scalar and plain_scalar(x) is not None else x
                for i, x in zip(entry.inputs, inputs, strict=True)
            ]
        entry.infer(*inputs, *shaped)
        for k, name in scalars:
            check_scalar(entry.name, name, args[k])

    def explain(cause: Exception, *args: Any) -> BaseException:
        # Layers check in orders of their own: a look-up by dtype knows no shape, a shape rule no
        # dtype. Asked again in one order, one call is one error on every device. A tensor in the
        # place of a number makes a kernel call an operation, which fails in its turn.
        asked = (DTypeError, ShapeError, ExecutionError)
        if isinstance(cause, BurnError) and not isinstance(cause, asked):
            return cause.with_traceback(None)
        try:
            broken(args)
        except BurnError as error:
            return error.with_traceback(None)
        except Exception as error:  # noqa: BLE001 - reported as the cause
            cause = cause if isinstance(cause, BurnError) else error
        if isinstance(cause, BurnError):
            return cause.with_traceback(None)
        return _failure(entry, cause)

    def failed(cause: Exception, *args: Any) -> Any:
        if entry.accepts != "quant" and any(
            _has_quantized(x) and not i.quantized
            for i, x in zip(entry.inputs, args[:count], strict=True)
        ):
            return again(*args)
        raise explain(cause, *args)

    return failed


def _has_quantized(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_has_quantized, x))
    return isinstance(x, TensorBase) and x.dtype.is_quantized
