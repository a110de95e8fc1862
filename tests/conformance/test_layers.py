"""Layers made of several operations: every backend answers as the plain one, and files hold them.

PyTorch's values for them stand in the tests of burn-nn; here they run on the chosen backend.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import functional as F, nn

NORMED = Path(__file__).parents[2] / "packages/burn-nn/tests/expected/normed.pt"


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) * 1.7).reshape(shape)


def fractional(x: burn.Tensor) -> list[burn.Tensor]:
    u = burn.tensor(np.array([[[0.3, 0.8], [0.1, 0.6]]], np.float32), device=x.device)
    return list(F.fractional_max_pool2d(x, 2, (3, 4), return_indices=True, _random_samples=u))


def volumes(x: burn.Tensor) -> list[burn.Tensor]:
    u = burn.tensor(np.array([[[0.3, 0.8, 0.5]]], np.float32), device=x.device)
    return [F.fractional_max_pool3d(x, 2, output_ratio=0.6, _random_samples=u)]


def filled(model: Any, device: Any) -> Any:
    """Return the model on a device with the same parameters everywhere."""
    state = {k: burn.tensor(numbers(*v.shape) / 3) for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    return model.to_device(device)


def clusters(x: burn.Tensor) -> list[burn.Tensor]:
    model = filled(nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], 2.0), x.device)
    return [*model(x, burn.tensor([0, 11, 4, 3], device=x.device)), model.log_prob(x)]


def packed(x: burn.Tensor) -> list[burn.Tensor]:
    model = filled(nn.LSTM(2, 3, bidirectional=True), x.device)
    given = nn.rnn.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
    out, (h, c) = model(given)
    return [out.data, nn.rnn.pad_packed_sequence(out, padding_value=2.0)[0], h, c]


def normed(x: burn.Tensor) -> list[burn.Tensor]:
    one = filled(nn.parametrizations.weight_norm(nn.Linear(4, 3)), x.device)
    two = filled(nn.parametrizations.spectral_norm(nn.Linear(3, 3)), x.device)
    return [two(one(x)), two.state_dict()["parametrizations.weight.0._u"]]


def quiet(x: burn.Tensor) -> list[burn.Tensor]:
    return [F.quiet_softmax(x, 0), F.quiet_softmax(x, -1)]


CASES: dict[str, tuple[Callable[[burn.Tensor], list[burn.Tensor]], tuple[int, ...]]] = {
    "fractional": (fractional, (1, 2, 6, 7)),
    "volumes": (volumes, (1, 1, 5, 6, 7)),
    "clusters": (clusters, (4, 8)),
    "packed": (packed, (4, 3, 2)),
    "normed": (normed, (2, 4)),
    "quiet": (quiet, (3, 4)),
}


def answers(make: Any, shape: tuple[int, ...], device: Any) -> list[np.ndarray]:
    x = burn.tensor(numbers(*shape), device=device.autodiff()).require_grad()
    outs = make(x)
    tracked = [t for t in outs if t.is_tracked()]
    ends = [burn.tensor(numbers(*t.shape) + 1, device=x.device) for t in tracked]
    return [t.numpy() for t in (*outs, x.grad(burn.backward(tracked, ends)))]


@pytest.mark.parametrize("name", CASES)
def test_a_layer_answers_alike_on_every_backend(name: str, device: Any) -> None:
    make, shape = CASES[name]
    for found, expected in zip(
        answers(make, shape, device), answers(make, shape, burn.Device.flex()), strict=True
    ):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("suffix", ["safetensors", "bpk", "npz"])
def test_files_hold_weights_that_are_computed(suffix: str, device: Any, tmp_path: Path) -> None:
    def made() -> Any:
        layers = [nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), nn.Linear(2, 2)]
        model = nn.Sequential(*layers).to_device(device)
        nn.parametrizations.weight_norm(model[0])
        nn.parametrizations.spectral_norm(model[2])
        return burn.core.apply_lora(model, burn.core.Lora(rank=1, select="3.weight"))

    model, path = made(), tmp_path / f"model.{suffix}"
    burn.store.save(model, path)
    other = made()
    report = burn.store.load(other, path)
    state, again = model.state_dict(), other.state_dict()
    assert sorted(report.applied) == sorted(state) == sorted(again)
    assert all((again[k].numpy() == v.numpy()).all() for k, v in state.items())


def test_a_checkpoint_of_pytorch_with_normed_weights_loads(device: Any) -> None:
    model = nn.Sequential(
        nn.parametrizations.weight_norm(nn.Linear(4, 3)),
        nn.ReLU(),
        nn.parametrizations.spectral_norm(nn.Linear(3, 2)),
    ).to_device(device)
    report = burn.store.load(model, NORMED)
    assert not report.missing and not report.unused
    path = "2.parametrizations.weight.0._v"
    with burn.store.open(NORMED) as file:
        assert model.state_dict()[path].tolist() == file[path].tolist()
    wide = model[2].weight.numpy()
    assert np.linalg.svd(wide, compute_uv=False)[0] == pytest.approx(1.0, rel=1e-3)
