"""What a name can hold at expansion beside Python values: run-time values and memory.

`Val` is a value that exists only when the kernel runs; its operators append to the kernel that is
being made. `Slot` is a mutable local. Plain Python functions called at expansion see these objects
and compute with them as with numbers.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from burn_cube.builder import wrap
from burn_cube.errors import KernelError, KernelTypeError
from burn_cube.types import Memory, Type, Vector, like, scalar_of
from burn_std.dtypes import DType, bool_, float32, promote_dtypes

if TYPE_CHECKING:
    from burn_cube.builder import Builder
    from burn_cube.ir import Op

Number = bool | int | float
_STATE = threading.local()


def builder_of(what: str = "this") -> Builder:
    """Return the builder of the kernel that this thread expands."""
    builder: Builder | None = getattr(_STATE, "builder", None)
    if builder is None:
        raise KernelError(
            what, "has a meaning only while a kernel is expanded",
            remedy="Use it inside a function decorated with @cube.",
        )  # fmt: skip
    return builder


def swap_builder(builder: Builder | None) -> Builder | None:
    """Set the builder of this thread and return the one before."""
    before: Builder | None = getattr(_STATE, "builder", None)
    _STATE.builder = builder
    return before


class Val:
    """A value that exists when the kernel runs: a scalar or a vector.

    Attributes:
        op: the operation that makes it.
    """

    __slots__ = ("_op",)
    # numpy scalars on the left leave the operator to us.
    __array_ufunc__ = None

    def __init__(self, op: Op) -> None:
        self._op = op

    @property
    def op(self) -> Op:
        """The operation that makes the value."""
        return self._op

    @property
    def type(self) -> Type:
        """Its scalar or vector type."""
        made: Type = self._op.type
        return made

    @property
    def dtype(self) -> DType:
        """The dtype of the scalar, or of one lane."""
        return scalar_of(self.type)

    @property
    def width(self) -> int:
        """The number of lanes; 1 for a scalar."""
        return self.type.width if isinstance(self.type, Vector) else 1

    def cast(self, dtype: DType) -> Val:
        """Convert the value; floats saturate into integers and NaN gives 0."""
        return Val(builder_of("cast").cast(self.op, dtype))

    def bitcast(self, dtype: DType) -> Val:
        """Reinterpret the bits; the widths are equal."""
        return Val(builder_of("bitcast").bitcast(self.op, dtype))

    def __repr__(self) -> str:
        return f"<run-time {self.type.short}>"

    def __bool__(self) -> bool:
        raise KernelError(
            "branch", "a condition that plain Python decides is known at compile time",
            got=f"a run-time {self.type.short}",
            remedy="Write `if` in a @cube function, or use select(cond, a, b).",
        )  # fmt: skip

    def __index__(self) -> int:
        raise KernelError(
            "int", "a compile-time number is needed here", got=f"a run-time {self.type.short}",
            remedy="Pass it after `*` in the kernel's signature, or use cast(value, dtype).",
        )  # fmt: skip

    __int__ = __index__
    __float__ = __index__

    def __len__(self) -> int:
        return self.width if isinstance(self.type, Vector) else self.__index__()

    def __iter__(self) -> Any:
        return iter([self[lane] for lane in range(len(self))])

    def __getitem__(self, lane: Any) -> Val:
        builder = builder_of("lane")
        if not isinstance(lane, int):
            raise builder.error("lane", "the lane is a compile-time number", lane)
        return Val(builder.extract(self.op, lane if lane >= 0 else lane + self.width))

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Val:
        return unary("neg", self)

    def __pos__(self) -> Val:
        return self

    def __abs__(self) -> Val:
        return unary("abs", self)

    def __invert__(self) -> Val:
        return unary("not", self)

    def __add__(self, other: Any) -> Val:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Val:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Val:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Val:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Val:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Val:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Val:
        return binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Val:
        return binary("div", other, self)

    def __floordiv__(self, other: Any) -> Val:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Val:
        return binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Val:
        return binary("mod", self, other)

    def __rmod__(self, other: Any) -> Val:
        return binary("mod", other, self)

    def __pow__(self, other: Any) -> Val:
        return power(self, other)

    def __rpow__(self, other: Any) -> Val:
        return power(other, self)

    def __and__(self, other: Any) -> Val:
        return binary("and", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Val:
        return binary("or", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Val:
        return binary("xor", self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Val:
        return binary("shl", self, other)

    def __rlshift__(self, other: Any) -> Val:
        return binary("shl", other, self)

    def __rshift__(self, other: Any) -> Val:
        return binary("shr", self, other)

    def __rrshift__(self, other: Any) -> Val:
        return binary("shr", other, self)

    def __lt__(self, other: Any) -> Val:
        return binary("lt", self, other)

    def __le__(self, other: Any) -> Val:
        return binary("le", self, other)

    def __gt__(self, other: Any) -> Val:
        return binary("gt", self, other)

    def __ge__(self, other: Any) -> Val:
        return binary("ge", self, other)

    def __eq__(self, other: Any) -> Val:  # type: ignore[override]  # a run-time truth
        return binary("eq", self, other)

    def __ne__(self, other: Any) -> Val:  # type: ignore[override]  # a run-time truth
        return binary("ne", self, other)


class Slot(Val):
    """A mutable local. Reading it appends a `get`; its type may wait for the first use.

    A local that starts as a literal, `acc = 0.0`, takes the dtype of the first run-time value that
    meets it; alone it is float32, or the index dtype for an integer.
    """

    __slots__ = ("_reads", "_start", "slot")

    def __init__(self, value: Val | Number) -> None:
        builder = builder_of("local")
        self._reads: list[Op] = []
        self._start: Op | None = None
        if isinstance(value, Val):
            start = value.op
        else:
            start = builder.const(value, default_dtype(value, builder))
            self._start = start
        self.slot = builder.slot(start.type)
        builder.set(self.slot, start)

    @property
    def waiting(self) -> bool:
        """Whether the type still follows the first run-time value."""
        return self._start is not None

    @property
    def type(self) -> Type:
        """Its scalar or vector type."""
        made: Type = self.slot.type
        return made

    @property
    def op(self) -> Op:
        """A read of the local, here and now."""
        return self.read().op

    def read(self) -> Val:
        """Append a read; where the type waits, the result can still change its mind."""
        op = builder_of("local").get(self.slot)
        if self._start is None:
            return Val(op)
        self._reads.append(op)
        return Waiting(op, self)

    def settle(self, type_: Type | None = None) -> None:
        """Give a waiting local its type: the default without argument."""
        start, self._start = self._start, None
        if start is None or type_ is None or start.type is type_:
            return
        value = start.attrs["value"]
        dtype = scalar_of(type_)
        if isinstance(value, float) and not dtype.is_float:
            raise _literal_error(value, type_)
        start.attrs["value"] = float(value) if dtype.is_float else value
        if isinstance(type_, Vector):
            # The start is a scalar constant; a vector local takes it through a splat.
            _splat_start(start, type_)
        else:
            start.type = type_
        self.slot.type = type_
        for read in self._reads:
            read.type = type_

    def write(self, value: Val | Number) -> None:
        """Append a write."""
        builder = builder_of("local")
        if isinstance(value, Waiting) and value.slot is not self:
            value.settle()
        if self.waiting and isinstance(value, Val):
            self.settle(value.type)
        elif self.waiting:
            self.settle()
        builder.set(self.slot, coerce_to(value, self.type, "assignment"))


class Waiting(Val):
    """A read of a local whose type still waits."""

    __slots__ = ("slot",)

    def __init__(self, op: Op, slot: Slot) -> None:
        super().__init__(op)
        self.slot = slot

    def settle(self, type_: Type | None = None) -> None:
        """Give the local its type."""
        self.slot.settle(type_)


def _splat_start(start: Op, type_: Vector) -> None:
    from burn_cube.ir import Op

    scalar = Op("const", type_.dtype, (), dict(start.attrs), (), start.where)
    start.name, start.type, start.args, start.attrs = "vector", type_, (scalar,) * type_.width, {}
    for region in _regions(builder_of().body):
        if start in region.ops:
            region.ops.insert(region.ops.index(start), scalar)
            return


def _regions(region: Any) -> Any:
    yield region
    for op in region.ops:
        for inner in op.regions:
            yield from _regions(inner)


def default_dtype(value: Number, builder: Builder) -> DType:
    """Return the dtype of a literal that meets no run-time value."""
    if isinstance(value, bool):
        return bool_
    return builder.index if isinstance(value, int) else float32


def is_number(value: object) -> bool:
    """Return whether a compile-time value can become a constant of the kernel."""
    return isinstance(value, bool | int | float)


def plain(value: Any) -> Any:
    """Return numpy scalars as Python numbers, all else as it is."""
    item = getattr(value, "item", None)
    if item is not None and not isinstance(value, Val | bool | int | float) and value.ndim == 0:
        return item()
    return value


def _literal_error(value: Number, type_: Type) -> KernelError:
    return builder_of().error(
        "literal", f"{value!r} is no value of {scalar_of(type_).name}", type_.short,
        "Cast the other side, or write a literal of its type.", True,
    )  # fmt: skip


def coerce_to(value: Any, type_: Type, what: str) -> Op:
    """Return a value as an operation of a type; literals adapt, values do not change kind."""
    builder = builder_of(what)
    value = plain(value)
    if isinstance(value, Waiting):
        value.settle(type_)
    if isinstance(value, Val):
        op = value.op
        if op.type is type_:
            return op
        if isinstance(type_, Vector) and op.type is type_.dtype:
            return builder.splat(op, type_.width)
        mine, wanted = scalar_of(op.type), scalar_of(type_)
        if like(op.type, wanted) is type_ and promote_same_kind(mine, wanted) is wanted:
            return builder.cast(op, wanted)
        raise builder.error(
            what, f"needs {type_.short}", op.type.short, f"Use cast(value, {wanted.name}).", True
        )
    if not is_number(value):
        raise builder.error(what, f"needs a {type_.short}", describe(value), types=True)
    dtype = scalar_of(type_)
    if dtype.is_int and isinstance(value, float):
        raise _literal_error(value, type_)
    if dtype.is_bool and not isinstance(value, bool):
        raise _literal_error(value, type_)
    if dtype.is_int and wrap(int(value), dtype) != int(value):
        raise _literal_error(value, type_)
    return builder.const(value, type_)


def promote_same_kind(a: DType, b: DType) -> DType | None:
    """Return the wider dtype of two of one kind; None where a cast must be written."""
    if a is b:
        return a
    if a.is_float is not b.is_float or a.is_bool is not b.is_bool:
        return None
    return promote_dtypes(a, b)


def pair(name: str, left: Any, right: Any) -> tuple[Op, Op]:
    """Return two operands in one type."""
    builder = builder_of(name)
    left, right = plain(left), plain(right)
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Waiting):
            strong = isinstance(other, Val) and not isinstance(other, Waiting)
            value.settle(other.type if strong else None)
    if not isinstance(left, Val):
        return coerce_to(left, right.type, name), right.op
    if not isinstance(right, Val):
        return left.op, coerce_to(right, left.type, name)
    a, b = left.op, right.op
    if a.type is b.type:
        return a, b
    common = promote_same_kind(scalar_of(a.type), scalar_of(b.type))
    lanes = {t.width for t in (a.type, b.type) if isinstance(t, Vector)}
    if common is None or len(lanes) > 1:
        raise builder.error(
            name, "both sides have one kind of number and as many lanes",
            f"{a.type.short} and {b.type.short}", "Cast one side: cast(value, dtype).", True,
        )  # fmt: skip
    width = lanes.pop() if lanes else 1
    return _widen(builder, a, common, width), _widen(builder, b, common, width)


def _widen(builder: Builder, op: Op, dtype: DType, width: int) -> Op:
    op = builder.cast(op, dtype)
    return op if width == 1 or isinstance(op.type, Vector) else builder.splat(op, width)


def unary(name: str, value: Any) -> Val:
    """Append an operation of one operand."""
    return Val(builder_of(name).op(name, value.op))


def binary(name: str, left: Any, right: Any) -> Val:
    """Append an operation of two operands, brought to one type."""
    builder = builder_of(name)
    for side in (left, right):
        if not isinstance(side, Val) and not is_number(plain(side)):
            raise KernelTypeError(
                name, "takes numbers and run-time values", got=describe(side), where=builder.where
            )
    a, b = pair(name, left, right)
    if name == "div" and not scalar_of(a.type).is_float:
        raise builder.error(
            "div", "`/` divides floats", a.type.short,
            "Use // to floor, or cast(value, float32) first.", True,
        )  # fmt: skip
    return Val(builder.op(name, a, b))


def power(base: Any, exponent: Any) -> Val:
    """Append base ** exponent; a small compile-time integer exponent multiplies."""
    if isinstance(exponent, int) and not isinstance(exponent, bool) and 0 < exponent <= 8:
        result: Val | None = None
        square, left = base, exponent
        while left:
            if left & 1:
                result = square if result is None else result * square
            left >>= 1
            square = square * square if left else square
        return base if result is None else result
    return binary("pow", base, exponent)


def describe(value: object) -> str:
    """Return a value in the words of an error."""
    if isinstance(value, Val):
        return f"a run-time {value.type.short}"
    if isinstance(value, MemoryVal):
        return f"memory {value.op.type.short}"
    return f"{type(value).__name__} {value!r}"


class MemoryVal:
    """Memory with an index: the base of arrays, tensors, slices and shared memory."""

    __slots__ = ("op",)

    def __init__(self, op: Op) -> None:
        self.op = op

    @property
    def memory(self) -> Memory:
        """The address space and the element type."""
        made: Memory = self.op.type
        return made

    @property
    def elem(self) -> Type:
        """The type of one element."""
        return self.memory.elem

    @property
    def dtype(self) -> DType:
        """The dtype of one element, or of its lanes."""
        return scalar_of(self.memory.elem)

    def __repr__(self) -> str:
        return f"<memory {self.memory.short}>"
