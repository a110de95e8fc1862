"""The contract of a backend: a kernel table, dtypes, host transfer, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from burn_backend.fragments import Again, Fragments, Memo, infer_lines, payload_names
from burn_backend.fusing import Fuser
from burn_backend.kernel import Kernel
from burn_backend.watching import Watcher
from burn_ir import CATALOG, FLAGS, Entry, Spec
from burn_std import BackendContractError, CaptureError, DType, DTypeError

API_VERSION = 1


class BackendPlugin(Protocol):
    """What an entry point of `burn.backends` names.

    One that has GPUs among other devices also gives `gpu_count()` and lists them first; the
    default device prefers them. One that needs an optional library gives `lacks()`, the library's
    name where it is not installed. One that wants decorators in front of it names them in `behind`,
    outermost first, as `("fusion",)`: its plain name is then the decorated device as far as those
    are installed, and `eager-` before the name the bare one.

    Attributes:
        name: what the user types.
        api_version: `burn_backend.API_VERSION` it was written for.
        about: one line for `python -m burn backends`.
    """

    name: str
    api_version: int
    about: str

    def device_count(self) -> int:
        """Return how many devices there are now; 0 when the hardware is missing."""
        ...

    def create(self, index: int) -> Backend:
        """Return the backend of one device; heavy imports belong here."""
        ...


class _DTypes(dict[Any, DType]):
    """Payload dtype to DType; a quantised scheme stands for itself."""

    __slots__ = ()

    def __missing__(self, key: Any) -> DType:
        if isinstance(key, DType):
            return key
        raise KeyError(key)


class _Native(dict[DType, Any]):
    """DType to payload dtype; what the device lacks is an error that says so."""

    __slots__ = ("_backend",)

    def __init__(self, backend: Backend, native: Mapping[DType, Any]) -> None:
        super().__init__(native)
        self._backend = backend

    def __missing__(self, key: DType) -> Any:
        if key.is_quantized and self._backend.supports_dtype(key):
            return key
        raise DTypeError(self._backend.name, "the device does not support this dtype", got=key)


class Runner(Protocol):
    """Per-thread caller of kernels."""

    run: Callable[..., Any]


class Backend:
    """Base of backends that compute at once: give a table and six small methods.

    Attributes:
        name: prints in devices, `flex`.
        table: kernels by entry name.
        dtypes: payload dtype to DType.
        native: DType to payload dtype; a missing one is unsupported.
        runner: object with a per-thread attribute `run(kernel, *args)`, or None.
        ready: the class of finished payloads; anything else goes through `wrap`.
        keeps_scalars: payloads of Python scalars may be kept and used again.
        fuser: what makes one kernel of several operations, or None.
        records: operations are recorded and run later, as programs that should be equal.
        clocked: while it is watched, its kernels have times of their own.
        repeating: what a backend that records tells the names of operations that come again and
            again; None where nobody listens.
    """

    name: str = ""
    runner: Any = None
    ready: Any = None
    keeps_scalars = True
    fuser: Fuser | None = None
    records = False
    clocked = False
    repeating: Callable[[Sequence[str]], None] | None = None

    def __init__(self, table: Mapping[str, Kernel], native: Mapping[DType, Any]) -> None:
        self.table = table
        self.native: dict[DType, Any] = _Native(self, native)
        self.dtypes: dict[Any, DType] = _DTypes({n: d for d, n in native.items()})
        self._check()
        self._kernels: dict[str, Memo] = {}
        self._infer: dict[str, Memo] = {}

    def _check(self) -> None:
        missing = [
            e.name
            for e in CATALOG
            if e.grade == "core" and "::" not in e.name and e.name not in self.table
        ]
        unknown = [n for n in self.table if n not in CATALOG and "::" not in n]
        if missing or unknown:
            from difflib import get_close_matches

            near = {n: get_close_matches(n, [e.name for e in CATALOG], 1) for n in unknown}
            raise BackendContractError(
                self.name, "a table has every core primitive and only entries of the catalogue",
                got=f"missing {missing}, unknown {near}",
            )  # fmt: skip

    # ---- what a backend writes ------------------------------------------------------------

    def from_numpy(self, array: Any, copy: bool) -> Any:
        """Return the payload of a numpy array of a supported dtype; `copy` False may share.

        A backend with quantised tensors takes a `QuantizedArray` too.
        """
        raise BackendContractError(self.name, "from_numpy is part of the contract")

    def to_numpy(self, payload: Any) -> Any:
        """Return a read-only numpy array of the payload, waiting for it if need be.

        Of a quantised payload it is a `QuantizedArray`.
        """
        raise BackendContractError(self.name, "to_numpy is part of the contract")

    def read_async(self, payloads: Sequence[Any]) -> Callable[[], list[Any]]:
        """Start reading payloads and return the function that waits for their arrays.

        A device that can copy behind the program's back starts all copies here, so that they are
        waited for once; this one reads them when asked.
        """
        return lambda: [self.to_numpy(payload) for payload in payloads]

    def scalar(self, value: Any, dtype: DType) -> Any:
        """Return a rank-0 payload; integers wrap to the dtype."""
        raise BackendContractError(self.name, "scalar is part of the contract")

    def wrap(self, result: Any) -> Any:
        """Return a kernel's odd result (a numpy scalar, say) as a payload."""
        return result

    def sync(self) -> None:
        """Wait for queued work; raises ExecutionError for what failed."""

    def flush(self) -> None:
        """Hand recorded or queued work to the device without waiting."""

    def memory_cleanup(self) -> None:
        """Give cached memory back."""

    def memory_report(self) -> dict[str, int]:
        """Return facts on memory in bytes, as far as the backend knows them."""
        return {}

    def memory_of(self, payload: Any) -> list[tuple[Any, int]]:
        """Return the owners of a payload's memory, each with its size in bytes.

        Payloads that share memory have one owner, an object that can be referenced weakly.
        """
        return []

    def memory_held(self, known: Sequence[Any]) -> list[tuple[str, int]]:
        """Return what else is in use, by the operation that took it, and its bytes.

        Args:
            known: owners that `memory_of` returned.
        """
        return []

    def watched(self, watcher: Watcher) -> AbstractContextManager[Any]:
        """Tell a watcher of plans, flushes and kernels inside the block."""
        return nullcontext()

    def allow_tf32(self) -> None:
        """Hear that products of float32 may read their factors as tf32; before any tensor.

        It is a permission: who has no tensor cores, or gains nothing, goes on in float32.
        """

    def supports_dtype(self, dtype: DType) -> bool:
        """Return whether tensors of the dtype can be made and computed with."""
        return dtype in self.native

    def rebinding(self, obj: Any, payload: Any) -> None:
        """Hear that a tensor object is about to get another payload (lazy backends note it)."""

    def rebinding_all(self, objects: Sequence[Any], payloads: Sequence[Any]) -> None:
        """Hear it of many at once."""
        for obj, payload in zip(objects, payloads, strict=True):
            self.rebinding(obj, payload)

    def step_log(self, op: str = "capture") -> AbstractContextManager[Any]:
        """Write down what this thread does inside, so that it can be done again.

        Args:
            op: who asks, for messages: `capture` or `explain`.

        Raises:
            CaptureError: the backend computes at once and keeps no programs.
        """
        raise CaptureError(
            op, "the device records nothing", got=self.name,
            # Where the plain name is the recorded device, this means the same one.
            remedy=f"Put model and tensors on burn.device('fusion-{self.name}').",
        )  # fmt: skip

    def in_step(self) -> bool:
        """Return whether what this thread does is being written down by `step_log`."""
        return False

    def settled(self, payload: Any) -> Any:
        """Return what plans read in the place of a payload (lazy backends compute it)."""
        return payload

    def standing_for(self, buf: Any) -> Any:
        """Return the payload that stands for what a plan made."""
        return buf

    def same_objects(self, containers: Sequence[dict[Any, Any] | list[Any]]) -> Callable[[], bool]:
        """Return what tells whether dicts and lists still hold the same objects, in order.

        A captured step asks it at every call; a backend with native code is sooner done.

        Args:
            containers: they and what they hold now must live as long as the function.
        """

        def looked() -> list[list[int]]:
            return [[*map(id, h.values() if h.__class__ is dict else h)] for h in containers]

        before = looked()
        return lambda: looked() == before

    def compiled(
        self, function: Callable[..., Any], restarts: bool = True, classes: Sequence[type] = ()
    ) -> Any:
        """Return a function in native code where there is some, else itself.

        It does what the Python function does; what that does off its straight path is left to it.

        Args:
            function: of plain Python, with plain parameters.
            restarts: it may begin again at any place. Else errors are raised where they arise.
            classes: those whose slots it reads and writes, beside the ones that it names.
        """
        return function

    def uncompiled(self) -> str | None:
        """Return why `compiled` gives functions back as they are, None where it compiles them."""
        return "the backend makes no native code of functions"

    def owned(self, holder: Any) -> bool:
        """Return whether `holder.buf` is memory that only this holder can see."""
        return False

    def bound(self, run: Callable[..., Any], scalars: Sequence[tuple[int, int]]) -> Any:
        """Return what stands in the place of a plan's function.

        Where it has the attribute `overwrites`, it takes a third argument, a `Free` or None; while
        that attribute is true it may write over the inputs that are free.

        Args:
            run: `(payloads, run-time values by slot) -> payloads`, over this backend's kernels.
            scalars: slot and position of the run-time values that are numbers; all others are
                extents, so that for equal ones and equal shapes a run does the same.
        """
        return run

    def bound_step(
        self, run: Callable[..., Any], scalars: Sequence[tuple[int, int]], rematerialise: bool
    ) -> Any:
        """Return what stands in the place of a whole captured step's function; see `bound`.

        Args:
            run: `(payloads, run-time values by slot) -> payloads`.
            scalars: slot and position of the run-time values that change; all others stay.
            rematerialise: compute cheap values again where that makes the peak of memory smaller.
        """
        return run

    # ---- what the framework reads ---------------------------------------------------------

    def kernels(self, entry: Entry) -> Memo:
        """Return the look-up from payload dtype to kernel function of an entry."""
        memo = self._kernels.get(entry.name)
        if memo is None:
            kernel = self.table[entry.name]

            def make(key: Any) -> Callable[..., Any]:
                self.accepts(entry, key)
                return kernel.make(key)

            memo = self._kernels.setdefault(entry.name, Memo(make))
        return memo

    def accepts(self, entry: Entry, key: Any) -> None:
        """Check the payload dtype that leads a call.

        Raises:
            Again: integers must be lifted first, or a quantised input dequantised.
            DTypeError: the entry does not take the dtype.
        """
        if key is not None:
            dtype = self.dtypes[key]
            closed = dtype.is_quantized and entry.accepts != "quant"
            if closed or (entry.lift and not dtype.is_float):
                raise Again
        check_accepts(entry, key, self.dtypes)

    def infer(self, entry: Entry) -> Memo:
        """Return the remembered shape rule: key of `infer_lines` to (shape, native dtype)s."""
        memo = self._infer.get(entry.name)
        if memo is None:
            memo = self._infer.setdefault(entry.name, Memo(lambda key: self._rule(entry, key)))
        return memo

    def _rule(self, entry: Entry, key: tuple[Any, ...]) -> Any:
        specs = specs_of(entry, key, self.dtypes)
        if entry.lift and not entry.inputs[0].many and not specs[0].dtype.is_float:
            raise Again
        out = entry.infer(*specs)
        if isinstance(out, Spec):
            return out.shape, self.native[out.dtype]
        return [(s.shape, self.native[s.dtype]) for s in out]

    def execute(self, entry: Entry, inputs: Sequence[Any], attrs: Sequence[Any]) -> Any:
        """Run one operation at once, also behind a recorder: payloads in, payload(s) out."""
        lead = next((k for k, i in enumerate(entry.inputs) if i.promoted), 0)
        key = None
        if inputs:
            first = inputs[lead]
            key = (first[0] if entry.inputs[lead].many else first).dtype
        call = (self.kernels(entry)[key], *inputs, *attrs)
        out = call[0](*call[1:]) if self.runner is None else self.runner.run(*call)
        if entry.multi:
            return [e if e.__class__ is self.ready else self.wrap(e) for e in out]
        return out if out.__class__ is self.ready else self.wrap(out)

    def fragments_at_once(self, entry: Entry) -> Fragments:
        """Return how the entry's result is produced where nothing is recorded (`no_fusion`)."""
        return self.fragments(entry)

    def scalar_at_once(self, value: Any, dtype: DType) -> Any:
        """Return the payload of `scalar` where nothing is recorded."""
        return self.scalar(value, dtype)

    def fragments(self, entry: Entry) -> Fragments:
        """Return how this backend produces the entry's result."""
        kernel = self.table[entry.name]
        constants: dict[str, Any] = {"KERNELS": self.kernels(entry)}
        function = "KERNELS[d_]"
        if kernel.fixed is not None and entry.accepts in ("any", "all") and not entry.lift:
            # One function for every dtype: no look-up; a dtype it refuses is explained afterwards.
            constants["KERNEL"] = kernel.fixed
            function = "KERNEL"
        args = payload_names(entry) + [a.name for a in entry.attrs]
        lines = []
        # The size of a dynamic result depends on data: its rule serves recorders, to refuse it.
        if not kernel.checked and entry.klass != "dynamic":
            constants["INFER"] = self.infer(entry)
            constants["TUPLE"] = tuple
            lines += infer_lines(entry, "")
        elif kernel.checked:
            # A kernel would take anything for a flag; the rule, which a failure asks, does not.
            flags = [a.name for a in entry.attrs if a.name in FLAGS]
            lines += [f"if {f} is not True and {f} is not False: raise TypeError" for f in flags]
        if kernel.quiet or self.runner is None:
            lines.append(f"r_ = {function}({', '.join(args)})")
        else:
            constants["RUNNER"] = self.runner
            lines.append(f"r_ = RUNNER.run({', '.join([function, *args])})")
        # A view of a payload is a payload; other kernels may hand out odd results.
        if self.ready is not None and entry.klass != "view":
            constants["READY"] = self.ready
            constants["WRAP"] = self.wrap
            if entry.multi:
                lines.append("r_ = [e_ if e_.__class__ is READY else WRAP(e_) for e_ in r_]")
            else:
                lines.append("if r_.__class__ is not READY: r_ = WRAP(r_)")
        return Fragments(lines, constants)


def check_accepts(entry: Entry, key: Any, dtypes: Mapping[Any, DType]) -> None:
    """Raise DTypeError when the entry does not take the payload dtype."""
    from burn_ir.rules.basic import check_dtype

    if key is not None:
        check_dtype(entry.name, entry.accepts, Spec((), dtypes[key]))


def specs_of(entry: Entry, key: tuple[Any, ...], dtypes: Mapping[Any, DType]) -> list[Any]:
    """Return the arguments of the entry's rule from a key of `infer_lines`."""
    shared, parts = None, [*key]
    if any(i.promoted for i in entry.inputs):
        shared, *parts = parts

    def spec(i: Any, part: Any) -> Spec:
        return Spec(part, dtypes[shared]) if i.promoted else Spec(part[0], dtypes[part[1]])

    out: list[Any] = []
    for i, part in zip(entry.inputs, parts, strict=False):
        if part is None:
            out.append(None)
        elif i.many:
            out.append(tuple(spec(i, p) for p in part))
        else:
            out.append(spec(i, part))
    return out + parts[len(entry.inputs) :]
