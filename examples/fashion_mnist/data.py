"""Fashion-MNIST from its IDX files: images [N, 1, 28, 28] standardised, labels [N].

The files are those of the data set's authors, gzipped or not, under their own names. Debian has
them in the package dataset-fashion-mnist; any other folder with the four files does as well.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from burn.dataset import ArrayDataset

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
CLASSES = [
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot",
]  # fmt: skip
# Mean and standard deviation of all training pixels, in [0, 1].
MEAN, STD = 0.2860, 0.3530


def read_idx(path: Path) -> np.ndarray:
    """Return the array of bytes in an IDX file.

    Four bytes say the element type and the rank, then there is one big-endian int per dim.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        head = file.read(4)
        if len(head) < 4 or head[:3] != b"\0\0\x08":
            raise SystemExit(f"{path}: not an IDX file of bytes; it begins with {head!r}")
        shape = tuple(int.from_bytes(file.read(4), "big") for _ in range(head[3]))
        data = np.frombuffer(file.read(), np.uint8)
    if data.size != np.prod(shape):
        raise SystemExit(f"{path}: {np.prod(shape)} bytes announced, {data.size} there")
    return data.reshape(shape)


def find(folder: Path, name: str) -> Path:
    """Return the file of that name, gzipped or not; without it the program ends with the remedy."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise SystemExit(
        f"{folder}: no {name} or {name}.gz here.\n"
        "On Debian and Ubuntu: apt install dataset-fashion-mnist.\n"
        "Elsewhere: put the four IDX files of Fashion-MNIST into a folder and pass --data FOLDER."
    )


def load(folder: Path = DEBIAN) -> tuple[ArrayDataset, ArrayDataset]:
    """Return (train, test)."""
    splits = []
    for prefix in ("train", "t10k"):
        images = read_idx(find(folder, f"{prefix}-images-idx3-ubyte"))
        labels = read_idx(find(folder, f"{prefix}-labels-idx1-ubyte"))
        pixels = (images[:, None].astype(np.float32) / 255 - MEAN) / STD
        splits.append(ArrayDataset(pixels.astype(np.float32), labels.astype(np.int64)))
    return splits[0], splits[1]
