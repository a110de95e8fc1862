"""Samples of counter-based random numbers; a backend must give the very bits of the contract."""

from __future__ import annotations

from burn_std import DTypeError, ShapeError
from burn_std.dtypes import bfloat16, float16, float32, float64, int8, int32, int64, uint8
from burn_testing.samples.sample import FLOAT_NAMES, error, sample, t, v

KEYS = ((0, 0), (42, 7), (2**40 + 3, 2**33 + 1))
ONE = ("f32",)

for _key in KEYS:
    for _dtype in (float32, float64, float16, bfloat16):
        sample("uniform", attrs=(_dtype, (3, 5), 0.0, 1.0, _key), dtypes=ONE)
        sample("normal", attrs=(_dtype, (3, 5), 0.0, 1.0, _key), dtypes=ONE)
    for _dtype in (int64, int32, int8, uint8):
        sample("randint", attrs=(_dtype, (3, 5), 0, 100, _key), dtypes=ONE)
    sample("randint", attrs=(int64, (9,), -5, 6, _key), dtypes=ONE)
    sample("randint", attrs=(int64, (9,), 0, 2**40, _key), dtypes=ONE, name="wide")
    sample("randperm", attrs=(int64, 17, _key), dtypes=ONE)
    sample("bernoulli", t(4, 5, low=0.1, high=0.9), attrs=(_key,))
    sample("dropout", t(4, 5), attrs=(0.5, _key))
sample("uniform", attrs=(float32, (0, 3), 0.0, 1.0, (1, 1)), dtypes=ONE)
sample("uniform", attrs=(float32, (), -3.0, 4.0, (1, 1)), dtypes=ONE)
sample("normal", attrs=(float32, (7,), 2.0, 0.5, (1, 1)), dtypes=ONE)
sample("randperm", attrs=(int64, 0, (1, 1)), dtypes=ONE)
sample("bernoulli", v([0.0, 1.0]), attrs=((3, 4),), dtypes=FLOAT_NAMES, name="ends")
for _p in (0.0, 1.0, 0.25):
    sample("dropout", t(3, 3), attrs=(_p, (5, 6)))
sample("dropout", t(0), attrs=(0.5, (5, 6)))
for _name in ("uniform", "normal", "randint"):
    error(_name, "negative", ShapeError, attrs=(float32, (-1,), 0, 1, (0, 0)))
error("randperm", "negative", ShapeError, attrs=(int64, -1, (0, 0)))
error("bernoulli", "ints", DTypeError, t(2), attrs=((0, 0),), dtype="i32")
error("dropout", "ints", DTypeError, t(2), attrs=(0.5, (0, 0)), dtype="i32")
