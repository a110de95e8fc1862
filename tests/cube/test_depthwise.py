"""Convolutions of which each channel has a window of its own, on the cpu, beside the reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from burn_cube_backend.kernels import depthwise
from burn_cube_backend.kernels.conv import out_lengths
from tests.cube.test_cpu_providers import CPU, run
from tests.cube.test_direct_convolution import convolutions
from tests.cube.test_winograd import normal

WAYS = [
    (size, stride, padding, dilation)
    for size, stride, padding, dilation in itertools.product(
        ((3, 3), (5, 4), (1, 7)), ((1, 1), (2, 2), (3, 2), (1, 2)), ((1, 1), (0, 3), (2, 0)),
        ((1, 1), (2, 2)),
    )
]  # fmt: skip


@pytest.mark.parametrize("lengths", [(7, 7), (9, 15), (20, 33), (41, 64)], ids=str)
def test_any_geometry(lengths):
    # One in five for each extent, others for the next.
    for size, stride, padding, dilation in WAYS[lengths[0] % 5 :: 5]:
        how = (stride, padding, dilation)
        if min(out_lengths(lengths, size, *how)) < 1:
            continue
        convolutions(normal(2, 3, *lengths), normal(3, 1, *size), normal(3), how, 3)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_one_dim(stride):
    how = ((stride,), (2,), (1,))
    convolutions(normal(3, 4, 37), normal(4, 1, 5), None, how, 4)


@pytest.mark.parametrize("stride", [(1, 1), (2, 2)], ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_windows(value, stride):
    x = normal(2, 4, 13, 22)
    x[0, 1, 5, 21] = x[1, 3, 0, 0] = x[0, 2, 12, 7] = value
    convolutions(x, normal(4, 1, 3, 3), None, (stride, (1, 1), (1, 1)), 4)


def test_planes_in_bands(monkeypatch):
    monkeypatch.setattr(depthwise, "BAND", 300)
    for stride in ((1, 1), (2, 2)):
        convolutions(normal(2, 3, 40, 37), normal(3, 1, 5, 3), None, (stride, (2, 1), (1, 1)), 3)


def test_the_same_bits_again():
    x, g, how = normal(2, 9, 28, 28), normal(2, 9, 14, 14), ((2, 2), (1, 1), (1, 1), 9)
    made = [run("conv_weight_grad", [g, x], (*how, (9, 1, 3, 3)), CPU)[0] for _ in range(2)]
    assert np.array_equal(made[0], made[1])


def test_windows_and_weights_of_another_layout():
    x, w = normal(2, 28, 30, 5).transpose(0, 3, 1, 2), normal(3, 3, 1, 5).transpose(3, 2, 0, 1)
    for stride in ((1, 1), (2, 2)):
        convolutions(x, w, normal(5), (stride, (1, 1), (1, 1)), 5)


def test_who_is_served():
    x = CPU.context.tensor_from_numpy(normal(1, 2, 20, 20)).v
    how = depthwise.Geometry((3, 3), (1, 1), (1, 1), (1, 1))
    assert depthwise.forward_plan(x, how, (20, 20)) is not None
    assert depthwise.forward_plan(x, how, (20, 3)) is None  # rows too short for vectors
    assert depthwise.forward_plan(x, how._replace(stride=(1, 3)), (20, 7)) is None
    # More zeros around than a window reaches: g would be read from its middle on.
    assert depthwise.input_plan(x, how._replace(padding=(3, 3)), (16, 16)) is None
