"""The builder: how a kernel is made, by the front end or by a program such as a fuser.

Each method appends one operation to the current region, checks its types and returns it. Control
operations are context managers. Nothing here knows of Python source.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from burn_cube.errors import KernelError, KernelTypeError, Where
from burn_cube.ir import Kernel, Op, Region
from burn_cube.operations import ATOMICS, JUMPS, PLANE, PURE, SPECIALS
from burn_cube.types import Memory, Tile, Type, Vector, like, scalar_of, truth, width_of
from burn_std.dtypes import DType, bfloat16, bool_, float16, float32, int32, int64, uint32

BOUNDS = ("checked", "validated", "unchecked")


class Builder:
    """Makes one kernel.

    Args:
        name: name of the kernel; characters that C does not take become underscores.
        cube_dim: units of a cube: a number, or up to three.
        index: dtype of positions and lengths, int32 or int64.
        plane_dim: units of a plane.
        bounds: what an index outside of a buffer does. `checked`: a read gives 0 and a write is
            dropped; `validated`: the same, and the next sync raises; `unchecked`: the caller
            promises that there is none.
        fast_math: give up the rules for inf and NaN in this kernel.

    Example:
        >>> from burn_std.dtypes import float32
        >>> b = Builder("fill", cube_dim=32)
        >>> x, value = b.buffer("x", float32), b.scalar("value", float32)
        >>> b.store(x, b.special("absolute_pos"), value)
        >>> print(b.finish())
        kernel fill(%x: global<f32>, %value: f32) cube 32x1x1 plane 32 index i64 bounds checked
          %0 = special absolute_pos : i64
          store %x, %0, %value
    """

    def __init__(
        self,
        name: str,
        cube_dim: int | tuple[int, ...] = 256,
        *,
        index: DType = int64,
        plane_dim: int = 32,
        bounds: str = "checked",
        fast_math: bool = False,
    ) -> None:
        dims = (cube_dim,) if isinstance(cube_dim, int) else tuple(cube_dim)
        if not 1 <= len(dims) <= 3 or any(d < 1 for d in dims):
            raise KernelError(name, "a cube has one to three positive dimensions", got=cube_dim)
        if bounds not in BOUNDS:
            raise KernelError(name, f"bounds is one of {', '.join(BOUNDS)}", got=repr(bounds))
        if index not in (int32, int64):
            raise KernelTypeError(name, "the index dtype is int32 or int64", got=index)
        self.name = re.sub(r"\W", "_", name)
        x, y, z = (*dims, 1, 1)[:3]
        self.dims = (x, y, z)
        self.index = index
        self.plane_dim = plane_dim
        self.bounds = bounds
        self.fast_math = fast_math
        self.params: list[Op] = []
        self.body = Region()
        self.region = self.body
        self.where: Where | None = None
        self.loops: list[Op] = []

    # --- the frame -------------------------------------------------------------------------

    def buffer(self, name: str, elem: Type, rank: int | None = None) -> Op:
        """Add a buffer parameter; with a rank it carries shape and strides as well."""
        attrs: dict[str, Any] = {"name": name}
        if rank is not None:
            attrs["rank"] = rank
        return self._param(Op("param", Memory("global", elem), (), attrs, (), self.where))

    def scalar(self, name: str, dtype: DType) -> Op:
        """Add a scalar parameter."""
        return self._param(Op("param", dtype, (), {"name": name}, (), self.where))

    def _param(self, op: Op) -> Op:
        if any(op.attrs["name"] == other.attrs["name"] for other in self.params):
            raise self.error("param", "each parameter has its own name", got=op.attrs["name"])
        self.params.append(op)
        return op

    def finish(self) -> Kernel:
        """Return the kernel; the builder is used up."""
        return Kernel(
            self.name, self.params, self.body, self.dims, self.plane_dim, self.index,
            self.bounds, self.fast_math,
        )  # fmt: skip

    def error(
        self, op: str, rule: str, got: object = None, remedy: str | None = None, types: bool = False
    ) -> KernelError:
        """Return the error of a broken rule at the current place."""
        kind = KernelTypeError if types else KernelError
        return kind(op, rule, got=got, remedy=remedy, where=self.where)

    def emit(
        self,
        name: str,
        type_: Any = None,
        args: tuple[Op, ...] = (),
        attrs: dict[str, Any] | None = None,
        regions: tuple[Region, ...] = (),
    ) -> Op:
        """Append an operation without checking it: the other methods are the checked way."""
        op = Op(name, type_, args, attrs, regions, self.where)
        self.region.ops.append(op)
        return op

    @property
    def ended(self) -> bool:
        """Whether the current region ends in a jump: what follows is never reached."""
        ops = self.region.ops
        return bool(ops) and ops[-1].name in JUMPS

    # --- values ----------------------------------------------------------------------------

    def const(self, value: complex | bool, type_: Type) -> Op:
        """Add a constant; integers wrap into their type."""
        dtype = scalar_of(type_)
        if dtype.is_int:
            number: Any = wrap(int(value.real), dtype)
        elif dtype.is_bool:
            number = bool(value)
        else:
            number = float(value.real)
        op = self.emit("const", dtype, (), {"value": number})
        return self.splat(op, type_.width) if isinstance(type_, Vector) else op

    def op(self, name: str, *args: Op) -> Op:
        """Add a pure operation of the table `burn_cube.operations.PURE`."""
        rule = PURE.get(name)
        if rule is None:
            raise self.error(name, "no such operation")
        if len(args) != rule.arity:
            raise self.error(name, f"takes {rule.arity} operands", got=len(args))
        first = args[0].type
        if isinstance(first, Memory | Tile) or any(arg.type is not first for arg in args):
            got = ", ".join(arg.type.short for arg in args)
            raise self.error(name, "all operands have one type", got, "Cast one side.", True)
        kind = scalar_of(first).kind
        if kind not in rule.kinds:
            allowed = ", ".join(sorted(rule.kinds))
            raise self.error(name, f"is defined for {allowed}", first.short, "Cast first.", True)
        return self.emit(name, truth(first) if rule.result == "truth" else first, args)

    def select(self, cond: Op, then: Op, other: Op) -> Op:
        """Add a choice per lane; both sides are computed."""
        if scalar_of(cond.type) is not bool_:
            raise self.error("select", "the condition is a bool", cond.type.short, types=True)
        if then.type is not other.type:
            got = f"{then.type.short} and {other.type.short}"
            raise self.error("select", "both sides have one type", got, "Cast one.", True)
        if cond.type is not bool_ and cond.type is not truth(then.type):
            got = f"{cond.type.short} for {then.type.short}"
            raise self.error("select", "the condition has one lane or as many", got, types=True)
        return self.emit("select", then.type, (cond, then, other))

    def cast(self, value: Op, dtype: DType) -> Op:
        """Add a conversion of the value: floats saturate into integers, NaN gives 0."""
        type_ = like(value.type, dtype)
        return value if type_ is value.type else self.emit("cast", type_, (value,))

    def bitcast(self, value: Op, dtype: DType) -> Op:
        """Add a reinterpretation of the bits; the widths are equal."""
        old = scalar_of(value.type)
        if old.bits != dtype.bits or bool_ in (old, dtype):
            got = f"{old.name} as {dtype.name}"
            raise self.error("bitcast", "both types have the same number of bits", got, types=True)
        return self.emit("bitcast", like(value.type, dtype), (value,))

    def splat(self, value: Op, width: int) -> Op:
        """Add a vector with one value in all lanes."""
        return self.emit("splat", Vector(value.type, width), (value,))

    def vector(self, *lanes: Op) -> Op:
        """Add a vector of the lanes."""
        if any(lane.type is not lanes[0].type for lane in lanes):
            got = ", ".join(lane.type.short for lane in lanes)
            raise self.error("vector", "all lanes have one type", got, types=True)
        return self.emit("vector", Vector(lanes[0].type, len(lanes)), lanes)

    def extract(self, value: Op, lane: int) -> Op:
        """Add the value of one lane."""
        self._lane(value, lane)
        return self.emit("extract", value.type.dtype, (value,), {"lane": lane})

    def insert(self, value: Op, lane: int, new: Op) -> Op:
        """Add the vector with one lane replaced."""
        self._lane(value, lane)
        if new.type is not value.type.dtype:
            raise self.error("insert", "the lane has the vector's dtype", new.type.short)
        return self.emit("insert", value.type, (value, new), {"lane": lane})

    def _lane(self, value: Op, lane: int) -> None:
        if not isinstance(value.type, Vector):
            raise self.error("lane", "only a vector has lanes", value.type.short, types=True)
        if not 0 <= lane < value.type.width:
            got = f"lane {lane} of {value.type.short}"
            raise self.error("lane", "the lane is inside the vector", got)

    # --- facts of the launch ---------------------------------------------------------------

    def special(self, name: str) -> Op:
        """Add a position or a count, by its name in `burn_cube.operations.SPECIALS`."""
        if name not in SPECIALS:
            raise self.error(name, "no such position")
        return self.emit("special", self.index, (), {"name": name})

    def length(self, memory: Op) -> Op:
        """Add the number of elements of a buffer."""
        return self.emit("length", self.index, (memory,))

    def shape(self, tensor: Op, dim: int) -> Op:
        """Add the extent of a dimension."""
        return self._dim("shape", tensor, dim)

    def stride(self, tensor: Op, dim: int) -> Op:
        """Add the distance, in elements, of two neighbours along a dimension."""
        return self._dim("stride", tensor, dim)

    def _dim(self, name: str, tensor: Op, dim: int) -> Op:
        rank = tensor.attrs.get("rank")
        if rank is None:
            raise self.error(name, "only a Tensor has a shape and strides", tensor.type.short)
        if not -rank <= dim < rank:
            raise self.error(name, f"the dim is inside the rank {rank}", dim)
        return self.emit(name, self.index, (tensor,), {"dim": dim % rank})

    # --- memory ----------------------------------------------------------------------------

    def shared(self, elem: Type, size: int) -> Op:
        """Add memory that the units of one cube share."""
        return self._array("shared", elem, size)

    def local(self, elem: Type, size: int) -> Op:
        """Add an array of each unit's own, filled with zeros."""
        return self._array("local", elem, size)

    def _array(self, space: Any, elem: Type, size: int) -> Op:
        if size < 1:
            raise self.error(space, "an array has at least one element", size)
        # At the head of the kernel: one allocation, however often control passes here.
        op = Op("alloc", Memory(space, elem), (), {"size": size}, (), self.where)
        self.body.ops.insert(self._head(), op)
        return op

    def _head(self) -> int:
        ops = self.body.ops
        return next((i for i, op in enumerate(ops) if op.name not in ("alloc", "slot")), len(ops))

    def slot(self, type_: Type | Tile) -> Op:
        """Add a mutable local, zero at first."""
        op = Op("slot", type_, (), {}, (), self.where)
        self.body.ops.insert(self._head(), op)
        return op

    def get(self, slot: Op) -> Op:
        """Add a read of a mutable local."""
        return self.emit("get", slot.type, (slot,))

    def set(self, slot: Op, value: Op) -> None:
        """Add a write of a mutable local."""
        if value.type is not slot.type:
            got = f"{value.type.short} for {slot.type.short}"
            raise self.error("set", "a local keeps the type of its first value", got, types=True)
        self.emit("set", None, (slot, value))

    def load(self, memory: Op, index: Op, width: int = 1) -> Op:
        """Add a read of the element at an index; with a width, of that many from there on."""
        self._place("load", memory, index)
        elem = memory.type.elem
        if width == 1:
            return self.emit("load", elem, (memory, index))
        if isinstance(elem, Vector):
            raise self.error("load", "elements are vectors already", elem.short)
        return self.emit("load", Vector(elem, width), (memory, index))

    def store(self, memory: Op, index: Op, value: Op) -> None:
        """Add a write of a value, or of a vector of elements from the index on."""
        self._place("store", memory, index)
        elem = memory.type.elem
        lanes = isinstance(value.type, Vector) and value.type.dtype is elem
        if value.type is not elem and not lanes:
            got = f"{value.type.short} into {elem.short}"
            raise self.error("store", "the value has the element type", got, "Cast it.", True)
        self.emit("store", None, (memory, index, value))

    def _place(self, name: str, memory: Op, index: Op) -> None:
        if not isinstance(memory.type, Memory):
            raise self.error(name, "memory is indexed", memory.type.short, types=True)
        if not isinstance(index.type, DType) or not index.type.is_int:
            raise self.error(name, "the index is an integer scalar", index.type.short, types=True)

    def atomic(self, kind: str, memory: Op, index: Op, value: Op) -> Op:
        """Add a read-modify-write that no other unit can split; gives the old value."""
        self._place("atomic", memory, index)
        dtype = value.type
        if kind not in ATOMICS:
            raise self.error("atomic", f"the kind is one of {', '.join(ATOMICS)}", kind)
        wide = isinstance(dtype, DType) and dtype.kind in ("int", "uint", "float")
        if not wide or dtype.bits < 32 or (dtype.is_float and kind not in ("add", "exchange")):
            got = f"{kind} on {dtype.short}"
            rule = "32 and 64 bit integers take every kind, f32 and f64 add and exchange"
            raise self.error("atomic", rule, got, types=True)
        if memory.type.elem is not dtype or memory.type.space == "local":
            got = f"{dtype.short} for {memory.type.short}"
            rule = "the memory is global or shared and holds the value's type"
            raise self.error("atomic", rule, got, types=True)
        return self.emit("atomic", dtype, (memory, index, value), {"kind": kind})

    def atomic_cas(self, memory: Op, index: Op, expected: Op, value: Op) -> Op:
        """Add a compare-and-swap; gives the old value."""
        self._place("atomic", memory, index)
        dtype = value.type
        fits = memory.type.elem is dtype and expected.type is dtype
        if not fits or not isinstance(dtype, DType) or not dtype.is_int or dtype.bits < 32:
            rule = "compare-and-swap takes 32 or 64 bit integers of the memory's type"
            raise self.error("atomic", rule, dtype.short, types=True)
        return self.emit("atomic_cas", dtype, (memory, index, expected, value))

    def async_copy(
        self, target: Op, at: Op, source: Op, start: Op, width: int = 1, aligned: bool = False,
        inside: Op | None = None,
    ) -> None:  # fmt: skip
        """Add a copy of `width` elements from global to shared memory that may go on behind.

        What it wrote is there after `async_wait` and a barrier. Devices without such copies make
        it at once. `aligned` promises that both ends are at multiples of the size of the copy.
        Where `inside` is given and false, zeros are written and the source is not read.
        """
        self._place("async_copy", target, at)
        self._place("async_copy", source, start)
        spaces = (target.type.space, source.type.space)
        if spaces != ("shared", "global") or target.type.elem is not source.type.elem:
            got = f"{source.type.short} to {target.type.short}"
            rule = "copies from global to shared memory of the same elements"
            raise self.error("async_copy", rule, got, types=True)
        if width not in (1, 2, 4, 8, 16) or (width > 1 and isinstance(target.type.elem, Vector)):
            raise self.error("async_copy", "the width is 1, 2, 4, 8 or 16 scalars", width)
        attrs = {"width": width, "aligned": aligned}
        if inside is not None and inside.type is not bool_:
            raise self.error("async_copy", "`inside` is a bool", inside.type.short, types=True)
        args = (target, at, source, start, *([] if inside is None else [inside]))
        self.emit("async_copy", None, args, attrs)

    def async_commit(self) -> None:
        """Close the group of copies that this unit started since the last one."""
        self.emit("async_commit", None)

    def async_wait(self, pending: int | None = None) -> None:
        """Add a wait for the copies that this unit started.

        Args:
            pending: groups that may still be under way, the latest ones; None waits for all
                copies.
        """
        if pending is not None and not 0 <= pending < 8:
            raise self.error("async_wait", "at most 7 groups are under way", pending)
        self.emit("async_wait", None, (), {"pending": pending})

    # --- units together --------------------------------------------------------------------

    def barrier(self, scope: str = "cube") -> None:
        """Add a barrier: every unit of the cube (or plane) arrives before one goes on."""
        self.emit("barrier", None, (), {"scope": scope})

    def plane(self, kind: str, value: Op, lane: Op | None = None) -> Op:
        """Add an operation over the units of a plane."""
        if kind not in PLANE:
            raise self.error("plane", f"the kind is one of {', '.join(PLANE)}", kind)
        logic = kind in ("all", "any", "ballot")
        if isinstance(value.type, Vector) or (value.type is bool_) is not logic:
            wanted = "a bool" if logic else "a number"
            raise self.error(f"plane_{kind}", f"takes {wanted}", value.type.short, types=True)
        args = (value,) if lane is None else (value, self.cast(lane, int32))
        result = uint32 if kind == "ballot" else value.type
        return self.emit("plane", result, args, {"kind": kind})

    # --- tiles -----------------------------------------------------------------------------

    def tile_fill(self, value: Op, rows: int, cols: int) -> Op:
        """Add an accumulator tile of float32 with one value everywhere."""
        if value.type is not float32:
            raise self.error("tile", "an accumulator is float32", value.type.short, types=True)
        self._tile_shape("acc", rows, cols)
        return self.emit("tile_fill", Tile("acc", float32, rows, cols), (value,))

    def tile_load(
        self, use: str, memory: Op, index: Op, stride: Op, rows: int, cols: int, layout: str,
        aligned: bool = False,
    ) -> Op:  # fmt: skip
        """Add a tile read from memory: `a` [m, k], `b` [k, n] or `acc` [m, n].

        Args:
            use: `a`, `b` or `acc`.
            memory: global or shared memory of float16, bfloat16 or float32; operands of float32
                are rounded to tf32, accumulators are float32.
            index: place of the first element.
            stride: distance of rows (layout `row`) or of columns (layout `col`).
            rows: rows of the tile.
            cols: columns of the tile.
            layout: `row` or `col`.
            aligned: promises that every row of the memory begins at a multiple of 16 bytes, and
                that no element is outside.
        """
        self._place("tile_load", memory, index)
        dtype = memory.type.elem
        if use == "acc" and dtype is not float32:
            raise self.error("tile", "an accumulator is float32", dtype.short, types=True)
        if dtype not in (float16, bfloat16, float32):
            raise self.error("tile", "operands are f16, bf16 or f32", dtype.short, types=True)
        if layout not in ("row", "col"):
            raise self.error("tile", "the layout is row or col", layout)
        self._tile_shape(use, rows, cols, dtype)
        place = (memory, index, self.cast(stride, index.type))
        attrs = {"layout": layout, "aligned": aligned}
        return self.emit("tile_load", Tile(use, dtype, rows, cols), place, attrs)

    def _tile_shape(self, use: str, rows: int, cols: int, dtype: DType = float32) -> None:
        inner = 8 if dtype is float32 else 16
        shapes = {"a": (16, inner), "b": (inner, 16), "acc": (16, 16)}
        if shapes.get(use) != (rows, cols):
            known = ", ".join(f"{name} {m}x{n}" for name, (m, n) in shapes.items())
            rule = f"tiles of {dtype.short} operands are {known}"
            raise self.error("tile", rule, f"{use} {rows}x{cols}")

    def tile_mma(self, a: Op, b: Op, acc: Op) -> Op:
        """Add the tile a @ b + acc, products and sums in float32."""
        uses = tuple(getattr(op.type, "use", op.type.short) for op in (a, b, acc))
        if uses != ("a", "b", "acc") or a.type.dtype is not b.type.dtype:
            got = ", ".join(op.type.short for op in (a, b, acc))
            rule = "takes a tile `a`, a tile `b` of the same dtype and an accumulator"
            raise self.error("tile_mma", rule, got, types=True)
        return self.emit("tile_mma", acc.type, (a, b, acc))

    def tile_store(self, memory: Op, index: Op, stride: Op, tile: Op, layout: str = "row") -> None:
        """Add a write of an accumulator tile into memory of float32."""
        self._place("tile_store", memory, index)
        if getattr(tile.type, "use", "") != "acc" or memory.type.elem is not float32:
            got = f"{tile.type.short} into {memory.type.short}"
            rule = "an accumulator goes into memory of float32"
            raise self.error("tile_store", rule, got, "Cast from shared memory.", True)
        args = (memory, index, self.cast(stride, index.type), tile)
        self.emit("tile_store", None, args, {"layout": layout})

    def tile_element(self, tile: Op, number: int) -> Op:
        """Add a read of one of the eight elements of an accumulator that a unit holds."""
        self._held("tile_element", tile)
        if not 0 <= number < 8:
            raise self.error("tile_element", "a unit holds eight elements", number)
        return self.emit("tile_element", float32, (tile,), {"number": number})

    def tile_of(self, *elements: Op) -> Op:
        """Add an accumulator of the eight elements that each unit gives."""
        if len(elements) != 8 or any(op.type is not float32 for op in elements):
            got = ", ".join(op.type.short for op in elements)
            raise self.error("tile_of", "takes eight float32", got, types=True)
        made = self.emit("tile_of", Tile("acc", float32, 16, 16), elements)
        self._held("tile_of", made)
        return made

    def tile_operand(self, tile: Op, dtype: DType) -> Op:
        """Add the left operand, [16, 16] of halves, that holds an accumulator, rounded."""
        self._held("tile_operand", tile)
        if dtype not in (float16, bfloat16):
            raise self.error("tile_operand", "an operand is f16 or bf16", dtype.short, types=True)
        return self.emit("tile_operand", Tile("a", dtype, 16, 16), (tile,))

    def group_mma(
        self, sums: Sequence[Op], left: list[Op] | tuple[Op, Sequence[Op]], right: Op,
        places: Sequence[Op], *, turned: tuple[bool, bool] = (False, False),
        span: tuple[int, int] = (64, 64), fresh: bool = False,
    ) -> None:  # fmt: skip
        """Add a product of four planes to their sums; see `burn_cube.group_mma`.

        Args:
            sums: mutable accumulators of the plane, one for each 16 columns.
            left: tiles `a` of the plane, or shared memory and a place for each step.
            right: shared memory.
            places: where the right operand of each step begins.
            turned: whether lines of the left and right operand run along m and n, not along k.
            span: lines of a panel where they do.
            fresh: the sums are replaced.
        """
        held = not isinstance(left, tuple)
        memory, starts = (None, left) if isinstance(left, list) else left
        kind = right.type.elem
        memories = [right] if memory is None else [memory, right]
        shared = all(isinstance(m.type, Memory) and m.type.space == "shared" for m in memories)
        tiles = starts if held else ()
        kinds = {m.type.elem for m in memories} | {t.type.dtype for t in tiles}
        if not shared or kinds not in ({float16}, {bfloat16}):
            rule = "operands are shared memory of f16 or bf16, or tiles of it on the left"
            raise self.error("group_mma", rule, right.type.short, types=True)
        acc = Tile("acc", float32, 16, 16)
        if not 1 <= len(sums) <= 16 or any(s.name != "slot" or s.type is not acc for s in sums):
            raise self.error("group_mma", "takes 1 to 16 mutable accumulators", len(sums))
        if not places or len(starts) != len(places):
            got = f"{len(starts)} and {len(places)}"
            raise self.error("group_mma", "both operands have the same steps", got)
        for place in (*places, *(() if held else starts)):
            self._place("group_mma", right, place)
        # Compilers lose tiles that a loop keeps for the left side of several products.
        if any(tile not in self.region.ops for tile in tiles):
            rule = "tiles on the left are made where they are multiplied"
            remedy = "Keep what stays the same in shared memory."
            raise self.error("group_mma", rule, "a tile from around", remedy)
        self._grouped("group_mma")
        attrs = {
            "columns": len(sums), "steps": len(places), "held": held, "turned": turned,
            "span": span, "fresh": fresh, "dtype": kind,
        }  # fmt: skip
        args = (*sums, *memories, *starts, *places)
        self.emit("group_mma", None, args, attrs)

    def group_wait(self, sums: Sequence[Op]) -> None:
        """Add a wait for the products of four planes; sums are read or changed behind it."""
        self._grouped("group_wait")
        self.emit("group_wait", None, tuple(sums))

    def _grouped(self, name: str) -> None:
        if self.plane_dim != 32 or math.prod(self.dims) % 128:
            rule = "a cube has whole groups of four planes of 32 units"
            raise self.error(name, rule, "x".join(map(str, self.dims)))

    def _held(self, name: str, tile: Op) -> None:
        if getattr(tile.type, "use", "") != "acc":
            raise self.error(name, "takes an accumulator", tile.type.short, types=True)
        if self.plane_dim != 32:
            raise self.error(name, "units have known elements where planes have 32", self.plane_dim)

    # --- control ---------------------------------------------------------------------------

    @contextmanager
    def inside(self, region: Region) -> Iterator[None]:
        """Append to a region for the length of the block."""
        outer, self.region = self.region, region
        try:
            yield
        finally:
            self.region = outer

    def branch(self, cond: Op) -> Op:
        """Add an `if` whose two regions are filled with `inside`."""
        if cond.type is not bool_:
            got = cond.type.short
            raise self.error("if", "the condition is a bool scalar", got, "Compare it.", True)
        return self.emit("if", None, (cond,), {}, (Region(), Region()))

    @contextmanager
    def if_(self, cond: Op) -> Iterator[Op]:
        """Add an `if` and append to its first region."""
        op = self.branch(cond)
        with self.inside(op.regions[0]):
            yield op

    @contextmanager
    def else_(self, branch: Op) -> Iterator[None]:
        """Append to the second region of an `if`."""
        with self.inside(branch.regions[1]):
            yield

    @contextmanager
    def for_(
        self, start: Op, stop: Op, step: Op | None = None, independent: bool = False
    ) -> Iterator[Op]:
        """Add a loop from start to before stop and append to its body; gives the index.

        Args:
            start: first index.
            stop: end.
            step: distance of two rounds, 1 by default.
            independent: a promise that no round reads memory that another one writes, so that a
                compiler may run several at once.
        """
        if step is None:
            step = self.const(1, start.type)
        if not start.type.is_int or start.type is not stop.type or step.type is not start.type:
            got = ", ".join(op.type.short for op in (start, stop, step))
            raise self.error("for", "start, stop and step are integers of one type", got, "", True)
        attrs = {"independent": True} if independent else {}
        op = self.emit("for", None, (start, stop, step), attrs, (Region(),))
        with self.inside(op.regions[0]), self._loop(op):
            yield self.emit("index", start.type)

    @contextmanager
    def while_(self) -> Iterator[Op]:
        """Add a loop; the block fills the condition and ends in `until_false`."""
        op = self.emit("while", None, (), {}, (Region(), Region()))
        with self._loop(op):
            yield op

    @contextmanager
    def block(self) -> Iterator[Op]:
        """Add a region that `leave` jumps out of."""
        op = self.emit("block", None, (), {}, (Region(),))
        with self.inside(op.regions[0]):
            yield op

    @contextmanager
    def _loop(self, op: Op) -> Iterator[None]:
        self.loops.append(op)
        try:
            yield
        finally:
            self.loops.pop()

    def until_false(self, cond: Op) -> None:
        """End the condition of a `while`."""
        if cond.type is not bool_:
            raise self.error("while", "the condition is a bool scalar", cond.type.short)
        self.emit("yield", None, (cond,))

    def break_(self) -> None:
        """Jump behind the innermost loop."""
        self._jump("break")

    def continue_(self) -> None:
        """Jump to the next round of the innermost loop."""
        self._jump("continue")

    def _jump(self, name: str) -> None:
        if not self.loops:
            raise self.error(name, "stands in a loop")
        self.emit(name, None, (), {"target": self.loops[-1]})

    def leave(self, block: Op) -> None:
        """Jump behind a `block`."""
        self.emit("leave", None, (), {"target": block})

    # --- effects ---------------------------------------------------------------------------

    def print(self, text: str, *values: Op) -> None:
        """Print a text, then the values, from each unit that comes here."""
        self.emit("print", None, values, {"text": text})

    def assert_(self, cond: Op, message: str) -> None:
        """Report a fault at the next sync where the condition is false."""
        if cond.type is not bool_:
            raise self.error("assert", "the condition is a bool scalar", cond.type.short)
        self.emit("assert", None, (cond,), {"message": message})


def wrap(value: int, dtype: DType) -> int:
    """Return an integer wrapped into a dtype, in two's complement.

    Example:
        >>> from burn_std.dtypes import int8, uint8
        >>> wrap(300, uint8), wrap(128, int8)
        (44, -128)
    """
    value &= (1 << dtype.bits) - 1
    if dtype.is_signed and value >> (dtype.bits - 1):
        value -= 1 << dtype.bits
    return value


def size_of(type_: Type) -> int:
    """Return the bytes of one element of a type.

    Example:
        >>> size_of(Vector(float32, 4))
        16
    """
    return scalar_of(type_).itemsize * width_of(type_)
