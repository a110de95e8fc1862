"""Kernels, plans and steps that are made once and run again; fusion, tuning and replay."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import burn
from burn import functional as F, nn, optim


@pytest.fixture
def recorder(backend: str) -> Any:
    """The device under test, or the one that records before it."""
    device = burn.device(backend)
    if device.resource.backend.records:
        return device
    return burn.device(f"fusion-{backend.removeprefix('eager-')}")


def test_b63_results_of_replays_are_values_of_their_own(recorder: Any) -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            self.a = nn.Buffer(burn.zeros(3, device=recorder))

        def forward(self, x: burn.Tensor) -> burn.Tensor:
            self.a.set(self.a + x)
            return self.a

    counter = Counter()
    step, one = burn.capture(counter, state=counter), burn.ones(3, device=recorder)
    results = [step(one) for _ in range(10)]
    assert step.replays == 6
    assert [r.tolist() for r in results] == [[float(k)] * 3 for k in range(1, 11)]

    doubled = burn.capture(lambda x: x * 2)
    results = [doubled(one * k) for k in range(8)]
    assert [r.tolist() for r in results] == [[2.0 * k] * 3 for k in range(8)]


def test_b119_more_tensors_in_one_expression_than_a_kernel_takes(device: Any) -> None:
    rng = np.random.default_rng(0)
    for count in (40, 300):
        arrays = [rng.standard_normal((3, 5)).astype(np.float32) for _ in range(count)]
        total, parts = burn.zeros(3, 5, device=device), []
        expected, sums = np.zeros((3, 5), np.float32), []
        for k, a in enumerate(arrays):
            total = total + burn.tensor(a, device=device)
            expected = expected + a
            if k % 7 == 0:
                parts.append(total * 2)
                sums.append(expected * 2)
        np.testing.assert_array_equal(total.numpy(), expected)
        for found, wanted in zip(parts, sums, strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted)


class Block(nn.Module):
    """A layer of a transformer, by hand."""

    def __init__(self, size: int, device: Any) -> None:
        self.before, self.after = (
            nn.LayerNorm(size, device=device),
            nn.LayerNorm(size, device=device),
        )
        self.qkv = nn.Linear(size, 3 * size, device=device)
        self.out = nn.Linear(size, size, device=device)
        self.wide = nn.Linear(size, 2 * size, device=device)
        self.narrow = nn.Linear(2 * size, size, device=device)

    def forward(self, x: burn.Tensor) -> burn.Tensor:
        q, k, v = self.qkv(self.before(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.narrow(F.gelu(self.wide(self.after(x))))


def test_b120_a_transformer_trains_alike_with_and_without_fusion(recorder: Any) -> None:
    where = recorder.autodiff()
    rng = np.random.default_rng(0)
    text = burn.tensor(rng.integers(0, 11, (4, 13)), device=recorder)

    def losses(fused: bool) -> list[float]:
        burn.manual_seed(0)
        names = nn.Embedding(11, 16, device=where)
        model = nn.Sequential(
            names, Block(16, where), Block(16, where), nn.Linear(16, 11, device=where)
        )
        optimizer, out = optim.AdamW(lr=3e-3), []
        for _ in range(200):
            loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
            optimizer.step(model, loss.backward())
            out.append(loss.detach())
            if not fused:
                out[-1].item()
        return [x.item() for x in out]

    fused = losses(True)
    with burn.no_fusion():
        single = losses(False)
    assert fused[-1] < 0.2 * fused[0]
    assert fused == single


def test_b121_what_is_queued_owns_its_inputs(recorder: Any) -> None:
    for _ in range(20):
        held = [burn.ones(100, device=recorder) * k for k in range(50)]
        made = [x + 1 for x in held]

        def let_go(held: list[Any] = held) -> None:
            held.clear()
            gc.collect()
            burn.zeros(100, device=recorder).sum().item()

        thread = threading.Thread(target=let_go)
        thread.start()
        made = [x * 2 for x in made]
        thread.join()
        assert [x[0].item() for x in made] == [2.0 * (k + 1) for k in range(50)]


def guarded(a: np.ndarray, device: Any) -> burn.Tensor:
    """Return a matrix that lies between NaN."""
    wide = np.full((a.shape[0] + 6, a.shape[1] + 8), np.nan, a.dtype)
    wide[3:-3, 4:-4] = a
    return burn.tensor(wide, device=device)[3:-3, 4:-4]


def test_b124_products_read_nothing_beyond_their_operands(device: Any) -> None:
    rng = np.random.default_rng(0)
    sizes = [(9, k, 13) for k in range(1, 131)] + [(512, 104, 208), (70, 104, 33)]
    for m, k, n in sizes:
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        exact = a.astype(np.float64) @ b
        for x, y in (
            (guarded(a, device), guarded(b, device)),
            (guarded(a.T.copy(), device).T, guarded(b.T.copy(), device).T),
        ):
            np.testing.assert_allclose((x @ y).numpy(), exact, 1e-4, 1e-4, err_msg=f"{m, k, n}")


def test_b125_products_of_small_values_are_as_exact_as_others(device: Any) -> None:
    rng = np.random.default_rng(0)
    for m, k, n in ((1, 48, 64), (33, 257, 65), (128, 1024, 128)):
        a, b = ((1e-7 * rng.standard_normal(s)).astype(np.float32) for s in ((m, k), (k, n)))
        found = (burn.tensor(a, device=device) @ burn.tensor(b, device=device)).numpy()
        bound = np.finfo(np.float32).eps * np.sqrt(k) * abs(a).max() * abs(b).max() * 4
        assert np.abs(found - a.astype(np.float64) @ b).max() <= bound


def test_b127_two_thousand_lengths_make_few_plans(recorder: Any) -> None:
    def run(n: int) -> float:
        x = burn.ones(n, device=recorder)
        return float(((x * 2 + 1).tanh() * x).sum().item())

    for n in (1, 2, 3):
        run(n)
    before = recorder.resource.backend.report()["plans"]
    for n in range(1, 2001):
        assert run(n) == pytest.approx(n * np.tanh(3.0), rel=1e-5)
    assert recorder.resource.backend.report()["plans"] - before <= 2


@pytest.mark.parametrize("batch", [0, 1, 2, 3, 5, 7])
def test_b128_layers_of_tiny_extents(device: Any, batch: int) -> None:
    rng = np.random.default_rng(batch)
    for inner in (0, 1, 2, 3, 5, 7):
        for outer in (1, 2, 3, 5, 7):
            x = rng.standard_normal((batch, inner)).astype(np.float32)
            v, w = (rng.standard_normal(s).astype(np.float32) for s in ((outer, inner), (1, outer)))
            given = [burn.tensor(a, device=device) for a in (x, v, w)]
            found = F.linear(F.linear(given[0], given[1]), given[2])
            np.testing.assert_allclose(found.numpy(), x @ v.T @ w.T, 1e-4, 1e-5)


def test_b129_two_powers_in_one_kernel(device: Any) -> None:
    x = burn.tensor([0.5, 1.5, 2.0], device=device)
    y = burn.tensor([2.0, -1.0, 0.5], device=device)
    found = x**2.5 + x**y + 3.0**y + (x + 1) ** 2 + x.double() ** 1.5
    a, b = x.numpy().astype(np.float64), y.numpy().astype(np.float64)
    np.testing.assert_allclose(found.numpy(), a**2.5 + a**b + 3.0**b + (a + 1) ** 2 + a**1.5, 1e-6)


def test_b130_extremes_of_every_length(device: Any) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal(1025).astype(np.float32)
    x = burn.tensor(a, device=device)
    pairs = [(x[:n].amin(), x[-n:].amax(), x[:n].argmax()) for n in range(1, 1026)]
    for n, (low, high, at) in enumerate(pairs, 1):
        assert low.item() == a[:n].min()
        assert high.item() == a[-n:].max()
        assert at.item() == a[:n].argmax()


def test_b135_a_step_between_other_work_and_after_a_weight_was_replaced(recorder: Any) -> None:
    where = recorder.autodiff()
    runs = []
    for captured in (False, True):
        burn.manual_seed(0)
        model, optimizer = nn.Linear(3, 2, device=where), optim.AdamW(lr=0.1)

        def train(x: burn.Tensor, model: Any = model, optimizer: Any = optimizer) -> burn.Tensor:
            loss = (model(x) - 1).square().mean()
            optimizer.step(model, loss.backward())
            return loss

        step = burn.capture(train, state=(model, optimizer)) if captured else train
        losses = []
        for k in range(16):
            losses.append(step(burn.full((4, 3), 0.1 * k, device=recorder)))
            # Other work takes and gives back memory between the steps.
            (burn.ones(4, 3, device=recorder) * k).sum().item()
            if k == 9:
                model.weight = nn.Parameter(burn.ones(2, 3, device=where))
            if k == 12:
                model.bias.set(burn.zeros(2, device=where))
        runs.append([x.item() for x in losses] + model.weight.flatten().tolist())
        assert not captured or step.replays >= 4
    assert runs[0] == runs[1]
