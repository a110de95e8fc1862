"""What the classes of methods share: how type checkers see a context, and nothing at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from burn_dispatch import Device, Resource
    from burn_std import DType
    from burn_tensor.tensor import Tensor

    class Operations:
        """A context: every entry of the catalogue is a function from tensors to tensors."""

        device: Device
        resource: Resource
        dtypes: Mapping[Any, DType]
        default_float: DType
        default_int: DType
        is_autodiff: bool
        to_numpy: Callable[..., Any]
        next_key: Callable[[], tuple[int, int]]
        need_autodiff: Callable[[str], Any]
        unique: Callable[..., list[Tensor]]

        def __getattr__(self, name: str) -> Callable[..., Tensor]: ...


class Methods(TensorBase):
    """Base of the classes whose methods `Tensor` inherits.

    A method normalises its arguments and makes one call to the context, which promotes, checks,
    computes or records, and keeps what the backward needs.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        b: Operations


def as_tensor(x: Any) -> Tensor:
    """Return x, which is a tensor, under its full type."""
    out: Tensor = x
    return out
