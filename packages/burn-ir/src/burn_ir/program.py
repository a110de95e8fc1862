"""The recorded program: what a segment says once run-time values are taken out of it.

It is the key of a plan, the text of a capture and what travels to a server. Operations stand in
order; the outputs of operation number k take the next slots from 0 up. Inputs are slots: of
earlier outputs, or -1 - k for the k-th external. Shapes and scalars stand apart, in a `Runtime`:
a learning rate that changes or a batch size that varies leaves the program equal. Of extents it
holds the class only: 0, 1, or 2 for "many".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from burn_ir.entry import CATALOG, Entry, Spec
from burn_std import BurnError, DType, GraphError, nearest

Shape = tuple[int, ...]
Slots = int | None | tuple[int, ...]


class Typed(Protocol):
    """Anything with a dtype and a shape: a Spec, a recorder's value, a tensor."""

    @property
    def dtype(self) -> DType:
        """Element type."""
        ...

    @property
    def shape(self) -> Shape:
        """Extents."""
        ...


def axis_classes(shape: Shape) -> Shape:
    """Return 0, 1 or 2 (many) per dim: all that a program knows of extents.

    Example:
        >>> axis_classes((1, 0, 640))
        (1, 0, 2)
    """
    return tuple([n if n < 2 else 2 for n in shape])


class External:
    """A value from outside.

    Attributes:
        dtype: element type.
        classes: axis classes, one per dim.
    """

    __slots__ = ("classes", "dtype")

    def __init__(self, dtype: DType, classes: Shape) -> None:
        self.dtype = dtype
        self.classes = classes

    def key(self) -> tuple[Any, ...]:
        """Return what makes it equal to another."""
        return (self.dtype, self.classes)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join('01n'[c] for c in self.classes)}]"


class Op:
    """One recorded operation.

    Attributes:
        name: entry name.
        inputs: slot, None for an absent optional, or a tuple of slots, per input of the entry.
        static: static attributes in declared order.
        outputs: how many slots it fills.
        classes: axis classes of its outputs where the program cannot derive them, else None.
    """

    __slots__ = ("classes", "inputs", "name", "outputs", "static")

    def __init__(
        self,
        name: str,
        inputs: tuple[Slots, ...],
        static: tuple[Any, ...] = (),
        outputs: int = 1,
        classes: tuple[Any, ...] | None = None,
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.static = static
        self.outputs = outputs
        self.classes = classes

    @property
    def entry(self) -> Entry:
        """Its entry in the catalogue."""
        return CATALOG[self.name]

    def reads(self) -> Iterator[int]:
        """Yield the slots that it reads."""
        for i in self.inputs:
            if isinstance(i, tuple):
                yield from i
            elif i is not None:
                yield i

    def key(self) -> tuple[Any, ...]:
        """Return what makes it equal to another; 1, 1.0 and True are not the same attribute."""
        typed = tuple(_typed(a) for a in self.static)
        return (self.name, self.inputs, typed, self.outputs, self.classes)


def _typed(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_typed, value))
    return (type(value).__name__, repr(value) if isinstance(value, float) else value)


class Runtime:
    """What varies from run to run of one program.

    Attributes:
        shapes: extents of every external.
        values: by first output slot, the extents and then the scalars of an operation.
    """

    __slots__ = ("shapes", "values")

    def __init__(
        self, shapes: Iterable[Shape] = (), values: Mapping[int, tuple[Any, ...]] | None = None
    ) -> None:
        self.shapes = tuple(shapes)
        self.values = dict(values or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Runtime) and (
            (self.shapes, _typed(tuple(sorted(self.values.items()))))
            == (other.shapes, _typed(tuple(sorted(other.values.items()))))
        )

    __hash__ = None  # type: ignore[assignment]  # it holds a dict

    def __repr__(self) -> str:
        return f"Runtime(shapes={self.shapes}, values={self.values})"


