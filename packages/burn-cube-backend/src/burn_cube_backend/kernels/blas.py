"""The BLAS provider of the cpu: the library that numpy brings, called by pointer.

Products of floats go to it in pieces that the thread pool of the runtime shares. Operands are read
as they lie: rows or columns that follow each other need no copy. `BURN_CPU_BLAS` names another
library with the same symbols, or is `off`; without one the kernels of this package multiply.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, broadcast_shape, broadcast_strides, size_of
from burn_cube_backend.kernels.blas_native import WORDS, text
from burn_cube_backend.kernels.maps import HALVES, converted, copied
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

_PLAIN, _TRANSPOSED = 111, 112
# Multiplications below which a second thread costs more than it brings.
_WORTH_A_THREAD = 1 << 18
# Pieces are multiples of this, so that the library's inner tiles stay whole.
_GRAIN = 48
_SYMBOLS = {d.float32: "scipy_cblas_sgemm64_", d.float64: "scipy_cblas_dgemm64_"}


class Library(NamedTuple):
    """A loaded BLAS: addresses of its products, and how its own threads are counted."""

    products: dict[DType, int]
    threads: Any
    set_threads: Any


@cache
def library() -> Library | None:
    """Return the library, or None where there is none."""
    named = os.environ.get("BURN_CPU_BLAS")
    if named == "off":
        return None
    for path in [Path(named)] if named else _bundled():
        try:
            loaded = ctypes.CDLL(str(path))
            products = {
                t: ctypes.cast(getattr(loaded, s), ctypes.c_void_p).value or 0
                for t, s in _SYMBOLS.items()
            }
            threads = loaded.scipy_openblas_get_num_threads64_
            return Library(products, threads, loaded.scipy_openblas_set_num_threads64_)
        except (OSError, AttributeError):
            if named:
                raise
    return None


def _bundled() -> list[Path]:
    """Return the files of numpy's own library: their names carry a hash."""
    package = Path(np.__file__).parent
    folders = [package.parent / "numpy.libs", package / ".dylibs"]
    return [p for f in folders if f.is_dir() for p in sorted(f.glob("*scipy_openblas64_*"))]


class _Alone:
    """Keeps the library at one thread while products run, and gives numpy its number back."""

    def __init__(self, lib: Library) -> None:
        self.lib = lib
        self.lock = threading.Lock()
        self.inside = 0
        self.before = 1

    @contextmanager
    def held(self) -> Iterator[None]:
        with self.lock:
            if not self.inside:
                self.before = self.lib.threads()
                if self.before != 1:
                    self.lib.set_threads(1)
            self.inside += 1
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                if not self.inside and self.before != 1:
                    self.lib.set_threads(self.before)


class Matrix(NamedTuple):
    """Matrices as the library reads them.

    Attributes:
        address: of the first element.
        lead: elements from row to row of the memory.
        turned: the memory holds the transpose.
        offsets: of the matrices of a batch, in bytes.
        item: bytes of an element.
    """

    address: int
    lead: int
    turned: bool
    offsets: np.ndarray[Any, Any]
    item: int


