"""Model files that lie, and loads that must not be silent."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn


def written(path: Path, header: dict[str, Any], data: bytes) -> Path:
    """Write a safetensors file with any header."""
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(shape: list[int], offsets: list[int], dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def refused(path: Path) -> str:
    with pytest.raises(burn.StoreError) as caught, burn.store.open(path) as file:
        for name in file:
            file[name]
    return str(caught.value)


LIES = {
    "short": entry([1000, 1000], [0, 4]),
    "backwards": entry([1], [4, 0]),
    "beyond": entry([4], [0, 16]),
    "negative": entry([1], [-4, 0]),
    "one": entry([1], [0]),
    "three": entry([1], [0, 4, 8]),
    "far": entry([1], [2**60, 2**60 + 4]),
    "huge": entry([2**40, 2**40], [0, 4]),
    "minus": entry([-1], [0, 4]),
}


@pytest.mark.parametrize("kind", LIES)
def test_b112_offsets_that_do_not_fit_the_shape(kind: str, tmp_path: Path) -> None:
    refused(written(tmp_path / "m.safetensors", {"weight": LIES[kind]}, bytes(8)))


def test_b112_overlapping_and_truncated_files(tmp_path: Path) -> None:
    both = {"a": entry([2], [0, 8]), "b": entry([2], [4, 12])}
    refused(written(tmp_path / "o.safetensors", both, bytes(12)))
    whole = tmp_path / "w.safetensors"
    burn.store.save_tensors({"a": burn.ones(4), "b": burn.zeros(4)}, whole)
    data = whole.read_bytes()
    for cut in (3, 8, 20, len(data) - 1):
        part = tmp_path / f"{cut}.safetensors"
        part.write_bytes(data[:cut])
        refused(part)


def test_b112_a_refused_file_loads_nothing(tmp_path: Path) -> None:
    model = burn.nn.Linear(2, 2)
    before = model.weight.tolist()
    good, bad = entry([2, 2], [0, 16]), entry([2], [16, 20])
    path = written(tmp_path / "m.safetensors", {"weight": good, "bias": bad}, bytes(20))
    with pytest.raises(burn.StoreError):
        burn.store.load(model, path)
    assert model.weight.tolist() == before


@pytest.mark.parametrize("offsets", [[2**60, 2**60 + 1], [0, 4]])
def test_b114_an_unknown_dtype_is_refused(offsets: list[int], tmp_path: Path) -> None:
    header = {"weight": entry([4], offsets, "F8_E9M9")}
    said = refused(written(tmp_path / "m.safetensors", header, bytes(4)))
    assert "F8_E9M9" in said or "weight" in said or "header" in said


def test_b116_a_view_is_saved_in_its_logical_order(tmp_path: Path) -> None:
    w = burn.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    path = tmp_path / "t.safetensors"
    burn.store.save_tensors({"w": w.T, "rows": w[::-1], "wide": w[:1].expand(4, 3)}, path)
    with burn.store.open(path) as file:
        assert file["w"].tolist() == w.T.tolist()
        assert file["rows"].tolist() == w[::-1].tolist()
        assert file["wide"].tolist() == [[0, 1, 2]] * 4


def test_b117_a_partial_load_is_never_silent(tmp_path: Path) -> None:
    model = burn.nn.Linear(2, 4)
    before = model.weight.tolist()
    path = tmp_path / "m.safetensors"
    burn.store.save_tensors({"wieght": burn.ones(4, 2), "bias": burn.ones(5)}, path)
    with pytest.raises(burn.StoreError) as caught:
        burn.store.load(model, path)
    said = str(caught.value)
    for part in ("weight", "wieght", "bias", "5", "4"):
        assert part in said
    assert model.weight.tolist() == before
    report = burn.store.load(model, path, strict=False)
    assert report.missing == ["weight"]
    assert list(report.mismatched) == ["bias"]
