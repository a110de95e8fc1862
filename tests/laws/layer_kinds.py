"""Layers of all kinds with random settings, by the shapes that they take."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import burn
from burn import nn

F = burn.functional


class Dice:
    """What the settings of layers are drawn from."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.choice = self.random.choice

    def chance(self, p: float) -> bool:
        """Return True in a share of the cases."""
        return self.random.random() < p


class Kind(NamedTuple):
    """A kind of layer.

    Attributes:
        takes: rank of the input, or -1 for any but 0; "tokens" for integers.
        make: dice, shape of the input, and settings of place and dtype, to a module or function.
        smooth: gradients of gradients exist.
    """

    takes: Any
    make: Callable[[Dice, tuple[int, ...], dict[str, Any]], Any]
    smooth: bool = True


def _skip(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
    dim, twice = d.random.randrange(-len(shape), len(shape)), d.chance(0.3)
    act = d.choice([F.relu, burn.tanh, lambda x: x * 3])

    def skip(x: Any) -> Any:
        return act(burn.cat([act(x), x if twice else x * 2, x], dim)) + 1

    return skip


def _margins(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
    pads, value = d.choice([(1, 0), (0, 2), (1, 1)]), d.choice([0.0, 0.5])
    return lambda x: F.relu(F.pad(x * 2, pads, value=value))


def _divisor(d: Dice, n: int) -> int:
    return d.choice([g for g in (1, 2, 3, 4) if n % g == 0] or [1])


def _conv(rank: int, transposed: bool) -> Callable[..., Any]:
    plain = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1]
    back = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[rank - 1]

    def make(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
        channels = shape[1]
        groups = _divisor(d, channels)
        out = groups * d.choice([1, 2, 3])
        settings: dict[str, Any] = {
            "stride": d.choice([1, 1, 2]),
            "padding": d.choice([0, 1, 1]),
            "dilation": d.choice([1, 1, 2]),
            "groups": groups,
            "bias": d.chance(0.7),
        }
        size = d.choice([1, 2, 3, 3])
        if transposed:
            return back(channels, out, size, **settings, **k)
        mode = d.choice(["zeros", "zeros", "zeros", "reflect", "circular", "replicate"])
        return plain(channels, out, size, **settings, padding_mode=mode, **k)

    return make


def _pool(kind: Any) -> Callable[..., Any]:
    def make(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
        size = d.choice([1, 2, 3])
        return kind(size, d.choice([None, 1, 2]), d.choice([0, size // 2]), ceil_mode=d.chance(0.3))

    return make


def _recurrent(kind: Any) -> Callable[..., Any]:
    def make(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
        return kind(
            shape[-1],
            d.choice([1, 2, 5, 16]),
            d.choice([1, 1, 2]),
            bias=d.chance(0.8),
            batch_first=d.chance(0.5),
            bidirectional=d.chance(0.4),
            **k,
        )

    return make


def _attention(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
    width = shape[-1]
    module = nn.MultiheadAttention(
        width,
        _divisor(d, width),
        0.0,
        d.chance(0.7),
        d.chance(0.2),
        d.chance(0.2),
        batch_first=d.chance(0.7),
        **k,
    )
    weights = d.chance(0.4)
    return _Called(module, lambda m, x: m(x, x, x, need_weights=weights))


def _encoder(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
    width, causal = shape[-1], d.chance(0.5)
    module = nn.TransformerEncoderLayer(
        width,
        _divisor(d, width),
        6,
        0.0,
        d.choice(["relu", "gelu"]),
        batch_first=d.chance(0.6),
        norm_first=d.chance(0.5),
        **k,
    )
    return _Called(module, lambda m, x: m(x, is_causal=causal))


class _Called(nn.Module):
    """A module that is called in its own way."""

    def __init__(self, module: Any, call: Any) -> None:
        self.module, self.call = module, call

    def forward(self, x: Any) -> Any:
        """Return what the call gives."""
        return self.call(self.module, x)


def _plain(name: str, *settings: Any) -> Callable[..., Any]:
    return lambda d, shape, k: getattr(nn, name)(*settings)


def _assigned(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
    at, scale = d.choice([0, -1, slice(None, None, 2), (..., 0)]), d.choice([0.0, 2.0])

    def call(x: Any) -> Any:
        made = x * 1
        made[at] = made[at] * scale
        return made * 2

    return call


def _masked(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
    bound = d.choice([0.0, 0.5])
    return lambda x: x.masked_fill(x.detach() > bound, 0.25).softmax(-1)


def _residual(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
    inner = nn.Linear(shape[-1], shape[-1], **k)
    return _Called(inner, lambda m, x: x + m(F.silu(x)))


def _unfold(d: Dice, shape: tuple[int, ...], k: dict[str, Any]) -> Any:
    return nn.Unfold(d.choice([1, 2]), 1, d.choice([0, 1]), d.choice([1, 2]))


LAYERS: dict[str, Kind] = {
    "linear": Kind(
        -1, lambda d, s, k: nn.Linear(s[-1], d.choice([1, 2, 4, 6, 8]), d.chance(0.8), **k)
    ),
    "residual": Kind(-1, _residual),
    "assigned": Kind(-1, _assigned),
    "masked": Kind(-1, _masked),
    "layer norm": Kind(-1, lambda d, s, k: nn.LayerNorm(s[-d.choice([1, 1, len(s)]) :], **k)),
    "rms norm": Kind(-1, lambda d, s, k: nn.RMSNorm(s[-1:], **k)),
    "prelu": Kind(-1, lambda d, s, k: nn.PReLU(d.choice([1, s[1]]) if len(s) > 1 else 1, **k)),
    "relu": Kind(-1, _plain("ReLU")),
    "gelu": Kind(-1, _plain("GELU")),
    "mish": Kind(-1, _plain("Mish")),
    "silu": Kind(-1, _plain("SiLU")),
    "tanh": Kind(-1, _plain("Tanh")),
    "elu": Kind(-1, _plain("ELU")),
    "selu": Kind(-1, _plain("SELU")),
    "celu": Kind(-1, _plain("CELU", 0.7)),
    "softplus": Kind(-1, _plain("Softplus")),
    "sigmoid": Kind(-1, _plain("Sigmoid")),
    "hardswish": Kind(-1, _plain("Hardswish")),
    "logsigmoid": Kind(-1, _plain("LogSigmoid")),
    "softsign": Kind(-1, _plain("Softsign")),
    "tanhshrink": Kind(-1, _plain("Tanhshrink")),
    "softmax": Kind(-1, _plain("Softmax", -1)),
    "log softmax": Kind(-1, _plain("LogSoftmax", -1)),
    "leaky": Kind(-1, _plain("LeakyReLU", 0.2)),
    "glu": Kind(-1, _plain("GLU")),
    "dropout": Kind(-1, _plain("Dropout", 0.4)),
    "alpha dropout": Kind(-1, _plain("AlphaDropout", 0.3)),
    "batch norm 1d": Kind(2, lambda d, s, k: nn.BatchNorm1d(s[1], affine=d.chance(0.8), **k)),
    "batch norm of sequences": Kind(3, lambda d, s, k: nn.BatchNorm1d(s[1], **k)),
    "batch norm 2d": Kind(
        4, lambda d, s, k: nn.BatchNorm2d(s[1], track_running_stats=d.chance(0.8), **k)
    ),
    "instance norm": Kind(4, lambda d, s, k: nn.InstanceNorm2d(s[1], affine=d.chance(0.5), **k)),
    "group norm": Kind(4, lambda d, s, k: nn.GroupNorm(_divisor(d, s[1]), s[1], **k)),
    "group norm of sequences": Kind(3, lambda d, s, k: nn.GroupNorm(_divisor(d, s[1]), s[1], **k)),
    "response": Kind(4, _plain("LocalResponseNorm", 3)),
    "conv 1d": Kind(3, _conv(1, False)),
    "conv 2d": Kind(4, _conv(2, False)),
    "conv 3d": Kind(5, _conv(3, False)),
    "conv back 1d": Kind(3, _conv(1, True)),
    "conv back 2d": Kind(4, _conv(2, True)),
    "max pool 1d": Kind(3, _pool(nn.MaxPool1d)),
    "max pool 2d": Kind(4, _pool(nn.MaxPool2d)),
    "mean pool 1d": Kind(3, _pool(nn.AvgPool1d)),
    "mean pool 2d": Kind(4, _pool(nn.AvgPool2d)),
    "adaptive mean": Kind(4, lambda d, s, k: nn.AdaptiveAvgPool2d(d.choice([1, 2, (1, 3)]))),
    "adaptive max": Kind(3, lambda d, s, k: nn.AdaptiveMaxPool1d(d.choice([1, 2]))),
    "lp pool": Kind(4, _plain("LPPool2d", 2.0, 2), False),
    "upsample": Kind(
        4,
        lambda d, s, k: nn.Upsample(
            scale_factor=2, mode=d.choice(["nearest", "bilinear", "bicubic"])
        ),
    ),
    "pixel shuffle": Kind(4, _plain("PixelShuffle", 2)),
    "pixel unshuffle": Kind(4, _plain("PixelUnshuffle", 2)),
    "zero pad": Kind(4, _plain("ZeroPad2d", (1, 0, 2, 1))),
    "reflection pad": Kind(4, _plain("ReflectionPad2d", 1)),
    "replication pad": Kind(3, _plain("ReplicationPad1d", (2, 1))),
    "unfold": Kind(4, _unfold),
    "dropout 2d": Kind(4, _plain("Dropout2d", 0.5)),
    "attention": Kind(3, _attention),
    "encoder": Kind(3, _encoder),
    "rnn": Kind(3, _recurrent(nn.RNN)),
    "lstm": Kind(3, _recurrent(nn.LSTM)),
    "gru": Kind(3, _recurrent(nn.GRU)),
    "positions": Kind(3, lambda d, s, k: nn.PositionalEncoding(s[-1], 20, **k)),
    "rotary": Kind(
        3, lambda d, s, k: nn.RotaryEncoding(20, s[-1], device=k["device"].without_autodiff())
    ),
    "swiglu": Kind(-1, lambda d, s, k: nn.SwiGLU(s[-1], d.choice([2, 4]), **k)),
    "embedding": Kind("tokens", lambda d, s, k: nn.Embedding(7, d.choice([1, 2, 4, 8]), **k)),
    "bag": Kind(
        "tokens",
        lambda d, s, k: nn.EmbeddingBag(7, d.choice([2, 4]), mode=d.choice(["sum", "mean"]), **k),
    ),
    "flatten": Kind(-1, lambda d, s, k: lambda x: x.flatten(1) if len(x.shape) > 1 else x),
    "turn": Kind(
        -1,
        lambda d, s, k: lambda x: x.transpose(-1, d.choice([0, -1, -2]) if len(x.shape) > 1 else 0),
    ),
    "deeper": Kind(-1, lambda d, s, k: lambda x: x.unsqueeze(1)),
    "skip": Kind(-1, _skip),
    "halves": Kind(
        -1,
        lambda d, s, k: (
            lambda x: (
                burn.cat([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2] * 2], -1)
                + x * 0.5
            )
        ),
    ),
    "margins": Kind(-1, _margins),
    "spread": Kind(
        -1, lambda d, s, k: lambda x: (x.mean(0, keepdim=True) * 2 - 1).expand(x.shape) * x
    ),
    "mean of rows": Kind(-1, lambda d, s, k: lambda x: x.mean(-1)),
}
STARTS: tuple[tuple[int, ...], ...] = (
    (3, 4),
    (1, 6),
    (5, 8),
    (0, 4),
    (2, 1),
    (2, 3, 4),
    (1, 1, 8),
    (4, 5, 6),
    (2, 0, 4),
    (3, 7, 2),
    (2, 4, 6, 6),
    (1, 2, 5, 7),
    (3, 1, 8, 8),
    (0, 2, 4, 4),
    (2, 4, 1, 1),
    (2, 8, 3, 5),
    (1, 2, 3, 4, 4),
    (7,),
    (33, 2),
    (2, 40, 4),
)
DTYPES = (
    burn.float32,
    burn.float32,
    burn.float32,
    burn.float32,
    burn.float64,
    burn.float16,
    burn.bfloat16,
)


def fitting(shape: tuple[int, ...], tokens: bool) -> list[str]:
    """Return the names of layers that may take a tensor of a shape."""
    if tokens:
        return [n for n, kind in LAYERS.items() if kind.takes == "tokens"]
    rank = len(shape)
    exact = [n for n, kind in LAYERS.items() if kind.takes == rank]
    some = [n for n, kind in LAYERS.items() if kind.takes == -1]
    return exact * 3 + some if exact else some


def start(dice: Dice) -> tuple[Any, bool]:
    """Return an array to begin with, and whether it is of tokens."""
    rng = np.random.default_rng(dice.random.randrange(1 << 30))
    if dice.chance(0.12):
        return rng.integers(0, 7, dice.choice([(2, 3), (1, 5), (4, 1), (0, 3), (3, 0)])), True
    shape = dice.choice(STARTS)
    values = rng.standard_normal(shape)
    if dice.chance(0.1):
        values[...] = dice.choice([0.0, 1.0, -3.0, 40.0])
    return values, False
