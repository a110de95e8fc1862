"""Running statistics and dropout: bugs B79, B80, B83 and B84."""

from __future__ import annotations

from typing import Any

import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_core import average_buffers
from burn_dispatch import Device, no_grad
from burn_std import ArgumentError, ShapeError, StoreError


def near(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    return bool((a.detach() - b.detach()).abs().max().item() < tolerance)


def test_batch_norm_uses_two_variances(tracking: Device) -> None:
    with tracking:
        model = nn.BatchNorm1d(1)
        x = bt.tensor([[1.0], [2.0], [3.0], [4.0]])
    y = model(x)
    want = bt.tensor([-1.341635, -0.447212, 0.447212, 1.341635])
    assert near(y.squeeze(1), want)
    assert model.running_mean.item() == pytest.approx(0.25)
    assert model.running_var.item() == pytest.approx(1.0666667)
    assert model.num_batches_tracked.item() == 1
    seen = bt.tensor([0.726181, 1.694422, 2.662664, 3.630905])
    assert near(model.valid()(x).squeeze(1), seen)
    with pytest.raises(ShapeError):
        model(bt.ones(1, 1, device=tracking))
    assert model.valid()(bt.ones(1, 1)).shape == (1, 1)


def trained(tracking: Device, momentum: float | None = 0.1) -> Any:
    bt.manual_seed(0)
    with tracking:
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=momentum))
        for _ in range(10):
            model(bt.randn(6, 3) * 2 + 1)
    return model


def test_statistics_survive_valid_fork_move_and_saving(tracking: Device) -> None:
    model = trained(tracking)
    mean = model[1].running_mean.tolist()
    assert mean != [0.0] * 4
    infer, fork = model.valid(), model.fork()
    assert infer[1].running_mean is model[1].running_mean
    assert fork[1].running_mean.tolist() == mean
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    other.load_state_dict(model.state_dict())
    x = bt.randn(2, 3)
    assert near(other(x), infer(x), 1e-7)
    moved = model.fork(Device.flex(1))
    assert moved[1].running_mean.tolist() == mean
    assert [n for n, _ in model.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    model(bt.randn(6, 3, device=tracking))
    assert infer[1].running_mean.tolist() == model[1].running_mean.tolist() != mean
    assert fork[1].running_mean.tolist() == mean


def test_statistics_of_forks_are_averaged(tracking: Device) -> None:
    model = trained(tracking)
    fork = model.fork(Device.flex(1))
    fork(bt.randn(6, 3, device=Device.flex(1)))
    means = [m[1].running_mean.detach().to_device(Device.default()) for m in (model, fork)]
    average_buffers(model, [fork])
    assert near(model[1].running_mean, (means[0] + means[1]) / 2, 1e-7)
    assert fork[1].running_mean.tolist() == model[1].running_mean.tolist()
    assert fork[1].running_mean.device == Device.flex(1)
    assert model[1].num_batches_tracked.item() == 10
    with pytest.raises(StoreError):
        average_buffers(model, [nn.Linear(1, 1)])


def test_statistics_stand_still_outside_training(tracking: Device) -> None:
    model = trained(tracking)
    before = model.state_dict()
    x = bt.randn(6, 3, device=tracking)
    with no_grad():
        model(x)
    model.valid()(x)
    model.valid(grad=True)(x).sum().backward()
    for key, value in model.state_dict().items():
        assert value.tolist() == before[key].tolist(), key


def test_statistics_move_once_under_checkpoint(tracking: Device) -> None:
    model = trained(tracking)
    twin = model.fork()
    x = bt.randn(6, 3, device=tracking)
    one = model(x).sum().backward()
    two = bt.checkpoint(twin, x).sum().backward()
    assert model[1].running_var.tolist() == twin[1].running_var.tolist()
    assert twin[1].num_batches_tracked.item() == 11
    assert near(model[0].weight.grad(one), twin[0].weight.grad(two))


def test_average_over_all_batches_reads_nothing(
    tracking: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = tracking.resource.backend
    reads = []
    with tracking:
        model = nn.BatchNorm2d(3, momentum=None)
        batches = [bt.randn(4, 3, 2, 2) for _ in range(3)]
    monkeypatch.setattr(backend, "to_numpy", lambda payload: reads.append(1))
    for x in batches:
        model(x)
    monkeypatch.undo()
    assert not reads
    means = bt.stack([x.mean((0, 2, 3)) for x in batches]).mean(0)
    assert near(model.running_mean, means)


@pytest.mark.parametrize("cls", ["Dropout", "Dropout1d", "AlphaDropout", "FeatureAlphaDropout"])
def test_dropout_acts_in_training_alone(cls: str, tracking: Device) -> None:
    layer = getattr(nn, cls)(0.5)
    x = bt.ones(8, 16, 4, device=tracking)
    state = tracking.random_state()
    for run in (layer.valid(), layer.valid(grad=True)):
        assert run(x).tolist() == x.tolist()
    assert layer(x.to_device(Device.default()).detach()).shape == x.shape
    assert not near(layer(x), x, 0.1)
    with no_grad():
        assert layer(x).tolist() == x.tolist()
    assert tracking.random_state() != state


def test_dropout_is_decided_by_the_seed_and_keeps_the_mean(tracking: Device) -> None:
    layer = nn.Dropout(0.5)
    x = bt.ones(1000, device=tracking)
    tracking.seed(5)
    one, two = layer(x), layer(x)
    tracking.seed(5)
    assert layer(x).tolist() == one.tolist() != two.tolist()
    assert set(one.tolist()) == {0.0, 2.0}
    assert abs(one.mean().item() - 1.0) < 0.15
    assert nn.Dropout(0.0)(x).tolist() == x.tolist()
    assert nn.Dropout(1.0)(x).tolist() == [0.0] * 1000
    with pytest.raises(ArgumentError):
        nn.Dropout(1.5)


def test_attention_dropout_is_off_in_inference(tracking: Device) -> None:
    with tracking:
        layer = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
        x = bt.randn(2, 5, 8)
    infer = layer.valid()
    state = tracking.random_state()
    for weights in (True, False):
        one, two = infer(x, x, x, need_weights=weights)[0], infer(x, x, x, need_weights=weights)[0]
        assert one.tolist() == two.tolist()
    assert tracking.random_state() == state
    assert layer(x, x, x)[0].tolist() != infer(x, x, x)[0].tolist()


def test_noise_and_drop_path(tracking: Device) -> None:
    x = bt.ones(64, 3, device=tracking)
    noisy = nn.GaussianNoise(0.5)(x)
    assert 0.2 < noisy.std().item() < 0.8
    dropped = nn.DropPath(0.5)(x)
    assert {tuple(row) for row in dropped.tolist()} == {(0.0,) * 3, (2.0,) * 3}
    assert nn.RReLU(0.1, 0.9)(-x).std().item() > 0.05
    assert nn.RReLU(0.1, 0.9).valid()(-x).std().item() == 0.0
