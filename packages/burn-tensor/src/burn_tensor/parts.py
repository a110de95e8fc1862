"""Parts and repetitions: tile, narrow, split, windows, diagonals and triangles."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_backend import TensorBase
from burn_std import ArgumentError, IndexRangeError, ShapeError
from burn_tensor.arguments import Ints, as_int, as_ints, flat, need_dim, one_dim
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn_tensor.tensor import Tensor


def _need_extent(wanted: int | None, found: int) -> None:
    if wanted is not None and wanted != found:
        raise ShapeError(
            "repeat_interleave", "output_size is the sum of the counts",
            got=f"output_size {wanted}, sum {found}",
        )  # fmt: skip


# Beyond the extent all further parts are empty.
_MOST_PARTS = 1 << 16


@guard_methods()
class PartMethods(Methods):
    """Some of the elements, or all of them several times."""

    __slots__ = ()

    def repeat(self, *args: Any, repeats: Sequence[int] | None = None) -> Tensor:
        """Return x tiled per dim.

        Args:
            args: how often, for every dim at least; more than dims add dims in front.
            repeats: the same, by name.

        Raises:
            ShapeError: fewer counts than dims, or a negative one.

        Gradient: g summed over the tiles.

        Example:
            >>> burn.tensor([1, 2]).repeat(2)
            tensor([1, 2, 1, 2])
        """
        if repeats is not None:
            args = (repeats,)
        return self.b.repeat(self, flat("repeat", "repeats", args))

    def tile(self, *args: Any, dims: Sequence[int] | None = None) -> Tensor:
        """Return x tiled per dim; missing counts in front are 1.

        Gradient: g summed over the tiles.

        Example:
            >>> burn.tensor([[1, 2]]).tile(2)
            tensor([[1, 2, 1, 2]])
        """
        if dims is not None:
            args = (dims,)
        counts = flat("tile", "dims", args)
        return self.b.repeat(self, (1,) * (len(self.v.shape) - len(counts)) + counts)

    def repeat_interleave(
        self, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None
    ) -> Tensor:
        """Return x with every element repeated in place.

        Args:
            repeats: how often, for all or one count per element (read on the host).
            dim: the dim to repeat along; None flattens x first.
            output_size: the extent of the result, if it is known; checked.

        Raises:
            ShapeError: the counts do not fit the dim, or do not sum to output_size.

        Gradient: g summed over the repetitions.

        Example:
            >>> burn.tensor([1, 2]).repeat_interleave(2)
            tensor([1, 1, 2, 2])
        """
        b = self.b
        x = as_tensor(self).ravel() if dim is None else as_tensor(self)
        d = 0 if dim is None else one_dim("repeat_interleave", dim, len(x.shape))
        if not x.shape:
            x = x.reshape(1)
        shape = x.shape
        if isinstance(repeats, TensorBase) and prod(repeats.shape) == 1:
            repeats = int(repeats)
        if isinstance(repeats, TensorBase):
            counts = b.to_numpy(repeats)
            if counts.shape != (shape[d],):
                raise ShapeError(
                    "repeat_interleave",
                    "one count per element",
                    got=f"{list(counts.shape)} for {shape[d]}",
                )
            positions = np.repeat(np.arange(shape[d]), counts)
            _need_extent(output_size, len(positions))
            return b.index_select(x, b.tensor_from_numpy(positions), d)
        n = as_int("repeat_interleave", "repeats", repeats)
        _need_extent(output_size, shape[d] * n)
        wide = b.expand(b.unsqueeze(x, (d + 1,)), (*shape[: d + 1], n, *shape[d + 1 :]))
        return b.reshape(wide, (*shape[:d], shape[d] * n, *shape[d + 1 :]))

    # ---- parts --------------------------------------------------------------------------------

    def _window(self, dim: int, start: int, stop: int, step: int = 1) -> Tensor:
        shape = self.v.shape
        rank = len(shape)
        return self.b.slice(
            self,
            tuple([step if i == dim else 1 for i in range(rank)]),
            tuple([start if i == dim else 0 for i in range(rank)]),
            tuple([stop if i == dim else n for i, n in enumerate(shape)]),
        )

    def narrow(self, dim: int, start: int | Tensor, length: int) -> Tensor:
        """Return `length` slices along a dim, from `start` on.

        Args:
            dim: the dim.
            start: first index; negative counts from the end.
            length: how many.

        Raises:
            IndexRangeError: the window leaves the dim.

        Gradient: g in the window, zero elsewhere.

        Example:
            >>> burn.tensor([1, 2, 3]).narrow(0, 1, 2)
            tensor([2, 3])
        """
        shape = self.v.shape
        if not shape:
            raise IndexRangeError("narrow", "needs a dim", got="rank 0")
        d = one_dim("narrow", dim, len(shape))
        first, count = as_int("narrow", "start", start), as_int("narrow", "length", length)
        n = shape[d]
        if (
            not -n <= first <= n
            or count < 0
            or first % (n + 1 if first >= 0 else n or 1) + count > n
        ):
            raise IndexRangeError(
                "narrow", "the window must lie inside the dim",
                got=f"start {first}, length {count}, dim {d} of size {n}",
            )  # fmt: skip
        first = first + n if first < 0 else first
        return self._window(d, first, first + count)

    def select(self, dim: int, index: int) -> Tensor:
        """Return one slice along a dim, which goes.

        Args:
            dim: the dim.
            index: which; negative counts from the end.

        Raises:
            IndexRangeError: there is no such index.

        Gradient: g in the slice, zero elsewhere.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).select(1, -1)
            tensor([2, 4])
        """
        shape = self.v.shape
        if not shape:
            raise IndexRangeError("select", "needs a dim", got="rank 0")
        d = one_dim("select", dim, len(shape))
        i = as_int("select", "index", index)
        if not -shape[d] <= i < shape[d]:
            raise IndexRangeError(
                "select",
                "index must lie inside the dim",
                got=f"index {i}, dim {d} of size {shape[d]}",
            )
        return self.b.select(self, d, i % shape[d])

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Return all slices along a dim, which goes.

        Gradient: every g in its slice.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).unbind()
            (tensor([1, 2]), tensor([3, 4]))
        """
        shape = self.v.shape
        need_dim("unbind", self)
        d = one_dim("unbind", dim, len(shape))
        return tuple([self.b.select(self, d, i) for i in range(shape[d])])

    def split(self, split_size: Ints, dim: int = 0) -> tuple[Tensor, ...]:
        """Return x cut along a dim.

        Args:
            split_size: extent of every part, the last may be smaller; or one extent per part.
            dim: the dim to cut.

        Raises:
            ShapeError: the extents do not add up, or a size is not positive.

        Gradient: every g in its part.

        Example:
            >>> burn.arange(5).split(2)
            (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        """
        shape = self.v.shape
        d = one_dim("split", dim, len(shape))
        need_dim("split", self)
        n = shape[d]
        if isinstance(split_size, (tuple, list)):
            sizes = list(as_ints("split", "split_size", split_size))
            if sum(sizes) != n or min(sizes, default=0) < 0:
                raise ShapeError("split", "sizes must add up to the extent", got=f"{sizes} for {n}")
        else:
            size = as_int("split", "split_size", split_size)
            if size < 0 or (size == 0 and n):
                raise ShapeError("split", "split_size must be positive", got=size)
            sizes = [min(size, n - i) for i in range(0, n, size or 1)] or [0]
        out, start = [], 0
        for size in sizes:
            out.append(self._window(d, start, start + size))
            start += size
        return tuple(out)

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Return x cut along a dim into at most `chunks` parts of one extent, the last smaller.

        Gradient: every g in its part.

        Example:
            >>> burn.arange(5).chunk(2)
            (tensor([0, 1, 2]), tensor([3, 4]))
        """
        count = as_int("chunk", "chunks", chunks)
        if count < 1:
            raise ArgumentError("chunk", "chunks must be positive", got=chunks)
        shape = self.v.shape
        n = shape[one_dim("chunk", dim, len(shape))] if shape else 0
        if not n:
            return self.split([0] * count, dim)
        return self.split(-(-n // count), dim)

    def tensor_split(self, indices_or_sections: Ints, dim: int = 0) -> tuple[Tensor, ...]:
        """Return x cut along a dim, into a number of parts or at indices.

        Args:
            indices_or_sections: a number of parts as even as can be, or where to cut.
            dim: the dim to cut.

        Gradient: every g in its part.

        Example:
            >>> burn.arange(5).tensor_split((1, 3))
            (tensor([0]), tensor([1, 2]), tensor([3, 4]))
        """
        need_dim("tensor_split", self)
        n = as_tensor(self).size(dim)
        if isinstance(indices_or_sections, (tuple, list)):
            cuts = [slice(None, i).indices(n)[1] for i in indices_or_sections]
        else:
            count = as_int("tensor_split", "sections", indices_or_sections)
            if not 1 <= count <= max(n, _MOST_PARTS):
                raise ArgumentError(
                    "tensor_split",
                    f"sections must be positive, and {_MOST_PARTS} at most",
                    got=count,
                )
            cuts = [n // count * i + min(i, n % count) for i in range(1, count)]
        d = one_dim("tensor_split", dim, len(self.shape))
        ends = [*cuts, n]
        starts = [0, *cuts]
        return tuple([self._window(d, a, max(a, e)) for a, e in zip(starts, ends, strict=True)])

    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        """Return sliding windows along a dim; the window is the new last dim.

        Args:
            dimension: the dim.
            size: extent of a window.
            step: distance of their starts.

        Raises:
            ShapeError: the window is larger than the dim.

        Gradient: overlapping windows add up.

        Example:
            >>> burn.arange(4).unfold(0, 2, 1)
            tensor([[0, 1],
                    [1, 2],
                    [2, 3]])
        """
        d = one_dim("unfold", dimension, len(self.v.shape))
        return self.b.unfold_dim(
            self, d, as_int("unfold", "size", size), as_int("unfold", "step", step)
        )

    # ---- diagonals and triangles --------------------------------------------------------------

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Return a diagonal of two dims as the last dim.

        Args:
            offset: 0 the main one, positive above it, negative below.
            dim1: first dim.
            dim2: second dim.

        Gradient: g on the diagonal, zero elsewhere.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).diagonal()
            tensor([1, 4])
        """
        rank = len(self.v.shape)
        a, c = one_dim("diagonal", dim1, rank), one_dim("diagonal", dim2, rank)
        return self.b.diagonal(self, a, c, as_int("diagonal", "offset", offset))

    def diag(self, diagonal: int = 0) -> Tensor:
        """Return the diagonal of a matrix, or a matrix with a vector on its diagonal.

        Args:
            diagonal: 0 the main one, positive above it, negative below.

        Raises:
            ShapeError: x has neither one nor two dims.

        Gradient: g on, or from, the diagonal.

        Example:
            >>> burn.tensor([1, 2]).diag()
            tensor([[1, 0],
                    [0, 2]])
        """
        if len(self.v.shape) == 2:
            return self.diagonal(diagonal)
        if len(self.v.shape) != 1:
            raise ShapeError("diag", "needs one or two dims", got=list(self.shape))
        return self.diag_embed(diagonal)

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """Return zeros with the last dim of x on a diagonal of two new dims.

        Args:
            offset: 0 the main one, positive above it, negative below.
            dim1: first dim of the result.
            dim2: second dim of the result.

        Gradient: g from the diagonal.

        Example:
            >>> burn.tensor([1, 2]).diag_embed().shape
            (2, 2)
        """
        shape = self.v.shape
        need_dim("diag_embed", self)
        rank = len(shape) + 1
        at = as_int("diag_embed", "offset", offset)
        a, c = one_dim("diag_embed", dim1, rank), one_dim("diag_embed", dim2, rank)
        if a == c:
            raise ArgumentError("diag_embed", "dim1 and dim2 differ", got=dim1)
        n = shape[-1] + abs(at)
        rest = iter(shape[:-1])
        full = tuple([n if i in (a, c) else next(rest) for i in range(rank)])
        return self.b.diagonal_backward(self, a, c, full, at)

    def trace(self) -> Tensor:
        """Return the sum of the diagonal of a matrix; integers give int64.

        Gradient: g on the diagonal.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).trace()
            tensor(5)
        """
        if len(self.v.shape) != 2:
            raise ShapeError("trace", "needs two dims", got=list(self.shape))
        return self.b.sum(self.b.diagonal(self, 0, 1, 0), None, False, None)

    def tril(self, diagonal: int = 0) -> Tensor:
        """Return x with zeros above a diagonal of its last two dims.

        Args:
            diagonal: the last one that is kept; 0 is the main one, positive ones lie above.

        Gradient: g where x was kept.

        Example:
            >>> burn.ones(2, 2).tril()
            tensor([[1., 0.],
                    [1., 1.]])
        """
        return self.b.tril(self, as_int("tril", "diagonal", diagonal))

    def triu(self, diagonal: int = 0) -> Tensor:
        """Return x with zeros below a diagonal of its last two dims.

        Args:
            diagonal: the first one that is kept; 0 is the main one, positive ones lie above.

        Gradient: g where x was kept.

        Example:
            >>> burn.ones(2, 2).triu()
            tensor([[1., 1.],
                    [0., 1.]])
        """
        return self.b.triu(self, as_int("triu", "diagonal", diagonal))
