"""Matrix tiles on tensor cores: `mma.sync` on fragments that each unit of a warp holds.

With g = lane / 4 and t = lane % 4, a 16x16 accumulator is two halves of 8 columns, and the unit
holds of each the rows g and g + 8 at the columns 2 t and 2 t + 1. An operand of halves is four
words of two neighbours along k, one of tf32 four single elements. Where the memory is shared and
aligned, `ldmatrix` brings a whole operand at once; elsewhere elements are read one by one, with
the kernel's bounds.

Source: PTX ISA, warp-level matrix instructions: fragments of mma.m16n8k16 and mma.m16n8k8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn_cube.ir import Kernel, Op
from burn_cube.types import Tile
from burn_std.dtypes import float32

if TYPE_CHECKING:
    from burn_cube.emit.c_memory import MemoryWriter

# Fragments: an operand is four words, an accumulator eight floats.
OPERAND, SUMS = 4, 8

COMMON = """\
struct Operand { u32 r[4]; };
struct Sums { f32 r[8]; };
FN u32 tile_lane() { u32 n; asm("mov.u32 %0, %%laneid;" : "=r"(n)); return n; }
template <typename T, typename I> FN T tile_at(const T* p, I at, I length) {
  return at >= 0 && at < length ? p[at] : (T)0;
}
// The element of a row and a column; in memory the rows run along `stride`, or the columns.
template <bool ROW, typename I> FN I tile_place(I at, I stride, int row, int col) {
  return ROW ? at + (I)row * stride + col : at + (I)col * stride + row;
}"""

HALVES = """\
// A: the left operand, [m, k]; else the right one, [k, n], whose n is called m here.
template <bool A, bool ROW, typename I>
FN Operand tile_words(const u16* p, I at, I stride, I length) {
  Operand o;
  const int g = tile_lane() / 4, t = tile_lane() % 4 * 2;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int m = A ? g + (j & 1) * 8 : g + (j >> 1) * 8;
    const int k = A ? t + (j >> 1) * 8 : t + (j & 1) * 8;
    const u32 low = tile_at(p, tile_place<ROW>(at, stride, A ? m : k, A ? k : m), length);
    const u32 high = tile_at(p, tile_place<ROW>(at, stride, A ? m : k + 1, A ? k + 1 : m), length);
    o.r[j] = low | high << 16;
  }
  return o;
}
// The slow way is kept out of line: inlined at each load it costs a third of the registers.
template <bool A, bool ROW, typename I>
static __device__ __noinline__ Operand tile_apart(const u16* p, I at, I stride, I length) {
  return tile_words<A, ROW>(p, at, stride, length);
}
template <bool A, bool ROW, typename I>
FN Operand tile_shared(const u16* p, I at, I stride, I length) {
  const bool inside = at >= 0 && stride >= 0 && (i64)at + 15 * (i64)stride + 16 <= (i64)length;
  if (!inside || (u64)(p + at) % 16 != 0 || stride % 8 != 0)
    return tile_apart<A, ROW>(p, at, stride, length);
  Operand o;
  const int j = tile_lane() / 8, r = tile_lane() % 8;
  // Which of the four 8x8 blocks this unit points at: along m or n, and along k.
  const int m = A ? (j & 1) * 8 : (j >> 1) * 8, k = A ? (j >> 1) * 8 : (j & 1) * 8;
  constexpr bool ALONG_K = A == ROW;
  const u16* row = p + at + (I)((ALONG_K ? m : k) + r) * stride + (ALONG_K ? k : m);
  u32 place;
  asm("{.reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s;}" : "=r"(place) : "l"(row));
  if (ALONG_K)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(o.r[0]), "=r"(o.r[1]), "=r"(o.r[2]), "=r"(o.r[3]) : "r"(place) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(o.r[0]), "=r"(o.r[1]), "=r"(o.r[2]), "=r"(o.r[3]) : "r"(place) : "memory");
  return o;
}"""

# The same where the program promises what is tested above. MORE is a known part of the place: it
# goes into the instruction, and what is left is one address for many loads.
ALIGNED = """\
template <bool A, bool ROW, int MORE, typename I>
FN Operand tile_near(const u16* p, I at, I stride) {
  Operand o;
  const int j = tile_lane() / 8, r = tile_lane() % 8;
  const int m = A ? (j & 1) * 8 : (j >> 1) * 8, k = A ? (j >> 1) * 8 : (j & 1) * 8;
  constexpr bool ALONG_K = A == ROW;
  const I own = (I)((ALONG_K ? m : k) + r) * stride + (ALONG_K ? k : m);
  const u16* row = p + at + own + MORE;
  u32 place;
  asm("{.reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s;}" : "=r"(place) : "l"(p));
  place = (place + (u32)own * 2) + (u32)at * 2;
  (void)row;
  if (ALONG_K)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4 + %5];"
      : "=r"(o.r[0]), "=r"(o.r[1]), "=r"(o.r[2]), "=r"(o.r[3])
      : "r"(place), "n"(MORE * 2) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4 + %5];"
      : "=r"(o.r[0]), "=r"(o.r[1]), "=r"(o.r[2]), "=r"(o.r[3])
      : "r"(place), "n"(MORE * 2) : "memory");
  return o;
}"""

# Two float32 as halves in one word, the first one low.
PAIRS = {
    kind: (
        f"FN u32 tile_pair_{kind}(f32 low, f32 high) {{\n  u32 w;\n"
        f'  asm("cvt.rn.{kind}x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));\n'
        "  return w;\n}"
    )
    for kind in ("f16", "bf16")
}

SINGLES = """\
// tf32 keeps ten bits of mantissa. The hardware would cut the others: halves go to even here.
FN u32 tile_tf32(f32 x) {
  const u32 b = __float_as_uint(x);
  return (b & 0x7f800000u) == 0x7f800000u ? b : (b + 0xfffu + (b >> 13 & 1u)) & 0xffffe000u;
}
template <bool A, bool ROW, typename I>
FN Operand tile_singles(const f32* p, I at, I stride, I length) {
  Operand o;
  const int g = tile_lane() / 4, t = tile_lane() % 4;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int m = A ? g + (j & 1) * 8 : g + (j >> 1) * 8;
    const int k = A ? t + (j >> 1) * 4 : t + (j & 1) * 4;
    o.r[j] = tile_tf32(tile_at(p, tile_place<ROW>(at, stride, A ? m : k, A ? k : m), length));
  }
  return o;
}"""

ACCUMULATORS = """\
template <bool ROW, typename I> FN Sums tile_sums(const f32* p, I at, I stride, I length) {
  Sums s;
  const int g = tile_lane() / 4, t = tile_lane() % 4 * 2;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int row = g + (j >> 1 & 1) * 8, col = t + (j & 1) + (j >> 2) * 8;
    s.r[j] = tile_at(p, tile_place<ROW>(at, stride, row, col), length);
  }
  return s;
}
template <bool ROW, typename I> FN void tile_keep(f32* p, I at, I stride, I length, Sums s) {
  const int g = tile_lane() / 4, t = tile_lane() % 4 * 2;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int row = g + (j >> 1 & 1) * 8, col = t + (j & 1) + (j >> 2) * 8;
    const I place = tile_place<ROW>(at, stride, row, col);
    if (place >= 0 && place < length) p[place] = s.r[j];
  }
}"""


def _product(name: str, shape: str, kind: str) -> str:
    halves = []
    for half in range(2):
        sums = ", ".join(f'"+f"(c.r[{half * 4 + j}])' for j in range(4))
        left = ", ".join(f'"r"(a.r[{j}])' for j in range(4))
        right = ", ".join(f'"r"(b.r[{half * 2 + j}])' for j in range(2))
        halves.append(
            f'  asm("mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 '
            '{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"\n'
            f"    : {sums} : {left}, {right});"
        )
    body = "\n".join(halves)
    return f"FN Sums {name}(Operand a, Operand b, Sums c) {{\n{body}\n  return c;\n}}"


PRODUCTS = {
    "f16": _product("tile_mma_f16", "m16n8k16", "f16"),
    "bf16": _product("tile_mma_bf16", "m16n8k16", "bf16"),
    "f32": _product("tile_mma_f32", "m16n8k8", "tf32"),
}


def has_tensor_cores(kernel: Kernel, capability: int) -> bool:
    """Return whether tiles of a kernel go to tensor cores: whole warps, sm_80 and later."""
    return capability >= 80 and kernel.plane_dim == 32 and kernel.cube_size % 32 == 0


def variables(type_: Tile) -> tuple[str, int]:
    """Return the C type and the number of variables that hold the fragment of a unit."""
    return ("f32", SUMS) if type_.use == "acc" else ("u32", OPERAND)


def write_tile(op: Op, writer: MemoryWriter) -> None:
    """Write an operation on tiles."""
    writer.need("tiles", COMMON)
    if op.name == "tile_fill":
        value = writer.text(op.args[0])
        writer.bind(op, "f32", [value] * SUMS)
    elif op.name == "tile_mma":
        _mma(op, writer)
    elif op.name == "tile_load":
        _load(op, writer)
    elif op.name == "tile_element":
        writer.names[op] = [writer.lanes(op.args[0])[op.attrs["number"]]]
    elif op.name == "tile_of":
        writer.bind(op, "f32", [writer.text(arg) for arg in op.args])
    elif op.name == "tile_operand":
        _operand(op, writer)
    else:
        _store(op, writer)


def _mma(op: Op, writer: MemoryWriter) -> None:
    kind = op.args[0].type.dtype.short
    call = writer.need(f"tile_mma_{kind}", PRODUCTS[kind])
    a, b, c = (", ".join(writer.lanes(arg)) for arg in op.args)
    made = writer.fresh()
    writer.line(
        f"const Sums {made} = {call}(Operand{{{{{a}}}}}, Operand{{{{{b}}}}}, Sums{{{{{c}}}}});"
    )
    writer.bind(op, "f32", [f"{made}.r[{j}]" for j in range(SUMS)])


def _operand(op: Op, writer: MemoryWriter) -> None:
    """Write an accumulator as an operand: a unit holds the same elements of both."""
    kind = op.type.dtype.short
    call = writer.need(f"tile_pair_{kind}", PAIRS[kind])
    lanes = writer.lanes(op.args[0])
    pairs = zip(lanes[::2], lanes[1::2], strict=True)
    writer.bind(op, "u32", [f"{call}({low}, {high})" for low, high in pairs])


def _apart(at: Op) -> tuple[Op, int]:
    """Return a place as a value and a number that is added to it."""
    if at.name == "add":
        for one, other in (at.args, at.args[::-1]):
            if one.name == "const" and 0 <= one.attrs["value"] < 1 << 20:
                return other, int(one.attrs["value"])
    return at, 0


def _reach(op: Op, writer: MemoryWriter) -> str:
    """Return place, stride and length as arguments of one type."""
    index = writer.dialect.ctype(op.args[1].type)
    length = "0x7fffffff" if op.args[1].type.bits == 32 else "0x7fffffffffffffffll"
    if writer.kernel.bounds != "unchecked":
        length = f"({index})({writer.length(op.args[0])})"
    return f"{writer.text(op.args[1])}, {writer.text(op.args[2])}, ({index}){length}"


def _load(op: Op, writer: MemoryWriter) -> None:
    tile: Tile = op.type
    memory = writer.text(op.args[0])
    row = "true" if op.attrs["layout"] == "row" else "false"
    made = writer.fresh()
    if tile.use == "acc":
        writer.need("tile_sums", ACCUMULATORS)
        writer.line(f"const Sums {made} = tile_sums<{row}>({memory}, {_reach(op, writer)});")
    else:
        if tile.dtype is float32:
            call = "tile_singles"
            writer.need("tile_singles", SINGLES)
        else:
            call = "tile_shared" if op.args[0].type.space == "shared" else "tile_words"
            writer.need("tile_words", HALVES)
        kinds = f"{'true' if tile.use == 'a' else 'false'}, {row}"
        reach = _reach(op, writer)
        if op.attrs["aligned"] and call == "tile_shared":
            call = writer.need("tile_near", ALIGNED)
            at, more = _apart(op.args[1])
            kinds += f", {more}"
            reach = f"{writer.text(at)}, {writer.text(op.args[2])}"
        # A pointer to constants, so that one template serves every memory.
        kind = "const f32*" if tile.dtype is float32 else "const u16*"
        writer.line(f"const Operand {made} = {call}<{kinds}>(({kind}){memory}, {reach});")
    type_, count = variables(tile)
    writer.bind(op, type_, [f"{made}.r[{j}]" for j in range(count)])


def _store(op: Op, writer: MemoryWriter) -> None:
    writer.need("tile_sums", ACCUMULATORS)
    row = "true" if op.attrs["layout"] == "row" else "false"
    sums = ", ".join(writer.lanes(op.args[3]))
    reach = _reach(op, writer)
    writer.line(f"tile_keep<{row}>({writer.text(op.args[0])}, {reach}, Sums{{{{{sums}}}}});")
