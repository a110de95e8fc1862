"""Module: plain Python attributes that hold parameters, buffers and other modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from burn_core.behaviour import TRAINING, VALID, decides
from burn_core.calls import NOTHING, OTHERWISE, explained, given, is_explained
from burn_core.constructor import RECORDED, ModuleConfig, register_module
from burn_core.parameter import Buffer, Parameter
from burn_core.selection import Selector, group_of
from burn_core.state import LoadedKeys, ModuleRecord, load_state_dict, state_dict
from burn_core.tree import (
    REPARAMETERIZED,
    aliases,
    computes,
    items_of,
    leaves_of,
    rebuilt,
    unique,
    walk,
)
from burn_dispatch import Device, device as named_device, to_device
from burn_std import (
    Absent,
    ArgumentError,
    BurnError,
    ClosedMeta,
    DType,
    DTypeError,
    nearest,
    need_dict,
    present,
    unknown_keyword,
)
from burn_tensor import Tensor
from burn_tensor.guard import explained_call

if TYPE_CHECKING:
    from burn_core.summary import Summary

M = TypeVar("M", bound="Module")

# In the `__dict__` of what `valid()` made: the module it was made from.
SOURCE = "__source__"


class ModuleMeta(ClosedMeta):
    """Records the arguments of the outermost constructor call; `__init__` is never wrapped."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        need_dict(cls, "What a module holds is found in its __dict__.")
        register_module(cls)

    def __call__(cls: type[M], *args: Any, **kwargs: Any) -> M:  # type: ignore[misc]
        """Make the module and remember how."""
        try:
            made: M = super().__call__(*args, **kwargs)  # type: ignore[misc]
        except Exception as cause:
            init: Any = cls.__init__
            if is_explained(cls):
                raise explained_call(cause, init, (None, *args), kwargs, cls.__name__)  # noqa: B904 - it decides
            unknown = isinstance(cause, TypeError)
            error = unknown_keyword(cls.__name__, init, kwargs, {}) if unknown else None
            if error is None:
                raise
            raise error from None
        made.__dict__[RECORDED] = ModuleConfig.record(cls, args, kwargs)
        return made

    def __dir__(cls) -> list[str]:
        return present(cls, type.__dir__(cls))


