"""Reductions of rows and what stands around them are one kernel, with the bits of single ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from tests.cube.row_programs import bits, run
from tests.cube.test_fusing import RNG, plans, tensors, units

F = burn.functional
EAGER, FUSED = burn.device("eager-cpu"), burn.device("cpu")


def softmax(x: Any) -> Any:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def log_softmax(x: Any) -> Any:
    low = x - x.amax(-1, keepdim=True)
    return low - low.exp().sum(-1, keepdim=True).log()


def layer_norm(x: Any) -> Any:
    low = x - x.mean(-1, keepdim=True)
    return low / ((low * low).mean(-1, keepdim=True) + 1e-5).sqrt() * 1.5 + 0.5


def rms_norm(x: Any) -> Any:
    return x * ((x * x).mean(-1, keepdim=True) + 1e-6).rsqrt()


def cross_entropy(x: Any, target: Any) -> Any:
    top = x.amax(-1, keepdim=True)
    total = (x - top).exp().sum(-1, keepdim=True).log() + top
    return total - x.gather(1, target)


by_hand = pytest.mark.parametrize(
    "fn", [softmax, log_softmax, layer_norm, rms_norm], ids=lambda f: f.__name__
)


def whole(device: Any = FUSED) -> int:
    """Return how many layouts of groups with rows run as one kernel."""
    backend: Any = device.context.resource.backend.inner
    return sum(
        launch is not None
        for kernel in list(backend.fuser.made.values())
        for launch in (kernel.launches.values() if kernel.group.rows else ())
    )


def kernels(fn: Any, *args: Any) -> list[tuple[str, ...]]:
    """Return the operations of each kernel of a program."""
    found = burn.explain(fn, *args)
    return [k.operations for p in found.plans for k in p.kernels if not k.is_view]


@by_hand
@pytest.mark.parametrize("shape", [(64, 32), (8, 200), (3, 5, 77)], ids=str)
def test_rows_by_hand_are_one_kernel(fn: Any, shape: tuple[int, ...]) -> None:
    (x,) = tensors(FUSED, shape)
    before = whole()
    assert len(kernels(fn, x)) == 1
    assert whole() > before
    expected = fn(burn.tensor(x.numpy(), device=EAGER))
    assert fn(x).numpy().tobytes() == expected.numpy().tobytes()


def test_cross_entropy_by_hand_is_one_kernel_that_checks_its_indices() -> None:
    (x,) = tensors(FUSED, (16, 40))
    target = burn.tensor(RNG.integers(0, 40, (16, 1)), device=FUSED)
    assert len(kernels(cross_entropy, x, target)) == 1
    expected = cross_entropy(*(burn.tensor(t.numpy(), device=EAGER) for t in (x, target)))
    assert np.array_equal(cross_entropy(x, target).numpy(), expected.numpy())
    with pytest.raises(burn.IndexRangeError, match="index 40 for size 40"):
        cross_entropy(x, target * 0 + 40).numpy()


@by_hand
def test_gradients_by_hand_are_one_kernel_more(fn: Any) -> None:
    def gradient(x: Any, g: Any) -> Any:
        leaf = x.to_device(FUSED.autodiff()).require_grad()
        return leaf.grad(fn(leaf).backward(g))

    x, g = tensors(FUSED, (12, 48), (12, 48))
    assert len(kernels(gradient, x, g)) <= 2


def test_an_elementwise_kernel_takes_the_sum_of_what_it_computes() -> None:
    x, y = tensors(FUSED, (6, 30), (6, 30))
    assert units(FUSED, lambda: (z := x * y + 1, z.sum(-1))) == ["mul+add+sum"]
    assert units(FUSED, lambda: (x.sum(-1), x.amax(-1), (x * x).sum(-1) / 30)) == [
        "sum+amax+mul+sum+div"
    ]


def test_a_row_is_never_taken_for_a_column() -> None:
    (x,) = tensors(FUSED, (9, 9))
    for fn in (lambda x: x - x.sum(-1), lambda x: x.sum(-1) + x.sum(-1, keepdim=True)):
        expected = fn(burn.tensor(x.numpy(), device=EAGER))
        assert np.array_equal(fn(x).numpy(), expected.numpy())


def test_indices_of_fewer_rows_are_gathered_by_themselves() -> None:
    (x,) = tensors(FUSED, (6, 8))

    def program(x: Any) -> Any:
        at = burn.tensor([[1], [2]], device=x.device)
        return (x * 2).gather(1, at) + x.sum(-1, keepdim=True)[:2]

    expected = program(burn.tensor(x.numpy(), device=EAGER))
    assert np.array_equal(program(x).numpy(), expected.numpy())


SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((7, 40), 1), ((3, 5), 1), ((300, 16), 1), ((2, 3, 70), 1), ((5, 4, 6), 2), ((0, 4), 1),
    ((4, 0), 1), ((33,), 1), ((1, 64), 1), ((4, 130), 1), ((20, 2), 1), ((6, 1), 1), ((3, 4, 5), 3),
    ((70_000,), 1), ((2, 40_000), 1), ((300, 200), 2),
]  # fmt: skip


# Kernels of other dtypes differ in their casts alone: fewer shapes show that.
CASES = [(s, "float32") for s in SHAPES] + [
    (s, t) for t in ("float16", "bfloat16", "float64", "int32") for s in SHAPES[:13:3]
]


@pytest.mark.parametrize(("case", "dtype"), CASES, ids=str)
def test_random_programs_have_the_bits_of_single_kernels(
    case: tuple[tuple[int, ...], int], dtype: str
) -> None:
    shape, dims = case
    for seed in range(3):
        wild = seed == 1 and dtype != "int32"
        given = (shape, dims, getattr(burn, dtype), wild)
        with np.errstate(all="ignore"):
            expected, found = run(seed, EAGER, *given), run(seed, FUSED, *given)
        for one, other in zip(expected, found, strict=True):
            assert one.dtype == other.dtype
            assert bits(one) == bits(other)


COLUMNS: list[tuple[tuple[int, ...], int]] = [
    ((40, 33), 1), ((3, 5, 70), 2), ((1200, 16), 1), ((2, 20), 1), ((1, 30), 1), ((5, 8), 1),
    ((0, 20), 1), ((6, 4, 5), 1), ((7, 200), 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize(("shape", "dims"), COLUMNS, ids=str)
def test_random_programs_of_columns(shape: tuple[int, ...], dims: int, dtype: str) -> None:
    for seed in range(3):
        wild = seed == 1 and dtype != "int32"
        given = (shape, dims, getattr(burn, dtype), wild, 1.0, 10, True)
        with np.errstate(all="ignore"):
            expected, found = run(seed, EAGER, *given), run(seed, FUSED, *given)
        for one, other in zip(expected, found, strict=True):
            assert bits(one) == bits(other)


def test_a_sum_of_columns_takes_what_it_is_computed_from() -> None:
    x, y = tensors(FUSED, (90, 40), (90, 40))
    before = whole()
    assert units(FUSED, lambda: (z := x * y, z.sum(0, keepdim=True).reshape(40))) == [
        "mul+sum",
        "reshape",
    ]
    assert whole() > before
    assert units(FUSED, lambda: x - x.sum(0)) == ["sum", "sub"]


@pytest.mark.parametrize("seed", range(6))
def test_programs_with_changing_numbers_replay(seed: int) -> None:
    for scale in (1.0, 1.0, 1.0, 1.5, 2.0, 2.5, 1.0):
        given = ((30, 24), 1, burn.float32, False, scale)
        for one, other in zip(run(seed, EAGER, *given), run(seed, FUSED, *given), strict=True):
            assert bits(one) == bits(other)


def test_one_plan_for_rows_of_every_length() -> None:
    def gradient_like(x: Any) -> Any:
        return softmax(x * 0.5).sum(0)

    count = 0
    for n in (3, 16, 50, 100, 1000):
        (x,) = tensors(FUSED, (4, n))
        expected = gradient_like(burn.tensor(x.numpy(), device=EAGER))
        assert np.array_equal(gradient_like(x).numpy(), expected.numpy())
        count = count or len(plans(FUSED))
    assert len(plans(FUSED)) == count


def test_a_single_row_of_any_length_has_the_bits_of_single_kernels() -> None:
    def fn(x: Any) -> list[Any]:
        low = x - x.amax(-1, keepdim=True)
        return [(x * 1.7).tanh().sum(), low.exp().sum(-1), (low * low).mean(-1)]

    for length in (2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100):
        given = RNG.standard_normal(length).astype(np.float32)
        for shape in ((length,), (1, length)):
            eager, fused = (
                [bits(y.numpy()) for y in fn(burn.tensor(given.reshape(shape), device=d))]
                for d in (EAGER, FUSED)
            )
            assert eager == fused, shape


def test_what_runs_apart_is_explained_by_its_kernels() -> None:
    (x,) = tensors(FUSED, (1, 200_000))
    assert kernels(softmax, x) == [("amax",), ("sub", "exp"), ("sum",), ("div",)]
    assert len(kernels(softmax, tensors(FUSED, (400, 50))[0])) == 1


@pytest.mark.parametrize("seed", range(4))
def test_nothing_differs_where_every_plan_is_compared(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv("BURN_FUSION", "check")
    with np.errstate(all="ignore"):
        run(100 + seed, FUSED, (21, 19), 1, burn.float32, True)
        run(100 + seed, FUSED, (21, 19), 1, burn.float32, True, 1.0, 12, True)


def test_views_of_views_that_others_read() -> None:
    (x,) = tensors(FUSED, (12, 5))

    def program(x: Any) -> Any:
        total = (x * 2).sum(-1)
        flat = total.unsqueeze(-1).squeeze(-1)
        return flat.cumsum(0), total.unsqueeze(-1) * x

    for one, other in zip(program(x), program(burn.tensor(x.numpy(), device=EAGER)), strict=True):
        assert np.array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("count", [2, 3])
def test_what_waits_in_the_memory_of_another_result_is_read_before_that_is_written(
    count: int,
) -> None:
    (x,) = tensors(FUSED, (40, 21))

    def program(x: Any) -> list[Any]:
        return [softmax(x * (k + 0.5)) for k in range(count)]

    found, expected = program(x), program(burn.tensor(x.numpy(), device=EAGER))
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one.numpy(), other.numpy())
