"""Serve the trained digits model from the saved files alone.

python examples/digits/serve.py ROW [ROW ...]   predictions for rows of the data
python examples/digits/serve.py --check         the test accuracy, recomputed
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from data import HERE, load
from model import Digits

import burn
from burn import Device, store
from burn.core import ModuleConfig
from burn.dataset import DataLoader


def restore(folder: Path, device: Device) -> Digits:
    """Return the model that `train.py` saved, ready for inference."""
    model: Digits = ModuleConfig.load(folder / "model.json").init(device)
    store.load(model, folder / "model.safetensors")
    return model.valid()


def main() -> None:
    """Answer for rows, or check the accuracy."""
    parser = argparse.ArgumentParser(description="Serve the digits model.")
    parser.add_argument("rows", type=int, nargs="*", help="rows of the data file")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "runs")
    args = parser.parse_args()
    if not args.rows and not args.check:
        parser.error("give rows or --check")

    device = Device.default()
    model = restore(args.out, device)
    train, test = load()
    if args.rows:
        images = np.empty((len(train) + len(test), 1, 8, 8), np.float32)
        labels = np.empty(len(images), np.int64)
        is_test = np.arange(len(images)) % 5 == 0
        images[is_test], images[~is_test] = test.arrays[0], train.arrays[0]
        labels[is_test], labels[~is_test] = test.arrays[1], train.arrays[1]
        chances = model(burn.tensor(images[args.rows], device=device)).softmax(1)
        best = chances.max(1)
        for row, digit, p in zip(
            args.rows, best.indices.tolist(), best.values.tolist(), strict=True
        ):
            print(f"row {row}: digit {digit} ({100 * p:.1f} %), label {labels[row]}")
    if args.check:
        hits = sum(
            int((model(images).argmax(dim=1) == labels).sum())
            for images, labels in DataLoader(test, 256, device=device)
        )
        print(f"test accuracy: {100 * hits / len(test):.2f} %")


if __name__ == "__main__":
    main()
