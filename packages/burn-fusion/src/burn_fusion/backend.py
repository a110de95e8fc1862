"""FusionBackend: any backend behind a recorder; its payloads are values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from time import perf_counter
from typing import Any

from burn_backend import (
    Backend,
    Fragments,
    Memo,
    Watcher,
    check_scalar,
    infer_lines,
    native_mode,
    payload_names,
    specs_of,
)
from burn_fusion.plan import Plan
from burn_fusion.recorder import BUDGET, CAP, SOFT, Recorder, Shield
from burn_fusion.segment import Holder, Poison, Segment, Value, axis_classes
from burn_fusion.step import StepLog
from burn_fusion.watching import Watched
from burn_fusion.whole import WholeStep
from burn_ir import Entry, Program, Runtime, Spec
from burn_std import PLAIN, CaptureError, DType

# Classes whose slots generated functions read.
_SLOTTED = (Value, Segment, Holder, DType)
_CUT_BEFORE = ("contract", "opaque", "effect")
# Whose results count for the budget: large ones come from here, and cheap operations stay cheap.
_COUNTED = (*_CUT_BEFORE, "random")


class FusionBackend(Backend):
    """Records operations and runs them as plans on the inner backend."""

    keeps_scalars = False
    records = True

    def __init__(
        self, inner: Backend, soft: int = SOFT, cap: int = CAP, budget: int = BUDGET
    ) -> None:
        self.name = f"fusion<{inner.name}>"
        self._soft, self._cap, self._budget = soft, cap, budget
        self.inner = inner
        super().__init__(inner.table, {d: d for d in PLAIN if inner.supports_dtype(d)})
        self.recorder = Recorder(inner, self._repeated)
        if native_mode() == "always":
            for compiling in self.recorder.natively(self.compiled):
                compiling()
        self.watchers = Watched(self.recorder)
        # Equal shapes are one object where possible: broadcasting is then seen without a look-up.
        self._shapes: dict[tuple[int, ...], tuple[int, ...]] = Memo(lambda shape: shape)

    # ---- host ---------------------------------------------------------------------------------

    def _value(self, buf: Any) -> Value:
        v = object.__new__(Value)
        v.shape = self._shapes[tuple(buf.shape)]
        v.dtype = self.inner.dtypes[buf.dtype]
        v.seg = v.op = None
        v.slot = -1
        v.buf = buf
        return v

    def from_numpy(self, array: Any, copy: bool) -> Value:
        """Return a materialised value of a numpy array."""
        return self._value(self.inner.from_numpy(array, copy))

    def to_numpy(self, payload: Value) -> Any:
        """Return a value's array, running its segment if need be."""
        self._not_in_a_step("read")
        return self.inner.to_numpy(self.recorder.buffer(payload))

    def read_async(self, payloads: Sequence[Value]) -> Callable[[], list[Any]]:
        """Run the segments of values and start reading their arrays."""
        self._not_in_a_step("read_async")
        return self.inner.read_async([self.recorder.buffer(v) for v in payloads])

    def scalar(self, value: Any, dtype: DType) -> Value:
        """Record a rank-0 `full`: the value is run-time, so it never rebuilds a plan."""
        made: Value = self.recorder.scalar(value, dtype)
        return made

    def constant(self, dtype: DType, shape: tuple[int, ...], value: Any) -> Value:
        """Record a `full`."""
        made = self.scalar(value, dtype)
        if shape:
            seg = made.seg
            assert seg is not None  # noqa: S101 - it was just recorded
            made.shape = self._shapes[shape]
            made.op = (made.op[0], dtype, axis_classes(shape))
            seg.rt[made.slot] = (shape, value)
        return made

    def sync(self) -> None:
        """Run the segments of all threads and wait."""
        self.recorder.flush_all()
        self.inner.sync()

    def flush(self) -> None:
        """Run this thread's segment."""
        recorder = self.recorder
        recorder.flush(recorder.tls.h.seg)

    def memory_cleanup(self) -> None:
        """Run what waits, then give cached memory back."""
        self.recorder.flush_open()
        self.inner.memory_cleanup()

    def memory_report(self) -> dict[str, int]:
        """Return the inner backend's facts."""
        return self.inner.memory_report()

    def allow_tf32(self) -> None:
        """Hand it on to the inner backend."""
        self.inner.allow_tf32()

    def memory_of(self, payload: Value) -> list[tuple[Any, int]]:
        """Return the memory behind a value that was computed, and of the inner payload itself."""
        buf = payload.buf if payload.__class__ is Value and payload.seg is None else payload
        return [] if buf.__class__ in (Value, Poison) else self.inner.memory_of(buf)

    def memory_held(self, known: Sequence[Any]) -> list[tuple[str, int]]:
        """Return the inner backend's answer."""
        return self.inner.memory_held(known)

    def watched(self, watcher: Watcher) -> AbstractContextManager[None]:
        """Tell a watcher of plans and flushes, and of the kernels behind them."""

        @contextmanager
        def both() -> Iterator[None]:
            with self.inner.watched(watcher), self.watchers.open(watcher):
                yield

        return both()

    def supports_dtype(self, dtype: DType) -> bool:
        """Return whether the inner backend has the dtype."""
        return self.inner.supports_dtype(dtype)

    def execute(self, entry: Entry, inputs: Sequence[Any], attrs: Sequence[Any]) -> Any:
        """Run one operation at once on materialised values; a step that is written down has it."""
        if entry.name == "full" and self.in_step():
            dtype, shape, value = attrs
            return self.constant(dtype, tuple(shape), value)
        self._not_in_a_step(entry.name)
        buffer = self.recorder.buffer
        payloads = [
            None
            if i is None
            else [buffer(v) for v in i]
            if isinstance(i, (list, tuple))
            else buffer(i)
            for i in inputs
        ]
        out = self.inner.execute(entry, payloads, attrs)
        return [self._value(o) for o in out] if entry.multi else self._value(out)

    def rebinding(self, obj: Any, payload: Value) -> None:
        """Note that an object is about to get a value; undone if that one's segment fails.

        The note stands in the segment that makes the value, which need not be the open one.
        """
        self.rebinding_all((obj,), (payload,))

    def rebinding_all(self, objects: Sequence[Any], payloads: Sequence[Value]) -> None:
        """Note it of many objects, most of which get values of one segment."""
        for _, payload in self.recorder.rebound(objects, payloads):
            # A lazy parameter holds no value yet.
            if payload.__class__ is Value and payload.buf.__class__ is Poison:
                raise payload.buf.error.with_traceback(None)

    # ---- captured steps -------------------------------------------------------------------------

    def in_step(self) -> bool:
        """Return whether this thread is inside of a step that is written down."""
        return self.recorder.tls.log is not None

    @contextmanager
    def step_log(self, op: str = "capture") -> Iterator[StepLog]:
        """Write down the plans that this thread runs inside; nothing may be read meanwhile.

        Raises:
            CaptureError: another one is open in this thread.
        """
        outer = self.recorder.tls.log
        if outer is not None:
            raise CaptureError(
                op, f"{outer.subject} runs no other inside", remedy="Take it out of the step."
            )
        recorder = self.recorder
        recorder.flush_open()
        log = StepLog(op)
        try:
            recorder.count(log, True)
            recorder.tls.log = log
            yield log
            recorder.flush_open()
            log.let_go()
        finally:
            recorder.tls.log = None
            recorder.count(log, False)

    def whole_step(self, *about: Any) -> WholeStep:
        """Return the plans of a captured step as one function; see `WholeStep`."""
        return WholeStep(self.recorder, *about)

    def settled(self, payload: Value) -> Any:
        """Return what a value stands for, running its segment if need be."""
        return self.recorder.buffer(payload)

    def standing_for(self, buf: Any) -> Value:
        """Return a value that stands for a payload of the inner backend."""
        return self._value(buf)

    def shield(self) -> Shield:
        """Return what holds Ctrl-C back while a step writes over its state."""
        return Shield()

    def same_objects(self, containers: Sequence[Any]) -> Callable[[], bool]:
        """Return the inner backend's answer."""
        return self.inner.same_objects(containers)

    def compiled(
        self, function: Callable[..., Any], restarts: bool = True, classes: Sequence[type] = ()
    ) -> Any:
        """Return the inner backend's answer."""
        scope = getattr(function, "__globals__", {})
        if "TAKE" in scope:  # made before this one was; what is compiled has it for good
            scope["TAKE"] = self.recorder.taken
        return self.inner.compiled(function, restarts, (*classes, *_SLOTTED))

    def uncompiled(self) -> str | None:
        """Return the inner backend's answer."""
        return self.inner.uncompiled()

    def _repeated(self, plan: Plan) -> None:
        recorder = self.recorder
        waiting = recorder.waiting
        if not waiting:
            recorder.worked = perf_counter()
        if native_mode() == "on":
            waiting.extend(recorder.natively(self.compiled))
        if self.repeating is not None:
            names = dict.fromkeys(step.entry.name for step in plan.steps)
            waiting.extend([partial(self.repeating, [name]) for name in names])

    def _not_in_a_step(self, op: str) -> None:
        log = self.recorder.tls.log
        if log is not None:
            raise CaptureError(
                op, f"{log.subject} reads nothing on the host",
                remedy="Return the tensor from it and read it outside; sizes that depend on "
                "data have a static form, as nonzero(size=, fill_value=).",
            )  # fmt: skip

    def report(self) -> dict[str, int]:
        """Return counts: plans made, flushes, operations waiting in this thread."""
        r = self.recorder
        return {"plans": r.plans_made, "flushes": r.flushes, "waiting": len(r.tls.h.seg.vals)}

    def recorded(self) -> tuple[Program, Runtime]:
        """Return what waits in this thread as a program, which travels, and its run-time values.

        Example:
            >>> x = burn.ones(2, device=burn.device("fusion-flex"))
            >>> x.device.flush()
            >>> y = x + x
            >>> program, _ = x.device.resource.backend.recorded()
            >>> [op.name for op in program.ops]
            ['add']
        """
        segment = self.recorder.tls.h.seg
        return Program.from_segment([v.op for v in segment.vals], segment.ext, segment.rt)

    # ---- fragments ----------------------------------------------------------------------------

    def _rule(self, entry: Entry, key: tuple[Any, ...]) -> Any:
        specs = specs_of(entry, key, self.dtypes)
        lead = next((k for k, i in enumerate(entry.inputs) if i.promoted), 0)
        if entry.inputs:
            first = specs[lead][0] if entry.inputs[lead].many else specs[lead]
            self.accepts(entry, first.dtype)
        out = entry.infer(*specs)
        if isinstance(out, Spec):
            shape = self._shapes[out.shape]
            # All that a large operation is recorded with: one look-up in the place of three.
            r = self.recorder
            return shape, out.dtype, r.classes[shape], r.sizes[shape] * out.dtype.bits
        # And their classes, which an operation with extents is recorded with.
        specs = [(self._shapes[s.shape], s.dtype) for s in out]
        return specs, tuple([self.recorder.classes[shape] for shape, _ in specs])

    def _out_dtype(self, entry: Entry, known: dict[DType, DType]) -> Callable[[DType], DType]:
        """Return what finds the output dtype of a map for an input dtype that is not known yet."""

        def find(d: DType) -> DType:
            self.accepts(entry, d)
            static = [None] * sum(a.kind != "scalar" for a in entry.attrs)
            out: Spec = entry.infer(*[Spec((), d) for _ in entry.inputs], *static)
            known[d] = out.dtype
            return out.dtype

        return find

    def fragments(self, entry: Entry) -> Fragments:
        """Return how an operation is recorded."""
        if entry.klass == "dynamic":
            return self._dynamic(entry)
        recorder = self.recorder
        constants: dict[str, Any] = {
            "TLS": recorder.tls, "CUT": recorder.cut, "TAKE": recorder.taken, "VALUE": Value,
        }  # fmt: skip
        lines, shapes = self._shape_lines(entry, constants)
        # Scalars are no part of what a rule sees, and a wrong one must not wait for the flush.
        lines += _scalar_checks(entry, constants)
        body = ["h_ = TLS.h; seg_ = h_.seg; vals_ = seg_.vals; k_ = len(vals_)"]
        if entry.klass in _CUT_BEFORE:
            constants["CONTENT"] = recorder.content_cut
            soft, cap = self._soft, self._cap
            most = self._budget
            body.append(
                f"if (k_ >= {soft} or seg_.made > {most}) and "
                f"(k_ >= {cap} or seg_.made > {2 * most} or CONTENT(vals_)): CUT(h_); continue"
            )
        else:
            body.append(f"if k_ >= {self._cap}: CUT(h_); continue")
        code = [str(entry.code)]
        for i in entry.inputs:
            v = f"{i.name}_v"
            if i.many:
                constants["TUPLE"] = tuple
                body.append(f"{i.name}_k = []")
                slot = _SLOT.format("e_")
                body.append(f"for e_ in {v}: {i.name}_k.append({slot})")
                code.append(f"TUPLE({i.name}_k)")
            elif i.optional:
                code.append(f"(None if {v} is None else {_SLOT.format(v)})")
            else:
                code.append(_SLOT.format(v))
        code += [a.name for a in entry.attrs if a.kind == "static"]
        runtime = [a.name for a in entry.attrs if a.kind != "static"]
        classed = any(a.kind == "extent" for a in entry.attrs) or entry.klass in (
            "opaque",
            "contract",
        )
        if classed:
            code.append("cl_")
        body.append(f"c_ = ({', '.join(code)},)")
        if entry.multi:
            body += _MANY
        else:
            body.append("r_ = VALUE(); r_.shape = sh_; r_.dtype = od_; r_.seg = seg_; r_.op = c_")
            body.append("r_.slot = k_")
            if runtime:
                body.append(f"seg_.rt[k_] = ({', '.join(runtime)},)")
            body.append("vals_.append(r_)")
            if entry.klass in _COUNTED:
                body.append("seg_.made += n_")
        if entry.multi and runtime:
            body.insert(-1, f"seg_.rt[k_] = ({', '.join(runtime)},)")
        body.append("if h_.seg is seg_: break")
        lines += ["while True:", *(f"    {b}" for b in body)]
        return Fragments(lines, constants, shapes=shapes)

    def _shape_lines(self, entry: Entry, constants: dict[str, Any]) -> tuple[list[str], str | None]:
        """Return the lines that set shape and dtype, and the local with the inputs' shapes."""
        plain = all(not (i.many or i.optional) for i in entry.inputs)
        if entry.klass == "map" and plain and len(entry.inputs) in (1, 2) and not entry.multi:
            shaped = [a for a in entry.attrs if a.kind != "scalar"]
            if not shaped and (len(entry.inputs) == 1 or all(i.promoted for i in entry.inputs)):
                # Looked up even where the dtype stays: what is not there yet may be refused.
                known: dict[DType, DType] = {}
                constants["OUT"] = known
                constants["NEW_OUT"] = self._out_dtype(entry, known)
                x = entry.inputs[0].name
                # The dtype first: of two reasons to refuse, backends name that one.
                lines = ["try: od_ = OUT[d_]", "except KeyError: od_ = NEW_OUT(d_)"]
                lines.append(f"sh_ = {x}_v.shape; ss_ = None")
                if len(entry.inputs) == 2:
                    from burn_ir.rules.basic import broadcast_shapes

                    constants["BCAST"] = Memo(
                        lambda key: self._shapes[broadcast_shapes(entry.name, *key)]
                    )
                    y = entry.inputs[1].name
                    lines.append(
                        f"if sh_ is not {y}_v.shape: ss_ = sh_, {y}_v.shape; sh_ = BCAST[ss_]"
                    )
                return lines, "ss_"
        constants["INFER"] = self.infer(entry)
        constants["TUPLE"] = tuple
        target = "specs_, cl_" if entry.multi else "sh_, od_, cl_, n_"
        return infer_lines(entry, target), None

    def _dynamic(self, entry: Entry) -> Fragments:
        """Return fragments of an operation whose size depends on data: it flushes and runs."""
        return Fragments([self._run_line(entry)], {"RUN": self._runs(entry)})

    def fragments_at_once(self, entry: Entry) -> Fragments:
        """Return how an operation runs inside `no_fusion`; its rule speaks before anything runs."""
        if entry.klass == "dynamic":
            return self._dynamic(entry)
        tls, run = self.recorder.tls, self._runs(entry)

        def alone(*args: Any) -> Any:
            if tls.log is not None:
                raise CaptureError(
                    entry.name, f"{tls.log.subject} records all of its operations",
                    got="one inside no_fusion()", remedy="Take the block out of it.",
                )  # fmt: skip
            return run(*args)

        constants = {"RUN": alone, "INFER": self.infer(entry), "TUPLE": tuple}
        lines = [*infer_lines(entry, ""), *_scalar_checks(entry, constants)]
        return Fragments([*lines, self._run_line(entry)], constants)

    def scalar_at_once(self, value: Any, dtype: DType) -> Value:
        """Return a number that is no part of a program."""
        return self._value(self.inner.scalar(value, dtype))

    def _runs(self, entry: Entry) -> Callable[..., Any]:
        n = len(entry.inputs)
        return lambda *args: self.execute(entry, args[:n], args[n:])

    def _run_line(self, entry: Entry) -> str:
        args = [*payload_names(entry), *(a.name for a in entry.attrs)]
        return f"r_ = RUN({', '.join(args)})"


