"""The handwritten digits of the example `digits`: images [N, 64] in [0, 1] and labels [N]."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from burn.dataset import ArrayDataset, CsvDataset

FILE = Path(__file__).parents[1] / "digits" / "digits.csv.gz"


def load() -> tuple[ArrayDataset, ArrayDataset]:
    """Return (train, test); every fifth row is the test split."""
    rows = CsvDataset(FILE).values
    images, labels = rows[:, :64] / 16, rows[:, 64].astype(np.int64)
    test = np.arange(len(rows)) % 5 == 0
    return ArrayDataset(images[~test], labels[~test]), ArrayDataset(images[test], labels[test])
