"""Changes of images."""

from __future__ import annotations

import numpy as np
import pytest

from burn_dataset import ArrayDataset, DataLoader, MapDataset
from burn_dataset.augment import (
    CenterCrop,
    ColorJitter,
    Compose,
    Normalize,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    ToFloat,
)
from burn_std import ArgumentError, ShapeError

IMAGE = np.arange(3 * 6 * 8).reshape(3, 6, 8).astype(np.uint8)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_plain_changes():
    assert ToFloat()(IMAGE).max() == np.float32(143 / 255)
    assert ToFloat()(IMAGE.astype(np.float64)).dtype == np.float32
    assert (CenterCrop((2, 4))(IMAGE) == IMAGE[:, 2:4, 2:6]).all()
    out = Normalize([1, 2, 3], [1, 2, 4])(IMAGE)
    np.testing.assert_allclose(out[2], (IMAGE[2] - 3) / 4)


def test_every_place_of_a_crop_comes_up():
    seen = {RandomCrop(5)(IMAGE, rng(k))[0, 0, 0] for k in range(100)}
    assert seen == {IMAGE[0, i, j] for i in range(2) for j in range(4)}
    padded = RandomCrop((6, 8), padding=2)(IMAGE, rng(1))
    assert padded.shape == IMAGE.shape


def test_flips_have_their_chance():
    flips = [(RandomHorizontalFlip(0.3)(IMAGE, rng(k)) != IMAGE).any() for k in range(500)]
    assert 100 < sum(flips) < 200
    assert (RandomVerticalFlip(1.0)(IMAGE, rng()) == IMAGE[:, ::-1]).all()
    assert RandomHorizontalFlip(0.0)(IMAGE, rng()) is IMAGE


def test_erasing_leaves_the_rest():
    image = np.ones((1, 20, 20))
    shares = [(RandomErasing(1.0)(image, rng(k)) == 0).mean() for k in range(50)]
    assert min(shares) > 0.01
    assert max(shares) < 0.4
    assert image.all()


def test_colours_stay_in_range_and_settings_are_independent():
    image = ToFloat()(IMAGE)
    jitter = ColorJitter(0.5, 0.5, 0.5)
    assert all(
        0 <= jitter(image, rng(k)).min() <= jitter(image, rng(k)).max() <= 1 for k in range(9)
    )
    np.testing.assert_allclose(ColorJitter()(image, rng()), image, atol=1e-6)


def test_composed_in_a_loader():
    change = Compose([RandomCrop(4), RandomHorizontalFlip(), ToFloat()])
    images = np.stack([IMAGE] * 6)
    data = MapDataset(ArrayDataset(images, np.arange(6)), change, random=True)
    one, two = ([x.numpy() for x, _ in DataLoader(data, n, seed=2)] for n in (2, 3))
    assert (np.concatenate(one) == np.concatenate(two)).all()
    assert one[0].shape == (2, 3, 4, 4)
    with pytest.raises(ArgumentError, match="random=True"):
        change(IMAGE)


@pytest.mark.parametrize("call", [
    lambda: CenterCrop(9)(IMAGE), lambda: RandomCrop(9)(IMAGE, rng()),
    lambda: Normalize([0], [1])(IMAGE), lambda: ToFloat() and CenterCrop(1)(IMAGE[0]),
])  # fmt: skip
def test_images_that_do_not_fit(call):
    with pytest.raises(ShapeError):
        call()


@pytest.mark.parametrize("make", [
    lambda: Normalize([0], [0]), lambda: RandomHorizontalFlip(2),
    lambda: RandomErasing(scale=(0, 1)),
    lambda: ColorJitter(-1),
])  # fmt: skip
def test_settings_that_make_no_sense(make):
    with pytest.raises(ArgumentError):
        make()
