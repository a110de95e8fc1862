"""Shape and dtype rules: results, and the errors they raise, by class and words."""

from __future__ import annotations

from typing import Any

import pytest

from burn_ir import CATALOG, Spec
from burn_std import (
    ArgumentError,
    BurnError,
    DType,
    DTypeError,
    IndexRangeError,
    ShapeError,
    quantized,
)
from burn_std.dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)


def f(*shape: int, dtype: DType = float32) -> Spec:
    return Spec(shape, dtype)


def i(*shape: int) -> Spec:
    return Spec(shape, int64)


def infer(name: str, *args: Any) -> Any:
    return CATALOG[name].infer(*args)


X = f(2, 3, 4)
IMAGE = f(2, 4, 6, 5)


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("add", (f(4, 1), f(3)), (4, 3)), ("add", (f(), f(0, 2)), (0, 2)),
        ("where", (Spec((3,), bool_), f(2, 1), f()), (2, 3)),
        ("reshape", (X, (4, 6)), (4, 6)), ("reshape", (f(), (1, 1)), (1, 1)),
        ("reshape", (f(0, 3), (5, 0)), (5, 0)), ("permute", (X, (2, 0, 1)), (4, 2, 3)),
        ("permute", (f(), ()), ()), ("expand", (f(1, 3), (2, 4, 3)), (2, 4, 3)),
        ("expand", (f(1), (0,)), (0,)), ("squeeze", (f(1, 3, 1), (0, 2)), (3,)),
        ("squeeze", (f(), (0,)), ()), ("unsqueeze", (f(3), (0, 2)), (1, 3, 1)),
        ("slice", (f(5), (2,), (1,), (5,)), (2,)), ("slice", (f(5), (-2,), (4,), (-1,)), (3,)),
        ("slice", (f(5), (1,), (5,), (5,)), (0,)), ("diagonal", (X, 0, 2, 1), (3, 2)),
        ("diagonal", (X, 1, 2, -9), (2, 0)), ("unfold_dim", (X, 2, 3, 1), (2, 3, 2, 3)),
        ("cat", ((f(2, 0), f(2, 3)), 1), (2, 3)),
        ("pad", (f(3), "constant", ((-1, 4),)), (6,)), ("repeat", (f(3), (2, 0)), (2, 0)),
        ("sum", (X, (0, 2), False, None), (3,)), ("sum", (X, None, True, None), (1, 1, 1)),
        ("sum", (f(), (0,), True, None), ()), ("amax", (f(0, 3), (1,), False), (0,)),
        ("argmax", (X, None, False), ()), ("argmax", (f(), 0, True), ()),
        ("matmul", (f(5, 1, 2, 3), f(4, 3, 6)), (5, 4, 2, 6)), ("matmul", (f(3), f(3)), ()),
        ("matmul", (f(2, 0), f(0, 3)), (2, 3)), ("matmul", (f(3), f(7, 3, 2)), (7, 2)),
        ("linear", (f(5, 3), f(3), None), (5,)), ("gather", (X, i(1, 9, 4), 1), (1, 9, 4)),
        ("gather", (X, i(0), 0), (0,)), ("index_select", (X, i(5), 2), (2, 3, 5)),
        ("index_select", (f(), i(), 0), ()),
        ("index", (X, (i(7, 1), i(8)), (1, 2)), (2, 7, 8)),
        ("index", (X, (i(7), i(7)), (0, 2)), (7, 3)),
        ("embedding", (f(9, 4), i(2, 5), None), (2, 5, 4)), ("one_hot", (i(2), 3), (2, 3)),
        ("conv", (IMAGE, f(8, 2, 3, 3), None, (2, 1), (1, 0), (1, 2), 2), (2, 8, 3, 1)),
        ("conv_transpose", (f(1, 2, 4), f(2, 3, 3), None, (2,), (1,), (1,), (1,), 1), (1, 3, 8)),
        ("avg_pool", (f(1, 1, 5), (2,), (2,), (0,), True, True, None), (1, 1, 3)),
        ("adaptive_avg_pool", (IMAGE, (3, 1)), (2, 4, 3, 1)),
        ("unfold", (IMAGE, (2, 2), (1, 1), (0, 0), (2, 2)), (2, 16, 6)),
        ("fold", (f(2, 16, 6), (2, 2), (1, 1), (0, 0), (2, 2), (6, 5)), (2, 4, 6, 5)),
        ("nll_loss", (f(2, 3, 4), i(2, 4), None, "none", -100), (2, 4)),
        ("nll_loss", (f(3), i(), None, "mean", -100), ()),
        ("cross_entropy", (f(2, 3), f(2, 3), None, "none", None, -100), (2,)),
        ("cross", (f(2, 3), f(1, 3), 1), (2, 3)), ("solve", (f(5, 2, 2), f(2, 1)), (5, 2, 1)),
        ("batch_norm", (f(0), None, None, None, None, True), None),
    ],
)  # fmt: skip
def test_shape(name: str, args: tuple[Any, ...], want: Any) -> None:
    out = infer(name, *args)
    if want is not None:
        assert out.shape == want


