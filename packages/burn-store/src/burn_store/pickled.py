"""What a PyTorch pickle may name: a closed list, each with the plain value that stands for it here.

Nothing of a file is ever imported or called. A global of the list becomes one of the values below,
built by code of this module; any other is refused by name, or, where the caller asks for it, kept
as an `Inert` object that only remembers what was written.
"""

from __future__ import annotations

from collections.abc import Callable

from burn_std import StoreError
from burn_store.elements import MAX_BYTES, MAX_RANK, NATIVE, checked_shape, shortened

# Bytes of one element by dtype name, also for dtypes the framework lacks.
ITEMSIZE = {name: dtype.itemsize for name, dtype in NATIVE.items()} | {
    "complex64": 8, "complex128": 16, "complex32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "qint8": 1, "quint8": 1, "qint32": 4,
}  # fmt: skip

_STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
    "UntypedStorage": "uint8",
}  # fmt: skip

# Names of `torch` for dtypes; `torch.long` and the like are written under their full names.
_DTYPES = {name.removesuffix("_"): name for name in ITEMSIZE if name != "bool"} | {"bool": "bool"}

# Classes that occur in honest checkpoints beside the tensors and hold nothing that is needed.
_INERT = frozenset({
    "argparse Namespace", "types SimpleNamespace", "collections Counter", "collections deque",
    "pathlib PosixPath", "pathlib PurePosixPath", "pathlib WindowsPath", "pathlib PureWindowsPath",
    "pathlib._local PosixPath", "torch device", "torch Generator",
    "datetime timedelta", "datetime datetime",
    "torch.serialization _get_layout", "torch._utils _rebuild_sparse_tensor",
    "torch._utils _rebuild_qtensor", "torch per_tensor_affine", "torch per_channel_affine",
    "torch._utils _rebuild_meta_tensor_no_storage", "torch strided",
    "numpy dtype", "numpy ndarray", "numpy.core.multiarray scalar", "numpy._core.multiarray scalar",
    "numpy.core.numeric _frombuffer", "numpy._core.numeric _frombuffer",
    "numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct",
    "builtins set", "builtins frozenset", "__builtin__ set", "__builtin__ frozenset",
    "builtins slice", "builtins range", "builtins complex", "builtins bytearray",
    "__builtin__ bytearray",
    "builtins list", "builtins dict", "builtins tuple", "builtins int",
    "builtins float", "builtins str",
    "builtins bool", "__builtin__ list", "__builtin__ dict", "__builtin__ int", "__builtin__ float",
    "builtins object", "__builtin__ object",
})  # fmt: skip


class StorageRef:
    """A storage of the file.

    Attributes:
        key: its name in the file.
        dtype: of its elements.
        numel: how many there are.
        offset: elements to skip at its begin (a view of a storage, in old files).
        whole: elements of the storage as it stands in the file.
    """

    __slots__ = ("dtype", "key", "numel", "offset", "whole")

    def __init__(
        self, key: str, dtype: str, numel: int, offset: int = 0, whole: int | None = None
    ) -> None:
        self.key = key
        self.dtype = dtype
        self.numel = numel
        self.offset = offset
        self.whole = numel if whole is None else whole


