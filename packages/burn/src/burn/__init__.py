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
    _TF32 = "Configure a device: burn.device(name).configure(burn.DeviceConfig(tf32=True))."
    _DTYPE = "Configure a device: burn.device(name).configure(burn.float64)."
    _CAPTURE = (
        "Devices that compile record and fuse by themselves: burn.Device.cpu(). "
        "burn.capture(step, state=...) replays a whole step, burn.graph writes one to a file."
    )
    _RANDOM = "Use burn.manual_seed(seed) or device.seed(seed); a value depends on seed and call."
    _COMPLEX = "There is no complex dtype: burn.fft keeps real and imaginary parts as two tensors."
    _SERIAL = "Set BURN_NUM_THREADS for the device cpu, OMP_NUM_THREADS for numpy."
    _LAYOUT = "Layouts are no part of a tensor: leave it out."
    _OTHERWISE = {
        "save": "Write burn.store.save(model, path).",
        "load": "Write burn.store.load(model, path); burn.store.open(path) reads tensors.",
        "compile": _CAPTURE,
        "jit": _CAPTURE,
        "fx": _CAPTURE,
        "vmap": "Write the function for a batch: operations take leading dims and broadcast.",
        "func": "Use burn.grad and burn.value_and_grad; modules are called with their parameters.",
        "export": "Use burn.graph, or burn.store.save.",
        "onnx": "Use burn.graph, or burn.store.save.",
        "hub": "Download the file, and read it with burn.store.load(model, path).",
        "cuda": "A device is a value: burn.Device.cuda(); burn.Device.enumerate() lists them.",
        "mps": "Devices are listed by burn.Device.enumerate().",
        "backends": "Devices are listed by burn.Device.enumerate().",
        "autograd": "Use loss.backward(), burn.grad or burn.value_and_grad.",
        "amp": "Use burn.autocast(burn.bfloat16), and burn.optim.GradScaler for float16.",
        "GradScaler": "Use burn.optim.GradScaler.",
        "inference_mode": "Use burn.no_grad, or model.valid().",
        "set_grad_enabled": "Write `with burn.no_grad():` or `with burn.enable_grad():`.",
        "is_grad_enabled": "Ask a result: y.is_tracked().",
        "set_default_dtype": _DTYPE,
        "get_default_dtype": "Ask a result: burn.zeros(1).dtype.",
        "set_default_tensor_type": _DTYPE,
        "set_default_device": "Write `with device:`, or set BURN_DEVICE.",
        "get_default_device": "Use burn.Device.default().",
        "set_float32_matmul_precision": _TF32,
        "get_float32_matmul_precision": _TF32,
        "set_num_threads": _SERIAL,
        "get_num_threads": _SERIAL,
        "use_deterministic_algorithms": "Nothing to set: results do not depend on the order in "
        "which threads finish.",
        "Generator": "Use burn.manual_seed(seed) or device.seed(seed).",
        "default_generator": _RANDOM,
        "random": _RANDOM,
        "seed": _RANDOM,
        "initial_seed": _RANDOM,
        "get_rng_state": _RANDOM,
        "set_rng_state": _RANDOM,
        "poisson": "Draw on the host: numpy.random.default_rng(seed).poisson(rates).",
        "distributions": "Write densities with burn.lgamma, burn.erfinv, burn.xlogy and their kin; "
        "draws with burn.randn, burn.rand, burn.bernoulli and burn.multinomial.",
        "special": "Functions stand in burn itself: burn.lgamma, burn.erfinv, burn.xlogy, ...",
        "distributed": "A program runs in one process; loader.split(devices) and model.fork() "
        "share out its work.",
        "multiprocessing": "Loaders have workers of their own: DataLoader(..., num_workers=4).",
        "profiler": "Use burn.profile(path).",
        "sparse": "There are no sparse tensors: keep indices and values, and use index_add.",
        "testing": "Use numpy.testing.assert_allclose(x.numpy(), expected).",
        "Size": "A shape is a tuple.",
        "FloatTensor": "Write burn.tensor(data, dtype=burn.float32).",
        "DoubleTensor": "Write burn.tensor(data, dtype=burn.float64).",
        "HalfTensor": "Write burn.tensor(data, dtype=burn.float16).",
        "LongTensor": "Write burn.tensor(data, dtype=burn.int64).",
        "IntTensor": "Write burn.tensor(data, dtype=burn.int32).",
        "ByteTensor": "Write burn.tensor(data, dtype=burn.uint8).",
        "BoolTensor": "Write burn.tensor(data, dtype=burn.bool_).",
        "utils": "Data sets and loaders are in burn.dataset.",
        "asarray": "Use burn.as_tensor(data).",
        "frombuffer": "Use burn.tensor(numpy.frombuffer(buffer, dtype)).",
        "scalar_tensor": "Write burn.tensor(value).",
        "range": "Write burn.arange(start, end + step, step).",
        "row_stack": "Use burn.vstack(tensors).",
        "trapz": "Use burn.trapezoid(y, x).",
        "chain_matmul": "Use burn.linalg.multi_dot(tensors).",
        "svd": "Use burn.linalg.svd(x), whose last part is V transposed.",
        "solve": "Use burn.linalg.solve(A, B), the matrix first.",
        "lstsq": "Use burn.linalg.lstsq(A, B), the matrix first.",
        "triangular_solve": "Use burn.linalg.solve_triangular(A, B, upper=True), the matrix first.",
        "lu_solve": "Use burn.linalg.solve(A, B).",
        "vander": "Use burn.linalg.vander(x), whose powers rise; add .flip(-1) to let them fall.",
        "norm_except_dim": "Use burn.linalg.vector_norm(x, dim=dims).",
        "symeig": "Use burn.linalg.eigh(x).",
        "eig": "Its results are complex, and there is no complex dtype; for symmetric matrices use "
        "burn.linalg.eigh(x).",
        "as_strided": "Use slices, x.unfold and x.expand.",
        "is_nonzero": "Write bool(x).",
        "is_complex": "There is no complex dtype.",
        "view_as_complex": _COMPLEX,
        "view_as_real": _COMPLEX,
        "complex": _COMPLEX,
        "complex64": _COMPLEX,
        "complex128": _COMPLEX,
        "cfloat": _COMPLEX,
        "real": _COMPLEX,
        "imag": _COMPLEX,
        "channels_last": _LAYOUT,
        "contiguous_format": _LAYOUT,
        "preserve_format": _LAYOUT,
        "strided": _LAYOUT,
        "e": "Write math.e.",
        "newaxis": "Write None.",
        "half": "Write burn.float16.",
        "float": "Write burn.float32.",
        "double": "Write burn.float64.",
        "short": "Write burn.int16.",
        "int": "Write burn.int32.",
        "long": "Write burn.int64.",
        "bool": "Write burn.bool_.",
    }

    def _elsewhere(name: str) -> dict[str, str]:
        """Return what to write for a name that another part of burn has."""
        from importlib import import_module

        for part in ("functional", "linalg", "nn", "optim", "dataset"):
            if name in import_module(f"burn.{part}").__all__:
                return {name: f"Use burn.{part}.{name}."}
        return {}

    def __getattr__(name: str) -> object:
        """Import a part at its first use."""
        if name in _LATE:
            import burn_core

            globals()[name] = found = getattr(burn_core, name)
            return found
        if name == "__version__":
            from importlib.metadata import version

            return version("burn")
        module = _LAZY.get(name)
        if module is None:
            known = _OTHERWISE if name in _OTHERWISE or name[:1] == "_" else _elsewhere(name)
            raise _missing_name("burn", name, __all__, known)
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
