"""The device `capture`: operations are recorded and never run, so that a graph can be taken.

It is the recorder with nothing behind it. What came from the host is held as it is, for the graph
to keep as its weights; everything else has a shape and a dtype alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from burn_backend import API_VERSION, Backend, Fragments, Kernel
from burn_fusion.backend import FusionBackend
from burn_fusion.recorder import Recorder
from burn_fusion.segment import Holder, Segment, Value, opened
from burn_ir import CATALOG, Entry, Program, Runtime
from burn_std import PLAIN, CaptureError, DType, parse_dtype

# A graph is never cut.
_NO_CUT = 1 << 60
_REMEDY = (
    "Return the tensor from the function, and read it where the graph runs: "
    "burn.graph(fn, x).run(device, x)."
)


class Held:
    """A payload of the device.

    Attributes:
        array: what came from the host; None for an input of a graph.
        shape: extents.
        dtype: element type.
    """

    __slots__ = ("array", "dtype", "shape")

    def __init__(self, array: Any, shape: tuple[int, ...], dtype: DType) -> None:
        self.array = array
        self.shape = shape
        self.dtype = dtype


class _Everything(dict[str, Kernel]):
    """A table of all operations, those registered later as well; none of them runs."""

    def __missing__(self, name: str) -> Kernel:
        made = self[name] = Kernel(lambda key: _refused(name))
        return made

    def __contains__(self, name: object) -> bool:
        return name in CATALOG


def _refused(name: str) -> Any:
    raise CaptureError(name, "the device runs nothing", remedy=_REMEDY)


class HostBackend(Backend):
    """What stands behind the recorder: arrays of the host."""

    name = "host"

    def __init__(self) -> None:
        super().__init__(_Everything(), {d: d for d in PLAIN})

    def from_numpy(self, array: Any, copy: bool) -> Held:
        """Hold an array.

        Raises:
            CaptureError: it is quantised.
        """
        if not hasattr(array, "copy"):
            raise CaptureError(
                "graph", "a graph has no quantised tensors", got=array,
                remedy="Dequantise the module first.",
            )  # fmt: skip
        kept = array.copy() if copy else array
        return Held(kept, tuple(array.shape), parse_dtype(array.dtype.name))

    def to_numpy(self, payload: Held) -> Any:
        """Return what came from the host.

        Raises:
            CaptureError: an input has no value.
        """
        if payload.array is None:
            raise CaptureError("read", "an input of a graph has no value", remedy=_REMEDY)
        view = payload.array.view()
        view.flags.writeable = False
        return view


class GraphRecorder(Recorder):
    """Keeps all that is recorded, and runs nothing."""

    def take(self, value: Value) -> int:
        """Take a value from outside; it must be one that came from the host."""
        if value.seg is not None:
            raise CaptureError(
                "graph", "a graph reads its arguments and what came from the host",
                got=f"{value.dtype.name}{list(value.shape)} recorded outside of it",
                remedy="Compute it inside, pass it as an argument, or move a module that "
                "has values: model.to_device(burn.Device.capture()).",
            )  # fmt: skip
        seg = self.tls.h.seg
        ext = seg.ext
        seg.slots[value] = slot = -1 - len(ext)
        ext.append(value)
        return slot

    def buffer(self, value: Value) -> Any:
        """Return what came from the host.

        Raises:
            CaptureError: the value is the result of an operation.
        """
        if value.seg is not None:
            raise CaptureError(
                "read", "a device that captures computes nothing",
                got=f"{value.dtype.name}{list(value.shape)}", remedy=_REMEDY,
            )  # fmt: skip
        return value.buf

    def flush(self, seg: Segment) -> None:
        """Do nothing."""


class GraphBackend(FusionBackend):
    """Records, and gives what was recorded as a program."""

    def __init__(self) -> None:
        super().__init__(HostBackend(), soft=_NO_CUT, cap=_NO_CUT, budget=_NO_CUT)
        self.name = "capture"
        self.recorder = GraphRecorder(self.inner)

    def execute(self, entry: Entry, inputs: Sequence[Any], attrs: Sequence[Any]) -> Any:
        """Record a constant; nothing else can be had at once.

        Raises:
            CaptureError: the operation needs values.
        """
        if entry.name == "full":
            dtype, shape, value = attrs
            return self.constant(dtype, tuple(shape), value)
        raise CaptureError(
            entry.name, "a device that captures computes nothing",
            got="an operation whose result depends on values",
            remedy="Sizes that depend on data have a static form, as nonzero(size=, fill_value=).",
        )  # fmt: skip

    def fragments_at_once(self, entry: Entry) -> Fragments:
        """Record inside `no_fusion` too: there is nothing else to do."""
        return self.fragments(entry)

    def scalar_at_once(self, value: Any, dtype: DType) -> Value:
        """Record a number."""
        return self.scalar(value, dtype)

    def sync(self) -> None:
        """Do nothing: nothing runs."""

    def step_log(self, op: str = "capture") -> Any:
        """Refuse: a step that is replayed has to run.

        Raises:
            CaptureError: always.
        """
        raise CaptureError(
            op, "the device records a graph and runs nothing", got=self.name,
            remedy="Use burn.graph(fn, x) here, or burn.capture on a device that runs.",
        )  # fmt: skip

    # ---- graphs -------------------------------------------------------------------------------

    def symbol(self, payload: Value) -> Value:
        """Return an input of a graph: a value with the shape and dtype of another, and no data."""
        return self._value(Held(None, payload.shape, payload.dtype))

    @contextmanager
    def graph(self) -> Iterator[Holder]:
        """Record into a segment of its own inside the block."""
        holder = self.recorder.tls.h
        old, holder.seg = holder.seg, opened()
        try:
            yield holder
        finally:
            holder.seg = old

    def program(self, holder: Holder) -> tuple[Program, Runtime, list[Value]]:
        """Return what was recorded in a block, and the values that it read from outside."""
        seg = holder.seg
        program, runtime = Program.from_segment([v.op for v in seg.vals], seg.ext, seg.rt)
        return program, runtime, list(seg.ext)


class GraphPlugin:
    """Entry point `capture` of `burn.backends`."""

    name = "capture"
    api_version = API_VERSION
    about = "records graphs and runs nothing"

    def device_count(self) -> int:
        """Return 0: it is no device to compute on."""
        return 0

    def create(self, index: int) -> GraphBackend:
        """Return the backend of one device."""
        return GraphBackend()


plugin = GraphPlugin()
