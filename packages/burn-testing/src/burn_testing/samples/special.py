"""Samples of special functions; those that are maps with an expression have more in `maps`."""

from __future__ import annotations

from burn_std import ArgumentError, DTypeError, IndexRangeError
from burn_testing.samples.sample import FLOAT_NAMES, error, sample, t, v

NAN, INF = float("nan"), float("inf")

sample("lgamma", t(40, low=-6.3, high=14), name="far", grad=False)
sample("lgamma", v([1e-30, 1e-3, 40.0, 3e4, 1.0, 2.0, -1.0, -7.0]), name="ends",
       dtypes=("f32", "f64"), grad=False)  # fmt: skip
sample("digamma", t(40, low=0.3, high=14), name="far")
sample("digamma", t(12, low=-2.9, high=-2.1), name="below")
sample("digamma", v([0.0, -0.0, -1.0, 1e4, 10.0, 9.9999999]), name="ends", dtypes=("f32", "f64"),
       grad=False)  # fmt: skip
sample("erfinv", v([0.999, -0.99999, 0.9999999, 1.0, -1.0, 0.0, 1.5]), name="ends",
       dtypes=("f32", "f64"), grad=False)  # fmt: skip
sample("erfc", t(30, low=-4, high=9), name="far", grad=False)

for _n in (1, 2, 5):
    sample("polygamma", t(3, 4, low=0.7, high=3), attrs=(_n,), dtypes=("f32", "f64"))
    sample("polygamma", t(3, 4, low=1.5, high=6), attrs=(_n,), dtypes=FLOAT_NAMES, grad=False)
sample("polygamma", t(5, low=-0.8, high=-0.2), attrs=(1,), dtypes=("f32", "f64"))
sample("polygamma", t(0, 3), attrs=(1,))
sample("polygamma", v([NAN, INF, 0.0, 80.0, 1e-3]), attrs=(1,), name="special",
       dtypes=("f32", "f64"), grad=False)  # fmt: skip
error("polygamma", "n", ArgumentError, t(2), attrs=(0,))
error("polygamma", "text", DTypeError, "text", attrs=(1,))

for _dim in (0, 1):
    sample("logcumsumexp", t(5, 3), attrs=(_dim,), length=5)
sample("logcumsumexp", t(2, 3, 2), attrs=(1,), length=3)
sample("logcumsumexp", t(), attrs=(0,))
sample("logcumsumexp", t(0, 3), attrs=(0,))
sample("logcumsumexp", v([-INF, -INF, 1.0, 90.0, -90.0, INF, 1.0, NAN, 1.0]), attrs=(0,),
       name="special", dtypes=FLOAT_NAMES, grad=False)  # fmt: skip
sample("logcumsumexp", v([200.0, -300.0, 400.0]), attrs=(0,), name="wide", dtypes=("f32", "f64"),
       grad=False)  # fmt: skip
error("logcumsumexp", "dim", IndexRangeError, t(2), attrs=(3,))
error("logcumsumexp", "text", DTypeError, "text", attrs=(0,))
