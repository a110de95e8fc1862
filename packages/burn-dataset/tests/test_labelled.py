"""Listed images: labels, masks and boxes, and what is refused by name."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from burn_dataset import (
    CocoDetectionDataset,
    DataLoader,
    MultiLabelImageDataset,
    SegmentationImageDataset,
)
from burn_std import ArgumentError, IndexRangeError, StoreError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def images(tmp_path):
    for k in range(2):
        Image.fromarray(np.full((4, 6, 3), 40 * k, np.uint8)).save(tmp_path / f"{k}.png")
    mask = np.arange(24, dtype=np.uint8).reshape(4, 6) % 3
    Image.fromarray(mask).save(tmp_path / "mask.png")
    return tmp_path


def test_several_labels(images):
    items = [(images / "0.png", ["cat"]), (images / "1.png", ["dog", "cat"])]
    data = pickle.loads(pickle.dumps(MultiLabelImageDataset(items, ["bird", "cat", "dog"])))
    image, labels = data[1]
    assert (image.shape, image.dtype, labels.tolist()) == ((3, 4, 6), np.uint8, [0, 1, 1])
    batch = next(iter(DataLoader(data, 2)))
    assert batch[1].tolist() == [[0, 1, 0], [0, 1, 1]]
    with pytest.raises(IndexRangeError):
        data[2]
    with pytest.raises(ArgumentError):
        MultiLabelImageDataset(items, ["cat"])
    with pytest.raises(StoreError):
        MultiLabelImageDataset([], ["cat"])
    with pytest.raises(StoreError):
        MultiLabelImageDataset([(images / "none.png", [])], ["cat"])[0]


def test_masks(images):
    pairs = [(images / "0.png", images / "mask.png")]
    image, mask = SegmentationImageDataset(pairs)[0]
    assert (image.shape, mask.shape, mask.dtype) == ((3, 4, 6), (4, 6), np.int64)
    assert mask.ravel().tolist() == [k % 3 for k in range(24)]
    image, mask = SegmentationImageDataset(pairs, size=(2, 3))[0]
    assert (image.shape, mask.shape) == ((3, 2, 3), (2, 3)) and set(mask.ravel()) <= {0, 1, 2}
    flipped = SegmentationImageDataset(pairs, transform=lambda a, m: (a, m[:, ::-1]))[0][1]
    assert flipped[0].tolist() == [2, 1, 0, 2, 1, 0]
    Image.fromarray(np.zeros((4, 5), np.uint8)).save(images / "narrow.png")
    for bad in ("1.png", "narrow.png", "none.png"):
        with pytest.raises(StoreError):
            SegmentationImageDataset([(images / "0.png", images / bad)])[0]


def coco(folder, **changes):
    whole = {
        "images": [{"id": 7, "file_name": "0.png"}, {"id": 9, "file_name": "1.png"}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}],
        "annotations": [
            {"image_id": 7, "category_id": 18, "bbox": [1, 2, 3, 1.5]},
            {"image_id": 7, "category_id": 3, "bbox": [0, 0, 6, 4]},
        ],
    }  # fmt: skip
    path = folder / "boxes.json"
    path.write_text(json.dumps(whole | changes))
    return path


def test_boxes(images):
    data = CocoDetectionDataset(coco(images), images)
    assert data.classes == ["car", "dog"] and len(data) == 2
    image, target = data[0]
    assert image.shape == (3, 4, 6)
    assert target["boxes"].tolist() == [[1, 2, 3, 1.5], [0, 0, 6, 4]]
    assert target["labels"].tolist() == [1, 0]
    assert (data[1][1]["boxes"].shape, data[1][1]["labels"].shape) == ((0, 4), (0,))
    assert CocoDetectionDataset(coco(images), images, transform=lambda a, t: len(t))[0] == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"images": None},
        {"images": [{"id": 7, "file_name": "../0.png"}]},
        {"annotations": [{"image_id": 8, "category_id": 3, "bbox": [0, 0, 1, 1]}]},
        {"annotations": [{"image_id": 7, "category_id": 4, "bbox": [0, 0, 1, 1]}]},
        {"annotations": [{"image_id": 7, "category_id": 3, "bbox": [0, 0, 1]}]},
        {"categories": [3]},
        {"images": [], "annotations": []},
    ],
)
def test_other_forms_are_refused(images, changes):
    with pytest.raises(StoreError):
        CocoDetectionDataset(coco(images, **changes), images)
