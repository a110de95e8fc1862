"""The BLAS provider of CUDA: cuBLAS, called by pointer on the stream of the device.

cupy brings the library and makes its handle; products call it directly, because cupy would send
each call to its own current stream. Products of floats go to it as they lie; what it cannot read
without a copy is copied by the shared code of the CPU's provider. Half precision adds in float32,
float32 stays true float32 unless the device was allowed tf32, and partial sums are never rounded to
half precision.
`BURN_CUDA_BLAS=off` leaves products to the kernels of this package.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from burn_cube import LaunchError
from burn_cube.spi import CudaCall, profiles
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, broadcast_shape, dense, size_of
from burn_cube_backend.kernels.blas import Matrix, _matrix as matrix_of
from burn_cube_backend.kernels.maps import HALVES, copied, whole_rows, write
from burn_cube_backend.payload import CubeTensor, number
from burn_std import DType, dtypes as d

# cudaDataType of the elements, and cublasComputeType of the sums.
_KINDS = {d.float32: (0, 68), d.float64: (1, 70), d.float16: (2, 68), d.bfloat16: (14, 68)}
# CUBLAS_COMPUTE_32F_FAST_TF32
_TF32 = 77
# CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION; the default mode of float32 is true float32.
_MATH = 16
_DEFAULT_ALGORITHM = -1
_MOST_PLANS = 4096
# Products of halves of this many steps are worth copies of operands that lie badly.
_WORTH = 1 << 28
# Bytes; what NVIDIA recommends for its latest chips.
_WORKSPACE = 32 << 20
_ADDRESSES = struct.Struct("=qqq")
_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p


class Plan(NamedTuple):
    """A product of one shape and layout, all but its addresses.

    Attributes:
        call: the function of the library for one product or a batch of them.
        head: arguments before the address of the right operand, which the library sees first.
        middle: arguments between the addresses of right and left operand.
        scale: arguments between that of the left operand and that of the result.
        tail: arguments behind it.
        shape: of the result.
        strides: of the result.
        size: elements of the result.
    """

    call: Callable[..., int]
    head: tuple[Any, ...]
    middle: tuple[Any, ...]
    scale: tuple[Any, ...]
    tail: tuple[Any, ...]
    shape: Ints
    strides: Ints
    size: int


class CuBlas:
    """A handle on one device and its stream.

    Attributes:
        plans: products that were made before, by dtype and layout of the operands.
        tf32: those of float32 read their factors as tf32.
    """

    def __init__(self, runtime: Any, tf32: bool = False) -> None:
        from cupy.cuda import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
            cublas,
        )

        runtime.use()
        self.runtime = runtime
        self.tf32 = tf32
        self.plans: dict[Any, Plan] = {}
        handle = cublas.create()
        cublas.setMathMode(handle, _MATH)
        cublas.setStream(handle, runtime.stream.ptr)
        self.handle = _POINTER(handle)
        # cupy has loaded it: the name alone finds it.
        version = cublas.getVersion(handle)
        major = version // (10000 if version >= 100000 else 1000)
        windows = sys.platform == "win32"
        library = ctypes.CDLL(f"cublas64_{major}.dll" if windows else f"libcublas.so.{major}")
        self.one, self.many = library.cublasGemmEx, library.cublasGemmStridedBatchedEx
        # Memory of its own, because in the capture of a graph the library must not ask for any.
        # Products that run side by side need one each.
        self._set_workspace = library.cublasSetWorkspace_v2
        self._spaces = [runtime.alloc(_WORKSPACE)]
        self.take(0)
        # Scalars stand in host memory, in the dtype of the sums.
        self.scalars: dict[DType, np.ndarray[Any, Any]] = {
            d.float32: np.array([1, 0], np.float32),
            d.float64: np.array([1, 0], np.float64),
        }

    def take(self, lane: int) -> None:
        """Let the calls that follow use the working memory of a lane."""
        while len(self._spaces) <= lane:
            self._spaces.append(self.runtime.alloc(_WORKSPACE))
        space, size = _POINTER(self._spaces[lane]), ctypes.c_size_t(_WORKSPACE)
        status = self._set_workspace(self.handle, space, size)
        if status:
            raise LaunchError("matmul", "cuBLAS takes a workspace", got=f"its status {status}")

    def plan(
        self, dtype: DType, shape: tuple[int, int, int], x: Matrix, y: Matrix,
        steps: tuple[int, int], batch: Ints,
    ) -> Plan:  # fmt: skip
        """Return how out = x y is computed; cuBLAS counts columns, so it is told out' = y' x'."""
        m, n, k = shape
        kind, sums = _KINDS[dtype]
        if self.tf32 and dtype is d.float32:
            sums = _TF32
        pair = self.scalars[d.float64 if dtype is d.float64 else d.float32]
        one = pair.ctypes.data
        batches = size_of(batch)

        def after(lead: int, step: int) -> tuple[Any, ...]:
            made = (_INT(kind), _INT(lead))
            return made if batches == 1 else (*made, _LONG(step))

        head = (
            self.handle, _INT(y.turned), _INT(x.turned), _INT(n), _INT(m), _INT(k), _POINTER(one),
        )  # fmt: skip
        tail = (*after(n, m * n), *(() if batches == 1 else (_INT(batches),)))
        out = (*batch, m, n)
        return Plan(
            self.one if batches == 1 else self.many, head, after(y.lead, steps[1]),
            (*after(x.lead, steps[0]), _POINTER(one + pair.itemsize)),
            (*tail, _INT(sums), _INT(_DEFAULT_ALGORITHM)), out, dense(out), size_of(out),
        )  # fmt: skip

    def call(self, plan: Plan, right: int, left: int, out: int) -> None:
        """Put a product into the stream."""
        status = plan.call(
            *plan.head, _POINTER(right), *plan.middle, _POINTER(left), *plan.scale, _POINTER(out),
            *plan.tail,
        )  # fmt: skip
        if status:
            raise LaunchError("matmul", "cuBLAS takes the product", got=f"its status {status}")

    def run(self, engine: Engine, plan: Plan, x: CubeTensor, y: CubeTensor) -> CubeTensor:
        """Return the product of a plan."""
        runtime, dtype = self.runtime, x.dtype
        flat = engine.flat(plan.size, dtype)
        assert x.buf is not None and y.buf is not None  # noqa: S101 - solid
        item = dtype.itemsize
        right = y.buf.pointer + y.offset * item
        left = x.buf.pointer + x.offset * item
        runtime.alive()
        measured = engine.client.measured("product (cuBLAS)") if profiles() else nullcontext()
        with measured, runtime.lock:
            runtime.use()
            self.call(plan, right, left, flat.pointer)
        log = engine.log
        if log is not None and log.thread == threading.get_ident():
            words = _ADDRESSES.pack(right, left, flat.pointer)
            stay = [a for a in (x.buf, y.buf) if log.base_of(a) is None]
            call = CudaCall(plan, words, issue=partial(self.call, plan), lanes=self)
            log.native(call, None, stay, writes=(2,))
        return CubeTensor(flat, plan.shape, plan.strides, dtype)


