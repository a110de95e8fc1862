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
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from burn_cube.spi import NativeCall, digest_of, kernel_cache, profiles
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, broadcast_shape, broadcast_strides, size_of
from burn_cube_backend.kernels import narrow
from burn_cube_backend.kernels.blas_native import OUT, WORDS, text
from burn_cube_backend.kernels.maps import HALVES, converted, copied
from burn_cube_backend.kernels.narrow import Narrow
from burn_cube_backend.payload import CubeTensor
from burn_std import BackendLoadError, DType, dtypes as d

_PLAIN, _TRANSPOSED = 111, 112
# Multiplications below which a second thread costs more than it brings.
_WORTH_A_THREAD = 1 << 18
# Multiplications up to which the library uses no thread of its own, whatever it may use: below the
# bound of OpenBLAS for a matrix by a vector, which is its lowest.
_ALONE = 2048
# Pieces are multiples of this, so that the library's inner tiles stay whole; of more, threads would
# have pieces of different extents.
_GRAIN = 16
# Rows for each column from which rows are cut where the right matrix is turned: each piece packs
# all of the other matrix, and a turned one takes longest.
_TALL = 4
# Shapes and layouts whose plans are kept.
_MOST_PLANS = 4096
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
        except (OSError, AttributeError) as cause:
            if named:
                raise BackendLoadError(
                    "cpu", "BURN_CPU_BLAS names a library with OpenBLAS's symbols",
                    got=f"{named!r}: {cause}", remedy="Name another one, or write off.",
                ) from cause  # fmt: skip
    return None


def _bundled() -> list[Path]:
    """Return the files of numpy's own library: their names carry a hash."""
    package = Path(np.__file__).parent
    folders = [package.parent / "numpy.libs", package / ".dylibs"]
    return [p for f in folders if f.is_dir() for p in sorted(f.glob("*scipy_openblas64_*"))]


class Alone:
    """Keeps the library at one thread while products run, and gives numpy its number back."""

    def __init__(self, lib: Library) -> None:
        self.lib = lib
        self.lock = threading.Lock()
        self.inside = 0
        self.before = 1

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before = self.lib.threads()
                if self.before != 1:
                    self.lib.set_threads(1)
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside and self.before != 1:
                self.lib.set_threads(self.before)


class Matrix(NamedTuple):
    """Matrices as the library reads them.

    Attributes:
        lead: elements from row to row of the memory.
        turned: the memory holds the transpose.
        offsets: of the matrices of a batch, in bytes.
        item: bytes of an element.
    """

    lead: int
    turned: bool
    offsets: np.ndarray[Any, Any]
    item: int


class Plan(NamedTuple):
    """A product of one shape and layout, all but its addresses.

    Attributes:
        entry: native function.
        shape: of the result.
        head: words before the addresses.
        x_lead: elements from row to row of the left matrices.
        y_lead: the same of the right ones.
        tail: words behind them.
        total: parts.
        grain: parts that a thread takes at a time.
        item: bytes of an element.
        kept: owners of the tables that words point to.
    """

    entry: int
    shape: Ints
    head: tuple[Any, ...]
    x_lead: int
    y_lead: int
    tail: tuple[int, ...]
    total: int
    grain: int
    item: int
    kept: tuple[Matrix, Matrix]


