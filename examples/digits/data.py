"""The digits as arrays: images [N, 1, 8, 8] in [0, 1] and labels [N].

Every fifth row is the test split.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from burn.dataset import ArrayDataset, CsvDataset

HERE = Path(__file__).parent


def load() -> tuple[ArrayDataset, ArrayDataset]:
    """Return (train, test); rows with index % 5 == 0 are the test split and never trained on."""
    rows = CsvDataset(HERE / "digits.csv.gz").values
    images = (rows[:, :64] / 16).reshape(-1, 1, 8, 8).astype(np.float32)
    labels = rows[:, 64].astype(np.int64)
    test = np.arange(len(rows)) % 5 == 0
    return ArrayDataset(images[~test], labels[~test]), ArrayDataset(images[test], labels[test])
