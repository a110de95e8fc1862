"""What every optimizer shares: the step, its state, its errors."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as bt
from burn_dispatch import Device, device
from burn_optim import SGD, Adam, AdamW
from burn_std import ArgumentError, AutodiffError, DTypeError, ShapeError, StoreError

RNG = np.random.default_rng(5)
GRADS = [[RNG.standard_normal((3, 2)), RNG.standard_normal(4)] for _ in range(6)]


@pytest.fixture
def pair(weights):
    return lambda: weights(a=np.ones((3, 2)), b=np.arange(4.0))


def _values(model):
    return [p.numpy().copy() for p in model.parameters()]


def test_decoupled_decay_comes_before_the_update(weights):
    # B86: AdamW 0.999 with a zero gradient, Adam with L2 0.9; then 0.899.
    for kind, g, want in ((AdamW, 0.0, 0.999), (Adam, 0.0, 0.9), (AdamW, 0.1, 0.899)):
        model = weights(w=[1.0])
        kind(lr=0.1, weight_decay=0.01).step(model, model.gradients([g]))
        assert model.w.item() == pytest.approx(want, rel=1e-5)


def test_the_rate_of_a_step_may_be_given(weights):
    model = weights(w=[1.0])
    SGD(lr=0.1).step(model, model.gradients([1.0]), lr=0.5)
    assert model.w.item() == 0.5


def test_gradients_are_taken_unless_kept(weights):
    model = weights(w=[1.0])
    optimizer = SGD(lr=0.1)
    grads = model.gradients([1.0])
    optimizer.step(model, grads, keep=True)
    assert model.w.grad(grads).item() == 1.0
    optimizer.step(model, grads)
    with pytest.raises(AutodiffError, match="keep=True"):
        model.w.grad(grads)


def test_what_has_no_gradient_stays(pair):
    model = pair()
    Adam(lr=0.1).step(model, model.gradients(GRADS[0][0], None))
    assert model.b.tolist() == [0, 1, 2, 3]
    assert not (model.a.numpy() == 1).any()


def test_frozen_parameters_stay(pair):
    model = pair()
    model.b.set_requires_grad(False)
    SGD(lr=0.1).step(model, model.gradients(GRADS[0][0], None))
    assert model.b.tolist() == [0, 1, 2, 3]


def test_gradients_of_another_model_are_refused(pair):
    one, two = pair(), pair()
    with pytest.raises(ArgumentError, match="no gradient of this model"):
        SGD(lr=0.1).step(one, two.gradients(*GRADS[0]))


def test_a_parameter_that_joins_later_counts_its_own_steps(pair):
    model, alone = pair(), pair()
    optimizer = Adam(lr=0.1)
    optimizer.step(model, model.gradients(GRADS[0][0], None))
    optimizer.step(model, model.gradients(*GRADS[1]))
    Adam(lr=0.1).step(alone, alone.gradients(None, GRADS[1][1]))
    np.testing.assert_array_equal(model.b.numpy(), alone.b.numpy())


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_dtypes_keep_theirs(weights, dtype):
    model = weights(w=np.ones(3, dtype), x=np.ones(2, np.float32))
    if dtype is np.float64:
        model = weights(w=np.ones(3, np.float32))
        model.to_dtype(bt.tensor(np.ones(1)).dtype)
        Adam(lr=0.1).step(model, model.gradients(np.ones(3)))
        assert model.w.numpy().dtype == np.float64
    else:
        Adam(lr=0.1, eps=1e-4).step(model, model.gradients(np.ones(3), np.ones(2)))
        assert model.w.numpy().dtype == dtype
        assert model.x.numpy().dtype == np.float32


@pytest.mark.parametrize("flag", [True, False])
def test_skip_is_a_select(pair, flag):
    model, plain = pair(), pair()
    one, two = Adam(lr=0.1), Adam(lr=0.1)
    one.step(model, model.gradients(*GRADS[0]), skip=bt.tensor(flag))
    if not flag:
        two.step(plain, plain.gradients(*GRADS[0]))
    for a, b in zip(_values(model), _values(plain), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.state_dict(model)["a.step"].item() == (0 if flag else 1)


def test_valid_models_see_every_step(pair):
    model = pair()
    shown = model.valid()
    SGD(lr=0.1).step(model, model.gradients(*GRADS[0]))
    np.testing.assert_array_equal(shown.a.numpy(), model.a.numpy())


def test_earlier_snapshots_do_not_change(pair):
    model = pair()
    optimizer = Adam(lr=0.1)
    optimizer.step(model, model.gradients(*GRADS[0]))
    before = {k: t.numpy().copy() for k, t in model.state_dict().items()}
    taken, state = model.state_dict(), optimizer.state_dict(model)
    moments = state["a.exp_avg"].numpy().copy()
    optimizer.step(model, model.gradients(*GRADS[1]))
    for k, t in taken.items():
        np.testing.assert_array_equal(t.numpy(), before[k])
    np.testing.assert_array_equal(state["a.exp_avg"].numpy(), moments)


@pytest.mark.parametrize("make", [
    lambda: SGD(lr=0.1, momentum=0.9), lambda: AdamW(lr=0.1, amsgrad=True),
], ids=["sgd", "adamw"])  # fmt: skip
def test_a_restored_state_goes_on_exactly(pair, make):
    whole, half = pair(), pair()
    one, two = make(), make()
    for g in GRADS:
        one.step(whole, whole.gradients(*g))
    for g in GRADS[:3]:
        two.step(half, half.gradients(*g))
    fresh, three = pair(), make()
    fresh.load_state_dict(half.state_dict())
    three.load_state_dict(fresh, two.state_dict(half))
    for g in GRADS[3:]:
        three.step(fresh, fresh.gradients(*g))
    for a, b in zip(_values(whole), _values(fresh), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_wrong_state_changes_nothing(pair, weights):
    model = pair()
    optimizer = Adam(lr=0.1)
    optimizer.step(model, model.gradients(*GRADS[0]))
    good = optimizer.state_dict(model)
    missing = {k: t for k, t in good.items() if k != "a.exp_avg"}
    with pytest.raises(StoreError, match="incomplete"):
        optimizer.load_state_dict(model, missing)
    with pytest.raises(StoreError, match="lacks"):
        optimizer.load_state_dict(model, {**good, "c.step": good["a.step"]})
    with pytest.raises(ShapeError):
        optimizer.load_state_dict(model, {**good, "a.exp_avg": good["b.exp_avg"]})
    after = optimizer.state_dict(model)
    assert all((after[k].numpy() == good[k].numpy()).all() for k in good)


@pytest.mark.parametrize("make", [
    lambda: SGD(lr=-1), lambda: SGD(lr=float("nan")), lambda: SGD(nesterov=True),
    lambda: SGD(momentum=-0.1), lambda: Adam(betas=(1.0, 0.9)), lambda: Adam(eps=-1e-8),
    lambda: AdamW(weight_decay=-1),
])  # fmt: skip
def test_settings_out_of_range_are_refused(make):
    with pytest.raises(ArgumentError):
        make()


def test_parameters_as_first_argument_get_the_remedy(pair):
    with pytest.raises(ArgumentError, match="holds no parameters; got generator"):
        AdamW(pair().parameters())


def test_what_pytorch_writes_gets_the_remedy(pair):
    model, opt = pair(), AdamW()
    with pytest.raises(DTypeError, match="what backward returned"):
        opt.step(model, model.a.sum())
    with pytest.raises(ArgumentError, match="takes a model and its gradients"):
        opt.step(model, None)
    with pytest.raises(AttributeError, match="nothing to zero"):
        opt.zero_grad()
    with pytest.raises(AttributeError, match=r"AdamW\.nope: optimizers have no such attribute\.$"):
        _ = opt.nope


def test_two_devices_are_updated_in_one_step(weights):
    model = weights(a=[1.0], b=[1.0])
    model.b.move(Device.flex(1).autodiff())
    a = (model.a * 2).sum()
    b = (model.b * 3).sum()
    grads = bt.backward([a, b])
    SGD(lr=0.1).step(model, grads)
    assert model.a.item() == pytest.approx(0.8)
    assert model.b.item() == pytest.approx(0.7)


def test_the_state_follows_a_model_that_is_moved(pair):
    stays, moves = pair(), pair()
    one, two = Adam(lr=0.1), Adam(lr=0.1)
    for k, grads in enumerate(GRADS):
        if k == 3:
            moves.to_device(device(f"{Device.default().name}:1").autodiff())
        one.step(stays, stays.gradients(*grads))
        two.step(moves, moves.gradients(*grads))
    for a, b in zip(_values(stays), _values(moves), strict=True):
        assert np.array_equal(a, b)
    states = [two._state[p] for p in moves.parameters()]
    assert states[0]["step"] is states[1]["step"]
    assert {t.device.index for s in states for t in s.values()} == {1}


def test_an_update_that_leaves_something_out_is_told_so(pair):
    class Half(SGD):
        def update(self, ctx, lr, params, grads, state, counts, skip):
            return super().update(ctx, lr, params, grads, state, counts, skip)[:-1]

    model = pair()
    before = _values(model)
    with pytest.raises(ArgumentError, match=r"Half\.update: .* got 2 tensors instead of 3"):
        Half(lr=0.1).step(model, model.gradients(*GRADS[0]))
    for a, b in zip(before, _values(model), strict=True):
        assert np.array_equal(a, b)


def test_what_a_captured_step_looks_at_follows_states_and_settings(pair):
    model, optimizer = pair(), Adam(lr=0.1)

    def step():
        optimizer.step(model, model.gradients(*GRADS[0]))

    step()
    names = ("exp_avg", "exp_avg_sq", "step")
    for change in (
        lambda: None,
        lambda: optimizer._state.update({p: dict(s) for p, s in optimizer._state.items()}),
        lambda: optimizer.load_state_dict(model, optimizer.state_dict(model)),
        lambda: optimizer.add_group("a", lr=0.5),
        step,
    ):
        change()
        owners = [optimizer, *(g.optimizer for g in optimizer.groups)]
        states = [s for o in owners for s in o._state.values()]
        want = {id(t): t for s in states for t in s.values()}
        got = optimizer.step_tensors()
        assert [*map(id, got)] == [*want]
        assert [*map(id, optimizer.step_tensors())] == [*want]
    optimizer.eps, optimizer.lr = 0.25, 0.75
    vars(optimizer)["mine"] = names
    settings = optimizer.step_settings()
    assert any(v is optimizer.eps for v in settings)
    assert any(v is names for v in settings)
    assert not any(v is optimizer.lr for v in settings)
    del vars(optimizer)["mine"]
    assert len(optimizer.step_settings()) == len(settings) - 1