class TensorRef:
    """A tensor of the file: a window into a storage.

    Attributes:
        storage: where its elements are.
        dtype: of its elements; differs from the storage's where that is untyped.
        offset: first element, from the begin of the storage in the file.
        shape: extents.
        strides: elements between neighbours, per dim.
    """

    __slots__ = ("dtype", "offset", "shape", "storage", "strides")

    def __init__(
        self,
        storage: StorageRef,
        dtype: str,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        self.offset = offset
        self.shape = shape
        self.strides = strides

    def place(self) -> tuple[object, ...]:
        """Return what two names of one tensor have in common."""
        return self.storage.key, self.dtype, self.offset, self.shape, self.strides


class Inert:
    """An object of a class that is not needed: what was written of it, never called.

    Attributes:
        name: module and class.
        args: what its constructor would have been given.
        state: what its state would have been set to, or None.
    """

    __slots__ = ("args", "name", "state")

    def __init__(self, name: str, args: object) -> None:
        self.name = name
        self.args = args
        self.state: object = None


class Named:
    """A global that was named and not yet used.

    Attributes:
        name: module and name, with a space between.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class DTypeName:
    """A dtype of `torch`, by name.

    Attributes:
        name: `float32`.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def _bad(rule: str, got: object) -> StoreError:
    return StoreError("store.open", f"the PyTorch file is corrupt: {rule}", got=shortened(got))


# ---- what a tensor is built from ----------------------------------------------------------------


def _window(
    storage: object, offset: object, shape: object, strides: object, dtype: str | None = None
) -> TensorRef:
    """Return a tensor, its window inside its storage."""
    if not isinstance(storage, StorageRef):
        raise _bad("a tensor is built on a storage", storage)
    extents = checked_shape(shape, "a tensor")
    if not isinstance(strides, (list, tuple)) or len(strides) != len(extents):
        raise _bad("a tensor has a stride per dim", strides)
    if type(offset) is not int or not 0 <= offset <= MAX_BYTES:
        raise _bad("the offset of a tensor is not negative", offset)
    last = offset
    for extent, stride in zip(extents, strides, strict=True):
        if type(stride) is not int or not 0 <= stride <= MAX_BYTES:
            raise _bad("strides of a tensor are not negative", strides)
        last += max(extent - 1, 0) * stride
    kind = dtype or storage.dtype
    room = (
        storage.numel
        if dtype is None
        else storage.numel * ITEMSIZE[storage.dtype] // ITEMSIZE[kind]
    )
    if 0 not in extents and last >= room:
        raise _bad(
            "a tensor lies inside its storage",
            f"element {min(last, MAX_BYTES)} of {room}, shape {list(extents)}",
        )
    if storage.offset and dtype is not None:
        raise _bad("a view of a storage keeps its dtype", dtype)
    return TensorRef(storage, kind, offset + storage.offset, extents, tuple(strides))


def _arguments(args: tuple[object, ...], least: int, most: int, what: str) -> tuple[object, ...]:
    if not least <= len(args) <= most:
        raise _bad(f"{what} has {least} to {most} arguments", f"{len(args)}")
    return args


def _tensor_v2(args: tuple[object, ...]) -> object:
    storage, offset, shape, strides, *_ = _arguments(args, 4, 7, "_rebuild_tensor_v2")
    return _window(storage, offset, shape, strides)


def _tensor_v3(args: tuple[object, ...]) -> object:
    storage, offset, shape, strides, _, _, dtype, *_ = _arguments(args, 7, 8, "_rebuild_tensor_v3")
    if not isinstance(dtype, DTypeName):
        raise _bad("_rebuild_tensor_v3 has a dtype", dtype)
    return _window(storage, offset, shape, strides, dtype.name)


def _parameter(args: tuple[object, ...]) -> object:
    data, *_ = _arguments(args, 1, 4, "a parameter")
    # A parameter on an Inert (quantised, sparse) tensor stays that; anything else is no parameter.
    if not isinstance(data, (TensorRef, Inert)):
        raise _bad("a parameter has a tensor", data)
    return data


def _from_type(args: tuple[object, ...]) -> object:
    function, _, inner, *_ = _arguments(args, 3, 4, "_rebuild_from_type_v2")
    if (
        not isinstance(function, Named)
        or function.name == "torch._tensor _rebuild_from_type_v2"
        or type(inner) is not tuple
    ):
        raise _bad("a tensor subclass is built by a function for tensors", function)
    return called(function, inner)


def _ordered(args: tuple[object, ...]) -> object:
    if not args:
        return {}
    (pairs,) = _arguments(args, 0, 1, "OrderedDict")
    if not isinstance(pairs, (list, tuple)):
        raise _bad("OrderedDict is made of pairs", pairs)
    made: dict[object, object] = {}
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise _bad("OrderedDict is made of pairs", pair)
        made[checked_key(pair[0])] = pair[1]
    return made


def _default(args: tuple[object, ...]) -> object:
    _arguments(args, 0, 1, "defaultdict")
    return {}


def _encoded(args: tuple[object, ...]) -> object:
    text, codec = _arguments(args, 2, 2, "_codecs.encode")
    if not isinstance(text, str) or codec != "latin1":
        raise _bad("bytes are written as latin1 text", codec)
    try:
        return text.encode("latin1")
    except UnicodeEncodeError:
        raise _bad("bytes are written as latin1 text", text) from None


def _size(args: tuple[object, ...]) -> object:
    (extents,) = _arguments(args, 1, 1, "torch.Size")
    return checked_shape(extents, "a torch.Size")


CALLS: dict[str, Callable[[tuple[object, ...]], object]] = {
    "torch._utils _rebuild_tensor": _tensor_v2,
    "torch._utils _rebuild_tensor_v2": _tensor_v2,
    "torch._utils _rebuild_tensor_v3": _tensor_v3,
    "torch._utils _rebuild_parameter": _parameter,
    "torch._utils _rebuild_parameter_with_state": _parameter,
    "torch.nn.parameter Parameter": _parameter,
    "torch._tensor _rebuild_from_type_v2": _from_type,
    "torch Size": _size,
    "collections OrderedDict": _ordered,
    "collections defaultdict": _default,
    "_codecs encode": _encoded,
}

# Named as an argument only, never called.
_TYPES = frozenset({"torch Tensor", "torch.nn.parameter Buffer", "torch._tensor Tensor"})


def named(module: object, name: object, lenient: bool) -> object:
    """Return what stands for a global.

    Raises:
        StoreError: it is not on the list and `lenient` is False.
    """
    if not isinstance(module, str) or not isinstance(name, str):
        raise _bad("a global has a module and a name", module)
    full = f"{module} {name}"
    if full in CALLS or full in _INERT or full in _TYPES:
        return Named(full)
    if name in _STORAGES and module in ("torch", "torch.cuda", "torch.storage"):
        return Named(f"torch {name}")
    if module == "torch" and name in _DTYPES:
        return DTypeName(_DTYPES[name])
    if lenient:
        return Named(full)
    raise StoreError(
        "store.open",
        "the file names a class or function that is not on the list of PyTorch's tensors",
        got=f"{module}.{name}"[:200],
        remedy="Save model.state_dict(), not the model; or pass unknown='inert' to read only the"
        " tensors beside it (nothing of the file is executed either way).",
    )


def called(function: object, args: object) -> object:
    """Return what stands for the result of a call written in the file.

    Raises:
        StoreError: it is not a call of a named global with a tuple.
    """
    if type(args) is not tuple:
        raise _bad("a call has a tuple of arguments", args)
    if not isinstance(function, Named):
        raise _bad("only a named global is called", function)
    made = CALLS.get(function.name)
    if made is not None:
        return made(args)
    if function.name in _TYPES or function.name.removeprefix("torch ") in _STORAGES:
        raise _bad("this global is not called", function.name)
    return Inert(function.name, args)


def persistent(pid: object) -> object:
    """Return the storage that a persistent id names; old files name classes in this way too.

    Raises:
        StoreError: the id is neither.
    """
    if type(pid) is tuple and len(pid) == 4 and pid[0] == "module" and isinstance(pid[1], Named):
        # A class with the source it was written with; it stays a name like any other global.
        return pid[1]
    if type(pid) is not tuple or not 5 <= len(pid) <= 6 or pid[0] != "storage":
        raise _bad("persistent ids name storages", pid)
    _, kind, key, _, numel, *view = pid
    if not isinstance(kind, Named) or kind.name.removeprefix("torch ") not in _STORAGES:
        raise _bad("a storage has a type", kind)
    if (
        type(key) is not str
        or len(key) > 200
        or type(numel) is not int
        or not 0 <= numel <= MAX_BYTES
    ):
        raise _bad("a storage has a key and a number of elements", key)
    dtype = _STORAGES[kind.name.removeprefix("torch ")]
    if not view or view[0] is None:
        return StorageRef(key, dtype, numel)
    part = view[0]
    if (
        type(part) is not tuple
        or len(part) != 3
        or type(part[1]) is not int
        or type(part[2]) is not int
    ):
        raise _bad("a view of a storage has a key, an offset and a size", part)
    _, offset, size = part
    if not 0 <= offset <= offset + size <= numel:
        raise _bad("a view lies inside its storage", part)
    return StorageRef(key, dtype, size, offset, numel)


_KEY_TYPES = (str, int, float, bool, bytes, type(None))


def checked_key(key: object) -> object:
    """Return a dict key that is safe to hash: a scalar, or a tuple of scalars.

    Nested tuples are hashed recursively in C, without a guard for the stack.

    Raises:
        StoreError: it is anything else.
    """
    if isinstance(key, _KEY_TYPES):
        return key
    if type(key) is tuple and len(key) <= MAX_RANK and all(isinstance(k, _KEY_TYPES) for k in key):
        return key
    if isinstance(key, (DTypeName, Named)):
        return key.name
    raise _bad("keys are numbers, text, or tuples of them", key)
