"""Elementwise kernels, made from the scalar expressions of the catalogue.

A kernel is made for an expression, dtypes and a layout: `linear` where every operand is read and
written in one stride (or is one number), else `strided` over merged dims. Numbers are arguments.
Halves compute in float32 and round once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    size_of,
)
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.scalar_code import LARGEST, Expression
from burn_cube_backend.table import kernel, maker
from burn_ir import CATALOG, Entry
from burn_ir.scalar import Node, bind, names, parse
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
    name: str, node: Node, operands: tuple[Operand, ...], out: DType, rank: int, index: DType
) -> Kernel:
    """Write a map: parameters are out, arrays, numbers, count, then offsets, extents, strides.

    With rank 1 the strides are arguments as well: 1 for a dense operand, 0 for a repeated one.
    """
    code = Code(name, index)
    target = code.buffer("out", out)
    arrays = [o for o in operands if not o.number]
    buffers = {o.name: code.buffer(f"x_{o.name}", o.dtype) for o in arrays}
    numbers = {o.name: code.scalar(f"n_{o.name}", wide(o.dtype)) for o in operands if o.number}
    count = code.place("count")
    offsets = code.places("offset", 1 + len(arrays))
    extents = code.places("extent", rank)
    strides = [code.places(f"stride{k}_", rank) for k in range(1 + len(arrays))]
    with code.each(count) as i:
        coords = code.coords(i, extents)
        env: dict[str, Any] = dict(numbers)
        for o, offset, steps in zip(arrays, offsets[1:], strides[1:], strict=True):
            env[o.name] = buffers[o.name][code.walk(offset, coords, steps)].cast(wide(o.dtype))
        made = Expression(code, env, wide(out)).value(node)
        target[code.walk(offsets[0], coords, strides[0])] = made.cast(out)
    return code.finish()


def dense_kernel(
    name: str, node: Node, operands: tuple[Operand, ...], out: DType, index: DType
) -> Kernel:
    """Write a map whose arrays are all row-major.

    Parameters are out, arrays, numbers, count, offsets of the arrays.
    """
    code = Code(name, index)
    target = code.buffer("out", out)
    arrays = [o for o in operands if not o.number]
    buffers = {o.name: code.buffer(f"x_{o.name}", o.dtype) for o in arrays}
    numbers = {o.name: code.scalar(f"n_{o.name}", wide(o.dtype)) for o in operands if o.number}
    count = code.place("count")
    offsets = code.places("offset", len(arrays))
    with code.each(count) as i:
        env: dict[str, Any] = dict(numbers)
        for o, offset in zip(arrays, offsets, strict=True):
            env[o.name] = buffers[o.name][offset + i].cast(wide(o.dtype))
        target[i] = Expression(code, env, wide(out)).value(node).cast(out)
    return code.finish()


class Plan(NamedTuple):
    """How one map is launched on one set of shapes and strides."""

    make: Any
    spec: tuple[Any, ...]
    shape: Ints
    units: int
    tail: tuple[int, ...]
    dense: bool


def plan_of(
    engine: Engine, name: str, node: Node, operands: tuple[Operand, ...], out: DType,
    tensors: Sequence[CubeTensor], into: CubeTensor | None = None,
) -> Plan:  # fmt: skip
    """Choose the kernel for arrays of these shapes, read (and written) as they lie."""
    shape = into.shape if into is not None else broadcast_shape([x.shape for x in tensors])
    count = size_of(shape)
    walks = [broadcast_strides(x.shape, x.strides, shape) for x in tensors]
    own = into.strides if into is not None else _dense(shape)
    extents, merged = collapse(shape, [own, *walks])
    index = engine.index_dtype(*tensors, *([] if into is None else [into]), count=count)
    whole = into is None and len(extents) == 1 and all(m == (1,) or count == 1 for m in merged)
    if whole:
        return Plan(dense_kernel, (name, node, operands, out, index), shape, count, (), True)
    tail = extents + tuple(s for m in merged for s in m)
    spec = (name, node, operands, out, len(extents), index)
    return Plan(map_kernel, spec, shape, count, tail, False)


def _dense(shape: Ints) -> Ints:
    from burn_cube_backend.geometry import dense

    return dense(shape)


def launch(
    engine: Engine, plan: Plan, out: CubeTensor, arrays: Sequence[CubeTensor],
    numbers: Sequence[Any],
) -> CubeTensor:  # fmt: skip
    """Run a planned map."""
    if plan.units:
        offsets = [x.offset for x in arrays]
        if not plan.dense:
            offsets.insert(0, out.offset)
        args = [out.buf, *[x.buf for x in arrays], *numbers, plan.units, *offsets, *plan.tail]
        engine.run(plan.make, plan.spec, plan.units, args)
    return out


# ---- the entries of the catalogue --------------------------------------------------------------

# These names of an expression are places of the result: kernels of their own.
_PLACES = {"_i", "_row", "_column"}
# Their numbers need not fit the dtype of an integer tensor: the decomposition knows what then.
_BOUNDS_OF_INTS = {"hardtanh", "threshold"}


class Map:
    """One entry for one dtype of its leading input."""

    def __init__(self, engine: Engine, entry: Entry, node: Node, dtype: DType | None) -> None:
        self.engine = engine
        self.entry = entry
        self.node = node
        self.dtype = dtype
        self.inputs = [i.name for i in entry.inputs]
        self.attrs = [(a.name, a.kind) for a in entry.attrs]
        self.plans: dict[Any, tuple[Plan, DType, list[str]]] = {}

    def __call__(self, *args: Any) -> CubeTensor:
        """Run the map on payloads and attributes."""
        inputs, attrs = args[: len(self.inputs)], args[len(self.inputs) :]
        engine = self.engine
        key: list[Any] = []
        arrays: list[CubeTensor] = []
        numbers: list[Any] = []
        for x in inputs:
            if x is None:
                key.append(None)
            elif x.value is not None:
                key.append(x.dtype)
                numbers.append(x.value)
            else:
                key.append((x.dtype, x.shape, x.strides, x.buf.length))
                arrays.append(x)
        for (_, kind), value in zip(self.attrs, attrs, strict=True):
            if kind == "scalar" and value is not None:
                key.append(True)
                numbers.append(value)
            else:
                key.append(value)
        found = self.plans.get(tuple(key))
        if found is None:
            found = self.plans[tuple(key)] = self._plan(inputs, attrs, arrays)
            if len(self.plans) > 4096:
                self.plans.clear()
        plan, out, kinds = found
        numbers = [_plain(v, k) for v, k in zip(numbers, kinds, strict=True)]
        return launch(engine, plan, engine.empty(plan.shape, out), arrays, numbers)

    def _plan(
        self, inputs: Sequence[Any], attrs: Sequence[Any], arrays: list[CubeTensor]
    ) -> tuple[Plan, DType, list[str]]:
        lead = self.dtype or d.float32
        known: dict[str, Any] = {"floating": lead.is_float, "largest": LARGEST.get(lead)}
        operands = []
        for name, x in zip(self.inputs, inputs, strict=True):
            if x is None:
                known[name] = None
            else:
                operands.append(Operand(name, x.dtype, x.value is not None))
        scalars = []
        for (name, kind), value in zip(self.attrs, attrs, strict=True):
            if kind == "scalar" and value is not None:
                scalars.append(Operand(name, lead, True))
            else:
                known[name] = value
        node = bind(self.node, known)
        out = self._out(node, (*operands, *scalars), lead)
        kinds: list[str] = [o.dtype.kind for o in (*operands, *scalars) if o.number]
        spec = (*operands, *scalars)
        return plan_of(self.engine, self.entry.name, node, spec, out, arrays), out, kinds

    def _out(self, node: Node, operands: tuple[Operand, ...], lead: DType) -> DType:
        """Return the dtype of the result, by writing the expression once into a kernel unused."""
        if node.op == "cast":
            return node.args[1].value  # type: ignore[no-any-return]
        code = Code("probe")
        env = {o.name: code.const(0, wide(o.dtype)) for o in operands}
        made = Expression(code, env, wide(lead)).value(node).dtype
        return lead if made is wide(lead) else made


def _plain(value: Any, kind: str) -> Any:
    """Return a number as a launch takes it for a kind of dtype."""
    if kind == "float":
        return float(value)
    return bool(value) if kind == "bool" else int(value)


def _register(entry: Entry) -> None:
    node = parse(entry.expr or "", entry.name)

    def make(engine: Engine, dtype: DType | None) -> Any:
        return Map(engine, entry, node, dtype)

    maker(entry.name)(make)


def _decomposed(entry: Entry) -> bool:
    return entry.name in _BOUNDS_OF_INTS or bool(names(parse(entry.expr or "0")) & _PLACES)


for _entry in list(CATALOG):
    if _entry.klass == "map" and _entry.inputs and not _decomposed(_entry):
        _register(_entry)


# ---- copies ------------------------------------------------------------------------------------

_IDENTITY = parse("x")


def copied(engine: Engine, x: CubeTensor, dtype: DType | None = None) -> CubeTensor:
    """Return a row-major copy, in another dtype if one is given."""
    out = engine.empty(x.shape, dtype or x.dtype)
    return write(engine, out, x)


def write(engine: Engine, out: CubeTensor, x: CubeTensor) -> CubeTensor:
    """Write a tensor, broadcast and converted, into a window of another that nobody else reads."""
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
    tensors = [engine.solid(x) for x in given.values()]
    operands = tuple(Operand(n, x.dtype, False) for n, x in zip(given, tensors, strict=True))
    plan = plan_of(engine, "expression", parse(text), operands, out, tensors)
    return launch(engine, plan, engine.empty(plan.shape, out), tensors, ())


def combine(engine: Engine, op: str, x: CubeTensor, y: CubeTensor) -> CubeTensor:
    """Return the sum or product of two tensors of one dtype."""
    sign = {"add": "+", "mul": "*"}[op]
    return computed(engine, f"x {sign} y", x.dtype, x=x, y=y)
