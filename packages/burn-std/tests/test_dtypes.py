from __future__ import annotations

import copy
import pickle

import pytest

from burn_std import (
    FLOATS,
    INTS,
    PLAIN,
    DType,
    QDType,
    parse_dtype,
    promote_dtypes,
    quantized,
)
from burn_std.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_dtype_is_found_by_either_name(dtype: DType) -> None:
    assert parse_dtype(dtype.name) is dtype
    assert parse_dtype(dtype.short) is dtype
    assert repr(dtype) == f"burn.{dtype.name}"


@pytest.mark.parametrize("dtype", [*PLAIN, quantized(4, symmetric=False, block=32)], ids=str)
def test_dtype_survives_pickle_and_copy(dtype: DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


def test_kinds_are_apart() -> None:
    assert all(d.is_float and not d.is_int and d.is_signed for d in FLOATS)
    assert all(d.is_int and not d.is_float for d in INTS)
    assert bool_.is_bool and not bool_.is_int and not bool_.is_signed
    assert not uint8.is_signed and int8.is_signed
    assert [d.itemsize for d in (bool_, int16, float16, float64)] == [1, 2, 2, 8]


def test_quantized_is_interned_and_spelled() -> None:
    q = quantized(8, symmetric=False, block=64)
    assert q is quantized(8, symmetric=False, block=64)
    assert q.name == "qint8_affine_block64"
    assert q.is_quantized and not q.is_float and not q.is_int
    assert (q.qmin, q.qmax) == (-128, 127)
    assert (quantized(4).qmin, quantized(4).qmax) == (-7, 7)
    assert quantized(4).itemsize == 1
    made = parse_dtype("qint4_sym_block7")
    assert isinstance(made, QDType)
    assert (made.bits, made.symmetric, made.block) == (4, True, 7)


@pytest.mark.parametrize(
    "name",
    [
        "", "float", "float31", "qint8", "qint8_sym", "qint8_odd_tensor", "qint8_sym_block",
        "qint8_sym_blockx", "qint8_sym_block-1", "qint8_sym_block007", "qint5_sym_tensor",
        "qint8_sym_block" + "9" * 5000, "qint8_sym_tensor_more", "qint8_sym_block²",
    ],
)  # fmt: skip
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="unknown name"):
        parse_dtype(name)


@pytest.mark.parametrize(("bits", "block"), [(5, 0), (8, -1)])
def test_quantized_refuses_other_parameters(bits: int, block: int) -> None:
    with pytest.raises(ValueError, match="bits is 4 or 8"):
        quantized(bits, block=block)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (bool_, int8, int8), (bool_, float16, float16), (int64, float16, float16),
        (bfloat16, float16, float32), (float32, float64, float64), (int8, int32, int32),
        (uint8, int8, int16), (uint32, int8, int64), (uint8, int32, int32),
        (uint64, uint8, uint64), (uint64, int8, None), (uint64, float32, float32),
        (quantized(8), float32, None),
    ],
)  # fmt: skip
def test_promotion(a: DType, b: DType, want: DType | None) -> None:
    assert promote_dtypes(a, b) is want
    assert promote_dtypes(b, a) is want


def test_promotion_is_associative_where_it_is_defined() -> None:
    # Except through f16 with bf16, whose common type is wider than both.
    kinds = [d for d in PLAIN if d is not float16]
    for a in kinds:
        assert promote_dtypes(a, a) is a
        for b in kinds:
            for c in kinds:
                left, right = promote_dtypes(a, b), promote_dtypes(b, c)
                one = left and promote_dtypes(left, c)
                two = right and promote_dtypes(a, right)
                if one and two:
                    assert one is two, (a, b, c)
