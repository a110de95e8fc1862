"""Parameters and buffers: tensors with a lasting identity whose value is rebound.

A parameter keeps its tape leaf, its id and its twin (what `valid()` shows) while its value changes.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, NoReturn

from burn_dispatch import Device, to_device
from burn_std import ArgumentError, BurnError, DType, DTypeError, PropertyError, ShapeError
from burn_tensor import Tensor

_DIGITS = "0123456789abcdefghijklmnopqrstuv"


def new_id() -> str:
    """Return a random id: 64 bits as 13 digits of base 32."""
    return id_text(int.from_bytes(os.urandom(8), "little"))


def id_text(bits: int) -> str:
    """Return 64 bits as the 13 digits of base 32 that `Parameter.id` shows.

    Args:
        bits: the number.

    Example:
        >>> burn.core.id_text(33)
        '0000000000011'
    """
    return "".join(_DIGITS[(bits >> shift) & 31] for shift in range(60, -5, -5))


class Pending:
    """Payload of a lazy parameter: a dtype without a value.

    Attributes:
        dtype: payload dtype that the value will have.
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Raise: nobody knows it yet."""
        raise PropertyError(
            "Parameter", "a lazy parameter has no value yet",
            remedy="Call the module once, or load its state.",
        )  # fmt: skip


class Parameter(Tensor):
    """A tensor that is trained.

    Gradients and optimizer state key on its identity, which stays when its value changes. On an
    autodiff device it is a marked leaf from the start.

    Args:
        value: the first value; its device is the parameter's.
        requires_grad: False makes a frozen parameter.

    Raises:
        DTypeError: the value is no tensor.

    Example:
        >>> p = burn.Parameter(burn.zeros(2))
        >>> p.set(burn.ones(2))
        >>> p.tolist()
        [1.0, 1.0]
    """

    __slots__ = ("_id", "_requires_grad", "_twin")

    _id: str | None
    _twin: Twin | None
    _requires_grad: bool

    def __new__(cls, value: Tensor, requires_grad: bool = True) -> Parameter:
        """Make the object itself; slots are filled here so that `__init__` stays free."""
        if not isinstance(value, Tensor):
            raise DTypeError(
                "Parameter", "the value is a tensor", got=type(value).__name__,
                remedy="Make one with burn.tensor(...).",
            )  # fmt: skip
        return cls._made(value.b, value.v, requires_grad)

    def __init__(self, value: Tensor, requires_grad: bool = True) -> None:
        """See the class."""

    @classmethod
    def _made(cls, context: Any, payload: Any, requires_grad: bool) -> Parameter:
        p: Parameter = object.__new__(cls)
        p.b = context
        p.v = payload
        p.node = None
        p._id = None
        p._twin = None
        p._requires_grad = requires_grad
        p._mark()
        return p

    @staticmethod
    def lazy(
        dtype: DType | None = None, device: Device | None = None, requires_grad: bool = True
    ) -> Parameter:
        """Return a parameter whose shape and value come later, by `set`.

        Args:
            dtype: of the value; the device's default float if None.
            device: where it lives; the default device if None.
            requires_grad: False makes a frozen parameter.

        Example:
            >>> p = burn.Parameter.lazy()
            >>> p.is_initialized
            False
            >>> p.set(burn.ones(2))
            >>> p.shape
            (2,)
        """
        context = (device or Device.default()).context
        native = context.resource.backend.native[dtype or context.default_float]
        return Parameter._made(context, Pending(native), requires_grad)

    def _mark(self) -> None:
        """Give the leaf node that belongs to the context, keeping the one there is."""
        if self._requires_grad and self.b.is_autodiff and self.dtype.is_float:
            if self.node is None:
                self.node = self.b.need_autodiff("Parameter").leaf_node()
        else:
            self.node = None

    @property
    def id(self) -> str:
        """A text of 13 letters that stays for life, in forks and in records too."""
        if self._id is None:
            self._id = new_id()
        return self._id

    def take_id(self, id: str) -> None:
        """Become, by id, the parameter that a file or record holds.

        Args:
            id: 13 letters, as `id` gives them.

        Raises:
            ArgumentError: it is none.

        Example:
            >>> p, q = burn.Parameter(burn.ones(1)), burn.Parameter(burn.ones(1))
            >>> q.take_id(p.id)
            >>> q.id == p.id
            True
        """
        if len(id) != 13 or not set(id) <= set(_DIGITS) or int(id, 32) >= 1 << 64:
            raise ArgumentError("Parameter.take_id", "an id is 64 bits in base 32", got=repr(id))
        self._id = id
        if self._twin is not None:
            self._twin._id = id

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value; a lazy one has none before the first call."""
        return self.v.__class__ is not Pending

    @property
    def requires_grad(self) -> bool:
        """Whether it is trained; `freeze` and `unfreeze` change it."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> NoReturn:
        raise AttributeError(
            "Parameter.requires_grad: is only read. Use model.freeze(path) and model.unfreeze, or "
            "parameter.set_requires_grad(value)."
        )

    def set_requires_grad(self, value: bool) -> None:
        """Freeze or unfreeze.

        Args:
            value: False freezes.
        """
        self._requires_grad = value
        self._mark()

    def set(self, value: Tensor) -> None:
        """Rebind to another value of the same shape and dtype; identity and leaf stay.

        A lazy parameter takes any shape.

        Args:
            value: on any device; it is moved to the parameter's.

        Raises:
            ShapeError: another shape.
            DTypeError: another dtype.
        """
        if self.is_initialized and value.shape != self.shape:
            raise ShapeError(
                "Parameter.set", "the shape stays", got=f"{value.shape} for {self.shape}"
            )
        if value.dtype is not self.dtype:
            raise DTypeError(
                "Parameter.set", "the dtype stays", got=f"{value.dtype} for {self.dtype}",
                remedy="Convert with .to(dtype).",
            )  # fmt: skip
        self._bind(_on_resource(value, self.b))

    def _bind(self, payload: Any) -> None:
        """Take a payload, and let the twin show it."""
        note = self.b.resource.backend.rebinding
        note(self, payload)
        self.v = payload
        if self._twin is not None:
            note(self._twin, payload)
            self._twin.v = payload

    def _rebind(self, new: Any) -> None:
        # What `p[i] = v` inside no_grad comes to: the twin must see it too.
        self.set(new)

    def twin(self) -> Twin:
        """Return the plain-context tensor that always shows this parameter's value."""
        t = self._twin
        if t is None:
            t = self._twin = Twin.of(self)
        return t

    def move(self, device: Device) -> None:
        """Go to a device; autodiff is taken from it if it has it, else kept.

        Args:
            device: the new home.
        """
        target: Any = device.context
        old: Any = self.b
        if old.is_autodiff and not target.is_autodiff:
            target = target.resource.context(old.decorator, old.checkpointing)
        if self.is_initialized:
            plain = self.b.resource.plain_context().make(self.v)
            self.v = to_device(plain, target.device.without_autodiff()).v
        else:
            self.v = Pending(target.resource.backend.native[self.dtype])
        self.b = target
        if self._twin is not None:
            plain_context: Any = target.resource.plain_context()
            self._twin.b = plain_context
            self._twin.v = self.v
        self._mark()

    def cast(self, dtype: DType) -> None:
        """Change the dtype of the value, keeping the identity.

        Args:
            dtype: the new one.
        """
        plain: Any = self.b.resource.plain_context()
        if self.is_initialized:
            self._bind(plain.make(self.v).to(dtype).v)
        else:
            self._bind(Pending(plain.resource.backend.native[dtype]))
        self._mark()

    def detach(self) -> Tensor:
        """Return the value as it is now, untracked; later steps never show through."""
        t: Tensor = self.b.make(self.v)
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        made = Parameter._made(self.b, self.v, self._requires_grad)
        made._id = self.id
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return _restored, (self.detach(), self._requires_grad, self.id)


