"""LLVM IR of a kernel, as text: a function over a range of cubes.

    void name(i64* words, i64 first_cube, i64 last_cube)

Three shapes. *Flat*: units that only know their absolute position, one loop over all of them, in
which the guard `pos < len(x)` is taken out by splitting the range. *Cubes*: a loop over cubes and
one over units. *Groups*: the same with barriers, cut as `split` says.
"""

from __future__ import annotations

from burn_cube.emit.flat import Flat, flat
from burn_cube.emit.layout import Layout, fault_codes
from burn_cube.emit.llvm_body import Body
from burn_cube.emit.split import Split
from burn_cube.ir import Kernel, Op, Region, walk
from burn_cube.operations import AXES
from burn_cube.types import Memory

FAULT = """
define internal void @burn_fault(ptr %record, i64 %code, i64 %index, i64 %length) noinline cold {
  %old = cmpxchg ptr %record, i64 0, i64 %code seq_cst monotonic
  %first = extractvalue { i64, i1 } %old, 1
  br i1 %first, label %write, label %done
write:
  %p1 = getelementptr i64, ptr %record, i64 1
  store i64 %index, ptr %p1
  %p2 = getelementptr i64, ptr %record, i64 2
  store i64 %length, ptr %p2
  br label %done
done:
  ret void
}
"""


def emit_llvm(kernel: Kernel, symbol: str | None = None) -> str:
    """Return the module of a lowered kernel.

    Args:
        kernel: what `burn_cube.lowering.lower` gave.
        symbol: name of the function, the kernel's by default.
    """
    return _Function(kernel, symbol or kernel.name).text()


