"""The object users hold: a context, a payload, a tape node. Everything else is derived."""

from __future__ import annotations

from typing import Any

from burn_std import DType


class TensorBase:
    """Base of every tensor; burn-tensor registers the subclass with methods.

    Attributes:
        b: the context, which makes operations out of catalogue entries.
        v: the payload: what the backend computes with.
        node: the tape node, None when untracked.
    """

    __slots__ = ("__weakref__", "b", "node", "v")

    b: Any
    v: Any
    node: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dims."""
        shape: tuple[int, ...] = self.v.shape
        return shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        dtype: DType = self.b.dtypes[self.v.dtype]
        return dtype


class TensorClass:
    """Holds the class of the tensors that generated functions make."""

    __slots__ = ("cls",)

    def __init__(self) -> None:
        self.cls: type[TensorBase] = TensorBase


TENSOR_CLASS = TensorClass()


def register_tensor_class(cls: type[TensorBase]) -> None:
    """Make generated functions return `cls`; called once by burn-tensor at import."""
    TENSOR_CLASS.cls = cls
