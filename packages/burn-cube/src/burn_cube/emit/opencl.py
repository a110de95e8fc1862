"""OpenCL C 1.2: the most widely spoken dialect, with what a device lacks refused or emulated.

Plane operations go through shared memory: each unit leaves its value, a barrier, and reads its
peers. That needs no extension, and the verifier has seen that all units come there together.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_cube.emit.c_math import HELPERS, SPELLED, helper
from burn_cube.emit.c_memory import MemoryWriter
from burn_cube.emit.c_plane import plane_call
from burn_cube.emit.c_values import BFLOAT
from burn_cube.emit.dialect import Dialect
from burn_cube.errors import LaunchError
from burn_cube.ir import Kernel, Op, walk
from burn_cube.types import Memory, scalar_of
from burn_std.dtypes import DType, bfloat16, float32, float64

TYPES = """\
typedef char i8; typedef uchar u8; typedef short i16; typedef ushort u16;
typedef int i32; typedef uint u32; typedef long i64; typedef ulong u64; typedef float f32;
#define FN static inline
#define bits_of_f32(x) as_uint(x)
#define f32_of_bits(x) as_float(x)"""

PLANE = """\
#define PLANE_PARAMS , u32 plane_unit, u32 plane_at, u32 plane_count, __local u64* plane_scratch
#define PLANE_ARGS , plane_unit, plane_at, plane_count, plane_scratch"""

NAMES = {
    "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int", "u32": "uint",
    "i64": "long", "u64": "ulong", "f32": "float", "f64": "double",
}  # fmt: skip
SPACES = {"global": "__global", "shared": "__local", "local": "__private"}


class Capabilities(NamedTuple):
    """What an OpenCL device can do beyond the core.

    Attributes:
        fp64: computes in double.
        atomics_64: 64-bit integer atomics, add to compare-and-swap.
        atomics_64_extended: their min, max, and, or, xor.
        shared_memory: bytes of local memory.
        max_cube_size: units of a cube at most.
        processor: it is one. Its math functions are not taken, they are called lane by lane; the
            units of a cube are rounds of a loop.
    """

    fp64: bool = True
    atomics_64: bool = True
    atomics_64_extended: bool = True
    shared_memory: int = 1 << 30
    max_cube_size: int = 1 << 30
    processor: bool = False


