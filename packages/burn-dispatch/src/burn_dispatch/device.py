"""Devices: values that name a computing resource and carry autodiff as a property."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from burn_backend import API_VERSION
from burn_dispatch.choices import DeviceConfig, DeviceFilter
from burn_dispatch.profiling import joined
from burn_dispatch.resource import Resource
from burn_dispatch.stack import Stack, stack_of
from burn_std import BackendLoadError, BurnError, DeviceError, DType, DTypeError, PluginGroup

if TYPE_CHECKING:
    from burn_dispatch.context import Context

BACKENDS = PluginGroup("burn.backends", API_VERSION)
DECORATORS = PluginGroup("burn.decorators", API_VERSION)

_LOCK = threading.RLock()
# By every name that was asked for; several may mean one resource.
_RESOURCES: dict[tuple[str, int], Resource] = {}
# Tried in this order for the default device, those marked True for their GPUs only.
_DEFAULT_ORDER = (
    ("cuda", False),
    ("opencl", True),
    ("cpu", False),
    ("flex", False),
    ("opencl", False),
)
_default: Device | None = None
_seed: int | None = None
# Devices of the open blocks, innermost first. The variable alone says what holds, so that threads
# and coroutines may share a device object.
_blocks: ContextVar[tuple[Device, Any] | None] = ContextVar("burn_default_device", default=None)


def resource(name: str, index: int = 0) -> Resource:
    """Return the resource of a device name such as `flex` or `fusion-flex`, one object each.

    Names that mean the same device, `cpu` and `fusion-cpu`, give the same object.

    Raises:
        BackendLoadError: the backend or a decorator is not installed or does not load.
        DeviceError: the index is out of range, or the name puts decorators together wrongly.
    """
    key = (name, index)
    found = _RESOURCES.get(key)
    if found is not None:
        return found
    with _LOCK:
        found = _RESOURCES.get(key)
        if found is None:
            stack = stack_of(name, BACKENDS, DECORATORS)
            found = _RESOURCES.get((stack.name, index))
            if found is None:
                found = _make_resource(stack, index)
                _RESOURCES[stack.name, index] = found
                if _seed is not None:
                    found.seed(_seed)
                joined(found)
            _RESOURCES[key] = found
        return found


def resources() -> list[Resource]:
    """Return the resources that were asked for so far, each once."""
    with _LOCK:
        return list(dict.fromkeys(_RESOURCES.values()))


def _device_count(name: str, gpus: bool = False) -> int:
    """Return how many devices a backend sees, or how many GPUs; asks its driver.

    Raises:
        BackendLoadError: it does not load, or breaks when it looks.
    """
    plugin = BACKENDS.load(name)
    count = getattr(plugin, "gpu_count", lambda: 0) if gpus else plugin.device_count
    try:
        return int(count())
    except BurnError:
        raise
    except Exception as cause:
        raise BackendLoadError(
            name, "the backend breaks when it looks for devices",
            got=f"{type(cause).__name__}: {cause}",
            remedy="See `python -m burn doctor` and the chained error.",
        ) from cause  # fmt: skip


def _make_resource(stack: Stack, index: int) -> Resource:
    name, base = stack.name, stack.base
    if index.__class__ is not int or index < 0:
        raise DeviceError(name, "a device index is an integer and not negative", got=repr(index))
    try:
        backend = BACKENDS.load(base).create(index)
    except BurnError:
        raise
    except Exception as cause:
        raise BackendLoadError(
            base, "the backend does not start", got=f"{type(cause).__name__}: {cause}",
            remedy="See `python -m burn doctor` and the chained error.",
        ) from cause  # fmt: skip
    for wrapper in reversed(stack.wrappers):
        wrap = getattr(DECORATORS.load(wrapper), "backend", None)
        if wrap is None:
            raise DeviceError(
                name, f"{wrapper} is a property of a device and no part of its name",
                got=repr(name), remedy=f"Write burn.device({base!r}).{wrapper}().",
            )  # fmt: skip
        backend = wrap(backend)
    return Resource(name, stack.chain, backend, index)


class Device:
    """A computing resource and whether its tensors can be differentiated.

    Equality compares the resource and ignores autodiff. Make one with `Device.flex()`,
    `Device.default()`, `burn.device("fusion-flex:1")`.

    Example:
        >>> device = Device.flex()
        >>> device.is_autodiff(), device.autodiff().is_autodiff()
        (False, True)
        >>> device == device.autodiff()
        True
    """

    __slots__ = ("_autodiff", "_checkpointing", "_context", "_resource")

    def __init__(
        self, resource: Resource, autodiff: bool = False, checkpointing: bool = False
    ) -> None:
        self._resource = resource
        self._autodiff = autodiff
        self._checkpointing = checkpointing
        self._context: Context | None = None

    # ---- which ------------------------------------------------------------------------------

    @staticmethod
    def default() -> Device:
        """Return the default device.

        That is the one of the enclosing `with device:`, else `BURN_DEVICE`, else the first usable
        of cuda, opencl (GPU), cpu, flex, opencl.
        """
        block = _blocks.get()
        return _default_device() if block is None else block[0]

    @staticmethod
    def flex(index: int = 0) -> Device:
        """Return the eager numpy device."""
        return Device(resource("flex", index))

    @staticmethod
    def cpu(index: int = 0) -> Device:
        """Return the compiling CPU device; its operations are recorded and fused.

        `burn.device("eager-cpu")` is the same one without the recorder.
        """
        return Device(resource("cpu", index))

    @staticmethod
    def cuda(index: int = 0) -> Device:
        """Return an NVIDIA GPU; operations are recorded and fused, see `cpu`."""
        return Device(resource("cuda", index))

    @staticmethod
    def opencl(index: int = 0) -> Device:
        """Return an OpenCL device; operations are recorded and fused, see `cpu`."""
        return Device(resource("opencl", index))

    @staticmethod
    def capture(index: int = 0) -> Device:
        """Return a device that records a graph without executing it, see `burn.graph`.

        Tensors on it have a shape and a dtype and no value; reading one is a `CaptureError`.
        Modules that move there bring their weights along.

        Example:
            >>> x = burn.ones(2, 3, device=Device.capture())
            >>> (x @ x.T).softmax(-1).shape
            (2, 2)
        """
        return Device(resource("capture", index))

    @staticmethod
    def remote_websocket(url: str, index: int = 0) -> Device:
        """Return a device of a server."""
        plugin = BACKENDS.load("remote")
        return Device(plugin.resource(url, index))

    @staticmethod
    def enumerate(filter: DeviceFilter | None = None) -> Devices:
        """Return the devices there are, of the kinds that the filter names.

        A backend that is installed and does not work hides no other: it is logged, and stands
        under its name in the result's `broken`.

        Example:
            >>> Device.enumerate(DeviceFilter("flex")).broken
            {}
        """
        if filter is not None and not isinstance(filter, DeviceFilter):
            raise DTypeError("enumerate", "filter is a DeviceFilter", got=repr(filter))
        found = Devices()
        for name in BACKENDS.names():
            if (filter is None and name != "null") or (filter is not None and filter.admits(name)):
                try:
                    found += [Device(resource(name, i)) for i in range(_device_count(name))]
                except BurnError as error:
                    found.broken[name] = error
                    _log().warning("devices of %s left out: %s", name, error)
        return found

    # ---- contexts ---------------------------------------------------------------------------

    @property
    def context(self) -> Context:
        """The context in which tensors of this device live."""
        found = self._context
        if found is None:
            decorator = _autodiff() if self._autodiff else None
            found = self._context = self._resource.context(decorator, self._checkpointing)
        return found

    def autodiff(self) -> Device:
        """Return this device with gradients.

        Raises:
            BackendLoadError: burn-autodiff is not installed.
        """
        if self._autodiff:
            return self
        _autodiff()
        return Device(self._resource, True, False)

    def without_autodiff(self) -> Device:
        """Return this device without gradients."""
        return Device(self._resource) if self._autodiff else self

    def gradient_checkpointing(self) -> Device:
        """Return this autodiff device with memory-bound outputs recomputed in the backward.

        Raises:
            DeviceError: the device has no autodiff.
        """
        if not self._autodiff:
            raise DeviceError(
                "gradient_checkpointing", "needs an autodiff device", got=str(self),
                remedy="Write device.autodiff().gradient_checkpointing().",
            )  # fmt: skip
        return self if self._checkpointing else Device(self._resource, True, True)

    def gradient_checkpointing_strategy(self) -> str:
        """Return `none` or `balanced`."""
        return "balanced" if self._checkpointing else "none"

    def is_autodiff(self) -> bool:
        """Return whether tensors made here can be differentiated."""
        return self._autodiff

    # ---- facts ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What `burn.device` takes, `fusion-flex:1`."""
        r = self._resource
        return f"{r.name}:{r.index}" if r.index else r.name

    @property
    def resource(self) -> Resource:
        """The computing resource; caches key on it."""
        return self._resource

    @property
    def index(self) -> int:
        """Number of this device among those of its backend."""
        return self._resource.index

    def supports_dtype(self, dtype: DType) -> bool:
        """Return whether tensors of the dtype can be made and computed with."""
        if not isinstance(dtype, DType):
            raise DTypeError("supports_dtype", "takes a dtype", got=repr(dtype))
        return self._resource.backend.supports_dtype(dtype)

    def settings(self) -> dict[str, Any]:
        """Return the default dtypes, and whether products may use tf32."""
        return {
            "default_float": self._resource.default_float,
            "default_int": self._resource.default_int,
            "tf32": self._resource.tf32,
        }

    def configure(self, config: Any) -> Device:
        """Set the default dtypes and how exact products are, once, before the first tensor.

        Args:
            config: a `DeviceConfig`, one dtype, or a pair (float, int).

        Raises:
            DeviceError: too late, or the device does not support a dtype.
        """
        config = DeviceConfig.of(config)
        r = self._resource
        dtypes = config.default_float or r.default_float, config.default_int or r.default_int
        r.configure(*dtypes, config.tf32)
        return self

    def seed(self, value: int) -> None:
        """Restart the random streams of every thread on this device."""
        self._resource.seed(value)

    def random_state(self) -> tuple[int, int]:
        """Return (seed, counter) of this thread's random stream."""
        return self._resource.random_state()

    def set_random_state(self, state: tuple[int, int]) -> None:
        """Put this thread's random stream where `random_state` was taken."""
        self._resource.set_random_state(state)

    def sync(self) -> None:
        """Wait until everything queued is done; raises ExecutionError for what failed."""
        self._resource.backend.sync()

    def flush(self) -> None:
        """Hand recorded operations to the device without waiting."""
        self._resource.backend.flush()

    def memory_cleanup(self) -> None:
        """Give cached memory back to the system."""
        self._resource.backend.memory_cleanup()

    def memory_report(self) -> dict[str, int]:
        """Return facts on memory in bytes, as far as the backend knows them."""
        return self._resource.backend.memory_report()

    def __enter__(self) -> Device:
        _blocks.set((self, _blocks.get()))
        return self

    def __exit__(self, *exc: object) -> None:
        # Blocks in generators end in any order, and in other threads than they began in: there,
        # nothing of this thread ends.
        block, above = _blocks.get(), []
        while block is not None and block[0] is not self:
            above.append(block[0])
            block = block[1]
        if block is not None:
            rest = block[1]
            for device in reversed(above):
                rest = (device, rest)
            _blocks.set(rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other._resource is self._resource

    def __hash__(self) -> int:
        return hash(id(self._resource))

    def __deepcopy__(self, memo: dict[int, Any]) -> Device:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name, self._autodiff, self._checkpointing)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            hint = " Use device.name, and device.index." if name == "type" else ""
            raise AttributeError(f"Device.{name}: devices have no such attribute.{hint}")

    def __repr__(self) -> str:
        chain = self._resource.chain
        text = f"autodiff<{chain}>" if self._autodiff else chain
        if self._checkpointing:
            text = f"checkpointing<{text}>"
        return f"{text}:{self._resource.index}" if self._resource.index else text


