"""A context: one resource seen with or without autodiff; the owner of generated functions.

`ctx.add(x, y)` works because the function of an entry is made at the first look-up, by an
`Operation` of the class, and kept as an attribute; later calls find it directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from burn_backend import (
    TENSOR_CLASS,
    Fragments,
    Memo,
    TensorBase,
    infer_lines,
    native_mode,
    number_of,
    plain_scalar,
)
from burn_dispatch import scopes
from burn_dispatch.generator import generate
from burn_dispatch.profiling import watched
from burn_dispatch.resource import Resource
from burn_dispatch.slow import weak_dtype
from burn_ir import CATALOG, Entry
from burn_std import AutodiffError, DeviceError, DType, UnsupportedOpError


class Context:
    """One set of generated functions.

    Attributes:
        resource: the computing resource.
        decorator: the autodiff decorator, or None.
        checkpointing: memory-bound outputs are recomputed in the backward.
        base: the context that tensors carry; differs from self for the variants of a scope.
        dtypes: payload dtype to DType.
        runs: operations run at once even behind a recorder.
        plain: functions by name; `asking` those that stand in their place while a scope is open.
        numbers: what generated functions make payloads of Python numbers with.
    """

    def __init__(
        self,
        resource: Resource,
        decorator: Any = None,
        checkpointing: bool = False,
        base: Context | None = None,
        scope: scopes.Scope | None = None,
    ) -> None:
        self.resource = resource
        self.decorator = decorator
        self.checkpointing = checkpointing
        self.base = base or self
        self.scope = scope
        self.runs = scope is not None and scope.no_fusion
        self.dtypes = resource.backend.dtypes
        self.is_autodiff = decorator is not None
        self.plain: dict[str, Callable[..., Any]] = {}
        self.asking: dict[str, Callable[..., Any]] = {}
        self.variants: dict[scopes.Scope, Context] = {}
        self.device: Any = None
        self.numbers: Callable[[Any, Any], Any] = self.scalar_payload
        if resource.backend.records and not self.runs:
            self.numbers = recorded_numbers(self)
            if native_mode() == "always":
                self.numbers = resource.backend.compiled(self.numbers, False)
        if base is None:
            scopes.watch(self)

    # ---- functions ----------------------------------------------------------------------------

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def first(self, name: str) -> Callable[..., Any]:
        """Return the function of an entry and keep it as an attribute, which is found from now on.

        Args:
            name: of the entry.
        """
        while True:
            asking = self.scope is None and scopes.scoped()
            function = self._scoped(name) if asking else self.function(name)
            # A scope may have opened or closed meanwhile, and its swap knows only what stands here.
            with scopes.LOCK:
                if asking == (self.scope is None and scopes.scoped()):
                    self.__dict__[name] = function
                    return function

    def function(self, name: str) -> Callable[..., Any]:
        """Return the plain function of an entry, generating it at first use."""
        made = self.plain.get(name)
        if made is None:
            entry = CATALOG[name]
            self.resource.used = True
            scope = self.scope
            if scope is not None and scope.watched:
                other = scope._replace(watched=False)
                owner = self.base if other.is_plain else self.base.variant(other)
                made = watched(self.resource, entry, owner.function(name))
            else:
                made = generate(self, entry)
                if name in self.resource.often or native_mode() == "always":
                    made = self.resource.backend.compiled(made)
                if scope is not None and scope.autocast is not None:
                    made = _autocast(self, entry, made)
            made = self.plain.setdefault(name, made)
        return made

    def natively(self, names: Iterable[str]) -> None:
        """Put native code in the place of those functions that were made."""
        native = self.resource.backend.compiled
        if self.decorator is not None and hasattr(self.decorator, "natively"):
            self.decorator.natively(native, names)
        if self.numbers.__class__ is FunctionType:
            self.numbers = native(self.numbers, False)
        for name in names:
            plain = self.plain.get(name)
            if plain is None or plain.__class__ is not FunctionType:
                continue
            plain.__globals__["SCALAR"] = self.numbers  # what is compiled has it for good
            made = native(plain)
            # Where a scope is open, another function stands among the attributes.
            with scopes.LOCK:
                self.plain[name] = made
                if self.__dict__.get(name) is plain:
                    self.__dict__[name] = made

    def _scoped(self, name: str) -> Callable[..., Any]:
        """Return the function that asks for the scope and calls the one of the right set."""
        made = self.asking.get(name)
        if made is not None:
            return made
        current = scopes.current

        def scoped(*args: Any) -> Any:
            scope = current()
            if scope.is_plain:
                return self.function(name)(*args)
            return getattr(self.variant(scope), name)(*args)

        return self.asking.setdefault(name, scoped)

    def variant(self, scope: scopes.Scope) -> Context:
        """Return the function set of a scope; its results carry this context."""
        found = self.variants.get(scope)
        if found is None:
            made = Context(
                self.resource,
                None if scope.no_grad else self.decorator,
                self.checkpointing,
                self,
                scope,
            )
            made.device = self.device
            found = self.variants.setdefault(scope, made)
        return found

    def swap(self, scoped: bool) -> None:
        """Put scope-asking functions in place of the plain ones, or the plain ones back."""
        here = self.__dict__
        if scoped:
            for name in self.plain.keys() - self.asking.keys():
                self._scoped(name)
            here.update(self.asking)
        else:
            here.update(self.plain)
            for name in self.asking.keys() - self.plain.keys():
                here.pop(name, None)  # made at its first plain call

    def fragments(self, entry: Entry) -> Fragments:
        """Return the composed fragments of the layers for an entry."""
        backend = self.resource.backend
        if entry.name not in backend.table:
            if entry.decompose is None:
                raise UnsupportedOpError(
                    entry.name,
                    f"{self.resource.name} has neither the operation nor a decomposition",
                    remedy="Move the tensors to another device with .to_device(device).",
                )
            inner = decomposed(self, entry)
        else:
            inner = backend.fragments_at_once(entry) if self.runs else backend.fragments(entry)
        if self.decorator is None:
            return inner
        fragments: Fragments = self.decorator.fragments(entry, inner, self)
        return fragments

    # ---- what is not an operation -------------------------------------------------------------

    @property
    def name(self) -> str:
        """How the composition prints, `autodiff<fusion<flex>>`."""
        return f"autodiff<{self.resource.chain}>" if self.is_autodiff else self.resource.chain

    @property
    def default_float(self) -> DType:
        """The dtype of Python floats here."""
        return self.resource.default_float

    @property
    def default_int(self) -> DType:
        """The dtype of Python ints here."""
        return self.resource.default_int

    def next_key(self) -> tuple[int, int]:
        """Return (seed, counter) for one random operation of this thread and advance."""
        return self.resource.next_key()

    def make(self, payload: Any, node: Any = None) -> TensorBase:
        """Return a tensor around a payload."""
        t = object.__new__(TENSOR_CLASS.cls)
        t.b = self.base
        t.v = payload
        t.node = node
        return t

    def scalar(self, value: bool | int | float, dtype: DType) -> TensorBase:
        """Return a rank-0 tensor."""
        backend = self.resource.backend
        make = backend.scalar_at_once if self.runs else backend.scalar
        if value.__class__ is not float or dtype.is_quantized:
            value = number_of(value, dtype)
        t = object.__new__(TENSOR_CLASS.cls)
        t.b, t.v, t.node = self.base, make(value, dtype), None
        return t

    def at_once(self, name: str, *attrs: Any) -> TensorBase:
        """Return the result of a creating operation, run at once even behind a recorder.

        State made in the first step of a loop must not make that step another program.
        """
        return self.make(self.resource.backend.execute(CATALOG[name], (), attrs))

    def scalar_payload(self, key: Any, value: Any) -> Any:
        """Return the payload of a Python scalar that meets a tensor of payload dtype `key`.

        None means that promotion must decide.
        """
        kind = value.__class__
        if self.runs:
            return self._scalar_at_once(key, value)
        try:
            found = self.resource.scalars.get((key, value, kind))
        except TypeError:  # unhashable, so no scalar at all
            return None
        if found is not None:
            return found
        dtype = self.resource.weak.get((key, kind))
        if dtype is not None:
            return self.resource.scalar_payload(key, value, value, dtype)
        number = plain_scalar(value)
        if number is None:
            return None
        dtype = self.dtypes[key]
        if dtype.is_quantized or weak_dtype(number, dtype, self.default_float) is not dtype:
            return None
        if kind is number.__class__:
            self.resource.weak[key, kind] = dtype
        return self.resource.scalar_payload(key, value, number, dtype)

    def _scalar_at_once(self, key: Any, value: Any) -> Any:
        number, dtype = plain_scalar(value), self.dtypes[key]
        if number is None or dtype.is_quantized:
            return None
        if weak_dtype(number, dtype, self.default_float) is not dtype:
            return None
        return self.resource.backend.scalar_at_once(number_of(number, dtype), dtype)

    def tensor_from_numpy(self, array: Any, copy: bool = True) -> TensorBase:
        """Return a tensor of a numpy array; without a copy the array must not change any more."""
        self.resource.used = True
        return self.make(self.resource.backend.from_numpy(array, copy))

    def to_numpy(self, x: TensorBase) -> Any:
        """Return a read-only numpy array of a tensor."""
        return self.resource.backend.to_numpy(x.v)

    def join(self, op: str, other: Context) -> Context:
        """Return the context in which tensors of this and another context of the resource meet."""
        if not self.is_autodiff:
            return other
        if not other.is_autodiff or other is self:
            return self
        raise DeviceError(
            op, "the tensors' gradient-checkpointing strategies differ",
            got=f"{self.device} and {other.device}",
            remedy="Use one device for all of them.",
        )  # fmt: skip

    def need_autodiff(self, op: str) -> Any:
        """Return the autodiff decorator or say why there is none."""
        if self.decorator is None:
            raise AutodiffError(
                op, "the tensor is not on an autodiff device", got=str(self.device),
                remedy="Make it on device.autodiff().",
            )  # fmt: skip
        return self.decorator

    def __repr__(self) -> str:
        return f"<context {self.name}>"


def recorded_numbers(context: Context) -> Callable[[Any, Any], Any]:
    """Return what does as `scalar_payload` where a backend records, in less time.

    Args:
        context: whose backend keeps no payloads of numbers.
    """
    weak, backend, slow = context.resource.weak, context.resource.backend, context.scalar_payload
    most, least = 2**63, -(2**63)

    def numbers(key: Any, value: Any) -> Any:
        dtype = weak.get((key, value.__class__))
        if dtype is None or (value.__class__ is int and (value >= most or value < least)):
            return slow(key, value)
        return backend.scalar(value, dtype)

    return numbers


class Operation:
    """Stands on the class of contexts under the name of an entry, for those without its function.

    A `__getattr__` would have Python look up every function the long way, at every call.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, context: Context | None, cls: type) -> Any:
        """Return the function of a context, made at this first look."""
        return self if context is None else context.first(self._name)


