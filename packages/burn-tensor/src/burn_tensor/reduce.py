"""Reductions and scans.

`dim` is None or `()` for all dims, an int, or a tuple; negative dims count from the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from burn_backend import TensorBase
from burn_std import ArgumentError, DType
from burn_tensor.arguments import Ints, Number, as_float, one_dim, some_dims
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor
from burn_tensor.named import MinMax, StdMean, ValuesIndices, VarMean

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor

Dim = Ints | None


@guard_methods()
class ReduceMethods(Methods):
    """Sums, means, extremes, moments, norms and cumulative forms."""

    __slots__ = ()

    def sum(self, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """Return the sum over dims; 0 of nothing.

        Args:
            dim: dims to sum over; None means all.
            keepdim: keep them with extent 1.
            dtype: of the result; else integers and bools give int64, floats stay.

        Gradient: g, repeated over the dims.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).sum(0)
            tensor([4, 6])
        """
        dims = None if dim is None else some_dims("sum", dim, len(self.v.shape))
        return self.b.sum(self, dims, keepdim, dtype)

    def prod(self, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """Return the product over dims; 1 of nothing.

        Args:
            dim: dims to multiply over; None means all.
            keepdim: keep them with extent 1.
            dtype: of the result; else integers and bools give int64, floats stay.

        Gradient: g times the product of the others, also where one or two are 0.

        Example:
            >>> burn.tensor([2, 3, 4]).prod()
            tensor(24)
        """
        return self.b.prod(self, some_dims("prod", dim, len(self.v.shape)), keepdim, dtype)

    def mean(self, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """Return the mean over dims; NaN of nothing.

        Args:
            dim: dims to average over; None means all.
            keepdim: keep them with extent 1.
            dtype: x is converted to it first.

        Raises:
            DTypeError: x is not of a float dtype and `dtype` is None.

        Gradient: g / n, repeated over the dims.

        Example:
            >>> burn.tensor([1.0, 2.0, 3.0]).mean()
            tensor(2.)
        """
        x = as_tensor(self)
        if dtype is not None and self.dtype is not dtype:
            x = self.b.cast(self, dtype)
        dims = None if dim is None else some_dims("mean", dim, len(self.v.shape))
        return self.b.mean(x, dims, keepdim, dtype)

    def nansum(
        self, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None
    ) -> Tensor:
        """Return the sum over dims with NaN counted as 0.

        Gradient: g where x is not NaN.

        Example:
            >>> burn.tensor([1.0, float("nan")]).nansum()
            tensor(1.)
        """
        return self.b.where(self.b.isnan(self), 0, self).sum(dim, keepdim, dtype=dtype)

    def nanmean(
        self, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None
    ) -> Tensor:
        """Return the mean over dims of the elements that are not NaN.

        Args:
            dim: dims to look over; None means all.
            keepdim: keep them with extent 1.
            dtype: x is converted to it first.

        Gradient: g / n where x is not NaN.

        Example:
            >>> burn.tensor([1.0, float("nan"), 3.0]).nanmean()
            tensor(2.)
        """
        b = self.b
        x = as_tensor(self) if dtype is None else b.cast(self, dtype)
        count = b.logical_not(b.isnan(x)).sum(dim, keepdim)
        return b.div(x.nansum(dim, keepdim), b.cast(count, x.dtype))

    # ---- truth --------------------------------------------------------------------------------

    def any(self, dim: Dim = None, keepdim: bool = False) -> Tensor:
        """Return whether any element is not zero; False of nothing.

        Args:
            dim: dims to look over; None means all.
            keepdim: keep them with extent 1.

        DTypes: all; the result is bool, or uint8 for uint8.

        Example:
            >>> burn.tensor([[0, 1], [0, 0]]).any(1)
            tensor([ True, False])
        """
        return self.b.any(self, some_dims("any", dim, len(self.v.shape)), keepdim)

    def all(self, dim: Dim = None, keepdim: bool = False) -> Tensor:
        """Return whether every element is not zero; True of nothing.

        Args:
            dim: dims to look over; None means all.
            keepdim: keep them with extent 1.

        DTypes: all; the result is bool, or uint8 for uint8.

        Example:
            >>> burn.tensor([[0, 1], [1, 1]]).all(1)
            tensor([False,  True])
        """
        return self.b.all(self, some_dims("all", dim, len(self.v.shape)), keepdim)

    def count_nonzero(self, dim: Dim = None) -> Tensor:
        """Return how many elements are not zero, as int64.

        Args:
            dim: the dim or dims to count along; None counts all.

        Example:
            >>> burn.tensor([[0, 1], [2, 3]]).count_nonzero(0)
            tensor([1, 2])
        """
        return self.b.count_nonzero(self, some_dims("count_nonzero", dim, len(self.v.shape)), False)

    # ---- extremes -----------------------------------------------------------------------------

    @overload
    def max(self) -> Tensor: ...
    @overload
    def max(self, dim: Tensor) -> Tensor: ...
    @overload
    def max(self, dim: int, keepdim: bool = False) -> ValuesIndices: ...
    def max(self, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
        """Return the largest of all, the largest along a dim, or the larger of two.

        NaN wins; among equals the lowest index does.

        Args:
            dim: None for the largest of all; an int for `(values, indices)` along it; a tensor
                for the elementwise maximum.
            keepdim: keep the dim with extent 1.
            other: a tensor, as another way to ask for the elementwise maximum.

        Raises:
            ShapeError: nothing to choose from.

        Gradient: to the chosen index along a dim; shared among equals without a dim; halves
            between two equal tensors.

        Example:
            >>> burn.tensor([[1, 5], [7, 2]]).max(dim=1).indices
            tensor([1, 0])
        """
        return self._extreme("max", dim, keepdim, other)

    @overload
    def min(self) -> Tensor: ...
    @overload
    def min(self, dim: Tensor) -> Tensor: ...
    @overload
    def min(self, dim: int, keepdim: bool = False) -> ValuesIndices: ...
    def min(self, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
        """Return the smallest of all, the smallest along a dim, or the smaller of two.

        NaN wins; among equals the lowest index does.

        Args:
            dim: None for the smallest of all; an int for `(values, indices)` along it; a tensor
                for the elementwise minimum.
            keepdim: keep the dim with extent 1.
            other: a tensor, as another way to ask for the elementwise minimum.

        Raises:
            ShapeError: nothing to choose from.

        Gradient: to the chosen index along a dim; shared among equals without a dim; halves
            between two equal tensors.

        Example:
            >>> burn.tensor([[1, 5], [7, 2]]).min()
            tensor(1)
        """
        return self._extreme("min", dim, keepdim, other)

    def _extreme(self, name: str, dim: Any, keepdim: bool, other: Tensor | None) -> Any:
        b = self.b
        if other is not None or isinstance(dim, TensorBase):
            both = dim if other is None else other
            return b.maximum(self, both) if name == "max" else b.minimum(self, both)
        if dim is None:
            return b.amax(self, None, keepdim) if name == "max" else b.amin(self, None, keepdim)
        d = one_dim(name, dim, len(self.v.shape))
        return ValuesIndices(*(b.max_dim if name == "max" else b.min_dim)(self, d, keepdim))

    def amax(self, dim: Dim = (), keepdim: bool = False) -> Tensor:
        """Return the largest element over dims; NaN wins.

        Args:
            dim: dims to look over; `()` and None mean all.
            keepdim: keep them with extent 1.

        Raises:
            ShapeError: nothing to choose from.

        Gradient: shared evenly among equal extremes.

        Example:
            >>> burn.tensor([[1, 5], [7, 2]]).amax(0)
            tensor([7, 5])
        """
        return self.b.amax(self, some_dims("amax", dim, len(self.v.shape)), keepdim)

    def amin(self, dim: Dim = (), keepdim: bool = False) -> Tensor:
        """Return the smallest element over dims; NaN wins.

        Args:
            dim: dims to look over; `()` and None mean all.
            keepdim: keep them with extent 1.

        Raises:
            ShapeError: nothing to choose from.

        Gradient: shared evenly among equal extremes.

        Example:
            >>> burn.tensor([[1, 5], [7, 2]]).amin(0)
            tensor([1, 2])
        """
        return self.b.amin(self, some_dims("amin", dim, len(self.v.shape)), keepdim)

    def aminmax(self, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
        """Return (min, max) over one dim or all.

        Args:
            dim: the dim to look over; None means all.
            keepdim: keep it with extent 1.

        Gradient: shared evenly among equal extremes.

        Example:
            >>> burn.tensor([3, 1, 2]).aminmax()
            MinMax(min=tensor(1), max=tensor(3))
        """
        dims = some_dims("aminmax", dim, len(self.v.shape))
        return MinMax(self.b.amin(self, dims, keepdim), self.b.amax(self, dims, keepdim))

    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """Return the index of the largest element as int64; the first NaN, else the lowest wins.

        Args:
            dim: the dim to look along; None flattens x.
            keepdim: keep the dim with extent 1.

        Raises:
            ShapeError: nothing to choose from.

        Example:
            >>> burn.tensor([1, 3, 3]).argmax()
            tensor(1)
        """
        d = None if dim is None else one_dim("argmax", dim, len(self.v.shape))
        return self.b.argmax(self, d, keepdim)

    def argmin(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """Return the index of the smallest element as int64; the first NaN, else the lowest wins.

        Args:
            dim: the dim to look along; None flattens x.
            keepdim: keep the dim with extent 1.

        Raises:
            ShapeError: nothing to choose from.

        Example:
            >>> burn.tensor([2, 1, 1]).argmin()
            tensor(1)
        """
        d = None if dim is None else one_dim("argmin", dim, len(self.v.shape))
        return self.b.argmin(self, d, keepdim)

    @overload
    def median(self) -> Tensor: ...
    @overload
    def median(self, dim: int, keepdim: bool = False) -> ValuesIndices: ...
    def median(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """Return the lower median of all elements, or (values, indices) of it along a dim.

        NaN wins.

        Args:
            dim: the dim to look along; None flattens x and returns one tensor.
            keepdim: keep the dim with extent 1.

        Gradient: to the chosen index.

        Example:
            >>> burn.tensor([4, 1, 3, 2]).median()
            tensor(2)
        """
        if dim is None:
            return self.b.median_dim(self.b.reshape(self, (_size(self),)), 0, False)[0]
        d = one_dim("median", dim, len(self.v.shape))
        return ValuesIndices(*self.b.median_dim(self, d, keepdim))

    # ---- moments ------------------------------------------------------------------------------

    def var(
        self,
        dim: Dim | bool = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Number | None = None,
    ) -> Tensor:
        """Return the variance over dims.

        sum (x - mean)^2 / max(0, n - correction)

        Args:
            dim: dims to look over; None means all. A bool here stands for `unbiased`.
            unbiased: divide by n - 1 (else by n).
            keepdim: keep the dims with extent 1.
            correction: what is taken off n, in place of `unbiased`.

        DTypes: floats; f16 and bf16 compute in f32.

        Gradient: 2 g (x - mean) / (n - correction).

        Example:
            >>> burn.tensor([1.0, 3.0]).var()
            tensor(2.)
        """
        return self._var("var", dim, unbiased, keepdim, correction)

    def _var(
        self, op: str, dim: Any, unbiased: bool, keepdim: bool, correction: Number | None
    ) -> Tensor:
        if dim is True or dim is False:
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased else 0
        dims = some_dims(op, dim, len(self.v.shape))
        return self.b.var(self, dims, keepdim, correction)

    def std(
        self,
        dim: Dim | bool = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Number | None = None,
    ) -> Tensor:
        """Return the standard deviation over dims: the square root of `var`.

        Args:
            dim: dims to look over; None means all. A bool here stands for `unbiased`.
            unbiased: divide by n - 1 (else by n).
            keepdim: keep the dims with extent 1.
            correction: what is taken off n, in place of `unbiased`.

        DTypes: floats; f16 and bf16 compute in f32.

        Gradient: g (x - mean) / ((n - correction) std), 0 where std is 0.

        Example:
            >>> burn.tensor([1.0, 3.0, 5.0]).std()
            tensor(2.)
        """
        b = self.b
        var = self._var("std", dim, unbiased, keepdim, correction)
        if var.node is None:
            return b.sqrt(var)
        # The slope of sqrt at 0 is infinite and meets x - mean = 0, so it is kept out.
        flat = b.eq(var, 0)
        return b.where(flat, 0.0, b.sqrt(b.where(flat, 1.0, var)))

    def var_mean(
        self,
        dim: Dim | bool = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Number | None = None,
    ) -> VarMean:
        """Return (var, mean) over dims; arguments as `var`.

        Gradient: as `var` and `mean`.

        Example:
            >>> burn.tensor([1.0, 3.0]).var_mean()
            VarMean(var=tensor(2.), mean=tensor(2.))
        """
        over = None if isinstance(dim, bool) else dim
        return VarMean(
            self.var(dim, unbiased, keepdim, correction=correction), self.mean(over, keepdim)
        )

    def std_mean(
        self,
        dim: Dim | bool = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Number | None = None,
    ) -> StdMean:
        """Return (std, mean) over dims; arguments as `std`.

        Gradient: as `std` and `mean`.

        Example:
            >>> burn.tensor([1.0, 3.0, 5.0]).std_mean()
            StdMean(std=tensor(2.), mean=tensor(3.))
        """
        over = None if isinstance(dim, bool) else dim
        return StdMean(
            self.std(dim, unbiased, keepdim, correction=correction), self.mean(over, keepdim)
        )

    def cov(
        self, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """Return the covariance matrix of variables in rows and observations in columns.

        Args:
            correction: what is taken off the number of observations.
            fweights: how often each observation counts, integers.
            aweights: importance of each observation.

        Shapes:
            x: [V, N], or [N] for one variable
            returns: [V, V], or []

        Gradient: defined for x and aweights.

        Example:
            >>> burn.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).cov()
            tensor([[ 1., -1.],
                    [-1.,  1.]])
        """
        b = self.b
        if len(self.shape) > 2:
            raise ArgumentError("cov", "x has at most two dims", got=list(self.shape))
        x = b.reshape(self, (1, _size(self))) if len(self.shape) < 2 else as_tensor(self)
        x = as_float(x)
        weights: Any = fweights
        if aweights is not None:
            weights = aweights if fweights is None else b.mul(fweights, aweights)
        if weights is None:
            total: Any = x.shape[1]
            centred = b.sub(x, b.mean(x, (1,), True, None))
            weighted = centred
            norm: Any = max(0, total - correction)
        else:
            if not weights.dtype.is_float:
                weights = b.cast(weights, x.dtype)
            total = b.sum(weights, None, False, None)
            centred = b.sub(x, b.div(b.sum(b.mul(x, weights), (1,), True, None), total))
            weighted = b.mul(centred, weights)
            norm = b.sub(total, correction)
            if aweights is not None and correction != 0:
                spread = b.sum(b.mul(weights, aweights), None, False, None)
                norm = b.sub(total, b.mul(b.div(spread, total), correction))
            norm = b.clamp(norm, 0, None)
        out = b.div(b.matmul(weighted, b.permute(centred, (1, 0))), norm)
        return b.reshape(out, ()) if x.shape[0] == 1 else out

    # ---- norms --------------------------------------------------------------------------------

    def norm(
        self,
        p: float | str | None = "fro",
        dim: Dim = None,
        keepdim: bool = False,
        dtype: DType | None = None,
    ) -> Tensor:
        """Return a norm over dims, of a vector unless `p` is `nuc`.

        (sum |x|^p)^(1/p)

        Args:
            p: the order; inf and -inf give the largest and smallest |x|, 0 counts what is not
                zero, `fro` and None are 2, `nuc` is the sum of singular values of two dims.
            dim: dims to look over; None means all.
            keepdim: keep them with extent 1.
            dtype: x is converted to it first.

        DTypes: floats.

        Gradient: g x |x|^(p - 2) / out^(p - 1), 0 where out is 0.

        Example:
            >>> burn.tensor([3.0, 4.0]).norm()
            tensor(5.)
        """
        b = self.b
        x = as_tensor(self) if dtype is None else b.cast(self, dtype)
        rank = len(self.shape)
        if p == "nuc":
            dims = some_dims("norm", tuple(range(rank)) if dim is None else dim, rank)
            if dims is None or len(dims) != 2:
                raise ArgumentError("norm", "the nuclear norm needs two dims", got=dim)
            rest = tuple(d for d in range(rank) if d not in dims)
            _, values, _ = b.svd(b.permute(x, (*rest, *dims)), False)
            out = b.sum(values, (len(rest),), False, None)
            return b.unsqueeze(out, tuple(sorted(dims))) if keepdim else out
        if isinstance(p, str) and p != "fro":
            raise ArgumentError("norm", "p is a number, 'fro' or 'nuc'", got=repr(p))
        order = 2.0 if p is None or isinstance(p, str) else float(p)
        return b.vector_norm(x, some_dims("norm", dim, rank), keepdim, order)

    def dist(self, other: Tensor, p: float = 2) -> Tensor:
        """Return the p-norm of x - other.

        Gradient: that of `norm`.

        Example:
            >>> burn.tensor([3.0, 4.0]).dist(burn.zeros(2))
            tensor(5.)
        """
        return self.b.vector_norm(self.b.sub(self, other), None, False, float(p))

    def logsumexp(self, dim: Dim, keepdim: bool = False) -> Tensor:
        """Return log(sum(exp(x))) over dims, stable; -inf of nothing.

        Args:
            dim: dims to sum over.
            keepdim: keep them with extent 1.

        Gradient: g softmax(x).

        Example:
            >>> burn.tensor([0.0, 0.0]).logsumexp(0)
            tensor(0.6931)
        """
        return self.b.logsumexp(self, some_dims("logsumexp", dim, len(self.v.shape)), keepdim)

    # ---- scans --------------------------------------------------------------------------------

    def cumsum(self, dim: int, dtype: DType | None = None) -> Tensor:
        """Return running sums along a dim; integers and bools give int64.

        Args:
            dim: the dim to run along.
            dtype: of the result; else integers and bools give int64, floats stay.

        Gradient: the running sum of g from the end.

        Example:
            >>> burn.tensor([1, 2, 3]).cumsum(0)
            tensor([1, 3, 6])
        """
        return self.b.cumsum(self, one_dim("cumsum", dim, len(self.v.shape)), dtype)

    def cumprod(self, dim: int, dtype: DType | None = None) -> Tensor:
        """Return running products along a dim; integers and bools give int64.

        Args:
            dim: the dim to run along.
            dtype: of the result; else integers and bools give int64, floats stay.

        Gradient: defined, also where elements are 0.

        Example:
            >>> burn.tensor([1, 2, 3]).cumprod(0)
            tensor([1, 2, 6])
        """
        return self.b.cumprod(self, one_dim("cumprod", dim, len(self.v.shape)), dtype)

    def cummax(self, dim: int) -> ValuesIndices:
        """Return running maxima along a dim and their last indices; NaN stays.

        Args:
            dim: the dim to run along.

        Gradient: to the indices.

        Example:
            >>> burn.tensor([1, 3, 2]).cummax(0)
            ValuesIndices(values=tensor([1, 3, 3]), indices=tensor([0, 1, 1]))
        """
        return ValuesIndices(*self.b.cummax(self, one_dim("cummax", dim, len(self.v.shape))))

    def cummin(self, dim: int) -> ValuesIndices:
        """Return running minima along a dim and their last indices; NaN stays.

        Args:
            dim: the dim to run along.

        Gradient: to the indices.

        Example:
            >>> burn.tensor([3, 1, 2]).cummin(0)
            ValuesIndices(values=tensor([3, 1, 1]), indices=tensor([0, 1, 1]))
        """
        return ValuesIndices(*self.b.cummin(self, one_dim("cummin", dim, len(self.v.shape))))


def _size(x: TensorBase) -> int:
    n = 1
    for e in x.shape:
        n *= e
    return n
