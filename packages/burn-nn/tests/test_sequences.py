"""Recurrent nets, attention, transformers, caches and positions."""

from __future__ import annotations

from typing import Any

import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_dispatch import Device
from burn_std import ArgumentError, ShapeError


@pytest.fixture(autouse=True)
def _seed() -> None:
    bt.manual_seed(1)


def near(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    return bool((a.detach() - b.detach()).abs().max().item() < tolerance)


def test_lstm_reads_its_blocks_as_input_forget_cell_output() -> None:
    cell = nn.LSTMCell(1, 1)
    cell.map(lambda path, p: bt.zeros_like(p))
    cell.weight_ih.set(bt.tensor([[1.0], [2.0], [3.0], [4.0]]))
    h, c = cell(bt.ones(1, 1), (bt.zeros(1, 1), bt.ones(1, 1)))
    assert c.item() == pytest.approx(1.608240, abs=1e-6)
    assert h.item() == pytest.approx(0.906300, abs=1e-6)


@pytest.mark.parametrize("cls", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("both", [False, True])
def test_padded_sequences_are_read_as_if_alone(cls: str, both: bool, tracking: Device) -> None:
    with tracking:
        net = getattr(nn, cls)(3, 4, num_layers=2, bidirectional=both, batch_first=True)
        x = bt.randn(3, 5, 3)
    lengths = [5, 2, 3]
    output, last = net(x, lengths=lengths)
    for k, n in enumerate(lengths):
        alone, end = net(x[k : k + 1, :n])
        assert near(output[k, :n], alone[0])
        assert output[k, n:].abs().sum().item() == 0.0
        for a, b in zip(*([s] if cls != "LSTM" else s for s in (last, end)), strict=True):
            assert near(a[:, k], b[:, 0])
    whole, _ = net(x, lengths=bt.tensor([5, 5, 5]))
    assert near(whole, net(x)[0])
    grads = output.sum().backward()
    assert net.weight_ih_l0.grad(grads) is not None


def test_recurrent_states_and_refusals() -> None:
    net = nn.GRU(3, 4, num_layers=2, dropout=0.5)
    x = bt.randn(5, 2, 3)
    first, h = net(x[:3])
    second, h = net(x[3:], h)
    whole, last = net(x)
    assert near(bt.cat([first, second]), whole) and near(h, last)
    with pytest.raises(ShapeError):
        net(bt.zeros(5, 2, 4))
    with pytest.raises(ShapeError):
        net(x, bt.zeros(1, 2, 4))
    with pytest.raises(ShapeError):
        net(x, lengths=[1, 2, 3])
    with pytest.raises(ArgumentError):
        nn.LSTM(3, 4, proj_size=4)
    with pytest.raises(ArgumentError):
        nn.RNN(3, 4, nonlinearity="sine")
    assert net(bt.zeros(0, 2, 3))[0].shape == (0, 2, 4)


def test_dropout_between_layers_acts_in_training(tracking: Device) -> None:
    with tracking:
        net = nn.LSTM(3, 8, num_layers=2, dropout=0.5)
        x = bt.randn(5, 2, 3)
    assert not near(net(x)[0], net(x)[0])
    assert near(net.valid()(x)[0], net.valid(grad=True)(x)[0])


def test_grouped_heads_equal_repeated_ones() -> None:
    grouped = nn.MultiheadAttention(8, 4, batch_first=True, num_kv_heads=2)
    full = nn.MultiheadAttention(8, 4, batch_first=True)
    assert grouped.in_proj_weight.shape == (16, 8)
    q, k, v = grouped.in_proj_weight.split([8, 4, 4])
    wide = [t.unflatten(0, (2, 2)).repeat_interleave(2, 0).flatten(0, 1) for t in (k, v)]
    full.in_proj_weight.set(bt.cat([q, *wide]).detach())
    full.out_proj.load_state_dict(grouped.out_proj.state_dict())
    x = bt.randn(2, 5, 8)
    for weights in (True, False):
        assert near(grouped(x, x, x, need_weights=weights)[0], full(x, x, x)[0])
    with pytest.raises(ArgumentError):
        nn.MultiheadAttention(8, 4, num_kv_heads=3)


def test_rows_masked_everywhere_are_zero_without_nan(tracking: Device) -> None:
    with tracking:
        layer = nn.MultiheadAttention(4, 1, bias=False, batch_first=True)
        x = bt.randn(1, 3, 4)
    mask = bt.tensor([[True, True, True], [False, True, True], [False, False, False]])
    for weights in (True, False):
        out, _ = layer(x, x, x, attn_mask=mask, need_weights=weights)
        assert out[0, 0].abs().sum().item() == 0.0
        grads = out.sum().backward()
        assert layer.in_proj_weight.grad(grads).isfinite().all().item()


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_with_cache_equals_the_causal_run(norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8))
    x = bt.randn(2, 6, 8)
    padding = bt.tensor([[False] * 6, [True, True, False, False, False, False]])
    whole = encoder(x, src_key_padding_mask=padding, is_causal=True)
    caches = encoder.new_cache(2, capacity=10)
    parts = [encoder(x[:, :3], None, padding[:, :3], cache=caches)]
    parts += [encoder(x[:, t : t + 1], cache=caches) for t in range(3, 6)]
    out = bt.cat(parts, 1)
    assert near(out[0], whole[0]) and near(out[1, 2:], whole[1, 2:])
    assert caches[0].keys.shape == (2, 2, 10, 4) and caches[0].length == 6
    with pytest.raises(ShapeError, match="capacity"):
        encoder(bt.zeros(2, 5, 8), cache=caches)
    caches[0].reset()
    assert caches[0].length == 0


def test_decoder_with_cache_equals_the_causal_run() -> None:
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    decoder = nn.TransformerDecoder(layer, 2)
    x, memory = bt.randn(2, 4, 8), bt.randn(2, 5, 8)
    ignored = bt.tensor([[False] * 5, [False, False, False, True, True]])
    whole = decoder(x, memory, tgt_is_causal=True, memory_key_padding_mask=ignored)
    caches = decoder.new_cache(2, capacity=4)
    steps = [
        decoder(x[:, t : t + 1], memory, memory_key_padding_mask=ignored, cache=caches)
        for t in range(4)
    ]
    assert near(bt.cat(steps, 1), whole)
    assert caches[0].memory is not None and caches[0].length == 4


def test_layers_of_a_stack_are_separate_parameters() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    encoder = nn.TransformerEncoder(layer, 3)
    ids = [p.id for p in encoder.parameters()]
    assert len(set(ids)) == len(ids) == 3 * len(list(layer.parameters()))
    assert near(encoder.layers[0].linear1.weight, encoder.layers[2].linear1.weight)
    with pytest.raises(ArgumentError):
        nn.TransformerEncoderLayer(8, 2, activation="tan")


@pytest.mark.parametrize("interleaved", [True, False])
def test_rotation_depends_on_distances_alone(interleaved: bool) -> None:
    rotary = nn.RotaryEncoding(64, 8, interleaved=interleaved)
    q, k = bt.randn(1, 8), bt.randn(1, 8)
    one = (rotary(q, start=3) * rotary(k, start=10)).sum().item()
    two = (rotary(q, start=40) * rotary(k, start=47)).sum().item()
    assert one == pytest.approx(two, abs=1e-4)
    assert near(rotary(q), q)
    x = bt.randn(2, 2, 5, 8)
    assert near(rotary(x)[:, :, 3:], rotary(x[:, :, 3:], start=3))
    assert not rotary.state_dict()
    with pytest.raises(ShapeError):
        rotary(x, start=60)
    scaled = nn.RotaryEncoding(64, 8, frequency_scaling=lambda rates: rates / 2)
    assert near(scaled(q, start=4), nn.RotaryEncoding(64, 8)(q, start=2))


def test_sinusoids() -> None:
    encoding = nn.PositionalEncoding(6, max_len=10)
    x = bt.zeros(2, 4, 6)
    y = encoding(x)
    assert y[0, 1, 0].item() == pytest.approx(0.841471)
    assert y[0, 1, 3].item() == pytest.approx(0.998923, abs=1e-5)
    assert near(encoding(x[:, 2:], start=2), y[:, 2:])
    with pytest.raises(ShapeError):
        encoding(x, start=7)
    with pytest.raises(ArgumentError):
        nn.PositionalEncoding(5)
