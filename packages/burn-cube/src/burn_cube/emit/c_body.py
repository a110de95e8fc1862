"""Kernels as C: what OpenCL C and CUDA C++ share. A dialect says how the rest is spelled.

Every value is a constant variable in the block where it is computed; a vector is one variable a
lane, which GPUs compute with anyway, and becomes a vector again where memory is touched.
Signed integers compute as unsigned ones, so that they wrap.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from burn_std.dtypes import DType, bfloat16, float16, float32

from burn_cube.emit.layout import Layout, fault_codes
from burn_cube.errors import KernelError
from burn_cube.interpreter.numeric import to_bfloat16
from burn_cube.ir import Kernel, Op, Region, walk
from burn_cube.operations import MATH
from burn_cube.types import Memory, Vector, scalar_of, width_of

_SYMBOL = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
    "raw_div": "/", "raw_rem": "%", "raw_shl": "<<", "raw_shr": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_COMPARE = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_CALL = {"abs": "fabs", "rem": "fmod", "round": "rint"}
_WRAPS = frozenset({"add", "sub", "mul", "raw_shl"})


class Dialect(ABC):
    """What differs between the languages of the C family."""

    # Type names by dtype; halves are held as their bits.
    types: dict[str, str]
    barrier: dict[str, str]
    shared: str
    # Whether a jump may pass over a variable that is initialised.
    jumps_over_values: bool

    @abstractmethod
    def head(self, kernel: Kernel, words: int, uses: set[str]) -> str:
        """Return what stands before the kernel function, and its signature."""

    @abstractmethod
    def special(self, name: str, kernel: Kernel) -> str:
        """Return the expression of a position."""

    @abstractmethod
    def function(self, name: str, dtype: DType) -> str:
        """Return the name of a math function for a dtype."""

    @abstractmethod
    def bits(self, dtype: DType, value: int) -> str:
        """Return a float constant given by its bits."""

    @abstractmethod
    def bitcast(self, value: str, old: DType, new: DType) -> str:
        """Return the bits of a value as another dtype."""

    @abstractmethod
    def atomic(self, op: Op, place: str, args: list[str]) -> str:
        """Return the call of an atomic operation; `place` is an address."""

    @abstractmethod
    def load_vector(self, type_: Vector, base: str, index: str) -> str:
        """Return the expression of a vector element of memory, and of its lanes by `lane`."""

    @abstractmethod
    def store_vector(self, type_: Vector, base: str, index: str, lanes: list[str]) -> str:
        """Return the statement that writes a vector element."""

    @abstractmethod
    def lane(self, vector: str, at: int) -> str:
        """Return the expression of one lane of what `load_vector` gave."""

    def plane(self, op: Op, args: list[str]) -> str:
        """Return the call of a plane operation, where the target has planes."""
        raise KernelError(op.name, "the target has no planes", where=op.where)

    @staticmethod
    def vector_name(type_: Vector) -> str:
        """Return the name of the type of a vector in memory."""
        return f"v_{type_.short}"


class CBody:
    """Emits one kernel in a dialect."""

    def __init__(self, kernel: Kernel, dialect: Dialect) -> None:
        self.kernel = kernel
        self.dialect = dialect
        self.codes = fault_codes(kernel)
        self.layout = Layout(kernel)
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.names: dict[Op, list[str]] = {}
        self.labels: dict[Op, str] = {}
        ops = list(walk(kernel.body))
        self.split_values = not dialect.jumps_over_values and any(
            op.name == "leave" for op in ops
        )
        self.index = self.type(kernel.index)

    def text(self) -> str:
        """Return the program."""
        uses = {op.name for op in walk(self.kernel.body)}
        head = self.dialect.head(self.kernel, self.layout.size, uses)
        self._parameters()
        self.region(self.kernel.body)
        return "\n".join([head, *self.lines, "}", ""])

    # --- text ------------------------------------------------------------------------------

    def type(self, dtype: DType) -> str:
        """Return the C type of a scalar value."""
        return self.dialect.types[dtype.name]

    def memory(self, type_: Any) -> str:
        """Return the C type of an element in memory; a bool takes a byte."""
        if isinstance(type_, Vector):
            return self.dialect.vector_name(type_)
        return self.dialect.types["uint8" if type_.is_bool else type_.name]

    def line(self, text: str) -> None:
        """Append one line."""
        self.lines.append("  " * self.depth + text)

    def define(self, type_: str, text: str) -> str:
        """Append a new constant and return its name."""
        self.count += 1
        name = f"v{self.count}"
        if self.split_values:
            self.line(f"{type_} {name}; {name} = {text};")
        else:
            self.line(f"const {type_} {name} = {text};")
        return name

    def _parameters(self) -> None:
        for param, at in self.layout.first.items():
            name = param.attrs["name"]
            if isinstance(param.type, Memory):
                continue
            self.names[param] = [self.define(self.type(param.type), self._scalar(param, at, name))]

    def _scalar(self, param: Op, at: int, name: str) -> str:
        dtype = param.type
        word = f"words.w[{at}]"
        if not dtype.is_float:
            return f"({self.type(dtype)}){word}"
        if dtype.bits == 16:
            return f"({self.type(dtype)})({word} & 0xffff)"
        from burn_std.dtypes import int32, int64

        bits = int32 if dtype.bits == 32 else int64
        return self.dialect.bitcast(f"({self.type(bits)}){word}", bits, dtype)

    def constant(self, value: Any, dtype: DType) -> str:
        """Return a constant in C's spelling."""
        if dtype.is_bool:
            return "true" if value else "false"
        if dtype is bfloat16:
            return str(int(to_bfloat16(np.array([value], np.float32))[0]))
        if dtype.is_float:
            with np.errstate(over="ignore"):
                kind = np.dtype(dtype.name)
                number = kind.type(value)
            if dtype is float16:
                return str(int(number.view(np.uint16)))
            if math.isfinite(number):
                text = float(number).hex()
                return f"({text}f)" if dtype is float32 else f"({text})"
            wide = np.uint32 if dtype is float32 else np.uint64
            return self.dialect.bits(dtype, int(number.view(wide)))
        suffix = ("u" if dtype.kind == "uint" else "") + ("l" if dtype.bits == 64 else "")
        if dtype.kind == "int" and value == -(1 << (dtype.bits - 1)) and dtype.bits >= 32:
            return f"({value + 1}{suffix} - 1)"
        return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"

    def lanes(self, op: Op) -> list[str]:
        """Return the names of a value's lanes; one for a scalar."""
        if op.name == "const":
            return [self.constant(op.attrs["value"], op.type)]
        if op.name == "length":
            memory = op.args[0]
            if memory.name == "alloc":
                return [str(memory.attrs["size"])]
            return [f"(({self.index})words.w[{self.layout.first[memory] + 1}])"]
        if op.name in ("shape", "stride"):
            first, rank = self.layout.first[op.args[0]], op.args[0].attrs["rank"]
            at = first + 2 + op.attrs["dim"] + (rank if op.name == "stride" else 0)
            return [f"(({self.index})words.w[{at}])"]
        if op.name == "special":
            return [f"(({self.index})({self.dialect.special(op.attrs['name'], self.kernel)}))"]
        return self.names[op]

    def value(self, op: Op) -> str:
        """Return the name of a scalar value."""
        return self.lanes(op)[0]

    # --- operations ------------------------------------------------------------------------

    def region(self, region: Region) -> None:
        """Emit a region, without its braces."""
        for op in region:
            self.op(op)

    def op(self, op: Op) -> None:
        """Emit one operation."""
        if op.name in ("const", "length", "shape", "stride", "special", "index"):
            return
        method = getattr(self, f"_do_{op.name}", None)
        if method is not None:
            method(op)
            return
        args = [self.lanes(arg) for arg in op.args]
        width = width_of(op.type)
        type_ = self.type(scalar_of(op.type))
        self.names[op] = [
            self.define(type_, self._pure(op, [a[at] for a in args])) for at in range(width)
        ]

    def _pure(self, op: Op, args: list[str]) -> str:
        dtype = scalar_of(op.args[0].type)
        type_ = self.type(dtype)
        if op.name in _COMPARE:
            return f"({args[0]} {_SYMBOL[op.name]} {args[1]})"
        if op.name == "neg":
            if dtype.is_float:
                return f"-{args[0]}"
            return f"({type_})(0 - ({self._unsigned(dtype)}){args[0]})"
        if op.name == "not":
            return f"!{args[0]}" if dtype.is_bool else f"({type_})(~{args[0]})"
        if op.name == "fma" or op.name in MATH or op.name in _CALL or op.name not in _SYMBOL:
            name = self.dialect.function(_CALL.get(op.name, op.name), dtype)
            return f"{name}({', '.join(args)})"
        symbol = _SYMBOL[op.name]
        if dtype.is_float:
            return f"{args[0]} {symbol} {args[1]}"
        if dtype.is_bool:
            return f"(bool)({args[0]} {symbol} {args[1]})"
        if op.name in _WRAPS and dtype.kind == "int":
            wide = self._unsigned(dtype)
            return f"({type_})(({wide}){args[0]} {symbol} ({wide}){args[1]})"
        return f"({type_})({args[0]} {symbol} {args[1]})"

    def _unsigned(self, dtype: DType) -> str:
        # Small integers would promote to int again: they compute as uint.
        return self.dialect.types["uint64" if dtype.bits == 64 else "uint32"]

    def _do_cast(self, op: Op) -> None:
        old, new = scalar_of(op.args[0].type), scalar_of(op.type)
        made = []
        for value in self.lanes(op.args[0]):
            if old is float16:
                text = f"burn_h2f({value})"
            elif new is float16:
                text = f"burn_f2h({value})"
            else:
                text = f"({self.type(new)}){value}"
            made.append(self.define(self.type(new), text))
        self.names[op] = made

    _do_raw_cast = _do_cast

    def _do_bitcast(self, op: Op) -> None:
        old, new = scalar_of(op.args[0].type), scalar_of(op.type)
        self.names[op] = [
            self.define(self.type(new), self.dialect.bitcast(value, old, new))
            for value in self.lanes(op.args[0])
        ]

    def _do_select(self, op: Op) -> None:
        cond, then, other = (self.lanes(arg) for arg in op.args)
        cond = cond * (len(then) // len(cond))
        type_ = self.type(scalar_of(op.type))
        self.names[op] = [
            self.define(type_, f"{c} ? {a} : {b}")
            for c, a, b in zip(cond, then, other, strict=True)
        ]

    def _do_splat(self, op: Op) -> None:
        self.names[op] = self.lanes(op.args[0]) * op.type.width

    def _do_vector(self, op: Op) -> None:
        self.names[op] = [self.value(lane) for lane in op.args]

    def _do_extract(self, op: Op) -> None:
        self.names[op] = [self.lanes(op.args[0])[op.attrs["lane"]]]

    def _do_insert(self, op: Op) -> None:
        made = list(self.lanes(op.args[0]))
        made[op.attrs["lane"]] = self.value(op.args[1])
        self.names[op] = made

    # --- locals and memory -----------------------------------------------------------------

    def _do_slot(self, op: Op) -> None:
        type_ = self.type(scalar_of(op.type))
        names = []
        for _ in range(width_of(op.type)):
            self.count += 1
            names.append(f"s{self.count}")
            self.line(f"{type_} {names[-1]} = 0;")
        self.names[op] = names

    def _do_get(self, op: Op) -> None:
        type_ = self.type(scalar_of(op.type))
        self.names[op] = [self.define(type_, name) for name in self.names[op.args[0]]]

    def _do_set(self, op: Op) -> None:
        for name, value in zip(self.names[op.args[0]], self.lanes(op.args[1]), strict=True):
            self.line(f"{name} = {value};")

    def _do_alloc(self, op: Op) -> None:
        self.count += 1
        name, size = f"m{self.count}", op.attrs["size"]
        elem = self.memory(op.type.elem)
        self.names[op] = [name]
        if op.type.space == "shared":
            self.line(f"{self.dialect.shared} {elem} {name}[{size}];")
            return
        self.line(f"{elem} {name}[{size}];")
        one = width_of(op.type.elem)
        target = f"{name}[i]"
        if one > 1:
            scalar = self.memory(scalar_of(op.type.elem))
            size, target = size * one, f"(({scalar}*){name})[i]"
        self.line(f"for (int i = 0; i < {size}; ++i) {target} = 0;")

    def base(self, memory: Op) -> str:
        """Return the name of a buffer or an array."""
        return self.names[memory][0] if memory.name == "alloc" else str(memory.attrs["name"])

    def _bounds(self, op: Op, width: int) -> str | None:
        """Return the condition under which an access is inside, or None where none is asked."""
        if self.kernel.bounds == "unchecked":
            return None
        index, memory = self.value(op.args[1]), op.args[0]
        wide, word = self.dialect.types["int64"], self.dialect.types["uint64"]
        if memory.name == "alloc":
            length = f"({wide}){memory.attrs['size']}"
        else:
            length = f"words.w[{self.layout.first[memory] + 1}]"
        end = f" && ({wide}){index} + {width} <= {length}" if width > 1 else ""
        return f"({word})({wide}){index} < ({word}){length}{end}"

    def _guarded(self, op: Op, width: int) -> bool:
        """Open the block of an access that is checked; returns whether there is one."""
        good = self._bounds(op, width)
        if good is None:
            return False
        if self.kernel.bounds == "validated":
            wide = self.dialect.types["int64"]
            memory = op.args[0]
            length = (
                str(memory.attrs["size"])
                if memory.name == "alloc"
                else f"words.w[{self.layout.first[memory] + 1}]"
            )
            self.line(
                f"if (!({good})) burn_fault(fault, {self.codes[op]}, "
                f"({wide}){self.value(op.args[1])}, {length});"
            )
            self.line("else {")
        else:
            self.line(f"if ({good}) {{")
        self.depth += 1
        return True

    def _close(self) -> None:
        self.depth -= 1
        self.line("}")

    def _targets(self, op: Op, type_: str, count: int) -> list[str]:
        names = []
        for _ in range(count):
            self.count += 1
            names.append(f"v{self.count}")
            self.line(f"{type_} {names[-1]}; {names[-1]} = 0;")
        return names

    def _neighbours(self, type_: Any, elem: Any) -> int:
        wide = isinstance(type_, Vector) and not isinstance(elem, Vector)
        return width_of(type_) if wide else 1

    def _do_load(self, op: Op) -> None:
        memory, elem = op.args[0], op.args[0].type.elem
        index, base = self.value(op.args[1]), self.base(memory)
        width = self._neighbours(op.type, elem)
        names = self._targets(op, self.type(scalar_of(op.type)), width_of(op.type))
        guarded = self._guarded(op, width)
        is_bool = " != 0" if scalar_of(elem).is_bool else ""
        if isinstance(elem, Vector):
            self.count += 1
            whole = f"v{self.count}"
            text = self.dialect.load_vector(elem, base, index)
            kind = self.memory(elem)
            self.line(f"{kind} {whole}; {whole} = {text};")
            for at, name in enumerate(names):
                self.line(f"{name} = {self.dialect.lane(whole, at)}{is_bool};")
        else:
            for at, name in enumerate(names):
                place = f"{index} + {at}" if at else index
                self.line(f"{name} = {base}[{place}]{is_bool};")
        if guarded:
            self._close()
        self.names[op] = names

    def _do_store(self, op: Op) -> None:
        memory, elem, value = op.args[0], op.args[0].type.elem, op.args[2]
        index, base, lanes = self.value(op.args[1]), self.base(memory), self.lanes(value)
        guarded = self._guarded(op, self._neighbours(value.type, elem))
        if isinstance(elem, Vector):
            self.line(self.dialect.store_vector(elem, base, index, lanes))
        else:
            for at, lane in enumerate(lanes):
                place = f"{index} + {at}" if at else index
                self.line(f"{base}[{place}] = {lane};")
        if guarded:
            self._close()

    def _do_atomic(self, op: Op) -> None:
        args = [self.value(arg) for arg in op.args[2:]]
        names = self._targets(op, self.type(op.type), 1)
        guarded = self._guarded(op, 1)
        place = f"&{self.base(op.args[0])}[{self.value(op.args[1])}]"
        self.line(f"{names[0]} = {self.dialect.atomic(op, place, args)};")
        if guarded:
            self._close()
        self.names[op] = names

    _do_atomic_cas = _do_atomic

    # --- control ---------------------------------------------------------------------------

    def _inside(self, region: Region) -> None:
        self.depth += 1
        self.region(region)
        self.depth -= 1

    def _do_if(self, op: Op) -> None:
        self.line(f"if ({self.value(op.args[0])}) {{")
        self._inside(op.regions[0])
        if op.regions[1].ops:
            self.line("} else {")
            self._inside(op.regions[1])
        self.line("}")

    def _do_for(self, op: Op) -> None:
        start, stop, step = (self.value(arg) for arg in op.args)
        dtype = op.args[0].type
        self.count += 1
        name = f"i{self.count}"
        self.names[op.regions[0].ops[0]] = [name]
        known = op.args[2]
        if known.name == "const":
            ahead = f"{name} {'<' if known.attrs['value'] > 0 else '>'} {stop}"
        else:
            ahead = f"({step} > 0 && {name} < {stop}) || ({step} < 0 && {name} > {stop})"
        kind = self.type(dtype)
        self.line(f"for ({kind} {name} = {start}; {ahead}; {name} += {step}) {{")
        self._inside(op.regions[0])
        self.line("}")

    def _do_while(self, op: Op) -> None:
        self.line("while (true) {")
        self.depth += 1
        self.region(op.regions[0])
        self.line(f"if (!{self.value(op.regions[0].ops[-1].args[0])}) break;")
        self.region(op.regions[1])
        self.depth -= 1
        self.line("}")

    def _do_yield(self, op: Op) -> None:
        pass

    def _do_block(self, op: Op) -> None:
        self.count += 1
        self.labels[op] = f"end{self.count}"
        self.line("{")
        self._inside(op.regions[0])
        self.line("}")
        self.line(f"{self.labels[op]}: ;")

    def _do_break(self, op: Op) -> None:
        self.line("break;")

    def _do_continue(self, op: Op) -> None:
        self.line("continue;")

    def _do_leave(self, op: Op) -> None:
        self.line(f"goto {self.labels[op.attrs['target']]};")

    # --- units together, effects -----------------------------------------------------------

    def _do_barrier(self, op: Op) -> None:
        self.line(self.dialect.barrier[op.attrs["scope"]])

    def _do_plane(self, op: Op) -> None:
        args = [self.value(arg) for arg in op.args]
        self.names[op] = [self.define(self.type(op.type), self.dialect.plane(op, args))]

    def _do_assert(self, op: Op) -> None:
        cond = self.value(op.args[0])
        self.line(f"if (!{cond}) burn_fault(fault, {self.codes[op]}, 0, 0);")

    def _do_print(self, op: Op) -> None:
        words, args = [], []
        wide = {"int": "int64", "uint": "uint64", "bool": "int64", "float": "float64"}
        for value in op.args:
            kind = value.type.kind
            target = "float32" if value.type is float32 else wide[kind]
            name = self.value(value)
            if value.type is float16:
                name = f"burn_h2f({name})"
            args.append(f"({self.dialect.types[target]}){name}")
            words.append({"float": "%g", "uint": "%lu"}.get(kind, "%ld"))
        text = op.attrs["text"].replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
        quoted = f'"{text.format(*words)}\\n"'
        self.line(f"printf({', '.join([quoted, *args])});")


