"""Whole programs on a GPU: ours as written and captured, beside PyTorch and JAX.

    python benchmarks/gpu_programs.py [--device cuda] [--only PATTERN] [--tf32] [--without-jax]
        [--json FILE]

A training step of a perceptron (784-512-512-10, Adam, float32) at two batch sizes; one of a small
convolutional network (batch 64, SGD, float32) and its answer for one image; one of ResNet-50 (batch
64, 224 x 224, bfloat16 autocast, SGD); and one of a model of GPT-2's size (124 M parameters, 8 x
1024 tokens, bfloat16 autocast, AdamW). Products and convolutions of float32 are in true float32, or
with `--tf32` in tf32, on all sides; by itself PyTorch takes tf32 for convolutions alone, JAX for
both. Every step is waited for; medians in milliseconds. Sides take
turns of some steps in one process, as a program repeats its own step and not other ones. The first
steps compile and are left out. Convolutions are those of cuDNN where its frontend is installed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from decoder import Decoder, Size
from jitted_peers import jax_workloads
from torch import nn as tnn

import burn
from burn import functional as F, nn, optim

TF = torch.nn.functional
Step = Callable[[], Any]
BATCH, SIZE = 8, Size(tokens=1024, layers=12, heads=12, width=768, words=50257)
TOKENS, LAYERS, HEADS, WIDTH, WORDS = SIZE


def medians(sides: dict[str, Step], warm: int, rounds: int, turn: int = 1) -> dict[str, float]:
    """Return the median milliseconds of each side; they take turns of some steps."""
    for step in sides.values():
        for _ in range(warm):
            step()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, step in sides.items():
            for _ in range(turn):
                start = time.perf_counter()
                step()
                times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(t) for name, t in times.items()}


def ours(device: Any, model: Any, optimizer: Any, loss: Callable[..., Any], batch: Any) -> Any:
    """Return our step as written, and captured."""

    def step(x: Any, y: Any) -> Any:
        value = loss(model, x, y)
        optimizer.step(model, value.backward())
        return value

    captured = burn.capture(step, state=(model, optimizer))

    def plain() -> None:
        step(*batch)
        device.sync()

    def replayed() -> None:
        captured(*batch)
        device.sync()

    return plain, replayed


def theirs(model: Any, optimizer: Any, loss: Callable[..., Any], batch: Any) -> Step:
    """Return PyTorch's step."""

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(model, *batch).backward()
        optimizer.step()
        torch.cuda.synchronize()

    return step


def perceptron(device: Any, rows: int, jax: bool) -> dict[str, float]:
    """Measure a step of a perceptron."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, 784)).astype(np.float32)
    y = rng.integers(0, 10, rows)
    tracked = device.autodiff()

    def made() -> Any:
        model = nn.Sequential(
            nn.Linear(784, 512, device=tracked), nn.ReLU(), nn.Linear(512, 512, device=tracked),
            nn.ReLU(), nn.Linear(512, 10, device=tracked),
        )  # fmt: skip
        batch = burn.tensor(x, device=device), burn.tensor(y, device=device)
        loss = lambda m, a, b: F.cross_entropy(m(a), b)  # noqa: E731
        return ours(device, model, optim.Adam(lr=1e-3), loss, batch)

    other = tnn.Sequential(
        tnn.Linear(784, 512), tnn.ReLU(), tnn.Linear(512, 512), tnn.ReLU(), tnn.Linear(512, 10)
    ).cuda()
    batch = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
    eager = theirs(
        other, torch.optim.Adam(other.parameters(), lr=1e-3),
        lambda m, a, b: TF.cross_entropy(m(a), b), batch,
    )  # fmt: skip
    sides = {"ours": made()[0], "captured": made()[1], "torch": eager}
    sides |= jitted(rows, device.settings()["tf32"]) if jax else {}
    return medians(sides, 60, 10, 20)


def jitted(rows: int, tf32: bool) -> dict[str, Step]:
    """Return JAX's step of the perceptron."""
    # It takes most of the device at once otherwise.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    # For all that follows: what is traced under another precision is traced anew outside of it.
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if tf32 else "float32")
    return {"jax": jax_workloads()[f"mlp step {rows}"]()}


def small_network(kind: Any, **on: Any) -> Any:
    """Return a small convolutional network of layers of ours or of PyTorch's."""
    return kind.Sequential(
        kind.Conv2d(1, 32, 3, **on), kind.ReLU(), kind.Conv2d(32, 64, 3, **on), kind.ReLU(),
        kind.MaxPool2d(2), kind.Flatten(), kind.Linear(64 * 12 * 12, 10, **on),
    )  # fmt: skip


