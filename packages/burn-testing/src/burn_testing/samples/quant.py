"""Samples of quantisation."""

from __future__ import annotations

from burn_std import DTypeError, quantized
from burn_std.dtypes import float32
from burn_testing.samples.sample import error, sample, t, v

for _scheme in (
    quantized(8),
    quantized(8, symmetric=False),
    quantized(4),
    quantized(8, block=4),
    quantized(4, symmetric=False, block=3),
):
    sample("quantize", t(3, 7), None, None, attrs=(_scheme,), dtypes=("f32",), grad=False)
    sample(
        "quantize",
        v([[0.0, 0.0, 0.0]]),
        None,
        None,
        attrs=(_scheme,),
        dtypes=("f32",),
        name="zeros",
        grad=False,
    )
    sample(
        "dequantize",
        ("quantized", t(3, 7), _scheme),
        attrs=(float32,),
        dtypes=("f32",),
        name=_scheme.name,
    )
    for _name, _shape, _bias in (("linear", (5, 7), t(5)), ("matmul", (7, 5), None)):
        sample(
            "quantized_matmul",
            t(3, 7),
            ("quantized", t(*_shape), _scheme),
            _bias,
            attrs=(_name == "linear",),
            dtypes=("f32",),
            name=f"{_name} {_scheme.name}",
        )
error("quantized_matmul", "plain", DTypeError, t(3, 7), t(5, 7), None, attrs=(True,))
error("quantize", "dtype", DTypeError, t(3), None, None, attrs=(float32,))
error("quantize", "ints", DTypeError, t(3), None, None, attrs=(quantized(8),), dtype="i32")
error("dequantize", "float", DTypeError, t(3), attrs=(float32,))
