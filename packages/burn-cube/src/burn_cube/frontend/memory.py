"""Memory as a kernel sees it: arrays, slices of them, and tensors with shape and strides."""

from __future__ import annotations

from typing import Any

from burn_cube.frontend.values import (
    MemoryVal,
    Val,
    Waiting,
    builder_of,
    coerce_to,
    describe,
    is_number,
    plain,
)
from burn_cube.ir import Op
from burn_cube.types import Vector
from burn_std.dtypes import DType


def index_op(index: Any) -> Op:
    """Return an index as an operation of an integer dtype."""
    builder = builder_of("index")
    index = plain(index)
    if isinstance(index, Waiting):
        index.settle()
    if isinstance(index, Val):
        op = index.op
        if not isinstance(op.type, DType) or not op.type.is_int:
            raise builder.error("index", "is an integer scalar", op.type.short, types=True)
        if op.type is not builder.index and op.type.bits <= builder.index.bits:
            return builder.cast(op, builder.index)
        return op
    if isinstance(index, bool) or not isinstance(index, int):
        raise builder.error("index", "is an integer scalar", describe(index), types=True)
    if index < 0:
        rule = "a compile-time index is not negative"
        raise builder.error("index", rule, index, "Count from the start: len(x) - 1.")
    return builder.const(index, builder.index)


class ArrayVal(MemoryVal):
    """A line of elements: an `Array` parameter, `SharedMemory` or `LocalArray`."""

    __slots__ = ("size",)

    def __init__(self, op: Op, size: int | None = None) -> None:
        super().__init__(op)
        self.size = size

    def length(self) -> Val | int:
        """The number of elements: a compile-time number for shared and local memory."""
        if self.size is not None:
            return self.size
        return Val(builder_of("len").length(self.op))

    def __len__(self) -> int:
        if self.size is None:
            raise builder_of().error(
                "len", "the length of an Array is known at run time",
                remedy="Use length(x), or len(x) inside a @cube function.",
            )  # fmt: skip
        return self.size

    def _slice(self, index: slice) -> SliceVal:
        builder = builder_of("slice")
        if index.step is not None and index.step != 1:
            raise builder.error("slice", "a slice of memory has step 1", index.step)
        start = 0 if index.start is None else index.start
        stop = self.length() if index.stop is None else index.stop
        return SliceVal(self.op, start, stop - start)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        return self.load(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        builder = builder_of("store")
        place = self._place(index)
        builder.store(self.op, place, coerce_to(value, self.elem, "store"))

    def _place(self, index: Any) -> Op:
        if isinstance(index, tuple):
            raise builder_of().error("index", "an Array has one dimension", describe(index))
        return index_op(index)

    def load(self, index: Any, width: int = 1) -> Val:
        """Read the element at an index, or `width` neighbours from there as one vector."""
        return Val(builder_of("load").load(self.op, self._place(index), width))

    def store(self, index: Any, value: Any) -> None:
        """Write a value at an index; a vector fills as many neighbours as it has lanes."""
        builder = builder_of("store")
        wide = isinstance(value, Val) and value.width > 1 and not isinstance(self.elem, Vector)
        type_ = Vector(self.dtype, value.width) if wide else self.elem
        builder.store(self.op, self._place(index), coerce_to(value, type_, "store"))


class SliceVal(ArrayVal):
    """A part of an array: an offset and a length. Bounds are those of the whole array."""

    __slots__ = ("extent", "offset")

    def __init__(self, op: Op, offset: Any, extent: Any) -> None:
        super().__init__(op, extent if isinstance(extent, int) else None)
        self.offset = offset
        self.extent = extent

    def length(self) -> Any:
        """The number of elements."""
        return self.extent

    def _slice(self, index: slice) -> SliceVal:
        inner = super()._slice(index)
        return SliceVal(self.op, self.offset + inner.offset, inner.extent)

    def _place(self, index: Any) -> Op:
        return index_op(self.offset + index)


class TensorVal(MemoryVal):
    """A buffer with a shape and strides that are known at run time; its rank is not."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        rank: int = self.op.attrs["rank"]
        return rank

    @property
    def shape(self) -> _Facts:
        """The extents: `x.shape[0]`."""
        return _Facts(self, "shape")

    @property
    def strides(self) -> _Facts:
        """The strides, in elements."""
        return _Facts(self, "stride")

    def length(self) -> Val:
        """The number of elements of the buffer behind it."""
        return Val(builder_of("len").length(self.op))

    def offset(self, *index: Any) -> Any:
        """Return the place in the buffer of an index along each dimension."""
        if len(index) != self.rank:
            raise builder_of().error(
                "index", f"a Tensor of rank {self.rank} takes {self.rank} indices", len(index),
                "Use x.flat[i] for a place in its buffer.",
            )  # fmt: skip
        total: Any = 0
        for dim, position in enumerate(index):
            place = Val(index_op(position)) if not is_number(position) else position
            if isinstance(place, int) and place == 0:
                continue
            term = self.strides[dim] * place
            total = term if isinstance(total, int) else total + term
        return total

    @property
    def flat(self) -> ArrayVal:
        """The buffer behind the tensor, as an array."""
        return ArrayVal(self.op)

    def __getitem__(self, index: Any) -> Val:
        return self.flat.load(self.offset(*_tuple(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.flat[self.offset(*_tuple(index))] = value


def _tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


class _Facts:
    """The shape or the strides of a tensor, one run-time value a dimension."""

    __slots__ = ("_name", "_tensor")

    def __init__(self, tensor: TensorVal, name: str) -> None:
        self._tensor = tensor
        self._name = name

    def __len__(self) -> int:
        return self._tensor.rank

    def __iter__(self) -> Any:
        return (self[dim] for dim in range(len(self)))

    def __getitem__(self, dim: Any) -> Val:
        builder = builder_of(self._name)
        if isinstance(dim, Val):
            rule = "the dim is known at compile time"
            raise builder.error(self._name, rule, dim, "Loop with unroll(range(x.rank)).")
        read = builder.shape if self._name == "shape" else builder.stride
        return Val(read(self._tensor.op, dim))
