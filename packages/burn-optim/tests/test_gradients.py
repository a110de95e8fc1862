"""Clipping, accumulation, loss scaling and averages of weights."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as bt
from burn_dispatch import Device, autocast
from burn_optim import (
    EMA,
    SGD,
    Adam,
    GradientAccumulator,
    GradientSet,
    GradScaler,
    clip_grad_norm,
    clip_grad_norm_each,
    clip_grad_value,
)
from burn_std import ArgumentError, BurnError, DeviceError, ShapeError, StoreError

F16 = bt.tensor(np.zeros(1, np.float16)).dtype
RNG = np.random.default_rng(7)


@pytest.fixture
def pair(weights):
    return weights(a=np.zeros((2, 2)), b=np.zeros(3))


A, B = np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([0.0, 4.0, 0.0])


def _read(model, grads):
    return [p.grad(grads).numpy() for p in model.parameters()]


# ---- clipping -------------------------------------------------------------------------------


def test_the_global_norm_is_that_of_all_together(pair):
    grads = pair.gradients(A, B)
    norm = clip_grad_norm(pair, grads, 1.0)
    assert norm.item() == 5.0
    a, b = _read(pair, grads)
    np.testing.assert_allclose(a, A / 5, rtol=1e-5)
    np.testing.assert_allclose(b, B / 5, rtol=1e-5)


@pytest.mark.parametrize(("p", "want"), [(1.0, 7.0), (2.0, 5.0), (3.0, 91 ** (1 / 3)), (np.inf, 4)])
def test_other_norms(pair, p, want):
    assert clip_grad_norm(pair, pair.gradients(A, B), 1.0, p).item() == pytest.approx(want)


def test_a_small_norm_changes_nothing(pair):
    grads = pair.gradients(A, B)
    clip_grad_norm(pair, grads, 5.5)
    assert (_read(pair, grads)[0] == A).all()


def test_each_by_itself(pair):
    grads = pair.gradients(A, B)
    clip_grad_norm_each(pair, grads, 3.5)
    a, b = _read(pair, grads)
    assert (a == A).all()
    np.testing.assert_allclose(b, B * 3.5 / 4, rtol=1e-5)


def test_by_value(pair):
    grads = pair.gradients(-A, B)
    clip_grad_value(pair, grads, 2.0)
    a, b = _read(pair, grads)
    assert (a.min(), b.max()) == (-2, 2)


def test_edges_of_clipping(pair):
    # B88: zeros stay zeros, a norm that is not finite changes nothing and is reported.
    grads = pair.gradients(A * 0, B * 0)
    assert clip_grad_norm(pair, grads, 1.0).item() == 0
    assert not _read(pair, grads)[0].any()
    for bad in (np.inf, np.nan):
        given = np.array([1.0, bad, 0.0])
        grads = pair.gradients(A, given)
        norm = clip_grad_norm(pair, grads, 1.0)
        assert not np.isfinite(norm.item())
        np.testing.assert_array_equal(_read(pair, grads)[0], A)
        np.testing.assert_array_equal(_read(pair, grads)[1], given)
        before = pair.a.numpy().copy()
        SGD(lr=1.0).step(pair, grads, skip=norm.isfinite().logical_not())
        assert (pair.a.numpy() == before).all()
        with pytest.raises(BurnError, match="finite"):
            clip_grad_norm(pair, pair.gradients(A, given), 1.0, error_if_nonfinite=True)
    assert clip_grad_norm(pair, GradientSet(), 1.0).item() == 0
    assert clip_grad_norm(pair, pair.gradients(A, None), 9.0).item() == 3


def test_two_dtypes_and_devices_are_one_norm(weights):
    model = weights(a=np.zeros(1, np.float16), b=[0.0], c=[0.0])
    model.c.move(Device.flex(1).autodiff())
    grads = GradientSet([
        (model.a, bt.tensor(np.array([2.0], np.float16))), (model.b, bt.tensor([3.0])),
        (model.c, bt.tensor([6.0], device=Device.flex(1))),
    ])  # fmt: skip
    assert clip_grad_norm(model, grads, 1.0).item() == 7
    np.testing.assert_allclose(model.c.grad(grads).numpy(), [6 / 7], rtol=1e-5)
    assert model.a.grad(grads).dtype is F16


@pytest.mark.parametrize("call", [
    lambda m, g: clip_grad_norm(m, g, 0.0), lambda m, g: clip_grad_norm(m, g, 1.0, 0.5),
    lambda m, g: clip_grad_value(m, g, -1.0), lambda m, g: clip_grad_norm_each(m, g, float("nan")),
])  # fmt: skip
def test_bounds_that_make_no_sense(pair, call):
    with pytest.raises(ArgumentError):
        call(pair, pair.gradients(A, B))


# ---- accumulation ---------------------------------------------------------------------------


def _loss(model, x, mask):
    # A mean over tokens: what the weight of a batch counts.
    return ((x @ model.a * mask) ** 2).sum() / mask.sum()


@pytest.mark.parametrize("as_tensor", [False, True])
def test_parts_weighted_by_tokens_equal_the_big_batch(weights, as_tensor):
    model = weights(a=RNG.standard_normal((3, 1)))
    x = RNG.standard_normal((8, 3)).astype(np.float32)
    mask = (RNG.random((8, 1)) < 0.6).astype(np.float32)
    mask[0] = mask[3] = mask[7] = 1
    sums = GradientAccumulator()
    for rows in (slice(0, 3), slice(3, 7), slice(7, 8)):
        loss = _loss(model, bt.tensor(x[rows]), bt.tensor(mask[rows]))
        tokens = bt.tensor(mask[rows]).sum() if as_tensor else float(mask[rows].sum())
        sums.add(model, loss.backward(), weight=tokens)
    assert sums.batches == 3
    found = model.a.grad(sums.take()).numpy()
    want = model.a.grad(_loss(model, bt.tensor(x), bt.tensor(mask)).backward()).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_uneven_shards_weigh_by_samples(weights):
    # B104: per-sample gradients [1, 1, 1] and [5]: 2, not 3.
    model = weights(a=[0.0])
    sums = GradientAccumulator()
    sums.add(model, model.gradients([1.0]), weight=3)
    sums.add(model, model.gradients([5.0]), weight=1)
    assert model.a.grad(sums.take()).item() == 2
    with pytest.raises(ArgumentError, match="nothing was added"):
        sums.take()


def test_many_small_parts_of_halves_add_up(weights):
    model = weights(a=np.zeros(1, np.float16))
    sums = GradientAccumulator()
    for k in range(64):
        sums.add(model, model.gradients([1.0 if k == 0 else 1e-3]))
    grads = sums.take()
    assert model.a.grad(grads).item() == pytest.approx((1 + 63e-3) / 64, rel=1e-3)
    SGD(lr=1.0).step(model, grads)
    assert model.a.numpy().dtype == np.float16


def test_a_parameter_reached_in_one_part_only(weights):
    model = weights(a=[0.0], b=[0.0])
    sums = GradientAccumulator()
    sums.add(model, model.gradients([1.0], [4.0]))
    sums.add(model, model.gradients([3.0], None))
    grads = sums.take()
    assert (model.a.grad(grads).item(), model.b.grad(grads).item()) == (2, 2)
    for bad in (0.0, -1.0, float("nan")):
        with pytest.raises(ArgumentError, match="positive"):
            sums.add(model, model.gradients([1.0], None), weight=bad)


def test_a_set_keeps_shapes(weights):
    model = weights(a=[0.0])
    with pytest.raises(ShapeError):
        GradientSet([(model.a, bt.zeros(2))])
    with pytest.raises(DeviceError, match=r"flex:1 for .*to_device"):
        GradientSet([(model.a, bt.ones(1, device="flex:1"))])
    with pytest.raises(DeviceError, match=r"flex:1 for .*to_device"):
        model.a.sum().backward().set(model.a, bt.ones(1, device="flex:1"))
    grads = GradientSet([(model.a, bt.ones(1))])
    assert (model.a in grads, len(grads), "1 parameters" in repr(grads)) == (True, 1, True)
    SGD(lr=0.5).step(model, grads)
    assert (model.a.item(), len(grads)) == (-0.5, 0)


# ---- mixed precision ------------------------------------------------------------------------


def test_autocast_computes_low_and_keeps_the_weights(weights):
    model = weights(a=RNG.standard_normal((3, 2)))
    x = bt.tensor(RNG.standard_normal((4, 3)).astype(np.float32))
    with autocast(F16):
        y = x @ model.a
    assert y.dtype is F16
    grad = model.a.grad(y.sum().backward())
    assert grad.dtype is model.a.dtype
    np.testing.assert_allclose(grad.numpy(), x.numpy().sum(0)[:, None] * [1, 1], rtol=2e-2)


def test_gradients_that_would_vanish_survive_scaling(weights):
    model = weights(a=[[1e-4]])
    x = bt.tensor(np.array([[1e-4]], np.float32))

    def gradient(scaler):
        with autocast(F16):
            loss = (x @ model.a).sum() * 1e-4
        grads = scaler.scale(loss).backward()
        scaler.unscale(model, grads)
        return model.a.grad(grads).item()

    assert gradient(GradScaler(enabled=False)) == 0
    assert gradient(GradScaler(2.0**14)) == pytest.approx(1e-8, rel=0.01)


def test_an_overflow_skips_and_backs_off(weights):
    model = weights(a=[1.0])
    scaler = GradScaler(8.0, growth_interval=2)
    optimizer = Adam(lr=0.1)
    seen = []
    for g in (1.0, np.inf, 1.0, np.nan, 1.0, 1.0, 1.0):
        grads = model.gradients([g * scaler.get_scale()])
        before = model.a.item()
        scaler.step(optimizer, model, grads)
        seen.append((scaler.get_scale(), model.a.item() != before))
    assert seen == [
        (8, True), (4, False), (4, True), (2, False), (2, True), (4, True), (4, True),
    ]  # fmt: skip
    assert optimizer.state_dict(model)["a.step"].item() == 5


def test_clipping_between_unscaling_and_step(weights):
    model = weights(a=[1.0])
    scaler = GradScaler(16.0)
    grads = model.gradients([3.0 * 16])
    scaler.unscale(model, grads)
    assert clip_grad_norm(model, grads, 1.0).item() == 3
    with pytest.raises(ArgumentError, match="once per step"):
        scaler.unscale(model, grads)
    scaler.step(SGD(lr=1.0), model, grads)
    assert model.a.item() == pytest.approx(0, abs=1e-5)


def test_the_scale_is_saved(weights):
    one, two = GradScaler(4.0), GradScaler()
    one.step(SGD(), model := weights(a=[1.0]), model.gradients([1.0]))
    two.load_state_dict(one.state_dict())
    assert (two.get_scale(), two.state_dict()["good_steps"].item()) == (4, 1)
    with pytest.raises(StoreError):
        two.load_state_dict({"scale": bt.tensor(1.0)})
    with pytest.raises(ArgumentError):
        GradScaler(growth_interval=0)


# ---- averages of weights --------------------------------------------------------------------


def test_the_average_follows_the_weights(weights):
    model = weights(a=[0.0], b=np.zeros(2, np.float16))
    ema = EMA(model, 0.5)
    for value, want in ((1.0, 0.5), (1.0, 0.75), (0.0, 0.375)):
        model.a.set(bt.tensor([value]))
        ema.update(model)
        assert ema.state_dict()["a"].item() == want
    averaged = ema.averaged(model)
    assert (averaged.a.item(), model.a.item()) == (0.375, 0)
    assert averaged.b.dtype is F16


def test_weights_come_back_after_the_block(weights):
    model = weights(a=[0.0])
    ema = EMA(model)
    model.a.set(bt.tensor([8.0]))
    with pytest.raises(RuntimeError), ema.applied(model):
        assert model.a.item() == 0
        raise RuntimeError
    assert model.a.item() == 8


def test_warm_up_forgets_the_first_weights(weights):
    model = weights(a=[0.0])
    ema = EMA(model, 0.999, warmup=True)
    model.a.set(bt.tensor([1.0]))
    ema.update(model)
    assert ema.state_dict()["a"].item() == pytest.approx(0.9)


def test_averages_are_restored(weights):
    model = weights(a=[0.0])
    ema, other = EMA(model, 0.5), EMA(weights(a=[5.0]), 0.5)
    model.a.set(bt.tensor([1.0]))
    ema.update(model)
    other.load_state_dict(ema.state_dict(), updates=ema.updates)
    assert (other.state_dict()["a"].item(), other.updates) == (0.5, 1)
    with pytest.raises(StoreError):
        other.load_state_dict({"b": bt.zeros(1)})
    with pytest.raises(ShapeError):
        other.load_state_dict({"a": bt.zeros(2)})
    with pytest.raises(ShapeError):
        ema.update(weights(c=[1.0]))
