"""Elementwise operations one by one, made from the scalar expressions of the catalogue.

A kernel is made for an expression, dtypes and a form, see `elementwise.py`. Numbers are arguments.
Halves compute in float32 and round once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from burn_cube import DeviceArray, Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import FAR, Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    channels_last,
    dense as row_major,
    dims_last,
    is_last,
    is_turned_whole,
    size_of,
)
from burn_cube_backend.kernels.copies import copied_well, is_turned
from burn_cube_backend.kernels.elementwise import (
    COMPUTED,
    COSTLY,
    LANES,
    TOUCHED,
    Form,
    Laid,
    Lines,
    Writer,
    laid,
)
from burn_cube_backend.late import Late
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.scalar_code import LARGEST, Expression, costly
from burn_cube_backend.table import kernel, maker
from burn_ir import CATALOG, Entry, Node, bind, parse
from burn_std import DType, dtypes as d

HALVES = (d.float16, d.bfloat16)


class Operand(NamedTuple):
    """One named operand of a map as its kernel sees it: `number` is an argument, not memory."""

    name: str
    dtype: DType
    number: bool


def wide(dtype: DType) -> DType:
    """Return the dtype in which a map computes."""
    return d.float32 if dtype in HALVES else dtype


def map_kernel(
    name: str, node: Node, operands: tuple[Operand, ...], out: DType, form: Form
) -> Kernel:
    """Write the kernel of an expression in a form; its numbers are the operands that are some."""
    writer = _Writer(name, node, operands, out, form)
    writer.body()
    return writer.code.finish()


class _Writer(Writer):
    def __init__(
        self, name: str, node: Node, operands: tuple[Operand, ...], out: DType, form: Form
    ) -> None:
        suffix = {"wide": f"_x{form.width}", "lined": f"_rows_x{form.width}", "rows": "_rows"}
        arrays = {o.name: o.dtype for o in operands if not o.number}
        super().__init__(name + suffix.get(form.kind, ""), form, [out], arrays)
        self.node, self.out = node, out
        self.numbers = {
            o.name: self.code.scalar(f"n_{o.name}", wide(o.dtype)) for o in operands if o.number
        }

    def values(self, loads: Mapping[Any, Val]) -> list[Val]:
        env = {name: x.cast(wide(x.dtype)) for name, x in loads.items()}
        expression = Expression(self.code, {**env, **self.numbers}, wide(self.out))
        return [expression.value(self.node).cast(self.out)]


class Plan:
    """How one map is launched on one set of shapes and strides.

    Attributes:
        program: the compiled kernel, None where there is no element.
        cubes: the grid.
        shape: of the result.
        strides: of the result, row-major unless images with their channels last are read.
        out: dtype of the result.
        count: elements of the result.
        dense: the numbers of the launch are the count and the offsets of the arrays alone.
        head: numbers before the offsets of the arrays, `tail` those behind.
        cost: work of a cube, 0 where the runtime knows it.
        turned: there is no kernel: some arrays are copied first, and that has a plan of its own.
    """

    __slots__ = (
        "cost", "count", "cubes", "dense", "head", "out", "program", "shape", "strides", "tail",
        "turned",
    )  # fmt: skip

    def __init__(
        self, shape: Ints, strides: Ints, out: DType, program: Any = None, how: Laid | None = None
    ) -> None:
        self.program = program
        self.shape = shape
        self.strides = strides
        self.out = out
        self.count = size_of(shape)
        self.dense = not self.count or (how is not None and how.form.kind in ("dense", "wide"))
        self.cubes = (0, 1, 1) if how is None else how.cubes
        self.head = () if how is None else how.head
        self.tail = () if how is None else how.tail
        self.cost = 0.0
        self.turned = how is None and not self.dense


def plan_of(
    engine: Engine, name: str, node: Node, operands: tuple[Operand, ...], out: DType,
    tensors: Sequence[CubeTensor], into: CubeTensor | None = None,
) -> Plan:  # fmt: skip
    """Choose the kernel for arrays of these shapes, read as they lie, and written so `into` one."""
    shape = into.shape if into is not None else broadcast_shape([x.shape for x in tensors])
    walks = [broadcast_strides(x.shape, x.strides, shape) for x in tensors]
    own = into.strides if into is not None else result_strides(engine, shape, walks)
    if not size_of(shape):
        return Plan(shape, own, out)
    last = engine.keeps_last and is_last(shape, own)
    if into is None and not last and any(is_turned(engine, shape, walk) for walk in walks):
        return Plan(shape, own, out)
    # Channels last are walked in the order of memory, so that results are written in that order.
    order = dims_last if last else tuple
    start = 0 if into is None else into.offset
    firsts = tuple(x.offset for x in tensors)
    lines = Lines(order(shape), [order(own)], (start,), [order(w) for w in walks], firsts)
    how = laid(engine, lines, [out], tensors)
    plan = Plan(
        shape, own, out, engine.loaded(map_kernel, (name, node, operands, out, how.form)), how
    )
    if how.each and engine.client.name == "cpu":
        work = TOUCHED * (1 + len(tensors)) + COMPUTED + COSTLY * costly(node)
        plan.cost = work * how.each
    return plan


def result_strides(engine: Engine, shape: Ints, walks: Sequence[Ints]) -> Ints:
    """Return how the result of a map lies: with channels last if an operand of its size does."""
    if engine.keeps_last and any(is_last(shape, walk) for walk in walks):
        return channels_last(shape)
    return row_major(shape)


def unturned(engine: Engine, x: Any) -> Any:
    """Return a tensor, or a copy of it that can be read along its rows; no tensor as it is."""
    if x.__class__ is CubeTensor and x.buf is not None and is_turned(engine, x.shape, x.strides):
        return copied(engine, x)
    return x


def launch(
    engine: Engine, plan: Plan, out: CubeTensor, arrays: Sequence[CubeTensor],
    numbers: Sequence[Any],
) -> CubeTensor:  # fmt: skip
    """Run a planned map; `out` is new, or what the plan writes into."""
    if plan.program is not None:
        args: list[Any] = [out.buf]
        args += [x.buf for x in arrays]
        args += numbers
        args += plan.head
        args += [x.offset for x in arrays]
        args += plan.tail
        if plan.cost:
            plan.program.cost = plan.cost
        engine.start(plan.program, plan.cubes, args)
    return out


def result(engine: Engine, plan: Plan) -> CubeTensor:
    """Return memory for the result of a planned map."""
    return CubeTensor(engine.flat(plan.count, plan.out), plan.shape, plan.strides, plan.out)


# ---- the entries of the catalogue --------------------------------------------------------------

# These names of an expression are places of the result: kernels of their own.
_PLACES = re.compile(r"\b(_i|_row|_column)\b")
# Their numbers need not fit the dtype of an integer tensor: the decomposition knows what then.
_BOUNDS_OF_INTS = {"hardtanh", "threshold"}


class Map:
    """One entry for one dtype of its leading input.

    Args:
        engine: the device.
        entry: the operation.
        node: its expression.
        dtype: dtype of the leading input.
    """

    def __init__(self, engine: Engine, entry: Entry, node: Node, dtype: DType) -> None:
        self.engine = engine
        self.entry = entry
        self.node = node
        self.dtype = dtype
        self.inputs = [i.name for i in entry.inputs]
        self.attrs = [(a.name, a.kind) for a in entry.attrs]
        self.plans: dict[Any, Any] = {}

    def function(self) -> Callable[..., CubeTensor]:
        """Return the kernel: a short path for one or two arrays, else the general one."""
        if self.entry.name == "cast":
            return self.cast
        if self.attrs or any(i.optional for i in self.entry.inputs):
            return self.general
        if len(self.inputs) == 1:
            return self._unary()
        return self._binary() if len(self.inputs) == 2 else self.general

    def _unary(self) -> Callable[[CubeTensor], CubeTensor]:
        plans, general, new, start = self.plans, self.general, self._new, self.engine.start
        engine = self.engine
        name = self.entry.name

        def unary(x: CubeTensor) -> CubeTensor:
            buf = x.buf
            if buf is None:
                return general(x)
            key = (x.shape, x.strides, buf.length > FAR, x.offset % LANES)
            plan = plans.get(key) or self._kept(key, (x,))
            flat = new(plan.count, plan.out, name)
            if plan.dense:
                if plan.count:
                    start(plan.program, plan.cubes, (flat, buf, plan.count, x.offset))
            elif plan.turned:
                return unary(unturned(engine, x))
            else:
                args = (flat, buf, *plan.head, x.offset, *plan.tail)
                if plan.cost:
                    plan.program.cost = plan.cost
                start(plan.program, plan.cubes, args)
            return CubeTensor(flat, plan.shape, plan.strides, plan.out)

        return unary

    def _binary(self) -> Callable[[CubeTensor, CubeTensor], CubeTensor]:
        plans, general, new, start = self.plans, self.general, self._new, self.engine.start
        engine = self.engine
        name = self.entry.name

        def binary(x: CubeTensor, y: CubeTensor) -> CubeTensor:
            a, b = x.buf, y.buf
            if a is None or b is None:
                return general(x, y) if a is None else right(x, y)
            far = a.length > FAR or b.length > FAR
            key = (x.shape, x.strides, y.shape, y.strides, far, x.offset % LANES, y.offset % LANES)
            plan = plans.get(key) or self._kept(key, (x, y))
            flat = new(plan.count, plan.out, name)
            if plan.dense:
                if plan.count:
                    args: Any = (flat, a, b, plan.count, x.offset, y.offset)
                    start(plan.program, plan.cubes, args)
            elif plan.turned:
                return binary(unturned(engine, x), unturned(engine, y))
            else:
                args = (flat, a, b, *plan.head, x.offset, y.offset, *plan.tail)
                if plan.cost:
                    plan.program.cost = plan.cost
                start(plan.program, plan.cubes, args)
            return CubeTensor(flat, plan.shape, plan.strides, plan.out)

        def right(x: CubeTensor, y: CubeTensor) -> CubeTensor:
            """The number stands on the right, where it mostly does."""
            a: Any = x.buf
            key = (x.shape, x.strides, a.length > FAR, x.offset % LANES)
            plan = plans.get(key) or self._kept(key, (x, y))
            flat = new(plan.count, plan.out, name)
            if plan.dense:
                if plan.count:
                    args: Any = (flat, a, y.value, plan.count, x.offset)
                    start(plan.program, plan.cubes, args)
            elif plan.turned:
                return right(unturned(engine, x), y)
            else:
                args = (flat, a, y.value, *plan.head, x.offset, *plan.tail)
                if plan.cost:
                    plan.program.cost = plan.cost
                start(plan.program, plan.cubes, args)
            return CubeTensor(flat, plan.shape, plan.strides, plan.out)

        return binary

    @property
    def _new(self) -> Callable[[int, DType, str], DeviceArray]:
        return self.engine.flat

    def _kept(self, key: Any, inputs: tuple[CubeTensor, ...]) -> Plan:
        plan, _ = self._plan(inputs, (), [x.buf is None for x in inputs])
        self._keep(key, plan)
        return plan

    def _keep(self, key: Any, made: Any) -> Any:
        if len(self.plans) >= 4096:
            self.plans.clear()
        self.plans[key] = made
        return made

    def cast(self, x: CubeTensor, dtype: DType) -> CubeTensor:
        """Convert a tensor; one of rows with gaps keeps them, and a turned one stays turned."""
        whole = whole_rows(x)
        if whole is None:
            if x.buf is None or not is_turned_whole(x.shape, x.strides):
                return self.general(x, dtype)
            # Products read a turned weight as well as any other.
            whole = x.view((size_of(x.shape),), (1,))
        return self.general(whole, dtype).view(x.shape, x.strides)

    def general(self, *args: Any) -> CubeTensor:
        """Run the map on payloads and attributes of any kind."""
        inputs, attrs = args[: len(self.inputs)], args[len(self.inputs) :]
        key: list[Any] = []
        arrays: list[CubeTensor] = []
        numbers: list[Any] = []
        for x in inputs:
            if x is None:
                key.append(None)
            elif x.buf is None:
                key.append(x.dtype)
                numbers.append(x.value)
            else:
                key.append((x.dtype, x.shape, x.strides, x.buf.length > FAR, x.offset % LANES))
                arrays.append(x)
        for (_, kind), value in zip(self.attrs, attrs, strict=True):
            if kind == "scalar" and value is not None:
                key.append(True)
                numbers.append(value)
            else:
                key.append(value)
        key_ = tuple(key)
        found = self.plans.get(key_)
        if found is None:
            found = self._keep(
                key_, self._plan(inputs, attrs, [x is not None and x.buf is None for x in inputs])
            )
        plan, kinds = found
        if plan.turned:
            return self.general(*[unturned(self.engine, x) for x in args])
        self.engine.label = self.entry.name
        if kinds:
            numbers = [plain(v, k) for v, k in zip(numbers, kinds, strict=True)]
        return launch(self.engine, plan, result(self.engine, plan), arrays, numbers)

    def _plan(
        self, inputs: Sequence[Any], attrs: Sequence[Any], bare: Sequence[bool]
    ) -> tuple[Plan, list[str]]:
        """Return the plan and the kinds of its numbers; `bare` inputs are numbers."""
        lead = self.dtype
        known: dict[str, Any] = {"floating": lead.is_float, "largest": LARGEST.get(lead)}
        operands, arrays = [], []
        for name, x, number in zip(self.inputs, inputs, bare, strict=True):
            if x is None:
                known[name] = None
                continue
            operands.append(Operand(name, x.dtype, number))
            if not number:
                arrays.append(x)
        for (name, kind), value in zip(self.attrs, attrs, strict=True):
            if kind == "scalar" and value is not None:
                operands.append(Operand(name, lead, True))
            else:
                known[name] = value
        node = bind(self.node, known)
        spec = tuple(operands)
        out = self._out(node, spec, lead)
        kinds: list[str] = [o.dtype.kind for o in spec if o.number]
        return plan_of(self.engine, self.entry.name, node, spec, out, arrays), kinds

    def _out(self, node: Node, operands: tuple[Operand, ...], lead: DType) -> DType:
        """Return the dtype of the result, by writing the expression once into a kernel unused."""
        if node.op == "cast":
            return node.args[1].value  # type: ignore[no-any-return]
        code = Code("probe")
        env = {o.name: code.const(0, wide(o.dtype)) for o in operands}
        made = Expression(code, env, wide(lead)).value(node).dtype
        return lead if made is wide(lead) else made


def plain(value: Any, kind: str) -> Any:
    """Return a number as a launch takes it for a kind of dtype."""
    if isinstance(value, Late):
        return value.through(lambda v: plain(v, kind))
    if kind == "float":
        return float(value)
    return bool(value) if kind == "bool" else int(value)


@cache
def _tree(entry: Entry) -> Node:
    """Return an entry's expression, read when a kernel is first made of it: some are long."""
    return parse(entry.expr or "", entry.name)


