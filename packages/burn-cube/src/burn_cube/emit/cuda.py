"""CUDA C++ for NVRTC: no headers, so that a compile is short and needs no toolkit on the machine.

What headers would bring is inline PTX: conversions of halves, minima that keep NaN, tiles. The
code is compiled without contraction (`--fmad=false`), so that a product and a sum round twice as
they do on every other target.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_cube.builder import size_of
from burn_cube.emit.c_like import emit
from burn_cube.emit.c_math import HELPERS, SPELLED, helper
from burn_cube.emit.c_memory import MemoryWriter
from burn_cube.emit.c_plane import plane_call
from burn_cube.emit.c_values import BFLOAT
from burn_cube.emit.cuda_copies import has_copies, write_copy, write_order
from burn_cube.emit.cuda_groups import (
    GROUPED,
    GROUPS_OF,
    PROXY,
    grain_of,
    has_groups,
    write_group,
)
from burn_cube.emit.cuda_tiles import has_tensor_cores, variables, write_tile
from burn_cube.emit.dialect import Dialect
from burn_cube.errors import LaunchError
from burn_cube.ir import Kernel, Op, walk
from burn_cube.types import Tile
from burn_std.dtypes import DType, bfloat16, float16, float32

TYPES = """\
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned int u32; typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64;
#define FN static __device__ __forceinline__
#define bits_of_f32(x) __float_as_uint(x)
#define f32_of_bits(x) __uint_as_float(x)"""

PLANE = """\
#define PLANE_PARAMS , const u32 plane_at, const u32 plane_count, const u32 plane_mask
#define PLANE_ARGS , plane_at, plane_count, plane_mask"""

# Sixteen bytes are the widest access; a struct that is aligned to them is moved by such accesses.
VECTORS = """\
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec { T s[N]; };
template <typename T, int N>
FN Vec<T, N> load_aligned(const T* p) { return *(const Vec<T, N>*)p; }
template <typename T, int N>
FN void store_aligned(T* p, const Vec<T, N> v) { *(Vec<T, N>*)p = v; }
template <typename T, int N> FN Vec<T, N> load_any(const T* p) {
  if ((u64)p % alignof(Vec<T, N>) == 0) return load_aligned<T, N>(p);
  Vec<T, N> v;
#pragma unroll
  for (int i = 0; i < N; ++i) v.s[i] = p[i];
  return v;
}
template <typename T, int N> FN void store_any(T* p, const Vec<T, N> v) {
  if ((u64)p % alignof(Vec<T, N>) == 0) { store_aligned<T, N>(p, v); return; }
#pragma unroll
  for (int i = 0; i < N; ++i) p[i] = v.s[i];
}"""

# Shared memory that can be declared; more is asked for at the launch.
STATIC_SHARED = 48 << 10


class Architecture(NamedTuple):
    """Limits of a compute capability.

    Attributes:
        capability: ten times the compute capability, 90 for sm_90.
        shared_memory: bytes that a cube can ask for.
    """

    capability: int = 90
    shared_memory: int = 227 << 10


