"""Memory in the C family: parameters, arrays, checked accesses, atomics, faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from burn_cube.emit.c_values import literal, unsigned
from burn_cube.emit.dialect import Dialect
from burn_cube.emit.flat import Flat
from burn_cube.ir import Kernel, Op, written
from burn_cube.runtime.arguments import Entry
from burn_cube.types import Memory, Vector, scalar_of, width_of
from burn_std.dtypes import int64


class MemoryWriter:
    """Names, lines and memory of the kernel that is being written.

    Attributes:
        lines: lines of the body.
        helpers: text of the functions that the body calls, by name, in order of need.
        params: declarations of the parameters.
        sites: operations that can fault.
        shared: bytes of shared memory beyond what can be declared.
        below: what holds in a cube whose positions are below all limits, inside of it.
    """

    def __init__(self, kernel: Kernel, dialect: Dialect) -> None:
        self.kernel = kernel
        self.dialect = dialect
        self.lines: list[str] = []
        self.helpers: dict[str, str] = {}
        self.params: list[str] = []
        self.sites: list[Op] = []
        self.shared = 0
        self.below: Flat | None = None
        self.depth = 0
        self.names: dict[Op, list[str]] = {}
        self.facts: dict[tuple[str, Op, int], str] = {}
        self.ways: dict[Op, str] = {}
        self.labels = 0
        self._count = 0

    # --- names and lines -------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def captured(self) -> Iterator[list[str]]:
        """Collect the lines that are added inside, instead of adding them to the body."""
        outer, depth = self.lines, self.depth
        self.lines, self.depth = [], 0
        try:
            yield self.lines
        finally:
            self.lines, self.depth = outer, depth

    def fresh(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"v{self._count}"

    def name(self, op: Op) -> str:
        """Give a scalar a new name."""
        made = self.fresh()
        self.names[op] = [made]
        return made

    def lanes(self, op: Op) -> list[str]:
        """Return the C expressions of the lanes of a value."""
        return self.names[op]

    def text(self, op: Op) -> str:
        """Return the C expression of a scalar."""
        (lane,) = self.names[op]
        return lane

    def define(self, op: Op, lanes: list[str]) -> None:
        """Declare a variable for each lane of a result."""
        self.bind(op, self.dialect.ctype(scalar_of(op.type)), lanes)

    def bind(self, op: Op, type_: str, values: list[str]) -> None:
        """Declare a variable of a C type for each part of a result."""
        made = [self.fresh() for _ in values]
        for name, value in zip(made, values, strict=True):
            self.line(f"const {type_} {name} = {value};")
        self.names[op] = made

    def need(self, name: str, text: str) -> str:
        """Add a helper function once; return its name."""
        self.helpers.setdefault(name, text)
        return name

    # --- declarations ----------------------------------------------------------------------

    def declare(self, entries: list[Entry]) -> None:
        """Declare the parameters of a launch."""
        dialect = self.dialect
        changed = written(self.kernel)
        for kind, number, dim, dtype in entries:
            if number < 0:
                if kind == "fault":
                    from burn_std.dtypes import int32

                    self._pointer("fault_record", int32, False)
                else:
                    self.params.append("const i32 launch")
                continue
            param = self.kernel.params[number]
            name = f"p_{param.attrs['name']}"
            if kind == "pointer":
                self._pointer(name, scalar_of(param.type.elem), param not in changed)
                self.names[param] = [name]
            elif kind == "scalar" and dtype is not None:
                # A bool travels as a byte: the languages forbid or leave open its size.
                self.params.append(f"const {dialect.memory_type(dtype)} {name}")
                self.names[param] = [f"({name} != 0)" if dtype.is_bool else name]
            else:
                fact = f"{name}_{kind}" + (f"_{dim}" if kind != "length" else "")
                self.params.append(f"const {dialect.ctype(self.kernel.index)} {fact}")
                self.facts[kind, param, dim] = fact

    def _pointer(self, name: str, dtype: object, constant: bool) -> None:
        from burn_std.dtypes import DType

        if not isinstance(dtype, DType):
            raise TypeError(name)
        made = self.dialect.pointer("global", dtype, name, constant)
        if self.dialect.name == "opencl":
            # A view may start anywhere, a sub-buffer only at an aligned place.
            base = self.dialect.pointer("global", dtype, f"base_{name}", constant)
            self.params += [base, f"const i64 offset_{name}"]
            self.lines.append(f"{made} = base_{name} + offset_{name};")
        else:
            self.params.append(made)

    def _do_alloc(self, op: Op) -> None:
        elem = op.type.elem
        name = self.name(op)
        size = op.attrs["size"] * width_of(elem)
        dtype, space = scalar_of(elem), op.type.space
        if space == "shared" and self.dialect.asks(self.kernel):
            for text in self.dialect.dynamic(dtype, name, self.shared):
                self.line(text)
            grain = self.dialect.grain(self.kernel)
            self.shared += -(-size * dtype.itemsize // grain) * grain
        else:
            self.line(self.dialect.array(space, dtype, name, size))
        if op.type.space == "local":
            zero = literal(0, scalar_of(elem), self.dialect)
            self.line(f"for (int z = 0; z < {size}; ++z) {name}[z] = {zero};")

    # --- accesses --------------------------------------------------------------------------

    def length(self, memory: Op) -> str:
        """Return the number of elements of memory."""
        if memory.name == "alloc":
            return str(memory.attrs["size"])
        return self.facts["length", memory, 0]

    def inside(self, op: Op, width: int) -> str | None:
        """Return the test that an access is in bounds, or None where none is needed."""
        memory, index = op.args[0], op.args[1]
        if self.kernel.bounds == "unchecked" or (self.below and op in self.below.linear):
            return None
        size = memory.attrs["size"] if memory.name == "alloc" else None
        known = index.attrs["value"] if index.name == "const" else None
        if size is not None and known is not None and 0 <= known <= size - width:
            return None
        at, length = self.text(index), self.length(memory)
        if width == 1:
            kind = unsigned(index.type if index.type.bits == 64 else self.kernel.index)
            wide = at if index.type.bits == int(kind[1:]) else f"({kind.replace('u', 'i')}){at}"
            # One unsigned comparison: a negative index is a huge one.
            return f"({kind})({wide}) < ({kind})({length})"
        return f"{at} >= 0 && (i64){at} <= (i64)({length}) - {width}"

    def _place(self, op: Op, width: int) -> tuple[str, bool]:
        """Return the address of an access and whether it is aligned to its size."""
        memory, index = op.args[0], op.args[1]
        base, at = self.text(memory), self.text(index)
        elem = memory.type.elem
        if isinstance(elem, Vector):
            wide = "i64" if self.kernel.index is int64 else "i32"
            return f"{base} + ({wide}){at} * {elem.width}", True
        if width == 1:
            return f"{base}[{at}]", True
        return f"{base} + {at}", False

    def address(self, op: Op, width: int) -> str:
        """Return a pointer to the first element of an access."""
        place, _ = self._place(op, width)
        return f"&{place}" if place.endswith("]") else place

    def fault(self, op: Op, index: str, length: str) -> str:
        """Return the statement that notes a fault at an operation."""
        self.sites.append(op)
        claim = self.dialect.claim("fault_record", len(self.sites))
        return (
            f"{{ if ({claim}) {{ fault_record[1] = launch; "
            f"const i64 at = (i64)({index}), of = (i64)({length}); "
            "fault_record[2] = (i32)at; fault_record[3] = (i32)(at >> 32); "
            "fault_record[4] = (i32)of; fault_record[5] = (i32)(of >> 32); } }"
        )

    def _guarded(self, op: Op, test: str | None, body: list[str]) -> None:
        """Write statements under a test; in validated mode its failure is a fault."""
        if test is None:
            for text in body:
                self.line(text)
            return
        self.line(f"if ({test}) {{")
        for text in body:
            self.line(f"  {text}")
        if self.kernel.bounds == "validated":
            self.line(f"}} else {self.fault(op, self.text(op.args[1]), self.length(op.args[0]))}")
        else:
            self.line("}")

    def _neighbours(self, op: Op, value: object) -> int:
        """Return how many elements of memory an access touches."""
        wide = isinstance(value, Vector) and not isinstance(op.args[0].type.elem, Vector)
        return value.width if wide and isinstance(value, Vector) else 1

    def _do_load(self, op: Op) -> None:
        memory: Memory = op.args[0].type
        dtype, width = scalar_of(op.type), width_of(op.type)
        reach = self._neighbours(op, op.type)
        test = self.inside(op, reach)
        place, aligned = self._place(op, reach)
        dialect = self.dialect
        zero = literal(0, dtype, dialect)
        if width == 1:
            value = f"{place} != 0" if dtype.is_bool else place
            if test is None:
                self.define(op, [value])
            elif self.kernel.bounds == "checked":
                self.define(op, [f"({test}) ? {value} : {zero}"])
            else:
                name = self.name(op)
                self.line(f"{dialect.ctype(dtype)} {name} = {zero};")
                self._guarded(op, test, [f"{name} = {value};"])
            return
        if test is None:
            read = dialect.load_vector(place, dtype, width, aligned, memory.space, self)
            self.define(op, [f"{lane} != 0" if dtype.is_bool else lane for lane in read])
            return
        names = [self.fresh() for _ in range(width)]
        self.names[op] = names
        self.line(f"{dialect.ctype(dtype)} {', '.join(f'{name} = {zero}' for name in names)};")
        with self.captured() as body:
            read = dialect.load_vector(place, dtype, width, aligned, memory.space, self)
        for name, lane in zip(names, read, strict=True):
            body.append(f"{name} = {lane}{' != 0' if dtype.is_bool else ''};")
        self._guarded(op, test, body)

    def _do_store(self, op: Op) -> None:
        value = op.args[2]
        dtype = scalar_of(value.type)
        reach = self._neighbours(op, value.type)
        test = self.inside(op, reach)
        place, aligned = self._place(op, reach)
        lanes = self.lanes(value)
        if dtype.is_bool:
            lanes = [f"(u8)({lane})" for lane in lanes]
        if width_of(value.type) == 1:
            self._guarded(op, test, [f"{place} = {lanes[0]};"])
            return
        space = op.args[0].type.space
        with self.captured() as body:
            self.dialect.store_vector(place, dtype, lanes, aligned, space, self)
        self._guarded(op, test, body)

    def _atomic(self, op: Op, kind: str) -> None:
        dtype = op.type
        place, _ = self._place(op, 1)
        args = [self.text(arg) for arg in op.args[2:]]
        space = op.args[0].type.space
        call = self.dialect.atomic(kind, dtype, space, f"&{place}", args, self)
        test = self.inside(op, 1)
        if test is None:
            self.define(op, [call])
            return
        name = self.name(op)
        self.line(f"{self.dialect.ctype(dtype)} {name} = 0;")
        self._guarded(op, test, [f"{name} = {call};"])

    def _do_atomic(self, op: Op) -> None:
        self._atomic(op, op.attrs["kind"])

    def _do_atomic_cas(self, op: Op) -> None:
        self._atomic(op, "cas")
