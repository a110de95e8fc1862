"""Whole programs on a GPU: ours as written and captured, beside PyTorch eager and compiled.

    python benchmarks/gpu_programs.py [--device cuda] [--only TEXT] [--json FILE]

A training step of a perceptron (784-512-512-10, Adam, float32) at two batch sizes, and one of a
model of GPT-2's size (124 M parameters, 8 x 1024 tokens, bfloat16 autocast, AdamW). Every step is
waited for; medians in milliseconds. Sides take turns in one process. The first steps compile and
are left out.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn as tnn

import burn
from burn import functional as F, nn, optim

TF = torch.nn.functional
Step = Callable[[], Any]
BATCH, TOKENS, LAYERS, HEADS, WIDTH, WORDS = 8, 1024, 12, 12, 768, 50257


def medians(sides: dict[str, Step], warm: int, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each side; they take turns."""
    for step in sides.values():
        for _ in range(warm):
            step()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, step in sides.items():
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


def perceptron(device: Any, rows: int) -> dict[str, float]:
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
    return medians(sides, 12, 60)


class Block(nn.Module):
    """One layer of the transformer."""

    def __init__(self, device: Any) -> None:
        self.n1, self.n2 = (nn.LayerNorm(WIDTH, device=device) for _ in range(2))
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, device=device)
        self.out = nn.Linear(WIDTH, WIDTH, device=device)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, device=device)
        self.down = nn.Linear(4 * WIDTH, WIDTH, device=device)

    def forward(self, x: Any) -> Any:
        """Return the next hidden states."""
        b, t, _ = x.shape
        parts = self.qkv(self.n1(x)).chunk(3, dim=-1)
        q, k, v = (p.reshape(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class Transformer(nn.Module):
    """A decoder of GPT-2's size; input and output share the table of words."""

    def __init__(self, device: Any) -> None:
        self.words = nn.Embedding(WORDS, WIDTH, device=device)
        self.places = nn.Embedding(TOKENS, WIDTH, device=device)
        self.blocks = [Block(device) for _ in range(LAYERS)]
        self.norm = nn.LayerNorm(WIDTH, device=device)

    def forward(self, tokens: Any) -> Any:
        """Return the scores of the next words."""
        x = self.words(tokens) + self.places(burn.arange(TOKENS, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.words.weight).reshape(-1, WORDS)


class TorchBlock(tnn.Module):
    """The same in PyTorch."""

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
    """The same in PyTorch."""

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
    model, optimizer = Transformer(device.autodiff()), optim.AdamW(lr=1e-4)

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
    found = medians({"ours": plain}, 6, 10)
    found |= medians({"captured": replayed, "torch": eager, "compile": fast}, 6, 10)
    report = device.memory_report()
    return {**found, "our peak GiB": report["peak"] / 2**30}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = burn.device(arguments.device)
    programs: dict[str, Callable[[], dict[str, float]]] = {
        "perceptron step, 64 rows": lambda: perceptron(device, 64),
        "perceptron step, 1024 rows": lambda: perceptron(device, 1024),
        "GPT-2 step": lambda: transformer(device),
    }
    found: dict[str, Any] = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "hardware": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
    }
    for name, measure in programs.items():
        if arguments.only in name:
            found[name] = measure()
            print(name, {k: round(v, 3) for k, v in found[name].items()}, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