class Program:
    """A sequence of operations over externals; hashable.

    Attributes:
        ops: operations in order.
        externals: values from outside, slot -1 - k for the k-th.
        live: slots that are asked for, ascending.

    Example:
        >>> from burn_std.dtypes import float32
        >>> x = Spec((4, 3), float32)
        >>> relu, total = CATALOG["relu"].code, CATALOG["sum"].code
        >>> codes = [(relu, -1), (total, 0, (1,), False, None)]
        >>> program, runtime = Program.from_segment(codes, [x], {}, [1])
        >>> print(program)
        e0 = float32[n, n]
        %0 = relu(e0)
        %1 = sum(%0, dims=(1,), keepdim=False, dtype=None)
        live %1
        >>> check_program(program, runtime)[1]
        float32[4]
    """

    __slots__ = ("_key", "externals", "live", "ops")

    def __init__(
        self, ops: Iterable[Op], externals: Iterable[External], live: Iterable[int]
    ) -> None:
        self.ops = tuple(ops)
        self.externals = tuple(externals)
        self.live = tuple(live)
        self._key = (
            tuple(o.key() for o in self.ops),
            tuple(e.key() for e in self.externals),
            self.live,
        )

    @classmethod
    def from_segment(
        cls,
        codes: Sequence[tuple[Any, ...]],
        externals: Sequence[Typed],
        runtime: Mapping[int, tuple[Any, ...]],
        live: Iterable[int] | None = None,
    ) -> tuple[Program, Runtime]:
        """Return the program of a recorder's segment, and its run-time values.

        Args:
            codes: per slot `(code, *input slots, *static attributes)`, perhaps followed by the
                axis classes of the result; further outputs of one operation are `(-1, k)`.
            externals: values from outside in the order of their slots -1, -2, ...
            runtime: extents and scalars by slot, as tuples in declared order.
            live: slots that are asked for; None means all.

        Raises:
            GraphError: a code is not of the catalogue or has too few parts.
        """
        ops: list[Op] = []
        for slot, code in enumerate(codes):
            if code[0] == -1:
                if not ops or code[1] != ops[-1].outputs:
                    raise GraphError(f"%{slot}", "a further output follows its first", got=code)
                ops[-1].outputs += 1
                continue
            if not 0 <= code[0] < len(CATALOG.by_code):
                raise GraphError(f"%{slot}", "no operation has this code", got=code[0])
            entry = CATALOG.by_code[code[0]]
            n = 1 + len(entry.inputs)
            end = n + sum(a.kind == "static" for a in entry.attrs)
            if len(code) not in (end, end + 1):
                raise GraphError(
                    f"%{slot} {entry.name}", "a code has inputs and attributes", got=code
                )
            classes = code[end] if len(code) > end else None
            ops.append(Op(entry.name, tuple(code[1:n]), tuple(code[n:end]), 1, classes))
        known = [External(e.dtype, axis_classes(e.shape)) for e in externals]
        shapes = [tuple(e.shape) for e in externals]
        asked = range(len(codes)) if live is None else live
        return cls(ops, known, sorted(asked)), Runtime(shapes, runtime)

    @property
    def slots(self) -> int:
        """Number of output slots."""
        return sum(o.outputs for o in self.ops)

    def numbered(self) -> Iterator[tuple[int, Op]]:
        """Yield every operation with the slot of its first output."""
        slot = 0
        for op in self.ops:
            yield slot, op
            slot += op.outputs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<program of {len(self.ops)} operations over {len(self.externals)} externals>"

    def __str__(self) -> str:
        return self.text()

    def text(self, runtime: Runtime | None = None) -> str:
        """Return the program a line per operation; with run-time values where given."""
        lines = [f"e{k} = {self._external(k, runtime)}" for k in range(len(self.externals))]
        for slot, op in self.numbered():
            names = ", ".join(f"%{slot + i}" for i in range(op.outputs))
            attrs = [a.name for a in op.entry.attrs if a.kind == "static"]
            parts = [_slot_name(i) for i in op.inputs]
            parts += [f"{n}={_shown(v)}" for n, v in zip(attrs, op.static, strict=False)]
            if runtime is not None:
                late = [a.name for a in op.entry.attrs if a.kind != "static"]
                values = runtime.values.get(slot, ())
                parts += [f"{n}={_shown(v)}" for n, v in zip(late, values, strict=False)]
            lines.append(f"{names} = {op.name}({', '.join(parts)})")
        live = " ".join(f"%{s}" for s in self.live)
        return "\n".join([*lines, f"live {live}".rstrip()])

    def _external(self, k: int, runtime: Runtime | None) -> str:
        if runtime is None or k >= len(runtime.shapes):
            return str(self.externals[k])
        return repr(Spec(runtime.shapes[k], self.externals[k].dtype))