def provider(engine: Engine) -> CuBlas | None:
    """Return the library of a CUDA device, None elsewhere or where it was switched off."""
    found = engine.providers.get("cublas", False)
    if found is False:
        runtime = engine.client.runtime
        wanted = (
            runtime.name.partition(":")[0] == "cuda" and os.environ.get("BURN_CUDA_BLAS") != "off"
        )
        found = engine.providers["cublas"] = CuBlas(runtime, engine.tf32) if wanted else None
    made: CuBlas | None = found
    return made


def _step(x: Matrix) -> int | None:
    """Return the elements from matrix to matrix of a batch, None if they are not even."""
    if len(x.offsets) == 1:
        return 0
    steps = np.diff(x.offsets)
    return int(steps[0]) // x.item if (steps == steps[0]).all() else None


def _grown(engine: Engine, x: CubeTensor, rows: int, columns: int) -> CubeTensor:
    """Return matrices with zeros behind their last rows and columns, turned if they are."""
    if (rows, columns) == x.shape[-2:]:
        return x
    if x.strides[-2] == 1 and x.strides[-1] != 1:
        return _turned(_grown(engine, _turned(x), columns, rows))
    batch, m, n = x.shape[:-2], x.shape[-2], x.shape[-1]
    zero = engine.solid(number(0.0, x.dtype))
    if rows == m and columns == x.strides[-2] and whole_rows(x) is not None:
        # There is room behind each row already, which nobody else reads.
        write(engine, CubeTensor(x.buf, (*batch, m, columns - n), x.strides, x.dtype, n), zero)
        return x.view((*batch, m, columns), x.strides)
    out = engine.empty((*batch, rows, columns), x.dtype)
    # The two rims, and the matrices themselves.
    for top, left, height, width, source in (
        (0, n, rows, columns - n, zero), (m, 0, rows - m, n, zero), (0, 0, m, n, x),
    ):  # fmt: skip
        if height and width:
            start = out.offset + top * columns + left
            part = CubeTensor(out.buf, (*batch, height, width), out.strides, x.dtype, start)
            write(engine, part, source)
    return out


