"""Random kernels, made with the builder: the compiled result equals the interpreter's."""

import os
import random

import numpy as np
import pytest

import burn_cube as bc
from burn_cube.spi import interpret, lower, simplify, verify
from burn_std.dtypes import (
    bool_,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)

pytest.importorskip("llvmlite")

DTYPES = (float32, float64, int8, int16, int32, int64, uint8, uint32, uint64)
# Exact operations: transcendental ones differ in the last place.
FLOAT = ("add", "sub", "mul", "div", "min", "max", "neg", "abs", "floor", "trunc", "round", "fma")
INT = (
    "add", "sub", "mul", "floordiv", "mod", "truncdiv", "rem", "min", "max", "neg", "abs", "and",
    "or", "xor", "not", "shl", "shr", "sign", "popcount", "leading_zeros",
)  # fmt: skip
COMPARE = ("lt", "le", "eq", "ne", "gt", "ge")
ARITY = {"neg": 1, "abs": 1, "floor": 1, "trunc": 1, "round": 1, "not": 1, "sign": 1,
         "popcount": 1, "leading_zeros": 1, "fma": 3}  # fmt: skip
UNITS, CUBES = 32, 3
N = 77


class Maker:
    """Makes one kernel from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.b = bc.Builder("random", cube_dim=UNITS)
        self.inputs = {d: self.b.buffer(f"x_{d.short}", d) for d in DTYPES}
        self.outputs = {d: self.b.buffer(f"out_{d.short}", d) for d in DTYPES}
        self.pos = self.b.special("absolute_pos")
        self.values = {d: [] for d in (*DTYPES, bool_)}
        self.slots = {}

    def kernel(self):
        b = self.b
        for d, x in self.inputs.items():
            self.values[d].append(b.load(x, self.pos))
            self.slots[d] = b.slot(d)
            b.set(self.slots[d], self.values[d][0])
        self.values[bool_].append(b.op("lt", self.pos, b.const(N // 2, int64)))
        shape = self.random.random()
        if shape < 0.3:
            with b.if_(b.op("lt", self.pos, b.length(self.outputs[float32]))):
                self.statements(2)
                self.store()
            return b.finish()
        if shape < 0.5:
            self.barrier()
        self.statements(2)
        self.store()
        return b.finish()

    def barrier(self):
        d = self.random.choice(DTYPES)
        tile = self.b.shared(d, UNITS)
        unit = self.b.special("unit_pos")
        self.b.store(tile, unit, self.pick(d))
        self.b.barrier()
        other = self.b.op("xor", unit, self.b.const(self.random.randrange(UNITS), int64))
        self.values[d].append(self.b.load(tile, other))

    def store(self):
        for d, out in self.outputs.items():
            self.b.store(out, self.pos, self.b.get(self.slots[d]))

    def statements(self, depth):
        for _ in range(self.random.randrange(3, 9)):
            kind = self.random.random()
            if kind < 0.6 or not depth:
                self.value()
            elif kind < 0.75:
                self.scope(lambda: self.branch(depth))
            elif kind < 0.9:
                self.scope(lambda: self.loop(depth))
            else:
                self.write()
        self.write()

    def scope(self, make):
        """Forget the values of a region behind it."""
        kept = {d: list(values) for d, values in self.values.items()}
        make()
        self.values = kept

    def branch(self, depth):
        op = self.b.branch(self.pick(bool_))
        for region in op.regions:
            with self.b.inside(region):
                self.scope(lambda: self.statements(depth - 1))

    def loop(self, depth):
        b = self.b
        stop = b.const(self.random.randrange(0, 4), int32)
        with b.for_(b.const(0, int32), stop) as index:
            self.values[int32].append(index)
            self.statements(depth - 1)
            if self.random.random() < 0.3:
                with b.if_(self.pick(bool_)):
                    b.break_() if self.random.random() < 0.5 else b.continue_()
            self.write()

    def pick(self, d):
        if self.random.random() < 0.15 and d is not bool_:
            value = self.random.choice([0, 1, 2, 3, 7, 100])
            return self.b.const(value, d)
        if self.random.random() < 0.3 and d in self.slots:
            return self.b.get(self.slots[d])
        return self.random.choice(self.values[d])

    def value(self):
        b, d = self.b, self.random.choice(DTYPES)
        kind = self.random.random()
        if kind < 0.6:
            name = self.random.choice(FLOAT if d.is_float else INT)
            made = b.op(name, *[self.pick(d) for _ in range(ARITY.get(name, 2))])
        elif kind < 0.75:
            made = b.op(self.random.choice(COMPARE), self.pick(d), self.pick(d))
        elif kind < 0.85:
            made = b.select(self.pick(bool_), self.pick(d), self.pick(d))
        else:
            made = b.cast(self.pick(self.random.choice((*DTYPES, bool_))), d)
        self.values[made.type].append(made)

    def write(self):
        d = self.random.choice(DTYPES)
        self.b.set(self.slots[d], self.pick(d))


def data(seed):
    rng = np.random.default_rng(seed)
    out = []
    for d in DTYPES:
        kind = np.dtype(d.name)
        if d.is_float:
            made = (rng.standard_normal(N) * 10).astype(kind)
            made[:5] = [0.0, -0.0, np.inf, -np.inf, np.nan]
        else:
            info = np.iinfo(kind)
            made = rng.integers(info.min, info.max, N, kind, endpoint=True)
            made[:4] = [0, info.max, info.min, 1]
            made[10:40] = rng.integers(0, 9, 30)
        out.append(made)
    return out


def equal(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


COUNT = int(os.environ.get("BURN_CUBE_RANDOM", "25"))


@pytest.mark.parametrize("seed", range(COUNT))
def test_compiled_equals_interpreted(seed):
    kernel = Maker(seed).kernel()
    verify(kernel)
    given = data(seed)
    results = []
    for form in (kernel, simplify(lower(kernel, planes=True, math=True))):
        args = [a.copy() for a in given] + [np.zeros_like(a) for a in given]
        interpret(form, (CUBES, 1, 1), tuple(args))
        results.append(args)
    device = bc.client("cpu")
    arrays = [device.from_numpy(a) for a in [*given, *[np.zeros_like(a) for a in given]]]
    device.run(device.load(kernel), (CUBES, 1, 1), arrays)
    results.append([a.numpy() for a in arrays])
    for plain, lowered, compiled in zip(*results, strict=True):
        assert equal(plain, lowered), f"lowering, seed {seed}"
        assert equal(plain, compiled), f"emitter, seed {seed}"
