"""Shapes: reshape, permute, flip, roll, expand.

Values are immutable, so whether a result shares memory with its input never shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from burn_std import ArgumentError, DType, DTypeError, PropertyError, ShapeError
from burn_tensor.arguments import (
    REVERSED,
    SWAPPED,
    Ints,
    as_int,
    as_ints,
    expanded,
    flat,
    one_dim,
    permuted,
    reshaped,
)
from burn_tensor.guard import explained, guard_methods
from burn_tensor.methods import Methods

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods(bare="reshape view permute transpose expand")
class ShapeMethods(Methods):
    """The same elements under other indices."""

    __slots__ = ()

    # ---- facts --------------------------------------------------------------------------------

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the extent of one dim.

        Example:
            >>> burn.zeros(2, 3).size(1)
            3
        """
        shape = self.v.shape
        return shape if dim is None else shape[one_dim("size", dim, len(shape))]

    def dim(self) -> int:
        """Return the number of dims.

        Example:
            >>> burn.zeros(2, 3).dim()
            2
        """
        return len(self.v.shape)

    def numel(self) -> int:
        """Return the number of elements.

        Example:
            >>> burn.zeros(2, 3).numel()
            6
        """
        return prod(self.v.shape)

    nelement = numel
    ndimension = dim

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.v.shape)

    def element_size(self) -> int:
        """Return the bytes of one element.

        Example:
            >>> burn.zeros(1).element_size()
            4
        """
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    # ---- shape --------------------------------------------------------------------------------

    def reshape(self, *args: Any, shape: Sequence[int] | None = None) -> Tensor:
        """Return the same elements in row-major order under another shape.

        Args:
            args: extents, as ints or one tuple; one may be -1.
            shape: the same, by name.

        Raises:
            ShapeError: the number of elements differs.

        Gradient: g in x's shape.

        Example:
            >>> burn.arange(4).reshape(2, -1).shape
            (2, 2)
        """
        try:
            if shape is not None:
                args = (shape,)
            return self.b.reshape(self, reshaped(self.v.shape, args))
        except Exception as e:  # noqa: BLE001 - raised again
            raise explained(e, ShapeMethods.reshape)  # noqa: B904 - it decides

    def view(self, *args: Any, size: Sequence[int] | None = None) -> Tensor:
        """Return the same elements under another shape: `reshape`, by PyTorch's other name.

        Args:
            args: extents, as ints or one tuple; one may be -1.
            size: the same, by name.

        Raises:
            DTypeError: a dtype was given.

        Gradient: g in x's shape.

        Example:
            >>> burn.arange(4).view(2, 2).shape
            (2, 2)
        """
        if size is not None:
            args = (size,)
        if args and isinstance(args[0], DType):
            raise DTypeError(
                "view", "bits are not read as another dtype", got=args[0],
                remedy="Convert values with .to(dtype), or bits with .numpy().view(...).",
            )  # fmt: skip
        try:
            return self.b.reshape(self, reshaped(self.v.shape, args))
        except Exception as e:  # noqa: BLE001 - raised again
            raise explained(e, ShapeMethods.view)  # noqa: B904 - it decides

    def view_as(self, other: Tensor) -> Tensor:
        """Return x in the shape of another tensor.

        Example:
            >>> burn.arange(4).view_as(burn.zeros(2, 2)).shape
            (2, 2)
        """
        return self.b.reshape(self, other.shape)

    reshape_as = view_as

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Return x with the dims from `start_dim` to `end_dim` merged into one.

        Gradient: g in x's shape.

        Example:
            >>> burn.zeros(2, 3, 4).flatten(1).shape
            (2, 12)
        """
        shape = self.v.shape
        first = one_dim("flatten", start_dim, len(shape))
        last = one_dim("flatten", end_dim, len(shape))
        if first > last:
            raise ArgumentError(
                "flatten", "start_dim comes before end_dim", got=(start_dim, end_dim)
            )
        return self.b.reshape(
            self, (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])
        )

    def ravel(self) -> Tensor:
        """Return x with one dim.

        Example:
            >>> burn.zeros(2, 3).ravel().shape
            (6,)
        """
        return self.b.reshape(self, (prod(self.v.shape),))

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
        """Return x with one dim split into several.

        Args:
            dim: the dim to split.
            sizes: their extents; one may be -1.

        Raises:
            ShapeError: the sizes do not multiply to the extent.

        Gradient: g in x's shape.

        Example:
            >>> burn.zeros(2, 12).unflatten(1, (3, -1)).shape
            (2, 3, 4)
        """
        shape = self.v.shape
        d = one_dim("unflatten", dim, len(shape))
        if not shape:
            raise ShapeError("unflatten", "needs a dim to split", got="rank 0")
        parts = reshaped((shape[d],), (as_ints("unflatten", "sizes", sizes),))
        if not parts or prod(parts) != shape[d]:
            raise ShapeError(
                "unflatten",
                "sizes must multiply to the extent",
                got=f"{list(parts)} for {shape[d]}",
            )
        return self.b.reshape(self, (*shape[:d], *parts, *shape[d + 1 :]))

    def squeeze(self, dim: Ints | None = None) -> Tensor:
        """Return x without dims of extent 1.

        Args:
            dim: the dims to drop, those of another extent stay; None means all.

        Gradient: g in x's shape.

        Example:
            >>> burn.zeros(1, 2, 1).squeeze().shape
            (2,)
        """
        shape = self.v.shape
        if dim is None:
            dims = tuple([i for i, n in enumerate(shape) if n == 1])
        else:
            asked = {one_dim("squeeze", d, len(shape)) for d in as_ints("squeeze", "dim", dim)}
            dims = tuple([d for d in sorted(asked) if shape and shape[d] == 1])
        return self.b.squeeze(self, dims)

    def unsqueeze(self, dim: int) -> Tensor:
        """Return x with a dim of extent 1 inserted.

        Args:
            dim: its position in the result.

        Raises:
            IndexRangeError: `dim` is outside [-rank - 1, rank].

        Gradient: g in x's shape.

        Example:
            >>> burn.zeros(2).unsqueeze(-1).shape
            (2, 1)
        """
        return self.b.unsqueeze(self, (one_dim("unsqueeze", dim, len(self.v.shape) + 1),))

    # ---- order --------------------------------------------------------------------------------

    def permute(self, *args: Any, dims: Sequence[int] | None = None) -> Tensor:
        """Return x with its dims in another order.

        Args:
            args: every dim once, as ints or one tuple.
            dims: the same, by name.

        Raises:
            ShapeError: a dim is missing; IndexRangeError: one repeats or is out of range.

        Gradient: g in the inverse order.

        Example:
            >>> burn.zeros(2, 3, 4).permute(2, 0, 1).shape
            (4, 2, 3)
        """
        try:
            if dims is not None:
                args = (dims,)
            return self.b.permute(self, permuted(len(self.v.shape), args))
        except Exception as e:  # noqa: BLE001 - raised again
            raise explained(e, ShapeMethods.permute)  # noqa: B904 - it decides

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """Return x with two dims swapped.

        Gradient: g with the same dims swapped.

        Example:
            >>> burn.zeros(2, 3).transpose(0, 1).shape
            (3, 2)
        """
        try:
            return self.b.permute(self, SWAPPED[len(self.v.shape), dim0, dim1])
        except Exception as e:  # noqa: BLE001 - raised again
            raise explained(  # noqa: B904 - it decides
                e, ShapeMethods.transpose, ("dim0", "dim1"), (dim0, dim1)
            )

    swapdims = transpose

    def swapaxes(self, axis0: int, axis1: int) -> Tensor:
        """Return x with two dims exchanged: `transpose`, with NumPy's names.

        Args:
            axis0: one dim.
            axis1: the other.

        Gradient: g with the dims exchanged back.

        Example:
            >>> burn.zeros(2, 3).swapaxes(0, 1).shape
            (3, 2)
        """
        rank = len(self.v.shape)
        a, c = one_dim("swapaxes", axis0, rank), one_dim("swapaxes", axis1, rank)
        return self.b.permute(self, SWAPPED[rank, a, c])

    def t(self) -> Tensor:
        """Return the transpose of a matrix; vectors and scalars stay.

        Raises:
            ShapeError: more than two dims.

        Example:
            >>> burn.zeros(2, 3).t().shape
            (3, 2)
        """
        rank = len(self.v.shape)
        if rank > 2:
            raise ShapeError("t", "needs at most two dims", got=list(self.shape), remedy="Use .mT.")
        return self.b.permute(self, (1, 0) if rank == 2 else tuple(range(rank)))

    @property
    def T(self) -> Tensor:
        """The dims in reverse order."""
        return self.b.permute(self, REVERSED[len(self.v.shape)])

    @property
    def mT(self) -> Tensor:
        """The last two dims swapped."""
        if len(self.v.shape) < 2:
            raise PropertyError("mT", "needs at least two dims", got=list(self.shape))
        return self.transpose(-2, -1)

    def movedim(self, source: Ints, destination: Ints) -> Tensor:
        """Return x with dims moved to other positions, the rest in order.

        Args:
            source: dims to move.
            destination: where each goes.

        Gradient: g moved back.

        Example:
            >>> burn.zeros(2, 3, 4).movedim(0, -1).shape
            (3, 4, 2)
        """
        rank = len(self.v.shape)
        here = [one_dim("movedim", d, rank) for d in as_ints("movedim", "source", source)]
        there = [
            one_dim("movedim", d, rank) for d in as_ints("movedim", "destination", destination)
        ]
        if len(here) != len(there) or len(set(here)) != len(here) or len(set(there)) != len(there):
            raise ArgumentError(
                "movedim", "source and destination name as many dims, each once",
                got=f"{source} and {destination}",
            )  # fmt: skip
        if not rank:
            return self.b.permute(self, ())
        rest = iter([d for d in range(rank) if d not in here])
        target = dict(zip(there, here, strict=True))
        return self.b.permute(
            self, tuple([target[i] if i in target else next(rest) for i in range(rank)])
        )

    moveaxis = movedim

    def flip(self, *args: Any, dims: Sequence[int] | None = None) -> Tensor:
        """Return x reversed along dims.

        Args:
            args: the dims to reverse, as ints or one tuple.
            dims: the same, by name.

        Gradient: g reversed.

        Example:
            >>> burn.tensor([1, 2, 3]).flip(0)
            tensor([3, 2, 1])
        """
        if dims is not None:
            args = (dims,)
        rank = len(self.v.shape)
        named = [one_dim("flip", d, rank) for d in flat("flip", "dims", args)]
        if not rank:
            return self.b.reshape(self, ())
        return self.b.flip(self, tuple(named))

    def fliplr(self) -> Tensor:
        """Return x reversed along its second dim.

        Example:
            >>> burn.tensor([[1, 2]]).fliplr()
            tensor([[2, 1]])
        """
        return self.flip(1)

    def flipud(self) -> Tensor:
        """Return x reversed along its first dim.

        Example:
            >>> burn.tensor([1, 2]).flipud()
            tensor([2, 1])
        """
        return self.flip(0)

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        """Return x rotated by k quarter turns, from the first towards the second of two dims.

        Gradient: g rotated back.

        Example:
            >>> burn.tensor([[1, 2], [3, 4]]).rot90()
            tensor([[2, 4],
                    [1, 3]])
        """
        rank = len(self.v.shape)
        pair = [one_dim("rot90", d, rank) for d in dims]
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ArgumentError("rot90", "dims are two different dims", got=dims)
        turns = as_int("rot90", "k", k) % 4
        if turns == 0:
            return self.b.reshape(self, self.v.shape)
        if turns == 2:
            return self.b.flip(self, (pair[0], pair[1]))
        if turns == 1:
            return self.b.flip(self.transpose(*pair), (pair[0],))
        return self.b.flip(self.transpose(*pair), (pair[1],))

    def roll(self, shifts: Ints, dims: Ints | None = None) -> Tensor:
        """Return x rotated along dims; what leaves at one end enters at the other.

        Args:
            shifts: how far, one per dim.
            dims: the dims; None rolls the flattened x and restores its shape.

        Gradient: g rolled back.

        Example:
            >>> burn.tensor([1, 2, 3]).roll(1)
            tensor([3, 1, 2])
        """
        shape = self.v.shape
        by = as_ints("roll", "shifts", shifts)
        if dims is None or (isinstance(dims, tuple) and not dims):
            if len(by) != 1:
                raise ArgumentError(
                    "roll", "one shift per dim", got=f"shifts {shifts}, dims {dims}"
                )
            line = self.b.roll(self.b.reshape(self, (prod(shape),)), (0,), by)
            return self.b.reshape(line, shape)
        at = tuple([one_dim("roll", d, len(shape)) for d in as_ints("roll", "dims", dims)])
        if not shape:
            return self.b.reshape(self, ())
        return self.b.roll(self, at, by)

    # ---- repetition without a copy ------------------------------------------------------------

    def expand(self, *args: Any, size: Sequence[int] | None = None) -> Tensor:
        """Return x with dims of extent 1 repeated, and new dims in front, without a copy.

        Args:
            args: extents, as ints or one tuple; -1 keeps a dim.
            size: the same, by name.

        Raises:
            ShapeError: a dim of another extent would change.

        Gradient: g summed over the repeated dims.

        Example:
            >>> burn.tensor([[1], [2]]).expand(-1, 2)
            tensor([[1, 1],
                    [2, 2]])
        """
        try:
            if size is not None:
                args = (size,)
            return self.b.expand(self, expanded(self.v.shape, args))
        except Exception as e:  # noqa: BLE001 - raised again
            raise explained(e, ShapeMethods.expand)  # noqa: B904 - it decides

    def expand_as(self, other: Tensor) -> Tensor:
        """Return x expanded to the shape of another tensor.

        Example:
            >>> burn.zeros(1, 2).expand_as(burn.zeros(3, 2)).shape
            (3, 2)
        """
        return self.b.expand(self, other.shape)

    def broadcast_to(self, shape: Sequence[int]) -> Tensor:
        """Return x expanded to a shape.

        Example:
            >>> burn.zeros(2).broadcast_to((3, 2)).shape
            (3, 2)
        """
        return self.b.expand(self, expanded(self.v.shape, (tuple(shape),)))

    def contiguous(self) -> Tensor:
        """Return x in row-major layout.

        Gradient: g.

        Example:
            >>> burn.zeros(2, 3).T.contiguous().shape
            (3, 2)
        """
        return self.b.contiguous(self)
