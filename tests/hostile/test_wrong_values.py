"""What once went wrong with arguments that make no sense: a bare error, a hang, a silent answer."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn_std import ArgumentError, BurnError, DTypeError, ExecutionError, ShapeError

F = burn.functional

# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [burn.float16, burn.bfloat16, burn.float32, burn.float64])
def test_large_integers_beside_floats_are_floats(device: Any, dtype: Any) -> None:
    x = burn.ones(2, dtype=dtype, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = float("inf") if dtype is burn.float16 else float(2**70)
        assert (x * 2**70).tolist() == [wide, wide]
        assert (x < 2**70).tolist() == [True, True]
        assert (x * (2**64 - 1)).numpy().astype(np.float64)[0] >= 65504
    with pytest.raises(ArgumentError):
        x * 10**400


@pytest.mark.parametrize(
    "call", [lambda x: x * 2**70, lambda x: x < -(2**63) - 1, lambda x: x.clamp(max=2**64)]
)
def test_integers_of_more_than_64_bits_meet_no_integers(
    device: Any, call: Callable[[Any], Any]
) -> None:
    """They would wrap to something that nobody meant."""
    with pytest.raises((ArgumentError, DTypeError), match="fit"):
        call(burn.ones(2, dtype=burn.int32, device=device))


def _assigned(x: Any) -> Any:
    made = x * 1
    made[0] = 300
    return made


@pytest.mark.parametrize(
    "call",
    [
        lambda x: burn.full((2,), 300, dtype=burn.uint8, device=x.device),
        lambda x: burn.full_like(x, 300), lambda x: x.new_full((2,), 300), _assigned,
        lambda x: x.masked_fill(x > 9, 300), lambda x: burn.where(x > 9, x, 300),
        lambda x: x.where(x > 9, 300), lambda x: x.fill(300), lambda x: x.clamp(0, 300),
        lambda x: x.clamp_max(256), lambda x: F.pad(x, (1, 1), value=300),
        lambda x: x.index_fill(0, burn.tensor([0], device=x.device), 300),
        lambda x: x.maximum(300), lambda x: burn.minimum(x, 300),
    ],
)  # fmt: skip
def test_a_number_that_is_stored_must_fit(device: Any, call: Callable[[Any], Any]) -> None:
    """As in PyTorch: `x.clamp(0, 256)` of uint8 would set everything to 0."""
    x = burn.tensor([200, 5], dtype=burn.uint8, device=device)
    with pytest.raises(DTypeError, match="does not fit uint8"):
        call(x)
    assert x.clamp(0, 255).tolist() == [200, 5]
    assert burn.full((1,), -1, dtype=burn.uint8, device=device).tolist() == [255]
    assert (x + 300).tolist() == [244, 49], "sums wrap"


def test_a_fraction_is_found_between_integers(device: Any) -> None:
    """As in PyTorch; it was once cut to 2 and found before it."""
    steps = burn.tensor([1, 2, 3], device=device)
    assert burn.searchsorted(steps, 2.5).item() == 2
    assert burn.searchsorted(steps, -0.5).item() == 0
    with pytest.raises(DTypeError):
        burn.searchsorted(steps.to(burn.uint8), 300)


@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("name", ["sum", "amin", "any", "argmax", "var"])
def test_a_flag_is_a_bool(device: Any, shape: tuple[int, ...], name: str) -> None:
    for flag in (b"mean", 2, "yes", None, [1]):
        with pytest.raises(DTypeError, match="keepdim"):
            getattr(burn.ones(shape, device=device), name)(0, keepdim=flag)


def test_only_numbers_stand_for_numbers(device: Any) -> None:
    for value in ((1, 2, 3), [1.0], "1"):
        with pytest.raises(DTypeError):
            burn.ones(3, device=device).xlogy(value)
    with pytest.raises(DTypeError):
        burn.ones(4, 8, device=device).quantize(burn.quantized(8)).fill(1)


def _integer_addmm(x: Any) -> Any:
    return x.addmm(x, x, alpha=burn.nan)


# --- lists and extents ----------------------------------------------------------------------------


def _endless() -> list[Any]:
    out: list[Any] = [1.0]
    out[0] = out
    return out


def test_lists_that_hold_themselves_are_refused(device: Any) -> None:
    with pytest.raises(ShapeError):
        burn.tensor(_endless(), device=device)
    x = burn.zeros(2, device=device)
    with pytest.raises(ShapeError):
        x[0] = _endless()


def test_layers_take_lists_that_hold_themselves_as_any_list(device: Any) -> None:
    layer = nn.GELU(_endless())
    assert "GELU" in repr(layer)
    with pytest.raises(BurnError):
        layer(burn.ones(2, device=device))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.reshape((1,) * 65), lambda x: x.expand((1,) * 65),
        lambda x: x.repeat((1,) * 70),
        lambda x: burn.zeros((1,) * 70, device=x.device),
        lambda x: x.reshape((1,) * 64).unsqueeze(0),
        lambda x: burn.stack([x.reshape((1,) * 64)] * 2),
    ],
)  # fmt: skip
def test_more_than_64_dims_are_refused(device: Any, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ShapeError, match="64"):
        call(burn.ones(1, device=device))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda d: burn.linspace(0, 1, 2**62, device=d), ArgumentError),
        (lambda d: burn.logspace(0, 1, 2**62, device=d), ArgumentError),
        (lambda d: burn.logspace(0, 1, -1, device=d), ArgumentError),
        (lambda d: burn.fft.fftfreq(2**62, device=d), ExecutionError),
        (lambda d: burn.fft.rfftfreq(2**70, device=d), ExecutionError),
        (lambda d: burn.tril_indices(2**62, 1, device=d), ArgumentError),
        (lambda d: burn.ones((), device=d).tensor_split(1), ShapeError),
        (lambda d: burn.ones(3, device=d).tensor_split(2**40), ArgumentError),
        (lambda d: burn.combinations(burn.ones((), device=d)), ShapeError),
        (lambda d: burn.combinations(burn.ones(2, device=d), -1), ArgumentError),
        (lambda d: burn.tensordot(*[burn.ones(2, device=d)] * 2, 2), ArgumentError),
        (lambda d: burn.tensordot(*[burn.ones(2, device=d)] * 2, 0.5), DTypeError),
        (lambda d: burn.ones(2, 2, device=d).diag_embed(dim1=-1), ArgumentError),
        (lambda d: F.fold(burn.ones(1, 4, 1, device=d), 2, 2, stride=0), ArgumentError),
        (lambda d: F.gumbel_softmax(burn.ones(2, device=d).int()), DTypeError),
        (lambda d: F.lp_pool1d(burn.ones(1, 1, 4, device=d), 0.0, 2), ArgumentError),
        (lambda d: _integer_addmm(burn.ones(2, 2, device=d).long()), ArgumentError),
        (lambda d: burn.from_dlpack(np.arange(3, dtype=">f4"), device=d), DTypeError),
        (lambda d: burn.quantized("int8"), ArgumentError),
        (lambda d: burn.quantized(8, block=2.5), ArgumentError),
    ],
)  # fmt: skip
def test_functions_say_what_is_wrong(
    device: Any, call: Callable[[Any], Any], error: type[BurnError]
) -> None:
    with pytest.raises(error):
        call(device)


def test_cross_entropy_over_no_classes(device: Any) -> None:
    """A row without classes is refused or empty, not a failure inside."""
    target = burn.zeros(0, dtype=burn.int64, device=device)
    out = F.cross_entropy(burn.ones(0, 0, device=device), target, reduction="none")
    assert out.shape == (0,)


def test_messages_do_not_repeat_all_of_a_long_value(device: Any) -> None:
    with pytest.raises(DTypeError) as caught:
        burn.ones(2, device=device).max("x" * 100_000)
    assert len(str(caught.value)) < 2000


# --- arrays ---------------------------------------------------------------------------------------


def _odd_arrays() -> list[Any]:
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    frozen = base.copy()
    frozen.flags.writeable = False
    raw = np.zeros(49, np.uint8)
    raw[1:] = base.view(np.uint8).ravel()
    return [
        np.broadcast_to(np.float32(2.0), (3, 4)), frozen, raw[1:].view(np.float32).reshape(3, 4),
        base.astype(">f4"), base.astype(">i8"), np.asfortranarray(base), base[::-1, ::-2],
        np.lib.stride_tricks.as_strided(base, (3, 3), (4, 4)), np.zeros((0, 3), np.int16),
        np.ones((1,) * 40, np.float32), np.array(3), base.astype(np.uint64) + 2**63,
    ]  # fmt: skip


def test_arrays_of_odd_layouts_keep_their_values(device: Any) -> None:
    for array in _odd_arrays():
        expected = array.copy()
        made = [burn.tensor(array, device=device), burn.from_numpy(array, device=device)]
        if array.dtype.isnative and array.flags.aligned:
            made.append(burn.from_dlpack(array, device=device))
        for x in made:
            assert x.shape == array.shape
            assert np.array_equal(x.numpy(), expected), (array.dtype, array.strides)
            assert np.array_equal((x + 0).numpy(), expected)


def test_exports_that_overlap_show_one_value(device: Any) -> None:
    """Two exports of one tensor, and of a view of it, stay what they were."""
    x = burn.arange(6, device=device).float() * 1
    one, other = x.numpy(), x[2:].numpy()
    shared = np.from_dlpack(x.to_device("flex:5"), copy=False)
    kept = [one.copy(), other.copy(), shared.copy()]
    x[0] = 50.0
    x = x * 2 + 1
    x.numpy()
    for array, copy in zip((one, other, shared), kept, strict=True):
        assert np.array_equal(array, copy)
        assert not array.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, "a", None], object), np.array(["a"]),
        np.array([None, 1.5], object), np.array(["1", "2"], object), [np.array([None, 1], object)],
        np.array(["2020-01-01"], "datetime64[D]"), np.ones(2, np.complex64),
        np.zeros(2, [("a", "f4"), ("b", "i4")]),
    ],
    ids=lambda a: str(np.asarray(a).dtype),
)  # fmt: skip
def test_arrays_of_other_things_are_refused(device: Any, array: Any) -> None:
    for make in (burn.tensor, burn.from_numpy):
        if (
            make is burn.tensor
            and isinstance(array, np.ndarray)
            and np.array_equal(array, [0, 1, 2])
        ):
            continue  # numbers in an object array are numbers
        with pytest.raises(DTypeError):
            make(array, device=device)


def test_numbers_in_arrays_of_objects_are_those_of_lists(device: Any) -> None:
    whole = burn.tensor(np.array([2**62 + 1, -3], object), device=device)
    assert (whole.dtype, whole.tolist()) == (burn.int64, [2**62 + 1, -3])
    mixed = burn.tensor([np.array([True, 2.5], object)], device=device)
    assert (mixed.dtype, mixed.tolist()) == (burn.float32, [[1.0, 2.5]])
    with pytest.raises(DTypeError):
        burn.from_numpy(np.arange(3).astype(object), device=device)


# --- layers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(2, "3"), lambda: nn.Linear(2, 3, dtype="float32"),
        lambda: nn.Conv2d(2, None, 3), lambda: nn.GroupNorm(1, None), lambda: nn.LayerNorm(None),
        lambda: nn.ZeroPad2d(None), lambda: nn.Dropout2d([1]), lambda: nn.LSTM(3, [4]),
        lambda: nn.Transformer(nhead="4"), lambda: nn.TransformerEncoder(1, 2),
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 1, 1.5),
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 8, 2), lambda: nn.Unflatten(2, 3),
        lambda: nn.PositionalEncoding(0), lambda: nn.RotaryEncoding(4, 0),
        lambda: nn.ModuleDict([1]), lambda: nn.ParameterList(1.5), lambda: nn.Shrink(bias="0"),
        lambda: nn.LazyLinear(None), lambda: nn.init.dirac_(1.5), lambda: nn.init.eye_("x"),
        lambda: nn.init.kaiming_normal_(nn.Parameter(burn.ones(2, 2)), "x"),
    ],
)  # fmt: skip
def test_layers_and_initializers_name_the_wrong_argument(make: Callable[[], Any]) -> None:
    with pytest.raises(BurnError):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.AdamW(eps="x"), lambda: optim.SGD(weight_decay=None),
        lambda: optim.Adam(betas=0.9), lambda: optim.LAMB(weight_decay=(1, 2)),
        lambda: optim.Adadelta(rho=np.array([b"a"])), lambda: optim.LBFGS(max_iter=[1]),
        lambda: optim.EMA(2), lambda: optim.GradScaler("x"), lambda: optim.GradientSet(3),
        lambda: optim.Muon(ns_coefficients=1.0), lambda: optim.lr_scheduler.MultiStepLR(0.1, 2),
        lambda: optim.lr_scheduler.ConstantLR(0.1, []), lambda: optim.lr_scheduler.ComposedLR(1),
        lambda: optim.lr_scheduler.OneCycleLR(0.1, 1.0, 10, final_div_factor=0),
    ],
)  # fmt: skip
def test_optimizers_and_schedules_name_the_wrong_argument(make: Callable[[], Any]) -> None:
    with pytest.raises(BurnError) as caught:
        make()
    assert "__init__" not in str(caught.value)


def test_errors_of_layers_end_at_the_line_that_calls() -> None:
    for make in (lambda: nn.Linear(2, "3"), lambda: nn.LSTM(3, 0), lambda: nn.Conv2d(2, None, 3)):
        with pytest.raises(BurnError) as caught:
            make()
        assert len(caught.traceback) <= 3, "the test, the call, and one frame of the library"


@pytest.mark.parametrize(
    ("layer", "given"),
    [
        (lambda: nn.LazyLinear(2), ()), (lambda: nn.LazyConv2d(2, 1), (3,)),
        (lambda: nn.LazyBatchNorm1d(), (3,)), (lambda: nn.PositionalEncoding(4), (4,)),
        (lambda: nn.RotaryEncoding(4, 4), (4,)), (lambda: nn.Transformer(4, 2, 1, 1, 4), ()),
    ],
)  # fmt: skip
def test_layers_refuse_inputs_of_too_few_dims(
    layer: Callable[[], Any], given: tuple[int, ...]
) -> None:
    x = burn.ones(given)
    made = layer()
    with pytest.raises(ShapeError):
        made(x, x) if isinstance(made, nn.Transformer) else made(x)


def test_a_layer_says_which_input_is_wrong() -> None:
    for layer in (nn.LSTM(2, 3), nn.Flatten(), nn.LazyLinear(2), nn.BatchNorm1d(3)):
        with pytest.raises(DTypeError, match="tensor"):
            layer("abc")


def test_what_a_users_module_raises_stays_as_it_is() -> None:
    class Own(nn.Module):
        def __init__(self, width: int) -> None:
            self.width = width + 1

        def forward(self, x: burn.Tensor) -> burn.Tensor:
            return x.nonsense

    with pytest.raises(TypeError, match="concatenate"):
        Own("a")
    with pytest.raises(AttributeError, match="nonsense"):
        nn.Sequential(Own(1))(burn.ones(2))


def test_extents_may_be_integers_of_numpy() -> None:
    pool = nn.MaxPool2d(np.int64(2))
    assert pool(burn.ones(1, 1, 4, 4)).shape == (1, 1, 2, 2)
    assert nn.RMSNorm(np.int64(3))(burn.ones(2, 3)).shape == (2, 3)
    assert nn.ZeroPad2d(np.int8(1))(burn.ones(1, 1, 2, 2)).shape == (1, 1, 4, 4)


def test_an_encoder_without_elements_is_one() -> None:
    """`custom_encoder or ...` once put another in the place of an empty container."""
    encoder = nn.Sequential()
    assert len(encoder) == 0
    assert nn.Transformer(4, 2, 1, 1, 4, custom_encoder=encoder).encoder is encoder


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("flex", 6000), ("eager-cpu", 120)])
def test_random_arguments(name: str, count: int) -> None:
    command = [sys.executable, "-m", "tests.hostile.random_arguments", "--backend", name]
    done = subprocess.run(
        [*command, "--count", str(count), "--seconds", "60"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 wrong" in done.stdout, done.stdout
