"""Elementwise operations on both sides of a view are one kernel, with the bits of single ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from tests.cube import view_programs
from tests.cube.row_programs import bits
from tests.cube.test_fusing import RNG, units
from tests.cube.test_fusing_rows import kernels

EAGER, FUSED = burn.device("eager-cpu"), burn.device("cpu")


def both(x: Any, *views: Callable[[Any], Any]) -> Any:
    """Return a value and what is computed from views of it."""
    made = x * 2 + 1
    return made, *[view(made).exp() * 3 for view in views]


# Name: the program of x [4, 6] and y [4, 6], and whether it is one kernel.
PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "permute": (lambda x, y: (x * y + 1).permute(1, 0) * 2 + 1, True),
    "reshape": (lambda x, y: (x * y + 1).reshape(2, 2, 6).tanh() * 3, True),
    "kept": (lambda x, y: both(x * y, lambda t: t.reshape(24)), True),
    "kept_turned": (lambda x, y: both(x * y, lambda t: t.permute(1, 0).reshape(24)), True),
    "heads": (
        lambda x, y: (x * y + 1).reshape(2, 2, 3, 2).permute(0, 2, 1, 3).reshape(6, 4) * 2 + 1,
        True,
    ),
    "flip": (lambda x, y: (x * y + 1).flip((0, 1)) * y, True),
    "kept_flipped": (lambda x, y: both(x * y, lambda t: t.flip((1,))), True),
    "select": (lambda x, y: (x + 1)[1] * 2 + (y * 2)[0], True),
    "gate": (lambda x, y: (lambda t: t[:, :3].tanh() * t[:, 3:].sigmoid())(x * y + 1), True),
    "steps": (lambda x, y: (x * y + 1)[::-2, 1::2] * 3, True),
    "unsqueeze": (lambda x, y: ((x + 1).unsqueeze(1) * 2).squeeze(1) + y * 3, True),
    "row": (lambda x, y: (x * y[0] + x[:, :1]).permute(1, 0) * 2 - 1, True),
    # Somebody else wants the whole, of which a slice shows a part only.
    "kept_slice": (lambda x, y: both(x * y, lambda t: t[:, :3]), False),
    # A view and its opposite would compute the exponential twice.
    "twice": (lambda x, y: (lambda t: t + t.flip((0,)))((x * y).exp()), False),
}
ONE = [k for k, (_, one) in PROGRAMS.items() if one]


def results(name: str, device: Any, shapes: Any = ((4, 6), (4, 6)), dtype: Any = None) -> list[Any]:
    rng = np.random.default_rng(7)
    data = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    x, y = (burn.tensor(v, device=device).to(dtype or burn.float32) for v in data)
    found = PROGRAMS[name][0](x, y)
    return [t.to(burn.float32).numpy() for t in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_single_kernels(name: str) -> None:
    for dtype in (burn.float32, burn.bfloat16):
        for one, other in zip(
            results(name, EAGER, dtype=dtype), results(name, FUSED, dtype=dtype), strict=True
        ):
            assert one.shape == other.shape
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel_reads_through_views(name: str) -> None:
    fn, one = PROGRAMS[name]
    x, y = (burn.tensor(RNG.standard_normal((4, 6)).astype(np.float32), device=FUSED) for _ in "xy")
    assert (len(kernels(fn, x, y)) == 1) == one


@pytest.mark.parametrize("name", ["heads", "kept_turned", "gate"])
def test_bits_on_another_runtime(name: str) -> None:
    for one, other in zip(
        results(name, burn.device("eager-opencl")), results(name, burn.device("opencl")),
        strict=True,
    ):  # fmt: skip
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("turned", [False, True])
def test_inputs_that_are_views_themselves(turned: bool) -> None:
    data = RNG.standard_normal((6, 8)).astype(np.float32)
    found = []
    for device in (EAGER, FUSED):
        x = burn.tensor(data, device=device)
        x = x.permute(1, 0) if turned else x[1:5, ::2]
        # No strides show a turned matrix as a line, so that runs apart.
        found.append(((x * 2 + 1).reshape(-1) * 3 - 1).numpy())
    assert found[0].tobytes() == found[1].tobytes()


def test_large_matrices_are_not_read_across_several_times() -> None:
    x, y, z = (burn.ones(256, 256, device=FUSED) for _ in range(3))
    across = kernels(lambda x, y, z: ((x * y + z).permute(1, 0) * x + y).exp(), x, y, z)
    assert len(across) == 2
    along = kernels(lambda x: ((x * 2 + 1).permute(1, 0) * x).exp(), x)
    assert len(along) == 1


def test_a_step_between_two_halves_keeps_them_apart() -> None:
    x = burn.ones(4, 6, device=FUSED)

    def program() -> Any:
        a = x * 2 + 1
        return (a.reshape(24) * a.cumsum(0).reshape(24)).exp() * 2

    assert units(FUSED, program) == ["mul+add", "reshape", "cumsum", "reshape", "mul+exp+mul"]


def test_a_view_that_others_read_runs_for_them() -> None:
    x = burn.tensor(RNG.standard_normal((4, 6)).astype(np.float32), device=FUSED)

    def program(x: Any) -> Any:
        turned = (x * 2 + 1).permute(1, 0)
        return turned, turned.exp() * 2, turned.cumsum(0)

    expected = program(burn.tensor(x.numpy(), device=EAGER))
    for one, other in zip(program(x), expected, strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()


def test_replays_and_other_extents() -> None:
    """A plan runs again for other numbers, other extents and empty tensors."""

    def program(x: Any, k: float) -> Any:
        n = x.shape[0]
        made = x * k + 1
        return made, (made.reshape(n, 2, 3).permute(1, 0, 2)[:, :, 1:] * k).tanh()

    for n in (4, 4, 4, 4, 7, 1, 0, 4):
        for k in (0.5, 1.5, 2.5):
            data = RNG.standard_normal((n, 6)).astype(np.float32)
            got = program(burn.tensor(data, device=FUSED), k)
            wanted = program(burn.tensor(data, device=EAGER), k)
            for one, other in zip(got, wanted, strict=True):
                assert one.shape == other.shape
                assert one.numpy().tobytes() == other.numpy().tobytes()


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 4), (5, 1, 2), (16, 48), (0, 3), (12,)], ids=str)
@pytest.mark.parametrize("dtype", [burn.float32, burn.float16, burn.int32], ids=str)
def test_random_programs_agree(shape: tuple[int, ...], dtype: Any) -> None:
    for seed in range(12):
        wanted = [t.numpy() for t in view_programs.run(seed, EAGER, shape, dtype)]
        for scale in (1.0, 1.0, 1.0, 2.0):
            if scale != 1.0:
                wanted = [t.numpy() for t in view_programs.run(seed, EAGER, shape, dtype, scale)]
            made = view_programs.run(seed, FUSED, shape, dtype, scale)
            for at, (one, other) in enumerate(zip(made, wanted, strict=True)):
                assert bits(one.numpy()) == bits(other), (seed, at)


@pytest.mark.parametrize("name", ["cpu", "fusion-cpu"])
def test_large_arrays_that_lie_across_are_copied_first(name: str) -> None:
    device = burn.device(name)
    data = RNG.standard_normal((3, 130, 200)).astype(np.float32)
    x, y = (burn.tensor(v, device=device) for v in (data, data.transpose(0, 2, 1).copy()))
    turned, wanted = x.permute(0, 2, 1), data.transpose(0, 2, 1)
    assert np.array_equal((turned + y).numpy(), wanted + wanted)
    assert np.array_equal((turned - 1.5).numpy(), wanted - np.float32(1.5))
    assert np.array_equal(turned.abs().numpy(), np.abs(wanted))
    assert np.array_equal(turned.to(burn.float64).numpy(), wanted.astype(np.float64))
    assert np.array_equal(burn.where(turned > y, y, turned).numpy(), wanted)
    for k in range(4):
        made = (turned[:, ::2] * 2 + y[:, 1::2]) * k
        assert np.array_equal(made.numpy(), (wanted[:, ::2] * 2 + wanted[:, 1::2]) * k)
    # What repeats is not written out.
    row = burn.tensor(data[0, 0], device=device).unsqueeze(0)
    assert np.array_equal((turned * row.permute(1, 0)).numpy(), wanted * data[0, 0][:, None])


@pytest.mark.parametrize("name", ["cpu", "fusion-cpu"])
def test_large_windows_that_are_replaced(name: str) -> None:
    """What the window covers is not copied; what lies around it is, on every side."""
    device = burn.device(name)
    for shape in ((64, 300), (8, 40, 64), (1, 130, 130)):
        data = RNG.standard_normal(shape).astype(np.float32)
        x = burn.tensor(data, device=device)
        pads = [(2, 1)] * len(shape)
        flat = [n for pair in pads[::-1] for n in pair]
        padded = burn.functional.pad(x, flat, value=1.5)
        assert np.array_equal(padded.numpy(), np.pad(data, pads, constant_values=1.5))
        made, wanted = x * 1, data.copy()
        made[..., 1:-1, 3:] = made[..., 1:-1, 3:] * 2
        wanted[..., 1:-1, 3:] *= 2
        assert np.array_equal(made.numpy(), wanted)
        made[..., :] = 0.5
        assert np.array_equal(made.numpy(), np.full(shape, 0.5, np.float32))


@pytest.mark.parametrize("name", ["cpu", "fusion-cpu"])
@pytest.mark.parametrize(
    "shape", [(65, 16), (1000, 3), (7, 5000), (2, 3, 17, 33), (5, 1, 9)], ids=str
)
def test_rows_of_any_length(name: str, shape: tuple[int, ...]) -> None:
    """Some rows go together, long ones in pieces; every element is computed once."""
    device = burn.device(name)
    data, last = RNG.standard_normal(shape).astype(np.float32), np.float32(2)
    row = RNG.standard_normal(shape[-1:]).astype(np.float32)
    x, y = burn.tensor(data, device=device), burn.tensor(row, device=device)
    back = tuple(reversed(range(len(shape))))
    assert np.array_equal((x + y).numpy(), data + row)
    assert np.array_equal(((x + y) * 2 - y).numpy(), (data + row) * last - row)
    assert np.array_equal((x.permute(*back) * 2).numpy(), data.transpose(back) * last)
    assert np.array_equal((x[..., ::2] * y[::2]).numpy(), data[..., ::2] * row[::2])
    assert np.array_equal((x.flip((0,)) - y * 2).numpy(), data[::-1] - row * last)
    assert np.array_equal((x * x[:1] + y).numpy(), data * data[:1] + row)
