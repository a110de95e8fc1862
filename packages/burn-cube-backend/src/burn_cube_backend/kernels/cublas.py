"""The BLAS provider of CUDA: cuBLAS through cupy, called by pointer on the stream of the device.

Products of floats go to it as they lie; what it cannot read without a copy is copied by the shared
code of the CPU's provider. Half precision adds in float32, float32 stays true float32 (no tf32),
and partial sums are never rounded to half precision. `BURN_CUDA_BLAS=off` leaves products to the
kernels of this package.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import broadcast_shape, size_of
from burn_cube_backend.kernels.blas import Matrix, _matrix as matrix_of
from burn_cube_backend.kernels.maps import copied
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# cudaDataType of the elements, and cublasComputeType of the sums.
_KINDS = {d.float32: (0, 68), d.float64: (1, 70), d.float16: (2, 68), d.bfloat16: (14, 68)}
# CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION; the default mode of float32 is true float32.
_MATH = 16
_DEFAULT_ALGORITHM = -1


class CuBlas:
    """A handle on one device and its stream."""

    def __init__(self, runtime: Any) -> None:
        from cupy.cuda import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
            cublas,
        )

        runtime.use()
        self.runtime = runtime
        self.library = cublas
        self.handle = cublas.create()
        cublas.setMathMode(self.handle, _MATH)
        # Scalars stand in host memory, in the dtype of the sums.
        self.scalars: dict[DType, np.ndarray[Any, Any]] = {
            d.float32: np.array([1, 0], np.float32),
            d.float64: np.array([1, 0], np.float64),
        }

    def multiply(
        self, dtype: DType, shape: tuple[int, int, int], x: Matrix, y: Matrix,
        at: tuple[int, int, int], steps: tuple[int, int], batches: int,
    ) -> None:  # fmt: skip
        """Compute out = x y for a batch; cuBLAS counts columns, so it is told out' = y' x'."""
        m, n, k = shape
        kind, sums = _KINDS[dtype]
        pair = self.scalars[d.float64 if dtype is d.float64 else d.float32]
        one = pair.ctypes.data
        self.runtime.use()
        # cupy sends every call of the library to its current stream, whatever the handle had.
        with self.runtime.stream:
            self.library.gemmStridedBatchedEx(
                self.handle, int(y.turned), int(x.turned), n, m, k, one,
                at[1], kind, y.lead, steps[1], at[0], kind, x.lead, steps[0],
                one + pair.itemsize, at[2], kind, n, m * n, batches, sums, _DEFAULT_ALGORITHM,
            )  # fmt: skip


def provider(engine: Engine) -> CuBlas | None:
    """Return the library of a CUDA device, None elsewhere or where it was switched off."""
    found = engine.providers.get("cublas", False)
    if found is False:
        runtime = engine.client.runtime
        wanted = (
            runtime.name.partition(":")[0] == "cuda" and os.environ.get("BURN_CUDA_BLAS") != "off"
        )
        found = engine.providers["cublas"] = CuBlas(runtime) if wanted else None
    made: CuBlas | None = found
    return made


def _step(x: Matrix) -> int | None:
    """Return the elements from matrix to matrix of a batch, None if they are not even."""
    if len(x.offsets) == 1:
        return 0
    steps = np.diff(x.offsets)
    return int(steps[0]) // x.item if (steps == steps[0]).all() else None


def product(engine: Engine, x: CubeTensor, y: CubeTensor) -> CubeTensor | None:
    """Return the product of two tensors of matrices, or None where the library does not serve.

    Args:
        engine: the device.
        x: [..., M, K].
        y: [..., K, N], of the same dtype.
    """
    library = provider(engine)
    if library is None or x.dtype not in _KINDS:
        return None
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    if not k or not m or not n or not size_of(batch):
        return None
    # The copies, if any, must live until the launch is queued.
    x, y = (t if matrix_of(t, t.shape[:-2]) else copied(engine, t) for t in (x, y))
    left, right = matrix_of(x, batch), matrix_of(y, batch)
    if left is None or right is None:
        return None
    steps = _step(left), _step(right)
    if steps[0] is None or steps[1] is None:
        return None
    out = engine.empty((*batch, m, n), x.dtype)
    assert x.buf is not None and y.buf is not None and out.buf is not None  # noqa: S101 - solid
    item = left.item
    at = x.buf.pointer + x.offset * item, y.buf.pointer + y.offset * item, out.buf.pointer
    even = steps[0], steps[1]
    library.multiply(x.dtype, (m, n, k), left, right, at, even, size_of(batch))
    return out
