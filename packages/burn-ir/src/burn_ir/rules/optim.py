"""Rules of updates and maps of many tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from burn_ir.entry import Spec
from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import float32

Specs = tuple[Spec, ...]


def update(*args: Any) -> Specs:
    """Rule of a multi-tensor update: every list but the gradients comes back, then the counts.

    Counts are what stands outside a list: the step, and a running product where there is one.
    """
    lists = [a for a in args if isinstance(a, tuple) and a and isinstance(a[0], Spec)]
    shapes = [tuple(s.shape for s in group) for group in lists]
    if any(s != shapes[0] for s in shapes):
        raise ShapeError("update", "every list matches the parameters", got=f"{shapes}")
    _floats("update", lists)
    return (*(s for i, group in enumerate(lists) if i != 1 for s in group), *_counts(args))


def _counts(args: tuple[Any, ...]) -> list[Spec]:
    # `skip` is the one bool.
    return [a for a in args if isinstance(a, Spec) and not a.dtype.is_bool]


def adafactor(
    params: Specs, grads: Specs, rows: Specs, columns: Specs, variances: Specs, step: Spec,
    skip: Spec | None, maximize: bool,
) -> Specs:  # fmt: skip
    """Rule of adafactor_step: either row and column means of matrices, or whole squares."""
    factored = bool(rows)
    want_rows = [(*p.shape[:-1], 1) for p in params] if factored else []
    want_columns = [(*p.shape[:-2], 1, *p.shape[-1:]) for p in params] if factored else []
    found = [[s.shape for s in g] for g in (grads, rows, columns, variances)]
    shapes = [p.shape for p in params]
    _floats("adafactor_step", (params, grads, rows, columns, variances))
    if found != [shapes, want_rows, want_columns, [] if factored else shapes]:
        raise ShapeError(
            "adafactor_step", "states hold the means of rows and of columns, or all squares",
            got=f"{found} for {shapes}",
        )  # fmt: skip
    if factored and any(p.rank < 2 for p in params):
        raise ShapeError("adafactor_step", "only matrices have rows and columns", got=f"{shapes}")
    return (*params, *rows, *columns, *variances, step)


def muon(
    params: Specs, grads: Specs, momenta: Specs, step: Spec, skip: Spec | None, nesterov: bool,
    match_rms: bool, steps: int,
) -> Specs:  # fmt: skip
    """Rule of muon_step: matrices only."""
    if any(p.rank != 2 for p in params):
        raise ShapeError("muon_step", "parameters are matrices", got=f"{[p.shape for p in params]}")
    if steps < 1:
        raise ArgumentError("muon_step", "at least one iteration", got=steps)
    return update(params, grads, momenta, step)


def _floats(name: str, lists: Iterable[Specs]) -> None:
    wrong = [s.dtype.name for group in lists for s in group if not s.dtype.is_float]
    if wrong:
        raise DTypeError(name, "parameters, gradients and states are floats", got=wrong[0])


def norm(xs: Specs) -> Spec:
    """Rule of norm_all: one number in the dtype that sums are kept in."""
    _several("norm_all", xs)
    dtype = xs[0].dtype
    return Spec((), float32 if dtype.bits == 16 else dtype)


def scale(xs: Specs, factor: Spec) -> Specs:
    """Rule of scale_all."""
    _several("scale_all", xs)
    _one("scale_all", factor)
    return xs


def paired(name: str) -> Any:
    """Return the rule of a map over pairs of tensors and one number."""

    def rule(xs: Specs, ys: Specs, factor: Spec) -> Specs:
        _several(name, xs)
        _one(name, factor)
        if [x.shape for x in xs] != [y.shape for y in ys]:
            raise ShapeError(
                name, "the tensors are pairs of one shape",
                got=f"{[x.shape for x in xs]} and {[y.shape for y in ys]}",
            )  # fmt: skip
        return xs

    return rule


def _several(name: str, xs: Specs) -> None:
    if not xs:
        raise ShapeError(name, "needs at least one tensor", got="none")
    if len({x.dtype for x in xs}) > 1:
        raise DTypeError(name, "tensors of one dtype", got=f"{[x.dtype.name for x in xs]}")


def _one(name: str, factor: Spec) -> None:
    if factor.shape:
        raise ShapeError(name, "the factor has rank 0", got=factor)
