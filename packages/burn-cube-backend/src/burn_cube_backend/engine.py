"""One device as kernels of this package see it: memory, launches, faults of indices."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from burn_cube import Client, DeviceArray, Kernel
from burn_cube.spi import Program, Record, profiles
from burn_cube_backend.code import UNITS
from burn_cube_backend.geometry import Ints, dense, is_dense, size_of
from burn_cube_backend.packs import Arrays, Make, Packs, key_of
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor
from burn_std import DType, IndexRangeError, dtypes as d

if TYPE_CHECKING:
    from burn_cube_backend.launch_log import LaunchLog

# Site and index of the first index outside its dim.
_RECORD = 2
# Places above this are computed in 64 bits; the last cube counts a little past the end.
FAR = 2**31 - 2**16
_MOST_LAYOUTS = 1 << 16
_NEVER: Any = object()
# Bytes of the longest vector.
VECTOR = 64


class Engine:
    """Allocates, makes kernels once, launches them.

    Attributes:
        client: the device of burn-cube.
        validate: indices outside their dim are noted and raised at the next sync.
        providers: libraries of the device by what they compute, found at first use.
        log_lock: held while a run of a plan is noted.
        replayed: plans that keep memory for their next run.
        packs: packed forms that are kept.
        label: the operation that runs, for reports of who holds memory.
        tf32: libraries may read factors of float32 as tf32.
        keeps_last: results of images whose channels lie last lie so too. It is set where a library
            computes convolutions so; elsewhere every result lies row by row.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.validate = os.environ.get("BURN_CUBE_VALIDATE", "1") != "0"
        self.providers: dict[str, Any] = {}
        self.log_lock = threading.Lock()
        self.replayed: WeakSet[Any] = WeakSet()
        self.packs: WeakSet[Packs] = WeakSet()
        self._layouts: dict[Any, int] = {}
        self._layout_count = 0
        self._scratch = threading.local()
        self.label = ""
        self.tf32 = False
        self.keeps_last = False
        self._loaded: dict[Any, Program] = {}
        self._sites: dict[tuple[str, int, int, bool], int] = {}
        self._record: tuple[DeviceArray, Record] | None = None
        self._watching = False

    @property
    def log(self) -> LaunchLog | None:
        """What a run of a plan is noted in while it is."""
        log: Any = self.client.log
        return log  # type: ignore[no-any-return]

    # --- memory ----------------------------------------------------------------------------

    def empty(self, shape: Ints, dtype: DType) -> CubeTensor:
        """Return a row-major tensor with undefined elements."""
        return CubeTensor(self.flat(size_of(shape), dtype), shape, dense(shape), dtype)

    def flat(self, count: int, dtype: DType, label: str = "") -> DeviceArray:
        """Return memory for so many elements, at least one; reports name it by its label."""
        return self.client.empty(max(count, 1), dtype, label or self.label)

    def memory(self, size: int) -> DeviceArray:
        """Return so many bytes."""
        return self.client.empty(size, d.uint8, "results of plans")

    def scratch(self, size: int) -> DeviceArray | None:
        """Return memory for what is made and dies in one list of launches; None where none does.

        It is of this thread. Who calls holds it: another thread may clean up meanwhile.
        """
        if not size:
            return None
        held: DeviceArray | None = getattr(self._scratch, "held", None)
        if held is None or held.length < size:
            self._scratch.held = None  # given back first
            held = self._scratch.held = self.client.empty(size, d.uint8, "scratch of plans")
        return held

    def end_scratch(self) -> None:
        """Give this thread's memory of `scratch` back; the next list takes new one."""
        self._scratch.held = None

    def layout_of(self, x: CubeTensor | QuantTensor) -> Any:
        """Return what launches on a tensor depend on but for its address: a number, or a key."""
        if isinstance(x, QuantTensor):
            return self._layout_of_parts(x)
        if x.buf is None:
            return "number", x.value.__class__, repr(x.value)
        # Kernels that read vectors are chosen by the place of the memory as well.
        return self._numbered(
            x, (x.shape, x.strides, x.offset, x.buf.length, x.buf.pointer % VECTOR)
        )

    def _layout_of_parts(self, q: QuantTensor) -> Any:
        parts = [x.layout or self.layout_of(x) for x in (q.values, *q.scales)]
        key = (q.dtype, q.shape, *parts)
        return key if any(p.__class__ is not int for p in parts) else self._numbered(q, key)

    def _numbered(self, x: CubeTensor | QuantTensor, key: Any) -> int:
        """Return the number of a layout, which the tensor keeps."""
        found = self._layouts.get(key)
        if found is None:
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layout_count += 1
            found = self._layouts[key] = self._layout_count
        x.layout = found
        return found

    def cleanup(self) -> None:
        """Give memory back that nobody uses."""
        for plan in list(self.replayed):
            plan.forget()
        for packs in list(self.packs):
            packs.forms.clear()
        self._scratch = threading.local()
        self.client.memory_cleanup()

    def packed(self, owner: CubeTensor, x: CubeTensor, make: Make, *args: Any) -> Arrays:
        """Return `make(engine, x, *args)`, kept with a value that is packed again and again.

        Args:
            owner: the payload that has the value.
            x: what is packed: it, or another window on its memory.
            make: packs a tensor.
            args: more that the form depends on.
        """
        log = self.log
        if log is not None and log.thread == threading.get_ident():
            return log.packed(self, x, make, args)
        if owner.buf is not x.buf:
            return make(self, x, *args)  # of a copy, which ends with this call
        packs = owner.packed
        if packs is None:
            packs = owner.packed = Packs()
        key = key_of(x, make, args)
        found = packs.forms.get(key, _NEVER)
        if found.__class__ is tuple:
            return found
        made = make(self, x, *args)
        if found is _NEVER:
            packs.forms[key] = None
        else:
            packs.forms[key] = made
            self.packs.add(packs)
        return made

    def from_numpy(self, array: np.ndarray[Any, Any], dtype: DType) -> CubeTensor:
        """Return a tensor with the elements of an array."""
        if self.log is not None and self.log.thread == threading.get_ident():
            self.log.broken = "data of the host are sent"
        self.label = "data from the host"
        made = self.empty(array.shape, dtype)
        if array.size and made.buf is not None:
            flat = np.ascontiguousarray(array).reshape(-1)
            self.client.runtime.write(made.buf.storage.handle, 0, flat.view(np.uint8).data)
        return made

    def solid(self, x: CubeTensor) -> CubeTensor:
        """Return the tensor with memory behind it."""
        if x.buf is not None:
            return x
        from burn_cube_backend.kernels.create import filled

        made = filled(self, x.dtype, (), x.value)
        # Payloads of scalars are kept and used again: the next kernel finds the memory.
        x.buf, x.offset = made.buf, made.offset
        return x

    def row_major(self, x: CubeTensor) -> CubeTensor:
        """Return the tensor, or a copy of it, in row-major order."""
        x = self.solid(x)
        if is_dense(x.shape, x.strides):
            return x
        from burn_cube_backend.kernels.maps import copied

        return copied(self, x)

    def array(self, x: CubeTensor, *, strided: bool = False) -> DeviceArray:
        """Return a tensor as an argument of a `@cube` function.

        Args:
            x: an input, or a new tensor of `empty`.
            strided: for a `Tensor` parameter, which reads views as they lie; for an `Array` a view
                that is not row-major is copied. So is one that runs backwards.

        Example:
            >>> from burn_cube_backend.plugin import interp
            >>> engine = interp.create(0).engine
            >>> engine.array(engine.empty((2, 3), d.float32))
            DeviceArray(interp, float32[2, 3])
        """
        x = self.solid(x)
        backwards = any(s < 0 for s in x.strides)
        if not strided or backwards:
            x = self.row_major(x)
        steps = x.strides if strided else None
        assert x.buf is not None  # noqa: S101 - `solid` gave it memory
        return x.buf.view(x.shape, steps, x.offset)

    def reading(self, x: CubeTensor) -> Any:
        """Start reading the elements; `result()` of what is returned waits for the array."""
        return self.client.read_async([self.array(x)])[0]

    def to_numpy(self, x: CubeTensor) -> np.ndarray[Any, Any]:
        """Return the elements; waits for the device and raises what went wrong on it."""
        out: np.ndarray[Any, Any] = self.reading(x).result()
        self.check()
        return out

    # --- kernels ---------------------------------------------------------------------------

    def run(
        self, make: Callable[..., Kernel], spec: tuple[Any, ...], count: int, args: Sequence[Any]
    ) -> None:
        """Launch a kernel with one unit for each of `count` elements.

        Args:
            make: the function that writes the kernel.
            spec: its arguments, all that the kernel depends on.
            count: units needed.
            args: buffers and numbers, in the order of the kernel's parameters.
        """
        self.cubes(make, spec, -(-count // UNITS), args)

    def cubes(
        self, make: Callable[..., Kernel], spec: tuple[Any, ...], count: int, args: Sequence[Any]
    ) -> None:
        """Launch a kernel with so many cubes."""
        if count > 0:
            self.start(self.loaded(make, spec), (count, 1, 1), args)

    def start(self, program: Any, cubes: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Launch a compiled kernel, whose arguments this package has made to fit."""
        client = self.client
        log = client.log
        if log is not None and log.thread == threading.get_ident():
            log.launch(program, cubes, args)
        elif profiles():
            client.run(program, cubes, args)
        else:
            program.launch(cubes, args)

    def walked(self, out: CubeTensor, x: CubeTensor, launches: int) -> None:
        """Say that the last so many launches may write one tensor over another.

        They walk through both: each writes over elements that it alone reads.
        """
        log = self.log
        if log is None or log.thread != threading.get_ident():
            return
        if out.buf is not None and x.buf is not None:
            log.walked(out.buf, x.buf, launches)

    def loaded(self, make: Callable[..., Kernel], spec: tuple[Any, ...]) -> Program:
        """Return the kernel of a function and its arguments, compiled at the first call."""
        key = (make, spec)
        found = self._loaded.get(key)
        if found is None:
            found = self._loaded.setdefault(key, self.client.load(make(*spec)))
        return found

    def index_dtype(self, *tensors: CubeTensor, count: int = 0) -> DType:
        """Return the dtype that the device likes best and that holds every place of tensors."""
        # An expanded dim may be longer than the memory behind it.
        if count > FAR or any(
            (x.buf is not None and x.buf.length > FAR) or max(x.shape, default=0) > FAR
            for x in tensors
        ):
            return d.int64
        return self.client.properties.index

    # --- faults ----------------------------------------------------------------------------

    def record(self) -> DeviceArray:
        """Return the memory in which kernels note an index outside its dim."""
        if self._record is None:
            self._record = self.client.record(_RECORD, d.int32)
        self._watching = True
        if self.log is not None:
            self.log.watches = True
        return self._record[0]

    def site(self, op: str, dim: int, size: int, negative: bool = False) -> int:
        """Return the number by which a kernel notes this use of indices; 0 notes nothing."""
        if not self.validate:
            return 0
        key = (op, dim, size, negative)
        return self._sites.setdefault(key, len(self._sites) + 1)

    def check(self) -> None:
        """Raise the first index outside its dim since the last check.

        Raises:
            IndexRangeError: names operation, dim, index and size.
        """
        if not self._watching or self._record is None:
            return
        record = self._record[1]
        # Where the host sees it, launches that run still may note something: it is asked again.
        self._watching = record.is_seen
        if not any(record.read()):
            return
        self.client.runtime.sync()  # a kernel that still runs writes one word after the other
        site, bad = np.frombuffer(record.read(), np.int32).tolist()
        record.clear()
        op, dim, size, negative = next(k for k, n in self._sites.items() if n == site)
        low = -size if negative else 0
        raise IndexRangeError(
            op, f"indices along dim {dim} must be in [{low}, {size - 1}]",
            got=f"index {bad} for size {size}",
        )  # fmt: skip

    def sync(self) -> None:
        """Wait for the device and raise what went wrong on it."""
        self.client.runtime.sync()
        if self._watching:
            self.check()
