"""Train a transformer to tell which field of the standard library a docstring is from.

    python examples/text_classification/train.py [--epochs 12] [TEXT ...]

Texts on the command line are sorted by the trained model at the end.
"""

from __future__ import annotations

import argparse

import numpy as np
from data import FIELDS, Vocabulary, is_held_out, texts
from model import Classifier

import burn
from burn import Device, nn, optim
from burn.dataset import DataLoader
from burn.train import Accuracy, Learner, SupervisedTraining

ASK = [
    "Send a message to the mail server and close the connection.",
    "Wait until the lock is released by another thread.",
    "Return the median of the data.",
    "Extract all members of the archive into a directory.",
]


def main() -> None:
    """Train, evaluate, sort some texts."""
    parser = argparse.ArgumentParser(description="Sort docstrings by field.")
    parser.add_argument("texts", nargs="*", default=ASK)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()

    pairs = texts()
    train = [pair for pair in pairs if not is_held_out(pair[0])]
    test = [pair for pair in pairs if is_held_out(pair[0])]
    vocabulary = Vocabulary.of([text for text, _ in train])
    device = Device.default().autodiff()
    burn.manual_seed(1)
    model = Classifier(len(vocabulary), len(FIELDS), args.width, device=device)
    counts = np.bincount([field for _, field in train], minlength=len(FIELDS))
    # Rare fields count as much as frequent ones.
    weight = burn.tensor((len(train) / (len(FIELDS) * counts)).astype(np.float32), device=device)
    learner = Learner(
        model, optim.AdamW(lr=args.lr, weight_decay=0.05), nn.CrossEntropyLoss(weight=weight)
    )
    training = SupervisedTraining(
        DataLoader(vocabulary.dataset(train), args.batch_size, shuffle=True, seed=1, device=device),
        DataLoader(vocabulary.dataset(test), 256, device=device),
        epochs=args.epochs,
        metrics=[Accuracy],
    )
    print(
        f"device {device}, {model.num_params():,} parameters, {len(train)} training and "
        f"{len(test)} test texts, {len(vocabulary)} words"
    )
    training.run(learner)
    accuracy = training.evaluate(learner, training.valid)["accuracy"]
    print(f"test accuracy: {accuracy:.2f} % (the largest field alone: {share(test):.2f} %)")

    numbers = burn.tensor(np.stack([vocabulary.encode(text) for text in args.texts]), device=device)
    best = model.valid()(numbers).softmax(1).max(dim=1)
    names = list(FIELDS)
    for text, field, chance in zip(
        args.texts, best.indices.tolist(), best.values.tolist(), strict=True
    ):
        print(f"{names[field]:18} {100 * chance:3.0f} %  {text}")


def share(pairs: list[tuple[str, int]]) -> float:
    """Return the percentage of the most frequent field."""
    counts = np.bincount([field for _, field in pairs])
    return float(100 * counts.max() / counts.sum())


if __name__ == "__main__":
    main()
