import math

import ml_dtypes
import numpy as np
import pytest

from burn_flex.table import NATIVE
from burn_std import dtypes as d

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64)]
INTS = [np.dtype(f"{k}{n}") for k in ("int", "uint") for n in (8, 16, 32, 64)]
nan, inf = float("nan"), float("inf")


def arr(*values, dtype=np.float32):
    return np.array(values, dtype)


UNARY = {
    "exp": math.exp, "expm1": math.expm1, "log1p": math.log1p, "sqrt": math.sqrt, "sin": math.sin,
    "rsqrt": lambda x: x**-0.5, "tanh": math.tanh, "atan": math.atan, "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "softsign": lambda x: x / (1 + abs(x)),
    "tanhshrink": lambda x: x - math.tanh(x), "silu": lambda x: x / (1 + math.exp(-x)),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "logsigmoid": lambda x: -math.log1p(math.exp(-x)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats_follow_their_formula(call, name, dtype):
    x = np.array([0.25, 0.5, 1.0, 3.0], dtype)
    got = call(name, x)
    assert got.dtype == dtype
    want = np.array([UNARY[name](float(v)) for v in x])
    eps = float(ml_dtypes.finfo(dtype).eps)
    assert np.allclose(got.astype(np.float64), want, rtol=4 * eps, atol=4 * eps)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats_take_rank_0_and_empty(call, name):
    assert np.shape(call(name, np.array(0.5, np.float32))) == ()
    assert call(name, np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_erf_is_accurate_to_a_few_ulp(call):
    x = np.concatenate([np.linspace(-7, 7, 4001), np.logspace(-30, 0, 200)])
    want = np.array([math.erf(v) for v in x])
    assert np.max(np.abs(call("erf", x) - want) / np.maximum(np.abs(want), 1e-300)) < 2e-15
    single = x.astype(np.float32)
    want = np.array([math.erf(v) for v in single.astype(np.float64)])
    ulp = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(call("erf", single).astype(np.float64) - want) / ulp) <= 4


def test_erf_of_many_elements_is_made_in_pieces(call, same):
    x = np.linspace(-3, 3, 80_000, dtype=np.float32).reshape(2, -1)
    same(call("erf", x)[1, -5:], call("erf", np.ascontiguousarray(x[1, -5:])))


def test_activations_at_the_ends(call, same):
    x = arr(nan, inf, -100.0, 100.0)
    same(call("relu", x), arr(nan, inf, 0, 100))
    same(call("relu6", x), arr(nan, 6, 0, 6))
    same(call("hardtanh", x, -1.0, 1.0), arr(nan, 1, -1, 1))
    same(call("threshold", x, 0.1, 20.0), arr(nan, inf, 20, 100))
    same(call("hardshrink", x, 0.5), arr(nan, inf, -100, 100))
    same(call("softshrink", x, 0.5), arr(nan, inf, -99.5, 99.5))
    same(call("softplus", x, 1.0, 20.0)[[0, 1, 3]], arr(nan, inf, 100))
    same(call("logsigmoid", x)[:3], arr(nan, 0, -100))
    same(call("mish", x)[[0, 1, 3]], arr(nan, inf, 100))
    same(call("elu", x, 1.0), arr(nan, inf, -1, 100))
    same(call("silu", x)[[0, 1, 3]], arr(nan, inf, 100))
    assert np.signbit(call("relu", arr(-0.0))).all()


def test_activations_of_integers_take_numbers_of_any_kind(call, same):
    x = np.array([-5, 0, 9], np.int8)
    same(call("hardtanh", x, -1.0, 2.5), np.array([-1, 0, 2], np.int8))
    same(call("hardtanh", x.view(np.uint8), -1.0, 300), np.array([251, 0, 9], np.uint8))
    same(call("relu6", x), np.array([0, 0, 6], np.int8))
    same(call("threshold", x, 0.5, 7), np.array([7, 7, 9], np.int8))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_in_comparisons_and_extremes(call, same, dtype):
    x, y = np.array([nan, 1, nan], dtype), np.array([1, nan, nan], dtype)
    for name in ("eq", "lt", "le", "gt", "ge"):
        assert not call(name, x, y).any()
    assert call("ne", x, y).all()
    for name in ("maximum", "minimum"):
        same(call(name, x, y), np.full(3, nan, dtype))
    same(call("sign", np.array([nan, -2, 0, 3], dtype)), np.array([0, -1, 0, 1], dtype))
    same(
        call("clamp", x, np.array(0, dtype), np.array(0.5, dtype)), np.array([nan, 0.5, nan], dtype)
    )
    same(call("clamp", y, None, np.array(nan, dtype)), np.full(3, nan, dtype))
    assert call("logical_and", x, y).all()


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integers_wrap_and_division_by_zero_is_zero(call, same, dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x, one = np.array([high], dtype), np.array([1], dtype)
    same(call("add", x, one), np.array([low], dtype))
    zero = np.zeros(1, dtype)
    for name in ("floor_divide", "remainder", "fmod", "div_trunc"):
        same(call(name, x, zero), zero)
    if dtype.kind == "i":
        least, minus = np.array([low], dtype), np.array([-1], dtype)
        same(call("floor_divide", least, minus), least)
        same(call("div_trunc", least, minus), least)
        same(call("remainder", least, minus), zero)
        same(call("neg", least), least)
        same(call("abs", least), least)


@pytest.mark.parametrize("dtype", [t for t in INTS if t.kind == "i"], ids=str)
def test_division_of_signed_integers(call, same, dtype):
    x, y = np.array([7, -7, 7, -7], dtype), np.array([2, 2, -2, -2], dtype)
    same(call("floor_divide", x, y), np.array([3, -4, -4, 3], dtype))
    same(call("div_trunc", x, y), np.array([3, -3, -3, 3], dtype))
    same(call("remainder", x, y), np.array([1, 1, -1, -1], dtype))
    same(call("fmod", x, y), np.array([1, -1, 1, -1], dtype))


def test_remainder_of_floats_has_the_sign_of_the_divisor(call):
    x, y = np.array([-25.2, 6.0]), np.array([6.1, 1.5])
    got = call("remainder", x, y)
    assert abs(got[0] - 5.3) < 1e-12 and got[1] == 0


def test_powers_of_integers(call, same):
    x = np.array([0, 1, -1, -1, 2, 3], np.int32)
    y = np.array([-1, -2, -2, -3, -1, 4], np.int32)
    same(call("pow", x, y), np.array([0, 1, 1, -1, 0, 81], np.int32))
    same(call("pow", np.array([16], np.int8), np.array([2], np.int8)), np.array([0], np.int8))
    two = np.array(-2, np.int64)
    same(call("pow", np.array([-1, 5]), two), np.array([1, 0]))


@pytest.mark.parametrize("exponent", [2, 1, 3, 0.5, -1, -2, -0.5, 1.7, 0])
def test_powers_of_floats_by_a_number(call, exponent):
    x = np.array([0.5, 2.0, 3.0])
    assert np.allclose(call("pow", x, np.array(float(exponent))), x**exponent, rtol=1e-15)


def test_shifts_from_the_width_on(call, same):
    x = np.array([-8, 8], np.int8)
    same(call("bitwise_left_shift", x, np.array([8, 100], np.int8)), np.zeros(2, np.int8))
    same(call("bitwise_right_shift", x, np.array([9, 9], np.int8)), np.array([-1, 0], np.int8))


def test_arithmetic_of_bools(call, same):
    a, b = np.array([True, True, False]), np.array([True, False, False])
    same(call("add", a, b), np.array([True, True, False]))
    same(call("mul", a, b), np.array([True, False, False]))
    with pytest.raises(TypeError):
        call("sub", a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_to_int_saturates(call, same, dtype):
    x = np.array([nan, inf, -inf, 510, -200, -0.75, 1.9], dtype)
    for target in (t for t in d.PLAIN if t.is_int):
        info = np.iinfo(NATIVE[target])
        want = [
            0,
            info.max,
            info.min,
            *(min(max(v, info.min), info.max) for v in (int(x[3]), int(x[4]), 0, 1)),
        ]
        same(call("cast", x, target), np.array(want, NATIVE[target]))
    same(call("cast", x, d.bool_), np.ones(7, bool))


def test_float_to_int_at_the_top_edge(call, same):
    same(call("cast", arr(2147483647.0), d.int32), np.array([2147483647], np.int32))
    for dtype in (np.float32, np.float64):
        x = np.array([2.0**63, 2.0**64, -(2.0**63)], dtype)
        top, bottom = 2**63 - 1, -(2**63)
        same(call("cast", x, d.int64), np.array([top, top, bottom], np.int64))
        same(call("cast", x, d.uint64), np.array([2**63, 2**64 - 1, 0], np.uint64))


def test_int_to_int_wraps(call, same):
    same(call("cast", np.array([300, -1]), d.uint8), np.array([44, 255], np.uint8))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_to_num(call, same, dtype):
    top = float(ml_dtypes.finfo(dtype).max)
    x = np.array([nan, inf, -inf, 2], dtype)
    same(call("nan_to_num", x, 0.0, None, None), np.array([0, top, -top, 2], dtype))
    same(call("nan_to_num", x, 1.0, 3.0, 4.0), np.array([1, 3, 4, 2], dtype))


def test_mul_no_nan_and_lerp(call, same):
    same(call("mul_no_nan", arr(0, -0.0, 2), arr(inf, nan, 3)), arr(0, 0, 6))
    for weight in (arr(0.0), np.float32(0).reshape(()), arr(1.0), np.array(1, np.float32)):
        got = call("lerp", arr(0.1), arr(0.7), weight)
        same(np.reshape(got, 1), arr(0.1) if weight.item() == 0 else arr(0.7))


def test_round_goes_to_even(call, same):
    same(call("round", arr(0.5, 1.5, 2.5, -0.5), 0), arr(0, 2, 2, -0.0))
    same(call("round", np.array([1234.5678]), 2), np.array([1234.57]))
    same(call("round", np.array([1234.5678]), -2), np.array([1200.0]))
    same(call("round", np.array([1250, 1350]), 0), np.array([1250, 1350]))


def test_where_refuses_a_condition_that_is_not_bool(call, same):
    same(call("where", np.array([True, False]), arr(1, 2), np.array(9, np.float32)), arr(1, 9))
    with pytest.raises(TypeError):
        call("where", np.array([1, 0]), arr(1, 2), arr(3, 4))


def test_half_arithmetic_rounds_once(call, same):
    x = np.array([1.0], np.float16)
    tiny = np.array([2.0**-11 * 1.0009765625], np.float16)
    same(call("add", x, tiny), np.array([np.float32(1) + np.float32(tiny[0])]).astype(np.float16))
    b = np.array([3.0, 1.0], BF16)
    same(call("div", b[1:], b[:1]), np.array([1 / 3], np.float32).astype(BF16))


def test_broadcast_of_illegal_shapes_raises(call):
    with pytest.raises(ValueError, match="broadcast"):
        call("add", np.ones((2, 3)), np.ones((2, 4)))


@pytest.mark.parametrize("dtype", [np.dtype(bool), *INTS, *FLOATS], ids=str)
def test_where_of_many_elements_equals_where_of_few(call, same, dtype):
    rng = np.random.default_rng(0)
    cond = rng.random((80, 90)) < 0.5
    x, y = (rng.integers(-9, 9, (80, 90)).astype(dtype) for _ in range(2))
    if dtype in FLOATS:
        x[0], y[1] = nan, -inf
    same(call("where", cond, x, y), np.where(cond, x, y))
    same(call("where", cond.T, x.T, y[0, 0].reshape(())), np.where(cond.T, x.T, y[0, 0]))
    same(call("where", cond[:, :1], x, y[:1]), np.where(cond[:, :1], x, y[:1]))
    wide = np.broadcast_to(cond, (2, 80, 90))
    same(call("where", wide, x[:1], y[:, :1]), np.where(wide, x[:1], y[:, :1]))


@pytest.mark.parametrize("name", ["elu", "celu", "leaky_relu", "hardshrink", "softshrink"])
def test_activations_of_many_elements_equal_those_of_few(call, same, name):
    x = np.linspace(-3, 3, 5000, dtype=np.float32)
    same(call(name, x, 1.5)[:50], call(name, x[:50].copy(), 1.5))
