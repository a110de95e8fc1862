"""Products of four planes on the tensor cores of sm_90: `wgmma` on operands in shared memory.

Lines of shared memory have 64 halves, 128 bytes, and eight of them are the pattern in which the
hardware swizzles chunks of 16 bytes: chunk c of line l lies at c ^ (l % 8). A unit holds the sums
that it holds of a product of its own plane, which is why they are ordinary accumulators.

Source: PTX ISA, asynchronous warpgroup-level matrix instructions: matrix descriptors, fragments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn_cube.ir import Kernel, Op, walk

if TYPE_CHECKING:
    from burn_cube.emit.c_memory import MemoryWriter

GROUPED = frozenset({"group_mma", "group_wait"})
# The one architecture that has them; later ones have others.
GROUPS_OF = 90
# What units wrote into shared memory is seen by the tensor cores behind this.
PROXY = 'asm volatile("fence.proxy.async.shared::cta;" : : : "memory");'
# Bytes of the pattern: operands begin at multiples of them.
PATTERN = 1024

PLACE = """\
FN u32 group_place(const void* p) {
  u32 place;
  asm("{.reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s;}" : "=r"(place) : "l"(p));
  return place;
}
FN u64 group_operand(u32 place, u64 rest) { return rest | (u64)((place & 0x3ffffu) >> 4); }"""


def has_groups(kernel: Kernel) -> bool:
    """Return whether four planes of a kernel multiply together."""
    return any(op.name in GROUPED for op in walk(kernel.body))


def grain_of(kernel: Kernel) -> int:
    """Return the bytes at multiples of which shared arrays of a kernel begin."""
    return PATTERN if has_groups(kernel) else 16


def write_group(op: Op, writer: MemoryWriter) -> None:
    """Write a product or a wait."""
    if op.name == "group_mma":
        _product(op, writer)
        return
    held = ", ".join(f'"+f"({lane})' for arg in op.args for lane in writer.lanes(arg))
    word = "wgmma.wait_group.sync.aligned 0;"
    writer.line(f'asm volatile("{word}" : {held} : : "memory");')


def _rest(turned: bool, span: int) -> str:
    """Return a descriptor but its place: steps in units of 16 bytes, swizzle of 128 bytes."""
    # Lines along m or n: the next 64 of them are a panel away.
    leading = span * 8 if turned else 1
    return f"0x{1 << 62 | (PATTERN >> 4) << 32 | leading << 16:x}ull"


def _product(op: Op, writer: MemoryWriter) -> None:
    attrs, count = op.attrs, op.attrs["columns"]
    steps, held = attrs["steps"], attrs["held"]
    sums, rest = op.args[:count], op.args[count:]
    memories, places = (rest[:1], rest[1:]) if held else (rest[:2], rest[2:])
    lefts, rights = places[:steps], places[steps:]
    turned, span = attrs["turned"], attrs["span"]
    writer.need("group_place", PLACE)
    lanes = [lane for slot in sums for lane in writer.lanes(slot)]
    bound = ", ".join(f'"+f"({lane})' for lane in lanes)

    def operand(memory: Op, place: Op, side: int) -> str:
        at = f"group_place({writer.text(memory)}) + (u32)({writer.text(place)}) * 2u"
        return f"group_operand({at}, {_rest(turned[side], span[side])})"

    writer.line(f'asm volatile("wgmma.fence.sync.aligned;" : {bound} : : "memory");')
    many = len(lanes)
    shape, kind = f"m64n{count * 16}k16", attrs["dtype"].short
    for number, (left, right) in enumerate(zip(lefts, rights, strict=True)):
        at = many
        if held:
            inputs = [f'"r"({word})' for word in writer.lanes(left)]
            first = "{" + ", ".join(f"%{at + k}" for k in range(4)) + "}"
            order = f"{int(turned[1])}"
        else:
            inputs = [f'"l"({operand(memories[0], left, 0)})']
            first, order = f"%{at}", f"{int(turned[0])}, {int(turned[1])}"
        at += len(inputs)
        inputs += [f'"l"({operand(memories[-1], right, 1)})']
        inputs += [f'"n"({0 if attrs["fresh"] and not number else 1})']
        outs = ", ".join(f"%{k}" for k in range(many))
        writer.line(
            f'asm volatile("{{.reg .pred p; setp.ne.b32 p, %{at + 1}, 0; '
            f"wgmma.mma_async.sync.aligned.{shape}.f32.{kind}.{kind} "
            f'{{{outs}}}, {first}, %{at}, p, 1, 1, {order};}}" '
            f': {bound} : {", ".join(inputs)} : "memory");'
        )
    writer.line('asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");')
