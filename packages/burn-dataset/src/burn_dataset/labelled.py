"""Images that are listed: several labels each, a mask each, or boxes out of a COCO file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burn_dataset.dataset import check_index
from burn_dataset.folders import Array, PathLike, pillow, read_image
from burn_std import ArgumentError, StoreError, unwritten


class _Images:
    """What the listed images share: paths with targets, read on access."""

    def __init__(
        self, items: Sequence[tuple[PathLike, Any]], mode: str, size: tuple[int, int] | None,
        transform: Callable[[Array, Any], Any] | None,
    ) -> None:  # fmt: skip
        if not items:
            raise StoreError(type(self).__name__, "needs at least one image")
        self.items = [(Path(path), target) for path, target in items]
        self.mode = mode
        self.size = size
        self.transform = transform
        pillow()

    def target(self, path: Path, target: Any) -> Any:
        """Return the target of an image in the form that the model wants.

        Args:
            path: of the image.
            target: as it was listed.
        """
        raise unwritten(self, "target")

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        path, target = self.items[check_index(index, len(self), type(self).__name__)]
        image = read_image(path, self.mode, self.size)
        found = self.target(path, target)
        return (image, found) if self.transform is None else self.transform(image, found)


class MultiLabelImageDataset(_Images):
    """Images with any number of labels.

    Args:
        items: (path, names of its classes) of each image.
        classes: all names, in the order of the labels.
        mode: Pillow's word for the channels: `RGB`, `L`, `RGBA`.
        size: (height, width) to which images are brought, or None.
        transform: (image, labels) to an item, applied on access.

    Shapes:
        an item: ([C, H, W] of uint8, [classes] of float32, 1 where it has the label)

    Raises:
        StoreError: there is no item, Pillow is missing, or on access a file is no image.
        ArgumentError: an item has a class that is not listed.
    """

    def __init__(
        self, items: Sequence[tuple[PathLike, Sequence[str]]], classes: Sequence[str], *,
        mode: str = "RGB", size: tuple[int, int] | None = None,
        transform: Callable[[Array, Any], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(items, mode, size, transform)
        self.classes = list(classes)
        unknown = {name for _, names in items for name in names} - set(classes)
        if unknown:
            raise ArgumentError(
                type(self).__name__, "every label is one of the classes", got=sorted(unknown)
            )

    def target(self, path: Path, target: Sequence[str]) -> Array:
        """Return 1 for each label that the image has."""
        return np.array([name in target for name in self.classes], np.float32)


class SegmentationImageDataset(_Images):
    """Images with a mask that says the class of each pixel.

    Args:
        items: (path of the image, path of its mask) of each; a mask is an image of one channel, or
            of a palette, whose values are the classes.
        mode: Pillow's word for the image's channels: `RGB`, `L`, `RGBA`.
        size: (height, width) to which both are brought, or None; masks take the nearest pixel.
        transform: (image, mask) to an item, applied on access.

    Shapes:
        an item: ([C, H, W] of uint8, [H, W] of int64)

    Raises:
        StoreError: there is no item, Pillow is missing, or on access a file is no image, a mask has
            colours, or the two differ in size.
    """

    def __init__(
        self, items: Sequence[tuple[PathLike, PathLike]], *, mode: str = "RGB",
        size: tuple[int, int] | None = None, transform: Callable[[Array, Any], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(items, mode, size, transform)

    def target(self, path: Path, target: PathLike) -> Array:
        """Return the class of each pixel."""
        name, module = Path(target).name, pillow()
        try:
            with module.open(path) as image, module.open(target) as opened:
                extents = image.size, opened.size
                mask = opened if self.size is None else opened.resize(
                    (self.size[1], self.size[0]), module.Resampling.NEAREST
                )  # fmt: skip
                made = np.asarray(mask)
        except (OSError, ValueError, SyntaxError, module.DecompressionBombError) as cause:
            raise StoreError(
                type(self).__name__, "the mask is no image", got=f"{name}: {cause}"
            ) from cause
        if made.ndim != 2:
            raise StoreError(
                type(self).__name__, "a mask has one channel", got=f"{name}: {made.shape[2]}"
            )
        if extents[0] != extents[1]:
            raise StoreError(
                type(self).__name__, "image and mask have one size",
                got=f"{path.name} {extents[0]}, {name} {extents[1]}",
            )  # fmt: skip
        return made.astype(np.int64)


class CocoDetectionDataset(_Images):
    """Images with boxes, from an annotation file in COCO's form.

    Args:
        annotations: the JSON file with `images`, `annotations` and `categories`.
        images: folder in which the images lie.
        mode: Pillow's word for the channels: `RGB`, `L`, `RGBA`.
        transform: (image, target) to an item, applied on access; resizing belongs here, since boxes
            must follow.

    Attributes:
        classes: names of the categories by label, in the order of their ids.

    Shapes:
        an item: ([C, H, W] of uint8, {"boxes": [N, 4] of float32, "labels": [N] of int64})

    Units: boxes are (x, y, width, height) in pixels, x and y of the upper left corner.

    Raises:
        StoreError: the file is not of COCO's form, Pillow is missing, or on access a file is no
            image.
    """

    def __init__(
        self, annotations: PathLike, images: PathLike, *, mode: str = "RGB",
        transform: Callable[[Array, Any], Any] | None = None,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        try:
            found = json.loads(Path(annotations).read_bytes())
            kinds = {c["id"]: str(c["name"]) for c in found["categories"]}
            order = sorted(kinds)
            boxes: dict[Any, list[tuple[list[float], int]]] = {
                image["id"]: [] for image in found["images"]
            }
            for entry in found["annotations"]:
                x, y, width, height = map(float, entry["bbox"])
                label = order.index(entry["category_id"])
                boxes[entry["image_id"]].append(([x, y, width, height], label))
            root = Path(images)
            items = [(_inside(root, image["file_name"]), boxes[image["id"]])
                     for image in found["images"]]  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as cause:
            raise StoreError(
                name, "the annotations have COCO's form",
                got=f"{Path(annotations).name}: {type(cause).__name__}: {cause}",
            ) from cause  # fmt: skip
        super().__init__(items, mode, None, transform)
        self.classes = [kinds[k] for k in order]

    def target(self, path: Path, target: Sequence[tuple[list[float], int]]) -> Mapping[str, Array]:
        """Return boxes and labels."""
        return {
            "boxes": np.array([box for box, _ in target], np.float32).reshape(-1, 4),
            "labels": np.array([label for _, label in target], np.int64),
        }


def _inside(root: Path, name: str) -> Path:
    """Return the path of an image, which an annotation may not lead out of its folder."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"{name} lies outside the folder of the images")
    return root / name
