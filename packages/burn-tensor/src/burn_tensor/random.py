"""Random tensors: Philox counters, so a value depends on seed, call and position only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_dispatch import Device, seed_all
from burn_ir import broadcast_shapes
from burn_std import ArgumentError, DType, DTypeError, ShapeError
from burn_std.dtypes import int64
from burn_tensor.arguments import Number, as_int, flat, need_tensor
from burn_tensor.creation import context_of

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


def manual_seed(seed: int) -> None:
    """Restart the random streams of every device, of those used later too.

    Args:
        seed: any integer; 64 bits of it count.

    Example:
        >>> burn.manual_seed(1)
        >>> a = burn.rand(3)
        >>> burn.manual_seed(1)
        >>> a.equal(burn.rand(3))
        True
    """
    seed_all(as_int("manual_seed", "seed", seed))


def rand(*size: Any, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Return uniform random floats in [0, 1).

    Args:
        size: extents, as ints or one tuple.
        dtype: a float dtype; else the default float.
        device: where they are made.

    Example:
        >>> burn.rand(2, 3).shape
        (2, 3)
    """
    return uniform(flat("rand", "size", size), dtype=dtype, device=device)


def randn(*size: Any, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Return normal random floats of mean 0 and standard deviation 1.

    Args:
        size: extents, as ints or one tuple.
        dtype: a float dtype; else the default float.
        device: where they are made.

    Example:
        >>> burn.randn(2, 3).shape
        (2, 3)
    """
    b = context_of(device)
    chosen = _float("randn", dtype, b)
    return b.normal(chosen, flat("randn", "size", size), 0.0, 1.0, b.next_key())


def _float(op: str, dtype: DType | None, b: Any) -> DType:
    out: DType = dtype or b.default_float
    if not out.is_float:
        raise DTypeError(
            op, "dtype must be float", got=out.name, remedy="Use burn.randint for integers."
        )
    return out


def uniform(
    size: Any,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return uniform random floats in [low, high).

    Args:
        size: extents, a tuple or an int.
        low: left end.
        high: right end, not among them.
        dtype: a float dtype; else the default float.
        device: where they are made.

    Example:
        >>> burn.uniform((2,), 5, 6).floor()
        tensor([5., 5.])
    """
    b = context_of(device)
    chosen = _float("uniform", dtype, b)
    return b.uniform(
        chosen, flat("uniform", "size", (size,)), float(low), float(high), b.next_key()
    )


def normal(
    mean: float | Tensor = 0.0,
    std: float | Tensor = 1.0,
    size: Any = None,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return normal random floats.

    Args:
        mean: their mean, or one per element.
        std: their standard deviation, or one per element.
        size: extents; may be left out when mean or std is a tensor.
        dtype: a float dtype; else that of the tensor, or the default float.
        device: where they are made; else that of the tensor.

    Raises:
        ArgumentError: std is negative, or there is no size.

    Gradient: g for mean, g times the draw for std.

    Example:
        >>> burn.normal(10.0, 0.0, (2,))
        tensor([10., 10.])
    """
    tensors = [t for t in (mean, std) if isinstance(t, TensorBase)]
    if not tensors:
        if size is None:
            raise ArgumentError("normal", "needs a size", got="None")
        if float(std) < 0:
            raise ArgumentError("normal", "std is not negative", got=std)
        b = context_of(device)
        return b.normal(
            _float("normal", dtype, b),
            flat("normal", "size", (size,)),
            float(mean),
            float(std),
            b.next_key(),
        )
    b = tensors[0].b if device is None else context_of(device)
    shape = broadcast_shapes("normal", *(t.shape for t in tensors))
    if size is not None:
        shape = flat("normal", "size", (size,))
    draw = b.normal(dtype or tensors[0].dtype, shape, 0.0, 1.0, b.next_key())
    return b.add(b.mul(draw, std), mean)


def randint(
    low: int,
    high: int | Any = None,
    size: Any = None,
    *,
    dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return uniform random integers in [low, high).

    Args:
        low: the smallest; `randint(high, size)` starts at 0.
        high: the end, not among them.
        size: extents.
        dtype: an integer dtype; else int64.
        device: where they are made.

    Raises:
        ArgumentError: low is not below high.

    Example:
        >>> burn.randint(3, 4, (2,))
        tensor([3, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    b = context_of(device)
    first, last = as_int("randint", "low", low), as_int("randint", "high", high)
    if first >= last:
        raise ArgumentError("randint", "low is below high", got=f"[{first}, {last})")
    return b.randint(dtype or int64, flat("randint", "size", (size,)), first, last, b.next_key())


def randperm(n: int, *, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """Return the integers below n in random order.

    Args:
        n: how many numbers.
        dtype: an integer dtype; None means the default.
        device: where; None means the default device.

    Example:
        >>> burn.randperm(4).sort().values
        tensor([0, 1, 2, 3])
    """
    b = context_of(device)
    count = as_int("randperm", "n", n)
    if count < 0:
        raise ArgumentError("randperm", "n is not negative", got=count)
    return b.randperm(dtype or int64, count, b.next_key())


def bernoulli(input: Tensor, p: float | None = None) -> Tensor:
    """Return 1 with the probability that each element says, else 0.

    Args:
        input: probabilities; with `p` only its shape, dtype and device count.
        p: one probability for all.

    Example:
        >>> burn.bernoulli(burn.tensor([0.0, 1.0]))
        tensor([0., 1.])
    """
    need_tensor("bernoulli", "input", input)
    b = input.b
    if p is not None and not 0 <= p <= 1:
        raise ArgumentError("bernoulli", "p is a probability", got=p)
    chance = input if p is None else b.full(input.dtype, input.shape, float(p))
    return b.bernoulli(chance, b.next_key())


def multinomial(input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """Return indices drawn with the given weights, per row.

    Args:
        input: weights that are not negative, [N] or [B, N]; they need not sum to 1.
        num_samples: how many to draw per row.
        replacement: an index may come again; else each at most once.

    Raises:
        ArgumentError: more samples than elements, without replacement.

    Example:
        >>> burn.multinomial(burn.tensor([0.0, 1.0]), 3, replacement=True)
        tensor([1, 1, 1])
    """
    need_tensor("multinomial", "input", input)
    if len(input.shape) not in (1, 2):
        raise ShapeError("multinomial", "input is [N] or [B, N]", got=list(input.shape))
    count = as_int("multinomial", "num_samples", num_samples)
    n = input.shape[-1]
    b = input.b
    if not replacement:
        if count > n:
            raise ArgumentError(
                "multinomial", "at most as many samples as elements", got=f"{count} of {n}"
            )
        # The largest of log(weight) + Gumbel noise are a draw without replacement.
        u = b.uniform(input.dtype, input.shape, 0.0, 1.0, b.next_key())
        noise = b.neg(b.log(b.neg(b.log(b.clamp(u, 1e-30, None)))))
        keys = b.where(b.gt(input, 0), b.add(b.log(input), noise), float("-inf"))
        return keys.topk(count, -1).indices
    total = input.cumsum(-1)
    ends = total.narrow(-1, n - 1, 1)
    u = b.uniform(input.dtype, (*input.shape[:-1], count), 0.0, 1.0, b.next_key())
    found = b.searchsorted(total, b.mul(u, ends), True)
    return b.clamp(found, None, n - 1)


def rand_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Return uniform random floats in [0, 1) in the shape and dtype of another tensor.

    Example:
        >>> burn.rand_like(burn.zeros(2)).shape
        (2,)
    """
    return uniform(input.shape, dtype=dtype or input.dtype, device=device or input.b.device)


def randn_like(
    input: Tensor, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Return normal random floats in the shape and dtype of another tensor.

    Example:
        >>> burn.randn_like(burn.zeros(2)).shape
        (2,)
    """
    return randn(input.shape, dtype=dtype or input.dtype, device=device or input.b.device)


def randint_like(
    input: Tensor, low: Number, high: Number | None = None, *, dtype: DType | None = None
) -> Tensor:
    """Return uniform random integers in [low, high) in the shape and dtype of another tensor.

    Example:
        >>> burn.randint_like(burn.zeros(2), 1, 2)
        tensor([1., 1.])
    """
    first, last = (0, low) if high is None else (low, high)
    drawn = randint(int(first), int(last), input.shape, device=input.b.device)
    return drawn.to(dtype or input.dtype)
