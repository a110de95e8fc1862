"""Train on Fashion-MNIST, then say how good each class is.

    python examples/fashion_mnist/train.py [--data FOLDER] [--epochs 3] [--limit N]

`BURN_DEVICE` picks the device; nothing else changes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from data import CLASSES, DEBIAN, load
from model import FashionNet

import burn
from burn import Device, nn, optim, store
from burn.dataset import ArrayDataset, DataLoader
from burn.train import Accuracy, Learner, SupervisedTraining


def by_class(model: nn.Module, loader: DataLoader) -> list[float]:
    """Return for each class the percentage of its images that are recognised."""
    infer = model.valid()
    right, seen = np.zeros(len(CLASSES)), np.zeros(len(CLASSES))
    for images, labels in loader:
        hits = (infer(images).argmax(dim=1) == labels).numpy()
        np.add.at(right, labels.numpy(), hits)
        np.add.at(seen, labels.numpy(), 1)
    return list(100 * right / np.maximum(seen, 1))


def main() -> None:
    """Train, evaluate, save."""
    parser = argparse.ArgumentParser(description="Train on Fashion-MNIST.")
    parser.add_argument("--data", type=Path, default=DEBIAN, help="folder with the IDX files")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--limit", type=int, help="use only so many training images")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "runs")
    args = parser.parse_args()

    train, test = load(args.data)
    if args.limit:
        train = ArrayDataset(*(array[: args.limit] for array in train.arrays))
    device = Device.default().autodiff()
    burn.manual_seed(1)
    model = FashionNet(device=device)
    learner = Learner(model, optim.AdamW(lr=args.lr), nn.CrossEntropyLoss(label_smoothing=0.05))
    training = SupervisedTraining(
        DataLoader(train, args.batch_size, shuffle=True, seed=1, device=device),
        DataLoader(test, 500, device=device),
        epochs=args.epochs,
        metrics=[Accuracy],
    )
    print(f"device {device}, {model.num_params():,} parameters, {len(train)} training images")
    training.run(learner)

    args.out.mkdir(parents=True, exist_ok=True)
    store.save(model, args.out / "model.safetensors")
    for name, share in zip(CLASSES, by_class(model, training.valid), strict=True):
        print(f"{name:10} {share:6.2f} %")
    accuracy = training.evaluate(learner, training.valid)["accuracy"]
    print(f"test accuracy: {accuracy:.2f} %")


if __name__ == "__main__":
    main()
