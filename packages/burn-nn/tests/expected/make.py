"""Makes `modules.json` and `modules.npz` beside it: what PyTorch answers for modules of burn_nn.

Run it with PyTorch 2.13 installed; the tests read the two files only.

    python packages/burn-nn/tests/expected/make.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
RNG = np.random.default_rng(0)
CASES: list[dict[str, Any]] = []
POOL: dict[str, list[np.ndarray]] = {"f4": [], "i8": [], "b1": []}
AT = {"f4": 0, "i8": 0, "b1": 0}


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def i(high: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, high, shape).astype(np.int64)


def b(*shape: int) -> np.ndarray:
    return RNG.random(shape) < 0.4


def kept(value: Any) -> Any:
    """Return a JSON-able form; arrays go to the pool."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        kind = value.dtype.str.lstrip("<|")
        POOL[kind].append(value.ravel())
        at, AT[kind] = AT[kind], AT[kind] + value.size
        return {"at": at, "kind": kind, "shape": list(value.shape)}
    if isinstance(value, dict):
        return {k: kept(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return {"tuple": [kept(v) for v in value]}
    return [kept(v) for v in value] if isinstance(value, list) else value


def torched(value: Any) -> Any:
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def flat(out: Any) -> list[torch.Tensor]:
    if isinstance(out, (tuple, list)):
        return [t for part in out for t in flat(part)]
    return [] if out is None else [out]


def run(
    cls: str, kw: dict[str, Any], args: list[np.ndarray], call: dict[str, Any] | None = None,
    train: bool = False,
) -> None:  # fmt: skip
    module = getattr(nn, cls)(**{k: torched(v) for k, v in kw.items()}).train(train)
    state = {k: v.detach().numpy().copy() for k, v in module.state_dict().items()}
    inputs = []
    for k, a in enumerate(args):
        # Targets of losses have no gradient in PyTorch.
        wants = a.dtype == np.float32 and (k == 0 or not cls.endswith("Loss"))
        inputs.append(torch.tensor(a, requires_grad=wants))
    outs = flat(module(*inputs, **{k: torched(v) for k, v in (call or {}).items()}))
    cotangents = [f(*o.shape) for o in outs]
    pairs = [(o, torch.tensor(c)) for o, c in zip(outs, cotangents, strict=True) if o.requires_grad]
    leaves = [t for t in inputs if t.requires_grad]
    named = dict(module.named_parameters())
    found = torch.autograd.grad(
        [o for o, _ in pairs],
        leaves + list(named.values()),
        [c for _, c in pairs],
        allow_unused=True,
    )
    CASES.append(
        {
            "cls": cls, "kwargs": kept(kw), "args": kept(args), "call": kept(call or {}),
            "train": train, "state": kept(state), "out": kept(outs), "cotangents": kept(cotangents),
            "input_grads": kept(list(found[: len(leaves)])),
            "parameter_grads": kept(dict(zip(named, found[len(leaves) :], strict=True))),
            "buffers": kept({k: v.numpy().copy() for k, v in module.named_buffers()}),
        }
    )  # fmt: skip


def losses() -> None:
    for r in ("none", "mean", "sum"):
        run("L1Loss", {"reduction": r}, [f(3, 4), f(3, 4)])
        run("MSELoss", {"reduction": r}, [f(3, 4), f(3, 4)])
        run("SmoothL1Loss", {"reduction": r, "beta": 0.5}, [f(3, 4), f(3, 4)])
        run("HuberLoss", {"reduction": r, "delta": 0.7}, [f(3, 4), f(3, 4)])
        run(
            "CrossEntropyLoss",
            {"reduction": r, "weight": np.abs(f(5)), "label_smoothing": 0.1, "ignore_index": 2},
            [f(6, 5), i(5, 6)],
        )
        run("CrossEntropyLoss", {"reduction": r}, [f(2, 5, 3, 4), i(5, 2, 3, 4)])
        p = np.abs(f(6, 5))
        p /= p.sum(1, keepdims=True)
        run(
            "CrossEntropyLoss",
            {"reduction": r, "label_smoothing": 0.2, "weight": np.abs(f(5))},
            [f(6, 5), p],
        )
        run(
            "NLLLoss",
            {"reduction": r, "weight": np.abs(f(5)), "ignore_index": 1},
            [f(6, 5), i(5, 6)],
        )
        pr = RNG.random((3, 4)).astype(np.float32)
        tg = RNG.random((3, 4)).astype(np.float32)
        run("BCELoss", {"reduction": r, "weight": np.abs(f(4))}, [pr, tg])
        run("BCEWithLogitsLoss", {"reduction": r, "pos_weight": np.abs(f(4))}, [f(3, 4), tg])
        run("KLDivLoss", {"reduction": r}, [f(3, 4), np.abs(f(3, 4))])
        run("KLDivLoss", {"reduction": r, "log_target": True}, [f(3, 4), f(3, 4)])
        run("PoissonNLLLoss", {"reduction": r, "full": True}, [f(3, 4), np.abs(f(3, 4)) * 3])
        run(
            "PoissonNLLLoss",
            {"reduction": r, "log_input": False},
            [np.abs(f(3, 4)), np.abs(f(3, 4)) * 3],
        )
        run("GaussianNLLLoss", {"reduction": r, "full": True}, [f(3, 4), f(3, 4), np.abs(f(3, 4))])
    run("KLDivLoss", {"reduction": "batchmean"}, [f(3, 4), np.abs(f(3, 4))])


def margins() -> None:
    for r in ("none", "mean", "sum"):
        y1 = np.sign(f(5)).astype(np.float32)
        run("MarginRankingLoss", {"reduction": r, "margin": 0.3}, [f(5), f(5), y1])
        run("HingeEmbeddingLoss", {"reduction": r, "margin": 0.8}, [f(5), y1])
        run("SoftMarginLoss", {"reduction": r}, [f(5), y1])
        run("CosineEmbeddingLoss", {"reduction": r, "margin": 0.1}, [f(5, 3), f(5, 3), y1])
        run(
            "MultiMarginLoss",
            {"reduction": r, "p": 2, "margin": 0.9, "weight": np.abs(f(4))},
            [f(3, 4), i(4, 3)],
        )
        run(
            "MultiLabelMarginLoss",
            {"reduction": r},
            [f(2, 4), np.array([[1, 3, -1, 0], [0, -1, 2, 2]])],
        )
        run(
            "MultiLabelSoftMarginLoss",
            {"reduction": r, "weight": np.abs(f(4))},
            [f(3, 4), (RNG.random((3, 4)) < 0.5).astype(np.float32)],
        )
        run(
            "TripletMarginLoss",
            {"reduction": r, "swap": True, "p": 3.0},
            [f(5, 3), f(5, 3), f(5, 3)],
        )
        run("TripletMarginWithDistanceLoss", {"reduction": r}, [f(5, 3), f(5, 3), f(5, 3)])


def recurrent() -> None:
    for cls, kw in (
        ("RNN", {"nonlinearity": "tanh"}),
        ("GRU", {}),
        ("LSTM", {}),
        ("LSTM", {"proj_size": 2}),
    ):
        kw = dict(input_size=3, hidden_size=4, num_layers=2, bidirectional=True, bias=True, **kw)
        run(cls, kw, [f(5, 2, 3)])
        run(cls, dict(kw, batch_first=True), [f(2, 5, 3)])
        run(cls, kw, [f(5, 3)])
    for cls in ("RNNCell", "LSTMCell", "GRUCell"):
        run(cls, {"input_size": 3, "hidden_size": 4}, [f(2, 3)])
        run(cls, {"input_size": 3, "hidden_size": 4, "bias": False}, [f(3)])


def attention() -> None:
    E_ = {"embed_dim": 8, "num_heads": 2}
    for nw in (True, False):
        for kw, _ck in (
            (E_, {}),
            (dict(E_, batch_first=True), {}),
            (dict(E_, add_bias_kv=True, add_zero_attn=True), {}),
        ):
            q = f(5, 3, 8)
            k = f(5, 3, 8)
            v = f(5, 3, 8)
            N = 5 if kw.get("batch_first") else 3
            L = 3 if kw.get("batch_first") else 5
            kpm = b(N, L)
            kpm[:, 0] = False
            fm = f(L, L)
            bm = np.triu(np.ones((L, L), bool), 1)
            for c in (
                {},
                {"key_padding_mask": kpm},
                {"attn_mask": fm},
                {"attn_mask": bm, "average_attn_weights": False},
                {"attn_mask": f(N * 2, L, L)},
                {"attn_mask": bm, "is_causal": True},
            ):
                if c.get("is_causal") and kw.get("add_bias_kv") and not nw:
                    continue  # PyTorch hides the added keys there
                run("MultiheadAttention", kw, [q, k, v], dict(c, need_weights=nw))
        run("MultiheadAttention", E_, [f(5, 8), f(6, 8), f(6, 8)], {"need_weights": nw})


def transformers() -> None:
    for kw in ({}, {"norm_first": True, "activation": "gelu"}, {"bias": False}):
        run(
            "TransformerEncoderLayer",
            dict(d_model=8, nhead=2, dim_feedforward=12, dropout=0.0, **kw),
            [f(5, 2, 8)],
            train=True,
        )
        run(
            "TransformerDecoderLayer",
            dict(d_model=8, nhead=2, dim_feedforward=12, dropout=0.0, **kw),
            [f(5, 2, 8), f(4, 2, 8)],
            {"tgt_mask": np.triu(np.ones((5, 5), bool), 1)},
            train=True,
        )
    run(
        "Transformer",
        {
            "d_model": 8,
            "nhead": 2,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "dim_feedforward": 12,
            "dropout": 0.0,
        },
        [f(5, 2, 8), f(4, 2, 8)],
        train=True,
    )


def spatial() -> None:
    run(
        "ConvTranspose2d",
        {
            "in_channels": 4,
            "out_channels": 6,
            "kernel_size": 3,
            "stride": 2,
            "padding": 1,
            "output_padding": 1,
            "groups": 2,
            "dilation": 2,
        },
        [f(2, 4, 5, 5)],
    )
    for n in (1, 2, 3):
        for mode in ("reflect", "replicate", "circular"):
            run(
                f"Conv{n}d",
                {
                    "in_channels": 2,
                    "out_channels": 3,
                    "kernel_size": 3,
                    "padding": 1,
                    "padding_mode": mode,
                },
                [f(1, 2, *[5] * n)],
            )
        run(
            f"Conv{n}d",
            {
                "in_channels": 2,
                "out_channels": 3,
                "kernel_size": 4,
                "padding": "same",
                "dilation": 2,
            },
            [f(1, 2, *[7] * n)],
        )
        run(
            f"BatchNorm{n}d", {"num_features": 3, "momentum": None}, [f(4, 3, *[3] * n)], train=True
        )
        run(
            f"BatchNorm{n}d", {"num_features": 3, "track_running_stats": False}, [f(4, 3, *[3] * n)]
        )
        run(
            f"InstanceNorm{n}d",
            {"num_features": 3, "affine": True, "track_running_stats": True},
            [f(4, 3, *[3] * n)],
            train=True,
        )
        run(f"InstanceNorm{n}d", {"num_features": 3}, [f(3, *[3] * n)])
        run(
            f"MaxPool{n}d",
            {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
            [f(1, 2, *[6] * n)],
        )
        run(
            f"AvgPool{n}d",
            {
                "kernel_size": 3,
                "stride": 2,
                "padding": 1,
                "ceil_mode": True,
                "count_include_pad": False,
            },
            [f(1, 2, *[6] * n)],
        )
        run(f"AdaptiveMaxPool{n}d", {"output_size": 4}, [f(1, 2, *[7] * n)])
        run(f"AdaptiveAvgPool{n}d", {"output_size": 4}, [f(1, 2, *[7] * n)])
        run(f"LPPool{n}d", {"norm_type": 2.0, "kernel_size": 2}, [f(1, 2, *[6] * n)])
        for pm in ("Zero", "Reflection", "Replication", "Circular"):
            run(f"{pm}Pad{n}d", {"padding": tuple([1, 2] * n)}, [f(1, 2, *[5] * n)])
        run(f"ConstantPad{n}d", {"padding": tuple([1, -1] * n), "value": 3.0}, [f(1, 2, *[5] * n)])


def rest() -> None:
    run("PixelUnshuffle", {"downscale_factor": 2}, [f(1, 2, 4, 4)])
    run("ChannelShuffle", {"groups": 2}, [f(1, 4, 3, 3)])
    run("Upsample", {"size": (5, 7), "mode": "bilinear", "align_corners": True}, [f(1, 2, 3, 4)])
    run("Upsample", {"scale_factor": 1.5, "mode": "bicubic"}, [f(1, 2, 4, 4)])
    run("EmbeddingBag", {"num_embeddings": 6, "embedding_dim": 3, "mode": "max"}, [i(6, 4, 3)])
    run(
        "EmbeddingBag",
        {"num_embeddings": 6, "embedding_dim": 3, "mode": "mean", "padding_idx": 1},
        [i(6, 4, 3)],
    )
    run("PReLU", {"num_parameters": 3}, [f(2, 3, 4)])
    run("RReLU", {}, [f(3, 4)])
    run("Softmax2d", {}, [f(1, 3, 2, 2)])
    run("LogSoftmax", {"dim": 1}, [f(3, 4)])
    run("Softmin", {"dim": 1}, [f(3, 4)])
    for a in ("ReLU", "ReLU6", "ELU", "Hardswish", "Hardshrink", "Tanhshrink", "Sigmoid", "Tanh"):
        run(a, {}, [f(3, 4)])
    run("GELU", {"approximate": "tanh"}, [f(3, 4)])
    run("CosineSimilarity", {}, [f(3, 4), f(3, 4)])
    run("PairwiseDistance", {"keepdim": True}, [f(3, 4), f(3, 4)])
    run("Fold", {"output_size": (4, 5), "kernel_size": 2}, [f(1, 8, 12)])
    run("Unfold", {"kernel_size": 2, "stride": 2, "padding": 1}, [f(1, 2, 4, 5)])
    run("Flatten", {"start_dim": 1, "end_dim": 2}, [f(2, 3, 4, 5)])
    run("Unflatten", {"dim": 1, "unflattened_size": (2, 3)}, [f(2, 6)])


def places_and_clusters() -> None:
    u = RNG.random((2, 3, 2)).astype(np.float32)
    run(
        "FractionalMaxPool2d",
        {"kernel_size": (2, 3), "output_size": (4, 5), "_random_samples": u},
        [f(2, 3, 9, 11)],
    )
    u = RNG.random((1, 3, 2)).astype(np.float32)
    run(
        "FractionalMaxPool2d",
        {
            "kernel_size": 3, "output_ratio": (0.5, 0.3), "_random_samples": u,
            "return_indices": True,
        },
        [f(3, 9, 7)],
    )  # fmt: skip
    u = RNG.random((2, 2, 3)).astype(np.float32)
    run(
        "FractionalMaxPool3d",
        {"kernel_size": 2, "output_size": (3, 1, 4), "_random_samples": u, "return_indices": True},
        [f(2, 2, 7, 8, 9)],
    )
    for bias in (False, True):
        settings = {"in_features": 16, "n_classes": 20, "cutoffs": [4, 9, 15], "head_bias": bias}
        targets = np.array([0, 19, 5, 3, 14, 4], np.int64)
        run("AdaptiveLogSoftmaxWithLoss", {**settings, "div_value": 2.0}, [f(6, 16), targets])
    settings = {"in_features": 16, "n_classes": 20, "cutoffs": [4, 9, 15]}
    run("AdaptiveLogSoftmaxWithLoss", settings, [f(16), np.array(10, np.int64)])
    run("AdaptiveLogSoftmaxWithLoss", settings, [f(2, 16), np.array([1, 2], np.int64)])


if __name__ == "__main__":
    parts = (
        losses, margins, recurrent, attention, transformers, spatial, rest, places_and_clusters
    )  # fmt: skip
    for part in parts:
        part()
    here = Path(__file__).parent
    (here / "modules.json").write_text(json.dumps(CASES) + "\n")
    np.savez_compressed(here / "modules.npz", **{k: np.concatenate(v) for k, v in POOL.items()})
    print(len(CASES), "cases")