class Module(metaclass=ModuleMeta):
    """Base of everything with parameters: assign attributes in `__init__`, write `forward`.

    Parameters, buffers, tensors and modules are found in attributes, lists, tuples and dicts,
    nested. A parameter that stands in several places is tied: it counts and is saved once.

    Example:
        >>> class Scale(burn.nn.Module):
        ...     def __init__(self):
        ...         self.factor = burn.nn.Parameter(burn.ones(1))
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> Scale()(burn.tensor([2.0])).tolist()
        [2.0]
        >>> [name for name, _ in Scale().named_parameters()]
        ['factor']
    """

    __burn_module__ = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute; subclasses write it.

        Raises:
            BurnError: the subclass has none.
        """
        raise BurnError(type(self).__name__, "a module needs a forward method")

    def __call__(self, first: Any = NOTHING, /, *more: Any, **named: Any) -> Any:
        """Run `forward`; the outermost call decides on training behaviour for all inside.

        A module made by `valid()` shows inference behaviour inside a training one too.
        """
        running = _running()
        alone = not (more or named or first is NOTHING)  # its call is what Python is quick at
        try:
            if running is False or (running and VALID not in self.__dict__):
                if alone:
                    return self.forward(first)
                return self.forward(*given(first, more), **named)
            trains = running is None and VALID not in self.__dict__
            token = TRAINING.set(trains and decides(self, given(first, more), named))
            try:
                if alone:
                    return self.forward(first)
                return self.forward(*given(first, more), **named)
            finally:
                TRAINING.reset(token)
        except Exception as cause:
            found = explained(self, cause, given(first, more), named)
            if found is None:
                raise
            raise found from cause

    # ---- attributes ---------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        old = self.__dict__.get(name)
        if (
            old.__class__ is Parameter
            and isinstance(value, Tensor)
            and not isinstance(value, Parameter)
        ):
            raise DTypeError(
                f"{type(self).__name__}.{name}", "a parameter is replaced by a parameter only",
                got="a plain tensor",
                remedy=f"Rebind its value with {name}.set(tensor), or assign nn.Parameter(tensor).",
            )  # fmt: skip
        if name in self.__dict__.get(REPARAMETERIZED, ()):
            raise BurnError(
                f"{type(self).__name__}.{name}", "an adapted weight is not assigned",
                remedy="Merge the adapters first, or set the base.",
            )  # fmt: skip
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return present(type(self), [*object.__dir__(self), *self.__dict__.get(REPARAMETERIZED, ())])

    # ---- what it holds ------------------------------------------------------------------------

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter), each parameter once, in the order of definition."""
        yield from unique(self, ((n, p) for n, _, _, p in walk(self) if isinstance(p, Parameter)))

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters, each once."""
        if type(self).named_parameters is Module.named_parameters:
            yield from leaves_of(self, Parameter)
        else:
            for _, p in self.named_parameters():
                yield p

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """Yield (path, buffer), each buffer once."""
        yield from unique(self, ((n, b) for n, _, _, b in walk(self) if isinstance(b, Buffer)))

    def buffers(self) -> Iterator[Buffer]:
        """Yield the buffers, each once."""
        yield from (b for _, _, _, b in walk(self) if isinstance(b, Buffer))

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Yield (path, module), this one first with an empty path, each module once."""
        yield "", self
        yield from unique(self, ((n, m) for n, _, _, m in walk(self) if isinstance(m, Module)))

    def modules(self) -> Iterator[Module]:
        """Yield this module and those below it, each once."""
        yield self
        for _, _, _, m in walk(self):
            if isinstance(m, Module):
                yield m

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) of the modules that attributes hold directly."""
        for name, child in items_of(self):
            if isinstance(child, Module):
                yield name, child

    def children(self) -> Iterator[Module]:
        """Yield the modules that attributes hold directly."""
        for _, m in self.named_children():
            yield m

    def get_submodule(self, path: str) -> Module:
        """Return the module at a path.

        Args:
            path: as in `named_modules`.

        Raises:
            ArgumentError: there is none.
        """
        for name, m in self.named_modules():
            if name == path:
                return m
        raise ArgumentError("get_submodule", "no module stands at this path", got=path)

    def get_parameter(self, path: str) -> Parameter:
        """Return the parameter at a path.

        Args:
            path: as in `named_parameters`.

        Raises:
            ArgumentError: there is none.
        """
        for name, p in self.named_parameters():
            if name == path:
                return p
        raise ArgumentError("get_parameter", "no parameter stands at this path", got=path)

    def num_params(self, trainable: bool = False) -> int:
        """Return how many numbers the parameters hold; tied ones count once.

        Args:
            trainable: leave out frozen ones.

        Raises:
            ShapeError: a lazy parameter has no value yet.
        """
        return sum(p.numel() for p in self.parameters() if p.requires_grad or not trainable)

    def tied_paths(self) -> dict[str, str]:
        """Return {other path: first path} of tensors that stand in several places.

        State dicts hold them under the first path; files keep this as their alias data.

        Example:
            >>> layer = burn.nn.Linear(1, 1)
            >>> burn.nn.Sequential(layer, burn.nn.ReLU(), layer).tied_paths()
            {'2.weight': '0.weight', '2.bias': '0.bias'}
        """
        return aliases(self)

    def visit(self, fn: Callable[[str, Parameter], None]) -> None:
        """Call a function for each parameter.

        Args:
            fn: takes (path, parameter).
        """
        for path, p in self.named_parameters():
            fn(path, p)

    def map(self, fn: Callable[[str, Parameter], Tensor]) -> Self:
        """Rebind each parameter to what a function returns; return this module.

        Args:
            fn: takes (path, parameter) and returns a tensor of the same shape and dtype.
        """
        for path, p in list(self.named_parameters()):
            p.set(fn(path, p))
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function for every module below and then for this one; return this module.

        Args:
            fn: takes a module, and may rebind its parameters.
        """
        for m in reversed(list(self.modules())):
            fn(m)
        return self

    def select(self, selector: Selector | None = None) -> list[tuple[str, Parameter]]:
        """Return (path, parameter) of the chosen parameters.

        Args:
            selector: a path or paths (`*` and `?` match), a compiled regular expression, a
                function of (path, parameter), a `ParamGroup`, or None for all.

        Example:
            >>> [path for path, _ in burn.nn.Linear(2, 1).select("weight")]
            ['weight']
        """
        group = group_of(selector)
        return [(n, p) for n, p in self.named_parameters() if group.matches(n, p)]

    # ---- devices and dtypes -------------------------------------------------------------------

    def devices(self) -> list[Device]:
        """Return the devices that parameters, buffers and tensors are on, each once."""
        out: list[Device] = []
        for _, _, _, leaf in walk(self):
            if isinstance(leaf, Tensor) and leaf.b.device not in out:
                out.append(leaf.b.device)
        return out

    def to_device(self, device: Device | str) -> Self:
        """Move everything to a device; parameters take its autodiff if it has it, else keep theirs.

        A `valid()` module gets values of its own instead of moving what it shares; then it is not
        live any more.

        Args:
            device: the new home, or its name.

        Raises:
            DTypeError: it is neither.
        """
        home = named_device(device) if isinstance(device, str) else device
        if not isinstance(home, Device):
            raise DTypeError("to_device", "needs a device or its name", got=type(device).__name__)
        if VALID in self.__dict__:
            home = home.without_autodiff()

        def fits(leaf: Any) -> bool:
            if leaf.b.resource is not home.resource:
                return False
            return isinstance(leaf, Buffer) or not home.is_autodiff() or leaf.b is home.context

        return self._convert(fits, lambda t: t.move(home), lambda t: to_device(t, home))

    def to_dtype(self, dtype: DType) -> Self:
        """Convert float parameters, buffers and tensors to a float dtype.

        Args:
            dtype: the new one.

        Raises:
            DTypeError: it is no float dtype.
        """
        if not getattr(dtype, "is_float", False):
            raise DTypeError("to_dtype", "a module's dtype is a float", got=dtype)

        def fits(leaf: Any) -> bool:
            return not leaf.dtype.is_float or leaf.dtype is dtype

        return self._convert(fits, lambda t: t.cast(dtype), lambda t: t.to(dtype))

    def to(self, *where: Device | DType | str) -> Self:
        """Move to devices and convert to dtypes, one after the other.

        Args:
            where: devices, or their names, and float dtypes.
        """
        for w in where:
            if isinstance(w, (Device, str)):
                self.to_device(w)
            else:
                self.to_dtype(w)
        return self

    def _convert(
        self, fits: Callable[[Any], bool], change: Callable[[Any], None], made: Callable[[Any], Any]
    ) -> Self:
        """Change parameters and buffers, and replace plain tensors, that do not fit yet.

        A module that shares its leaves gets own ones instead, wherever a leaf stands.
        """
        shared = VALID in self.__dict__
        replaced: dict[int, Any] = {}
        for _, _, _, leaf in walk(self):
            if not isinstance(leaf, Tensor) or fits(leaf):
                continue
            if not isinstance(leaf, (Parameter, Buffer)):
                replaced[id(leaf)] = made(leaf)
            elif shared:
                change(own := deepcopy(leaf))
                replaced[id(leaf)] = own
            else:
                change(leaf)
        if replaced:
            for m in list(self.modules()):
                _copy_attributes(m, m, lambda v: rebuilt(v, lambda t: replaced.get(id(t), t)))
        return self

    # ---- behaviour ----------------------------------------------------------------------------

    def valid(self, grad: bool = False) -> Self:
        """Return the module for inference: same values, live, without training behaviour.

        The result is made of new module objects of the same classes (no `__init__` runs) that
        share plain attributes and Buffers. Each Parameter appears as its twin: a tensor of the
        plain context that always shows the parameter's value. The structure is that of this call.

        Args:
            grad: keep autodiff and the parameters themselves, so that inputs and parameters still
                get gradients; only the behaviour changes (frozen batch-norm statistics).

        Example:
            >>> model = burn.nn.Dropout(0.5)
            >>> x = burn.ones(3, device=burn.Device.default().autodiff())
            >>> model.valid()(x).tolist()
            [1.0, 1.0, 1.0]
        """
        out: Self = _Inference(grad).copied(self)
        return out

    def train(self, mode: bool = True) -> Self:
        """Return the module that `valid` was called on, or this one: the reverse of `valid`.

        Args:
            mode: True; a module has no modes, so False is an error.

        Raises:
            BurnError: mode is False.
        """
        if not mode:
            raise BurnError(
                "train", "a module has no modes",
                remedy="Write infer = model.valid() and call infer(x).",
            )  # fmt: skip
        source: Self | None = self.__dict__.get(SOURCE)
        if source is not None or VALID not in self.__dict__:
            return source or self
        # A copy of a valid() module has no source: it is independent, and trains from here on.
        made = self.fork()
        for m in list(made.modules()):
            m.__dict__.pop(VALID, None)
        return made.unfreeze()

    def eval(self) -> NoReturn:
        """Raise: behaviour is not a mode of the object.

        Raises:
            BurnError: always; it names the remedy.
        """
        raise BurnError(
            "eval", "a module has no modes", remedy="Write infer = model.valid() and call infer(x)."
        )

    @property
    def training(self) -> bool:
        """Whether the running forward shows training behaviour."""
        return bool(TRAINING.get())

    def no_grad(self) -> Self:
        """Freeze every parameter; return this module."""
        return self.freeze()

    def freeze(self, selector: Selector | None = None) -> Self:
        """Freeze parameters: they get no gradient; return this module.

        Args:
            selector: which, as for `select`; None for all.

        Raises:
            ArgumentError: no parameter stands at or under a path.
        """
        self._named("freeze", selector)
        for _, p in self.select(selector):
            p.set_requires_grad(False)
        return self

    def unfreeze(self, selector: Selector | None = None) -> Self:
        """Undo `freeze`; return this module.

        Args:
            selector: which, as for `select`; None for all.

        Raises:
            ArgumentError: no parameter stands at or under a path.
        """
        self._named("unfreeze", selector)
        for _, p in self.select(selector):
            p.set_requires_grad(True)
        return self

    def _named(self, op: str, selector: Selector | None) -> None:
        """Refuse a path that names nothing: a slip of the pen would train what should be frozen."""
        if isinstance(selector, str) and selector and not self.select(selector):
            paths = [path for path, _ in self.named_modules()] + [p for p, _ in self.select()]
            raise ArgumentError(
                op, "no parameter stands at or under this path",
                got=repr(selector), remedy=nearest(selector, paths),
            )  # fmt: skip

    def fork(self, device: Device | str | None = None) -> Self:
        """Return an independent copy: same values, ids and flags, new tape identities.

        Args:
            device: where the copy goes; it stays where this is if None.
        """
        made = deepcopy(self)
        return made if device is None else made.to_device(device)

    def renew_ids(self) -> Self:
        """Give every parameter a new id, as copies inside one model need; return this module."""
        for p in self.parameters():
            p._id = None
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made: Self = object.__new__(type(self))
        memo[id(self)] = made
        _copy_attributes(self, made, lambda value: deepcopy(value, memo))
        # A copy of a valid() module stands alone: its twins became parameters of its own.
        made.__dict__.pop(SOURCE, None)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != SOURCE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        computes(type(self), state.get(REPARAMETERIZED, ()))

    # ---- state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Return parameters and persistent buffers by path: a snapshot, untouched by later steps.

        Tied tensors stand under their first path.
        """
        return state_dict(self)

    def load_state_dict(self, state: Mapping[str, Tensor], strict: bool = True) -> LoadedKeys:
        """Take values by path, in this module's dtypes and devices.

        A tied parameter may stand under any of its paths.

        Args:
            state: tensors by path.
            strict: names must match exactly.

        Returns:
            (missing_keys, unexpected_keys)

        Raises:
            StoreError: names differ and `strict` is True; nothing is changed then.
            ShapeError: a shape differs; nothing is changed then.
        """
        return load_state_dict(self, state, strict, cast=True)

    def into_record(self, selector: Selector | None = None) -> ModuleRecord:
        """Return state and parameter ids as a record, a snapshot.

        Args:
            selector: which parameters, without buffers; None for all and the buffers.
        """
        return ModuleRecord.of(self, selector)

    def load_record(self, record: ModuleRecord) -> Self:
        """Take values and ids of a record; return this module.

        Args:
            record: says itself how strict to be and whose dtype holds.

        Raises:
            StoreError: names do not fit; nothing is changed then.
            ShapeError: a shape differs; nothing is changed then.
        """
        record.apply(self)
        return self

    def config(self) -> ModuleConfig:
        """Return the recorded constructor call as a JSON-serialisable config.

        Raises:
            ConfigError: an argument cannot be serialised; it is named.
        """
        config: ModuleConfig = self.__dict__[RECORDED]
        config.to_dict()
        return config

    # ---- text ---------------------------------------------------------------------------------

    def summary(self, *inputs: Any) -> Summary:
        """Run the module once for inference and return what each part made of it.

        Args:
            inputs: a shape or a tensor per argument of `forward`.

        Example:
            >>> burn.nn.Linear(2, 3).summary((4, 2)).output_shape
            (4, 3)
        """
        from burn_core.summary import summarize

        return summarize(self, inputs)

    def extra_repr(self) -> str:
        """Return what the printed tree says in parentheses: the constructor's plain arguments."""
        recorded: ModuleConfig | None = self.__dict__.get(RECORDED)
        return recorded.text() if recorded else ""

    def __repr__(self) -> str:
        from burn_core.printing import tree_text

        return tree_text(self)


