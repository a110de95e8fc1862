"""`burn.capture` under what nobody should do to it: what a replay depends on is never stale."""

from __future__ import annotations

import copy
import pickle
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim

F = burn.functional
RNG = np.random.default_rng(1)
X = [RNG.standard_normal((3, 4)).astype(np.float32) for _ in range(14)]


@pytest.fixture(params=["fusion-flex", "fusion-cpu"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def steps(name: str, captured: bool, change: Callable[[Any, Any], None]) -> list[Any]:
    """Return losses and weights of a training in whose midst something is changed."""
    device = burn.device(name).autodiff()
    burn.manual_seed(0)
    model, optimizer = nn.Linear(4, 2, device=device), optim.AdamW(lr=0.01)

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    step: Any = burn.capture(train, state=(model, optimizer)) if captured else train
    losses = []
    for k, x in enumerate(X):
        if k == 8:
            change(model, optimizer)
        losses.append(step(burn.tensor(x, device=device.without_autodiff())).item())
    if captured:
        assert step.replays >= 4
    return [losses, model.weight.tolist(), model.bias.tolist()]


CHANGES = {
    "weight decay": lambda m, o: setattr(o, "weight_decay", 0.5),
    "betas": lambda m, o: setattr(o, "betas", (0.5, 0.5)),
    "rate": lambda m, o: setattr(o, "lr", 0.5),
    "group": lambda m, o: o.add_group("bias", weight_decay=0.0, lr=0.3),
    "weights": lambda m, o: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}),
    "state": lambda m, o: o.load_state_dict(m, {k: v * 0 for k, v in o.state_dict(m).items()}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_others_change_between_steps_counts(name: str, what: str) -> None:
    assert steps(name, True, CHANGES[what]) == steps(name, False, CHANGES[what])


def test_scopes_around_a_call_are_part_of_the_step(name: str) -> None:
    device = burn.device(name)
    model = nn.Linear(4, 4, device=device)
    step = burn.capture(lambda x: model(x), state=model)
    x = burn.tensor(X[0], device=device)
    for _ in range(2):
        for _ in range(6):
            assert step(x).dtype is burn.float32
        with burn.autocast(burn.bfloat16):
            for _ in range(6):
                assert step(x).dtype is burn.bfloat16
    assert step.replays >= 12


def test_no_grad_around_a_call_is_part_of_the_step(name: str) -> None:
    w = burn.ones(4, device=burn.device(name).autodiff()).require_grad()

    def slope(x: Any) -> Any:
        loss = (x * w).sum()
        return w.grad(loss.backward()) if loss.is_tracked() else loss

    step, x = burn.capture(slope, state=[w]), burn.tensor(X[0], device=burn.device(name))
    for _ in range(6):
        assert step(x).shape == (4,)
    with burn.no_grad():
        assert step(x).shape == ()
    assert step(x).shape == (4,)


def test_an_argument_that_takes_gradients_is_another_one(name: str) -> None:
    device = burn.device(name).autodiff()

    def slope(x: Any) -> Any:
        loss = (x * x).sum()
        return x.grad(loss.backward()) if x.is_require_grad() else loss

    step, x = burn.capture(slope), burn.ones(3, device=device)
    for _ in range(6):
        assert step(x).item() == 3
    assert step(burn.ones(3, device=device).require_grad()).tolist() == [2, 2, 2]


def test_a_captured_step_in_another_is_its_function(name: str) -> None:
    def twice(captured: bool) -> list[float]:
        device = burn.device(name).autodiff()
        burn.manual_seed(0)
        model, optimizer = nn.Linear(4, 2, device=device), optim.SGD(lr=0.1)

        def train(x: Any) -> Any:
            loss = model(x).square().mean()
            optimizer.step(model, loss.backward())
            return loss

        state = (model, optimizer)
        inner: Any = burn.capture(train, state=state) if captured else train
        outer: Any = lambda x: inner(x) * 2  # noqa: E731
        if captured:
            outer = burn.capture(outer, state=state)
        found = [outer(burn.tensor(x, device=device.without_autodiff())).item() for x in X]
        assert not captured or outer.replays == 10
        return found

    assert twice(True) == twice(False)


def test_a_captured_step_is_explained_as_its_function(name: str) -> None:
    x = burn.tensor(X[0], device=burn.device(name))
    step = burn.capture(lambda x: (x * 2 + 1).sum())
    for _ in range(6):
        step(x)
    assert (
        burn.explain(step, x).operations == burn.explain(lambda x: (x * 2 + 1).sum(), x).operations
    )
    with pytest.raises(burn.CaptureError, match="runs no other inside"):
        burn.explain(lambda x: burn.explain(lambda y: y + 1, x), x)
    assert step(x).item() == (x * 2 + 1).sum().item()


def test_a_mask_on_a_number_is_not_read(name: str) -> None:
    def masked(x: Any) -> Any:
        made = x * 1
        made[made > 1] = 0.5
        return made

    step = burn.capture(masked)
    for value in (0.0, 2.0, 3.0, -1.0, 4.0, 0.75, 2.0):
        x = burn.tensor(value, device=burn.device(name))
        assert step(x).item() == (0.5 if value > 1 else value)
    assert step.replays == 3


class Setting:
    value = 2.0


@pytest.mark.parametrize("given", [np.ones(5000, np.float32), Setting(), nn.Flatten()])
def test_arguments_that_may_change_unseen_are_refused(name: str, given: Any) -> None:
    step = burn.capture(lambda x, given: x * 2)
    with pytest.raises(burn.ArgumentError, match=type(given).__name__):
        step(burn.tensor(X[0], device=burn.device(name)), given)


def test_values_and_functions_as_arguments(name: str) -> None:
    x = burn.ones(3, device=burn.device(name))
    step = burn.capture(lambda x, fn, scale, dtype=None: fn(x).to(dtype or x.dtype) * scale)
    for _ in range(7):
        assert step(x, F.relu, 2.0).tolist() == [2.0] * 3
        assert step(x, F.silu, 2.0).tolist() == (F.silu(x) * 2).tolist()
        assert step(x, F.relu, np.float32(3)).tolist() == [3.0] * 3
        assert step(x, F.relu, 2, dtype=burn.int32).dtype is burn.int32
    assert step.replays == 12


def test_copies_are_refused(name: str) -> None:
    step = burn.capture(len)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(burn.CaptureError, match="neither copied nor pickled"):
            copied(step)


def test_averages_that_warm_up_are_counted_and_replayed(name: str) -> None:
    def averaged(captured: bool) -> Any:
        device = burn.device(name).autodiff()
        burn.manual_seed(0)
        model, optimizer = nn.Linear(4, 2, device=device), optim.SGD(lr=0.1)
        ema = optim.EMA(model, 0.6, warmup=True)

        def train(x: Any) -> Any:
            loss = model(x).square().mean()
            optimizer.step(model, loss.backward(), flush=False)
            ema.update(model)
            return loss

        step: Any = train
        if captured:
            step = burn.capture(train, state=(model, optimizer, ema))
        losses = [step(burn.tensor(x, device=device.without_autodiff())).item() for x in X]
        assert not captured or step.replays == 10
        return losses, ema.updates, [t.tolist() for t in ema.step_tensors()]

    assert averaged(True) == averaged(False)


def test_threads_take_turns_where_something_is_changed(name: str) -> None:
    total = burn.zeros(3, device=burn.device(name))
    wrong: list[Any] = []

    def add(x: Any) -> Any:
        total[...] = total + x
        return total.sum()

    step = burn.capture(add, state=[total])

    def work() -> None:
        try:
            for _ in range(50):
                step(burn.ones(3, device=total.device))
        except burn.BurnError as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert total.tolist() == [200.0] * 3


def test_settings_may_change_while_the_step_is_taken_down(name: str) -> None:
    x, drop = burn.ones(64, device=burn.device(name).autodiff()), nn.Dropout(0.0)
    step = burn.capture(lambda x: drop(x), state=drop)
    for k in range(12):
        drop.p = 0.0 if k in (0, 1, 3, 5) else 1.0
        assert step(x).sum().item() == (64 if k in (0, 1, 3, 5) else 0)
    assert step.replays == 2


def test_a_state_in_another_order_is_read_anew(name: str) -> None:
    def trained(captured: bool) -> list[Any]:
        device = burn.device(name).autodiff()
        burn.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4, device=device), nn.Linear(4, 4, device=device))
        model[0].freeze()
        optimizer = optim.AdamW(lr=0.01)

        def train(x: Any) -> Any:
            loss = model(x).square().mean()
            optimizer.step(model, loss.backward())
            return loss

        step: Any = burn.capture(train, state=(model, optimizer)) if captured else train
        for k, x in enumerate(X * 3):
            if k == 3:
                model[0].unfreeze()
            if k == 20:  # now in the order of the model
                optimizer.load_state_dict(model, optimizer.state_dict(model))
            step(burn.tensor(x, device=device.without_autodiff()))
        assert not captured or step.replays > 20
        return [p.tolist() for p in model.parameters()]

    assert trained(True) == trained(False)


