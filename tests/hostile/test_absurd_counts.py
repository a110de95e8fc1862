"""Counts that no machine has room for are refused before anything is made one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import burn
from burn import nn
from burn_std import ArgumentError, BurnError

LAYER = {"d_model": 4, "nhead": 2, "dim_feedforward": 8}


@pytest.mark.parametrize(
    "make",
    [
        lambda n: nn.LSTM(2, 2, num_layers=n),
        lambda n: nn.GRU(2, 2, num_layers=n, bidirectional=True),
        lambda n: nn.RNN(2, 2, n),
        lambda n: nn.LSTM(2, n),
        lambda n: nn.TransformerEncoder(nn.TransformerEncoderLayer(**LAYER), n),
        lambda n: nn.TransformerDecoder(nn.TransformerDecoderLayer(**LAYER), n),
        lambda n: nn.Transformer(4, 2, n, 1, 8),
        lambda n: nn.Transformer(4, 2, 1, n, 8),
        lambda n: nn.MultiheadAttention(4, n),
        lambda n: nn.MultiheadAttention(n, n),
        lambda n: nn.GroupNorm(n, n),
        lambda n: nn.Conv2d(n, n, 1, groups=n),
        lambda n: nn.Embedding(n, n),
        lambda n: nn.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=n),
        lambda n: burn.hann_window(n),
        lambda n: burn.linspace(0, 1, n),
        lambda n: burn.logspace(0, 1, n),
        lambda n: burn.tril_indices(n, n),
        lambda n: burn.triu_indices(2, n),
        lambda n: burn.combinations(burn.arange(60), 30),
        lambda n: burn.combinations(burn.arange(3), n, with_replacement=True),
        lambda n: burn.dataset.DataLoader(burn.dataset.InMemoryDataset([1]), num_workers=n),
    ],
)
def test_an_absurd_count_is_refused(make: Callable[[int], object]) -> None:
    with pytest.raises(BurnError):
        make(1 << 63)


def test_a_count_of_layers_is_refused_before_memory_is_full() -> None:
    for count in (0, (1 << 16) + 1):
        with pytest.raises(ArgumentError, match="65536 at most"):
            nn.LSTM(2, 2, num_layers=count)
