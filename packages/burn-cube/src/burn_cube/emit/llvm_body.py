"""The statements of a kernel as LLVM IR: memory, control, locals, inside one loop over units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_cube.emit.flat import Flat
from burn_cube.emit.llvm_values import (
    constant,
    conversion,
    memory_type,
    pure,
    scalar_type,
    type_name,
)
from burn_cube.emit.split import Split
from burn_cube.errors import KernelError
from burn_cube.ir import Kernel, Op, Region, walk
from burn_cube.operations import PURE
from burn_cube.types import Vector, scalar_of, width_of
from burn_std.dtypes import DType

_ATOMIC = {
    "add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "exchange": "xchg",
}  # fmt: skip


# Arrays live on the stack of a thread, which has 8 MiB.
STACK = 2 << 20
# Operations of a round above which two rounds of a long independent loop run side by side.
LONG_ROUND = 40


class Body:
    """Emits operations; the function around them says where units come from."""

    def __init__(self, kernel: Kernel, codes: dict[Op, int]) -> None:
        self.kernel = kernel
        self.codes = codes
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.globals: list[str] = []
        self.metadata: list[str] = []
        self.declared: set[str] = set()
        self.uses_fault = False
        self.count = 0
        self.labels = 0
        self.current = "entry"
        self.index_type = f"i{kernel.index.bits}"
        # Values: known everywhere, in this unit's loop, and in the arrays that cross groups.
        self.uniform: dict[Op, str] = {}
        self.names: dict[Op, tuple[str, int | None]] = {}
        self.spills: dict[Op, str] = {}
        self.slots: dict[Op, str] = {}
        self.bases: dict[Op, str] = {}
        self.lengths: dict[Op, str] = {}
        self.facts: dict[tuple[str, Op, int | None], str] = {}
        self.positions: dict[str, str] = {}
        self.cube_positions: dict[str, str] = {}
        self.special_names: dict[str, str] = {}
        self.grid: list[str] = []
        self.fault = "null"
        self.unit = "0"
        self.group: int | None = None
        self.split: Split | None = None
        # What holds in the inner part of a flat range, inside of it.
        self.inside: Flat | None = None
        self.access: str | None = None
        self.ends: dict[tuple[Op, str], str] = {}

    # --- text ------------------------------------------------------------------------------

    def fresh(self) -> str:
        """Return a new name."""
        self.count += 1
        return f"%v{self.count}"

    def label(self, word: str) -> str:
        """Return a new label."""
        self.labels += 1
        return f"{word}{self.labels}"

    def line(self, text: str) -> None:
        """Append one instruction."""
        self.lines.append(f"  {text}")

    def value_line(self, text: str) -> str:
        """Append an instruction with a result and return its name."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def open(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self.current = label

    def jump_to(self, label: str) -> None:
        """End the basic block."""
        self.line(f"br label %{label}")

    # --- frame -----------------------------------------------------------------------------

    @staticmethod
    def scalar_word(dtype: DType) -> str:
        """Return the LLVM type with which a scalar argument is read from its word."""
        return "i8" if dtype.is_bool else scalar_type(dtype)

    def _alloca(self, type_: str) -> str:
        name = self.fresh()
        self.entry.append(f"  {name} = alloca {type_}, align 64")
        return name

    def allocate(self, per_cube: bool) -> None:
        """Make room for locals, arrays and values that cross groups."""
        units = self.kernel.cube_size
        split = self.split
        if per_cube and split is None:
            split = self.split = Split(self.kernel)
        for op in walk(self.kernel.body):
            if op.name == "slot":
                many = per_cube and split is not None and op in split.crossing
                kind = type_name(op.type)
                self.slots[op] = self._alloca(f"[{units} x {kind}]" if many else kind)
            elif op.name == "alloc":
                size = op.attrs["size"] * (units if per_cube and op.type.space == "local" else 1)
                if size * op.type.elem.itemsize > STACK:
                    raise KernelError(
                        "array", f"the arrays of a cube take at most {STACK} bytes on a cpu",
                        got=size * op.type.elem.itemsize, where=op.where,
                        remedy="Use a smaller array, a smaller cube, or a buffer.",
                    )  # fmt: skip
                self.bases[op] = self._alloca(f"[{size} x {memory_type(op.type.elem)}]")
            elif split is not None and op in split.crossing:
                self.spills[op] = self._alloca(f"[{units} x {type_name(op.type)}]")

    def start_cube(self) -> None:
        """Clear what belongs to each unit where a group may come back to it."""
        if self.split is None:
            return
        units = self.kernel.cube_size
        for op, base in self.slots.items():
            if op in self.split.crossing:
                self._clear(base, f"[{units} x {type_name(op.type)}]")
        for op, base in self.bases.items():
            if op.name == "alloc" and op.type.space == "local":
                self._clear(base, f"[{op.attrs['size'] * units} x {memory_type(op.type.elem)}]")

    def start_unit(self) -> None:
        """Clear the locals of a unit and forget the names of the one before."""
        if self.split is None:
            self.names = {}
        for op, base in self.slots.items():
            if self.split is None or op not in self.split.crossing:
                self.line(f"store {type_name(op.type)} zeroinitializer, ptr {base}")
        for op, base in self.bases.items():
            if op.name == "alloc" and op.type.space == "local" and self.split is None:
                self._clear(base, f"[{op.attrs['size']} x {memory_type(op.type.elem)}]")

    def _clear(self, base: str, kind: str) -> None:
        self.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        end = self.value_line(f"getelementptr {kind}, ptr null, i64 1")
        size = self.value_line(f"ptrtoint ptr {end} to i64")
        self.line(f"call void @llvm.memset.p0.i64(ptr {base}, i8 0, i64 {size}, i1 false)")

    def loop(
        self, low: str, high: str, body: Callable[[str], None], vector: bool, plain: bool = False
    ) -> None:
        """Emit a loop of independent rounds from low to before high.

        Args:
            low: first index.
            high: end.
            body: emits a round.
            vector: tell LLVM that no round depends on another one's memory.
            plain: say nothing at all; else a loop that is not `vector` is kept small.
        """
        head, inner, latch, done = (self.label(w) for w in ("head", "body", "latch", "done"))
        before = self.current
        self.jump_to(head)
        self.open(head)
        index, step, go = self.fresh(), self.fresh(), self.fresh()
        self.line(f"{index} = phi i64 [{low}, %{before}], [{step}, %{latch}]")
        self.line(f"{go} = icmp slt i64 {index}, {high}")
        self.line(f"br i1 {go}, label %{inner}, label %{done}")
        self.open(inner)
        outer, self.access = self.access, None
        note = ""
        if vector:
            note = self._independent(self.kernel.body)
        elif not plain:
            number = len(self.metadata)
            self.metadata.append(
                f"!{number} = distinct !{{!{number}, !{number + 1}, !{number + 2}}}\n"
                f'!{number + 1} = !{{!"llvm.loop.vectorize.width", i32 1}}\n'
                f'!{number + 2} = !{{!"llvm.loop.unroll.disable"}}'
            )
            self.metadata += ["", ""]
            note = f", !llvm.loop !{number}"
        body(index)
        self.access = outer
        self.jump_to(latch)
        self.open(latch)
        self.line(f"{step} = add nsw i64 {index}, 1")
        self.line(f"br label %{head}{note}")
        self.open(done)

    def _independent(self, body: Region | None = None) -> str:
        """Begin a loop whose rounds share no memory; return the note on its last jump.

        Args:
            body: what a round does, of a loop that is long enough to take two rounds together.
        """
        number = len(self.metadata)
        self.access = f", !llvm.access.group !{number}"
        self.metadata.append(f"!{number} = distinct !{{}}")
        # Operations of a long round wait for each other; LLVM by itself takes only short ones
        # together.
        twice = body is not None and sum(1 for _ in walk(body)) > LONG_ROUND
        more = f", !{number + 3}" if twice else ""
        self.metadata.append(
            f"!{number + 1} = distinct !{{!{number + 1}, !{number + 2}{more}}}\n"
            f'!{number + 2} = !{{!"llvm.loop.parallel_accesses", !{number}}}'
        )
        self.metadata += ["", ""]
        if twice:
            self.metadata[-1] = f'!{number + 3} = !{{!"llvm.loop.interleave.count", i32 2}}'
        return f", !llvm.loop !{number + 1}"

    # --- values ----------------------------------------------------------------------------

    def value(self, op: Op) -> str:
        """Return the name of a value, here."""
        if op.name == "const":
            return constant(op.attrs["value"], op.type)
        if op.name == "special":
            return self.special_names[op.attrs["name"]]
        if op.name in ("length", "shape", "stride"):
            if (op.name == "length") and op.args[0] not in self.lengths:
                return str(op.args[0].attrs["size"])
            return self.facts[op.name, op.args[0], op.attrs.get("dim")]
        if op in self.uniform:
            return self.uniform[op]
        name, group = self.names.get(op, ("", -2))
        if group == self.group and name:
            return name
        place = self._spill_place(op)
        return self.value_line(f"load {type_name(op.type)}, ptr {place}")

    def _spill_place(self, op: Op) -> str:
        unit = self.unit if self.group is not None else "0"
        return self.value_line(f"getelementptr {type_name(op.type)}, ptr {self.spills[op]}, "
                               f"i64 {unit}")  # fmt: skip

    def keep(self, op: Op, name: str) -> None:
        """Note the name of a result, and store it where other groups need it."""
        self.names[op] = (name, self.group)
        if op in self.spills:
            self.line(f"store {type_name(op.type)} {name}, ptr {self._spill_place(op)}")

    def region(self, region: Region) -> None:
        """Emit a region."""
        self.ops(region.ops)

    def ops(self, ops: list[Op]) -> None:
        """Emit operations in order."""
        for op in ops:
            self.op(op)

    def op(self, op: Op) -> None:
        """Emit one operation."""
        if op.name in ("const", "special", "length", "shape", "stride", "alloc", "slot", "index"):
            return
        if self.inside and op in self.inside.guards:
            self.keep(op, "true" if self.inside.guards[op] else "false")
            return
        method = getattr(self, f"_do_{op.name}", None)
        if method is not None:
            method(op)
        elif op.name in PURE:
            args = [self.value(arg) for arg in op.args]
            text = pure(op, args, self.kernel.fast_math, self.declared)
            self.keep(op, self.value_line(text))
        else:
            raise KernelError(
                op.name, "the cpu runtime has no such operation", where=op.where,
                remedy="Ask the device first: client.properties.",
            )  # fmt: skip

    def _do_cast(self, op: Op) -> None:
        self.keep(op, self.value_line(conversion(op, self.value(op.args[0]))))

    _do_raw_cast = _do_cast

    def _do_bitcast(self, op: Op) -> None:
        old, new = type_name(op.args[0].type), type_name(op.type)
        value = self.value(op.args[0])
        self.keep(op, self.value_line(f"bitcast {old} {value} to {new}"))

    def _do_select(self, op: Op) -> None:
        cond, then, other = (self.value(arg) for arg in op.args)
        kind = type_name(op.type)
        self.keep(op, self.value_line(
            f"select {type_name(op.args[0].type)} {cond}, {kind} {then}, {kind} {other}"
        ))  # fmt: skip

    def _do_splat(self, op: Op) -> None:
        value, scalar, kind = (
            self.value(op.args[0]), type_name(op.args[0].type), type_name(op.type)
        )  # fmt: skip
        one = self.value_line(f"insertelement {kind} poison, {scalar} {value}, i32 0")
        mask = f"<{op.type.width} x i32> zeroinitializer"
        self.keep(op, self.value_line(f"shufflevector {kind} {one}, {kind} poison, {mask}"))

    def _do_vector(self, op: Op) -> None:
        kind, made = type_name(op.type), "poison"
        for at, lane in enumerate(op.args):
            scalar = type_name(lane.type)
            made = self.value_line(
                f"insertelement {kind} {made}, {scalar} {self.value(lane)}, i32 {at}"
            )
        self.keep(op, made)

    def _do_extract(self, op: Op) -> None:
        kind = type_name(op.args[0].type)
        self.keep(op, self.value_line(
            f"extractelement {kind} {self.value(op.args[0])}, i32 {op.attrs['lane']}"
        ))  # fmt: skip

    def _do_insert(self, op: Op) -> None:
        kind, scalar = type_name(op.type), type_name(op.args[1].type)
        whole, new = self.value(op.args[0]), self.value(op.args[1])
        self.keep(op, self.value_line(
            f"insertelement {kind} {whole}, {scalar} {new}, i32 {op.attrs['lane']}"
        ))  # fmt: skip

    # --- locals and memory -----------------------------------------------------------------

    def _slot(self, slot: Op) -> str:
        base = self.slots[slot]
        if self.split is None or slot not in self.split.crossing:
            return base
        unit = self.unit if self.group is not None else "0"
        return self.value_line(f"getelementptr {type_name(slot.type)}, ptr {base}, i64 {unit}")

    def _do_get(self, op: Op) -> None:
        place = self._slot(op.args[0])
        self.keep(op, self.value_line(f"load {type_name(op.type)}, ptr {place}"))

    def _do_set(self, op: Op) -> None:
        value = self.value(op.args[1])
        self.line(f"store {type_name(op.args[1].type)} {value}, ptr {self._slot(op.args[0])}")

    def _index(self, op: Op) -> str:
        """Return an index as i64."""
        value, dtype = self.value(op), op.type
        if dtype.bits == 64:
            return value
        word = "sext" if dtype.kind == "int" else "zext"
        return self.value_line(f"{word} i{dtype.bits} {value} to i64")

    def _length(self, memory: Op) -> str:
        return self.lengths.get(memory) or str(memory.attrs["size"])

    def _place(self, memory: Op, index: str) -> str:
        base = self.bases[memory]
        if memory.name == "alloc" and memory.type.space == "local" and self.split is not None:
            first = self.value_line(f"mul i64 {self.unit}, {memory.attrs['size']}")
            index = self.value_line(f"add i64 {first}, {index}")
        kind = memory_type(memory.type.elem)
        return self.value_line(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def _checked(self, op: Op, width: int, access: Callable[[str], None]) -> str | None:
        """Emit an access under its bounds check.

        Returns:
            The label of the block that made the access, or None where nothing was checked.
        """
        memory = op.args[0]
        index = self._index(op.args[1])
        if self.kernel.bounds == "unchecked" or (self.inside and op in self.inside.linear):
            access(index)
            return None
        length = self._length(memory)
        if width > 1:
            self.declared.add("declare i64 @llvm.smax.i64(i64, i64)")
            shorter = self.value_line(f"sub i64 {length}, {width - 1}")
            limit = self.value_line(f"call i64 @llvm.smax.i64(i64 {shorter}, i64 0)")
        else:
            limit = length
        good = self.value_line(f"icmp ult i64 {index}, {limit}")
        ok, after = self.label("ok"), self.label("after")
        wrong = self.label("wrong") if self.kernel.bounds == "validated" else after
        self.line(f"br i1 {good}, label %{ok}, label %{wrong}")
        if wrong != after:
            self.open(wrong)
            self._report(op, index, length)
            self.jump_to(after)
        self.before_access = wrong if wrong != after else self.current
        self.open(ok)
        access(index)
        self.jump_to(after)
        self.open(after)
        return ok

    def _report(self, op: Op, index: str, length: str) -> None:
        self.uses_fault = True
        self.line(
            f"call void @burn_fault(ptr {self.fault}, i64 {self.codes[op]}, i64 {index}, "
            f"i64 {length})"
        )

    def _note(self, memory: Op) -> str:
        local = memory.name == "alloc" and memory.type.space == "local"
        return self.access if self.access and not local else ""

    def _neighbours(self, type_: Any, elem: Any) -> int:
        wide = isinstance(type_, Vector) and not isinstance(elem, Vector)
        return width_of(type_) if wide else 1

    def _do_load(self, op: Op) -> None:
        memory, elem = op.args[0], op.args[0].type.elem
        stored = memory_type(op.type)
        align = scalar_of(elem).itemsize
        start = self.current
        found = [""]

        def access(index: str) -> None:
            place = self._place(memory, index)
            note = self._note(memory)
            name = self.value_line(f"load {stored}, ptr {place}, align {align}{note}")
            if scalar_of(elem).is_bool:
                name = self.value_line(f"icmp ne {stored} {name}, zeroinitializer"
                                       if isinstance(op.type, Vector)
                                       else f"icmp ne i8 {name}, 0")  # fmt: skip
            found[0] = name

        ok = self._checked(op, self._neighbours(op.type, elem), access)
        name = found[0]
        if ok is not None:
            kind = type_name(op.type)
            before = self.before_access if self.kernel.bounds == "validated" else start
            name = self.value_line(
                f"phi {kind} [{name}, %{ok}], [zeroinitializer, %{before}]"
                if isinstance(op.type, Vector)
                else f"phi {kind} [{name}, %{ok}], [{constant(0, op.type)}, %{before}]"
            )
        self.keep(op, name)

    def _do_store(self, op: Op) -> None:
        memory, elem, value = op.args[0], op.args[0].type.elem, op.args[2]
        name = self.value(value)
        stored = memory_type(value.type)
        if scalar_of(elem).is_bool:
            name = self.value_line(f"zext {type_name(value.type)} {name} to {stored}")
        align = scalar_of(elem).itemsize

        def access(index: str) -> None:
            place = self._place(memory, index)
            self.line(f"store {stored} {name}, ptr {place}, align {align}{self._note(memory)}")

        self._checked(op, self._neighbours(value.type, elem), access)

    def _do_atomic(self, op: Op) -> None:
        value = self.value(op.args[2])
        kind, dtype = op.attrs["kind"], op.type
        if kind in ("min", "max"):
            word = kind if dtype.kind == "int" else f"u{kind}"
        elif dtype.is_float and kind == "add":
            word = "fadd"
        else:
            word = _ATOMIC[kind]
        name = type_name(dtype)
        self._read_modify(op, lambda place: self.value_line(
            f"atomicrmw {word} ptr {place}, {name} {value} monotonic"
        ))  # fmt: skip

    def _do_atomic_cas(self, op: Op) -> None:
        old, new, name = self.value(op.args[2]), self.value(op.args[3]), type_name(op.type)

        def swap(place: str) -> str:
            pair = self.value_line(
                f"cmpxchg ptr {place}, {name} {old}, {name} {new} monotonic monotonic"
            )
            return self.value_line(f"extractvalue {{ {name}, i1 }} {pair}, 0")

        self._read_modify(op, swap)

    def _read_modify(self, op: Op, make: Callable[[str], str]) -> None:
        start, found = self.current, [""]

        def access(index: str) -> None:
            found[0] = make(self._place(op.args[0], index))

        ok = self._checked(op, 1, access)
        name = found[0]
        if ok is not None:
            before = self.before_access if self.kernel.bounds == "validated" else start
            zero = constant(0, op.type)
            name = self.value_line(
                f"phi {type_name(op.type)} [{name}, %{ok}], [{zero}, %{before}]"
            )  # fmt: skip
        self.keep(op, name)

    # --- control ---------------------------------------------------------------------------

    def branch(self, op: Op, run: Callable[[Region], None]) -> None:
        """Emit an `if`."""
        cond = self.value(op.args[0])
        then, other, done = self.label("then"), self.label("else"), self.label("endif")
        has_else = bool(op.regions[1].ops)
        self.line(f"br i1 {cond}, label %{then}, label %{other if has_else else done}")
        for label, region in ((then, op.regions[0]), (other, op.regions[1])):
            if label == other and not has_else:
                continue
            self.open(label)
            run(region)
            self.jump_to(done)
        self.open(done)

    def _do_if(self, op: Op) -> None:
        self.branch(op, self.region)

    def for_loop(self, op: Op, run: Callable[[Region], None]) -> None:
        """Emit a `for`."""
        start, stop, step = (self.value(arg) for arg in op.args)
        dtype = op.args[0].type
        kind, index_op = type_name(dtype), op.regions[0].ops[0]
        head, body, latch, done = (self.label(w) for w in ("for", "round", "next", "endfor"))
        before = self.current
        self.jump_to(head)
        self.open(head)
        index, following = self.fresh(), self.fresh()
        self.line(f"{index} = phi {kind} [{start}, %{before}], [{following}, %{latch}]")
        self.line(f"br i1 {self._ahead(op, index, stop, step)}, label %{body}, label %{done}")
        self.open(body)
        self.uniform[index_op] = index
        self.ends[op, "continue"], self.ends[op, "break"] = latch, done
        outer = self.access
        note = self._independent() if op.attrs.get("independent") else ""
        run(op.regions[0])
        self.access = outer
        self.jump_to(latch)
        self.open(latch)
        self.line(f"{following} = add {kind} {index}, {step}")
        self.line(f"br label %{head}{note}")
        self.open(done)

    def _ahead(self, op: Op, index: str, stop: str, step: str) -> str:
        dtype = op.args[0].type
        kind, sign = type_name(dtype), "s" if dtype.kind == "int" else "u"
        below = f"icmp {sign}lt {kind} {index}, {stop}"
        above = f"icmp {sign}gt {kind} {index}, {stop}"
        known = op.args[2]
        if known.name == "const":
            return self.value_line(below if known.attrs["value"] > 0 else above)
        up = self.value_line(f"icmp {sign}gt {kind} {step}, 0")
        down = self.value_line(f"icmp slt {kind} {step}, 0") if sign == "s" else "false"
        first = self.value_line(f"and i1 {up}, {self.value_line(below)}")
        second = self.value_line(f"and i1 {down}, {self.value_line(above)}")
        return self.value_line(f"or i1 {first}, {second}")

    def _do_for(self, op: Op) -> None:
        self.for_loop(op, self.region)

    def while_loop(self, op: Op, run: Callable[[Region], None]) -> None:
        """Emit a `while`."""
        head, body, done = self.label("while"), self.label("do"), self.label("endwhile")
        self.jump_to(head)
        self.open(head)
        run(op.regions[0])
        cond = self.value(op.regions[0].ops[-1].args[0])
        self.line(f"br i1 {cond}, label %{body}, label %{done}")
        self.open(body)
        self.ends[op, "continue"], self.ends[op, "break"] = head, done
        run(op.regions[1])
        self.jump_to(head)
        self.open(done)

    def _do_while(self, op: Op) -> None:
        self.while_loop(op, self.region)

    def _do_yield(self, op: Op) -> None:
        pass

    def block(self, op: Op, run: Callable[[Region], None]) -> None:
        """Emit a `block`."""
        done = self.label("endblock")
        self.ends[op, "leave"] = done
        run(op.regions[0])
        self.jump_to(done)
        self.open(done)

    def _do_block(self, op: Op) -> None:
        self.block(op, self.region)

    def jump(self, op: Op) -> None:
        """Emit a jump; what follows in its region is never reached."""
        self.jump_to(self.ends[op.attrs["target"], op.name])
        self.open(self.label("dead"))

    _do_break = _do_continue = _do_leave = jump

    # --- effects ---------------------------------------------------------------------------

    def _do_assert(self, op: Op) -> None:
        cond = self.value(op.args[0])
        bad, after = self.label("failed"), self.label("holds")
        self.line(f"br i1 {cond}, label %{after}, label %{bad}")
        self.open(bad)
        self._report(op, "0", "0")
        self.jump_to(after)
        self.open(after)

    def _do_print(self, op: Op) -> None:
        words, args = [], []
        for value in op.args:
            name, dtype = self.value(value), value.type
            if dtype.is_float:
                if dtype.bits < 64:
                    name = self.value_line(f"fpext {type_name(dtype)} {name} to double")
                words.append("%g")
                args.append(f"double {name}")
            else:
                if dtype.bits < 64 or dtype.is_bool:
                    word = "sext" if dtype.kind == "int" else "zext"
                    name = self.value_line(f"{word} {type_name(dtype)} {name} to i64")
                words.append("%lld" if dtype.kind != "uint" else "%llu")
                args.append(f"i64 {name}")
        text = op.attrs["text"].replace("%", "%%").format(*words) + "\n"
        data = text.encode() + b"\0"
        spelled = "".join(f"\\{byte:02X}" for byte in data)
        label = f"@text{len(self.globals)}"
        self.globals.append(f'{label} = private constant [{len(data)} x i8] c"{spelled}"')
        self.declared.add("declare i32 @printf(ptr, ...)")
        call = ", ".join([f"ptr {label}", *args])
        self.line(f"call i32 (ptr, ...) @printf({call})")
