"""The example on tiny IDX files of the same form, and what it says where there are none."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


def write_idx(path: Path, array: np.ndarray) -> None:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wb") as file:
        file.write(head + array.tobytes())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Ten kinds of image that a small net tells apart: a bright square, each at its own place."""
    rng = np.random.default_rng(0)
    for prefix, count, ending in (("train", 400, ".gz"), ("t10k", 100, "")):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = rng.integers(0, 60, (count, 28, 28), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            row, column = divmod(int(label), 5)
            image[14 * row + 2 : 14 * row + 12, 5 * column + 1 : 5 * column + 6] = 250
        write_idx(tmp_path / f"{prefix}-images-idx3-ubyte{ending}", images)
        write_idx(tmp_path / f"{prefix}-labels-idx1-ubyte{ending}", labels)
    return tmp_path


def test_it_learns(files: Path, run_script: Callable[..., str], device: str) -> None:
    said = run_script(
        "train.py",
        "--data",
        files,
        "--epochs",
        3,
        "--batch-size",
        32,
        "--out",
        files,
        device=device,
    )
    found = re.search(r"test accuracy: ([0-9.]+) %", said)
    assert found, said
    assert float(found[1]) > 90
    assert said.count(" %") == 11
    assert (files / "model.safetensors").is_file()


def test_missing_files_name_the_remedy(tmp_path: Path, run_script: Callable[..., str]) -> None:
    said = run_script("train.py", "--data", tmp_path, fails=True)
    assert "train-images-idx3-ubyte" in said
    assert "apt install dataset-fashion-mnist" in said
    assert "--data FOLDER" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("content", "rule"),
    [(b"hello", "no IDX file"), (b"\0\0\x08\1\0\0\0\5abc", "got 3 in t10k-labels")],
)
def test_other_files_are_refused(
    content: bytes, rule: str, files: Path, run_script: Callable[..., str]
) -> None:
    (files / "t10k-labels-idx1-ubyte").write_bytes(content)
    said = run_script("train.py", "--data", files, fails=True)
    assert rule in said
    assert "Traceback" not in said