def _named(name: str, autodiff: bool, checkpointing: bool) -> Device:
    return Device(device(name).resource, autodiff, checkpointing)


class Devices(list[Device]):
    """Several devices, with what one does to all of them.

    Attributes:
        broken: errors by backend, of those that are installed and do not work.
    """

    def __init__(self, devices: Iterable[Device] = ()) -> None:
        super().__init__(devices)
        self.broken: dict[str, BurnError] = {}

    def autodiff(self) -> Devices:
        """Return the devices with gradients."""
        return Devices(d.autodiff() for d in self)

    def configure(self, config: Any) -> Devices:
        """Configure each device."""
        for d in self:
            d.configure(config)
        return self


def device(name: str | Device) -> Device:
    """Return the device of a name: `flex`, `cuda:0`, `fusion-flex:1`, `eager-cpu`.

    `cpu`, `cuda` and `opencl` stand behind the recorder where burn-fusion is installed, so that
    `fusion-cpu` is another name of `cpu`; `eager-` before a name means the device without it.

    Raises:
        DeviceError: the name has no valid index.
        BackendLoadError: nothing of that name is installed; the message says how to get it.

    Example:
        >>> device("flex:1").index
        1
        >>> device("fusion-cpu") == device("cpu") != device("eager-cpu")
        True
    """
    if isinstance(name, Device):
        return name
    if not isinstance(name, str):
        raise DeviceError("device", "takes a device or its name", got=type(name).__name__)
    base, index = name, "0"
    # Without an index the colon of `distribution:backend` chooses between two of one name.
    if ":" in name and not BACKENDS.installed(name):
        base, _, index = name.rpartition(":")
    if not index.isdigit():
        raise DeviceError("device", "a name is `backend` or `backend:index`", got=repr(name))
    return Device(resource(base, int(index)))