def test_attention_gives_a_sum_for_each_row() -> None:
    out, sums = infer("attention", f(2, 4, 5, 8), *(f(2, 2, 7, 8),) * 2, None, True, True)
    assert (out.shape, sums.shape) == ((2, 4, 5, 8), (2, 4, 5))
    half = Spec((3, 4), bfloat16)
    out, sums = infer("attention", half, half, half, None, False, False)
    assert (out.dtype, sums.dtype) == (bfloat16, float32)


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("sum", (Spec((2,), bool_), None, False, None), int64),
        ("sum", (Spec((2,), int8), None, False, int32), int32),
        ("prod", (Spec((2,), uint8), None, False, None), int64),
        ("cumsum", (Spec((2,), bfloat16), 0, None), bfloat16),
        ("any", (Spec((2,), uint8), None, False), uint8),
        ("all", (f(2), None, False), bool_),
        ("eq", (f(2), f(2)), bool_),
        ("argmax", (f(2), 0, False), int64),
        ("softmax", (i(2), 0, float16), float16),
        ("cast", (f(2), bool_), bool_),
        ("bincount", (i(3), None, 2), int64),
        ("bincount", (i(3), Spec((3,), int32), 2), float64),
    ],
)
def test_dtype(name: str, args: tuple[Any, ...], want: DType) -> None:
    assert infer(name, *args).dtype is want


def test_statistics_of_16_bits_are_f32() -> None:
    out, mean, rstd = infer("layer_norm", f(2, 3, dtype=float16), None, None, 1)
    assert (out.dtype, mean.dtype, rstd.dtype) == (float16, float32, float32)
    assert mean.shape == (2, 1)
    assert infer("group_norm", f(2, 4, 5, dtype=float64), None, None, 2)[1] == f(
        2, 2, dtype=float64
    )


