"""Well-known data sets from their own files: IDX (MNIST and its kin) and CIFAR binaries."""

from __future__ import annotations

import gzip
import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from burn_dataset.dataset import ArrayDataset
from burn_std import ArgumentError, StoreError

Array = np.ndarray[Any, Any]
PathLike = str | os.PathLike[str]

# The third byte of the magic number.
_IDX = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PIXELS = 3 * 32 * 32


def read_idx(path: PathLike) -> Array:
    r"""Return the array of an IDX file, plain or gzipped.

    Args:
        path: of the file.

    Raises:
        StoreError: the file cannot be read, or its size is not what its head says.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "labels.idx1-ubyte")
        ...     _ = path.write_bytes(b"\x00\x00\x08\x01\x00\x00\x00\x03\x07\x08\x09")
        ...     read_idx(path).tolist()
        [7, 8, 9]
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            packed = opened.read(2) == b"\x1f\x8b"
        data = (gzip.open if packed else open)(file, "rb").__enter__()
        with data:
            head = data.read(4)
            if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX or not head[3]:
                raise StoreError("read_idx", "the file is no IDX file", got=file.name)
            dtype, rank = np.dtype(_IDX[head[2]]), head[3]
            dims = data.read(4 * rank)
            if len(dims) < 4 * rank:
                raise StoreError("read_idx", "the head is whole", got=file.name)
            shape = tuple(int(n) for n in np.frombuffer(dims, ">u4"))
            wanted = prod(shape) * dtype.itemsize
            # One byte more than wanted shows what is too long, however long it is.
            body = data.read(wanted + 1)
    except (OSError, EOFError, gzip.BadGzipFile) as cause:
        raise StoreError(
            "read_idx", "the file cannot be read", got=f"{file.name}: {cause}"
        ) from cause
    except (MemoryError, OverflowError) as cause:
        raise StoreError("read_idx", "the head says what the file holds", got=file.name) from cause
    if len(body) != wanted:
        raise StoreError(
            "read_idx", f"the file holds {wanted} bytes as its head says",
            got=f"{'more' if len(body) > wanted else len(body)} in {file.name}",
        )  # fmt: skip
    found = np.frombuffer(body, dtype).reshape(shape)
    return found.astype(dtype.newbyteorder("="))


class IdxDataset(ArrayDataset):
    """Images and labels of two IDX files: items ([1, H, W] of float32 in [0, 1], label).

    Args:
        images: file of images [N, H, W].
        labels: file of labels [N].

    Raises:
        StoreError: a file is no such file, or they do not belong together.
    """

    def __init__(self, images: PathLike, labels: PathLike) -> None:
        pixels, marks = read_idx(images), read_idx(labels)
        if pixels.ndim != 3 or marks.shape != pixels.shape[:1]:
            raise StoreError(
                "IdxDataset", "images are [N, H, W] and labels [N]",
                got=f"{pixels.shape} and {marks.shape}",
            )  # fmt: skip
        super().__init__(
            (pixels[:, None] / np.float32(255)).astype(np.float32), marks.astype(np.int64)
        )


class MnistDataset(IdxDataset):
    """MNIST, or a data set in its files, as Fashion-MNIST: whatever lies in the folder.

    Args:
        root: folder with `train-images-idx3-ubyte` and so on, plain or `.gz`.
        train: the training part; else the test part.

    Raises:
        StoreError: files are missing or broken.
    """

    def __init__(self, root: PathLike, train: bool = True) -> None:
        part = "train" if train else "t10k"
        super().__init__(
            _found(root, f"{part}-images", "idx3-ubyte"),
            _found(root, f"{part}-labels", "idx1-ubyte"),
        )


def _found(root: PathLike, name: str, kind: str) -> Path:
    folder = Path(root)
    for mark in ("-", "."):
        for end in ("", ".gz"):
            path = folder / f"{name}{mark}{kind}{end}"
            if path.is_file():
                return path
    raise StoreError(
        "MnistDataset", "the folder has the files of the data set",
        got=f"no {name}-{kind} in {folder.name}",
    )  # fmt: skip


class CifarDataset(ArrayDataset):
    """CIFAR-10 or CIFAR-100 from its binary files: items ([3, 32, 32] in [0, 1], label).

    Args:
        root: folder with `data_batch_1.bin` and so on, or `train.bin` and `test.bin`.
        train: the training part; else the test part.
        classes: 10 or 100.
        coarse: of CIFAR-100, the labels of the 20 groups.

    Raises:
        StoreError: files are missing or broken.
        ArgumentError: there is no such data set.
    """

    def __init__(
        self, root: PathLike, train: bool = True, *, classes: int = 10, coarse: bool = False
    ) -> None:
        if classes not in (10, 100) or (coarse and classes == 10):
            raise ArgumentError(
                "CifarDataset",
                "classes are 10 or 100, coarse is of 100",
                got=f"{classes}, {coarse}",
            )
        if classes == 10:
            names = [f"data_batch_{k}.bin" for k in range(1, 6)] if train else ["test_batch.bin"]
        else:
            names = ["train.bin" if train else "test.bin"]
        heads = 1 if classes == 10 else 2
        parts = [_cifar_rows(Path(root) / name, heads + _PIXELS) for name in names]
        rows = np.concatenate(parts)
        labels = rows[:, 0 if coarse else heads - 1].astype(np.int64)
        if labels.size and labels.max() >= (20 if coarse else classes):
            raise StoreError("CifarDataset", "labels are below the number of classes", got=names)
        pixels = rows[:, heads:].reshape(-1, 3, 32, 32)
        super().__init__((pixels / np.float32(255)).astype(np.float32), labels)


def _cifar_rows(path: Path, width: int) -> Array:
    try:
        data = path.read_bytes()
    except OSError as cause:
        raise StoreError(
            "CifarDataset", "the folder has the files of the data set", got=path.name
        ) from cause
    if not data or len(data) % width:
        raise StoreError(
            "CifarDataset", f"the file holds records of {width} bytes",
            got=f"{len(data)} bytes in {path.name}",
        )  # fmt: skip
    return np.frombuffer(data, np.uint8).reshape(-1, width)
