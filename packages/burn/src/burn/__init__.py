"""The framework under one name.

    import burn

    x = burn.tensor([1.0, 2.0])
    model = burn.nn.Linear(2, 1)

What needs more than tensors, modules and optimizers (data sets, files, training) is imported when
it is first named.
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
    no_grad,
)
from burn_std import (
    ArgumentError,
    AutodiffError,
    BackendContractError,
    BackendError,
    BackendLoadError,
    BurnError,
    ConfigError,
    DeviceError,
    DeviceLostError,
    DType,
    DTypeError,
    ExecutionError,
    GraphError,
    IndexRangeError,
    QDType,
    ShapeError,
    StoreError,
    TrainError,
    UnsupportedOpError,
    dtypes as _dtypes,
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

# Submodules, so that `from burn.nn import Linear` works too.
from burn import core as core, nn, optim  # noqa: E402  # isort: skip

if TYPE_CHECKING:
    from burn import dataset, store, train
else:
    _LAZY = {"dataset": "burn.dataset", "store": "burn.store", "train": "burn.train"}

    def __getattr__(name: str) -> object:
        """Import a part at its first use."""
        module = _LAZY.get(name)
        if module is None:
            from difflib import get_close_matches

            near = get_close_matches(name, __all__, 1)
            hint = f" Did you mean burn.{near[0]}?" if near else ""
            raise AttributeError(f"burn: no such name; got {name!r}.{hint}")
        from importlib import import_module

        globals()[name] = part = import_module(module)
        return part

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LAZY})


__all__ = [
    "ArgumentError",
    "AutodiffError",
    "BackendContractError",
    "BackendError",
    "BackendLoadError",
    "BurnError",
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
    "GraphError",
    "IndexRangeError",
    "Module",
    "Parameter",
    "QDType",
    "ShapeError",
    "StoreError",
    "TrainError",
    "UnsupportedOpError",
    "autocast",
    "bfloat16",
    "bool_",
    "dataset",
    "device",
    "device_report",
    "enable_grad",
    "float16",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_training",
    "nan",
    "nn",
    "no_grad",
    "optim",
    "pi",
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
