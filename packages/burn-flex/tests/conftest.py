"""Fixtures of the kernel tests: `call` runs a kernel as the frame does, `same` compares."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import burn_flex.kernels  # noqa: F401 - fills KERNELS
from burn_flex.table import DTYPE, KERNELS
from burn_ir import CATALOG


def _call(name: str, *args: Any) -> Any:
    entry, kernel = CATALOG[name], KERNELS[name]
    lead = next((i for i, x in enumerate(entry.inputs) if x.promoted), 0)
    dtype = None
    if entry.inputs:
        first = args[lead][0] if entry.inputs[lead].many else args[lead]
        dtype = first.dtype
    fn = kernel.make(dtype)
    if kernel.quiet:  # a warning is an error in this project, so this checks the claim too
        out = fn(*args)
    else:
        with np.errstate(all="ignore"):
            out = fn(*args)
    for result in out if isinstance(out, (tuple, list)) else (out,):
        found = np.asarray(result).dtype
        assert found in DTYPE and any(found is known for known in DTYPE), "dtypes are singletons"
    return out


def _same(got: Any, want: Any) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, (got, want)
    if got.dtype == ml_dtypes.bfloat16:
        got, want = got.astype(np.float32), want.astype(np.float32)
    assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f"), (got, want)


@pytest.fixture
def call() -> Any:
    """Run a kernel; floating-point warnings are silenced only where the kernel asks for it."""
    return _call


@pytest.fixture
def same() -> Any:
    """Assert equal dtypes, shapes and values; NaN equals NaN."""
    return _same
