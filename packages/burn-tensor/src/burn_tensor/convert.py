"""Other dtypes and other devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_dispatch import Device, device as named_device, to_device as moved
from burn_std import ArgumentError, DType, DTypeError, dtype_remedy, dtypes as dt
from burn_tensor.guard import guard_methods
from burn_tensor.methods import Methods, as_tensor

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor


@guard_methods()
class ConvertMethods(Methods):
    """Changing dtype or device. A class of its own, because it has methods named like types."""

    __slots__ = ()

    @property
    def device(self) -> Device:
        """The device, with its autodiff property."""
        return self.b.device

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return x in another dtype, on another device, or both; x itself if nothing changes.

        Args:
            args: a dtype, a device or its name, a device and a dtype, or a tensor to follow.
            kwargs: `dtype`, `device`.

        Gradient: g converted and moved back.

        Example:
            >>> burn.tensor([1.7]).to(burn.int64)
            tensor([1])
        """
        dtype, device = kwargs.pop("dtype", None), kwargs.pop("device", None)
        kwargs.pop("copy", None)
        kwargs.pop("non_blocking", None)
        if kwargs:
            raise ArgumentError("to", "takes dtype and device", got=sorted(kwargs))
        for a in args:
            if isinstance(a, DType):
                dtype = a
            elif isinstance(a, (Device, str)):
                if isinstance(a, str) and dtype_remedy(a) != dtype_remedy(None):
                    raise DTypeError(
                        "to", "takes a dtype and not its name", got=repr(a), remedy=dtype_remedy(a)
                    )
                device = a
            elif isinstance(a, TensorBase):
                dtype, device = a.dtype, a.b.device
            elif a is not None and not isinstance(a, bool):
                raise DTypeError("to", "takes a dtype, a device or a tensor", got=type(a).__name__)
        out = as_tensor(self)
        if device is not None:
            out = out.to_device(device)
        if dtype is not None and dtype is not out.dtype:
            if dtype.is_quantized:
                return out.quantize(dtype)
            if out.dtype.is_quantized:
                return out.dequantize(dtype)
            return out.b.cast(out, dtype)
        return out

    def to_device(self, device: Device | str) -> Tensor:
        """Return x on a device; x itself if it is there.

        A tracked tensor stays tracked and its gradient flows back across the move; a plain one
        takes the device's autodiff.

        Args:
            device: a device or its name.

        Example:
            >>> burn.zeros(2).to_device("flex:1").device
            flex:1
        """
        target = named_device(device) if isinstance(device, str) else device
        if not isinstance(target, Device):
            raise DTypeError("to_device", "needs a device or its name", got=type(device).__name__)
        out: Tensor = moved(self, target)  # type: ignore[assignment]
        return out

    def _cast(self, dtype: DType) -> Tensor:
        return as_tensor(self) if self.dtype is dtype else self.b.cast(self, dtype)

    def type_as(self, other: Tensor) -> Tensor:
        """Return x in the dtype of another tensor.

        Example:
            >>> burn.tensor([1]).type_as(burn.zeros(1))
            tensor([1.])
        """
        return self._cast(other.dtype)

    def float(self) -> Tensor:
        """Return x as float32.

        Example:
            >>> burn.tensor([1]).float()
            tensor([1.])
        """
        return self._cast(dt.float32)

    def double(self) -> Tensor:
        """Return x as float64.

        Example:
            >>> burn.tensor([1]).double().dtype
            burn.float64
        """
        return self._cast(dt.float64)

    def half(self) -> Tensor:
        """Return x as float16.

        Example:
            >>> burn.tensor([1]).half().dtype
            burn.float16
        """
        return self._cast(dt.float16)

    def bfloat16(self) -> Tensor:
        """Return x as bfloat16.

        Example:
            >>> burn.tensor([1]).bfloat16().dtype
            burn.bfloat16
        """
        return self._cast(dt.bfloat16)

    def long(self) -> Tensor:
        """Return x as int64; NaN becomes 0, what does not fit saturates.

        Example:
            >>> burn.tensor([1.9]).long()
            tensor([1])
        """
        return self._cast(dt.int64)

    def int(self) -> Tensor:
        """Return x as int32; NaN becomes 0, what does not fit saturates.

        Example:
            >>> burn.tensor([1.9]).int().dtype
            burn.int32
        """
        return self._cast(dt.int32)

    def short(self) -> Tensor:
        """Return x as int16; NaN becomes 0, floats that do not fit saturate.

        Example:
            >>> burn.tensor([1]).short().dtype
            burn.int16
        """
        return self._cast(dt.int16)

    def char(self) -> Tensor:
        """Return x as int8; NaN becomes 0, floats that do not fit saturate.

        Example:
            >>> burn.tensor([1]).char().dtype
            burn.int8
        """
        return self._cast(dt.int8)

    def byte(self) -> Tensor:
        """Return x as uint8; NaN becomes 0, floats that do not fit saturate.

        Example:
            >>> burn.tensor([1]).byte().dtype
            burn.uint8
        """
        return self._cast(dt.uint8)

    def bool(self) -> Tensor:
        """Return whether x is not zero; NaN is true.

        Example:
            >>> burn.tensor([0, 2]).bool()
            tensor([False,  True])
        """
        return self._cast(dt.bool_)

    def cpu(self) -> Tensor:
        """Return x on the host: the flex device, with the autodiff property of x.

        Example:
            >>> burn.zeros(2).cpu().device
            flex
        """
        host = Device.flex()
        return self.to_device(host.autodiff() if self.b.is_autodiff else host)