class Blas:
    """Products on the cpu runtime."""

    def __init__(self, runtime: Any, lib: Library) -> None:
        from burn_cube.runtime.cache import digest_of, kernel_cache
        from burn_cube.runtime.llvm_jit import jit

        self.runtime = runtime
        self.products = lib.products
        self.alone = _Alone(lib)
        compiler, source = jit(), text()
        key = digest_of("blas", source, compiler.machine)
        image = kernel_cache().get(key)
        if image is None:
            image = compiler.compile(source)
            kernel_cache().put(key, image)
        names = ("burn_gemm_f32", "burn_gemm_f64", "burn_conv_f32", "burn_conv_f64")
        f32, f64, conv32, conv64 = compiler.link(image, *names)
        self.entries = {d.float32: f32, d.float64: f64}
        self.convolutions = {d.float32: conv32, d.float64: conv64}

    def multiply(
        self, dtype: DType, shape: tuple[int, int, int], x: Matrix, y: Matrix, out: int,
        lead: int, step: int, beta: float = 0.0,
    ) -> None:  # fmt: skip
        """Compute out = x y + beta out for a batch.

        Args:
            dtype: float32 or float64.
            shape: rows, columns, depth.
            x: left matrices.
            y: right matrices, as many.
            out: address of the first result.
            lead: elements from row to row of a result.
            step: bytes from result to result.
            beta: 1 adds to what is there.
        """
        m, n, k = shape
        batches, threads = len(x.offsets), self.runtime.threads
        parts, columns, piece = 1, n >= m, max(m, n)
        if batches < 2 * threads and threads > 1 and m * n * k * batches > _WORTH_A_THREAD:
            extent = n if columns else m
            piece = -(-extent // threads)
            piece = min(-(-piece // _GRAIN) * _GRAIN, extent)
            parts = -(-extent // piece)
        item = x.item
        a_part = 0 if columns else piece * (item if x.turned else x.lead * item)
        b_part = piece * (y.lead * item if y.turned else item) if columns else 0
        c_part = piece * (item if columns else lead * item)
        words = WORDS.pack(
            self.products[dtype], _TRANSPOSED if x.turned else _PLAIN,
            _TRANSPOSED if y.turned else _PLAIN, m, n, k, beta, x.address, x.lead, y.address,
            y.lead, out, lead, x.offsets.ctypes.data, y.offsets.ctypes.data, step, parts,
            int(columns), piece, a_part, b_part, c_part,
        )  # fmt: skip
        total = batches * parts
        grain = max(1, total // (threads * 8))
        if m * n * k * batches <= _WORTH_A_THREAD:
            grain = total
        with self.alone.held():
            self.runtime.call(self.entries[dtype], words, total, grain)


def provider(engine: Engine) -> Blas | None:
    """Return the library of a device, None where it has none."""
    found = engine.providers.get("blas", False)
    if found is False:
        runtime = engine.client.runtime
        lib = library() if runtime.name == "cpu" and sys.byteorder == "little" else None
        found = engine.providers["blas"] = None if lib is None else Blas(runtime, lib)
    made: Blas | None = found
    return made


def _matrix(engine: Engine, x: CubeTensor, batch: Ints) -> tuple[Matrix, CubeTensor]:
    """Return a tensor of matrices as the library reads it, and what holds its memory."""
    rows, columns = x.shape[-2:]
    down, along = x.strides[-2:]
    if rows == 1:
        down = max(columns, 1) if along == 1 else down
    if columns == 1:
        along = max(rows, 1) if down == 1 else along
    if along == 1 and (down >= columns or rows == 1):
        lead, turned = max(down, columns, 1), False
    elif down == 1 and (along >= rows or columns == 1):
        lead, turned = max(along, rows, 1), True
    elif columns == 1 and down >= 1:
        lead, turned = down, False
    elif rows == 1 and along >= 1:
        lead, turned = along, True
    else:
        x = copied(engine, x)
        lead, turned = max(columns, 1), False
    item = x.dtype.itemsize
    steps = broadcast_strides(x.shape[:-2], x.strides[:-2], batch)
    offsets = np.zeros(1, np.int64)
    for n, s in zip(batch, steps, strict=True):
        offsets = (offsets[:, None] + np.arange(n) * (s * item)).reshape(-1)
    assert x.buf is not None  # noqa: S101 - operands of a product have memory
    return Matrix(x.buf.pointer + x.offset * item, lead, turned, offsets, item), x


def product(
    engine: Engine, x: CubeTensor, y: CubeTensor, into: CubeTensor | None = None,
    beta: float = 0.0,
) -> CubeTensor | None:  # fmt: skip
    """Return the product of two tensors of matrices, or None where the library does not serve.

    Args:
        engine: the device.
        x: [..., M, K].
        y: [..., K, N], of the same dtype.
        into: row-major result of the same dtype to write, or to add to with beta 1.
        beta: factor of what `into` holds.
    """
    dtype = x.dtype
    blas = provider(engine)
    if blas is None or not dtype.is_float:
        return None
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    if not k or not m or not n or not size_of(batch):
        return None
    if dtype in HALVES:
        wide = product(engine, converted(engine, x, d.float32), converted(engine, y, d.float32))
        return None if wide is None else converted(engine, wide, dtype)
    out = engine.empty((*batch, m, n), dtype) if into is None else into
    left, x = _matrix(engine, x, batch)
    right, y = _matrix(engine, y, batch)
    assert out.buf is not None  # noqa: S101 - it was just allocated
    at = out.buf.pointer + out.offset * left.item
    blas.multiply(dtype, (m, n, k), left, right, at, n, m * n * left.item, beta)
    return out