class _Inference:
    """Makes the modules of one `valid()` call; an object, since closures would be a cycle."""

    def __init__(self, grad: bool) -> None:
        self.grad = grad
        self.memo: dict[int, Any] = {}

    def leaf(self, value: Any) -> Any:
        if isinstance(value, Module):
            return self.copied(value)
        if self.grad or isinstance(value, Buffer):
            return value
        if isinstance(value, Parameter):
            return value.twin()
        if id(value) not in self.memo:
            self.memo[id(value)] = value.b.resource.plain_context().make(value.v)
        return self.memo[id(value)]

    def copied(self, module: Module) -> Any:
        made: Any = self.memo.get(id(module))
        if made is None:
            made = self.memo[id(module)] = object.__new__(type(module))
            _copy_attributes(module, made, lambda value: rebuilt(value, self.leaf))
            made.__dict__[VALID] = True
            made.__dict__[SOURCE] = module.__dict__.get(SOURCE, module)
        return made


_running = TRAINING.get


def call_in_turn(modules: Iterable[Module], value: Any) -> Any:
    """Call modules one after the other, each with the result of the one before.

    It gives what `module(value)` gives. Whoever calls it is mostly a module that runs, so that
    there is nothing to decide, and a call through the class would cost as much as what it calls.

    Args:
        modules: in order.
        value: what the first takes.

    Example:
        >>> burn.core.call_in_turn([burn.nn.ReLU(), burn.nn.Identity()], burn.tensor([-1.0])).item()
        0.0
    """
    running = _running()
    if running is None:
        for m in modules:
            value = m(value)
        return value
    for m in modules:
        if m.__class__.__call__ is not _CALL or (running and VALID in m.__dict__):
            value = m(value)
            continue
        try:
            value = m.forward(value)
        except Exception as cause:
            found = explained(m, cause, (value,), {})
            if found is None:
                raise
            raise found from cause
    return value


_CALL = Module.__call__
for _name, _said in OTHERWISE.items():
    setattr(Module, _name, Absent(_name, "modules", _said))


def source_of(module: M) -> M:
    """Return the module that `valid()` made this one from, or itself.

    Args:
        module: any module.

    Example:
        >>> model = burn.nn.Linear(1, 1)
        >>> burn.core.source_of(model.valid()) is model
        True
    """
    source: M = module.__dict__.get(SOURCE, module)
    return source


def _copy_attributes(source: Module, made: Module, copy: Callable[[Any], Any]) -> None:
    for name, value in list(source.__dict__.items()):
        if name == REPARAMETERIZED:
            made.__dict__[name] = {k: r.copied(copy) for k, r in value.items()}
        else:
            # What the constructor was called with describes the copy too.
            made.__dict__[name] = value if name.startswith("__") else copy(value)