def _followed(entry: Entry) -> None:
    # What a context is and does beside its operations keeps its name.
    if getattr(Context, entry.name, None).__class__ in (type(None), Operation):
        setattr(Context, entry.name, Operation(entry.name))


CATALOG.follow(_followed)


def decomposed(context: Context, entry: Entry) -> Fragments:
    """Return fragments that run an entry's decomposition on the plain context."""
    plain = context.resource.plain_context()
    # The whole was cast as its column says; to cast its parts again would undo that.
    ops = plain
    if context.scope is not None:
        ops = plain.variant(context.scope._replace(autocast=None))
    decompose = entry.decompose
    names = ", ".join(_wrapped(i) for i in entry.inputs)
    attrs = ", ".join(a.name for a in entry.attrs)
    call = f"DECOMPOSE({', '.join(p for p in ('PLAIN', names, attrs) if p)})"
    # The entry's own dtype and shape rules speak first: its parts would name themselves.
    backend = context.resource.backend
    lines = ["ACCEPTED[d_]"]
    constants: dict[str, Any] = {"DECOMPOSE": decompose, "PLAIN": ops, "MAKE": plain.make}
    constants["ACCEPTED"] = Memo(lambda key: backend.accepts(entry, key))
    if entry.klass != "dynamic":
        constants |= {"INFER": backend.infer(entry), "TUPLE": tuple}
        lines += infer_lines(entry, "")
    lines += [f"r_ = {call}", "r_ = [e_.v for e_ in r_]" if entry.multi else "r_ = r_.v"]
    return Fragments(lines, constants)