def _slot_name(slot: Slots) -> str:
    if slot is None:
        return "None"
    if isinstance(slot, tuple):
        return f"[{', '.join(map(_slot_name, slot))}]"
    return f"%{slot}" if slot >= 0 else f"e{-1 - slot}"


def _shown(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        inner = ", ".join(map(_shown, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


# ---- the specification -------------------------------------------------------------------------


def check_program(program: Program, runtime: Runtime) -> tuple[Spec, ...]:
    """Return the shape and dtype of every output slot, having checked all that a program must be.

    Slots lie in range and are defined before use; inputs and attributes are as many as the
    signature says, and normalised; every rule accepts its operands; outputs are as many and of
    the axis classes that are written down; live slots exist, ascending.

    Args:
        program: what to check; it may come from anywhere.
        runtime: shapes of the externals, extents and scalars.

    Raises:
        GraphError: `op` names the node (`%7 matmul`), `rule` what it breaks.
    """
    _check_frame(program, runtime)
    known: list[Spec] = []
    outside = [Spec(s, e.dtype) for s, e in zip(runtime.shapes, program.externals, strict=True)]
    for slot, op in program.numbered():
        node = f"%{slot} {op.name}"
        entry = CATALOG.get(op.name)
        if entry is None:
            raise GraphError(
                node, "no such operation in the catalogue", remedy=nearest(op.name, _names())
            )
        values = runtime.values.get(slot, ())
        _check_node(node, entry, op, values, len(known), len(outside))
        inputs = [_operand(i, known, outside) for i in op.inputs]
        _check_dtypes(node, entry, inputs)
        known += _inferred(node, entry, op, inputs, values)
        _check_dims(node, entry, op, inputs)
    return tuple(known)


def _names() -> list[str]:
    return [e.name for e in CATALOG]


def _check_frame(program: Program, runtime: Runtime) -> None:
    for k, e in enumerate(program.externals):
        if any(c not in (0, 1, 2) for c in e.classes):
            raise GraphError(f"e{k}", "axis classes are 0, 1 or 2", got=e.classes)
    if len(runtime.shapes) != len(program.externals):
        raise GraphError(
            "program", "every external has a shape",
            got=f"{len(runtime.shapes)} shapes, {len(program.externals)} externals",
        )  # fmt: skip
    for k, (shape, e) in enumerate(zip(runtime.shapes, program.externals, strict=True)):
        if any(n < 0 for n in shape) or axis_classes(shape) != e.classes:
            raise GraphError(f"e{k}", f"the shape has the classes of {e}", got=list(shape))
    slots = program.slots
    if list(program.live) != sorted({s for s in program.live if 0 <= s < slots}):
        raise GraphError("program", f"live slots are ascending and below {slots}", got=program.live)
    strays = set(runtime.values) - {slot for slot, _ in program.numbered()}
    if strays:
        raise GraphError("program", "run-time values belong to an operation", got=sorted(strays))


def _check_node(
    node: str, entry: Entry, op: Op, values: Sequence[Any], slots: int, externals: int
) -> None:
    if len(op.inputs) != len(entry.inputs):
        raise GraphError(node, f"takes {len(entry.inputs)} inputs", got=len(op.inputs))
    for given, i in zip(op.inputs, entry.inputs, strict=True):
        if isinstance(given, tuple) is not i.many or (given is None and not i.optional):
            want = "a list" if i.many else "an optional slot" if i.optional else "a slot"
            raise GraphError(node, f"input {i.name} is {want}", got=given)
    for s in op.reads():
        if not -externals <= s < slots:
            raise GraphError(node, "a slot is defined before it is read", got=_slot_name(s))
    static = [a for a in entry.attrs if a.kind == "static"]
    late = [a for a in entry.attrs if a.kind != "static"]
    if len(op.static) != len(static) or len(values) != len(late):
        raise GraphError(
            node,
            f"has {len(static)} static and {len(late)} run-time attributes",
            got=f"{len(op.static)} and {len(values)}",
        )
    for a, value in zip((*static, *late), (*op.static, *values), strict=True):
        if not is_plain(value):
            raise GraphError(node, f"attribute {a.name} is normalised", got=type(value).__name__)


def is_plain(value: Any, depth: int = 4) -> bool:
    """Return whether an attribute is None, bool, int, float, str, DType or tuples of them.

    Example:
        >>> is_plain(((1, 2), None)), is_plain([1, 2])
        (True, False)
    """
    if isinstance(value, tuple):
        return depth > 0 and all(is_plain(v, depth - 1) for v in value)
    return value is None or type(value) in (bool, int, float, str) or isinstance(value, DType)


def _operand(slot: Slots, known: Sequence[Spec], outside: Sequence[Spec]) -> Any:
    if isinstance(slot, tuple):
        return tuple(_operand(s, known, outside) for s in slot)
    if slot is None:
        return None
    return known[slot] if slot >= 0 else outside[-1 - slot]


def _check_dtypes(node: str, entry: Entry, inputs: Sequence[Any]) -> None:
    """Promotion casts are operations of their own, so promoted operands have one dtype."""
    dtypes = {
        s.dtype
        for given, i in zip(inputs, entry.inputs, strict=True)
        if i.promoted and given is not None
        for s in (given if isinstance(given, tuple) else (given,))
    }
    if len(dtypes) > 1:
        found = ", ".join(sorted(d.name for d in dtypes))
        raise GraphError(node, "promoted inputs have one dtype", got=found)
    lead = next((g for g in inputs if isinstance(g, Spec)), None)
    if entry.lift and lead is not None and not lead.dtype.is_float:
        raise GraphError(node, "integers are cast to a float before", got=lead)


def _check_dims(node: str, entry: Entry, op: Op, inputs: Sequence[Any]) -> None:
    """Rules and kernels trust dims that are not negative: slices of a shape take any.

    What a dim of somebody else's operation means, that one's rule says.
    """
    if "::" in op.name:
        return
    lead = next((g for i in inputs for g in (i if isinstance(i, tuple) else (i,)) if g), None)
    if lead is None:
        return
    static = [a for a in entry.attrs if a.kind == "static"]
    for a, value in zip(static, op.static, strict=True):
        if a.name not in ("dim", "dim1", "dim2", "dims") or value is None:
            continue
        rank = max(len(lead.shape), 1)
        if a.name == "dims" and type(value) is int:  # how many last ones
            good = 0 <= value <= rank
        else:
            dims = value if isinstance(value, tuple) else (value,)
            rank += len(dims) if op.name == "unsqueeze" else 0
            good = all(type(d) is int and 0 <= d < rank for d in dims)
            good &= op.name == "roll" or len(set(dims)) == len(dims)
        if not good:
            raise GraphError(node, f"{a.name} lies in [0, {rank - 1}]", got=value)


def _inferred(
    node: str, entry: Entry, op: Op, inputs: Sequence[Any], values: Sequence[Any]
) -> tuple[Spec, ...]:
    extents = values[: sum(a.kind == "extent" for a in entry.attrs)]
    try:
        out = entry.infer(*inputs, *op.static, *extents)
    except BurnError as error:
        raise GraphError(node, error.rule, got=error.got, remedy=error.remedy) from error
    except Exception as error:
        # Attributes from a hostile program reach rules that trust normalised ones.
        raise GraphError(node, "attributes are normalised", got=repr(error)[:200]) from error
    specs = out if isinstance(out, tuple) else (out,)
    if len(specs) != op.outputs:
        raise GraphError(node, f"fills {len(specs)} slots", got=op.outputs)
    if op.classes is not None:
        made = tuple(axis_classes(s.shape) for s in specs)
        if op.classes not in (made, made[0]):
            raise GraphError(node, "the result has the axis classes recorded", got=op.classes)
    return specs