def _scalar_checks(entry: Entry, constants: dict[str, Any]) -> list[str]:
    """Return the lines that refuse wrong scalars."""
    scalars = [a.name for a in entry.attrs if a.kind == "scalar" and a.name != "key"]
    if scalars:
        constants |= {"CHECK": check_scalar, "MOST": 2**64 - 1, "LEAST": -(2**63)}
    # Native code calls nothing but for its value.
    odd = "{0}.__class__ is not FLOAT and ({0}.__class__ is not INT or {0} > MOST or {0} < LEAST)"
    return [f"if {odd.format(s)}: ok_ = CHECK({entry.name!r}, {s!r}, {s})" for s in scalars]


# Where a value stands among those of a segment; one from outside is taken in the first time.
_SLOT = "{0}.slot if {0}.seg is seg_ else seg_.slots.get({0}) or TAKE({0})"
# What an operation with several outputs records.
_MANY = (
    "r_ = []",
    "for sh_, od_ in specs_:",
    "    o_ = VALUE(); o_.shape = sh_; o_.dtype = od_; o_.seg = seg_",
    "    o_.slot = k_ + r_.__len__(); o_.op = (-1, r_.__len__()) if r_ else c_",
    "    r_.append(o_)",
    # At once: another thread may seal the segment between two of them. An assignment, since calls
    # that stand alone are not compiled.
    "all_ = vals_.extend(r_)",
)


def open_segment(backend: FusionBackend) -> Segment:
    """Return this thread's open segment, for tests and reports."""
    return backend.recorder.tls.h.seg
