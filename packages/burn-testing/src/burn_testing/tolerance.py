"""How equal is equal: the one table of tolerances, per class of operation and dtype.

Two rules stand here. `case_tolerance` compares with stored answers of PyTorch; `tolerance` compares
one backend with another (or fused with unfused). No test loosens either locally.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from burn_ir import Entry

# Relative, and absolute times max(1, largest finite value): docs of the numerics contract.
CASE = {"f64": 1e-9, "f32": 2e-5, "bf16": 2e-2, "f16": 3e-3}
# One unit in the last place at 1.0.
EPS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}

# Maps: units in the last place. The 16-bit floats compute in f32 and round once.
MAP_ULP = {"f64": 8.0, "f32": 4.0, "f16": 1.0, "bf16": 1.0}
# Factorisations and transforms lose digits with the condition of their input, which the samples
# keep small.
OPAQUE_ULP = {"f64": 512.0, "f32": 128.0, "f16": 8.0, "bf16": 8.0}


class Tolerance(NamedTuple):
    """How far two values may be apart: `absolute * scale + relative * |expected|`.

    Attributes:
        relative: share of the expected value.
        absolute: share of max(1, largest finite expected value).
    """

    relative: float
    absolute: float


EXACT = Tolerance(0.0, 0.0)


def case_tolerance(dtype: str) -> Tolerance:
    """Return the tolerance against the case files for a short dtype name."""
    t = CASE.get(dtype, 0.0)
    return Tolerance(t, t)


def tolerance(entry: Entry, dtype: str, length: int = 1) -> Tolerance:
    """Return the tolerance of an operation between two backends.

    Args:
        entry: the operation.
        dtype: short name of the result's dtype.
        length: elements that one result reads: the reduced extent, or k of a contraction.
    """
    eps = EPS.get(dtype)
    if eps is None or entry.klass in ("view", "index", "random", "dynamic"):
        # Copies and integers are exact; sums of duplicates are the exception among index work.
        if eps is not None and "duplicates_count" in entry.edges:
            return _grown(eps, dtype, length)
        if eps is not None and entry.name in ("normal", "dropout"):
            return Tolerance(4 * eps, max(2 * eps, 2e-7))
        return EXACT
    if entry.klass == "map":
        t = MAP_ULP[dtype] * eps
        # A map of several steps may cancel, as x - tanh(x) near 0: its error is one of its terms.
        single = entry.grade != "derived" and dtype not in ("f16", "bf16")
        return Tolerance(t, 0.0 if single else t)
    if entry.klass in ("reduce", "contract"):
        return _grown(eps, dtype, length)
    t = OPAQUE_ULP[dtype] * eps
    return Tolerance(t, t)


def _grown(eps: float, dtype: str, length: int) -> Tolerance:
    """Errors of a sum grow like the square root of its length; 16-bit floats sum in f32."""
    if dtype in ("f16", "bf16"):
        return Tolerance(2 * eps, 2 * eps)
    t = eps * (4 + 2 * sqrt(max(length, 1)))
    return Tolerance(t, t)


def wide(array: Any) -> np.ndarray[Any, Any]:
    """Return floats as float64, other arrays as they are."""
    a = np.asarray(array)
    return a if a.dtype.kind in "biu" else a.astype(np.float64)


def difference(actual: Any, expected: Any, t: Tolerance) -> str | None:
    """Return in words how two arrays differ beyond a tolerance, None when they do not.

    NaN equals NaN and infinities must agree in sign and place; shapes must be equal.
    """
    a, e = wide(actual), wide(expected)
    if a.shape != e.shape:
        return f"shape {list(a.shape)}, expected {list(e.shape)}"
    if not a.size:
        return None
    if a.dtype.kind in "biu" and e.dtype.kind in "biu":
        wrong = a != e
    else:
        a, e = a.astype(np.float64), e.astype(np.float64)
        finite = np.isfinite(e)
        with np.errstate(all="ignore"):
            largest = float(np.abs(e[finite]).max()) if finite.any() else 0.0
            bound = t.absolute * max(1.0, largest) + t.relative * np.abs(e)
            wrong = np.where(
                finite, ~(np.abs(a - e) <= bound), ~((a == e) | (np.isnan(a) & np.isnan(e)))
            )
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {a.size} values differ, first at {list(at)}: "
        f"{a[at]!r}, expected {e[at]!r}"
    )