def convolutional(device: Any) -> dict[str, float]:
    """Measure a step of the small network."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 1, 28, 28)).astype(np.float32)
    y = rng.integers(0, 10, 64)

    def made() -> Any:
        model = small_network(nn, device=device.autodiff())
        batch = burn.tensor(x, device=device), burn.tensor(y, device=device)
        loss = lambda m, a, b: F.cross_entropy(m(a), b)  # noqa: E731
        return ours(device, model, optim.SGD(lr=0.01, momentum=0.9), loss, batch)

    other = small_network(tnn, device="cuda")
    eager = theirs(
        other, torch.optim.SGD(other.parameters(), lr=0.01, momentum=0.9),
        lambda m, a, b: TF.cross_entropy(m(a), b),
        (torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()),
    )  # fmt: skip
    return medians({"ours": made()[0], "captured": made()[1], "torch": eager}, 12, 6, 10)


def one_image(device: Any) -> dict[str, float]:
    """Measure the small network's answer for one image."""
    x = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)
    model, image = small_network(nn, device=device), burn.tensor(x, device=device)
    captured = burn.capture(lambda a: model(a), state=(model,))
    other, given = small_network(tnn, device="cuda"), torch.from_numpy(x).cuda()

    def waited(answer: Callable[[Any], Any]) -> Step:
        def step() -> None:
            answer(image)
            device.sync()

        return step

    def eager() -> None:
        with torch.no_grad():
            other(given)
        torch.cuda.synchronize()

    sides = {"ours": waited(model), "captured": waited(captured), "torch": eager}
    return medians(sides, 12, 10, 20)


