"""The dtypes of the framework: plain singletons, compared by identity, known without numpy.

A backend maps them to whatever its arrays call them. Quantised schemes are dtypes with
parameters, made by `quantized(...)` and interned, so identity comparison holds for them too.
"""

from __future__ import annotations

from operator import index
from typing import Final, Literal

from burn_std.errors import ArgumentError

Kind = Literal["bool", "int", "uint", "float", "quant"]


class DType:
    """One element type.

    Attributes:
        name: the full name, `float32`.
        short: the name used in case files and programs, `f32`.
        kind: `bool`, `int`, `uint`, `float` or `quant`.
        itemsize: bytes of one element in memory.
        bits: width of one element in bits.
    """

    __slots__ = ("bits", "itemsize", "kind", "name", "short")

    def __init__(self, name: str, short: str, kind: Kind, bits: int) -> None:
        self.name = name
        self.short = short
        self.kind = kind
        self.bits = bits
        self.itemsize = max(1, bits // 8)

    @property
    def is_float(self) -> bool:
        """True for float16, bfloat16, float32 and float64."""
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        """True for signed and unsigned integers; bool is neither."""
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        """True for floats and signed integers."""
        return self.kind in ("int", "float")

    @property
    def is_bool(self) -> bool:
        """True for bool."""
        return self.kind == "bool"

    @property
    def is_quantized(self) -> bool:
        """True for quantised schemes."""
        return self.kind == "quant"

    def __repr__(self) -> str:
        return f"burn.{self.name}"

    def __reduce__(self) -> str | tuple[object, ...]:
        return (parse_dtype, (self.name,))


class QDType(DType):
    """A quantised scheme: integer values of 8 or 4 bits with float scales.

    Attributes:
        symmetric: zero maps to 0 and no zero points are stored.
        block: elements of the last dim that share one scale; 0 means the whole tensor does.
    """

    __slots__ = ("block", "symmetric")

    def __init__(self, bits: int, symmetric: bool, block: int) -> None:
        mode = "sym" if symmetric else "affine"
        level = f"block{block}" if block else "tensor"
        super().__init__(f"qint{bits}_{mode}_{level}", f"q{bits}{mode[0]}{block}", "quant", bits)
        self.symmetric = symmetric
        self.block = block

    @property
    def qmin(self) -> int:
        """Smallest stored value: -127 or -7 when symmetric, else -128 or -8."""
        return -(1 << (self.bits - 1)) + (1 if self.symmetric else 0)

    @property
    def qmax(self) -> int:
        """Largest stored value: 127 or 7."""
        return (1 << (self.bits - 1)) - 1


bool_: Final = DType("bool", "bool", "bool", 8)
int8: Final = DType("int8", "i8", "int", 8)
int16: Final = DType("int16", "i16", "int", 16)
int32: Final = DType("int32", "i32", "int", 32)
int64: Final = DType("int64", "i64", "int", 64)
uint8: Final = DType("uint8", "u8", "uint", 8)
uint16: Final = DType("uint16", "u16", "uint", 16)
uint32: Final = DType("uint32", "u32", "uint", 32)
uint64: Final = DType("uint64", "u64", "uint", 64)
float16: Final = DType("float16", "f16", "float", 16)
bfloat16: Final = DType("bfloat16", "bf16", "float", 16)
float32: Final = DType("float32", "f32", "float", 32)
float64: Final = DType("float64", "f64", "float", 64)

PLAIN: Final[tuple[DType, ...]] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64,
)  # fmt: skip
FLOATS: Final = (float16, bfloat16, float32, float64)
INTS: Final = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)

_BY_NAME: dict[str, DType] = {d.name: d for d in PLAIN} | {d.short: d for d in PLAIN}
_QUANT: dict[tuple[int, bool, int], QDType] = {}


