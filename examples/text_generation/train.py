"""Train a character transformer, then let it write.

    python examples/text_generation/train.py [--text FILE] [--steps 1000]

Without a file it learns from the language reference that is part of every Python.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from generate import write
from model import CharTransformer
from text import Alphabet, Windows, read

import burn
from burn import Device, functional as F, optim, store
from burn.dataset import DataLoader
from burn.optim import lr_scheduler


def bits(model: CharTransformer, loader: DataLoader) -> float:
    """Return the mean bits per character on text that was held out."""
    infer = model.valid()
    total = sum(
        F.cross_entropy(infer(x).flatten(0, 1), y.flatten()).item() * len(x) for x, y in loader
    )
    return total / len(loader.dataset) / math.log(2)


def main() -> None:
    """Train, evaluate, save, write."""
    parser = argparse.ArgumentParser(description="Train a character transformer.")
    parser.add_argument("--text", type=Path, help="a text file")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--context", type=int, default=96)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "runs")
    args = parser.parse_args()

    text = read(args.text)
    alphabet = Alphabet.of(text)
    numbers = alphabet.encode(text)
    held_out = len(numbers) // 20
    count = args.steps * args.batch_size
    device = Device.default().autodiff()
    train = DataLoader(
        Windows(numbers[:-held_out], args.context, count, seed=1), args.batch_size, device=device
    )
    valid = DataLoader(Windows(numbers[-held_out:], args.context, 128, seed=2), 64, device=device)
    burn.manual_seed(1)
    model = CharTransformer(len(alphabet.characters), args.context, args.width, device=device)
    optimizer = optim.AdamW(weight_decay=0.05)
    schedule = lr_scheduler.WarmupLR(
        lr_scheduler.CosineAnnealingLR(args.lr, T_max=args.steps, eta_min=args.lr / 20),
        steps=max(1, args.steps // 20),
    )
    print(
        f"device {device}, {model.num_params():,} parameters, {len(text):,} characters, "
        f"{len(alphabet.characters)} different ones"
    )
    for step, (x, y) in enumerate(train, 1):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        grads = loss.backward()
        optim.clip_grad_norm(model, grads, 1.0)
        shown = loss.detach()
        optimizer.step(model, grads, lr=schedule.lr)
        schedule.step()
        if step % max(1, args.steps // 10) == 0:
            print(f"step {step:5}  {shown.item() / math.log(2):.3f} bits per character")
    print(f"held out: {bits(model, valid):.3f} bits per character")

    args.out.mkdir(parents=True, exist_ok=True)
    store.save(model, args.out / "model.safetensors")
    model.config().save(args.out / "model.json")
    alphabet.save(args.out / "alphabet.json")
    print(f"saved to {args.out}")
    write(model.valid(), alphabet, "The ", 200, 0.8)


if __name__ == "__main__":
    main()
