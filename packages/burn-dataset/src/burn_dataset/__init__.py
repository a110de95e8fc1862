"""Data sets, transforms, loaders."""

from burn_dataset.csv import CsvDataset as CsvDataset
from burn_dataset.dataset import (
    ArrayDataset as ArrayDataset,
    ComposedDataset as ComposedDataset,
    Dataset as Dataset,
    InMemoryDataset as InMemoryDataset,
    MapDataset as MapDataset,
    PartialDataset as PartialDataset,
    SelectDataset as SelectDataset,
    ShuffledDataset as ShuffledDataset,
    split as split,
)
from burn_dataset.loader import DataLoader as DataLoader, collate as collate

__all__ = [
    "ArrayDataset",
    "ComposedDataset",
    "CsvDataset",
    "DataLoader",
    "Dataset",
    "InMemoryDataset",
    "MapDataset",
    "PartialDataset",
    "SelectDataset",
    "ShuffledDataset",
    "collate",
    "split",
]
