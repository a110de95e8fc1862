"""Fashion-MNIST from its IDX files: images [N, 1, 28, 28] standardised, labels [N].

The files are those of the data set's authors, gzipped or not, under their own names. Debian has
them in the package dataset-fashion-mnist; any other folder with the four files does as well.
"""

from __future__ import annotations

from pathlib import Path

import burn
from burn.dataset import ArrayDataset, MnistDataset

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
CLASSES = [
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot",
]  # fmt: skip
# Mean and standard deviation of all training pixels, in [0, 1].
MEAN, STD = 0.2860, 0.3530
REMEDY = """\
On Debian and Ubuntu: apt install dataset-fashion-mnist.
Elsewhere: put the four IDX files of Fashion-MNIST into a folder and pass --data FOLDER."""


def load(folder: Path = DEBIAN) -> tuple[ArrayDataset, ArrayDataset]:
    """Return (train, test); without the files the program ends with the remedy."""
    try:
        splits = [MnistDataset(folder, train=True), MnistDataset(folder, train=False)]
    except burn.StoreError as error:
        raise SystemExit(f"{folder}: {error}.\n{REMEDY}") from None
    train, test = (ArrayDataset((s.arrays[0] - MEAN) / STD, s.arrays[1]) for s in splits)
    return train, test
