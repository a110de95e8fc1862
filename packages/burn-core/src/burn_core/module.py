"""Module: plain Python attributes that hold parameters, buffers and other modules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, Self, TypeVar

from burn_core.config import ModuleConfig, record_call, register_module
from burn_core.parameter import Buffer, Parameter
from burn_core.tree import rebuilt, walk
from burn_dispatch import Device, current_scope, to_device
from burn_std import BurnError, DType, ShapeError, StoreError
from burn_tensor import Tensor

M = TypeVar("M", bound="Module")

# Whether training behaviour is on in the outermost module call; None outside of any.
_TRAINING: ContextVar[bool | None] = ContextVar("burn_training", default=None)


def is_training() -> bool:
    """Return whether the running forward shows training behaviour (Dropout, BatchNorm)."""
    return bool(_TRAINING.get())


class ModuleMeta(type):
    """Records the arguments of the outermost constructor call; `__init__` is never wrapped."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        register_module(cls)

    def __call__(cls: type[M], *args: Any, **kwargs: Any) -> M:  # type: ignore[misc]
        made: M = super().__call__(*args, **kwargs)  # type: ignore[misc]
        record_call(made, cls, args, kwargs)
        return made


class Module(metaclass=ModuleMeta):
    """Base of everything with parameters: assign attributes in `__init__`, write `forward`.

    Parameters, buffers, tensors and modules are found in attributes, lists, tuples and dicts.

    Example:
        >>> import burn_tensor as bt
        >>> class Scale(Module):
        ...     def __init__(self):
        ...         self.factor = Parameter(bt.ones(1))
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> Scale()(bt.tensor([2.0])).tolist()
        [2.0]
        >>> [name for name, _ in Scale().named_parameters()]
        ['factor']
    """

    __burn_module__ = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute; subclasses write it."""
        raise BurnError(type(self).__name__, "a module needs a forward method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`; the outermost call decides on training behaviour for all inside."""
        if _TRAINING.get() is not None:
            return self.forward(*args, **kwargs)
        token = _TRAINING.set(self._trains(args, kwargs))
        try:
            return self.forward(*args, **kwargs)
        finally:
            _TRAINING.reset(token)

    def _trains(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if self.__dict__.get("__valid__"):
            return False
        scope = current_scope()
        if scope.no_grad and not scope.checkpoint:
            return False
        for a in (*args, *kwargs.values()):
            if isinstance(a, Tensor) and a.b.is_autodiff:
                return True
        return any(p.b.is_autodiff for p in self.parameters())

    # ---- what it holds ------------------------------------------------------------------------

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter), each parameter once, in the order of definition."""
        for path, _, _, leaf in walk(self):
            if isinstance(leaf, Parameter):
                yield path, leaf

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters, each once."""
        for _, p in self.named_parameters():
            yield p

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """Yield (path, buffer)."""
        for path, _, _, leaf in walk(self):
            if isinstance(leaf, Buffer):
                yield path, leaf

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Yield (path, module), this one first with an empty path."""
        yield "", self
        for path, _, _, leaf in walk(self):
            if isinstance(leaf, Module):
                yield path, leaf

    def modules(self) -> Iterator[Module]:
        """Yield this module and those below it."""
        for _, m in self.named_modules():
            yield m

    def num_params(self, trainable: bool = False) -> int:
        """Return how many numbers the parameters hold; tied ones count once."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad or not trainable)

    def visit(self, fn: Callable[[str, Parameter], None]) -> None:
        """Call `fn(path, parameter)` for each parameter."""
        for path, p in self.named_parameters():
            fn(path, p)

    def map(self, fn: Callable[[str, Parameter], Tensor]) -> Self:
        """Rebind each parameter to `fn(path, parameter)`; return this module."""
        for path, p in list(self.named_parameters()):
            p.set(fn(path, p))
        return self

    # ---- devices and dtypes -------------------------------------------------------------------

    def to_device(self, device: Device) -> Self:
        """Move everything to a device; parameters take its autodiff if it has it, else keep theirs."""
        for _, owner, key, leaf in list(walk(self)):
            if isinstance(leaf, (Parameter, Buffer)):
                leaf.move(device)
            elif isinstance(leaf, Tensor):
                _replace(owner, key, to_device(leaf, device))
        return self

    def to_dtype(self, dtype: DType) -> Self:
        """Convert float parameters and buffers to a float dtype."""
        for _, owner, key, leaf in list(walk(self)):
            if not isinstance(leaf, Tensor) or not leaf.dtype.is_float:
                continue
            if isinstance(leaf, Parameter):
                leaf.cast(dtype)
            elif isinstance(leaf, Buffer):
                leaf.v = leaf.detach().to(dtype).v
            else:
                _replace(owner, key, leaf.to(dtype))
        return self

    # ---- behaviour ----------------------------------------------------------------------------

    def valid(self, grad: bool = False) -> Self:
        """Return the module for inference: same values, live, without training behaviour.

        Args:
            grad: keep autodiff, so that inputs and parameters still get gradients.
        """
        memo: dict[int, Any] = {}

        def leaf(value: Any) -> Any:
            if isinstance(value, Parameter):
                return value if grad else value.twin()
            if isinstance(value, Module):
                return copied(value)
            if isinstance(value, Tensor) and not isinstance(value, Buffer) and not grad:
                return value.b.resource.plain_context().make(value.v)
            return value

        def copied(module: Module) -> Any:
            made = memo.get(id(module))
            if made is None:
                made = object.__new__(type(module))
                memo[id(module)] = made
                for name, value in module.__dict__.items():
                    made.__dict__[name] = value if name.startswith("__") else rebuilt(value, leaf)
                made.__dict__["__valid__"] = True
                made.__dict__["__source__"] = module
            return made

        out: Self = copied(self)
        return out

    def train(self) -> Self:
        """Return the module that `valid` was made from, or this one: the reverse of `valid`."""
        source: Self = self.__dict__.get("__source__", self)
        return source

    def eval(self) -> Any:
        """Raise: behaviour is not a mode of the object."""
        raise BurnError(
            "eval", "a module has no modes", remedy="Write infer = model.valid() and call infer(x)."
        )

    @property
    def training(self) -> bool:
        """Whether the running forward shows training behaviour."""
        return is_training()

    def no_grad(self) -> Self:
        """Freeze every parameter; return this module."""
        return self.freeze()

    def freeze(self, select: str | re.Pattern[str] | Callable[[str, Parameter], bool] = "") -> Self:
        """Freeze the parameters under a path, matching a pattern, or chosen by a predicate."""
        for _, p in self.select(select):
            p.set_requires_grad(False)
        return self

    def unfreeze(self, select: str | re.Pattern[str] | Callable[[str, Parameter], bool] = "") -> Self:
        """The reverse of `freeze`."""
        for _, p in self.select(select):
            p.set_requires_grad(True)
        return self

    def select(
        self, select: str | re.Pattern[str] | Callable[[str, Parameter], bool] = ""
    ) -> list[tuple[str, Parameter]]:
        """Return (path, parameter) under a path, matching a pattern, or chosen by a predicate."""
        if callable(select):
            return [(n, p) for n, p in self.named_parameters() if select(n, p)]
        if isinstance(select, re.Pattern):
            return [(n, p) for n, p in self.named_parameters() if select.search(n)]
        return [
            (n, p) for n, p in self.named_parameters()
            if not select or n == select or n.startswith(f"{select}.")
        ]  # fmt: skip

    def fork(self) -> Self:
        """Return an independent copy: same values, new identities."""
        return deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made: Self = object.__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            # What the constructor was called with describes the copy too.
            made.__dict__[name] = value if name.startswith("__") else deepcopy(value, memo)
        return made

    # ---- state --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Return parameters and persistent buffers by path: a snapshot that later steps leave alone."""
        return {
            path: leaf.detach() for path, _, _, leaf in walk(self)
            if isinstance(leaf, Parameter) or (isinstance(leaf, Buffer) and leaf.persistent)
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Tensor], strict: bool = True) -> tuple[list[str], list[str]]:
        """Take values by path; return (missing, unexpected).

        Raises:
            StoreError: names differ and `strict` is True; nothing is changed then.
            ShapeError: a shape differs; nothing is changed then.
        """
        own = {
            path: leaf for path, _, _, leaf in walk(self)
            if isinstance(leaf, Parameter) or (isinstance(leaf, Buffer) and leaf.persistent)
        }  # fmt: skip
        missing = [k for k in own if k not in state]
        unexpected = [k for k in state if k not in own]
        if strict and (missing or unexpected):
            raise StoreError(
                "load_state_dict", "the names must match", got=f"missing {missing}, unexpected {unexpected}",
                remedy="Pass strict=False to load what fits.",
            )  # fmt: skip
        for key, leaf in own.items():
            if key in state and state[key].shape != leaf.shape:
                raise ShapeError("load_state_dict", f"the shape of {key} must match", got=f"{state[key].shape} for {leaf.shape}")
        for key, leaf in own.items():
            if key in state:
                value = state[key].detach()
                leaf.set(value if value.dtype is leaf.dtype else value.to(leaf.dtype))
        return missing, unexpected

    def config(self) -> ModuleConfig:
        """Return the recorded constructor call as a JSON-serialisable config.

        Raises:
            ConfigError: an argument cannot be serialised; it is named.
        """
        return ModuleConfig.of(self)

    def extra_repr(self) -> str:
        """Return what the printed tree says in the parentheses of this module."""
        return ""

    def __repr__(self) -> str:
        from burn_core.printing import tree_text

        return tree_text(self)


def _replace(owner: Any, key: str, value: Any) -> None:
    if isinstance(owner, Module):
        owner.__dict__[key] = value
    elif isinstance(owner, list):
        owner[int(key)] = value
    elif isinstance(owner, dict):
        owner[next(k for k in owner if str(k) == key)] = value
    else:
        raise BurnError("to_device", "a plain tensor inside a tuple cannot be moved", remedy="Keep it in a list or make it a Buffer.")