class Blas:
    """Products on the cpu runtime."""

    def __init__(self, engine: Engine, lib: Library) -> None:
        from burn_cube.spi import jit

        self.engine = engine
        self.runtime: Any = engine.client.runtime
        self.products = lib.products
        self.alone = Alone(lib)
        self.plans: dict[Any, Plan | Narrow] = {}
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

    def plan(
        self, dtype: DType, shape: tuple[int, int, int], x: Matrix, y: Matrix, out: Ints
    ) -> Plan:
        """Return how a batch of products of (rows, columns, depth) is computed and cut."""
        m, n, k = shape
        batches, threads = len(x.offsets), self.runtime.threads
        work = m * n * k * batches
        columns = n * (_TALL if y.turned else 1) >= m
        parts, piece = 1, n if columns else m
        if batches < 2 * threads and threads > 1 and work > _WORTH_A_THREAD:
            extent = n if columns else m
            piece = -(-extent // threads)
            piece = min(-(-piece // _GRAIN) * _GRAIN, extent)
            parts = -(-extent // piece)
        item = x.item
        a_part = 0 if columns else piece * (item if x.turned else x.lead * item)
        b_part = piece * (y.lead * item if y.turned else item) if columns else 0
        c_part = piece * (item if columns else n * item)
        total = batches * parts
        grain = max(1, total // (threads * 8)) if work > _WORTH_A_THREAD else total
        head = (
            self.products[dtype], _TRANSPOSED if x.turned else _PLAIN,
            _TRANSPOSED if y.turned else _PLAIN, m, n, k, 0.0,
        )  # fmt: skip
        tail = (
            n, x.offsets.ctypes.data, y.offsets.ctypes.data, m * n * item, parts, int(columns),
            piece, a_part, b_part, c_part,
        )  # fmt: skip
        return Plan(
            self.entries[dtype], out, head, x.lead, y.lead, tail, total, grain, item, (x, y)
        )

    def run(self, plan: Plan, x: int, y: int, out: int, bias: int) -> None:
        """Multiply matrices at addresses; a bias at another one is added to every row."""
        entry, _, head, x_lead, y_lead, tail, total, grain, _, _ = plan
        words = WORDS.pack(*head, x, x_lead, y, y_lead, out, *tail, bias)
        m, n, k = head[3:6]
        tiny = m * n * k <= _ALONE
        self.submit(NativeCall(entry, words, total, grain), plan, tiny=tiny, writes=OUT)

    def submit(
        self, call: NativeCall, keep: Any, name: str = "product (BLAS)", *,
        tiny: bool = False, writes: int | None = None,
    ) -> None:  # fmt: skip
        """Run native code that calls the library.

        Args:
            call: the code, its words and how it is cut.
            keep: owner of the tables that words point to.
            name: what profiles call it.
            tiny: the library would use no thread of its own, so nobody has to forbid it.
            writes: the word whose memory alone it writes, and does not read; None if unknown.
        """
        words = call.words
        if call.inner:
            inner = ctypes.create_string_buffer(call.inner, len(call.inner))
            at = call.inner_at * 8
            words = words[:at] + ctypes.addressof(inner).to_bytes(8, "little") + words[at + 8 :]
        measured = self.engine.client.measured(name) if profiles() else nullcontext()
        guard = nullcontext() if tiny else self.alone
        with measured, guard:
            self.runtime.call(call.function, words, call.parts, call.grain)
        log = self.engine.log
        if log is not None and log.thread == threading.get_ident():
            log.native(
                call, None if tiny else self.alone, keep, None if writes is None else (writes,)
            )


def provider(engine: Engine) -> Blas | None:
    """Return the library of a device, None where it has none."""
    found = engine.providers.get("blas", False)
    if found is False:
        runtime = engine.client.runtime
        lib = library() if runtime.name == "cpu" and sys.byteorder == "little" else None
        found = engine.providers["blas"] = None if lib is None else Blas(engine, lib)
    made: Blas | None = found
    return made


def _matrix(x: CubeTensor, batch: Ints) -> Matrix | None:
    """Return a tensor of matrices as the library reads it, None where it cannot."""
    rows, columns = x.shape[-2:]
    down, along = x.strides[-2:]
    if along == 1 and (down >= columns or rows == 1):
        lead, turned = max(down, columns), False
    elif down == 1 and (along >= rows or columns == 1):
        lead, turned = max(along, rows), True
    elif columns == 1 and down >= 1:
        lead, turned = down, False
    elif rows == 1 and along >= 1:
        lead, turned = along, True
    else:
        return None
    item = x.dtype.itemsize
    steps = broadcast_strides(x.shape[:-2], x.strides[:-2], batch)
    offsets = np.zeros(1, np.int64)
    for n, s in zip(batch, steps, strict=True):
        offsets = (offsets[:, None] + np.arange(n) * (s * item)).reshape(-1)
    return Matrix(lead, turned, offsets, item)


def _plan(blas: Blas, x: CubeTensor, y: CubeTensor) -> Plan | None:
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    left, right = _matrix(x, batch), _matrix(y, batch)
    if left is None or right is None:
        return None
    return blas.plan(x.dtype, (m, n, k), left, right, (*batch, m, n))


def product(
    engine: Engine, x: CubeTensor, y: CubeTensor, bias: CubeTensor | None = None
) -> CubeTensor | None:
    """Return the product of two tensors of matrices, or None where the library does not serve.

    Args:
        engine: the device.
        x: [..., M, K].
        y: [..., K, N], of the same dtype.
        bias: [N], added to every row while the rows are in the cache.
    """
    dtype = x.dtype
    blas = provider(engine)
    if blas is None or not dtype.is_float:
        return None
    key = (dtype, x.shape, x.strides, y.shape, y.strides, bias is not None)
    plan = blas.plans.get(key)
    if plan is None:
        if not size_of(x.shape) or not size_of(y.shape):
            return None
        if dtype in HALVES:
            x, y = converted(engine, x, d.float32), converted(engine, y, d.float32)
            bias = None if bias is None else converted(engine, bias, d.float32)
            wide = product(engine, x, y, bias)
            return None if wide is None else converted(engine, wide, dtype)
        plan = narrow.plan(engine, x, y, bias is not None) or _plan(blas, x, y)
        if plan is None:  # neither rows nor columns follow each other in memory
            x, y = (t if _matrix(t, t.shape[:-2]) else copied(engine, t) for t in (x, y))
            return product(engine, x, y, bias)
        if len(blas.plans) >= _MOST_PLANS:
            blas.plans.clear()
        blas.plans[key] = plan
    out = engine.empty(plan.shape, dtype)
    assert x.buf is not None and y.buf is not None and out.buf is not None  # noqa: S101 - solid
    bias = None if bias is None else engine.row_major(bias)
    if isinstance(plan, Narrow):
        plan.run(engine, x, y, out, bias)
        return out
    item = plan.item
    at = x.buf.pointer + x.offset * item, y.buf.pointer + y.offset * item
    plus = 0
    if bias is not None:
        plus = bias.buf.pointer + bias.offset * item  # type: ignore[union-attr]  # solid
    blas.run(plan, at[0], at[1], out.buf.pointer, plus)
    return out