def _register(entry: Entry) -> None:
    def make(engine: Engine, dtype: DType | None) -> Any:
        return Map(engine, entry, _tree(entry), dtype or d.float32).function()

    maker(entry.name)(make)


def _decomposed(entry: Entry) -> bool:
    return entry.name in _BOUNDS_OF_INTS or bool(_PLACES.search(entry.expr or ""))


@cache
def is_map(entry: Entry) -> bool:
    """Return whether an entry's kernel is made from its expression."""
    # A map that somebody registered may have a decomposition and no expression.
    return entry.klass == "map" and bool(entry.expr and entry.inputs) and not _decomposed(entry)


for _entry in list(CATALOG):
    if is_map(_entry):
        _register(_entry)


def whole_rows(x: CubeTensor) -> CubeTensor | None:
    """Return all memory of rows that have a few elements of no meaning behind each, as one dim.

    Products on a GPU begin their rows at 16 bytes. None for any other layout.
    """
    shape, strides = x.shape, x.strides
    if len(shape) < 2 or x.offset or x.buf is None or strides[-1] != 1:
        return None
    lead, n = strides[-2], shape[-1]
    if not n < lead < n + LANES:
        return None
    count = size_of(shape[:-1]) * lead
    dense = row_major((*shape[:-1], lead))
    return (
        CubeTensor(x.buf, (count,), (1,), x.dtype)
        if (strides == dense and x.buf.length == count)
        else None
    )


