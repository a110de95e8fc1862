"""Makes `packed.npz` beside it: what PyTorch answers for packed sequences.

Run it with PyTorch 2.13 installed; the tests read the file only.

    python packages/burn-nn/tests/expected/make_packed.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils import rnn

torch.manual_seed(0)
OUT: dict[str, np.ndarray] = {}
LENGTHS = [3, 5, 1, 5]


def keep(prefix: str, **tensors: torch.Tensor) -> None:
    OUT.update({f"{prefix}/{k}": t.detach().numpy() for k, t in tensors.items()})


def recurrent(name: str, batch_first: bool, **settings: object) -> None:
    key = f"{name}-{int(batch_first)}"
    module = getattr(nn, name)(3, 4, batch_first=batch_first, **settings)
    x = torch.randn(4, 5, 3) if batch_first else torch.randn(5, 4, 3)
    x.requires_grad_()
    count = settings.get("num_layers", 1) * (1 + settings.get("bidirectional", False))
    h = torch.randn(count, 4, settings.get("proj_size", 0) or 4, requires_grad=True)
    c = torch.randn(count, 4, 4, requires_grad=True)
    packed = rnn.pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first, enforce_sorted=False)
    out, state = module(packed, (h, c) if name == "LSTM" else h)
    padded, lengths = rnn.pad_packed_sequence(out, batch_first, padding_value=0.5, total_length=6)
    states = state if name == "LSTM" else (state,)
    ends = [torch.randn_like(t) for t in (padded, *states)]
    torch.autograd.backward([padded, *states], ends)
    keep(
        key, x=x, h=h, c=c, gx=x.grad, gh=h.grad, data=out.data, padded=padded, lengths=lengths,
        sizes=out.batch_sizes, order=out.sorted_indices, back=out.unsorted_indices, e0=ends[0],
    )  # fmt: skip
    for k, t in enumerate(states):
        keep(key, **{f"s{k}": t, f"e{k + 1}": ends[k + 1]})
    keep(key, **{f"state:{k}": t for k, t in module.state_dict().items()})
    keep(key, **{f"grad:{k}": p.grad for k, p in module.named_parameters()})


if __name__ == "__main__":
    recurrent("RNN", False, nonlinearity="relu")
    recurrent("GRU", True, num_layers=2, bidirectional=True)
    recurrent("LSTM", False, num_layers=2, bidirectional=True, proj_size=2)
    recurrent("LSTM", True)
    np.savez_compressed(Path(__file__).parent / "packed.npz", **OUT)
