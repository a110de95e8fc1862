"""The framework under one name.

    import burn

    x = burn.tensor([1.0, 2.0])
    model = burn.nn.Linear(2, 1)

Tensors and the base of modules are imported at once; layers, optimizers, data sets, files and
training when they are first named.
"""

from typing import TYPE_CHECKING

import burn_tensor
from burn_core import Config, Module, Parameter, is_training
from burn_dispatch import (
    Device,
    DeviceConfig,
    DeviceFilter,
    Devices,
    autocast,
    device,
    device_report,
    enable_grad,
    no_fusion,
    no_grad,
    profile,
)
from burn_std import (
    ArgumentError,
    AutodiffError,
    BackendContractError,
    BackendError,
    BackendLoadError,
    BroadcastWarning,
    BurnError,
    CaptureError,
    ConfigError,
    DeviceError,
    DeviceLostError,
    DType,
    DTypeError,
    ExecutionError,
    GraphError,
    IndexRangeError,
    PlanChurnWarning,
    QDType,
    ReplayWarning,
    ShapeError,
    StoreError,
    TrainError,
    UnsupportedOpError,
    dtypes as _dtypes,
    missing_name as _missing_name,
    quantized,
)
from burn_tensor import *  # noqa: F403 - its __all__ is added below

bool_ = _dtypes.bool_
int8 = _dtypes.int8
int16 = _dtypes.int16
int32 = _dtypes.int32
int64 = _dtypes.int64
uint8 = _dtypes.uint8
uint16 = _dtypes.uint16
uint32 = _dtypes.uint32
uint64 = _dtypes.uint64
float16 = _dtypes.float16
bfloat16 = _dtypes.bfloat16
float32 = _dtypes.float32
float64 = _dtypes.float64
inf = float("inf")
nan = float("nan")
pi = 3.141592653589793

if TYPE_CHECKING:
    from burn import core as core, dataset, nn, optim, store, train
    from burn_core import Graph, capture, explain, graph, memory_report
else:
    _LAZY = {n: f"burn.{n}" for n in ("core", "dataset", "nn", "optim", "store", "train")}
    _LATE = ("Graph", "capture", "explain", "graph", "memory_report")

    # What `torch` has under this name, and what to write instead.
    _OTHERWISE = {
        "save": "Write burn.store.save(model, path).",
        "load": "Write burn.store.load(model, path); burn.store.open(path) reads tensors.",
        "compile": "Devices that compile record and fuse by themselves: burn.Device.cpu().",
        "cuda": "A device is a value: burn.Device.cuda(); burn.Device.enumerate() lists them.",
        "autograd": "Use loss.backward(), burn.grad or burn.value_and_grad.",
        "inference_mode": "Use burn.no_grad, or model.valid().",
        "set_default_dtype": "Configure a device: burn.device(name).configure(burn.float64).",
        "set_default_device": "Write `with device:`, or set BURN_DEVICE.",
        "Generator": "Use burn.manual_seed(seed) or device.seed(seed).",
        "FloatTensor": "Write burn.tensor(data, dtype=burn.float32).",
        "LongTensor": "Write burn.tensor(data, dtype=burn.int64).",
        "utils": "Data sets and loaders are in burn.dataset.",
        "asarray": "Use burn.as_tensor(data).",
        "half": "Write burn.float16.",
        "float": "Write burn.float32.",
        "double": "Write burn.float64.",
        "short": "Write burn.int16.",
        "int": "Write burn.int32.",
        "long": "Write burn.int64.",
        "bool": "Write burn.bool_.",
    }

    def __getattr__(name: str) -> object:
        """Import a part at its first use."""
        if name in _LATE:
            import burn_core

            globals()[name] = found = getattr(burn_core, name)
            return found
        module = _LAZY.get(name)
        if module is None:
            raise _missing_name("burn", name, __all__, _OTHERWISE)
        from importlib import import_module

        globals()[name] = part = import_module(module)
        return part

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LAZY, *_LATE})


__all__ = [
    "ArgumentError",
    "AutodiffError",
    "BackendContractError",
    "BackendError",
    "BackendLoadError",
    "BroadcastWarning",
    "BurnError",
    "CaptureError",
    "Config",
    "ConfigError",
    "DType",
    "DTypeError",
    "Device",
    "DeviceConfig",
    "DeviceError",
    "DeviceFilter",
    "DeviceLostError",
    "Devices",
    "ExecutionError",
    "Graph",
    "GraphError",
    "IndexRangeError",
    "Module",
    "Parameter",
    "PlanChurnWarning",
    "QDType",
    "ReplayWarning",
    "ShapeError",
    "StoreError",
    "TrainError",
    "UnsupportedOpError",
    "autocast",
    "bfloat16",
    "bool_",
    "capture",
    "dataset",
    "device",
    "device_report",
    "enable_grad",
    "explain",
    "float16",
    "float32",
    "float64",
    "graph",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_training",
    "memory_report",
    "nan",
    "nn",
    "no_fusion",
    "no_grad",
    "optim",
    "pi",
    "profile",
    "quantized",
    "store",
    "train",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
__all__ += burn_tensor.__all__
__all__.sort()
