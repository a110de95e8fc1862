"""The tape behind real tensors: leaves, freeing, orders, checkpoints, depth, memory."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import burn
from burn import Device
from burn_testing.devices import another


def leaf(device: Device, values: object) -> burn.Tensor:
    """A marked leaf on the device's autodiff context."""
    return burn.tensor(values, device=device.autodiff()).require_grad()


@pytest.fixture(params=["flex", "fusion-flex"])
def device(request: pytest.FixtureRequest) -> Device:
    """Each backend of the foundation."""
    return burn.device(request.param)


def test_gradients_are_a_value_and_nothing_accumulates(device):
    x = leaf(device, [1.0, 2.0])
    first = (x * x).sum().backward()
    second = (x * 3).sum().backward()
    assert x.grad(first).tolist() == [2.0, 4.0]
    assert x.grad(second).tolist() == [3.0, 3.0]
    assert leaf(device, [1.0]).grad(first) is None


def test_a_graph_is_freed_by_its_backward(device):
    x = leaf(device, 3.0)
    y = x * x
    y.backward()
    with pytest.raises(burn.AutodiffError, match="retain_graph"):
        y.backward()
    z = x * x
    kept = z.backward(retain_graph=True)
    assert x.grad(kept).item() == x.grad(z.backward()).item() == 6.0


def test_orders_beyond_the_first(device):
    x = leaf(device, 2.0)
    y = x**4
    g1 = x.grad(y.backward(create_graph=True))
    g2 = x.grad(g1.backward(create_graph=True))
    g3 = x.grad(g2.backward())
    assert [g1.item(), g2.item(), g3.item()] == pytest.approx([32.0, 48.0, 48.0])


def test_a_cotangent_and_several_outputs(device):
    x = leaf(device, [1.0, 2.0])
    y = x * x
    g = y.backward(burn.tensor([1.0, 10.0], device=device))
    assert x.grad(g).tolist() == [2.0, 40.0]
    values, indices = leaf(device, [3.0, 1.0]).sort()
    assert not indices.is_tracked()
    ones = burn.ones(2, device=device)
    grads = burn.backward([values, x * 2], [ones, ones])
    assert x.grad(grads).tolist() == [2.0, 2.0]


def test_untracked_and_wrong_calls_say_why(device):
    x = burn.tensor([1.0], device=device)
    with pytest.raises(burn.AutodiffError):
        x.backward()
    with pytest.raises(burn.AutodiffError, match="cotangent"):
        (leaf(device, [1.0, 2.0]) * 2).backward()
    with pytest.raises(burn.AutodiffError, match="leaf"):
        (leaf(device, 1.0) * 2).require_grad()
    with pytest.raises(burn.AutodiffError, match="float"):
        burn.tensor([1], device=device.autodiff()).require_grad()


def test_no_grad_is_a_scope_of_this_thread(device):
    x = leaf(device, 2.0)
    inside, outside = threading.Event(), threading.Event()
    seen: list[bool] = []

    def other() -> None:
        inside.wait()
        seen.append((x * x).is_tracked())
        outside.set()

    thread = threading.Thread(target=other)
    thread.start()
    with burn.no_grad():
        assert not (x * x).is_tracked()
        inside.set()
        outside.wait()
        with burn.enable_grad():
            assert (x * x).is_tracked()
    thread.join()
    assert seen == [True]
    assert (x * x).is_tracked()


def test_detach_and_constants(device):
    x, plain = leaf(device, [2.0]), burn.tensor([5.0], device=device)
    g = (x.detach() * x * plain + plain * x).sum().backward()
    assert x.grad(g).tolist() == [15.0]


