"""Data sets, transforms, loaders."""

from typing import TYPE_CHECKING

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
from burn_std import missing_name as _missing_name

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

if not TYPE_CHECKING:
    # What `torch.utils.data` and `torchvision` have under this name, and what to write instead.
    _OTHERWISE = {
        "TensorDataset": "Write ArrayDataset(*arrays).",
        "random_split": "Write split(data, [0.8, 0.2], seed=1).",
        "Subset": "Write SelectDataset(data, indices).",
        "ConcatDataset": "Write ComposedDataset([first, second]).",
        "ImageFolder": "Write ImageFolderDataset(root).",
        "transforms": "Changes of images are in burn.dataset.augment.",
        "default_collate": "Write collate.",
        "MNIST": "Write MnistDataset(root).",
        "FashionMNIST": "Write MnistDataset on the folder of its files.",
        "CIFAR10": "Write CifarDataset(root).",
        "CIFAR100": "Write CifarDataset(root).",
        "Sampler": "Write SampleDataset or ShuffledDataset, or DataLoader(..., shuffle=True).",
        "DistributedSampler": "Write loader.split(devices).",
        "RandomSampler": "Write DataLoader(..., shuffle=True).",
        "WeightedRandomSampler": "Write DataLoader(..., weights=weights).",
        "SubsetRandomSampler": "Write DataLoader(SelectDataset(data, indices), shuffle=True).",
        "SequentialSampler": "Write DataLoader(..., shuffle=False).",
        "BatchSampler": "Write DataLoader(..., batch_size=n, drop_last=True).",
        "ChainDataset": "Write ComposedDataset([first, second]).",
        "get_worker_info": "Write a data set with items by index, or IterableDataset(shards): "
        "workers share them out.",
    }

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.dataset", name, __all__, _OTHERWISE)
