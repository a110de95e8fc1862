"""What newcomers met: refusals speak of what was called, and say what to write."""

from __future__ import annotations

import pytest

import burn
from burn import nn, optim

RECORDING = burn.device("fusion-flex")


@pytest.mark.parametrize("name", ["float64", "bf16", "torch.int64", "bool"])
def test_the_name_of_a_dtype_is_no_dtype(name):
    x = burn.ones(2)
    with pytest.raises(burn.DTypeError) as said:
        x.to(name)
    assert said.value.op == "to" and said.value.remedy.startswith("Write burn.")
    for make in (burn.ones, burn.zeros, burn.rand, burn.empty):
        with pytest.raises(burn.DTypeError) as said:
            make(2, dtype=name)
        assert said.value.op in (make.__name__, "zeros")
        assert "..." not in said.value.remedy


def test_other_things_are_no_dtypes_either():
    for wrong in (3, float, "nonsense"):
        with pytest.raises(burn.DTypeError, match=r"burn\.float32, burn\.int64"):
            burn.ones(2, dtype=wrong)
    with pytest.raises(burn.BackendLoadError):
        burn.ones(2).to("nonsense")
    assert burn.ones(2).to("flex").device == burn.device("flex")


def test_explain_speaks_of_itself():
    x = burn.ones(2, device=RECORDING)
    for fn, args in (
        (lambda x: x + 1, [burn.ones(2, device="flex")]),
        (lambda: 3, []),
        (lambda x, y: x, [x, burn.ones(2, device="flex")]),
    ):
        with pytest.raises(burn.CaptureError) as said:
            burn.explain(fn, *args)
        assert said.value.op == "explain" and "state=" not in str(said.value)
    with pytest.raises(burn.CaptureError, match="a program that is explained reads nothing"):
        burn.explain(lambda x: x.sum().item(), x)
    with pytest.raises(burn.CaptureError, match="a program that is explained records all"):
        burn.explain(burn.no_fusion()(lambda x: x + 1), x)


@pytest.mark.parametrize("given", ["model", "optimizer"])
def test_capture_names_the_owner_of_a_state_that_was_not_given(given):
    model = nn.Linear(2, 1, device=RECORDING.autodiff())
    optimizer = optim.Adam(lr=0.1)

    def train(x):
        loss = model(x).square().mean()
        optimizer.step(model, loss.backward())
        return loss

    step = burn.capture(train, state=(model,) if given == "model" else (optimizer,))
    x = burn.ones(3, 2, device=RECORDING)
    with pytest.raises(burn.CaptureError) as said:
        for _ in range(5):
            step(x)
    owner = "the optimizer optimizer" if given == "model" else "model."
    assert owner in said.value.remedy and owner in str(said.value.got)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop])
def test_an_optimizer_holds_no_parameters(kind):
    model = nn.Linear(2, 1)
    for given in (model.parameters(), list(model.parameters()), model):
        for more in ({"lr": 0.1}, {}):
            with pytest.raises(burn.ArgumentError) as said:
                kind(given, **more)
            assert f"opt = {kind.__name__}(lr=...)" in said.value.remedy
    assert kind(0.1).lr == 0.1
