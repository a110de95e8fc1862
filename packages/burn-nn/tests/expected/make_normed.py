"""Makes `normed.npz` and `normed.pt` beside it: what PyTorch answers for normed weights.

Run it with PyTorch 2.13 installed; the tests read the two files only.

    python packages/burn-nn/tests/expected/make_normed.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.nn.utils.parametrize import remove_parametrizations

torch.manual_seed(0)
HERE = Path(__file__).parent
OUT: dict[str, np.ndarray] = {}


def run(key: str, module: Any, name: str, *shape: int) -> None:
    """Keep the state before, a training step's values, the state after, and the plain weight."""

    def keep(**tensors: Any) -> None:
        OUT.update({f"{key}/{k}": t.detach().numpy().copy() for k, t in tensors.items()})

    keep(**{f"before:{k}": t for k, t in module.state_dict().items()})
    x = torch.randn(*shape, requires_grad=True)
    out = module(x)
    out = out[0] if isinstance(out, tuple) else out
    end = torch.randn_like(out)
    out.backward(end)
    keep(x=x, out=out, end=end, gx=x.grad)
    keep(**{f"grad:{k}": p.grad for k, p in module.named_parameters()})
    keep(**{f"after:{k}": t for k, t in module.state_dict().items()})
    module.eval()
    out = module(x)
    keep(still=out[0] if isinstance(out, tuple) else out)
    remove_parametrizations(module, name)
    keep(plain=getattr(module, name))


if __name__ == "__main__":
    run("weight-linear", weight_norm(nn.Linear(4, 3)), "weight", 2, 4)
    run("weight-whole", weight_norm(nn.Linear(4, 3), dim=None), "weight", 2, 4)
    run("weight-conv", weight_norm(nn.Conv2d(2, 3, 3), dim=1), "weight", 1, 2, 5, 5)
    run("weight-gru", weight_norm(nn.GRU(3, 4), "weight_hh_l0"), "weight_hh_l0", 5, 2, 3)
    run("spectral-linear", spectral_norm(nn.Linear(4, 3), n_power_iterations=2), "weight", 2, 4)
    run("spectral-conv", spectral_norm(nn.Conv2d(2, 3, 3)), "weight", 1, 2, 5, 5)
    run("spectral-back", spectral_norm(nn.ConvTranspose1d(2, 3, 3)), "weight", 1, 2, 5)
    run("spectral-bias", spectral_norm(nn.Linear(4, 3), "bias"), "bias", 2, 4)
    np.savez_compressed(HERE / "normed.npz", **OUT)
    whole = nn.Sequential(weight_norm(nn.Linear(4, 3)), nn.ReLU(), spectral_norm(nn.Linear(3, 2)))
    torch.save(whole.state_dict(), HERE / "normed.pt")
