"""Asynchronous copies from global to shared memory: `cp.async`, sixteen bytes at most at a time.

What is not aligned to its size, or smaller than four bytes, is copied at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn_cube.builder import size_of
from burn_cube.emit.c_values import literal
from burn_cube.ir import Kernel, Op
from burn_cube.types import scalar_of, width_of

if TYPE_CHECKING:
    from burn_cube.emit.c_memory import MemoryWriter

COPY = """\
template <int BYTES, typename T> FN void copy_ahead(T* to, const T* from) {
  constexpr int STEP = BYTES < 16 ? BYTES : 16;
  if (STEP >= 4 && ((u64)to | (u64)from) % STEP == 0) {
    u32 place;
    asm("{.reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s;}" : "=r"(place) : "l"(to));
#pragma unroll
    for (int i = 0; i < BYTES; i += STEP) {
      const char* start = (const char*)from + i;
      if (STEP == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
          : : "r"(place + i), "l"(start) : "memory");
      else if (STEP == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
          : : "r"(place + i), "l"(start) : "memory");
      else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
          : : "r"(place + i), "l"(start) : "memory");
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < BYTES / (int)sizeof(T); ++i) to[i] = from[i];
}"""

# The same where the program promises what is tested above.
ALIGNED = """\
template <int BYTES, typename T>
FN void copy_aligned(T* to, const T* from, const bool inside) {
  constexpr int STEP = BYTES < 16 ? BYTES : 16;
  u32 place;
  asm("{.reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s;}" : "=r"(place) : "l"(to));
#pragma unroll
  for (int i = 0; i < BYTES; i += STEP) {
    const char* start = (const char*)from + i;
    if (STEP == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
        : : "r"(place + i), "l"(start), "r"(inside ? 16 : 0) : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
        : : "r"(place + i), "l"(start), "n"(STEP), "r"(inside ? STEP : 0) : "memory");
  }
}"""


def has_copies(kernel: Kernel, capability: int) -> bool:
    """Return whether a kernel's copies go on behind: sm_80 and later, no faults to report."""
    return capability >= 80 and kernel.bounds != "validated"


def write_copy(op: Op, writer: MemoryWriter) -> None:
    """Write a copy; outside of its source it stores zeros, outside of its target nothing."""
    target, at, source, start, *given = op.args
    elem, width = target.type.elem, op.attrs["width"]
    count = width * width_of(elem)
    size = width * size_of(elem)
    # What is outside: the copy itself fills with zeros, and reads nothing.
    asked = writer.text(given[0]) if given else None
    aligned = op.attrs["aligned"] and size >= 4
    call = writer.need("copy_aligned", ALIGNED) if aligned else writer.need("copy_ahead", COPY)
    # The tests and places of a plain read and a plain write.
    to, frm = Op("load", elem, (target, at)), Op("load", elem, (source, start))
    here, there = writer.address(to, width), writer.address(frm, width)
    inside, known = writer.inside(to, width), writer.inside(frm, width)
    tests = " && ".join(f"({test})" for test in (asked, known) if test is not None)
    if aligned:
        copy = f"{call}<{size}>({here}, {there}, {tests or 'true'});"
    else:
        copy = f"{call}<{size}>({here}, {there});"
    if tests and not aligned:
        dtype = scalar_of(elem)
        zero = "0" if dtype.is_bool else literal(0, dtype, writer.dialect)
        clear = f"for (int z = 0; z < {count}; ++z) ({here})[z] = {zero};"
        copy = f"if ({tests}) {copy} else {clear}"
    writer.line(f"if ({inside}) {{ {copy} }}" if inside is not None else copy)


def write_order(op: Op, writer: MemoryWriter) -> None:
    """Write the end of a group of copies, or the wait for those of this unit."""
    word = "commit_group"
    if op.name == "async_wait":
        pending = op.attrs["pending"]
        word = "wait_all" if pending is None else f"wait_group {pending}"
    writer.line(f'asm volatile("cp.async.{word};" : : : "memory");')