BAD: list[tuple[str, tuple[Any, ...], type[BurnError], str]] = [
    ("add", (f(3), f(4)), ShapeError, r"shapes must broadcast .*; got \[3\] and \[4\]"),
    ("sub", (Spec((1,), bool_), Spec((1,), bool_)), DTypeError, "bool minus bool"),
    ("neg", (Spec((1,), bool_),), DTypeError, "dtype must be int or float"),
    ("bitwise_and", (f(1), f(1)), DTypeError, "dtype must be int or bool"),
    ("elu", (i(1), 1.0), DTypeError, "dtype must be float"),
    ("gelu", (f(1), "fast"), ArgumentError, "approximate is none or tanh; got 'fast'"),
    ("where", (i(1), f(1), f(1)), DTypeError, "dtype must be bool"),
    ("cast", (f(1), quantized(8)), DTypeError, "Use quantize"),
    ("cast", (Spec((1,), quantized(8)), float32), DTypeError, "Use dequantize"),
    ("sum", (X, (3,), False, None), IndexRangeError, r"dim must be in \[-3, 2\]"),
    ("sum", (X, (0, 0), False, None), ArgumentError, "a dim appears twice"),
    ("sum", (f(), (1,), False, None), IndexRangeError, r"dim must be in \[-1, 0\]"),
    ("mean", (i(2), None, False, None), DTypeError, "dtype must be float"),
    ("mean", (f(2), None, False, int64), DTypeError, "the result's dtype must be float"),
    ("amax", (f(3, 0), (1,), False), ShapeError, "must not be empty"),
    ("max_dim", (f(3, 0), 1, False), ShapeError, "must not be empty"),
    ("max_dim", (f(), 1, False), IndexRangeError, "dim must be in"),
    ("argmax", (f(0), None, False), ShapeError, "must not be empty"),
    ("argmax", (Spec((2,), bool_), 0, False), DTypeError, "int or float"),
    ("argmax", (f(), 1, False), IndexRangeError, "dim must be in"),
    ("cumsum", (X, 5, None), IndexRangeError, "cumsum: dim must be in"),
    ("matmul", (f(2, 3), f(4, 5)), ShapeError, "inner sizes must match; got lhs .*dim -1 = 3"),
    ("matmul", (f(), f(1)), ShapeError, "at least one dim"),
    ("linear", (f(2, 3), f(5, 4), None), ShapeError, "must share `in`"),
    ("linear", (f(2, 3), f(5, 3), f(4)), ShapeError, "broadcast"),
    ("full", (quantized(8), (1,)), DTypeError, "result's dtype"),
    ("full", (float32, (-1,)), ShapeError, "not negative"),
    ("arange", (int64, -1), ShapeError, "not negative"),
    ("arange", (bool_, 1), DTypeError, "result's dtype"),
    ("reshape", (X, (5, 5)), ShapeError, r"elements must stay; got float32\[2, 3, 4\] \(24\)"),
    ("reshape", (X, (-24, -1)), ShapeError, "not negative"),
    ("permute", (X, (0, 1)), ShapeError, "every dim once"),
    ("permute", (X, (0, 1, 1)), ArgumentError, "twice"),
    ("permute", (X, (0, 1, 3)), IndexRangeError, "dim must be in"),
    ("expand", (f(2, 3), (4, 3)), ShapeError, "only dims of size 1"),
    ("expand", (f(1), (-3,)), ShapeError, "not negative"),
    ("expand", (f(2, 3), (3,)), ShapeError, "only dims of size 1"),
    ("squeeze", (X, (0,)), ShapeError, "extent 1"),
    ("squeeze", (f(1, 1), (2,)), IndexRangeError, "dim must be in"),
    ("squeeze", (f(1, 1), (0, 0)), ArgumentError, "twice"),
    ("unsqueeze", (X, (5,)), IndexRangeError, r"dim must be in \[0, 3\]"),
    ("slice", (f(5), (0,), (0,), (5,)), ArgumentError, "step must not be 0"),
    ("slice", (f(5), (1,), (0,), (6,)), IndexRangeError, "inside the dim"),
    ("slice", (f(5), (-1,), (5,), (0,)), IndexRangeError, "inside the dim"),
    ("slice", (X, (1,), (0,), (1,)), ShapeError, "per dim"),
    ("slice_assign", (f(5), f(3), (1,), (0,), (2,)), ShapeError, "broadcast"),
    ("flip", (X, (0, 0)), ArgumentError, "twice"),
    ("flip", (X, (3,)), IndexRangeError, "dim must be in"),
    ("diagonal", (f(3), 0, 0, 0), ShapeError, "two different dims"),
    ("diagonal", (X, 0, 3, 0), IndexRangeError, "dim must be in"),
    ("diagonal_backward", (f(4), 0, 1, (3, 3), 0), ShapeError, "diagonal's shape"),
    ("unfold_dim", (X, 2, 5, 1), ShapeError, "size <= extent"),
    ("unfold_dim", (X, 3, 1, 1), IndexRangeError, "dim must be in"),
    ("unfold_dim_backward", (f(2, 2), 0, 3, 1, (5,)), ShapeError, "windows' shape"),
    ("cat", ((), 0), ArgumentError, "at least one tensor"),
    ("cat", ((f(), f()), 0), ShapeError, "at least 1"),
    ("cat", ((f(2, 3), f(3, 3)), 1), ShapeError, "except along dim 1"),
    ("cat", ((f(2),), 1), IndexRangeError, "dim must be in"),
    ("pad", (f(3), "mirror", ((1, 1),)), ArgumentError, "mode is one of"),
    ("pad", (f(3), "reflect", ((3, 0),)), ShapeError, "less than the extent"),
    ("pad", (f(3), "circular", ((4, 0),)), ShapeError, "must not exceed"),
    ("pad", (f(0), "replicate", ((1, 0),)), ShapeError, "non-empty"),
    ("pad", (f(3), "constant", ((-2, -2),)), ShapeError, "not be negative"),
    ("pad", (f(3), "constant", ()), ShapeError, "pair per dim"),
    ("roll", (X, (0,), (1, 2)), ArgumentError, "one shift per dim"),
    ("roll", (X, (3,), (1,)), IndexRangeError, "dim must be in"),
    ("repeat", (X, (2,)), ShapeError, "at least the rank"),
    ("repeat", (f(1), (-1,)), ShapeError, "non-negative"),
    ("tril", (f(3), 0), ShapeError, "tril: needs at least two dims"),
    ("sort", (X, 3, False), IndexRangeError, "dim must be in"),
    ("topk", (X, 0, True, True, 3), ShapeError, "k <= extent"),
    ("gather", (X, f(1), 0), DTypeError, "integer tensor.*Convert with"),
    ("gather", (X, i(1, 1), 0), ShapeError, "rank"),
    ("gather", (X, i(3, 1, 1), 1), ShapeError, "off dim"),
    ("gather", (X, i(1, 1, 1), 3), IndexRangeError, "dim must be in"),
    ("scatter", (X, i(1, 1, 1), X, 0, "max"), ArgumentError, "mode is"),
    ("scatter", (X, i(3, 1, 1), f(2, 1, 1), 0, "add"), ShapeError, "inside src"),
    ("index_select", (X, i(2, 2), 0), ShapeError, "index_select: the index"),
    ("index_add", (X, i(2, 2), X, 0), ShapeError, "index_add: the index"),
    ("index_add", (X, i(5), X, 0), ShapeError, "len"),
    ("index", (X, (i(2),), (0, 1)), ArgumentError, "one index per dim"),
    ("index", (X, (i(2), i(2)), (1, 0)), ArgumentError, "ascending"),
    ("index", (X, (i(2),), (3,)), IndexRangeError, "dim must be in"),
    ("index_put", (X, f(7), (i(2),), (0,), False), ShapeError, "broadcast"),
    ("embedding", (f(3), i(1), None), ShapeError, r"\[rows, features\]"),
    ("embedding", (f(3, 2), i(1), 3), IndexRangeError, "padding_idx"),
    ("embedding_backward", (f(2, 3), i(3), None, 4), ShapeError, "index's shape"),
    ("one_hot", (i(2), 0), ArgumentError, "positive"),
    ("searchsorted", (f(2, 3), f(3, 1), False), ShapeError, "leading dims"),
    ("nonzero", (X,), ArgumentError, "depends on data"),
    ("conv", (f(1, 3, 5), f(2, 2, 3), None, (1,), (0,), (1,), 1), ShapeError, "channels"),
    ("conv", (f(1, 2, 2), f(2, 2, 3), None, (1,), (0,), (1,), 1), ShapeError, "smaller"),
    ("conv", (f(1, 2, 5), f(2, 2, 0), None, (1,), (0,), (1,), 1), ShapeError, "not be empty"),
    ("conv", (f(1, 2, 5), f(2, 2, 3), None, (0,), (0,), (1,), 1), ArgumentError, "stride"),
    ("conv", (f(1, 2, 5), f(2, 2, 3), f(3), (1,), (0,), (1,), 1), ShapeError, "bias"),
    (
        "conv_input_grad",
        (f(1, 2, 9), f(2, 2, 3), (1,), (0,), (1,), 1, (1, 2, 5)),
        ShapeError,
        "g must",
    ),
    ("max_pool", (f(1, 1, 4), (2,), (2,), (2,), (1,), False), ArgumentError, "half the window"),
    ("max_pool", (f(1, 0, 4), (2,), (2,), (0,), (1,), False), ShapeError, "batch dim"),
    ("avg_pool", (f(1, 1, 1), (2,), (2,), (0,), False, True, None), ShapeError, "smaller"),
    ("avg_pool", (f(1, 1, 4), (2,), (2,), (0,), False, True, 0), ArgumentError, "divisor"),
    (
        "max_pool_backward",
        (f(1, 2, 3), i(1, 2, 3), *[()] * 4, (2, 2, 4)),
        ShapeError,
        "share batch",
    ),
    ("interpolate", (IMAGE, "cubic", False, (2, 2), (None, None)), ArgumentError, "mode is"),
    ("interpolate", (IMAGE, "linear", False, (2, 2), (None, None)), ShapeError, "needs 3 dims"),
    ("grid_sample", (IMAGE, f(2, 3, 3, 2), "linear", "zeros", False), ArgumentError, "mode is"),
    ("softmax", (i(2), 0, None), DTypeError, "dtype must be float"),
    ("layer_norm", (f(2, 3), f(2), None, 1), ShapeError, "normalised shape"),
    ("layer_norm", (f(2), None, None, 2), ShapeError, "rank last dims"),
    ("group_norm", (f(2, 3), None, None, 2), ShapeError, "divide by groups"),
    ("batch_norm", (f(2, 3), None, None, None, None, False), ArgumentError, "running statistics"),
    ("attention", (f(2, 3), f(2, 4), f(2, 3), None, False, False), ShapeError, "q "),
    ("attention", (f(2, 3), f(2, 3), f(2, 3), i(2, 2), False, False), DTypeError, "bool or float"),
    ("mse_loss", (f(2), f(2), "batchmean"), ArgumentError, "reduction is"),
    ("nll_loss", (f(2, 3), i(3), None, "mean", 0), ShapeError, "needs target"),
    ("nll_loss", (f(2, 3), i(2), f(2), "mean", 0), ShapeError, r"\[classes\]"),
    ("nll_loss", (f(2, 3), f(2), None, "mean", 0), DTypeError, "integers"),
    ("cross_entropy", (f(2, 3), i(3), None, "mean", None, 0), ShapeError, "cross_entropy: "),
    (
        "cross_entropy",
        (f(2, 3), f(2, 3), f(2), "mean", None, 0),
        ShapeError,
        "cross_entropy: weight",
    ),
    ("cross_entropy", (f(2, 3), i(2), None, "avg", None, 0), ArgumentError, "cross_entropy: "),
    ("ctc_loss", (f(5, 2, 3), i(2, 1), i(2), i(2), 3), ArgumentError, "blank"),
    ("det", (f(2, 3),), ShapeError, "square"),
    ("triangular_solve", (f(2, 2), f(3, 1), True, False, False), ShapeError, "triangular_solve"),
    ("qr", (f(2, 2), "full"), ArgumentError, "mode is"),
    ("cross", (f(2, 3), f(2, 3), 2), IndexRangeError, "dim must be in"),
    ("cross", (f(2, 3), f(2, 3), 0), ShapeError, "3 elements"),
    ("rfft", (f(), 0, "backward", 1), ShapeError, "at least one dim"),
    ("rfft", (f(4), 0, "unitary", 4), ArgumentError, "norm is"),
    ("irfft", (f(3), f(4), 0, "backward", 4), ShapeError, "one shape"),
    ("quantize", (f(3), None, None, int8), DTypeError, "quantised scheme"),
    ("sgd_step", ((f(2),), (f(3),), (), i(), None, False, False), ShapeError, "matches"),
]


@pytest.mark.parametrize(("name", "args", "error", "words"), BAD)
def test_refusal(name: str, args: tuple[Any, ...], error: type[BurnError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        infer(name, *args)
    message = str(caught.value)
    assert message.startswith(f"{caught.value.op}: ")
    assert caught.value.rule and (caught.value.got is not None or name in ("nonzero", "batch_norm"))


def test_remedies_are_given_where_there_is_one() -> None:
    with pytest.raises(ShapeError, match=r"Transpose one side\?"):
        infer("matmul", f(2, 3), f(2, 3))
    with pytest.raises(DTypeError, match=r"Convert with \.to\(dtype\)"):
        infer("neg", Spec((), bool_))