class OpenCl(Dialect):
    """OpenCL C for a device.

    Args:
        can: what the device can do; by default everything, for a source that is only read.
    """

    name = "opencl"

    def __init__(self, can: Capabilities = Capabilities()) -> None:  # noqa: B008 - immutable
        self.can = can
        self.wide = can.fp64
        self.cubes_at_once = can.processor

    # --- what the device can do ------------------------------------------------------------

    def check(self, kernel: Kernel) -> None:
        """Refuse what the device lacks."""
        name = kernel.name
        if kernel.cube_size > self.can.max_cube_size:
            rule = f"a cube has at most {self.can.max_cube_size} units on this device"
            raise LaunchError(name, rule, got=kernel.cube_size)
        if not self.can.fp64 and _uses(kernel, float64):
            raise LaunchError(
                name, "the device computes in float64 (cl_khr_fp64)", got="it lacks it"
            )
        for op in walk(kernel.body):
            if op.name not in ("atomic", "atomic_cas") or scalar_of(op.type).bits != 64:
                continue
            kind = op.attrs.get("kind", "cas")
            wide = kind in ("min", "max", "and", "or", "xor")
            if not (self.can.atomics_64_extended if wide else self.can.atomics_64):
                rule = f"the device has 64-bit atomics (atomic {kind})"
                raise LaunchError(name, rule, got="it lacks them")

    def prelude(self, kernel: Kernel) -> str:
        """Return pragmas, types and macros."""
        lines = [] if kernel.fast_math else ["#pragma OPENCL FP_CONTRACT OFF"]
        ops = list(walk(kernel.body))
        if any(op.name in ("atomic", "atomic_cas") and op.type.bits == 64 for op in ops):
            lines.append("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable")
            if self.can.atomics_64_extended:
                lines.append("#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable")
        if _uses(kernel, float64):
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        lines.append(TYPES)
        if _uses(kernel, float64):
            lines.append("typedef double f64;")
        if any(op.name == "plane" for op in ops):
            lines.append(f"#define PLANE {kernel.plane_dim}")
            lines.append(PLANE)
        return "\n".join(lines)

    # --- declarations ----------------------------------------------------------------------

    def kernel(self, entry: str, kernel: Kernel, params: str) -> str:
        """Return the signature."""
        x, y, z = kernel.cube_dim
        return (
            f"__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\n"
            f"void {entry}(\n    {params})"
        )

    def pointer(self, space: str, dtype: DType, name: str, constant: bool) -> str:
        """Return a pointer."""
        const = "const " if constant else ""
        return f"{SPACES[space]} {const}{self.memory_type(dtype)}* {name}"

    def array(self, space: str, dtype: DType, name: str, size: int) -> str:
        """Return an array."""
        word = "__local " if space == "shared" else ""
        return f"{word}{self.memory_type(dtype)} {name}[{size}];"

    # --- values ----------------------------------------------------------------------------

    def literal(self, bits: int, dtype: DType) -> str:
        """Return a float by its bits."""
        if dtype is float32:
            return f"as_float(0x{bits:08x}u)"
        return f"as_double(0x{bits:016x}ul)"

    def integer(self, value: int, dtype: DType) -> str:
        """Return an integer."""
        if dtype.bits == 64:
            suffix = "l" if dtype.is_signed else "ul"
            least = value == -(2**63)
            return f"({value + 1}l - 1)" if least else f"({value}{suffix})"
        if dtype.bits == 32:
            least = value == -(2**31)
            plain = f"{value}{'' if dtype.is_signed else 'u'}"
            return f"({value + 1} - 1)" if least else f"({plain})" if value < 0 else plain
        return f"({dtype.short})({value})"

    def bits(self, text: str, old: DType, new: DType) -> str:
        """Return the bits as another type."""
        a, b = self.ctype(old), self.ctype(new)
        return text if a == b else f"as_{NAMES[b]}({text})"

    def half(self, old: DType, new: DType) -> str:
        """Return the function that converts between a half and float32."""
        name = f"{new.short}_from_{old.short}"
        if bfloat16 in (old, new):
            return BFLOAT[name]
        if new is float32:
            return f"FN f32 {name}(u16 h) {{ return vload_half(0, (const half*)&h); }}"
        body = "u16 h; vstore_half_rte(x, 0, (half*)&h); return h;"
        return f"FN u16 {name}(f32 x) {{ {body} }}"

    def takes_math(self) -> bool:
        """Return whether the built-in functions are taken."""
        return not self.can.processor

    def math(self, name: str, dtype: DType, args: tuple[str, ...], writer: MemoryWriter) -> str:
        """Return a call of a built-in function."""
        if name in HELPERS:
            called = writer.need(f"{name}_{dtype.short}", helper(name, dtype, ""))
        else:
            called = SPELLED.get(name, name)
        return f"{called}({', '.join(args)})"

    def intrinsic(self, name: str, dtype: DType, args: tuple[str, ...]) -> str:
        """Return a bit operation."""
        if name == "mulhi":
            return f"mul_hi({args[0]}, {args[1]})"
        # As unsigned of the same width: a negative number has no more bits than that.
        plain = f"(u{dtype.bits}){args[0]}"
        return f"({dtype.short}){'popcount' if name == 'popcount' else 'clz'}({plain})"

    # --- units -----------------------------------------------------------------------------

    def position(self, what: str, axis: int) -> str:
        """Return a position."""
        word = {"unit": "get_local_id", "cube": "get_group_id", "count": "get_num_groups"}[what]
        return f"{word}({axis})"

    def barrier(self, scope: str, kernel: Kernel) -> str:
        """Return a barrier; the one of a plane is that of its cube."""
        return "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"

    def plane_head(self, kernel: Kernel) -> list[str]:
        """Return the scratch of plane operations and the unit's place in its plane."""
        x, y, _ = kernel.cube_dim
        size, plane = kernel.cube_size, kernel.plane_dim
        count = f"min((u32){plane}, {size}u - (plane_unit - plane_at))" if size % plane else plane
        return [
            f"__local u64 plane_scratch[{size}];",
            f"const u32 plane_unit = get_local_id(0) + get_local_id(1) * {x} + "
            f"get_local_id(2) * {x * y};",
            f"const u32 plane_at = plane_unit % {plane}, plane_count = {count};"
            if size % plane == 0
            else f"const u32 plane_at = plane_unit % {plane}; const u32 plane_count = {count};",
        ]

    def plane(self, kind: str, dtype: DType, args: list[str], writer: MemoryWriter) -> str:
        """Return a plane operation through shared memory."""
        t = self.ctype(dtype)
        t = "u32" if t == "bool" else t
        read = (
            f"FN {t} plane_read_{t}({t} v, u32 from PLANE_PARAMS) {{\n"
            f"  __local {t}* cells = (__local {t}*)plane_scratch;\n"
            "  cells[plane_unit] = v;\n  barrier(CLK_LOCAL_MEM_FENCE);\n"
            f"  const {t} got = cells[plane_unit - plane_at + from];\n"
            "  barrier(CLK_LOCAL_MEM_FENCE);\n  return got;\n}"
        )
        writer.need(f"plane_read_{t}", read)
        return plane_call(kind, dtype, t, args, writer)

    # --- memory ----------------------------------------------------------------------------

    def load_vector(
        self, place: str, dtype: DType, width: int, aligned: bool, space: str, writer: MemoryWriter
    ) -> list[str]:
        """Read neighbours with `vload`, which asks for no alignment."""
        type_ = NAMES[self.memory_type(dtype)]
        made = writer.fresh()
        writer.line(f"const {type_}{width} {made} = vload{width}(0, {place});")
        return [f"{made}.s{lane:x}" for lane in range(width)]

    def store_vector(
        self, place: str, dtype: DType, lanes: list[str], aligned: bool, space: str,
        writer: MemoryWriter,
    ) -> None:  # fmt: skip
        """Write neighbours with `vstore`."""
        type_, width = NAMES[self.memory_type(dtype)], len(lanes)
        value = f"({type_}{width})({', '.join(lanes)})"
        writer.line(f"vstore{width}({value}, 0, {place});")

    def atomic(
        self, kind: str, dtype: DType, space: str, place: str, args: list[str],
        writer: MemoryWriter,
    ) -> str:  # fmt: skip
        """Return an atomic built-in; floats are added in a compare-and-swap loop."""
        word = SPACES[space]
        t, stem = dtype.short, "atomic" if dtype.bits == 32 else "atom"
        place = f"(volatile {word} {t}*)({place})"
        if dtype.is_float:
            u = f"u{dtype.bits}"
            name = f"atomic_{kind}_{t}_{space}"
            new = "old + value" if kind == "add" else "value"
            back, there = f"as_{NAMES[t]}", f"as_{NAMES[u]}"
            text = (
                f"FN {t} {name}(volatile {word} {t}* place, {t} value) {{\n"
                f"  volatile {word} {u}* cell = (volatile {word} {u}*)place;\n"
                f"  {u} seen = *cell;\n"
                "  while (true) {\n"
                f"    const {t} old = {back}(seen);\n"
                f"    const {u} found = {stem}_cmpxchg(cell, seen, {there}(({t})({new})));\n"
                "    if (found == seen) return old;\n    seen = found;\n  }\n}"
            )
            return f"{writer.need(name, text)}({place}, {args[0]})"
        word = {"exchange": "xchg", "cas": "cmpxchg"}.get(kind, kind)
        return f"{stem}_{word}({place}, {', '.join(args)})"

    def claim(self, record: str, site: int) -> str:
        """Return the test by which the first fault takes the record."""
        return f"atomic_cmpxchg((volatile __global i32*){record}, 0, {site}) == 0"

    def format(self, dtype: DType) -> str:
        """Return the format of printf."""
        if dtype.is_float:
            return "%.9g" if dtype.bits <= 32 else "%.17g"
        if dtype.bits == 64:
            return "%ld" if dtype.is_signed else "%lu"
        return "%u" if dtype.kind == "uint" and dtype.bits == 32 else "%d"


def _uses(kernel: Kernel, dtype: DType) -> bool:
    """Return whether a dtype occurs in the kernel."""
    ops: list[Op] = [*kernel.params, *walk(kernel.body)]
    for op in ops:
        type_ = op.type.elem if isinstance(op.type, Memory) else op.type
        if type_ is not None and getattr(type_, "dtype", type_) is dtype:
            return True
    return False


def emit_opencl(kernel: Kernel, can: Capabilities | None = None) -> str:
    """Return a kernel as OpenCL C.

    Args:
        kernel: the kernel.
        can: what the device can do; None for everything.

    Example:
        >>> from burn_cube import Builder
        >>> b = Builder("idle", cube_dim=4)
        >>> "void k_idle(" in emit_opencl(b.finish())
        True
    """
    from burn_cube.emit.c_like import emit

    return emit(kernel, OpenCl(can or Capabilities())).text
