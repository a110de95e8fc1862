"""The words of the kernel language: what a `@cube` function imports and calls.

Annotations say what a parameter is: `Array[F]`, `Tensor[F, 2]`, a dtype for a run-time scalar.
Functions append to the kernel that is being expanded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from burn_cube.errors import KernelError
from burn_cube.frontend.memory import ArrayVal, index_op
from burn_cube.frontend.values import (
    Slot,
    Val,
    Waiting,
    binary,
    builder_of,
    coerce_to,
    default_dtype,
    describe,
    is_number,
    pair,
    plain,
)
from burn_cube.types import Type, Vector, width_of
from burn_std.dtypes import FLOATS, INTS, PLAIN, DType, bool_, float32, uint32


class Generic:
    """A dtype that the launch decides.

    Inside the kernel the name stands for the dtype that the arguments brought; `F(0)` converts to
    it. One name has one dtype in one kernel.

    Args:
        name: how errors call it.
        among: dtypes it may stand for.

    Example:
        >>> F = Generic("F", FLOATS)
        >>> F
        Generic('F')
    """

    __slots__ = ("among", "name")

    def __init__(self, name: str, among: Iterable[DType] = PLAIN) -> None:
        self.name = name
        self.among = tuple(among)

    def __repr__(self) -> str:
        return f"Generic({self.name!r})"

    def __call__(self, value: Any) -> Val:
        """Convert a value; the front end replaces the name by its dtype before it comes here."""
        raise KernelError(self.name, "a generic dtype has no meaning in plain Python", got=value)


Float = Generic("Float", FLOATS)
Int = Generic("Int", INTS)
Numeric = Generic("Numeric", (*INTS, *FLOATS))


class BufferAnnotation:
    """What `Array[F]` and `Tensor[F, 2]` mean: an element type, lanes, a rank.

    Attributes:
        kind: `array` or `tensor`.
        elem: a dtype, a `Generic`, or None where the argument decides.
        width: lanes of one element, 1 for a scalar.
        rank: dimensions of a tensor, or None where the argument decides.
    """

    __slots__ = ("elem", "kind", "rank", "width")

    def __init__(self, kind: str, elem: Any = None, width: int = 1, rank: int | None = None):
        self.kind = kind
        self.elem = elem
        self.width = width
        self.rank = rank

    def __getitem__(self, item: Any) -> BufferAnnotation:
        elem, number = item if isinstance(item, tuple) else (item, None)
        if not isinstance(elem, DType | Generic):
            raise KernelError(self.kind, "elements are a dtype or a Generic", got=describe(elem))
        if self.kind == "tensor":
            return BufferAnnotation("tensor", elem, 1, number)
        return BufferAnnotation("array", elem, number or 1)

    def __repr__(self) -> str:
        return self.kind.capitalize()


Array = BufferAnnotation("array")
Tensor = BufferAnnotation("tensor")


class Position:
    """A position or a count that each unit, cube or launch has; the front end reads it.

    Attributes:
        name: its name in the IR.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self) -> Any:
        """Append the read; what the launch fixes at compile time is a plain number."""
        builder = builder_of(self.name.upper())
        x, y, z = builder.dims
        fixed = {
            "cube_dim": x * y * z, "cube_dim_x": x, "cube_dim_y": y, "cube_dim_z": z,
            "plane_dim": builder.plane_dim, "plane_count": -(-x * y * z // builder.plane_dim),
        }  # fmt: skip
        return fixed[self.name] if self.name in fixed else Val(builder.special(self.name))

    def __repr__(self) -> str:
        return self.name.upper()


ABSOLUTE_POS = Position("absolute_pos")
ABSOLUTE_POS_X = Position("absolute_pos_x")
ABSOLUTE_POS_Y = Position("absolute_pos_y")
ABSOLUTE_POS_Z = Position("absolute_pos_z")
UNIT_POS = Position("unit_pos")
UNIT_POS_X = Position("unit_pos_x")
UNIT_POS_Y = Position("unit_pos_y")
UNIT_POS_Z = Position("unit_pos_z")
CUBE_POS = Position("cube_pos")
CUBE_POS_X = Position("cube_pos_x")
CUBE_POS_Y = Position("cube_pos_y")
CUBE_POS_Z = Position("cube_pos_z")
CUBE_COUNT = Position("cube_count")
CUBE_COUNT_X = Position("cube_count_x")
CUBE_COUNT_Y = Position("cube_count_y")
CUBE_COUNT_Z = Position("cube_count_z")
CUBE_DIM = Position("cube_dim")
CUBE_DIM_X = Position("cube_dim_x")
CUBE_DIM_Y = Position("cube_dim_y")
CUBE_DIM_Z = Position("cube_dim_z")
PLANE_DIM = Position("plane_dim")
PLANE_COUNT = Position("plane_count")
PLANE_POS = Position("plane_pos")
UNIT_POS_PLANE = Position("unit_pos_plane")


class IndexType:
    """The dtype of positions and lengths, int32 or int64; the launch decides."""

    __slots__ = ()

    def read(self) -> DType:
        """Return the dtype of the kernel that is being expanded."""
        return builder_of("index").index

    def __repr__(self) -> str:
        return "index"


index = IndexType()


def unroll(sequence: Iterable[Any]) -> list[Any]:
    """Return the items of a compile-time sequence; a `for` over them is written out.

    Example:
        >>> unroll(range(3))
        [0, 1, 2]
    """
    return list(sequence)


def comptime(value: Any) -> Any:
    """Return the value after checking that it is known at compile time.

    Raises:
        KernelError: it exists only at run time.

    Example:
        >>> comptime(4)
        4
    """
    if isinstance(value, Val):
        raise builder_of("comptime").error("comptime", "is known at compile time", value)
    return value


# --- memory ------------------------------------------------------------------------------------


def SharedMemory(dtype: Type, size: int) -> ArrayVal:
    """Return memory of `size` elements that the units of a cube share; not cleared."""
    builder = builder_of("SharedMemory")
    return ArrayVal(builder.shared(_elem(dtype, "SharedMemory"), _size(size)), _size(size))


def LocalArray(dtype: Type, size: int) -> ArrayVal:
    """Return an array of `size` elements of each unit's own, zero when the kernel starts."""
    builder = builder_of("LocalArray")
    return ArrayVal(builder.local(_elem(dtype, "LocalArray"), _size(size)), _size(size))


def _elem(dtype: Any, what: str) -> Type:
    if not isinstance(dtype, DType | Vector):
        raise builder_of().error(what, "elements are a dtype or a Vector", describe(dtype))
    return dtype


def _size(size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int):
        rule = "the size is a compile-time integer"
        raise builder_of().error("array", rule, describe(size), "Pass it after `*`.")
    return size


def length(memory: Any) -> Any:
    """Return the number of elements of an array, slice or tensor buffer."""
    return memory.length()


# --- values ------------------------------------------------------------------------------------


def cast(value: Any, dtype: DType) -> Val:
    """Convert to a dtype: integers wrap, floats saturate into integers and NaN gives 0."""
    builder = builder_of("cast")
    value = plain(value)
    if not isinstance(dtype, DType):
        raise builder.error("cast", "the target is a dtype", describe(dtype), types=True)
    if isinstance(value, Waiting):
        value.settle()
    if isinstance(value, Val):
        return Val(builder.cast(value.op, dtype))
    if not is_number(value):
        raise builder.error("cast", "takes a number", describe(value), types=True)
    if isinstance(value, float) and dtype.is_int:
        return Val(builder.cast(builder.const(value, default_dtype(value, builder)), dtype))
    return Val(builder.const(value, dtype))


def bitcast(value: Val, dtype: DType) -> Val:
    """Reinterpret the bits as another dtype of the same width."""
    return Val(builder_of("bitcast").bitcast(value.op, dtype))


def select(cond: Any, then: Any, other: Any) -> Any:
    """Return `then` where cond holds, else `other`; both are computed."""
    builder = builder_of("select")
    if isinstance(cond, bool):
        return then if cond else other
    if not isinstance(then, Val) and not isinstance(other, Val):
        literals = [plain(then), plain(other)]
        kind = float if any(isinstance(v, float) for v in literals) else type(literals[0])
        dtype = default_dtype(kind(0), builder)
        then, other = cast(then, dtype), cast(other, dtype)
    a, b = pair("select", then, other)
    if isinstance(cond.type, Vector) and not isinstance(a.type, Vector):
        a, b = builder.splat(a, cond.width), builder.splat(b, cond.width)
    return Val(builder.select(cond.op, a, b))


def fma(a: Any, b: Any, c: Any) -> Val:
    """Return a * b + c rounded once."""
    builder = builder_of("fma")
    x, y = pair("fma", a, b)
    z = coerce_to(c, x.type, "fma")
    return Val(builder.op("fma", x, y, z))


def vector(*lanes: Any) -> Val:
    """Return a vector of 2, 4, 8 or 16 lanes."""
    builder = builder_of("vector")
    first = next((lane for lane in lanes if isinstance(lane, Val)), None)
    type_ = first.type if first is not None else default_dtype(plain(lanes[0]), builder)
    try:
        return Val(builder.vector(*[coerce_to(lane, type_, "vector") for lane in lanes]))
    except ValueError as error:
        if isinstance(error, KernelError):
            raise
        raise builder.error("vector", str(error)) from None


def splat(value: Any, width: int) -> Val:
    """Return a vector with one value in all lanes; of width 1, as of loads, it is the value."""
    builder = builder_of("splat")
    value = value if isinstance(value, Val) else cast(value, default_dtype(value, builder))
    if width_of(value.type) > 1:
        raise builder.error("splat", "takes one value", value.type.short, types=True)
    if width == 1:
        return Val(value.op)
    try:
        return Val(builder.splat(value.op, width))
    except ValueError as error:
        raise builder.error("splat", str(error)) from None


def local(value: Any) -> Slot:
    """Return a mutable cell with a first value, for lists that a run-time loop changes."""
    return Slot(plain(value))


def async_copy(
    target: Any, at: Any, source: Any, start: Any, width: int = 1, *, aligned: bool = False,
    inside: Any = None,
) -> None:  # fmt: skip
    """Start a copy of `width` elements of a buffer into shared memory.

    What it wrote is there for this unit after `async_wait()`, and for the others after a
    `sync_cube()` behind that. Devices without such copies make it at once.

    Args:
        target: shared memory.
        at: where the copy goes.
        source: an array.
        start: where it comes from.
        width: neighbours to copy: 1, 2, 4, 8 or 16.
        aligned: promises that both ends are at multiples of the size of the copy.
        inside: a bool; where it is false, zeros are written and the source is not read.
    """
    builder_of("async_copy").async_copy(
        target.op, target._place(at), source.op, source._place(start), width, aligned,
        None if inside is None else cast(inside, bool_).op,
    )  # fmt: skip


def async_commit() -> None:
    """Close the group of the copies that this unit started since the last group."""
    builder_of("async_commit").async_commit()


def async_wait(pending: int | None = None) -> None:
    """Wait for the copies that this unit started.

    Args:
        pending: how many groups may still be under way, the latest ones; None waits for all
            copies, closed groups or not.
    """
    builder_of("async_wait").async_wait(pending)


# --- units together ----------------------------------------------------------------------------


def sync_cube() -> None:
    """Wait until every unit of the cube is here; writes before are seen after."""
    builder_of("sync_cube").barrier("cube")


def sync_plane() -> None:
    """Wait until every unit of the plane is here."""
    builder_of("sync_plane").barrier("plane")


def _plane(kind: str, value: Any, lane: Any = None) -> Val:
    builder = builder_of(f"plane_{kind}")
    value = value if isinstance(value, Val) else cast(value, default_dtype(value, builder))
    return Val(builder.plane(kind, value.op, None if lane is None else index_op(lane)))


def plane_sum(value: Any) -> Val:
    """Return the sum over the plane, to each unit."""
    return _plane("sum", value)


def plane_prod(value: Any) -> Val:
    """Return the product over the plane, to each unit."""
    return _plane("prod", value)


def plane_min(value: Any) -> Val:
    """Return the least value of the plane, to each unit; NaN wins."""
    return _plane("min", value)


def plane_max(value: Any) -> Val:
    """Return the greatest value of the plane, to each unit; NaN wins."""
    return _plane("max", value)


def plane_all(value: Any) -> Val:
    """Return whether the bool holds in every unit of the plane."""
    return _plane("all", value)


def plane_any(value: Any) -> Val:
    """Return whether the bool holds in some unit of the plane."""
    return _plane("any", value)


def plane_ballot(value: Any) -> Val:
    """Return the bools of the plane as the bits of a uint32, unit 0 lowest."""
    return _plane("ballot", value)


def plane_inclusive_sum(value: Any) -> Val:
    """Return the sum over the units of the plane up to and with this one."""
    return _plane("inclusive_sum", value)


def plane_exclusive_sum(value: Any) -> Val:
    """Return the sum over the units of the plane before this one."""
    return _plane("exclusive_sum", value)


def plane_inclusive_prod(value: Any) -> Val:
    """Return the product over the units of the plane up to and with this one."""
    return _plane("inclusive_prod", value)


def plane_exclusive_prod(value: Any) -> Val:
    """Return the product over the units of the plane before this one."""
    return _plane("exclusive_prod", value)


def plane_shuffle(value: Any, lane: Any) -> Val:
    """Return the value of another unit of the plane, by its position in it."""
    return _plane("shuffle", value, lane)


def plane_shuffle_xor(value: Any, mask: Any) -> Val:
    """Return the value of the unit whose position differs in the bits of the mask."""
    return _plane("shuffle_xor", value, mask)


def plane_shuffle_up(value: Any, delta: Any) -> Val:
    """Return the value of the unit `delta` before; the first ones keep their own."""
    return _plane("shuffle_up", value, delta)


def plane_shuffle_down(value: Any, delta: Any) -> Val:
    """Return the value of the unit `delta` behind; the last ones keep their own."""
    return _plane("shuffle_down", value, delta)


def plane_broadcast(value: Any, lane: Any) -> Val:
    """Return the value of one unit of the plane, the same for all."""
    return _plane("broadcast", value, lane)


def plane_elect() -> Val:
    """Return whether this unit is the first of its plane."""
    return binary("eq", Val(builder_of("plane_elect").special("unit_pos_plane")), 0)


# --- tiles -------------------------------------------------------------------------------------


def tile_fill(value: Any) -> Val:
    """Return a 16x16 accumulator tile of float32 that the units of a plane hold together."""
    builder = builder_of("tile_fill")
    return Val(builder.tile_fill(coerce_to(value, float32, "tile_fill"), 16, 16))


def tile_load(
    use: str, memory: ArrayVal, position: Any, stride: Any, *, layout: str = "row",
    aligned: bool = False,
) -> Val:  # fmt: skip
    """Return a tile of memory for the tensor cores, or what stands for them.

    Args:
        use: `a` (16 x k), `b` (k x 16) or `acc` (16 x 16); k is 16 for float16 and bfloat16, and
            8 for float32, which is rounded to tf32.
        memory: an array or shared memory.
        position: place of the first element.
        stride: elements from one row to the next, or one column with layout `col`.
        layout: `row` or `col`.
        aligned: promises that rows of the memory begin at multiples of 16 bytes and that nothing
            is outside, so that neither is tested.
    """
    builder = builder_of("tile_load")
    inner = 8 if memory.dtype is float32 else 16
    rows, cols = {"a": (16, inner), "b": (inner, 16)}.get(use, (16, 16))
    place = memory._place(position)
    return Val(
        builder.tile_load(use, memory.op, place, index_op(stride), rows, cols, layout, aligned)
    )


def tile_mma(a: Val, b: Val, acc: Val) -> Val:
    """Return the accumulator a @ b + acc, products and sums in float32."""
    return Val(builder_of("tile_mma").tile_mma(a.op, b.op, acc.op))


def tile_element(tile: Val, number: int) -> Val:
    """Return one of the eight elements of an accumulator that this unit holds.

    With 32 units a plane, unit u holds as element n the row `u // 4 + (n // 2 % 2) * 8` and the
    column `u % 4 * 2 + n % 2 + n // 4 * 8`. Four neighbours hold a row together.
    """
    return Val(builder_of("tile_element").tile_element(tile.op, number))


def tile_of(elements: Iterable[Val]) -> Val:
    """Return the accumulator of which each unit gives its eight elements."""
    return Val(builder_of("tile_of").tile_of(*[e.op for e in elements]))


def tile_operand(tile: Val, dtype: DType) -> Val:
    """Return an accumulator as the left operand of another product, rounded to a half dtype."""
    return Val(builder_of("tile_operand").tile_operand(tile.op, dtype))


def group_mma(
    sums: Sequence[Slot], left: Any, right: ArrayVal, places: Sequence[Any], *,
    turned: tuple[bool, bool] = (False, False), span: tuple[int, int] = (64, 64),
    fresh: bool = False,
) -> None:  # fmt: skip
    """Add left @ right to sums that four neighbouring planes hold together, and do not wait.

    The product is 64 x 16 n of n accumulators: each plane has 16 of its rows. Operands are halves
    in shared memory in lines of 64, at places that `group_place` gives; operands begin at
    multiples of eight lines. A step multiplies a depth of 16. The sums, and tiles on the left,
    are not touched before `group_wait`.

    Args:
        sums: one to sixteen cells, `local(tile_fill(0.0))`, each for 16 columns.
        left: tiles `a` of each plane, one for every step, made where they are multiplied; or
            shared memory and a place for every step, counted without the swizzle: 64 times the
            line, and the column.
        right: shared memory.
        places: the place of the right operand for every step.
        turned: whether lines of the left and of the right operand run along its rows (m) and
            columns (n) instead of along the depth.
        span: where they do, how many lines further the next 64 rows or columns begin.
        fresh: replaces the sums.
    """
    cells = [cell.slot for cell in sums]
    if isinstance(left, tuple) and isinstance(left[0], ArrayVal):
        memory, starts = left
        given: Any = (memory.op, [memory._place(p) for p in starts])
    else:
        given = [tile.op for tile in left]
    builder_of("group_mma").group_mma(
        cells, given, right.op, [right._place(p) for p in places], turned=turned, span=span,
        fresh=fresh,
    )  # fmt: skip


def group_wait(sums: Sequence[Slot]) -> None:
    """Wait for the products of four planes; behind it the cells are read or changed."""
    builder_of("group_wait").group_wait([cell.slot for cell in sums])


def group_place(line: Any, column: Any) -> Val:
    """Return where an element of an operand of `group_mma` lies, in lines of 64 halves.

    Chunks of eight columns are swizzled: chunk c of line l lies at c ^ (l % 8).
    """
    line, column = (Val(index_op(n)) for n in (line, column))
    chunk = binary("xor", binary("truncdiv", column, 8), binary("rem", line, 8))
    head = binary("add", binary("mul", line, 64), binary("mul", chunk, 8))
    return binary("add", head, binary("rem", column, 8))


def tile_store(
    memory: ArrayVal, position: Any, stride: Any, tile: Val, *, layout: str = "row"
) -> None:
    """Write an accumulator into memory of float32."""
    builder = builder_of("tile_store")
    place = memory._place(position)
    builder.tile_store(memory.op, place, index_op(stride), tile.op, layout)


# --- atomics -----------------------------------------------------------------------------------


def _atomic(kind: str, memory: Any, position: Any, value: Any) -> Val:
    builder = builder_of(f"atomic_{kind}")
    place = memory._place(position)
    return Val(builder.atomic(kind, memory.op, place, coerce_to(value, memory.elem, "atomic")))


def atomic_add(memory: ArrayVal, position: Any, value: Any) -> Val:
    """Add to an element; return its old value."""
    return _atomic("add", memory, position, value)


def atomic_sub(memory: ArrayVal, position: Any, value: Any) -> Val:
    """Subtract from an integer element; return its old value."""
    return _atomic("sub", memory, position, value)


def atomic_min(memory: ArrayVal, position: Any, value: Any) -> Val:
    """Keep the smaller integer; return the old value."""
    return _atomic("min", memory, position, value)


def atomic_max(memory: ArrayVal, position: Any, value: Any) -> Val:
    """Keep the greater integer; return the old value."""
    return _atomic("max", memory, position, value)


def atomic_and(memory: ArrayVal, position: Any, value: Any) -> Val:
    """Combine an integer element bitwise; return its old value."""
    return _atomic("and", memory, position, value)


def atomic_or(memory: ArrayVal, position: Any, value: Any) -> Val:
    """Combine an integer element bitwise; return its old value."""
    return _atomic("or", memory, position, value)


def atomic_xor(memory: ArrayVal, position: Any, value: Any) -> Val:
    """Combine an integer element bitwise; return its old value."""
    return _atomic("xor", memory, position, value)


def atomic_exchange(memory: ArrayVal, position: Any, value: Any) -> Val:
    """Replace an element; return its old value."""
    return _atomic("exchange", memory, position, value)


def atomic_cas(memory: ArrayVal, position: Any, expected: Any, value: Any) -> Val:
    """Replace an integer element where it equals `expected`; return its old value."""
    builder = builder_of("atomic_cas")
    old = coerce_to(expected, memory.elem, "atomic_cas")
    new = coerce_to(value, memory.elem, "atomic_cas")
    return Val(builder.atomic_cas(memory.op, memory._place(position), old, new))


def ballot_count(mask: Val) -> Val:
    """Return how many bits of a ballot are set, as uint32."""
    return Val(builder_of("popcount").op("popcount", coerce_to(mask, uint32, "popcount")))
