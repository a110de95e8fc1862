"""A backend in plain Python, for values and shapes of decompositions: `fake` in the tests.

Tensors are a shape, a dtype and a flat list that holds what the dtype can store. Maps run from
their scalar expressions, a few primitives are written out, everything else runs its own
decomposition. Every call is checked against the entry's rule.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any

import pytest

from burn_ir import CATALOG, Entry, Spec
from burn_ir.scalar import bind, evaluate, parse
from burn_ir.scalar_math import PYTHON
from burn_std import DType, promote_dtypes
from burn_std.dtypes import float32, float64, int64

Shape = tuple[int, ...]
LARGEST = {"float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127}


def largest(dtype: DType) -> float:
    if dtype.bits == 16:
        return LARGEST[dtype.name]
    return (2 - 2**-52) * 2.0**1023 if dtype is float64 else (2 - 2**-23) * 2.0**127


def stored(dtype: DType, value: Any) -> Any:
    """Return what a tensor of `dtype` holds of a number: rounded, wrapped or as truth."""
    if dtype.is_bool:
        return bool(value)
    if dtype.is_int:
        if isinstance(value, float):
            value = 0 if math.isnan(value) else _saturated(dtype, value)
        value = int(value) & ((1 << dtype.bits) - 1)
        return value - (1 << dtype.bits) if dtype.is_signed and value >> (dtype.bits - 1) else value
    value = float(value)
    if dtype is float64 or not math.isfinite(value):
        return value
    if dtype.name == "bfloat16":
        bits = struct.unpack("<I", struct.pack("<f", _narrow("f", value)))[0]
        bits += 0x7FFF + ((bits >> 16) & 1)
        out: float = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]
        return out
    return _narrow("e" if dtype.bits == 16 else "f", value)


def _saturated(dtype: DType, value: float) -> float:
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    high = (1 << (dtype.bits - (1 if dtype.is_signed else 0))) - 1
    return low if value <= low else high if value >= high else value


def _narrow(code: str, value: float) -> float:
    try:
        out: float = struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return out


class Array:
    """A tensor of the fake backend."""

    def __init__(self, shape: Shape, dtype: DType, data: Iterable[Any]) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.data = [stored(dtype, v) for v in data]
        assert len(self.data) == math.prod(shape), (shape, len(self.data))

    def at(self, *where: int) -> Any:
        return self.data[flat(self.shape, where)]

    def list(self) -> Any:
        return nested(self.shape, self.data)

    def __repr__(self) -> str:
        return f"{Spec(self.shape, self.dtype)} {self.list()}"


def nested(shape: Shape, data: Sequence[Any]) -> Any:
    if not shape:
        return data[0]
    step = math.prod(shape[1:])
    return [nested(shape[1:], data[i * step : (i + 1) * step]) for i in range(shape[0])]


def flat(shape: Shape, where: Sequence[int]) -> int:
    total = 0
    for n, i in zip(shape, where, strict=True):
        assert 0 <= i < n, (shape, where)
        total = total * n + i
    return total


def every(shape: Shape) -> Iterator[Shape]:
    return product(*(range(n) for n in shape))


def spread(shape: Shape, where: Shape) -> Shape:
    """Return the place in a tensor that broadcasts to the place `where` of the result."""
    tail = where[len(where) - len(shape) :]
    return tuple(0 if n == 1 else i for n, i in zip(shape, tail, strict=True))


def shape_of(value: Any) -> Shape:
    return (
        (len(value), *shape_of(value[0]))
        if isinstance(value, list) and value
        else ((0,) if isinstance(value, list) else ())
    )


def flattened(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for v in value:
            yield from flattened(v)
    else:
        yield value


class Fake:
    """The `ops` of a decomposition: any operation of the catalogue as a method.

    Attributes:
        calls: names of the primitives that ran.
        native: composites that run from their scalar expression instead of their decomposition.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.native: set[str] = set()

    def tensor(self, value: Any, dtype: DType = float64, shape: Shape | None = None) -> Array:
        return Array(shape_of(value) if shape is None else shape, dtype, flattened(value))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        entry = CATALOG[name]
        return lambda *args: self.run(entry, args)

    def run(self, entry: Entry, args: Sequence[Any]) -> Any:
        names = [i.name for i in entry.inputs] + [a.name for a in entry.attrs]
        assert len(args) == len(names), (entry, names, len(args))
        inputs, attrs = list(args[: len(entry.inputs)]), list(args[len(entry.inputs) :])
        check_kinds(entry, inputs, attrs)
        inputs = promoted(entry, inputs)
        runs = [a for a, d in zip(attrs, entry.attrs, strict=True) if d.kind != "scalar"]
        want = None
        if entry.klass != "dynamic":
            want = entry.infer(*(specs(x) for x in inputs), *runs)
        kernel = KERNELS.get(entry.name)
        if kernel is not None:
            self.calls.append(entry.name)
            out = kernel(self, *inputs, *attrs)
        elif entry.expr and (entry.grade == "core" or entry.name in self.native):
            self.calls.append(entry.name)
            out = mapped(entry, inputs, attrs, want)
        else:
            assert entry.decompose is not None, f"{entry} has neither kernel nor decomposition"
            out = entry.decompose(self, *inputs, *attrs)
        if want is not None:
            got = tuple(map(specs, out)) if isinstance(out, (tuple, list)) else specs(out)
            assert got == want, f"{entry}: decomposed to {got}, rule says {want}"
        return out


