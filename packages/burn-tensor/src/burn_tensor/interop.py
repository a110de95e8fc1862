"""Tensors and the rest of Python: numbers, lists, numpy, DLPack, copies, pickles."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_backend import TensorBase
from burn_dispatch import device as named_device
from burn_std import ArgumentError, DTypeError, dtypes as dt
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods(always="item numpy tolist")
class InteropMethods(Methods):
    """Reading values on the host."""

    __slots__ = ()

    # numpy operators leave the answer to ours when a tensor stands on their right.
    __array_priority__ = 1000

    # ---- numbers and lists --------------------------------------------------------------------

    def item(self) -> Any:
        """Return the only element as a Python number; waits for it.

        Raises:
            ArgumentError: there is not exactly one element.

        Example:
            >>> burn.tensor([2.5]).item()
            2.5
        """
        array = self.numpy()
        if array.size != 1:
            raise ArgumentError(
                "item", "needs a tensor of one element", got=f"shape {list(array.shape)}",
                remedy="Use .tolist(), or reduce it.",
            )  # fmt: skip
        value = array.item()
        return value if isinstance(value, (bool, int, float)) else float(value)

    def tolist(self) -> Any:
        """Return the elements as nested lists, or one number for rank 0.

        Example:
            >>> burn.tensor([[1, 2]]).tolist()
            [[1, 2]]
        """
        array = self.numpy()
        if self.dtype is dt.bfloat16:
            array = array.astype(np.float32)
        return array.tolist()

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a read-only numpy array of the elements; waits for them.

        bfloat16 comes as `ml_dtypes.bfloat16`. Copy it to change it: `np.array(x)`.

        Raises:
            DTypeError: x is quantised.

        Example:
            >>> burn.tensor([1, 2]).numpy().flags.writeable
            False
        """
        if self.dtype.is_quantized:
            raise DTypeError(
                "numpy",
                "numpy has no quantised dtypes",
                got=self.dtype,
                remedy="Call .dequantize() first.",
            )
        array: np.ndarray[Any, Any] = self.b.to_numpy(self)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ArgumentError(
                    "__array__", "another dtype needs a copy", got=f"{array.dtype} to {dtype}"
                )
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        array = self.numpy()
        if self.dtype is dt.bfloat16:
            raise DTypeError(
                "__dlpack__", "numpy exports no bfloat16", got=self.dtype,
                remedy="Convert with .float() first.",
            )  # fmt: skip
        # Readers of the first version know no read-only memory, and some of the later ones,
        # PyTorch among them, do not heed it: a value would change. So all get a copy, but those
        # that ask for the memory itself.
        old = max_version is None or max_version[0] < 1
        if copy is False and old:
            raise BufferError(
                "__dlpack__: read-only memory needs a reader of DLPack 1.0, or a copy"
            )
        if copy is not False:
            array = array.copy()
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _scalar(self, what: str) -> Any:
        if prod(self.v.shape) != 1:
            raise ArgumentError(
                what, "only a tensor of one element has a value as a number",
                got=f"shape {list(self.v.shape)}",
                remedy="Use .any() or .all()." if what == "bool" else "Use .tolist().",
            )  # fmt: skip
        return self.item()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if not self.dtype.is_int:
            raise DTypeError(
                "index", "only an integer tensor of one element is an index", got=self.dtype.name
            )
        return int(self._scalar("index"))

    def __len__(self) -> int:
        shape = self.v.shape
        if not shape:
            raise DTypeError("len", "a tensor of rank 0 has no length")
        return int(shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self.v.shape:
            raise DTypeError("iter", "a tensor of rank 0 has no elements to go through")
        return iter(as_tensor(self).unbind(0))

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, (TensorBase, bool, int, float, np.generic)):
            raise DTypeError(
                "in", "the value must be a number or a tensor", got=type(value).__name__
            )
        return bool(self.b.any(self.b.eq(self, value), None, False))

    def is_floating_point(self) -> bool:
        """Return whether the dtype is a float one.

        Example:
            >>> burn.zeros(1).is_floating_point()
            True
        """
        return self.dtype.is_float

    # ---- copies -------------------------------------------------------------------------------

    def clone(self) -> Tensor:
        """Return a tensor of the same values with an identity of its own.

        Nothing is copied: values never change in place.

        Gradient: g.

        Example:
            >>> x = burn.zeros(2)
            >>> y = x.clone()
            >>> y[0] = 1
            >>> x
            tensor([0., 0.])
        """
        if self.node is not None:
            return self.b.reshape(self, self.v.shape)
        return self.b.make(self.v)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor:
        out = self.b.make(self.v)
        if self.node is not None:
            decorator = self.b.need_autodiff("deepcopy")
            out.node = decorator.leaf_node() if decorator.is_leaf(self) else self.node
        memo[id(self)] = out
        return out

    def __reduce__(self) -> Any:
        leaf = self.node is not None and self.b.need_autodiff("pickle").is_leaf(self)
        device = self.b.device
        return (_rebuilt, (self.numpy().copy(), device.name, device.is_autodiff(), leaf))


def _rebuilt(array: np.ndarray[Any, Any], device: str, autodiff: bool, leaf: bool) -> TensorBase:
    target = named_device(device)
    context = (target.autodiff() if autodiff else target).context
    out = context.tensor_from_numpy(array)
    return context.need_autodiff("pickle").leaf(out) if leaf else out
