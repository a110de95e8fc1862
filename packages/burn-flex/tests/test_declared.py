"""Kernels return what their entries declare: shapes and dtypes, for every float dtype."""

import ml_dtypes
import numpy as np
import pytest

from burn_flex.table import DTYPE
from burn_ir import CATALOG
from burn_ir.entry import Spec
from burn_std import dtypes as d

RNG = np.random.default_rng(0)
FLOATS = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
MASK = np.ones((4, 5), bool)
AT = np.zeros((2, 3, 2), np.int64)
TARGET = np.array([[0, 1], [2, 0]])

# A shape stands for a tensor of the dtype under test, in a list for a statistic of it; arrays are
# taken as they are.
_CONV = ((2, 1), (1, 1), (1, 2), 2)
_POOL = ((2,), (2,), (1,), True)
CALLS = [
    ("conv", (2, 4, 5, 6), (6, 2, 3, 2), (6,), *_CONV),
    ("conv_transpose", (2, 4, 5, 6), (4, 3, 3, 2), None, (2, 1), (1, 0), (1, 0), (1, 2), 2),
    ("conv_input_grad", (2, 6, 3, 6), (6, 2, 3, 2), *_CONV, (2, 4, 5, 6)),
    ("conv_weight_grad", (2, 6, 3, 6), (2, 4, 5, 6), *_CONV, (6, 2, 3, 2)),
    ("max_pool", (2, 3, 5), (2,), (2,), (1,), (1,), True),
    ("max_pool_backward", (2, 3, 2), AT, (), (), (), (), (2, 3, 5)),
    ("pool_gather", (2, 3, 5), AT),
    ("avg_pool", (2, 3, 5), *_POOL, True, None),
    ("avg_pool_backward", (2, 3, 3), *_POOL, False, None, (2, 3, 5)),
    ("adaptive_avg_pool", (2, 3, 5, 4), (2, 3)),
    ("adaptive_avg_pool_backward", (2, 3, 2, 3), (2, 3, 5, 4)),
    ("adaptive_max_pool", (2, 3, 5, 4), (2, 3)),
    ("interpolate", (2, 3, 5, 4), "bicubic", False, (7, 3), (None, 0.8)),
    ("interpolate", (2, 3, 5), "nearest", False, (7,), (None,)),
    ("interpolate_backward", (2, 3, 7, 3), "bilinear", True, (7, 3), (None, None), (2, 3, 5, 4)),
    ("grid_sample", (2, 3, 5, 4), (2, 2, 3, 2), "bilinear", "reflection", False),
    ("grid_sample_backward", (2, 3, 2, 3), (2, 3, 5, 4), (2, 2, 3, 2), "bicubic", "border", True),
    ("unfold", (2, 3, 5, 4), (2, 2), (1, 1), (1, 0), (2, 1)),
    ("fold", (2, 12, 9), (2, 2), (1, 1), (1, 0), (2, 1), (5, 4)),
    ("softmax", (2, 3), 1, None),
    ("log_softmax", (2, 3), 0, d.float64),
    ("layer_norm", (2, 3, 4), (3, 4), (3, 4), 2, 1e-5),
    ("rms_norm", (2, 3, 4), (4,), 1, 1e-5),
    ("group_norm", (2, 4, 3), (4,), (4,), 2, 1e-5),
    ("batch_norm", (2, 4, 3), (4,), (4,), (4,), (4,), True, 1e-5),
    ("batch_norm", (2, 4, 3), None, None, (4,), (4,), False, 1e-5),
    ("batch_norm_backward", (2, 4, 3), (2, 4, 3), (4,), (4,), (4,), True, 1e-5),
    ("attention", (2, 4, 3), (2, 5, 3), (2, 5, 6), MASK, True, False, 0.5),
    (
        "attention_backward",
        (2, 4, 6),
        (2, 4, 3),
        (2, 5, 3),
        (2, 5, 6),
        (4, 5),
        (2, 4, 6),
        [(2, 4)],
        False,
        False,
        0.5,
    ),
    ("mse_loss", (2, 3), (3,), "none"),
    ("l1_loss", (2, 3), (2, 3), "mean"),
    ("smooth_l1_loss", (2, 3), (2, 3), "sum", 0.5),
    ("huber_loss", (2, 3), (2, 3), "none", 0.5),
    ("binary_cross_entropy", (2, 3), (2, 3), (3,), "mean"),
    ("binary_cross_entropy_with_logits", (2, 3), (2, 3), (3,), (3,), "none"),
    ("kl_div", (2, 3), (2, 3), "batchmean", True),
    ("nll_loss", (2, 3, 2), TARGET, (3,), "none", -100),
    ("nll_loss", (2, 3, 2), TARGET, None, "mean", 0),
    ("cross_entropy", (2, 3, 2), TARGET, (3,), "mean", None, -100, 0.1),
    ("cross_entropy", (2, 3, 2), (2, 3, 2), None, "none", None, -100, 0.0),
    ("ctc_loss", (5, 2, 3), np.ones((2, 2), np.int64), np.array([5, 4]), np.array([2, 1]), 0),
    ("matmul", (2, 3, 4), (4, 5)),
    ("matmul", (4,), (4,)),
    ("linear", (2, 3, 4), (5, 4), (5,)),
    ("cross", (2, 3), (1, 3), 1),
    ("det", (2, 3, 3)),
    ("inverse", (2, 3, 3)),
    ("solve", (2, 3, 3), (3, 4)),
    ("triangular_solve", (2, 3, 3), (3, 4), True, False, False),
    ("lu", (2, 3, 4), True),
    ("lu", (4, 3), False),
    ("qr", (2, 3, 4), "complete"),
    ("qr", (2, 4, 3), "r"),
    ("svd", (2, 3, 4), False),
    ("rfft", (2, 6), 1, "backward", 5),
    ("irfft", (2, 4), None, 1, "ortho", 7),
    ("rfft_backward", (2, 4), (2, 4), 1, "forward", 7),
    ("irfft_backward", (2, 7), 1, "backward", 4),
]


