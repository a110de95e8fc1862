"""Random numbers from Philox4x32-10, bit for bit those of every other backend.

One unit makes one block of four words: four values, or two of those that take two words each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.dtypes import host_dtype
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints
from burn_cube_backend.kernels.create import wrapped
from burn_cube_backend.kernels.maps import wide
from burn_cube_backend.late import real
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

Key = tuple[int, int]
Words = list[Val]
_LOW = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
# Significant bits of a uniform of each dtype.
_BITS = {d.float16: 11, d.bfloat16: 8, d.float32: 24, d.float64: 53}


class Stream:
    """The words of one operation inside of a kernel; takes four number parameters.

    Args:
        code: the kernel.
        mark: ends the names of the parameters.
    """

    def __init__(self, code: Code, mark: str = "") -> None:
        self.code = code
        self.words_of_key = [
            code.scalar(n + mark, d.uint32) for n in ("seed", "seed_high", "op", "op_high")
        ]

    def block(self, number: Val) -> Words:
        """Return the four words of a block."""
        code = self.code
        k0, k1, low, high = self.words_of_key
        wide_number = number.cast(d.uint64)
        c = [wide_number.cast(d.uint32), (wide_number >> 32).cast(d.uint32), low, high]
        m0, m1 = (code.const(m, d.uint32) for m in _MULTIPLIERS)
        for _ in range(_ROUNDS):
            a, b = c[0] * m0, c[2] * m1
            c = [c[2].call("mulhi", m1) ^ c[1] ^ k0, b, c[0].call("mulhi", m0) ^ c[3] ^ k1, a]
            k0, k1 = k0 + _WEYL[0], k1 + _WEYL[1]
        return c


def key_words(key: Key) -> list[int]:
    """Return the four arguments of a `Stream`."""
    seed, counter = key
    return [seed & _LOW, seed >> 32 & _LOW, counter & _LOW, counter >> 32 & _LOW]


def _draw(
    code: Code, out: Any, count: Val, stream: Stream, each: int, value: Callable[[Words], Val]
) -> None:
    """Fill `out` with values of `each` words."""
    per = 4 // each
    block = code.special("absolute_pos")
    first = block * per
    with code.when(first < count):
        words = stream.block(block)
        for k in range(per):
            at = first + k
            made = value(words[k * each : (k + 1) * each])
            with code.when(at < count):
                out[at] = made


def _pair(words: Words) -> Val:
    return words[0].cast(d.uint64) | (words[1].cast(d.uint64) << 32)


def grid_value(words: Words, dtype: DType) -> Val:
    """Return a uniform in [0, 1) on the grid of a dtype, in the dtype that it computes in."""
    bits = _BITS[dtype]
    if dtype is d.float64:
        return (_pair(words) >> (64 - bits)).cast(d.float64) * 2.0**-bits
    return (words[0] >> (32 - bits)).cast(d.float32) * 2.0**-bits


class Drawn(NamedTuple):
    """What an operation draws.

    Attributes:
        name: `uniform` or `normal`.
        dtype: of the values.
        scaled: they are scaled: a uniform is not of [0, 1), a normal has no deviation of 1.
        shifted: a normal has no mean of 0.
    """

    name: str
    dtype: DType
    scaled: bool
    shifted: bool = False

    @property
    def each(self) -> int:
        """Words of a value, one or two of the four of a block."""
        return 1 if self.name == "uniform" and self.dtype is not d.float64 else 2

    def parameters(self, code: Code, mark: str = "") -> list[Val]:
        """Add the numbers of the distribution."""
        names = ("mean", "std") if self.name == "normal" else ("span", "low", "high", "below")
        return [code.scalar(name + mark, wide(self.dtype)) for name in names]

    def value(self, words: Words, numbers: Sequence[Val]) -> Val:
        """Return a value from its words, one or two."""
        return (_normal if self.name == "normal" else _uniform)(self, words, numbers)


def drawn(name: str, dtype: DType, a: float, b: float) -> tuple[Drawn, list[float]]:
    """Return what is drawn, and the arguments of its numbers.

    Args:
        name: `uniform` or `normal`.
        dtype: of the values.
        a: lower bound or mean.
        b: upper bound or deviation.
    """
    if name == "normal":
        return Drawn(name, dtype, b != 1, a != 0), [real(a), real(b)]
    target: Any = host_dtype(dtype).type
    next_after: Any = ml_dtypes_nextafter if dtype is d.bfloat16 else np.nextafter
    below = float(next_after(target(b), target(a)))
    numbers = [float(b - a), float(a), float(target(b)), below]
    return Drawn(name, dtype, not (a == 0 and b == 1)), numbers


def _uniform(what: Drawn, words: Words, numbers: Sequence[Val]) -> Val:
    dtype, (span, low, high, below) = what.dtype, numbers
    u = grid_value(words, dtype)
    if not what.scaled:
        return u.cast(dtype)
    made = (u * span + low).cast(dtype).cast(wide(dtype))
    return ((made < high) | (low >= high)).pick(made, below).cast(dtype)


def _normal(what: Drawn, words: Words, numbers: Sequence[Val]) -> Val:
    """Return a normal by the cosine half of Box-Muller."""
    calm, (mean, std) = wide(what.dtype), numbers
    radius = (words[0].cast(d.uint64) + 1).cast(calm) * 2.0**-32
    radius = (radius.call("log") * -2.0).call("sqrt")
    angle = words[1].cast(calm) * (2 * pi) * 2.0**-32
    made = radius * angle.call("cos")
    if what.scaled:
        made = made * std
    if what.shifted:
        made = made + mean
    return made.cast(what.dtype)


def floats_kernel(what: Drawn, index: DType) -> Kernel:
    """Write uniforms or normals."""
    code = Code(what.name, index)
    out = code.buffer("out", what.dtype)
    stream, count = Stream(code), code.place("count")
    numbers = what.parameters(code)
    _draw(code, out, count, stream, what.each, lambda words: what.value(words, numbers))
    return code.finish()


def _floats(
    engine: Engine, name: str, dtype: DType, shape: Ints, a: float, b: float, key: Key
) -> CubeTensor:
    out = engine.empty(shape, dtype)
    what, numbers = drawn(name, dtype, a, b)
    count = out.size
    index = engine.index_dtype(out, count=count)
    args = [out.buf, *key_words(key), count, *numbers]
    engine.run(floats_kernel, (what, index), -(-count * what.each // 4), args)
    return out


@kernel("uniform")
def uniform(
    engine: Engine, dtype: DType, shape: Ints, low: float, high: float, key: Key
) -> CubeTensor:
    """Floats in [low, high)."""
    return _floats(engine, "uniform", dtype, shape, low, high, key)


def ml_dtypes_nextafter(a: Any, b: Any) -> Any:
    """Return the neighbour of a bfloat16 towards another."""
    neighbour: Any = np.nextafter  # ml_dtypes registers its loop of numpy's function
    return neighbour(ml_dtypes.bfloat16(a), ml_dtypes.bfloat16(b))


@kernel("normal")
def normal(
    engine: Engine, dtype: DType, shape: Ints, mean: float, std: float, key: Key
) -> CubeTensor:
    """Normal floats."""
    return _floats(engine, "normal", dtype, shape, mean, std, key)


def randint_kernel(dtype: DType, kind: str, index: DType) -> Kernel:
    """Write integers; `kind` says how many words a value takes and whether it is scaled."""
    code = Code("randint", index)
    out = code.buffer("out", dtype)
    stream, count = Stream(code), code.place("count")
    span, low = code.scalar("span", d.uint64), code.scalar("low", d.uint64)

    def value(words: Words) -> Val:
        if kind == "word":
            made = (words[0].cast(d.uint64) * span) >> 32
        elif kind == "scaled":
            made = _pair(words).call("mulhi", span)
        else:
            made = _pair(words)
        return (made + low).cast(dtype)

    _draw(code, out, count, stream, 1 if kind == "word" else 2, value)
    return code.finish()


@kernel("randint")
def randint(engine: Engine, dtype: DType, shape: Ints, low: int, high: int, key: Key) -> CubeTensor:
    """Integers in [low, high)."""
    out = engine.empty(shape, dtype)
    count, span = out.size, high - low
    kind = "word" if span <= 1 << 32 else "scaled" if span < 1 << 64 else "plain"
    index = engine.index_dtype(out, count=count)
    numbers = [wrapped(span, d.uint64), wrapped(low, d.uint64)]
    args = [out.buf, *key_words(key), count, *numbers]
    per = 4 if kind == "word" else 2
    engine.run(randint_kernel, (dtype, kind, index), -(-count // per), args)
    return out


def keys_kernel(index: DType) -> Kernel:
    """Write one value of 64 bits per element."""
    code = Code("random_keys", index)
    out = code.buffer("out", d.uint64)
    stream, count = Stream(code), code.place("count")
    _draw(code, out, count, stream, 2, _pair)
    return code.finish()


@kernel("randperm")
def randperm(engine: Engine, dtype: DType, count: int, key: Key) -> CubeTensor:
    """A permutation: the stable order of one 64-bit key per element."""
    from burn_cube_backend.kernels.maps import converted
    from burn_cube_backend.kernels.sort import order

    keys = engine.empty((count,), d.uint64)
    index = engine.index_dtype(keys, count=count)
    engine.run(keys_kernel, (index,), -(-count // 2), [keys.buf, *key_words(key), count])
    return converted(engine, order(engine, keys, 0, False), dtype)
