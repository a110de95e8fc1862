"""Pictures that are made, not loaded, so that everybody compares the same ones."""

from __future__ import annotations

import numpy as np


def picture(size: int, number: int) -> np.ndarray:
    """Return waves in three colours, [3, size, size] in [-1, 1].

    Args:
        size: height and width.
        number: which picture.
    """
    rows, columns = np.meshgrid(np.linspace(0, 1, size), np.linspace(0, 1, size), indexing="ij")
    waves = [
        np.sin((3 + number) * rows * 2 + colour) * np.cos((5 - number) * columns + colour * 2)
        for colour in range(3)
    ]
    return np.stack(waves).astype(np.float32)
