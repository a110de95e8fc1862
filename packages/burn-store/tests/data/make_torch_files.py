"""Writes the PyTorch files of this folder and what PyTorch 2.13 reads from them.

    python make_torch_files.py <folder of the module cases>

The tests read the files with burn_store and compare with `expected.npz` (bfloat16 as bit patterns)
and with the digests of the module cases, so they need no PyTorch.
"""

import argparse
import hashlib
import json
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent


def bits(t):
    t = t.detach().resolve_conj().contiguous()
    if t.dtype is torch.bfloat16:
        return t.view(torch.int16).numpy()
    return t.numpy()


def main(cases):
    torch.manual_seed(0)
    base = torch.arange(24.0).reshape(4, 6)
    shared = torch.randn(3, 4)
    dtypes = {
        name: (torch.arange(6).reshape(2, 3) % 2).to(getattr(torch, name))
        for name in (
            "float64",
            "float32",
            "float16",
            "bfloat16",
            "int64",
            "int32",
            "int16",
            "int8",
            "uint8",
            "bool",
            "uint16",
            "uint32",
            "uint64",
        )
    }
    strided = {
        "base": base,
        "transposed": base.T,
        "step": base[::2, 1::2],
        "column": base[:, 2],
        "row": base[1],
        "expanded": base[:1, :1].expand(3, 5),
        "scalar": base[2, 3],
        "empty": torch.empty(0, 4),
        "permuted": torch.randn(2, 3, 4).permute(2, 0, 1),
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    checkpoint = {
        "epoch": 7,
        "lr": 0.5,
        "note": None,
        "args": argparse.Namespace(width=4, deep=[1, 2]),
        "history": [1.0] * 100,
        "device": torch.device("cpu"),
        "size": torch.Size([2, 3]),
        "dtype": torch.float16,
        "rng": np.arange(3),
        "loss": np.float64(1.5),
        "path": Path("a") / "b",
        "range": {1, 2},
        "model": OrderedDict(weight=shared, bias=torch.nn.Parameter(torch.ones(3)), tied=shared),
        "optim": {
            "state": {
                0: {"step": torch.tensor(3.0), "exp_avg": torch.randn(3, 4)},
                1: {"exp_avg": torch.ones(3)},
            },
            "param_groups": [{"lr": 0.1, "params": [0, 1]}],
        },
    }
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    expected = {}

    def keep(file, tensors):
        for name, t in tensors.items():
            expected[f"{file}:{name}"] = bits(t)

    def flat(value, prefix=""):
        if isinstance(value, torch.Tensor):
            return {prefix: value}
        items = (
            value.items()
            if isinstance(value, dict)
            else enumerate(value)
            if isinstance(value, list)
            else ()
        )
        return {
            n: t
            for k, v in items
            for n, t in flat(v, f"{prefix}.{k}" if prefix else str(k)).items()
        }

    for kind, legacy in (("zip", False), ("legacy", True)):
        options = {"_use_new_zipfile_serialization": not legacy}
        torch.save(dtypes, HERE / f"dtypes_{kind}.pt", **options)
        keep(f"dtypes_{kind}.pt", dtypes)
        torch.save(strided, HERE / f"strided_{kind}.pt", **options)
        keep(f"strided_{kind}.pt", strided)
        torch.save(checkpoint, HERE / f"checkpoint_{kind}.pt", **options)
        keep(f"checkpoint_{kind}.pt", flat(checkpoint))
        torch.save(shared, HERE / f"tensor_{kind}.pt", **options)
        keep(f"tensor_{kind}.pt", {"tensor": shared})
    for protocol in (3, 4, 5):
        torch.save(checkpoint, HERE / f"protocol{protocol}.pt", pickle_protocol=protocol)
        keep(f"protocol{protocol}.pt", flat(checkpoint))
    # The old format would hold the source of PyTorch's classes as well.
    torch.save(net, HERE / "module_zip.pt")
    keep("module_zip.pt", net.state_dict())
    np.savez_compressed(HERE / "expected.npz", **expected)

    digests = {}
    for path in sorted(Path(cases).glob("*.pt")):
        state = torch.load(path, weights_only=True)
        digests[path.stem] = {
            key: [
                str(t.dtype).removeprefix("torch."),
                list(t.shape),
                hashlib.sha256(bits(t).tobytes()).hexdigest(),
            ]
            for key, t in state.items()
        }
    (HERE / "module_digests.json").write_text(json.dumps(digests, indent=0))


if __name__ == "__main__":
    main(sys.argv[1])