class Twin(Parameter):
    """A parameter as a `valid()` module shows it: in the plain context, always of the same value.

    It is never trained. Setting it sets the parameter.
    """

    __slots__ = ("_source",)

    _source: weakref.ref[Parameter]

    @staticmethod
    def of(parameter: Parameter) -> Twin:
        """Return a new twin; `Parameter.twin` keeps it."""
        context = parameter.b.resource.plain_context()
        t: Any = Twin._made(context, parameter.v, False)
        t._id = parameter.id
        # Weak, so that parameter and twin are no cycle.
        t._source = weakref.ref(parameter)
        twin: Twin = t
        return twin

    def set(self, value: Tensor) -> None:
        """Set the parameter this shows, which sets this one too.

        Args:
            value: as for `Parameter.set`.
        """
        source = self._source()
        if source is None:
            super().set(value)
        else:
            source.set(value)

    def set_requires_grad(self, value: bool) -> None:
        """Refuse to be trained.

        Args:
            value: only False.

        Raises:
            BurnError: `value` is True.
        """
        if value:
            raise BurnError(
                "Parameter.set_requires_grad", "a valid() module is not trained",
                remedy="Unfreeze in the model that valid() was called on.",
            )  # fmt: skip

    def twin(self) -> Twin:
        """Return itself."""
        return self


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not trained (running statistics).

    It lives in the plain context, is shared by `valid()` copies, and functions that keep
    statistics (`batch_norm`) rebind it.

    Args:
        value: the first value.
        persistent: saved in the state dict.

    Raises:
        DTypeError: the value is no tensor.

    Example:
        >>> count = burn.nn.Buffer(burn.zeros(1))
        >>> count.set(count + 1)
        >>> count.tolist()
        [1.0]
    """

    __slots__ = ("persistent",)

    is_buffer = True
    persistent: bool

    def __new__(cls, value: Tensor, persistent: bool = True) -> Buffer:
        """Make the object itself; slots are filled here so that `__init__` stays free."""
        if not isinstance(value, Tensor):
            raise DTypeError(
                "Buffer", "the value is a tensor", got=type(value).__name__,
                remedy="Make one with burn.tensor(...).",
            )  # fmt: skip
        b: Buffer = object.__new__(cls)
        context: Any = value.b.resource.plain_context()
        b.b = context
        b.v = value.v
        b.node = None
        b.persistent = persistent
        return b

    def __init__(self, value: Tensor, persistent: bool = True) -> None:
        """See the class."""

    def set(self, value: Tensor) -> None:
        """Rebind to another value of the same shape; the value takes the buffer's dtype.

        Args:
            value: on any device; it is moved to the buffer's.

        Raises:
            ShapeError: another shape.
        """
        if value.shape != self.shape:
            raise ShapeError("Buffer.set", "the shape stays", got=f"{value.shape} for {self.shape}")
        if value.dtype is not self.dtype:
            value = value.detach().to(self.dtype)
        self._bind(_on_resource(value, self.b))

    def replace(self, value: Tensor) -> None:
        """Rebind to a value of any shape and dtype; the object stays.

        Args:
            value: on any device; it is moved to the buffer's.
        """
        self._bind(_on_resource(value, self.b))

    def _bind(self, payload: Any) -> None:
        self.b.resource.backend.rebinding(self, payload)
        self.v = payload

    def _rebind(self, new: Any) -> None:
        self.set(new)

    def move(self, device: Device) -> None:
        """Go to a device.

        Args:
            device: the new home; its autodiff does not matter.
        """
        moved: Any = to_device(self.b.make(self.v), device.without_autodiff())
        self.b = moved.b
        self.v = moved.v

    def cast(self, dtype: DType) -> None:
        """Change the dtype of the value.

        Args:
            dtype: the new one.
        """
        self._bind(self.detach().to(dtype).v)

    def detach(self) -> Tensor:
        """Return the value as it is now; later changes never show through."""
        t: Tensor = self.b.make(self.v)
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        made = Buffer(self.detach(), self.persistent)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return Buffer, (self.detach(), self.persistent)


def _on_resource(value: Tensor, context: Any) -> Any:
    """Return the payload of a value on the resource of a context."""
    if value.b.resource is context.resource:
        return value.v
    plain = value.b.resource.plain_context().make(value.v)
    return to_device(plain, context.device.without_autodiff()).v


def _restored(value: Tensor, requires_grad: bool, name: str) -> Parameter:
    """Return an unpickled parameter."""
    p = Parameter(value, requires_grad)
    p._id = name
    return p
