"""The native thread pool of the cpu runtime, written in LLVM IR.

One job at a time. Workers spin for a short while after a job and then sleep in a futex, so a
launch that follows soon costs about a microsecond. A worker announces itself before it takes a
chunk, and the caller leaves a job only when every chunk is taken and no announced worker is left:
workers that sleep through a short job are never waited for. A second thread that launches while
the pool is busy runs its job itself.

The source is text because nothing but llvmlite is needed to compile it.
"""

from __future__ import annotations

FUTEX = {"x86_64": 202, "AMD64": 202, "aarch64": 98}
SPINS = 4000
CLOSED = 1 << 62

TEXT = """
@fn = internal global ptr null
@words = internal global ptr null
@total = internal global i64 0
@chunk = internal global i64 1
@next = internal global i64 {closed}, align 64
@generation = internal global i32 0, align 64
@active = internal global i32 0, align 64
@sleepers = internal global i32 0, align 64
@busy = internal global i32 0, align 64
@workers = internal global i32 0

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i64 @syscall(i64, ...)

define internal void @work() {{
entry:
  br label %loop
loop:
  %total0 = load atomic i64, ptr @total seq_cst, align 8
  %chunk0 = load atomic i64, ptr @chunk seq_cst, align 8
  %seen = load atomic i64, ptr @next seq_cst, align 8
  %over = icmp sge i64 %seen, %total0
  br i1 %over, label %done, label %take
take:
  %lo = atomicrmw add ptr @next, i64 %chunk0 seq_cst
  %total1 = load atomic i64, ptr @total seq_cst, align 8
  %none = icmp sge i64 %lo, %total1
  br i1 %none, label %done, label %run
run:
  %end = add i64 %lo, %chunk0
  %past = icmp sgt i64 %end, %total1
  %hi = select i1 %past, i64 %total1, i64 %end
  %f = load atomic ptr, ptr @fn seq_cst, align 8
  %w = load atomic ptr, ptr @words seq_cst, align 8
  call void %f(ptr %w, i64 %lo, i64 %hi)
  br label %loop
done:
  ret void
}}

define internal ptr @worker(ptr %seen0) {{
entry:
  %first = ptrtoint ptr %seen0 to i64
  %start = trunc i64 %first to i32
  br label %wait
wait:
  %seen = phi i32 [%start, %entry], [%now, %worked], [%seen, %woken]
  br label %spin
spin:
  %i = phi i32 [0, %wait], [%i1, %again]
  %now = load atomic i32, ptr @generation seq_cst, align 4
  %new = icmp ne i32 %now, %seen
  br i1 %new, label %job, label %pause
pause:
  {pause}
  %i1 = add i32 %i, 1
  %tired = icmp sge i32 %i1, {spins}
  br i1 %tired, label %sleep, label %again
again:
  br label %spin
sleep:
  %s = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr @generation, i32 128, i32 %seen, ptr null)
  %t = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %woken
woken:
  br label %wait
job:
  %a = atomicrmw add ptr @active, i32 1 seq_cst
  call void @work()
  %b = atomicrmw sub ptr @active, i32 1 seq_cst
  br label %worked
worked:
  br label %wait
}}

define void @burn_pool_start(i64 %count) {{
entry:
  %tid = alloca i64
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %made]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %make, label %done
make:
  %g = load atomic i32, ptr @generation seq_cst, align 4
  %wide = zext i32 %g to i64
  %arg = inttoptr i64 %wide to ptr
  %r = call i32 @pthread_create(ptr %tid, ptr null, ptr @worker, ptr %arg)
  %bad = icmp ne i32 %r, 0
  br i1 %bad, label %done, label %made
made:
  %id = load i64, ptr %tid
  %d = call i32 @pthread_detach(i64 %id)
  %n = atomicrmw add ptr @workers, i32 1 seq_cst
  %i1 = add i64 %i, 1
  br label %loop
done:
  ret void
}}

define void @burn_pool_forget() {{
  store atomic i32 0, ptr @workers seq_cst, align 4
  store atomic i32 0, ptr @active seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store atomic i32 0, ptr @busy seq_cst, align 4
  store atomic i64 {closed}, ptr @next seq_cst, align 8
  ret void
}}

define void @burn_pool_run(ptr %f, ptr %w, i64 %total, i64 %chunk) {{
entry:
  %small = icmp sle i64 %total, %chunk
  br i1 %small, label %alone, label %check
check:
  %n = load atomic i32, ptr @workers seq_cst, align 4
  %nobody = icmp eq i32 %n, 0
  br i1 %nobody, label %alone, label %claim
claim:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %mine, label %late, label %alone
alone:
  call void %f(ptr %w, i64 0, i64 %total)
  ret void
late:
  %a = load atomic i32, ptr @active seq_cst, align 4
  %quiet = icmp eq i32 %a, 0
  br i1 %quiet, label %post, label %latewait
latewait:
  {pause}
  br label %late
post:
  store atomic ptr %f, ptr @fn seq_cst, align 8
  store atomic ptr %w, ptr @words seq_cst, align 8
  store atomic i64 %total, ptr @total seq_cst, align 8
  store atomic i64 %chunk, ptr @chunk seq_cst, align 8
  store atomic i64 0, ptr @next seq_cst, align 8
  %g = atomicrmw add ptr @generation, i32 1 seq_cst
  %s = load atomic i32, ptr @sleepers seq_cst, align 4
  %asleep = icmp sgt i32 %s, 0
  br i1 %asleep, label %wake, label %go
wake:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr @generation, i32 129, i32 1024)
  br label %go
go:
  call void @work()
  br label %join
join:
  %left = load atomic i32, ptr @active seq_cst, align 4
  %all = icmp eq i32 %left, 0
  br i1 %all, label %close, label %joinwait
joinwait:
  {pause}
  br label %join
close:
  store atomic i64 {closed}, ptr @next seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}}
"""


def pool_text(machine: str) -> str:
    """Return the module for a machine, as `platform.machine()` names it."""
    pause = (
        'call void asm sideeffect "pause", ""()'
        if machine in ("x86_64", "AMD64")
        else "fence seq_cst"
    )
    return TEXT.format(closed=CLOSED, spins=SPINS, futex=FUTEX.get(machine, 0), pause=pause)
