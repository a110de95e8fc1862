"""Recurrent layers with clipped states, coupled gates, other activations, other orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_dispatch import Device
from burn_std import ArgumentError
from burn_tensor import functional as F

LENGTHS = [5, 2, 3]


@pytest.fixture(autouse=True)
def _seed() -> None:
    bt.manual_seed(3)


def near(a: Any, b: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=0, atol=tolerance)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def by_hand(net: Any, x: Any, step: Any) -> Any:
    """Run a step in float64 over [L, N, I]; return all hidden states."""
    w, u = net.weight_ih_l0.numpy().astype("f8"), net.weight_hh_l0.numpy().astype("f8")
    b, d = net.bias_ih_l0.numpy().astype("f8"), net.bias_hh_l0.numpy().astype("f8")
    state = (np.zeros((x.shape[1], net.hidden_size)),) * 2
    outs = []
    for row in x.numpy().astype("f8"):
        state = step(row @ w.T + b, state, u, d)
        outs.append(state[0])
    return np.stack(outs)


SAME: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {"nonlinearity": F.tanh}),
    ("RNN", {"nonlinearity": F.relu}),
    ("RNN", {"clip": 100.0}),
    ("GRU", {"gate_activation": F.sigmoid, "hidden_activation": nn.Tanh()}),
    ("GRU", {"clip": 100.0}),
    ("LSTM", {"gate_activation": F.sigmoid}),
    ("LSTM", {"cell_activation": F.tanh, "hidden_activation": F.tanh}),
    ("LSTM", {"clip": 100.0, "proj_size": 2}),
]


@pytest.mark.parametrize(("cls", "options"), SAME)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_options_that_say_the_usual_change_nothing(
    cls: str, options: dict[str, Any], bidirectional: bool, tracking: Device
) -> None:
    kept = {"proj_size": options["proj_size"]} if "proj_size" in options else {}
    if options.get("nonlinearity") is F.relu:
        kept = {"nonlinearity": "relu"}
    shape = {"num_layers": 2, "bidirectional": bidirectional, "batch_first": True}
    with tracking:
        usual = getattr(nn, cls)(3, 4, **shape, **kept)
        other = getattr(nn, cls)(3, 4, **shape, **options)
        other.load_state_dict(usual.state_dict())
        x = bt.randn(3, 5, 3)
    for lengths in (None, LENGTHS):
        results = [net(x, lengths=lengths) for net in (usual, other)]
        near(results[0][0], results[1][0])
        grads = [net[0].square().sum().backward() for net in results]
        for a, b in zip(usual.parameters(), other.parameters(), strict=True):
            near(a.grad(grads[0]), b.grad(grads[1]), 2e-5)


def test_lstm_with_coupled_gates_and_a_bound() -> None:
    net = nn.LSTM(3, 4, clip=0.25, input_forget=True, cell_activation="softsign",
                  hidden_activation=F.relu, gate_activation="hardsigmoid")  # fmt: skip
    net.map(lambda path, p: p * 3)
    x = bt.randn(6, 2, 3)

    def gate(v: Any) -> Any:
        return np.clip(v / 6 + 0.5, 0, 1)

    def step(share: Any, state: Any, u: Any, d: Any) -> Any:
        i, _, g, o = np.split(share + state[0] @ u.T + d, 4, -1)
        c = (1 - gate(i)) * state[1] + gate(i) * g / (1 + abs(g))
        c = np.clip(c, -0.25, 0.25)
        return gate(o) * np.maximum(c, 0), c

    output, (_, c) = net(x)
    want = by_hand(net, x, step)
    np.testing.assert_allclose(output.numpy(), want, atol=1e-6)
    assert c.abs().max().item() == 0.25


@pytest.mark.parametrize("reset_after", [True, False])
def test_gru_resets_before_or_after_its_product(reset_after: bool) -> None:
    net = nn.GRU(3, 4, reset_after=reset_after, clip=0.6, hidden_activation="softplus")
    net.map(lambda path, p: p * 2)
    x = bt.randn(6, 2, 3)

    def step(share: Any, state: Any, u: Any, d: Any) -> Any:
        h = state[0]
        (xr, xz, xn), own = np.split(share, 3, -1), np.split(h @ u.T + d, 3, -1)
        r, z = sigmoid(xr + own[0]), sigmoid(xz + own[1])
        inner = r * own[2] if reset_after else (r * h) @ u[8:].T + d[8:]
        n = np.log1p(np.exp(xn + inner))
        return (np.clip((1 - z) * n + z * h, -0.6, 0.6),)

    output, last = net(x)
    np.testing.assert_allclose(output.numpy(), by_hand(net, x, step), atol=2e-6)
    assert last.abs().max().item() == pytest.approx(0.6)


def test_rnn_with_another_activation_and_a_bound() -> None:
    net = nn.RNN(3, 4, nonlinearity="leaky_relu", clip=0.5)
    x = bt.randn(6, 2, 3)

    def step(share: Any, state: Any, u: Any, d: Any) -> Any:
        v = share + state[0] @ u.T + d
        return (np.clip(np.where(v > 0, v, 0.01 * v), -0.5, 0.5),)

    np.testing.assert_allclose(net(x)[0].numpy(), by_hand(net, x, step), atol=1e-6)


@pytest.mark.parametrize("cls", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("options", [{}, {"clip": 0.3}])
def test_a_layer_that_reads_backwards(cls: str, options: dict[str, Any]) -> None:
    there = getattr(nn, cls)(3, 4, num_layers=2, **options)
    back = getattr(nn, cls)(3, 4, num_layers=2, reverse=True, **options)
    back.load_state_dict(there.state_dict())
    x = bt.randn(5, 3, 3)
    near(there(x)[0], back(x.flip(0))[0].flip(0))
    # With lengths each sequence begins at its own end.
    padded = back(x, lengths=LENGTHS)[0]
    for k, n in enumerate(LENGTHS):
        near(padded[:n, k : k + 1], back(x[:n, k : k + 1])[0])


def test_options_stand_in_the_configuration_and_their_values_are_checked() -> None:
    net = nn.LSTM(3, 4, clip=1.0, input_forget=True, gate_activation="hardsigmoid", reverse=True)
    again = type(net.config()).from_json(net.config().to_json()).init()
    again.load_state_dict(net.state_dict())
    x = bt.randn(5, 2, 3)
    near(again(x)[0], net(x)[0], 0)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("LSTM", {"clip": 0}), ("GRU", {"clip": -1.0}), ("RNN", {"clip": float("nan")}),
        ("LSTM", {"cell_activation": "tan"}), ("GRU", {"gate_activation": 3}),
        ("RNN", {"nonlinearity": None}), ("LSTM", {"reverse": True, "bidirectional": True}),
    ]  # fmt: skip
    for cls, options in wrong:
        with pytest.raises(ArgumentError, match=cls):
            getattr(nn, cls)(3, 4, **options)
