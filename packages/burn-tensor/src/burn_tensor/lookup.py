"""Elements by index or mask: gather, scatter and their relatives as methods."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_dispatch import plain_scalar
from burn_ir import broadcast_shapes
from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import bool_, float64
from burn_tensor.arguments import Number, as_number, need_tensor, one_dim, stored
from burn_tensor.guard import guard_methods
from burn_tensor.indexing import put, spread_masks
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn_tensor.tensor import Tensor

# PyTorch's names of reductions to the catalogue's modes.
_MODES = {
    "sum": "add",
    "add": "add",
    "prod": "multiply",
    "multiply": "multiply",
    "amin": "amin",
    "amax": "amax",
}


@guard_methods()
class LookupMethods(Methods):
    """Reading and replacing elements at positions given by tensors.

    Indices out of range raise where they are known; duplicates all count, and where one must win
    it is the last.
    """

    __slots__ = ()

    def gather(self, dim: int, index: Tensor) -> Tensor:
        """Return x at `index` along a dim.

        out[i][j][k] = x[index[i][j][k]][j][k] for dim 0

        Args:
            dim: the dim.
            index: integers, of x's rank and off the dim not larger.

        Gradient: g added at the index.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).gather(1, burn.tensor([[1], [0]]))
            tensor([[2],
                    [3]])
        """
        return self.b.gather(self, index, one_dim("gather", dim, len(self.v.shape)))

    def take_along_dim(self, indices: Tensor, dim: int | None = None) -> Tensor:
        """Return x at `indices` along a dim, the other dims broadcast; as numpy's take_along_axis.

        Gradient: g added at the indices.

        Example:
            >>> x = burn.tensor([[3, 1, 2]])
            >>> x.take_along_dim(x.argsort(1), dim=1)
            tensor([[1, 2, 3]])
        """
        need_tensor("take_along_dim", "indices", indices)
        if dim is None:
            return self.b.gather(as_tensor(self).ravel(), indices.ravel(), 0)
        rank = len(self.shape)
        d = one_dim("take_along_dim", dim, rank)
        if len(indices.shape) != rank:
            raise ShapeError(
                "take_along_dim", "indices need x's rank", got=f"{len(indices.shape)} for {rank}"
            )
        pairs = list(zip(self.shape, indices.shape, strict=True))
        wide = tuple([n if i == d else max(n, m) for i, (n, m) in enumerate(pairs)])
        deep = tuple(
            [m if i == d else w for i, (w, (_, m)) in enumerate(zip(wide, pairs, strict=True))]
        )
        return self.b.gather(self.b.expand(self, wide), self.b.expand(indices, deep), d)

    def take(self, index: Tensor) -> Tensor:
        """Return elements of the flattened x, in the shape of `index`.

        Gradient: g added at the index.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).take(burn.tensor([0, 3]))
            tensor([1, 4])
        """
        return self.b.index(self.b.reshape(self, (prod(self.shape),)), [index], (0,))

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        """Return slices of x along a dim.

        Args:
            dim: the dim.
            index: integers, at most one dim.

        Gradient: g added at the index.

        Example:
            >>> burn.tensor([10, 20, 30]).index_select(0, burn.tensor([2, 0]))
            tensor([30, 10])
        """
        return self.b.index_select(self, index, one_dim("index_select", dim, len(self.v.shape)))

    def index_add(self, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        """Return x with alpha times slices of `source` added along a dim.

        Args:
            dim: the dim.
            index: where each slice goes; duplicates add up.
            source: x's shape, with len(index) along the dim.
            alpha: factor of the slices.

        Gradient: g for x, alpha g at the index for source.

        Example:
            >>> burn.zeros(3).index_add(0, burn.tensor([0, 0]), burn.tensor([1.0, 2.0]))
            tensor([3., 0., 0.])
        """
        d = one_dim("index_add", dim, len(self.v.shape))
        return self.b.index_add(self, index, source, d, as_number("index_add", "alpha", alpha))

    def index_copy(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """Return x with slices along a dim replaced by those of `source`; the last of equals wins.

        Gradient: g off the index for x, g at it for source.

        Example:
            >>> burn.zeros(3).index_copy(0, burn.tensor([2]), burn.tensor([5.0]))
            tensor([0., 0., 5.])
        """
        return self._index_assign("index_copy", dim, index, source)

    def index_fill(self, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
        """Return x with slices along a dim replaced by a value.

        Gradient: g off the index for x; summed at it for a tensor value.

        Example:
            >>> burn.zeros(3).index_fill(0, burn.tensor([1]), 4)
            tensor([0., 4., 0.])
        """
        return self._index_assign("index_fill", dim, index, value)

    def _index_assign(self, op: str, dim: int, index: Tensor, source: Any) -> Tensor:
        b = self.b
        need_tensor(op, "index", index)
        d = one_dim(op, dim, len(self.shape))
        if not self.shape:
            return b.reshape(as_tensor(self).reshape(1)._index_assign(op, 0, index, source), ())
        value = value_like(self, source)
        flat = index if index.shape else b.reshape(index, (1,))
        if value.shape and op == "index_copy":
            # The indexed dim comes where index_put's window has it: in place.
            want = (*self.shape[:d], *flat.shape, *self.shape[d + 1 :])
            if value.shape != want:
                raise ShapeError(
                    op, "source needs x's shape with len(index) along dim", got=list(value.shape)
                )
        return b.index_put(self, value, [flat], (d,), False)

    def index_put(
        self,
        indices: Sequence[Tensor | None],
        values: Tensor | Number,
        accumulate: bool = False,
    ) -> Tensor:
        """Return x with values at integer or boolean tensors of the leading dims.

        Args:
            indices: one tensor per dim; None leaves a dim whole; booleans stand for where they
                are true.
            values: broadcasts to x[indices].
            accumulate: add instead of replacing; duplicates then all count, else the last wins.

        Gradient: g for x (zero at what was replaced), g at the indices for values.

        Example:
            >>> burn.zeros(3).index_put((burn.tensor([0, 0]),), burn.tensor(1.0), accumulate=True)
            tensor([2., 0., 0.])
        """
        arrays, dims = spread_masks(as_tensor(self), list(indices))
        return put(as_tensor(self), value_like(self, values), arrays, dims, accumulate)

    def scatter(
        self,
        dim: int,
        index: Tensor,
        src: Tensor | Number | None = None,
        *,
        value: Number | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """Return x with `src` at `index` along a dim.

        out[index[i][j][k]][j][k] = src[i][j][k] for dim 0; the last of equal indices wins

        Args:
            dim: the dim.
            index: integers; fits inside src and, off the dim, inside x.
            src: a tensor or one number.
            value: the number, by PyTorch's other name.
            reduce: None replaces; `add` and `multiply` combine with x.

        Gradient: g off the index for x, g at it for src.

        Example:
            >>> burn.zeros(3).scatter(0, burn.tensor([2]), burn.tensor([7.0]))
            tensor([0., 0., 7.])
        """
        d = one_dim("scatter", dim, len(self.v.shape))
        mode = "assign"
        if reduce is not None:
            if reduce not in ("add", "multiply"):
                raise ArgumentError(
                    "scatter", "reduce is None, 'add' or 'multiply'", got=repr(reduce)
                )
            mode = reduce
        given = value if src is None else src
        if not isinstance(given, TensorBase):
            if given is None:
                raise DTypeError("scatter", "needs src or value", got="neither")
            need_tensor("scatter", "index", index)
            given = self.b.expand(value_like(self, given), index.shape)
        return self.b.scatter(self, index, given, d, mode)

    def scatter_add(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Return x with `src` added at `index` along a dim; duplicates add up.

        Args:
            dim: the dim.
            index: integers; fits inside src and, off the dim, inside x.
            src: what is added.

        Gradient: g for x, g at the index for src.

        Example:
            >>> burn.zeros(2).scatter_add(0, burn.tensor([1, 1]), burn.ones(2))
            tensor([0., 2.])
        """
        return self.b.scatter(
            self, index, src, one_dim("scatter_add", dim, len(self.v.shape)), "add"
        )

    def scatter_reduce(
        self, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """Return x combined with `src` at `index` along a dim.

        Args:
            dim: the dim.
            index: integers; fits inside src and, off the dim, inside x.
            src: what is combined.
            reduce: `sum`, `prod`, `mean`, `amax` or `amin`.
            include_self: x's own element takes part where anything arrives.

        Gradient: defined for x and src.

        Example:
            >>> src = burn.tensor([2.0, 5.0])
            >>> burn.zeros(2).scatter_reduce(0, burn.tensor([1, 1]), src, "amax")
            tensor([0., 5.])
        """
        b = self.b
        d = one_dim("scatter_reduce", dim, len(self.v.shape))
        if reduce not in (*_MODES, "mean"):
            raise ArgumentError(
                "scatter_reduce", "reduce is sum, prod, mean, amax or amin", got=repr(reduce)
            )
        base = as_tensor(self)
        if not include_self:
            neutral = _neutral(self, reduce)
            start = b.expand(b.scalar(neutral, self.dtype), index.shape)
            base = b.scatter(self, index, start, d, "assign")
        if reduce != "mean":
            return b.scatter(base, index, src, d, _MODES[reduce])
        total = b.scatter(base, index, src, d, "add")
        one = b.expand(b.scalar(1, self.dtype), index.shape)
        zero = b.full(self.dtype, self.shape, 0)
        hits = b.scatter(zero, index, one, d, "add")
        count = b.add(hits, 1) if include_self else b.clamp(hits, 1, None)
        return b.div(total, count) if self.dtype.is_float else b.floor_divide(total, count)

    # ---- masks --------------------------------------------------------------------------------

    def masked_select(self, mask: Tensor) -> Tensor:
        """Return the elements of x where `mask`, in one dim; both broadcast.

        The size of the result depends on data, so the mask is read.

        Args:
            mask: which elements to keep.

        Gradient: g where mask, else zero.

        Example:
            >>> burn.tensor([1, 2, 3]).masked_select(burn.tensor([True, False, True]))
            tensor([1, 3])
        """
        need_tensor("masked_select", "mask", mask)
        if not mask.dtype.is_bool:
            raise DTypeError("masked_select", "mask must be bool", got=mask.dtype.name)
        b = self.b
        x: Any = self
        if mask.shape != self.shape:
            shape = broadcast_shapes("masked_select", self.shape, mask.shape)
            x, mask = b.expand(self, shape), b.expand(mask, shape)
        return b.masked_select(x, mask)

    def masked_fill(self, mask: Tensor, value: Tensor | Number) -> Tensor:
        """Return x with `value` where `mask`; the value takes x's dtype.

        Args:
            mask: bool, broadcasts with x.
            value: a number or a rank-0 tensor.

        Gradient: g off the mask for x, summed over it for a tensor value.

        Example:
            >>> burn.tensor([1, 2]).masked_fill(burn.tensor([True, False]), 0)
            tensor([0, 2])
        """
        return self.b.where(mask, value_like(self, value), self)

    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """Return x with the elements of `source`, in order, where `mask`.

        Gradient: g off the mask for x, g on it for source.

        Example:
            >>> mask = burn.tensor([True, False, True])
            >>> burn.zeros(3).masked_scatter(mask, burn.tensor([1.0, 2.0]))
            tensor([1., 0., 2.])
        """
        b = self.b
        wide = b.reshape(b.expand(mask, self.shape), (prod(self.shape),))
        line = b.reshape(source, (prod(source.shape),))
        at = b.select(b.nonzero(wide), 1, 0)
        count = at.shape[0]
        if count > line.shape[0]:
            raise ShapeError(
                "masked_scatter", "source has too few elements", got=f"{line.shape[0]} for {count}"
            )
        flat = b.reshape(self, (prod(self.shape),))
        put_in = b.index_put(flat, value_like(self, line[:count]), [at], (0,), False)
        return b.reshape(put_in, self.shape)

    def where(self, condition: Tensor, other: Tensor | Number) -> Tensor:
        """Return x where `condition`, else `other`; all three broadcast.

        Args:
            condition: bool.
            other: a tensor or a number.

        Gradient: g where the condition for x, g elsewhere for other.

        Example:
            >>> burn.tensor([1, 2]).where(burn.tensor([True, False]), 0)
            tensor([1, 0])
        """
        return self.b.where(condition, self, stored("where", other, self.dtype))

    def fill(self, value: Tensor | Number) -> Tensor:
        """Return a tensor like x with one value everywhere.

        Gradient: zero for x, the sum of g for a tensor value.

        Example:
            >>> burn.zeros(2).fill(3)
            tensor([3., 3.])
        """
        b = self.b
        return b.where(b.scalar(True, bool_), value_like(self, value), self)

    def nonzero(self, as_tuple: bool = False) -> Any:
        """Return the positions of elements that are not zero, as int64.

        The size of the result depends on data, so x is read.

        Args:
            as_tuple: one tensor per dim instead of rows of coordinates.

        Shapes:
            returns: [N, rank], or rank times [N]

        Example:
            >>> burn.tensor([0, 5, 6]).nonzero()
            tensor([[1],
                    [2]])
        """
        if not as_tuple:
            return self.b.nonzero(self)
        x = as_tensor(self) if self.shape else self.b.reshape(self, (1,))
        return self.b.nonzero(x).unbind(1)

    def argwhere(self) -> Tensor:
        """Return the coordinates of elements that are not zero, one row each.

        Example:
            >>> burn.tensor([0, 5]).argwhere()
            tensor([[1]])
        """
        return self.b.nonzero(self)


def value_like(x: TensorBase, value: Any) -> Tensor:
    """Return a value in x's dtype, as a tensor; lists and arrays are taken too."""
    b, dtype = x.b, x.dtype
    out: Tensor
    if not isinstance(value, TensorBase):
        number = plain_scalar(value)
        if number is None:
            from burn_tensor.creation import host_array

            value = b.tensor_from_numpy(host_array("assign", value, None, b))
        elif isinstance(number, float) and not dtype.is_float:
            value = b.scalar(number, float64)
        else:
            out = b.scalar(stored("assign", number, dtype), dtype)
            return out
    out = value if value.dtype is x.dtype else value.b.cast(value, x.dtype)
    return out


def _neutral(x: TensorBase, reduce: str) -> Number:
    """Return the value that changes nothing under a reduction in x's dtype."""
    if reduce in ("sum", "mean", "add"):
        return 0
    if reduce in ("prod", "multiply"):
        return 1
    dtype = x.dtype
    if dtype.is_float:
        return float("-inf") if reduce == "amax" else float("inf")
    if dtype.is_bool:
        return reduce == "amin"
    low = -(2 ** (dtype.bits - 1)) if dtype.is_signed else 0
    high = 2 ** (dtype.bits - 1 if dtype.is_signed else dtype.bits) - 1
    return low if reduce == "amax" else high
