"""Values that make no sense as an argument, or too much of it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import burn


class Odd:
    """Nothing that a tensor knows."""


def _endless() -> list[Any]:
    out: list[Any] = []
    out.append(out)
    return out


def _nested(depth: int) -> Any:
    out: Any = 1.0
    for _ in range(depth):
        out = [out]
    return out


def arrays() -> list[Callable[[], Any]]:
    """Return makers of arrays of odd dtypes, layouts and flags."""
    base = np.arange(12, dtype=np.float32).reshape(3, 4)

    def frozen() -> Any:
        out = base.copy()
        out.flags.writeable = False
        return out

    def odd_address() -> Any:
        raw = np.zeros(49, np.uint8)
        return raw[1:].view(np.float32).reshape(3, 4)

    return [
        lambda: np.broadcast_to(np.float32(2.0), (3, 4)),
        frozen,
        odd_address,
        lambda: base.astype(">f4"),
        lambda: base.astype(">i8"),
        lambda: base.astype(object),
        lambda: np.array([1, "a", None], object),
        lambda: np.array(["a", "bc"]),
        lambda: np.array([b"a"]),
        lambda: np.array(["2020-01-01"], "datetime64[D]"),
        lambda: base.astype(np.complex64),
        lambda: base.astype(np.longdouble),
        lambda: np.asfortranarray(base),
        lambda: base[::-1, ::-2],
        lambda: np.zeros((0, 3), np.int16),
        lambda: np.array(3),
        lambda: np.zeros(2, [("a", "f4"), ("b", "i4")]),
        lambda: np.ma.masked_array(base, base > 3),
        lambda: np.zeros((1,) * 40, np.float32),
        lambda: base.astype(np.uint64) + 2**63,
        lambda: np.lib.stride_tricks.as_strided(base, (3, 3), (4, 4)),
        lambda: np.full((2, 2), np.nan, np.float16),
        lambda: np.ones(3, bool),
    ]


def tensors(device: Any) -> list[Callable[[], Any]]:
    """Return makers of tensors of a device and of others."""

    def t(data: Any, dtype: Any = None) -> Any:
        return burn.tensor(data, dtype=dtype, device=device)

    return [
        lambda: t(1.5),
        lambda: t(1),
        lambda: t(True),
        lambda: t([]),
        lambda: t([[]]),
        lambda: burn.zeros(2, 0, 3, device=device),
        lambda: burn.ones(1, 2, 1, 2, 1, device=device),
        lambda: t([True, False]),
        lambda: t([-1, -100], burn.int8),
        lambda: t([2**63 - 1, -(2**63)]),
        lambda: t([0, 255], burn.uint8),
        lambda: t([2**64 - 1], burn.uint64),
        lambda: t([float("nan"), float("inf"), -float("inf"), -0.0]),
        lambda: t([[1.0, 2.0], [3.0, 4.0]], burn.float16),
        lambda: t([[1.0, 2.0], [3.0, 4.0]], burn.bfloat16),
        lambda: t([[1.0, 2.0], [3.0, 4.0]], burn.float64),
        lambda: burn.ones(2, 3, device="flex:6"),
        lambda: burn.ones(2, 3, device=device.autodiff()).require_grad(),
        lambda: burn.ones(1, device=device).expand(3, 4),
        lambda: burn.ones(3, 4, device=device).T,
        lambda: burn.arange(12, device=device).reshape(3, 4)[::-1, ::2],
        lambda: burn.ones(*(1,) * 30, device=device),
        lambda: burn.ones(4, 8, device=device).quantize(burn.quantized(8)),
        lambda: t([0, 1, 2]),
        lambda: t([5, -7, 100000]),
        lambda: t([[0, 1], [1, 0]], burn.int32),
    ]


NUMBERS: tuple[Any, ...] = (
    0,
    1,
    -1,
    2,
    -5,
    3,
    7,
    64,
    2**31 - 1,
    2**31,
    2**32,
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    2**64,
    2**70,
    0.0,
    -0.0,
    0.5,
    2.5,
    -1.5,
    1e308,
    -1e308,
    1e-320,
    1e30,
    float("nan"),
    float("inf"),
    -float("inf"),
    True,
    False,
    1j,
    np.int8(-3),
    np.int64(1),
    np.uint64(2**64 - 1),
    np.float16(2),
    np.float32(0.5),
    np.float64("nan"),
    np.bool_(True),
    np.longdouble(1),
    np.complex64(1),
    Fraction(1, 3),
    Decimal("0.5"),
)
WORDS: tuple[Any, ...] = (
    "",
    "abc",
    "mean",
    "none",
    "sum",
    "reflect",
    "float32",
    "cpu",
    "nowhere",
    "0",
    b"mean",
    "\0",
    "x" * 5000,
    "ij,jk->ik",
)
LISTS: tuple[Callable[[], Any], ...] = (
    list,
    tuple,
    dict,
    set,
    lambda: [1, 2],
    lambda: (1, -2, 3),
    lambda: (-1,),
    lambda: (-1, -1),
    lambda: (0, 0),
    lambda: (0, 1),
    lambda: [1.0, 2.0],
    lambda: [[1], [1, 2]],
    lambda: [1, "a"],
    lambda: (None,),
    lambda: (2**40, 2**40),
    lambda: (2**62, 4),
    lambda: (2**31, 0),
    lambda: [_nan()],
    lambda: (True, 2),
    lambda: (2.0, 2),
    lambda: _nested(100),
    _endless,
    lambda: [None, 1],
    lambda: (1,) * 70,
    lambda: range(3),
    lambda: iter([1, 2]),
    lambda: {"a": 1},
    lambda: {1, 2},
    lambda: [slice(None)],
    lambda: ((0, 1), (1, 0)),
    lambda: [[[]]],
    lambda: (np.int64(2), 2),
    lambda: [np.ones(2), np.ones(3)],
    lambda: [2**70],
)
OTHERS: tuple[Callable[[], Any], ...] = (
    Odd,
    object,
    lambda: float,
    lambda: int,
    lambda: ...,
    lambda: slice(0, 2),
    lambda: NotImplemented,
    lambda: burn.float32,
    lambda: burn.int8,
    lambda: burn.bool_,
    lambda: burn.bfloat16,
    lambda: burn.float64,
    lambda: burn.uint64,
    lambda: burn.quantized(8),
    lambda: np.float32,
    lambda: np.dtype("f4"),
    lambda: bytearray(4),
    lambda: memoryview(b"abcd"),
    lambda: len,
    lambda: burn.Tensor,
    lambda: burn,
)


def _nan() -> float:
    return float("nan")
