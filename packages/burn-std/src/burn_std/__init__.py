"""Dtypes, shapes, errors and the plugin loader: what every package stands on; imports no numpy."""

from burn_std.dtypes import (
    FLOATS as FLOATS,
    INTS as INTS,
    PLAIN as PLAIN,
    DType as DType,
    QDType as QDType,
    parse_dtype as parse_dtype,
    promote_dtypes as promote_dtypes,
    quantized as quantized,
)
from burn_std.errors import (
    ArgumentError as ArgumentError,
    AutodiffError as AutodiffError,
    BackendContractError as BackendContractError,
    BackendError as BackendError,
    BackendLoadError as BackendLoadError,
    BurnError as BurnError,
    ConfigError as ConfigError,
    DeviceError as DeviceError,
    DeviceLostError as DeviceLostError,
    DTypeError as DTypeError,
    ExecutionError as ExecutionError,
    GraphError as GraphError,
    IndexRangeError as IndexRangeError,
    ShapeError as ShapeError,
    StoreError as StoreError,
    TrainError as TrainError,
    UnsupportedOpError as UnsupportedOpError,
)
from burn_std.plugins import (
    PluginGroup as PluginGroup,
    PluginInfo as PluginInfo,
    load_object as load_object,
    nearest as nearest,
)
