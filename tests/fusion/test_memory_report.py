"""`burn.memory_report()`: who holds memory; an index fault is told once in every mode."""

from __future__ import annotations

import itertools

import pytest

import burn
from burn import nn, optim
from burn_core import memory

_INDICES = itertools.count(900)


@pytest.fixture(params=["flex", "fusion-flex", "cpu", "fusion-cpu"])
def device(request: pytest.FixtureRequest) -> burn.Device:
    """A resource of its own."""
    return burn.device(f"{request.param}:{next(_INDICES)}")


def test_holders_of_a_training(device):
    model = nn.Sequential(nn.Linear(100, 50, device=device.autodiff()), nn.Tanh())
    optimizer = optim.Adam(lr=0.1)
    batch = burn.ones(64, 100, device=device)
    optimizer.step(model, model(batch).square().mean().backward())
    lists = {"kept": [burn.ones(1000, device=device) * 2]}
    (use,) = burn.memory_report(device)
    by_name = {h.name.split(" ")[0]: h for h in use.holders}
    assert by_name["model.0.weight"].kind == "parameter"
    assert by_name["batch"].kind == "tensor"
    assert use.of("optimizer") >= 2 * 4 * 5050
    assert by_name["batch"].name == "batch in test_holders_of_a_training"
    assert by_name["model.0.weight"].bytes >= 4 * 5000
    assert use.in_use >= 4 * (5050 * 3 + 6400)
    sizes = [h.bytes for h in use.holders]
    assert sizes == sorted(sizes, reverse=True)
    assert "model.0.weight" in str(use) and use.device == device.name
    if "cpu" in device.name:
        assert use.peak >= use.in_use and use.reserved >= use.in_use
    else:
        assert use.peak is None
    del lists


def test_saved_values_and_gradients_with_their_lines(device):
    x = burn.ones(500, 4, device=device.autodiff()).require_grad()
    device.sync()
    with burn.profile():
        y = (x * 3).exp().sum()
        device.flush()
    (use,) = burn.memory_report(device)
    saved = [h for h in use.holders if h.kind == "saved"]
    assert "exp" in {h.name for h in saved}
    assert all("test_memory_report.py" in str(h.place) for h in saved)
    grads = y.backward()
    (use,) = burn.memory_report(device)
    assert use.of("gradient") >= 8000
    assert use.of("saved") == 0
    del grads


def test_a_view_is_counted_once(device):
    x = burn.ones(1000, device=device)
    device.sync()
    y = x[10:20]
    device.flush()
    (use,) = burn.memory_report(device)
    assert use.of("tensor") == pytest.approx(4000, abs=300)
    assert y.shape == (10,)


def test_the_pool_names_the_rest():
    device = burn.device("cpu")
    holder = [[burn.ones(5000, device=device) * 2]]
    payload = holder[0][0].v
    del holder
    (use,) = burn.memory_report(device)
    assert any(h.kind == "pool" and h.bytes >= 20000 for h in use.holders)
    del payload


def test_all_devices_and_empty_ones():
    device = burn.device(f"flex:{next(_INDICES)}")
    assert device.name not in [u.device for u in burn.memory_report()]
    x = burn.ones(10, device=device)
    report = burn.memory_report(top=1)
    assert device.name in [u.device for u in report]
    assert device.name in str(report)
    assert x.shape == (10,)


@pytest.mark.parametrize("mode", ["on", "off", "check"])
def test_an_index_fault_is_told_once(mode, monkeypatch):
    monkeypatch.setenv("BURN_FUSION", mode)
    device = burn.device("fusion-cpu")
    x = burn.ones(4, 3, device=device)
    index = burn.tensor([1, 9], device=device)
    device.flush()
    y = x.index_select(0, index) + {"on": 1, "off": 2, "check": 3}[mode]
    with pytest.raises(burn.IndexRangeError):
        y.numpy()
    assert y.numpy().shape == (2, 3)
    device.sync()
    assert (x + 1).sum().item() == 24.0


def test_devices_by_name_and_wrong_counts():
    device = burn.device(f"flex:{next(_INDICES)}")
    x = burn.ones(10, device=device)
    (use,) = burn.memory_report(str(device.name))
    assert use.in_use >= 40 and x.shape == (10,)
    for top in (-1, "all", 1.5, True):
        with pytest.raises(burn.ArgumentError, match="top"):
            burn.memory_report(top=top)


def test_a_report_holds_nothing_that_others_are_making():
    """Another thread breaks where somebody holds a tuple that it is still making."""
    held = []

    def parts():
        for k in range(40):
            held.append(memory._alive())
            yield k

    assert tuple(parts()) == tuple(range(40))
    assert held[-1]


def test_frames_of_other_threads_are_not_walked(monkeypatch):
    monkeypatch.setattr(memory.sys, "_current_frames", None)
    x = burn.ones(64, device=burn.device(f"flex:{next(_INDICES)}"))
    (use,) = burn.memory_report(x.device)
    assert [h.name.split(" ")[0] for h in use.holders] == ["x"]
