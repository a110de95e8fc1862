"""Schedules: known values, composition, saving, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

from burn_optim import SGD
from burn_optim.lr_scheduler import (
    ChainedScheduler,
    ComposedLR,
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    GroupLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    NoamLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
    WarmupLR,
)
from burn_std import ArgumentError, StoreError

MAKERS = {
    "step": lambda: StepLR(0.1, step_size=3),
    "multi": lambda: MultiStepLR(0.1, milestones=[2, 5]),
    "constant": lambda: ConstantLR(0.1),
    "linear": lambda: LinearLR(0.1),
    "exponential": lambda: ExponentialLR(0.1, gamma=0.9),
    "polynomial": lambda: PolynomialLR(0.1, total_iters=7, power=2.0),
    "lambda": lambda: LambdaLR(0.1, lambda k: 1 / (k + 1)),
    "multiplicative": lambda: MultiplicativeLR(0.1, lambda k: 0.9),
    "noam": lambda: NoamLR(1.0, warmup_steps=5),
    "cosine": lambda: CosineAnnealingLR(0.1, T_max=4),
    "restarts": lambda: CosineAnnealingWarmRestarts(0.1, T_0=2, T_mult=2),
    "one_cycle": lambda: OneCycleLR(0.1, max_lr=1.0, total_steps=12, three_phase=True),
    "one_cycle_linear": lambda: OneCycleLR(
        0.1, max_lr=1.0, epochs=3, steps_per_epoch=4, anneal_strategy="linear"
    ),
    "cyclic": lambda: CyclicLR(0.1, base_lr=0.0, max_lr=1.0, step_size_up=2, mode="triangular2"),
    "plateau": lambda: ReduceLROnPlateau(0.1, patience=1, cooldown=1),
    "sequential": lambda: SequentialLR([ConstantLR(0.1), ReduceLROnPlateau(0.2, patience=1)], [3]),
    "composed": lambda: ComposedLR([StepLR(0.1, step_size=2), LinearLR(1.0)], "mean"),
    "chained": lambda: ChainedScheduler([StepLR(0.1, step_size=2), LinearLR(0.1)]),
    "warm": lambda: WarmupLR(ReduceLROnPlateau(0.1, patience=1), 3),
    "groups": lambda: GroupLR(StepLR(0.1, step_size=2), head=WarmupLR(0.2, 3)),
}


def _rates(schedule, count, start=0):
    out = []
    for k in range(start, start + count):
        out.append(schedule.lr)
        schedule.step(1.0 + (k > 2))
    return out


@pytest.mark.parametrize("name", MAKERS)
def test_a_restored_schedule_goes_on(name):
    # B89, B90
    whole = _rates(MAKERS[name](), 12)
    for stop in (1, 4, 7):
        first, second = MAKERS[name](), MAKERS[name]()
        head = _rates(first, stop)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert head + _rates(second, 12 - stop, stop) == whole


@pytest.mark.parametrize("name", MAKERS)
def test_the_state_of_another_is_refused(name):
    schedule = MAKERS[name]()
    before = schedule.state_dict()
    for bad in ({}, {"position": 1, "more": 2}):
        with pytest.raises(StoreError):
            schedule.load_state_dict(bad)
    assert schedule.state_dict() == before


def test_by_epoch_the_fall_comes_when_it_would_have_come():
    # B89: lr 100, x0.1 at epoch 4, resumed after epoch 2.
    schedule = MultiStepLR(100.0, milestones=[4])
    head = _rates(schedule, 3)
    resumed = MultiStepLR(100.0, milestones=[4])
    resumed.load_state_dict(schedule.state_dict())
    assert head + _rates(resumed, 5) == [100.0] * 4 + [10.0] * 4


def test_cosine_is_a_function_of_the_position():
    # B90
    schedule = CosineAnnealingLR(1e-3, T_max=100)
    want = {0: 1e-3, 45: 5.78217e-4, 46: 5.62667e-4, 100: 0.0}
    for position, lr in want.items():
        assert schedule.rate(position) == pytest.approx(lr, rel=1e-5, abs=1e-18)


def test_the_first_step_of_a_warm_up_is_not_wasted():
    # B91: (k + 1) / 4
    assert _rates(WarmupLR(0.1, 4), 6) == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])
    decayed = WarmupLR(StepLR(1.0, step_size=1), 2)
    assert _rates(decayed, 5) == pytest.approx([0.5, 1.0, 1.0, 0.1, 0.01])


def test_noam_peaks_at_the_end_of_its_warm_up():
    schedule = NoamLR(2.0, warmup_steps=10, model_size=64)
    rates = [schedule.rate(k) for k in range(100)]
    assert rates.index(max(rates)) == 9
    assert rates[9] == pytest.approx(2 * 64**-0.5 * 10**-0.5)


def test_plateaus_see_the_parts_they_run_in():
    schedule = SequentialLR([StepLR(1.0, step_size=9), ReduceLROnPlateau(0.5, patience=0)], [2])
    for loss in (1.0, 1.0, 1.0, 1.0):
        schedule.step(loss)
    assert schedule.lr == pytest.approx(0.05)


def test_plateau_takes_nan_for_no_improvement():
    schedule = ReduceLROnPlateau(1.0, patience=0, factor=0.5)
    schedule.step(1.0)
    schedule.step(float("nan"))
    assert (schedule.lr, schedule.best) == (0.5, 1.0)
    rising = ReduceLROnPlateau(1.0, mode="max", patience=0, threshold_mode="abs", threshold=0.5)
    rising.step(1.0)
    rising.step(1.4)
    assert rising.lr == pytest.approx(0.1)


def test_one_cycle_stays_at_its_end():
    schedule = OneCycleLR(0.1, max_lr=1.0, total_steps=4)
    assert schedule.rate(100) == schedule.rate(3) == pytest.approx(4e-6)


@pytest.mark.parametrize("make", [
    lambda: StepLR(-0.1, step_size=1), lambda: StepLR(0.1, step_size=0),
    lambda: StepLR(float("nan"), step_size=1), lambda: MultiStepLR(0.1, milestones=[3, 1]),
    lambda: ConstantLR(0.1, factor=2.0), lambda: LinearLR(0.1, start_factor=0.0),
    lambda: OneCycleLR(0.1, max_lr=1.0), lambda: CyclicLR(0.1, 0.0, 1.0, cycle_momentum=True),
    lambda: CyclicLR(0.1, 0.0, 1.0, mode="square"), lambda: ReduceLROnPlateau(0.1, factor=1.0),
    lambda: ReduceLROnPlateau(0.1).step(), lambda: ReduceLROnPlateau(0.1, mode="lowest"),
    lambda: SequentialLR([StepLR(0.1, step_size=1)], [1]), lambda: ComposedLR([]),
    lambda: SequentialLR([StepLR(0.1, step_size=1)] * 3, [2, 2]), lambda: WarmupLR(0.1, 0),
    lambda: CosineAnnealingLR(0.1, T_max=2.5), lambda: NoamLR(1.0, warmup_steps=0),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(ArgumentError):
        make()


def test_an_optimizer_as_rate_gets_the_remedy():
    with pytest.raises(ArgumentError, match="holds no optimizer; got SGD") as caught:
        StepLR(SGD(lr=0.1), step_size=1)
    assert "lr=schedule.lr" in caught.value.remedy


def test_every_class_has_a_maker_above():
    def below(cls):
        return {c for s in cls.__subclasses__() for c in (s, *below(s))}

    made = {type(make()) for make in MAKERS.values()}
    public = {c for c in below(LRScheduler) if not c.__name__.startswith("_")}
    assert public <= made


def test_chained_schedules_multiply_their_factors():
    chained = ChainedScheduler([StepLR(0.1, step_size=2, gamma=0.5), LinearLR(0.1, total_iters=4)])
    # PyTorch 2.13: ChainedScheduler([StepLR(opt, 2, 0.5), LinearLR(opt, total_iters=4)])
    expected = [0.1 / 3, 0.05, 0.1 / 3, 0.1 * 5 / 12, 0.025, 0.025]
    np.testing.assert_allclose([chained.rate(k) for k in range(6)], expected)
    with pytest.raises(ArgumentError, match="one base rate"):
        ChainedScheduler([StepLR(0.1, step_size=2), LinearLR(0.2)])


def test_a_schedule_without_a_rate_says_what_to_write() -> None:
    class Mine(LRScheduler): ...

    with pytest.raises(NotImplementedError, match=r"Mine: .* Write rate\(self, position\)"):
        Mine(0.1).lr  # noqa: B018
