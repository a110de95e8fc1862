"""Parts put back, cut and told apart, under PyTorch's names; and what differs along a dim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_std import ArgumentError, ShapeError
from burn_std.dtypes import bool_
from burn_tensor.arguments import Ints, as_int, need_dim, one_dim
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods()
class EditMethods(Methods):
    """Scatters of whole parts, splits by axis name, differences, runs."""

    __slots__ = ()

    # ---- parts replaced -----------------------------------------------------------------------

    def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor:
        """Return x with one slice along a dim replaced; `x[index] = src` without rebinding.

        Args:
            src: the slice, without that dim.
            dim: the dim.
            index: where; negative counts from the end.

        Raises:
            ShapeError: src is not a slice of x.
            IndexRangeError: dim or index is out of range.

        Gradient: g outside the slice for x, inside for src.

        Example:
            >>> burn.zeros(2, 2).select_scatter(burn.ones(2), 0, -1)
            tensor([[0., 0.],
                    [1., 1.]])
        """
        x = as_tensor(self)
        shape = x.select(dim, index).shape
        if src.shape != shape:
            raise ShapeError(
                "select_scatter", f"src has the slice's shape {list(shape)}", got=list(src.shape)
            )
        out = x.clone()
        out[(slice(None),) * one_dim("select_scatter", dim, len(x.shape)) + (index,)] = src
        return out

    def slice_scatter(
        self,
        src: Tensor,
        dim: int = 0,
        start: int | None = None,
        end: int | None = None,
        step: int = 1,
    ) -> Tensor:
        """Return x with a window along a dim replaced; `x[start:end:step] = src` without rebinding.

        Args:
            src: the window.
            dim: the dim.
            start: its first index.
            end: the index behind its last.
            step: positive.

        Raises:
            ShapeError: src is not of the window's shape.

        Gradient: g outside the window for x, inside for src.

        Example:
            >>> burn.zeros(4).slice_scatter(burn.ones(2), start=1, end=3)
            tensor([0., 1., 1., 0.])
        """
        x = as_tensor(self)
        d = one_dim("slice_scatter", dim, len(x.shape))
        key = tuple([slice(None)] * d + [slice(start, end, as_int("slice_scatter", "step", step))])
        window = x[key].shape
        if src.shape != window:
            raise ShapeError(
                "slice_scatter", f"src has the window's shape {list(window)}", got=list(src.shape)
            )
        out = x.clone()
        out[key] = src
        return out

    def diagonal_scatter(
        self, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
    ) -> Tensor:
        """Return x with a diagonal replaced.

        Args:
            src: the diagonal as its last dim, as `x.diagonal` returns it.
            offset: 0 the main diagonal, positive above it, negative below.
            dim1: the rows' dim.
            dim2: the columns' dim.

        Raises:
            ShapeError: src is not of the diagonal's shape.

        Gradient: g off the diagonal for x, on it for src.

        Example:
            >>> burn.zeros(2, 2).diagonal_scatter(burn.ones(2))
            tensor([[1., 0.],
                    [0., 1.]])
        """
        x, b = as_tensor(self), self.b
        shape = x.diagonal(offset, dim1, dim2).shape
        if src.shape != shape:
            raise ShapeError(
                "diagonal_scatter", f"src has the diagonal's shape {list(shape)}",
                got=list(src.shape),
            )  # fmt: skip
        one, two = (one_dim("diagonal_scatter", d, len(x.shape)) for d in (dim1, dim2))
        off = as_int("diagonal_scatter", "offset", offset)
        placed = b.diagonal_backward(b.cast(src, x.dtype), one, two, x.shape, off)
        ones = b.full(bool_, shape, True)
        return b.where(b.diagonal_backward(ones, one, two, x.shape, off), placed, x)

    # ---- parts ---------------------------------------------------------------------------------

    def hsplit(self, indices_or_sections: Ints) -> tuple[Tensor, ...]:
        """Return x cut along its second dim, or its only one.

        Args:
            indices_or_sections: a number of equal parts, or where to cut.

        Raises:
            ShapeError: rank 0, or the parts are not equal.

        Gradient: every g in its part.

        Example:
            >>> burn.arange(4).hsplit(2)
            (tensor([0, 1]), tensor([2, 3]))
        """
        return self._cut("hsplit", indices_or_sections, 1 if len(self.v.shape) > 1 else 0, 1)

    def vsplit(self, indices_or_sections: Ints) -> tuple[Tensor, ...]:
        """Return x, of two dims or more, cut along its first dim.

        Args:
            indices_or_sections: a number of equal parts, or where to cut.

        Raises:
            ShapeError: fewer than two dims, or the parts are not equal.

        Gradient: every g in its part.

        Example:
            >>> [part.tolist() for part in burn.tensor([[1], [2]]).vsplit(2)]
            [[[1]], [[2]]]
        """
        return self._cut("vsplit", indices_or_sections, 0, 2)

    def dsplit(self, indices_or_sections: Ints) -> tuple[Tensor, ...]:
        """Return x, of three dims or more, cut along its third dim.

        Args:
            indices_or_sections: a number of equal parts, or where to cut.

        Raises:
            ShapeError: fewer than three dims, or the parts are not equal.

        Gradient: every g in its part.

        Example:
            >>> [part.shape for part in burn.zeros(1, 2, 4).dsplit(2)]
            [(1, 2, 2), (1, 2, 2)]
        """
        return self._cut("dsplit", indices_or_sections, 2, 3)

    def _cut(self, op: str, parts: Ints, dim: int, rank: int) -> tuple[Tensor, ...]:
        x = as_tensor(self)
        if len(x.shape) < rank:
            raise ShapeError(op, f"needs {rank} dims or more", got=list(x.shape))
        if not isinstance(parts, (tuple, list)):
            count = as_int(op, "sections", parts)
            if count < 1 or x.shape[dim] % count:
                raise ShapeError(
                    op, "parts must be equal", got=f"{x.shape[dim]} in {count}",
                    remedy="Use tensor_split for parts that may differ by one.",
                )  # fmt: skip
        return x.tensor_split(parts, dim)

    def split_with_sizes(self, split_sizes: Ints, dim: int = 0) -> tuple[Tensor, ...]:
        """Return x cut along a dim into parts of given extents, as `x.split(sizes, dim)`.

        Args:
            split_sizes: one extent per part.
            dim: the dim to cut.

        Raises:
            ShapeError: the extents do not add up.

        Gradient: every g in its part.

        Example:
            >>> burn.arange(3).split_with_sizes([1, 2])
            (tensor([0]), tensor([1, 2]))
        """
        if not isinstance(split_sizes, (tuple, list)):
            raise ArgumentError(
                "split_with_sizes", "takes one extent per part", got=split_sizes,
                remedy="Use x.split(size, dim) for parts of one extent.",
            )  # fmt: skip
        return as_tensor(self).split(split_sizes, dim)

    def diagflat(self, offset: int = 0) -> Tensor:
        """Return a matrix with the elements of x, in row-major order, on a diagonal.

        Args:
            offset: 0 the main diagonal, positive above it, negative below.

        Gradient: g on the diagonal.

        Example:
            >>> burn.tensor([1, 2]).diagflat()
            tensor([[1, 0],
                    [0, 2]])
        """
        return as_tensor(self).reshape(-1).diag(offset)

    # ---- neighbours ----------------------------------------------------------------------------

    def diff(
        self,
        n: int = 1,
        dim: int = -1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor:
        """Return the differences of neighbours along a dim, n times; of bools where they differ.

        Args:
            n: how often.
            dim: the dim.
            prepend: what stands before x along the dim.
            append: what stands behind.

        Raises:
            ArgumentError: n is negative.
            ShapeError: rank 0, or shapes do not fit.

        Gradient: the differences of g, turned around.

        Example:
            >>> burn.tensor([1, 4, 9]).diff()
            tensor([3, 5])
        """
        x = as_tensor(self)
        count = as_int("diff", "n", n)
        if count < 0:
            raise ArgumentError("diff", "n is not negative", got=count)
        need_dim("diff", x)
        d = one_dim("diff", dim, len(x.shape))
        parts = [t for t in (prepend, x, append) if t is not None]
        b = self.b
        if len(parts) > 1 and count:
            x = b.cat(parts, d)
        minus = b.ne if x.dtype.is_bool else b.sub
        for _ in range(count):
            size = x.shape[d]
            if not size:
                break
            x = minus(x.narrow(d, 1, size - 1), x.narrow(d, 0, size - 1))
        return x

    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: None = None
    ) -> Any:
        """Return x, flattened, with runs of equal elements as one; the size depends on data.

        Args:
            return_inverse: also which run each element of x belongs to.
            return_counts: also the length of each run.
            dim: only None: slices are not compared.

        Raises:
            ArgumentError: a dim is given.

        Example:
            >>> burn.tensor([1, 1, 2, 1]).unique_consecutive(return_counts=True)
            (tensor([1, 2, 1]), tensor([2, 1, 1]))
        """
        if dim is not None:
            raise ArgumentError(
                "unique_consecutive", "compares elements, not slices", got=f"dim {dim}",
                remedy="Leave dim out.",
            )  # fmt: skip
        x = as_tensor(self)
        flat, b = x.reshape(-1), self.b
        size = flat.shape[0]
        starts = b.full(bool_, (min(size, 1),), True)
        if size > 1:
            changes = b.ne(flat.narrow(0, 1, size - 1), flat.narrow(0, 0, size - 1))
            starts = b.cat([starts, changes], 0)
        out: list[Tensor] = [flat.masked_select(starts)]
        if return_inverse:
            out.append(b.sub(starts.cumsum(0), 1).reshape(x.shape))
        if return_counts:
            places = starts.nonzero().reshape(-1)
            end = b.full(places.dtype, (1,), size)
            out.append(b.cat([places, end], 0).diff())
        return out[0] if len(out) == 1 else tuple(out)
