"""Samples of products, factorisations and transforms."""

from __future__ import annotations

from typing import Any

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_testing.samples.sample import error, sample, t, v

# The loops below reuse these names for tuples of many kinds.
_b: Any

F = ("f32", "f64")

for _x, _y in (
    ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((5, 2, 3), (3, 2)),
    ((2, 1, 2, 3), (4, 3, 2)), ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((2, 65), (65, 3)),
):  # fmt: skip
    sample("matmul", t(*_x), t(*_y), length=_x[-1])
error("matmul", "inner", ShapeError, t(2, 3), t(4, 5))
error("matmul", "batch", ShapeError, t(2, 2, 3), t(3, 3, 2))
error("matmul", "scalar", ShapeError, t(), t(2))
error("matmul", "bool", DTypeError, t(2, 2), t(2, 2), dtype="bool")
for _x, _w, _b in (
    ((2, 3), (4, 3), (4,)), ((3,), (4, 3), None), ((2, 5, 3), (1, 3), (1,)), ((2, 3), (3,), None),
    ((0, 3), (2, 3), (2,)), ((2, 0), (3, 0), (3,)),
):  # fmt: skip
    sample("linear", t(*_x), t(*_w), t(*_b) if _b else None, length=_x[-1])
error("linear", "inner", ShapeError, t(2, 3), t(4, 5), None)
error("linear", "bias", ShapeError, t(2, 3), t(4, 3), t(3))
sample("cross", t(2, 3), t(2, 3), attrs=(1,))
sample("cross", t(3, 1), t(3, 4), attrs=(0,))
sample("cross", t(0, 3), t(0, 3), attrs=(1,))
error("cross", "extent", ShapeError, t(2, 2), t(2, 2), attrs=(1,))

# Diagonally dominant, so that factorisations are well conditioned.
GOOD = v([[4.0, 1.0, 0.5], [0.7, 5.0, -1.2], [-0.3, 1.1, 3.5]])
STACK = v([[[4.0, 1.0], [0.7, 5.0]], [[3.0, -1.0], [0.2, 2.5]]])
for _name in ("det", "inverse"):
    for _m in (GOOD, STACK, v([[2.5]])):
        sample(_name, _m, dtypes=F)
    sample(_name, t(0, 2, 2), dtypes=F)
    error(_name, "square", ShapeError, t(2, 3))
    error(_name, "ints", DTypeError, t(2, 2), dtype="i32")
for _b in (t(3, 2), t(3, 1), t(2, 3, 2)):
    sample("solve", GOOD, _b, dtypes=F)
    for _upper in (False, True):
        for _transpose in (False, True):
            sample("triangular_solve", GOOD, _b, attrs=(_upper, _transpose, False), dtypes=F)
sample("triangular_solve", GOOD, t(3, 2), attrs=(True, False, True), dtypes=F)
error("solve", "rows", ShapeError, t(3, 3), t(2, 2))
error(
    "triangular_solve",
    "rows",
    ShapeError,
    t(3, 3),
    t(2, 2),
    attrs=(True, False, False),
    ops=("solve",),
)
for _shape in ((3, 3), (4, 2), (2, 4), (2, 3, 3)):
    sample("lu", t(*_shape), attrs=(True,), dtypes=F, grad=_shape[-1] == _shape[-2])
    sample("qr", t(*_shape), attrs=("reduced",), dtypes=F, grad=_shape[-2] >= _shape[-1])
    sample("svd", t(*_shape), attrs=(False,), dtypes=F)
sample("qr", t(4, 2), attrs=("complete",), dtypes=F, grad=False)
sample("qr", t(3, 3), attrs=("r",), dtypes=F, grad=False)
sample("svd", t(3, 2), attrs=(True,), dtypes=F, grad=False)
error("lu", "rank", ShapeError, t(3), attrs=(True,))
error("qr", "mode", ArgumentError, t(3, 3), attrs=("full",))
error("svd", "rank", ShapeError, t(3), attrs=(False,))

_POSITIVE = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.7], [0.5, -0.7, 2.0]]
for _upper in (False, True):
    sample("cholesky", v(_POSITIVE), attrs=(_upper,), dtypes=F, grad=False)
    sample("cholesky", v([_POSITIVE, [[1.0, 0, 0], [0, 2, 0], [0, 0, 5]]]), attrs=(_upper,),
           dtypes=F, grad=False)  # fmt: skip
    sample("cholesky", v([[2.25]]), attrs=(_upper,), dtypes=F, grad=False)
    sample("cholesky", t(0, 3, 3), attrs=(_upper,), dtypes=F, grad=False)
    sample("eigh", v([_POSITIVE, [[1.0, 2, 3], [2, -1, 0.5], [3, 0.5, 7]]]), attrs=(_upper,),
           dtypes=F, grad=False)  # fmt: skip
    sample("eigh", t(2, 2, 2), attrs=(_upper,), dtypes=F, grad=False)
    sample("eigh", t(1, 1), attrs=(_upper,), dtypes=F, grad=False)
    sample("eigh", t(0, 3, 3), attrs=(_upper,), dtypes=F, grad=False)
for _name in ("cholesky", "eigh"):
    error(_name, "square", ShapeError, t(2, 3), attrs=(False,))
    error(_name, "vector", ShapeError, t(3), attrs=(False,))
    error(_name, "ints", DTypeError, t(2, 2), attrs=(False,), dtype="i32")

for _n in (6, 7, 4, 1, 9):
    for _norm in ("backward", "ortho", "forward"):
        sample("rfft", t(2, 6), attrs=(1, _norm, _n), dtypes=F)
        sample("irfft", t(2, _n // 2 + 1), t(2, _n // 2 + 1), attrs=(1, _norm, _n), dtypes=F)
        sample(
            "rfft_backward", t(2, _n // 2 + 1), t(2, _n // 2 + 1), attrs=(1, _norm, _n), dtypes=F
        )
        sample("irfft_backward", t(2, _n), attrs=(1, _norm, _n // 2 + 1), dtypes=F)
sample("rfft", t(5, 3), attrs=(0, "backward", 5), dtypes=F)
sample("irfft", t(2, 4), None, attrs=(1, "backward", 6), dtypes=F)
error("rfft", "n", ShapeError, t(4), attrs=(0, "backward", 0))
error("rfft", "scalar", ShapeError, t(), attrs=(0, "backward", 1))
error("irfft", "n", ShapeError, t(4), None, attrs=(0, "backward", 0))
error("rfft_backward", "not_a_tensor", DTypeError, None, t(3), attrs=(0, "backward", 4))
error("irfft_backward", "not_a_tensor", DTypeError, None, attrs=(0, "backward", 3))