def check_kinds(entry: Entry, inputs: Sequence[Any], attrs: Sequence[Any]) -> None:
    for i, x in zip(entry.inputs, inputs, strict=True):
        if x is None:
            assert i.optional, (entry, i.name)
        elif i.many:
            assert all(isinstance(e, Array) for e in x), (entry, i.name, x)
        elif not isinstance(x, Array):
            assert i.scalar and isinstance(x, (bool, int, float)), (entry, i.name, x)
    for a in attrs:
        assert not isinstance(a, (Array, list)), (entry, a)


def specs(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return tuple(map(specs, x))
    return Spec(x.shape, x.dtype) if isinstance(x, Array) else x


def weak(value: Any, dtype: DType) -> DType:
    if isinstance(value, bool):
        return dtype
    if isinstance(value, int):
        return int64 if dtype.is_bool else dtype
    return dtype if dtype.is_float else float32


def promoted(entry: Entry, inputs: list[Any]) -> list[Any]:
    """Return the inputs in the dtype of the call, scalars as rank-0 tensors."""
    marked = [k for k, i in enumerate(entry.inputs) if i.promoted and inputs[k] is not None]
    if not marked:
        return inputs
    tensors = [
        e
        for k in marked
        for e in (inputs[k] if entry.inputs[k].many else [inputs[k]])
        if isinstance(e, Array)
    ]
    assert tensors, (entry, inputs)
    tall = [t.dtype for t in tensors if t.shape] or [t.dtype for t in tensors]
    dtype = reduce(lambda a, b: promote_dtypes(a, b) or pytest.fail(f"{a} {b}"), tall)
    for t in tensors:
        if "int bool".find(dtype.kind) >= 0 and t.dtype.is_float:
            dtype = t.dtype
    for k in marked:
        if not isinstance(inputs[k], (Array, tuple, list)):
            dtype = weak(inputs[k], dtype)
    if entry.lift and not dtype.is_float:
        dtype = float32

    def fit(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return tuple(map(fit, x))
        return Array(x.shape, dtype, x.data) if isinstance(x, Array) else Array((), dtype, [x])

    return [fit(x) if k in marked else x for k, x in enumerate(inputs)]


def mapped(entry: Entry, inputs: Sequence[Any], attrs: Sequence[Any], want: Spec) -> Array:
    """Run a map from its scalar expression, in f64 for floats."""
    first = next((x for x in inputs if x is not None), None)
    if entry.name == "where":
        first = inputs[1]
    work = want.dtype if first is None else first.dtype
    known = {a.name: v for a, v in zip(entry.attrs, attrs, strict=True)}
    known |= {i.name: None for i, x in zip(entry.inputs, inputs, strict=True) if x is None}
    known |= {"floating": work.is_float, "largest": largest(work) if work.is_float else 0}
    tree = bind(parse(str(entry.expr)), known)
    table = {**PYTHON, "cast": lambda x, d: stored(d, x)}
    if work.is_int:
        table |= {"lshift": shifted(work, True), "rshift": shifted(work, False)}
    names = [i.name for i in entry.inputs]

    def one(where: Shape) -> Any:
        env = {
            n: x.at(*spread(x.shape, where))
            for n, x in zip(names, inputs, strict=True)
            if x is not None
        }
        rows = (*(0, 0), *where)
        env |= {"_i": flat(want.shape, where), "_row": rows[-2], "_column": rows[-1]}
        return evaluate(tree, env, table)

    return Array(want.shape, want.dtype, map(one, every(want.shape)))


def shifted(dtype: DType, left: bool) -> Callable[[int, int], int]:
    def run(a: int, b: int) -> int:
        if 0 <= b < dtype.bits:
            return a << b if left else a >> b
        return 0 if left or a >= 0 else -1

    return run


# ---- primitives that are no maps ---------------------------------------------------------------

KERNELS: dict[str, Callable[..., Any]] = {}


def primitive(fn: Callable[..., Any]) -> Callable[..., Any]:
    KERNELS[fn.__name__.rstrip("_")] = fn
    return fn


def built(shape: Shape, dtype: DType, at: Callable[[Shape], Any]) -> Array:
    return Array(shape, dtype, map(at, every(shape)))


@primitive
def reshape(ops: Fake, x: Array, shape: Shape) -> Array:
    return Array(shape, x.dtype, x.data)


@primitive
def contiguous(ops: Fake, x: Array) -> Array:
    return x


@primitive
def permute(ops: Fake, x: Array, dims: Shape) -> Array:
    shape = tuple(x.shape[d] for d in dims)
    return built(shape, x.dtype, lambda w: x.at(*(w[dims.index(d)] for d in range(len(dims)))))


@primitive
def expand(ops: Fake, x: Array, shape: Shape) -> Array:
    return built(shape, x.dtype, lambda w: x.at(*spread(x.shape, w)))


def _lines(steps: Shape, starts: Shape, stops: Shape) -> list[range]:
    return [range(a, b, s) for a, b, s in zip(starts, stops, steps, strict=True)]


@primitive
def slice_(ops: Fake, x: Array, steps: Shape, starts: Shape, stops: Shape) -> Array:
    lines = _lines(steps, starts, stops)
    shape = tuple(map(len, lines))
    return built(shape, x.dtype, lambda w: x.at(*(r[i] for r, i in zip(lines, w, strict=True))))


@primitive
def slice_assign(
    ops: Fake, x: Array, value: Array, steps: Shape, starts: Shape, stops: Shape
) -> Array:
    lines, data = _lines(steps, starts, stops), list(x.data)
    for w in every(tuple(map(len, lines))):
        place = flat(x.shape, [r[i] for r, i in zip(lines, w, strict=True)])
        data[place] = value.at(*spread(value.shape, w))
    return Array(x.shape, x.dtype, data)


@primitive
def cat(ops: Fake, xs: Sequence[Array], dim: int) -> Array:
    source = [(x, i) for x in xs for i in range(x.shape[dim])]
    shape = tuple(len(source) if d == dim else n for d, n in enumerate(xs[0].shape))

    def at(w: Shape) -> Any:
        x, i = source[w[dim]]
        return x.at(*(i if d == dim else j for d, j in enumerate(w)))

    return built(shape, xs[0].dtype, at)


def _along(w: Shape, dim: int, value: int) -> Shape:
    return tuple(value if d == dim else j for d, j in enumerate(w))


@primitive
def gather(ops: Fake, x: Array, index: Array, dim: int) -> Array:
    return built(index.shape, x.dtype, lambda w: x.at(*_along(w, dim, index.at(*w))))


@primitive
def scatter(ops: Fake, x: Array, index: Array, src: Array, dim: int, mode: str) -> Array:
    data = list(x.data)
    join = {
        "assign": lambda a, b: b, "add": PYTHON["add"], "multiply": PYTHON["mul"],
        "amin": PYTHON["minimum"], "amax": PYTHON["maximum"],
    }[mode]  # fmt: skip
    for w in every(index.shape):
        place = flat(x.shape, _along(w, dim, index.at(*w)))
        data[place] = stored(x.dtype, join(data[place], src.at(*w)))
    return Array(x.shape, x.dtype, data)


def _indexed(x: Shape, indices: Sequence[Array], dims: Shape) -> tuple[Shape, Callable[..., Any]]:
    """Return the shape of x[indices] and the place in x of every place in it."""
    window = (
        CATALOG["index"]
        .infer(Spec(x, float32), tuple(Spec(i.shape, i.dtype) for i in indices), dims)
        .shape
    )
    inner = len(window) - (len(x) - len(dims))
    adjacent = dims[-1] - dims[0] == len(dims) - 1
    first = dims[0] if adjacent else 0
    rest = [d for d in range(len(x)) if d not in dims]

    def place(w: Shape) -> Shape:
        chosen, kept = w[first : first + inner], (*w[:first], *w[first + inner :])
        out = dict(zip(rest, kept, strict=True))
        for d, i in zip(dims, indices, strict=True):
            at = i.at(*spread(i.shape, chosen))
            out[d] = at + x[d] if at < 0 else at
        return tuple(out[d] for d in range(len(x)))

    return window, place


@primitive
def index(ops: Fake, x: Array, indices: Sequence[Array], dims: Shape) -> Array:
    shape, place = _indexed(x.shape, indices, dims)
    return built(shape, x.dtype, lambda w: x.at(*place(w)))


@primitive
def index_put(
    ops: Fake, x: Array, value: Array, indices: Sequence[Array], dims: Shape, accumulate: bool
) -> Array:
    shape, place = _indexed(x.shape, indices, dims)
    data = list(x.data)
    for w in every(shape):
        at, new = flat(x.shape, place(w)), value.at(*spread(value.shape, w))
        data[at] = stored(x.dtype, data[at] + new) if accumulate else new
    return Array(x.shape, x.dtype, data)


@primitive
def nonzero(ops: Fake, x: Array) -> Array:
    found = [w for w in every(x.shape) if x.at(*w)]
    return Array((len(found), len(x.shape)), int64, [i for w in found for i in w])


def _groups(x: Array, dims: Shape | None) -> tuple[Shape, Shape, dict[Shape, list[Any]]]:
    gone = set(range(len(x.shape)) if dims is None else dims)
    kept = tuple(1 if d in gone else n for d, n in enumerate(x.shape))
    short = tuple(n for d, n in enumerate(x.shape) if d not in gone)
    groups: dict[Shape, list[Any]] = {w: [] for w in every(kept)}
    for w in every(x.shape):
        groups[tuple(0 if d in gone else i for d, i in enumerate(w))].append(x.at(*w))
    return kept, short, groups


def _reduced(x: Array, dims: Shape | None, keepdim: bool, dtype: DType, f: Any) -> Array:
    kept, short, groups = _groups(x, dims)
    return Array(kept if keepdim else short, dtype, [f(groups[w]) for w in every(kept)])


def _sum_dtype(x: Array, dtype: DType | None) -> DType:
    return dtype or (x.dtype if x.dtype.is_float else int64)


@primitive
def sum_(ops: Fake, x: Array, dims: Shape | None, keepdim: bool, dtype: DType | None) -> Array:
    return _reduced(x, dims, keepdim, _sum_dtype(x, dtype), sum)


@primitive
def prod_(ops: Fake, x: Array, dims: Shape | None, keepdim: bool, dtype: DType | None) -> Array:
    return _reduced(x, dims, keepdim, _sum_dtype(x, dtype), math.prod)


@primitive
def amax(ops: Fake, x: Array, dims: Shape | None, keepdim: bool) -> Array:
    return _reduced(x, dims, keepdim, x.dtype, lambda v: reduce(PYTHON["maximum"], v))


def _first(values: list[Any]) -> int:
    best = 0
    for i, v in enumerate(values):
        if values[best] == values[best] and (v > values[best] or v != v):
            best = i
    return best


@primitive
def argmax(ops: Fake, x: Array, dim: int | None, keepdim: bool) -> Array:
    dims = None if dim is None or not x.shape else (dim,)
    return _reduced(x, dims, keepdim, int64, _first)


@primitive
def sort(ops: Fake, x: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    if not x.shape:
        return x, Array((), int64, [0])
    values, order = list(x.data), [0] * len(x.data)
    sign = -1 if descending else 1
    for w in every(tuple(1 if d == dim else n for d, n in enumerate(x.shape))):
        places = [flat(x.shape, _along(w, dim, i)) for i in range(x.shape[dim])]
        line = [x.data[p] for p in places]
        ranks = sorted(range(len(line)), key=lambda i: _rank(line[i], sign))
        for place, rank in zip(places, ranks, strict=True):
            values[place], order[place] = line[rank], rank
    return Array(x.shape, x.dtype, values), Array(x.shape, int64, order)


def _rank(value: Any, sign: int) -> tuple[int, Any]:
    return (sign, 0) if value != value else (0, sign * value)


@primitive
def matmul(ops: Fake, x: Array, y: Array) -> Array:
    want = CATALOG["matmul"].infer(specs(x), specs(y))
    a = x if len(x.shape) > 1 else Array((1, *x.shape), x.dtype, x.data)
    b = y if len(y.shape) > 1 else Array((*y.shape, 1), y.dtype, y.data)
    full = CATALOG["matmul"].infer(specs(a), specs(b)).shape

    def at(w: Shape) -> Any:
        *batch, m, n = w
        i = spread(a.shape[:-2], tuple(batch)) if len(a.shape) > 2 else ()
        j = spread(b.shape[:-2], tuple(batch)) if len(b.shape) > 2 else ()
        return sum(a.at(*i, m, k) * b.at(*j, k, n) for k in range(a.shape[-1]))

    return Array(want.shape, x.dtype, map(at, every(full)))


@primitive
def conv_input_grad(
    ops: Fake, g: Array, weight: Array, stride: Shape, padding: Shape, dilation: Shape,
    groups: int, shape: Shape,
) -> Array:  # fmt: skip
    data = [0.0] * math.prod(shape)
    per_out, per_in = weight.shape[0] // groups, weight.shape[1]
    for n, o, *at in every(g.shape):
        for c, *k in every((per_in, *weight.shape[2:])):
            places = [
                i * s - p + d * j
                for i, s, p, d, j in zip(at, stride, padding, dilation, k, strict=True)
            ]
            if all(0 <= i < m for i, m in zip(places, shape[2:], strict=True)):
                channel = o // per_out * per_in + c
                data[flat(shape, (n, channel, *places))] += g.at(n, o, *at) * weight.at(o, c, *k)
    return Array(shape, g.dtype, data)


@primitive
def solve(ops: Fake, a: Array, b: Array) -> Array:
    assert len(a.shape) == 2
    rows = [
        [a.at(i, j) for j in range(a.shape[1])] + [b.at(i, j) for j in range(b.shape[1])]
        for i in range(a.shape[0])
    ]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(len(rows)):
            if r != i:
                rows[r] = [v - rows[r][i] * w for v, w in zip(rows[r], rows[i], strict=True)]
    return Array(b.shape, a.dtype, [v for row in rows for v in row[a.shape[1] :]])


_SCALES = {"backward": (0, 1), "forward": (1, 0), "ortho": (0.5, 0.5)}


@primitive
def rfft(ops: Fake, x: Array, dim: int, norm: str, n: int) -> tuple[Array, Array]:
    assert len(x.shape) == 1
    scale = n ** -_SCALES[norm][0]
    line = (x.data + [0.0] * n)[:n]
    angles = [[2 * math.pi * j * k / n for j in range(n)] for k in range(n // 2 + 1)]
    real = [scale * sum(v * math.cos(t) for v, t in zip(line, a, strict=True)) for a in angles]
    imag = [-scale * sum(v * math.sin(t) for v, t in zip(line, a, strict=True)) for a in angles]
    return Array((len(real),), x.dtype, real), Array((len(imag),), x.dtype, imag)


@primitive
def irfft(ops: Fake, real: Array, imag: Array | None, dim: int, norm: str, n: int) -> Array:
    assert len(real.shape) == 1
    scale = n ** -_SCALES[norm][1]
    zeros = [0.0] * n
    re = (real.data + zeros)[: n // 2 + 1]
    im = ((imag.data if imag else []) + zeros)[: n // 2 + 1]
    out = []
    for j in range(n):
        total = 0.0
        for k in range(n // 2 + 1):
            twice = 1 if k == 0 or 2 * k == n else 2
            angle = 2 * math.pi * j * k / n
            total += twice * (re[k] * math.cos(angle) - im[k] * math.sin(angle))
        out.append(scale * total)
    return Array((n,), real.dtype, out)


@primitive
def uniform(ops: Fake, dtype: DType, shape: Shape, low: float, high: float, key: Any) -> Array:
    """Return numbers that spread evenly over [low, high) and depend on the key."""
    steps = [(key[0] + 0.6180339887 * (i + 1 + key[1])) % 1.0 for i in range(math.prod(shape))]
    return Array(shape, dtype, [low + (high - low) * s for s in steps])


@pytest.fixture
def fake() -> Fake:
    return Fake()