def test_lazy_parameters(name: str) -> None:
    device = burn.device(name).autodiff()
    model, optimizer = nn.LazyLinear(2, device=device), optim.SGD(lr=0.1)

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    step = burn.capture(train, state=(model, optimizer))
    for x in X:
        step(burn.tensor(x, device=device.without_autodiff()))
    assert step.replays == 10


def test_gradients_of_parts_are_summed_inside_a_step(name: str) -> None:
    def trained(captured: bool) -> list[Any]:
        device = burn.device(name).autodiff()
        burn.manual_seed(0)
        model, optimizer = nn.Linear(4, 2, device=device), optim.AdamW(lr=0.01)

        def train(x: Any) -> None:
            sums = optim.GradientAccumulator()
            for part in (x[:2], x[2:]):
                sums.add(model, model(part).square().mean().backward(), weight=part.shape[0])
            optimizer.step(model, sums.take())

        step: Any = burn.capture(train, state=(model, optimizer)) if captured else train
        for x in X:
            step(burn.tensor(x, device=device.without_autodiff()))
        assert not captured or step.replays == 10
        return [p.tolist() for p in model.parameters()]

    assert trained(True) == trained(False)


@pytest.mark.parametrize(("error", "times", "wanted"), [
    (MemoryError("full"), 1, None), (MemoryError("full"), 2, burn.ExecutionError),
    (ValueError("kernel"), 1, burn.ExecutionError), (burn.IndexRangeError("x", "y"), 1,
     burn.IndexRangeError),
])  # fmt: skip
def test_a_replay_that_fails_changes_nothing_and_says_so(
    name: str, error: Exception, times: int, wanted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = burn.zeros(3, device=burn.device(name))

    def add(x: Any) -> Any:
        total[...] = total + x
        return total.sum()

    step, x = burn.capture(add, state=[total]), burn.ones(3, device=total.device)
    for _ in range(6):
        step(x)
    recorder: Any = total.device.resource.backend.recorder
    real, left = type(recorder).function_of, [error] * times

    def failing(plan: Any) -> Any:
        def fail(*args: Any) -> Any:
            raise left.pop()

        return fail if left else real(recorder, plan)

    monkeypatch.setattr(recorder, "function_of", failing)
    monkeypatch.setattr(recorder, "watched", True)  # so that it is asked
    if wanted is None:
        step(x)
    else:
        with pytest.raises(wanted):
            step(x)
        assert total.tolist() == [6.0] * 3
        step(x)
    assert total.tolist() == [7.0] * 3


class Buffers(nn.Module):
    def __init__(self, device: Any) -> None:
        super().__init__()
        self.a, self.b = (
            nn.Buffer(burn.zeros(3, device=device)),
            nn.Buffer(burn.ones(3, device=device)),
        )
        self.last = nn.Buffer(burn.zeros(3, device=device))

    def forward(self, x: Any) -> Any:
        a, b = self.a.detach(), self.b.detach()
        self.a.set(b)
        self.b.set(a)
        self.last.set(x)
        return (self.a * 2 + x).sum()


def test_states_that_are_exchanged_or_take_an_argument(name: str) -> None:
    device = burn.device(name)

    def run(captured: bool) -> list[Any]:
        model = Buffers(device)
        step: Any = burn.capture(model, state=model) if captured else model
        found = []
        for k in range(9):
            found.append(step(burn.full((3,), float(k), device=device)).item())
            found.append([b.tolist() for b in model.buffers()])
        assert not captured or step.replays == 5
        return found

    assert run(True) == run(False)


def test_reads_in_the_background_and_seeds_inside_are_refused(name: str) -> None:
    device = burn.device(name)
    x = burn.ones(3, device=device)
    with pytest.raises(burn.CaptureError, match="reads nothing on the host"):
        step = burn.capture(lambda x: (x * 2, burn.read_async(x.sum()).result())[0])
        for _ in range(4):
            step(x)

    def seeded(x: Any) -> Any:
        device.seed(3)
        return burn.rand(3, device=device) + x

    step = burn.capture(seeded)
    with pytest.raises(burn.CaptureError, match="Seed outside"):
        for _ in range(6):
            step(x)


# An interrupt in a destructor is told and not raised.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer that interrupts")
def test_an_interrupt_leaves_all_of_a_step_or_nothing(name: str) -> None:
    device = burn.device(name)
    state = [burn.zeros(2, device=device) for _ in range(9)]

    def count() -> None:
        for t in state:
            t[...] = t + 1

    step = burn.capture(count, state=state)
    for _ in range(6):
        step()
    armed = [False]

    def interrupted(number: int, frame: Any) -> None:
        if armed[0]:
            armed[0] = False
            raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupted)
    caught = 0
    try:
        for k in range(200):
            try:
                armed[0] = True
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + 7 * k % 97))
                for _ in range(400):
                    step()
                armed[0] = False
            except KeyboardInterrupt:
                caught += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert len({x for t in state for x in t.tolist()}) == 1, k
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert caught > 100
