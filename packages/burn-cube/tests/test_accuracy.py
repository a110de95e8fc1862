"""Transcendental functions on many arguments: within 4 units in the last place."""

import numpy as np
import pytest

import burn_cube as bc
import burn_cube.mathematics as m
from burn_cube.conformance.arithmetic import RANGES, apply_one, apply_two
from burn_cube.interpreter.numeric import NUMERIC

pytest.importorskip("llvmlite")
N = 20_000
TWO = {"pow": lambda a, b: a**b, "atan2": m.atan2, "hypot": m.hypot}
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.0, 0.5]


def errors(got, wanted):
    """Return the distance in units of the last place; 0 where both are the same special value."""
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(np.longdouble) - wanted) / np.spacing(np.abs(got))
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return np.where(same, 0, np.where(np.isnan(off), np.inf, off))


def reference(name, *args):
    """Return the result in twice the precision, where numpy has it."""
    wide = np.float64 if args[0].dtype == np.float32 else np.longdouble
    names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
             "acosh": "arccosh", "atanh": "arctanh", "pow": "power", "atan2": "arctan2",
             "round": "rint"}  # fmt: skip
    fn = getattr(np, names.get(name, name), None)
    with np.errstate(all="ignore"):
        if name == "rsqrt":
            return 1 / np.sqrt(args[0].astype(wide))
        if fn is None:
            return NUMERIC[name](args[0].astype(np.float64)).astype(wide)
        return fn(*[a.astype(wide) for a in args])


def arguments(dtype, low, high, seed):
    rng = np.random.default_rng(seed)
    made = rng.uniform(low, high, N)
    made[: N // 4] = rng.standard_normal(N // 4) * 10.0 ** rng.integers(-8, 3, N // 4)
    made[: len(EDGES)] = EDGES
    return made.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", RANGES)
def test_one_argument(name, dtype):
    device = bc.client("cpu")
    x = arguments(dtype, *RANGES[name], seed=1)
    on, out = device.from_numpy(x), device.zeros(N, bc.client("cpu").from_numpy(x).dtype)
    apply_one.launch(device, -(-N // 256), on, out, fn=m.FUNCTIONS[name])
    got = out.numpy()
    wanted = reference(name, x)
    if dtype == "float32":
        # Overflow and underflow as the dtype has them.
        with np.errstate(all="ignore"):
            wanted = np.where(np.isinf(wanted.astype(np.float32)), np.inf * np.sign(wanted), wanted)
    assert errors(got, wanted).max() <= 4
    zeros = x == 0
    if name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p"):
        assert (np.signbit(got[zeros]) == np.signbit(x[zeros])).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name, dtype):
    device = bc.client("cpu")
    x, y = arguments(dtype, -5, 5, 2), arguments(dtype, -12, 12, 3)
    grid = np.array(np.meshgrid(EDGES, EDGES)).reshape(2, -1)
    x[100:200], y[100:200] = grid
    y[300:900] = np.rint(y[300:900])
    a, b = device.from_numpy(x), device.from_numpy(y)
    out = device.zeros(N, a.dtype)
    apply_two.launch(device, -(-N // 256), a, b, out, fn=TWO[name])
    with np.errstate(all="ignore"):
        wanted = reference(name, x, y)
        wanted = np.where(np.isinf(wanted.astype(dtype)), wanted.astype(dtype), wanted)
    assert errors(out.numpy(), wanted).max() <= 4


def of_any_bits(count, seed):
    """Return float32 of every size, subnormals, infinities and NaN among them."""
    bits = np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint64)
    return bits.astype(np.uint32).view(np.float32)


def units_off(got, wanted):
    """Return the distance from float64 in units of float32 at the right value."""
    with np.errstate(all="ignore"):
        near = wanted.astype(np.float32)
        off = np.abs(got.astype(np.float64) - wanted) / np.spacing(np.abs(near))
    same = (got == near) | (np.isnan(got) & np.isnan(near))
    return np.where(same, 0, np.where(np.isnan(off), np.inf, off))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_any_size(name):
    device = bc.client("cpu")
    dice = np.random.default_rng(4)
    turns = (dice.integers(-(2**22), 2**22, N) * (np.pi / 2)).astype(np.float32)
    huge = np.exp2(dice.uniform(20, 128, N)).astype(np.float32)
    x = np.concatenate([of_any_bits(4 * N, 5), turns, huge])
    out = device.zeros(len(x), device.from_numpy(x).dtype)
    cubes = -(-len(x) // 256)
    apply_one.launch(device, cubes, device.from_numpy(x), out, fn=m.FUNCTIONS[name])
    assert units_off(out.numpy(), reference(name, x)).max() <= 4


def test_powers_of_any_size():
    device = bc.client("cpu")
    dice = np.random.default_rng(6)
    base = np.exp(dice.uniform(-103, 88, N)).astype(np.float32)
    # Powers over all of the range, to where they overflow and vanish.
    full = dice.uniform(-104, 89, N) / np.where(base == 1, 1, np.log(base.astype(np.float64)))
    beside = (1 + dice.standard_normal(N) * 0.01).astype(np.float32)
    x = np.concatenate([of_any_bits(2 * N, 7), base, beside])
    steep = dice.standard_normal(N).astype(np.float32) * 1000
    y = np.concatenate([of_any_bits(2 * N, 8), full.astype(np.float32), steep])
    a, b = device.from_numpy(x), device.from_numpy(y)
    out = device.zeros(len(x), a.dtype)
    apply_two.launch(device, -(-len(x) // 256), a, b, out, fn=TWO["pow"])
    got, wanted = out.numpy(), reference("pow", x, y)
    assert units_off(got, wanted).max() <= 4
    number = ~np.isnan(wanted)
    assert (np.signbit(got) == np.signbit(wanted))[number].all()


def test_angles_of_points_of_any_size():
    device = bc.client("cpu")
    dice = np.random.default_rng(9)
    low = dice.integers(0, 2**24, N, dtype=np.uint32).view(np.float32)
    y = np.concatenate([of_any_bits(2 * N, 10), dice.standard_normal(N).astype(np.float32), low])
    x = np.concatenate([of_any_bits(2 * N, 11), y[2 * N : 3 * N] * np.float32(1.001), low[::-1]])
    a, b = device.from_numpy(y), device.from_numpy(x)
    out = device.zeros(len(x), a.dtype)
    apply_two.launch(device, -(-len(x) // 256), a, b, out, fn=TWO["atan2"])
    got, wanted = out.numpy(), reference("atan2", y, x)
    assert units_off(got, wanted).max() <= 4
    assert (np.signbit(got) == np.signbit(wanted))[~np.isnan(wanted)].all()


def test_logarithms_beside_one():
    device = bc.client("cpu")
    dice = np.random.default_rng(12)
    near = dice.standard_normal(N) * np.exp(dice.uniform(-20, 3, N))
    least = -1 + np.exp(dice.uniform(-17, 0, N))
    x = np.concatenate([of_any_bits(2 * N, 13), near.astype(np.float32), least.astype(np.float32)])
    out = device.zeros(len(x), device.from_numpy(x).dtype)
    cubes = -(-len(x) // 256)
    apply_one.launch(device, cubes, device.from_numpy(x), out, fn=m.FUNCTIONS["log1p"])
    assert units_off(out.numpy(), reference("log1p", x)).max() <= 4
