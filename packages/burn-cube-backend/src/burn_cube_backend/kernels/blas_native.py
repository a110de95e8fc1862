"""The native side of the BLAS provider: one function that the thread pool of the runtime calls.

A job is a batch of products, each cut into parts of its rows or columns; the function runs a range
of parts, one single-threaded call of the library each. So the pool of the runtime is the only one:
workers of the library would spin after each product and take the processor from other kernels.
"""

from __future__ import annotations

import struct

# Words of a job: function, transposes, extents, then addresses, leading dims, tables of batches,
# how a product is cut, and a vector that is added to every row, or 0. `beta` stands as a double.
WORDS = struct.Struct("=qqqqqqdqqqqqqqqqqqqqqqq")
_NAMES = (
    "fn", "ta", "tb", "m", "n", "k", "beta", "a", "lda", "b", "ldb", "c", "ldc", "atable",
    "btable", "cstep", "parts", "columns", "piece", "apart", "bpart", "cpart", "bias",
)  # fmt: skip
# The word that is the address of the result.
OUT = _NAMES.index("c")

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
  %i = phi i64 [%lo, %entry], [%next, %after]
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
  %biased = icmp ne i64 %bias, 0
  br i1 %biased, label %add, label %after
add:
  %column = select i1 %bycolumns, i64 %first, i64 0
  %biasbytes = mul i64 %column, {size}
  %biasplace = add i64 %bias, %biasbytes
  %biasp = inttoptr i64 %biasplace to ptr
  br label %rows
rows:
  %r = phi i64 [0, %add], [%r1, %rowend]
  %rmore = icmp slt i64 %r, %mm
  br i1 %rmore, label %row, label %after
row:
  %rl = mul i64 %r, %ldc
  %rowp = getelementptr {type}, ptr %cc, i64 %rl
  br label %cols
cols:
  %j = phi i64 [0, %row], [%j1, %col]
  %jmore = icmp slt i64 %j, %nn
  br i1 %jmore, label %col, label %rowend
col:
  %to = getelementptr {type}, ptr %rowp, i64 %j
  %from = getelementptr {type}, ptr %biasp, i64 %j
  %old = load {type}, ptr %to
  %plus = load {type}, ptr %from
  %sum = fadd {type} %old, %plus
  store {type} %sum, ptr %to
  %j1 = add i64 %j, 1
  br label %cols
rowend:
  %r1 = add i64 %r, 1
  br label %rows
after:
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""  # noqa: E501 - an instruction of LLVM is one line


# A convolution: task t gathers bands t, t + tasks, ... of windows into its own piece of memory and
# multiplies each while it is in the cache; `beta` 1 adds to what is there.
# Band number = (sample * groups + group) * bands + part of the windows.
CONV_WORDS = struct.Struct("=" + "q" * 20 + "d")
_CONV_NAMES = (
    "fn", "gather", "gwords", "lines", "jobs", "tasks", "slots", "slot", "bands", "groups", "m",
    "k", "length", "piece", "w", "wgroup", "c", "cimage", "ctask", "kind", "beta",
)  # fmt: skip
_CONV = """
define void @burn_conv_{name}(ptr noalias %words, i64 %lo, i64 %hi) {{
entry:
{loads}
  %betax = bitcast i64 %beta to double
  %function = inttoptr i64 %fn to ptr
  %gatherer = inttoptr i64 %gather to ptr
  %gatherwords = inttoptr i64 %gwords to ptr
  %isgrad = icmp ne i64 %kind, 0
  br label %tasks_
tasks_:
  %t = phi i64 [%lo, %entry], [%t1, %next]
  %more = icmp slt i64 %t, %hi
  br i1 %more, label %start, label %done
start:
  %slotat = mul i64 %t, %slot
  %cols = add i64 %slots, %slotat
  %colsp = inttoptr i64 %cols to ptr
  %own = mul i64 %t, %ctask
  br label %head
head:
  %job = phi i64 [%t, %start], [%job1, %body_end]
  %left = icmp slt i64 %job, %jobs
  br i1 %left, label %body, label %next
body:
  %base = mul i64 %t, %jobs
  %number = add i64 %base, %job
  %line0 = mul i64 %number, %lines
  %line1 = add i64 %line0, %lines
  call void %gatherer(ptr %gatherwords, i64 %line0, i64 %line1)
  %image = sdiv i64 %job, %bands
  %bands_ = mul i64 %image, %bands
  %band = sub i64 %job, %bands_
  %sample = sdiv i64 %image, %groups
  %groups_ = mul i64 %sample, %groups
  %group = sub i64 %image, %groups_
  %at = mul i64 %band, %piece
  %rest = sub i64 %length, %at
  %short = icmp slt i64 %rest, %piece
  %n = select i1 %short, i64 %rest, i64 %piece
  %wo = mul i64 %group, %wgroup
  %w1 = add i64 %w, %wo
  %io = mul i64 %image, %cimage
  %ao = mul i64 %at, {size}
  %i1 = add i64 %io, %ao
  %c1 = add i64 %c, %i1
  %wp = inttoptr i64 %w1 to ptr
  %cp = inttoptr i64 %c1 to ptr
  %beta1 = {beta}
  br i1 %isgrad, label %grad, label %forward
forward:
  call void %function(i32 101, i32 111, i32 111, i64 %m, i64 %n, i64 %k, {type} 1.0, ptr %wp, i64 %k, ptr %colsp, i64 %n, {type} %beta1, ptr %cp, i64 %length)
  br label %latch
grad:
  %wt = add i64 %w1, %own
  %wtp = inttoptr i64 %wt to ptr
  call void %function(i32 101, i32 111, i32 112, i64 %m, i64 %k, i64 %n, {type} 1.0, ptr %cp, i64 %length, ptr %colsp, i64 %n, {type} %beta1, ptr %wtp, i64 %k)
  br label %latch
latch:
  br label %body_end
body_end:
  %job1 = add i64 %job, %tasks
  br label %head
next:
  %t1 = add i64 %t, 1
  br label %tasks_
done:
  ret void
}}
"""  # noqa: E501 - an instruction of LLVM is one line


def _loads(names: tuple[str, ...]) -> str:
    lines = []
    for at, name in enumerate(names):
        lines.append(f"  %p_{name} = getelementptr i64, ptr %words, i64 {at}")
        lines.append(f"  %{name} = load i64, ptr %p_{name}")
    return "\n".join(lines)


def text() -> str:
    """Return the module: `burn_gemm_f32`, `burn_conv_f32`, and the same of f64."""
    kinds = (
        ("f32", "float", 4, "fptrunc double {} to float"),
        ("f64", "double", 8, "fadd double {}, 0.0"),
    )
    out = []
    for name, kind, size, convert in kinds:
        beta = convert.format("%betax")
        gemm, conv = _loads(_NAMES), _loads(_CONV_NAMES)
        out.append(_TEXT.format(name=name, type=kind, size=size, beta=beta, loads=gemm))
        out.append(_CONV.format(name=name, type=kind, size=size, beta=beta, loads=conv))
    return "".join(out)
