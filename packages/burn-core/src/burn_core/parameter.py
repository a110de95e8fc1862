"""Parameters and buffers: tensors with a lasting identity whose value is rebound."""

from __future__ import annotations

from typing import Any

from burn_dispatch import Device, to_device
from burn_std import DTypeError, ShapeError
from burn_tensor import Tensor


class Parameter(Tensor):
    """A tensor that is trained.

    Gradients and optimizer state key on its identity, which stays when its value changes. On an
    autodiff device it is a marked leaf from the start.

    Args:
        value: the first value; its device is the parameter's.
        requires_grad: False makes a frozen parameter.

    Example:
        >>> import burn_tensor as bt
        >>> p = Parameter(bt.zeros(2))
        >>> p.set(bt.ones(2)); p.tolist()
        [1.0, 1.0]
    """

    __slots__ = ("_requires_grad", "_twin")

    _twin: Tensor | None
    _requires_grad: bool

    def __new__(cls, value: Tensor, requires_grad: bool = True) -> Parameter:
        """Make the object itself; slots are filled here so that `__init__` stays free."""
        if not isinstance(value, Tensor):
            raise DTypeError("Parameter", "the value is a tensor", got=type(value).__name__, remedy="Make one with burn.tensor(...).")
        p: Parameter = object.__new__(cls)
        p.b = value.b
        p.v = value.v
        p.node = None
        p._twin = None
        p._requires_grad = requires_grad
        p._mark()
        return p

    def __init__(self, value: Tensor, requires_grad: bool = True) -> None:
        """See the class."""

    def _mark(self) -> None:
        """Give the leaf node that belongs to the context, keeping the one there is."""
        if self._requires_grad and self.b.is_autodiff and self.dtype.is_float:
            if self.node is None:
                self.node = self.b.need_autodiff("Parameter").leaf_node()
        else:
            self.node = None

    @property
    def requires_grad(self) -> bool:
        """Whether it is trained; `freeze` and `unfreeze` change it."""
        return self._requires_grad

    def set_requires_grad(self, value: bool) -> None:
        """Freeze or unfreeze."""
        self._requires_grad = value
        self._mark()

    def set(self, value: Tensor) -> None:
        """Rebind to another value of the same shape and dtype.

        Raises:
            ShapeError: another shape.
            DTypeError: another dtype.
        """
        if value.shape != self.shape:
            raise ShapeError("Parameter.set", "the shape stays", got=f"{value.shape} for {self.shape}")
        if value.dtype is not self.dtype:
            raise DTypeError("Parameter.set", "the dtype stays", got=f"{value.dtype} for {self.dtype}", remedy="Convert with .to(dtype).")
        if value.b.resource is not self.b.resource:
            value = to_device(value, self.b.device)
        self.b.resource.backend.rebinding(self)
        self.v = value.v
        if self._twin is not None:
            self._twin.v = value.v

    def twin(self) -> Tensor:
        """Return the plain-context tensor that always shows this parameter's value."""
        t = self._twin
        if t is None:
            t = self._twin = self.b.resource.plain_context().make(self.v)
        return t

    def move(self, device: Device) -> None:
        """Go to a device; autodiff is taken from it if it has it, else kept."""
        target = device.context
        if self.b.is_autodiff and not target.is_autodiff:
            target = target.resource.context(self.b.decorator, self.b.checkpointing)
        plain = self.b.resource.plain_context().make(self.v)
        self.v = to_device(plain, target.device).v
        self.b = target
        if self._twin is not None:
            self._twin.b = target.resource.plain_context()
            self._twin.v = self.v
        self._mark()

    def cast(self, dtype: Any) -> None:
        """Change the dtype of the value, keeping the identity."""
        self.v = self.b.resource.plain_context().cast(self.b.resource.plain_context().make(self.v), dtype).v
        if self._twin is not None:
            self._twin.v = self.v
        self._mark()

    def detach(self) -> Tensor:
        """Return the value as it is now, untracked; later steps never show through."""
        t: Tensor = self.b.make(self.v)
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        made = Parameter(self.detach(), self._requires_grad)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return (Parameter, (self.detach(), self._requires_grad))


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not trained (running statistics).

    Args:
        value: the first value.
        persistent: saved in the state dict.
    """

    __slots__ = ("persistent",)

    is_buffer = True
    persistent: bool

    def __new__(cls, value: Tensor, persistent: bool = True) -> Buffer:
        """Make the object itself; slots are filled here so that `__init__` stays free."""
        b: Buffer = object.__new__(cls)
        b.b = value.b.resource.plain_context()
        b.v = value.v
        b.node = None
        b.persistent = persistent
        return b

    def __init__(self, value: Tensor, persistent: bool = True) -> None:
        """See the class."""

    def set(self, value: Tensor) -> None:
        """Rebind to another value of the same shape; the dtype follows.

        Raises:
            ShapeError: another shape.
        """
        if value.shape != self.shape:
            raise ShapeError("Buffer.set", "the shape stays", got=f"{value.shape} for {self.shape}")
        if value.b.resource is not self.b.resource:
            value = to_device(value.detach(), self.b.device)
        if value.dtype is not self.dtype:
            value = value.to(self.dtype)
        self.b.resource.backend.rebinding(self)
        self.v = value.v

    def move(self, device: Device) -> None:
        """Go to a device."""
        moved = to_device(self.b.make(self.v), device.without_autodiff())
        self.b, self.v = moved.b, moved.v

    def detach(self) -> Tensor:
        """Return the value as it is now."""
        t: Tensor = self.b.make(self.v)
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        made = Buffer(self.detach(), self.persistent)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return (Buffer, (self.detach(), self.persistent))
