"""Changes of images [C, H, W], plain and at random; the random ones take a generator.

    train = MapDataset(images, Compose([RandomCrop(28, padding=2), RandomHorizontalFlip()]),
                       random=True)

The generator is decided by seed, epoch and index, so an augmented image depends neither on the
number of workers nor on where a run was resumed.
"""

from typing import TYPE_CHECKING

from burn_dataset.augment.geometry import Pad, RandomResizedCrop, RandomRotation, Resize
from burn_dataset.augment.mixing import CutMix, Mixup
from burn_dataset.augment.steps import (
    CenterCrop,
    ColorJitter,
    Compose,
    Grayscale,
    Normalize,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    ToFloat,
)
from burn_std import missing_name as _missing_name

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "CutMix",
    "Grayscale",
    "Mixup",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "ToFloat",
]

if not TYPE_CHECKING:
    _RANDOM = "Write a class with `random = True` and `__call__(self, image, rng)`."
    # What `torchvision.transforms` has under this name, and what to write instead.
    _OTHERWISE = {
        "ToTensor": "Images are arrays until they are batches: write ToFloat().",
        "PILToTensor": "Write read_image(path), which gives an array [C, H, W].",
        "ToPILImage": "Write PIL.Image.fromarray(image.transpose(1, 2, 0)).",
        "ConvertImageDtype": "Write ToFloat().",
        "ToDtype": "Write ToFloat().",
        "MixUp": "Write Mixup.",
        "Lambda": "A function is a step itself: Compose([function]).",
        "RandomApply": _RANDOM,
        "RandomChoice": _RANDOM,
        "RandomAffine": "Use RandomRotation and RandomResizedCrop.",
        "RandomGrayscale": _RANDOM,
        "GaussianBlur": _RANDOM,
        "AutoAugment": "Choose from these changes by hand.",
        "RandAugment": "Choose from these changes by hand.",
        "TrivialAugmentWide": "Choose from these changes by hand.",
    }

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.dataset.augment", name, __all__, _OTHERWISE)