def _tensor(arg, dtype):
    if isinstance(arg, list):
        (arg,), dtype = arg, np.float32 if dtype.itemsize == 2 else dtype
    if not isinstance(arg, tuple):
        return arg
    # Every second element along the last dim: kernels must not rely on a dense layout.
    wide = RNG.uniform(0.2, 0.8, (*arg[:-1], 2 * arg[-1]) if arg else ()).astype(dtype)
    return wide[..., ::2] if arg else wide


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("call_args", CALLS, ids=lambda c: c[0])
def test_outputs_are_as_declared_and_inputs_unchanged(call, call_args, dtype):
    name, *args = call_args
    entry = CATALOG[name]
    count = len(entry.inputs)
    inputs = [_tensor(a, dtype) for a in args[:count]]
    before = [None if a is None else a.copy() for a in inputs]
    out = call(name, *inputs, *args[count:])
    for old, new in zip(before, inputs, strict=True):
        assert old is None or np.array_equal(old, new)
    specs = [None if a is None else Spec(a.shape, DTYPE[a.dtype]) for a in inputs]
    attrs = [v for v, a in zip(args[count:], entry.attrs, strict=True) if a.kind != "scalar"]
    want = entry.infer(*specs, *attrs)
    out, want = (o if isinstance(o, tuple) else (o,) for o in (out, want))
    assert [Spec(np.shape(o), DTYPE[o.dtype]) for o in out] == list(want)


def test_every_numeric_entry_is_here_or_has_a_test_of_its_own():
    own = {"quantize", "dequantize", "quantized_matmul", "sgd_step", "adam_step"}
    families = CATALOG["conv"].infer.__module__
    assert {c[0] for c in CALLS} | own >= {
        e.name for e in CATALOG if e.infer.__module__ == families
    }