# ---- copies ------------------------------------------------------------------------------------

_IDENTITY = parse("x")


def copied(engine: Engine, x: CubeTensor, dtype: DType | None = None) -> CubeTensor:
    """Return a row-major copy, in another dtype if one is given."""
    out = engine.empty(x.shape, dtype or x.dtype)
    return write(engine, out, x)


def write(engine: Engine, out: CubeTensor, x: CubeTensor) -> CubeTensor:
    """Write a tensor, broadcast and converted, into a window of another that nobody else reads."""
    if x.shape == out.shape and copied_well(engine, out, x):
        return out
    operands = (Operand("x", x.dtype, False),)
    plan = plan_of(engine, "copy", _IDENTITY, operands, out.dtype, [x], out)
    return launch(engine, plan, out, [x], ())


def converted(engine: Engine, x: CubeTensor, dtype: DType) -> CubeTensor:
    """Return the tensor in a dtype; itself where it has it."""
    return x if x.dtype is dtype else copied(engine, x, dtype)


@kernel("contiguous", checked=True)
def contiguous(engine: Engine, x: CubeTensor) -> CubeTensor:
    """A row-major copy, or the tensor itself; a quantised one always is."""
    return engine.row_major(x) if x.__class__ is CubeTensor else x


def computed(engine: Engine, text: str, out: DType, **given: CubeTensor) -> CubeTensor:
    """Return an expression over tensors, which broadcast; names are those of the arguments."""
    tensors = [unturned(engine, engine.solid(x)) for x in given.values()]
    operands = tuple(Operand(n, x.dtype, False) for n, x in zip(given, tensors, strict=True))
    plan = plan_of(engine, "expression", bind(parse(text), {}), operands, out, tensors)
    return launch(engine, plan, result(engine, plan), tensors, ())


def combine(engine: Engine, op: str, x: CubeTensor, y: CubeTensor) -> CubeTensor:
    """Return the sum or product of two tensors of one dtype."""
    sign = {"add": "+", "mul": "*"}[op]
    return computed(engine, f"x {sign} y", x.dtype, x=x, y=y)
