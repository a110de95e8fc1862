"""`burn.capture`: replays are the steps they stand for, bit for bit; what cannot be one says so."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim

F = burn.functional
RNG = np.random.default_rng(0)
DATA = [(RNG.standard_normal((8, 6)).astype(np.float32), RNG.integers(0, 3, 8)) for _ in range(25)]


@pytest.fixture(params=["fusion-flex", "cpu"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Net(nn.Module):
    def __init__(self, device: Any) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 16, device=device), nn.Linear(16, 3, device=device)
        self.norm, self.drop = nn.BatchNorm1d(16, device=device), nn.Dropout(0.2)

    def forward(self, x: Any) -> Any:
        return self.b(self.drop(F.relu(self.norm(self.a(x)))))


def training(name: str, captured: bool, schedule: Any) -> dict[str, Any]:
    device = burn.device(name).autodiff()
    device.seed(4)
    burn.manual_seed(4)
    model, optimizer, rates = Net(device), optim.AdamW(lr=0.01), schedule()

    def train(x: Any, y: Any) -> Any:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.step(model, loss.backward(), lr=rates.lr)
        rates.step()
        return {"loss": loss, "right": (out.argmax(-1) == y).sum()}

    step: Any = burn.capture(train, state=[model, optimizer, rates]) if captured else train
    plain = device.without_autodiff()
    rows = []
    for x, y in DATA:
        out = step(burn.tensor(x, device=plain), burn.tensor(y, device=plain))
        rows.append((out["loss"].item(), out["right"].item()))
    state = {k: v.numpy() for k, v in model.state_dict().items()}
    state |= {k: v.numpy() for k, v in optimizer.state_dict(model).items()}
    draw = burn.rand(3, device=plain).tolist()
    replays = step.replays if captured else 0
    return {"rows": rows, "state": state, "position": rates.position, "draw": draw,
            "replays": replays}  # fmt: skip


SCHEDULES = {
    "exponential": lambda: optim.lr_scheduler.ExponentialLR(0.01, gamma=0.9),
    "steps": lambda: optim.lr_scheduler.StepLR(0.01, step_size=6, gamma=0.5),
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_training_step_with_statistics_random_numbers_and_a_rate(name: str, kind: str) -> None:
    expected = training(name, False, SCHEDULES[kind])
    found = training(name, True, SCHEDULES[kind])
    assert found.pop("replays") >= 10
    expected.pop("replays")
    states = found.pop("state"), expected.pop("state")
    assert found == expected
    assert states[0].keys() == states[1].keys()
    for key, value in states[1].items():
        assert np.array_equal(states[0][key], value), key


def test_other_shapes_are_other_steps(name: str) -> None:
    device = burn.device(name)
    step = burn.capture(lambda x: (x * 2 + 1).sum())
    for k in range(8):
        for n in (3, 5):
            assert step(burn.full((n,), float(k), device=device)).item() == n * (2 * k + 1)
    assert step.replays == 8


def test_results_and_snapshots_never_change_under_a_replay(name: str) -> None:
    device = burn.device(name).autodiff()
    model, optimizer = nn.Linear(4, 4, device=device), optim.SGD(lr=0.05)

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    step = burn.capture(train, state=(model, optimizer))
    x = burn.ones(2, 4, device=device.without_autodiff())
    kept = []
    for _ in range(12):
        out = step(x)
        snapshot = model.state_dict()["weight"]
        kept.append((out, out.numpy().copy(), snapshot, snapshot.numpy().copy()))
    for out, value, snapshot, weight in kept:
        assert np.array_equal(out.numpy(), value)
        assert np.array_equal(snapshot.numpy(), weight)
    losses = [v.item() for _, v, _, _ in kept]
    assert losses == sorted(losses, reverse=True)


def test_inference_twins_follow_a_replay(name: str) -> None:
    device = burn.device(name).autodiff()
    model, optimizer = nn.Linear(2, 1, device=device), optim.SGD(lr=0.1)
    served = model.valid()
    x = burn.ones(3, 2, device=device.without_autodiff())

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    step = burn.capture(train, state=(model, optimizer))
    for _ in range(8):
        step(x)
        assert np.array_equal(served(x).numpy(), model(x).numpy())


def test_tensors_as_state(name: str) -> None:
    total = burn.zeros(3, device=burn.device(name))

    def add(x: Any) -> Any:
        total[...] = total + x
        return total.sum()

    step = burn.capture(add, state=[total])
    found = [step(burn.full((3,), float(k), device=total.device)).item() for k in range(9)]
    assert found == [3.0 * sum(range(k + 1)) for k in range(9)]
    assert step.replays == 5


def test_results_are_old_values_arguments_and_other_things_too(name: str) -> None:
    total = burn.zeros(3, device=burn.device(name))
    constant = burn.ones(3, device=total.device)

    def add(x: Any) -> Any:
        before = total.detach()
        total[...] = total + x
        return {"before": before, "given": [x, "x"], "now": (total.detach(), constant, None)}

    step = burn.capture(add, state=[total])
    for k in range(9):
        x = burn.full((3,), float(k), device=total.device)
        out = step(x)
        assert out["before"].tolist() == [float(sum(range(k)))] * 3
        assert out["given"][0].tolist() == x.tolist()
        assert out["given"][1] == "x"
        now, same, nothing = out["now"]
        assert now.tolist() == [float(sum(range(k + 1)))] * 3
        assert same.tolist() == [1.0] * 3
        assert nothing is None
    assert step.replays == 5


def calls(step: Any, *args: Any) -> None:
    for _ in range(8):
        step(*args)


def test_a_read_inside(name: str) -> None:
    x = burn.ones(3, device=burn.device(name))

    def read(x: Any) -> Any:
        return x * x.sum().item()

    with pytest.raises(burn.CaptureError, match="reads nothing on the host"):
        calls(burn.capture(read), x)
    assert (x * 2).tolist() == [2, 2, 2]


def test_a_size_that_depends_on_data(name: str) -> None:
    x = burn.tensor([0.0, 1.0, 2.0], device=burn.device(name))
    with pytest.raises(burn.CaptureError, match="static form"):
        calls(burn.capture(lambda x: x.nonzero()), x)


def test_a_number_that_changes(name: str) -> None:
    x, count = burn.ones(3, device=burn.device(name)), [0.0]

    def scale(x: Any) -> Any:
        count[0] += 1
        return x * count[0] + 1

    with pytest.raises(burn.CaptureError, match="changes from call to call"):
        calls(burn.capture(scale), x)


def test_a_value_that_escapes(name: str) -> None:
    x, kept = burn.ones(3, device=burn.device(name)), []

    def keep(x: Any) -> Any:
        y = x * 2
        kept.append(y)
        return y.sum()

    with pytest.raises(burn.CaptureError, match="escapes"):
        calls(burn.capture(keep), x)


def test_a_tensor_made_from_host_data(name: str) -> None:
    device = burn.device(name)
    x = burn.ones(3, device=device)

    def fresh(x: Any) -> Any:
        return x + burn.tensor([1.0, 2.0, 3.0], device=device)

    with pytest.raises(burn.CaptureError, match="made anew"):
        calls(burn.capture(fresh), x)


def test_a_state_that_was_not_given(name: str) -> None:
    device = burn.device(name).autodiff()
    model, optimizer = nn.Linear(2, 1, device=device), optim.SGD(lr=0.1)

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    with pytest.raises(burn.CaptureError, match="state="):
        calls(burn.capture(train, state=[optimizer]), burn.ones(1, 2, device=device))


def test_a_branch_on_a_python_value(name: str) -> None:
    x, count = burn.ones(3, device=burn.device(name)), [0]

    def turn(x: Any) -> Any:
        count[0] += 1
        return x.exp() if count[0] % 2 else x.sin()

    with pytest.raises(burn.CaptureError, match="the same operations"):
        calls(burn.capture(turn), x)


def test_a_python_value_that_is_returned(name: str) -> None:
    x, count = burn.ones(3, device=burn.device(name)), [0]

    def counting(x: Any) -> Any:
        count[0] += 1
        return x + 1, count[0]

    with pytest.raises(burn.CaptureError, match="same Python values"):
        calls(burn.capture(counting), x)


def test_devices_that_record_nothing_and_states_that_are_none() -> None:
    with pytest.raises(burn.CaptureError, match="fusion-flex"):
        burn.capture(lambda x: x + 1)(burn.ones(2, device=burn.device("flex")))
    with pytest.raises(burn.ArgumentError, match="got str"):
        burn.capture(lambda x: x, state=["model"])
    with pytest.raises(burn.CaptureError, match="one device"):
        burn.capture(lambda: None)()


def test_memory_stays_flat(name: str) -> None:
    device = burn.device(name).autodiff()
    model, optimizer = nn.Linear(32, 32, device=device), optim.Adam(lr=1e-3)

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    step = burn.capture(train, state=(model, optimizer))
    x = burn.ones(4, 32, device=device.without_autodiff())
    calls(step, x)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(500):
        step(x)
    gc.collect()
    assert len(gc.get_objects()) <= before + 50
    assert step.replays == 504


def test_a_model_that_moved_away(name: str) -> None:
    device = burn.device(name)
    model = nn.Linear(2, 1, device=device)
    step = burn.capture(lambda x: model(x), state=model)
    x = burn.ones(3, 2, device=device)
    calls(step, x)
    model.to_device(burn.device("flex"))
    with pytest.raises(burn.CaptureError, match="stays on its device"):
        step(x)


def test_one_tensor_as_two_arguments(name: str) -> None:
    device = burn.device(name)
    x, y = burn.full((3,), 2.0, device=device), burn.full((3,), 5.0, device=device)
    step = burn.capture(lambda a, b: a * 10 + b)
    calls(step, x, x)
    assert step(x, x).tolist() == [22.0] * 3
    for _ in range(8):
        assert step(x, y).tolist() == [25.0] * 3
        assert step(y, x).tolist() == [52.0] * 3
        assert step(y, y).tolist() == [55.0] * 3


def test_a_tensor_of_the_state_as_an_argument(name: str) -> None:
    total = burn.ones(3, device=burn.device(name))
    with pytest.raises(burn.CaptureError, match="different tensors"):
        calls(burn.capture(lambda x: x + 1, state=[total]), total)


class Scaled(nn.Module):
    def __init__(self, device: Any) -> None:
        super().__init__()
        self.weight, self.act, self.k = nn.Parameter(burn.ones(4, device=device)), "exp", 1.0
        self.parts = [nn.Linear(4, 4, device=device)]

    def forward(self, x: Any) -> Any:
        return getattr(self.parts[0](x * self.weight), self.act)() * self.k


def test_modules_that_are_changed_between_calls(name: str) -> None:
    device = burn.device(name).autodiff()
    model = Scaled(device)
    optimizer = optim.SGD(lr=0.01)
    x = burn.full((2, 4), 0.5, device=device.without_autodiff())

    def train(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    step = burn.capture(train, state=(model, optimizer))

    def check() -> None:
        for _ in range(7):
            expected = model(x).square().mean().item()
            assert step(x).item() == expected

    check()
    for change in (
        lambda: setattr(model, "act", "tanh"),
        lambda: setattr(model, "k", 2.0),
        lambda: setattr(model, "weight", nn.Parameter(burn.full((4,), 3.0, device=device))),
        lambda: model.parts.__setitem__(0, nn.Linear(4, 4, device=device)),
    ):
        before = step.replays
        change()
        check()
        assert step.replays == before + 3


@pytest.mark.parametrize("kind", ["bfloat16", "float64"])
@pytest.mark.parametrize("part", ["all", "a"])
def test_a_model_of_another_dtype_is_captured_anew(name: str, kind: str, part: str) -> None:
    device = burn.device(name).autodiff()
    losses: dict[bool, list[float]] = {}
    for captured in (True, False):
        burn.manual_seed(4)
        model, optimizer = nn.Sequential(nn.Linear(6, 6, device=device)), optim.SGD(lr=0.1)
        x = burn.tensor(DATA[0][0], device=device)

        def train(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            loss = model(x).square().mean()
            optimizer.step(model, loss.backward())
            return loss

        step = burn.capture(train, state=(model, optimizer)) if captured else train
        found = [step(x).item() for _ in range(8)]
        (model if part == "all" else model[0]).to_dtype(getattr(burn, kind))
        found += [step(x).item() for _ in range(8)]
        assert model[0].weight.dtype is getattr(burn, kind)
        losses[captured] = found
    assert losses[True] == losses[False]
