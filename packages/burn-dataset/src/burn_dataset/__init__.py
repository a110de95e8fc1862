"""Data sets, transforms, loaders."""

from burn_dataset import augment
from burn_dataset.classics import CifarDataset, IdxDataset, MnistDataset, read_idx
from burn_dataset.collating import collate
from burn_dataset.csv import CsvDataset
from burn_dataset.dataset import (
    ArrayDataset,
    ComposedDataset,
    Dataset,
    InMemoryDataset,
    MapDataset,
    PartialDataset,
    SampleDataset,
    SelectDataset,
    ShuffledDataset,
    WindowDataset,
    split,
)
from burn_dataset.folders import (
    AudioFolderDataset,
    FolderDataset,
    ImageFolderDataset,
    TextFolderDataset,
    read_image,
)
from burn_dataset.labelled import (
    CocoDetectionDataset,
    MultiLabelImageDataset,
    SegmentationImageDataset,
)
from burn_dataset.loader import DataLoader
from burn_dataset.stream import IterableDataset
from burn_dataset.tables import (
    ArrowDataset,
    HuggingFaceDataset,
    JsonLinesDataset,
    SqliteDataset,
)
from burn_dataset.workers import WorkerError

__all__ = [
    "ArrayDataset",
    "ArrowDataset",
    "AudioFolderDataset",
    "CifarDataset",
    "CocoDetectionDataset",
    "ComposedDataset",
    "CsvDataset",
    "DataLoader",
    "Dataset",
    "FolderDataset",
    "HuggingFaceDataset",
    "IdxDataset",
    "ImageFolderDataset",
    "InMemoryDataset",
    "IterableDataset",
    "JsonLinesDataset",
    "MapDataset",
    "MnistDataset",
    "MultiLabelImageDataset",
    "PartialDataset",
    "SampleDataset",
    "SegmentationImageDataset",
    "SelectDataset",
    "ShuffledDataset",
    "SqliteDataset",
    "TextFolderDataset",
    "WindowDataset",
    "WorkerError",
    "augment",
    "collate",
    "read_idx",
    "read_image",
    "split",
]
