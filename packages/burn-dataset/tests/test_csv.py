"""Numbers from CSV files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from burn_dataset import CsvDataset
from burn_std import ArgumentError, StoreError


def test_a_plain_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,4.5\n\n")
    data = CsvDataset(path)
    assert len(data) == 2
    assert data[1].tolist() == [3, 4.5]
    assert data.values.dtype == np.float32


def test_a_heading_and_gzip(tmp_path):
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wt") as out:
        out.write("x,y\n1,2\n3,4\n")
    data = CsvDataset(path, header=True)
    assert data.columns == ["x", "y"]
    assert data.column("y").tolist() == [2, 4]
    with pytest.raises(ArgumentError, match="no such column"):
        data.column("z")


def test_an_empty_file_has_no_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n")
    assert len(CsvDataset(path, header=True)) == 0


@pytest.mark.parametrize(("text", "found"), [
    ("1,2\n3\n", "line 2"), ("1,2\n3,oops\n", "'oops' in row 2"),
])  # fmt: skip
def test_a_bad_file_is_refused_with_the_place(tmp_path, text, found):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(StoreError, match=found):
        CsvDataset(path)


def test_no_file_and_no_gzip(tmp_path):
    with pytest.raises(StoreError):
        CsvDataset(tmp_path / "none.csv")
    path = tmp_path / "a.csv.gz"
    path.write_bytes(b"not gzip")
    with pytest.raises(StoreError):
        CsvDataset(path)
