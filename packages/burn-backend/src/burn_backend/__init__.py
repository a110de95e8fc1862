"""The contract between the framework and its backends and decorators.

Dtypes and the errors that kernels raise are handed on from burn-std, so that a backend of a third
party names one package.
"""

from burn_backend.backend import (
    API_VERSION as API_VERSION,
    Backend as Backend,
    BackendPlugin as BackendPlugin,
    specs_of as specs_of,
)
from burn_backend.fragments import (
    Again as Again,
    Fragments as Fragments,
    Memo as Memo,
    argument_names as argument_names,
    infer_lines as infer_lines,
    payload_names as payload_names,
)
from burn_backend.fusing import (
    CORES as CORES,
    GIVEN as GIVEN,
    JOINTS as JOINTS,
    LEAVES as LEAVES,
    STAGED as STAGED,
    Form as Form,
    Fused as Fused,
    Fuser as Fuser,
    Group as Group,
    Part as Part,
)
from burn_backend.kernel import Kernel as Kernel
from burn_backend.native import native_mode as native_mode
from burn_backend.overwriting import Free as Free, OverwrittenError as OverwrittenError
from burn_backend.quantized import QuantizedArray as QuantizedArray
from burn_backend.scalar import (
    check_scalar as check_scalar,
    number_of as number_of,
    plain_scalar as plain_scalar,
)
from burn_backend.tensor import (
    TENSOR_CLASS as TENSOR_CLASS,
    TensorBase as TensorBase,
    register_tensor_class as register_tensor_class,
)
from burn_backend.watching import Watcher as Watcher
from burn_std import (
    PLAIN as PLAIN,
    ArgumentError as ArgumentError,
    DType as DType,
    IndexRangeError as IndexRangeError,
)