class Cuda(Dialect):
    """CUDA C++ for a device.

    Args:
        arch: the device's limits; by default those of sm_90, for a source that is only read.
    """

    name = "cuda"

    def __init__(self, arch: Architecture | None = None) -> None:
        self.arch = arch or Architecture()

    def check(self, kernel: Kernel) -> None:
        """Refuse what the device cannot run."""
        if kernel.cube_size > 1024 or kernel.cube_dim[2] > 64:
            rule = "a cube has at most 1024 units, and 64 along z, on CUDA"
            raise LaunchError(kernel.name, rule, got="x".join(map(str, kernel.cube_dim)))
        if kernel.plane_dim not in (1, 2, 4, 8, 16, 32):
            rule = "a plane has 32 units on CUDA, or a power of two below"
            raise LaunchError(kernel.name, rule, got=kernel.plane_dim)
        shared = shared_bytes(kernel)
        if shared > self.arch.shared_memory:
            rule = f"a cube has at most {self.arch.shared_memory} bytes of shared memory"
            raise LaunchError(kernel.name, rule, got=shared)

    # --- declarations ----------------------------------------------------------------------

    def prelude(self, kernel: Kernel) -> str:
        """Return types and macros."""
        lines = [TYPES]
        if any(op.name == "plane" for op in walk(kernel.body)):
            lines += [f"#define PLANE {kernel.plane_dim}", PLANE]
        return "\n".join(lines)

    def kernel(self, entry: str, kernel: Kernel, params: str) -> str:
        """Return the signature."""
        bounds = f"__launch_bounds__({kernel.cube_size})"
        return f'extern "C" __global__ void {bounds} {entry}(\n    {params})'

    def pointer(self, space: str, dtype: DType, name: str, constant: bool) -> str:
        """Return a pointer."""
        const = "const " if constant else ""
        return f"{const}{self.memory_type(dtype)}* {name}"

    def array(self, space: str, dtype: DType, name: str, size: int) -> str:
        """Return an array."""
        word = "__shared__ " if space == "shared" else ""
        return f"{word}alignas(16) {self.memory_type(dtype)} {name}[{size}];"

    def asks(self, kernel: Kernel) -> bool:
        """Return whether the kernel needs more shared memory than can be declared."""
        return shared_bytes(kernel) > STATIC_SHARED or has_groups(kernel)

    def grain(self, kernel: Kernel) -> int:
        """Return the bytes at multiples of which arrays begin."""
        return grain_of(kernel)

    def dynamic(self, dtype: DType, name: str, offset: int) -> list[str]:
        """Return shared memory at an offset of what the launch asks for."""
        t = self.memory_type(dtype)
        head = [] if offset else ["extern __shared__ __align__(1024) u8 asked_shared[];"]
        return [*head, f"{t}* const {name} = ({t}*)(asked_shared + {offset});"]

    # --- values ----------------------------------------------------------------------------

    def literal(self, bits: int, dtype: DType) -> str:
        """Return a float by its bits."""
        if dtype is float32:
            return f"__uint_as_float(0x{bits:08x}u)"
        return f"__longlong_as_double(0x{bits:016x}ll)"

    def integer(self, value: int, dtype: DType) -> str:
        """Return an integer."""
        if dtype.bits == 64:
            suffix = "ll" if dtype.is_signed else "ull"
            least = value == -(2**63)
            return f"({value + 1}ll - 1)" if least else f"({value}{suffix})"
        if dtype.bits == 32:
            least = value == -(2**31)
            plain = f"{value}{'' if dtype.is_signed else 'u'}"
            return f"({value + 1} - 1)" if least else f"({plain})" if value < 0 else plain
        return f"({dtype.short})({value})"

    def bits(self, text: str, old: DType, new: DType) -> str:
        """Return the bits as another type."""
        a, b = self.ctype(old), self.ctype(new)
        if a == b:
            return text
        wide = {"f32": ("__float_as_uint", "__uint_as_float", "u32")}
        wide["f64"] = ("__double_as_longlong", "__longlong_as_double", "i64")
        if a in wide:
            return f"({b}){wide[a][0]}({text})"
        if b in wide:
            return f"{wide[b][1]}(({wide[b][2]}){text})"
        return f"({b}){text}"

    def half(self, old: DType, new: DType) -> str:
        """Return the function that converts between a half and float32."""
        name = f"{new.short}_from_{old.short}"
        if name == "f32_from_bf16":
            return BFLOAT[name]
        if old is float16:
            cell = 'asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));'
            return f"FN f32 {name}(u16 h) {{ f32 x; {cell} return x; }}"
        stem = "bf16" if new is bfloat16 else "f16"
        cell = f'u16 h; asm("cvt.rn.{stem}.f32 %0, %1;" : "=h"(h) : "f"(x)); return h;'
        made = f"FN u16 {name}(f32 x) {{ {cell} }}"
        if new is float16:
            return made
        # Hardware that rounds to bfloat16 came with sm_80.
        return f"#if __CUDA_ARCH__ >= 800\n{made}\n#else\n{BFLOAT[name]}\n#endif"

    def takes_tiles(self, kernel: Kernel) -> bool:
        """Return whether the tiles go to tensor cores."""
        if has_groups(kernel) and self.arch.capability != GROUPS_OF:
            return False
        return has_tensor_cores(kernel, self.arch.capability)

    def takes_copies(self, kernel: Kernel) -> bool:
        """Return whether copies are made by `cp.async`."""
        return has_copies(kernel, self.arch.capability)

    def copy(self, op: Op, writer: MemoryWriter) -> None:
        """Write an asynchronous copy, the end of a group, or a wait."""
        if op.name in ("async_wait", "async_commit"):
            write_order(op, writer)
        else:
            write_copy(op, writer)

    def tile_variables(self, type_: Tile) -> tuple[str, int]:
        """Return the C type and the number of variables that hold a tile."""
        return variables(type_)

    def tile(self, op: Op, writer: MemoryWriter) -> None:
        """Write an operation on tiles."""
        if op.name in GROUPED:
            write_group(op, writer)
        else:
            write_tile(op, writer)

    def math(self, name: str, dtype: DType, args: tuple[str, ...], writer: MemoryWriter) -> str:
        """Return a call of a function of CUDA."""
        suffix = "f" if dtype is float32 else ""
        if name in HELPERS:
            text = helper(name, dtype, suffix)
            if name in ("min", "max") and dtype is float32:
                cell = f'f32 x; asm("{name}.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));'
                fast = f"FN f32 {name}_f32(f32 a, f32 b) {{ {cell} return x; }}"
                text = f"#if __CUDA_ARCH__ >= 800\n{fast}\n#else\n{text}\n#endif"
            return f"{writer.need(f'{name}_{dtype.short}', text)}({', '.join(args)})"
        return f"{SPELLED.get(name, name)}{suffix}({', '.join(args)})"

    def intrinsic(self, name: str, dtype: DType, args: tuple[str, ...]) -> str:
        """Return a bit operation."""
        if name == "mulhi":
            return f"__umul64hi({args[0]}, {args[1]})"
        # As unsigned of the same width: a negative number has no more bits than that.
        plain = f"(u{dtype.bits}){args[0]}"
        long = "ll" if dtype.bits == 64 else ""
        if name == "popcount":
            return f"({dtype.short})__popc{long}({plain})"
        short = f" - {32 - dtype.bits}" if dtype.bits < 32 else ""
        signed = "i64" if dtype.bits == 64 else "i32"
        return f"({dtype.short})(__clz{long}(({signed}){plain}){short})"

    # --- units -----------------------------------------------------------------------------

    def position(self, what: str, axis: int) -> str:
        """Return a position."""
        word = {"unit": "threadIdx", "cube": "blockIdx", "count": "gridDim"}[what]
        return f"{word}.{'xyz'[axis]}"

    def barrier(self, scope: str, kernel: Kernel) -> str:
        """Return a barrier; products of groups see what was written before one of the cube."""
        if scope != "cube":
            return "__syncwarp();"
        return f"{PROXY} __syncthreads();" if has_groups(kernel) else "__syncthreads();"

    def plane_head(self, kernel: Kernel) -> list[str]:
        """Return the place in the plane and the mask of the plane's units in their warp."""
        x, y, z = kernel.cube_dim
        size, plane = kernel.cube_size, kernel.plane_dim
        unit = "threadIdx.x" + (f" + threadIdx.y * {x}" if y > 1 else "")
        unit += f" + threadIdx.z * {x * y}" if z > 1 else ""
        whole = size % plane == 0
        count = str(plane) if whole else f"min({plane}u, {size}u - (plane_unit - plane_at))"
        bits = "0xffffffffu >> (32 - plane_count)"
        shift = "" if plane == 32 else " << (plane_unit % 32 - plane_at)"
        return [
            f"const u32 plane_unit = {unit};",
            f"const u32 plane_at = plane_unit % {plane};",
            f"const u32 plane_count = {count};",
            f"const u32 plane_mask = ({bits}){shift};",
        ]

    def plane(self, kind: str, dtype: DType, args: list[str], writer: MemoryWriter) -> str:
        """Return a plane operation by shuffles."""
        t = self.ctype(dtype)
        t = "u32" if t == "bool" else t
        wide = t if t in ("i32", "u32", "i64", "u64", "f32", "f64") else "i32"
        read = (
            f"FN {t} plane_read_{t}({t} v, u32 from PLANE_PARAMS) {{\n"
            f"  return ({t})__shfl_sync(plane_mask, ({wide})v, from, PLANE);\n}}"
        )
        writer.need(f"plane_read_{t}", read)
        if kind in ("all", "any", "ballot"):
            ballot = "__ballot_sync(plane_mask, b)"
            if writer.kernel.plane_dim < 32:
                ballot = f"({ballot} & plane_mask) >> (__ffs(plane_mask) - 1)"
            text = f"FN u32 plane_bits(bool b PLANE_PARAMS) {{ return {ballot}; }}"
            writer.need("plane_bits", text)
        return plane_call(kind, dtype, t, args, writer)

    # --- memory ----------------------------------------------------------------------------

    def load_vector(
        self, place: str, dtype: DType, width: int, aligned: bool, space: str, writer: MemoryWriter
    ) -> list[str]:
        """Read neighbours at once where they are aligned."""
        made = writer.fresh()
        if space == "local":
            # By constant steps, so that a small array can stay in registers.
            writer.line(f"const auto {made} = {place};")
            return [f"{made}[{lane}]" for lane in range(width)]
        writer.need("vectors", VECTORS)
        call = "load_aligned" if aligned else "load_any"
        writer.line(f"const auto {made} = {call}<{self.memory_type(dtype)}, {width}>({place});")
        return [f"{made}.s[{lane}]" for lane in range(width)]

    def store_vector(
        self, place: str, dtype: DType, lanes: list[str], aligned: bool, space: str,
        writer: MemoryWriter,
    ) -> None:  # fmt: skip
        """Write neighbours at once where they are aligned."""
        if space == "local":
            for number, lane in enumerate(lanes):
                writer.line(f"({place})[{number}] = {lane};")
            return
        writer.need("vectors", VECTORS)
        type_ = f"{self.memory_type(dtype)}, {len(lanes)}"
        call = "store_aligned" if aligned else "store_any"
        writer.line(f"{call}<{type_}>({place}, Vec<{type_}>{{{{{', '.join(lanes)}}}}});")

    def atomic(
        self, kind: str, dtype: DType, space: str, place: str, args: list[str],
        writer: MemoryWriter,
    ) -> str:  # fmt: skip
        """Return an atomic; what CUDA has for unsigned only is cast."""
        t = dtype.short
        if dtype.bits == 64 and (dtype.kind == "int" or kind == "exchange"):
            return self._atomic_64(kind, dtype, place, args)
        if kind == "sub" and dtype.bits == 64:
            return f"atomicAdd({place}, 0ull - {args[0]})"
        word = {"exchange": "Exch", "cas": "CAS"}.get(kind, kind.capitalize())
        return f"atomic{word}(({t}*)({place}), {', '.join(args)})"

    def _atomic_64(self, kind: str, dtype: DType, place: str, args: list[str]) -> str:
        t = dtype.short
        if kind in ("min", "max"):
            return f"atomic{kind.capitalize()}(({t}*)({place}), {args[0]})"
        if dtype.is_float:
            bits = f"(u64)__double_as_longlong({args[0]})"
            return f"__longlong_as_double((i64)atomicExch((u64*)({place}), {bits}))"
        words = [f"(u64){arg}" for arg in args]
        if kind == "sub":
            kind, words = "add", [f"0ull - {words[0]}"]
        word = {"exchange": "Exch", "cas": "CAS"}.get(kind, kind.capitalize())
        return f"({t})atomic{word}((u64*)({place}), {', '.join(words)})"

    def claim(self, record: str, site: int) -> str:
        """Return the test by which the first fault takes the record."""
        return f"atomicCAS({record}, 0, {site}) == 0"

    def format(self, dtype: DType) -> str:
        """Return the format of printf."""
        if dtype.is_float:
            return "%.9g" if dtype.bits <= 32 else "%.17g"
        if dtype.bits == 64:
            return "%lld" if dtype.is_signed else "%llu"
        return "%u" if dtype.kind == "uint" and dtype.bits == 32 else "%d"


def shared_bytes(kernel: Kernel) -> int:
    """Return the bytes of shared memory of a cube, each array on a multiple of what it needs.

    Example:
        >>> from burn_cube import Builder
        >>> from burn_std.dtypes import float32
        >>> b = Builder("scratch")
        >>> _ = b.shared(float32, 3)
        >>> shared_bytes(b.finish())
        16
    """
    total, grain = 0, grain_of(kernel)
    for op in walk(kernel.body):
        if op.name == "alloc" and op.type.space == "shared":
            total += -(-op.attrs["size"] * size_of(op.type.elem) // grain) * grain
    return total


def emit_cuda(kernel: Kernel, arch: Architecture | None = None) -> str:
    """Return a kernel as CUDA C++.

    Args:
        kernel: the kernel.
        arch: the device's limits; None for those of sm_90.

    Example:
        >>> from burn_cube import Builder
        >>> b = Builder("idle", cube_dim=4)
        >>> "void __launch_bounds__(4) k_idle(" in emit_cuda(b.finish())
        True
    """
    return emit(kernel, Cuda(arch)).text
