"""Train the digits model, print a table per epoch and the test accuracy, save everything.

    python examples/digits/train.py [--epochs 12] [--out FOLDER] [--resume]

`BURN_DEVICE` picks the device; nothing else changes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from data import HERE, load
from model import Digits

from burn import Device, nn, optim, store
from burn.dataset import DataLoader
from burn.train import Accuracy, Learner, SupervisedTraining, TrainingResult


def plot(result: TrainingResult, path: Path) -> None:
    """Write the learning curves as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, what, unit in zip(axes, ("loss", "accuracy"), ("", " (%)"), strict=True):
        for split in ("train", "valid"):
            axis.plot(
                result.column("epoch"), result.column(f"{split} {what}"), marker="o", label=split
            )
        axis.set(xlabel="epoch", ylabel=what + unit)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.suptitle("Handwritten digits")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def prepare(
    device: Device,
    *,
    epochs: int,
    batch_size: int = 64,
    lr: float = 2e-3,
    seed: int = 1,
    directory: Path | None = None,
    view: str | None = None,
) -> tuple[SupervisedTraining, Learner]:
    """Return the training and what it trains, all on one device and decided by one seed."""
    device = device.autodiff()
    device.seed(seed)
    train, test = load()
    learner = Learner(Digits(device=device), optim.AdamW(lr=lr), nn.CrossEntropyLoss())
    training = SupervisedTraining(
        DataLoader(train, batch_size, shuffle=True, seed=seed, device=device),
        DataLoader(test, 256, device=device),
        epochs=epochs,
        metrics=[Accuracy],
        directory=directory,
        view=view,
    )
    return training, learner


def main() -> None:
    """Train, evaluate, save."""
    parser = argparse.ArgumentParser(description="Train the digits model.")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "runs")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")
    args = parser.parse_args()

    device = Device.default()
    training, learner = prepare(
        device,
        epochs=args.epochs,
        batch_size=args.batch_size,
        lr=args.lr,
        seed=args.seed,
        directory=args.out,
    )
    model, test = learner.model, training.valid
    print(
        f"device {device.autodiff()}, {model.num_params():,} parameters, "
        f"{len(training.train.dataset)} training and {len(test.dataset)} test images"
    )
    result = training.run(learner, resume=args.resume)
    if result.interrupted:
        print("interrupted; go on with --resume", file=sys.stderr)
        raise SystemExit(130)

    store.save(model, args.out / "model.safetensors")
    model.config().save(args.out / "model.json")
    plot(result, args.out / "curves.png")
    result.summary.html(args.out / "report.html")
    print(f"saved to {args.out}")
    print(f"test accuracy: {training.evaluate(learner, test)['accuracy']:.2f} %")


if __name__ == "__main__":
    main()