def quantized(bits: int = 8, *, symmetric: bool = True, block: int = 0) -> QDType:
    """Return the dtype of a quantised scheme; equal parameters give the same object.

    Args:
        bits: 8 or 4.
        symmetric: no zero points.
        block: elements of the last dim that share a scale; 0 = one scale for the tensor.

    Raises:
        ArgumentError: `bits` is neither 8 nor 4, or `block` is no integer from 0 on.

    Example:
        >>> quantized(8).name
        'qint8_sym_tensor'
    """
    if not _is_int(bits, 4, 8) or bits not in (4, 8) or not _is_int(block, 0, 2**31 - 1):
        raise ArgumentError(
            "quantized",
            "bits is 4 or 8, and block an integer from 0 on",
            got=f"{bits!r}, {block!r}",
        )
    if not isinstance(symmetric, bool):
        raise ArgumentError("quantized", "symmetric is a bool", got=repr(symmetric))
    key = (int(bits), symmetric, int(block))
    made = _QUANT.get(key)
    if made is None:
        made = _QUANT.setdefault(key, QDType(*key))
        _BY_NAME[made.name] = _BY_NAME[made.short] = made
    return made


def _is_int(value: object, low: int, high: int) -> bool:
    try:
        return not isinstance(value, bool) and low <= index(value) <= high  # type: ignore[arg-type]
    except TypeError:
        return False


def _parse_quantized(name: str) -> QDType | None:
    """Return the scheme that a name like `qint8_sym_block32` spells, or None."""
    bits, _, rest = name.partition("_")
    mode, _, level = rest.partition("_")
    if bits not in ("qint4", "qint8") or mode not in ("sym", "affine"):
        return None
    # A name may come from a file: no more digits than a block can have.
    digits = level.removeprefix("block")
    block = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0
    made = quantized(int(bits[4:]), symmetric=mode == "sym", block=block)
    return made if made.name == name else None


def parse_dtype(name: str) -> DType:
    """Return the dtype of a full or short name, `float32` or `f32`.

    Raises:
        ValueError: the name is unknown; the message lists the known ones.

    Example:
        >>> parse_dtype("bf16")
        burn.bfloat16
    """
    found = _BY_NAME.get(name) or _parse_quantized(name)
    if found is None:
        raise ValueError(f"dtype: unknown name {name!r}; known: {', '.join(d.name for d in PLAIN)}")
    return found


def dtype_remedy(given: object) -> str:
    """Return what to write where something else stands in the place of a dtype.

    Example:
        >>> dtype_remedy("float64"), dtype_remedy(3)
        ('Write burn.float64.', 'Write burn.float32, burn.int64, ...')
    """
    if isinstance(given, str):
        try:
            return f"Write {parse_dtype(given.rpartition('.')[2])!r}."
        except ValueError:
            pass
    return "Write burn.float32, burn.int64, ..."


def _signed_join(a: DType, b: DType) -> DType | None:
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if unsigned.bits < signed.bits:
        return signed
    return {8: int16, 16: int32, 32: int64}.get(unsigned.bits)


_ORDER = {"bool": 0, "uint": 1, "int": 1, "float": 2}


def promote_dtypes(a: DType, b: DType) -> DType | None:
    """Return the common dtype of two tensors with dimensions; None when there is none.

    Inside a kind the Array API table; int with float gives the float; bool joins either;
    bfloat16 with float16 gives float32; uint64 with a signed type has none.

    Example:
        >>> promote_dtypes(int64, bfloat16), promote_dtypes(uint8, int8)
        (burn.bfloat16, burn.int16)
    """
    if a is b:
        return a
    if a.kind == "quant" or b.kind == "quant":
        return None
    ka, kb = _ORDER[a.kind], _ORDER[b.kind]
    if ka != kb:
        return a if ka > kb else b
    if a.kind == b.kind:
        if a.bits == b.bits:
            return float32
        return a if a.bits > b.bits else b
    return _signed_join(a, b)
