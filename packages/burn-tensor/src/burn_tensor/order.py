"""Sorting and what is found by it: topk, quantiles, unique values, histograms."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import int64
from burn_tensor.arguments import Number, as_int, one_dim
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor
from burn_tensor.named import ValuesIndices

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods()
class OrderMethods(Methods):
    """NaN is the largest value; sorts are stable, so equal values keep their order."""

    __slots__ = ()

    def sort(
        self,
        dim: int = -1,
        descending: bool = False,
        stable: bool = True,  # noqa: ARG002 - leave that is not needed
    ) -> ValuesIndices:
        """Return (values, indices) in order along a dim.

        Args:
            dim: the dim to sort.
            descending: largest first.
            stable: False gives leave to exchange equal values, which is never made use of.

        Gradient: g at the indices.

        Example:
            >>> burn.tensor([3, 1, 2]).sort()
            ValuesIndices(values=tensor([1, 2, 3]), indices=tensor([1, 2, 0]))
        """
        d = one_dim("sort", dim, len(self.v.shape))
        return ValuesIndices(*self.b.sort(self, d, bool(descending)))

    def argsort(
        self,
        dim: int = -1,
        descending: bool = False,
        stable: bool = True,  # noqa: ARG002 - leave that is not needed
    ) -> Tensor:
        """Return the indices that sort x along a dim, as int64.

        Args:
            dim: the dim to sort.
            descending: largest first.
            stable: False gives leave to exchange equal values, which is never made use of.

        Example:
            >>> burn.tensor([3, 1, 2]).argsort()
            tensor([1, 2, 0])
        """
        return self.sort(dim, descending).indices

    def msort(self) -> Tensor:
        """Return x sorted along its first dim.

        Gradient: g at the indices.

        Example:
            >>> burn.tensor([3, 1, 2]).msort()
            tensor([1, 2, 3])
        """
        return self.sort(0).values

    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
    ) -> ValuesIndices:
        """Return (values, indices) of the k largest or smallest elements along a dim, in order.

        Args:
            k: how many.
            dim: the dim to look along.
            largest: the largest, else the smallest.
            sorted: False gives leave for any order, which is never made use of.

        Raises:
            ShapeError: k is more than the extent.

        Gradient: g at the indices.

        Example:
            >>> burn.tensor([3, 1, 2]).topk(2).values
            tensor([3, 2])
        """
        d = one_dim("topk", dim, len(self.v.shape))
        return ValuesIndices(
            *self.b.topk(self, d, bool(largest), bool(sorted), as_int("topk", "k", k))
        )

    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
        """Return the k-th smallest element along a dim and its index; k counts from 1.

        Args:
            k: which.
            dim: the dim to look along.
            keepdim: keep it with extent 1.

        Raises:
            ShapeError: k is not in [1, extent].

        Gradient: g at the index.

        Example:
            >>> burn.tensor([3, 1, 2]).kthvalue(2).values
            tensor(2)
        """
        x = as_tensor(self) if self.shape else as_tensor(self).reshape(1)
        d = one_dim("kthvalue", dim, len(x.shape))
        if not 1 <= k <= x.shape[d]:
            raise ShapeError("kthvalue", "1 <= k <= extent", got=f"k {k}, extent {x.shape[d]}")
        values, indices = (t.narrow(d, k - 1, 1) for t in x.sort(d))
        if not self.shape:
            return ValuesIndices(values.reshape(()), indices.reshape(()))
        if keepdim:
            return ValuesIndices(values, indices)
        return ValuesIndices(values.squeeze(d), indices.squeeze(d))

    def quantile(
        self,
        q: float | Tensor,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        """Return quantiles along a dim; a NaN makes its row NaN.

        The quantile q of n sorted values is at position q (n - 1).

        Args:
            q: in [0, 1]; a rank-1 tensor gives one slice each, in a new first dim.
            dim: the dim to look along; None flattens x.
            keepdim: keep it with extent 1.
            interpolation: between two values: linear, lower, higher, nearest or midpoint.

        DTypes: floats.

        Gradient: g to the values used, weighted.

        Example:
            >>> burn.tensor([0.0, 1.0, 2.0, 3.0]).quantile(0.5)
            tensor(1.5000)
        """
        b = self.b
        if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
            raise ArgumentError(
                "quantile", "interpolation is linear, lower, higher, nearest or midpoint",
                got=repr(interpolation),
            )  # fmt: skip
        x = as_tensor(self).ravel() if dim is None else as_tensor(self)
        if not x.dtype.is_float:
            raise DTypeError("quantile", "dtype must be float", got=x.dtype.name)
        d = 0 if dim is None else one_dim("quantile", dim, len(x.shape))
        x = x.movedim(d, -1) if x.shape else x.reshape(1)
        n = x.shape[-1]
        if n == 0:
            raise ShapeError("quantile", "the reduced dim must not be empty", got=list(self.shape))
        wanted = q if isinstance(q, TensorBase) else b.scalar(float(q), x.dtype)
        place = b.mul(b.reshape(wanted, (prod(wanted.shape),)), n - 1)
        if interpolation in ("lower", "higher", "nearest"):
            place = {"lower": b.floor(place), "higher": b.ceil(place)}.get(
                interpolation, b.round(place, 0)
            )
        low = b.floor(place)
        ordered = x.sort(-1).values
        below = ordered.index_select(-1, b.cast(low, int64))
        above = ordered.index_select(-1, b.cast(b.ceil(place), int64))
        weight = b.sub(place, low)
        if interpolation == "midpoint":
            weight = b.where(b.eq(weight, 0), 0.0, 0.5 * weight.new_ones(()))
        out = b.lerp(below, above, b.cast(weight, x.dtype))
        spoilt = b.any(b.isnan(x), (len(x.shape) - 1,), True)
        out = b.where(spoilt, float("nan"), out).movedim(-1, 0)
        if keepdim:
            shape = [1] * len(self.shape) if dim is None else list(self.shape)
            if dim is not None and shape:
                shape[d] = 1
            out = b.reshape(out, (out.shape[0], *shape))
        return out if len(wanted.shape) else b.select(out, 0, 0)

    def unique(
        self,
        sorted: bool = True,  # noqa: ARG002 - leave that is not needed
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: None = None,
    ) -> Any:
        """Return the distinct elements in order; the size depends on data, so x is read.

        Args:
            sorted: False gives leave for any order, which is never made use of.
            return_inverse: also where each element of x went.
            return_counts: also how often each occurs.
            dim: only None: slices are not compared.

        Example:
            >>> burn.tensor([2, 1, 2]).unique(return_counts=True)
            (tensor([1, 2]), tensor([1, 2]))
        """
        if dim is not None:
            raise ArgumentError(
                "unique", "compares elements, not slices", got=f"dim {dim}", remedy="Leave dim out."
            )
        out = self.b.unique(self, bool(return_inverse), bool(return_counts))
        return out[0] if len(out) == 1 else tuple(out)

    def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        """Return how often each value 0, 1, ... occurs; the largest is read on the host.

        Args:
            weights: what each occurrence counts instead of 1.
            minlength: at least so many bins.

        Raises:
            ArgumentError: a value is negative.

        Example:
            >>> burn.tensor([0, 2, 2]).bincount()
            tensor([1, 0, 2])
        """
        size = as_int("bincount", "minlength", minlength)
        if size < 0:
            raise ArgumentError("bincount", "minlength is not negative", got=size)
        if self.dtype.is_int and as_tensor(self).numel():
            low, high = (int(t) for t in as_tensor(self).aminmax())
            if low < 0:
                raise ArgumentError("bincount", "values are not negative", got=low)
            size = max(size, high + 1)
        return self.b.bincount(self, weights, size)

    def histc(self, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
        """Return a histogram: how many elements fall into each of `bins` equal parts of [min, max].

        Elements outside are not counted; `max` belongs to the last bin.

        Args:
            bins: number of bins.
            min: left end; equal to `max` means the ends of the data, which are then read.
            max: right end.

        Example:
            >>> burn.tensor([1.0, 2.0, 1.0]).histc(bins=4, min=0, max=3)
            tensor([0., 2., 1., 0.])
        """
        b = self.b
        count = as_int("histc", "bins", bins)
        if count < 1 or max < min:
            raise ArgumentError(
                "histc", "bins > 0 and max >= min", got=f"bins {bins}, [{min}, {max}]"
            )
        x = as_tensor(self).ravel()
        low, high = min, max
        if low == high and x.shape[0]:
            low, high = (t.item() for t in x.aminmax())
        if low == high:
            low, high = low - 1, high + 1
        where = b.trunc(b.mul(b.div(b.sub(x, low), high - low), count))
        inside = b.logical_and(b.ge(x, low), b.le(x, high))
        at = b.where(inside, b.clamp(b.cast(where, int64), 0, count - 1), count)
        return b.cast(b.bincount(at, None, count + 1).narrow(0, 0, count), self.dtype)
