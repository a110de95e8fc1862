"""Changes of images."""

from __future__ import annotations

import numpy as np
import pytest

from burn_dataset import ArrayDataset, DataLoader, MapDataset
from burn_dataset.augment import (
    CenterCrop,
    ColorJitter,
    Compose,
    CutMix,
    Grayscale,
    Mixup,
    Normalize,
    Pad,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
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


# PyTorch 2.13: interpolate((k * k % 17 for k below 35) as [5, 7], (3, 4), antialias=True).
SQUARES = (np.arange(35, dtype=np.float32) ** 2 % 17).reshape(1, 5, 7)
RESIZED = {
    "bilinear": [[6.3741, 8.5543, 10.04, 8.0952], [9.3651, 5.2667, 5.2667, 9.3651],
                 [8.0952, 10.04, 8.5543, 6.3741]],
    "bicubic": [[6.0213, 8.8038, 10.1466, 7.7621], [10.1889, 4.8625, 4.8625, 10.1889],
                [7.7621, 10.1466, 8.8038, 6.0213]],
}  # fmt: skip


@pytest.mark.parametrize("interpolation", RESIZED)
def test_sizes_are_those_of_pytorch_with_antialias(interpolation):
    out = Resize((3, 4), interpolation)(SQUARES)
    np.testing.assert_allclose(out[0], RESIZED[interpolation], atol=6e-5)
    whole = Resize((3, 4), interpolation)(SQUARES.astype(np.uint8))
    assert whole.dtype == np.uint8
    np.testing.assert_allclose(whole, np.rint(out))


def test_one_size_is_that_of_the_shorter_side():
    assert Resize(3)(IMAGE).shape == (3, 3, 4)
    assert Resize(12)(IMAGE).shape == (3, 12, 16)
    assert Resize((6, 8))(IMAGE) is IMAGE
    assert (Resize((3, 4), "nearest")(IMAGE) == IMAGE[:, ::2, ::2]).all()
    with pytest.raises(ArgumentError):
        Resize(0)
    with pytest.raises(ArgumentError):
        Resize(2, "lanczos")


def test_resized_crops_have_their_shares():
    image = np.broadcast_to(np.arange(40.0), (1, 30, 40))
    for k in range(40):
        step = RandomResizedCrop(10, scale=(0.2, 0.3), ratio=(1, 1))
        out = step(image, rng(k))
        assert out.shape == (1, 10, 10)
        # The width of the part: a line of it rises so far.
        width = (out[0, 0, -2] - out[0, 0, 1]) * 10 / 7
        assert 0.19 < width**2 / 1200 < 0.32
    assert RandomResizedCrop(4, scale=(5, 6))(IMAGE, rng()).shape == (3, 4, 4)


def test_right_angles_turn_pixels_onto_pixels():
    square = IMAGE[:, :, :6]
    for turns, angle in ((1, 90), (2, 180), (-1, -90)):
        for interpolation in ("nearest", "bilinear"):
            turned = RandomRotation((angle, angle), interpolation)(square, rng())
            assert (turned == np.rot90(square, turns, (1, 2))).all()
    tilted = RandomRotation((45, 45), fill=7)(square, rng())
    assert (tilted[:, 0, 0] == 7).all()
    assert tilted.dtype == np.uint8
    with pytest.raises(ArgumentError):
        RandomRotation((3, 1))


def test_borders_and_grey():
    padded = Pad((1, 2, 3, 4), fill=9)(IMAGE)
    assert padded.shape == (3, 12, 12)
    assert (padded[:, 2:8, 1:9] == IMAGE).all()
    assert padded[0, 0, 0] == 9
    grey = Grayscale(3)(ToFloat()(IMAGE))
    expected = np.tensordot([0.299, 0.587, 0.114], ToFloat()(IMAGE), 1)
    np.testing.assert_allclose(grey, np.stack([expected] * 3), rtol=1e-5)


@pytest.mark.parametrize("mix", [Mixup(4, 0.4), CutMix(4)])
def test_mixtures_of_a_batch_are_decided_by_seed_and_epoch(mix):
    images = np.arange(8, dtype=np.float32).reshape(8, 1, 1, 1) * np.ones((1, 3, 6, 6), np.float32)
    data = ArrayDataset(images, np.arange(8) % 4)

    def epoch(workers=0):
        loader = DataLoader(data, 4, shuffle=True, seed=3, collate=mix, num_workers=workers)
        out = [(x.numpy(), y.numpy()) for x, y in loader]
        loader.close()
        return out

    first, again = epoch(), epoch(workers=2)
    for (x, y), (u, v) in zip(first, again, strict=True):
        np.testing.assert_array_equal(x, u)
        np.testing.assert_array_equal(y, v)
        assert y.shape == (4, 4)
        np.testing.assert_allclose(y.sum(1), 1, rtol=1e-6)
        # An image of one value is as much of the other as its label says.
        mean = x.mean((1, 2, 3))
        assert (mean >= 0).all()
        assert (mean <= 7).all()
    with pytest.raises(ArgumentError):
        mix([(images[0], 9), (images[1], 0)], rng())


def test_names_of_torchvision_say_what_to_write():
    import burn_dataset.augment as augment

    with pytest.raises(AttributeError, match="ToFloat"):
        _ = augment.ToTensor