@contextmanager
def default_device(d: Device) -> Iterator[None]:
    """Set the default device of a block, like `with device:`."""
    with d:
        yield


def device_report() -> str:
    """Return why the default device is what it is."""
    _default_device()
    return "\n".join(_why)


_why: list[str] = []


def _default_device() -> Device:
    global _default
    if _default is not None:
        return _default
    with _LOCK:
        if _default is None:
            _default = _choose_default()
    return _default


def _choose_default() -> Device:
    wanted = os.environ.get("BURN_DEVICE")
    if wanted:
        _why.append(f"{wanted}: named by BURN_DEVICE")
        return device(wanted)
    for name, gpus in _DEFAULT_ORDER:
        what = f"{name} (GPU)" if gpus else name
        if not BACKENDS.installed(name):
            _note(f"{what}: not installed")
            continue
        if _device_count(name, gpus) == 0:
            lacks = getattr(BACKENDS.load(name), "lacks", lambda: None)()
            _note(f"{what}: {lacks} is not installed" if lacks else f"{what}: finds no hardware")
            continue
        _note(f"{what}: chosen")
        return Device(resource(name, 0))
    raise DeviceError(
        "Device.default", "no backend is installed", remedy="Install burn-flex of this project."
    )


def _log() -> Any:
    import logging  # 2 ms of every program's start, for a line that most never write

    return logging.getLogger("burn")


def _note(line: str) -> None:
    _why.append(line)
    _log().info("default device: %s", line)


def _autodiff() -> Any:
    return DECORATORS.load("autodiff")


def seed_all(value: int) -> None:
    """Restart the random streams of every device, of those used later too."""
    global _seed
    with _LOCK:
        _seed = value
        for r in resources():
            r.seed(value)


def sync_all(devices: Iterable[Device]) -> None:
    """Wait for several devices."""
    for d in devices:
        d.sync()
