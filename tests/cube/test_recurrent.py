"""Recurrent layers on the cpu: all widths of vectors, replays and captures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn_cube_backend import replay
from burn_cube_backend.kernels import recurrent as kernels, recurrent_weights as weights
from burn_cube_backend.memory_plan import arranged

F = burn.functional
CELLS = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
REGISTERS = kernels.registers()


def layer(place: str, cell: str, sizes: tuple[int, int, int, int], reverse: bool, ends: Any) -> Any:
    """Return outputs and gradients of a layer."""
    count, batch, inputs, hidden = sizes
    dice, device = np.random.default_rng(5), burn.device(place).autodiff()
    rows = CELLS[cell] * hidden

    def leaf(*shape: int, scale: float = 1.0) -> Any:
        values = dice.standard_normal(shape) * scale
        return burn.tensor(values.astype(np.float32), device=device).require_grad()

    small = 0.5 / hidden**0.5
    x, h, c = leaf(batch, count, inputs), leaf(batch, hidden), leaf(batch, hidden)
    weights = [leaf(rows, inputs, scale=0.3), leaf(rows, hidden, scale=small)]
    biases = [leaf(rows, scale=0.2), leaf(rows, scale=0.2)]
    lengths = None if ends is None else burn.tensor(ends, device=device.without_autodiff())
    start = c if cell == "lstm" else None
    # A transposed view: steps of the memory lie apart.
    out, last, cells = F.recurrent(
        x.transpose(0, 1), h, start, *weights, *biases, lengths, cell, reverse
    )
    loss = (out * out).sum() + (last * last * last).sum()
    leaves = [x, h, *weights, *biases]
    if cells is not None:
        loss, leaves = loss + (cells * cells * cells).sum(), [*leaves, c]
    grads = loss.backward()
    made = [out, last, *([] if cells is None else [cells]), *(t.grad(grads) for t in leaves)]
    return [t.numpy() for t in made]


@pytest.mark.parametrize("registers", sorted({REGISTERS, (32, 2), (16, 3)}))
@pytest.mark.parametrize("cell", CELLS)
def test_tiles_of_all_widths(
    cell: str, registers: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "registers", lambda: registers)
    for hidden, batch, reverse in ((1, 1, False), (5, 3, True), (20, 7, False), (70, 13, True)):
        for ends in (None, [1 + k % 4 for k in range(batch)]):
            sizes = (4, batch, 3, hidden)
            expected = layer("flex", cell, sizes, reverse, ends)
            for a, b in zip(layer("eager-cpu", cell, sizes, reverse, ends), expected, strict=True):
                assert np.abs(a - b).max() <= 2e-5 * max(1.0, np.abs(b).max())


# Several pieces of steps, tiles that begin earlier, rows of their own for every thread and too few.
@pytest.mark.parametrize("registers", sorted({REGISTERS, (32, 2)}))
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn_tanh"])
def test_long_sequences(
    cell: str, registers: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (kernels, weights):
        monkeypatch.setattr(module, "registers", lambda: registers)
    for batch, ends in ((26, None), (3, [67, 1, 130])):
        for reverse in (False, True):
            sizes = (67, batch, 70, 45)
            expected = layer("flex", cell, sizes, reverse, ends)
            for a, b in zip(layer("eager-cpu", cell, sizes, reverse, ends), expected, strict=True):
                assert np.abs(a - b).max() <= 2e-5 * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("frozen", [(0,), (1,), (0, 1), (2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_weights_that_want_no_gradient(cell: str, frozen: tuple[int, ...]) -> None:
    dice, rows = np.random.default_rng(2), CELLS[cell] * 6
    shapes = [(rows, 5), (rows, 6), (rows,), (rows,)]
    arrays = [dice.standard_normal(s).astype(np.float32) * 0.3 for s in shapes]
    x, h = (dice.standard_normal(s).astype(np.float32) for s in ((9, 4, 5), (4, 6)))
    made = []
    for place, still in (("eager-cpu", frozen), ("flex", ())):
        device = burn.device(place).autodiff()
        plain = device.without_autodiff()
        given = [
            burn.tensor(a, device=plain) if k in still else
            burn.tensor(a, device=device).require_grad() for k, a in enumerate(arrays)
        ]  # fmt: skip
        start = burn.tensor(h, device=device).require_grad()
        cells = start if cell == "lstm" else None
        out, _, _ = F.recurrent(burn.tensor(x, device=plain), start, cells, *given, cell=cell)
        grads = (out * out).sum().backward()
        wanted = [t for k, t in enumerate(given) if k not in frozen]
        made.append([t.grad(grads).numpy() for t in (start, *wanted)])
    for a, b in zip(*made, strict=True):
        assert np.abs(a - b).max() <= 2e-5 * max(1.0, np.abs(b).max())


class Last(nn.Module):  # type: ignore[misc]
    """Two recurrent layers and a head over the last step."""

    def __init__(self, cls: Any, hidden: int, device: Any) -> None:
        super().__init__()
        more = {"num_layers": 2, "bidirectional": True, "batch_first": True, "device": device}
        self.cell = cls(6, hidden, **more)
        self.head = nn.Linear(2 * hidden, 3, device=device)

    def forward(self, x: Any) -> Any:
        return self.head(self.cell(x)[0][:, -1])


def trained(place: str, cls: Any, hidden: int, captured: bool) -> list[np.ndarray[Any, Any]]:
    """Return the parameters after 20 steps."""
    device = burn.device(place).autodiff()
    burn.manual_seed(0)
    model, dice = Last(cls, hidden, device), np.random.default_rng(1)
    for p in model.parameters():
        p.set(burn.tensor(dice.standard_normal(p.shape).astype(np.float32) * 0.2, device=device))
    optimizer = optim.Adam(lr=1e-2)

    def step(x: Any, y: Any) -> None:
        optimizer.step(model, F.cross_entropy(model(x), y).backward())

    fn = burn.capture(step, state=(model, optimizer)) if captured else step
    for _ in range(20):
        x = dice.standard_normal((4, 5, 6)).astype(np.float32)
        plain = device.without_autodiff()
        fn(burn.tensor(x, device=plain), burn.tensor(dice.integers(0, 3, 4), device=plain))
    return [p.numpy() for p in model.parameters()]


# Tiles of 32 lanes compute none of them twice, so that gradients of gates take the place of gates.
@pytest.mark.parametrize("hidden", [20, 32])
@pytest.mark.parametrize("cls", [nn.LSTM, nn.GRU, nn.RNN])
def test_steps_are_the_same_at_once_recorded_and_captured(
    cls: Any, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = trained("eager-cpu", cls, hidden, False)
    met: list[bool] = []

    def noted(blocks: Any, results: Any, wishes: Any, *more: Any) -> Any:
        made = arranged(blocks, results, wishes, *more)
        met.extend(made.places[w.out] == made.places[w.x] for w in wishes if w.more)
        return made

    monkeypatch.setattr(replay, "arranged", noted)
    for captured in (False, True):
        for a, b in zip(trained("cpu", cls, hidden, captured), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert any(met) == (cls is nn.LSTM and hidden == 32)


def test_lengths_may_be_a_part_of_others() -> None:
    device = burn.device("cpu")
    layer = burn.nn.GRU(2, 2, device=device)
    x = burn.tensor(
        np.random.default_rng(5).standard_normal((4, 2, 2)).astype(np.float32), device=device
    )
    whole = burn.tensor(np.array([4, 4, 1, 2]), device=device)
    alone = burn.tensor(np.array([1, 2]), device=device)
    found, want = (layer(x, lengths=n)[0].numpy() for n in (whole[2:4], alone))
    assert found.tobytes() == want.tobytes()
