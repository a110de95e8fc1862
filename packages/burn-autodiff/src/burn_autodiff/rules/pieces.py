"""Pieces that many rules are built from: zeros, masks, reduced dims put back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from burn_autodiff.rules.table import Call, Tensor
from burn_ir import CATALOG
from burn_std import AutodiffError

Shape = tuple[int, ...]


def zeros(c: Call, shape: Shape, like: Tensor) -> Tensor:
    """Return zeros of `shape` in the dtype of `like`."""
    return c.ops.full(like.dtype, shape, 0)


def zeros_like(c: Call, i: int) -> Tensor:
    """Return zeros like input `i`: for operations that are flat wherever they are smooth."""
    return c.ops.full(c.dtypes[i], c.shapes[i], 0)


def refuse(c: Call, op: str, i: int, name: str) -> None:
    """Raise AutodiffError when a gradient is wanted of an input that has none."""
    if c.need[i]:
        raise AutodiffError(
            op, f"no gradient is defined for {name}", got=f"{name} that is tracked",
            remedy=f"Detach {name}.",
        )  # fmt: skip


def kernel_or_parts(c: Call, name: str) -> Callable[..., Any]:
    """Return an operation that has no rule, or its parts where a higher order is wanted."""
    if not c.create_graph:
        return getattr(c.ops, name)  # type: ignore[no-any-return]
    parts = CATALOG[name].decompose
    assert parts is not None  # noqa: S101 - the entry is derived
    return partial(parts, c.ops)


def size_of(shape: Shape, dims: Shape | None) -> int:
    """Return how many elements a reduction over `dims` (None: all) folds into one."""
    return prod(shape) if dims is None else prod(shape[d] for d in dims if shape)


def restore(c: Call, g: Tensor, dims: Shape | None, keepdim: bool, shape: Shape) -> Tensor:
    """Return `g` of a reduction with its reduced dims back as extents of 1."""
    if keepdim or not shape:
        return g
    gone = range(len(shape)) if dims is None else sorted(dims)
    return c.ops.unsqueeze(g, tuple(gone))


def spread(c: Call, g: Tensor, dims: Shape | None, keepdim: bool, shape: Shape) -> Tensor:
    """Return `g` of a reduction repeated over the dims that were reduced."""
    back = restore(c, g, dims, keepdim, shape)
    return back if back.shape == shape else c.ops.expand(back, shape)


def sum_to(c: Call, g: Tensor, shape: Shape) -> Tensor:
    """Return `g` summed over the dims along which `shape` was broadcast: the adjoint of expand."""
    if g.shape == shape:
        return g
    lead = len(g.shape) - len(shape)
    if g.shape[lead:] == shape:  # a bias
        return c.ops.sum(g, tuple(range(lead)), False, None)
    dims = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1 != g.shape[lead + i]))
    out = c.ops.sum(g, dims, True, None) if dims else g
    return c.ops.reshape(out, shape)


def total(c: Call, t: Tensor, dims: Shape, keepdim: bool = True) -> Tensor:
    """Return the sum over `dims` in the dtype of `t`."""
    return c.ops.sum(t, dims, keepdim, None) if dims else t


def keep_where(c: Call, cond: Tensor, g: Tensor) -> Tensor:
    """Return `g` where `cond`, exact zeros elsewhere even where g is inf or NaN."""
    return c.ops.where(cond, g, c.ops.scalar(0.0, g.dtype))


def drop_where(c: Call, cond: Tensor, g: Tensor) -> Tensor:
    """Return exact zeros where `cond`, else `g`; a NaN compared is not dropped."""
    return c.ops.where(cond, c.ops.scalar(0.0, g.dtype), g)


def one_minus(c: Call, t: Tensor) -> Tensor:
    """Return 1 - t."""
    return c.ops.sub(c.ops.scalar(1.0, t.dtype), t)


def transpose(c: Call, t: Tensor) -> Tensor:
    """Return `t` with its last two dims swapped."""
    n = len(t.shape)
    return c.ops.permute(t, (*range(n - 2), n - 1, n - 2))


def at(c: Call, t: Tensor, dim: int, start: int, stop: int) -> Tensor:
    """Return `t[..., start:stop, ...]` along one dim."""
    n = len(t.shape)
    starts = tuple(start if d == dim else 0 for d in range(n))
    stops = tuple(stop if d == dim else e for d, e in enumerate(t.shape))
    return c.ops.slice(t, (1,) * n, starts, stops)


def fit(c: Call, t: Tensor, shape: Shape) -> Tensor:
    """Return `t` cropped or padded with zeros at the end of every dim to `shape`."""
    if t.shape == shape:
        return t
    pads = tuple((0, n - e) for n, e in zip(shape, t.shape, strict=True))
    return c.ops.pad(t, "constant", pads, 0.0)


def add_some(c: Call, *terms: Tensor | None) -> Any:
    """Return the sum of the terms that are there, None when there is none."""
    there = [t for t in terms if t is not None]
    if not there:
        return None
    out = there[0]
    for t in there[1:]:
        out = c.ops.add(out, t)
    return out
