import ml_dtypes
import numpy as np
import pytest

from burn_flex.kernels.quant_ops import dequantize, quantize
from burn_std import dtypes as d, quantized

RNG = np.random.default_rng(0)


def test_symmetric_rounds_half_to_even(same):
    x = np.array([127, 0.5, 1.5, -2.5, -127, 300], np.float32)
    q = quantize(x, np.array(1, np.float32), None, quantized(8))
    same(q.values, np.array([127, 0, 2, -2, -127, 127], np.int8))
    assert q.zero is None and q.shape == (6,) and q.dtype is quantized(8)


def test_symmetric_scale_is_the_largest_magnitude(same):
    x = np.array([[-254, 100], [3, 0]], np.float32)
    same(quantize(x, None, None, quantized(8)).scale, np.array(2, np.float32))
    same(quantize(x, None, None, quantized(4)).scale, np.array(254 / np.float32(7)))
    same(quantize(x * 0, None, None, quantized(8)).scale, np.array(1, np.float32))


def test_affine_range_contains_zero_exactly(same):
    scheme = quantized(8, symmetric=False)
    for low, high in ((5, 10), (-10, -5), (-3, 9)):
        x = np.array([low, high, 0], np.float32)
        q = quantize(x, None, None, scheme)
        back = dequantize(q, d.float32)
        assert back[2] == 0
        np.testing.assert_allclose(back, x, atol=float(q.scale))
        assert -128 <= int(q.zero) <= 127


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("block", [0, 3, 4, 16])
def test_round_trip_is_within_half_a_step(bits, symmetric, block):
    x = RNG.standard_normal((5, 10)).astype(np.float32)
    scheme = quantized(bits, symmetric=symmetric, block=block)
    q = quantize(x, None, None, scheme)
    assert q.scale.shape == ((5, -(-10 // block)) if block else ())
    assert q.values.min() >= scheme.qmin and q.values.max() <= scheme.qmax
    step = np.repeat(q.scale, block, axis=-1)[:, :10] if block else q.scale
    # Affine zero points round too, which may cost half a step more at the ends of the range.
    assert (np.abs(dequantize(q, d.float32) - x) <= step * (0.5001 if symmetric else 1.0001)).all()


def test_halves_give_f32_scales_and_come_back(same):
    x = np.array([1, -0.5], ml_dtypes.bfloat16)
    q = quantize(x, None, None, quantized(8))
    assert q.scale.dtype == np.float32
    assert dequantize(q, d.bfloat16).dtype == ml_dtypes.bfloat16
    assert dequantize(q, d.float64).dtype == np.float64


def test_empty_and_rank_0(same):
    for block in (0, 4):
        q = quantize(np.zeros((2, 0), np.float32), None, None, quantized(8, block=block))
        assert dequantize(q, d.float32).shape == (2, 0)
        q = quantize(np.array(3, np.float32), None, None, quantized(8, block=block))
        np.testing.assert_allclose(dequantize(q, d.float32), 3, rtol=1e-6)
