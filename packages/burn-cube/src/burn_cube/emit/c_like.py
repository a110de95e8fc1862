"""The C family: one walk over the IR for OpenCL C and CUDA C++.

A vector value is its lanes, each one a C variable: devices compute lane by lane anyway, and both
dialects stay simple. Only memory is accessed in whole vectors. Halves are their bits in a `u16`;
`halves.widen_halves` has left nothing but moves and conversions of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from burn_cube.emit.c_memory import MemoryWriter
from burn_cube.emit.c_plane import plane_kinds
from burn_cube.emit.c_values import conversion, literal, value_of
from burn_cube.emit.dialect import Dialect, lacking
from burn_cube.emit.flat import Flat, flat
from burn_cube.ir import Kernel, Op, Region, walk
from burn_cube.lowering.copies import copies_at_once
from burn_cube.lowering.halves import widen_halves
from burn_cube.lowering.rewrite import clone
from burn_cube.lowering.tiles import tiles_in_memory
from burn_cube.lowering.transcendental import expand_math
from burn_cube.operations import PURE
from burn_cube.passes import simplify
from burn_cube.runtime.arguments import Entry, layout
from burn_cube.types import Memory, Tile, scalar_of, width_of
from burn_std.dtypes import DType


class Source(NamedTuple):
    """A kernel as C.

    Attributes:
        text: the whole translation unit.
        entry: name of the kernel in it.
        entries: values that a launch passes.
        sites: operations that can fault, by their number less one.
        shared: bytes of shared memory that the launch has to ask for.
        kernel: what the text was made of.
    """

    text: str
    entry: str
    entries: list[Entry]
    sites: list[Op]
    shared: int
    kernel: Kernel


def emit(kernel: Kernel, dialect: Dialect) -> Source:
    """Return a kernel as source of a dialect; the kernel is left as it is.

    Raises:
        LaunchError: the dialect's device lacks what the kernel needs.
    """
    legal = clone(kernel)
    if not dialect.takes_copies(kernel):
        legal = copies_at_once(legal)
    if not dialect.takes_tiles(kernel):
        legal = tiles_in_memory(legal)
    legal = widen_halves(legal)
    if not dialect.takes_math():
        legal = simplify(expand_math(legal, dialect.wide))
    dialect.check(legal)
    return Writer(legal, dialect).source()


class Writer(MemoryWriter):
    """Writes one kernel."""

    def source(self) -> Source:
        """Return the finished source."""
        entries = layout(self.kernel)
        entry = f"k_{self.kernel.name}"
        self.declare(entries)
        self._planes()
        known = flat(self.kernel) if self.dialect.cubes_at_once else None
        if known is not None and known.limits:
            self._cubes(known)
        else:
            self.region(self.kernel.body, last=True)
        params = ",\n    ".join(self.params)
        head = self.dialect.prelude(self.kernel)
        body = "\n".join(f"  {line}" for line in self.lines)
        text = "\n".join(
            [head, *self.helpers.values(), self.dialect.kernel(entry, self.kernel, params), "{"]
        )
        return Source(f"{text}\n{body}\n}}\n", entry, entries, self.sites, self.shared, self.kernel)

    def _cubes(self, known: Flat) -> None:
        """Write the body for cubes that are below all limits, and for those that are not."""
        number, size = self._special("cube_pos"), self.kernel.cube_dim[0]
        ends = [
            self.facts["length", limit, 0] if isinstance(limit.type, Memory) else self.text(limit)
            for limit in known.limits
        ]
        self.line(f"const i64 behind = ((i64)({number}) + 1) * {size};")
        self.line(f"if ({' && '.join(f'behind <= (i64){end}' for end in ends)}) {{")
        self.depth += 1
        self.below = known
        self.region(self.kernel.body, last=True)
        self.below = None
        self.depth -= 1
        self.line("} else {")
        self.depth += 1
        self.region(self.kernel.body, last=True)
        self.depth -= 1
        self.line("}")

    def _planes(self) -> None:
        if any(op.name == "plane" for op in walk(self.kernel.body)):
            self.lines += self.dialect.plane_head(self.kernel)

    # --- control ---------------------------------------------------------------------------

    def region(self, region: Region, last: bool = False) -> None:
        """Write the operations of a region; `last` when nothing follows it in the kernel."""
        for number, op in enumerate(region.ops):
            method = getattr(self, f"_do_{op.name}", None)
            if self.below and op in self.below.guards:
                self.names[op] = ["true" if self.below.guards[op] else "false"]
            elif method is None:
                self._pure(op)
            elif op.name == "block":
                self._do_block(op, last and number == len(region.ops) - 1)
            else:
                method(op)

    def inner(self, region: Region) -> None:
        """Write a region between braces that are already open."""
        self.depth += 1
        self.region(region)
        self.depth -= 1

    def _do_if(self, op: Op) -> None:
        self.line(f"if ({self.text(op.args[0])}) {{")
        self.inner(op.regions[0])
        if op.regions[1].ops:
            self.line("} else {")
            self.inner(op.regions[1])
        self.line("}")

    def _do_for(self, op: Op) -> None:
        start, stop, step = (self.text(arg) for arg in op.args)
        index = op.regions[0].ops[0]
        name = self.name(index)
        type_ = self.dialect.ctype(index.type)
        known = op.args[2].attrs["value"] if op.args[2].name == "const" else None
        if known is None:
            cond = f"{step} > 0 ? {name} < {stop} : ({step} < 0 && {name} > {stop})"
            if not index.type.is_signed:
                cond = f"{step} > 0 && {name} < {stop}"
        else:
            cond = f"{name} {'<' if known > 0 else '>'} {stop}" if known else "false"
        self.line(f"for ({type_} {name} = {start}; {cond}; {name} += {step}) {{")
        self.inner(Region(op.regions[0].ops[1:]))
        self.line("}")

    def _do_while(self, op: Op) -> None:
        self.line("while (true) {")
        self.inner(op.regions[0])
        cond = op.regions[0].ops[-1].args[0]
        self.line(f"  if (!({self.text(cond)})) break;")
        self.inner(op.regions[1])
        self.line("}")

    def _do_yield(self, op: Op) -> None:
        pass

    def _do_block(self, op: Op, last: bool = False) -> None:
        if last:
            self.ways[op] = "return;"
        else:
            label = f"end{self.labels}"
            self.labels += 1
            self.ways[op] = f"goto {label};"
        self.line("{")
        self.inner(op.regions[0])
        self.line("}")
        leaves = any(o.name == "leave" and o.attrs["target"] is op for o in walk(op.regions[0]))
        if not last and leaves:
            self.line(f"{label}: ;")

    def _do_leave(self, op: Op) -> None:
        self.line(self.ways[op.attrs["target"]])

    def _do_break(self, op: Op) -> None:
        self.line("break;")

    def _do_continue(self, op: Op) -> None:
        self.line("continue;")

    # --- values ----------------------------------------------------------------------------

    def _pure(self, op: Op) -> None:
        if op.name not in PURE:
            raise lacking(self.dialect.name, op)
        dtype = scalar_of(op.args[0].type)
        lanes = zip(*[self.lanes(arg) for arg in op.args], strict=True)
        self.define(op, [value_of(op.name, dtype, args, self) for args in lanes])

    def _do_const(self, op: Op) -> None:
        self.names[op] = [literal(op.attrs["value"], op.type, self.dialect)]

    def _do_cast(self, op: Op) -> None:
        old, new = scalar_of(op.args[0].type), scalar_of(op.type)
        self.define(op, [conversion(lane, old, new, self) for lane in self.lanes(op.args[0])])

    _do_raw_cast = _do_cast

    def _do_bitcast(self, op: Op) -> None:
        old, new = scalar_of(op.args[0].type), scalar_of(op.type)
        bits = self.dialect.bits
        self.define(op, [bits(lane, old, new) for lane in self.lanes(op.args[0])])

    def _do_select(self, op: Op) -> None:
        cond, then, other = (self.lanes(arg) for arg in op.args)
        if len(cond) < len(then):
            cond = cond * len(then)
        triples = zip(cond, then, other, strict=True)
        self.define(op, [f"{c} ? {a} : {b}" for c, a, b in triples])

    def _do_splat(self, op: Op) -> None:
        self.names[op] = self.lanes(op.args[0]) * op.type.width

    def _do_vector(self, op: Op) -> None:
        self.names[op] = [self.text(arg) for arg in op.args]

    def _do_extract(self, op: Op) -> None:
        self.names[op] = [self.lanes(op.args[0])[op.attrs["lane"]]]

    def _do_insert(self, op: Op) -> None:
        lanes = list(self.lanes(op.args[0]))
        lanes[op.attrs["lane"]] = self.text(op.args[1])
        self.names[op] = lanes

    def _do_slot(self, op: Op) -> None:
        type_, count = self._variables(op.type)
        lanes = [self.fresh() for _ in range(count)]
        self.names[op] = lanes
        for lane in lanes:
            self.line(f"{type_} {lane} = 0;")

    def _variables(self, type_: Any) -> tuple[str, int]:
        """Return the C type and the number of variables that hold a value."""
        if isinstance(type_, Tile):
            return self.dialect.tile_variables(type_)
        return self.dialect.ctype(scalar_of(type_)), width_of(type_)

    def _do_get(self, op: Op) -> None:
        self.bind(op, self._variables(op.type)[0], self.lanes(op.args[0]))

    def _do_set(self, op: Op) -> None:
        old, new = self.lanes(op.args[0]), self.lanes(op.args[1])
        for a, b in zip(old, new, strict=True):
            self.line(f"{a} = {b};")

    # --- facts of the launch ---------------------------------------------------------------

    def _do_special(self, op: Op) -> None:
        self.define(op, [f"({self.dialect.ctype(op.type)})({self._special(op.attrs['name'])})"])

    def _special(self, name: str) -> str:
        x, y, z = self.kernel.cube_dim
        index = self.dialect.ctype(self.kernel.index)
        raw = self.dialect.position
        if name == "unit_pos":
            terms = [raw("unit", 0)]
            terms += [f"{raw('unit', 1)} * {x}"] if y > 1 else []
            terms += [f"{raw('unit', 2)} * {x * y}"] if z > 1 else []
            return " + ".join(terms)
        if name == "plane_pos":
            return f"({self._special('unit_pos')}) / {self.kernel.plane_dim}"
        if name == "unit_pos_plane":
            return f"({self._special('unit_pos')}) % {self.kernel.plane_dim}"
        if name == "cube_count":
            return " * ".join(f"({index}){raw('count', axis)}" for axis in range(3))
        if name == "cube_pos":
            c, n = [raw("cube", a) for a in range(3)], [raw("count", a) for a in range(3)]
            return f"(({index}){c[2]} * {n[1]} + {c[1]}) * ({index}){n[0]} + {c[0]}"
        if name == "absolute_pos":
            p = [self._special(f"absolute_pos_{a}") for a in "xyz"]
            n = [raw("count", a) for a in range(3)]
            rows, columns = f"(({index}){n[1]} * {y})", f"(({index}){n[0]} * {x})"
            return f"(({p[2]}) * {rows} + ({p[1]})) * {columns} + ({p[0]})"
        word, _, letter = name.rpartition("_")
        axis = "xyz".index(letter)
        if word == "absolute_pos":
            dim = self.kernel.cube_dim[axis]
            return f"({index}){raw('cube', axis)} * {dim} + {raw('unit', axis)}"
        return raw({"unit_pos": "unit", "cube_pos": "cube", "cube_count": "count"}[word], axis)

    def _fact(self, op: Op) -> None:
        key = (op.name, op.args[0], op.attrs.get("dim", 0))
        self.names[op] = [self.facts[key]]

    def _do_length(self, op: Op) -> None:
        memory = op.args[0]
        if memory.name == "alloc":
            self.names[op] = [str(memory.attrs["size"])]
        else:
            self._fact(op)

    _do_shape = _do_stride = _fact

    # --- units together, effects -----------------------------------------------------------

    def _do_barrier(self, op: Op) -> None:
        self.line(self.dialect.barrier(op.attrs["scope"], self.kernel))

    def _do_plane(self, op: Op) -> None:
        dtype, kind = scalar_of(op.args[0].type), op.attrs["kind"]
        if dtype.kind not in plane_kinds(kind):
            raise lacking(self.dialect.name, op, f"plane {kind} of {dtype.name}")
        args = [self.text(arg) for arg in op.args]
        self.define(op, [self.dialect.plane(kind, dtype, args, self)])

    def _tile(self, op: Op) -> None:
        self.dialect.tile(op, self)

    def _do_async_copy(self, op: Op) -> None:
        self.dialect.copy(op, self)

    _do_async_commit = _do_async_wait = _do_async_copy

    _do_tile_fill = _do_tile_load = _do_tile_mma = _do_tile_store = _tile
    _do_tile_element = _do_tile_of = _do_tile_operand = _do_group_mma = _do_group_wait = _tile

    def _do_print(self, op: Op) -> None:
        lanes: list[tuple[str, DType]] = []
        formats = []
        for arg in op.args:
            dtype = scalar_of(arg.type)
            spec = self.dialect.format(dtype)
            formats.append(", ".join([spec] * width_of(arg.type)))
            lanes += [(lane, dtype) for lane in self.lanes(arg)]
        text = op.attrs["text"].replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
        text = text.replace("\n", "\\n")
        for form in formats:
            text = text.replace("{}", form, 1)
        values = "".join(f", {self._printed(lane, dtype)}" for lane, dtype in lanes)
        self.line(f'printf("{text}\\n"{values});')

    def _printed(self, lane: str, dtype: DType) -> str:
        if dtype.is_float and dtype.bits == 16:
            from burn_std.dtypes import float32

            return conversion(lane, dtype, float32, self)
        if dtype.bits < 32:
            return f"(i32)({lane})"
        return lane

    def _do_assert(self, op: Op) -> None:
        self.line(f"if (!({self.text(op.args[0])})) {self.fault(op, '0', '0')}")
