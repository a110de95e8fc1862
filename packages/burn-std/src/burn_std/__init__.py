"""Dtypes, shapes, errors and the plugin loader: what every package stands on; imports no numpy."""

from burn_std.absent import Absent as Absent, present as present
from burn_std.attributes import Closed as Closed, ClosedMeta as ClosedMeta, need_dict as need_dict
from burn_std.dtypes import (
    FLOATS as FLOATS,
    INTS as INTS,
    PLAIN as PLAIN,
    DType as DType,
    QDType as QDType,
    bfloat16 as bfloat16,
    bool_ as bool_,
    dtype_remedy as dtype_remedy,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    parse_dtype as parse_dtype,
    promote_dtypes as promote_dtypes,
    quantized as quantized,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from burn_std.errors import (
    ArgumentError as ArgumentError,
    AutodiffError as AutodiffError,
    BackendContractError as BackendContractError,
    BackendError as BackendError,
    BackendLoadError as BackendLoadError,
    BroadcastWarning as BroadcastWarning,
    BurnError as BurnError,
    CaptureError as CaptureError,
    ConfigError as ConfigError,
    DeviceError as DeviceError,
    DeviceLostError as DeviceLostError,
    DTypeError as DTypeError,
    ExecutionError as ExecutionError,
    GraphError as GraphError,
    IndexRangeError as IndexRangeError,
    PlanChurnWarning as PlanChurnWarning,
    PropertyError as PropertyError,
    ReplayWarning as ReplayWarning,
    ShapeError as ShapeError,
    StoreError as StoreError,
    TrainError as TrainError,
    UnsupportedOpError as UnsupportedOpError,
    unwritten as unwritten,
)
from burn_std.keywords import unknown_keyword as unknown_keyword
from burn_std.places import (
    Place as Place,
    user_frame as user_frame,
    user_place as user_place,
    warn_user as warn_user,
)
from burn_std.plugins import (
    PluginGroup as PluginGroup,
    PluginInfo as PluginInfo,
    load_object as load_object,
    missing_name as missing_name,
    nearest as nearest,
)
from burn_std.references import OF_A_LOCAL as OF_A_LOCAL