def resnet(kind: Any, **on: Any) -> Any:
    """Return ResNet-50 of layers of ours or of PyTorch's, which have the same names."""

    class Bottleneck(kind.Module):  # type: ignore[misc,name-defined]
        def __init__(self, wide: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = kind.Conv2d(wide, width, 1, bias=False, **on)
            self.norm1 = kind.BatchNorm2d(width, **on)
            self.conv2 = kind.Conv2d(width, width, 3, stride, 1, bias=False, **on)
            self.norm2 = kind.BatchNorm2d(width, **on)
            self.conv3 = kind.Conv2d(width, 4 * width, 1, bias=False, **on)
            self.norm3 = kind.BatchNorm2d(4 * width, **on)
            self.relu = kind.ReLU()
            self.short = kind.Identity()
            if stride > 1 or wide != 4 * width:
                self.short = kind.Sequential(
                    kind.Conv2d(wide, 4 * width, 1, stride, bias=False, **on),
                    kind.BatchNorm2d(4 * width, **on),
                )

        def forward(self, x: Any) -> Any:
            y = self.relu(self.norm1(self.conv1(x)))
            y = self.relu(self.norm2(self.conv2(y)))
            return self.relu(self.norm3(self.conv3(y)) + self.short(x))

    layers = [
        kind.Conv2d(3, 64, 7, 2, 3, bias=False, **on), kind.BatchNorm2d(64, **on), kind.ReLU(),
        kind.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    wide = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            layers.append(Bottleneck(wide, width, 2 if stage and not block else 1))
            wide = 4 * width
    layers += [kind.AdaptiveAvgPool2d(1), kind.Flatten(), kind.Linear(wide, 1000, **on)]
    return kind.Sequential(*layers)


def images(device: Any) -> dict[str, float]:
    """Measure a step of ResNet-50."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 3, 224, 224)).astype(np.float32)
    y = rng.integers(0, 1000, 64)
    model, optimizer = resnet(nn, device=device.autodiff()), optim.SGD(lr=0.01, momentum=0.9)

    def loss(m: Any, a: Any, b: Any) -> Any:
        with burn.autocast(burn.bfloat16):
            return F.cross_entropy(m(a), b)

    batch = burn.tensor(x, device=device), burn.tensor(y, device=device)
    plain, replayed = ours(device, model, optimizer, loss, batch)
    sides = {}
    for name, order in (("torch", torch.contiguous_format), ("torch nhwc", torch.channels_last)):
        other = resnet(tnn, device="cuda").to(memory_format=order)
        given = torch.from_numpy(x).cuda().to(memory_format=order), torch.from_numpy(y).cuda()

        def torch_loss(m: Any, a: Any, b: Any) -> Any:
            with torch.autocast("cuda", torch.bfloat16):
                return TF.cross_entropy(m(a), b)

        steps = torch.optim.SGD(other.parameters(), lr=0.01, momentum=0.9)
        sides[name] = theirs(other, steps, torch_loss, given)
    # The captured step and the plain one share model and state, so they do not take turns.
    found = medians({"ours": plain}, 16, 10)
    found |= medians({"captured": replayed, **sides}, 8, 10)
    return {**found, "our peak GiB": device.memory_report()["peak"] / 2**30}


class TorchBlock(tnn.Module):
    """A layer of the decoder in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.n1, self.n2 = tnn.LayerNorm(WIDTH), tnn.LayerNorm(WIDTH)
        self.qkv, self.out = tnn.Linear(WIDTH, 3 * WIDTH), tnn.Linear(WIDTH, WIDTH)
        self.up, self.down = tnn.Linear(WIDTH, 4 * WIDTH), tnn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """Return the next hidden states."""
        b, t, _ = x.shape
        parts = self.qkv(self.n1(x)).chunk(3, dim=-1)
        q, k, v = (p.reshape(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)
        mixed = TF.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(TF.gelu(self.up(self.n2(x)), approximate="tanh"))


class TorchTransformer(tnn.Module):
    """The decoder in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = tnn.Embedding(WORDS, WIDTH), tnn.Embedding(TOKENS, WIDTH)
        self.blocks = tnn.ModuleList(TorchBlock() for _ in range(LAYERS))
        self.norm = tnn.LayerNorm(WIDTH)

    def forward(self, tokens: Any) -> Any:
        """Return the scores of the next words."""
        x = self.words(tokens) + self.places(torch.arange(TOKENS, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return TF.linear(self.norm(x), self.words.weight).reshape(-1, WORDS)


def transformer(device: Any) -> dict[str, float]:
    """Measure a step of the transformer."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, WORDS, (BATCH, TOKENS)), rng.integers(0, WORDS, BATCH * TOKENS)
    model, optimizer = Decoder(SIZE, device.autodiff()), optim.AdamW(lr=1e-4)

    def loss(m: Any, a: Any, b: Any) -> Any:
        with burn.autocast(burn.bfloat16):
            scores = m(a)
            return F.cross_entropy(scores, b)

    batch = burn.tensor(x, device=device), burn.tensor(y, device=device)
    plain, replayed = ours(device, model, optimizer, loss, batch)
    other = TorchTransformer().cuda()
    given = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()

    def torch_loss(m: Any, a: Any, b: Any) -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            return TF.cross_entropy(m(a), b)

    eager = theirs(other, torch.optim.AdamW(other.parameters(), lr=1e-4), torch_loss, given)
    compiled = torch.compile(other)
    fast = theirs(compiled, torch.optim.AdamW(other.parameters(), lr=1e-4), torch_loss, given)
    # The captured step and the plain one share model and state, so they do not take turns.
    found = medians({"ours": plain}, 16, 10)
    found |= medians({"captured": replayed, "torch": eager, "compile": fast}, 8, 10)
    report = device.memory_report()
    return {**found, "our peak GiB": report["peak"] / 2**30}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="programs whose name a pattern finds")
    parser.add_argument("--tf32", action="store_true", help="on all sides")
    parser.add_argument("--without-jax", action="store_true", help="where it is not installed")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    jax = not arguments.without_jax
    device = burn.device(arguments.device).configure(burn.DeviceConfig(tf32=arguments.tf32))
    torch.backends.cuda.matmul.allow_tf32 = arguments.tf32
    torch.backends.cudnn.allow_tf32 = arguments.tf32
    programs: dict[str, Callable[[], dict[str, float]]] = {
        "perceptron step, 64 rows": lambda: perceptron(device, 64, jax),
        "perceptron step, 1024 rows": lambda: perceptron(device, 1024, jax),
        "CNN step, 64 images": lambda: convolutional(device),
        "CNN, one image": lambda: one_image(device),
        "ResNet-50 step, 64 images": lambda: images(device),
        "GPT-2 step": lambda: transformer(device),
    }
    found: dict[str, Any] = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "hardware": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "float32 as": "tf32" if arguments.tf32 else "float32",
    }
    for name, measure in programs.items():
        if re.search(arguments.only, name):
            found[name] = measure()
            print(name, {k: round(v, 3) for k, v in found[name].items()}, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