class _Function(Body):
    def __init__(self, kernel: Kernel, symbol: str) -> None:
        super().__init__(kernel, fault_codes(kernel))
        self.symbol = symbol
        self.layout = Layout(kernel)
        ops = list(walk(kernel.body))
        self.has_barrier = any(op.name == "barrier" for op in ops)
        self.specials = {op.attrs["name"] for op in ops if op.name == "special"}
        self.flat = flat(kernel)

    def text(self) -> str:
        self._parameters()
        self.open("entry")
        if self.flat is not None:
            self._flat(self.flat)
        elif self.has_barrier:
            self.split = Split(self.kernel)
            self._cubes(lambda: self._cube_level(self.kernel.body))
        else:
            self._cubes(lambda: self._units(lambda: self.region(self.kernel.body)))
        self.line("ret void")
        head = f"define void @{self.symbol}(ptr noalias %words, i64 %lo, i64 %hi) {{\nstart:"
        body = "\n".join(self.lines)
        entry = "\n".join([*self.entry, "  br label %entry"])
        parts = [f"{head}\n{entry}\n{body}\n}}", FAULT if self.uses_fault else ""]
        parts += [*self.globals, *sorted(self.declared), *self.metadata]
        return "\n".join(part for part in parts if part) + "\n"

    # --- what all shapes begin with --------------------------------------------------------

    def _word(self, at: int, type_: str = "i64") -> str:
        place = self.fresh()
        self.entry.append(f"  {place} = getelementptr i64, ptr %words, i64 {at}")
        name = self.fresh()
        self.entry.append(f"  {name} = load {type_}, ptr {place}")
        return name

    def _parameters(self) -> None:
        index = self.index_type
        for param, at in self.layout.first.items():
            if isinstance(param.type, Memory):
                self.bases[param] = self._word(at, "ptr")
                self.lengths[param] = self._word(at + 1)
                rank = param.attrs.get("rank") or 0
                for dim in range(rank):
                    self.facts["shape", param, dim] = self._word(at + 2 + dim, index)
                    self.facts["stride", param, dim] = self._word(at + 2 + rank + dim, index)
                self.facts["length", param, None] = self._word(at + 1, index)
            else:
                self.uniform[param] = self._word(at, self.scalar_word(param.type))
                if param.type.is_bool:
                    name = self.fresh()
                    self.entry.append(f"  {name} = trunc i8 {self.uniform[param]} to i1")
                    self.uniform[param] = name
        self.grid = [self._word(self.layout.grid + at) for at in range(3)]
        self.fault = self._word(self.layout.fault, "ptr")

    # --- flat ------------------------------------------------------------------------------

    def _flat(self, known: Flat) -> None:
        self.allocate(per_cube=False)
        dim = self.kernel.cube_dim[0]
        low, high = self.fresh(), self.fresh()
        self.line(f"{low} = mul i64 %lo, {dim}")
        self.line(f"{high} = mul i64 %hi, {dim}")
        if not known.limits:
            self._flat_loop(low, high, vector=True)
            return
        safe = high
        self.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
        self.declared.add("declare i64 @llvm.smax.i64(i64, i64)")
        for limit in known.limits:
            name = self.fresh()
            bound = self._bound(limit)
            self.line(f"{name} = call i64 @llvm.smin.i64(i64 {safe}, i64 {bound})")
            safe = name
        name = self.fresh()
        self.line(f"{name} = call i64 @llvm.smax.i64(i64 {safe}, i64 {low})")
        self.inside = known
        self._flat_loop(low, name, vector=True)
        self.inside = None
        self._flat_loop(name, high, vector=False)

    def _bound(self, limit: Op) -> str:
        """Return a limit of the position as i64."""
        if limit in self.lengths:
            return self.lengths[limit]
        name = self.uniform[limit]
        if limit.type.bits == 64:
            return name
        word = "sext" if limit.type.kind == "int" else "zext"
        return self.value_line(f"{word} {self.index_type} {name} to i64")

    def _flat_loop(self, low: str, high: str, vector: bool) -> None:
        def body(position: str) -> None:
            self.positions = {"absolute_pos": position}
            dim = self.kernel.cube_dim[0]
            if self.specials - {"absolute_pos"}:
                unit = self.value_line(f"urem i64 {position}, {dim}")
                self.positions["unit_pos"] = unit
                self.positions["cube_pos"] = self.value_line(f"udiv i64 {position}, {dim}")
                self._plane_positions(unit)
            self._narrow_positions()
            self.start_unit()
            self.region(self.kernel.body)

        self.loop(low, high, body, vector=vector)

    # --- cubes -----------------------------------------------------------------------------

    def _cubes(self, inner: object) -> None:
        self.allocate(per_cube=self.has_barrier)

        def body(cube: str) -> None:
            x, y = self.grid[:2]
            self.cube_positions = {"cube_pos": cube}
            self.cube_positions["cube_pos_x"] = self.value_line(f"urem i64 {cube}, {x}")
            rest = self.value_line(f"udiv i64 {cube}, {x}")
            self.cube_positions["cube_pos_y"] = self.value_line(f"urem i64 {rest}, {y}")
            self.cube_positions["cube_pos_z"] = self.value_line(f"udiv i64 {rest}, {y}")
            xy = self.value_line(f"mul i64 {x}, {y}")
            self.cube_positions["cube_count"] = self.value_line(f"mul i64 {xy}, {self.grid[2]}")
            for axis, count in zip(AXES, self.grid, strict=True):
                self.cube_positions[f"cube_count_{axis}"] = count
            self.positions = dict(self.cube_positions)
            self._narrow_positions()
            self.start_cube()
            inner()  # type: ignore[operator]  # a function without arguments

        self.loop("%lo", "%hi", body, vector=False, plain=True)

    def _units(self, inner: object) -> None:
        dx, dy, dz = self.kernel.cube_dim

        def x_body(z: str, y: str, x: str) -> None:
            row = self.value_line(f"mul i64 {z}, {dy}")
            row = self.value_line(f"add i64 {row}, {y}")
            unit = self.value_line(f"mul i64 {row}, {dx}")
            unit = self.value_line(f"add i64 {unit}, {x}")
            self.unit = unit
            self.positions = dict(self.cube_positions)
            self.positions["unit_pos"] = unit
            for axis, place, dim in zip(AXES, (x, y, z), (dx, dy, dz), strict=True):
                self.positions[f"unit_pos_{axis}"] = place
                if self.specials & {"absolute_pos", f"absolute_pos_{axis}"}:
                    base = self.value_line(f"mul i64 {self.positions[f'cube_pos_{axis}']}, {dim}")
                    self.positions[f"absolute_pos_{axis}"] = self.value_line(
                        f"add i64 {base}, {place}"
                    )
            if "absolute_pos" in self.specials:
                self.positions["absolute_pos"] = self._absolute()
            self._plane_positions(unit)
            self._narrow_positions()
            self.start_unit()
            inner()  # type: ignore[operator]  # a function without arguments

        self.loop(
            "0", str(dz),
            lambda z: self.loop(
                "0", str(dy),
                lambda y: self.loop("0", str(dx), lambda x: x_body(z, y, x), vector=True),
                vector=False, plain=True,
            ),
            vector=False, plain=True,
        )  # fmt: skip

    def _absolute(self) -> str:
        dx, dy, _ = self.kernel.cube_dim
        at = self.positions
        height = self.value_line(f"mul i64 {self.grid[1]}, {dy}")
        width = self.value_line(f"mul i64 {self.grid[0]}, {dx}")
        row = self.value_line(f"mul i64 {at['absolute_pos_z']}, {height}")
        row = self.value_line(f"add i64 {row}, {at['absolute_pos_y']}")
        start = self.value_line(f"mul i64 {row}, {width}")
        return self.value_line(f"add i64 {start}, {at['absolute_pos_x']}")

    def _plane_positions(self, unit: str) -> None:
        if self.specials & {"plane_pos", "unit_pos_plane"}:
            size = self.kernel.plane_dim
            self.positions["plane_pos"] = self.value_line(f"udiv i64 {unit}, {size}")
            self.positions["unit_pos_plane"] = self.value_line(f"urem i64 {unit}, {size}")

    def _narrow_positions(self) -> None:
        """Give every position the index dtype, here where it dominates all uses."""
        self.special_names = {}
        for name in self.specials & set(self.positions):
            value = self.positions[name]
            if self.index_type != "i64":
                value = self.value_line(f"trunc i64 {value} to {self.index_type}")
            self.special_names[name] = value

    # --- groups ----------------------------------------------------------------------------

    def _cube_level(self, region: Region) -> None:
        for ops in self.split_of().segments(region):
            first = ops[0]
            if first.name == "barrier":
                continue
            if first in self.split_of().cube_level:
                self._cube_op(first)
            else:
                self.group = self.split_of().group[first]
                self._units(lambda ops=ops: self.ops(ops))
                self.group = None
                self.positions = dict(self.cube_positions)
                self._narrow_positions()

    def _cube_op(self, op: Op) -> None:
        """Emit control that the whole cube runs; conditions are those of its first unit."""
        if op.name == "if":
            self.branch(op, self._cube_level)
        elif op.name == "for":
            self.for_loop(op, self._cube_level)
        elif op.name == "while":
            self.while_loop(op, self._cube_level)
        elif op.name == "block":
            self.block(op, self._cube_level)
        else:
            self.jump(op)

    def split_of(self) -> Split:
        """Return the groups; there are some where there are barriers."""
        if self.split is None:
            self.split = Split(self.kernel)
        return self.split
