"""Data sets and loaders: everything of burn_dataset."""

from typing import TYPE_CHECKING

from burn_dataset import *  # noqa: F403
from burn_dataset import __all__ as __all__
from burn_std import missing_name as _missing_name

if not TYPE_CHECKING:
    # What `torch.utils.data` and `torchvision.datasets` have, and what to write instead.
    _OTHERWISE = {
        "TensorDataset": "Use ArrayDataset(x, y).",
        "Subset": "Use SelectDataset(data, indices).",
        "ConcatDataset": "Use ComposedDataset.",
        "random_split": "Use burn.dataset.split(data, fractions, seed).",
        "default_collate": "Use burn.dataset.collate.",
        "ImageFolder": "Use ImageFolderDataset.",
        "MNIST": "Use MnistDataset.",
        "FashionMNIST": "Use MnistDataset on the folder of its files.",
        "CIFAR10": "Use CifarDataset.",
        "CIFAR100": "Use CifarDataset.",
        "Sampler": "Use SampleDataset or ShuffledDataset, or DataLoader(..., shuffle=True).",
        "DistributedSampler": "Use loader.split(devices).",
    }

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.dataset", name, __all__, _OTHERWISE)