def _wrapped(i: Any) -> str:
    v = f"{i.name}_v"
    if i.many:
        return f"[MAKE(e_) for e_ in {v}]"
    return f"(None if {v} is None else MAKE({v}))" if i.optional else f"MAKE({v})"


def _autocast(context: Context, entry: Entry, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its float inputs cast as the catalogue's column says."""
    if entry.autocast == "follow" or context.scope is None or context.scope.autocast is None:
        return plain
    lower = context.scope.autocast
    from burn_std.dtypes import float32, float64

    target = lower if entry.autocast == "lower" else float32
    count = len(entry.inputs)
    if entry.autocast == "wide":
        return _wide(entry, plain)

    def cast(x: Any) -> Any:
        if isinstance(x, TensorBase):
            dt = x.dtype
            if dt.is_float and dt is not target and dt is not float64:
                return x.b.cast(x, target)
            return x
        return [cast(e) for e in x] if isinstance(x, (list, tuple)) else x

    def autocast(*args: Any) -> Any:
        return plain(*(cast(a) for a in args[:count]), *args[count:])

    return autocast


def _wide(entry: Entry, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with float32 as its `dtype` where its first input is a half.

    The other inputs are cast; the first is large, and the kernel widens it as it reads it.
    """
    from burn_std.dtypes import float32

    count = len(entry.inputs)
    place = count + [a.name for a in entry.attrs].index("dtype")

    def cast(x: Any) -> Any:
        half = isinstance(x, TensorBase) and x.dtype.is_float and x.dtype.bits == 16
        return x.b.cast(x, float32) if half else x

    def wide(first: Any, *args: Any) -> Any:
        dt = first.dtype
        given = [first, *map(cast, args[: count - 1]), *args[count - 1 :]]
        if dt.is_float and dt.bits == 16 and given[place] is None:
            given[place] = float32
        return plain(*given)

    return wide