def _turned(x: CubeTensor) -> CubeTensor:
    """Return the transposed matrices."""

    def swap(values: Ints) -> Ints:
        return (*values[:-2], values[-1], values[-2])

    return x.view(swap(x.shape), swap(x.strides))


def _aligned(
    engine: Engine, x: CubeTensor, y: CubeTensor, left: Matrix, right: Matrix
) -> tuple[CubeTensor, CubeTensor] | None:
    """Return operands of which extents and leads are multiples of 8; None if they are so already.

    The fast kernels of the library want that. Rows of an odd length (a vocabulary of 50257) made
    products of 8192 x 768 x 50257 take 4.3 to 6.3 ms of an H200 in place of 1.
    """
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    odd_x, odd_y = left.lead % 8 != 0, right.lead % 8 != 0
    tall = _up(m) if left.turned else m
    deep, wide = _up(k), _up(n)
    if not (odd_x or odd_y) and (tall, deep, wide) == (m, k, n):
        return None
    grown = []
    for t, odd, extents in ((x, odd_x, (tall, deep)), (y, odd_y, (deep, wide))):
        made = _grown(engine, t, *extents)
        grown.append(copied(engine, t) if odd and made is t else made)
    return grown[0], grown[1]


def _up(extent: int) -> int:
    return -(-extent // 8) * 8


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
    key = (x.dtype, x.shape, x.strides, y.shape, y.strides)
    plan = library.plans.get(key)
    if plan is None:
        batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
        m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
        if not k or not m or not n or not size_of(batch):
            return None
        plain = [matrix_of(t, t.shape[:-2]) is not None for t in (x, y)]
        if not all(plain):
            x, y = (t if good else copied(engine, t) for t, good in zip((x, y), plain, strict=True))
            return product(engine, x, y)
        left, right = matrix_of(x, batch), matrix_of(y, batch)
        if left is None or right is None:
            return None
        if x.dtype in HALVES and m * n * k * size_of(batch) >= _WORTH:
            grown = _aligned(engine, x, y, left, right)
            if grown is not None:
                out = product(engine, *grown)
                return None if out is None else out.view((*batch, m, n), out.strides)
        steps = _step(left), _step(right)
        if steps[0] is None or steps[1] is None:
            return None
        if len(library.plans) >= _MOST_PLANS:
            library.plans.clear()
        even = steps[0], steps[1]
        plan = library.plan(x.dtype, (m, n, k), left, right, even, batch)
        library.plans[key] = plan
    return library.run(engine, plan, x, y)
