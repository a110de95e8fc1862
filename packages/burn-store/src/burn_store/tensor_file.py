"""An open file as a lazy mapping of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from burn_backend import QuantizedArray
from burn_core import ModuleRecord, id_text
from burn_dispatch import Device
from burn_std import DType, StoreError, parse_dtype
from burn_store.elements import NATIVE, Array, byte_count
from burn_store.format import Reading
from burn_store.quantized import scheme_of
from burn_tensor import Tensor


class TensorFile(Mapping[str, Tensor]):
    """An open file as a lazy mapping: a tensor is read when asked for, and only that one.

    Made by `open`. Names of tied tensors that the file stores once are in the mapping too.

    Attributes:
        metadata: text by key.
        aliases: names of tied tensors, each with the name that stands for the same tensor.
        extra: numbers and texts that the file holds beside its tensors, by path.
        ids: of parameters by name, as `Parameter.id` shows them; burnpack files hold them.
    """

    def __init__(self, reading: Reading, device: Device | None) -> None:
        self._reading = reading
        self._device = device
        self._open = True
        self.metadata = dict(reading.metadata)
        self.aliases = dict(reading.aliases)
        self.extra = dict(reading.extra)
        self.ids = {name: id_text(bits) for name, bits in reading.param_ids.items()}

    def _stored(self, name: str) -> str:
        if not self._open:
            raise StoreError("store.open", "the file is closed", got=name)
        if name in self._reading:
            return name
        if name in self.aliases:
            return self.aliases[name]
        raise KeyError(name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape without reading it."""
        return self._reading.spec(self._stored(name)).shape

    def dtype(self, name: str) -> DType:
        """Return a tensor's dtype without reading it.

        Raises:
            StoreError: the framework has no such dtype.
        """
        dtype = self._reading.spec(self._stored(name)).dtype
        if dtype not in NATIVE and scheme_of(dtype) is None:
            raise StoreError("store.open", f"the dtype of {name} is not supported", got=dtype)
        return parse_dtype(dtype)

    def numpy(self, name: str) -> Array:
        """Return a tensor as a numpy array of its own, without a device.

        Raises:
            StoreError: the tensor is quantised, the framework has no such dtype, or the disk
                refuses.
        """
        array = self._reading[self._stored(name)]
        whole: Any = array
        if isinstance(whole, QuantizedArray):
            raise StoreError(
                "store.open", f"numpy has no quantised dtypes; {name} is of one",
                got=whole.dtype.name, remedy=f"Write file[{name!r}].dequantize().numpy().",
            )  # fmt: skip
        return array

    def record(self) -> ModuleRecord:
        """Return all tensors, and ids of parameters, as a record that a module loads.

        Names and layouts are those of the file: write records of modules with `save_tensors`.

        Raises:
            StoreError: the framework has no such dtype, or the disk refuses.
        """
        return ModuleRecord({name: self[name] for name in self}, self.ids)

    def verify(self) -> None:
        """Compare every checksum that the file holds; reads it all.

        Raises:
            StoreError: one differs.
        """
        self._reading.verify(everything=True)

    def __getitem__(self, name: str) -> Tensor:
        # The array was made for this tensor, so it is handed over without a copy.
        device = self._device or Device.default()
        made: Any = device.context.tensor_from_numpy(self._reading[self._stored(name)], copy=False)
        tensor: Tensor = made
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self._reading or name in self.aliases

    def __iter__(self) -> Iterator[str]:
        yield from self._reading
        for alias in self.aliases:
            if alias not in self._reading:
                yield alias

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def close(self) -> None:
        """Let the file go; a second call does nothing."""
        self._open = False
        self._reading.close()

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        specs = [self._reading.spec(name) for name in self._reading]
        size = sum(
            byte_count(s.shape, NATIVE[s.dtype].itemsize) for s in specs if s.dtype in NATIVE
        )
        return f"TensorFile({len(specs)} tensors, {size / 1e6:.1f} MB)"
