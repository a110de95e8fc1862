import ml_dtypes
import numpy as np
import pytest

from burn_flex.kernels.philox import words
from burn_flex.table import NATIVE
from burn_std import dtypes as d

KEY = (0x1234567890ABCDEF, 7)
FLOATS = [d.float16, d.bfloat16, d.float32, d.float64]
BITS = {d.float16: 11, d.bfloat16: 8, d.float32: 24, d.float64: 53}


def philox(key, block):
    """The definition, word by word."""
    k0, k1 = key[0] & 0xFFFFFFFF, key[0] >> 32
    c = [block & 0xFFFFFFFF, block >> 32, key[1] & 0xFFFFFFFF, key[1] >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def test_philox_gives_the_published_words():
    assert words((0, 0), 1)[0].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox((0x299F31D0A4093822, 0x0370734413198A2E), 0x85A308D3243F6A88) == [
        0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1,
    ]  # fmt: skip


def test_words_follow_the_definition_across_chunks():
    got = words((KEY[0], 2**40 + 3), 20_001)
    for block in (0, 1, 8191, 8192, 20_000):
        assert got[block].tolist() == philox((KEY[0], 2**40 + 3), block)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_is_on_its_grid(call, same, dtype):
    got = call("uniform", dtype, (3, 5), 0.0, 1.0, KEY)
    bits = BITS[dtype]
    want = []
    for i in range(15):
        if dtype is d.float64:
            low, high = philox(KEY, i // 2)[2 * (i % 2) :][:2]
            word, width = low | high << 32, 64
        else:
            word, width = philox(KEY, i // 4)[i % 4], 32
        want.append((word >> (width - bits)) / 2**bits)
    same(got, np.array(want).reshape(3, 5).astype(NATIVE[dtype]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_stays_below_its_end(call, dtype):
    got = call("uniform", dtype, (4000,), 1.0, 1.25, KEY).astype(np.float64)
    assert got.min() >= 1 and got.max() < 1.25
    assert (call("uniform", dtype, (3,), 2.0, 2.0, KEY) == 2).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normal_is_box_muller(call, dtype):
    got = call("normal", dtype, (9,), 0.5, 2.0, KEY).astype(np.float64)
    for i in range(9):
        w0, w1 = philox(KEY, i // 2)[2 * (i % 2) :][:2]
        z = np.sqrt(-2 * np.log((w0 + 1) / 2**32)) * np.cos(2 * np.pi * w1 / 2**32)
        eps = float(ml_dtypes.finfo(NATIVE[dtype]).eps)
        # In f32 the angle itself is rounded, by up to 2.4e-7.
        slack = 0 if dtype is d.float64 else 2e-6
        assert abs(got[i] - (0.5 + 2 * z)) <= 4 * eps * max(1, abs(0.5 + 2 * z)) + slack


def test_normal_has_its_moments(call):
    x = call("normal", d.float32, (200_000,), 0.0, 1.0, KEY).astype(np.float64)
    assert abs(x.mean()) < 0.01 and abs(x.std() - 1) < 0.01 and np.isfinite(x).all()


def test_randint_takes_the_high_word(call, same):
    got = call("randint", d.int8, (5,), -3, 4, KEY)
    same(got, np.array([(philox(KEY, i // 4)[i % 4] * 7 >> 32) - 3 for i in range(5)], np.int8))
    for low, high in ((-(2**62), 2**62 + 5), (0, 2**63), (-(2**63), 2**63 - 1)):
        got = call("randint", d.int64, (5,), low, high, KEY)
        want = []
        for i in range(5):
            a, b = philox(KEY, i // 2)[2 * (i % 2) :][:2]
            want.append(low + ((a | b << 32) * (high - low) >> 64))
        same(got, np.array(want, np.int64))
    assert call("randint", d.uint64, (3,), 0, 2**64, KEY).dtype == np.uint64


def test_randperm_is_a_stable_sort_of_keys(call, same):
    keys = [philox(KEY, i // 2)[2 * (i % 2) :][:2] for i in range(50)]
    want = sorted(range(50), key=lambda i: keys[i][0] | keys[i][1] << 32)
    same(call("randperm", d.int32, 50, KEY), np.array(want, np.int32))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_dropout_keeps_by_the_uniform(call, same, dtype):
    native = NATIVE[dtype]
    x = np.arange(1, 13).reshape(3, 4).astype(native)
    draws = d.float64 if dtype is d.float64 else d.float32
    u = call("uniform", draws, (3, 4), 0.0, 1.0, KEY)
    want = np.where(u >= u.dtype.type(0.3), x.astype(np.float64) / 0.7, 0)
    got = call("dropout", x, 0.3, KEY)
    assert np.allclose(got.astype(np.float64), want, rtol=1e-2) and got.dtype == native
    same(call("dropout", x, 0.0, KEY), x)
    same(call("dropout", np.full(2, np.nan).astype(native), 1.0, KEY), np.zeros(2, native))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_bernoulli(call, same, dtype):
    native = NATIVE[dtype]
    p = np.array([[0, 1, 0.25]] * 1000, native)
    got = call("bernoulli", p, KEY).astype(np.float32)
    assert (got[:, 0] == 0).all() and (got[:, 1] == 1).all() and 0.2 < got[:, 2].mean() < 0.3


def test_no_elements_and_no_dims(call):
    assert call("uniform", d.float32, (0, 2), 0.0, 1.0, KEY).shape == (0, 2)
    assert np.shape(call("normal", d.float64, (), 0.0, 1.0, KEY)) == ()
    assert call("randperm", d.int64, 0, KEY).shape == (0,)
