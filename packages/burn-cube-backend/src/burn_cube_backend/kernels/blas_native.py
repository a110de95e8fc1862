"""The native side of the BLAS provider: one function that the thread pool of the runtime calls.

A job is a batch of products, each cut into parts of its rows or columns; the function runs a range
of parts, one single-threaded call of the library each. So the pool of the runtime is the only one:
workers of the library would spin after each product and take the processor from other kernels.
"""

from __future__ import annotations

import struct

# Words of a job: function, transposes, extents, then addresses, leading dims, tables of batches,
# and how a product is cut. `beta` stands as a double.
WORDS = struct.Struct("=qqqqqqdqqqqqqqqqqqqqqq")
_NAMES = (
    "fn", "ta", "tb", "m", "n", "k", "beta", "a", "lda", "b", "ldb", "c", "ldc", "atable",
    "btable", "cstep", "parts", "columns", "piece", "apart", "bpart", "cpart",
)  # fmt: skip

_TEXT = """
define void @burn_gemm_{name}(ptr noalias %words, i64 %lo, i64 %hi) {{
entry:
{loads}
  %betax = bitcast i64 %beta to double
  %betav = {beta}
  %function = inttoptr i64 %fn to ptr
  %ta32 = trunc i64 %ta to i32
  %tb32 = trunc i64 %tb to i32
  %atab = inttoptr i64 %atable to ptr
  %btab = inttoptr i64 %btable to ptr
  %bycolumns = icmp ne i64 %columns, 0
  br label %head
head:
  %i = phi i64 [%lo, %entry], [%next, %body]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  %batch = sdiv i64 %i, %parts
  %whole = mul i64 %batch, %parts
  %part = sub i64 %i, %whole
  %first = mul i64 %part, %piece
  %extent = select i1 %bycolumns, i64 %n, i64 %m
  %left = sub i64 %extent, %first
  %short = icmp slt i64 %left, %piece
  %size = select i1 %short, i64 %left, i64 %piece
  %mm = select i1 %bycolumns, i64 %m, i64 %size
  %nn = select i1 %bycolumns, i64 %size, i64 %n
  %aplace = getelementptr i64, ptr %atab, i64 %batch
  %bplace = getelementptr i64, ptr %btab, i64 %batch
  %aoff = load i64, ptr %aplace
  %boff = load i64, ptr %bplace
  %ap = mul i64 %part, %apart
  %bp = mul i64 %part, %bpart
  %cp = mul i64 %part, %cpart
  %coff = mul i64 %batch, %cstep
  %a1 = add i64 %a, %aoff
  %a2 = add i64 %a1, %ap
  %b1 = add i64 %b, %boff
  %b2 = add i64 %b1, %bp
  %c1 = add i64 %c, %coff
  %c2 = add i64 %c1, %cp
  %aa = inttoptr i64 %a2 to ptr
  %bb = inttoptr i64 %b2 to ptr
  %cc = inttoptr i64 %c2 to ptr
  call void %function(i32 101, i32 %ta32, i32 %tb32, i64 %mm, i64 %nn, i64 %k, {type} 1.0, ptr %aa, i64 %lda, ptr %bb, i64 %ldb, {type} %betav, ptr %cc, i64 %ldc)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""  # noqa: E501 - an instruction of LLVM is one line


def text() -> str:
    """Return the module: `burn_gemm_f32` and `burn_gemm_f64`."""
    loads = []
    for at, name in enumerate(_NAMES):
        loads.append(f"  %p_{name} = getelementptr i64, ptr %words, i64 {at}")
        loads.append(f"  %{name} = load i64, ptr %p_{name}")
    kinds = (
        ("f32", "float", "fptrunc double %betax to float"),
        ("f64", "double", "fadd double %betax, 0.0"),
    )
    return "".join(
        _TEXT.format(name=name, type=kind, beta=beta, loads="\n".join(loads))
        for name, kind, beta in kinds
    )