def test_a_long_chain_needs_no_recursion(device):
    x = leaf(device, 1.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    assert x.grad(y.backward()).item() == 1.0
    y = x
    for _ in range(100_000):
        y = y + 1.0
    del y


def test_nodes_go_without_the_collector(device):
    from burn_autodiff import Node

    def live() -> int:
        return sum(isinstance(o, Node) for o in gc.get_objects())

    x = leaf(device, [1.0, 2.0])
    gc.collect()
    gc.disable()
    try:
        before = live()
        for _ in range(100):
            y = (x * x).exp().sum()
            y.backward()
            z = (x + 1).softmax(0).sum()
        del y, z
        assert live() == before
    finally:
        gc.enable()


def test_moves_between_resources_carry_the_gradient(device):
    other = another(device)
    x = leaf(device, [1.0, 2.0])
    y = (x.to_device(other) * 3).sum()
    assert y.device == other
    assert y.is_tracked()
    g = x.grad(y.backward())
    assert g.tolist() == [3.0, 3.0]
    assert g.device == device


# ---- checkpoints ---------------------------------------------------------------------------------


def test_checkpoint_recomputes_and_equals_the_plain_gradient(device):
    x, w = leaf(device, [1.0, 2.0]), leaf(device, [0.5, 0.25])
    calls: list[int] = []

    def block(t: burn.Tensor) -> burn.Tensor:
        calls.append(1)
        return (t * w).tanh() * t

    plain = block(x).sum().backward()
    calls.clear()
    y = burn.checkpoint(block, x).sum()
    assert len(calls) == 1
    g = y.backward()
    assert len(calls) == 2
    assert np.array_equal(x.grad(g).numpy(), x.grad(plain).numpy())
    assert np.array_equal(w.grad(g).numpy(), w.grad(plain).numpy())


def test_checkpoint_keeps_the_random_numbers_of_the_forward(device):
    x = leaf(device, [1.0] * 64)

    def block(t: burn.Tensor) -> burn.Tensor:
        return burn.functional.dropout(t, 0.5, True) * t

    out = burn.checkpoint(block, x)
    burn.functional.dropout(x, 0.5, True)
    mask = (out.numpy() != 0).astype(np.float32)
    assert np.array_equal(x.grad(out.sum().backward()).numpy(), mask * 4)


def test_checkpoint_in_second_order(device):
    x = leaf(device, 2.0)
    y = burn.checkpoint(lambda t: t**3, x)
    g = x.grad(y.backward(create_graph=True))
    assert g.item() == 12.0
    assert x.grad(g.backward()).item() == 12.0


def test_balanced_checkpointing_recomputes_each_value_at_most_once(device):
    plain = device.autodiff()
    saving = plain.gradient_checkpointing()
    assert saving.gradient_checkpointing_strategy() == "balanced"
    data = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

    def run(d: Device) -> tuple[burn.Tensor, burn.Tensor]:
        x = burn.tensor(data, device=d).require_grad()
        h = (x @ x.T).exp()
        y = (h * h.tanh() + h.sin()).sum()
        return x, y

    x, y = run(plain)
    want = x.grad(y.backward()).numpy()
    x, y = run(saving)
    nodes, stack = set(), [y.node]
    while stack:
        n = stack.pop()
        if n is not None and n not in nodes:
            nodes.add(n)
            stack += [p for p in n.parents if not isinstance(p, list)]
    recipes = [n.recipe for n in nodes if n.recipe is not None]
    assert np.array_equal(x.grad(y.backward()).numpy(), want)
    assert max(r.runs for r in recipes) == 1
    assert all(r.output is None for r in recipes)


def test_balanced_checkpointing_of_a_long_chain(device):
    d = device.autodiff().gradient_checkpointing()
    x = burn.tensor(1.0, device=d).require_grad()
    y = x
    for _ in range(3000):
        y = (y * 1.0).sin()
    assert np.isfinite(x.grad(y.backward()).item())


def test_strategies_do_not_mix(device):
    a = burn.tensor(1.0, device=device.autodiff()).require_grad()
    b = burn.tensor(1.0, device=device.autodiff().gradient_checkpointing()).require_grad()
    with pytest.raises(burn.DeviceError, match="strateg"):
        a * b
    with pytest.raises(burn.DeviceError, match="autodiff"):
        device.gradient_checkpointing()


def test_what_only_an_unwanted_gradient_reads_is_not_kept(device):
    x, constant = leaf(device, [1.0, 2.0]), burn.tensor([3.0, 4.0], device=device)
    y = (x * 2.0) * constant
    saved = y.node.saved
    assert saved[0] is None
    assert saved[1] is not None
    assert x.grad(y.sum().backward()).tolist() == [6.0, 8.0]
