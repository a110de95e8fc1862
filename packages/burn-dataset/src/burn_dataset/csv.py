"""Numbers in CSV files, plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np

from burn_dataset.dataset import check_index
from burn_std import ArgumentError, StoreError


class CsvDataset:
    r"""The rows of a CSV file of numbers, read at once; an item is one row.

    Args:
        path: the file; `.gz` is unpacked.
        header: the first line holds column names.
        dtype: numpy dtype of the numbers.
        delimiter: character between fields.

    Attributes:
        columns: column names, or None without a header.
        values: all rows, [rows, columns].

    Raises:
        StoreError: the file is missing, or a row has another length or no number.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as d:
        ...     _ = pathlib.Path(d, "a.csv").write_text("x,y\n1,2\n3,4\n")
        ...     data = CsvDataset(pathlib.Path(d, "a.csv"), header=True)
        >>> data.columns, data[1].tolist()
        (['x', 'y'], [3.0, 4.0])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        header: bool = False,
        dtype: Any = np.float32,
        delimiter: str = ",",
    ) -> None:
        file = Path(path)
        opened: Any = gzip.open if file.suffix == ".gz" else open
        self.columns: list[str] | None = None
        rows: list[list[str]] = []
        try:
            with opened(file, "rt", encoding="utf-8", newline="") as handle:
                reader = csv.reader(handle, delimiter=delimiter)
                if header:
                    self.columns = next(reader, [])
                for row in reader:
                    if not row:
                        continue
                    if rows and len(row) != len(rows[0]):
                        raise StoreError(
                            "CsvDataset",
                            f"every row has {len(rows[0])} fields",
                            got=f"{len(row)} in line {reader.line_num} of {file.name}",
                        )
                    rows.append(row)
        except (OSError, EOFError, UnicodeDecodeError) as cause:
            raise StoreError(
                "CsvDataset", "the file cannot be read", got=f"{file}: {cause}"
            ) from cause
        try:
            self.values: np.ndarray[Any, Any] = np.array(rows, dtype=np.float64).astype(dtype)
        except ValueError:
            raise StoreError(
                "CsvDataset", "every field is a number", got=_first_bad(rows, file.name)
            ) from None
        if not rows:
            self.values = np.zeros((0, len(self.columns or ())), dtype)

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """Return a column by its name."""
        if self.columns is None or name not in self.columns:
            raise ArgumentError(
                "CsvDataset.column", "no such column", got=name, remedy=f"There are {self.columns}."
            )
        return self.values[:, self.columns.index(name)]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> np.ndarray[Any, Any]:
        row: np.ndarray[Any, Any] = self.values[check_index(index, len(self), "CsvDataset")]
        return row


def _first_bad(rows: list[list[str]], name: str) -> str:
    for k, row in enumerate(rows):
        for field in row:
            try:
                float(field)
            except ValueError:
                return f"{field!r} in row {k + 1} of {name}"
    return name
