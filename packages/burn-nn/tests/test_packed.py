"""Packed sequences: PyTorch's values (`expected/make_packed.py`), and what has no meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn_nn as nn
import burn_tensor as bt
from burn_dispatch import Device
from burn_nn import rnn
from burn_std import ArgumentError, ShapeError
from burn_std.dtypes import int64

with np.load(Path(__file__).parent / "expected" / "packed.npz") as _file:
    EXPECTED = {key: _file[key] for key in _file.files}
SETTINGS: dict[str, dict[str, Any]] = {
    "RNN-0": {"nonlinearity": "relu"},
    "GRU-1": {"num_layers": 2, "bidirectional": True},
    "LSTM-0": {"num_layers": 2, "bidirectional": True, "proj_size": 2},
    "LSTM-1": {},
}


def near(found: Any, expected: np.ndarray) -> bool:
    array = found.numpy()
    assert array.dtype == expected.dtype and array.shape == expected.shape
    return np.allclose(array, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("key", SETTINGS)
def test_packed_sequences_answer_as_pytorch_does(key: str, tracking: Device) -> None:
    mine = {k.partition("/")[2]: v for k, v in EXPECTED.items() if k.startswith(f"{key}/")}
    name, first = key[:-2], key.endswith("1")
    model = getattr(nn, name)(3, 4, batch_first=first, device=tracking, **SETTINGS[key])
    state = {k[6:]: bt.tensor(v) for k, v in mine.items() if k.startswith("state:")}
    model.load_state_dict(state)
    x, h, c = (bt.tensor(mine[k], device=tracking).require_grad() for k in "xhc")
    packed = rnn.pack_padded_sequence(x, [3, 5, 1, 5], first, enforce_sorted=False)
    out, states = model(packed, (h, c) if name == "LSTM" else h)
    states = states if name == "LSTM" else (states,)
    assert out.batch_sizes == tuple(mine["sizes"].tolist())
    assert out.sorted_indices.tolist() == mine["order"].tolist()
    assert out.unsorted_indices.tolist() == mine["back"].tolist()
    assert near(out.data, mine["data"])
    padded, lengths = rnn.pad_packed_sequence(out, first, 0.5, 6)
    assert near(padded, mine["padded"]) and near(lengths, mine["lengths"])
    for k, s in enumerate(states):
        assert near(s, mine[f"s{k}"])
    outs = [padded, *states]
    ends = [bt.tensor(mine[f"e{k}"], device=tracking) for k in range(len(outs))]
    grads = bt.backward(outs, ends)
    assert near(x.grad(grads), mine["gx"]) and near(h.grad(grads), mine["gh"])
    for path, p in model.named_parameters():
        assert near(p.grad(grads), mine[f"grad:{path}"])


def test_packing_and_padding_are_each_others_reverse() -> None:
    parts = [bt.arange(n * 2).reshape(n, 2) + 10 * n for n in (2, 4, 1)]
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    assert [s.tolist() for s in rnn.unpack_sequence(packed)] == [p.tolist() for p in parts]
    padded = rnn.pad_sequence(parts, padding_value=-1)
    assert padded.shape == (4, 3, 2) and padded.dtype is int64
    assert padded[1:, 2].tolist() == [[-1, -1]] * 3
    left = rnn.pad_sequence(parts, True, padding_side="left")
    assert left[2].tolist() == [[0, 0]] * 3 + parts[2].tolist()
    back = rnn.unpad_sequence(padded, bt.tensor([2, 4, 1]))
    assert [s.tolist() for s in back] == [p.tolist() for p in parts]
    assert packed.to_device(Device.flex(1)).data.device == Device.flex(1)


def test_packed_and_padded_with_lengths_are_one(tracking: Device) -> None:
    model = nn.GRU(2, 3, bidirectional=True, device=tracking)
    x = bt.randn(4, 3, 2, device=tracking)
    out, last = model(x, lengths=[4, 2, 1])
    packed, also = model(rnn.pack_padded_sequence(x, [4, 2, 1]))
    assert rnn.pad_packed_sequence(packed)[0].tolist() == out.tolist()
    assert also.tolist() == last.tolist()


def test_packing_refuses_what_has_no_meaning() -> None:
    x = bt.ones(3, 2, 1)
    packed = rnn.pack_padded_sequence(x, [3, 1])
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda: rnn.pack_padded_sequence(x, [1, 3]), ArgumentError),
        (lambda: rnn.pack_padded_sequence(x, [3, 0]), ArgumentError),
        (lambda: rnn.pack_padded_sequence(x, [2.5, 1.0]), ArgumentError),  # type: ignore[list-item]
        (lambda: rnn.pack_padded_sequence(x, [4, 1]), ShapeError),
        (lambda: rnn.pack_padded_sequence(x, [3]), ShapeError),
        (lambda: rnn.pack_padded_sequence(bt.ones(3), [3]), ShapeError),
        (lambda: rnn.pad_packed_sequence(packed, total_length=2), ArgumentError),
        (lambda: rnn.pad_sequence([]), ArgumentError),
        (lambda: rnn.pad_sequence([bt.ones(1)], padding_side="top"), ArgumentError),
        (lambda: rnn.pad_sequence([bt.ones(1, 2), bt.ones(1, 3)]), ShapeError),
        (lambda: rnn.unpad_sequence(x, [1]), ShapeError),
        (lambda: nn.GRU(1, 1)(packed, lengths=[3, 1]), ArgumentError),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()
